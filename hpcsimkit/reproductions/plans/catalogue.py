"""The parts that a plan may name: this closed list, and no other object of hpcsimkit.

The modules ``own`` of the reproductions register theirs by the decorator :func:`part`. Parts of the packages
below, which know no plans, and those that several reproductions share are listed here. All policies,
encoders, masks and rewards that the kit has by name are parts as well.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from typing import Any, TypeVar

from hpcsimkit.agents.catalogue import ENCODERS, MASKS, REWARDS
from hpcsimkit.errors import UsageError, close_words
from hpcsimkit.experiments.parts import registry
from hpcsimkit.reproductions.papers import PAPERS

Part = TypeVar("Part", bound=Callable[..., Any])

KIT = "hpcsimkit."

POLICY_BY_NAME = "policies:named"
"""Name of the part that returns the policy of a name, such as ``sjf+easy``."""

LISTED: Mapping[str, tuple[str, ...]] = {
    "agents.cush.evolved": ("EVOLVED", "ShortSighted", "evolved_environment"),
    "agents.cush.measurements": ("Measured",),
    "agents.cush.plus": ("PLUS", "PlusValidation", "plus_environment", "plus_policy"),
    "agents.cush.problem": ("CushProblem", "CushProblem.pipeline"),
    "agents.cush.taught": ("TaughtSettings",),
    "agents.cush.trainer": ("CushSettings",),
    "agents.dras.actor_critic": ("DrasA2CSettings",),
    "agents.dras.measurements": ("Measured", "Validation"),
    "agents.dras.plus": ("PLUS", "PLUS_CHOOSING", "PlusValidation", "plus_environment", "plus_policy"),
    "agents.dras.policy_gradient": ("DrasPGSettings",),
    "agents.dras.ppo": ("DrasPPOSettings",),
    "agents.dras.q_learning": ("DrasDQLSettings",),
    "agents.dras.settings": (
        *("EVOLVED", "decima_environment", "dras_environment", "evolved_environment", "settings_for"),
    ),
    "agents.masked_ppo.balanced": ("balanced_environment", "balanced_weights"),
    "agents.masked_ppo.environments": (
        *("SETTINGS", "OnlyThePast", "first_weights", "untrained"),
        *("improved_environment", "published_environment"),
    ),
    "agents.masked_ppo.machines": ("NINE_MACHINES",),
    "agents.rlbackfilling.reward": ("BASELINE",),
    "agents.rlbackfilling.seat": ("backfilling_seat",),
    "agents.rlbackfilling.settings": ("EVOLVED", "PUBLISHED", "backfilling_environment"),
    "agents.rlscheduler.encoder": ("WaitingJobs.of",),
    "agents.rlscheduler.seat": ("scheduling_seat",),
    "agents.rlscheduler.settings": ("PUBLISHED", "scheduling_environment"),
    "agents.schedinspector.settings": ("PROMPT", "PUBLISHED", "RATIO", "inspector_environment"),
    "agents.schedinspector.trainer": ("InspectorSettings", "PromptInspectorSettings"),
    "agents.seats": ("ConstantSlot", "RandomAgent"),
    "agents.spaces.episodes": ("AnyOf", "Fixed", "Generated", "InTurn", "Windows"),
    "agents.training.aggrevate": ("AggreVaTeSettings",),
    "agents.training.cma_es": ("CMAESSettings",),
    "agents.training.cross_entropy": ("CrossEntropySettings",),
    "agents.training.dql": ("DQLSettings",),
    "agents.training.imitation": ("ImitationSettings",),
    "agents.training.on_policy": ("Settings",),
    "agents.training.ppo": ("PPOSettings",),
    "agents.training.sb3": ("SB3Settings",),
    "agents.training.spinning_up": ("SpinningUpSettings",),
    "agents.training.taught_ppo": ("TaughtPPOSettings",),
    "agents.training.together": ("TogetherSettings",),
    "envs.environment": ("SchedulingEnv",),
    "kernel.decision": ("External",),
    "policies.dirlab": (
        *("FittingCandidates", "PartialEASY", "PublishedEASY", "ShortestFitting"),
        *("meant_order_of", "order_of", "published", "textbook"),
    ),
    "policies.one_seat.dispatch": ("Dispatch",),
    "policies.one_seat.two_level": ("TwoLevel",),
    "reproductions.judged_logs": ("JudgedLogs", "LearningLogs"),
    "reproductions.partners": ("SeatLearner", "TogetherLearner"),
    "reproductions.rivals": ("rules_without",),
    "reproductions.sequences": ("Meeting",),
}
"""Parts of packages that know no plans, and shared ones of reproductions, by module."""

FORMER: Mapping[str, str] = {
    "experiments.registry:make": POLICY_BY_NAME,
    "experiments.parts.registry:make": POLICY_BY_NAME,
    "policies.dirlab.pipelines:order_of": "policies.dirlab:order_of",
    "reproductions.dras.own:settings": "agents.dras.settings:settings_for",
    "reproductions.textbook_rules.own:SeatLearner": "reproductions.partners:SeatLearner",
    "reproductions.textbook_rules.own:TogetherLearner": "reproductions.partners:TogetherLearner",
    "reproductions.winning.own:WinningLogs": "reproductions.judged_logs:JudgedLogs",
}
"""Present names of parts by former ones, which plans may still have."""

_DECORATED: dict[str, Any] = {}


def part(found: Part) -> Part:
    """Register a class or function of a reproduction as a part that plans may name; a decorator."""
    _DECORATED[f"{found.__module__.removeprefix(KIT)}:{found.__qualname__}"] = found
    return found


def part_named(name: str) -> Any:
    """Return the part of a name ``module:Name``, without ``hpcsimkit.``

    Examples
    --------
    >>> part_named("policies:SJF")
    <class 'hpcsimkit.policies.orders.SJF'>
    >>> part_named("policies:SJFF")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown part 'policies:SJFF'; nearest: policies:SJF, policies:SRF, \
policies:SQF; your own: file.py:Name
    """
    name = FORMER.get(name, name)
    module, _, attribute = name.partition(":")
    if attribute in LISTED.get(module, ()):
        return reduce(getattr, attribute.split("."), importlib.import_module(KIT + module))
    if module in _own_modules():
        importlib.import_module(KIT + module)
        if name in _DECORATED:
            return _DECORATED[name]
    if name in _of_catalogues():
        return _of_catalogues()[name]
    if name == POLICY_BY_NAME:
        return POLICY_BY_NAME
    near = close_words(name, parts_of_plans())
    hint = f"nearest: {', '.join(near)}; " if near else ""
    raise UsageError(f"unknown part {name!r}; {hint}your own: file.py:Name")


def parts_of_plans() -> list[str]:
    """Return the names of all parts, former ones aside."""
    for module in _own_modules():
        importlib.import_module(KIT + module)
    listed = (f"{module}:{name}" for module, names in LISTED.items() for name in names)
    return sorted({POLICY_BY_NAME, *listed, *_DECORATED, *_of_catalogues()})


def own_module(paper: str) -> str | None:
    """Return the module ``own`` of a paper; None if it needs no code of its own."""
    name = f"{KIT}reproductions.{PAPERS[paper].name}.own"
    return name if importlib.util.find_spec(name) is not None else None


@cache
def _own_modules() -> frozenset[str]:
    """Return the modules with decorated parts: those named ``own`` of the papers."""
    return frozenset(name.removeprefix(KIT) for name in map(own_module, PAPERS) if name is not None)


@cache
def _of_catalogues() -> dict[str, Any]:
    """Return policies, their stages, encoders, masks and rewards by name."""
    return dict(_named_in_catalogues())


def _named_in_catalogues() -> Iterator[tuple[str, Any]]:
    policies = importlib.import_module("hpcsimkit.policies")
    for name in policies.__all__:
        found = getattr(policies, name)
        if isinstance(found, type) and issubclass(found, registry.KINDS):
            yield f"policies:{name}", found
            yield f"{found.__module__.removeprefix(KIT)}:{name}", found
    for known in (ENCODERS, MASKS, REWARDS):
        for name, place in known.places.items():
            yield place.removeprefix(KIT), known[name]
