"""Gates: jobs that are due, but may not join the queue yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import StalledError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.gate import Gate
from hpcsimkit.kernel.ledger import State
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from tests.kernel.helpers import run, starts, workload


class AtMost(Gate):
    """At most some jobs of each user are in the queue or on the cluster; the others come in their order."""

    def __init__(self, most: int) -> None:
        self.most = most

    def reset(self, workload: Workload) -> None:
        self._present: list[Job] = []
        self._held: list[Job] = []

    def holds(self, job: Job, system: System) -> bool:
        if sum(each.user == job.user for each in self._present) >= self.most:
            self._held.append(job)
            return True
        self._present.append(job)
        return False

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        self._present = [each for each in self._present if each.id != job.id]
        due = [each for each in self._held if each.user == job.user][:1]
        self._held = [each for each in self._held if each not in due]
        return due


class Forever(Gate):
    def holds(self, job: Job, system: System) -> bool:
        return job.id == 2


ROWS = [(0, 9, 9, 1), (1, 5, 5, 1), (2, 5, 5, 1), (2, 3, 3, 1)]
USERS = [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [0, 9, 2, 14]), (2, [0, 1, 2, 6]), (3, [0, 1, 2, 2])],
    ids=lambda each: str(each),
)
def test_at_most_some_jobs_of_a_user_by_hand(most: int, expected: list[int]) -> None:
    """On enough nodes for all: only the gate makes jobs wait."""
    jobs = workload(ROWS, 4, user=USERS)
    result = run(jobs, "fcfs+easy", gates=(AtMost(most),))
    assert result.start_time.tolist() == expected
    assert result.submit_time.tolist() == [0, 1, 2, 2]  # they wait from then on


def test_a_held_job_is_in_no_queue_and_nothing_that_will_come_for_certain() -> None:
    seen: list[tuple[int, list[int], int, int]] = []

    class Watches(Observer):
        def on_start(self, job: Job, allocation: Any, system: System) -> None:
            state = State(system.ledger.state[1])
            seen.append((system.now, [each.id for each in system.queue], state, system.arrivals_left))

    run(workload(ROWS, 4, user=USERS), "fcfs", gates=(AtMost(1),), observers=[Watches()])
    assert seen == [
        (0, [], State.UNSEEN, 3),
        (2, [], State.HELD, 0),
        (9, [], State.RUNNING, 0),
        (14, [], State.DONE, 0),
    ]


def test_a_held_job_blocks_no_other() -> None:
    """The second job is at the head but for the gate; the third is not held back by it."""
    jobs = workload([(0, 9, 9, 1), (1, 5, 5, 4), (2, 5, 5, 3)], 4, user=[1, 1, 2])
    assert starts(jobs, "fcfs") == [0, 9, 14]
    assert starts(jobs, "fcfs", gates=(AtMost(1),)) == [0, 9, 2]


def test_gates_and_dependencies_are_passed_one_after_the_other() -> None:
    """Job 2 is due at 9 + 2, when job 4 of its user runs until 20."""
    jobs = workload(
        [(0, 9, 9, 1), (1, 5, 5, 1), (2, 5, 5, 1), (10, 10, 10, 1)],
        4,
        user=[1, 2, 3, 2],
        preceding=[-1, 1, -1, -1],
        think_time=[-1, 2, -1, -1],
    )
    assert starts(jobs, "fcfs", dependencies=True) == [0, 11, 2, 10]
    assert starts(jobs, "fcfs", dependencies=True, gates=(AtMost(1),)) == [0, 20, 2, 10]


def test_with_partitions_a_held_job_is_in_none() -> None:
    cluster = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])
    submit_time, run_time, requested_time, nodes = (list(column) for column in zip(*ROWS, strict=True))
    columns = {
        "submit_time": submit_time,
        "run_time": run_time,
        "requested_time": requested_time,
        "nodes": nodes,
    }
    labels = {"partition": ("a", "b")}
    jobs = Workload({**columns, "user": USERS, "partition": [0, 1, 0, 0]}, labels=labels)
    simulation = Simulation(jobs, make("fcfs"), cluster, gates=(AtMost(1),))
    assert simulation.run().start_time.tolist() == [0, 9, 2, 14]
    run_of_partitions: Any = simulation._begun()
    assert [each.system.arrivals_left for each in run_of_partitions.schedulers] == [0, 0]


def test_any_gate_holds_a_job() -> None:
    jobs = workload(ROWS, 4, user=USERS)
    for gates in ((AtMost(1), Gate()), (Gate(), AtMost(1))):
        assert starts(jobs, "fcfs", gates=gates) == [0, 9, 2, 14]


def test_a_job_that_is_held_for_ever_is_an_error() -> None:
    with pytest.raises(StalledError, match="job 2 is held by a gate, and nothing is to come"):
        run(workload(ROWS, 4), "fcfs", gates=(Forever(),))


def test_runs_share_no_gate() -> None:
    simulation = Simulation(workload(ROWS, 4, user=USERS), make("fcfs"), gates=(AtMost(1),))
    assert simulation.run().start_time.tolist() == simulation.run().start_time.tolist() == [0, 9, 2, 14]
    assert simulation.run().options["gates"] == ["AtMost(most=1)"]


def test_wrong_gates() -> None:
    jobs = workload(ROWS, 4)
    with pytest.raises(UsageError, match="gates needs objects of class Gate, found 'x'"):
        run(jobs, "fcfs", gates=("x",))
    with pytest.raises(UsageError, match="know no gates"):
        run(jobs, "fcfs", gates=(Forever(),), event_order=DirlabOrder())
    with pytest.raises(UsageError, match="it knows no gates, found"):
        run(jobs, "fcfs", gates=(Forever(),), simulator="compiled")
