"""Why jobs wait, in the words of squeue, and the order in which the main loop looks at them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit import advise
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.experiments.advice.futures import Futures
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.job_gates import ArrayLimits
from hpcsimkit.slurm.order import preempting_first
from hpcsimkit.slurm.queue import records_of
from hpcsimkit.slurm.reasons import ARRAY_LIMIT, CLOSED, NONE, PRIORITY, RESERVED, RESOURCES, UNAVAILABLE
from tests.slurm.small import CONF, jobs, profile, run

FULL = {"run": 900, "limit": 900, "nodes": 4, "cpus": 8}
"""A job that occupies the nodes n1 to n4: `work` also has `big`, `long` has n3 and n4, `short` n1 and gpu1."""

WIDE = {"at": 1, "nodes": 5, "cpus": 1, "limit": 600}
"""A job that waits for all nodes of `work`, and closes them."""


def _reasons(tmp_path: Path, workload: Workload, at: int, conf: str = CONF, **options: Any) -> list[str]:
    """Return the reasons of the jobs that wait at a time, by number; empty of those that do not."""
    made = profile(tmp_path, conf=conf)
    case = Case.of(workload, made.policy, made.partitions, **{**made.options, **options})
    futures = Futures(case, run(made, workload, **options))
    moment = futures.moment(at)
    found = dict(zip(moment.waiting.tolist(), futures.reasons(moment), strict=True))
    return [found.get(row, "") for row in range(len(workload))]


def test_heads_and_those_behind_them(tmp_path: Path) -> None:
    """The head of `work` closes its nodes to `long`, whose head has none left; `short` has gpu1."""
    each = jobs(
        FULL,
        WIDE,
        {"at": 2, "limit": 600},  # fits big, which is kept for the head
        {"at": 3, "partition": "long", "limit": 6000},
        {"at": 4, "partition": "long", "limit": 6000},
        {"at": 5, "partition": "short", "limit": 600},
    )
    assert _reasons(tmp_path, each, 5) == ["", RESOURCES, PRIORITY, CLOSED, PRIORITY, NONE]


def test_nodes_that_are_closed_to_a_job_or_too_small(tmp_path: Path) -> None:
    """The head of `short` closes n1: a job for all nodes n would not fit the others of `work`, idle or not.

    It blocks nobody: the next one is the first of `work`, and closes the rest. One for six nodes lacks nodes.
    """
    each = jobs(
        FULL,
        {"partition": "any", "nodes": 2, "cpus": 8, "on": "gpu", "run": 900, "limit": 900},
        {"at": 1, "partition": "short", "cpus": 8, "limit": 600},
        {"at": 2, "nodes": 4, "on": "n", "limit": 600},
        {"at": 3, "nodes": 4, "cpus": 1, "limit": 600},
        {"at": 4, "limit": 600},
    )
    lacking = f"{UNAVAILABLE}n1"
    assert _reasons(tmp_path, each, 5) == ["", "", RESOURCES, lacking, RESOURCES, PRIORITY]


def test_a_reservation_keeps_nodes_from_a_job_and_the_job_keeps_its_reason(tmp_path: Path) -> None:
    """Two nodes are reserved at 300 s: jobs for five nodes, which would end later, are skipped.

    They keep this reason behind the job that is the first then, also once another one is.
    """
    wide = {"nodes": 5, "cpus": 1, "limit": 600}
    each = jobs(
        FULL | {"run": 100, "limit": 250},
        WIDE,
        {**wide, "at": 2},
        {"at": 3, "nodes": 3, "cpus": 8, "limit": 200, "run": 150},
        {"at": 4, "limit": 600},
        {"at": 120, "nodes": 3, "cpus": 8, "limit": 100, "qos": "high"},
    )
    windows = [Window(300, 900, machines=("n1", "n2"))]
    calendar = {"calendar": Calendar(windows)}
    found = _reasons(tmp_path, each, 5, **calendar)
    assert found == ["", RESERVED, RESERVED, RESOURCES, PRIORITY, ""]
    later = _reasons(tmp_path, each, 130, **calendar)
    assert later[1:3] == [RESERVED, RESERVED] and later[5] == RESOURCES


def test_a_reservation_keeps_a_job_from_nodes_as_it_comes_and_it_keeps_that_reason_behind_others(
    tmp_path: Path,
) -> None:
    """Two of five nodes are reserved at 300 s: a job for four of them has this reason behind a head, too.

    One that a limit holds has the limit, and one that ends before has the priority.
    """
    each = jobs(
        FULL | {"run": 100, "limit": 250},
        {"at": 1, "nodes": 3, "cpus": 8, "limit": 200},  # the head
        {"at": 2, "nodes": 4, "cpus": 1, "limit": 600},
        {"at": 2, "nodes": 4, "cpus": 1, "limit": 600, "qos": "limited"},
        {"at": 2, "nodes": 4, "cpus": 1, "limit": 60},
        {"partition": "any", "on": "gpu", "run": 900, "limit": 900, "qos": "limited"},
    )
    calendar = {"calendar": Calendar([Window(300, 900, machines=("n1", "n2"))])}
    found = _reasons(tmp_path, each, 5, **calendar)
    assert found == ["", RESOURCES, RESERVED, "QOSMaxJobsPerUserLimit", PRIORITY, ""]


def test_a_job_that_waits_for_another_first_is_not_looked_at_as_it_comes(tmp_path: Path) -> None:
    """The third one is eligible a second after it came, as tasks of arrays are: nothing has held it."""
    each = jobs(
        FULL | {"run": 100, "limit": 250},
        {"at": 1, "nodes": 3, "cpus": 8, "limit": 200},  # the head
        {"at": 2, "nodes": 4, "cpus": 1, "limit": 600},
        {"at": 2, "nodes": 4, "cpus": 1, "limit": 600},
    )
    each = Workload(
        {**each.columns, "recorded_held_time": [-1, -1, 1, 30]}, resources=each.resources, labels=each.labels
    )
    calendar = {"calendar": Calendar([Window(300, 900, machines=("n1", "n2"))])}
    assert _reasons(tmp_path, each, 5, **calendar) == ["", RESOURCES, RESERVED, PRIORITY]


def test_nodes_that_wait_for_the_end_of_killed_jobs_are_busy_and_not_unavailable(tmp_path: Path) -> None:
    """The job at its limit leaves n3 at 60 s; the other one lacks nodes that are not reserved, and n3 is busy."""
    each = jobs(
        {"nodes": 3, "cpus": 8, "on": "n", "run": 70, "limit": 60},
        {"at": 1, "nodes": 4, "cpus": 1, "limit": 600},
    )
    calendar = {"calendar": Calendar([Window(300, 900, machines=("n1", "n2"))])}
    at = {
        seconds: CONF.replace("bf_interval=15", f"bf_interval=15,completing={seconds}") for seconds in (0, 40)
    }
    assert _reasons(tmp_path, each, 65, at[0], **calendar) == ["", RESERVED]
    assert _reasons(tmp_path, each, 65, at[40], **calendar) == ["", RESOURCES]


def test_jobs_that_wait_though_they_fit_lack_nodes_unless_they_have_just_come(tmp_path: Path) -> None:
    """On record, both wait until 90 s for nodes of which nothing else is known, such as those being cleared."""
    made = profile(tmp_path)
    each = jobs({"at": 10}, {"at": 11}, {"at": 48})
    work = ("n1", "n2", "n3", "n4", "big")
    cleared = Calendar([Window(5, 90, machines=work)])
    recorded = run(made, each, calendar=cleared)
    assert recorded.start_time.min() >= 90
    futures = Futures(Case.of(each, made.policy, made.partitions, **made.options), recorded)
    assert futures.reasons(futures.moment(50)) == [RESOURCES, PRIORITY, PRIORITY]
    assert futures.reasons(futures.moment(12)) == [NONE, NONE]


def test_too_few_open_nodes_come_before_limits_of_resources(tmp_path: Path) -> None:
    """All nodes of `long` are closed: also for a job that its QOS would hold, `high` with 24 CPUs at most."""
    each = jobs(
        FULL | {"nodes": 3, "qos": "high", "user": "ben"},
        {"partition": "any", "on": "n", "cpus": 8, "run": 900, "limit": 900},
        {"at": 1, "nodes": 5, "cpus": 1, "limit": 600, "qos": "normal"},
        {"at": 2, "partition": "long", "qos": "high", "cpus": 2, "limit": 600},
        {"at": 3, "partition": "long", "limit": 600},
    )
    made = _reasons(tmp_path, each, 4)
    assert made[2:] == [RESOURCES, CLOSED, PRIORITY]


def test_a_limit_is_the_reason_also_behind_a_head(tmp_path: Path) -> None:
    limited = {"qos": "limited", "limit": 600, "run": 600}
    each = jobs(
        FULL,
        {**limited, "partition": "any"},  # runs on big: the one job of the user that this QOS allows
        WIDE,
        {"at": 2, **limited},
        {"at": 3, "limit": 600},
    )
    assert _reasons(tmp_path, each, 4) == ["", "", RESOURCES, "QOSMaxJobsPerUserLimit", PRIORITY]


def test_a_job_in_two_partitions_has_the_reason_of_the_last_one(tmp_path: Path) -> None:
    """First in `long`, which is closed, it has Slurm's long reason, then that of `any`, whose nodes are busy."""
    each = jobs(
        FULL,
        {"partition": "gpu", "user": "cleo", "nodes": 2, "cpus": 8, "run": 900, "limit": 900},
        WIDE,
        {"at": 2, "partition": "long,any", "limit": 600},
        {"at": 3, "partition": "any", "limit": 600},
        {"at": 3, "partition": "long", "limit": 600},
    )
    assert _reasons(tmp_path, each, 4) == ["", "", RESOURCES, RESOURCES, PRIORITY, PRIORITY]


def test_a_limit_of_one_partition_stays_the_reason_behind_the_head_of_another(tmp_path: Path) -> None:
    each = jobs(
        FULL,
        {
            "partition": "gpu",
            "user": "cleo",
            "gpus": 4,
            "run": 900,
            "limit": 900,
        },  # all that the QOS of gpu allows
        WIDE,
        {"at": 2, "partition": "any", "nodes": 3, "limit": 600},  # two nodes are open
        {"at": 3, "partition": "gpu,any", "user": "cleo", "gpus": 1, "limit": 600},
    )
    assert _reasons(tmp_path, each, 4) == ["", "", RESOURCES, CLOSED, "QOSMaxGRESPerUser"]


def test_gates_have_their_own_reasons(tmp_path: Path) -> None:
    """Tasks of an array that wait for its limit have the reason of the first one, as one record of Slurm."""
    task = {"at": 1, "nodes": 4, "cpus": 8, "run": 600, "limit": 600}
    each = jobs(FULL, task, task, task)
    columns = {**each.columns, "array_job": [-1, 7, 7, 7], "array_limit": [-1, 1, 1, 1]}
    of_array = Workload(columns, resources=each.resources, labels=each.labels)
    found = _reasons(tmp_path, of_array, 4, gates=(ArrayLimits(),))
    assert found == ["", RESOURCES, RESOURCES, RESOURCES]
    assert _reasons(tmp_path, of_array, 1000, gates=(ArrayLimits(),)) == ["", "", *[ARRAY_LIMIT] * 2]


def test_tasks_that_their_limit_has_held_keep_this_reason_behind_others(tmp_path: Path) -> None:
    """At 40 s the first task has ended, and the others wait behind a head; at 1000 s, they are the first."""
    task = {"at": 5, "cpus": 8, "run": 30, "limit": 1000, "on": "n"}
    each = jobs(
        FULL | {"nodes": 3, "on": "n"},
        *[task] * 3,
        {"at": 20, "nodes": 4, "cpus": 6, "on": "n", "qos": "high", "run": 600, "limit": 600},
    )
    columns = {**each.columns, "array_job": [-1, 7, 7, 7, -1], "array_limit": [-1, 1, 1, 1, -1]}
    of_array = Workload(columns, resources=each.resources, labels=each.labels)
    limited = {"gates": (ArrayLimits(),)}
    assert _reasons(tmp_path, of_array, 40, **limited) == ["", "", *[ARRAY_LIMIT] * 2, RESOURCES]
    assert _reasons(tmp_path, of_array, 1000, **limited) == ["", "", *[RESOURCES] * 2, ""]
    # On record, where the limit let the tasks come only when it was their turn.
    recorded = {"submit_time": [0, 5, 35, 35, 20], "recorded_held_time": [0, 0, 30, 30, 1]}
    of_array = replace(of_array, columns={**of_array.columns, **recorded})
    found = _reasons(tmp_path, of_array, 40, **limited)
    assert found == ["", "", *[ARRAY_LIMIT] * 2, RESOURCES]


def test_advice_names_the_reasons_of_jobs_and_of_requests(tmp_path: Path) -> None:
    each = jobs(
        FULL,
        WIDE,
        {"at": 2, "limit": 600},
        {"at": 2, "partition": "any", "qos": "limited", "run": 90, "limit": 900},  # on gpu1
        {"at": 2, "partition": "short", "limit": 600, "run": 90},
        {"at": 30, "partition": "long"},
    )
    made = profile(tmp_path)
    case = Case.of(each, made.policy, made.partitions, **made.options)
    asked = ("partition=work", "partition=short", "partition=work,qos=limited", "partition=long")
    requests = [f"time=600,cpus=1,user=ada,group=red,{request}" for request in asked]
    found = advise(case, 6, futures=2, calibration=0, requests=requests)
    assert dict(zip(found.table["job_id"], found.table["reason"], strict=True)) == {
        "2": RESOURCES,
        "3": PRIORITY,
    }
    assert found.table["moved_by"].map(bool).all()
    assert found.requests["reason"].tolist() == [PRIORITY, NONE, "QOSMaxJobsPerUserLimit", CLOSED]


def test_without_the_configuration_there_are_none() -> None:
    columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [1, 1]}
    case = Case.of(Workload(columns, machine_size=1), "fcfs")
    futures = Futures(case, case.run())
    assert futures.reasons(futures.moment(3)) == [""]


@pytest.mark.parametrize(
    ("qos", "ranks", "order"),
    [
        # high may preempt low: it comes first whatever the ranks
        (["low", "high"], [0, 1], [1, 0]),
        # one with neither stays where its half put it: the halves are [normal], [low, high] -> [high, low]
        (["normal", "low", "high"], [1, 0, 2], [0, 2, 1]),
        (["low", "normal", "high"], [0, 1, 2], [0, 1, 2]),  # low passes normal before it meets high
        (["normal", "normal", "low"], [2, 1, 0], [2, 1, 0]),
    ],
)
def test_a_merge_sort_by_preemption_and_rank(qos: list[str], ranks: list[int], order: list[int]) -> None:
    def goes_before(one: int, other: int) -> bool:
        if {qos[one], qos[other]} == {"high", "low"}:
            return qos[one] == "high"
        return ranks[one] < ranks[other]

    assert preempting_first(range(len(qos)), goes_before) == order


def test_the_tasks_of_an_array_are_one_record() -> None:
    columns = {"submit_time": [0] * 4, "run_time": [9] * 4, "nodes": [1] * 4, "id": [0, 1, 2, 3]}
    named = Workload(columns, machine_size=1, labels={"id": ("7_2", "8", "7_10", "7")})
    assert records_of(named).tolist() == [0, 1, 0, 0]
    assert records_of(Workload(columns, machine_size=1)).tolist() == [0, 1, 2, 3]


def test_a_job_that_may_preempt_comes_first(tmp_path: Path) -> None:
    """`high` in the lower tier is looked at before `low` in the higher one, and stops no job for its nodes."""
    last = {"at": 5, "run": 60, "limit": 60}
    each = jobs(
        {"nodes": 5, "exclusive": 1},
        {**last, "nodes": 5, "exclusive": 1, "qos": "low"},
        {**last, "nodes": 3, "cpus": 8, "qos": "high", "partition": "any"},
    )
    made = profile(
        tmp_path, conf=CONF.replace("PartitionName=any Nodes=ALL", "PartitionName=any Nodes=n[1-3]")
    )
    found = run(made, each)
    assert found.start_time.tolist() == [0, 120, 60] and found.attempts is None
