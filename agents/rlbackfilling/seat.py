"""The backfiller's seat, opened: what may start behind a blocked job, and by which rules."""

from __future__ import annotations

from typing import Literal

from hpcsimkit.decision import External
from hpcsimkit.errors import UsageError
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates
from hpcsimkit.policy import FCFS, Backfiller, Order
from hpcsimkit.reservation import EASY

__all__ = ["MODES", "Mode", "backfilling_seat"]

Mode = Literal["guarded", "penalty", "unguarded"]

MODES: tuple[Mode, ...] = ("guarded", "penalty", "unguarded")
"""What keeps an agent from delaying the blocked job: it cannot, it is paid less for it, nothing does."""

SLOTS = 128
"""Candidates that RLBackfilling's agent sees at most."""


def backfilling_seat(
    order: Order | None = None,
    mode: Mode = "guarded",
    *,
    semantics: Literal["textbook", "dirlab"] = "textbook",
    decline: bool = False,
    slots: int = SLOTS,
) -> Pipeline:
    """Return a scheduler with its backfiller's seat open.

    Parameters
    ----------
    order : Order, optional
        Which job is first; by default first come, first served. Published orders are in
        :data:`~hpcsimkit.policies.dirlab.orders.ORDERS`.
    mode : {"guarded", "penalty", "unguarded"}
        *guarded*: offered is only what does not delay the blocked job, by the rule of
        :class:`~hpcsimkit.reservation.EASY` or, with the semantics ``dirlab``, by the published one.
        *unguarded*: all that fits is offered (where a single job fits it is started if it ends before the
        reservation, else not). *penalty*: the same; the reward is to be a
        :class:`~hpcsimkit.agents.rlbackfilling.reward.TimelyImprovement` with a penalty.
    semantics : {"textbook", "dirlab"}
        By which rules it will run.
    decline : bool
        An agent may also start nothing. (The published one may not.)
    slots : int
        With unguarded seats so many candidates are offered at most.

    Raises
    ------
    UsageError
        There is no such mode, or no such semantics.

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
