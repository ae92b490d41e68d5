"""The record of a run: states, starts and ends of jobs, and their attempts to run."""

from __future__ import annotations

import pytest

from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.ledger import Ledger, Mode
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.restart import Progress, Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import FCFS, Pipeline
from hpcsimkit.results.attempts import Outcome
from tests.kernel.helpers import workload


class StopsAtFive(Policy):
    """Starts jobs in the order of arrival; at 5 s, the first one is stopped, to start anew at once."""

    def schedule(self, system: System) -> None:
        first = system.jobs[0]
        if system.now == 5 and system.ledger.started(0):
            system.stop(first)
        for job in list(system.queue):
            if system.fits(job):
                system.start(job)


def test_the_end_of_a_stopped_attempt_has_no_effect() -> None:
    """A job of 8 s starts at 0 and again at 5 s: it ends at 13 s, not at 8 s, when no pass takes place."""
    simulation = Simulation(
        workload([(0, 8, 8, 2), (5, 3, 3, 2)], 2), StopsAtFive(), restart=Restart(preempted="anew")
    )
    result = simulation.run()
    assert result.attempts.start_time.tolist() == [0, 5, 13]
    assert result.end_time.tolist() == [13, 16]
    assert simulation.system.ledger.attempts == [1, 0]
    assert simulation.system.ended == [0, 1]


def test_a_stopped_job_waits_again() -> None:
    ledger = Ledger(Workload({"submit_time": [0], "run_time": [9], "nodes": [1]}))
    ledger.submit(0)
    ledger.begin(0, 3, Mode.RESERVED, 10)
    assert (ledger.waits(0), ledger.started(0), ledger.expected_end_of(0)) == (False, True, 13)
    ledger.stop(0, 5, Outcome.FAILED, Progress(kept=0, lost=2), 1)
    assert (ledger.waits(0), ledger.started(0), ledger.failures) == (False, False, {0: 1})
    ledger.submit(0)
    assert (ledger.waits(0), ledger.started(0), ledger.start_of(0)) == (True, False, -1)
    assert ledger.mode.tolist() == [Mode.NONE]


def test_a_job_that_runs_cannot_start() -> None:
    class Twice(Policy):
        def schedule(self, system: System) -> None:
            job = system.queue.first()
            system.start(job)
            system.start(job)

    with pytest.raises(ScheduleError, match="it started at t=0 s"):
        Simulation(workload([(0, 5, 5, 1)], 2), Twice()).run()


def test_the_jobs_of_the_workload_are_not_replaced() -> None:
    """The second job is submitted at the end of the first plus its think time, 9 s, in this run only."""
    columns = {"id": [1, 2], "submit_time": [0, 1], "run_time": [5, 5], "nodes": [1, 1]}
    log = Workload({**columns, "preceding": [-1, 1], "think_time": [-1, 4]}, machine_size=2)
    simulation = Simulation(log, Pipeline(FCFS()), dependencies=True)
    assert simulation.run().start_time.tolist() == [0, 9]
    assert simulation.system.ledger.submit_time.tolist() == [0, 9]
    assert log.jobs[1].submit_time == log.column("submit_time")[1] == 1
