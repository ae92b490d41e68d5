"""Advice for the live queue of Slurm, and from the schedule on record: starts by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hpcsimkit import Machines, Workload, advise
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.advice.futures import Futures
from hpcsimkit.experiments.advice.live import OPEN, Live, recorded_result
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.questions.advise import AdviceQuestion
from hpcsimkit.kernel.begun import begun_of
from hpcsimkit.run import app

NOW = 1_795_841_000

HISTORY = (
    "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|NodeList\n"
    + "".join(
        f"{number}|ada|chem|cpu|COMPLETED|{NOW - 900 + 90 * number}|{NOW - 900 + 90 * number}|{NOW - 840 + 90 * number}|60|2|"
        "cpu=4,mem=1G,node=1|n1\n"
        for number in range(1, 9)
    )
)
HISTORY += f"9|ada|chem|cpu|COMPLETED|{NOW + 5}|{NOW + 5}|{NOW + 65}|60|2|cpu=4,mem=1G,node=1|n1\n"
HISTORY += f"22|ada|chem|cpu|COMPLETED|{NOW - 95}|{NOW - 95}|{NOW - 35}|60|2|cpu=4,mem=1G,node=1|n1\n"
"""Jobs of one user, of one minute each; that of number 9 ends after the queue was printed, and 22 was requeued."""


def job(number: int, **about: Any) -> dict[str, Any]:
    return {
        "job_id": number, "job_state": "PENDING", "submit_time": NOW, "time_limit": 2, "user_name": "ada",
        "account": "chem", "partition": "cpu", "tres_req_str": "cpu=4,mem=1G,node=1", "state_reason": "Priority",
        "last_sched_evaluation": NOW + 30, **about,
    }  # fmt: skip


RUNNING = {
    "job_state": "RUNNING", "start_time": NOW, "nodes": "n2", "tres_alloc_str": "cpu=4,mem=1G,node=1", "state_reason": "None"
}  # fmt: skip
QUEUE = [
    job(20, **RUNNING),
    job(21, submit_time=NOW + 1, state_reason="Resources"),
    job(22, submit_time=NOW + 2),
    job(23, submit_time=NOW + 3, dependency="afterok:22(unfulfilled)", state_reason="Dependency"),
    job(24, state_reason="JobHeldUser"),
]
"""One job runs for 30 s on the second of two machines; the first one is free, and three jobs wait."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history.sacct").write_text(HISTORY)
    write_queue(QUEUE)
    (tmp_path / "machines.toml").write_text(
        '[[machines]]\nname = "n"\ncount = 2\ncpus = 4\nmemory = "8 GB"\n'
    )
    (tmp_path / "partitions.toml").write_text('[[partitions]]\nname = "cpu"\nmachines = ["n1", "n2"]\n')
    return tmp_path


def write_queue(jobs: list[dict[str, Any]]) -> None:
    Path("squeue.json").write_text(json.dumps({"jobs": jobs}))


def asked(*words: str) -> pandas.DataFrame:
    """Return the windows that the command writes."""
    few = ("--futures", "5", "--calibration", "0", "--out", "out", "--overwrite")
    cluster = ("--machines", "machines.toml", "--partitions", "partitions.toml", "-p", "fcfs")
    app(["advise", *words, *cluster, *few], standalone_mode=False)
    return pandas.read_csv("out/windows.csv", dtype={"job_id": str}, keep_default_na=False)


def starts(table: pandas.DataFrame, column: str) -> dict[str, int]:
    return {job: time - NOW for job, time in zip(table["job_id"], table[column], strict=True)}


def test_jobs_start_beside_those_that_run(capsys: pytest.CaptureFixture[str]) -> None:
    """All run for a minute, as those before: job 20 until 60, 21 from 30 on, 22 from 60, and 23 from 120."""
    table = asked("--queue", "squeue.json", "--history", "history.sacct")
    assert starts(table, "as_requested") == {"21": 30, "22": 120, "23": 240}
    assert starts(table, "low") == starts(table, "high") == {"21": 30, "22": 60, "23": 120}
    assert table["start_time"].tolist() == [-1] * 3
    assert table["reason"].tolist() == ["Resources", "Priority", "Dependency"]
    assert table["moved_by"].tolist()[2] == "ends of the jobs on which it depends"
    page = Path("out/advice.html").read_text()
    for part in (
        "<dt>24</dt><dd>JobHeldUser</dd>",
        "<td>Dependency</td>",
        "data:image/png;base64,",
        "ends of the jobs on",
    ):
        assert part in page
    assert "http" not in page.replace("http://www.w3.org", "")
    said = capsys.readouterr().out
    assert "jobs that run: 1, that wait: 3" in said
    assert "jobs that do not start by themselves, or not within a week: 24 (JobHeldUser)" in said


def test_a_job_whose_begin_time_lies_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    """Job 25 needs both machines from 200 on; if all run as requested, job 23 does so from 240 to 360."""
    later = {"state_reason": "BeginTime", "tres_req_str": "cpu=8,mem=2G,node=2"}
    far = job(26, **later, eligible_time=NOW + 8 * 86_400, start_time=NOW + 8 * 86_400)
    write_queue([*QUEUE, job(25, **later, eligible_time=NOW + 200, start_time=NOW + 200), far])
    table = asked("--queue", "squeue.json", "--history", "history.sacct")
    assert starts(table, "as_requested") == {"21": 30, "22": 120, "23": 240, "25": 360}
    assert starts(table, "low") == starts(table, "high") == {"21": 30, "22": 60, "23": 120, "25": 200}
    assert table["reason"].tolist()[3] == "BeginTime"
    assert "or not within a week: 24 (JobHeldUser), 26 (BeginTime)" in capsys.readouterr().out


def test_a_queue_in_which_all_jobs_begin_later() -> None:
    write_queue([job(25, state_reason="BeginTime", eligible_time=NOW + 200, start_time=NOW + 200)])
    table = asked("--queue", "squeue.json", "--history", "history.sacct")
    assert starts(table, "middle") == {"25": 200}


def test_jobs_of_several_partitions_ran_in_one_that_has_their_machines() -> None:
    """The first partition that the ended and the running jobs name has other machines."""
    parts = '[[partitions]]\nname = "first"\nmachines = ["n2"]\n[[partitions]]\nname = "cpu"\nmachines = ["n1", "n2"]\n'
    Path("partitions.toml").write_text(parts)
    Path("history.sacct").write_text(HISTORY.replace("|cpu|", "|first,cpu|"))
    write_queue([job(20, **RUNNING, partition="first,cpu") | {"nodes": "n1"}, *QUEUE[1:]])
    table = asked("--queue", "squeue.json", "--history", "history.sacct")
    assert starts(table, "middle") == {"21": 30, "22": 60, "23": 120}


def test_the_time_of_the_queue_may_be_given() -> None:
    table = asked("history.sacct", "--queue", "squeue.json", "--at", str(NOW + 45))
    assert starts(table, "middle") == {"21": 45, "22": 60, "23": 120}


def test_a_dependency_on_an_array_waits_for_all_of_its_tasks() -> None:
    """The two tasks of 30 that are left start at 30 and 60, as only one of them may run at once."""
    tasks = {"array_job_id": 30, "array_task_string": "1-2%1", "submit_time": NOW + 1}
    write_queue(
        [QUEUE[0], job(30, **tasks), job(32, submit_time=NOW + 9, dependency="afterany:30_*(unfulfilled)")]
    )
    assert starts(asked("history.sacct", "--queue", "squeue.json"), "middle") == {
        "30_1": 30,
        "30_2": 90,
        "32": 150,
    }


def test_jobs_that_depend_on_those_that_never_start_have_no_window(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """24 is held, and 31 depends on 30, which does on 24; of 32 and 33, one of two conditions is enough."""
    depending = [
        job(number, submit_time=NOW + 9, state_reason="Dependency", dependency=text)
        for number, text in (
            (30, "afterany:24(unfulfilled)"),
            (31, "afterok:22(unfulfilled),after:30+5(unfulfilled)"),
            (32, "afterok:24(unfulfilled)?afterok:20(unfulfilled)"),
            (33, "afterok:24(unfulfilled)?afternotok:31(unfulfilled)"),
        )
    ]
    write_queue([*QUEUE, *depending])
    windows = asked("--queue", "squeue.json", "--history", "history.sacct")
    assert sorted(windows["job_id"]) == ["21", "22", "23", "32"]
    told = "24 (JobHeldUser), 30 (Dependency), 31 (Dependency), 33 (Dependency)"
    assert f"do not start by themselves, or not within a week: {told}\n" in capsys.readouterr().out


def test_the_tasks_of_an_array_that_run_take_their_turns() -> None:
    """One task at a time: the running one became eligible last, but those that wait do so until it ends."""
    array = {"array_job_id": 30, "array_max_tasks": 1, "time_limit": 1}
    started = {"array_task_id": 1, "eligible_time": NOW + 5, "start_time": NOW + 5}
    waiting = {"array_task_string": "2-3%1", "eligible_time": NOW, "state_reason": "JobArrayTaskLimit"}
    write_queue([job(30, **array, **waiting), job(31, **array, **{**RUNNING, **started})])
    found = asked("history.sacct", "--queue", "squeue.json")
    assert found["job_id"].tolist() == ["30_2", "30_3"]
    assert found["as_requested"].tolist() == [NOW + 65, NOW + 125]


def test_ended_jobs_of_the_queue_are_the_log_if_there_is_no_other() -> None:
    ended = [
        {
            **job(number),
            **RUNNING,
            "job_state": "COMPLETED",
            "submit_time": at,
            "start_time": at,
            "end_time": at + 60,
        }
        for number, at in ((1, NOW - 500), (2, NOW - 400), (3, NOW - 300))
    ]
    write_queue([*ended, *QUEUE])
    assert starts(asked("--queue", "squeue.json"), "middle") == {"21": 30, "22": 60, "23": 120}


def test_a_request_beside_the_queue() -> None:
    asked("history.sacct", "--queue", "squeue.json", "--what-if", "nodes=2,time=60,cpus=4,partition=cpu")
    requests = pandas.read_csv("out/requests.csv")
    assert (requests["middle"] - NOW).tolist() == [180]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--history", "history.sacct"), "--history names the log beside a --queue"),
        (
            ("history.sacct", "--history", "history.sacct", "--queue", "squeue.json"),
            "--history names the log",
        ),
        (("history.sacct", "--queue", "squeue.json", "--recorded"), "--recorded is for a log"),
        (("history.sacct", "--queue", "history.sacct"), "a job that waits or runs is needed, found none"),
        (("history.sacct", "--queue", "none.json"), "none.json"),
    ],
)
def test_wrong_questions(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(HpcsimkitError, match=said) as error:
        asked(*words)
    assert "\n" not in str(error.value)


def test_both_clocks_are_equal() -> None:
    local = HISTORY.replace(str(NOW - 810), "2026-11-28T04:30:00")
    Path("history.sacct").write_text(local)
    with pytest.raises(UsageError, match=r"times of the clock of history are needed .*SLURM_TIME_FORMAT"):
        asked("history.sacct", "--queue", "squeue.json")


# --- the schedule on record ----------------------------------------------------------------------------


def log(**columns: Any) -> Workload:
    about = {"resources": ("cpus",), "labels": {"node_list": ("n1", "n2"), "queue": ("a", "b", "a,b")}}
    return Workload(columns, **about)


def test_starts_ends_and_machines_on_record() -> None:
    jobs = log(
        submit_time=[0, 5, 6, 7], run_time=[9, 9, 9, 9], nodes=[1] * 4, cpus=[3, 3, 3, 3],
        recorded_wait_time=[2, 4, -1, -1], node_list=[0, 1, -1, -1], queue=[0, 2, 1, 1],
    )  # fmt: skip
    machines = Machines.of(2, "n", cpus=4)
    cluster = Partitions([Partition("a", machines=["n1", "n2"]), Partition("b", machines=["n1"])], machines)
    ended = np.array([True, False, False, True])
    found = recorded_result(jobs, ended, cluster, "fcfs")
    assert found.start_time.tolist() == [2, 9, OPEN, -1]
    assert found.end_time.tolist() == [11, OPEN, OPEN, -1]
    assert found.placements is not None and found.started_in is not None
    assert [found.placements.allocation(row).machines for row in range(3)] == [(0,), (1,), ()]
    assert found.placements.amounts.ravel().tolist() == [3, 3]
    assert found.started_in.tolist() == ["a", "a", "b", "b"]
    assert begun_of(found, 10, np.arange(4)).partitions == {0: "a", 1: "a"}
    futures = Futures(Case.of(jobs, "fcfs", cluster), found, recorded=True)
    moment = futures.moment(10)
    assert (moment.running.tolist(), moment.waiting.tolist()) == ([0, 1], [2])
    assert futures.next_start(moment).tolist() == [-1]


def test_a_log_may_have_more_in_use_than_there_is() -> None:
    """On record, jobs 1 and 2 run on the same four CPUs; job 3 then starts after both."""
    jobs = log(
        submit_time=[0, 0, 5], run_time=[20, 20, 9], requested_time=[20, 20, 9], nodes=[1] * 3, cpus=[4, 4, 4],
        recorded_wait_time=[0, 0, 90], node_list=[0, 0, 0],
    )  # fmt: skip
    found = advise(jobs, 5, "fcfs", Machines.of(1, "n", cpus=4), recorded=True, futures=2, calibration=0)
    assert found.table[["job_id", "as_requested", "start_time"]].values.tolist() == [["3", 40, 95]]


def test_a_log_without_recorded_waits() -> None:
    jobs = Workload({"submit_time": [0, 5], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=1)
    with pytest.raises(UsageError, match="recorded waits are needed, found none"):
        advise(jobs, 5, recorded=True)


def test_jobs_on_unknown_machines_are_placed_by_the_cluster() -> None:
    jobs = log(
        submit_time=[0, 0, 5], run_time=[20, 20, 9], requested_time=[20, 20, 9], nodes=[1] * 3, cpus=[4, 4, 4],
        recorded_wait_time=[0, 0, 15], node_list=[-1, 0, -1], queue=[0, 0, 0],
    )  # fmt: skip
    machines = Machines.of(2, "n", cpus=4)
    found = recorded_result(jobs, np.ones(3, dtype=bool), machines, "fcfs")
    begun = begun_of(found, 5, np.array([0, 1, 2]))
    assert begun.started == {0: 0, 1: 0}
    assert {row: each.machines for row, each in begun.allocations.items()} == {1: (0,)}
    answer = advise(jobs, 5, "fcfs", machines, recorded=True, futures=1, calibration=0)
    assert answer.table["as_requested"].tolist() == [20]


@pytest.mark.parametrize("hours", [9, 1])
def test_windows_are_calibrated_where_all_starts_are_known(hours: int) -> None:
    """Job 3 waits since 4 h, and its start is not known; so only the times before are of use, if it is a long log."""
    hour = 3600
    jobs = log(
        submit_time=[0, hour, 2 * hour, 4 * hour], run_time=[9 * hour] * 4, nodes=[1] * 4, cpus=[4, 4, 4, 4],
        recorded_wait_time=[0, 8 * hour, 16 * hour, -1], node_list=[0, 0, 0, -1],
    )  # fmt: skip
    machines = Machines.of(1, "n", cpus=4)
    live = Live(jobs, (18 + hours) * hour, np.array([True, True, True, False]), {}, {})
    question = AdviceQuestion(case=Case.of(jobs, "fcfs", machines), recorded=True, live=live, calibration=40)
    found = recorded_result(jobs, live.ended, machines, "fcfs")
    moments = question.earlier(Futures(question.case, found, recorded=True))
    assert {moment.at // hour for moment in moments} == ({1, 2, 3} if hours == 9 else set())
