"""From names to policies: ``sjf+easy``, ``slurm(age=500)+easy-k(4)``, ``mymodule:MyPolicy``, plug-ins."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from hpcsimkit.decision import Answering, External
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.pipeline import SEATS, Pipeline
from hpcsimkit.policies.one_seat import ONE_SEAT
from hpcsimkit.policy import Policy

__all__ = ["AGENT", "ENTRY_POINT_GROUP", "Entry", "entries", "imported", "make", "module_named"]

AGENT = "agent:"
"""What names of files of trained agents begin with."""

ENTRY_POINT_GROUP = "hpcsimkit.policies"
"""Entry points of this group are found by their names."""


@dataclass(frozen=True)
class Entry:
    """A name and what it stands for.

    Parameters
    ----------
    name : str
        As used with ``-p``, alone or joined with ``+``.
    kind : str
        ``order``, ``inspector``, ``placement``, ``backfilling``, ``estimates``, ``pipeline``, ``policy``,
        ``option`` or ``plug-in``.
    summary : str
        One line.
    aliases : tuple of str
        Other names.
    """

    name: str
    kind: str
    summary: str
    aliases: tuple[str, ...] = ()


def make(name: str, folder: str | None = None) -> Policy:
    """Make the policy of a name.

    Parameters
    ----------
    name : str
        Parts joined by ``+``, each a name of :func:`entries`, ``module:Name``, ``file.py:Name`` or
        ``agent:file.hpcsim``, with parameters in parentheses if need be. Parts are stages of one pipeline,
        or one whole policy. An agent has the parameters ``sample``, and ``parts``: the module or file.py
        with the classes of its encoder and mask, if they are of your own (see :meth:`Agent.load
        <hpcsimkit.agents.agent.Agent.load>`).
    folder : str, optional
        Where modules and files are looked for besides the current folder.

    Raises
    ------
    UsageError
        A part is unknown (the nearest names are given), cannot be imported, or does not go with the others.

    Examples
    --------
    >>> make("sjf+easy").order
    SJF()
    >>> make("fcfs+esay")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown policy 'esay' in 'fcfs+esay'; nearest: easy, easypp, easy-k
    """
    parts: dict[str, Any] = {}
    components = re.split(r"\+(?![+)]|$)(?![^(]*\))", re.sub(r"\s+", "", name))
    for component in components:
        made = _component(component, name, folder)
        if isinstance(made, Policy):
            if len(components) > 1:
                raise UsageError(
                    f"{component!r} in {name!r} is a whole policy: it cannot be joined with others"
                )
            return made
        for seat, stage in made.items():
            parts[seat] = _seated(stage, parts.get(seat), seat, name)
    for seat in ("order", "backfiller"):
        if isinstance(parts.get(seat), Answering):
            parts.setdefault("window", getattr(parts[seat], "slots", None))
    for limit in ("max_interval", "max_rejections"):  # what an inspector sees is reckoned by them
        known = getattr(getattr(parts.get("inspector"), "encoder", None), limit, None)
        if known is not None:
            parts.setdefault(limit, known)
    return Pipeline(**parts)


def _seated(stage: Any, before: Any, seat: str, name: str) -> Any:
    """Return who sits on a seat that may be taken already: an agent, with a heuristic behind it."""
    if before is None:
        return stage
    for agent, heuristic in ((stage, before), (before, stage)):
        if isinstance(agent, Answering) and not isinstance(heuristic, External) and agent.base is None:
            agent.base = heuristic
            return agent
    raise UsageError(f"{name!r} gives the {seat} twice")


def entries() -> list[Entry]:
    """Return all names there are: built in, then plug-ins."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

    aliases: dict[str, list[str]] = {}
    for alias, target in ALIASES.items():
        aliases.setdefault(target, []).append(alias)
    built_in = [
        Entry(name, kind, _summary(factory), tuple(aliases.get(name, ())))
        for kind, factories in CATALOGUE.items()
        for name, factory in factories.items()
    ]
    return built_in + [Entry(point.name, "plug-in", _about(point)) for point in _plug_ins().values()]


def _about(plug_in: EntryPoint) -> str:
    """Return the first sentence of a plug-in's docstring; if it cannot be loaded, why."""
    try:
        return _summary(_importing(plug_in.load, plug_in.name)) or plug_in.value
    except UsageError as error:
        return str(error)


def _summary(factory: Callable[..., Any]) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(factory) or "").split("\n\n")[0].replace("\n", " ")


def _plug_ins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _component(component: str, name: str, folder: str | None) -> Policy | Mapping[str, Any]:
    """Make one part: a whole policy, or arguments of a pipeline."""
    match = re.fullmatch(r"([^()]+)(?:\((.*)\))?", component)
    if match is None:
        raise UsageError(
            f"policy {name!r} not understood: a part needs the form name or name(parameter=value)"
        )
    if match[1].startswith(AGENT):
        return _agent(match[1].removeprefix(AGENT), match[2] or "", component, folder)
    factory = _factory(match[1], name, folder)
    made = _call(factory, match[2] or "", component)
    if isinstance(made, (Policy, dict)):
        return made
    for seat, kind in SEATS.items():
        if isinstance(made, kind):
            return {seat: made}
    raise UsageError(f"{component!r} is no policy and no stage of one: it is {type(made).__name__}")


def _agent(path: str, arguments: str, component: str, folder: str | None) -> Policy | Mapping[str, Any]:
    """Load an agent: the holder of a seat of a pipeline, or of a dispatch."""
    from hpcsimkit.agents.agent import Agent

    args, kwargs = _arguments(arguments, component)
    own = kwargs.pop("parts", None)
    if args or set(kwargs) - {"sample"} or not isinstance(own, str | None):
        known = "parameters: sample, parts"
        raise UsageError(f"{component!r}: parameters not understood: ({arguments}); {known}")
    place = path if folder is None or Path(path).is_file() else str(Path(folder) / path)
    agent = Agent.load(place, parts=None if own is None else module_named(own, folder), **kwargs)
    if agent.stage in ONE_SEAT:
        trained_behind = make(str((agent.about or {}).get("training", {}).get("policy", "fcfs")), folder)
        return ONE_SEAT[agent.stage](agent, agent.slots, trained_behind.queue_order)  # type: ignore[arg-type]
    return {agent.stage: agent}


def _factory(part: str, name: str, folder: str | None) -> Callable[..., Any]:
    """Return what a name stands for: built in, imported, or plugged in."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

    if ":" in part:
        return _maker(part, folder)
    known = {key: value for factories in CATALOGUE.values() for key, value in factories.items()}
    key = ALIASES.get(part.lower(), part.lower())
    if key in known:
        return known[key]
    plug_ins = _plug_ins()
    if part in plug_ins:
        return _importing(plug_ins[part].load, part)
    nearest = difflib.get_close_matches(key, [*known, *ALIASES, *plug_ins], n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(nearest)}" if nearest else "`python -m hpcsimkit.run policies` lists them"
    where = f" in {name!r}" if part != name else ""
    raise UsageError(f"unknown policy {part!r}{where}; {hint}")


def imported(part: str, folder: str | None = None) -> Any:
    """Import ``module:Name`` or ``path/file.py:Name``; the current folder is looked in first.

    Parameters
    ----------
    part : str
        What to import.
    folder : str, optional
        Where modules and files are looked for besides the current folder.

    Raises
    ------
    UsageError
        There is no such thing, or importing it fails.
    """
    module_name, _, attribute = part.rpartition(":")
    module = module_named(module_name, folder, part)
    if not hasattr(module, attribute):
        raise UsageError(f"{part!r}: {module_name} has no {attribute!r}")
    return getattr(module, attribute)


def module_named(name: str, folder: str | None = None, part: str = "") -> Any:
    """Import ``module`` or ``path/file.py``; parameters as for :func:`imported`, `part` is for messages."""
    return _importing(lambda: _module(name, folder), part or name)


def _maker(part: str, folder: str | None) -> Callable[..., Any]:
    """Import a class or a function that makes a policy."""
    found = imported(part, folder)
    if not callable(found):
        raise UsageError(f"{part!r} needs a class or a function that makes a policy, found {found!r}")
    return found


def _module(module_name: str, folder: str | None) -> Any:
    if module_name.endswith(".py"):
        path = Path(module_name)
        if folder is not None and not path.is_file():
            path = Path(folder) / path
        if not path.is_file():
            raise UsageError(f"no such file: {module_name}")
        name = f"{path.stem}@{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None and spec.loader is not None
            sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(sys.modules[name])
            except BaseException:
                del sys.modules[name]
                raise
        return sys.modules[name]
    for place in (folder, str(Path.cwd())):
        if place is not None and place not in sys.path:
            sys.path.insert(0, place)
    return importlib.import_module(module_name)


def _importing(load: Callable[[], Any], part: str, what: str = "imported") -> Any:
    """Import something of the user's, or make it; what goes wrong becomes one line."""
    try:
        return load()
    except HpcsimkitError:
        raise
    except Exception as error:
        raise UsageError(f"{part!r} cannot be {what}: {type(error).__name__}: {_where(error)}") from error


def _where(error: Exception) -> str:
    """Return an error's message and the place in the user's code that it comes from."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}:{error.lineno})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error}" if "importlib" in frame.filename else f"{error} ({frame.filename}:{frame.lineno})"


def _call(factory: Callable[..., Any], arguments: str, component: str) -> Any:
    """Call a factory with the parameters written in parentheses."""
    args, kwargs = _arguments(arguments, component)
    try:
        signature = inspect.signature(factory)
    except ValueError:
        raise UsageError(f"{component!r} makes no policy: it is {factory!r}") from None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise UsageError(f"{component!r}: {error}; parameters: {takes}") from None
    return _importing(lambda: factory(*args, **kwargs), component, "made")


def _arguments(text: str, component: str) -> tuple[list[Any], dict[str, Any]]:
    """Read ``4, name=value``: numbers, true and false, and words."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("more than one pair of parentheses")
        kwargs = {_name(keyword): _value(keyword.value) for keyword in call.keywords}
        return [_value(node) for node in call.args], kwargs
    except (SyntaxError, ValueError):
        raise UsageError(f"{component!r}: parameters not understood: ({text})") from None


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("** has nothing to refer to")
    return keyword.arg


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node)  # package.module, file.py
    if isinstance(node, ast.Name):
        return {"true": True, "false": False, "none": None}.get(node.id.lower(), node.id)
    return ast.literal_eval(node)
