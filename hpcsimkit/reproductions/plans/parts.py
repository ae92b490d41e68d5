"""Objects from the values of a plan."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cached_property
from string import Formatter
from types import ModuleType
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts.registry import policy_named
from hpcsimkit.experiments.parts.trust import FILE_ENDING, Trust, code_in, importing
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.plans.catalogue import POLICY_BY_NAME, part_named

PART, COPY, AGENT = "part", "copy", "agent"
"""Keys of tables that stand for objects."""

ONE = re.compile(r"\{\w[\w.\[\]]*\}")
"""Text that is one variable, or an attribute or an item of it."""

FIELD, STEP = re.compile(r"(\w+)((?:\.\w+|\[\w+\])*)"), re.compile(r"\.(\w+)|\[(\w+)\]")
"""A variable with its attributes and items, and each of these."""


class Code(NamedTuple):
    """Code that the names in a plan may refer to: hpcsimkit, and the files of a folder with consent.

    Parameters
    ----------
    folder : str or None
        Folder of the plan.
    trust : Trust
        Permission to import code.
    """

    folder: str | None
    trust: Trust

    def part(self, name: str) -> Any:
        """Return the part ``module:Name`` of hpcsimkit, or the object of ``file.py:Name``.

        >>> KIT.part("mine.py:Best")
        Traceback (most recent call last):
        hpcsimkit.errors.UsageError: 'mine.py:Best' is code that is not the kit's own, and a file may not \
name it without consent: --allow-code mine.py
        """
        if code_in(name).endswith(FILE_ENDING):
            return self.trust.imported(name, self.folder)
        found = part_named(name)
        return self.policy_named if found is POLICY_BY_NAME else found

    def policy_named(self, name: str) -> Policy:
        """Return the policy of a name in the plan."""
        return policy_named(name, self.folder, self.trust)

    def kind(self, name: str, base: type[Any]) -> Any:
        """Return the class of a name, a subclass of a base class.

        Raises
        ------
        UsageError
            The name is unknown, or refers to another kind of object.
        """
        found = self.part(name)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise UsageError(f"{name!r} needs a subclass of {base.__name__}, found {found!r}")
        return found

    def made(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return what a class or function returns for some arguments.

        Raises
        ------
        UsageError
            It takes other arguments, or fails.
        """
        found = self.part(name)
        if not callable(found):
            raise UsageError(f"{name!r} is a constant: {{ {COPY} = {name!r} }} copies it")
        try:
            inspect.signature(found).bind(**arguments)
        except TypeError as error:
            takes = ", ".join(inspect.signature(found).parameters) or "none"
            raise UsageError(f"{name!r}: {error}; parameters: {takes}") from None
        return importing(lambda: found(**arguments), name, "made")


KIT = Code(None, Trust(()))
"""Code of hpcsimkit only."""


def attribute_of(found: Any, name: str) -> Any:
    """Return an attribute that a plan may name: a value, and no method, class or module.

    Raises
    ------
    UsageError
        There is no such attribute, or it is none of the values.
    """
    known = [each for each in dir(found) if not each.startswith("_") and _is_value(found, each)]
    value = getattr(found, name) if name in known else None
    if name not in known or inspect.isroutine(value) or isinstance(value, type | ModuleType):
        raise UsageError(f"{type(found).__name__} has no value {name!r}{nearest(name, known)}")
    return value


def _is_value(found: Any, name: str) -> bool:
    """Return whether an attribute is no method; properties are not evaluated."""
    static = inspect.getattr_static(found, name, None)
    return isinstance(static, cached_property) or not inspect.isroutine(static)


def _item_of(found: Any, key: str) -> Any:
    """Return an item of a text, a list or a table."""
    if not isinstance(found, str | list | tuple | Mapping):
        raise UsageError(f"{type(found).__name__} has no item {key!r}")
    try:
        return found[key] if isinstance(found, Mapping) else found[int(key)]
    except (LookupError, ValueError):
        raise UsageError(f"no item {key!r} in {found!r}") from None


class _Words(Formatter):
    """Texts: ``{order:upper}`` in capitals, ``{number:next}`` plus 1, ``{backfilling:?-bf}`` only if true."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        match = FIELD.fullmatch(field_name)
        if match is None:
            raise UsageError(f"a variable is needed, with attributes or items, found {field_name!r}")
        if match[1] not in kwargs:
            raise UsageError(f"unknown variable {match[1]!r}{nearest(match[1], list(kwargs))}")
        found = kwargs[match[1]]
        for attribute, item in STEP.findall(match[2]):
            found = attribute_of(found, attribute) if attribute else _item_of(found, item)
        return found, match[1]

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "upper":
            return str(value).upper()
        if format_spec == "next":
            return str(value + 1)
        if format_spec.startswith("?"):
            return format_spec[1:] * bool(value)
        return super().format_field(value, format_spec)


class Parts:
    """Objects from the values of a plan, with variables.

    - A text ``"{name}"`` is the variable itself (``"{name.attribute}"`` its attribute); other texts are
      formatted: ``{name:upper}`` is in capitals, ``{name:next}`` a number plus 1, ``{name:?words}`` are
      words if the variable is true.
    - A table with the key ``part`` is the object that this class or function returns for the other keys; one
      with ``copy`` is a copy of an object, or of a constant, with changed attributes.
    - A table with the key ``agent`` is that agent, with the other keys as variables.

    Parameters
    ----------
    variables : mapping of str to object
        Values of the variables.
    agent : callable, optional
        Function ``agent(name, variables)`` that returns an agent of the plan.
    code : Code
        Code that names may refer to. Default: that of hpcsimkit.

    Examples
    --------
    >>> parts = Parts({"order": "sjf", "backfilling": True, "steps": 9})
    >>> parts.made("{order:upper}{backfilling:? with backfilling}"), parts.made("{steps}")
    ('SJF with backfilling', 9)
    >>> parts.made({"part": "kernel.pipeline:Pipeline", "order": {"part": "policies:SJF"}})
    Pipeline(order=SJF())
    """

    def __init__(
        self,
        variables: Mapping[str, Any],
        agent: Callable[[str, Mapping[str, Any]], Any] | None = None,
        code: Code = KIT,
    ) -> None:
        self.variables = variables
        self.agent = agent
        self.code = code

    def beside(self, variables: Mapping[str, Any]) -> Parts:
        """Return parts with further variables."""
        return Parts({**self.variables, **variables}, self.agent, self.code)

    def each(self, values: Mapping[str, Any]) -> Iterator[Parts]:
        """Yield parts for each combination of the values of some variables, without repetitions.

        Values may depend on the variables before them.
        """
        if not values:
            yield self
            return
        (name, value), *others = values.items()
        for chosen in self.listed(value):
            yield from self.beside({name: chosen}).each(dict(others))

    def meet(self, conditions: Mapping[str, Any]) -> bool:
        """Return whether each of some variables, or of their attributes, has one of its allowed values."""
        return all(self.made(f"{{{name}}}") in self.listed(each) for name, each in conditions.items())

    def made(self, value: Any) -> Any:
        """Return the object of a value."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._table(value)
        return tuple(map(self.made, value)) if isinstance(value, list | tuple) else value

    def _text(self, text: str) -> Any:
        try:
            if ONE.fullmatch(text):
                return _Words().get_field(text[1:-1], (), self.variables)[0]
            return _Words().vformat(text, (), self.variables)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise UsageError(f"{text!r}: {error}") from None

    def _table(self, table: Mapping[str, Any]) -> Any:
        made = {key: self.made(value) for key, value in table.items()}
        if PART in made:
            return self.code.made(f"{made.pop(PART)}", made)
        if COPY in made:
            found = made.pop(COPY)
            return changed(self.code.part(found) if isinstance(found, str) else found, made)
        if AGENT in made:
            assert self.agent is not None
            return self.agent(made.pop(AGENT), {**self.variables, **made})
        return made

    def listed(self, values: Any) -> list[Any]:
        """Return the objects of a value or of a list, each once; lists in it are joined."""
        found: list[Any] = []
        for value in values if isinstance(values, list | tuple) else [values]:
            made = self.made(value)
            for each in made if isinstance(made, list | tuple) else [made]:
                if each not in found:
                    found.append(each)
        return found


def changed(found: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of an object with changed attributes.

    Raises
    ------
    UsageError
        The object has no such attribute.
    """
    if isinstance(found, type | ModuleType) or inspect.isroutine(found):
        raise UsageError(f"an object can be copied, found {found!r}")
    for name in changes:
        attribute_of(found, name)
    if is_dataclass(found) and not isinstance(found, type):
        return importing(lambda: replace(found, **changes), type(found).__name__, "changed")
    made = copy.copy(found)
    for name, value in changes.items():
        setattr(made, name, value)
    return made
