"""The order to learn, as columns for a search and as a name, and the heuristics to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.policies import KeyColumn

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

FEATURES = ("mean", "requested", "size")
"""Features of the order: predicted mean run time, requested time, and number of nodes."""

RANGES = ((log(600.0), log(3.0e7)), (log(1e-6), log(1e9)), *[(-3.0, 3.0)] * len(FEATURES))
"""Ranges of the positions of a search: logarithms of bound [s] and scale, and the exponents."""

FIRST_SCALE, FIRST_EXPONENTS = 5.0, (0.5, 0.5, 0.1)
"""Scale, for a job of typical size, and exponents with which each search begins."""

BEHIND = "+easy-weighted(mean=1)+"
"""Backfilling behind the order, shortest predicted run time first; a predictor follows."""

PREDICTOR, PERFECT = "history", "actual(reservations=false)"
"""The predictor of an order, and one that reads run times."""


def start(longest: float, size: Floats) -> list[float]:
    """Return the first position of a search.

    `longest` is the longest wait of FCFS with EASY [s], the first bound; `size` has natural logarithms of the
    numbers of nodes.
    """
    bound = min(max(log(longest + 1), RANGES[0][0]), RANGES[0][1])
    return [bound, log(FIRST_SCALE) - FIRST_EXPONENTS[-1] * float(size.mean()), *FIRST_EXPONENTS]


def parameters(position: Sequence[float]) -> dict[str, float]:
    """Return the parameters of the order at a position, with four digits.

    >>> parameters([log(3600), 0.0, 0.5, 0.5, 0.0])
    {'bound': 3600.0, 'scale': 1.0, 'mean': 0.5, 'requested': 0.5, 'size': 0.0}
    """
    bound, scale, *exponents = position
    found = {"bound": exp(bound), "scale": exp(scale), **dict(zip(FEATURES, exponents, strict=True))}
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def keys(found: Mapping[str, float], submit: Floats, logarithms: Mapping[str, Floats]) -> KeyColumn:
    """Return the order of jobs with known features.

    Submission times are in seconds; features are natural logarithms.
    """
    slack = log(found["scale"]) + sum(found[name] * logarithms[name] for name in FEATURES)
    return KeyColumn(submit + np.exp(np.minimum(slack, log(found["bound"]))))


def policy_of(found: Mapping[str, float], predictor: str = PREDICTOR) -> str:
    """Return the name of the policy of some parameters, with a predictor.

    >>> policy_of(parameters([log(3600), 0.0, 0.5, 0.5, 0.0])).split("+")[0]
    'bounded(bound=3600.0,scale=1.0,mean=0.5,requested=0.5,size=0.0)'
    """
    return f"bounded({','.join(f'{name}={value!r}' for name, value in found.items())}){BEHIND}{predictor}"


def with_guard(policy: str, fallback: str, metric: str) -> str:
    """Return a policy whose order falls back to that of another one, by what both do to a metric.

    >>> with_guard("bounded(scale=3.0)+easy+history", "xfactor+easy", "mean_wait_time")
    'guarded(bounded(scale=3.0),fallback=xfactor,objective=wait)+easy+history'
    """
    order, behind = policy.split("+", 1)
    objective = "bounded_slowdown" if metric == "mean_bounded_slowdown" else "wait"
    return f"guarded({order},fallback={fallback.split('+')[0]},objective={objective})+{behind}"
