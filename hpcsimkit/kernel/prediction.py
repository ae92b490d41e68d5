"""A predicted run time: a distribution, not a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["LEVELS", "SHORTEST", "Prediction"]

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the predicted quantiles."""

SHARES = (0.075, 0.1, 0.2, 0.25, 0.2, 0.1, 0.075)
"""Share of the distribution for which each of these quantiles stands."""

SHORTEST = 10
"""Threshold of the bounded slowdown [s]: shorter run times count as this long in harmonic means."""


class Prediction(NamedTuple):
    """The predicted distribution of a job's run time r.

    Parameters
    ----------
    mean : float
        Expected run time E[r] [s], >= 0.
    harmonic : float
        Harmonic mean 1 / E[1 / max(r, 10)] [s], >= 10: the weight of a second of waiting in the expected
        bounded slowdown is its inverse.
    quantiles : tuple of float
        Run times that are not exceeded with the probabilities :data:`LEVELS` [s], in ascending order.

    Examples
    --------
    >>> Prediction.certain(60.0).harmonic
    60.0
    """

    mean: float
    harmonic: float
    quantiles: tuple[float, ...]

    @classmethod
    def certain(cls, seconds: float) -> Prediction:
        """Return the prediction of one run time [s]."""
        return cls(seconds, max(seconds, SHORTEST), (seconds,) * len(LEVELS))

    def beyond(self, seconds: int) -> Prediction:
        """Return the prediction given that the run time is longer than some time [s].

        The quantiles stand for shares of the distribution; if none of them is longer, twice the time does.

        >>> Prediction(90.0, 30.0, (5.0, 10.0, 30.0, 80.0, 120.0, 150.0, 200.0)).beyond(130).quantiles[-4:]
        (150.0, 200.0, 200.0, 200.0)
        >>> Prediction.certain(60.0).beyond(100).mean
        200.0
        """
        longer = [(time, share) for time, share in zip(self.quantiles, SHARES, strict=True) if time > seconds]
        if not longer:
            return Prediction.certain(2.0 * seconds)
        total = sum(share for _, share in longer)
        mean = sum(share * time for time, share in longer) / total
        inverse = sum(share / max(time, SHORTEST) for time, share in longer) / total
        return Prediction(mean, 1 / inverse, tuple(_spread(longer, total)))

    def within(self, longest: float) -> Prediction:
        """Return the prediction with all run times capped, as at the requested time [s].

        >>> Prediction(90.0, 30.0, (5.0, 10.0, 30.0, 80.0, 120.0, 150.0, 200.0)).within(100.0).quantiles[3:]
        (80.0, 100.0, 100.0, 100.0)
        """
        if self.quantiles[-1] <= longest and self.mean <= longest and self.harmonic <= max(longest, SHORTEST):
            return self
        quantiles = tuple([min(time, longest) for time in self.quantiles])
        return Prediction(min(self.mean, longest), min(self.harmonic, max(longest, SHORTEST)), quantiles)


def _spread(times: Sequence[tuple[float, float]], total: float) -> Iterator[float]:
    """Yield the quantiles at LEVELS of run times with shares of a total, in ascending order."""
    place, below = 0, 0.0
    for level in LEVELS:
        while place + 1 < len(times) and below + times[place][1] < level * total:
            below += times[place][1]
            place += 1
        yield times[place][0]
