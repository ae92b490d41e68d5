"""Inference of unknown job types from the run times of earlier executions of the same program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import UNKNOWN, Job
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH, NETWORK_BOUND
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.packing import DominantShare
from hpcsimkit.policies.placing.styles import SuitsKind

__all__ = ["Fit", "KindsByExecution", "KindsInRun", "LearnedKinds"]

Numbers = NDArray[np.float64]

SUITED = {DEPTH: COMPUTE_BOUND, BREADTH: NETWORK_BOUND}
"""The job type that each placement style suits."""

NOT_TRIED = [False, False]
"""By job type: whether a program has been placed in the style that suits the type."""

KAPPA, KAPPA_WEIGHT = 1.0, 0.05
"""Prior mean of the slowdown per size, and its weight: that of one execution in each style of a job that
occupies a third of the cluster."""

NOISE, NOISE_WEIGHT = 0.2, 4
"""Prior mean of the relative noise of slowdowns, and its weight in executions."""

ROUNDS = 20
"""Iterations of expectation-maximisation; estimates change little after the first few."""


class Fit(NamedTuple):
    """Estimates from the executions observed so far.

    Parameters
    ----------
    network_bound : array of float64, shape (programs,)
        Probability that a program is network-bound, in the order in which programs were first observed.
    compute_spread, network_crowded : float
        Relative increase in the run time of a job as large as the cluster if the placement style does not
        suit its type, >= 0: the kappas of :class:`~hpcsimkit.kernel.locality.KindLocality`.
    noise : float
        Relative standard deviation of slowdowns, > 0.
    """

    network_bound: Numbers
    compute_spread: float
    network_crowded: float
    noise: float


class KindsByExecution:
    """Classifier of programs as compute-bound or network-bound, by the run times of their executions.

    The slowdown of an execution is its run time divided by its requested time. The model is

        ``level of the program x (1 + kappa x size if the style does not suit the type + noise)``

    with one kappa for all compute-bound programs that are spread, one for all network-bound programs that are
    packed, and normal noise with the same variance for all programs. The level of a program is free: the
    amount by which users overestimate run times does not matter as long as it is the same in both placement
    styles. All executions of a program are assumed to have the same type, and both types have equal prior
    probability.

    The kappas, the noise and the types are estimated jointly from all executions so far: a mixture of two
    regressions through each program's mean, fitted by expectation-maximisation (Dempster, Laird & Rubin,
    JRSS B 1977) with a weak prior. No type needs to be known in advance; known types improve the fit. The
    result depends on the set of observations, not on their order. (Domeniconi et al., CuSH, DRL4KDD 2019,
    section 3.1, calls for such a classifier but does not specify one.)

    Parameters
    ----------
    confidence : float
        Minimum probability at which :meth:`kind` reports a type, above 0.5 and below 1.

    Raises
    ------
    UsageError
        The confidence is out of its range.

    Examples
    --------
    >>> kinds = KindsByExecution()
    >>> for program, crowded, spread in ((7, 1.5, 1.0), (8, 0.5, 0.6)):
    ...     kinds.observe(program, DEPTH, size=0.5, slow_down=crowded)
    ...     kinds.observe(program, BREADTH, size=0.5, slow_down=spread)
    >>> kinds.kind(7) == NETWORK_BOUND, kinds.kind(8) == COMPUTE_BOUND, kinds.kind(9) == UNKNOWN
    (True, True, True)
    """

    def __init__(self, confidence: float = 0.9) -> None:
        if not 0.5 < confidence < 1:
            raise UsageError(f"confidence needs a number above 0.5 and below 1, found {confidence!r}")
        self.confidence = confidence
        self._number: dict[int, int] = {}
        self._told: list[int] = []
        self._sums: list[Numbers] = []
        self._fit: Fit | None = None

    def observe(self, program: int, style: str, size: float, slow_down: float) -> None:
        """Record a completed execution.

        Parameters
        ----------
        program : int
            Number of the program.
        style : str
            Placement style of the execution: ``DEPTH`` or ``BREADTH``.
        size : float
            Largest share of any resource of the cluster that the execution occupied, in [0, 1].
        slow_down : float
            Run time divided by requested time, > 0.
        """
        crowded = style == DEPTH
        row = np.array([1.0, slow_down, size * crowded, size * (not crowded)])
        self._sums[self._number_of(program)] += np.outer(row, row)
        self._fit = None

    def tell(self, program: int, kind: int) -> None:
        """Record the type of a program as given by a user; types other than the two are ignored."""
        number = self._number_of(program)
        if kind in SUITED.values() and self._told[number] != kind:
            self._told[number] = kind
            self._fit = None

    def _number_of(self, program: int) -> int:
        number = self._number.setdefault(program, len(self._sums))
        if number == len(self._sums):
            self._sums.append(np.zeros((4, 4)))
            self._told.append(UNKNOWN)
        return number

    def network_bound(self, program: int) -> float:
        """Return the probability that a program is network-bound; 0.5 for an unknown program."""
        number = self._number.get(program)
        return 0.5 if number is None else float(self.fit().network_bound[number])

    def kind(self, program: int) -> int:
        """Return the type of a program, or `UNKNOWN` if neither type reaches the required confidence."""
        probability = self.network_bound(program)
        if max(probability, 1 - probability) < self.confidence:
            return UNKNOWN
        return NETWORK_BOUND if probability > 0.5 else COMPUTE_BOUND

    def safer(self, program: int) -> int:
        """Return the type whose placement style has the smaller expected slowdown for a program.

        The expected slowdown of a style is the probability of the other type times the slowdown of that type
        in this style. Ties go to compute-bound.
        """
        fit, probability = self.fit(), self.network_bound(program)
        crowded, spread = probability * fit.network_crowded, (1 - probability) * fit.compute_spread
        return NETWORK_BOUND if crowded > spread else COMPUTE_BOUND

    def fit(self) -> Fit:
        """Return the estimates from all executions so far."""
        if self._fit is None:
            self._fit = _fitted(np.array(self._sums).reshape(-1, 4, 4), np.array(self._told, dtype=np.int64))
        return self._fit


def _fitted(sums: Numbers, told: NDArray[np.int64]) -> Fit:
    """Fit the mixture to sums of products of (1, slow-down, size if crowded, size if spread), by program."""
    executions = np.maximum(sums[:, 0, 0], 1)
    means = sums[:, 0] / executions[:, None]
    about_means = sums - means[:, :, None] * sums[:, 0, None, :]
    level = np.where(means[:, 1] > 0, means[:, 1], 1)
    slow = about_means[:, 1, 1] / level**2
    crowded, spread = ((about_means[:, 1, k] / level, about_means[:, k, k]) for k in (2, 3))

    def unexplained(by: tuple[Numbers, Numbers], kappa: float) -> Numbers:
        return slow - 2 * kappa * by[0] + kappa**2 * by[1]

    def kappa(by: tuple[Numbers, Numbers], weights: Numbers) -> float:
        found = (KAPPA_WEIGHT * KAPPA + weights @ by[0]) / (KAPPA_WEIGHT + weights @ by[1])
        return max(float(found), 0.0)

    network_crowded = compute_spread = KAPPA
    variance = NOISE**2
    freedom = NOISE_WEIGHT + (executions - 1).sum()
    for _ in range(ROUNDS):
        if_network, if_compute = unexplained(crowded, network_crowded), unexplained(spread, compute_spread)
        evidence = np.clip((if_network - if_compute) / (2 * variance), -500, 500)
        network = np.where(told == UNKNOWN, 1 / (1 + np.exp(evidence)), told == NETWORK_BOUND)
        left = network @ if_network + (1 - network) @ if_compute
        network_crowded, compute_spread = kappa(crowded, network), kappa(spread, 1 - network)
        variance = (NOISE_WEIGHT * NOISE**2 + left) / freedom
    return Fit(network, compute_spread, network_crowded, float(np.sqrt(variance)))


class KindsInRun:
    """Job types known during a run: given by users or inferred from completed executions.

    ``job.kind`` is read only for jobs with a type given by the user. Jobs that were placed in neither style
    and jobs with a run time of zero are ignored; a job that was killed counts with the time it ran.

    Parameters
    ----------
    system : System
        The run to observe, from its start.
    application : str
        Column of the workload that identifies the program of each job; -1 for an unknown program.
    known : str
        Column of the workload with 1 for jobs with a type given by the user; by default no job has one. Other
        executions of the same program are assumed to have the same type.
    confidence : float
        Minimum probability at which a type counts as known; see :class:`KindsByExecution`.

    Raises
    ------
    UsageError
        The confidence is out of its range.
    WorkloadError
        There is no such column.
    """

    def __init__(
        self, system: System, application: str = "executable", known: str = "", confidence: float = 0.9
    ) -> None:
        self.classifier = KindsByExecution(confidence)
        self._system = system
        self._programs: list[int] = system.column(application).tolist()
        self._given: list[int] = system.column(known).tolist() if known else [0] * len(self._programs)
        self._tried: dict[int, list[bool]] = {}
        self._size = DominantShare()
        self._size.reset(system)
        self._events_seen = 0

    def kind_of(self, job: Job) -> int:
        """Return the type of a job if it is known, else `UNKNOWN`."""
        self._follow()
        if self._given[job.index] == 1 and job.kind != UNKNOWN:
            return job.kind
        return self.classifier.kind(self._programs[job.index])

    def to_try(self, job: Job) -> int:
        """Return the type to assume for the placement of a job of unknown type.

        The program is tried once in each style, depth-first and then breadth-first, since inference needs
        both. After that, the style with the smaller expected slowdown is used, as for jobs of unknown
        programs.
        """
        self._follow()
        program = self._programs[job.index]
        tried = self._tried.get(program, NOT_TRIED)
        if program < 0 or all(tried):
            return self.classifier.safer(program)
        return NETWORK_BOUND if tried[COMPUTE_BOUND] else COMPUTE_BOUND

    def _follow(self) -> None:
        """Process the starts and ends since the last call."""
        events = self._system.events
        for event in events[self._events_seen :]:
            row = max(event, ~event)
            style = self._system.given(row).style
            if self._programs[row] >= 0 and style in SUITED:
                self._started(row, style) if event >= 0 else self._ended(row, style)
        self._events_seen = len(events)

    def _started(self, row: int, style: str) -> None:
        program = self._programs[row]
        self._tried.setdefault(program, NOT_TRIED.copy())[SUITED[style]] = True
        if self._given[row] == 1:
            self.classifier.tell(program, self._system.jobs[row].kind)

    def _ended(self, row: int, style: str) -> None:
        job = self._system.jobs[row]
        took = self._system.ledger.end_of(row) - self._system.ledger.start_of(row)
        if took:
            size = self._size.key(job)
            self.classifier.observe(self._programs[row], style, size, took / job.requested_time)


class LearnedKinds(Placement):
    """Depth-first or breadth-first placement by job type; types not given by users are inferred.

    Each program is tried once in each style, depth-first and then breadth-first. After that, its executions
    are placed as by :class:`~hpcsimkit.policies.placing.styles.SuitsKind` if its type is known, and otherwise
    in the style with the smaller expected slowdown. Each run starts without observations. See
    :class:`KindsByExecution` for the classifier.

    Parameters
    ----------
    application : str
        Column of the workload that identifies the program of each job.
    known : str
        Column of the workload with 1 for jobs with a type given by the user; by default no job has one.
    confidence : float
        Minimum probability at which a type counts as known, above 0.5 and below 1.

    Examples
    --------
    >>> LearnedKinds(known="queue")
    LearnedKinds(known='queue')
    """

    def __init__(self, application: str = "executable", known: str = "", confidence: float = 0.9) -> None:
        self.application = application
        self.known = known
        self.confidence = confidence

    def reset(self, system: System) -> None:
        """Discard all observations."""
        self._kinds = KindsInRun(system, self.application, self.known, self.confidence)
        self._suits = SuitsKind()

    def kind_of(self, job: Job) -> int:
        """Return the type of a job if it is known now, else `UNKNOWN`."""
        return self._kinds.kind_of(job)

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation in the style that suits the job's known or assumed type."""
        kind = self._kinds.kind_of(job)
        if kind == UNKNOWN:
            kind = self._kinds.to_try(job)
        return self._suits.place(job._replace(kind=kind), level, system)
