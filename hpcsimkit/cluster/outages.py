"""Outages: nodes and machines that fail without notice, from a list or drawn at random."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

__all__ = ["Failures", "Outage", "OutageSource", "Outages", "PlannedOutage"]

Law = Literal["exponential", "weibull", "lognormal"]

LONGEST = 10**11
"""The longest time that is drawn [s]."""


@dataclass(frozen=True)
class Outage:
    """A time during which nodes are out of order, not known before it begins.

    Jobs on them are stopped. The scheduler knows the end of an outage from its beginning on.

    Parameters
    ----------
    start, end : int
        Beginning and end [s], on the clock of the workload; the end is excluded.
    nodes : int
        Number of nodes of a cluster of homogeneous nodes, >= 1. Default: 1.
    machines : tuple of str or int
        Names or numbers (from 0) of the machines of a cluster of machines. Default: none.
    position : float
        Position of the first of the homogeneous nodes, in [0, 1], if the busy nodes are listed by the start
        of their jobs, and the idle ones follow. Default: 1, so that idle nodes are hit first, and then the
        job that started last.
    drain : bool
        Whether running jobs end first: no job starts on the nodes, and they go out of order one by one.
        Default: False.
    """

    start: int
    end: int
    nodes: int = 1
    machines: tuple[str | int, ...] = ()
    position: float = 1.0
    drain: bool = False


class PlannedOutage(Outage):
    """A time during which nodes are out of order, which the calendar has announced."""


class OutageSource(ABC):
    """A source of the outages of a run."""

    @abstractmethod
    def outages(self, cluster: AnyCluster, begin: int, rng: np.random.Generator) -> Iterator[Outage]:
        """Yield the outages of a run by their beginning, machines as numbers; there may be infinitely many.

        Parameters
        ----------
        cluster : Cluster
            The whole cluster.
        begin : int
            Beginning of the run [s]; outages that end by then are left out.
        rng : Generator
            Source of randomness, which does not depend on the policy.

        Raises
        ------
        UsageError
            An outage does not fit the cluster.
        """

    def on(self, workload: Workload, cluster: AnyCluster) -> OutageSource:
        """Return the source for a log of jobs, whose clock it then has, and a cluster; by default itself.

        Raises
        ------
        UsageError
            The outages do not fit the cluster.
        WorkloadError
            They have dates, and the log has none.
        """
        return self

    @property
    @abstractmethod
    def record(self) -> object:
        """The plain values that identify the outages in results."""


@dataclass(frozen=True)
class Outages(OutageSource):
    """Outages of a list, such as those of a failure log.

    Parameters
    ----------
    listed : sequence of Outage
        The outages, in any order.

    Examples
    --------
    >>> outages = Outages([Outage(50, 60, nodes=2), Outage(10, 20)])
    >>> [outage.start for outage in outages.outages(Nodes(4), 0, np.random.default_rng(0))]
    [10, 50]
    """

    listed: Sequence[Outage]

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", tuple(self.listed))

    def outages(self, cluster: AnyCluster, begin: int, rng: np.random.Generator) -> Iterator[Outage]:
        """Return an iterator over the outages that end after the beginning of the run."""
        numbers = cluster.numbers if isinstance(cluster, Machines) else {}
        found = [_located(each, cluster, numbers) for each in self.listed]
        if isinstance(cluster, Nodes):
            _check_amounts(found, cluster.count)
        return iter(sorted((each for each in found if each.end > begin), key=lambda each: each.start))

    @property
    def record(self) -> list[list[object]]:
        """The attributes of each outage."""
        return [
            [each.start, each.end, list(each.machines) or each.nodes, each.position, each.drain]
            for each in self.listed
        ]


def _located(outage: Outage, cluster: AnyCluster, numbers: Mapping[str | int, int]) -> Outage:
    """Return an outage with the numbers of its machines; `numbers` is empty with homogeneous nodes."""
    wrong = _wrong_with(outage, cluster, numbers)
    if wrong is not None:
        raise UsageError(f"outage from {outage.start} to {outage.end} s: {wrong}")
    machines = tuple([numbers[machine] for machine in outage.machines])
    return outage if machines == outage.machines else replace(outage, machines=machines)


def _wrong_with(outage: Outage, cluster: AnyCluster, numbers: Mapping[str | int, int]) -> str | None:
    """Return what is wrong with an outage; None if nothing is."""
    if not outage.start < outage.end:
        return "it must end after it begins"
    if not 0 <= outage.position <= 1:
        return f"position needs a number from 0 to 1, found {outage.position}"
    if not numbers:
        if outage.machines:
            return f"the cluster has homogeneous nodes, found machine {outage.machines[0]!r}"
        if not 1 <= outage.nodes <= cluster.size:
            return f"nodes needs a number from 1 to {cluster.size}, found {outage.nodes}"
        return None
    if not outage.machines:
        return f"the machines of {cluster!r} must be named"
    unknown = [machine for machine in outage.machines if machine not in numbers]
    return f"{cluster!r} has no machine {unknown[0]!r}" if unknown else None


def _check_amounts(outages: Sequence[Outage], count: int) -> None:
    """Raise a UsageError if more nodes are out of order at once than there are."""
    changes = sorted(
        change for each in outages for change in ((each.start, each.nodes), (each.end, -each.nodes))
    )  # an end at the time of a beginning comes first
    gone = 0
    for time, change in changes:
        gone += change
        if gone > count:
            raise UsageError(f"outages at {time} s: {gone} nodes are out of order at once, of {count}")


@dataclass(frozen=True)
class Failures(OutageSource):
    """Random failures: each node, machine or rack fails and is repaired, independently of the others.

    The failures depend on the seed of the run, and not on the policy.

    Parameters
    ----------
    mtbf : float
        Mean time from the beginning, or from a repair, to the next failure [s], > 0.
    repair : float
        Mean time to repair [s], > 0.
    law : {"exponential", "weibull", "lognormal"}
        Distribution of the times to failure. Default: ``"exponential"``.
    shape : float
        Shape of a Weibull distribution, or standard deviation of the logarithm of a lognormal one, > 0.
        Default: 1.
    repair_law, repair_shape
        The same for the times to repair.
    rack : int
        Number of consecutive nodes or machines that fail together, >= 1. Default: 1.

    Examples
    --------
    >>> failures = Failures(mtbf=1000, repair=10).outages(Nodes(4), 0, np.random.default_rng(0))
    >>> first, second = next(failures), next(failures)
    >>> 0 < first.start <= second.start, first.nodes
    (True, 1)
    """

    mtbf: float
    repair: float
    law: Law = "exponential"
    shape: float = 1.0
    repair_law: Law = "exponential"
    repair_shape: float = 1.0
    rack: int = 1

    def check(self) -> None:
        """Raise a UsageError if a parameter is invalid."""
        for name in ("mtbf", "repair", "shape", "repair_shape"):
            found = getattr(self, name)
            if not (isinstance(found, int | float) and 0 < found < math.inf):
                raise UsageError(f"failures: {name} needs a positive number, found {found!r}")
        for name in ("law", "repair_law"):
            if getattr(self, name) not in ("exponential", "weibull", "lognormal"):
                found = getattr(self, name)
                raise UsageError(
                    f"failures: {name} needs 'exponential', 'weibull' or 'lognormal', found {found!r}"
                )
        if not isinstance(self.rack, int) or self.rack < 1:
            raise UsageError(f"failures: rack needs a whole number, at least 1, found {self.rack!r}")

    def outages(self, cluster: AnyCluster, begin: int, rng: np.random.Generator) -> Iterator[Outage]:
        """Yield outages without an end, by their beginning."""
        self.check()
        machines = len(cluster) if isinstance(cluster, Machines) else 0
        count = machines or cluster.size
        units = [range(first, min(first + self.rack, count)) for first in range(0, count, self.rack)]
        first_failures = _drawn(self.law, self.mtbf, self.shape, rng, len(units))
        heap = [(begin + after, unit) for unit, after in enumerate(first_failures)]
        heapq.heapify(heap)
        while True:
            start, unit = heap[0]
            (repair,) = _drawn(self.repair_law, self.repair, self.repair_shape, rng, 1)
            (again,) = _drawn(self.law, self.mtbf, self.shape, rng, 1)
            heapq.heapreplace(heap, (start + repair + again, unit))
            members = units[unit]
            yield Outage(
                start,
                start + repair,
                nodes=len(members),
                machines=tuple(members) if machines else (),
                position=float(rng.random()),
            )

    @property
    def record(self) -> dict[str, object]:
        """The parameters."""
        return dict(vars(self))


def _drawn(law: Law, mean: float, shape: float, rng: np.random.Generator, count: int) -> list[int]:
    """Return times of a distribution with a given mean [s], whole seconds of at least 1."""
    if law == "exponential":
        times = rng.exponential(mean, count)
    elif law == "weibull":
        times = mean / math.gamma(1 + 1 / shape) * rng.weibull(shape, count)
    else:
        times = rng.lognormal(math.log(mean) - shape**2 / 2, shape, count)
    return [int(time) for time in np.clip(np.rint(times), 1, LONGEST)]
