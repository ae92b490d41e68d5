"""A compiled run that pauses at pairs of a job and its machine, and its state as it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.compiled import loading, on_machines, support
from hpcsimkit.compiled.journal import new_journal
from hpcsimkit.compiled.machines import EVENTS, FIRST, NEED, Machines
from hpcsimkit.compiled.needs import NOW as FREE_NOW
from hpcsimkit.compiled.pairs import FITTING, OFFERED, new_pairs
from hpcsimkit.compiled.paused_run import PausedRun
from hpcsimkit.compiled.queue import new_queue
from hpcsimkit.compiled.shown import Shown, ShownQueue, ShownRunning
from hpcsimkit.compiled.state import Integers, new_run
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.one_seat.dispatch import PairDecision


class PausedDispatch(PausedRun):
    """A run of a :class:`~hpcsimkit.policies.one_seat.dispatch.Dispatch` with an open seat.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    """

    def __init__(self, simulation: Any) -> None:
        policy, cluster, logged = simulation.policy, simulation.cluster, simulation.workload
        workload = logged.killed_at_limit if simulation.setup.walltime == "kill" else logged
        count, now = len(workload), simulation.guard.clock.now
        streams, closed = np.random.SeedSequence(simulation.setup.seed), Pipeline(policy.queue_order)
        jobs, _ = support.jobs_and_rules(simulation, workload, closed, cluster.size, streams)
        run = new_run(jobs, jobs.requested_time, count)
        queue, journal = new_queue(count), new_journal(count)
        machines = on_machines.machines_of(workload, cluster)
        self._numbers = cluster.sizes_of(workload).astype(np.int64)
        requests = np.column_stack([machines.jobs[NEED], jobs.requested_time])
        self._pairs = pairs = new_pairs(
            np.ascontiguousarray(cluster.needs.usable(np.unique(self._numbers), cluster.capacity).T),
            np.unique(requests, axis=0, return_inverse=True)[1].ravel(),
            now,
            slots=policy.slots,
            skips=bool(policy.seat.skip),
            distinct=bool(policy.distinct),
        )
        super().__init__(
            simulation,
            loading.PAIRS_SEAT,
            (jobs, run, queue, machines, pairs, journal),
            journal,
            pairs.counters,
            ShownOnMachines(simulation, workload, (jobs, run, queue), machines, self._numbers),
        )
        self._answer = (0, 0)

    def resume(self, decision: Decision, choice: Any) -> None:
        """Take the answer of a decision; the pass goes on in :meth:`advance`."""
        job, machine = choice
        self._answer = job.index, machine
        self.decision = None

    def _decision(self) -> PairDecision:
        """Return the pending decision."""
        pairs, counters = self._pairs, self._pairs.counters
        offered = counters[OFFERED]
        rows = pairs.rows[:offered].copy()
        return PairDecision(
            self.system,
            rows,
            self._numbers.take(rows),
            pairs.valid[:offered].copy(),
            int(counters[FITTING]),
        )


class ShownOnMachines(Shown):
    """The readable part of a :class:`~hpcsimkit.kernel.system.System` with machines.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    workload : Workload
        The jobs, with limited run times if they are killed.
    arrays : (Jobs, Run, Queue)
        The arrays of the run.
    machines : Machines
        The state of the machines; each job has one of them.
    numbers : array of int64, shape (jobs,)
        The cluster's numbers for the resource demands of the jobs.
    """

    def __init__(
        self, simulation: Any, workload: Any, arrays: tuple[Any, ...], machines: Machines, numbers: Integers
    ) -> None:
        jobs, run, queue = arrays
        super().__init__(simulation, workload, jobs, run, queue, False, simulation.guard.clock.now)
        self._machines = machines
        self._given: dict[int, Allocation] = {}
        self._seen = 0
        self._ended: list[int] = []
        self._ends = np.full(len(self.jobs), -1, dtype=np.int64)
        self.queue = QueueOnMachines(self.jobs, queue, run.estimate, numbers)
        self.running = RunningOnMachines(self, jobs, run, machines)

    @property
    def free(self) -> Any:
        """The available amounts on each machine, int64, shape (machines, resources)."""
        level: MachineLevel = self._machines.levels.levels[FREE_NOW].copy(order="F")
        return level

    @property
    def events(self) -> list[int]:  # type: ignore[override]
        """Starts (rows) and ends (complements of rows) in chronological order."""
        events: list[int] = self._machines.events[: self._machines.counters[EVENTS]].tolist()
        return events

    @property
    def ended(self) -> list[int]:
        """Rows of the ended jobs, in the order in which they ended."""
        self._follow()
        return self._ended

    @property
    def ends(self) -> Integers:
        """End of each job [s], -1 if it has not ended."""
        self._follow()
        return self._ends

    def _follow(self) -> None:
        """Append the jobs that ended since the last call: O(ended), not O(jobs)."""
        count, run_time = self._machines.counters[EVENTS], self._columns.run_time
        for event in self._machines.events[self._seen : count].tolist():
            if event < 0:
                self._ended.append(~event)
                self._ends[~event] = self._run.start_time[~event] + run_time[~event]
        self._seen = count

    @property
    def allocations(self) -> list[Allocation | None]:  # type: ignore[override]
        """Allocation of each job; None if it has not started."""
        return [self.given(row) for row in range(len(self.jobs))]

    def given(self, row: int) -> Any:
        """Return the allocation of the job of a row, None if it has not started."""
        given = self._given.get(row)
        if given is None and self._run.start_time[row] >= 0:
            machine, *amounts = self._machines.parts[self._machines.jobs[FIRST, row]].tolist()
            given = self._given[row] = Allocation([machine], np.array([amounts]))
        return given

    def fits(self, job: Job) -> bool:
        """Return whether the job could start now."""
        return self.cluster.fits(job, self.free)


class QueueOnMachines(ShownQueue):
    """The waiting jobs; their sizes are the cluster's numbers for their resource demands."""

    def __init__(self, jobs: list[Job], queue: Any, estimate: Integers, numbers: Integers) -> None:
        super().__init__(jobs, queue, estimate)
        self._numbers = numbers

    @property
    def table(self) -> NDArray[np.int64]:
        """Rows ``index, size, estimate`` of the waiting jobs, int64, shape (3, jobs)."""
        rows = self.row_array
        return np.stack([rows, self._numbers.take(rows), self._estimate.take(rows)])


class RunningOnMachines(ShownRunning):
    """The running jobs by expected end, with their allocations."""

    def __init__(self, shown: ShownOnMachines, jobs: Any, run: Any, machines: Machines) -> None:
        super().__init__(jobs, run)
        self._shown = shown
        self._expected = QueueOnMachines(shown.jobs, machines.expected, run.estimate, jobs.nodes)

    @property
    def rows(self) -> list[int]:
        """Rows of the running jobs."""
        return self._expected.rows

    @property
    def entries(self) -> list[tuple[int, int, Any]]:
        """Expected end [s], row and allocation of each job."""
        rows = self._expected.row_array
        ends = self._run.start_time.take(rows) + self._run.estimate.take(rows)
        return list(zip(ends.tolist(), rows.tolist(), map(self._shown.given, rows.tolist()), strict=True))

    def overrun(self, now: int) -> bool:
        """Return whether a running job has reached or passed its expected end."""
        return len(self) > 0 and self.entries[0][0] <= now
