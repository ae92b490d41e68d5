"""Preemptive schedulers that plan anew at every event, as those of GPU clusters for training jobs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Real
from operator import add, sub
from typing import Any, Literal

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["LAS", "SRTF", "Gittins", "Replanning", "SmallestPreemptive"]


class Replanning(Policy):
    """A scheduler that distributes the whole cluster anew at every event.

    The running and the waiting jobs are sorted, and each that still fits gets its nodes, from the first one
    on, as if the cluster were empty. Running jobs that get none are stopped; the others keep their nodes
    where these are not given to jobs before them. There are no reservations. Jobs with equal keys keep the
    order of the last time. (Gu et al., Tiresias, NSDI 2019.)

    What stopped jobs keep of their work is up to the ``restart`` rules of the run, by default all of it.
    """

    acts_on_running = True
    heeds_calendar = False

    def reset(self, system: System) -> None:
        """Begin without jobs."""
        self._jobs: list[Job] = []
        self._known: set[int] = set()
        self._stopped: list[Job] = []

    @abstractmethod
    def ordered(self, jobs: list[Job], changed: list[Job], system: System) -> list[Job]:
        """Return the jobs in the order in which they get nodes.

        Parameters
        ----------
        jobs : list of Job
            The jobs that run, wait or may not start again yet, in the order of the last time, followed by
            those that have arrived since.
        changed : list of Job
            Those of them that have run or arrived since the last time.
        system : System
            The state of the run.
        """

    def schedule(self, system: System) -> None:
        """Distribute the cluster: stop the jobs that get no nodes any more, then start the others."""
        state = system.ledger.state
        present = [job for job in self._jobs if state[job.index] in (1, 2, 5)]
        changed = [*system.running_jobs(), *system.newcomers, *self._stopped]
        # Running jobs are unknown if the policy takes over from another.
        for job in sorted([job for job in changed if job.index not in self._known], key=_by_arrival):
            self._known.add(job.index)
            present.append(job)
        self._jobs = self.ordered(present, changed, system)
        self._stopped, starts = self._planned(system)
        for job in self._stopped:
            system.stop(job)
        for job, allocation in starts:
            if system.ledger.waits(job.index):  # no start has closed a gate for it
                system.start(job, allocation)

    def _planned(self, system: System) -> tuple[list[Job], list[tuple[Job, Allocation]]]:
        """Return the running jobs to stop, and the jobs to start with their allocations."""
        cluster, state = system.cluster, system.ledger.state
        allocation_of, counted = system.running.allocation, isinstance(cluster, Nodes)
        stops, starts, staying = list[Job](), list[tuple[Job, Allocation]](), set[int]()
        level = _shared(system)
        for job in self._jobs:
            if counted and not level:  # no further job has nodes
                stops += [each for each in system.running_jobs() if each.index not in staying]
                break
            if state[job.index] == 5:  # it may not start again yet
                continue
            if state[job.index] == 2:
                has = allocation_of(job)
                if cluster.holds(job, has, level):
                    level = sub(level, has)
                    staying.add(job.index)
                    continue
                stops.append(job)
                staying.add(job.index)
                if system.restart.delay:  # it may not start elsewhere at once
                    continue
            allocation = cluster.place(job, level)
            if allocation is not None:
                level = sub(level, allocation)
                starts.append((job, allocation))
        return stops, starts


def _by_arrival(job: Job) -> tuple[int, int]:
    return job.submit_time, job.index


def _shared(system: System) -> Level:
    """Return the capacity that running and waiting jobs share: all that is in order."""
    level = system.free
    for _, _, allocation in system.running.entries:
        level = add(level, allocation)
    return level


def attained(job: Job, system: System) -> int:
    """Return the work that a job has done so far, without what it has lost [s].

    The time of a restart is none: its service would fall back at a stop, and the job be stopped in turn.
    """
    ledger, row = system.ledger, job.index
    kept = ledger.kept.get(row, 0)
    if ledger.state[row] != 2:
        return kept
    elapsed, again = system.now - ledger.starts[row], ledger.again(row)
    return kept + sum(system.restart.progress(elapsed, ledger.work_left(row), again, Outcome.PREEMPTED))


def _restarting(job: Job, system: System) -> int:
    """Return the time for which a running job does no work yet, of its restart [s]."""
    ledger, row = system.ledger, job.index
    cost = system.restart.cost if ledger.again(row) else 0
    return max(cost - (system.now - ledger.starts[row]), 0)


class SRTF(Replanning):
    """Shortest remaining run time first, or smallest remaining area first; an oracle: it reads run times.

    Parameters
    ----------
    area : bool
        Whether the remaining time counts times the size of the job. Default: False.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 5], "run_time": [20, 4], "nodes": [2, 2]}, machine_size=2)
    >>> result = Simulation(w, SRTF()).run()
    >>> result.end_time.tolist(), result.attempts.count(2).tolist()
    ([24, 9], [2, 1])
    """

    def __init__(self, area: bool = False) -> None:
        self.area = area

    def reset(self, system: System) -> None:
        """Begin without jobs."""
        super().reset(system)
        self._left: dict[int, int] = {}

    def ordered(self, jobs: list[Job], changed: list[Job], system: System) -> list[Job]:
        """Return the jobs by what remains of them."""
        left = self._left
        for job in changed:  # what remains of the others has not changed
            remaining = job.run_time - attained(job, system)
            left[job.index] = remaining * job.size if self.area else remaining
        return sorted(jobs, key=lambda job: left[job.index])


class SmallestPreemptive(Replanning):
    """Fewest nodes first.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 5], "run_time": [20, 4], "nodes": [2, 1]}, machine_size=2)
    >>> Simulation(w, SmallestPreemptive()).run().end_time.tolist()
    [24, 9]
    """

    def ordered(self, jobs: list[Job], changed: list[Job], system: System) -> list[Job]:
        """Return the jobs by size."""
        return sorted(jobs, key=lambda job: job.size)


class LAS(Replanning):
    """Least attained service first, in several queues: a job that has had much of the cluster comes later.

    Jobs begin in the first queue. A job whose attained service reaches the threshold of its queue moves to
    the end of the next one. Within a queue, jobs come in the order in which they entered it, those that have
    nodes first. (Discretized 2D-LAS: Gu et al., Tiresias, NSDI 2019, section 3.2.)

    Parameters
    ----------
    thresholds : sequence of int
        Attained service at which a job leaves each queue but the last, increasing; by default that of the
        simulator of Tiresias.
    by : {"area", "time"}
        Attained service: run time times size, or run time alone [s]. Default: ``"area"``.
    promote : float
        Ratio of waiting time to attained run time at which a job that has run returns to the first queue; 0
        for never. Default: 0.
    demotion : {"published", "exact"}
        Time of the check of a job's service besides events of other jobs: when it reaches the threshold, or,
        as in the simulator of Tiresias, somewhat later for jobs of several nodes that have run before.
        Default: ``"published"``.

    Examples
    --------
    The first job moves to the second queue at 6 s, when the other one takes its nodes:

    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 2], "run_time": [20, 4], "nodes": [2, 2]}, machine_size=2)
    >>> Simulation(w, LAS(thresholds=(12,), demotion="exact")).run().end_time.tolist()
    [24, 10]
    """

    def __init__(
        self,
        thresholds: Sequence[int] = (3250, 7200),
        by: Literal["area", "time"] = "area",
        promote: float = 0,
        demotion: Literal["published", "exact"] = "published",
    ) -> None:
        self.thresholds = thresholds
        self.by = by
        self.promote = promote
        self.demotion = demotion

    def check(self) -> None:
        """Raise a UsageError if a parameter is invalid."""
        limits = list(self.thresholds) if isinstance(self.thresholds, Iterable) else []
        rising = all(isinstance(each, Real) for each in limits) and all(
            before < after for before, after in pairwise([0, *limits])
        )
        if not limits or not rising:
            raise UsageError(f"las: thresholds need increasing positive numbers, found {self.thresholds!r}")
        if self.by not in ("area", "time"):
            raise UsageError(f"las: by needs 'area' or 'time', found {self.by!r}")
        if self.demotion not in ("published", "exact"):
            raise UsageError(f"las: demotion needs 'published' or 'exact', found {self.demotion!r}")
        if not (isinstance(self.promote, int | float) and self.promote >= 0):
            raise UsageError(f"las: promote needs a number, at least 0, found {self.promote!r}")

    def reset(self, system: System) -> None:
        """Begin with empty queues."""
        super().reset(system)
        self._queues: list[list[Job]] = [[] for _ in range(len(self.thresholds) + 1)]
        self._place: dict[int, int] = {}
        self._forgiven: dict[int, int] = {}
        self._waited: dict[int, int] = {}
        self._seen_at = system.now
        self._ended = 0
        self._arrival: dict[int, int] = {}

    def ordered(self, jobs: list[Job], changed: list[Job], system: System) -> list[Job]:
        """Return the jobs queue by queue, after each has moved to the queue that its service demands."""
        state, waited = system.ledger.state, system.now - self._seen_at
        self._seen_at = system.now
        if len(system.ended) != self._ended:
            self._ended = len(system.ended)
            present = {job.index for job in jobs}
            self._place = {row: place for row, place in self._place.items() if row in present}
            for queue in self._queues:
                queue[:] = [job for job in queue if job.index in present]
        for job in jobs:
            if job.index not in self._place:
                self._place[job.index] = 0
                self._arrival.setdefault(job.index, len(self._arrival))
                self._queues[0].append(job)
        arrival = self._arrival
        for job in sorted(system.running_jobs(), key=lambda job: arrival[job.index]):
            self._demote(job, system)
        if self.promote:
            for job in sorted(jobs, key=lambda job: arrival[job.index]):
                if state[job.index] == 1:
                    self._promote(job, waited, system)
        return [job for queue in self._queues for job in queue]

    def schedule(self, system: System) -> None:
        """Distribute the cluster, then let jobs that wait fall behind, and check again in time."""
        super().schedule(system)
        state = system.ledger.state
        for queue in self._queues:
            queue.sort(key=lambda job: state[job.index] == 1)
        self._wake(system)

    def _served(self, job: Job, system: System) -> int:
        """Return the run time of a job since it was last in the first queue for want of service [s]."""
        return attained(job, system) - self._forgiven.get(job.index, 0)

    def _weight(self, job: Job) -> int:
        return job.size if self.by == "area" else 1

    def _move(self, job: Job, to: int) -> None:
        self._queues[self._place[job.index]].remove(job)
        self._queues[to].append(job)
        self._place[job.index] = to

    def _demote(self, job: Job, system: System) -> None:
        """Move a running job to the next queue if its service reaches the threshold: one step at a time."""
        place = self._place[job.index]
        service = self._served(job, system) * self._weight(job)
        if place < len(self.thresholds) and service >= self.thresholds[place]:
            self._move(job, place + 1)

    def _promote(self, job: Job, waited: int, system: System) -> None:
        """Move a job that has waited long in relation to its service to the first queue."""
        row, served = job.index, self._served(job, system)
        if served <= 0:
            return
        self._waited[row] = self._waited.get(row, 0) + waited
        if self._place[row] > 0 and self._waited[row] >= int(served * self.promote):
            self._forgiven[row] = attained(job, system)
            self._waited[row] = 0
            self._move(job, 0)

    def _wake(self, system: System) -> None:
        """Request a pass when the next job changes its queue."""
        now, times = system.now, list[int]()
        for job in system.running_jobs():
            place = self._place[job.index]
            if place < len(self.thresholds):
                served, weight = self._served(job, system), self._weight(job)
                if weight:  # on machines, a job may use none of the first resource
                    until = self._until(self.thresholds[place], served, weight)
                    times.append(now + _restarting(job, system) + until)
        for job in self._jobs if self.promote else ():
            row, served = job.index, self._served(job, system)
            if system.ledger.state[row] == 1 and self._place[row] > 0 and served > 0:
                times.append(now + int(served * self.promote - self._waited.get(row, 0)))
        later = [time for time in times if time > now]
        system.wake(min(later) if later else None, planned=True)

    def _until(self, threshold: int, served: int, weight: int) -> int:
        """Return the time until the service of a running job is checked [s]."""
        if self.demotion == "published":  # the service is not multiplied by the size there
            return -(-(threshold - served) // weight)
        return -(-(threshold - served * weight) // weight)


class Gittins(Replanning):
    """Largest Gittins index first, estimated from the jobs that have ended in this run.

    The index of a job with attained service *a* is P(S <= a + quantum | S > a) / E[min(S - a, quantum) | S >
    a], for the service S of all jobs: the chance that it ends within the quantum, by the service it is
    expected to take. Until `least` jobs have ended, jobs come in the order of attained service. (Gu et al.,
    Tiresias, NSDI 2019, section 3.3.)

    Parameters
    ----------
    quantum : int
        Service over which a job is judged, >= 1. Default: 3250.
    by : {"area", "time"}
        Service: run time times size, or run time alone [s]. Default: ``"area"``.
    least : int
        Number of ended jobs from which indices are computed, >= 1. Default: 20.
    interval : int
        Longest time between two passes [s], since indices change as jobs run, >= 1. Default: 600.

    Examples
    --------
    >>> Gittins(quantum=600)
    Gittins(quantum=600)
    """

    def __init__(
        self, quantum: int = 3250, by: Literal["area", "time"] = "area", least: int = 20, interval: int = 600
    ) -> None:
        self.quantum = quantum
        self.by = by
        self.least = least
        self.interval = interval

    def check(self) -> None:
        """Raise a UsageError if a parameter is invalid."""
        for name in ("quantum", "least", "interval"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise UsageError(f"gittins: {name} needs a whole number, at least 1, found {value!r}")
        if self.by not in ("area", "time"):
            raise UsageError(f"gittins: by needs 'area' or 'time', found {self.by!r}")

    def reset(self, system: System) -> None:
        """Begin without a past."""
        super().reset(system)
        self._past = np.zeros(0)
        self._sums = np.zeros(1)
        self._seen = 0

    def ordered(self, jobs: list[Job], changed: list[Job], system: System) -> list[Job]:
        """Return the jobs by their index, largest first; those without a past by attained service."""
        self._learn(system)
        service = np.array([attained(job, system) * self._weight(job) for job in jobs], dtype=float)
        keys = service if len(self._past) < self.least else -self._indices(service)
        return [jobs[place] for place in np.argsort(keys, kind="stable").tolist()]

    def schedule(self, system: System) -> None:
        """Distribute the cluster, and do so again before long while jobs run and others wait."""
        super().schedule(system)
        if len(system.queue) and len(system.running):
            system.wake(system.now + self.interval, planned=True)

    def _weight(self, job: Job) -> int:
        return job.size if self.by == "area" else 1

    def _learn(self, system: System) -> None:
        """Add the service of the jobs that have ended since the last pass."""
        ended, jobs = system.ended[self._seen :], system.jobs
        if ended:
            self._seen = len(system.ended)
            new = [jobs[row].run_time * self._weight(jobs[row]) for row in ended]
            self._past = np.sort(np.concatenate([self._past, np.array(new, dtype=float)]))
            self._sums = np.concatenate([[0.0], np.cumsum(self._past)])

    def _indices(self, service: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, Any]:
        """Return the Gittins index at each attained service; 0 beyond the largest service of the past."""
        past, sums, quantum = self._past, self._sums, self.quantum
        first = np.searchsorted(past, service, side="right")
        last = np.searchsorted(past, service + quantum, side="right")
        left = len(past) - first
        expected = sums[last] - sums[first] - (last - first) * service + (len(past) - last) * quantum
        chance = np.divide(last - first, left, out=np.zeros(len(service)), where=left > 0)
        mean = np.divide(expected, left, out=np.ones(len(service)), where=left > 0)
        return chance / mean
