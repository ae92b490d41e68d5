"""The open seat of the backfiller: its candidates and rules."""

from __future__ import annotations

from typing import Literal

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Backfiller, Order
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates

__all__ = ["MODES", "Mode", "backfilling_seat"]

Mode = Literal["guarded", "penalty", "unguarded"]

MODES: tuple[Mode, ...] = ("guarded", "penalty", "unguarded")
"""Protection of the blocked job from delays: enforced, by a penalty in the reward, or none."""

SLOTS = 128
"""Maximum number of candidates that RLBackfilling's agent sees."""


def backfilling_seat(
    order: Order | None = None,
    mode: Mode = "guarded",
    *,
    semantics: Literal["textbook", "dirlab"] = "textbook",
    decline: bool = False,
    slots: int = SLOTS,
) -> Pipeline:
    """Return a scheduler with an open backfiller seat.

    Parameters
    ----------
    order : Order, optional
        Queue order; by default first come, first served. Published orders are in
        :data:`~hpcsimkit.policies.dirlab.orders.ORDERS`.
    mode : {"guarded", "penalty", "unguarded"}
        Protection of the blocked job. *guarded*: candidates are the jobs that do not delay it, by the rule of
        :class:`~hpcsimkit.kernel.reservation.EASY` or, with the semantics ``dirlab``, by the published rule.
        *unguarded*: all jobs that fit are candidates (a single one is no decision: it starts if it ends
        before the reservation). *penalty*: the same, for a
        :class:`~hpcsimkit.agents.rlbackfilling.reward.TimelyImprovement` with a penalty as the reward.
    semantics : {"textbook", "dirlab"}
        Semantics of the simulation.
    decline : bool
        Whether the agent may start no job. (The published one may not.)
    slots : int
        Maximum number of candidates on an unguarded seat.

    Raises
    ------
    UsageError
        The mode or the semantics is unknown.

    Examples
    --------
    >>> backfilling_seat()
    Pipeline(order=FCFS(), backfiller=External(base=EASY(), skip=True))
    >>> backfilling_seat(mode="unguarded", decline=True)
    Pipeline(order=FCFS(), backfiller=External(base=FittingCandidates(), decline=True, skip=True))
    """
    if mode not in MODES:
        raise UsageError(f"a mode of backfilling needs one of {', '.join(MODES)}, found {mode!r}")
    if semantics not in ("textbook", "dirlab"):
        raise UsageError(f"semantics needs 'textbook' or 'dirlab', found {semantics!r}")
    guarded = mode == "guarded"
    offers: Backfiller = FittingCandidates(guarded=guarded, slots=slots)
    if guarded and semantics == "textbook":
        offers = EASY()
    return Pipeline(order or FCFS(), backfiller=External(offers, decline=decline, skip=True))
