"""Episodes: one fixed scenario, windows of a log, several workloads at random or in turn, generated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.kernel.setup import Setup

__all__ = ["AnyOf", "Fixed", "Generated", "InTurn", "Windows"]


class Fixed(Episodes):
    """The same scenario in each episode.

    Parameters
    ----------
    workload : Workload
        Jobs of the scenario.
    cluster : Cluster or int, optional
        Cluster, or number of nodes; by default the workload's own.
    service_time : ServiceTime, optional
        Locality model.
    seed : int
        Random seed of the runs.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: AnyCluster | int | None = None,
        *,
        service_time: ServiceTime | None = None,
        seed: int = 0,
    ) -> None:
        self.workload = workload
        self.cluster = cluster
        self.service_time = service_time
        self.seed = seed

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Return the scenario."""
        return Scenario(self.workload, Setup(self.cluster, self.seed, service_time=self.service_time))


class AnyOf(Episodes):
    """One of several workloads, drawn uniformly at random.

    Parameters
    ----------
    workloads : sequence of Workload
        Workloads to draw from.
    cluster, service_time
        Parameters of :class:`Fixed`.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        cluster: AnyCluster | int | None = None,
        *,
        service_time: ServiceTime | None = None,
    ) -> None:
        self.workloads = workloads
        self.cluster = cluster
        self.service_time = service_time

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a workload, and a seed for its run."""
        workload = self.workloads[int(rng.integers(len(self.workloads)))]
        seed = int(rng.integers(2**31))
        return Scenario(workload, Setup(self.cluster, seed, service_time=self.service_time))


class InTurn(AnyOf):
    """Workloads in order, over and over, for trainers that run one episode after the other.

    Other trainers draw one at random. Parameters are those of :class:`AnyOf`.

    Examples
    --------
    >>> short = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, name="short")
    >>> long = Workload({"submit_time": [0], "run_time": [9], "nodes": [1]}, name="long")
    >>> rng = np.random.default_rng(1)
    >>> [InTurn([short, long]).number(number, rng).workload.name for number in range(3)]
    ['short', 'long', 'short']
    """

    def number(self, number: int, rng: np.random.Generator) -> Scenario:
        """Return the scenario of the next workload in order, with a random seed for its run."""
        workload = self.workloads[number % len(self.workloads)]
        seed = int(rng.integers(2**31))
        return Scenario(workload, Setup(self.cluster, seed, service_time=self.service_time))


class Windows(Episodes):
    """Windows of consecutive jobs of a log, at random positions.

    Parameters
    ----------
    workload : Workload
        Log to draw from.
    jobs : int
        Number of jobs in a window, by submission.
    cluster : Cluster or int, optional
        Cluster, or number of nodes; by default the workload's own.
    warmup : int
        Number of jobs before the window that fill the cluster first; the heuristic behind the seat
        schedules them.

    Raises
    ------
    UsageError
        When sampled: the log has too few jobs.
    """

    def __init__(
        self, workload: Workload, jobs: int, cluster: AnyCluster | int | None = None, *, warmup: int = 0
    ) -> None:
        self.workload = workload
        self.jobs = jobs
        self.cluster = cluster
        self.warmup = warmup

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw the first job of a window."""
        whole, needed = len(self.workload), self.jobs + self.warmup
        if not 1 <= self.jobs <= needed <= whole:
            raise UsageError(
                f"windows of {self.warmup} + {self.jobs} jobs need a log of so many, and a job at least; "
                f"{self.workload.name} has {whole}"
            )
        first = int(rng.integers(whole - needed + 1))
        return self.at(first, int(rng.integers(2**31)))

    def at(self, first: int, seed: int) -> Scenario:
        """Return the window, including its warm-up, from a first job on, counted from 0 by submission."""
        window = self.workload.first(self.jobs + self.warmup, first)
        begin = None
        if self.warmup:
            begin = int(window.submit_time[window.arrival_order[self.warmup]])
        return Scenario(window, Setup(self.cluster, seed), begin)


class Generated(Episodes):
    """A newly generated workload in each episode.

    Parameters
    ----------
    generate : callable
        Function ``generate(rng)`` that returns a workload.
    cluster, service_time
        Parameters of :class:`Fixed`.
    """

    def __init__(
        self,
        generate: Callable[[np.random.Generator], Workload],
        cluster: AnyCluster | int | None = None,
        *,
        service_time: ServiceTime | None = None,
    ) -> None:
        self.generate = generate
        self.cluster = cluster
        self.service_time = service_time

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Generate a workload, and draw a seed for its run."""
        workload = self.generate(rng)
        seed = int(rng.integers(2**31))
        return Scenario(workload, Setup(self.cluster, seed, service_time=self.service_time))
