"""Preemptive schedulers, job by job as an independent simulator, and preemptors of a pipeline."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.errors import ScheduleError, StalledError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Estimator, Policy
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, Pipeline
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.policies.preempting.replanning import LAS, SRTF, Gittins, SmallestPreemptive
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.metrics import measure
from tests.drawn import examples
from tests.kernel import machine_cases
from tests.kernel.helpers import Row, rows_and_size, run, workload
from tests.kernel.machine_helpers import asked, jobs_on_machines
from tests.kernel.test_attempts import attempts

NEVER = 10**18


def planned_anew(rows: list[Row], size: int, kind: str) -> list[list[tuple[int, int]]]:
    """The attempts of jobs under a scheduler that plans anew at every event, free of the kit's code."""
    left = [run for _, run, _, _ in rows]
    nodes = [nodes for *_, nodes in rows]
    key = {
        "remaining": lambda j: left[j],
        "area": lambda j: left[j] * nodes[j],
        "nodes": lambda j: nodes[j],
    }[kind]
    coming = sorted(range(len(rows)), key=lambda j: rows[j][0])
    present: list[int] = []
    since: dict[int, int] = {}
    found: list[list[tuple[int, int]]] = [[] for _ in rows]
    now = 0
    while coming or present:
        first_end = min((now + left[j] for j in since), default=NEVER)
        then = min(first_end, rows[coming[0]][0] if coming else NEVER)
        for j in since:
            left[j] -= then - now
        now = then
        for j in [j for j in present if j in since and not left[j]]:
            found[j].append((since.pop(j), now))
            present.remove(j)
        while coming and rows[coming[0]][0] == now:
            present.append(coming.pop(0))
        present.sort(key=key)
        free, chosen = size, []
        for j in present:
            if nodes[j] <= free:
                free -= nodes[j]
                chosen.append(j)
        for j in [j for j in since if j not in chosen]:
            found[j].append((since.pop(j), now))
        for j in chosen:
            since.setdefault(j, now)
    return found


def least_attained_service(
    rows: list[Row], size: int, limits: tuple[int, ...]
) -> list[list[tuple[int, int]]]:
    """The attempts of jobs under discretized LAS, as in the simulator of Tiresias; free of the kit's code."""
    coming = sorted(range(len(rows)), key=lambda j: rows[j][0])
    queues: list[list[int]] = [[] for _ in range(len(limits) + 1)]
    place, done, since = {}, [0] * len(rows), dict[int, int]()
    arrived: list[int] = []
    found: list[list[tuple[int, int]]] = [[] for _ in rows]
    now, check = 0, NEVER
    while coming or arrived:
        end = min((now + rows[j][1] - done[j] for j in since), default=NEVER)
        event = min(end, rows[coming[0]][0] if coming else NEVER)
        then = min(event, check)
        for j in since:
            done[j] += then - now
        now = then
        if now == event:
            for j in [j for j in arrived if j in since and done[j] == rows[j][1]]:
                found[j].append((since.pop(j), now))
                arrived.remove(j)
                queues[place[j]].remove(j)
            while coming and rows[coming[0]][0] == now:
                j = coming.pop(0)
                arrived.append(j)
                place[j] = 0
                queues[0].append(j)
        for j in arrived:
            if j in since and place[j] < len(limits) and done[j] * rows[j][3] >= limits[place[j]]:
                queues[place[j]].remove(j)
                place[j] += 1
                queues[place[j]].append(j)
        free, chosen = size, set()
        for j in [j for queue in queues for j in queue]:
            if rows[j][3] <= free:
                free -= rows[j][3]
                chosen.add(j)
        for j in [j for j in since if j not in chosen]:
            found[j].append((since.pop(j), now))
        for j in chosen:
            since.setdefault(j, now)
        for queue in queues:
            queue.sort(key=lambda j: j not in since)
        ahead = [
            math.ceil((limits[place[j]] - done[j]) / rows[j][3]) for j in since if place[j] < len(limits)
        ]
        check = min((now + seconds for seconds in ahead if seconds > 0), default=NEVER)
    return found


# --- against references ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiresias(shared: Path) -> Any:
    """Schedules of 1 000 jobs of Philly on 32 GPUs by the simulator of Tiresias, by policy."""

    def read(name: str) -> list[dict[str, int]]:
        with gzip.open(shared / "refs" / "tiresias" / f"{name}.csv.gz", "rt") as file:
            return [{key: int(float(value)) for key, value in row.items()} for row in csv.DictReader(file)]

    return read


@pytest.mark.parametrize(
    ("policy", "reference"),
    [("fcfs", "fifo"), ("fcfs+fitting", "fjf"), ("oracle-srtf", "shortest"), ("las", "dlas-gpu")],
)
def test_equal_to_tiresias(tiresias: Any, policy: str, reference: str) -> None:
    """First start, end and number of preemptions of each job."""
    expected = tiresias(reference)
    rows = [(each["submit_time"], each["duration"], each["duration"], each["num_gpu"]) for each in expected]
    result = run(workload(rows, 32), policy)
    stops = np.zeros(len(rows)) if result.attempts is None else result.attempts.count(len(rows)) - 1
    assert result.start_time.tolist() == [each["first_start"] for each in expected]
    assert result.end_time.tolist() == [each["end"] for each in expected]
    assert stops.tolist() == [each["preemptions"] for each in expected]


def shifted(rows: list[Row]) -> list[Row]:
    """Jobs of at least a second: published simulators know no others."""
    return [(at, taken + 1, asked, nodes) for at, taken, asked, nodes in rows]


@given(drawn=rows_and_size(max_jobs=12))
@pytest.mark.parametrize(
    ("policy", "kind"),
    [("oracle-srtf", "remaining"), ("oracle-srtf-area", "area"), ("smallest-preemptive", "nodes")],
)
def test_equal_to_a_naive_simulator(policy: str, kind: str, drawn: Any) -> None:
    rows, size = shifted(drawn[0]), drawn[1]
    assert attempts(run(workload(rows, size), policy)) == planned_anew(rows, size, kind)


@given(drawn=rows_and_size(max_jobs=12), limits=st.sampled_from([(5,), (3, 20), (10, 30, 60)]))
@examples(3)
def test_las_is_equal_to_a_naive_simulator(drawn: Any, limits: tuple[int, ...]) -> None:
    rows, size = shifted(drawn[0]), drawn[1]
    found = attempts(run(workload(rows, size), LAS(thresholds=limits)))
    assert found == least_attained_service(rows, size, limits)


# --- by hand -----------------------------------------------------------------------------------------------


def test_a_job_of_several_nodes_is_demoted_exactly_at_its_threshold() -> None:
    """Two nodes for 6 s are a service of 12; as published, 2 s of it are counted once: the check is at 7 s."""
    rows = [(0, 20, 20, 2), (2, 4, 4, 2)]
    exact = run(workload(rows, 2), LAS(thresholds=(12,), demotion="exact"))
    assert attempts(exact) == [[(0, 6), (10, 24)], [(6, 10)]]
    published = run(workload(rows, 2), LAS(thresholds=(12,)))
    assert attempts(published) == [[(0, 7), (11, 24)], [(7, 11)]]


def test_a_job_that_has_waited_long_returns_to_the_first_queue() -> None:
    """The first job is demoted at 4 s and waits for as long as it has run by 8 s, when it comes before others."""
    rows = [(0, 10, 10, 1), (1, 30, 30, 1), (2, 30, 30, 1)]
    demoted = attempts(run(workload(rows, 1), LAS(thresholds=(4,))))
    promoted = attempts(run(workload(rows, 1), LAS(thresholds=(4,), promote=1)))
    assert demoted[0][:2] == [(0, 4), (12, 18)]
    assert promoted[0][0] == (0, 4)
    assert promoted != demoted


def test_gittins_prefers_jobs_that_end_like_those_of_the_past() -> None:
    """All jobs took 10 s: a job that is close to 10 s is not stopped for one that has just arrived."""
    policy = Gittins(quantum=2, by="time", least=3, interval=1)
    rows = [(0, 10, 10, 1), (0, 10, 10, 1), (0, 10, 10, 1), (10, 10, 10, 1), (10, 10, 10, 2), (19, 10, 10, 3)]
    found = attempts(run(workload(rows, 3), policy))
    assert [each[-1][1] for each in found[:3]] == [10, 10, 10]
    assert len(found[4]) == 1, "it is not stopped for the last job"


def test_gittins_index_by_hand() -> None:
    """Services 2, 4, 4, 10; at 3 with a quantum of 2: 2 of 3 end within it, by a mean of (1 + 1 + 2) / 3."""
    policy = Gittins(quantum=2)
    policy._past = np.array([2.0, 4.0, 4.0, 10.0])
    policy._sums = np.array([0.0, 2.0, 6.0, 10.0, 20.0])
    assert policy._indices(np.array([3.0, 0.0, 11.0])).tolist() == pytest.approx([0.5, 0.25 / 2, 0.0])


def test_a_running_job_moves_if_its_machine_goes_to_another() -> None:
    """The small job runs on the first machine, which the larger one gets; it moves to the second one."""
    columns = {"submit_time": [0, 1], "run_time": [30, 5], "nodes": [1, 1], "cpus": [2, 4]}
    jobs = Workload(columns, resources=("cpus",), machine_size=None)
    cluster = Machines.of_tables([{"count": 1, "cpus": 4}, {"count": 1, "cpus": 2}])
    result = Simulation(jobs, SRTF(), cluster).run()
    assert attempts(result) == [[(0, 1), (1, 30)], [(1, 6)]]


def test_a_job_that_uses_none_of_the_first_resource_has_no_service() -> None:
    columns = {"submit_time": [0, 1], "run_time": [30, 5], "nodes": [1, 1], "cpus": [0, 2], "gpus": [1, 1]}
    jobs = Workload(columns, resources=("cpus", "gpus"), machine_size=None)
    result = Simulation(jobs, LAS(thresholds=(4,)), Machines.of(1, cpus=4, gpus=1)).run()
    assert attempts(result) == [[(0, 30)], [(30, 35)]]


# --- preemptors --------------------------------------------------------------------------------------------

TIERS = [(0, 30, 30, 2), (1, 30, 30, 2), (5, 10, 10, 2)]


UNEQUAL = [(0, 30, 30, 3), (1, 30, 30, 1), (5, 10, 10, 1)]


@pytest.mark.parametrize(
    ("first", "rows", "stopped"),
    [
        *((first, TIERS, stopped) for first, stopped in (("youngest", 1), ("oldest", 0), ("least_lost", 1))),
        ("smallest", TIERS, 0),
        ("placement", TIERS, 0),
        ("oldest", UNEQUAL, 0),
        ("least_lost", UNEQUAL, 1),
        ("smallest", UNEQUAL, 1),
    ],
)
def test_first_choice_of_a_preemptor(first: str, rows: list[Row], stopped: int) -> None:
    jobs = workload(rows, 4, queue=[0, 0, 1])
    result = run(jobs, Pipeline(FCFS(), preemptor=PreemptLowerTiers(first=first)))  # type: ignore[arg-type]
    assert result.attempts is not None
    assert result.attempts.count(3).tolist() == [1 + (stopped == 0), 1 + (stopped == 1), 1]


def test_preemptor_by_name_with_an_exempt_time() -> None:
    """Both jobs are exempt until 9 and 10 s; at 10 s nothing happens, so that the third one waits until 30 s."""
    jobs = workload(TIERS, 4, queue=[0, 0, 1])
    assert run(jobs, "fcfs+easy+preempt(exempt_time=9)").start_time.tolist() == [0, 1, 30]
    assert run(jobs, "fcfs+easy+preempt").start_time.tolist() == [0, 1, 5]


def test_superfluous_victims_are_spared() -> None:
    """The youngest job alone is too small, the next one alone is enough."""
    rows = [(0, 30, 30, 3), (1, 30, 30, 1), (5, 10, 10, 3)]
    result = run(workload(rows, 4, queue=[0, 0, 1]), "fcfs+preempt")
    assert attempts(result) == [[(0, 5), (15, 40)], [(1, 31)], [(5, 15)]]


def test_work_is_lost_if_preempted_jobs_begin_anew() -> None:
    jobs = workload(TIERS, 4, queue=[0, 0, 1])
    result = run(jobs, "fcfs+preempt", restart=Restart(preempted="anew", delay=3))
    assert attempts(result) == [[(0, 30)], [(1, 5), (15, 45)], [(5, 15)]]


@pytest.mark.parametrize("policy", [Gittins(least=9, interval=10), LAS(thresholds=(10,), promote=0.1)])
def test_the_time_of_a_restart_is_no_service(policy: Any) -> None:
    """Else its end would take back the service of the job, which would be stopped before it has done any work."""
    result = run(workload([(0, 100, 100, 1), (1, 100, 100, 1)], 1), policy, restart=Restart(cost=30))
    assert result.attempts is not None
    assert result.attempts.work.sum() == 200
    assert 0 < result.attempts.count(2).sum() - 2 < 20


def test_tiers_by_the_names_of_a_column() -> None:
    columns = {"submit_time": [0, 1], "run_time": [20, 5], "nodes": [2, 2], "qos": [0, 1]}
    jobs = Workload(columns, machine_size=2, labels={"qos": ("urgent", "normal")})
    ranked = Pipeline(FCFS(), preemptor=PreemptLowerTiers(by="qos", tiers=("normal", "urgent")))
    assert Simulation(jobs, ranked).run().end_time.tolist() == [25, 6]
    assert Simulation(
        jobs, Pipeline(FCFS(), preemptor=PreemptLowerTiers(by="qos", tiers=("urgent",)))
    ).run().end_time.tolist() == [20, 25]


def driven(policy: Pipeline, answer: Any) -> Any:
    """Run a simulation with an open seat by a function of the decision."""
    simulation = Simulation(workload(TIERS, 4, queue=[0, 0, 1]), policy)
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(answer(decision))
    return simulation.result()


def test_an_agent_at_the_seat_may_choose_or_decline() -> None:
    """With the default answers, the open seat is the heuristic behind it."""
    seated = Pipeline(FCFS(), backfiller=EASY(), preemptor=External(PreemptLowerTiers()))
    closed = run(
        workload(TIERS, 4, queue=[0, 0, 1]),
        Pipeline(FCFS(), backfiller=EASY(), preemptor=PreemptLowerTiers()),
    )
    assert attempts(driven(seated, lambda decision: decision.default)) == attempts(closed)
    assert attempts(driven(seated, lambda decision: decision.options[-1])) == [
        [(0, 30)],
        [(1, 31)],
        [(30, 40)],
    ]
    oldest = attempts(driven(seated, lambda decision: decision.options[1]))
    assert oldest == [[(0, 5), (15, 40)], [(1, 31)], [(5, 15)]]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Pipeline(preemptor=External()), "needs a base"),
        (Pipeline(fitting=True, preemptor=PreemptLowerTiers()), "a preemptor needs a head"),
        (make("fcfs+conservative+preempt"), "a preemptor needs a head"),
        (Pipeline(preemptor=PreemptLowerTiers(by="qos")), "no column 'qos' of tiers"),
        (Pipeline(preemptor=PreemptLowerTiers(tiers=("high",))), "no job has queue 'high'"),
        (Pipeline(preemptor=PreemptLowerTiers(first="last")), "first needs one of youngest"),  # type: ignore[arg-type]
        (LAS(thresholds=(5, 5)), "thresholds need increasing positive numbers"),
        (Gittins(quantum=0), "quantum needs a whole number, at least 1, found 0"),
    ],
)
def test_wrong_parameters_are_refused(policy: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(workload(TIERS, 4, queue=[0, 0, 1]), policy)


def test_replanning_policies_show_their_parameters() -> None:
    assert repr(SmallestPreemptive()) == "SmallestPreemptive()"
    assert repr(make("las(promote=2)")) == "LAS(promote=2)"


# --- modes of preemption -------------------------------------------------------------------------------------

TWO_TIERS = {"submit_time": [0, 5], "run_time": [20, 4], "nodes": [2, 2], "queue": [1, 2]}


@pytest.mark.parametrize(
    ("options", "ends", "outcomes"),
    [
        ("", [24, 9], ["PREEMPTED", "COMPLETED"]),
        ("mode=cancel", [5, 9], ["CANCELLED"]),
        ("mode=suspend", [24, 9], ["SUSPENDED", "COMPLETED"]),
        ("grace_time=3", [24, 12], ["PREEMPTED", "COMPLETED"]),
        ("grace_time=15", [20, 24], None),
        ("mode=suspend, grace_time=3", [24, 12], ["SUSPENDED", "COMPLETED"]),
    ],
)
def test_modes_and_grace(options: str, ends: list[int], outcomes: list[str] | None) -> None:
    """The second job comes at 5 s; the first one has 15 s left."""
    result = Simulation(Workload(TWO_TIERS, machine_size=2), make(f"fcfs+preempt({options})")).run()
    assert result.end_time.tolist() == ends
    if outcomes is None:
        assert result.attempts is None
    else:
        assert result.attempts is not None
        first = result.attempts.outcome[result.attempts.job == 0]
        again = result.attempts.submit_time[result.attempts.job == 0][1:]
        assert again.tolist() == [5 if "grace" not in options else 8] * (len(outcomes) - 1)
        assert [Outcome(each).name for each in first] == outcomes
        assert measure(result, names=["restarts"])["restarts"] == outcomes.count("PREEMPTED")


def test_a_suspended_job_keeps_its_memory_and_its_machine() -> None:
    """The third job needs the memory of the first, which is suspended on node1; the first goes on there, not on node2."""
    cluster = Machines.of(2, cpus=4, memory="8 B")
    jobs = [
        asked(0, 20, cpus=4, memory=6),
        asked(5, 4, cpus=4, memory=2),
        asked(6, 2, cpus=1, memory=4),
        asked(0, 30, cpus=4, memory=1),
    ]
    workload = jobs_on_machines(jobs, queue=[0, 2, 2, 1])
    result = Simulation(workload, make("fcfs+preempt(mode=suspend)"), cluster).run()
    assert result.attempts is not None and result.attempts.placements is not None
    rows = zip(
        result.attempts.job.tolist(),
        result.attempts.start_time.tolist(),
        result.attempts.end_time.tolist(),
        result.attempts.placements.words(),
        strict=True,
    )
    # At 6 s, node2's job is suspended, too: it keeps 1 of 8 for a request of 4.
    assert list(rows) == [
        (0, 0, 5, "node1"),
        (0, 9, 24, "node1"),
        (1, 5, 9, "node1"),
        (2, 6, 8, "node2"),
        (3, 0, 6, "node2"),
        (3, 8, 32, "node2"),
    ]


def test_a_suspended_job_fails_with_its_machine() -> None:
    """What it had done in both of its parts is lost."""
    cluster = Machines.of(1, cpus=4)
    workload = jobs_on_machines([asked(0, 20, cpus=4), asked(5, 4, cpus=4)], queue=[1, 2])
    for start, expected in (
        (7, [(0, 5, "FAILED", 0, 5), (8, 8, "SUSPENDED", 0, 0), (12, 32, "COMPLETED", 20, 0)]),
        (12, [(0, 5, "SUSPENDED", 0, 5), (9, 12, "FAILED", 0, 3), (13, 33, "COMPLETED", 20, 0)]),
    ):
        outages = Outages([Outage(start, start + 1, machines=(0,))])
        result = Simulation(workload, make("fcfs+preempt(mode=suspend)"), cluster, outages=outages).run()
        each = result.attempts
        assert each is not None
        rows = [
            (int(each.start_time[k]), int(each.end_time[k]), Outcome(each.outcome[k]).name, int(each.work[k]), int(each.lost[k]))
            for k in np.flatnonzero(each.job == 0)
        ]  # fmt: skip
        assert rows == expected, start
        policy, cost = make("fcfs+preempt(mode=suspend)"), Restart(cost=2)
        costly = Simulation(workload, policy, cluster, outages=outages, restart=cost).run()
        assert costly.end_time[0] == result.end_time[0] + (2 if start == 12 else 4)


@pytest.mark.parametrize(
    ("policy", "late", "start"),
    [
        ("fcfs", (8, 50, 1), 30),  # H starts at 6 s, when W ends; so V has a new grace from 20 s on
        ("sjf", (8, 5, 1), 15),  # H2 takes what H has waited for
    ],
)
def test_whom_a_grace_is_for(policy: str, late: tuple[int, int, int], start: int) -> None:
    if policy == "fcfs":
        rows = [(0, 100, 0), (0, 6, 1), (5, 60, 1), (20, *late[1:])]
    else:
        rows = [(0, 100, 0), (5, 50, 1), late]
    columns = dict(zip(("submit_time", "run_time", "queue"), zip(*rows, strict=True), strict=True))
    jobs = Workload({**columns, "nodes": [1] * len(rows)}, machine_size=2 if policy == "fcfs" else 1)
    result = Simulation(jobs, make(f"{policy}+preempt(grace_time=10)")).run()
    assert result.start_time[-1] == start
    assert result.attempts is not None and result.attempts.count(len(rows))[0] == 2


def test_a_job_that_was_suspended_is_expected_to_end_later() -> None:
    """It is suspended after 3 s, until 8 s; at 10 s, it has run for its estimate of 5 s."""
    seen = []

    class Late(Estimator):
        corrects = True

        def estimate(self, job: Job) -> int:
            return 5

        def correct(self, job: Job, elapsed: int) -> int:
            seen.append(elapsed)
            return 9

    class Pause(Pipeline):
        def schedule(self, system: System) -> Any:
            if system.now == 3:
                system.suspend(system.jobs[0])
            if system.now == 8:
                system.resume(system.jobs[0])
                assert system.running.expected_end(system.jobs[0]) == 10
            if system.now == 10:
                assert system.running.expected_end(system.jobs[0]) == 14
            yield from super()._run(system)

    columns = {"submit_time": [0, 3, 8, 10], "run_time": [20, 1, 1, 1], "nodes": [1, 1, 2, 2]}
    Simulation(Workload(columns, machine_size=2), Pause(estimates=Late())).run()
    assert seen[0] == 5


def test_outages_go_on_while_a_job_is_suspended() -> None:
    """Nothing runs or waits at 18 s, when the second outage begins."""
    jobs = Workload(
        {"submit_time": [0, 10], "run_time": [15, 3], "nodes": [3, 2], "queue": [0, 1]}, machine_size=3
    )
    outages = Outages([Outage(12, 20), Outage(18, 30, nodes=2)])
    result = Simulation(jobs, make("fcfs+preempt(mode=suspend)"), outages=outages).run()
    assert attempts(result) == [[(0, 10), (30, 35)], [(10, 13)]]


def test_a_policy_suspends_and_resumes() -> None:
    class Pause(Policy):
        """Suspends the first job from 3 s on until the second one has ended."""

        acts_on_running = True

        def schedule(self, system: System) -> None:
            if system.now == 3:
                system.suspend(system.jobs[0])
                with pytest.raises(ScheduleError, match="cannot be suspended: it must be running here"):
                    system.suspend(system.jobs[0])
            for job in system.queue:
                if system.fits(job):
                    system.start(job)
            for row in list(system.suspended):
                if not len(system.running):
                    system.resume(system.jobs[row])
                    with pytest.raises(ScheduleError, match="it must be suspended here"):
                        system.resume(system.jobs[row])

    jobs = Workload({"submit_time": [0, 3], "run_time": [10, 5], "nodes": [2, 1]}, machine_size=2)
    assert Simulation(jobs, Pause()).run().end_time.tolist() == [15, 8]


def test_a_job_that_stays_suspended_stalls_the_run() -> None:
    class Forgetful(Policy):
        def schedule(self, system: System) -> None:
            for job in system.queue:
                system.start(job)
                system.suspend(job)

    jobs = Workload({"submit_time": [0], "run_time": [10], "nodes": [2]}, machine_size=2)
    with pytest.raises(StalledError, match="job 1 is suspended, and nothing is to come"):
        Simulation(jobs, Forgetful()).run()


def test_wrong_modes() -> None:
    jobs = Workload(TWO_TIERS, machine_size=2)
    for options, message in (
        ("mode=stop", "preemptor: mode needs one of requeue, cancel, suspend, found 'stop'"),
        ("grace_time=-1", "preemptor: grace_time needs a whole number, at least 0, found -1"),
    ):
        with pytest.raises(UsageError, match=message):
            Simulation(jobs, make(f"fcfs+preempt({options})")).run()


@given(case=machine_cases.cases(), mode=st.sampled_from(["suspend", "cancel", "requeue"]), grace=st.sampled_from([0, 0, 3]), seed=st.integers(0, 99))  # fmt: skip
def test_all_work_is_done_on_machines(case: Any, mode: str, grace: int, seed: int) -> None:
    """Under EASY, with outages and suspended jobs; what runs where is verified by the run itself."""
    cluster, jobs = case
    rng = np.random.default_rng(seed)
    tiers = rng.integers(0, 3, len(jobs)).tolist()
    number, start = int(rng.integers(len(cluster))), int(rng.integers(1, 20))
    outages = Outages([Outage(start, start + 4, machines=(number,))])
    policy = make(f"fcfs+easy+preempt(mode={mode}, grace_time={grace})")
    result = Simulation(jobs_on_machines(jobs, queue=tiers), policy, cluster, outages=outages).run()
    each = result.by_attempt if result.attempts is None else result.attempts
    if result.attempts is not None:
        cancelled = set(each.job[each.outcome == Outcome.CANCELLED].tolist())
        assert mode == "cancel" or not cancelled
        done = np.bincount(each.job, each.work, len(jobs))
        assert all(done[k] == job.run for k, job in enumerate(jobs) if k not in cancelled)
        suspended = each.outcome == Outcome.SUSPENDED
        assert mode == "suspend" or not suspended.any()
        for k in np.flatnonzero(suspended).tolist():  # it goes on where it was
            assert each.job[k + 1] == each.job[k]
            assert each.placements.allocation(k).machines == each.placements.allocation(k + 1).machines
