"""Masks: the mapping between numbered actions and the options of a decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.envs.interfaces import Mask, Valid
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.policies.one_seat.dispatch import PairDecision
from hpcsimkit.policies.portfolio.guarded_wait import GuardedWait

__all__ = ["AcceptReject", "GuardedSlots", "JobMachine", "QueueSlots", "Slots"]


class Slots(Mask):
    """Action *i* is option *i*, for a fixed number of slots; an optional last action declines.

    Set the pipeline's ``window`` (at the backfiller seat, ``max_candidates``) to the number of slots, so that
    every option has an action.

    Parameters
    ----------
    slots : int
        Number of options that have an action.
    decline : bool
        Whether one more action stands for ``None``.

    Examples
    --------
    >>> Slots(16, decline=True).actions
    17
    """

    reads_compiled = True

    def __init__(self, slots: int, *, decline: bool = False) -> None:
        self.slots = slots
        self.decline = decline

    @property
    def actions(self) -> int:
        """Number of actions: one per slot, and one to decline."""
        return self.slots + self.decline

    def write(self, decision: Decision, out: Valid) -> None:
        """Mark the slots that hold an option."""
        options = decision.options
        offered = len(options)
        if options[-1] is None:
            offered -= 1
            if self.decline:
                out[self.slots] = True
        out[: min(offered, self.slots)] = True

    def position(self, decision: Decision, action: int) -> int:
        """Return the position of an action's option; the declining action is the last position."""
        return len(decision.options) - 1 if self.decline and action == self.slots else action

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the slot of an option.

        Raises
        ------
        UsageError
            No slot holds the option.
        """
        if choice is None:
            return self.slots
        position = decision.position(choice)
        if position >= self.slots:
            raise UsageError(f"{self!r} has no slot for option {position} of {decision!r}")
        return position


class AcceptReject(Slots):
    """Action 0 accepts the job under inspection, action 1 rejects it.

    Action 1 is masked where the inspector would never see the rejected job again.

    Examples
    --------
    >>> AcceptReject().actions
    2
    """

    reads_compiled = True

    def __init__(self) -> None:
        super().__init__(slots=2)


class GuardedSlots(Slots):
    """The actions of :class:`Slots`; while a job has waited for too long, it is the only option.

    How long is told by the guard behind the order seat, which lists such jobs first, the longest wait first:
    :class:`~hpcsimkit.policies.portfolio.guarded_wait.GuardedWait`. Without it, all options are valid. If the
    seat is asked about a test (:class:`~hpcsimkit.policies.one_seat.order_and_tests.OrderAndTests`), action 0
    lets the job run, and action 1 does not.

    Examples
    --------
    Job 2 has waited for 150 s, more than twice the mean wait, which counts as a minute at least:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.policies import SJF, GuardedWait
    >>> columns = {"submit_time": [0, 0, 150], "run_time": [200, 90, 10], "nodes": [1, 1, 1]}
    >>> order = External(GuardedWait(SJF(), times=2), skip=True)
    >>> simulation = Simulation(Workload(columns, machine_size=1), Pipeline(order=order, window=3))
    >>> simulation.next_decision(); simulation.answer_position(1)
    Decision('order', t=0 s, 2 options)
    >>> decision, valid = simulation.next_decision(), np.zeros(3, dtype=bool)
    >>> GuardedSlots(3).write(decision, valid)
    >>> valid.tolist(), decision.options[0].id
    ([True, False, False], 2)
    """

    def write(self, decision: Decision, out: Valid) -> None:
        """Mark the slots that hold an option, or only the first one."""
        if decision.seconds is not None:
            out[:2] = True
            return
        guard, first = decision.system.order, decision.options[0]
        if isinstance(guard, GuardedWait) and guard.is_late(first.submit_time, decision.system.now):
            out[0] = True
        else:
            super().write(decision, out)


class QueueSlots(Slots):
    """Action *i* starts the job at queue position *i*, by submission.

    For an order seat with only the fitting jobs as options: a job that does not fit keeps its position, and
    its action is masked. (With :class:`Slots`, action *i* is the *i*-th fitting job.)

    Parameters
    ----------
    slots : int
        Number of visible queue positions; set the pipeline's ``window`` to it.
    decline : bool
        Whether one more action starts no further job now.

    Examples
    --------
    Four nodes: job 1 runs; job 2 does not fit, job 3 does.

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
        """Mark the queue positions that hold an option."""
        for place in self._places(decision):
            out[place] = True
        if self.decline and decision.options[-1] is None:
            out[self.slots] = True

    def position(self, decision: Decision, action: int) -> int:
        """Return the option at a queue position."""
        if self.decline and action == self.slots:
            return len(decision.options) - 1
        return self._places(decision)[action]

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the queue position of an option.

        Raises
        ------
        UsageError
            The option has no visible queue position.
        """
        if choice is None:
            return self.slots
        wanted = decision.position(choice)
        for place, position in self._places(decision).items():
            if position == wanted:
                return place
        raise UsageError(f"{self!r} has no slot for option {wanted} of {decision!r}")

    def _places(self, decision: Decision) -> dict[int, int]:
        """Return, by queue position, the index of each job that is an option."""
        options = enumerate(decision.options)
        position_of = {job.index: position for position, job in options if job is not None}
        visible = enumerate(decision.system.queue.oldest(self.slots))
        return {place: position_of[job.index] for place, job in visible if job.index in position_of}


class JobMachine(Mask):
    """Action ``slot x machines + machine`` starts the job of a slot on a machine.

    This is the formula of the published code of the masked-PPO scheduler; the formula printed in its paper
    assigns one number to several pairs.

    Parameters
    ----------
    slots : int
        Maximum number of offered jobs: the slots of the
        :class:`~hpcsimkit.policies.one_seat.dispatch.Dispatch`.
    machines : int
        Number of machines in the cluster.

    Examples
    --------
    >>> JobMachine(slots=10, machines=9).actions
    90
    """

    reads_compiled = True

    def __init__(self, slots: int, machines: int) -> None:
        self.slots = slots
        self.machines = machines

    @property
    def actions(self) -> int:
        """Number of actions: one per slot and machine."""
        return self.slots * self.machines

    def write(self, decision: Decision, out: Valid) -> None:
        """Mark the pairs of jobs and machines that can start now."""
        valid = _pairs(decision).valid
        if valid.shape[0] > self.slots or valid.shape[1] != self.machines:
            raise UsageError(f"{self!r} does not fit {valid.shape[0]} jobs and {valid.shape[1]} machines")
        out[: valid.size] = valid.ravel()

    def position(self, decision: Decision, action: int) -> int:
        """Return the index of an action's pair among the valid pairs."""
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
