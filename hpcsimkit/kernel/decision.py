"""Decisions, and open seats that leave them to an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import PolicyError, UsageError, lacking
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.holes import Hole
from hpcsimkit.kernel.stage import Stage
from hpcsimkit.kernel.system import System

__all__ = ["ABOUT_ONE_JOB", "Answering", "Decision", "External"]

ABOUT_ONE_JOB = ("inspector", "placement", "gate", "tester")
"""Seats whose decisions are about one job, and whose options are no jobs."""


class Decision:
    """A decision of a pass at an open seat; the clock does not advance until it is answered.

    Attributes
    ----------
    stage : str
        Name of the seat: ``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``,
        ``"preemptor"``, ``"gate"`` or ``"tester"``.
    options : sequence
        The valid answers, never empty, built on first access: jobs (order, backfiller, preemptor; a final
        ``None`` declines, where allowed), ``True`` and ``False`` (inspector, gate, tester), or
        allocations (placement).
    system : System
        The state of the simulated cluster, or of the partition to which the decision belongs.
    job : Job or None
        The job that is inspected, admitted, placed, tested, or does not fit; None for the order.
    seconds : int or None
        Longest time of the test in question [s]; None if no test is.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [1, 1]}, machine_size=1)
    >>> simulation = Simulation(w, Pipeline(order=External()))
    >>> decision = simulation.next_decision()
    >>> decision.stage, len(decision.options), decision.default is decision.options[0]
    ('order', 2, True)
    """

    __slots__ = ("_build", "_default", "_hole", "_options", "_rows", "job", "seconds", "stage", "system")

    def __init__(
        self,
        stage: str,
        system: System,
        job: Job | None,
        options: Callable[[], Sequence[Any]],
        default: Callable[[], Any],
        rows: NDArray[np.int64] | None = None,
        seconds: int | None = None,
        hole: Callable[[], Hole] | None = None,
    ) -> None:
        self.stage = stage
        self.system = system
        self.job = job
        self._build = options
        self._default = default
        self._options: Sequence[Any] | None = None
        self._rows = rows
        self.seconds = seconds
        self._hole = hole

    @property
    def options(self) -> Sequence[Any]:
        """The valid answers."""
        if self._options is None:
            self._options = self._build()
        return self._options

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the jobs offered by an order, a backfiller or a dispatch, int64, shape (jobs,).

        Raises
        ------
        PolicyError
            The options are no jobs.
        """
        if self._rows is None:
            if self.stage in ABOUT_ONE_JOB or self.seconds is not None:
                raise PolicyError(f"a decision among jobs is needed, found {self!r}")
            rows = [job.index for job in self.options if job is not None]
            self._rows = np.array(rows, dtype=np.int64)
        return self._rows

    @property
    def hole(self) -> Hole:
        """The capacity that reservations leave for the test in question, without that of other tests.

        Raises
        ------
        PolicyError
            No test is in question.
        """
        if self._hole is None:
            raise PolicyError(f"a decision on a test is needed, found {self!r}")
        return self._hole()

    @property
    def default(self) -> Any:
        """The answer of the heuristic behind the seat."""
        return self._default()

    @property
    def partition(self) -> str:
        """The name of the partition, empty on a cluster without partitions."""
        return self.system.partition

    def position(self, choice: Any) -> int:
        """Return the position of a choice among the options, compared by identity, then by equality.

        Raises
        ------
        UsageError
            The choice is none of the options.
        """
        options = list(self.options)
        chosen = [place for place, option in enumerate(options) if option is choice] or [
            place for place, option in enumerate(options) if _equal(option, choice)
        ]
        if not chosen:
            raise UsageError(f"{self!r} has no option {choice!r}")
        return chosen[0]

    def __repr__(self) -> str:
        job = f", job {self.job.id}" if self.job is not None else ""
        where = f", partition {self.partition!r}" if self.partition else ""
        return f"Decision({self.stage!r}, t={self.system.now} s{where}{job}, {len(self.options)} options)"


def _equal(option: Any, choice: Any) -> bool:
    """Return whether a choice equals an option: jobs by their attributes, arrays by their content."""
    if isinstance(option, np.ndarray) or isinstance(choice, np.ndarray):
        return np.array_equal(option, choice)
    return bool(option == choice)


class External(Stage):
    """An open seat: the pass is suspended and yields a :class:`Decision`.

    Parameters
    ----------
    base : Stage, optional
        The heuristic behind the seat, which provides ``decision.default``. At the order seat it also sorts
        the queue (arrival order by default); at the backfiller seat it determines the candidates (by default
        those that EASY admits).
    decline : bool
        Whether order and backfiller decisions also offer ``None``, to start no further job now. It is not
        offered if no job runs and no event is pending. Default: False.
    skip : bool
        Whether a single option is taken without a decision (and without a record of a choice). Default:
        False.

    Examples
    --------
    >>> External().open
    True
    """

    open = True

    def __init__(self, base: Any = None, *, decline: bool = False, skip: bool = False) -> None:
        self.base = base
        self.decline = decline
        self.skip = skip

    def reset(self, system: System) -> None:
        """Reset the heuristic behind the seat."""
        if self.base is not None:
            self.base.reset(system)


class Answering(External):
    """A seat that answers its own decisions, such as a trained agent; the pass is not suspended.

    Examples
    --------
    >>> class Last(Answering):
    ...     def answer(self, decision):
    ...         return len(decision.options) - 1
    >>> Last().open
    False
    """

    open = False

    def answer(self, decision: Decision) -> int:
        """Return the position of the chosen option, counted from 0."""
        raise lacking(self, "a method answer(decision)")
