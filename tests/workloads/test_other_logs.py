"""Logs of other schedulers, simulators and archives: what becomes of their fields, and what is named instead of read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError, UsageError, WorkloadError
from hpcsimkit.io.known_formats import NAMED_FORMATS
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_gwf, read_log, read_pbs, read_sge, read_slurm_json
from tests.fuzz.seeds import BATSIM, GWF, PBS, SGE, SGE_JSON, SLURM_JSON, parquet_files

GIB = 1024**3


def write(folder: Path, text: str | bytes, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(folder: Path, text: str | bytes, name: str = "log", **options: Any) -> Workload:
    return read_log(write(folder, text, name), **options)


def refusal(folder: Path, text: str | bytes, name: str = "log", **options: Any) -> str:
    with pytest.raises(HpcsimkitError) as caught:
        read(folder, text, name, **options)
    assert "\\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(folder / name))


def test_accounting_of_pbs(tmp_path: Path) -> None:
    w = read(tmp_path, PBS)
    assert w.labels["id"] == ("17", "18[1]")
    assert w.submit_time.tolist() == [1704096005, 1704096000], "eligible after it was created"
    assert w.recorded_wait_time.tolist() == [5, 10]
    assert (w.run_time.tolist(), w.requested_time.tolist()) == ([3600, 60], [7200, 60])
    assert w.nodes.tolist() == [2, 1]
    assert [w.column(name).tolist() for name in w.resources] == [[4, 2], [1, 0], [8 * GIB, 0]]
    assert w.column("exclusive").tolist() == [1, -1]
    assert (w.status.tolist(), w.labels["user"], w.labels["queue"]) == ([1, 0], ("ada", "ben"), ("batch",))
    assert dict(w.skipped) == {"record of another kind than the end of a job": 1}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("Resource_List.nodes=2:ppn=8+1:ppn=4:gpus=2", (3, 7, 1, 0)),
        ("Resource_List.nodes=n7:ppn=3 Resource_List.pmem=2gb", (1, 3, 0, 6 * GIB)),
        ("Resource_List.ncpus=12 Resource_List.nodect=3 Resource_List.mem=3072mb", (3, 4, 0, GIB)),
        ("Resource_List.select=1:ncpus=36:mpiprocs=36:mem=180gb:ngpus=4", (1, 36, 4, 180 * GIB)),
        ("exec_host=a/0+a/1+b/0 Resource_List.nodes=3", (2, 2, 0, 0)),
        ("exec_host=a/0-3 Resource_List.nodes=1:ppn=4 Resource_List.mem=1048576kb", (1, 4, 0, GIB)),
    ],
)
def test_requests_of_pbs(tmp_path: Path, listed: str, expected: tuple[int, ...]) -> None:
    times = "ctime=1704096000 qtime=1704096000 etime=1704096000 start=1704096010 end=1704096020"
    w = read(tmp_path, f"01/01/2024 09:00:10;E;7.head;user=u {listed} {times}\n")
    assert (w.nodes.tolist()[0], *(w.column(name).tolist()[0] for name in w.resources)) == expected


def test_lines_of_pbs_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "20240101"
    path.write_text(
        PBS
        + "cut of\n"
        + PBS.splitlines()[2].replace("end=1704096070", "end=x").replace("18[1]", "19")
        + "\n"
    )
    w = read_pbs(path)
    assert len(w) == 2
    assert sum(w.skipped.values()) == 3
    with pytest.raises(WorkloadError, match=r":4: 17 cells needed, found 'cut of'"):
        read_pbs(path, strict=True)


def test_accounting_of_grid_engine(tmp_path: Path) -> None:
    w = read(tmp_path, SGE)
    assert w.labels["id"] == ("17", "18.3")
    assert (w.submit_time.tolist(), w.recorded_wait_time.tolist()) == ([1704096000] * 2, [10, 10])
    assert (w.run_time.tolist(), w.requested_time.tolist()) == ([3600, 60], [7200, 60])
    assert w.column("spread").tolist() == [1, -1]
    assert [w.column(name).tolist() for name in w.resources] == [[16, 1], [0, 0], [64 * GIB, 0]]
    assert (w.status.tolist(), w.labels["user"]) == ([1, 0], ("ada", "ben"))


def test_forms_of_grid_engine(tmp_path: Path) -> None:
    first, one, other = SGE.splitlines()
    cells = one.split(":")
    newer = ":".join([*cells, "0", "more", "7"])
    path = tmp_path / "accounting"
    path.write_text("\n".join([first, newer, newer.replace(":17:", ":19:")]) + "\n")
    assert read_sge(path).id.tolist() == [17, 19], "newer versions have further fields"
    path.write_text(
        "\n".join([one, one.replace("1704096000", "1704096000123"), other.replace(":sim:", ":a:b:")]) + "\n"
    )
    w = read_sge(path)
    assert (w.submit_time.tolist(), w.labels["user"]) == ([1704096000] * 3, ("ada", "ben"))
    assert w.notes["separator or line break in a text: put together again"] == 1
    task, never = one.replace(":NONE:1.2G", ":1.n2:1.2G"), one.replace("1704096010", "0")
    path.write_text("\n".join([one, task, never]) + "\n")
    assert dict(read_sge(path).skipped) == {"task of a parallel job": 1, "never started (first: line 3)": 1}


def test_json_of_grid_engine(tmp_path: Path) -> None:
    """The same jobs as in the form with colons, with times in microseconds."""
    w, json_form = read(tmp_path, SGE), read(tmp_path, SGE_JSON, "log.jsonl")
    assert w.hash == json_form.hash
    assert w.labels == json_form.labels
    more = read(tmp_path, SGE_JSON + "{broken\n[1]\n", "log.jsonl")
    assert (more.hash, dict(more.skipped)) == (w.hash, {"malformed line (first: line 3: '{broken')": 2})


def test_one_job_of_grid_engine_with_more_fields(tmp_path: Path) -> None:
    one = SGE.splitlines()[1]
    assert read(tmp_path, f"{one}:0:n1:/home/ada\n").column("cpus").tolist() == [16]


def test_logs_of_the_grid_workloads_archive(tmp_path: Path) -> None:
    w = read(tmp_path, GWF, "grid.gwf")
    assert (w.name, w.id.tolist(), w.nodes.tolist()) == ("grid", [17, 18], [4, 1])
    assert (w.submit_time.tolist(), w.run_time.tolist(), w.requested_time.tolist()) == (
        [1120000000, 1120000060], [3600, 60], [7200, 60]
    )  # fmt: skip
    assert (w.recorded_wait_time.tolist(), w.status.tolist()) == ([10, -1], [1, 0])
    assert (w.labels["user"], w.labels["queue"], w.machine_size) == (("U1", "U2"), ("Q1",), None)
    assert "preceding" not in w.columns and w.header["Columns not read"].startswith(
        "OrigSiteID, LastRunSiteID"
    )
    lines = GWF.splitlines()
    bare = read(tmp_path, "\n".join([lines[3], "19 1", lines[2]]), "grid")
    assert (bare.id.tolist(), dict(bare.skipped)) == (
        [18, 17],
        {"malformed line (first: line 2: 2 fields)": 1},
    )
    with pytest.raises(WorkloadError, match="lines of 29 fields needed, found none"):
        read_gwf(write(tmp_path, "# GWF\n"))


def test_workloads_of_batsim(tmp_path: Path) -> None:
    w = read(tmp_path, BATSIM, "w.json")
    assert (w.id.tolist(), w.machine_size, w.nodes.tolist()) == ([1, 2], 4, [4, 1])
    assert (w.submit_time.tolist(), w.run_time.tolist(), w.requested_time.tolist()) == (
        [0, 10],
        [60, 240],
        [100, 240],
    )
    content = json.loads(BATSIM)
    content["profiles"]["c"] = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}
    kept = read(tmp_path, json.dumps(content), "w.json")
    assert (kept.id.tolist(), dict(kept.skipped)) == (
        [1], {"profile without a duration: parallel_homogeneous (first: line 2)": 1}
    )  # fmt: skip
    assert "a profile that is a delay needed" in refusal(tmp_path, json.dumps(content), "w.json", strict=True)
    content["profiles"]["c"] = {"type": "composed", "seq": ["c"]}
    assert "unknown profile" in next(iter(read(tmp_path, json.dumps(content), "w.json").skipped))


@pytest.mark.parametrize("time", [2**63, -(2**64), 1e15, 1e400, "nan", "1_0"])
def test_times_of_batsim_that_no_clock_shows(tmp_path: Path, time: float | str) -> None:
    content = json.loads(BATSIM)
    content["jobs"][0]["subtime"] = time
    text = refusal(tmp_path, json.dumps(content).replace("Infinity", "1e400"), "w.json", strict=True)
    assert "a time in seconds needed, found" in text
    assert read(tmp_path, json.dumps(content), "w.json").id.tolist() == [2]


def test_json_of_slurm(tmp_path: Path) -> None:
    w = read(tmp_path, SLURM_JSON, "jobs.json")
    assert w.resources == ("cpus", "gpus", "memory", "gpus:a100")
    assert (w.id.tolist(), w.nodes.tolist(), w.run_time.tolist()) == ([17, 18], [2, 1], [3600, 60])
    assert (w.requested_time.tolist(), w.recorded_wait_time.tolist()) == ([7200, 3600], [10, 60])
    assert [w.column(name).tolist() for name in w.resources] == [
        [4, 1],
        [1, 0],
        [32000 * 1024**2, 4 * GIB],
        [1, 0],
    ]
    assert w.labels["constraint"] == ("intel",) and w.labels["user"] == ("ada", "ben")


def test_json_of_jobs_that_wait_says_what_to_do(tmp_path: Path) -> None:
    job = {
        "job_id": 7,
        "partition": "cpu",
        "submit_time": {"set": True, "infinite": False, "number": 1709276400},
    }
    content = {"meta": {"plugin": {"data_parser": "data_parser/v0.0.40"}}, "jobs": [job]}
    text = refusal(tmp_path, json.dumps(content), "squeue.json")
    assert "squeue --json prints jobs that wait or run; export those that ended: sacct --json" in text
    (tmp_path / "x.json").write_text('{"meta": {}, "jobs": []}')
    with pytest.raises(WorkloadError, match="no job in it"):
        read_slurm_json(tmp_path / "x.json")


def test_json_of_an_array_of_old_slurm(tmp_path: Path) -> None:
    job = {
        "job_id": 8, "array_job_id": 7, "array_task_id": 3, "job_state": "COMPLETED", "submit_time": 1709276400,
        "start_time": 1709276400, "end_time": 1709276460, "time_limit": 4294967295, "cpus": 2, "node_count": 1,
    }  # fmt: skip
    w = read(tmp_path, json.dumps({"meta": {}, "jobs": [job]}), "jobs.json")
    assert (w.id.tolist(), w.header["JobName"], w.requested_time.tolist()) == ([3], "7_", [60])


@pytest.mark.parametrize("end", [-1e-09, 1.5, 100000.0, "x", "9" * 500, 1709276460.4])
def test_json_of_a_queue_with_times_of_all_kinds(tmp_path: Path, end: float | str) -> None:
    job = {
        "job_id": 8, "job_state": "COMPLETED", "submit_time": 1709276400, "start_time": 1709276400.2,
        "end_time": end, "time_limit": 5, "cpus": 2, "node_count": 1,
    }  # fmt: skip
    content = json.dumps({"meta": {}, "jobs": [job, {**job, "job_id": 9, "end_time": 1709276410}]})
    w = read(tmp_path, content, "jobs.json")
    assert w.run_time.tolist() == [60, 10][end != 1709276460.4 :]


def test_pm100_and_f_data(tmp_path: Path) -> None:
    files = parquet_files()
    w = read(tmp_path, files["pm100.parquet"], "x.parquet")
    assert (w.nodes.tolist(), w.run_time.tolist(), w.requested_time.tolist()) == (
        [2, 1],
        [3600, 60],
        [7200, 3600],
    )
    assert [w.column(name).tolist() for name in w.resources] == [[64, 4], [4, 0], [200 * 10**9, 7 * 10**9]]
    assert (w.status.tolist(), w.recorded_wait_time.tolist(), w.user.tolist()) == ([1, 0], [10, 10], [5, 6])
    f = read(tmp_path, files["fdata.parquet"], "y.parquet")
    assert (f.nodes.tolist(), f.requested_time.tolist(), f.labels["user"]) == (
        [384, 1],
        [7200, 60],
        ("u1", "u2"),
    )
    assert f.resources == () and f.submit_time.tolist() == [1588291200, 1588291260]


def test_other_parquet_files_are_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": [1]}), content)
    assert "a log of a form that is understood" in refusal(tmp_path, content.getvalue(), "x.parquet")
    assert "the Parquet file cannot be read" in refusal(tmp_path, b"PAR1 and no more", "x.parquet")


NAMED = {
    "squeue": "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n   41  batch wrap ada R 10:00 1 n3\n",
    "sacct without --parsable2": "       JobID    JobName  Partition\n------------ ---------- ----------\n7  a  b\n",
    "sprio, sshare or sdiag": "Account|User|RawShares|NormShares\nroot|||0.0\n",
    "sinfo": "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n",
    "scontrol show job": "JobId=41 JobName=wrap\n   UserId=ada(1000) GroupId=bio(1000)\n",
    "scontrol show node": "NodeName=c1 Arch=x86_64 CoresPerSocket=16\n",
    "scontrol show partition": "PartitionName=cpu\n   AllowGroups=ALL\n",
    "UB Slurm simulator": "dt;job_id;wall_time;user;wall_limit;n_tasks;ntasks_per_node\n0;1;40;ada;5;8;8\n",
    "Alea machines": "0\tdemo\t16\t16\t1\t67108864\t30\n",
    "LSF accounting (lsb.acct)": '"JOB_FINISH" "10.1" 1704096000 17 1000 33554434 4 1704095000\n',
    "bjobs, bhist or bacct": "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n",
    "qstat": "Job id            Name             User              Time Use S Queue\n----------------  ---------------- ----\n",
    "qacct": "==============================================================\nqname        all.q\nhostname     n1\n",
    "database of Slurm": "id_job,id_user,cpus_req,nodes_alloc,time_submit,time_eligible,time_start,time_end,timelimit,tres_req\n",
    "AccaSim (configuration of a system)": '{"groups": {"g0": {"core": 16, "mem": 128}}, "nodes": {"g0": 4}}',
    "Alibaba cluster data (2018)": "M1,1,j_1,1,Terminated,86400,86500,100.00,0.5\n",
    "Flux": '{"jobs": [{"id": 1, "t_submit": 1.5, "t_run": 2.5, "ntasks": 4}]}',
    "OAR": '{"17": {"submissionTime": 1704096000, "startTime": 1704096010, "state": "Terminated"}}',
    "HTCondor history": 'MyType = "Job"\nClusterId = 17\nQDate = 1704096000\n',
    "Modular Workload Format (MWF)": "; MWF version 1\n1 0 0\n",
    "WfCommons": '{"name": "x", "schemaVersion": "1.5", "workflow": {"specification": {}}}',
    "Philly (JSON of Microsoft)": '[{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "attempts": []}]',
    "Helios (SenseTime)": "job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n",
    "PAI (Alibaba 2020)": "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n",
    "Google cluster data": "time,type,collection_id,scheduling_class\n",
    "XDMoD": "local_jobid,local_job_array_index,start_time\n",
    "job completions of Slurm (jobcomp/filetxt)": "JobId=1 UserId=ada(1001) GroupId=g(1) Name=wrap JobState=COMPLETED Partition=cpu\n",
    "page of the web": "<!DOCTYPE html>\n<html>\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_formats_without_a_reader_are_named(tmp_path: Path, name: str) -> None:
    form = next(form for form in NAMED_FORMATS if form.name == name)
    assert refusal(tmp_path, NAMED[name]) == f": {form.refusal}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "JOBID|PARTITION|USER|STATE|PRIORITY|TIME_LIMIT|START_TIME\n228|cpu|cleo|PENDING|8485|6:00|N/A\n",
            "squeue",
        ),
        (
            "Fri Mar  1 08:00:00 2024\n   JOBID PARTITION NAME USER STATE TIME TIME_LIMI NODES NODELIST(REASON)\n",
            "squeue",
        ),
        ("   41     batch     wrap      ada  R      10:00      1 n3\n", "squeue"),
        ("JOBID|USER|NAME|STATE|TIME|NODES|CPUS\n41|ada|x|PENDING|0:00|1|4\n", "squeue"),
        ("JobId=42 ArrayJobId=41 ArrayTaskId=1 JobName=wrap\n", "scontrol show job"),
        ("-dt 0 -e submit_batch_job | -J jobid_1 -sim-walltime 10 -n 12 x.sh\n", "UB Slurm simulator"),
        ("0\tzewura\t20\t80\t1.0\t529424736\tlinux\n1\tluna\t47\t16\t1.0\t99000000\n", "Alea machines"),
        ("Summary of time in seconds spent in various states:\nJOBID   USER\n", "bjobs, bhist or bacct"),
        (
            "\nAccounting information about jobs that are:\n  - submitted by all users.\n",
            "bjobs, bhist or bacct",
        ),
        ("Job Id: 17.head\n    Job_Name = x\n    job_state = R\n", "qstat"),
        (
            '{"timestamp": 1, "pbs_version": "20", "pbs_server": "h", "Jobs": {"17.h": {"Job_Name": "x"}}}',
            "qstat",
        ),
        ("Job id    Name           User           Submission Date     S Queue\n--------- ----\n", "OAR"),
        ('{"17": {"id": 17, "submission_time": 1, "start_time": 2, "state": "Terminated"}}', "OAR"),
        ('[{"ClusterId": 17, "QDate": 1}]', "HTCondor history"),
        ("ajob1,inst1,u1,Terminated,100.0,200.0\n", "PAI (Alibaba 2020)"),
        ("af724763,worker,1.0,Terminated,494455.0,495906.0,600.0,29.3,50.0,MISC\n", "PAI (Alibaba 2020)"),
        ("          JOBID PARTITION     USER   PRIORITY       SITE\n", "sprio, sshare or sdiag"),
        ("       JOBID USER     NAME       ST NTASKS NNODES     TIME INFO\n", "Flux"),
    ],
)
def test_other_forms_of_named_formats(tmp_path: Path, text: str, name: str) -> None:
    assert f"the format is that of {name}, " in refusal(tmp_path, text)


def test_every_format_without_a_reader_is_tried() -> None:
    binary = {"spreadsheet", "archive (tar)", "pickle"}
    assert {form.name for form in NAMED_FORMATS} == {*NAMED, *binary}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PK\x03\x04\x14", "spreadsheet"),
        (b"\x80\x04\x95\x10", "pickle"),
        (b"x" * 257 + b"ustar\x00", "archive (tar)"),
    ],
)
def test_formats_of_bytes_are_named(tmp_path: Path, content: bytes, name: str) -> None:
    assert f"the format is that of {name}, which is not read: " in refusal(tmp_path, content)


def test_machines_of_other_programs_are_named(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(NAMED["Alea machines"])
    with pytest.raises(
        UsageError, match="the format is that of Alea machines, which is not read: it has machines"
    ):
        Machines.read(tmp_path / "m.txt")


def test_an_export_without_a_header_is_named(tmp_path: Path) -> None:
    line = "41|ada|COMPLETED|2024-11-13T11:00:00|7200|8|300\n"
    assert refusal(tmp_path, line) == (
        ":1: sacct without a header: give the names of its fields (--fields NAME,NAME) or export with a header line"
    )
    w = read(tmp_path, line, fields="JobID,User%20,State,Submit,ElapsedRaw,NCPUS,TimelimitRaw")
    assert (w.run_time.tolist(), w.column("cpus").tolist(), w.labels["user"]) == ([7200], [8], ("ada",))
