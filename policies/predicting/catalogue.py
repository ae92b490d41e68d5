"""The names of all predictors."""

from __future__ import annotations

from collections.abc import Callable

from hpcsimkit.errors import UsageError, close_words
from hpcsimkit.policies.predicting.boosting import Boosting
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.last_two import LastTwoMean
from hpcsimkit.policies.predicting.mixture import Mixture
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.regression import Regression
from hpcsimkit.policies.predicting.requested import RequestedTime

__all__ = ["PREDICTORS", "predictor_named"]

PREDICTORS: dict[str, Callable[[], Predictor]] = {
    "requested": RequestedTime,
    "last-two": LastTwoMean,
    "history": History,
    "regression": Regression,
    "mixture": Mixture,
    "boosting": Boosting,
}
"""Predictors by name; boosting, the last one, needs scikit-learn."""


def predictor_named(name: str) -> Predictor:
    """Return a predictor with its default parameters.

    Raises
    ------
    UsageError
        The name is unknown.

    Examples
    --------
    >>> predictor_named("history")
    History()
    """
    if name not in PREDICTORS:
        nearest = ", ".join(close_words(name, PREDICTORS)) or ", ".join(PREDICTORS)
        raise UsageError(f"unknown predictor {name!r}; nearest: {nearest}")
    return PREDICTORS[name]()
