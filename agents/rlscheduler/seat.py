"""RLScheduler's open order seat: the choice of the next job, binding until it starts."""

from __future__ import annotations

from typing import Literal

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.dirlab.backfilling import PublishedEASY

__all__ = ["scheduling_seat"]


def scheduling_seat(
    *, backfilling: bool = False, semantics: Literal["textbook", "dirlab"] = "textbook", slots: int = 128
) -> Pipeline:
    """Return a scheduler with an open order seat; the options are the jobs that have waited longest.

    Parameters
    ----------
    backfilling : bool
        Whether other jobs may start behind a chosen job that does not fit, by the rules of
        :class:`~hpcsimkit.kernel.reservation.EASY` or, with ``dirlab``, by the published ones.
    semantics : {"textbook", "dirlab"}
        Semantics of the simulation. With ``dirlab`` a choice is binding until the job starts; otherwise
        there is a new decision at every event.
    slots : int
        Maximum number of options.

    Raises
    ------
    UsageError
        The semantics is unknown.

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
    )
