"""Parsers for the cells of a log: integers, durations and points in time.

Each parser takes the stripped text of a cell and returns an integer, or raises
:class:`~hpcsimkit.errors.UsageError` with a one-line message that names the expected form and the text found.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.workloads.readers.local_time import zone_named
from hpcsimkit.workloads.readers.tables import MISSING, Cells, Letters, digits, whole_numbers

__all__ = [
    "UNIX_TIME",
    "Moment",
    "amount",
    "clock_of",
    "date",
    "decimal",
    "duration",
    "has_fraction",
    "milliseconds",
    "moment",
    "whole",
]

WHOLE = re.compile(r"(-?\d{1,18})(\.0*)?")
SECONDS = re.compile(r"-?\d{1,15}(\.\d*)?")
DURATION = re.compile(
    r"(?:(?P<days>\d{1,8})(?:-| days? )(?=\d+:\d+:))?(?:(?P<hours>\d{1,9}):(?=\d+:))?"
    r"(?P<minutes>\d{1,9}):(?P<seconds>\d{1,2}(?:\.\d*)?)"
)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?( ?(Z|[+-]\d\d:?\d\d))?")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
UNIX_TIME = re.compile(r"\d{9,11}(\.\d*)?")
EXPONENT = re.compile(r"-?\d(?:\.\d{1,17})?[eE]\+?\d{1,2}")
FRACTION = re.compile(r"\.(\d*)")
NO_MOMENT = MISSING | {"unknown", "invalid"}
"""Cells that stand for a missing time (in lower case)."""


def decimal(text: str) -> str:
    """Return a number with an exponent, as R and spreadsheets write round ones, without it.

    >>> decimal("1e+05"), decimal("1.7092764E9"), decimal("12"), decimal("1e400")
    ('100000', '1709276400', '12', '1e400')
    """
    return f"{Decimal(text):f}" if EXPONENT.fullmatch(text) and text.isascii() else text


def whole(text: str) -> int:
    """Return an integer; a fraction of zero, as added by spreadsheets, is accepted.

    >>> whole("12"), whole("-1"), whole("31000000.0"), whole("1e+05")
    (12, -1, 31000000, 100000)
    """
    match = WHOLE.fullmatch(decimal(text))
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

    Accepted forms are plain seconds (``86400``, ``12.5``), the forms of Slurm, ``MM:SS``, ``HH:MM:SS`` and
    ``D-HH:MM:SS``, and that of pandas, ``D days HH:MM:SS``, each with or without a fraction of the seconds.
    Seconds must be below 60, minutes below 60 if there are hours, and hours below 24 if there are days.
    ``1-02`` (days and hours) is rejected as ambiguous.

    >>> duration("86400"), duration("03:04"), duration("02:03:04"), duration("1-02:03:04")
    (86400, 184, 7384, 93784)
    >>> duration("1-2:99:00")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found '1-2:99:00'
    """
    if not text.isascii():
        match = None
    elif SECONDS.fullmatch(decimal(text)):
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
    found = FRACTION.search(decimal(text))
    return int(found is not None and bool(found[1].strip("0")))


def moment(zone: tzinfo | None = None, *, fold: int = 0) -> Moment:
    """Return a parser for points in time; -1 stands for a missing time (``Unknown``, ``None``).

    Accepted forms are ``2024-01-31T23:59:59``, also with a blank instead of the T, with or without a fraction
    of the seconds, which is rounded, and an offset from UTC (``+01:00``, ``Z``), and Unix time. Without an
    offset and without a zone, the result is the number of seconds of local time since 1 January 1970, which
    jumps by an hour when daylight saving time begins or ends.

    Parameters
    ----------
    zone : tzinfo, optional
        Time zone of times without an offset; the results are then Unix times.
    fold : {0, 1}
        Occurrence of a local time that occurs twice in autumn: the first or the second. Default: 0.

    >>> moment()("1970-01-02T00:00:01"), moment()("1970-01-02T00:00:01+01:00"), moment()("Unknown")
    (86401, 82801, -1)
    """
    return Moment(zone, fold)


class Moment:
    """Parser for points in time; see :func:`moment`.

    Parameters
    ----------
    zone : tzinfo, optional
        Time zone of times without an offset.
    fold : {0, 1}
        Occurrence of a local time that occurs twice. Default: 0.
    """

    def __init__(self, zone: tzinfo | None = None, fold: int = 0) -> None:
        self.zone = zone
        self.fold = fold

    def __call__(self, text: str) -> int:
        """Return the seconds of a cell."""
        if text.lower() in NO_MOMENT:
            return UNKNOWN
        if UNIX_TIME.fullmatch(decimal(text)) and text.isascii():
            return round(float(text))
        try:
            if not MOMENT.fullmatch(text) or not text.isascii():
                raise ValueError
            time = datetime.fromisoformat(text.replace(" +", "+").replace(" -", "-").replace(" Z", "Z"))
            time = time if time.tzinfo else time.replace(tzinfo=self.zone or UTC, fold=self.fold)
            return int(time.timestamp() + 0.5)
        except (ValueError, OverflowError):
            raise UsageError(f"a time such as 2024-01-31T23:59:59 needed, found {text!r}") from None

    def bulk(self, cells: Cells) -> tuple[Column, NDArray[np.intp]]:
        """Return the times of cells in the usual forms, and the rows of all others."""
        letters, unix = digits(cells, 11)
        unix &= letters[:, 8] != 0  # of 9 digits or more
        values = np.full(len(letters), UNKNOWN)
        values[unix] = whole_numbers(letters[unix])
        local = np.zeros_like(unix)
        if not unix.all():
            local = _of_form(letters)
            seconds, exists = _local_seconds(letters[local])
            local[local] = exists
            values[local] = seconds[exists] - self._offsets(seconds[exists])
        return values, np.flatnonzero(~(unix | local))

    def _offsets(self, seconds: Column) -> Column:
        """Return the offsets from UTC at local times [s]; they change at whole quarters of hours."""
        if self.zone is None:
            return np.zeros_like(seconds)
        quarters, rows = np.unique(seconds // 900, return_inverse=True)
        offsets = []
        for quarter in quarters.tolist():
            local = datetime.fromtimestamp(quarter * 900, UTC).replace(tzinfo=self.zone, fold=self.fold)
            offsets.append(quarter * 900 - int(local.timestamp()))
        return np.array(offsets, dtype=np.int64)[rows]


FORM = "0000-00-00T00:00:00"
"""Form of the usual times, with 0 for a digit."""


def _of_form(letters: Letters) -> NDArray[np.bool_]:
    """Return which cells are times of the usual form."""
    fits = (letters[:, len(FORM) :] == 0).all(axis=1)
    for place, sign in enumerate(FORM):
        found = letters[:, place]
        if sign == "0":
            fits &= (found >= ord("0")) & (found <= ord("9"))
        else:
            fits &= (found == ord(sign)) | ((sign == "T") & (found == ord(" ")))
    return fits


def _local_seconds(letters: Letters) -> tuple[Column, NDArray[np.bool_]]:
    """Return the seconds since 1970 of cells of the usual form, and whether there is such a time.

    >>> from hpcsimkit.workloads.readers.tables import letters_of
    >>> _local_seconds(letters_of(["1970-01-02T00:00:01", "2024-02-29 23:59:59", "2023-02-29T00:00:00"]))
    (array([     86401, 1709251199, 1677628800]), array([ True,  True, False]))
    """
    year, month, day, hour, minute, second = (
        whole_numbers(letters[:, begin:end])
        for begin, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))
    )
    months = (year - 1970) * 12 + month - 1
    first, following = ((months + more).astype("datetime64[M]").astype("datetime64[D]") for more in (0, 1))
    seconds = (((first.astype(np.int64) + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    exists = (
        (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (day <= (following - first).astype(np.int64))
    )
    return seconds, exists & (hour < 24) & (minute < 60) & (second < 60)


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
