"""Hypothetical requests: when would a job start if it were submitted now?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcsimkit.errors import HpcsimkitError, UsageError, nearest
from hpcsimkit.io.units import is_whole_number, resource_amount
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration

__all__ = ["request_columns"]

NAMED = ("user", "group", "executable", "queue", "partition", "qos", "constraint")
"""Columns whose values may be names."""

EXAMPLE = "nodes=4,time=2:00:00"


def request_columns(text: str, workload: Workload, at: int) -> dict[str, int]:
    """Return the columns of a job that is submitted at a time.

    Parameters
    ----------
    text : str
        Names and values: ``nodes``, ``time`` (the requested time), a resource of the log, or a column with
        names such as ``partition``, ``qos`` and ``user``.
    workload : Workload
        The log.
    at : int
        Time of the submission [s].

    Raises
    ------
    UsageError
        The text is no request, or the log does not have what it names.

    Examples
    --------
    >>> log = Workload({"id": [7], "submit_time": [0], "run_time": [9], "nodes": [1], "user": [0]},
    ...                labels={"user": ("ada",)})
    >>> request_columns("nodes=4,time=2:00:00,user=ada", log, at=100)
    {'id': 8, 'submit_time': 100, 'run_time': 7200, 'requested_time': 7200, 'nodes': 4, 'user': 0}
    >>> request_columns("time=1:00:00,gpus=2", log, at=100)
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: 'time=1:00:00,gpus=2': no job has 'gpus'; nearest: user
    """
    given: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (each.strip() for each in part.partition("="))
        if not (name and sign and value) or name in given:
            raise UsageError(f"a request such as {EXAMPLE} is needed, found {text!r}")
        given[name] = value
    if "time" not in given:
        raise UsageError(f"{text!r}: a requested time is needed, as in {EXAMPLE}")
    readers = _readers(workload)
    unknown = next((name for name in given if name not in readers), None)
    if unknown is not None:
        raise UsageError(f"{text!r}: no job has {unknown!r}{nearest(unknown, list(readers))}")
    try:
        found = {name: readers[name](value) for name, value in given.items()}
    except (HpcsimkitError, ValueError) as error:
        raise UsageError(f"{text!r}: {error}") from None
    seconds, first = found.pop("time"), int(workload.id.max(initial=0)) + 1
    times = {"submit_time": at, "run_time": seconds, "requested_time": seconds}
    return {"id": first, **times, "nodes": 1, **dict.fromkeys(workload.resources, 0), **found}


def _readers(workload: Workload) -> dict[str, Callable[[str], int]]:
    """Return what reads each value."""
    found: dict[str, Callable[[str], int]] = {"nodes": _count, "time": duration}
    for name in workload.resources:
        found[name] = lambda value, name=name: resource_amount(
            name, int(value) if is_whole_number(value) else value
        )  # type: ignore[misc]
    for name in NAMED:
        if name in workload.columns:
            found[name] = lambda value, name=name: _number_of(value, name, workload)  # type: ignore[misc]
    return found


def _count(value: str) -> int:
    if not (is_whole_number(value) and int(value) >= 1):
        raise UsageError(f"a number of nodes is needed, found {value!r}")
    return int(value)


def _number_of(value: str, column: str, workload: Workload) -> int:
    """Return the number of a name in a column."""
    names: Any = workload.labels.get(column, ())
    if value in names:
        return int(names.index(value))
    if is_whole_number(value) and not names:
        return int(value)
    raise UsageError(f"unknown {column} {value!r}{nearest(value, names)}")
