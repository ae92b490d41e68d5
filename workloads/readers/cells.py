"""Parsers for the cells of a log: integers, durations and points in time.

Each parser takes the stripped text of a cell and returns an integer, or raises
:class:`~hpcsimkit.errors.UsageError` with a one-line message that names the expected form and the text found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.workloads.readers.local_time import zone_named

__all__ = ["amount", "clock_of", "date", "duration", "has_fraction", "milliseconds", "moment", "whole"]

WHOLE = re.compile(r"(-?\d{1,18})(\.0*)?")
SECONDS = re.compile(r"-?\d{1,15}(\.\d*)?")
DURATION = re.compile(
    r"(?:(?P<days>\d{1,8})-(?=\d+:\d+:))?(?:(?P<hours>\d{1,9}):(?=\d+:))?"
    r"(?P<minutes>\d{1,9}):(?P<seconds>\d{1,2}(?:\.\d*)?)"
)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)?")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
UNIX_TIME = re.compile(r"\d{9,11}")
NO_MOMENT = {"", "unknown", "none", "n/a", "invalid"}
"""Cells that stand for a missing time (in lower case)."""


def whole(text: str) -> int:
    """Return an integer; a fraction of zero, as added by spreadsheets, is accepted.

    >>> whole("12"), whole("-1"), whole("31000000.0")
    (12, -1, 31000000)
    """
    match = WHOLE.fullmatch(text)
    if match is None or not text.isascii():
        raise UsageError(f"a whole number needed, found {text!r}")
    return int(match[1])


def amount(text: str) -> int:
    """Return an integer from 0 to 10^9.

    >>> amount("16")
    16
    """
    number = whole(text)
    if not 0 <= number <= 10**9:
        raise UsageError(f"a whole number from 0 to 10^9 needed, found {text!r}")
    return number


def duration(text: str) -> int:
    """Return a duration [s], rounded to whole seconds.

    Accepted forms are plain seconds (``86400``, ``12.5``) and the forms of Slurm: ``MM:SS``, ``HH:MM:SS`` and
    ``D-HH:MM:SS``, each with or without a fraction of the seconds. Seconds must be below 60, minutes below 60
    if there are hours, and hours below 24 if there are days. ``1-02`` (days and hours) is rejected as
    ambiguous.

    >>> duration("86400"), duration("03:04"), duration("02:03:04"), duration("1-02:03:04")
    (86400, 184, 7384, 93784)
    >>> duration("1-2:99:00")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found '1-2:99:00'
    """
    if not text.isascii():
        match = None
    elif SECONDS.fullmatch(text):
        return round(float(text))
    else:
        match = DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found {text!r}")
    days, hours, minutes = (int(match[part] or 0) for part in ("days", "hours", "minutes"))
    seconds = float(match["seconds"])
    if seconds >= 60 or (match["hours"] and minutes >= 60) or (match["days"] and hours >= 24):
        raise UsageError(f"a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found {text!r}")
    return ((days * 24 + hours) * 60 + minutes) * 60 + round(seconds)


def milliseconds(text: str) -> int:
    """Return a time given in milliseconds, rounded to whole seconds.

    >>> milliseconds("1499"), milliseconds("1500")
    (1, 2)
    """
    return (whole(text) + 500) // 1000


def has_fraction(text: str) -> int:
    """Return 1 if a number or duration has a non-zero fraction, which rounding would drop, else 0.

    >>> has_fraction("12.50"), has_fraction("12.0"), has_fraction("12")
    (1, 0, 0)
    """
    return int(bool(text.partition(".")[2].strip("0")))


def moment(zone: tzinfo | None = None) -> Callable[[str], int]:
    """Return a parser for points in time; -1 stands for a missing time (``Unknown``, ``None``).

    Accepted forms are ``2024-01-31T23:59:59``, also with a blank instead of the T, with or without an offset
    from UTC (``+01:00``, ``Z``), and Unix time. Without an offset and without a zone, the result is the
    number of seconds of local time since 1 January 1970, which jumps by an hour when daylight saving time
    begins or ends.

    Parameters
    ----------
    zone : tzinfo, optional
        Time zone of times without an offset; the results are then Unix times. A time that occurs twice in
        autumn is taken as its first occurrence.

    >>> moment()("1970-01-02T00:00:01"), moment()("1970-01-02T00:00:01+01:00"), moment()("Unknown")
    (86401, 82801, -1)
    """

    def read(text: str) -> int:
        if text.lower() in NO_MOMENT:
            return UNKNOWN
        if UNIX_TIME.fullmatch(text):
            return int(text)
        try:
            if not MOMENT.fullmatch(text) or not text.isascii():
                raise ValueError
            time = datetime.fromisoformat(text)
            return int((time if time.tzinfo else time.replace(tzinfo=zone or UTC)).timestamp())
        except (ValueError, OverflowError):
            raise UsageError(f"a time such as 2024-01-31T23:59:59 needed, found {text!r}") from None

    return read


def date(text: str, zone: tzinfo | None = None) -> int:
    """Return a day (its midnight) or a point in time as Unix time [s]; see :func:`moment`.

    >>> date("1970-01-02"), date("1970-01-02T00:00:01")
    (86400, 86401)
    """
    found = moment(zone)(f"{text}T00:00:00" if DAY.fullmatch(text) else text)
    if found == UNKNOWN:
        raise UsageError(f"a date such as 2024-01-31 or 2024-01-31T23:59:59 needed, found {text!r}")
    return found


def clock_of(timezone: str | None) -> tzinfo | None:
    """Return the time zone with a given name, or None for None.

    Raises
    ------
    UsageError
        If there is no such zone, or this computer has no time zone database.
    """
    if timezone is None:
        return None
    try:
        return zone_named(timezone)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"a time zone such as 'Europe/Berlin' needed, found {timezone!r}") from None
