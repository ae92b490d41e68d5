"""Calendar files: a TOML file with a table for each window, or the output of ``scontrol show reservation``.

The keys of a table are the parameters of :class:`~hpcsimkit.cluster.calendar.Window`. Times are seconds of
the log's clock, or dates in its local time; ``duration`` [s] may replace ``end``. With ``every`` [s] and
``times``, a window is repeated; those with dates are repeated in local time. ``*`` and ``?`` in the name of a
machine match any characters.

.. code-block:: toml

    [[calendar]]
    name = "maintenance"
    start = "2024-03-05 08:00"
    end = "2024-03-05 20:00"
    machines = ["node*"]

    [[calendar]]
    name = "course"
    start = "2024-03-04 10:00"
    duration = 7200
    every = 604800
    times = 10
    machines = ["gpu1", "gpu2"]
    accounts = ["teaching"]

Of Slurm's output, ``StartTime, EndTime, Nodes, Users, Accounts`` and ``Flags`` are read. With the flag
``MAINT``, the nodes are gone for all. A reservation without nodes, such as one of licences only, is left out
and noted; so are repetitions (``DAILY``, ``WEEKLY`` ...), of which the output shows the next occurrence only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.scontrol import PAIR, expanded, is_scontrol
from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import toml_tables
from hpcsimkit.io.files import read_utf_8
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import TIME_LIMIT

__all__ = ["calendar_of_tables", "read_calendar"]

KEYS = ("duration", "every", "times", *(field.name for field in fields(Window)))
LISTS = ("machines", "users", "accounts")
MOST_TIMES = 100_000

FIRST = "ReservationName"
"""First key of a reservation in Slurm's output."""

NONE = {"(null)", "", "N/A", "n/a"}
REPEATED = {"HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"}


def read_calendar(path: str | os.PathLike[str]) -> Calendar:
    """Read a calendar from a TOML file, or from the output of ``scontrol show reservation``.

    Raises
    ------
    UsageError
        The file is invalid; the message names the line of the window.
    WorkloadError
        The file cannot be read.
    """
    text = read_utf_8(path, Format.CALENDAR, "tables of windows are needed")
    if is_scontrol(text, FIRST):
        return _of_scontrol(text, path)
    return _calendar(*toml_tables(text, path, "calendar"))


def calendar_of_tables(tables: Sequence[Mapping[str, Any]]) -> Calendar:
    """Return the calendar of tables ``[[calendar]]``.

    Raises
    ------
    UsageError
        A table is invalid.

    Examples
    --------
    >>> calendar = calendar_of_tables([{"start": 100, "duration": 10, "every": 50, "times": 2, "nodes": 4}])
    >>> [(window.start, window.end) for window in calendar.windows]
    [(100, 110), (150, 160)]
    """
    return _calendar(tables, [""] * len(tables))


def _calendar(tables: Sequence[Mapping[str, Any]], where: Sequence[str]) -> Calendar:
    windows: list[Window] = []
    for table, place in zip(tables, where, strict=True):
        try:
            found = list(_windows(table))
            Calendar(found)  # each of them is valid
        except UsageError as error:
            raise UsageError(f"{place}{error}") from None
        windows += found
    return Calendar(windows)


def _windows(table: Mapping[str, Any]) -> Iterator[Window]:
    """Yield the windows of one table: one, or several if it is repeated."""
    _check_keys(table)
    values = {key: table[key] for key in table if key not in ("duration", "every", "times", "start", "end")}
    for key in LISTS:
        if key in values:
            if not isinstance(values[key], list | tuple):
                raise UsageError(f"a window: {key} needs a list of names, found {values[key]!r}")
            values[key] = tuple(values[key])
    start = table["start"]
    end = table["end"] if "end" in table else later(start, table["duration"])
    for number in range(table.get("times", 1)):
        since = number * table.get("every", 0)
        yield Window(later(start, since), later(end, since), **values)


def _check_keys(table: Mapping[str, Any]) -> None:
    """Raise a UsageError if keys of a table are unknown or missing, or a number is invalid."""
    for key in table:
        if key not in KEYS:
            raise UsageError(f"unknown key {key!r} of a window; known are {', '.join(KEYS)}")
    if "start" not in table or ("end" in table) == ("duration" in table):
        raise UsageError(f"a window needs a start, and either an end or a duration, found {dict(table)}")
    for key in ("duration", "every", "times"):
        if key in table and not (type(table[key]) is int and 1 <= table[key] <= TIME_LIMIT):
            raise UsageError(f"a window: {key} needs a whole number of at least 1, found {table[key]!r}")
    if ("every" in table) != ("times" in table) or table.get("times", 1) > MOST_TIMES:
        raise UsageError(
            f"a window is repeated with 'every' and 'times', up to {MOST_TIMES} times, found {dict(table)}"
        )


def later(time: Any, seconds: int) -> Any:
    """Return a time [s], or a local date, after some more seconds.

    >>> later(5, 10), later("2024-03-30 08:00", 86_400)
    (15, '2024-03-31T08:00:00')
    """
    if type(time) is int:
        return time + seconds
    try:
        return (datetime.fromisoformat(str(time)) + timedelta(seconds=seconds)).isoformat()
    except (ValueError, OverflowError):
        raise UsageError(
            f"a window needs seconds or dates such as '2024-01-31 08:00', found {time!r}"
        ) from None


# --- Slurm -------------------------------------------------------------------------------------------------


def _of_scontrol(text: str, path: str | os.PathLike[str]) -> Calendar:
    """Return the reservations that ``scontrol show reservation`` prints."""
    windows: list[Window] = []
    notes: Counter[str] = Counter()
    for line, values in _blocks(text):
        try:
            found = _reservation(values, notes)
            windows += [] if found is None else Calendar([found]).windows
        except UsageError as error:
            raise UsageError(f"{path}:{line}: {error}") from None
    return Calendar(windows, dict(notes))


def _blocks(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the values of each reservation."""
    begun, values = 1, dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(f"{FIRST}="):
            if values:
                yield begun, values
            begun, values = number, {}
        values.update(PAIR.findall(line))
    if values:
        yield begun, values


def _reservation(values: Mapping[str, str], notes: Counter[str]) -> Window | None:
    """Return the window of a reservation; None if it has no nodes."""
    name, flags = values[FIRST], set(values.get("Flags", "").split(","))
    nodes = values.get("Nodes", "")
    if nodes in NONE:
        notes["reservation without nodes: left out"] += 1
        return None
    if flags & REPEATED:
        notes["repeated reservation: only the next occurrence taken"] += 1
    for key in ("StartTime", "EndTime"):
        if values.get(key, "") in NONE:
            raise UsageError(f"reservation {name!r}: {key} is needed, found {values.get(key, 'none')}")
    users, accounts = _names(values, "Users", notes), _names(values, "Accounts", notes)
    if "MAINT" in flags:
        users = accounts = ()
    elif not (users or accounts):
        notes["reservation for all but some: left out"] += 1
        return None
    machines = tuple(expanded(nodes))
    return Window(
        later(values["StartTime"], 0),
        later(values["EndTime"], 0),
        nodes=len(machines),
        machines=machines,
        users=users,
        accounts=accounts,
        name=name,
    )


def _names(values: Mapping[str, str], key: str, notes: Counter[str]) -> tuple[str, ...]:
    """Return the users or accounts of a reservation; those that are excluded from it are noted."""
    names = [] if values.get(key, "") in NONE else values[key].split(",")
    excluded = [name for name in names if name.startswith("-")]
    if excluded:
        notes[f"{key.lower()} excluded from a reservation: not known to the simulation"] += len(excluded)
    return tuple(name for name in names if name not in excluded)
