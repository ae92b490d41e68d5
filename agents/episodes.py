"""Which scenario each episode is about: one and the same, windows of a log, several in turn, generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hpcsimkit.cluster import Cluster
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Episodes
from hpcsimkit.scenario import Scenario
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.workload import Workload

__all__ = ["AnyOf", "Fixed", "Generated", "InTurn", "Windows"]


class Fixed(Episodes):
    """The same scenario each time.

    Parameters
    ----------
    workload : Workload
        Its jobs.
    cluster : Cluster or int, optional
        The machine; by default the workload's own.
    service_time : ServiceTime, optional
        Locality model.
    seed : int
        Of the runs.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster | int | None = None, *,
        service_time: ServiceTime | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.workload = workload
        self.cluster = cluster
        self.service_time = service_time
        self.seed = seed

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Return the scenario."""
        return Scenario(self.workload, self.cluster, self.seed, service_time=self.service_time)


class AnyOf(Episodes):
    """One of several workloads, all equally likely.

    Parameters
    ----------
    workloads : sequence of Workload
        To choose from.
    cluster, service_time
        As in :class:`Fixed`.
    """

    def __init__(
        self, workloads: Sequence[Workload], cluster: Cluster | int | None = None, *,
        service_time: ServiceTime | None = None,
    ) -> None:  # fmt: skip
        self.workloads = workloads
        self.cluster = cluster
        self.service_time = service_time

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a workload, and a seed for its run."""
        workload = self.workloads[int(rng.integers(len(self.workloads)))]
        seed = int(rng.integers(2**31))
        return Scenario(workload, self.cluster, seed, service_time=self.service_time)


class InTurn(AnyOf):
    """Workloads in their order, and then again, for learners that play one episode after the other.

    Others draw one of them. Parameters are those of :class:`AnyOf`.

    Examples
    --------
    >>> short = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, name="short")
    >>> long = Workload({"submit_time": [0], "run_time": [9], "nodes": [1]}, name="long")
    >>> rng = np.random.default_rng(1)
    >>> [InTurn([short, long]).number(number, rng).workload.name for number in range(3)]
    ['short', 'long', 'short']
    """

    def number(self, number: int, rng: np.random.Generator) -> Scenario:
        """Return the one whose turn it is, with a seed drawn for its run."""
        workload = self.workloads[number % len(self.workloads)]
        return Scenario(
            workload, self.cluster, int(rng.integers(2**31)), service_time=self.service_time
        )  # fmt: skip


class Windows(Episodes):
    """A window of so many successive jobs of a log, anywhere in it.

    Parameters
    ----------
    workload : Workload
        The log.
    jobs : int
        Jobs of a window, by submission.
    cluster : Cluster or int, optional
        The machine; by default the workload's own.
    warmup : int
        So many jobs before the window fill the machine first; the heuristic behind the seat schedules them.

    Raises
    ------
    UsageError
        When sampled: the log has fewer jobs.
    """

    def __init__(
        self, workload: Workload, jobs: int, cluster: Cluster | int | None = None, *, warmup: int = 0
    ) -> None:
        self.workload = workload
        self.jobs = jobs
        self.cluster = cluster
        self.warmup = warmup

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw where the window begins."""
        whole, needed = len(self.workload), self.jobs + self.warmup
        if not 1 <= self.jobs <= needed <= whole:
            raise UsageError(
                f"windows of {self.warmup} + {self.jobs} jobs need a log of so many, and a job at least; "
                f"{self.workload.name} has {whole}"
            )
        first = int(rng.integers(whole - needed + 1))
        return self.at(first, int(rng.integers(2**31)))

    def at(self, first: int, seed: int) -> Scenario:
        """Return the window that begins, with its warm-up, at a job, counted from 0 by submission."""
        window = self.workload.first(self.jobs + self.warmup, first)
        begin = None
        if self.warmup:
            begin = int(window.submit_time[window.arrival_order[self.warmup]])
        return Scenario(window, self.cluster, seed, learn_from=begin)


class Generated(Episodes):
    """A new workload each time.

    Parameters
    ----------
    generate : callable
        ``generate(rng)`` returns a workload.
    cluster, service_time
        As in :class:`Fixed`.
    """

    def __init__(
        self, generate: Callable[[np.random.Generator], Workload], cluster: Cluster | int | None = None, *,
        service_time: ServiceTime | None = None,
    ) -> None:  # fmt: skip
        self.generate = generate
        self.cluster = cluster
        self.service_time = service_time

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Generate a workload, and draw a seed for its run."""
        workload = self.generate(rng)
        return Scenario(workload, self.cluster, int(rng.integers(2**31)), service_time=self.service_time)
