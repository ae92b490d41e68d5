"""A family of agents: trained in one way, shown together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.workload import Workload

__all__ = ["Family", "ForDay", "row_of"]

ForDay = Callable[[Dispatch, Workload], Dispatch]
"""``for_day(scheduler, jobs)`` returns the scheduler as it may be on a day: it knows what is past by then."""


class Family(NamedTuple):
    """Agents that are trained in one way.

    Parameters
    ----------
    name : str
        What tables call it.
    about : str
        How they differ from those of other families.
    learners : mapping of str to sequence of Learner
        By the metric they are trained for.
    samples : tuple of bool
        Whether actions are drawn, or the best is taken; the first is what the family is judged by.
    controls : mapping of str to Policy
        Further rows that belong to it, such as its agents before they have learned anything.
    for_day : callable, optional
        What its schedulers know on a day; see :data:`ForDay`.
    """

    name: str
    about: str
    learners: Mapping[str, Sequence[Learner]]
    samples: tuple[bool, ...] = (True, False)
    controls: Mapping[str, Policy] = {}
    for_day: ForDay | None = None

    def row(self, metric: str) -> str:
        """Return the row of the agents that were trained for a metric, or for wait if none was."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return row_of(self.name, trained, sample=self.samples[0])

    def rows(self, metric: str) -> list[str]:
        """Return that row, those of the same agents that choose otherwise, and its controls."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return [*(row_of(self.name, trained, sample=each) for each in self.samples), *self.controls]


def row_of(family: str, metric: str, *, sample: bool) -> str:
    """Return the row of a family's agents for a metric.

    >>> row_of("published", "wait", sample=True), row_of("published", "wait", sample=False)
    ('published, for wait', 'published, for wait, greedy')
    """
    return f"{family}, for {metric}{'' if sample else ', greedy'}"
