"""The Lublin-Feitelson model of a parallel machine's workload.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63(11), 2003. The model generates sizes, run times that
depend on sizes, and arrivals with a daily cycle, for either one job class, or batch and interactive jobs with
separate arrival processes. It has no users and no estimates; :func:`hpcsimkit.workloads.with_estimates` adds
the latter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload

__all__ = ["BATCH", "INTERACTIVE", "TYPED", "UNTYPED", "JobClass", "LublinModel"]

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]

DAY = 86_400
BUCKETS = 48
"""Number of half hours of the day, each with a constant arrival rate."""

CYCLE_START = 10
"""The half hour at which the cycle's gamma density starts (5:00)."""

LOG_RUN_TIME_LIMIT = 12.0
LOG_ARRIVAL_LIMIT = 13.0

UPPER_STAGE = 2.5
"""Width of the upper stage of the log2 of sizes (the paper: 1.5 to 3.5)."""


@dataclass(frozen=True, kw_only=True)
class JobClass:
    """The published parameters of one job class (all gamma distributions as shape, scale).

    Parameters
    ----------
    serial, pow2 : float
        Share of serial jobs (one node), and share of jobs with sizes rounded to a power of two.
    ulow, uprob, umed, uhi : float
        Parameters of sizes: the log2 of a parallel job's size is uniform on [ulow, umed] with probability
        `uprob`, else on [umed, uhi]. The defaults depend on the machine: ``uhi = log2(nodes)`` and
        ``umed = uhi - 2.5``.
    a1, b1, a2, b2, pa, pb : float
        Parameters of run times: ln(run time [s]) is gamma(a1, b1) with probability ``pa * nodes + pb``,
        clipped to [0, 1], else gamma(a2, b2).
    aarr, barr, arar : float
        Parameters of interarrival times: ln(interarrival time [s of rush time]) is gamma(aarr * arar, barr).
    anum, bnum : float
        Parameters of the daily cycle: the density of gamma(anum, bnum) over half hours from 5:00.
    queue : int
        Queue number of the jobs (SWF field 15), by convention 0 for interactive jobs; -1 for none.
    """

    serial: float
    pow2: float
    ulow: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float
    umed: float | None = None
    uhi: float | None = None
    queue: int = UNKNOWN


UNTYPED = JobClass(
    serial=0.244,
    pow2=0.576,
    ulow=0.8,
    uprob=0.86,
    a1=4.2,
    b1=0.94,
    a2=312,
    b2=0.03,
    pa=-0.0054,
    pb=0.78,
    aarr=10.2303,
    barr=0.4871,
    anum=8.1737,
    bnum=3.9631,
    arar=1.0225,
)
BATCH = JobClass(
    serial=0.2927,
    pow2=0.6686,
    ulow=1.2,
    uprob=0.875,
    a1=6.57,
    b1=0.823,
    a2=639.1,
    b2=0.0156,
    pa=-0.003,
    pb=0.6986,
    aarr=6.0415,
    barr=0.8531,
    anum=6.1271,
    bnum=5.2740,
    arar=1.0519,
    queue=1,
)
INTERACTIVE = JobClass(
    serial=0.1541,
    pow2=0.625,
    ulow=1,
    uprob=0.705,
    a1=3.8351,
    b1=0.6605,
    a2=7.073,
    b2=0.6856,
    pa=-0.0118,
    pb=0.9156,
    aarr=6.5510,
    barr=0.6621,
    anum=8.9186,
    bnum=3.6680,
    arar=0.9797,
    queue=0,
)
TYPED = (BATCH, INTERACTIVE)


@dataclass(frozen=True, kw_only=True)
class LublinModel:
    """Generator of workloads of the Lublin-Feitelson model.

    Parameters
    ----------
    nodes : int
        Number of nodes of the machine, >= 2; not necessarily a power of two.
    classes : tuple of JobClass
        Job classes, each with its own arrival process: one (`UNTYPED`, the default) or several (`TYPED`). The
        published size limits of batch and interactive jobs on 128 nodes are (umed, uhi) = (5, 7) and (3,
        5.5).
    load : float or None
        Target of the offered load: requested node-seconds divided by the node-seconds available between the
        first and the last arrival. All interarrival times are scaled by one factor, *before* the daily cycle
        is applied, so a day keeps its 24 hours (unlike with :meth:`Workload.scale_load`, which also scales
        the day). None for the model's own load.

    Notes
    -----
    The rush time of an arrival is the cumulative sum of interarrival times. Half an hour with weight w
    corresponds to 1800 w s of rush time, and the weights of a day have mean 1. So clock times follow from the
    inverse of the cycle's cumulative weight, for all jobs at once. The log starts at midnight. Run times are
    truncated to whole seconds. Sizes that rounding to a power of two would put above the machine size become
    the largest power of two that fits.

    Of the instances used in papers (256 nodes, 10 000 jobs, no estimates), Lublin-1 is `UNTYPED` with
    ``arar=1`` (mean interarrival time 771 s), and Lublin-2 is `TYPED`.

    Examples
    --------
    >>> w = LublinModel(nodes=64, load=0.8).generate(1000, np.random.default_rng(1))
    >>> len(w), w.machine_size, round(w.offered_load(), 2), bool(w.nodes.max() <= 64)
    (1000, 64, 0.8, True)
    """

    nodes: int = 256
    classes: tuple[JobClass, ...] = (UNTYPED,)
    load: float | None = None

    def generate(self, jobs: int, rng: np.random.Generator) -> Workload:
        """Return `jobs` jobs, sorted by submission time.

        Parameters
        ----------
        jobs : int
            Number of jobs, >= 1.
        rng : numpy.random.Generator
            Random number generator; equal generators give equal workloads.

        Raises
        ------
        WorkloadError
            If a parameter is out of range, or the last submission is after `TIME_LIMIT`.
        """
        self._check(jobs)
        rush, kind = self._arrivals(jobs, rng)
        nodes = np.empty(jobs, dtype=np.int64)
        run_time = np.empty(jobs, dtype=np.int64)
        for number, parameters in enumerate(self.classes):
            rows = kind == number
            nodes[rows] = _sizes(parameters, self.nodes, int(np.count_nonzero(rows)), rng)
            run_time[rows] = _run_times(parameters, nodes[rows], rng)
        if self.load is not None and jobs > 1:
            area = float(np.dot(run_time.astype(float), nodes.astype(float)))
            rush = rush * self._stretch(rush, kind, area / (self.nodes * self.load))
        submit = self._clock(rush, kind)
        if submit.max() > TIME_LIMIT:
            raise WorkloadError(
                f"Lublin model: the last of {jobs} jobs comes after {TIME_LIMIT} s; raise the load"
            )
        order = np.argsort(submit, kind="stable")
        columns = {"submit_time": np.floor(submit), "run_time": run_time, "nodes": nodes}
        queue = np.array([parameters.queue for parameters in self.classes])[kind]
        if (queue != UNKNOWN).any():
            columns["queue"] = queue
        return Workload(
            {name: np.asarray(values)[order] for name, values in columns.items()},
            machine_size=self.nodes,
            name=f"lublin-{self.nodes}",
            header={"Computer": f"Lublin-Feitelson model, {self.nodes} nodes"},
            provenance=(self._step(jobs),),
        )

    def _check(self, jobs: int) -> None:
        if not 2 <= self.nodes < 2**31:
            raise WorkloadError(f"Lublin model: nodes needs 2 or more, found {self.nodes}")
        if jobs < 1:
            raise WorkloadError(f"Lublin model: jobs needs 1 or more, found {jobs}")
        if not self.classes:
            raise WorkloadError("Lublin model: classes needs at least one kind of job")
        if self.load is not None and not 0 < self.load < np.inf:
            raise WorkloadError(f"Lublin model: load needs a positive number, found {self.load}")

    def _step(self, jobs: int) -> str:
        kinds = "untyped" if self.classes == (UNTYPED,) else f"{len(self.classes)} kinds of jobs"
        load = "the model's own" if self.load is None else f"{self.load:g}"
        return f"Lublin-Feitelson model: {jobs} jobs, {self.nodes} nodes, {kinds}, load {load}"

    def _arrivals(self, jobs: int, rng: np.random.Generator) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the arrivals [s of rush time] of the first `jobs` jobs of all classes, and their classes."""
        rush = np.concatenate([np.cumsum(_gaps(parameters, jobs, rng)) for parameters in self.classes])
        kind = np.repeat(np.arange(len(self.classes)), jobs)
        first = np.argsort(self._clock(rush, kind), kind="stable")[:jobs]
        return rush[first], kind[first]

    def _clock(self, rush: Numbers, kind: NDArray[np.intp]) -> Numbers:
        """Return the clock times [s] at which the arrival processes reach these rush times."""
        clock = np.empty(len(rush))
        edges = np.linspace(0, DAY, BUCKETS + 1)
        for number, parameters in enumerate(self.classes):
            rows = kind == number
            paid = np.concatenate(([0], np.cumsum(daily_weights(parameters)))) * (DAY / BUCKETS)
            day, rest = np.divmod(rush[rows], paid[-1])
            clock[rows] = day * DAY + np.interp(rest, paid, edges)
        return clock

    def _stretch(self, rush: Numbers, kind: NDArray[np.intp], span: float) -> float:
        """Return the factor for rush times with which the jobs span `span` seconds of the clock."""
        of_each = (np.flatnonzero(kind == number) for number in np.unique(kind))
        ends = np.concatenate([rows[[0, -1]] for rows in of_each])  # the first and last job of each class
        rush, kind = rush[ends], kind[ends]
        low, high = 0.0, 2.0
        while np.ptp(self._clock(high * rush, kind)) < span:
            low, high = high, 2 * high
        for _ in range(60):  # bisection, down to the precision of the numbers
            middle = (low + high) / 2
            if np.ptp(self._clock(middle * rush, kind)) < span:
                low = middle
            else:
                high = middle
        return high


def daily_weights(parameters: JobClass) -> Numbers:
    """Return the weight of each half hour of the day from midnight, float64, shape (48,), mean 1.

    >>> weights = daily_weights(UNTYPED)
    >>> int(weights.argmax()) / 2, int(weights.argmin()) / 2
    (13.5, 5.0)
    """
    step = np.arange(CYCLE_START + 1, CYCLE_START + 1 + BUCKETS)
    edges = np.append(step - 0.5, step[-1] + 0.5) / parameters.bnum
    weights = np.empty(BUCKETS)
    weights[(step - 1) % BUCKETS] = np.diff(_gamma_distribution(parameters.anum, edges))
    return np.asarray(weights / weights.mean())


def _gamma_distribution(shape: float, values: Numbers) -> Numbers:
    """Return P(X <= value) for X ~ gamma(shape, 1), by the power series of the incomplete gamma function."""
    terms = np.arange(1, 200)[:, np.newaxis]
    series = 1 + np.cumprod(values / (shape + terms), axis=0).sum(axis=0)
    return np.asarray(np.exp(shape * np.log(values) - values - math.lgamma(shape + 1)) * series)


def _gaps(parameters: JobClass, count: int, rng: np.random.Generator) -> Numbers:
    """Return interarrival times [s of rush time]."""

    def draw(rows: Mask) -> Numbers:
        return rng.gamma(parameters.aarr * parameters.arar, parameters.barr, np.count_nonzero(rows))

    return np.exp(_redrawn(draw, count, LOG_ARRIVAL_LIMIT))


def _sizes(parameters: JobClass, machine: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    high = math.log2(machine) if parameters.uhi is None else parameters.uhi
    low = min(parameters.ulow, high)
    middle = high - UPPER_STAGE if parameters.umed is None else parameters.umed
    middle = min(max(middle, low), high)
    lower = rng.random(count) <= parameters.uprob
    place = rng.random(count)
    exponent = np.where(lower, low + place * (middle - low), middle + place * (high - middle))
    choice = rng.random(count)
    rounded = np.minimum(np.floor(exponent + 0.5), math.floor(math.log2(machine)))
    exponent = np.where(choice <= parameters.serial + parameters.pow2, rounded, exponent)
    nodes = np.floor(np.exp2(exponent) + 0.5).astype(np.int64)
    return np.asarray(np.where(choice <= parameters.serial, 1, np.clip(nodes, 1, machine)))


def _run_times(parameters: JobClass, nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return run times [s] for jobs of these sizes."""
    share = np.clip(parameters.pa * nodes + parameters.pb, 0, 1)

    def draw(rows: Mask) -> Numbers:
        count = np.count_nonzero(rows)
        first = rng.random(count) <= share[rows]
        short = rng.gamma(parameters.a1, parameters.b1, count)
        long = rng.gamma(parameters.a2, parameters.b2, count)
        return np.where(first, short, long)

    logs = _redrawn(draw, len(nodes), LOG_RUN_TIME_LIMIT)
    return np.asarray(np.floor(np.exp(logs)), dtype=np.int64)


def _redrawn(draw: Callable[[Mask], Numbers], count: int, limit: float) -> Numbers:
    """Return `count` samples, resampled while above `limit`; ``draw(rows)`` samples for a mask of rows."""
    values = np.full(count, np.inf)
    for _ in range(1000):
        above = values > limit
        if not above.any():
            return values
        values[above] = draw(above)
    raise WorkloadError(f"Lublin model: its logarithms should stay below {limit:g}, but 1000 draws did not")
