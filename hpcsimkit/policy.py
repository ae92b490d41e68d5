"""What a scheduler is made of: the policy, and the stages of a pipeline.

To write a scheduler of your own, in the order of effort:

* an :class:`Order` with ``key(job)``: which job is first, by what never changes;
* an :class:`Order` with ``scores(jobs, now)``: the same, by what changes with time, for all jobs at once;
* another stage: :class:`Inspector`, :class:`Placement`, :class:`Backfiller`, :class:`Estimator`;
* a :class:`Policy` with ``schedule(system)``: the whole pass.

Each run works on its own deep copy of the policy, so whatever :meth:`Policy.reset` or a pass stores on
``self`` belongs to that run alone.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.cluster import Allocation, Level
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import JobColumns

if TYPE_CHECKING:
    from hpcsimkit.decision import Decision
    from hpcsimkit.system import System

__all__ = [
    "FCFS",
    "Backfiller",
    "Estimator",
    "Inspector",
    "Order",
    "Placement",
    "Policy",
    "Requested",
    "Stage",
    "parts",
]


class Parameters:
    """Equality and representation from what the constructor stored, as scikit-learn's estimators have.

    What has its default value is not shown; of a large array or list, size and a hash are.
    """

    def __repr__(self) -> str:
        kind: type = type(self)
        values = (
            f"{name}={_shown(getattr(self, name))}"
            for name, default in _defaults(kind).items()
            if hasattr(self, name) and _shown(getattr(self, name)) != default
        )
        return f"{kind.__name__}({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@cache
def _defaults(kind: type) -> dict[str, str]:
    """Return the parameters of a class and how their default values are shown."""
    return {name: _shown(each.default) for name, each in inspect.signature(kind).parameters.items()}


def _shown(value: Any) -> str:
    """Return a representation by which values of parameters can be told apart."""
    if isinstance(value, np.ndarray) and value.size > 10:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"<{value.dtype} array {value.shape} {digest[:16]}>"
    if isinstance(value, list) and len(value) > 20:
        return f"<list of {len(value)} {hashlib.sha256(repr(value).encode()).hexdigest()[:16]}>"
    return repr(value)


def parts(policy: Parameters) -> Iterator[Parameters]:
    """Yield a policy or stage and, one after the other, all stages it is made of."""
    yield policy
    for value in vars(policy).values():
        if isinstance(value, Parameters):
            yield from parts(value)


class Stage(Parameters):
    """A seat of a pipeline: whoever sits on it answers one question."""

    open = False
    """Whether the seat is answered from outside (see :class:`~hpcsimkit.decision.External`)."""

    def reset(self, system: System) -> None:
        """Prepare the run's own copy before the first event; randomness comes from ``system.random()``."""


class Order(Stage):
    """Which waiting job is first? Smaller is earlier; ties keep the order of arrival.

    Give either ``key(job)``, evaluated once when a job arrives, or ``scores(jobs, now)``, evaluated for all
    waiting jobs at each pass. Which of the two it is, is decided by what the class overrides.

    Examples
    --------
    >>> class Smallest(Order):
    ...     def key(self, job):
    ...         return job.nodes
    >>> Smallest().dynamic
    False
    """

    @property
    def dynamic(self) -> bool:
        """Whether the order changes while jobs wait."""
        return type(self).scores is not Order.scores

    def key(self, job: Job) -> Any:
        """Return what to sort by; it must not depend on the time."""
        return job.submit_time

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return what to sort by now, shape (jobs,); `jobs` has the columns of the waiting jobs."""
        return jobs.submit_time

    def sort(self, jobs: list[Job], system: System) -> list[Job]:
        """Return jobs sorted by this order now; ties keep the order in which they come."""
        if not self.dynamic:
            return sorted(jobs, key=self.key)
        rows = np.array([job.index for job in jobs], dtype=np.int64)
        scores = self.scores(JobColumns(system, rows), system.now)
        return [jobs[position] for position in np.argsort(scores, kind="stable").tolist()]


class FCFS(Order):
    """First come, first served: by submission.

    >>> FCFS().key(Job(index=0, id=1, submit_time=7, run_time=5, requested_time=5, nodes=1))
    7
    """

    def key(self, job: Job) -> int:
        """Return the submission time [s]."""
        return job.submit_time


class Inspector(Stage):
    """May the selected job go on, or is it held until the next scheduling point?"""

    def accept(self, job: Job, system: System) -> bool:
        """Return False to hold the job that the order selected."""
        return True


class Placement(Stage):
    """Where does the job run?"""

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation within a level, or None if the job does not fit it.

        The level is what the job may use: all that is free, or, behind a blocked job, what does not delay
        that one. Where the cluster has room, there must be an allocation.
        """
        return system.cluster.place(job, level)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return what an open seat with this placement behind it may choose among; its own choice first."""
        allocation = self.place(job, level, system)
        return [] if allocation is None else [allocation]


class Backfiller(Stage):
    """Which jobs may start although one before them does not fit?

    ``fill`` yields jobs that may start now; the pipeline starts each before it asks for the next.
    """

    reserves = False
    """Whether the first blocked job gets a reservation (for the start modes in the records)."""

    settles = False
    """Whether time alone lets nobody start: with nothing new, filling again is in vain."""

    settled = -1
    """The ``system.version`` when every job that :meth:`fill` returned had been started, or it had none."""

    seen_pass = -1
    """The last pass in which :meth:`fill` was called, or need not be since no job that had arrived fits."""

    plans = False
    """Whether jobs start only when :meth:`due`, even the first one (conservative backfilling)."""

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Yield, best first, each job behind `head` that may start now; `head` is the first that may not."""
        raise NotImplementedError(f"{type(self).__name__} needs a method fill(head, system)")

    def level(self, job: Job, system: System) -> Level:
        """Return the level within which a job that :meth:`fill` has just yielded is to be placed."""
        return system.free

    def plan(self, system: System) -> None:
        """Bring the plan up to date at the beginning of a pass (if :attr:`plans`)."""

    def due(self, job: Job, system: System) -> bool:
        """Tell whether a waiting job may start now by the plan (if :attr:`plans`)."""
        return True


class Estimator(Stage):
    """How long does the scheduler believe a job takes? What was requested, unless a subclass knows better.

    Reservations and backfilling go by these estimates; orders read the job itself.
    """

    corrects = False
    """Whether :meth:`correct` is asked when a job outlives its estimate; else that is *now + 1 s*."""

    def estimate(self, job: Job) -> int:
        """Return the estimate [s], >= 1, the same whenever it is asked for."""
        return job.requested_time

    def correct(self, job: Job, elapsed: int) -> int:
        """Return a new estimate [s] for a job that has run `elapsed` seconds, its estimate or more."""
        return elapsed + 1

    def observe(self, job: Job, system: System) -> None:
        """Learn from a job that has just ended."""


class Requested(Estimator):
    """The user's requested time."""


class Policy(Parameters):
    """A whole scheduler: :meth:`schedule` is called once for each instant at which something happened.

    Examples
    --------
    >>> class Greedy(Policy):
    ...     def schedule(self, system):
    ...         for job in system.queue:
    ...             if system.fits(job):
    ...                 system.start(job)
    """

    @property
    def queue_order(self) -> Order:
        """The order in which ``system.queue`` is kept; by arrival unless a subclass says otherwise.

        It is asked for once a run, and reset before the policy is.
        """
        return FCFS()

    @property
    def estimator(self) -> Estimator:
        """How long jobs are believed to take."""
        return Requested()

    def reset(self, system: System) -> None:
        """Prepare the run's own copy before the first event."""

    def check(self) -> None:
        """Raise a UsageError if the parameters make no sense; asked before every run."""

    def schedule(self, system: System) -> Generator[Decision, Any, None] | None:
        """Start what should start now: a plain method, or a generator that yields decisions."""
        raise NotImplementedError(f"{type(self).__name__} needs a method schedule(system)")
