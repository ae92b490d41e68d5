"""Time axes: local dates where the log has them, else the time since the first submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.reports.figures import DAY, time_unit, width_of
from hpcsimkit.workloads.readers.local_time import Calendar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICK = 0.55
"""Least distance of ticks [inches]."""

LETTER = 0.07
"""Approximate width of a letter of a label [inches]."""


class TimeAxis(NamedTuple):
    """Horizontal axis over a part of a log's clock.

    Attributes
    ----------
    begin, end : float
        Limits of the axis [s of the log's clock].
    calendar : Calendar or None
        Dates of the clock; None for an axis that begins at 0, in a suitable unit.
    since : str
        End of the label "time ..." of an axis without dates.

    Examples
    --------
    >>> TimeAxis(100, 7300, None).at([100, 3700]).tolist()
    [0.0, 60.0]
    """

    begin: float
    end: float
    calendar: Calendar | None
    since: str = "since the first submission"

    def at(self, time: ArrayLike) -> NDArray[np.float64]:
        """Return the positions of times [s of the log's clock]; with dates, days since 1 January 1970."""
        if self.calendar is not None:
            return (np.asarray(time, dtype=float) + self.calendar.start) / DAY
        return (np.asarray(time, dtype=float) - self.begin) / time_unit(self.end - self.begin)[1]

    def apply(self, ax: Axes) -> None:
        """Set the limits, the ticks and the label of the horizontal axis."""
        limits: Any = self.at([self.begin, self.end])
        ax.set_xlim(limits)
        if self.calendar is None:
            ax.set_xlabel(f"time {self.since} [{time_unit(self.end - self.begin)[0]}]")
            return
        from matplotlib import dates

        named: Any = dates  # the type stubs leave these classes untyped
        most = max(3, int(width_of(ax) / TICK))
        locator = named.AutoDateLocator(tz=self.calendar.zone, minticks=min(4, most - 1), maxticks=most)
        # Few ticks need steps that Matplotlib does not try (it warns): a year, a day, an hour, a minute.
        for unit, steps in (
            (dates.MONTHLY, 12),
            (dates.HOURLY, 24),
            (dates.MINUTELY, 60),
            (dates.SECONDLY, 60),
        ):
            locator.intervald[unit] = [*locator.intervald[unit], steps]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(
            named.ConciseDateFormatter(locator, tz=self.calendar.zone, show_offset=False)
        )
        days = [f"{date:%-d %b %Y}" for date in self.calendar.dates([int(self.begin), int(self.end)])]
        span, clock = " to ".join(dict.fromkeys(days)), self.calendar.label
        fits = LETTER * len(span + clock) < width_of(ax)
        ax.set_xlabel(f"{span},{' ' if fits else chr(10)}{clock}", loc="left")
