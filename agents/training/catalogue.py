"""Catalogue of the trainers by the ``algorithm`` of a training file; they are imported on demand."""

from __future__ import annotations

from typing import Any, get_type_hints

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.io.catalogue import Catalogue

__all__ = ["TRAINERS", "problem_of", "settings_of", "trainer_named"]

TRAINERS: Catalogue[type[Any]] = Catalogue(
    "algorithm",
    "hpcsimkit.algorithms",
    {
        "ppo": "hpcsimkit.agents.training.ppo:PPO",
        "taught-ppo": "hpcsimkit.agents.training.taught_ppo:TaughtPPO",
        "spinning-up-ppo": "hpcsimkit.agents.training.spinning_up:SpinningUpPPO",
        "schedinspector": "hpcsimkit.agents.schedinspector.trainer:InspectorTrainer",
        "prompt-inspector": "hpcsimkit.agents.schedinspector.trainer:PromptInspectorTrainer",
        "a2c": "hpcsimkit.agents.training.a2c:A2C",
        "pg": "hpcsimkit.agents.training.a2c:PolicyGradient",
        "dql": "hpcsimkit.agents.training.dql:DQL",
        "dras-dql": "hpcsimkit.agents.dras.q_learning:DrasDQL",
        "dras-pg": "hpcsimkit.agents.dras.policy_gradient:DrasPG",
        "dras-a2c": "hpcsimkit.agents.dras.actor_critic:DrasA2C",
        "dras-ppo": "hpcsimkit.agents.dras.ppo:DrasPPO",
        "together": "hpcsimkit.agents.training.together:Together",
        "cush": "hpcsimkit.agents.cush.trainer:CushTrainer",
        "cush-taught": "hpcsimkit.agents.cush.taught:TaughtTrainer",
        "cem": "hpcsimkit.agents.training.cross_entropy:CrossEntropy",
        "cma-es": "hpcsimkit.agents.training.cma_es:CMAES",
        "imitation": "hpcsimkit.agents.training.imitation:Imitation",
        "aggrevate": "hpcsimkit.agents.training.aggrevate:AggreVaTe",
        "maskable-ppo": "hpcsimkit.agents.training.sb3:SB3Trainer",
        "sb3-ppo": "hpcsimkit.agents.training.sb3:SB3PPO",
        "sb3-a2c": "hpcsimkit.agents.training.sb3:SB3A2C",
        "sb3-dqn": "hpcsimkit.agents.training.sb3:SB3DQN",
    },
)
"""Trainers by name."""


def trainer_named(name: str) -> type[Any]:
    """Return the trainer with a given name.

    Raises
    ------
    UsageError
        The name is unknown; the message suggests similar ones.

    Examples
    --------
    >>> trainer_named("ppo").__name__
    'PPO'
    """
    if name not in TRAINERS:
        raise UsageError(f"unknown algorithm {name!r}{nearest(str(name), TRAINERS)}")
    return TRAINERS[name]


def problem_of(trainer: type[Any]) -> type[Any] | None:
    """Return the dataclass of the problem that a trainer brings along; None if it learns from jobs on a seat.

    >>> problem_of(trainer_named("cush")).__name__, problem_of(trainer_named("ppo"))
    ('CushProblem', None)
    """
    return get_type_hints(trainer).get("problem")


def settings_of(trainer: type[Any]) -> type[Any]:
    """Return the dataclass of a trainer's settings.

    >>> settings_of(trainer_named("ppo")).__name__, settings_of(trainer_named("together")).__name__
    ('PPOSettings', 'TogetherSettings')
    """
    return getattr(trainer, "file_settings", None) or get_type_hints(trainer)["settings"]
