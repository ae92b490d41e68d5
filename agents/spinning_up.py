"""PPO as OpenAI's Spinning Up has it: policy and value learn one after the other, from all steps at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.on_policy import Batch
from hpcsimkit.agents.ppo import PPO, PPOSettings, policy_loss, value_loss
from hpcsimkit.errors import UsageError

__all__ = ["SpinningUpPPO", "SpinningUpSettings"]


@dataclass(frozen=True)
class SpinningUpSettings(PPOSettings):
    """Settings of :class:`SpinningUpPPO`; of those of PPO, `batch`, `value_weight` and the like say nothing.

    Parameters
    ----------
    epochs : int
        How often the policy, and then the value, learn from all steps of a round.
    target_divergence : float, optional
        The pass over all steps that finds the policy farther than this from the one that played is its last.
        (Spinning Up has 1.5 times its ``target_kl``.) The value learns on.
    value_trace : float, optional
        Spinning Up has 1 here: its critic learns what was really earned. With less, where episodes are long
        and paid at their end, it learns for the most part what it believed before.
    """

    episodes: int = 100
    whole_episodes: bool = True
    epochs: int = 80
    learning_rate: float = 3e-4
    value_learning_rate: float | None = 1e-3
    discount: float = 1.0
    trace: float = 0.97
    value_trace: float | None = 1.0
    target_divergence: float | None = 0.015
    gradient_limit: float = 1e6


class SpinningUpPPO(PPO):
    """The PPO that RLScheduler, SchedInspector and RLBackfilling were trained by.

    Unlike :class:`~hpcsimkit.agents.ppo.PPO` it takes all steps of a round at once, and its critic goes on
    learning when the policy has moved far enough.

    Examples
    --------
    A round of 20 episodes of three decisions. The policy may not move at all; the second pass finds it has:

    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
    >>> from hpcsimkit.decision import External
    >>> from hpcsimkit.environment import SchedulingEnv
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> env = SchedulingEnv(Fixed(w), Pipeline(order=External(), window=3), QueueWindow(3), Slots(3),
    ...     MinusMeanWait())
    >>> settings = SpinningUpSettings(steps=1, episodes=20, epochs=5, hidden=(4,), target_divergence=0.0)
    >>> agent = SpinningUpPPO(env, settings, seed=1).train(tell=lambda report: print(
    ...     report.steps, report.measures["passes"]))
    60 2.0
    """

    algorithm = "spinning-up-ppo"
    settings: SpinningUpSettings

    def build(self, seed: int) -> None:
        """Make networks and their optimiser."""
        if self.settings.value_learning_rate is None or self.settings.normalise != "round":
            raise UsageError(f"{self.algorithm} needs a value_learning_rate, and normalise='round'")
        super().build(seed)
        vectors = [group["params"][0] for group in self.optimiser.param_groups]
        self._vectors = [(vector, vector.grad) for vector in vectors]

    def learn(self, batch: Batch) -> dict[str, float]:
        """Learn from all steps: the policy until it has moved far enough, the value all the time."""
        settings = self.settings
        advantages = batch.advantages - batch.advantages.mean()
        batch = batch._replace(advantages=advantages / (advantages.std() + 1e-8))
        of_policy: list[torch.Tensor] = []
        for _ in range(settings.epochs):
            scores = self.networks.scores(batch.observations, batch.valid)
            with torch.no_grad():
                measures, gradient = policy_loss(scores, batch, settings.clip, settings.entropy_weight)
            of_policy.append(torch.stack(measures))
            self._descend(0, scores, gradient)
            if settings.target_divergence is not None and measures[2] > settings.target_divergence:
                break
        of_value: list[torch.Tensor] = []
        for _ in range(settings.epochs):
            values = self.networks.values(batch.observations)
            with torch.no_grad():
                loss, gradient = value_loss(values, batch, settings.clip_value)
            of_value.append(loss)
            self._descend(1, values, gradient)
        return self._told(batch, torch.stack(of_policy), torch.stack(of_value))

    def _told(self, batch: Batch, of_policy: torch.Tensor, of_value: torch.Tensor) -> dict[str, float]:
        """Return what is to be told of a round."""
        self.check_finite(torch.cat([of_policy.flatten(), of_value]))
        first, last = of_policy[0].tolist(), of_policy[-1].tolist()
        return {
            "policy_loss": last[0], "value_loss": float(of_value[-1]), "entropy": first[1],
            "divergence": last[2], "passes": float(len(of_policy)),
        }  # fmt: skip

    def _descend(self, part: int, outputs: torch.Tensor, gradient: torch.Tensor) -> None:
        """Move the weights of the policy (0) or of the value (1); Adam leaves alone what has no gradient."""
        for number, (vector, moves) in enumerate(self._vectors):
            vector.grad = moves if number == part else None
        moves = self._vectors[part][1]
        moves.zero_()
        torch.autograd.backward([outputs], [gradient])
        length = torch.linalg.vector_norm(moves)
        moves.mul_((self.settings.gradient_limit / (length + 1e-6)).clamp(max=1.0))
        self.optimiser.step()
