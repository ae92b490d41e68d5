"""PPO as in OpenAI's Spinning Up: full-batch updates of the policy first, then of the value function."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.ranges import Count, NonNegative, Share
from hpcsimkit.agents.training.on_policy import Batch
from hpcsimkit.agents.training.ppo import PPO, PPOSettings, policy_loss, value_loss
from hpcsimkit.errors import UsageError

__all__ = ["SpinningUpPPO", "SpinningUpSettings"]


@dataclass(frozen=True)
class SpinningUpSettings(PPOSettings):
    """Settings of :class:`SpinningUpPPO`; some settings of PPO (`batch_size`, `vf_coef` ...) have no effect.

    Parameters
    ----------
    n_epochs : int
        Maximum number of policy updates per round, and number of value updates, each over all steps.
    target_kl : float, optional
        Threshold of the divergence from the policy that sampled the round; the first update beyond it is
        the last one of the policy. (1.5 times ``target_kl`` of Spinning Up.) The value updates continue.
    value_gae_lambda : float, optional
        GAE parameter lambda of the value targets; 1 as in Spinning Up, where the critic fits returns. With
        less, long episodes with a reward at the end make it fit mostly its own earlier estimates.
    """

    episodes: Count = 100
    whole_episodes: bool = True
    n_epochs: Count = 80
    learning_rate: NonNegative = 3e-4
    value_learning_rate: NonNegative | None = 1e-3
    gamma: Share = 1.0
    gae_lambda: Share = 0.97
    value_gae_lambda: Share | None = 1.0
    target_kl: NonNegative | None = 0.015
    max_grad_norm: NonNegative = 1e6


class SpinningUpPPO(PPO):
    """The PPO variant used to train RLScheduler, SchedInspector and RLBackfilling.

    Unlike :class:`~hpcsimkit.agents.training.ppo.PPO` it updates from all steps of a round at once, and its
    critic continues to learn after the policy's updates have stopped.

    Examples
    --------
    A round of 20 episodes of three decisions. The threshold is 0, so the second update is the policy's last:

    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> from hpcsimkit.kernel.decision import External
    >>> from hpcsimkit.envs.environment import SchedulingEnv
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> env = SchedulingEnv(Fixed(w), Pipeline(order=External(), window=3), QueueWindow(3), Slots(3),
    ...     MinusMeanWait())
    >>> settings = SpinningUpSettings(total_timesteps=1, episodes=20, n_epochs=5, hidden=(4,), target_kl=0.0)
    >>> agent = SpinningUpPPO(env, settings, seed=1).train(tell=lambda report: print(
    ...     report.steps, report.measures["passes"]))
    60 2.0
    """

    algorithm = "spinning-up-ppo"
    settings: SpinningUpSettings

    def build(self, seed: int) -> None:
        """Create the networks and their optimiser."""
        if self.settings.value_learning_rate is None or self.settings.normalise != "round":
            raise UsageError(f"{self.algorithm} needs a value_learning_rate, and normalise='round'")
        super().build(seed)
        vectors = [group["params"][0] for group in self.optimiser.param_groups]
        self._vectors = [(vector, vector.grad) for vector in vectors]

    def learn(self, batch: Batch) -> dict[str, float]:
        """Update the policy until it exceeds the divergence threshold, and the critic in all epochs."""
        settings = self.settings
        advantages = batch.advantages - batch.advantages.mean()
        batch = batch._replace(advantages=advantages / (advantages.std() + 1e-8))
        of_policy: list[torch.Tensor] = []
        for _ in range(settings.n_epochs):
            scores = self.networks.scores(batch.observations, batch.valid)
            with torch.no_grad():
                measures, gradient = policy_loss(scores, batch, settings.clip_range, settings.ent_coef)
            of_policy.append(torch.stack(measures))
            self._descend(0, scores, gradient)
            if settings.target_kl is not None and measures[2] > settings.target_kl:
                break
        of_value: list[torch.Tensor] = []
        for _ in range(settings.n_epochs):
            values = self.networks.values(batch.observations)
            with torch.no_grad():
                loss, gradient = value_loss(values, batch, settings.clip_range_vf)
            of_value.append(loss)
            self._descend(1, values, gradient)
        return self._told(batch, torch.stack(of_policy), torch.stack(of_value))

    def _told(self, batch: Batch, of_policy: torch.Tensor, of_value: torch.Tensor) -> dict[str, float]:
        """Return the measures of a round to report."""
        self.check_finite(torch.cat([of_policy.flatten(), of_value]))
        first, last = of_policy[0].tolist(), of_policy[-1].tolist()
        return {
            "policy_loss": last[0],
            "value_loss": float(of_value[-1]),
            "entropy": first[1],
            "approx_kl": last[2],
            "passes": float(len(of_policy)),
        }

    def _descend(self, part: int, outputs: torch.Tensor, gradient: torch.Tensor) -> None:
        """Update the policy (0) or the critic (1); Adam skips parameters without a gradient."""
        for number, (vector, moves) in enumerate(self._vectors):
            vector.grad = moves if number == part else None
        moves = self._vectors[part][1]
        moves.zero_()
        torch.autograd.backward([outputs], [gradient])
        length = torch.linalg.vector_norm(moves)
        moves.mul_((self.settings.max_grad_norm / (length + 1e-6)).clamp(max=1.0))
        self.optimiser.step()
