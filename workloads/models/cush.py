"""CuSH's job sets: small batches of jobs with pooled requests for CPUs and GPUs of a cluster.

G. Domeniconi, E. K. Lee and A. Morari, "CuSH: Cognitive Scheduler for Heterogeneous High Performance
Computing System", DRL4KDD 2019, specifies the number of jobs, their arrivals and the mix of short and long
jobs. It does not specify the distributions of run times and requests: the distributions C1 and C0 below were
fitted to the heuristics' rows of its table 1 and are a substitute, not the authors' data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import amount
from hpcsimkit.workloads.readers.records import read_records
from hpcsimkit.workloads.readers.tables import Table

__all__ = [
    "CUSH_KINDS",
    "CUSH_SYSTEMS",
    "DEMANDS",
    "CushJobSets",
    "CushLogSets",
    "CushNode",
    "job_set_of",
    "nodes_for",
    "read_job_sets",
    "system_of",
]

Numbers = NDArray[np.float64]

CUSH_KINDS = ("dgemm", "daxpy")
"""Job types, by number: compute-bound matrix products and network-bound vector sums."""

RESOURCES = ("cpus", "gpus")
JOB_SET_FIELDS = ("jobset", "job", "arrival", "t", "cpus", "gpus")


class CushNode(NamedTuple):
    """Resources of each node of a system."""

    cpus: int
    gpus: int


CUSH_SYSTEMS: Mapping[str, CushNode] = {"sierra": CushNode(2, 4), "summit": CushNode(2, 6)}
"""The nodes of the paper's two configurations."""


class Demand(NamedTuple):
    """Distribution of the fractions of the cluster that jobs request.

    A job requests the fraction ``u ** power`` of one resource, chosen with equal probability, and ``other *
    u`` of the other resource, each with an independent u, uniform on [0, 1).
    """

    power: float
    other: float


DEMANDS = {"C1": Demand(1.7, 0.3), "C0": Demand(1.08, 0.07)}
"""The distributions by name."""

SHORT = 0.75
"""Share of short jobs, of up to 10 steps; long jobs run 11 to 20 steps."""

CORES, WHOLE = 22, 1000
"""Cores of a CPU of Sierra's nodes, and thousandths of a core or a GPU."""

LENGTH_POWER = 1.75
"""Exponent of C1: lengths of short jobs are ``10 u ** 1.75``; in C0 they are uniform."""


@dataclass(frozen=True, kw_only=True)
class CushJobSets:
    """Generator of CuSH's job sets.

    The arrival of each job is an integer from 0 to ``window - 1``, uniform. With probability 3/4 the job is
    short (1 to 10 steps), else long (11 to 20 steps, uniform). Both job types have equal probability. Lengths
    of short jobs and requests depend on `distribution`:

    - C1 (calibrated): ``ceil(10 u ** 1.75)`` steps; the fraction ``u ** 1.7`` of the cluster for a resource
      chosen with equal probability, and ``0.3 u`` for the other.
    - C0 (literal): lengths uniform from 1 to 10; ``u ** 1.08`` and ``0.07 u``.

    Requests are rounded up to whole units, at least 1. With equal random number generators, both systems get
    equal arrivals, lengths, job types and fractions.

    Parameters
    ----------
    system : {"sierra", "summit"}
        System that defines the nodes: 2 CPUs and 4 GPUs, or 2 CPUs and 6 GPUs each.
    nodes : int
        Number of nodes of the cluster, >= 1.
    jobs : int
        Number of jobs in a set, >= 1.
    window : int
        Number of steps within which all jobs arrive, >= 1.
    distribution : {"C1", "C0"}
        Distribution of lengths and requests; see above.

    Examples
    --------
    >>> sets = CushJobSets(system="sierra").generate(np.random.default_rng(1), jobsets=2)
    >>> w = sets[0]
    >>> len(sets), len(w), w.resources, w.labels["kind"]
    (2, 20, ('cpus', 'gpus'), ('dgemm', 'daxpy'))
    >>> w.jobs[0].request.spread, bool((w.column("gpus") <= 128 * 4).all())
    (True, True)
    """

    system: Literal["sierra", "summit"] = "sierra"
    nodes: int = 128
    jobs: int = 20
    window: int = 10
    distribution: Literal["C1", "C0"] = "C1"

    def generate(self, rng: np.random.Generator, jobsets: int = 1) -> list[Workload]:
        """Return job sets with pooled requests and times in steps (one step is one simulated second).

        Two calls for one set each give the same sets as one call for two.

        Raises
        ------
        UsageError
            If a name is unknown or a number is below 1.
        """
        self._check(jobsets)
        return [self._job_set(rng, number) for number in range(jobsets)]

    def _check(self, jobsets: int) -> None:
        choices = {"system": (self.system, CUSH_SYSTEMS), "distribution": (self.distribution, DEMANDS)}
        for name, (value, known) in choices.items():
            if value not in known:
                raise UsageError(f"CushJobSets: {name} must be one of {', '.join(known)}, found {value!r}")
        numbers = {"nodes": self.nodes, "jobs": self.jobs, "window": self.window, "jobsets": jobsets}
        for name, number in numbers.items():
            if number < 1:
                raise UsageError(f"CushJobSets: {name} must be 1 or more, found {number}")

    def _job_set(self, rng: np.random.Generator, number: int) -> Workload:
        arrival = rng.integers(0, self.window, self.jobs)
        length = self._lengths(rng)
        fractions = self._fractions(rng)
        node = CUSH_SYSTEMS[self.system]
        totals = np.array([[node.cpus], [node.gpus]]) * self.nodes
        cpus, gpus = np.maximum(np.ceil(fractions * totals), 1).astype(np.int64)
        kind = rng.integers(0, 2, self.jobs)
        step = f"CuSH job set {number}: {self.distribution}, {self.system}, {self.nodes} nodes"
        return _job_set(
            f"cush-{self.system}-{number}", step, np.arange(self.jobs), arrival, length, cpus, gpus, kind
        )

    def _lengths(self, rng: np.random.Generator) -> Column:
        short = rng.random(self.jobs) < SHORT
        power = LENGTH_POWER if self.distribution == "C1" else 1.0
        u = rng.random(self.jobs)
        lengths = np.where(short, np.ceil(10 * u**power), 10 + np.ceil(10 * u))
        return np.maximum(lengths, np.where(short, 1, 11)).astype(np.int64)

    def _fractions(self, rng: np.random.Generator) -> Numbers:
        """Return the fractions of all CPUs and all GPUs, shape (2, jobs)."""
        demand = DEMANDS[self.distribution]
        most, least = rng.random(self.jobs) ** demand.power, demand.other * rng.random(self.jobs)
        cpus_first = rng.integers(0, 2, self.jobs) == 0
        return np.where(cpus_first, [most, least], [least, most])


def job_set_of(
    name: str, rng: np.random.Generator, times: Column, requests: Mapping[str, Column], totals: Sequence[int]
) -> Workload:
    """Return a job set with given run times and requests, and with submissions as dense as in CuSH's sets.

    All jobs are submitted, uniformly, within a quarter of the time that a full cluster would need for their
    work, as those of :class:`CushJobSets` are on average. Both job types have equal probability.

    Parameters
    ----------
    name : str
        Name of the set.
    rng : numpy.random.Generator
        Random number generator of submissions and types.
    times : array of int64
        Run times [s], at least 1.
    requests : mapping of str to array of int64
        Requested units of ``cpus`` and ``gpus`` in all.
    totals : sequence of int
        CPUs and GPUs of the cluster.

    Examples
    --------
    >>> requests = {"cpus": np.array([1, 4]), "gpus": np.array([8, 1])}
    >>> w = job_set_of("two", np.random.default_rng(1), np.array([100, 60]), requests, [16, 8])
    >>> w.column("gpus").tolist(), bool((w.submit_time < (100 + 60 * 4 / 16) / 4).all())
    ([8, 1], True)
    """
    cpus, gpus = (requests[resource] for resource in RESOURCES)
    shares = np.maximum(*(each / total for each, total in zip((cpus, gpus), totals, strict=True)))
    window = max(1, int((times * shares).sum() / 4))
    arrival = rng.integers(0, window, len(times))
    kind = rng.integers(0, len(CUSH_KINDS), len(times))
    step = f"submissions drawn from {window} s"
    return _job_set(name, step, np.arange(len(times)), arrival, times, cpus, gpus, kind)


@dataclass(frozen=True)
class CushLogSets:
    """Generator of job sets with run times and requests of jobs drawn from a log.

    A node has two CPUs of many cores, so that CPUs are counted in those. A log without CPUs gets as large a
    share of them as of the GPUs. No job requests more than the cluster.

    Parameters
    ----------
    log : Workload
        Jobs with resources in GPUs, or in thousandths of cores and GPUs.
    system : {"sierra", "summit"}
        System that defines the nodes.
    nodes : int
        Number of nodes of the cluster, >= 1.
    jobs : int
        Number of jobs in a set, >= 1.

    Examples
    --------
    >>> columns = {"submit_time": [0, 1], "run_time": [60, 9], "nodes": [1, 2], "gpus": [4, 40]}
    >>> sets = CushLogSets(Workload(columns, resources=("gpus",)), nodes=16, jobs=3)
    >>> w, = sets.generate(np.random.default_rng(1), "drawn", 1)
    >>> w.name, w.run_time.tolist(), w.column("gpus").tolist(), w.column("cpus").tolist()
    ('drawn-0', [60, 9, 9], [4, 64, 64], [2, 32, 32])
    """

    log: Workload
    system: Literal["sierra", "summit"] = "sierra"
    nodes: int = 128
    jobs: int = 20

    def generate(self, rng: np.random.Generator, name: str, jobsets: int) -> list[Workload]:
        """Return job sets, named with their numbers; see :func:`job_set_of` for submissions and types."""
        node = CUSH_SYSTEMS[self.system]
        totals = [node.cpus * self.nodes, node.gpus * self.nodes]
        times, requests = np.maximum(self.log.run_time, 1).astype(np.int64), self._requests(totals)
        rows = rng.integers(0, len(times), (jobsets, self.jobs))
        return [
            job_set_of(
                f"{name}-{number}",
                rng,
                times[some],
                {each: requests[each][some] for each in requests},
                totals,
            )
            for number, some in enumerate(rows)
        ]

    def _requests(self, totals: Sequence[int]) -> dict[str, Column]:
        gpus, log = _gpus_of(self.log), self.log
        if "cpu_milli" in log.resources:
            cpus = log.column("cpu_milli") * log.column("nodes") / WHOLE / CORES
        else:
            cpus = gpus * totals[0] / totals[1]
        both = zip(RESOURCES, (np.ceil(cpus), gpus), totals, strict=True)
        return {name: each.clip(1, total).astype(np.int64) for name, each, total in both}


def nodes_for(log: Workload) -> int:
    """Return the number of Sierra's nodes that have as many GPUs as the largest job of a log requests."""
    return math.ceil(_gpus_of(log).max() / CUSH_SYSTEMS["sierra"].gpus)


def _gpus_of(log: Workload) -> Column:
    """Return the GPUs that the jobs of a log request, shares rounded up."""
    known = "gpu_milli" in log.resources
    amounts = log.column("gpu_milli") / WHOLE if known else log.column("gpus")
    return np.ceil(amounts * log.column("nodes")).astype(np.int64)


def read_job_sets(path: str | os.PathLike[str]) -> list[Workload]:
    """Read job sets from a CSV file with one row per job, plain or gzip.

    The columns are ``jobset, job, arrival, t, cpus, gpus`` and a column with a title that starts with
    ``type`` (0 dgemm, 1 daxpy). Further columns, such as reference schedules, are ignored.

    Returns
    -------
    list of Workload
        One workload per job set, by set number, in the form of :meth:`CushJobSets.generate`.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks a column, has no row, or a cell is not an integer in its range.
    """
    table = read_records(path, Format.JOB_SETS)
    table.needs(JOB_SET_FIELDS, "a file of job sets")
    kind_field = next((name for name in table.columns if name.startswith("type")), "type")
    table.needs([kind_field], "a file of job sets")
    table.check_well_formed()
    fields = (*JOB_SET_FIELDS, kind_field)
    jobset, job, arrival, t, cpus, gpus, kind = (table.numbers(name, amount) for name in fields)
    _refuse(table, t < 1, "t: at least 1 step needed", t)
    _refuse(table, kind > 1, f"{kind_field}: 0 (dgemm) or 1 (daxpy) needed", kind)
    sets = []
    for number in np.unique(jobset).tolist():
        rows = jobset == number
        columns = (column[rows] for column in (job, arrival, t, cpus, gpus, kind))
        step = f"read job set {number} of {table.file_name}"
        sets.append(_job_set(f"{table.log_name}-{number}", step, *columns))
    return sets


def system_of(path: Path) -> Literal["sierra", "summit"]:
    """Return the system of the job sets in a file, which its name contains.

    >>> system_of(Path("my_Sierra_sets.csv"))
    'sierra'
    """
    found = [system for system in CUSH_SYSTEMS if system in path.name.lower()]
    if len(found) != 1:
        raise UsageError(
            f"{path}: the system of the job sets is unknown; the file name must contain one of the words "
            f"{', '.join(CUSH_SYSTEMS)}"
        )
    return cast(Literal["sierra", "summit"], found[0])


def _refuse(table: Table, broken: NDArray[np.bool_], needed: str, found: Column) -> None:
    if broken.any():
        row = int(np.argmax(broken))
        raise table.refuse(row, f"{needed}, found {found[row]}")


def _job_set(
    name: str,
    step: str,
    job: Column,
    arrival: Column,
    length: Column,
    cpus: Column,
    gpus: Column,
    kind: Column,
) -> Workload:
    ones = np.ones(len(job), dtype=np.int64)
    columns = {
        "id": job,
        "submit_time": arrival,
        "run_time": length,
        "requested_time": length,
        "nodes": ones,
        "spread": ones,
        "kind": kind,
        "cpus": cpus,
        "gpus": gpus,
    }
    return Workload(columns, name=name, provenance=(step,), resources=RESOURCES, labels={"kind": CUSH_KINDS})
