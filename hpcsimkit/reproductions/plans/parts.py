"""Objects from the values of a plan."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from inspect import signature
from operator import attrgetter
from string import Formatter
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.trust import Trust, code_in
from hpcsimkit.kernel.guard import message_of

__all__ = ["KIT", "Code", "Parts", "attribute", "kit_part"]

PART, COPY, AGENT = "part", "copy", "agent"
"""Keys of tables that stand for objects."""

ONE = re.compile(r"\{\w[\w.\[\]]*\}")
"""Text that is one variable, or an attribute or an item of it."""

FORMER = {"experiments.registry:make": "experiments.parts.registry:make"}
"""Names of parts in plans written before the modules moved, with their present names."""


def kit_part(name: str) -> Any:
    """Return an object of hpcsimkit by its name ``module:Name``.

    Objects that a module has only imported from elsewhere are refused.

    Examples
    --------
    >>> kit_part("policies:SJF")
    <class 'hpcsimkit.policies.orders.SJF'>
    >>> kit_part("experiments.registry:make").__module__  # an earlier name
    'hpcsimkit.experiments.parts.registry'
    >>> kit_part("policies:Nobody")
    Traceback (most recent call last):
    hpcsimkit.errors.UsageError: hpcsimkit has no part 'policies:Nobody'
    """
    module, _, attribute = FORMER.get(name, name).partition(":")
    try:
        found = attrgetter(attribute)(importlib.import_module(f"hpcsimkit.{module}"))
    except (ImportError, AttributeError):
        found = None
    if not getattr(found, "__module__", "").startswith("hpcsimkit."):
        raise UsageError(f"hpcsimkit has no part {name!r}")
    return found


class Code(NamedTuple):
    """Code that the names in a plan may refer to: hpcsimkit, and the files of a folder with consent.

    Parameters
    ----------
    folder : str, optional
        Folder of the plan.
    trust : Trust
        Permission to import code. Default: none.
    """

    folder: str | None = None
    trust: Trust = Trust(())

    def part(self, name: str) -> Any:
        """Return the object of ``module:Name`` of hpcsimkit, or of ``file.py:Name``.

        >>> Code().part("mine.py:Best")
        Traceback (most recent call last):
        hpcsimkit.errors.UsageError: 'mine.py:Best' is code that is not the kit's own, and a file may not \
name it without consent: --allow-code mine.py
        """
        own = code_in(name).endswith(".py")
        return self.trust.imported(name, self.folder) if own else kit_part(name)


KIT = Code()
"""Code of hpcsimkit only."""


class _Words(Formatter):
    """Texts: ``{order:upper}`` in capitals, ``{number:next}`` plus 1, ``{backfilling:?-bf}`` only if true."""

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
            known = ", ".join(self.variables)
            raise UsageError(f"plan: {text!r}: {message_of(error)}; variables: {known}") from None

    def _table(self, table: Mapping[str, Any]) -> Any:
        made = {key: self.made(value) for key, value in table.items()}
        if PART in made:
            name = made.pop(PART)
            return _called(name, self.code.part(name), made)
        if COPY in made:
            found = made.pop(COPY)
            return _changed(self.code.part(found) if isinstance(found, str) else found, made)
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


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute that a plan names.

    Raises
    ------
    UsageError
        There is no such attribute.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        raise UsageError(f"plan: {type(owner).__name__} has no attribute {name!r}") from None


def _called(name: Any, part: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Return the object that a class or function returns for the values of a table."""
    try:
        signature(part).bind(**values)
    except TypeError as error:
        raise UsageError(f"plan: part {name!r}: {error}") from None
    return part(**values)


def _changed(found: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of an object with changed attributes."""
    for name in changes:
        attribute(found, name)
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **changes)
    changed = copy.copy(found)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed
