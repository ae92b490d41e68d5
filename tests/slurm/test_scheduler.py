"""Small cases, each about one rule of Slurm's scheduling; the schedules are computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Simulation
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.begun import Begun, begun_in
from hpcsimkit.kernel.job_gates import BeginTimes
from hpcsimkit.policies import SJF
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.plan import Places, Plan, Ticket
from hpcsimkit.slurm.profile import Slurm
from tests.slurm.small import CONF, QOS, jobs, places, profile, reasons, run

WHOLE = {"cpus": 8}
ALL = {"nodes": 5, "cpus": 8}


@pytest.fixture
def made(tmp_path: Path) -> Slurm:
    return profile(tmp_path)


def with_clocks(made: Slurm, **clocks: Any) -> Slurm:
    return replace(made, clocks=replace(made.clocks, **clocks))


def starts(made: Slurm, *rows: dict[str, Any], **options: Any) -> list[int]:
    return run(made, jobs(*rows), **options).start_time.tolist()


# --- the main loop -----------------------------------------------------------------------------------------


def test_main_loops_follow_each_other_after_three_seconds(made: Slurm) -> None:
    """The second job comes one second after the first main loop, and has to wait for the second one."""
    assert starts(made, {}, {"at": 1}, {"at": 10}) == [0, 3, 10]


def test_a_blocked_job_closes_its_partition_and_its_nodes(made: Slurm) -> None:
    """F4: without a backfill, the head of ``work`` keeps all of its nodes free, also of other partitions."""
    made = with_clocks(made, bf_interval=0)
    rows = [
        {"run": 200, "limit": 300, "on": "big", "cpus": 16},
        {"at": 3, **ALL},  # blocked by the first
        {"at": 3},  # of its partition
        {"at": 3, "partition": "short", "on": "gpu"},  # of a higher tier
        {"at": 3, "partition": "any"},  # elsewhere
        {"at": 3, "partition": "long"},  # all of its nodes are closed
    ]
    result = run(made, jobs(*rows))
    assert result.start_time.tolist() == [0, 200, 200, 3, 3, 260]
    assert places(result)[4] == "gpu1"


def test_a_job_of_a_higher_tier_comes_first_whatever_its_priority(made: Slurm) -> None:
    rows = [
        {**ALL, "run": 60},
        {"at": 3, "partition": "long", "on": "n", "cpus": 8, "qos": "high"},
        {"at": 4, "nodes": 4, "cpus": 8, "on": "n"},
    ]
    assert starts(with_clocks(made, bf_interval=0), *rows) == [0, 120, 60]


def test_a_job_that_a_limit_holds_blocks_nobody(made: Slurm) -> None:
    """F5: the second job of a user in ``limited`` waits for the first, and the third job starts."""
    rows = [
        {"qos": "limited", "cpus": 2},
        {"at": 3, "qos": "limited", "cpus": 2},
        {"at": 6, "qos": "low", "user": "ben"},
    ]
    result = run(with_clocks(made, bf_interval=0), jobs(*rows))
    assert result.start_time.tolist() == [0, 60, 6]
    assert reasons(result, 1) == ["QOSMaxJobsPerUserLimit"]


def test_nodes_of_the_lowest_weight_are_used_first(made: Slurm) -> None:
    """F6: first fit by weight, then in the order of the configuration, whatever the names."""
    rows = [
        {"partition": "any", "cpus": 2},
        {"partition": "any", "cpus": 8},
        {"partition": "any", "cpus": 6, "nodes": 2},
        {"partition": "any", "cpus": 16},
        {"partition": "any", "gpus": 1},
    ]
    assert places(run(made, jobs(*rows))) == ["n1", "n2", "n1 n3", "big", "gpu1"]


def test_the_main_loop_looks_at_so_many_jobs_after_an_event(made: Slurm) -> None:
    """One more than `default_queue_depth` before the main loop of `sched_interval`, which looks at all.

    As seen on a real Slurm (22.05) with a depth of 2: behind two blocked jobs, or two that a limit holds, a job
    of another partition starts at once; behind three, it is not looked at.
    """
    shallow = with_clocks(made, default_queue_depth=2, bf_interval=0)
    full, last = {**ALL, "run": 100, "limit": 100}, {"at": 1, "partition": "any", "on": "gpu"}
    blocked, held = {"at": 1, **ALL}, {"at": 1, "qos": "limited"}
    assert starts(shallow, full, *[blocked] * 2, last)[-1] == 3
    assert starts(shallow, full, *[blocked] * 3, last)[-1] == 60
    assert starts(shallow, {**held, "at": 0, "run": 100, "limit": 100}, *[held] * 2, last)[-1] == 3
    assert starts(shallow, {**held, "at": 0, "run": 100, "limit": 100}, *[held] * 3, last)[-1] == 60
    assert starts(with_clocks(shallow, defer=True), {}, {"at": 1}) == [0, 60]


# --- the backfill --------------------------------------------------------------------------------------------


def test_one_plan_over_all_partitions(made: Slurm) -> None:
    """E5: the head of ``work`` has a place after 180 s; a long job of ``long`` may not delay it, a short one may start."""
    rows = [
        {"on": "big", "cpus": 16, "limit": 180, "run": 180},
        {"at": 3, **ALL, "limit": 180, "run": 20},
        {"at": 3, "partition": "long", "limit": 60, "run": 30},
        {"at": 3, "partition": "long", "limit": 600, "run": 30},
        {"at": 3, "partition": "short", "limit": 600, "run": 30, "on": "gpu"},
    ]
    assert starts(made, *rows) == [0, 180, 15, 200, 3]


def test_a_backfill_tests_so_many_jobs(made: Slurm) -> None:
    """F3: the fourth waiting job fits beside, but only two are tested; until it is the second, 20 s after 200."""
    rows = [
        {"on": "n", "nodes": 1, "cpus": 8, "limit": 300, "run": 200},
        *({"at": 3, **ALL, "limit": 300, "run": 20} for _ in range(3)),
        {"at": 4, "cpus": 2, "limit": 60, "run": 20},
    ]
    assert starts(with_clocks(made, bf_max_job_test=2), *rows)[4] == 225
    assert starts(made, *rows)[4] == 15
    assert starts(with_clocks(made, bf_max_job_part=2), *rows)[4] == 225
    assert starts(with_clocks(made, bf_max_job_user=2), *rows)[4] == 225
    assert starts(with_clocks(made, bf_max_job_user=2), *rows[:4], {**rows[4], "user": "ben"})[4] == 15


def test_numbers_of_jobs_by_partition_and_of_starts(made: Slurm) -> None:
    """The main loop looks at one job of each partition; a backfill starts one job."""
    rows = [
        {**ALL, "on": "n|big", "cpus": 9, "nodes": 1, "run": 200, "limit": 200},
        *({"at": 3} for _ in range(3)),
    ]
    deep = with_clocks(made, bf_interval=0, partition_job_depth=1)
    assert starts(deep, *rows) == [0, 3, 60, 63]
    held = {
        "qos": "limited",
        "run": 100,
        "limit": 100,
    }  # the second one of the user counts, the third job is beyond
    deep = with_clocks(made, bf_interval=0, partition_job_depth=2)
    assert starts(deep, held, {**held, "at": 1}, {**held, "at": 1, "user": "ben"}) == [0, 100, 3]
    assert starts(deep, held, *[{**held, "at": 1}] * 2, {**held, "at": 1, "user": "ben"}) == [
        0,
        100,
        200,
        120,
    ]
    blocked = [
        {"on": "n1|n", "cpus": 8, "nodes": 1, "run": 99, "limit": 99},
        {"at": 3, **ALL},
        *({"at": 4, "limit": 40} for _ in range(3)),
    ]
    assert starts(with_clocks(made, bf_max_job_start=1), *blocked)[2:] == [15, 30, 45]
    assert starts(made, *blocked)[2:] == [15, 15, 15]


def test_a_place_beyond_the_window_is_none(made: Slurm) -> None:
    """The head would start after 300 s; with a window of 200 s, it has no place that a later job could delay."""
    rows = [
        {"on": "n1|n2|n3|n4|n", "nodes": 4, "cpus": 8, "limit": 300, "run": 300},
        {"at": 3, "nodes": 5, "cpus": 8, "limit": 60},
        {"at": 4, "on": "big", "cpus": 16, "limit": 600, "run": 600},
    ]
    assert starts(made, *rows) == [0, 300, 360]
    assert starts(with_clocks(made, bf_window=200), *rows) == [0, 615, 15]


def test_planned_places_are_rounded_down_to_the_grid(made: Slurm) -> None:
    """The head is planned when job 1 ends, at 75, and has its nodes from then on, or on a grid of 50 s from 50 on.

    Job 3 may start at 15 if it is over by then.
    """
    rows = [
        {"on": "big", "cpus": 16, "limit": 75, "run": 75},
        {"at": 3, **ALL},
        {"at": 4, "on": "n", "limit": 60, "run": 60},
    ]
    assert starts(with_clocks(made, bf_resolution=1), *rows) == [0, 75, 15]
    assert starts(with_clocks(made, bf_resolution=50), *rows) == [0, 75, 135]
    rows[2]["limit"] = rows[2]["run"] = 35
    assert starts(with_clocks(made, bf_resolution=50), *rows) == [0, 75, 15]


def test_planned_places_begin_when_a_group_of_jobs_has_ended(made: Slurm) -> None:
    """Job 1 would leave a second node to the head at 200, but the group of ends until 210 + 30 holds job 2, too.

    So the head is planned at 235, and the last job, over at 230, starts beside it; it would not if job 2 ended
    after the group, at 241.
    """

    def starts_with(second: int, **clocks: Any) -> list[int]:
        ends = (200, second, 900)
        rows = [
            *({"on": "n", "cpus": 8, "limit": end, "run": end} for end in ends),
            {"at": 3, "on": "n", "cpus": 8, "nodes": 2, "limit": 60, "run": 60},
            {"at": 4, "on": "n", "cpus": 8, "limit": 215, "run": 215},
        ]
        return starts(with_clocks(made, bf_resolution=1, **clocks), *rows)[3:]

    assert starts_with(235) == [230, 15]
    assert starts_with(240) == [230, 15]
    assert starts_with(241) == [200, 241]
    assert starts_with(235, end_groups=False) == [200, 235]


def test_a_planned_job_has_whole_nodes(made: Slurm) -> None:
    """Job 2 is planned at 100 for one of the 8 CPUs of each node n; job 3 fits beside it, but not in Slurm's plan.

    On the node `big`, which job 2 does not need, job 4 starts at once.
    """
    rows = [
        {"on": "n", "nodes": 4, "cpus": 7, "limit": 100, "run": 100},
        {"at": 3, "on": "n", "nodes": 4, "cpus": 2, "limit": 100, "run": 100},
        {"at": 4, "on": "n", "cpus": 1, "limit": 200, "run": 200},
        {"at": 4, "on": "big", "cpus": 1, "limit": 200, "run": 200},
    ]
    assert starts(with_clocks(made, bf_resolution=1), *rows) == [0, 100, 100, 15]


# --- preemption ------------------------------------------------------------------------------------------------


def test_a_job_of_a_better_qos_stops_the_job_on_the_first_node(made: Slurm) -> None:
    """E6, F1: the job on n1 is stopped though the youngest is on n4; it may start again 121 s later, anew."""
    rows = [
        *({"at": 3 * n, "qos": "low", "cpus": 8, "on": "n", "run": 300, "limit": 600} for n in range(4)),
        {"at": 9, "qos": "low", "cpus": 16, "on": "big", "run": 300, "limit": 600},
        {"at": 30, "qos": "high", "cpus": 8, "user": "ben", "run": 60, "limit": 300},
    ]
    result = run(made, jobs(*rows))
    assert places(result)[5] == "n1" and result.start_time[5] == 30
    assert result.attempts is not None
    first = result.attempts.job == 0
    assert result.attempts.start_time[first].tolist() == [0, 151]
    assert result.attempts.end_time[first].tolist() == [30, 451]


def test_of_the_jobs_on_a_node_the_oldest_is_stopped_and_no_more_than_needed(made: Slurm) -> None:
    low = {"qos": "low", "cpus": 4, "on": "n", "run": 300, "limit": 600}
    rows = [
        {**low, "nodes": 4, "cpus": 2, "qos": "normal"},
        *({"at": 3 * n, **low, "cpus": 3} for n in range(1, 9)),
        {"at": 40, "qos": "high", "cpus": 3, "on": "n", "user": "ben"},
    ]
    result = run(made, jobs(*rows))
    assert result.attempts is not None and places(result)[-1] == "n1"
    assert sorted(result.attempts.job[result.attempts.number > 1].tolist()) == [1]


LOW = {"qos": "low", "run": 900, "limit": 900}


def _stopped(result: Result) -> list[int]:
    """Return the jobs that were stopped."""
    assert result.attempts is not None
    return sorted({*result.attempts.job[result.attempts.number > 1].tolist()})


def test_a_job_on_two_machines_goes_where_those_on_one_do_not_suffice(made: Slurm) -> None:
    """F2: n3 is shared with a job that stays; the job on n4 alone is not enough, and is not stopped."""
    rows = [
        {**LOW, "nodes": 2, "cpus": 8, "on": "n"},
        {**LOW, "at": 3, "cpus": 4, "on": "n"},
        {**LOW, "at": 6, "cpus": 4, "on": "n", "qos": "normal"},
        {**LOW, "at": 9, "cpus": 8, "on": "n"},
        {"at": 30, "qos": "high", "nodes": 2, "cpus": 8, "on": "n"},
    ]
    result = run(made, jobs(*rows))
    assert _stopped(result) == [0] and places(result)[4] == "n1 n2"


def test_jobs_on_fewer_machines_are_stopped_rather(made: Slurm) -> None:
    rows = [
        {**LOW, "nodes": 3, "cpus": 8, "on": "n"},
        {**LOW, "at": 3, "cpus": 8, "on": "n"},
        {"at": 30, "qos": "high", "cpus": 8, "on": "n"},
    ]
    result = run(made, jobs(*rows))
    assert _stopped(result) == [1] and places(result)[2] == "n4"


def test_of_equal_jobs_those_submitted_first_are_stopped(made: Slurm) -> None:
    """The one on n2 is older than the one on n1."""
    rows = [
        {"cpus": 8, "on": "n", "run": 10},
        {**LOW, "at": 3, "cpus": 8, "on": "n"},
        {**LOW, "at": 6, "nodes": 2, "cpus": 8, "on": "n", "qos": "normal"},
        {**LOW, "at": 12, "cpus": 8, "on": "n"},
        {"at": 30, "qos": "high", "cpus": 8, "on": "n"},
    ]
    result = run(made, jobs(*rows))
    assert _stopped(result) == [1] and places(result)[4] == "n2"


def test_the_last_one_needed_is_gone_first_so_that_others_stay(made: Slurm) -> None:
    """Two CPUs of n1 are free: without the job with four there is room for six, and that with two stays."""
    rows = [
        {**LOW, "cpus": 2, "on": "n"},
        {**LOW, "at": 3, "cpus": 4, "on": "n"},
        {**LOW, "at": 6, "nodes": 3, "cpus": 8, "on": "n", "qos": "normal"},
        {"at": 30, "qos": "high", "cpus": 6, "on": "n"},
    ]
    assert _stopped(run(made, jobs(*rows))) == [1]


def test_a_machine_of_a_lower_weight_is_emptied_before_one_of_a_higher_weight(made: Slurm) -> None:
    """The job on big is the oldest; those of weight 10 are tried first, and suffice."""
    rows = [{**LOW, "cpus": 16, "on": "big"}, *({**LOW, "at": 3, "cpus": 8, "on": "n"} for _ in range(4))]
    result = run(made, jobs(*rows, {"at": 30, "qos": "high", "cpus": 8}))
    assert _stopped(result) == [1] and places(result)[5] == "n1"


def test_a_backfill_stops_jobs_for_one_that_the_main_loop_does_not_reach(tmp_path: Path) -> None:
    """The head, with equal priority and older, closes the partition. It has n1 to n3 from 100 s on in the plan.

    So the job of `high` stops the one on n4, though that is the last in the list.
    """
    made = profile(tmp_path, conf=CONF.replace("PriorityWeightQOS=2000", "PriorityWeightQOS=0"))
    rows = [
        *({**LOW, "cpus": 8, "on": "n", "limit": 100, "run": 100} for _ in range(3)),
        {**LOW, "at": 3, "cpus": 8, "on": "n"},
        {"at": 6, "nodes": 3, "cpus": 8, "on": "n", "limit": 100, "user": "ben"},
        {"at": 20, "qos": "high", "cpus": 8, "on": "n", "run": 200, "limit": 300, "user": "cleo"},
    ]
    result = run(made, jobs(*rows))
    assert _stopped(result) == [3] and places(result)[5] == "n4"
    assert result.start_time[5] == 30  # the next backfill


def test_a_job_of_an_equal_qos_stops_none(made: Slurm) -> None:
    rows = [{**ALL, "qos": "low", "run": 60}, {"at": 3, "cpus": 8, "nodes": 5}]
    assert starts(made, *rows) == [0, 60]


@pytest.mark.parametrize(
    ("low", "loop"),
    [
        ("high", "high that may stop low that may stop high"),
        ("low", "low that may stop low"),
        ("limited", ""),
    ],
)
def test_qos_that_may_stop_each_other(tmp_path: Path, low: str, loop: str) -> None:
    """Jobs of equal lengths could stop each other for ever; Slurm refuses such QOS: "QOS Preemption loop detected"."""
    made = profile(tmp_path, qos=QOS.replace("low|1||requeue", f"low|1|{low}|requeue"))
    if not loop:
        assert starts(made, ALL) == [0]
        return
    with pytest.raises(UsageError, match=rf"QOS that do not stop each other are needed, found {loop}$"):
        starts(made, ALL)
    assert starts(replace(made, preempt="partition_prio"), ALL) == [0]


def test_a_qos_whose_jobs_are_cancelled(tmp_path: Path) -> None:
    qos = QOS.replace("low|1||requeue", "low|1||cancel")
    rows = [
        {**ALL, "cpus": 8, "on": "n|big", "qos": "low", "run": 99, "limit": 99},
        {"at": 5, "cpus": 8, "on": "n", "qos": "high"},
    ]
    for text, starts_of_the_first in ((qos, [0]), (QOS, [0, 126])):
        attempts = run(profile(tmp_path, qos=text), jobs(*rows)).attempts
        assert attempts is not None
        assert attempts.start_time[attempts.job == 0].tolist() == starts_of_the_first


def test_preemption_by_partition(tmp_path: Path) -> None:
    made = profile(tmp_path, conf=CONF.replace("preempt/qos", "preempt/partition_prio"))
    rows = [
        {"partition": "any", "nodes": 4, "cpus": 8, "on": "n", "run": 90, "limit": 100},
        {"at": 3, "cpus": 8, "on": "n"},
    ]
    assert starts(made, *rows, restart=replace(made.options["restart"], delay=10))[1] == 3
    off = CONF.replace("preempt/qos", "preempt/partition_prio").replace(
        "PartitionName=any", "PartitionName=any PreemptMode=OFF"
    )
    assert starts(profile(tmp_path, conf=off), *rows)[1] == 90


def test_partitions_have_modes_of_preemption_of_their_own(tmp_path: Path) -> None:
    """The job is killed for one of a higher tier, and does not come back; by QOS, the mode of partitions does not matter."""
    cancel = CONF.replace("PartitionName=any", "PartitionName=any PreemptMode=CANCEL")
    made = profile(tmp_path, conf=cancel.replace("preempt/qos", "preempt/partition_prio"))
    assert made.preempt_modes == {"any": "cancel"} and not made.notes
    rows = [
        {"partition": "any", "nodes": 4, "cpus": 8, "on": "n", "run": 90, "limit": 100},
        {"at": 3, "cpus": 8, "on": "n"},
    ]
    result = run(made, jobs(*rows))
    assert _spans(result, 0) == [(0, 3)] and result.start_time[1] == 3
    assert not profile(tmp_path, conf=cancel).preempt_modes
    suspend = CONF.replace("PartitionName=any", "PartitionName=any PreemptMode=SUSPEND")
    made = profile(tmp_path, conf=suspend.replace("preempt/qos", "preempt/partition_prio"))
    assert dict(made.notes) == {"PreemptMode of a partition is not modelled: suspend": 1}


GRACE = QOS.replace("Name|Priority|Preempt|", "Name|Priority|GraceTime|Preempt|").replace("|100|", "|100||").replace("|10||", "|10|||").replace("low|1|", "low|1|00:00:50|").replace("limited|0|", "limited|0||").replace("ofgpu|0|", "ofgpu|0||")  # fmt: skip


def _spans(result: Result, row: int) -> list[tuple[int, int]]:
    """Return start and end of each attempt of a job."""
    assert result.attempts is not None
    of = result.attempts.job == row
    return [*zip(result.attempts.start_time[of].tolist(), result.attempts.end_time[of].tolist(), strict=True)]


def test_a_job_that_is_stopped_runs_on_for_its_grace_time(tmp_path: Path) -> None:
    """Its 50 s are over at 80 s, which Slurm notices at 90 s: then it is stopped, and the job for which it was starts.

    So it is with a third job, which would have started then, too.
    """
    made = profile(tmp_path, qos=GRACE)
    assert made.qos["low"].grace_time == 50 and not made.notes
    rows = [
        {**LOW, "nodes": 4, "cpus": 8, "on": "n"},
        {"at": 30, "qos": "high", "cpus": 8, "nodes": 3, "on": "n", "run": 60, "limit": 60},
        {"at": 31, "cpus": 8, "nodes": 4, "on": "n", "user": "ben"},
    ]
    result = run(made, jobs(*rows))
    assert _spans(result, 0) == [(0, 90), (211, 1111)]
    assert result.start_time.tolist() == [0, 90, 150]


def test_a_job_that_ends_in_its_grace_time_is_not_stopped(tmp_path: Path) -> None:
    rows = [
        {**LOW, "nodes": 4, "cpus": 8, "on": "n", "run": 70},
        {"at": 30, "qos": "high", "cpus": 8, "on": "n"},
    ]
    result = run(profile(tmp_path, qos=GRACE), jobs(*rows))
    assert result.attempts is None
    assert result.start_time.tolist() == [0, 70]


def test_a_job_in_its_grace_time_is_stopped_though_none_waits_for_it_any_more(tmp_path: Path) -> None:
    """The job of `high` has n1 from 40 s on; that on n2 ends at 90 s all the same, and begins anew 121 s later."""
    rows = [
        *({**LOW, "cpus": 8, "on": "n"} for _ in range(3)),
        {"cpus": 8, "on": "n", "run": 40, "limit": 600},
        {"at": 30, "qos": "high", "cpus": 8, "on": "n"},
    ]
    result = run(profile(tmp_path, qos=GRACE), jobs(*rows))
    assert places(result)[4] == "n1" and result.start_time[4] == 40
    assert [_spans(result, row) for row in range(3)] == [[(0, 90), (211, 1111)], [(0, 900)], [(0, 900)]]


def test_the_plan_expects_the_end_of_a_grace_time(tmp_path: Path) -> None:
    """The job of `high` has n2 to n4 from 80 s on in the plan: until then, n4 takes a job of 30 s, but none of 60 s."""
    rows = [
        {"cpus": 8, "on": "n", "run": 900, "limit": 900},
        {**LOW, "nodes": 2, "cpus": 8, "on": "n"},
        {"at": 30, "qos": "high", "nodes": 3, "cpus": 8, "on": "n", "run": 60, "limit": 60},
        {"at": 31, "cpus": 8, "on": "n", "run": 60, "limit": 60, "user": "ben"},
        {"at": 32, "cpus": 8, "on": "n", "run": 30, "limit": 30, "user": "cleo"},
    ]
    result = run(profile(tmp_path, qos=GRACE), jobs(*rows))
    assert result.start_time.tolist() == [0, 0, 90, 150, 45]


def test_a_job_that_reaches_its_limit_in_its_grace_time_is_requeued(tmp_path: Path) -> None:
    """Its limit is over after 70 s, before its grace time is; it waits again, and then ends at its limit."""
    rows = [
        {**LOW, "nodes": 4, "cpus": 8, "on": "n", "run": 900, "limit": 70},
        {"at": 30, "qos": "high", "cpus": 8, "on": "n", "run": 30, "limit": 60},
    ]
    result = run(profile(tmp_path, qos=GRACE), jobs(*rows), walltime="kill")
    assert _spans(result, 0) == [(0, 69), (190, 260)]
    assert result.start_time.tolist() == [0, 69]


def test_grace_times_of_partitions(tmp_path: Path) -> None:
    """They are those of the partition of the job that is stopped; by QOS, they do not matter."""
    conf = CONF.replace("PartitionName=any", "PartitionName=any GraceTime=20")
    made = profile(tmp_path, conf=conf.replace("preempt/qos", "preempt/partition_prio"))
    rows = [
        {"partition": "any", "nodes": 4, "cpus": 8, "on": "n", "run": 90, "limit": 100},
        {"at": 3, "cpus": 8, "on": "n"},
    ]
    assert starts(made, *rows)[1] == 30
    assert made.grace_times == {"any": 20} and made.grants_grace
    assert not made.without_grace.grants_grace
    assert not profile(tmp_path, conf=conf).grants_grace


def test_the_compiled_simulator_takes_no_grace_times(tmp_path: Path) -> None:
    rows = [{**LOW, "nodes": 4, "cpus": 8, "on": "n"}, {"at": 30, "qos": "high", "cpus": 8, "on": "n"}]
    with pytest.raises(UsageError, match="it knows no GraceTime of Slurm as configured"):
        run(profile(tmp_path, qos=GRACE), jobs(*rows), simulator="compiled")


# --- machines on which killed jobs are being ended -------------------------------------------------------------


def _completing(folder: Path, seconds: int, conf: str = CONF) -> Slurm:
    return profile(folder, conf=conf.replace("bf_interval=15", f"bf_interval=15,completing={seconds}"))


@pytest.mark.parametrize(("seconds", "start"), [(0, 60), (40, 100)])
def test_machines_of_a_job_at_its_limit_take_others_once_it_has_been_ended(
    tmp_path: Path, seconds: int, start: int
) -> None:
    """All that the job leaves is free from its limit on; neither the main loop nor the backfill uses it."""
    made = _completing(tmp_path, seconds)
    assert starts(made, {**ALL, "run": 70, "limit": 60}, {"at": 1, **ALL}) == [0, start]


def test_machines_of_a_job_that_ends_by_itself_take_others_at_once(tmp_path: Path) -> None:
    made = _completing(tmp_path, 40)
    assert starts(made, {**ALL, "run": 50, "limit": 60}, {"at": 1, **ALL}) == [0, 50]


def test_whole_machines_wait_for_the_end_of_a_job(tmp_path: Path) -> None:
    """The seven other CPUs of n1 take no job either: the next one has n2."""
    made = _completing(tmp_path, 40)
    rows = [{"run": 60, "limit": 60}, {"at": 70}, {"at": 101}]
    result = run(made, jobs(*rows))
    assert places(result) == ["n1", "n2", "n1"] and result.start_time.tolist() == [0, 70, 101]


def test_a_job_waits_for_those_that_it_has_stopped_and_stops_no_more(tmp_path: Path) -> None:
    """It stops the job on n1 at 30 s, and has n1 at 70 s; without the rule it would stop that on n2, too."""
    made = _completing(tmp_path, 40)
    rows = [
        *({"at": 3 * n, "qos": "low", "cpus": 8, "on": "n", "run": 300, "limit": 600} for n in range(4)),
        {"at": 9, "qos": "low", "cpus": 16, "on": "big", "run": 300, "limit": 600},
        {"at": 30, "qos": "high", "cpus": 8, "user": "ben", "run": 60, "limit": 300},
        {"at": 40, "partition": "long", "user": "cleo"},  # a later main loop
    ]
    result = run(made, jobs(*rows))
    assert places(result)[5] == "n1" and result.start_time[5] == 70
    assert result.attempts is not None and sorted(result.attempts.job[result.attempts.number > 1]) == [0]
    # Its processes have ended at 70 s; 121 s later it waits again.
    assert result.attempts.submit_time[result.attempts.job == 0].tolist() == [0, 70 + 121]


# --- jobs ------------------------------------------------------------------------------------------------------


def test_a_job_starts_in_the_first_of_its_partitions_that_has_room(made: Slurm) -> None:
    rows = [
        {**ALL},
        {"on": "big", "cpus": 8},
        {"at": 3, "partition": "long,any"},
        {"at": 3, "partition": "work,any"},
    ]
    result = run(made, jobs(*rows))
    assert result.start_time.tolist() == [0, 0, 3, 3]
    assert result.started_in is not None and result.started_in.tolist() == ["work", "work", "any", "any"]


def test_age_begins_when_a_job_becomes_eligible(made: Slurm) -> None:
    """The second job was submitted first, and has a begin time; with ACCRUE_ALWAYS its age is that of its submission."""
    made = replace(made, priority=replace(made.priority, age=10**6, calc_period=10))
    rows = jobs({**ALL, "on": "n|big", "run": 90, "limit": 90}, {**ALL, "at": 3}, {**ALL, "at": 20})
    rows = replace(rows, columns={**rows.columns, "begin_time": np.array([-1, 50, -1])})
    options = {"gates": (BeginTimes(),)}
    assert run(made, rows, **options).start_time.tolist() == [0, 150, 90]
    always = replace(made, priority=replace(made.priority, flags=frozenset({"ACCRUE_ALWAYS"})))
    assert run(always, rows, **options).start_time.tolist() == [0, 90, 150]


def test_jobs_end_at_their_limit(made: Slurm) -> None:
    result = run(made, jobs({"run": 90, "limit": 60}))
    assert result.end_time.tolist() == [60] and result.killed.tolist() == [True]


def test_a_begun_run_goes_on_as_the_whole_one(made: Slurm) -> None:
    """With the starts until then, in their partitions and on their nodes; usage and limits count them, too."""
    rows = [{**ALL, "limit": 90}, *({"at": n, "cpus": 4, "partition": part, "qos": qos, "user": user, "run": 20 + n}
            for n, (part, qos, user) in enumerate(zip(["work", "long", "any", "long,any"] * 5, ["normal", "limited"] * 10, ["ada", "ben", "cleo", "dan"] * 5, strict=True)))]  # fmt: skip
    workload = jobs(*rows)
    whole = run(made, workload)
    assert len(set(whole.start_time.tolist())) > 8
    again = run(made, workload, begun=begun_in(whole, 75))
    assert again.start_time.tolist() == whole.start_time.tolist()
    assert places(again) == places(whole) and again.started_in.tolist() == whole.started_in.tolist()


def test_a_begun_run_without_places(made: Slurm) -> None:
    """Running jobs whose machines are not known are on the first of their partitions."""
    rows = jobs(
        {"partition": "gpu", "user": "cleo", "gpus": 1},
        {"cpus": 8, "partition": "long"},
        {"at": 9, "partition": "long"},
    )
    result = run(made, rows, begun=Begun(5, {0: 0, 1: 2}))
    assert result.start_time.tolist() == [0, 2, 9] and places(result) == ["gpu1", "n3", "n4"]
    assert result.started_in is not None and result.started_in.tolist() == ["gpu", "long", "long"]


def test_what_it_needs_and_does_not_know(made: Slurm) -> None:
    workload = jobs({})
    with pytest.raises(UsageError, match="needs a cluster with partitions, found Machines"):
        Simulation(workload, made.policy, made.machines)
    with pytest.raises(UsageError, match="snapshot: a policy that schedules all partitions keeps none"):
        Simulation(workload, made.policy, made.partitions).snapshot(at=5)
    parts = [replace(part, order=SJF()) if part.name == "work" else part for part in made.partitions.parts]
    with pytest.raises(UsageError, match="partition 'work': Slurm as configured has no order"):
        Simulation(workload, made.policy, replace(made.partitions, parts=parts)).run()


def test_fewer_jobs_than_the_log_has_are_no_stall(made: Slurm) -> None:
    """A job that no limit and no machine lets start is rejected, or left out; the others are simulated."""
    result = run(made, jobs({"qos": "high", "limit": 7200}, {}))
    assert result.start_time.tolist() == [-1, 0]


# --- capacity that changes -----------------------------------------------------------------------------------


def test_a_maintenance_window(made: Slurm) -> None:
    """E7: a job whose limit reaches into the window waits on its nodes, a short one starts, another node is taken.

    Those that wait for nodes in the window close none: the last one, in a lower tier, takes `big`.
    """
    window = Window(150, 330, machines=("n1", "n2", "n3", "n4"))
    rows = [
        {"cpus": 2, "on": "n", "limit": 600, "run": 20},
        {"cpus": 2, "on": "n", "limit": 60, "run": 20},
        {"cpus": 2, "nodes": 5, "limit": 600, "run": 20},
        {"cpus": 2, "limit": 600, "run": 20, "partition": "any"},
    ]
    result = run(with_clocks(made, bf_window=10**6), jobs(*rows), calendar=Calendar([window]))
    assert result.start_time.tolist() == [330, 0, 330, 0]
    assert places(result)[3] == "big"


def test_a_node_that_fails(made: Slurm) -> None:
    """E8: its job waits again from 121 s later on, anew; meanwhile others do not use the node."""
    rows = [
        {"cpus": 8, "on": "n", "run": 100, "limit": 200},
        {"at": 20, "cpus": 8, "on": "n", "run": 10, "limit": 10},
    ]
    result = run(made, jobs(*rows), outages=Outages([Outage(10, 100, machines=("n1",))]))
    assert result.attempts is not None
    first = result.attempts.job == 0
    assert result.attempts.start_time[first].tolist() == [0, 131]
    assert result.attempts.end_time[first].tolist() == [10, 231]
    assert places(result)[1] == "n2"


@pytest.mark.parametrize(
    ("start", "end", "length", "place"),
    [
        (115, 175, 85, 15),  # whole from 100 to 150
        (115, 175, 86, 150),
        (115, 149, 86, 15),  # from 100 to 100: nothing
        (40, 110, 1, 100),  # from now on
    ],
)
def test_a_planned_place_lies_between_multiples_of_the_grid(
    made: Slurm, start: int, end: int, length: int, place: int
) -> None:
    places = Places(made.partitions)
    state: Any = SimpleNamespace(now=15, free=places.capacity, releases=(), calendar=None)
    plan = Plan(places, state, resolution=50)
    plan.reserve(start, end, Allocation([4], np.ones((1, places.capacity.shape[1]), dtype=np.int64)))
    (job,) = jobs({"on": "big"}).jobs
    assert plan.first_place(Ticket(job, made.partitions.names.index("work")), length, 15)[0] == place
