"""Calendar time of a log's clock: dates in local time, and weeks in local standard time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from hpcsimkit.jobs.workload import SCALED, Workload

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import pandas
    from numpy.typing import ArrayLike

__all__ = ["CLOCK_KEYS", "Calendar", "LocalTime", "calendar_of", "local_time", "zone_named"]

CLOCK_KEYS = ("UnixStartTime", "TimeZone", "TimeZoneString")
"""Header keys that relate the clock of a log to calendar time."""

DAY = 86_400

FIRST_THURSDAY = 3 * DAY
"""Time from midnight on Monday to second 0 of Unix time, Thursday, 1 January 1970 [s]."""

CALENDAR_FROM, CALENDAR_TO = 315_532_800, 32_503_680_000
"""Plausible Unix times of a log [s]: the years 1980 to 3000."""

ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
"""Names of the time zone database, such as ``America/Argentina/Ushuaia``."""


class LocalTime(NamedTuple):
    """Relation of a log's clock to calendar time.

    Attributes
    ----------
    start : int or None
        Unix time of the log's second 0 [s]; None if unknown.
    zone : timezone
        Time zone of local standard time, without daylight saving time; UTC if unknown.
    """

    start: int | None
    zone: timezone

    @property
    def offset(self) -> int:
        """Offset to add to the log's times so that weeks start on Monday at 0:00 local time [s].

        The offset is 0 if the start is unknown; weeks then start at second 0 of the log's clock.
        """
        if self.start is None:
            return 0
        offset = self.zone.utcoffset(None) or timedelta()
        return self.start + int(offset.total_seconds()) + FIRST_THURSDAY


def local_time(workload: Workload) -> LocalTime:
    """Return the relation of a log's clock to calendar time, for a log with at least one job.

    The header keys are ``UnixStartTime``, and ``TimeZone`` [s] or ``TimeZoneString`` (its standard time at
    the first submission). A start that puts jobs outside the years 1980 to 3000 is ignored.

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


class Calendar(NamedTuple):
    """Dates of a log's clock in local time, with daylight saving time where the zone is known by name.

    Attributes
    ----------
    start : int
        Unix time of the log's second 0 [s].
    zone : tzinfo
        Time zone; UTC if the log names none.
    name : str
        Name of the zone, such as ``Europe/Stockholm`` or ``UTC+01:00``; empty if the log names none. The
        clock of such a log may be local time or UTC.
    """

    start: int
    zone: tzinfo
    name: str

    @property
    def label(self) -> str:
        """Description of the times, for an axis."""
        if self.name == "UTC":
            return "UTC"
        return f"local time, {self.name}" if self.name else "clock of the log, time zone not given"

    def dates(self, seconds: ArrayLike) -> pandas.DatetimeIndex:
        """Return the local dates of times [s of the log's clock], without a zone.

        >>> Calendar(0, UTC, "UTC").dates([0, 3600]).hour.tolist()
        [0, 1]
        """
        import numpy as np
        import pandas

        moments = pandas.to_datetime(np.asarray(seconds) + self.start, unit="s", utc=True)
        return moments.tz_convert(self.zone).tz_localize(None)

    def text(self, second: int) -> str:
        """Return a time [s of the log's clock] as a date with the name of the zone.

        >>> Calendar(843480031, zone_named("Europe/Stockholm"), "Europe/Stockholm").text(0)
        'Mon 23 Sep 1996 14:00 CEST'
        """
        form = "%a %d %b %Y %H:%M" + (" %Z" if self.name else "")
        return datetime.fromtimestamp(self.start + second, self.zone).strftime(form)


def calendar_of(workload: Workload) -> Calendar | None:
    """Return the dates of a log's clock; None for a log without dates, or with a scaled load.

    The zone is that of ``TimeZoneString`` in the header, else the constant offset ``TimeZone`` [s].

    >>> header = {"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"}
    >>> w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, header=header)
    >>> calendar_of(w).dates([0])[0].isoformat(), calendar_of(w.scale_load(2))
    ('1996-09-23T14:00:31', None)
    """
    start = local_time(workload).start if len(workload) else None
    if start is None or any(step.startswith(SCALED) for step in workload.provenance):
        return None
    name = workload.header.get("TimeZoneString", "").strip()
    try:
        return Calendar(start, zone_named(name), name)
    except (KeyError, ValueError, OSError):  # no such zone, or no table of zones on this machine
        offset = _offset(workload.header)
    return Calendar(start, offset or UTC, str(offset or ""))


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone of the time zone database.

    Raises
    ------
    KeyError, OSError
        There is no such zone, or no database on this machine.
    ValueError
        The text is no name of a zone. (`zoneinfo` would look for a package of any name.)

    Examples
    --------
    >>> zone_named("Europe/Berlin").key
    'Europe/Berlin'
    """
    from zoneinfo import ZoneInfo

    if not ZONE_NAME.fullmatch(name):
        raise ValueError(f"no name of a time zone: {name!r}")
    return ZoneInfo(name)


def _zone(header: Mapping[str, str], moment: int) -> timezone:
    if (offset := _offset(header)) is not None:
        return offset
    try:
        local = datetime.fromtimestamp(moment, zone_named(header.get("TimeZoneString", "UTC").strip()))
    except (KeyError, ValueError, OSError):  # no such zone, or no table of zones on this machine
        return UTC
    return timezone((local.utcoffset() or timedelta()) - (local.dst() or timedelta()))


def _offset(header: Mapping[str, str]) -> timezone | None:
    """Return the constant offset that a header names, if any."""
    try:
        return timezone(timedelta(seconds=int(header.get("TimeZone", ""))))
    except (ValueError, OverflowError):
        return None
