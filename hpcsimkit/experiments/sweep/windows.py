"""Windows of a log as replicates: equally long parts, each begun with a warm-up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

UNITS = {"s": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Units of durations [s]."""

DAY = UNITS["day"]


def duration(text: Any) -> int:
    """Return a duration [s]: a whole number of seconds, or a number with a unit.

    >>> duration("4 weeks"), duration("1.5 days"), duration(90)
    (2419200, 129600, 90)
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) *([a-z]*?)s?", str(text).strip().lower())
    if match is None or isinstance(text, bool) or (match[2] or "s") not in UNITS:
        raise UsageError(f"a duration such as '4 weeks' or 3600 [s] is needed, found {text!r}")
    seconds = round(float(match[1]) * UNITS[match[2] or "s"])
    if seconds < 1:
        raise UsageError(f"a duration of at least 1 s is needed, found {text!r}")
    if seconds > TIME_LIMIT:
        raise UsageError(f"a duration of at most {TIME_LIMIT} s is needed, found {text!r}")
    return seconds


class Window(NamedTuple):
    """Part of a log.

    Parameters
    ----------
    begin, end : int
        Times of the first and after the last measured submission [s of the log's clock].
    warmup : int
        Time before `begin` [s]; jobs submitted in it fill the cluster and are not measured.
    name : str
        Date or day of the first measured submission.
    """

    begin: int
    end: int
    warmup: int
    name: str

    def cut(self, workload: Workload) -> Workload:
        """Return the jobs submitted in the window and its warm-up."""
        return workload.window(self.begin - self.warmup, self.end)


class Windows(NamedTuple):
    """Windows of equal length.

    Parameters
    ----------
    length : int
        Length of a window without its warm-up [s].
    step : int
        Time between the beginnings of two windows [s].
    warmup : int
        Length of the warm-up [s].
    """

    length: int
    step: int
    warmup: int

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> Windows:
        """Read ``{length = "4 weeks", step = "4 weeks", warmup = "1 week"}``.

        By default the step is the length, and the warm-up a quarter of it.

        >>> Windows.of_table({"length": "4 weeks"})
        Windows(length=2419200, step=2419200, warmup=604800)
        """
        unknown = sorted(set(table) - {"length", "step", "warmup"})
        if unknown or "length" not in table:
            found = ", ".join(table) or "none"
            raise UsageError(f"keys length, step and warmup (both optional) are needed, found {found}")
        length = duration(table["length"])
        warmup = table.get("warmup", length // 4)
        return cls(length, duration(table.get("step", length)), duration(warmup) if warmup else 0)

    def of(self, workload: Workload) -> WindowsOfLog:
        """Return the complete windows of a workload.

        The warm-up of the first one begins with the first submission: what the log does not record is no
        warm-up, and no part of a window.
        """
        first = int(workload.submit_time.min()) if len(workload) else 0
        last = first + workload.span
        begins = range(first + self.warmup, last - self.length + 2, self.step)
        if not begins:
            needed, found = (self.warmup + self.length) / DAY, workload.span / DAY
            raise UsageError(
                f"{workload.name}: {found:.1f} days are too short for a window of {needed:.1f} days, "
                "warm-up included"
            )
        return WindowsOfLog(self, begins, calendar_of(workload))


@dataclass(frozen=True)
class WindowsOfLog:
    """Windows of one log, which are made one after the other: there may be millions.

    Parameters
    ----------
    windows : Windows
        Their lengths.
    begins : range
        Times of their first measured submissions [s of the log's clock].
    calendar : Calendar, optional
        Dates of the log's clock; without them, windows are named by the day from the first submission on.
    """

    windows: Windows
    begins: range
    calendar: Calendar | None

    def __len__(self) -> int:
        return len(self.begins)

    def __iter__(self) -> Iterator[Window]:
        before = ""
        for begin in self.begins:
            day, time = self._name(begin)
            alone = self.windows.step % DAY == 0 and day != before  # the day on which clocks are set back
            before = day
            name = day if alone else f"{day} {time}"
            yield Window(begin, begin + self.windows.length, self.windows.warmup, name)

    def _name(self, begin: int) -> tuple[str, str]:
        """Return the date or day of a window, and its time of day."""
        if self.calendar is None:
            days, rest = divmod(begin - self.begins[0] + self.windows.warmup, DAY)
            return f"day {days}", str(timedelta(seconds=rest)).rjust(8, "0")
        date = datetime.fromtimestamp(self.calendar.start + begin, self.calendar.zone)
        return str(date.date()), date.strftime("%H:%M:%S %Z")
