"""Constant choice of a slot of the window: the behaviour of an agent that has learned nothing about jobs."""

from __future__ import annotations

from hpcsimkit.kernel.decision import Answering, Decision

__all__ = ["ConstantSlot"]


class ConstantSlot(Answering):
    """A policy that always picks the same slot of the window, or the last occupied one.

    Parameters
    ----------
    slot : int
        Index of the slot, from 0, the job that has waited longest; slot 0 is equivalent to FCFS with EASY.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.policies.one_seat.two_level import TwoLevel
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [5, 5, 5], "nodes": [1] * 3}, machine_size=1)
    >>> Simulation(w, TwoLevel(ConstantSlot(slot=1))).run().start_time.tolist()
    [10, 0, 5]
    """

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

    def answer(self, decision: Decision) -> int:
        """Return the slot, or the last one."""
        return min(self.slot, len(decision.options) - 1)
