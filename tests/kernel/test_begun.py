"""Runs that begin with running jobs: they continue as the whole run does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Simulation, Workload, default_workload, make
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.kernel.begun import BeginAt, Begun, begun_at, begun_in, begun_in_log, remarks_on
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.helpers import rows_and_size, workload
from tests.kernel.machine_helpers import asked, jobs_on_machines
from tests.kernel.test_partitions import shared_case

MEMORYLESS = ("fcfs", "fcfs+easy", "sjf+easy", "wfp3+easy", "saf+greedy", "fcfs+conservative-replan")


def continued(whole: Result, at: int, policy: str, cluster: Any = None, **options: Any) -> Result:
    jobs, begun = begun_at(whole, at)
    size = whole.size if cluster is None else cluster
    return Simulation(jobs, make(policy), size, begun=begun, **options).run()


def rest(whole: Result, at: int) -> Any:
    return whole.start_time[whole.end_time > at].tolist()


@pytest.mark.parametrize("policy", MEMORYLESS)
@given(drawn=rows_and_size(), walltime=st.sampled_from(["run", "kill"]), data=st.data())
def test_continues_as_the_whole_run(policy: str, drawn: Any, walltime: Any, data: st.DataObject) -> None:
    whole = Simulation(workload(*drawn), make(policy), walltime=walltime).run()
    instants = sorted({*whole.start_time.tolist(), *whole.submit_time.tolist(), *whole.end_time.tolist()})
    at = data.draw(st.sampled_from(instants))
    assert continued(whole, at, policy, walltime=walltime).start_time.tolist() == rest(whole, at)


@pytest.mark.parametrize("policy", MEMORYLESS)
def test_continues_on_a_log(policy: str) -> None:
    whole = Simulation(default_workload(np.random.default_rng(1)).first(1500), make(policy)).run()
    for at in np.quantile(whole.submit_time, [0.3, 0.6, 0.9], method="lower").tolist():
        following = continued(whole, at, policy)
        assert following.start_time.tolist() == rest(whole, at)
        assert (following.wait_time >= 0).all()


@pytest.mark.parametrize("policy", ["fcfs+easy", "sjf+easy+best-fit"])
def test_continues_on_machines(policy: str) -> None:
    cluster = Machines.of(3, cpus=4, gpus=1)
    random = np.random.default_rng(5)
    jobs = jobs_on_machines(
        [
            asked(int(at), int(run), cpus=int(cpus), gpus=int(gpus))
            for at, run, cpus, gpus in zip(
                np.sort(random.integers(0, 200, 60)),
                random.integers(1, 60, 60),
                random.integers(1, 5, 60),
                random.integers(0, 2, 60),
                strict=True,
            )
        ]
    )
    whole = Simulation(jobs, make(policy), cluster).run()
    assert whole.placements is not None
    for at in (40, 120, 180):
        following = continued(whole, at, policy, cluster)
        assert following.start_time.tolist() == rest(whole, at)
        assert following.placements is not None
        left = np.flatnonzero(whole.end_time > at).tolist()
        assert following.placements.words() == [whole.placements.words()[row] for row in left]


THREE = Workload({"submit_time": [0, 5, 8], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)


def test_by_hand() -> None:
    simulation = Simulation(THREE, make("fcfs+easy"), begun=Begun(6, {0: 0}))
    result = simulation.run()
    assert result.start_time.tolist() == [0, 10, 8], "the last job fits beside the first and ends at 9 s"
    assert result.end_time.tolist() == [10, 19, 9]
    assert result.options["begun"] == {"at": 6, "started": 1}
    assert simulation.another(make("fcfs")).run().start_time.tolist() == [0, 10, 19]


def test_waiting_jobs_start_at_once_where_they_can() -> None:
    result = Simulation(THREE, make("fcfs"), begun=Begun(7, {})).run()
    assert result.start_time.tolist() == [7, 17, 26]


@pytest.mark.parametrize(
    ("policy", "options", "start"),
    [
        ("fcfs", {}, 7),
        ("fcfs+easy++", {}, 7),  # which corrects estimates before each pass
        ("fcfs", {"period": 7}, 7),
        ("fcfs", {"period": 5}, 10),
    ],
)
def test_the_first_pass_waits_for_the_period_only(policy: str, options: dict[str, Any], start: int) -> None:
    """The second job fits beside the first, and waits since 5 s."""
    jobs = workload([(0, 20, 20, 3), (5, 9, 9, 1)], 4)
    for begun in (Begun(7, {0: 0}), Begun(7, {0: 0}, before="log")):  # in the latter, passes before are given
        result = Simulation(jobs, make(policy), begun=begun, **options).run()
        assert result.start_time.tolist() == [0, start]


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        (Begun(6, {3: 0}), "a row below 3 is needed, found 3"),
        (Begun(6, {1: 4}), "job 2, submitted at 5 s, cannot have started at 4 s by 6 s"),
        (Begun(6, {0: 7}), "job 1, submitted at 0 s, cannot have started at 7 s by 6 s"),
        (Begun(6, {0: 0}, {1: 4}), "an allocation belongs to a started job, found one of row 1"),
        (Begun(6, {0: 0}, partitions={1: "a"}), "a partition belongs to a started job, found one of row 1"),
    ],
)
def test_impossible_states(begun: Begun, found: str) -> None:
    with pytest.raises(UsageError, match=found):
        Simulation(THREE, make("fcfs"), begun=begun)


def test_too_many_running_jobs() -> None:
    with pytest.raises(ScheduleError, match="job 2"):
        Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0, 1: 5})).run()


@pytest.mark.parametrize(
    "given", [{"begun": Begun(6, {0: 0})}, {"begin_at": BeginAt(6, make("fcfs"))}], ids=["begun", "begin_at"]
)
@pytest.mark.parametrize(
    "options",
    [{"event_order": DirlabOrder()}, {"service_time": lambda job, allocation, cluster: 1.5}],
    ids=["event_order", "service_time"],
)
def test_what_a_begun_run_does_not_know(given: Any, options: Any) -> None:
    with pytest.raises(UsageError, match=r"know(s)? no"):
        Simulation(THREE, make("fcfs"), **given, **options)


def test_a_run_begins_in_one_way() -> None:
    with pytest.raises(UsageError, match="one of 'begun' and 'begin_at' is needed, both are given"):
        Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0}), begin_at=BeginAt(6, make("fcfs")))


# --- with a past --------------------------------------------------------------------------------------------

LEARNING = (
    "fcfs+easy+last-two",
    "fcfs+conservative-replan+last-two",
    "slurm(age=1,fair_share=5,size=1)+easy",
    "aged(mean=1)+easy",
    "random+easy",
)


def with_past(whole: Result, at: int, policy: Any, cluster: Any = None, **options: Any) -> Result:
    chosen = make(policy) if isinstance(policy, str) else policy
    size = whole.size if cluster is None else cluster
    return Simulation(whole.workload, chosen, size, begun=begun_in(whole, at), **options).run()


def busy(whole: Result, count: int = 3) -> list[int]:
    """Instants at which most jobs wait."""
    times = np.unique(whole.submit_time)
    waiting = [((whole.submit_time <= at) & (whole.start_time > at)).sum() for at in times]
    return times[np.argsort(waiting, kind="stable")[-count:]].tolist()


@pytest.mark.parametrize("policy", [*MEMORYLESS, *LEARNING])
@examples(0.3)
@given(drawn=rows_and_size(), walltime=st.sampled_from(["run", "kill"]), data=st.data())
def test_the_past_is_known(policy: str, drawn: Any, walltime: Any, data: st.DataObject) -> None:
    whole = Simulation(workload(*drawn), make(policy), walltime=walltime).run()
    jobs = Simulation(workload(*drawn), make(policy), walltime=walltime).workload
    instants = sorted({*whole.start_time.tolist(), *whole.submit_time.tolist(), *whole.end_time.tolist()})
    at = data.draw(st.sampled_from(instants))
    begun = begun_in(whole, at)
    again = Simulation(jobs, make(policy), begun=begun, walltime=walltime).run()
    assert again.start_time.tolist() == whole.start_time.tolist()


@pytest.mark.parametrize("policy", [*MEMORYLESS, *LEARNING])
def test_the_past_of_a_log_is_known(policy: str) -> None:
    log = default_workload(np.random.default_rng(1)).first(800)
    whole = Simulation(log, make(policy)).run()
    for at in busy(whole):
        assert with_past(whole, at, policy).start_time.tolist() == whole.start_time.tolist()


def test_fair_shares_would_be_others_without_the_past() -> None:
    """Ada has used the cluster until 10 s, so that Ben is first: row 3 before row 2."""
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [10, 30, 5, 5],
        "nodes": [2, 2, 2, 2],
        "user": [0, 2, 0, 1],
    }
    jobs = Workload(columns, machine_size=2)
    policy = "slurm(age=0,fair_share=1,attribute=0,partition=0,qos=0)"
    whole = Simulation(jobs, make(policy)).run()
    begun = begun_in(whole, 12)
    assert begun.started == {0: 0, 1: 10}
    assert Simulation(jobs, make(policy), begun=begun).run().start_time.tolist() == [0, 10, 45, 40]
    kept, without = begun_at(whole, 12)
    assert Simulation(kept, make(policy), begun=without).run().start_time.tolist() == [10, 40, 45]


def test_a_jobs_predecessor_may_have_ended() -> None:
    columns = {
        "submit_time": [0, 0, 2, 3],
        "run_time": [5, 50, 5, 5],
        "nodes": [1, 1, 1, 1],
        "preceding": [-1, -1, 1, 3],
        "think_time": [-1, -1, 4, 2],
    }
    jobs = Workload({"id": [1, 2, 3, 4], **columns}, machine_size=2)
    whole = Simulation(jobs, make("fcfs"), dependencies=True).run()
    assert whole.start_time.tolist() == [0, 0, 9, 16]
    for at in range(20):
        again = Simulation(jobs, make("fcfs"), begun=begun_in(whole, at), dependencies=True).run()
        assert again.start_time.tolist() == whole.start_time.tolist()
        assert again.submit_time.tolist() == whole.submit_time.tolist()


@pytest.mark.parametrize("policy", ["fcfs+easy", "slurm(age=1,fair_share=5)+easy", "fcfs+easy+last-two"])
def test_partitions_continue(policy: str) -> None:
    """Three partitions on shared machines: starts, partitions and machines are those of the whole run."""
    jobs, cluster, _, _ = shared_case(3)
    whole = Simulation(jobs, make(policy), cluster).run()
    assert whole.placements is not None
    for at in busy(whole):
        again = with_past(whole, at, policy, cluster)
        assert again.start_time.tolist() == whole.start_time.tolist()
        assert again.started_in is not None
        assert again.started_in.tolist() == whole.started_in.tolist()  # type: ignore[union-attr]
        assert again.placements.words() == whole.placements.words()  # type: ignore[union-attr]


def test_partitions_of_counted_nodes_by_hand() -> None:
    parts = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])
    columns = {"submit_time": [0, 1, 2], "run_time": [10, 9, 1], "nodes": [3, 4, 1], "partition": [0, 1, 0]}
    jobs = Workload(columns, labels={"partition": ("a", "b")})
    result = Simulation(jobs, make("fcfs"), parts, begun=Begun(6, {0: 1}, partitions={0: "a"})).run()
    assert result.start_time.tolist() == [1, 6, 6]


def test_a_failure_before_the_beginning_does_not_happen() -> None:
    outages = Outages([Outage(0, 5, nodes=4), Outage(7, 9, nodes=4)])
    result = Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0}), outages=outages).run()
    assert result.attempts is not None
    assert result.attempts.start_time.tolist() == [0, 9, 19, 28]


def test_what_does_not_fit_is_an_error_or_starts_later() -> None:
    strict = Begun(12, {0: 0, 1: 5})
    with pytest.raises(ScheduleError, match="job 2, which started at 5 s, needs 4 nodes"):
        Simulation(THREE, make("fcfs"), begun=strict).run()
    late = Simulation(THREE, make("fcfs"), begun=Begun(12, {0: 0, 1: 5}, before="log")).run()
    assert late.start_time.tolist() == [0, 10, 19]


def test_remarks_on_what_differs_from_the_log() -> None:
    """Of four jobs submitted by 7 s, the second does not fit at 5 s, and of the last no start is known."""
    columns = {"submit_time": [0, 1, 2, 3], "run_time": [10, 9, 8, 7], "nodes": [4, 4, 1, 1]}
    jobs = Workload({**columns, "recorded_wait_time": [0, 4, 60, -1]}, machine_size=4)
    result = Simulation(jobs, make("fcfs"), begun=begun_in_log(jobs, 7)).run()
    assert result.start_time.tolist() == [0, 10, 19, -1]
    assert remarks_on(result) == [
        "1 jobs submitted by 7 s without a recorded wait: rejected",
        "1 jobs start later than recorded before 7 s, as the machine is full",
    ]
    assert remarks_on(Simulation(jobs, make("fcfs")).run()) == []


@pytest.mark.parametrize(
    ("column", "gate", "starts"),
    [
        ({"begin_time": [3, -1, -1]}, {"gates": (BeginTimes(),)}, [3, 13, 9]),
        ({"hold_until": [8, -1, -1]}, {"gates": (Holds(),)}, [8, 18, 9]),
        ({"array_job": [7, 7, 7], "array_limit": [1, 1, 1]}, {"gates": (ArrayLimits(),)}, [0, 10, 19]),
        ({"licenses": [0, 0, 0]}, {"licenses": {"a": 1}}, [0, 11, 10]),
    ],
)
def test_what_a_gate_holds_is_an_error_or_starts_later(
    column: dict[str, Any], gate: dict[str, Any], starts: list[int]
) -> None:
    """By the record, jobs 1 and 3 run beside each other; job 1 had started at 0 s and job 3 at 9 s."""
    jobs = Workload({**THREE.columns, **column}, labels={"licenses": ("a",)}, machine_size=4)
    begun = Begun(9, {0: 0, 2: 9})
    with pytest.raises(ScheduleError, match=r"begun: job [13], which started at [09] s, was held by a gate"):
        Simulation(jobs, make("fcfs"), begun=begun, **gate).run()
    late = replace(begun, before="log")
    assert Simulation(jobs, make("fcfs"), begun=late, **gate).run().start_time.tolist() == starts


def test_rejected_jobs_do_not_wait() -> None:
    result = Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0}, rejected={1})).run()
    assert result.start_time.tolist() == [0, -1, 8]


def test_a_whole_preemptive_scheduler_takes_over_running_jobs() -> None:
    jobs = Workload({"submit_time": [0, 1, 2], "run_time": [5, 50, 10], "nodes": [4, 4, 4]}, machine_size=4)
    begun = begun_in(Simulation(jobs, make("fcfs")).run(), 6)
    result = Simulation(jobs, make("oracle-srtf"), begun=begun).run()
    assert result.end_time.tolist() == [5, 65, 16], "the second runs from 5 to 6 s, and after the third"


def test_a_run_with_stopped_jobs_gives_no_past() -> None:
    outages = Outages([Outage(3, 5, nodes=4)])
    with pytest.raises(UsageError, match="no job was stopped"):
        begun_in(Simulation(THREE, make("fcfs"), outages=outages).run(), 6)


def test_jobs_of_several_partitions_without_names_of_those_in_which_they_started() -> None:
    """Each starts in a partition that it names, also if another one has its pass before."""
    parts = Partitions([Partition("a", nodes=4), Partition("b", nodes=4, priority=1)])
    columns = {"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [1, 1, 4], "partition": [0, 1, 0]}
    jobs = Workload(columns, labels={"partition": ("a", "b")})
    result = Simulation(jobs, make("fcfs"), parts, begun=Begun(5, {0: 0, 1: 3})).run()
    assert result.start_time.tolist() == [0, 3, 9]
    assert result.started_in is not None and result.started_in.tolist() == ["a", "b", "a"]


def test_a_window_keeps_a_job_of_the_log_from_its_machine() -> None:
    """Job 1, which would run into the window of n1, runs on n2 instead; job 2 has ended, so there is a past."""
    machines = Machines(("n1", "n2"), ("cpus",), [[4], [4]])
    columns = {"submit_time": [0, 5, 8], "run_time": [3, 20, 9], "nodes": [1] * 3, "cpus": [4] * 3}
    jobs = Workload({**columns, "requested_time": [3, 20, 9]}, resources=("cpus",))
    free = Simulation(jobs, make("fcfs"), machines).run()
    assert free.placements is not None and free.placements.words() == ["n1", "n1", "n2"]
    given = replace(begun_in(free, 7), before="log")
    calendar = Calendar([Window(10, 15, machines=("n1",))])
    found = Simulation(jobs, make("fcfs"), machines, begun=given, calendar=calendar).run()
    assert found.placements is not None and found.placements.words()[:2] == ["n1", "n2"]
    assert found.start_time.tolist()[:2] == [0, 5]
