"""Gates: jobs that are due, but may not start yet. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import default_workload
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import StalledError, UsageError, WorkloadError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs, terms_of
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.gate import Gate, Held
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, Licenses, licenses_in
from hpcsimkit.kernel.ledger import State
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Admission, Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, LCFS, Pipeline
from hpcsimkit.results.held_shares import held_shares
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.helpers import Row, run, starts, workload
from tests.kernel.test_attempts import attempts

AFTER = (AfterJobs(),)


class AtMost(Gate):
    """At most some jobs of each user run."""

    def __init__(self, most: int) -> None:
        self.most = most

    def reset(self, workload: Workload) -> None:
        self._running: list[Job] = []
        self._due: dict[int, Job] = {}

    def holds(self, job: Job, system: System) -> Held | None:
        self._due[job.index] = job
        mine = sum(each.user == job.user for each in self._running)
        return Held("MaxJobsPerUser") if mine >= self.most else None

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        self._running.append(self._due.pop(job.index))
        return [each for each in self._due.values() if each.user == job.user]

    def after_stop(self, job: Job, system: System) -> Iterable[Job]:
        self._running = [each for each in self._running if each.id != job.id]
        return [each for each in self._due.values() if each.user == job.user]

    after_end = after_stop


class Forever(Gate):
    def holds(self, job: Job, system: System) -> Held | None:
        return Held("Never") if job.id == 2 else None


ROWS = [(0, 9, 9, 1), (1, 5, 5, 1), (2, 5, 5, 1), (2, 3, 3, 1)]
USERS = [1, 1, 2, 1]


def held(result: Result) -> list[tuple[int, int, int, str]]:
    """Return number, beginning, end and reason of all intervals in which jobs were held."""
    if result.held is None:
        return []
    frame = result.held.to_frame(result.workload)
    return [(int(a), int(b), int(c), str(d)) for a, b, c, d in frame.itertuples(index=False)]


# --- the interface -----------------------------------------------------------------------------------------


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
        (9, [4], State.RUNNING, 0),
        (14, [], State.DONE, 0),
    ]


def test_a_held_job_blocks_no_other_and_has_no_reservation() -> None:
    """The second job is at the head but for the gate; the third is not held back by it."""
    jobs = workload([(0, 9, 9, 1), (1, 5, 5, 4), (2, 50, 50, 3)], 4, user=[1, 1, 2])
    assert starts(jobs, "fcfs+easy") == [0, 9, 14]
    for policy in ("fcfs", "fcfs+easy", "fcfs+conservative"):
        assert starts(jobs, policy, gates=(AtMost(1),)) == [0, 52, 2]


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


def two_partitions(jobs: Workload, first: list[int]) -> Workload:
    columns = {**jobs.columns, "partition": first}
    return Workload(columns, labels={**jobs.labels, "partition": ("a", "b", "a,b")})


def test_with_partitions_a_held_job_is_in_none() -> None:
    cluster = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])
    jobs = two_partitions(workload(ROWS, 4, user=USERS), [0, 1, 0, 0])
    simulation = Simulation(jobs, make("fcfs"), cluster, gates=(AtMost(1),))
    assert simulation.run().start_time.tolist() == [0, 12, 2, 9]  # at 9, partition a has its pass first
    run_of_partitions: Any = simulation._begun()
    assert [each.system.arrivals_left for each in run_of_partitions.schedulers] == [0, 0]


def test_a_start_in_one_partition_takes_jobs_out_of_the_queues_of_others() -> None:
    """Both partitions are full until 5; then job 3 takes the licence, and job 5 is no longer blocked by 4."""
    rows = [(0, 5, 5, 2), (0, 5, 5, 2), (1, 9, 9, 1), (1, 9, 9, 2), (2, 3, 3, 1)]
    jobs = two_partitions(workload(rows, 4, licenses=["", "", "x", "x", ""]), [0, 1, 0, 1, 1])
    cluster = Partitions([Partition("a", nodes=2, priority=2), Partition("b", nodes=2)])
    for policy in ("fcfs", "fcfs+easy", "fcfs+conservative"):
        result = Simulation(jobs, make(policy), cluster, licenses={"x": 1}).run()
        assert result.start_time.tolist() == [0, 0, 5, 14, 5]
        assert held(result) == [(4, 5, 14, "Licenses")]


def test_a_pass_follows_in_each_partition_whose_queue_a_job_has_left() -> None:
    """Job 4 is the head of b from 1 on; at 5, job 3 takes the licence in a, and job 5 starts in b at once."""
    rows = [(0, 5, 5, 2), (0, 20, 20, 1), (1, 9, 9, 1), (1, 9, 9, 2), (2, 3, 3, 1)]
    jobs = two_partitions(workload(rows, 4, licenses=["", "", "x", "x", ""]), [0, 1, 0, 1, 1])
    cluster = Partitions([Partition("a", nodes=2), Partition("b", nodes=2)])
    result = Simulation(jobs, make("fcfs"), cluster, licenses={"x": 1}).run()
    assert result.start_time.tolist() == [0, 0, 5, 20, 5]
    assert held(result) == [(4, 5, 14, "Licenses")]


def test_any_gate_holds_a_job() -> None:
    jobs = workload(ROWS, 4, user=USERS)
    for gates in ((AtMost(1), Gate()), (Gate(), AtMost(1))):
        assert starts(jobs, "fcfs", gates=gates) == [0, 9, 2, 14]


def test_the_first_gate_gives_the_reason_also_while_another_holds_the_job() -> None:
    """Held for the licence from 1 on; job 3 starts at 2 and closes the gate of the user until 5."""
    jobs = workload([(0, 9, 9, 1), (1, 2, 2, 1), (2, 3, 3, 1)], 4, user=[2, 1, 1], licenses=["x", "x", ""])
    result = run(jobs, "fcfs", gates=(Licenses({"x": 1}), AtMost(1)))
    assert held(result) == [(2, 1, 9, "Licenses")]

    result = run(jobs, "fcfs", gates=(AtMost(1), Later()))
    assert held(result) == [(2, 1, 2, "Later"), (2, 2, 5, "MaxJobsPerUser"), (2, 5, 7, "Later")]


class Later(Gate):
    """Holds the second job until 7 s."""

    def holds(self, job: Job, system: System) -> Held | None:
        return Held("Later", until=7) if job.id == 2 and system.now < 7 else None


def test_a_job_that_is_held_for_ever_is_an_error() -> None:
    with pytest.raises(StalledError, match=r"job 2 is held by a gate, and nothing is to come \(Never\)"):
        run(workload(ROWS, 4), "fcfs", gates=(Forever(),))


def test_runs_share_no_gate() -> None:
    simulation = Simulation(workload(ROWS, 4, user=USERS), make("fcfs"), gates=(AtMost(1),))
    assert simulation.run().start_time.tolist() == simulation.run().start_time.tolist() == [0, 9, 2, 14]
    assert simulation.run().options["gates"] == ["AtMost(most=1)"]


def test_wrong_gates() -> None:
    jobs = workload(ROWS, 4)

    class Confused(Gate):
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def holds(self, job: Job, system: System) -> Any:
            return self.answer

    with pytest.raises(UsageError, match="gates needs objects of class Gate, found 'x'"):
        run(jobs, "fcfs", gates=("x",))
    with pytest.raises(UsageError, match="know no gates"):
        run(jobs, "fcfs", gates=(Forever(),), event_order=DirlabOrder())
    with pytest.raises(UsageError, match="know no licenses"):
        run(jobs, "fcfs", licenses={"x": 1}, event_order=DirlabOrder())
    with pytest.raises(UsageError, match=r"it knows no gates, found|numba is not installed"):
        run(jobs, "fcfs", gates=(Forever(),), simulator="compiled")
    with pytest.raises(UsageError, match=r"holds\(\) must return a Held or None, found True"):
        run(jobs, "fcfs", gates=(Confused(True),))
    with pytest.raises(UsageError, match="a reason is needed, found ''"):
        run(jobs, "fcfs", gates=(Confused(Held("")),))
    with pytest.raises(UsageError, match="a reason is needed, found 7"):
        run(jobs, "fcfs", gates=(Confused(Held(7)),))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it can be asked again only later, found until=0"):
        run(jobs, "fcfs", gates=(Confused(Held("Now", until=0)),))


def test_gates_whose_columns_the_log_lacks_change_nothing() -> None:
    jobs = workload(ROWS, 2, begin_time=[-1, 0, 1, 2])
    plain, gated = (
        run(jobs, "fcfs+easy", gates=gates, licenses=pools)
        for gates, pools in (((), None), ((AfterJobs(), BeginTimes(), Holds(), ArrayLimits()), None))
    )
    assert plain.hash == gated.hash
    assert gated.held is None
    with pytest.raises(UsageError, match="gates: jobs with a column dependency are needed, found none"):
        run(jobs, "fcfs", gates=AFTER)
    with pytest.raises(UsageError, match="licenses: jobs with a column licenses are needed, found none"):
        run(jobs, "fcfs", licenses={"x": 1})
    assert measure(gated, names=["held_share"]) == {"held_share": 0}


# --- leaving and joining -----------------------------------------------------------------------------------


def test_the_head_leaves_in_the_middle_of_a_pass_and_another_pass_follows() -> None:
    """At 0 the head (job 2) needs all nodes at 9; job 3 is backfilled and takes the licence that 2 needs.

    Job 2 leaves; its reservation holds for the rest of the pass. In the next pass, job 4, which it would have
    refused, starts at once.
    """
    rows = [(0, 9, 9, 2), (0, 9, 9, 4), (0, 5, 5, 1), (0, 30, 30, 1)]
    jobs = workload(rows, 4, licenses=["", "x", "x", ""])
    assert starts(jobs, "fcfs+easy") == [0, 9, 0, 18]
    result = run(jobs, "fcfs+easy", licenses={"x": 1})
    assert result.start_time.tolist() == [0, 30, 0, 0]
    assert held(result) == [(2, 0, 5, "Licenses")]


@pytest.mark.parametrize(
    "policy", ["fcfs+easy", "fcfs+greedy", "fcfs+easy-k(count=2)", "fcfs+conservative", "las", "optimization"]
)
def test_of_jobs_that_fit_together_only_as_many_start_as_there_are_licences(policy: str) -> None:
    rows: list[Row] = [(0, 5, 5, 1)] * 4
    jobs = workload(rows, 4, licenses=["x"] * 4)
    cluster = Machines.of(1, cpus=4) if policy == "optimization" else 4
    result = Simulation(jobs, make(policy), cluster, licenses={"x": 2}).run()
    assert result.start_time.tolist() == [0, 0, 5, 5]
    assert held(result) == [(3, 0, 5, "Licenses"), (4, 0, 5, "Licenses")]


@pytest.mark.parametrize("policy", ["bfbp", "greedy"])
def test_on_machines_too(policy: str) -> None:
    name = "fcfs+greedy" if policy == "greedy" else policy
    columns = {"submit_time": [0] * 4, "run_time": [5] * 4, "nodes": [1] * 4, "cpus": [1] * 4}
    jobs = Workload({**columns, "licenses": ["x"] * 4}, resources=("cpus",))
    for cluster in (Machines.of(2, cpus=2), Machines.of(4, cpus=1)):
        result = Simulation(jobs, make(name), cluster, licenses={"x": 3}).run()
        assert sorted(result.start_time.tolist()) == [0, 0, 0, 5]


def test_an_end_opens_a_gate_before_the_pass_of_its_instant() -> None:
    """At 5 the licence is returned; job 2, submitted before job 3, starts although only one of them fits."""
    jobs = workload([(0, 5, 5, 1), (1, 5, 5, 1), (2, 5, 5, 1)], 1, licenses=["x", "x", ""])
    assert starts(jobs, "fcfs", licenses={"x": 1}) == [0, 5, 10]


def test_a_start_opens_a_gate_at_its_instant() -> None:
    jobs = workload([(3, 5, 5, 1), (0, 5, 5, 1)], 2, dependency=["", "after:1"])
    assert starts(jobs, "fcfs", gates=AFTER) == [3, 3]


# --- dependencies ------------------------------------------------------------------------------------------

THREE = [(0, 10, 10, 1), (1, 4, 4, 1), (2, 1, 1, 1)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("after:1", 2),
        ("after:1+1", 60),
        ("afterany:1", 10),
        ("afterok:1:2", 10),
        ("afterok:2", 5),
        ("afterok:1?afterok:2", 5),
        ("afterok:1(unfulfilled),afterany:2(unfulfilled)", 10),
        ("singleton", 10),
        ("singleton?after:2", 2),
        ("afternotok:1?afterok:2", 5),
        ("afternotok:2,afterok:1", None),
        ("afternotok:1?afternotok:2", None),
    ],
)
def test_kinds_of_dependencies(text: str, start: int | None) -> None:
    """The third job depends on the others, which run in [0, 10) and [1, 5), all of one user and name."""
    result = run(workload(THREE, 3, dependency=["", "", text]), "fcfs", gates=AFTER)
    assert result.start_time[2] == (-1 if start is None else start)


@pytest.mark.parametrize(
    ("how", "ends_well"),
    [
        ({"status": [1, -1, -1]}, True),
        ({"status": [0, 1, 1]}, False),
        ({"status": [5, 1, 1]}, False),
        ({}, True),
    ],
)
def test_a_job_that_failed_on_record_does_not_end_well(how: dict[str, Any], ends_well: bool) -> None:
    jobs = workload(THREE, 3, dependency=["", "afterok:1", "afternotok:1"], **how)
    result = run(jobs, "fcfs", gates=AFTER)
    assert result.finished.tolist() == [True, ends_well, not ends_well]


def test_a_job_that_is_killed_at_its_limit_does_not_end_well() -> None:
    jobs = workload([(0, 10, 5, 1), (1, 4, 4, 1)], 2, dependency=["", "afterok:1"])
    assert starts(jobs, "fcfs", gates=AFTER) == [0, 10]
    assert starts(jobs, "fcfs", gates=AFTER, walltime="kill") == [0, -1]


def test_a_job_that_is_given_up_does_not_end_well_and_one_that_goes_back_does_not_end() -> None:
    """It fails at 4. Without restarts it is over then; else it ends at 14."""
    from hpcsimkit.kernel.restart import Restart

    jobs = workload(
        [(0, 10, 10, 1), (1, 4, 4, 1), (1, 3, 3, 1)], 3, dependency=["", "afternotok:1", "afterany:1"]
    )
    failing = Outages([Outage(4, 5, 1, (), 0.0)])
    lost = run(jobs, "fcfs", gates=AFTER, outages=failing, restart=Restart(limit=0))
    assert lost.start_time.tolist() == [0, 4, 4]
    again = run(jobs, "fcfs", gates=AFTER, outages=failing)
    assert attempts(again)[0] == [(0, 4), (4, 14)]
    assert again.start_time.tolist() == [0, -1, 14]


def test_what_can_never_start_is_rejected_with_those_behind_it() -> None:
    """Job 2 never starts, nor does job 3, which needs it; job 4 only waits until that is clear."""
    jobs = workload(
        [(0, 10, 10, 1), (1, 4, 4, 1), (2, 4, 4, 1), (3, 4, 4, 1)],
        4,
        dependency=["", "afternotok:1", "afterok:2", "afterany:3"],
    )
    result = run(jobs, "fcfs", gates=AFTER)
    assert result.start_time.tolist() == [0, -1, -1, 10]
    never = "DependencyNeverSatisfied"
    assert held(result) == [
        (2, 1, 10, "Dependency"),
        (2, 10, 10, never),
        (3, 2, 10, "Dependency"),
        (3, 10, 10, never),
        (4, 3, 10, "Dependency"),
    ]
    assert result.held is not None
    assert result.held.refused() == {never: 2}
    assert measure(result, names=["rejected", "held_share"]) == {"rejected": 2, "held_share": 1}


def test_a_job_that_is_due_too_late_to_start_at_all_is_rejected_at_its_submission() -> None:
    seen: list[tuple[int, str]] = []

    class Watches(Observer):
        def on_hold(self, job: Job, reason: str, system: System) -> None:
            seen.append((system.now, reason))

    jobs = workload([(0, 1, 1, 1), (20, 4, 4, 1)], 4, dependency=["", "afternotok:1"])
    result = run(jobs, "fcfs", gates=AFTER, observers=[Watches()])
    assert result.finished.tolist() == [True, False]
    assert seen == [(20, "DependencyNeverSatisfied")]


class RejectsTheFirst(Policy):
    def schedule(self, system: System) -> None:
        for job in system.queue:
            if job.id == 1:
                system.reject(job)
            elif system.fits(job):
                system.start(job)


def test_a_rejected_job_is_over_and_did_not_end_well() -> None:
    texts = ["", "after:1", "afterany:1", "afternotok:1", "afterok:1", "after:1+1"]
    jobs = workload([(5 - j, 4, 4, 1) for j in range(6)], 6, dependency=texts)
    result = run(jobs, RejectsTheFirst(), gates=AFTER)
    assert result.start_time.tolist() == [-1, 5, 5, 5, -1, 65]


def test_a_rejected_job_waits_for_no_licence() -> None:
    """Job 1 could have started; when job 2 takes the licence, only job 3 has to wait."""
    jobs = workload([(0, 4, 4, 1), (0, 4, 4, 1), (1, 4, 4, 1)], 3, licenses=["x"] * 3)
    result = run(jobs, RejectsTheFirst(), licenses={"x": 1})
    assert result.start_time.tolist() == [-1, 0, 4]
    assert held(result) == [(3, 1, 4, "Licenses")]


def test_singletons_come_one_after_the_other_in_the_order_of_submission() -> None:
    """Job 4 is of another user, job 5 of another name, and job 3 is no singleton, but before job 6."""
    rows = [(2, 5, 5, 1), (0, 9, 9, 1), (3, 30, 30, 1), (3, 1, 1, 1), (3, 1, 1, 1), (4, 1, 1, 1)]
    one = "singleton"
    jobs = workload(
        rows,
        6,
        dependency=[one, one, "", one, one, one],
        user=[1, 1, 1, 2, 1, 1],
        executable=[7, 7, 7, 7, 8, 7],
    )
    assert starts(jobs, "fcfs", gates=AFTER) == [9, 0, 3, 3, 3, 33]


def test_the_number_of_an_array_stands_for_all_its_jobs() -> None:
    jobs = workload(
        [(0, 5, 5, 1), (0, 9, 9, 1), (0, 1, 1, 1)],
        6,
        dependency=["", "", "afterok:70_*"],
        array_job=[70, 70, -1],
    )
    assert starts(jobs, "fcfs", gates=AFTER) == [0, 0, 9]


def test_jobs_with_names_are_named() -> None:
    columns = {"id": [0, 1], "submit_time": [0, 0], "run_time": [5, 5], "nodes": [1, 1]}
    jobs = Workload(
        {**columns, "dependency": ["", "afterok:prepare"]}, machine_size=2, labels={"id": ("prepare", "run")}
    )
    assert starts(jobs, "fcfs", gates=AFTER) == [0, 5]


def test_a_name_of_digits_is_that_of_a_job_before_that_of_an_array() -> None:
    columns = {"id": [0, 1, 2], "submit_time": [0] * 3, "run_time": [5, 9, 1], "nodes": [1] * 3}
    jobs = Workload(
        {**columns, "dependency": ["", "", "afterok:7"], "array_job": [-1, 7, -1]},
        machine_size=3,
        labels={"id": ("7", "8", "9")},
    )
    assert starts(jobs, "fcfs", gates=AFTER) == [0, 0, 5]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["", "", "afterok:9"], "workload: job 3 depends on job 9, which is not in the workload"),
        (["", "", "afterok:3"], "workload: job 3 depends on job 3: a cycle of dependencies"),
        (["afterok:3", "after:1", "afterok:2:2"], "job 1 depends on job 3 on job 2 on job 1: a cycle"),
        (["", "afterok:3?afterok:1", "afterany:2"], "job 2 depends on job 3 on job 2: a cycle"),
        (
            ["", "", "afterok"],
            "workload: job 3: a dependency needs after:JOB, .* or singleton, found 'afterok'",
        ),
        (["", "", "before:1"], "found 'before:1'"),
        (["", "", "singleton:1"], "found 'singleton:1'"),
        (["", "", "afterok:"], "a dependency needs a job"),
        (["", "", "afterok:1+5"], r"a dependency needs a job, with \+MINUTES for after only"),
        (["", "", "after:1?after:2,after:1"], "joined either by ',' or by '[?]'"),
    ],
)
def test_wrong_dependencies(texts: list[str], error: str) -> None:
    with pytest.raises(WorkloadError, match=error):
        run(workload(THREE, 3, dependency=texts), "fcfs", gates=AFTER)


def test_a_part_of_a_log_may_lack_jobs() -> None:
    jobs = workload(THREE, 3, dependency=["afterok:9", "afterok:9,afterok:1", "afterok:9?afterok:1"])
    assert starts(jobs, "fcfs", gates=(AfterJobs("ignore"),)) == [0, 10, 2]
    with pytest.raises(UsageError, match="missing needs 'error' or 'ignore', found 'no'"):
        run(jobs, "fcfs", gates=(AfterJobs("no"),))


def test_dependencies_of_both_kinds_by_one_option() -> None:
    jobs = workload(THREE, 3, dependency=["", "", "afterok:2"], preceding=[-1, 1, -1])
    result = run(jobs, "fcfs", dependencies=True)
    assert result.submit_time.tolist() == [0, 10, 2]
    assert result.start_time.tolist() == [0, 10, 14]
    assert held(result) == [(3, 2, 14, "Dependency")]
    assert starts(jobs, "fcfs", gates=AFTER) == [0, 1, 5]


def test_terms_round_trip() -> None:
    terms, any_of = terms_of(" afterok:1:x_*?singleton ")
    assert [each.job for each in terms] == ["1", "x", ""]
    assert any_of


# --- begin times, holds, arrays, licences ------------------------------------------------------------------


def test_begin_times_and_holds() -> None:
    """Job 1 from 20 on; job 2 is released at 7, before its begin time; job 3 as well, and at 3."""
    jobs = workload(THREE, 1, begin_time=[20, 9, -1], hold_until=[-1, 7, 3])
    result = run(jobs, "fcfs", gates=(Holds(), BeginTimes()))
    assert result.start_time.tolist() == [20, 9, 3]
    assert held(result) == [
        (1, 0, 20, "BeginTime"),
        (2, 1, 9, "BeginTime"),
        (3, 2, 3, "JobHeldUser"),
    ]


def test_a_time_counts_as_something_to_come() -> None:
    """An inspector that holds job 1 until job 2 has begun is no stall: the begin time lies ahead."""
    from hpcsimkit.kernel.policy import Inspector

    class Waits(Inspector):
        def accept(self, job: Job, system: System) -> bool:
            return system.now >= 20

    jobs = workload([(0, 1, 1, 1), (0, 1, 1, 1)], 2, begin_time=[-1, 20])
    assert starts(jobs, Pipeline(inspector=Waits()), gates=(BeginTimes(),)) == [20, 20]


def test_array_limits() -> None:
    """Of array 7, two jobs at once; job 4 has no limit, but counts; array 8 is another one."""
    rows: list[Row] = [(0, 5, 5, 1), (0, 9, 9, 1), (0, 5, 5, 1), (0, 2, 2, 1), (0, 5, 5, 1)]
    jobs = workload(rows, 9, array_job=[7, 7, 7, 7, 8], array_limit=[2, 2, 2, -1, 1])
    result = run(jobs, "fcfs", gates=(ArrayLimits(),))
    assert result.start_time.tolist() == [0, 0, 5, 0, 0]
    assert held(result) == [(3, 0, 5, "JobArrayTaskLimit")]


class WhenTheFirstEnds(Gate):
    """All but the first job wait for its end, and the second one is rejected then."""

    reads_queue = False

    def holds(self, job: Job, system: System) -> Held | None:
        if job.id in self.early:
            return Held("First")
        return Held("Second", never=True) if job.id == 2 else None

    def reset(self, workload: Workload) -> None:
        self.early = {2, 3, 4}

    def after_end(self, job: Job, system: System) -> list[Job]:
        self.early.clear()
        return system.jobs[1:] if job.id == 1 else []


def test_a_rejection_lets_the_next_of_an_array_in_before_jobs_behind_it() -> None:
    """Job 3 is in turn when job 2 is rejected, so it joins the queue before job 4, which is as short."""
    rows: list[Row] = [(0, 5, 5, 1), (1, 3, 3, 1), (1, 3, 3, 1), (1, 3, 3, 1)]
    jobs = workload(rows, 1, array_job=[-1, 7, 7, -1], array_limit=[-1, 1, 1, -1])
    assert starts(jobs, "sjf", gates=(ArrayLimits(), WhenTheFirstEnds())) == [0, -1, 5, 8]


def test_an_observer_hears_of_each_job_as_it_joins() -> None:
    class Hears(Observer):
        def __init__(self) -> None:
            self.lengths: list[int] = []

        def on_submit(self, job: Job, system: System) -> None:
            self.lengths.append(len(system.queue))

    jobs, hears = workload([(0, 5, 5, 2)] + 2 * [(1, 5, 5, 1)], 2, licenses=["x:2", "x", "x"]), Hears()
    Simulation(jobs, make("fcfs"), licenses={"x": 2}, observers=(hears,)).run()
    assert hears.lengths == [1, 1, 2]


def test_a_stopped_job_frees_its_place_and_its_licence_and_passes_the_gates_again() -> None:
    """Job 1 fails at 4 for good nodes until 6: job 2 has the licence by then, and it waits for its end."""
    jobs = workload([(0, 10, 10, 2), (1, 4, 4, 1)], 3, licenses=["x", "x"])
    failing = Outages([Outage(4, 6, 1, (), 0.0)])
    result = run(jobs, "sjf", licenses={"x": 1}, outages=failing)
    assert attempts(result) == [[(0, 4), (8, 18)], [(4, 8)]]
    assert held(result) == [(1, 4, 8, "Licenses"), (2, 1, 4, "Licenses")]
    assert held_shares(result) == {"Licenses": 1}
    arrays = workload([(0, 10, 10, 2), (1, 4, 4, 1)], 3, array_job=[1, 1], array_limit=[1, 1])
    assert attempts(run(arrays, "sjf", gates=(ArrayLimits(),), outages=failing)) == attempts(result)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["matlab:3", "", ""], "job 1 asks for 3 of the licence 'matlab'; the cluster has 2"),
        (["", "mathlab", ""], "job 2 asks for the unknown licence 'mathlab'; nearest: matlab"),
        (["matlab:0", "", ""], "job 1: licences need NAME:NUMBER, such as matlab:2, found 'matlab:0'"),
        (["matlab:-1", "", ""], "found 'matlab:-1'"),
        (["matlab,matlab", "", ""], "the licence 'matlab' is named twice"),
    ],
)
def test_wrong_licences(texts: list[str], error: str) -> None:
    with pytest.raises(WorkloadError, match=error):
        run(workload(THREE, 3, licenses=texts), "fcfs", licenses={"matlab": 2})


def test_wrong_pools_and_columns() -> None:
    jobs = workload(THREE, 3)
    for pools in ({"x": -1}, {"x": 1.5}, {"": 1}, {"x": True}):
        with pytest.raises(UsageError, match="licenses needs names and whole numbers of at least 0"):
            run(jobs, "fcfs", licenses=pools)
    with pytest.raises(UsageError, match="licenses needs numbers by name"):
        run(jobs, "fcfs", licenses="x:1")
    with pytest.raises(WorkloadError, match="job 1: begin_time needs -1 to"):
        workload(THREE, 3, begin_time=[-7, 0, 0])
    for columns in (
        {"array_limit": [1, 1, 1]},
        {"array_limit": [0, -1, -1], "array_job": [1, 1, 1]},
        {"array_limit": [-1, 2, 3], "array_job": [1, 1, 1]},
    ):
        with pytest.raises(
            WorkloadError, match="an array limit needs an array_job and one limit of at least 1"
        ):
            run(workload(THREE, 3, **columns), "fcfs", gates=(ArrayLimits(),))


def test_licences_in_a_text() -> None:
    assert licenses_in("a:2, b") == {"a": 2, "b": 1}


# --- results -----------------------------------------------------------------------------------------------


def test_shares_of_the_wait() -> None:
    """Waits: 20 for the begin time, then 5 in the queue; 3 for the hold, 5 - 3 in the queue."""
    jobs = workload([(0, 25, 25, 1), (0, 10, 10, 1)], 1, begin_time=[20, -1], hold_until=[-1, 3])
    result = run(jobs, "fcfs", gates=(BeginTimes(), Holds()))
    assert result.start_time.tolist() == [20, 3]
    assert held_shares(result) == pytest.approx({"BeginTime": 20 / 23, "JobHeldUser": 3 / 23})
    assert held_shares(result, np.array([False, True])) == {"JobHeldUser": 1}
    assert measure(result, names=["held_share"]) == {"held_share": 1}


def test_saved_and_loaded(tmp_path: Path) -> None:
    jobs = workload(THREE, 1, begin_time=[20, 9, -1])
    result = run(jobs, "fcfs", gates=(BeginTimes(),))
    result.save(tmp_path / "r.npz")
    assert held(Result.load(tmp_path / "r.npz")) == held(result) != []


def test_the_trace_says_who_is_held(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        run(workload(THREE, 3, begin_time=[20, -1, -1]), "fcfs", gates=(BeginTimes(),), observers=[trace])
    assert '"event": "hold", "job": 1, "reason": "BeginTime"' in (tmp_path / "t.jsonl").read_text()


# --- the gate of a pipeline --------------------------------------------------------------------------------


class Skips(Admission):
    """Skips some jobs until a time."""

    reason = "NotYet"

    def __init__(self, ids: tuple[int, ...], until: int) -> None:
        self.ids = ids
        self.until = until

    def admits(self, job: Job, system: System) -> bool:
        return job.id not in self.ids or system.now >= self.until


def test_a_skipped_job_blocks_no_other_and_is_asked_about_in_each_pass() -> None:
    """Job 2, at the head, is skipped at 0, 1 and 3, and starts at 10; job 3 passes it."""
    left: list[int] = []

    class Watches(Observer):
        def on_finish(self, system: System) -> None:
            left.append(system.arrivals_left)

    jobs = workload([(0, 10, 10, 3), (0, 5, 5, 2), (1, 2, 2, 1)], 4)
    for policy in ("fcfs", "fcfs+easy", "fcfs+conservative"):
        chosen = make(policy)
        assert isinstance(chosen, Pipeline)
        chosen.gate = Skips((2,), 5)
        result = run(jobs, chosen, observers=[Watches()])
        assert left.pop() == 0
        assert result.start_time.tolist() == [0, 10, 1]
        assert held(result) == [(2, 0, 10, "NotYet")]


def test_backfilled_jobs_are_asked_about_too() -> None:
    """Job 2 is the head; jobs 3 and 4 would be backfilled, but 3 is skipped until the pass at 5."""
    rows = [(0, 10, 10, 3), (0, 9, 9, 4), (0, 5, 5, 1), (0, 5, 5, 1)]
    policy = Pipeline(backfiller=EASY(), gate=Skips((3,), 5))
    result = run(workload(rows, 4), policy)
    assert result.start_time.tolist() == [0, 10, 5, 0]
    fitting = run(workload(rows, 4), Pipeline(fitting=True, gate=Skips((3,), 5)))
    assert fitting.start_time.tolist() == [0, 10, 5, 0]


def test_a_pass_follows_max_interval_after_a_job_was_skipped() -> None:
    jobs = workload([(0, 50, 50, 1), (0, 5, 5, 1)], 4)
    for interval, start in ((None, 50), (7, 21)):
        policy = Pipeline(gate=Skips((2,), 20), max_interval=interval)
        assert starts(jobs, policy) == [0, start]


def test_a_skipped_job_also_passes_the_gates_of_the_run() -> None:
    """Job 2 is skipped at 0; at 3, job 3 takes the licence before the next pass can let job 2 in."""
    jobs = workload([(0, 50, 50, 1), (0, 5, 5, 1), (3, 9, 9, 1)], 4, licenses=["", "x", "x"])
    policy = Pipeline(order=LCFS(), gate=Skips((2,), 4))
    result = run(jobs, policy, licenses={"x": 1})
    assert result.start_time.tolist() == [0, 12, 3]
    assert held(result) == [(2, 0, 3, "NotYet"), (2, 3, 12, "Licenses")]


def test_skipping_what_does_not_fit_is_greedy_list_scheduling() -> None:
    log = default_workload(np.random.default_rng(2)).first(300)
    assert run(log, "sjf+admit-fitting").hash == run(log, "sjf+greedy").hash
    assert run(log, "sjf+admit-fitting").hash == run(log, "sjf+fitting").hash


def test_at_random_by_the_seed() -> None:
    log = default_workload(np.random.default_rng(2)).first(100)
    one, again, other = (run(log, "fcfs+easy+random-admission(0.3)", seed=seed) for seed in (1, 1, 2))
    assert one.hash == again.hash != other.hash
    assert run(log, "fcfs+easy+random-admission(0)").hash == run(log, "fcfs+easy").hash
    with pytest.raises(UsageError, match="share needs a number from 0 to 1, found 2"):
        run(log, "fcfs+random-admission(2)")


def test_wrong_gates_of_pipelines() -> None:
    jobs = workload(ROWS, 4)
    with pytest.raises(
        StalledError, match="job 1 at t=0 s is held although nothing runs and nothing is to come"
    ):
        run(jobs.first(1), Pipeline(gate=Skips((1,), 5)))
    with pytest.raises(UsageError, match="the gate of a pipeline needs a Admission, found FCFS"):
        run(jobs, Pipeline(gate=FCFS()))  # type: ignore[arg-type]


TWO_OF_FOUR = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])


class SkipsInTurn(Admission):
    """Skips each job in one of three seconds."""

    def admits(self, job: Job, system: System) -> bool:
        return (job.id + system.now) % 3 > 0


@examples(1)
@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 1)),
        min_size=1,
        max_size=9,
    ),
    policy=st.sampled_from(["fcfs", "fcfs+easy", "sjf+fitting", "fcfs+conservative"]),
)
def test_the_gate_of_two_partitions_is_that_of_two_clusters(drawn: list[Any], policy: str) -> None:
    chosen: Any = make(policy)
    chosen.gate = SkipsInTurn()
    rows = [(submitted, seconds, seconds, nodes) for submitted, seconds, nodes, _ in drawn]
    ids, first = np.arange(1, len(drawn) + 1), np.array([place for *_, place in drawn])
    jobs = workload(rows, 4, id=ids.tolist())
    expected = np.full(len(drawn), -1)
    reasons = []
    try:
        for place in np.unique(first).tolist():
            own = first == place
            part = workload(
                [row for row, is_own in zip(rows, own, strict=True) if is_own], 4, id=ids[own].tolist()
            )
            alone = run(part, chosen)
            expected[own] = alone.start_time
            reasons += held(alone)
    except StalledError:
        with pytest.raises(StalledError):
            Simulation(two_partitions(jobs, first.tolist()), chosen, TWO_OF_FOUR).run()
        return
    result = Simulation(two_partitions(jobs, first.tolist()), chosen, TWO_OF_FOUR).run()
    assert result.start_time.tolist() == expected.tolist()
    assert sorted(held(result)) == sorted(reasons)


class SkipsIn(Admission):
    """Skips job 2 in some partitions until a time."""

    reason = "NotHere"

    def __init__(self, **until: int) -> None:
        self.until = until

    def admits(self, job: Job, system: System) -> bool:
        return job.id != 2 or system.now >= self.until.get(system.partition, 0)


def test_a_job_that_is_skipped_in_one_partition_may_start_in_another() -> None:
    """Job 2, of both, is skipped in the first at 1, where it fits, and starts in the second at 4."""
    jobs = workload([(0, 9, 9, 2), (1, 5, 5, 2), (0, 4, 4, 3), (2, 1, 1, 1)], 4)
    in_partitions = two_partitions(jobs, [0, 2, 1, 0])
    # Under conservative backfilling, job 2 has a reservation before job 4 until it is skipped again at 2.
    for policy, last in (("fcfs", 2), ("fcfs+easy", 2), ("fcfs+conservative", 4)):
        chosen: Any = make(policy)
        chosen.gate = SkipsIn(a=50)
        simulation = Simulation(in_partitions, chosen, TWO_OF_FOUR)
        result = simulation.run()
        assert result.start_time.tolist() == [0, 4, 0, last]
        assert held(result) == [(2, 1, 4, "NotHere")]
        run_of_partitions: Any = simulation._begun()
        assert [each.system.arrivals_left for each in run_of_partitions.schedulers] == [0, 0]


def test_a_job_is_held_as_long_as_any_partition_skips_it() -> None:
    """Both skip job 2 at 1; the first admits it at 3, where it fits at 9; the second skips it again at 4."""
    jobs = workload([(0, 9, 9, 3), (1, 5, 5, 2), (0, 4, 4, 1), (3, 1, 1, 1)], 4)
    in_partitions = two_partitions(jobs, [0, 2, 1, 0])
    result = Simulation(in_partitions, Pipeline(gate=SkipsIn(a=3, b=50)), TWO_OF_FOUR).run()
    assert result.start_time.tolist() == [0, 9, 0, 9]
    assert held(result) == [(2, 1, 9, "NotHere")]


def test_a_gate_of_the_run_may_close_while_a_partition_skips_a_job() -> None:
    """At 0, job 2 is skipped, and job 3 takes the licence that it needs."""
    jobs = workload([(0, 50, 50, 1), (0, 5, 5, 1), (0, 9, 9, 1)], 4, licenses=["", "x", "x"])
    in_partitions = two_partitions(jobs, [0, 2, 0])
    policy = Pipeline(gate=SkipsIn(a=4))
    result = Simulation(in_partitions, policy, TWO_OF_FOUR, licenses={"x": 1}).run()
    assert result.start_time.tolist() == [0, 9, 0]
    assert held(result) == [(2, 0, 9, "Licenses")]


def test_a_job_that_one_partition_skips_is_backfilled_in_another() -> None:
    """At 1, the first partition skips job 2; in the second, it passes job 3, which needs all nodes."""
    jobs = workload([(0, 9, 9, 2), (1, 5, 5, 2), (0, 4, 4, 4), (0, 20, 20, 1)], 4)
    in_partitions = two_partitions(jobs, [0, 2, 0, 1])
    cluster = Partitions([Partition("b", nodes=4), Partition("a", nodes=4)])
    result = Simulation(in_partitions, Pipeline(backfiller=EASY(), gate=SkipsIn(b=50)), cluster).run()
    assert result.start_time.tolist() == [0, 1, 9, 0]
    assert held(result) == []


def test_the_compiled_simulator_refuses_a_gate_of_a_pipeline() -> None:
    pytest.importorskip("numba", reason="needs numba: install the extra [fast]")
    with pytest.raises(UsageError, match="it knows no gate of Pipeline"):
        run(workload(ROWS, 4), Pipeline(gate=Skips((1,), 5)), simulator="compiled")


def test_an_agent_at_the_gate() -> None:
    """Asked about jobs 1 and 2 at 0: the second is skipped, and asked about again when job 3 comes."""
    jobs = workload([(0, 9, 9, 1), (0, 9, 9, 1), (4, 9, 9, 1)], 3)
    simulation = Simulation(jobs, Pipeline(gate=External()))
    asked: list[tuple[int, int, int]] = []
    while (decision := simulation.next_decision()) is not None:
        assert decision.job is not None
        asked.append((decision.system.now, decision.job.id, len(decision.options)))
        simulation.answer(decision.job.id != 2 or decision.system.now > 0)
    assert asked == [(0, 1, 2), (0, 2, 2), (4, 2, 2), (4, 3, 2)]
    result = simulation.result()
    assert result.start_time.tolist() == [0, 4, 4]
    assert held(result) == [(2, 0, 4, "Admission")]
    assert result.choices[0] == ("gate", 0)


def test_an_environment_of_the_seat() -> None:
    pytest.importorskip("gymnasium")
    from hpcsimkit.agents.schedinspector.features import InspectorFeatures
    from hpcsimkit.agents.spaces.episodes import Fixed
    from hpcsimkit.agents.spaces.masks import AcceptReject
    from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    from hpcsimkit.envs.environment import SchedulingEnv

    jobs = workload([(0, 9, 9, 1), (0, 9, 9, 1), (4, 9, 9, 1)], 3)
    env = SchedulingEnv(
        Fixed(jobs),
        Pipeline(gate=External()),
        InspectorFeatures(),
        AcceptReject(),
        MinusMeanWait(),
        stage="gate",
    )
    env.reset(seed=0)
    rewards = [env.step(action) for action in (0, 1, 0, 0)]
    assert [over for _, _, over, _, _ in rewards] == [False, False, False, True]
    assert sum(reward for _, reward, *_ in rewards) == pytest.approx(-4 / 3)


@pytest.mark.parametrize(
    "policy", ["fcfs+easy+random-admission(0.4)", "sjf+conservative+random-admission(0.4)"]
)
def test_a_run_with_gates_goes_on_from_a_snapshot(policy: str) -> None:
    log = default_workload(np.random.default_rng(3)).first(120)
    columns = {
        **log.columns,
        "licenses": [("x", "", "x:2")[j % 3] for j in range(120)],
        "dependency": [f"afterany:{log.id[j - 5]}" if j % 7 == 6 else "" for j in range(120)],
        "begin_time": np.where(np.arange(120) % 11 == 3, log.submit_time + 5000, -1),
    }
    jobs = Workload(columns, machine_size=log.machine_size)

    def simulation() -> Simulation:
        return Simulation(jobs, make(policy), gates=(*AFTER, BeginTimes()), licenses={"x": 3})

    whole = simulation().run()
    assert {"Admission", "BeginTime", "Dependency", "Licenses"} == set(
        whole.held.reasons if whole.held else ()
    )
    for at in np.quantile(whole.submit_time, [0.1, 0.5, 0.9], method="lower").tolist():
        again = simulation().resume(simulation().snapshot(at)).run()
        assert again.hash == whole.hash
        assert held(again) == held(whole)


@pytest.mark.parametrize("policy", ["fcfs+easy", "fcfs+greedy", "fcfs+fitting"])
def test_a_start_in_a_pass_closes_the_gate_for_those_behind(policy: str) -> None:
    """The third and the fourth job fit beside the first; the one licence is for one of them at a time."""
    rows = [(0, 20, 20, 2), (1, 20, 20, 4), (2, 5, 5, 1), (2, 5, 5, 1)]
    jobs = workload(rows, 4, licenses=["", "", "x", "x"])
    assert starts(jobs, policy, licenses={"x": 1})[2:] == [2, 7]
