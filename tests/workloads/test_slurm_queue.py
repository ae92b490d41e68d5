"""The live queue of Slurm: what each command prints of the same jobs, with right answers by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.workloads.readers.slurm_queue import MOST_TASKS, NO_LIMIT, Queue, read_queue

NOW = 1_795_841_000

JOBS: list[dict[str, Any]] = [
    {"job_id": 7, "job_state": "RUNNING", "submit_time": NOW, "start_time": NOW + 30, "end_time": NOW + 330, "eligible_time": NOW,
     "time_limit": 5, "tres_req_str": "cpu=4,mem=1G,node=1", "tres_alloc_str": "cpu=4,mem=1G,node=1", "nodes": "n1",
     "user_name": "ada", "account": "chem", "partition": "cpu", "qos": "normal"},
    {"job_id": 8, "job_state": "PENDING", "submit_time": NOW + 40, "start_time": NOW + 500, "eligible_time": NOW + 45,
     "time_limit": None, "tres_req_str": "cpu=8,mem=2G,node=2", "user_name": "ben", "account": "ml", "qos": "high",
     "partition": "cpu,gpu", "state_reason": "Resources", "last_sched_evaluation": NOW + 95},
    {"job_id": 9, "job_state": "COMPLETED", "submit_time": NOW, "start_time": NOW, "end_time": NOW + 20, "time_limit": 5,
     "tres_req_str": "cpu=4,mem=1G,node=1", "user_name": "ada"},
    {"job_id": 10, "array_job_id": 10, "array_task_string": "1-3%2", "job_state": "PENDING", "submit_time": NOW + 50,
     "time_limit": 1, "tres_req_str": "cpu=1,mem=1G,node=1", "user_name": "ada", "state_reason": "JobArrayTaskLimit"},
    {"job_id": 11, "array_job_id": 10, "array_task_id": 0, "job_state": "RUNNING", "submit_time": NOW + 50,
     "start_time": NOW + 52, "time_limit": 1, "tres_req_str": "cpu=1,mem=1G,node=1", "user_name": "ada"},
    {"job_id": 12, "job_state": "PENDING", "submit_time": NOW + 60, "eligible_time": 0, "time_limit": 2,
     "tres_req_str": "cpu=1,mem=1G,node=1", "user_name": "ada", "state_reason": "Dependency",
     "dependency": "afterok:7(unfulfilled)"},
    {"job_id": 13, "job_state": "PENDING", "submit_time": NOW + 61, "time_limit": 2, "user_name": "ada",
     "tres_req_str": "cpu=1,mem=1G,node=1", "state_reason": "JobHeldUser"},
]  # fmt: skip


def wrapped(value: Any) -> Any:
    """Return numbers as newer versions print them."""
    if isinstance(value, bool) or not (isinstance(value, int) or value is None):
        return value
    return {"set": value is not None, "infinite": False, "number": value or 0}


@pytest.fixture(params=["22.05", "newer"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Queue:
    jobs = JOBS
    if request.param == "newer":
        jobs = [
            {name: wrapped(value) if name != "job_id" else value for name, value in job.items()}
            | {"job_state": [job["job_state"]]}
            for job in JOBS
        ]
    (tmp_path / "squeue.json").write_text(json.dumps({"jobs": jobs}))
    return read_queue(tmp_path / "squeue.json")


def names(queue: Queue) -> list[str]:
    return [queue.jobs.label("id", number) for number in queue.jobs.id.tolist()]


def test_jobs_that_wait_and_run(queue: Queue) -> None:
    assert names(queue) == ["7", "8", "10_1", "10_2", "10_3", "10_0", "12"]
    assert queue.running.tolist() == [True, False, False, False, False, True, False]
    assert queue.jobs.submit_time.tolist() == [NOW, NOW + 45, *[NOW + 50] * 4, NOW + 60]
    assert queue.jobs.recorded_wait_time.tolist() == [30, -1, -1, -1, -1, 2, -1]
    assert queue.jobs.requested_time.tolist() == [300, NO_LIMIT, 60, 60, 60, 60, 120]
    assert queue.jobs.run_time.tolist() == queue.jobs.requested_time.tolist()
    assert queue.at == NOW + 95
    assert queue.reasons == ["", "Resources", *["JobArrayTaskLimit"] * 3, "", "Dependency"]
    assert queue.stuck == {"13": "JobHeldUser"}


def test_columns_of_gates_and_requests(queue: Queue) -> None:
    assert queue.jobs.column("array_job").tolist() == [-1, -1, 10, 10, 10, 10, -1]
    assert queue.jobs.column("array_limit").tolist() == [-1, -1, 2, 2, 2, 2, -1]
    assert queue.jobs.column("dependency").tolist() == [-1] * 6 + [0]
    assert queue.jobs.labels["dependency"] == ("afterok:7(unfulfilled)",)
    assert queue.jobs.column("cpus").tolist() == [4, 4, 1, 1, 1, 1, 1]
    assert [queue.jobs.label("partition", each) for each in queue.jobs.partition.tolist()[:2]] == [
        "cpu",
        "cpu,gpu",
    ]


@pytest.mark.parametrize("asked", ["gres:gpu:v100:2", "gres/gpu:v100:2"])
def test_models_of_gpus(asked: str, tmp_path: Path) -> None:
    job = {**JOBS[1], "tres_req_str": "cpu=8,mem=2G,node=1,gres/gpu=2", "tres_per_node": asked}
    (tmp_path / "q.json").write_text(json.dumps({"jobs": [job]}))
    text = SCONTROL.replace("NumNodes=2-4", f"NumNodes=1 TresPerNode={asked}").replace(
        "node=2", "node=1,gres/gpu=2"
    )
    (tmp_path / "jobs.txt").write_text(text)
    for file in ("q.json", "jobs.txt"):
        jobs = read_queue(tmp_path / file).jobs
        assert (jobs.column("gpus:v100")[-1], jobs.column("gpus")[-1]) == (2, 2)


def test_the_time_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps({"jobs": JOBS[:1]}))
    assert read_queue(tmp_path / "q.json").at == NOW + 30
    assert read_queue(tmp_path / "q.json", at=NOW + 99).at == NOW + 99


SCONTROL = """JobId=7 JobName=a b=c
   UserId=ada(1001) GroupId=root(0) MCS_label=N/A
   Priority=10737 Nice=0 Account=chem QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:00:02 TimeLimit=00:05:00 TimeMin=N/A
   SubmitTime=2026-11-28T04:43:20 EligibleTime=2026-11-28T04:43:20
   StartTime=2026-11-28T04:43:50 EndTime=2026-11-28T04:48:50 Deadline=N/A
   Partition=cpu AllocNode:Sid=localhost:4059
   NodeList=n1
   NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=4,mem=1G,node=1,billing=4
   Features=(null) DelayBoot=00:00:00

JobId=10 ArrayJobId=10 ArrayTaskId=1-2 JobName=x
   UserId=ben(1002) GroupId=root(0) MCS_label=N/A
   Priority=99 Nice=0 Account=ml QOS=high
   JobState=PENDING Reason=Priority Dependency=(null)
   TimeLimit=UNLIMITED SubmitTime=2026-11-28T04:44:00 EligibleTime=Unknown
   StartTime=Unknown EndTime=Unknown Partition=gpu NodeList=(null)
   NumNodes=2-4 NumCPUs=8 TRES=cpu=8,mem=2G,node=2,billing=8 Features=a100
"""


def test_scontrol_show_job(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text(SCONTROL)
    queue = read_queue(tmp_path / "jobs.txt")
    assert names(queue) == ["7", "10_1", "10_2"]
    assert queue.jobs.submit_time.tolist() == [NOW, NOW + 40, NOW + 40]
    assert queue.jobs.recorded_wait_time.tolist() == [30, -1, -1]
    assert queue.jobs.requested_time.tolist() == [300, NO_LIMIT, NO_LIMIT]
    assert queue.jobs.nodes.tolist() == [1, 2, 2]
    assert [queue.jobs.label("user", each) for each in queue.jobs.user.tolist()] == ["ada", "ben", "ben"]
    assert queue.jobs.label("constraint", 0) == "a100"
    assert queue.reasons == ["", "Priority", "Priority"]


def test_sacct_with_jobs_that_have_not_ended(tmp_path: Path) -> None:
    (tmp_path / "now.sacct").write_text(
        "JobID|JobIDRaw|User|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|Reason\n"
        f"6|6|ada|COMPLETED|{NOW}|{NOW}|{NOW}|{NOW + 200}|200|5|cpu=1,mem=1G,node=1|None\n"
        f"7_1|8|ada|RUNNING|{NOW}|{NOW}|{NOW + 9}|Unknown|80|5|cpu=1,mem=1G,node=1|None\n"
        f"7_[2-3]|7|ada|PENDING|{NOW}|{NOW}|Unknown|Unknown|0|5|cpu=1,mem=1G,node=1|Priority\n"
        f"9|9|ada|PENDING|{NOW}|Unknown|Unknown|Unknown|0|5|cpu=1,mem=1G,node=1|DependencyNeverSatisfied\n"
    )
    queue = read_queue(tmp_path / "now.sacct")
    assert names(queue) == ["7_1", "7_2", "7_3"]
    assert queue.jobs.recorded_wait_time.tolist() == [9, -1, -1]
    assert queue.at == NOW + 200
    assert queue.stuck == {"9": "DependencyNeverSatisfied"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"jobs": []}', "a job that waits or runs is needed, found none"),
        ('{"nodes": 3}', "a list of jobs needed, as squeue --json prints it, found none"),
        (json.dumps({"jobs": JOBS[2:3]}), "a job that waits or runs is needed, found none"),
        (
            "JOBID PARTITION\n1 cpu\n",
            "the output of squeue --json, scontrol show job or sacct --parsable2 is needed",
        ),
    ],
)
def test_other_outputs_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(WorkloadError, match=said):
        read_queue(tmp_path / "other")


def test_an_array_without_end_is_cut(tmp_path: Path) -> None:
    job = {**JOBS[3], "array_task_string": "0-4000000:2,7%5"}
    (tmp_path / "q.json").write_text(json.dumps({"jobs": [job]}))
    queue = read_queue(tmp_path / "q.json")
    assert len(queue.jobs) == MOST_TASKS
    assert names(queue)[:3] == ["10_0", "10_2", "10_4"]
    assert np.unique(queue.jobs.column("array_limit")).tolist() == [5]


@pytest.mark.parametrize("limit", [1, wrapped(1), 0, None])
def test_the_last_waiting_task_of_an_array_has_its_limit(limit: Any, tmp_path: Path) -> None:
    """It has a number of its own, and no list of tasks that would state the limit."""
    array = {"array_job_id": 10, "array_task_string": "", "array_max_tasks": limit}
    last = {**JOBS[3], **array, "job_id": 10, "array_task_id": 4}
    runs = {**JOBS[0], **array, "job_id": 14, "array_task_id": 3}
    (tmp_path / "q.json").write_text(json.dumps({"jobs": [last, runs, JOBS[1]]}))
    (tmp_path / "jobs.txt").write_text(
        SCONTROL.replace(
            "JobId=7 ", f"JobId=14 ArrayJobId=10 ArrayTaskId=3 ArrayTaskThrottle={limit or 0} "
        ).replace("ArrayTaskId=1-2", f"ArrayTaskId=4 ArrayTaskThrottle={limit or 0}")
    )
    files = ["q.json"] if isinstance(limit, dict) else ["q.json", "jobs.txt"]
    for queue in (read_queue(tmp_path / file) for file in files):
        found = dict(zip(names(queue), queue.jobs.column("array_limit").tolist(), strict=True))
        assert found["10_4"] == found["10_3"] == (1 if limit else -1)
        assert found.get("8", -1) == -1
