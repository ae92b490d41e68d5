"""Axes of a sweep: settings with several values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.generate import Generate
from hpcsimkit.experiments.sweep.windows import Windows
from hpcsimkit.io.units import is_whole_number

POLICY, PERIOD, SEED, QUESTION = "policy", "period", "seed", "question"
"""Names of the axes of policies, of windows or scheduling periods, of seeds, and of keys of a question."""

REPLICATES = (SEED, PERIOD)
"""Names of the axes whose values are repetitions of the same experiment."""

FIXED = {
    "policies",
    "metrics",
    "generate",
    "import_from",
    "allow_code",
    "sha256",
    "machines_sha256",
    "out",
    "workers",
    "engine",
    "report",
    "trace",
}
"""Keys of an experiment that cannot be axes."""

SETTINGS = [name for name in Experiment.model_fields if name not in FIXED]

MOST_VALUES = 100_000
"""Maximum number of values of one axis."""


class Axis(NamedTuple):
    """A setting with several values."""

    name: str
    values: Sequence[Any]

    @property
    def ends(self) -> Sequence[Any]:
        """All values; of a range the first and the last one, which tell whether the others are valid."""
        return (self.values[0], self.values[-1]) if isinstance(self.values, range) else self.values

    @property
    def is_windows(self) -> bool:
        """Whether the values are windows of the log, which depend on the log."""
        return isinstance(self.values[0], Windows)


def axes_of(table: Mapping[str, Any]) -> Iterator[Axis]:
    """Yield the axes of a table ``[sweep]``.

    They are lists of values by key; ``{first = 0, count = 10}`` for whole numbers; for ``period`` also
    ``{length = "4 weeks", step = "4 weeks"}``, see :class:`~hpcsimkit.experiments.sweep.windows.Windows`.
    Nested tables (``"policy.window"`` without quotation marks) are the same as dotted keys.

    >>> [axis.values for axis in axes_of({"seed": {"first": 3, "count": 2}, "policy": {"window": [8, 32]}})]
    [range(3, 5), (8, 32)]
    """
    for key, value in table.items():
        if isinstance(value, Mapping) and key in (POLICY, "generate", QUESTION):
            for inner, values in value.items():
                yield _axis(f"{key}.{inner}", values)
        else:
            yield _axis(key, value)


def parsed_axis(text: str) -> tuple[str, Any]:
    """Return the key and the value of an option ``--axis key=1,2,3``, in the form of a table ``[sweep]``.

    ``key=first:count`` stands for ``{first, count}``, ``period=4 weeks`` for windows.

    >>> parsed_axis("load_factor=0.8,1"), parsed_axis("seed=0:10")
    (('load_factor', [0.8, 1]), ('seed', {'first': 0, 'count': 10}))
    >>> parsed_axis("period=4 weeks"), parsed_axis("walltime=run,kill")
    (('period', {'length': '4 weeks'}), ('walltime', ['run', 'kill']))
    """
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--axis needs key=value,value,..., found {text!r}")
    key = key.strip().replace("-", "_")
    first, colon, count = values.partition(":")
    if colon and is_whole_number(first.strip()) and is_whole_number(count.strip()):
        return key, {"first": int(first), "count": int(count)}
    if key == PERIOD and not is_whole_number(values.replace(",", "").strip()):
        return key, {"length": values.strip()}
    return key, [_literal(each.strip()) for each in values.split(",") if each.strip()]


def _literal(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _axis(name: str, values: Any) -> Axis:
    _check_name(name)
    if isinstance(values, Mapping) and name == PERIOD and "length" in values:
        return Axis(name, (Windows.of_table(values),))
    return Axis(name, counted(name, values))


def counted(name: str, values: Any) -> Sequence[Any]:
    """Return the values of an axis: those of a list, or whole numbers from ``{first, count}``."""
    if isinstance(values, Mapping):
        return _counted(name, values)
    if not isinstance(values, list | tuple):
        values = [values]
    if not values:
        raise UsageError(f"{name}: at least one value is needed")
    twice = next((value for number, value in enumerate(values) if value in values[:number]), None)
    if twice is not None:
        raise UsageError(f"{name}: {twice!r} is given twice")
    return tuple(values)


def _counted(name: str, table: Mapping[str, Any]) -> range:
    """Return the values of ``{first, count}``."""
    if set(table) != {"first", "count"} or not all(type(value) is int for value in table.values()):
        raise UsageError(f"{name}: a list, or whole numbers first and count are needed, found {dict(table)}")
    if not 1 <= table["count"] <= MOST_VALUES:
        raise UsageError(f"{name}: count must be from 1 to {MOST_VALUES}, found {table['count']}")
    return range(table["first"], table["first"] + table["count"])


def _check_name(name: str) -> None:
    """Check that a name is a setting; parameters of policies and keys of questions are checked with them."""
    table, dot, inner = name.partition(".")
    if dot and table in (POLICY, QUESTION) and inner:
        return
    if dot and table == "generate":
        if inner not in Generate.model_fields:
            raise UsageError(f"unknown axis {name!r}{nearest(inner, list(Generate.model_fields))}")
    elif name == "policies":
        raise UsageError(
            "unknown axis 'policies': all of them run with every value of an axis; repeat -p for several"
        )
    elif name not in SETTINGS:
        raise UsageError(f"unknown axis {name!r}{nearest(name, [*SETTINGS, 'policy.PARAMETER'])}")
