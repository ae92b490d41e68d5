"""Compiled runs that pause at the decisions of an open seat, in the place of a run of the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from simpy.core import EmptySchedule

from hpcsimkit.compiled import loading, support
from hpcsimkit.compiled.dirlab import new_published
from hpcsimkit.compiled.journal import ENTRIES, Journal, new_journal
from hpcsimkit.compiled.queue import new_queue
from hpcsimkit.compiled.seats import (
    BACKFILLER,
    INSPECTOR,
    JOB,
    NOW,
    OFFERED,
    ORDER,
    OVER,
    PAUSED,
    Seat,
    new_seat,
)
from hpcsimkit.compiled.shown import Shown
from hpcsimkit.compiled.state import Integers, new_run
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.observers import Callbacks
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.stalls import finish, stalled
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates

CODES = {"order": ORDER, "inspector": INSPECTOR, "backfiller": BACKFILLER}
"""Codes of the seats that can be open."""

UNLIMITED = 2**62


class PausedRun(ABC):
    """A run with an open seat; see :class:`~hpcsimkit.kernel.run.Run`.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    kind : str
        The compiled function, by its kind of policy.
    state : tuple
        Its arguments, without the answer to the pending decision, which comes last.
    journal : Journal
        The events, one of these arguments.
    counters : array of int64
        Those of the open seat, with the simulated time [s] at ``NOW``.
    system : Shown
        The state, as it is shown.

    Attributes
    ----------
    decision : Decision or None
        The pending decision.
    cut_short, served : list of int, dict of int to int
        Empty: there is no locality model.
    """

    simulator = "compiled"

    def __init__(
        self,
        simulation: Any,
        kind: str,
        state: tuple[Any, ...],
        journal: Journal,
        counters: Integers,
        system: Any,
    ) -> None:
        self._kind, self._state, self._journal, self._counters = kind, state, journal, counters
        self._answer: tuple[int, ...] = ()
        self._clock = simulation.guard.clock
        self.system: Any = system
        self.decision: Decision | None = None
        self.cut_short: list[int] = []
        self.served: dict[int, int] = {}
        self.down: list[tuple[int, int, int]] = []
        callbacks = Callbacks(simulation.observers)
        self._tells = (callbacks.on_submit, callbacks.on_start, callbacks.on_end)
        self._told = any(self._tells)
        self._finish = callbacks.on_finish
        for notify in callbacks.on_begin:
            notify(system)

    @abstractmethod
    def resume(self, decision: Decision, choice: Any) -> None:
        """Take the answer of a decision; the pass goes on in :meth:`advance`."""

    @abstractmethod
    def _decision(self) -> Decision:
        """Return the pending decision."""

    def advance(self) -> None:
        """Run to the next decision.

        Without further events an `EmptySchedule` is raised, and a `StalledError` if the pipeline waits in
        vain.
        """
        if self.decision is not None:
            return
        self._journal.counters[ENTRIES] = 0
        state = loading.call(self._kind, (*self._state, *self._answer))
        system = self.system
        if self._told and (entries := int(self._journal.counters[ENTRIES])):
            self._tell(entries)
        self._move_to(int(self._counters[NOW]))
        if state == PAUSED:
            self.decision = self._decision()
        elif state == OVER:
            raise EmptySchedule
        else:
            raise stalled(system)

    def finish(self) -> None:
        """End the run once no event is left."""
        finish(self.system, self._finish)

    def _move_to(self, now: int) -> None:
        """Set the time [s] of the state and of error messages."""
        self.system.now = now
        self._clock.move_to(now)

    def _tell(self, entries: int) -> None:
        """Tell the observers what happened since the last decision."""
        system, jobs, tells = self.system, self.system.jobs, self._tells
        for kind, row, now in zip(*self._journal.events[:, :entries].tolist(), strict=True):
            self._move_to(now)
            for notify in tells[kind]:
                job = jobs[row]
                if kind == 1:
                    notify(job, system.given(row), system)
                else:
                    notify(job, system)


class PausedPipeline(PausedRun):
    """A run of a pipeline with an open seat, on homogeneous nodes.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    stage : str
        The open seat.
    closed : Pipeline
        The pipeline with the heuristic behind the seat.
    """

    def __init__(self, simulation: Any, stage: str, closed: Pipeline) -> None:
        policy, logged = simulation.policy, simulation.workload
        workload = logged.killed_at_limit if simulation.setup.walltime == "kill" else logged
        nodes, streams = simulation.cluster.size, np.random.SeedSequence(simulation.setup.seed)
        jobs, rules = support.jobs_and_rules(simulation, workload, closed, nodes, streams)
        published = isinstance(simulation.setup.event_order, DirlabOrder)
        run = new_run(jobs, support.estimates(workload, closed, streams, workload.arrival_order), nodes)
        queue, journal = new_queue(len(workload)), new_journal(len(workload))
        published_state = new_published(policy, len(workload)) if published else None
        now = simulation.guard.clock.now
        self._stage, self._external = stage, getattr(policy, stage)
        self._max_interval = policy.max_interval
        self._seat = seat = _seat(simulation, stage, self._external, now)
        super().__init__(
            simulation,
            loading.PUBLISHED_SEAT if published else loading.SEAT,
            (jobs, rules, run, queue, published_state, seat, journal),
            journal,
            seat.counters,
            Shown(simulation, workload, jobs, run, queue, published, now),
        )
        self._answer = (0,)

    def resume(self, decision: Decision, choice: Any) -> None:
        """Take the answer of a decision; the pass goes on in :meth:`advance`."""
        if decision.stage != "inspector":
            self._answer = (-1 if choice is None else choice.index,)
        else:
            self._answer = (int(choice),)
            if not choice and decision.job is not None:
                row, holds = decision.job.index, self.system.holds
                holds[row] = holds.get(row, 0) + 1
        self.decision = None

    def _decision(self) -> Decision:
        """Return the pending decision."""
        system, stage = self.system, self._stage
        row = int(self._seat.counters[JOB])
        if stage == "inspector":
            job = system.jobs[row]
            options = (True, False) if self._may_hold() else (True,)
            return Decision(stage, system, job, lambda: options, lambda: True)
        rows = self._seat.listing.rows[: self._seat.counters[OFFERED]].copy()
        declines = self._external.decline and (stage == "backfiller" or self._may_hold())
        offered: list[Job | None] = list(map(system.jobs.__getitem__, rows.tolist()))
        if declines:
            offered.append(None)
        head = None if stage == "order" else system.jobs[row]
        return Decision(stage, system, head, lambda: offered, lambda: offered[0], rows)

    def _may_hold(self) -> bool:
        """Return whether another pass is certain to follow; see ``Pipeline._may_hold``."""
        system = self.system
        return system.anything_ahead or (system.stands_still and self._max_interval is not None)


def _seat(simulation: Any, stage: str, external: External, now: int) -> Seat:
    """Return the open seat of a pipeline."""
    policy, base, events = simulation.policy, external.base, simulation.setup.event_order
    fitting = stage == "backfiller" and isinstance(base, FittingCandidates)
    window = policy.window or UNLIMITED
    most = (policy.max_candidates if stage == "backfiller" else None) or window
    return new_seat(
        len(simulation.workload),
        now,
        kind=CODES[stage],
        skips=bool(external.skip),
        declines=bool(external.decline),
        fitting=fitting,
        guarded=fitting and bool(base.guarded),
        relax=float(base.relax) if fitting else 0.0,
        window=window,
        most=min(most, base.slots) if fitting else most,
        max_interval=_or_none(policy.max_interval),
        max_rejections=_or_none(policy.max_rejections),
        stands_still=isinstance(events, DirlabOrder),
        following=_or_none(getattr(events, "following", None)),
    )


def _or_none(number: int | None) -> int:
    return -1 if number is None else int(number)
