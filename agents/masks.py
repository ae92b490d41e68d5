"""How numbered actions and the options of a decision belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Mask, Valid
from hpcsimkit.policies.dispatch import PairDecision

__all__ = ["AcceptReject", "JobMachine", "QueueSlots", "Slots"]


class Slots(Mask):
    """Action *i* is option *i*, in slots of a fixed number; a last action declines, if that is allowed.

    The pipeline's ``window`` should be the number of slots, so that no option is without one.

    Parameters
    ----------
    slots : int
        Options that an action stands for.
    decline : bool
        One more action stands for ``None``.

    Examples
    --------
    >>> Slots(16, decline=True).actions
    17
    """

    def __init__(self, slots: int, *, decline: bool = False) -> None:
        self.slots = slots
        self.decline = decline

    @property
    def actions(self) -> int:
        """All slots, and one to decline."""
        return self.slots + self.decline

    def write(self, decision: Decision, out: Valid) -> None:
        """Write which slots hold an option."""
        options = decision.options
        offered = len(options)
        if options[-1] is None:
            offered -= 1
            if self.decline:
                out[self.slots] = True
        out[: min(offered, self.slots)] = True

    def position(self, decision: Decision, action: int) -> int:
        """Return the action itself; of the one that declines, the last position."""
        return len(decision.options) - 1 if self.decline and action == self.slots else action

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the slot of an option.

        Raises
        ------
        UsageError
            No slot holds it.
        """
        if choice is None:
            return self.slots
        position = decision.position(choice)
        if position >= self.slots:
            raise UsageError(f"{self!r} has no slot for option {position} of {decision!r}")
        return position


class AcceptReject(Slots):
    """Action 0 accepts the job that an inspector is asked about, action 1 rejects it.

    Where a rejected job would never be asked about again, rejecting it is no option.

    Examples
    --------
    >>> AcceptReject().actions
    2
    """

    def __init__(self) -> None:
        super().__init__(slots=2)


class QueueSlots(Slots):
    """Action *i* starts the one of the jobs that have waited longest that stands in place *i*.

    For an order seat on which only those that fit are options: whoever does not keeps his place, and his
    action is none. (Of :class:`Slots`, action *i* is the *i*-th that fits.)

    Parameters
    ----------
    slots : int
        Jobs that are seen; the pipeline's ``window`` should be this number.
    decline : bool
        One more action starts nothing more now.

    Examples
    --------
    On 4 nodes job 1 runs; job 2 does not fit, job 3 does.

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 1, 1], "run_time": [9, 5, 2], "nodes": [2, 4, 1]}
    >>> policy = Pipeline(order=External(decline=True), fitting=True, window=3)
    >>> simulation = Simulation(Workload(columns, machine_size=4), policy)
    >>> simulation.answer(simulation.next_decision().options[0])
    >>> decision, valid = simulation.next_decision(), np.zeros(4, dtype=bool)
    >>> QueueSlots(3, decline=True).write(decision, valid)
    >>> valid.tolist(), QueueSlots(3, decline=True).position(decision, 1)
    ([False, True, False, True], 0)
    """

    def write(self, decision: Decision, out: Valid) -> None:
        """Write which places hold a job that is an option."""
        for place in self._places(decision):
            out[place] = True
        if self.decline and decision.options[-1] is None:
            out[self.slots] = True

    def position(self, decision: Decision, action: int) -> int:
        """Return which of the options stands in a place."""
        if self.decline and action == self.slots:
            return len(decision.options) - 1
        return self._places(decision)[action]

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the place of an option.

        Raises
        ------
        UsageError
            It stands in none.
        """
        if choice is None:
            return self.slots
        wanted = decision.position(choice)
        for place, position in self._places(decision).items():
            if position == wanted:
                return place
        raise UsageError(f"{self!r} has no slot for option {wanted} of {decision!r}")

    def _places(self, decision: Decision) -> dict[int, int]:
        """Return the position among the options of the job in each place, of those that are options."""
        place_of = {job.index: place for place, job in enumerate(decision.system.queue.oldest(self.slots))}
        return {
            place_of[job.index]: position
            for position, job in enumerate(decision.options)
            if job is not None and job.index in place_of
        }


class JobMachine(Mask):
    """Action ``slot x machines + machine`` starts the job of a slot on a machine.

    (As in the published code of the masked-PPO scheduler; the formula printed in its paper gives several
    pairs one number.)

    Parameters
    ----------
    slots : int
        Jobs offered at most: the slots of the :class:`~hpcsimkit.policies.dispatch.Dispatch`.
    machines : int
        Machines of the cluster.

    Examples
    --------
    >>> JobMachine(slots=10, machines=9).actions
    90
    """

    def __init__(self, slots: int, machines: int) -> None:
        self.slots = slots
        self.machines = machines

    @property
    def actions(self) -> int:
        """One for each slot and machine."""
        return self.slots * self.machines

    def write(self, decision: Decision, out: Valid) -> None:
        """Write which machines can start which job now."""
        valid = _pairs(decision).valid
        if valid.shape[0] > self.slots or valid.shape[1] != self.machines:
            raise UsageError(f"{self!r} does not fit {valid.shape[0]} jobs and {valid.shape[1]} machines")
        out[: valid.size] = valid.ravel()

    def position(self, decision: Decision, action: int) -> int:
        """Return which of the valid pairs an action is."""
        return int(np.count_nonzero(_pairs(decision).valid.ravel()[:action]))

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the action of a pair."""
        job, machine = choice
        slot = next(slot for slot, each in enumerate(_pairs(decision).jobs) if each.index == job.index)
        return slot * self.machines + int(machine)


def _pairs(decision: Decision) -> PairDecision:
    if not isinstance(decision, PairDecision):
        raise UsageError(f"pairs of jobs and machines are needed, found {decision!r}")
    return decision
