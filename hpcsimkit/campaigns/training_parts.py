"""The parts of a training, made of names and parameters: the open seat, encoder, mask, reward, trainer."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from hpcsimkit import registry
from hpcsimkit.agents import rewards
from hpcsimkit.agents.agent import ENCODERS, MASKS
from hpcsimkit.agents.long_waits import MinusLongWaits
from hpcsimkit.agents.networks import ACTIVATIONS, NETWORKS
from hpcsimkit.agents.prompt_improvement import PromptImprovement, PromptRatio
from hpcsimkit.agents.returns import NORMALISATIONS
from hpcsimkit.agents.rlbackfilling.reward import TimelyImprovement
from hpcsimkit.agents.trainers_catalogue import settings_of, trainer_named
from hpcsimkit.campaigns.checked_table import Problem, Table
from hpcsimkit.decision import External
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encoder, Episodes, Mask, Reward
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.one_seat import ONE_SEAT
from hpcsimkit.policy import Policy

if TYPE_CHECKING:
    from hpcsimkit.agents.trainer import Trainer

__all__ = [
    "OWN_EPISODES",
    "REWARDS",
    "Part",
    "TrainerPart",
    "arguments_of",
    "part_of",
    "require_packages",
    "seated",
    "trainer_part",
]

REWARDS: Mapping[str, type[Reward]] = {
    **{name: getattr(rewards, name) for name in rewards.__all__},
    "MinusLongWaits": MinusLongWaits,
    "PromptImprovement": PromptImprovement,
    "PromptRatio": PromptRatio,
    "TimelyImprovement": TimelyImprovement,
}
"""Rewards by name."""

PACKAGES = ("torch", "gymnasium", "stable_baselines3", "safetensors")
"""What has to be installed to train."""

SHARES = ("discount", "trace", "explore_first", "explore_last", "explore_for")
POSITIVE = ("scale", "time_scale", "threshold", "clip_value", "target_divergence", "reward_scale")
CHOICES: Mapping[str, Collection[str]] = {
    "kind": NETWORKS, "activation": ACTIVATIONS, "normalise": NORMALISATIONS
}  # fmt: skip
"""What parameters of the kit's own parts may be, by their names; all other numbers are 0 or more."""


def require_packages() -> None:
    """See that what trainings need is installed.

    Raises
    ------
    UsageError
        It is not; the message says how to install it.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(f"training needs the packages {', '.join(missing)}: pip install 'hpcsimkit[rl]'")


# --- the seat ------------------------------------------------------------------------------------------


def seated(policy: Policy, holder: External, stage: str, slots: int | None) -> Policy:
    """Return the policy with somebody else on one of its seats, and who sat there behind him.

    Parameters
    ----------
    policy : Policy
        A pipeline, which is changed; for the stages ``"dispatch"`` and ``"two-level"`` one that consists of
        an order only.
    holder : External
        An open seat, an agent.
    stage : str
        Which seat.
    slots : int, optional
        Options that are offered at most, unless the pipeline has a window; by default all there are. A
        dispatch and two levels need them.

    Raises
    ------
    UsageError
        The policy has no such seat.

    Examples
    --------
    >>> from hpcsimkit import External, make
    >>> seated(make("sjf+easy"), External(), "order", 16)
    Pipeline(order=External(base=SJF()), backfiller=EASY(), window=16)
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
    holder.base = getattr(policy, stage)
    setattr(policy, stage, holder)
    if stage in ("order", "backfiller") and policy.window is None:
        policy.window = slots
    policy.check()
    return policy


# --- encoder, mask, reward -----------------------------------------------------------------------------


USUAL: Mapping[str, tuple[str, str]] = {
    "dispatch": ("RequestsAndMachines", "JobMachine"), "inspector": ("InspectorFeatures", "AcceptReject"),
}  # fmt: skip
"""Encoder and mask of seats that are not about a choice among jobs."""


class Part(NamedTuple):
    """A kind of parts: what its table is called, which names there are, and which is meant by default."""

    kind: str
    base: type[Any]
    known: Mapping[str, type[Any]]
    default: str

    @classmethod
    def all(cls, stage: str) -> tuple[Part, Part, Part]:
        """Return encoder, mask and reward, with what is usual for a seat.

        >>> [part.default for part in Part.all("order")]
        ['QueueWindow', 'Slots', 'MinusMeanBoundedSlowdown']
        """
        encoder, mask = USUAL.get(stage, ("QueueWindow", "Slots"))
        return (
            cls("encoder", Encoder, ENCODERS, encoder),
            cls("mask", Mask, MASKS, mask),
            cls("reward", Reward, REWARDS, "MinusMeanBoundedSlowdown"),
        )


OWN_EPISODES = Part("episodes", Episodes, {}, "")
"""Episodes of a user's own; those of the kit are windows of logs, and need no name."""


class Arguments(NamedTuple):
    """A class, and what it is made with."""

    maker: type[Any]
    parameters: dict[str, Any]


def part_of(
    part: Part, values: Mapping[str, Any], given: Mapping[str, Any], folder: str | None
) -> tuple[Any, Problem | None]:
    """Make an encoder, mask or reward, or return where something is wrong with its table, and what.

    Parameters
    ----------
    part : Part
        Which of them.
    values : mapping of str to object
        Its table: ``name``, one that is known or ``module:Name``, and parameters.
    given : mapping of str to object
        Parameters that follow from the rest of the training; None where there is nothing they could be.
    folder : str, optional
        Where modules are looked for besides the current folder.

    Examples
    --------
    >>> encoder, mask, reward = Part.all("order")
    >>> part_of(encoder, {"time_scale": 3600.0}, {"slots": 8}, None)
    (QueueWindow(slots=8, time_scale=3600.0), None)
    >>> part_of(reward, {"treshold": 9.0}, {"slots": 8}, None)
    (None, (('reward', 'treshold'), ': unknown key; nearest: threshold'))
    """
    found, problem = arguments_of(part, values, given, folder)
    return (None, problem) if found is None else (found.maker(**found.parameters), None)


def arguments_of(
    part: Part, values: Mapping[str, Any], given: Mapping[str, Any], folder: str | None
) -> tuple[Arguments | None, Problem | None]:
    """Return the class that :func:`part_of` makes, and with what; parameters as there."""
    kind, name = part.kind, values.get("name", part.default)
    try:
        maker = _maker(part, name, folder)
    except UsageError as error:
        return None, ((kind, "name"), f": {error}")
    wanted = {key: value for key, value in given.items() if key in inspect.signature(maker).parameters}
    absent = [key for key, value in wanted.items() if value is None]
    if absent:
        return None, ((kind, "name"), f": {name} needs {absent[0]}, and none are given")
    keys = {key: value for key, value in values.items() if key != "name"}
    parameters, problem = parameters_of(maker, keys, wanted)
    for key, hint in _hints(maker).items():
        if problem is None and hint is Policy:
            parameters[key], problem = _policy(key, parameters[key], folder)
    if problem is not None:
        return None, ((kind, *problem[0]), problem[1])
    return Arguments(maker, parameters), None


def _policy(key: str, name: str, folder: str | None) -> tuple[Policy | None, Problem | None]:
    """Make the policy that a parameter names."""
    try:
        return registry.make(name, folder), None
    except UsageError as error:
        return None, ((key,), f": {error}")


def _maker(part: Part, name: Any, folder: str | None) -> type[Any]:
    """Return the class of a name."""
    if isinstance(name, str) and ":" in name:
        found = registry.imported(name, folder)
        if not (isinstance(found, type) and issubclass(found, part.base)):
            raise UsageError(f"{name!r} needs a subclass of {part.base.__name__}, found {found!r}")
        return found
    if name not in part.known:
        near = difflib.get_close_matches(str(name), part.known, n=3, cutoff=0.4) or list(part.known)
        hint = f"nearest: {', '.join(near)}; " if near else ""
        raise UsageError(f"unknown {part.kind} {name!r}; {hint}your own: module:Name")
    return part.known[name]


def parameters_of(
    maker: Callable[..., Any], values: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], Problem | None]:
    """Return the arguments of a class: those wanted, and values that are checked against its signature.

    >>> from hpcsimkit.agents.encoders import QueueWindow
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
    """Return the types of a class's parameters, as far as they are known."""
    try:
        return get_type_hints(maker if is_dataclass(maker) else maker.__init__)
    except (NameError, TypeError):  # a user's class, with types that are imported for checkers only, or none
        return {}


def _field(name: str, hint: Any, default: Any, *, ours: bool) -> tuple[Any, Any]:
    """Return the type and the default of a parameter, as pydantic wants them, in the range it may have."""
    from pydantic import Field

    required = default is inspect.Parameter.empty
    if hint is Policy:
        hint = str
    elif not ours and hint not in (int, float, str, bool):
        hint = Any
    elif default in CHOICES.get(name, ()):
        hint = Literal[tuple(CHOICES[name])]
    elif ours and hint is int:
        hint = Annotated[int, Field(ge=1 if required or default > 0 else 0)]
    elif ours and hint in (float, float | None):
        least = Field(gt=0.0) if name in POSITIVE else Field(ge=0.0)
        number = Annotated[float, least, Field(le=1.0 if name in SHARES else None, allow_inf_nan=False)]
        hint = number if hint is float else number | None
    elif ours and get_origin(hint) is tuple and get_args(hint) == (int, ...):
        hint = tuple[Annotated[int, Field(ge=1)], ...]
    return hint, ... if required else default


# --- the trainer ---------------------------------------------------------------------------------------


class TrainerPart(NamedTuple):
    """A trainer's class, and its settings."""

    trainer: type[Trainer]
    settings: Any


def trainer_part(values: Mapping[str, Any]) -> tuple[TrainerPart | None, Problem | None]:
    """Return the trainer of a table ``[trainer]``, or where something is wrong with it, and what.

    ``algorithm`` is a name of :data:`~hpcsimkit.agents.trainers_catalogue.TRAINERS`, ``device`` says where
    it computes (on the CPU by default), all other keys are its settings.

    >>> trainer_part({"algorithm": "a2c", "steps": 0})[1]
    (('trainer', 'steps'), ' must be greater than or equal to 1, found 0')
    """
    try:
        trainer = trainer_named(values.get("algorithm", "ppo"))
    except UsageError as error:
        return None, (("trainer", "algorithm"), f": {error}")
    make = settings_of(trainer)
    keys = {key: value for key, value in values.items() if key != "algorithm"}
    problem = _device_problem(str(keys.get("device", "cpu")), trainer, make)
    if problem is not None:
        return None, (("trainer", "device"), problem)
    if "device" not in inspect.signature(make).parameters:
        keys.pop("device", None)
    parameters, found = parameters_of(make, keys, {})
    if found is not None:
        return None, (("trainer", *found[0]), found[1])
    return TrainerPart(trainer, make(**parameters)), None


def _device_problem(device: str, trainer: type[Trainer], settings: type[Any]) -> str | None:
    """Say what is wrong with a device, if anything."""
    from hpcsimkit.agents.torch_networks import device_named

    try:
        kind = device_named(device).type
    except UsageError as error:
        return str(error).removeprefix("device")
    if kind != "cpu" and "device" not in inspect.signature(settings).parameters:
        return f": {trainer.algorithm} learns on the CPU only, found {device!r}"
    return None
