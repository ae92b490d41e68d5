"""Where a log's clock stands in the calendar: weekdays and hours, in local standard time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from hpcsimkit.workload import Workload

__all__ = ["LocalTime", "local_time"]

DAY = 86_400

FIRST_THURSDAY = 3 * DAY
"""1 January 1970, second 0 of Unix time, was a Thursday: so long after a Monday's midnight [s]."""

CALENDAR_FROM, CALENDAR_TO = 315_532_800, 32_503_680_000
"""Unix times believed to be a date [s]: the years 1980 to 3000."""


class LocalTime(NamedTuple):
    """How a log's clock is read.

    Attributes
    ----------
    start : int or None
        Unix time of the log's second 0; None if the log does not tell.
    zone : timezone
        Local standard time, summer and winter alike; UTC if the log does not tell.
    """

    start: int | None
    zone: timezone

    @property
    def offset(self) -> int:
        """What to add to times of the log for whole weeks to begin on a Monday at 0:00 local time [s].

        0 if the log does not tell: its weeks begin at its own second 0.
        """
        if self.start is None:
            return 0
        offset = self.zone.utcoffset(None) or timedelta()
        return self.start + int(offset.total_seconds()) + FIRST_THURSDAY


def local_time(workload: Workload) -> LocalTime:
    """Return how the clock of a log with at least one job is read.

    The header tells: ``UnixStartTime``, and ``TimeZone`` [s] or ``TimeZoneString`` (its standard time at the
    first submission). A start that would lead out of the years 1980 to 3000 is not believed.

    >>> header = {"UnixStartTime": "843480031", "TimeZone": "3600"}
    >>> w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, header=header)
    >>> local_time(w).offset % (7 * 86_400) // 3600  # Monday, 23 September 1996, 13:00
    13
    """
    try:
        start = int(workload.header.get("UnixStartTime", ""))
    except ValueError:
        return LocalTime(None, UTC)
    first, last = start + int(workload.submit_time.min()), start + int(workload.submit_time.max())
    if not CALENDAR_FROM <= first <= last <= CALENDAR_TO:
        return LocalTime(None, UTC)
    return LocalTime(start, _zone(workload.header, first))


def _zone(header: Mapping[str, str], moment: int) -> timezone:
    from zoneinfo import ZoneInfo

    try:
        return timezone(timedelta(seconds=int(header.get("TimeZone", ""))))
    except ValueError:
        pass
    try:
        local = datetime.fromtimestamp(moment, ZoneInfo(header.get("TimeZoneString", "UTC").strip()))
    except (KeyError, ValueError, OSError):  # no such zone, or no table of zones on this machine
        return UTC
    return timezone((local.utcoffset() or timedelta()) - (local.dst() or timedelta()))
