"""Schedulers with the published rules, with the textbook's, and with all published rules but one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import EASY, SJF, WFP3, HoldUnfit
from hpcsimkit.policies.dirlab import PublishedEASY, ShortestFitting, learned_backfilling, published
from hpcsimkit.policies.dirlab.orders import CorrectedUNICEF
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.reproductions.published_rules.variants import PartialEASY

__all__ = [
    "ANEW",
    "EASY_SJF",
    "ESTIMATES",
    "GUARDED",
    "GUARDED_CHANCE",
    "HEAD",
    "IN_ORDER",
    "LADDER",
    "LAST_SECOND",
    "MEANT",
    "NOT_SKIPPED",
    "PUBLISHED",
    "REPEATS",
    "RULES",
    "SPARE",
    "TEXTBOOK",
    "TOGETHER",
    "UNFIT",
    "UNFIT_FREE",
    "UNGUARDED",
    "UNGUARDED_CHANCE",
    "Scheduler",
    "as_meant",
    "one_rule_at_a_time",
    "untrained",
]

PUBLISHED, TEXTBOOK = "published", "textbook"
HEAD, TOGETHER, ESTIMATES = "head anew", "events together", "other estimates"
NOT_SKIPPED, IN_ORDER, ANEW, LAST_SECOND, SPARE = (
    "nobody skipped",
    "candidates in order",
    "+ reservation anew",
    "+ last second",
    "+ spare nodes",
)
LADDER = (NOT_SKIPPED, IN_ORDER, ANEW, LAST_SECOND, SPARE)
"""Backfilling rules, cumulative: with the last of them it is textbook EASY."""

RULES = (HEAD, TOGETHER, ESTIMATES, *LADDER, TEXTBOOK)
"""Rules in the order of tables."""

MEANT = "as meant"
UNFIT, UNFIT_FREE = "reject iff unfit", "reject iff unfit, no cap"
EASY_SJF = "textbook, SJF candidates"
UNGUARDED, UNGUARDED_CHANCE = "unguarded shortest", "unguarded random"
GUARDED, GUARDED_CHANCE = "guarded shortest", "guarded random"

SLOTS = 128
"""Maximum number of candidates in the observation of RLBackfilling's agent."""

REPEATS = 5
"""Number of runs of each sequence with a stochastic policy."""


@dataclass(frozen=True)
class Scheduler:
    """A policy and its event semantics.

    Parameters
    ----------
    policy : Pipeline
        Scheduling policy.
    rules : {"dirlab", "textbook"}
        Event semantics: one event at a time, or all events of an instant together.
    swapped : bool
        Whether jobs have the other estimates: see
        :meth:`~hpcsimkit.reproductions.published_rules.data.Trace.log`.
    repeats : int
        Number of runs of each sequence that a value averages; more than one for stochastic policies.
    """

    policy: Pipeline
    rules: Literal["dirlab", "textbook"] = "dirlab"
    swapped: bool = False
    repeats: int = 1

    def slowdown(self, scenario: Scenario, seed: int) -> float:
        """Return the mean bounded slowdown of a sequence.

        Parameters
        ----------
        scenario : Scenario
            Sequence of jobs.
        seed : int
            Random seed, combined with the number of the repetition.
        """
        if self.rules == "textbook":
            scenario = replace(scenario, semantics="textbook", following=None)
        runs = (replace(scenario, seed=self.repeats * seed + number) for number in range(self.repeats))
        slowdowns = [run.simulation(self.policy).run().bounded_slowdown().mean() for run in runs]
        return float(sum(slowdowns)) / self.repeats


def one_rule_at_a_time(
    code: str, order: str, *, backfilling: bool, estimates: bool
) -> Iterator[tuple[str, Scheduler]]:
    """Yield the published scheduler, its variants with one rule changed, and the textbook scheduler.

    Parameters
    ----------
    code : str
        Code base of the rules.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    estimates : bool
        Whether to include the variant with the other estimates.
    """
    base = published(code, order, backfilling=backfilling)
    yield PUBLISHED, Scheduler(base)
    yield HEAD, Scheduler(_changed(base, commit=False))
    yield TOGETHER, Scheduler(base, rules="textbook")
    if estimates:
        yield ESTIMATES, Scheduler(base, swapped=True)
    if backfilling:
        yield from _ladder(code, order, base)
    yield TEXTBOOK, Scheduler(_textbook(order_of(code, order), backfilling=backfilling), rules="textbook")


def _ladder(code: str, order: str, base: Pipeline) -> Iterator[tuple[str, Scheduler]]:
    """Yield backfilling variants with cumulatively more of the textbook's rules."""
    if code == "rlbackfilling":
        yield NOT_SKIPPED, Scheduler(_changed(base, backfiller=PublishedEASY()))
    yield IN_ORDER, Scheduler(_changed(base, backfiller=PublishedEASY(order_of(code, order))))
    anew = PartialEASY(spare_nodes=False, last_second=False)
    yield ANEW, Scheduler(_changed(base, backfiller=anew))
    yield LAST_SECOND, Scheduler(_changed(base, backfiller=PartialEASY(spare_nodes=False)))
    yield SPARE, Scheduler(_changed(base, backfiller=EASY()))


def as_meant(order: str, *, backfilling: bool) -> Iterator[tuple[str, Scheduler]]:
    """Yield RLScheduler's WFP3 or UNICEF as coded, as meant, and as meant under textbook semantics."""
    base = published("rlscheduler", order, backfilling=backfilling)
    meant: Order = WFP3() if order == "wfp3" else CorrectedUNICEF()
    yield PUBLISHED, Scheduler(base)
    yield MEANT, Scheduler(_changed(base, order=meant))
    yield TEXTBOOK, Scheduler(_textbook(meant, backfilling=backfilling), rules="textbook")


def untrained(code: str, order: str, *, backfilling: bool) -> Iterator[tuple[str, Scheduler]]:
    """Yield untrained policies on the agent's seat, SchedInspector's or RLBackfilling's."""
    if code == "schedinspector":
        inspected = published(code, order, backfilling=backfilling, inspector=HoldUnfit())
        yield UNFIT, Scheduler(inspected)
        yield UNFIT_FREE, Scheduler(_changed(inspected, max_rejections=None))
    if code == "rlbackfilling":
        for guarded, shortest, chance in (
            (False, UNGUARDED, UNGUARDED_CHANCE),
            (True, GUARDED, GUARDED_CHANCE),
        ):
            seat = learned_backfilling(order, guarded=guarded)
            offers = seat.backfiller.base  # type: ignore[union-attr]
            yield shortest, Scheduler(_changed(seat, backfiller=ShortestFitting(offers)))
            yield (
                chance,
                Scheduler(_changed(seat, backfiller=RandomAgent(Slots(SLOTS), offers)), repeats=REPEATS),
            )
        sjf = Pipeline(order_of(code, order), backfiller=EASY(SJF()))
        yield EASY_SJF, Scheduler(sjf, rules="textbook")


def _textbook(order: Order, *, backfilling: bool) -> Pipeline:
    return Pipeline(order, backfiller=EASY() if backfilling else None)


def _changed(pipeline: Pipeline, **changes: Any) -> Pipeline:
    """Return a copy of a pipeline with other parameters."""
    other = copy.copy(pipeline)
    vars(other).update(changes)
    return other
