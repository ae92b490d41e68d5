"""The candidates: orders of two forms, from different features, as columns for a search and as names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import KeyColumn, RateColumn

__all__ = ["CLAIRVOYANT", "FAMILIES", "RIVALS", "VARIANTS", "Family"]

Floats = NDArray[np.float64]

RIVALS = (
    "fcfs+easy",
    "sjf+easy",
    "saf+easy",
    "srf+easy",
    "sqf+easy",
    "f1+easy",
    "f2+easy",
    "f3+easy",
    "f4+easy",
    "wfp3+easy",
    "unicef+easy",
    "xfactor+easy",
    "fcfs+easy-sjf",
    "fcfs+easy-saf",
    "fcfs+easy++",
    "sjf+easy++",
    "saf+easy++",
)
"""Heuristics that a centre may choose from."""

CLAIRVOYANT = ("oracle-sjf+easy", "oracle-saf+easy")
"""Orders that read run times: a bound of what predictions can give to an order of this kind."""

VARIANTS = ("+easy-weighted({weights})+history", "+easy+history(reservations=true)")
"""Other backfilling behind the chosen order, by the same weights or with predicted run times."""

BOUND, SCALE, EXPONENT = (600.0, 3.0e7), (1e-6, 1e9), (-3.0, 3.0)
"""Ranges of the parameters: bound [s], factor of the product, exponents."""


class Family(NamedTuple):
    """Orders of the same form that use the same features.

    Parameters
    ----------
    form : {"bounded", "aged"}
        Form of the order: :class:`~hpcsimkit.policies.Bounded` or :class:`~hpcsimkit.policies.Aged`.
    features : tuple of str
        Features among ``mean``, ``harmonic``, ``requested`` and ``size``.
    """

    form: str
    features: tuple[str, ...]

    @property
    def name(self) -> str:
        """Form and features."""
        return "-".join((self.form, *self.features))

    @property
    def ranges(self) -> tuple[list[float], list[float]]:
        """Lowest and highest position of each dimension of the search."""
        own = (BOUND, SCALE) if self.form == "bounded" else ()
        pairs = [*((log(low), log(high)) for low, high in own), *[EXPONENT] * len(self.features)]
        return [low for low, _ in pairs], [high for _, high in pairs]

    def start(self, longest: float) -> list[float]:
        """Return the first position of a search: run times in equal shares, and a given bound [s]."""
        times = [feature for feature in self.features if feature != "size"]
        exponents = [1 / len(times) if feature in times else 0.0 for feature in self.features]
        own = (min(max(longest, 10 * BOUND[0]), BOUND[1]), 50.0) if self.form == "bounded" else ()
        return [*map(log, own), *exponents]

    def parameters(self, position: Sequence[float]) -> dict[str, float]:
        """Return the parameters of the order at a position, with four digits.

        >>> FAMILIES[0].parameters([log(3600), 0.0, 0.5, 0.0])
        {'bound': 3600.0, 'scale': 1.0, 'requested': 0.5, 'size': 0.0}
        """
        own = ("bound", "scale") if self.form == "bounded" else ()
        found = {name: exp(value) for name, value in zip(own, position, strict=False)}
        found |= dict(zip(self.features, position[len(own) :], strict=True))
        return {name: float(f"{value:.4g}") for name, value in found.items()}

    def order(
        self, parameters: Mapping[str, float], submit: Floats, logarithms: Mapping[str, Floats]
    ) -> Order:
        """Return the order for jobs with known features.

        Parameters
        ----------
        parameters : mapping of str to float
            Parameters of the order.
        submit : array of float64, shape (jobs,)
            Submission times [s].
        logarithms : mapping of str to array of float64, shape (jobs,)
            Natural logarithms of the features.
        """
        product = sum((parameters[name] * logarithms[name] for name in self.features), np.zeros(len(submit)))
        if self.form == "aged":
            return RateColumn(np.exp(product))
        slack = np.minimum(product + log(parameters["scale"]), log(parameters["bound"]))
        return KeyColumn(submit + np.exp(slack))

    def policy(self, parameters: Mapping[str, float], behind: str = "+easy+history") -> str:
        """Return the name of the policy of some parameters.

        >>> FAMILIES[1].policy({"bound": 3600.0, "scale": 1.0, "mean": 0.5, "size": 0.0})
        'bounded(bound=3600.0,scale=1.0,mean=0.5,size=0.0,requested=0)+easy+history'
        """
        absent = {"requested": 0} if self.form == "bounded" and "requested" not in self.features else {}
        weights = {name: parameters[name] for name in self.features}
        return f"{self.form}({_given({**parameters, **absent})}){behind.format(weights=_given(weights))}"


FAMILIES = tuple(
    Family(form, features)
    for form in ("bounded", "aged")
    for features in (
        ("requested", "size"),
        ("mean", "size"),
        ("mean", "harmonic", "requested", "size"),
    )
)
"""The families of both forms."""


def _given(values: Mapping[str, float]) -> str:
    return ",".join(f"{name}={value!r}" for name, value in values.items())
