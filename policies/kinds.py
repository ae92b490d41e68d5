"""Kinds of work that no user gave: learned from how long earlier executions of the same program took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation
from hpcsimkit.cluster import Level
from hpcsimkit.errors import UsageError
from hpcsimkit.job import UNKNOWN, Job
from hpcsimkit.locality import BREADTH, COMPUTE_BOUND, DEPTH, NETWORK_BOUND
from hpcsimkit.policies.packing import DominantShare
from hpcsimkit.policies.styles import SuitsKind
from hpcsimkit.policy import Placement
from hpcsimkit.system import System

__all__ = ["Fit", "KindsByExecution", "KindsInRun", "LearnedKinds"]

Numbers = NDArray[np.float64]

SUITED = {DEPTH: COMPUTE_BOUND, BREADTH: NETWORK_BOUND}
"""The kind of work that each style suits."""

NOT_TRIED = [False, False]
"""By kind: whether a program was placed in the style that suits it."""

KAPPA, KAPPA_WEIGHT = 1.0, 0.05
"""Slow-down per size expected at first, and what that counts: as an execution in each style does, of a job of
a third of the cluster."""

NOISE, NOISE_WEIGHT = 0.2, 4
"""Relative noise of slow-downs expected at first, and how many executions that counts."""

ROUNDS = 20
"""Rounds of expectation and maximisation; after a handful little changes."""


class Fit(NamedTuple):
    """What executions say.

    Parameters
    ----------
    network_bound : array of float64, shape (programs,)
        Probability that a program is network-bound, in the order in which programs were first heard of.
    compute_spread, network_crowded : float
        By how much a job of the size of the cluster takes longer in the style that does not suit its kind, as
        a share of its time, >= 0: the kappas of :class:`~hpcsimkit.locality.KindLocality`.
    noise : float
        Relative standard deviation of slow-downs, > 0.
    """

    network_bound: Numbers
    compute_spread: float
    network_crowded: float
    noise: float


class KindsByExecution:
    """Tells programs that are compute-bound from those that are network-bound, by how long executions took.

    The slow-down of an execution is the time it took over the time that was requested. It is assumed to be

        ``level of the program x (1 + kappa x size if the style does not suit the kind + noise)``

    with one kappa for all compute-bound programs spread, one for all network-bound programs crowded, and
    noise that is normal and the same for all. Nothing is assumed of the level: how much more than needed the
    users of a program request does not matter, if they do so in both styles alike. All executions of a
    program are taken to be of one kind, and both kinds are equally likely at first.

    The kappas, the noise and the kinds are found together, from all executions so far: a mixture of two
    regressions through each program's mean, fitted by expectation and maximisation (Dempster, Laird & Rubin,
    JRSS B 1977) from a weak prior. No kind needs to be known; those that are help. The answer depends on
    what was observed, not on the order. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1, asks for a
    classifier of this sort, and does not say which.)

    Parameters
    ----------
    confidence : float
        How probable a kind must be for :meth:`kind` to say so, above 0.5 and below 1.

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
        """Learn from an execution that has ended.

        Parameters
        ----------
        program : int
            Of what it was one.
        style : str
            How it was placed: ``DEPTH`` or ``BREADTH``.
        size : float
            The largest share of any resource of the cluster that it had, in [0, 1].
        slow_down : float
            Time it took over time requested, > 0.
        """
        crowded = style == DEPTH
        row = np.array([1.0, slow_down, size * crowded, size * (not crowded)])
        self._sums[self._number_of(program)] += np.outer(row, row)
        self._fit = None

    def tell(self, program: int, kind: int) -> None:
        """Learn from a user of which kind a program is; kinds that are neither of the two tell nothing."""
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
        """Return the probability that a program is network-bound; 0.5 if nothing is known of it."""
        number = self._number.get(program)
        return 0.5 if number is None else float(self.fit().network_bound[number])

    def kind(self, program: int) -> int:
        """Return the kind of a program, `UNKNOWN` as long as neither is probable enough."""
        probability = self.network_bound(program)
        if max(probability, 1 - probability) < self.confidence:
            return UNKNOWN
        return NETWORK_BOUND if probability > 0.5 else COMPUTE_BOUND

    def safer(self, program: int) -> int:
        """Return the kind as which a program, placed in the style that suits it, is slowed down less.

        What counts is what can be expected: how probable each kind is, times how much it suffers if placed in
        the style of the other; compute-bound if there is no difference.
        """
        fit, probability = self.fit(), self.network_bound(program)
        crowded, spread = probability * fit.network_crowded, (1 - probability) * fit.compute_spread
        return NETWORK_BOUND if crowded > spread else COMPUTE_BOUND

    def fit(self) -> Fit:
        """Return what all executions so far say together."""
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
    """What can be known of the kinds of jobs in a run: what users gave, and what executions have shown.

    It reads ``job.kind`` of jobs only whose users gave it. What ran in no style says nothing, nor does a job
    that took no time; a job that was cut short counts as having taken that long.

    Parameters
    ----------
    system : System
        The run to follow, from its beginning.
    application : str
        The column of the workload that says which jobs are executions of the same program. A job with -1
        there is of no program that is known.
    known : str
        A column with 1 where the user gave the kind; by default no user does. Where one does, other
        executions of the program are taken to be of that kind.
    confidence : float
        See :class:`KindsByExecution`.

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
        """Return the kind of a job as far as it can be known, else `UNKNOWN`."""
        self._follow()
        if self._given[job.index] == 1 and job.kind != UNKNOWN:
            return job.kind
        return self.classifier.kind(self._programs[job.index])

    def to_try(self, job: Job) -> int:
        """Return the kind as which to place a job whose kind is not known.

        Its program is tried in each style once, depth-first to begin with, for without both there is nothing
        to compare; then it is placed in the style that is expected to slow it down less, as is a job of no
        program.
        """
        self._follow()
        program = self._programs[job.index]
        tried = self._tried.get(program, NOT_TRIED)
        if program < 0 or all(tried):
            return self.classifier.safer(program)
        return NETWORK_BOUND if tried[COMPUTE_BOUND] else COMPUTE_BOUND

    def _follow(self) -> None:
        """Look at what has started and ended since it was last asked."""
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
        took = self._system.finishes[row] - self._system.starts[row]
        if took:
            size = self._size.key(job)
            self.classifier.observe(self._programs[row], style, size, took / job.requested_time)


class LearnedKinds(Placement):
    """Depth- or breadth-first, as suits the kind of work; a kind that the user did not give is learned.

    A program is tried in each style once, depth-first to begin with. Then its executions are placed as
    :class:`~hpcsimkit.policies.styles.SuitsKind` does if its kind is known, and in the style that is expected
    to slow them down less if it is not. Each run begins with nothing learned. See :class:`KindsByExecution`
    for how kinds are learned.

    Parameters
    ----------
    application : str
        The column of the workload that says which jobs are executions of the same program.
    known : str
        A column with 1 where the user gave the kind; by default no user does.
    confidence : float
        How probable a kind must be to be acted on, above 0.5 and below 1.

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
        """Forget all programs."""
        self._kinds = KindsInRun(system, self.application, self.known, self.confidence)
        self._suits = SuitsKind()

    def kind_of(self, job: Job) -> int:
        """Return the kind of a job as far as it is known now, else `UNKNOWN`."""
        return self._kinds.kind_of(job)

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation in the style that suits the kind, or else in the one to try."""
        kind = self._kinds.kind_of(job)
        if kind == UNKNOWN:
            kind = self._kinds.to_try(job)
        return self._suits.place(job._replace(kind=kind), level, system)
