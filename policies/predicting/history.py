"""Predictions from the last run times of the same user, request and size."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import LEVELS, SHORTEST, Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.shares import Shares

__all__ = ["History", "owner"]


class History(Predictor):
    """Recency-weighted histories of a user, of the user's request, and of the user's request and size.

    A history holds the last run times of jobs with the same user, with the same user and requested time, or
    with the same user, requested time and nodes. Each is shrunk to the one before it, and the first to the
    run times of all users as a share of the requested time: with the weights w of its run times, its share in
    the prediction is w / (w + `shrinkage`), w being their sum. Where a log knows no user, the job's group,
    executable and queue together stand in, and if it knows none of them, the requested time and the nodes.

    Parameters
    ----------
    length : int
        Maximum number of run times in a history, >= 1.
    decay : float
        Weight of a run time relative to the next younger one, in (0, 1].
    shrinkage : float
        Weight of the more general history, in run times, > 0.

    Examples
    --------
    >>> predictor, job = History(), Job(0, 1, 0, run_time=50, requested_time=60, nodes=1, user=7)
    >>> predictor.reset(None)  # it needs no system
    >>> predictor.predict(job).mean
    60.0
    >>> predictor.observe(job, 30)
    >>> round(predictor.predict(job).mean, 6)  # half of the request, as the user's only job
    30.0
    """

    def __init__(self, length: int = 12, decay: float = 0.85, shrinkage: float = 2.0) -> None:
        self.length = length
        self.decay = decay
        self.shrinkage = shrinkage

    def reset(self, system: System) -> None:
        """Check the parameters and discard all histories."""
        if not (isinstance(self.length, int) and self.length >= 1):
            raise UsageError(f"a history needs a length of at least 1, found {self.length!r}")
        if not (isinstance(self.decay, int | float) and 0 < self.decay <= 1):
            raise UsageError(f"a history needs a decay above 0 and at most 1, found {self.decay!r}")
        if not (isinstance(self.shrinkage, int | float) and 0 < self.shrinkage < float("inf")):
            raise UsageError(f"a history needs a shrinkage above 0, found {self.shrinkage!r}")
        self._weights = [self.decay**age for age in range(self.length)][::-1]
        self._recent: dict[Hashable, _Recent] = {}
        self._everyone = Shares()

    def observe(self, job: Job, took: int) -> None:
        """Add the run time to the three histories of the job."""
        self._everyone.add(took / job.requested_time)
        for key in _keys(job):
            recent = self._recent.get(key)
            if recent is None:
                recent = self._recent[key] = _Recent(self.length)
            recent.add(took, self._weights, self.shrinkage)

    def predict(self, job: Job) -> Prediction:
        """Return the prediction of the most particular history, shrunk to the more general ones.

        All run times are capped at the requested time.
        """
        return self.predict_beside(job, ())

    def predict_beside(self, job: Job, running: Sequence[tuple[Job, int]]) -> Prediction:
        """Return a prediction for which jobs that have run for longer than predicted count like ended ones.

        Each is added to the histories that it shares with the job, as if it ended now.
        """
        return self.predict_each([job], running)[0]

    def predict_each(self, jobs: Sequence[Job], running: Sequence[tuple[Job, int]]) -> list[Prediction]:
        """Return the predictions of waiting jobs; equal requests of a user have the same one."""
        beside = [(_keys(other), elapsed) for other, elapsed in running]
        longer: dict[Hashable, _Recent] = {}
        found: dict[Hashable, Prediction] = {}
        for job in jobs:
            keys = _keys(job)
            if keys[-1] not in found:
                found[keys[-1]] = self._predicted(job.requested_time, keys, beside, longer)
        return [found[_keys(job)[-1]] for job in jobs]

    def _predicted(
        self,
        requested_time: int,
        keys: tuple[Hashable, ...],
        beside: Sequence[tuple[tuple[Hashable, ...], int]],
        longer: dict[Hashable, _Recent],
    ) -> Prediction:
        """Return the prediction of a request; keep histories with what runs beside it for other requests."""
        mean, inverse, quantiles = self._everyone.times(requested_time)
        for level, key in enumerate(keys):
            recent = longer.get(key) or self._beside(level, key, mean, beside)
            if recent is None:
                break
            if key in self._recent:  # without a history, what counts depends on the request
                longer[key] = recent
            share, rest = recent.share, 1 - recent.share
            mean = share * recent.mean + rest * mean
            inverse = share * recent.inverse + rest * inverse
            pairs = zip(recent.quantiles, quantiles, strict=True)
            quantiles = [share * own + rest * others for own, others in pairs]
        return Prediction(mean, 1 / inverse, tuple(quantiles)).within(requested_time)

    def _beside(
        self, level: int, key: Hashable, mean: float, beside: Sequence[tuple[tuple[Hashable, ...], int]]
    ) -> _Recent | None:
        """Return a history with the jobs that have run for longer than its mean; without one, than `mean`."""
        recent = self._recent.get(key)
        known = mean if recent is None else recent.mean
        longer = sorted(took for keys, took in beside if keys[level] == key and took > known)
        return self._with(recent, longer[-self.length :]) if longer else recent

    def _with(self, recent: _Recent | None, run_times: Sequence[int]) -> _Recent:
        """Return a history with further run times."""
        longer = _Recent(self.length)
        longer.run_times.extend(() if recent is None else recent.run_times)
        longer.run_times.extend(run_times[:-1])
        longer.add(run_times[-1], self._weights, self.shrinkage)
        return longer


def owner(job: Job) -> Hashable:
    """Return the user of a job or, if unknown, what stands in: group, executable and queue together."""
    return job.user if job.user >= 0 else (job.group, job.executable, job.queue)


def _keys(job: Job) -> tuple[Hashable, ...]:
    """Return the keys of the histories of a job, the most general first."""
    who = owner(job)
    return who, (who, job.requested_time), (who, job.requested_time, job.nodes)


class _Recent:
    """One history: its last run times and their statistics."""

    __slots__ = ("inverse", "mean", "quantiles", "run_times", "share")

    def __init__(self, length: int) -> None:
        self.run_times: deque[int] = deque(maxlen=length)

    def add(self, took: int, weights: Sequence[float], shrinkage: float) -> None:
        """Add a run time [s]; `weights` has those of a full history, the youngest last."""
        self.run_times.append(took)
        weighted = list(zip(self.run_times, weights[-len(self.run_times) :], strict=True))
        total = sum(weight for _, weight in weighted)
        self.share = total / (total + shrinkage)
        self.mean = sum(time * weight for time, weight in weighted) / total
        self.inverse = sum(weight / max(time, SHORTEST) for time, weight in weighted) / total
        self.quantiles = list(_quantiles(sorted(weighted), total))


def _quantiles(weighted: list[tuple[int, float]], total: float) -> Iterator[float]:
    """Yield the run times at LEVELS, interpolated between the middles of the weights of sorted run times."""
    before, place, at = 0.0, 0, weighted[0][1] / 2
    for level in LEVELS:
        while place + 1 < len(weighted) and at < level * total:
            before, place = at, place + 1
            at += (weighted[place - 1][1] + weighted[place][1]) / 2
        time = weighted[place][0]
        if place and before < level * total < at:
            part = (level * total - before) / (at - before)
            yield weighted[place - 1][0] + part * (time - weighted[place - 1][0])
        else:
            yield time
