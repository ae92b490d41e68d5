"""The memory of the stages of a policy as plain values: what they keep from their passes.

The state of a stage consists of the attributes that are not parameters. It is written as JSON and arrays, and
read without running code of the file: it may contain numbers, texts, containers, arrays, random generators,
jobs, the system and its parts, other stages, and objects of the classes of this package or of the modules of
the stages. Anything else is refused by name.
"""

from __future__ import annotations

import inspect
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.parameters import Parameters, parts
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System

__all__ = ["Memories"]

PLAIN = (bool, int, float, str)
CONTAINERS = {each.__name__: each for each in (list, set, deque, frozenset, tuple)}
UNCHANGING = ("job", "enum", "numpy", "slice", "named", "tuple", "frozenset")
GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
OWN = "hpcsimkit"


class Memories:
    """The memory of the policies of one or several schedulers.

    Parameters
    ----------
    pairs : sequence of (Policy, System)
        The copies of the policy of a run, each with the system on which it acts.
    """

    def __init__(self, pairs: Sequence[tuple[Policy, System]]) -> None:
        self._systems = [system for _, system in pairs]
        self._parts = [part for policy, system in pairs for part in _stages(policy, system)]
        self._known = dict(_known(self._systems))
        self._known |= {id(part): ("part", place) for place, part in enumerate(self._parts)}
        self._modules = frozenset({type(part).__module__ for part in self._parts} - {"builtins"})

    def written(self) -> tuple[Any, list[NDArray[Any]]]:
        """Return the memory as a JSON value and arrays.

        Raises
        ------
        UsageError
            A stage keeps something that cannot be written.
        """
        writer = _Writer(self._known, self._modules)
        stages = []
        for part in self._parts:
            kept = {}
            for name, value in vars(part).items():
                if name in _parameters(part):
                    continue
                try:
                    kept[name] = writer.value(value)
                except _UnknownError as error:
                    raise UsageError(
                        f"snapshot: {part!r} keeps {error} as {name}, which a snapshot cannot hold"
                    ) from None
            stages.append([_name(type(part)), kept])
        holds = [sorted(system.holds.items()) for system in self._systems]
        return {"stages": stages, "holds": holds}, writer.arrays

    def read(self, memory: Any, arrays: Sequence[NDArray[Any]]) -> None:
        """Set the memory of the stages.

        Raises
        ------
        ValueError
            The memory is not one of these stages.
        """
        stages = memory["stages"]
        if [name for name, _ in stages] != [_name(type(part)) for part in self._parts]:
            raise ValueError("other stages")
        reader = _Reader(self._known_by_place(), self._systems[0].jobs, self._modules, arrays)
        for part, (_, kept) in zip(self._parts, stages, strict=True):
            for name, value in kept.items():
                setattr(part, name, reader.value(value))
        for system, holds in zip(self._systems, memory["holds"], strict=True):
            system.holds.clear()
            system.holds.update({int(row): int(count) for row, count in holds})

    def _known_by_place(self) -> dict[tuple[Any, ...], Any]:
        found: dict[tuple[Any, ...], Any] = {("part", place): part for place, part in enumerate(self._parts)}
        for place, system in enumerate(self._systems):
            found[("system", place)] = system
            for owner, each in _owners(system):
                found |= {("of", place, owner, name): value for name, value in vars(each).items()}
        return found


def _stages(policy: Policy, system: System) -> list[Parameters]:
    """Return a policy with its stages, the order of the queue and the estimator if they are others."""
    found = [*parts(policy)]
    for each in (system.order, system.estimator):
        if isinstance(each, Parameters):
            found += parts(each)
    return list({id(part): part for part in found}.values())


def _owners(system: System) -> Iterator[tuple[str, Any]]:
    """Yield the objects of a run to whose attributes stages may refer, besides those of the run itself."""
    yield "system", system
    yield "ledger", system.ledger
    yield "everywhere", system.everywhere
    if hasattr(system.cluster, "__dict__"):
        yield "cluster", system.cluster
    yield "workload", system.workload


def _known(systems: Sequence[System]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the identity and the place of each object of the run."""
    for place, system in reversed(list(enumerate(systems))):
        for owner, each in reversed(list(_owners(system))):
            for name, value in vars(each).items():
                if not isinstance(value, (*PLAIN, tuple, frozenset, type(None))):
                    yield id(value), ("of", place, owner, name)
        yield id(system), ("system", place)


def _parameters(part: Parameters) -> Collection[str]:
    return inspect.signature(type(part)).parameters


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


class _UnknownError(Exception):
    """A value that cannot be written."""


class _Writer:
    """Writer of values; an object that occurs twice is written once."""

    def __init__(self, known: dict[int, tuple[Any, ...]], modules: Collection[str]) -> None:
        self._known, self._modules = known, modules
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used twice
        self.arrays: list[NDArray[Any]] = []

    def value(self, value: Any) -> Any:
        """Return a value as JSON."""
        if value is None or type(value) in PLAIN:
            return value
        if isinstance(value, tuple | frozenset | np.generic | slice | Enum):
            return self._unchanging(value)
        if (place := self._known.get(id(value))) is not None:
            return {"known": place}
        if inspect.ismethod(value) and self._known.get(id(value.__self__), ("",))[0] == "part":
            return {"method": value.__name__, "of": self._known[id(value.__self__)]}
        if (number := self._seen.get(id(value))) is not None:
            return {"same": number}
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return self._written(value)

    def _unchanging(self, value: Any) -> Any:
        """Return an object that cannot change as JSON."""
        if isinstance(value, Job):
            return {"job": value.index}
        if isinstance(value, Enum):
            return {"enum": self._class(type(value)), "value": value.value}
        if isinstance(value, np.generic):
            return {"numpy": value.dtype.str, "value": value.item()}
        if isinstance(value, slice):
            return {"slice": [self.value(each) for each in (value.start, value.stop, value.step)]}
        if type(value) in (tuple, frozenset):
            return {type(value).__name__: [self.value(each) for each in value]}
        return {"named": self._class(type(value)), "values": [self.value(each) for each in value]}

    def _written(self, value: Any) -> Any:
        """Return an object that may change as JSON."""
        if type(value) in (list, set):
            return {type(value).__name__: [self.value(each) for each in value]}
        if type(value) is deque:
            return {"deque": [self.value(each) for each in value], "most": value.maxlen}
        if type(value) in (dict, OrderedDict):
            return {"dict": [[self.value(key), self.value(each)] for key, each in value.items()]}
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.arrays.append(value.copy())
            return {"array": len(self.arrays) - 1}
        if isinstance(value, np.random.Generator):
            state: Any = value.bit_generator.state
            return {"generator": self.value(state)}
        if isinstance(value, type) or callable(value) or isinstance(value, defaultdict):
            raise _UnknownError(f"a {type(value).__name__}")
        name = self._class(type(value))
        state = {key: getattr(value, key) for key in _attributes(value)}
        return {"object": name, "state": [[key, self.value(each)] for key, each in state.items()]}

    def _class(self, kind: type) -> str:
        if not _allowed(kind.__module__, self._modules) or "<locals>" in kind.__qualname__:
            raise _UnknownError(f"an object of class {_name(kind)}")
        return _name(kind)


def _attributes(value: Any) -> list[str]:
    """Return the names of the attributes of an object, in slots and in its dictionary."""
    slots: list[str] = []
    for kind in type(value).__mro__:
        own = vars(kind).get("__slots__", ())
        slots += [own] if isinstance(own, str) else own
    given = [name for name in slots if name not in ("__dict__", "__weakref__") and hasattr(value, name)]
    return [*given, *getattr(value, "__dict__", {})]


def _allowed(module: str, modules: Collection[str]) -> bool:
    return module == OWN or module.startswith(f"{OWN}.") or module in modules


class _Reader:
    """Reader of what :class:`_Writer` has written; anything else is a ValueError or KeyError."""

    def __init__(
        self,
        known: dict[tuple[Any, ...], Any],
        jobs: Sequence[Job],
        modules: Collection[str],
        arrays: Sequence[NDArray[Any]],
    ) -> None:
        self._known, self._jobs, self._modules, self._arrays = known, jobs, modules, arrays
        self._seen: list[Any] = []

    def value(self, value: Any) -> Any:
        """Return a value from its JSON."""
        if not isinstance(value, dict):
            if value is None or type(value) in PLAIN:
                return value
            raise ValueError("a plain value is needed")
        if not value:
            raise ValueError("a kind is needed")
        kind = next(iter(value))
        content = value[kind]
        if kind == "known":
            return self._known[tuple(content)]
        if kind == "same":
            return self._seen[content]
        if kind == "method":
            return self._method(content, tuple(value["of"]))
        if kind in UNCHANGING:
            return self._unchanging(kind, content, value)
        return self._filled(kind, content, value)

    def _unchanging(self, kind: str, content: Any, value: dict[str, Any]) -> Any:
        """Return an object that cannot change."""
        if kind == "job":
            return self._jobs[content]
        if kind == "enum":
            return self._class(content)(value["value"])
        if kind == "numpy":
            if np.dtype(content).kind not in "biufSU":
                raise ValueError("a number is needed")
            return np.dtype(content).type(value["value"])
        if kind == "slice":
            return slice(*map(self.value, content))
        if kind == "named":
            return tuple.__new__(self._class(content), map(self.value, value["values"]))
        return CONTAINERS[kind](map(self.value, content))

    def _filled(self, kind: str, content: Any, value: dict[str, Any]) -> Any:
        """Return an object that may refer to itself: it is known before its content is read."""
        made: Any
        if kind == "array":
            made = self._arrays[content].copy()
            self._seen.append(made)
        elif kind == "generator":
            self._seen.append(None)
            place = len(self._seen) - 1
            state = self.value(content)
            if state["bit_generator"] not in GENERATORS:
                raise ValueError("an unknown generator")
            made = np.random.Generator(getattr(np.random, state["bit_generator"])())
            made.bit_generator.state = state
            self._seen[place] = made
        elif kind in ("list", "set", "deque"):
            made = deque(maxlen=value["most"]) if kind == "deque" else CONTAINERS[kind]()
            self._seen.append(made)
            add = made.add if kind == "set" else made.append
            for each in content:
                add(self.value(each))
        elif kind == "dict":
            made = {}
            self._seen.append(made)
            for key, each in content:
                made[self.value(key)] = self.value(each)
        elif kind == "object":
            made = object.__new__(self._class(content))
            self._seen.append(made)
            for key, each in value["state"]:
                object.__setattr__(made, key, self.value(each))
        else:
            raise ValueError(f"an unknown value {kind!r}")
        return made

    def _method(self, name: str, place: tuple[Any, ...]) -> Any:
        """Return a method of a stage."""
        method = getattr(self._known[place], name) if place[0] == "part" else None
        if not inspect.ismethod(method):
            raise ValueError(f"{name} is no method of a stage")
        return method

    def _class(self, name: str) -> Any:
        """Return a class of a loaded module: nothing is imported."""
        module, _, path = name.partition(":")
        if not _allowed(module, self._modules):
            raise ValueError(f"a class of {module}")
        found: Any = sys.modules[module]
        for each in path.split("."):
            found = vars(found)[each]
        if not (inspect.isclass(found) and found.__module__ == module):
            raise ValueError(f"{name} is no class")
        return found
