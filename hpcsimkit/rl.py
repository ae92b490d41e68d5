"""Learning: environments, observations, rewards, trainers and agents, each loaded on first use.

>>> from hpcsimkit import rl
>>> env = rl.SchedulingEnv(
...     rl.Windows(log, 256), Pipeline(order=External(), backfiller=EASY(), window=16), rl.QueueWindow(16),
...     rl.Slots(16), rl.MinusMeanBoundedSlowdown())  # doctest: +SKIP

Most names need the extra ``[rl]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.io.lazy_names import LazyNames

if TYPE_CHECKING:
    from hpcsimkit.agents.agent import Agent
    from hpcsimkit.agents.model_agent import ModelAgent
    from hpcsimkit.agents.networks.numpy_networks import Dense
    from hpcsimkit.agents.networks.onnx_graphs import OnnxGraph
    from hpcsimkit.agents.seats import (
        ConstantSlot,
        RandomAgent,
        RandomChoice,
        Replay,
        default_choice,
        play,
        with_agent,
    )
    from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
    from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed, Generated, InTurn, Windows
    from hpcsimkit.agents.spaces.holes import JobAndHole
    from hpcsimkit.agents.spaces.masks import AcceptReject, JobMachine, QueueSlots, Slots
    from hpcsimkit.agents.spaces.rewards import (
        FinalScore,
        Improvement,
        MinusMeanBoundedSlowdown,
        MinusMeanWait,
        Utilisation,
    )
    from hpcsimkit.agents.spaces.running_jobs import RunningJobs
    from hpcsimkit.agents.spaces.seat_encoders import Flat, OneJob, Places
    from hpcsimkit.agents.training.a2c import A2C
    from hpcsimkit.agents.training.callbacks import Callback, Pruning
    from hpcsimkit.agents.training.cross_entropy import CrossEntropy, CrossEntropySettings
    from hpcsimkit.agents.training.dql import DQL, DQLSettings
    from hpcsimkit.agents.training.ppo import PPO, PPOSettings
    from hpcsimkit.agents.training.sb3 import SB3A2C, SB3DQN, SB3PPO, SB3Settings, SB3Trainer
    from hpcsimkit.agents.training.sb3_models import agent_of
    from hpcsimkit.agents.training.together import Together
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.envs.episode import Episode, Player
    from hpcsimkit.envs.gymnasium_vector import SchedulingVectorEnv
    from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Observation, Reward, Valid
    from hpcsimkit.envs.pettingzoo_aec import SeatsAECEnv
    from hpcsimkit.envs.scenario import Scenario
    from hpcsimkit.envs.turns import TurnTaking
    from hpcsimkit.envs.vector_environment import SchedulingVecEnv
    from hpcsimkit.experiments.checks.learner_parts import check_agent, check_encoder, check_reward
    from hpcsimkit.experiments.questions.evaluate import evaluate
    from hpcsimkit.experiments.training.training import Training
    from hpcsimkit.experiments.training.training_run import TrainingRun
    from hpcsimkit.kernel.decision import Answering, Decision, External
    from hpcsimkit.kernel.setup import Setup
    from hpcsimkit.policies.one_seat.dispatch import Dispatch
    from hpcsimkit.policies.one_seat.order_and_tests import OrderAndTests
    from hpcsimkit.policies.one_seat.two_level import TwoLevel

_NAMES = LazyNames(
    __name__,
    {
        "agents.agent": ("Agent",),
        "agents.model_agent": ("ModelAgent",),
        "agents.networks.numpy_networks": ("Dense",),
        "agents.networks.onnx_graphs": ("OnnxGraph",),
        "agents.seats": (
            "ConstantSlot",
            "RandomAgent",
            "RandomChoice",
            "Replay",
            "default_choice",
            "play",
            "with_agent",
        ),
        "agents.spaces.encoders": (
            "QueueWindow",
            "RequestsAndMachines",
        ),
        "agents.spaces.episodes": (
            "AnyOf",
            "Fixed",
            "Generated",
            "InTurn",
            "Windows",
        ),
        "agents.spaces.holes": ("JobAndHole",),
        "agents.spaces.masks": (
            "AcceptReject",
            "JobMachine",
            "QueueSlots",
            "Slots",
        ),
        "agents.spaces.rewards": (
            "FinalScore",
            "Improvement",
            "MinusMeanBoundedSlowdown",
            "MinusMeanWait",
            "Utilisation",
        ),
        "agents.spaces.running_jobs": ("RunningJobs",),
        "agents.spaces.seat_encoders": (
            "Flat",
            "OneJob",
            "Places",
        ),
        "agents.training.a2c": ("A2C",),
        "agents.training.callbacks": (
            "Callback",
            "Pruning",
        ),
        "agents.training.cross_entropy": (
            "CrossEntropy",
            "CrossEntropySettings",
        ),
        "agents.training.dql": (
            "DQL",
            "DQLSettings",
        ),
        "agents.training.ppo": (
            "PPO",
            "PPOSettings",
        ),
        "agents.training.sb3": (
            "SB3A2C",
            "SB3DQN",
            "SB3PPO",
            "SB3Settings",
            "SB3Trainer",
        ),
        "agents.training.sb3_models": ("agent_of",),
        "agents.training.together": ("Together",),
        "envs.environment": ("SchedulingEnv",),
        "envs.episode": (
            "Episode",
            "Player",
        ),
        "envs.gymnasium_vector": ("SchedulingVectorEnv",),
        "envs.interfaces": (
            "Encoder",
            "Episodes",
            "Mask",
            "Observation",
            "Reward",
            "Valid",
        ),
        "envs.pettingzoo_aec": ("SeatsAECEnv",),
        "envs.scenario": ("Scenario",),
        "envs.turns": ("TurnTaking",),
        "envs.vector_environment": ("SchedulingVecEnv",),
        "experiments.checks.learner_parts": (
            "check_agent",
            "check_encoder",
            "check_reward",
        ),
        "experiments.questions.evaluate": ("evaluate",),
        "experiments.training.training": ("Training",),
        "experiments.training.training_run": ("TrainingRun",),
        "kernel.decision": (
            "Answering",
            "Decision",
            "External",
        ),
        "kernel.setup": ("Setup",),
        "policies.one_seat.dispatch": ("Dispatch",),
        "policies.one_seat.order_and_tests": ("OrderAndTests",),
        "policies.one_seat.two_level": ("TwoLevel",),
    },
)

__all__ = [
    "A2C",
    "DQL",
    "PPO",
    "SB3A2C",
    "SB3DQN",
    "SB3PPO",
    "AcceptReject",
    "Agent",
    "Answering",
    "AnyOf",
    "Callback",
    "ConstantSlot",
    "CrossEntropy",
    "CrossEntropySettings",
    "DQLSettings",
    "Decision",
    "Dense",
    "Dispatch",
    "Encoder",
    "Episode",
    "Episodes",
    "External",
    "FinalScore",
    "Fixed",
    "Flat",
    "Generated",
    "Improvement",
    "InTurn",
    "JobAndHole",
    "JobMachine",
    "Mask",
    "MinusMeanBoundedSlowdown",
    "MinusMeanWait",
    "ModelAgent",
    "Observation",
    "OneJob",
    "OnnxGraph",
    "OrderAndTests",
    "PPOSettings",
    "Places",
    "Player",
    "Pruning",
    "QueueSlots",
    "QueueWindow",
    "RandomAgent",
    "RandomChoice",
    "Replay",
    "RequestsAndMachines",
    "Reward",
    "RunningJobs",
    "SB3Settings",
    "SB3Trainer",
    "Scenario",
    "SchedulingEnv",
    "SchedulingVecEnv",
    "SchedulingVectorEnv",
    "SeatsAECEnv",
    "Setup",
    "Slots",
    "Together",
    "Training",
    "TrainingRun",
    "TurnTaking",
    "TwoLevel",
    "Utilisation",
    "Valid",
    "Windows",
    "agent_of",
    "check_agent",
    "check_encoder",
    "check_reward",
    "default_choice",
    "evaluate",
    "play",
    "with_agent",
]


def __getattr__(name: str) -> Any:
    return _NAMES.load(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
