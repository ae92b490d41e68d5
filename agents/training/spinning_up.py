"""PPO as in OpenAI's Spinning Up: full-batch updates of the policy first, then of the value function."""

from __future__ import annotations

from dataclasses import dataclass

from hpcsimkit.agents.ranges import Count, NonNegative, Share
from hpcsimkit.agents.training.ppo import PPO, PPOSettings

__all__ = ["SpinningUpPPO", "SpinningUpSettings"]


@dataclass(frozen=True)
class SpinningUpSettings(PPOSettings):
    """Settings of :class:`SpinningUpPPO`: those of PPO, with other defaults.

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
    separate_updates: bool = True
    max_grad_norm: NonNegative = 1e6


class SpinningUpPPO(PPO):
    """PPO with the settings used to train RLScheduler, SchedInspector and RLBackfilling.

    It updates from all steps of a round at once, and its critic continues to learn after the policy's updates
    have stopped (``separate_updates`` of :class:`~hpcsimkit.agents.training.ppo.PPOSettings`).

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
