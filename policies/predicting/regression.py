"""On-line regression of run times with an asymmetric loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.features import FEATURES, Features
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.shares import Shares

__all__ = ["NormalizedGradient", "Regression", "loss_slope"]

HOUR = 3600

Floats = NDArray[np.float64]


class Regression(Predictor):
    """On-line polynomial regression on the features of the user's jobs.

    The loss of a prediction f of a run time r, in hours, of a job on q nodes is w (f - r)^2 if f >= r and
    w (r - f) if f < r, where w is the logarithm of 1 plus its node-seconds: large jobs count most, and so do
    predictions that are far too long. (In seconds, the best predictions would be nearly 0.) The weights
    follow its gradient after each job that ends; unlike in the paper, they are not regularized. The mean is
    the regression itself, between 1 s and the requested time; the harmonic mean and the quantiles are those
    of the ratios r / f of the last 1000 jobs, times f, capped at the requested time. (Gaussier, Glesser, Reis
    & Trystram, SC 2015.)

    Parameters
    ----------
    rate : float
        Learning rate [s], > 0.
    degree : int
        Degree of the polynomial: 1 or 2.

    Examples
    --------
    >>> Regression(degree=1)
    Regression(degree=1)
    """

    def __init__(self, rate: float = 10_000.0, degree: int = 2) -> None:
        self.rate = rate
        self.degree = degree

    def reset(self, system: System) -> None:
        """Check the parameters and set all weights to zero."""
        if not (isinstance(self.rate, int | float) and 0 < self.rate < float("inf")):
            raise UsageError(f"a regression needs a rate above 0, found {self.rate!r}")
        if self.degree not in (1, 2):
            raise UsageError(f"a regression needs the degree 1 or 2, found {self.degree!r}")
        self._features = Features(system)
        self._inputs: dict[int, Floats] = {}
        self._predicted: dict[int, float] = {}
        self._ratios = Shares()
        self._pairs = np.triu_indices(len(FEATURES))
        products = len(self._pairs[0]) if self.degree == 2 else 0
        self._model = NormalizedGradient(1 + len(FEATURES) + products, self.rate)

    def predict(self, job: Job) -> Prediction:
        """Return the value of the polynomial, with the distribution of recent ratios around it."""
        features, (first, second) = self._features.of(job), self._pairs
        products = features[first] * features[second] if self.degree == 2 else np.zeros(0)
        inputs = self._inputs[job.index] = np.concatenate(([1.0], features, products))
        value = min(max(self._model.value(inputs), 1.0), job.requested_time)
        self._predicted[job.index] = value
        _, inverse, quantiles = self._ratios.times(value)
        return Prediction(value, 1 / inverse, tuple(quantiles)).within(job.requested_time)

    def observe(self, job: Job, took: int) -> None:
        """Follow the gradient of the loss of the job, if it was predicted."""
        self._features.observe(job, took)
        inputs = self._inputs.pop(job.index, None)
        if inputs is not None:
            self._ratios.add(took / self._predicted.pop(job.index))
            self._model.learn(inputs, lambda value: loss_slope(value, took, job.nodes))


def loss_slope(predicted: float, took: int, nodes: int) -> float:
    """Return the derivative of the loss with respect to the prediction [1/h].

    >>> loss_slope(1900.0, 100, 2) / math.log(201), loss_slope(70.0, 100, 2) / math.log(201)
    (1.0, -1.0)
    """
    weight = math.log1p(took * nodes)
    return weight * 2 * (predicted - took) / HOUR if predicted >= took else -weight


class NormalizedGradient:
    """Linear model that follows adaptive gradients, invariant to the scales of its inputs.

    The NAG algorithm. (Ross, Mineiro & Langford, UAI 2013, algorithm 2.)

    Parameters
    ----------
    inputs : int
        Number of inputs.
    rate : float
        Learning rate, in units of the output.

    Examples
    --------
    The first step is the learning rate times the root of the number of inputs that are not 0:

    >>> model, inputs = NormalizedGradient(3, rate=0.5), np.array([1.0, 20.0, 0.0])
    >>> model.learn(inputs, slope=lambda value: value - 9)
    >>> round(model.value(inputs), 3)
    0.707
    """

    def __init__(self, inputs: int, rate: float) -> None:
        self._rate = rate
        self._weights = np.zeros(inputs)
        self._scale = np.zeros(inputs)
        self._squares = np.zeros(inputs)
        self._norm = 0.0
        self._steps = 0

    def value(self, inputs: Floats) -> float:
        """Return the output for some inputs, float64, shape (inputs,)."""
        return float(self._weights @ inputs)

    def learn(self, inputs: Floats, slope: Callable[[float], float]) -> None:
        """Take one step; `slope` is the derivative of the loss with respect to the output."""
        size = np.abs(inputs)
        larger = size > self._scale
        self._weights[larger] *= self._scale[larger] / size[larger]
        self._scale = np.maximum(self._scale, size)
        scale = np.where(self._scale > 0, self._scale, 1.0)
        self._norm += float(np.sum((inputs / scale) ** 2))
        self._steps += 1
        gradient = slope(self.value(inputs)) * inputs
        self._squares += gradient**2
        known = self._squares > 0
        step = gradient[known] / (scale[known] * np.sqrt(self._squares[known]))
        self._weights[known] -= self._rate * math.sqrt(self._steps / self._norm) * step
