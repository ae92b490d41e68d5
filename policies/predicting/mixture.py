"""A mixture of predictors, weighted by their recent losses."""

from __future__ import annotations

from collections.abc import Sequence

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import LEVELS, Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.last_two import LastTwoMean
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.regression import Regression

__all__ = ["Mixture", "pinball"]

SHARPNESS = 4
"""Power of the losses to which the weights are inversely proportional."""


class Mixture(Predictor):
    """Mixture of predictors: the lower the recent loss of one, the larger its weight.

    The loss of a prediction is its pinball loss, the mean over all quantiles, as a share of the requested
    time. That of a predictor is an average over ended jobs, in which each counts `decay` times the next. The
    weights are proportional to the inverse fourth powers of the losses; they are equal before the first job
    ends. Means, inverses of harmonic means, and quantiles are averaged.

    Parameters
    ----------
    predictors : sequence of Predictor, optional
        Predictors to mix, at least one; by default histories, regression and the mean of the last two.
    decay : float
        Weight of a job relative to the next one that ends, in [0, 1).

    Examples
    --------
    >>> Mixture(decay=0.9)
    Mixture(decay=0.9)
    """

    def __init__(self, predictors: Sequence[Predictor] | None = None, decay: float = 0.995) -> None:
        self.predictors = predictors
        self.decay = decay

    def reset(self, system: System) -> None:
        """Check the parameters and reset all predictors."""
        if not (isinstance(self.decay, int | float) and 0 <= self.decay < 1):
            raise UsageError(f"a mixture needs a decay of at least 0 and below 1, found {self.decay!r}")
        given = self.predictors if self.predictors is not None else (History(), Regression(), LastTwoMean())
        if not given or not all(isinstance(each, Predictor) for each in given):
            raise UsageError(f"a mixture needs at least one predictor and nothing else, found {given!r}")
        self._predictors = given
        for predictor in given:
            predictor.reset(system)
        self._losses = [0.0] * len(given)
        self._predictions: dict[int, list[Prediction]] = {}

    @property
    def weights(self) -> list[float]:
        """The present weights of the predictors; their sum is 1."""
        least = min(self._losses)
        if least <= 0:
            found = [float(loss <= 0) for loss in self._losses]
        else:
            found = [(least / loss) ** SHARPNESS for loss in self._losses]
        return [weight / sum(found) for weight in found]

    def predict(self, job: Job) -> Prediction:
        """Return the weighted average of the predictions."""
        found = self._predictions[job.index] = [each.predict(job) for each in self._predictors]
        weighted = list(zip(self.weights, found, strict=True))
        return Prediction(
            sum(weight * each.mean for weight, each in weighted),
            1 / sum(weight / each.harmonic for weight, each in weighted),
            tuple(
                sum(weight * each.quantiles[place] for weight, each in weighted)
                for place in range(len(LEVELS))
            ),
        )

    def observe(self, job: Job, took: int) -> None:
        """Update the losses, if the job was predicted, and let all predictors learn from it."""
        for place, prediction in enumerate(self._predictions.pop(job.index, [])):
            loss = pinball(prediction, took) / job.requested_time
            self._losses[place] = self.decay * self._losses[place] + (1 - self.decay) * loss
        for predictor in self._predictors:
            predictor.observe(job, took)


def pinball(prediction: Prediction, took: int) -> float:
    """Return the pinball loss of a prediction [s]: the mean over its quantiles.

    A quantile of level p costs p per second by which it is exceeded, and 1 - p per second by which it is not
    reached.

    >>> round(pinball(Prediction.certain(60.0), took=50), 2)
    5.0
    """
    errors = [took - quantile for quantile in prediction.quantiles]
    costs = [max(level * error, (level - 1) * error) for level, error in zip(LEVELS, errors, strict=True)]
    return sum(costs) / len(costs)
