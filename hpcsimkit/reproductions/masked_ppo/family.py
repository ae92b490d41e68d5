"""A group of agents with the same training protocol, shown together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reproductions.learners import Learner

__all__ = ["Family", "ForDay", "row_of"]

ForDay = Callable[[Dispatch, Workload], Dispatch]
"""``for_day(scheduler, jobs)`` returns the scheduler restricted to knowledge from before a day."""


class Family(NamedTuple):
    """Agents with the same training protocol.

    Parameters
    ----------
    name : str
        Name in the tables.
    about : str
        Difference from the other groups.
    learners : mapping of str to sequence of Learner
        Learners by the metric that they are trained for.
    samples : tuple of bool
        Whether actions are sampled or greedy, for each variant under test; the first variant is compared with
        the baselines.
    controls : mapping of str to Policy
        Further rows of the group, such as its agents before training.
    for_day : callable, optional
        Function that restricts the knowledge of its schedulers on a day; see :data:`ForDay`.
    """

    name: str
    about: str
    learners: Mapping[str, Sequence[Learner]]
    samples: tuple[bool, ...] = (True, False)
    controls: Mapping[str, Policy] = {}
    for_day: ForDay | None = None

    def row(self, metric: str) -> str:
        """Return the row of the agents trained for a metric, or for wait if there are none."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return row_of(self.name, trained, sample=self.samples[0])

    def rows(self, metric: str) -> list[str]:
        """Return the rows of these agents in all variants, and the group's controls."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return [*(row_of(self.name, trained, sample=each) for each in self.samples), *self.controls]


def row_of(family: str, metric: str, *, sample: bool) -> str:
    """Return the row of a group's agents for a metric.

    >>> row_of("published", "wait", sample=True), row_of("published", "wait", sample=False)
    ('published, for wait', 'published, for wait, greedy')
    """
    return f"{family}, for {metric}{'' if sample else ', greedy'}"
