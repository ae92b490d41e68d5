"""RLScheduler's seat: who sits there chooses the next job, and keeps to it until it starts."""

from __future__ import annotations

from typing import Literal

from hpcsimkit.decision import External
from hpcsimkit.errors import UsageError
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.dirlab.backfilling import PublishedEASY
from hpcsimkit.policy import FCFS
from hpcsimkit.reservation import EASY

__all__ = ["scheduling_seat"]


def scheduling_seat(
    *, backfilling: bool = False, semantics: Literal["textbook", "dirlab"] = "textbook", slots: int = 128
) -> Pipeline:
    """Return a scheduler with its order seat open: the jobs that have waited longest are offered.

    Parameters
    ----------
    backfilling : bool
        Behind a chosen job that does not fit others may start, by the rules of
        :class:`~hpcsimkit.reservation.EASY` or, with ``dirlab``, by the published ones.
    semantics : {"textbook", "dirlab"}
        By which rules it will run. With ``dirlab`` a chosen job is kept to until it starts; otherwise who
        sits there is asked again whenever something happens.
    slots : int
        Jobs that are offered at most.

    Raises
    ------
    UsageError
        There are no such rules.

    Examples
    --------
    >>> scheduling_seat(semantics="dirlab")
    Pipeline(order=External(base=FCFS()), commit=True, window=128)
    """
    if semantics not in ("textbook", "dirlab"):
        raise UsageError(f"semantics needs 'textbook' or 'dirlab', found {semantics!r}")
    published = semantics == "dirlab"
    easy = PublishedEASY() if published else EASY()
    return Pipeline(
        External(FCFS()), backfiller=easy if backfilling else None, commit=published, window=slots
    )  # fmt: skip
