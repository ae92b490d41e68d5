"""Test runs: waiting jobs run for a short time in the holes that reservations leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.opaque import AnyCluster, Level
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.holes import Hole
from hpcsimkit.kernel.policy import Backfiller, Tester
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["HoleTests"]


class HoleTests(Tester):
    """A job that fits a hole, but not for as long as it is estimated to run, runs for a short time.

    At the end of each pass, waiting jobs are tried in policy order. Each that fits what is free now without
    a delay of any reservation runs for at most `seconds`. If it ends within this time, it is done; if not, it
    is stopped, and goes back to its place in the queue. It is tested once, or once at each of several levels,
    one after the other. (Speculative backfilling: Perkovic & Keleher, SC 2000.)

    Stopped jobs run again from the beginning or from their last checkpoint, as the ``restart`` rules of the
    run say; the cost of a restart is up to these rules, too. It is assumed that they may run again at all.

    Parameters
    ----------
    seconds : int or sequence of int
        Longest time of a test [s], >= 1, or of each level, in ascending order. Default: 300.
    users : float
        Share of the users who allow tests of their jobs, in (0, 1]; each user is drawn with the seed of the
        run. Jobs without a user have one of their own. Default: 1.
    largest : float
        Largest job to test, as a share of the cluster, in (0, 1]. Default: 1.
    restartable : str, optional
        Column of the log that is 0 for jobs that may not be tested. By default all may.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.policies import FCFS, EASY, Pipeline
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [100, 50, 5], "nodes": [1, 2, 1],
    ...               "requested_time": [100, 50, 900]}, machine_size=2)
    >>> policies = [Pipeline(FCFS(), backfiller=EASY(), tester=tester) for tester in (None, HoleTests(10))]
    >>> [Simulation(w, policy).run().end_time.tolist() for policy in policies]
    [[100, 150, 155], [100, 150, 7]]
    """

    def __init__(
        self,
        seconds: int | Sequence[int] = 300,
        users: float = 1.0,
        largest: float = 1.0,
        restartable: str | None = None,
    ) -> None:
        self.seconds = seconds
        self.users = users
        self.largest = largest
        self.restartable = restartable

    @property
    def draws(self) -> bool:  # type: ignore[override]
        """Whether users are drawn."""
        return self.users < 1

    def reset(self, system: System) -> None:
        """Check the parameters, and find the jobs that may be tested."""
        if system.service_time is not None:
            raise UsageError("tests: a run with a locality model stops no jobs")
        self._levels = self.levels
        self._left = self.levels_of_jobs(system.workload, system.cluster, system.random).tolist()

    @property
    def levels(self) -> list[int]:
        """The times of the levels [s].

        Raises
        ------
        UsageError
            They are no whole numbers in ascending order.
        """
        given = self.seconds
        levels = [given] if isinstance(given, int) else list(given) if isinstance(given, list | tuple) else []
        whole = all(isinstance(each, int) and each >= 1 for each in levels)
        if not levels or not whole or any(before >= after for before, after in pairwise(levels)):
            raise UsageError(
                "tests: seconds needs a whole number, at least 1, or several in ascending order, "
                f"found {given!r}"
            )
        return levels

    def levels_of_jobs(
        self, workload: Workload, cluster: AnyCluster, random: Callable[[], np.random.Generator]
    ) -> NDArray[np.int64]:
        """Return the number of levels at which each job may be tested, shape (jobs,).

        Parameters
        ----------
        workload : Workload
            The jobs of the run.
        cluster : Cluster
            Its cluster.
        random : callable
            Returns the generator by which users are drawn; it is called only if some are.

        Raises
        ------
        UsageError
            A parameter is out of range, or the log has no such column.
        """
        for name in ("users", "largest"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 < value <= 1):
                raise UsageError(f"tests: {name} needs a share above 0, at most 1, found {value!r}")
        allowed = np.ones(len(workload), dtype=np.bool_)
        if self.restartable is not None:
            if not isinstance(self.restartable, str) or self.restartable not in workload.columns:
                raise UsageError(f"tests: the log has no column {self.restartable!r}")
            allowed &= workload.column(self.restartable) != 0
        if self.largest < 1:
            most = self.largest * cluster.size
            allowed &= np.array([cluster.asked(job) <= most for job in workload.jobs], dtype=np.bool_)
        if self.users < 1:
            users, number = np.unique(workload.user, return_inverse=True)
            allowed &= random().random(len(users))[number] < self.users
        return np.where(allowed, len(self.levels), 0)

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Count a test that is over."""
        if why is Outcome.TESTED:
            self._left[job.index] -= 1

    def chosen(self, head: Job, filler: Backfiller, system: System) -> Iterator[tuple[Job, int, Level]]:
        """Yield the jobs to test; see the class."""
        cluster, queue, ledger, levels = system.cluster, system.queue, system.ledger, self._levels
        hole: Hole | None = None
        free = Room(system.free, float("inf"), system.free)
        for job, estimate in cluster.admissible(cluster.fitting(queue, system.free), queue, free):
            left = self._left[job.index]
            if not left or job is head or not ledger.waits(job.index):
                continue
            seconds = levels[-left]
            if seconds >= estimate:
                continue
            hole = hole or filler.hole(head, system)
            level = hole.level(job, seconds)
            if level is None:
                continue
            yield job, seconds, level
            if ledger.started(job.index):
                hole.take(job, seconds)
                cluster.take(job, seconds, free, system.running.allocation(job))
