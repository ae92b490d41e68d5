"""Observers: told what happens, never asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.job import Job

if TYPE_CHECKING:
    from hpcsimkit.decision import Decision
    from hpcsimkit.system import System

__all__ = ["Observer"]


class Observer:
    """Override what you want to be told; what is not overridden costs nothing."""

    def on_begin(self, system: System) -> None:
        """The run begins; nothing has been submitted yet."""

    def on_submit(self, job: Job, system: System) -> None:
        """A job has joined the queue."""

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """A job has started."""

    def on_end(self, job: Job, system: System) -> None:
        """A job has ended."""

    def on_reject(self, job: Job, system: System) -> None:
        """A job was refused for good."""

    def on_decision(self, decision: Decision, choice: Any, system: System) -> None:
        """An open seat was answered; the choice has not been carried out yet."""

    def on_pass(self, seconds: float, system: System) -> None:
        """A pass is over; `seconds` is the time the policy took, without waiting for open seats."""

    def on_finish(self, system: System) -> None:
        """The run is over."""
