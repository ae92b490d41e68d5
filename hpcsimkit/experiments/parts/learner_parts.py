"""Components of a training, made of tables: seat, encoder, mask, reward, episodes, trainer."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from hpcsimkit.agents.catalogue import ENCODERS, EPISODES, MASKS, REWARDS
from hpcsimkit.agents.networks.numpy_networks import ACTIVATIONS, Dense, SlotScores
from hpcsimkit.agents.ranges import Range, plain_and_range
from hpcsimkit.agents.training.catalogue import TRAINERS, problem_of, settings_of, trainer_named
from hpcsimkit.agents.training.old_names import renamed_keys
from hpcsimkit.agents.training.returns import NORMALISATIONS
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.named_parts import class_named
from hpcsimkit.experiments.parts.registry import policy_named
from hpcsimkit.experiments.parts.spelling import Part
from hpcsimkit.experiments.parts.trust import Trust, importing
from hpcsimkit.experiments.settings.checked_table import Problem, Table
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.pipeline import LIMITS, SEATS, Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT
from hpcsimkit.policies.one_seat.two_level import STAGE as TWO_LEVEL

__all__ = [
    "OWN_EPISODES",
    "PACKAGES",
    "Kind",
    "TrainerPart",
    "algorithm_named",
    "arguments_of",
    "former_names",
    "heuristic_behind",
    "parameters_of",
    "part_of",
    "seated",
    "trainer_part",
]

PACKAGES = ("torch", "gymnasium", "stable_baselines3", "safetensors")
"""Packages needed for training."""

NUMBERS = (int, float, int | None, float | None)
CHOICES: Mapping[str, Collection[str]] = {
    "kind": (Dense.kind, SlotScores.kind),
    "activation": ACTIVATIONS,
    "normalise": NORMALISATIONS,
}
"""Allowed values of parameters of hpcsimkit's components, by name.

Numbers have the ranges beside their types (:mod:`hpcsimkit.agents.ranges`), or else are 0 or more."""


# --- the seat ------------------------------------------------------------------------------------------


def seated(policy: Policy, holder: External, stage: str, slots: int | None) -> Policy:
    """Return the policy with an agent at one of its seats, and the former stage as the heuristic behind it.

    For the stages ``"dispatch"`` and ``"two-level"``, the pipeline consists of an order only. At most `slots`
    options are shown, unless the pipeline limits them itself; at the backfiller seat that limits the
    candidates, and not the jobs from which the order selects.

    >>> from hpcsimkit import External, make
    >>> seated(make("sjf+easy"), External(), "order", 16)
    Pipeline(order=External(base=SJF()), backfiller=EASY(), window=16)
    >>> seated(make("sjf+easy"), External(), "backfiller", 16)
    Pipeline(order=SJF(), backfiller=External(base=EASY()), max_candidates=16)
    """
    if not isinstance(policy, Pipeline):
        raise UsageError(f"{policy!r} has no {stage} seat: a pipeline is needed, such as fcfs+easy")
    if stage in ONE_SEAT:
        order = policy.order
        if isinstance(order, External) or policy != Pipeline(order=order):
            raise UsageError(f"behind a {stage} seat stands an order only, found {policy!r}")
        scheduler: Policy = ONE_SEAT[stage](holder, slots, order)  # type: ignore[arg-type]
        scheduler.check()
        return scheduler
    if stage not in SEATS:
        raise UsageError(f"a seat of {', '.join(SEATS)} or {', '.join(ONE_SEAT)} is needed, found {stage!r}")
    holder.base = getattr(policy, stage)
    policy = copy.copy(policy)
    setattr(policy, stage, holder)
    limit = LIMITS.get(stage)
    if limit is not None and policy.window is None and getattr(policy, limit) is None:
        setattr(policy, limit, slots)
    policy.check()
    return policy


def heuristic_behind(policy: str, stage: str) -> str:
    """Return the name of the heuristic behind a seat, which schedules without an agent.

    For dispatch, the order with greedy list scheduling; for two levels, the order with EASY.

    >>> heuristic_behind("sjf+easy", "order"), heuristic_behind("sjf", "dispatch")
    ('sjf+easy', 'sjf+fitting')
    """
    return policy + {"dispatch": "+fitting", TWO_LEVEL: "+easy"}.get(stage, "")


# --- encoder, mask, reward -----------------------------------------------------------------------------


USUAL: Mapping[str, tuple[str, str]] = {
    "dispatch": ("RequestsAndMachines", "JobMachine"),
    "inspector": ("InspectorFeatures", "AcceptReject"),
    "gate": ("InspectorFeatures", "AcceptReject"),
    "placement": ("Places", "Slots"),
    "preemptor": ("RunningJobs", "Slots"),
    "tester": ("JobAndHole", "AcceptReject"),
}
"""Default encoder and mask of seats with options other than waiting jobs."""


class Kind(NamedTuple):
    """Kind of component: its catalogue, its base class and the default name."""

    known: Catalogue[type[Any]]
    base: type[Any]
    default: str

    @property
    def table(self) -> str:
        """Name of the table in a training file."""
        return self.known.kind

    @classmethod
    def of_seat(cls, stage: str) -> tuple[Kind, Kind, Kind]:
        """Return the encoder, mask and reward kinds with the defaults of a seat.

        >>> [kind.default for kind in Kind.of_seat("order")]
        ['QueueWindow', 'Slots', 'MinusMeanBoundedSlowdown']
        """
        encoder, mask = USUAL.get(stage, ("QueueWindow", "Slots"))
        return (
            cls(ENCODERS, Encoder, encoder),
            cls(MASKS, Mask, mask),
            cls(REWARDS, Reward, "MinusMeanBoundedSlowdown"),
        )


OWN_EPISODES = Kind(EPISODES, Episodes, "")
"""User-defined episodes; those of hpcsimkit are windows of logs, and need no name."""


class Arguments(NamedTuple):
    """Class with its constructor arguments."""

    maker: type[Any]
    parameters: dict[str, Any]


def part_of(
    kind: Kind, table: Mapping[str, Any], given: Mapping[str, Any], folder: str | None, trust: Trust
) -> tuple[Any, Problem | None]:
    """Construct the component of a table, or return the first problem; arguments as in :func:`arguments_of`.

    >>> encoder, mask, reward = Kind.of_seat("order")
    >>> part_of(encoder, {"time_scale": 3600.0}, {"slots": 8}, None, Trust(()))
    (QueueWindow(slots=8, time_scale=3600.0), None)
    >>> part_of(reward, {"treshold": 9.0}, {"slots": 8}, None, Trust(()))
    (None, (('reward', 'treshold'), ': unknown key; nearest: threshold'))
    """
    found, problem = arguments_of(kind, table, given, folder, trust)
    if found is None:
        return None, problem
    with guarded(f"[{kind.table}] {found.maker.__name__}"):
        return found.maker(**found.parameters), None


def arguments_of(
    kind: Kind, table: Mapping[str, Any], given: Mapping[str, Any], folder: str | None, trust: Trust
) -> tuple[Arguments | None, Problem | None]:
    """Return the class and arguments of a table, or its first problem.

    `given` are parameters determined by other settings of the training; None if unavailable.
    """
    try:
        part = Part.of_table(table, kind.default)
        maker = class_named(kind.known, kind.base, part.key, folder, trust)
    except UsageError as error:
        return None, ((kind.table, "name"), f": {error}")
    wanted = {key: value for key, value in given.items() if key in inspect.signature(maker).parameters}
    absent = [key for key, value in wanted.items() if value is None]
    if absent:
        return None, ((kind.table, "name"), f": {part.key} needs {absent[0]}, and none are given")
    parameters, problem = parameters_of(maker, part.parameters, wanted)
    for key, hint in _hints(maker).items():
        if problem is None and hint is Policy:
            try:
                parameters[key] = policy_named(parameters[key], folder, trust)
            except UsageError as error:
                problem = ((key,), f": {error}")
    if problem is not None:
        return None, ((kind.table, *problem[0]), problem[1])
    return Arguments(maker, parameters), None


def parameters_of(
    maker: Callable[..., Any], values: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], Problem | None]:
    """Return the arguments of a class: those in `wanted`, and values checked against its signature.

    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> parameters_of(QueueWindow, {}, {"slots": 8})
    ({'slots': 8, 'time_scale': 86400.0}, None)
    >>> parameters_of(QueueWindow, {"time_scale": 0.0}, {"slots": 8})[1]
    (('time_scale',), ' must be greater than 0, found 0.0')
    """
    from pydantic import create_model

    ours = maker.__module__.startswith("hpcsimkit.")
    hints = _hints(maker)
    fields: dict[str, Any] = {
        name: _field(name, hints.get(name, Any), parameter.default, ours=ours)
        for name, parameter in inspect.signature(maker).parameters.items()
        if name not in wanted and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    missing = [name for name, (_, default) in fields.items() if default is ... and name not in values]
    if missing:
        return {}, ((), f": {maker.__name__} needs the key {missing[0]!r}")
    table: type[Table] = create_model(maker.__name__, __base__=Table, **fields)
    plain = {
        name: tuple(value) if isinstance(value, list) and get_origin(hints.get(name)) is tuple else value
        for name, value in values.items()
    }
    made, problem = table.checked(plain)
    return ({}, problem) if made is None else ({**wanted, **dict(made)}, None)


def _hints(maker: Callable[..., Any]) -> dict[str, Any]:
    """Return the known types of a class's parameters."""
    try:
        return get_type_hints(maker if is_dataclass(maker) else maker.__init__, include_extras=True)
    except (NameError, TypeError):  # a user-defined class with types for type checkers only, or without types
        return {}


def _field(name: str, hint: Any, default: Any, *, ours: bool) -> tuple[Any, Any]:
    """Return the type, with its range, and the default of a parameter, for pydantic."""
    from pydantic import Field

    required = default is inspect.Parameter.empty
    hint, limits = plain_and_range(hint)
    if hint in NUMBERS and (limits or ours):
        kind: Any = int if hint in (int, int | None) else float
        if limits is None:
            limits = Range(1 if kind is int and (required or (default or 0) > 0) else 0)
        least, most = kind(limits.least), None if limits.most is None else kind(limits.most)
        above = Field(gt=least) if limits.above else Field(ge=least)
        number: Any = Annotated[kind, above, Field(le=most, allow_inf_nan=False)]
        hint = number if hint is kind else number | None
    elif hint is Policy:
        hint = str
    elif not ours and hint not in (int, float, str, bool):
        hint = Any
    elif default in CHOICES.get(name, ()):
        hint = Literal[tuple(CHOICES[name])]
    elif ours and get_origin(hint) is tuple and get_args(hint) == (int, ...):
        hint = tuple[Annotated[int, Field(ge=1)], ...]
    return hint, ... if required else default


# --- the trainer ---------------------------------------------------------------------------------------


class TrainerPart(NamedTuple):
    """Class of a trainer, and its settings."""

    trainer: type[Any]
    settings: Any

    @property
    def problem(self) -> type[Any] | None:
        """Class of the trainer's own problem; None if it learns from the jobs of the training."""
        return problem_of(self.trainer)


def algorithm_named(name: str, folder: str | None, trust: Trust) -> type[Any]:
    """Return the trainer of an algorithm.

    The name is one of :data:`~hpcsimkit.agents.training.catalogue.TRAINERS`, that of an entry point of the
    group ``hpcsimkit.algorithms``, ``module:Name`` or ``file.py:Name``. User-defined classes are complete
    trainers with annotated settings.

    >>> algorithm_named("ppo", None, Trust(())).algorithm
    'ppo'
    """
    if ":" not in name and (name in TRAINERS.places or name not in TRAINERS):
        return trainer_named(name)  # which raises an error if the name is unknown
    from hpcsimkit.agents.training.trainer import Trainer

    found = class_named(TRAINERS, Trainer, name, folder, trust)
    if not is_dataclass(importing(lambda: settings_of(found), name)):
        raise UsageError(f"{name!r} needs an annotation settings with a dataclass, found none")
    if missing := ", ".join(sorted(found.__abstractmethods__)):
        raise UsageError(f"{name!r} is incomplete; methods needed: {missing}")
    return found


def former_names(values: Mapping[str, Any], folder: str | None, trust: Trust) -> dict[str, str]:
    """Return the former names of settings in a table ``[trainer]``, each with the current name.

    >>> former_names({"algorithm": "a2c", "steps": 9, "gamma": 1.0}, None, Trust(()))
    {'steps': 'total_timesteps'}
    """
    part = Part.of_table(values, "ppo", "algorithm")
    settings = settings_of(algorithm_named(part.key, folder, trust))
    return renamed_keys(part.parameters, inspect.signature(settings).parameters)


def trainer_part(
    values: Mapping[str, Any], folder: str | None, trust: Trust
) -> tuple[TrainerPart | None, Problem | None]:
    """Return the trainer of a table ``[trainer]``, or the first problem.

    ``algorithm`` is a name for :func:`algorithm_named`, ``device`` is the device
    for computation (by default the CPU), and all other keys are settings. Former names of settings
    (:mod:`~hpcsimkit.agents.training.old_names`) are allowed, but not together with the current ones.

    >>> trainer_part({"algorithm": "a2c", "total_timesteps": 0}, None, Trust(()))[1]
    (('trainer', 'total_timesteps'), ' must be greater than or equal to 1, found 0')
    """
    try:
        part = Part.of_table(values, "ppo", "algorithm")
        trainer = algorithm_named(part.key, folder, trust)
    except UsageError as error:
        return None, (("trainer", "algorithm"), f": {error}")
    make, renamed = settings_of(trainer), former_names(values, folder, trust)
    for old, new in renamed.items():
        if new in values:
            text = f": former name of {new}, which is given too; only one of them is allowed"
            return None, (("trainer", old), text)
    keys = {renamed.get(key, key): value for key, value in part.parameters.items()}
    problem = _device_problem(str(keys.get("device", "cpu")), trainer, make)
    if problem is not None:
        return None, (("trainer", "device"), problem)
    if "device" not in inspect.signature(make).parameters:
        keys.pop("device", None)
    parameters, found = parameters_of(make, keys, {})
    if found is not None:
        written = {new: old for old, new in renamed.items()}
        return None, (("trainer", *(written.get(str(key), key) for key in found[0])), found[1])
    return TrainerPart(trainer, make(**parameters)), None


def _device_problem(device: str, trainer: type[Any], settings: type[Any]) -> str | None:
    """Return the problem of a device, if any."""
    from hpcsimkit.agents.networks.torch_networks import device_named

    try:
        kind = device_named(device).type
    except UsageError as error:
        return str(error).removeprefix("device")
    if kind != "cpu" and "device" not in inspect.signature(settings).parameters:
        return f": {trainer.algorithm} learns on the CPU only, found {device!r}"
    return None
