"""Calendars: capacity that is known ahead to be gone for some time, such as during maintenance."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from hpcsimkit.errors import UsageError

__all__ = ["Calendar", "Window"]


@dataclass(frozen=True)
class Window:
    """A time during which nodes are gone.

    Parameters
    ----------
    start, end : int
        Beginning and end [s], on the clock of the workload; the end is excluded.
    nodes : int
        Number of nodes, >= 1.
    """

    start: int
    end: int
    nodes: int


@dataclass(frozen=True)
class Calendar:
    """Windows during which nodes of a cluster are gone, all known from the beginning.

    No job starts that, by its estimate, would run into a window without enough nodes beside it. A job that
    exceeds its estimate keeps its nodes; the window then has fewer until the job ends.

    Parameters
    ----------
    windows : sequence of Window
        The windows, in any order; they may overlap. Default: none.

    Attributes
    ----------
    times : list of int
        Times at which the number of nodes that are gone changes [s].

    Examples
    --------
    >>> calendar = Calendar([Window(10, 20, nodes=3), Window(15, 30, nodes=1)])
    >>> calendar.steps
    [(10, 3), (15, 4), (20, 1), (30, 0)]
    >>> calendar.gone(9), calendar.gone(10), calendar.gone(20)
    (0, 3, 1)
    >>> calendar.between(10, 30)
    [(15, 4), (20, 1)]
    """

    windows: Sequence[Window] = ()
    times: list[int] = field(init=False, repr=False, compare=False)
    _gone: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", tuple(self.windows))
        for each in self.windows:
            if not isinstance(each, Window) or not each.start < each.end or each.nodes < 1:
                raise UsageError(
                    f"a calendar needs windows that end after they start, with 1 node or more, found {each!r}"
                )
        changes: dict[int, int] = {}
        for each in self.windows:
            changes[each.start] = changes.get(each.start, 0) + each.nodes
            changes[each.end] = changes.get(each.end, 0) - each.nodes
        times = sorted(time for time, change in changes.items() if change)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "_gone", [0, *accumulate(changes[time] for time in times)])

    def __bool__(self) -> bool:
        return bool(self.windows)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Each time [s] from which another number of nodes is gone, and the number."""
        return list(zip(self.times, self._gone[1:], strict=True))

    def gone(self, at: int) -> int:
        """Return the number of nodes that are gone at a time [s]."""
        return self._gone[bisect_right(self.times, at)]

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the steps after `start` and before `end` [s]: times, and numbers of nodes that are gone."""
        first, last = bisect_right(self.times, start), bisect_left(self.times, end)
        return list(zip(self.times[first:last], self._gone[first + 1 : last + 1], strict=True))
