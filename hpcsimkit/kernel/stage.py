"""The base class of all stages of a pipeline, and the events that stages and policies hear of."""

from __future__ import annotations

from typing import Any

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["Hearing", "Stage"]


class Hearing(Parameters):
    """A part of a scheduler that may follow the events of its run; override the methods you need.

    Those that are not overridden cost nothing. On a cluster with partitions, the copy of each partition hears
    of all jobs, and `system` is that of the whole cluster.
    """

    heeds_calendar = True
    """Whether it works beside a calendar: starts and reservations keep to what is known to be gone ahead."""

    def on_submit(self, job: Job, system: System) -> None:
        """Called when a job has joined the queue."""

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Called when a job has started."""

    def on_end(self, job: Job, system: System) -> None:
        """Called when a job has ended."""

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Called when a running job was stopped; if it is final, :meth:`on_end` follows."""


class Stage(Hearing):
    """A stage of a pipeline: it makes the decisions at one seat (decision point)."""

    open = False
    """Whether the decision is left to an agent (see :class:`~hpcsimkit.kernel.decision.External`)."""

    draws = False
    """Whether runs with other seeds may differ: the stage draws random numbers from ``system.random()``."""

    def reset(self, system: System) -> None:
        """Prepare the run's own copy before the first event; randomness comes from ``system.random()``."""
