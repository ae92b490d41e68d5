"""Policies by name: ``sjf+easy``, ``slurm(age=500)+easy-k(4)``, ``mymodule:MyPolicy``, plug-ins."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from hpcsimkit.errors import HpcsimkitError, UsageError, close_words
from hpcsimkit.experiments.parts.trust import CALLER, FILE_ENDING, Trust, code_in, importing
from hpcsimkit.io.catalogue import loaded, plug_ins
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import is_file, read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.kernel.decision import Answering, External
from hpcsimkit.kernel.pipeline import LIMITS, SEATS, Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT
from hpcsimkit.results.metrics import Metric

__all__ = [
    "AGENT",
    "ENTRY_POINT_GROUP",
    "Entry",
    "called",
    "check",
    "code_of",
    "entries",
    "first_paragraph",
    "make",
    "models_of",
    "only_stage",
    "parameters_of",
    "parsed",
    "plugged",
    "policy_named",
    "split",
    "with_parameter",
]

AGENT = "agent:"
"""Prefix of names of trained-agent files."""

LEARNED = "learned:"
"""Prefix of names of files with the name of a learned policy."""

ENTRY_POINT_GROUP = "hpcsimkit.policies"
"""Group of entry points that provide policies by name."""

LONGEST = 2000
"""Maximum length of a name [characters]."""

AN_ORDER = (Order, Order | None, "Order", "Order | None")
"""Annotations of parameters for which the name of an order may be given."""

KINDS = (Policy, *SEATS.values())
"""Base classes of user-defined classes that names may refer to."""


@dataclass(frozen=True)
class Entry:
    """A registered name and its description.

    Parameters
    ----------
    name : str
        Name as used with ``-p``, alone or joined with ``+``.
    kind : str
        Category: ``order``, ``inspector``, ``placement``, ``backfilling``, ``estimates``, ``pipeline``,
        ``policy``, ``option`` or ``plug-in``.
    summary : str
        One-line description.
    aliases : tuple of str
        Alternative names.
    origin : str
        Distribution that provides it.
    """

    name: str
    kind: str
    summary: str
    aliases: tuple[str, ...] = ()
    origin: str = "hpcsimkit"


def make(name: str, folder: str | None = None) -> Policy:
    """Return the policy of a name that the caller has written.

    A name of code runs it. For a name from a file, or from anywhere else: :func:`policy_named`.

    Parameters
    ----------
    name : str
        ``learned:policy.json`` for a policy learned from a log, or
        parts joined by ``+``, each a name of :func:`entries`, ``module:Name``, ``file.py:Name`` or
        ``agent:file.hpcsim``, with optional parameters in parentheses; where one is an order, its name is
        given: ``guarded(bounded(scale=20),fallback=xfactor)``. The parts are stages of one pipeline,
        or a single complete policy. An agent has the parameters ``sample`` and ``parts``: the module or
        file.py with user-defined classes of its encoder and mask (see :meth:`Agent.load
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
    """Return the policy of a name, which may be that of a file.

    Parameters
    ----------
    name : str
        Name in the form of :func:`make`.
    folder : str or None
        Additional search folder for modules and files besides the current one.
    trust : Trust
        Code that the name may refer to; ``Trust(())`` for none.

    Raises
    ------
    UsageError
        A part is unknown, may not or cannot be imported, or conflicts with others.

    Examples
    --------
    >>> policy_named("os:system('true')", None, Trust(()))
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: 'os:system' is code that is not the kit's own, and a file may not name it \
without consent: --allow-code os
    """
    parts: dict[str, Any] = {}
    components = check(name, folder, trust)
    for component in components:
        made = _made(component, name, folder, trust)
        if isinstance(made, Policy):
            if len(components) > 1:
                raise UsageError(
                    f"{component.text!r} in {name!r} is a whole policy: it cannot be joined with others"
                )
            return made
        for seat, stage in made.items():
            parts[seat] = _seated(stage, parts.get(seat), seat, name)
    if "window" not in parts:
        for seat, limit in LIMITS.items():
            if isinstance(parts.get(seat), Answering):
                parts[limit] = getattr(parts[seat], "slots", None)
    for limit in ("max_interval", "max_rejections"):  # observations of an inspector depend on them
        known = getattr(getattr(parts.get("inspector"), "encoder", None), limit, None)
        if known is not None:
            parts.setdefault(limit, known)
    return Pipeline(**parts)


def _seated(stage: Any, before: Any, seat: str, name: str) -> Any:
    """Return the stage of a seat with up to two stages: an agent and the heuristic behind it."""
    if before is None:
        return stage
    for agent, heuristic in ((stage, before), (before, stage)):
        if isinstance(agent, Answering) and not isinstance(heuristic, External) and agent.base is None:
            agent.base = heuristic
            return agent
    raise UsageError(f"{name!r} gives the {seat} twice")


def entries() -> list[Entry]:
    """Return all available names: built-in names, then plug-ins."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

    aliases: dict[str, list[str]] = {}
    for alias, target in ALIASES.items():
        aliases.setdefault(target, []).append(alias)
    built_in = [
        Entry(name, kind, first_paragraph(inspect.getdoc(factory)), tuple(aliases.get(name, ())))
        for kind, factories in CATALOGUE.items()
        for name, factory in factories.items()
    ]
    return built_in + [plugged(point, "plug-in") for point in plug_ins(ENTRY_POINT_GROUP).values()]


def plugged(plug_in: EntryPoint, kind: str) -> Entry:
    """Return the description of a plug-in, which is imported; the error if it cannot be."""
    try:
        found = loaded(plug_in)
        about = found.summary if isinstance(found, Metric) else first_paragraph(inspect.getdoc(found))
        summary = about or plug_in.value
    except UsageError as error:
        summary = str(error)
    origin = plug_in.dist.name if plug_in.dist is not None else plug_in.module.partition(".")[0]
    return Entry(plug_in.name, kind, summary, origin=origin)


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring as one line; empty without one.

    >>> first_paragraph("Fewest nodes\\nfirst.\\n\\nMore.")
    'Fewest nodes first.'
    """
    return (docstring or "").split("\n\n")[0].replace("\n", " ")


def check(name: str, folder: str | None, trust: Trust) -> list[_Component]:
    """Check that all parts of a name are registered or may be imported, without importing or creating them.

    Parameters and errors are those of :func:`policy_named`.
    """
    if name.startswith(LEARNED):
        return _learned(name, folder)
    components = [parsed(component, name) for component in split(name)]
    for component in components:
        _check(component, name, folder, trust)
    return components


def _learned(name: str, folder: str | None) -> list[_Component]:
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


def code_of(name: str) -> tuple[str, ...]:
    """Return the modules and files that a name imports, without importing them; none if it is invalid.

    >>> code_of("fcfs+path/mine.py:Mine(4)+agent:best.hpcsim(parts=seen)"), code_of("fcfs+easy")
    (('path/mine.py', 'seen'), ())
    """
    try:
        components = [parsed(component, name) for component in split(name)]
    except UsageError:
        return ()
    return tuple(component.code for component in components if component.code)


def models_of(name: str, folder: str | None = None) -> list[Path]:
    """Return the files of trained agents and learned policies in a name; none if it is invalid.

    >>> [file.name for file in models_of("fcfs+agent:best.hpcsim(sample=true)")], models_of("fcfs+easy")
    (['best.hpcsim'], [])
    """
    if name.startswith(LEARNED):
        paths = [name.removeprefix(LEARNED)]
    else:
        try:
            components = [parsed(component, name) for component in split(name)]
        except UsageError:
            return []
        paths = [each.key.removeprefix(AGENT) for each in components if each.is_agent]
    return [Path(path) if folder is None or is_file(path) else Path(folder, path) for path in paths]


def parameters_of(names: Iterable[str], folder: str | None, trust: Trust) -> list[str]:
    """Return the parameters of all parts of some policies, and the options of pipelines.

    >>> parameters_of(["fcfs", "saf+easy-k(2)"], None, Trust(()))[:1]
    ['count']
    """
    from hpcsimkit.policies.catalogue import CATALOGUE

    parts = [(part, name) for name in names for part in check(name, folder, trust)]
    own = {parameter for part, name in parts for parameter in _parameters(part, name, folder, trust)}
    return [*sorted(own), *CATALOGUE["option"]]


def with_parameter(name: str, parameter: str, value: Any, folder: str | None, trust: Trust) -> str | None:
    """Return the name of a policy with a parameter of one of its parts set; None if no part has it.

    Parameters
    ----------
    name : str
        Name in the form of :func:`make`.
    parameter : str
        Name of the parameter, or of an option such as ``window``, which is added to a pipeline.
    value : bool, int, float or str
        Value of the parameter.
    folder, trust
        As in :func:`policy_named`.

    Raises
    ------
    UsageError
        The name is invalid, or several parts have the parameter.

    Examples
    --------
    >>> nothing = (None, Trust(()))
    >>> with_parameter("fcfs+easy-k(2)", "count", 4, *nothing)
    'fcfs+easy-k(count=4)'
    >>> with_parameter("sjf+easy", "window", 8, *nothing)
    'sjf+easy+window(8)'
    >>> with_parameter("fcfs+easy", "alpha", 0.5, *nothing) is None
    True
    """
    from hpcsimkit.policies.catalogue import CATALOGUE

    components = check(name, folder, trust)
    options = [part for part in components if part.key == parameter in CATALOGUE["option"]]
    having = [part for part in components if parameter in _parameters(part, name, folder, trust)]
    if len(having) > 1:
        raise UsageError(f"{parameter!r} is a parameter of {len(having)} parts of {name!r}")
    if options:
        changed = options[0], f"{parameter}({value})"
    elif having:
        names = _parameters(having[0], name, folder, trust)
        given = dict(zip(names, having[0].args, strict=False)) | having[0].kwargs | {parameter: value}
        changed = having[0], f"{having[0].key}({', '.join(f'{key}={each}' for key, each in given.items())})"
    else:
        is_option = parameter in CATALOGUE["option"] and _is_pipeline(components, name, folder, trust)
        return f"{name}+{parameter}({value})" if is_option else None
    return "+".join(changed[1] if part is changed[0] else part.text for part in components)


def _is_pipeline(components: list[_Component], name: str, folder: str | None, trust: Trust) -> bool:
    """Return whether a policy is a pipeline; only a single part may be a whole policy of another kind."""
    if len(components) > 1:
        return True
    factory = None if components[0].is_agent else _factory(components[0], name, folder, trust)
    if isinstance(factory, type):  # its instances need not be constructed
        return not issubclass(factory, Policy) or issubclass(factory, Pipeline)
    return isinstance(policy_named(name, folder, trust), Pipeline)


def _parameters(component: _Component, name: str, folder: str | None, trust: Trust) -> list[str]:
    """Return the names of the parameters of a part."""
    if component.is_agent:
        return ["sample"]
    try:
        return list(inspect.signature(_factory(component, name, folder, trust)).parameters)
    except ValueError:
        return []


class _Component(NamedTuple):
    """One parsed part of a name: its text, key and arguments."""

    text: str
    key: str
    args: list[Any]
    kwargs: dict[str, Any]

    @property
    def is_agent(self) -> bool:
        return self.key.startswith(AGENT)

    @property
    def code(self) -> str:
        """The module or file that the part imports; empty if none."""
        return self.kwargs.get("parts") or "" if self.is_agent else code_in(self.key)


def split(name: str) -> list[str]:
    """Return the parts of a name that are joined by ``+`` outside parentheses.

    >>> split("sjf+easy++ +window(8)"), split("guarded(aged(scale=1e+5),fallback=sjf)+easy")
    (['sjf', 'easy++', 'window(8)'], ['guarded(aged(scale=1e+5),fallback=sjf)', 'easy'])
    >>> split("fcfs + agent:my agents/best.hpcsim")
    ['fcfs', 'agent:my agents/best.hpcsim']
    """
    if len(name) > LONGEST:
        raise UsageError(f"a policy's name has at most {LONGEST} characters, found {len(name)}")
    text, parts, depth = re.sub(r"\s*([+(),=])\s*", r"\1", name.strip()), [""], 0
    for sign, after in zip_longest(text, text[1:], fillvalue=""):
        depth += (sign == "(") - (sign == ")")
        if sign == "+" and not depth and after not in "+()":  # not a sign of "easy++", nor the last one
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def parsed(component: str, name: str) -> _Component:
    """Return one parsed part."""
    match = re.fullmatch(r"([^()]+)(?:\((.*)\))?", component)
    if match is None:
        raise UsageError(
            f"policy {name!r} not understood: a part needs the form name or name(parameter=value)"
        )
    found = _Component(component, match[1], *_arguments(match[2] or "", component))
    known = {"sample": bool | None, "parts": str | None}
    if found.is_agent and (
        found.args
        or not set(found.kwargs) <= set(known)
        or not all(isinstance(value, known[key]) for key, value in found.kwargs.items())
    ):
        raise UsageError(
            f"{component!r}: parameters not understood: ({match[2]}); parameters: {', '.join(known)}"
        )
    return found


def _check(component: _Component, name: str, folder: str | None, trust: Trust) -> None:
    """Check that a part is registered, or that its code may be imported."""
    if component.is_agent and component.code:
        trust.check(component.code, folder, component.text)
    elif component.code:
        trust.check_name(component.key, folder)
    elif not component.is_agent:
        _registered(component.key, name)


def _factory(component: _Component, name: str, folder: str | None, trust: Trust) -> Any:
    """Return the class or function of a part that is no agent."""
    if component.code:
        return trust.maker(component.key, KINDS, folder)
    return _registered(component.key, name)()


def _made(component: _Component, name: str, folder: str | None, trust: Trust) -> Policy | Mapping[str, Any]:
    """Return the object of one part: a complete policy, or arguments of a pipeline."""
    if component.is_agent:
        return _agent(component, folder, trust)
    made = called(_factory(component, name, folder, trust), component)
    if isinstance(made, (Policy, dict)):
        return made
    for seat, kind in SEATS.items():
        if isinstance(made, kind):
            return {seat: made}
    raise UsageError(f"{component.text!r} is no policy and no stage of one: it is {type(made).__name__}")


def _agent(component: _Component, folder: str | None, trust: Trust) -> Policy | Mapping[str, Any]:
    """Load an agent for a seat of a pipeline, or a policy with a single seat."""
    from hpcsimkit.agents.agent import Agent

    path, own = component.key.removeprefix(AGENT), component.code
    place = path if folder is None or is_file(path) else str(Path(folder) / path)
    parts = trust.module(own, folder, component.text) if own else None
    agent = Agent.load(place, parts=parts, sample=component.kwargs.get("sample"))
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


def _registered(key: str, name: str) -> Callable[[], Callable[..., Any]]:
    """Return a loader of the factory of a built-in or plug-in name."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

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
    hint = f"nearest: {', '.join(close)}" if close else "`python -m hpcsimkit.run policies` lists them"
    where = f" in {name!r}" if key != name else ""
    raise UsageError(f"unknown policy {key!r}{where}; {hint}")


def called(factory: Callable[..., Any], component: _Component) -> Any:
    """Call a factory with the parameters in parentheses."""
    args, kwargs, text = component.args, component.kwargs, component.text
    try:
        signature = inspect.signature(factory)
    except ValueError:
        raise UsageError(f"{text!r} makes no policy: it is {factory!r}") from None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise UsageError(f"{text!r}: {error}; parameters: {takes}") from None
    for name, value in bound.arguments.items():
        if isinstance(value, str) and signature.parameters[name].annotation in AN_ORDER:
            bound.arguments[name] = _order(value, text)
        elif isinstance(value, _Call):
            raise UsageError(f"{text!r}: {name} is no order, found {value!r}")
    return importing(lambda: factory(*bound.args, **bound.kwargs), text, "made")


def only_stage(policy: Policy, seat: str) -> Any:
    """Return the stage of a pipeline that has no other one; None for any other policy.

    >>> only_stage(make("sjf"), "order"), only_stage(make("sjf+easy"), "order")
    (SJF(), None)
    """
    stages: dict[str, Any] = {seat: getattr(policy, seat, None)}
    alone = isinstance(stages[seat], SEATS[seat]) and policy == Pipeline(**stages)
    return stages[seat] if alone else None


def _order(name: str, text: str) -> Order:
    """Return an order that is a parameter of a part: a registered one with literals."""
    try:
        order: Order | None = only_stage(policy_named(name, None, Trust(())), "order")
    except UsageError as error:
        raise UsageError(f"{text!r}: {error}") from None
    if order is None:
        raise UsageError(f"{text!r}: an order is needed, found {name!r}")
    return order


def _arguments(text: str, component: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the parsed arguments ``4, name=value``: numbers, true and false, and words."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("more than one pair of parentheses")
        kwargs = {_name(keyword): _value(keyword.value) for keyword in call.keywords}
        return [_value(node) for node in call.args], kwargs
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise UsageError(f"{component!r}: parameters not understood: ({text})") from None


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("** has nothing to refer to")
    return keyword.arg


class _Call(str):
    """The text of a call: a registered order with parameters."""


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        from hpcsimkit.policies.catalogue import CATALOGUE

        if node.func.id in CATALOGUE["order"]:
            return _Call(ast.unparse(node))
    if isinstance(node, ast.Attribute):
        return ast.unparse(node)  # package.module, file.py
    if isinstance(node, ast.Name):
        return {"true": True, "false": False, "none": None}.get(node.id.lower(), node.id)
    return ast.literal_eval(node)
