"""Where an agent differs from a heuristic: in classes of jobs, in hours of the day, and in its choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.evaluation.choices import FEATURES
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.metrics import select
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Mean, means_of

CLASSES: tuple[By, ...] = ("size", "run_time", "hour", "gpus", "partition", "queue")
"""Criteria of the classes; those with a single class are left out."""

MEASURES = ("mean_wait_time", "mean_bounded_slowdown")
"""Metrics of jobs that are compared by class."""

Outcomes = Sequence[Mapping[str, Any]]
Floats = NDArray[np.float64]


class Part(NamedTuple):
    """Comparison of the agent with another policy in a part of the jobs or decisions.

    Parameters
    ----------
    by : str
        Criterion of the class, or ``choice``.
    label : str
        Class of jobs, or feature of the decisions.
    jobs : int
        Number of measured jobs in the class; of a feature, number of decisions in which the agent differs.
    own, other : float
        Mean over the sequences of the mean in each, for the agent and for the other policy.
    difference : Mean
        Mean of the paired differences over the sequences. There are no tests: among many classes, some differ
        by chance.
    share : float
        Part of the difference over all jobs that is due to the class; the parts of a criterion add up to 1.
        NaN for a feature.
    """

    by: str
    label: str
    jobs: int
    own: float
    other: float
    difference: Mean
    share: float

    @property
    def relative(self) -> float:
        """Difference as a share of the mean of the other policy."""
        return self.difference.mean / self.other if self.other else float("nan")


def measure_of(metric: str) -> str:
    """Return the metric of jobs that is closest to a metric of the evaluation.

    >>> measure_of("max_bounded_slowdown"), measure_of("utilisation")
    ('mean_bounded_slowdown', 'mean_wait_time')
    """
    return MEASURES["slowdown" in metric]


def class_sums(result: Result, warmup: float) -> dict[str, list[list[Any]]]:
    """Return the classes of each criterion: number, label, jobs, and the sum of each of `MEASURES`."""
    rows = select(result, warmup=warmup).jobs & result.finished
    values = [result.wait_time[rows], result.bounded_slowdown()[rows]]
    found: dict[str, list[list[Any]]] = {}
    for by in CLASSES:
        number, label = classes_of(result, by)
        numbers, place = np.unique(number[rows], return_inverse=True)
        sums = [np.bincount(place, weights=each).tolist() for each in values]
        columns = zip(numbers.tolist(), np.bincount(place).tolist(), *sums, strict=True)
        found[by] = [[each, label(each), *rest] for each, *rest in columns]
    return found


def by_class(outcomes: Outcomes, agent: str, other: str, measure: str) -> list[Part]:
    """Compare the agent with another policy in each class of jobs, by the classes' means in each sequence."""
    found: list[Part] = []
    for by in CLASSES:
        rows = [row for each in outcomes for name in (agent, other) for row in each["classes"][name][by]]
        numbers = {label: number for number, label, *_ in rows}
        labels = sorted(numbers, key=lambda label: numbers[label])
        if len(labels) > 1:
            tables = (_table(outcomes, name, by, labels, measure) for name in (agent, other))
            found += _parts(by, labels, *tables)
    return found


def _table(outcomes: Outcomes, policy: str, by: str, labels: Sequence[str], measure: str) -> Floats:
    """Return the number of jobs and the sum of a metric, shape (classes, sequences, 2)."""
    found = np.zeros((len(labels), len(outcomes), 2))
    for place, outcome in enumerate(outcomes):
        for _, label, jobs, *sums in outcome["classes"][policy][by]:
            found[labels.index(label), place] = jobs, sums[MEASURES.index(measure)]
    return found


def _parts(by: str, labels: Sequence[str], own: Floats, other: Floats) -> Iterator[Part]:
    """Yield the comparison of each class with jobs under both policies in some sequence."""
    gaps = ((own - other)[:, :, 1] / np.maximum(own[:, :, 0].sum(axis=0), 1)).mean(axis=1)
    both = (own[:, :, 0] > 0) & (other[:, :, 0] > 0)
    known = np.flatnonzero(both.any(axis=1)).tolist()
    means = [[_mean(table[row, both[row]]) for table in (own, other)] for row in known]
    differences = means_of([one - two for one, two in means])
    for row, (one, two), difference in zip(known, means, differences, strict=True):
        share = float(gaps[row] / gaps.sum()) if gaps.sum() else float("nan")
        jobs = int(own[row, :, 0].sum())
        yield Part(by, labels[row], jobs, float(one.mean()), float(two.mean()), difference, share)


def _mean(table: Floats) -> Floats:
    return table[:, 1] / table[:, 0]


def by_choice(outcomes: Outcomes) -> list[Part]:
    """Compare the features of the agent's choices with those of the heuristic, by their means in sequences.

    Sequences without a differing choice, or without an other one to compare with, are left out.
    """
    rows = [each for each in (outcome["choices"] for outcome in outcomes) if each["own"] and each["others"]]
    if not rows:
        return []
    own, others = (np.array([each[name] for each in rows]).T for name in ("own", "others"))
    differing = sum(each["differing"] for each in rows)
    return [
        Part("choice", name, differing, float(one.mean()), float(two.mean()), difference, float("nan"))
        for name, one, two, difference in zip(
            FEATURES, own, others, means_of(list(own - others)), strict=False
        )
    ]
