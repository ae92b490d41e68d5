"""Restarts: what a stopped job keeps of its work, and when it may start again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.results.attempts import Outcome

__all__ = ["Progress", "Restart", "daly", "young"]


class Progress(NamedTuple):
    """The work of an attempt that was stopped.

    Attributes
    ----------
    kept : int
        Work that the next attempt need not do again [s].
    lost : int
        Work that it does again [s].
    """

    kept: int
    lost: int


@dataclass(frozen=True)
class Restart:
    """What a stopped job keeps of its work, and when it may start again.

    Work is measured in seconds of the job's run time. By default, a preempted job continues where it was
    stopped, since there is time to save its state, and a job that fails, or whose test is over, begins anew.

    Parameters
    ----------
    preempted : {"continue", "anew"}
        Continuation of a preempted job: where it was stopped, or anew (from its last checkpoint). Default:
        ``"continue"``.
    delay : int
        Time from a stop until the job joins the queue again [s], >= 0. Default: 0.
    limit : int, optional
        Number of failures from which a job does not start again, >= 0: with 0, the first failure is final. By
        default there is no limit.
    checkpoint : int, optional
        Work between two checkpoints [s], >= 1; by default there are none. The work is complete at the end, so
        that a job writes none there.
    checkpoint_cost : int
        Time of each checkpoint, in which no work is done [s], >= 0. Default: 0.
    cost : int
        Time at the beginning of each attempt but the first, in which no work is done [s], >= 0. Default: 0.

    Examples
    --------
    600 s of work with a checkpoint every 60 s take 9 s more; a failure after 150 s loses 28 s of work:

    >>> restart = Restart(checkpoint=60, checkpoint_cost=1)
    >>> restart.duration(600, again=False)
    609
    >>> restart.progress(150, 600, again=False, why=Outcome.FAILED)
    Progress(kept=120, lost=28)
    """

    preempted: Literal["continue", "anew"] = "continue"
    delay: int = 0
    limit: int | None = None
    checkpoint: int | None = None
    checkpoint_cost: int = 0
    cost: int = 0

    def check(self) -> None:
        """Raise a UsageError if a parameter is invalid."""
        if self.preempted not in ("continue", "anew"):
            raise UsageError(f"restart: preempted needs 'continue' or 'anew', found {self.preempted!r}")
        for name in ("delay", "checkpoint_cost", "cost", "limit", "checkpoint"):
            value, least = getattr(self, name), 1 if name == "checkpoint" else 0
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not whole and not (value is None and name in ("limit", "checkpoint")):
                raise UsageError(f"restart: {name} needs a whole number, at least {least}, found {value!r}")
        if self.checkpoint is None and self.checkpoint_cost:
            raise UsageError(f"restart: checkpoint_cost={self.checkpoint_cost} needs a checkpoint interval")

    @property
    def plain(self) -> bool:
        """Whether the first attempt of a job takes as long as its work."""
        return self.checkpoint is None

    def duration(self, work: int, again: bool) -> int:
        """Return the time that an attempt needs for its work [s].

        Parameters
        ----------
        work : int
            Work to do [s].
        again : bool
            Whether the job has run before.
        """
        before = self.cost if again else 0
        if self.checkpoint is None:
            return before + work
        return before + work + max(-(-work // self.checkpoint) - 1, 0) * self.checkpoint_cost

    def progress(self, elapsed: int, work: int, again: bool, why: Outcome) -> Progress:
        """Return the work that an attempt has done when it is stopped, and how much of it is kept.

        Parameters
        ----------
        elapsed : int
            Time since the start of the attempt [s].
        work : int
            Work that the attempt had to do [s].
        again : bool
            Whether the job had run before.
        why : Outcome
            The reason of the stop.
        """
        elapsed = max(elapsed - (self.cost if again else 0), 0)
        saved, done = 0, elapsed
        if self.checkpoint is not None:
            cycles, within = divmod(elapsed, self.checkpoint + self.checkpoint_cost)
            saved = cycles * self.checkpoint
            done = saved + min(within, self.checkpoint)
        saved, done = min(saved, work), min(done, work)
        if why not in (Outcome.FAILED, Outcome.TESTED) and self.preempted == "continue":
            saved = done
        return Progress(saved, done - saved)

    def gives_up(self, failures: int) -> bool:
        """Return whether a job that has failed so often does not start again."""
        return self.limit is not None and failures > self.limit


def young(cost: float, mtbf: float) -> int:
    """Return the work between two checkpoints that loses least time [s], to first order.

    It is ``sqrt(2 x cost x mtbf)`` (Young, CACM 17(9), 1974).

    Parameters
    ----------
    cost : float
        Time of a checkpoint [s], > 0.
    mtbf : float
        Mean time between the failures of a job [s], > 0: that of a node, divided by the number of its nodes.

    Examples
    --------
    >>> young(60, 86400)
    3220
    """
    return max(round(math.sqrt(2 * cost * mtbf)), 1)


def daly(cost: float, mtbf: float) -> int:
    """Return the work between two checkpoints that loses least time [s], to higher order.

    (Daly, FGCS 22(3), 2006, eq. 37.) Parameters are those of :func:`young`.

    Examples
    --------
    >>> daly(60, 86400)
    3180
    """
    if cost >= 2 * mtbf:
        return max(round(mtbf), 1)
    ratio = cost / (2 * mtbf)
    return max(round(math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost), 1)
