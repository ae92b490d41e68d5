"""Policies by name: ``sjf+easy``, ``slurm(age=500)+easy-k(4)``, ``mymodule:MyPolicy``, plug-ins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hpcsimkit.errors import HpcsimkitError, UsageError, close_words
from hpcsimkit.experiments.parts.spelling import AGENT, Call, Part, parts_in
from hpcsimkit.experiments.parts.trust import CALLER, FILE_ENDING, Trust, importing
from hpcsimkit.io.catalogue import loaded, plug_ins
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import is_file, read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.kernel.decision import Answering, External
from hpcsimkit.kernel.pipeline import LIMITS, SEATS, Pipeline
from hpcsimkit.kernel.policy import Order, OrderOfAnother, Policy
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT

__all__ = [
    "AGENT",
    "ENTRY_POINT_GROUP",
    "called",
    "check",
    "code_of",
    "make",
    "models_of",
    "only_stage",
    "parameters_of",
    "policy_named",
    "with_parameter",
]

LEARNED = "learned:"
"""Prefix of names of files with the name of a learned policy."""

ENTRY_POINT_GROUP = "hpcsimkit.policies"
"""Group of entry points that provide policies by name."""

AN_ORDER = (Order, Order | None, "Order", "Order | None")
"""Annotations of parameters for which the name of an order may be given."""

KINDS = (Policy, Answering, *SEATS.values())
"""Base classes of user-defined classes that names may refer to."""


def make(name: str, folder: str | None = None) -> Policy:
    """Return the policy of a name that the caller has written.

    A name of code runs it. For a name from a file, or from anywhere else: :func:`policy_named`.

    Parameters
    ----------
    name : str
        ``learned:policy.json`` for a policy learned from a log, or
        parts joined by ``+``, each a registered name (``hpcsimkit policies`` lists them), ``module:Name``,
        ``file.py:Name`` or ``agent:file.hpcsim``, with optional parameters in parentheses; where one is an
        order, its name is given: ``guarded(bounded(scale=20),fallback=xfactor)``. The parts are stages of one
        pipeline, or a single complete policy. An agent has the parameters ``sample`` and ``parts``: the
        module or file.py with user-defined classes of its encoder and mask (see :meth:`Agent.load
        <hpcsimkit.agents.agent.Agent.load>`).
    folder : str, optional
        Additional search folder for modules and files besides the current one.

    Raises
    ------
    UsageError
        A part is unknown (the message lists similar names), cannot be imported, or conflicts with others.

    Examples
    --------
    >>> make("sjf+easy").order
    SJF()
    >>> make("fcfs+esay")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown policy 'esay' in 'fcfs+esay'; nearest: easy, easypp, easy-k
    """
    return policy_named(name, folder, CALLER)


def policy_named(name: str, folder: str | None, trust: Trust) -> Policy:
    """Return the policy of a name as in :func:`make`, which may be that of a file.

    `trust` is permission to import the code that the name refers to, ``Trust(())`` for none. In all functions
    of this package, `folder` is an additional search folder for modules and files besides the current one.

    >>> policy_named("os:system('true')", None, Trust(()))
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: 'os:system' is code that is not the kit's own, and a file may not name it \
without consent: --allow-code os
    """
    stages: dict[str, Any] = {}
    parts = check(name, folder, trust)
    for part in parts:
        made = _made(part, folder, trust)
        if isinstance(made, Policy):
            if len(parts) > 1:
                raise UsageError(
                    f"{part.text!r} in {name!r} is a whole policy: it cannot be joined with others"
                )
            return made
        for seat, stage in made.items():
            stages[seat] = _joined(stage, stages.get(seat), seat, name)
    if "window" not in stages:
        for seat, limit in LIMITS.items():
            if isinstance(stages.get(seat), Answering):
                stages[limit] = getattr(stages[seat], "slots", None)
    for limit in ("max_interval", "max_rejections"):  # observations of an inspector depend on them
        known = getattr(getattr(stages.get("inspector"), "encoder", None), limit, None)
        if known is not None:
            stages.setdefault(limit, known)
    return Pipeline(**stages)


def _joined(stage: Any, before: Any, seat: str, name: str) -> Any:
    """Return the stage of a seat with up to two stages: an agent or a guard, and the heuristic behind it."""
    if before is None:
        return stage
    for guard, order in ((stage, before), (before, stage)):
        if isinstance(guard, OrderOfAnother) and guard.base is None and isinstance(order, Order):
            guard.base = order
            return guard
    for agent, heuristic in ((stage, before), (before, stage)):
        if isinstance(agent, Answering) and not isinstance(heuristic, External) and agent.base is None:
            agent.base = heuristic
            return agent
    raise UsageError(f"{name!r} gives the {seat} twice")


def check(name: str, folder: str | None, trust: Trust) -> list[Part]:
    """Return the parts of a name, each registered or allowed to be imported; nothing is imported or made."""
    if name.startswith(LEARNED):
        return _learned(name, folder)
    parts = parts_in(name)
    for part in parts:
        if part.is_agent and part.code:
            trust.check(part.code, folder, part.text)
        elif part.code:
            trust.check_name(part.key, folder)
        elif not part.is_agent:
            _registered(part)
    return parts


def _learned(name: str, folder: str | None) -> list[Part]:
    """Return the parts of the policy named in a file, which are registered heuristics with literals."""
    path = name.removeprefix(LEARNED)
    place = path if folder is None or is_file(path) else str(Path(folder) / path)
    content = read_bytes(place, Format.LEARNED_POLICY)
    policy = None
    with suppress(ValueError, HpcsimkitError):
        record = json_value(content.decode(), place)
        policy = record.get("policy") if isinstance(record, dict) else None
    if not isinstance(policy, str) or policy.startswith((LEARNED, AGENT)) or f"+{AGENT}" in policy:
        raise UsageError(f'{place}: {{"policy": "name of a heuristic"}} is needed, found {policy!r}')
    try:
        return check(policy, folder, Trust(()))
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _made(part: Part, folder: str | None, trust: Trust) -> Policy | Mapping[str, Any]:
    """Return the object of one part: a complete policy, or arguments of a pipeline."""
    if part.is_agent:
        return _agent(part, folder, trust)
    made = called(_factory(part, folder, trust), part)
    if isinstance(made, (Policy, dict)):
        return made
    if isinstance(made, Answering):
        return {str(getattr(made, "stage", "order")): made}
    for seat, kind in SEATS.items():
        if isinstance(made, kind):
            return {seat: made}
    kinds = ", ".join(kind.__name__ for kind in KINDS)
    raise UsageError(f"{part.text!r} must return one of {kinds}; found {type(made).__name__}")


def _factory(part: Part, folder: str | None, trust: Trust) -> Any:
    """Return the class or function of a part that is no agent."""
    return trust.maker(part.key, KINDS, folder) if part.code else _registered(part)()


def _registered(part: Part) -> Callable[[], Callable[..., Any]]:
    """Return a function that loads the class or function of a built-in or plug-in name."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

    key, name = part.key, part.name
    known = {key: value for factories in CATALOGUE.values() for key, value in factories.items()}
    lowered = ALIASES.get(key.lower(), key.lower())
    if lowered in known:
        return lambda: known[lowered]
    others = plug_ins(ENTRY_POINT_GROUP)
    if key in others:
        return lambda: loaded(others[key])
    if key.endswith(FILE_ENDING):
        raise UsageError(f"{key!r} is a file: which policy of it is meant? {key}:Name")
    close = close_words(lowered, [*known, *ALIASES, *others])
    hint = f"nearest: {', '.join(close)}" if close else "`python -m hpcsimkit.run parts policies` lists them"
    where = f" in {name!r}" if key != name else ""
    raise UsageError(f"unknown policy {key!r}{where}; {hint}")


def _agent(part: Part, folder: str | None, trust: Trust) -> Policy | Mapping[str, Any]:
    """Load an agent for a seat of a pipeline, or a policy with a single seat."""
    from hpcsimkit.agents.agent import Agent

    path = part.key.removeprefix(AGENT)
    place = path if folder is None or is_file(path) else str(Path(folder) / path)
    own = trust.module(part.code, folder, part.text) if part.code else None
    agent = Agent.load(place, parts=own, sample=part.parameters.get("sample"))
    if agent.stage in ONE_SEAT:
        behind = _trained_behind(str(agent.trained.get("policy", "fcfs")), place, folder, trust.of_files)
        return ONE_SEAT[agent.stage](agent, agent.slots, behind)  # type: ignore[arg-type]
    if agent.stage not in SEATS:
        raise UsageError(
            f"{place}: an agent for a seat of {', '.join(SEATS)} is needed, found {agent.stage!r}"
        )
    return {agent.stage: agent}


def _trained_behind(name: str, model: str, folder: str | None, trust: Trust) -> Order:
    """Return the order with which an agent was trained, according to its model file."""
    if AGENT in name:  # possibly the same file
        raise UsageError(f"{model}: an order is needed that the agent was trained behind, found {name!r}")
    try:
        return policy_named(name, folder, trust).queue_order
    except UsageError as error:
        raise UsageError(f"{model}: trained with a policy that cannot be made: {error}") from None


def called(factory: Callable[..., Any], part: Part) -> Any:
    """Return the object that a class or function makes of the parameters of a part."""
    try:
        signature = _signature(factory) if isinstance(factory, type) else inspect.signature(factory)
    except ValueError:
        raise UsageError(f"{part.text!r} makes no policy: it is {factory!r}") from None
    try:
        bound = signature.bind(*part.positional, **part.parameters)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise UsageError(f"{part.text!r}: {error}; parameters: {takes}") from None
    for name, value in bound.arguments.items():
        if isinstance(value, str) and signature.parameters[name].annotation in AN_ORDER:
            bound.arguments[name] = _order(value, part.text)
        elif isinstance(value, Call):
            raise UsageError(f"{part.text!r}: {name} is no order, found {value!r}")
    return importing(lambda: factory(*bound.args, **bound.kwargs), part.text, "made")


@cache
def _signature(kind: type) -> inspect.Signature:
    """Return the signature of a class, read once, as that takes long."""
    return inspect.signature(kind)


def _order(name: str, text: str) -> Order:
    """Return an order that is a parameter of a part: a registered one with literals."""
    try:
        order: Order | None = only_stage(policy_named(name, None, Trust(())), "order")
    except UsageError as error:
        raise UsageError(f"{text!r}: {error}") from None
    if order is None:
        raise UsageError(f"{text!r}: an order is needed, found {name!r}")
    return order


def only_stage(policy: Policy, seat: str) -> Any:
    """Return the stage of a pipeline that has no other one; None for any other policy.

    >>> only_stage(make("sjf"), "order"), only_stage(make("sjf+easy"), "order")
    (SJF(), None)
    """
    stages: dict[str, Any] = {seat: getattr(policy, seat, None)}
    alone = isinstance(stages[seat], SEATS[seat]) and policy == Pipeline(**stages)
    return stages[seat] if alone else None


# --- what a name says, without making the policy ---------------------------------------------------------


def code_of(name: str) -> tuple[str, ...]:
    """Return the modules and files that a name imports, without importing them; none if it is invalid.

    >>> code_of("fcfs+path/mine.py:Mine(4)+agent:best.hpcsim(parts=seen)"), code_of("fcfs+easy")
    (('path/mine.py', 'seen'), ())
    """
    with suppress(UsageError):
        return tuple(part.code for part in parts_in(name) if part.code)
    return ()


def models_of(name: str, folder: str | None = None) -> list[Path]:
    """Return the files of trained agents and learned policies in a name; none if it is invalid.

    >>> [file.name for file in models_of("fcfs+agent:best.hpcsim(sample=true)")], models_of("fcfs+easy")
    (['best.hpcsim'], [])
    """
    paths = [name.removeprefix(LEARNED)]
    if not name.startswith(LEARNED):
        try:
            paths = [part.key.removeprefix(AGENT) for part in parts_in(name) if part.is_agent]
        except UsageError:
            return []
    return [Path(path) if folder is None or is_file(path) else Path(folder, path) for path in paths]


def parameters_of(names: Iterable[str], folder: str | None, trust: Trust) -> list[str]:
    """Return the parameters of all parts of some policies, and the options of pipelines.

    >>> parameters_of(["fcfs", "saf+easy-k(2)"], None, Trust(()))[:1]
    ['count']
    """
    from hpcsimkit.policies.catalogue import CATALOGUE

    parts = [part for name in names for part in check(name, folder, trust)]
    own = {parameter for part in parts for parameter in _parameters(part, folder, trust)}
    return [*sorted(own), *CATALOGUE["option"]]


def with_parameter(name: str, parameter: str, value: Any, folder: str | None, trust: Trust) -> str | None:
    """Return the name of a policy with a parameter of one of its parts set; None if no part has it.

    An option such as ``window`` is added to a pipeline. An invalid name, and a parameter of several parts,
    are errors.

    >>> nothing = (None, Trust(()))
    >>> with_parameter("fcfs+easy-k(2)", "count", 4, *nothing)
    'fcfs+easy-k(count=4)'
    >>> with_parameter("sjf+easy", "window", 8, *nothing)
    'sjf+easy+window(8)'
    >>> with_parameter("fcfs+easy", "alpha", 0.5, *nothing) is None
    True
    """
    from hpcsimkit.policies.catalogue import CATALOGUE

    parts = check(name, folder, trust)
    options = [part for part in parts if part.key == parameter in CATALOGUE["option"]]
    having = [part for part in parts if parameter in _parameters(part, folder, trust)]
    if len(having) > 1:
        raise UsageError(f"{parameter!r} is a parameter of {len(having)} parts of {name!r}")
    if options:
        old, new = options[0], f"{parameter}({value})"
    elif having:
        old = having[0]
        new = old.changed(parameter, value, _parameters(old, folder, trust))
    else:
        is_option = parameter in CATALOGUE["option"] and _is_pipeline(parts, folder, trust)
        return f"{name}+{parameter}({value})" if is_option else None
    return "+".join(new if part is old else part.text for part in parts)


def _is_pipeline(parts: list[Part], folder: str | None, trust: Trust) -> bool:
    """Return whether a policy is a pipeline; only a single part may be a whole policy of another kind."""
    if len(parts) > 1:
        return True
    factory = None if parts[0].is_agent else _factory(parts[0], folder, trust)
    if isinstance(factory, type):  # its instances need not be constructed
        return not issubclass(factory, Policy) or issubclass(factory, Pipeline)
    return isinstance(policy_named(parts[0].name, folder, trust), Pipeline)


def _parameters(part: Part, folder: str | None, trust: Trust) -> list[str]:
    """Return the names of the parameters of a part."""
    if part.is_agent:
        return ["sample"]
    try:
        return list(inspect.signature(_factory(part, folder, trust)).parameters)
    except ValueError:
        return []
