"""Logs of GPU clusters: each form on rows checked by hand, then the real ones; and any log by its first line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import LOG_FORMATS, read_eagle, read_log, read_openb, read_philly
from hpcsimkit.workloads.readers.gpu_logs import EAGLE_FIELDS, OPENB_FIELDS
from tests.fuzz.seeds import BATSIM, GWF, PBS, SGE, SLURM_JSON

MIB = 1024**2
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PHILLY = "job_id,num_gpu,submit_time,iterations,model_name,duration,priority"
EAGLE = (
    "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,"
    "submit_time,start_time,end_time,run_time,state"
)
Write = Callable[..., Path]


@pytest.fixture
def log(tmp_path: Path) -> Write:
    """Return a function that writes lines to a file and returns its path."""

    def write(*lines: str, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def message(call: Callable[[], object]) -> str:
    with pytest.raises((WorkloadError, UsageError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


# --- openb -----------------------------------------------------------------------------------------------

PODS = (
    OPENB,
    "pod-a,6500,12288,1,460,V100M32,LS,Running,100,500,130",
    "pod-b,12000,16384,2,1000,V100M16|V100M32,BE,Succeeded,110,170,120",
    "pod-c,1000,0,0,0,,BE,Failed,120,125,120",
    "pod-d,1000,1024,1,500,,BE,Pending,120,500,",
)


def test_openb_pods(log: Write) -> None:
    w = read_openb(log(*PODS))
    assert w.resources == ("cpu_milli", "gpu_milli", "memory")
    names = w.resources
    assert [job.request for job in w.jobs] == [
        Request(names, (6500, 460, 12288 * MIB), constraint="V100M32"),
        Request(names, (12000, 2000, 16384 * MIB)),
        Request(names, (1000, 0, 0)),
    ]
    assert w.submit_time.tolist() == [100, 110, 120]
    assert w.run_time.tolist() == w.requested_time.tolist() == [370, 50, 5]
    assert w.recorded_wait_time.tolist() == [30, 10, 0]
    assert w.status.tolist() == [-1, 1, 0]
    assert w.nodes.tolist() == [1, 1, 1]
    assert w.labels == {"id": ("pod-a", "pod-b", "pod-c"), "qos": ("LS", "BE"), "constraint": ("V100M32",)}
    assert dict(w.skipped) == {"never scheduled (first: line 5)": 1}
    assert dict(w.notes) == {
        "no estimate: run time taken": 3,
        "deleted at the last moment of the log: perhaps cut short": 1,
        "gpu_spec with alternatives: left out": 1,
    }


def test_openb_in_whole_gpus(log: Write) -> None:
    w = read_openb(log(*PODS), shares=False)
    assert w.resources == ("cpus", "gpus", "memory")
    assert w.column("cpus").tolist() == [7, 12, 1]
    assert w.column("gpus").tolist() == [1, 2, 0]
    assert w.notes["shares rounded up to whole CPUs and GPUs"] == 1


@pytest.mark.parametrize(
    ("pod", "reason", "found"),
    [
        ("x,1000,1024,1,500,,BE,Pending,120,500,", "never scheduled", "a scheduled_time needed, found ''"),
        ("x,1000,1024,1,500,,BE,Running,120,,130", "run time unknown", "0 s or more needed, found -1"),
        ("x,1000,1024,1,500,,BE,Running,-5,9,6", "submit time unknown or negative", "needed, found -5"),
        ("x,0,0,0,0,,BE,Running,1,9,6", "asks for nothing",
         "an amount above 0 of cpu_milli or num_gpu or memory_mib needed, found 0"),
        ("x,-1,0,0,0,,BE,Running,1,9,6", "cpu_milli not understood",
         "cpu_milli: a whole number from 0 to 10^9 needed, found '-1'"),
        ("x,1,0,1,half,,BE,Running,1,9,6", "gpu_milli not understood", "a whole number needed, found 'half'"),
        ("x,1,99999999999,0,0,,BE,Running,1,9,6", "memory_mib not understood", "found '99999999999'"),
        ("x,1,1,1,1,,BE,Running,now,9,6", "creation_time not understood", "needed, found 'now'"),
        ("x,1,1,1,1,,BE,Running,9,6", "malformed line", "11 cells needed, found 10 cells"),
    ],
)  # fmt: skip
def test_unusable_pods(log: Write, pod: str, reason: str, found: str) -> None:
    path = log(*PODS[:3], pod)
    w = read_openb(path)
    assert w.labels["id"] == ("pod-a", "pod-b")
    (skipped,) = w.skipped
    assert skipped.startswith(f"{reason} (first: line 4")
    text = message(lambda: read_openb(path, strict=True))
    assert text.startswith(f"{path}:4: ") and text.endswith(found)


# --- Philly ----------------------------------------------------------------------------------------------


def test_philly_jobs(log: Write) -> None:
    w = read_philly(
        log(PHILLY, "0,1,0,9,dqn,2868294000,1", "1,32,201674600,9,vgg16,1500,0", "2,8,7000,9,dqn,499,0")
    )
    assert w.resources == ("gpus",)
    assert [job.request for job in w.jobs] == [Request(("gpus",), (n,), spread=True) for n in (1, 32, 8)]
    assert w.submit_time.tolist() == [0, 201_675, 7]
    assert w.run_time.tolist() == [2_868_294, 2, 0]
    assert w.requested_time.tolist() == [2_868_294, 2, 1]
    assert w.id.tolist() == [0, 1, 2]
    assert [w.label("executable", number) for number in w.executable.tolist()] == ["dqn", "vgg16", "dqn"]
    assert w.queue.tolist() == [1, 0, 0]
    assert dict(w.notes) == {
        "no estimate: run time taken": 3, "run time 0": 1, "times rounded to whole seconds": 2,
        "out of order of submission": 1,
    }  # fmt: skip


def test_philly_jobs_that_cannot_be(log: Write) -> None:
    path = log(
        PHILLY, "0,1,0,9,dqn,1000,1", "1,0,0,9,dqn,1000,1", "2,1,0,9,dqn,-1000,1", "0,1,0,9,dqn,1000,1"
    )
    w = read_philly(path)
    assert dict(w.skipped) == {
        "asks for nothing (first: line 3)": 1, "run time unknown (first: line 4)": 1
    }  # fmt: skip
    assert w.notes["job number used before"] == 1
    assert message(lambda: read_philly(path, strict=True)) == (
        f"{path}:3: an amount above 0 of gpus needed, found 0"
    )
    path = log(PHILLY, "0,1,0,9,dqn,1000,1", "0,1,0,9,dqn,1000,1")
    assert message(lambda: read_philly(path, strict=True)) == (
        f"{path}:3: a job number of its own needed, found '0' again"
    )


# --- Eagle -----------------------------------------------------------------------------------------------


def test_eagle_jobs(log: Write) -> None:
    w = read_eagle(
        log(
            EAGLE,
            "5,u1,a1,p1,normal,3600.0,2,72,4,368000.0,2019-01-01 08:00:00,2019-01-01 08:01:00,x,60.0,COMPLETED",
            "7,u2,a1,p1,high,60.0,3,10,0,0.0,2019-01-01 08:00:05,2019-01-01 08:00:05,x,99.4,TIMEOUT",
            "7,u1,a1,p2,high,60.0,1,1,0,100.0,2019-01-01 08:00:05,2019-01-01 08:00:05,x,9.0,CANCELLED",
        )
    )
    assert w.nodes.tolist() == [2, 3, 1]
    assert [job.request.amounts for job in w.jobs if job.request] == [
        (36, 2, 184_000 * MIB), (4, 0, 0), (1, 0, 100 * MIB)
    ]  # fmt: skip
    first = int(datetime(2019, 1, 1, 8, tzinfo=UTC).timestamp())
    assert w.submit_time.tolist() == [first, first + 5, first + 5]
    assert w.run_time.tolist() == [60, 99, 9]
    assert w.requested_time.tolist() == [3600, 60, 60]
    assert w.recorded_wait_time.tolist() == [60, 0, 0]
    assert w.status.tolist() == [1, 0, 5]
    assert w.labels == {
        "user": ("u1", "u2"), "group": ("a1",), "queue": ("p1", "p2"), "partition": ("p1", "p2"), "qos": ("normal", "high")
    }  # fmt: skip
    assert dict(w.notes) == {
        "run time longer than requested": 1,
        "times rounded to whole seconds": 1,
        "totals not divisible by the nodes: rounded up": 1,
        "job number used before": 1,
    }


@pytest.mark.parametrize(
    ("change", "reason", "found"),
    [
        (("3600.0,2,", "3600.0,0,"), "no nodes", "at least 1 node needed, found 0"),
        ((",72,", ",0,"), "no CPUs", "at least 1 processor needed, found 0"),
        (("08:00:00,", "8 am,"), "submit_time not understood",
         "submit_time: a time such as 2024-01-31T23:59:59 needed, found '2019-01-01 8 am'"),
        (("60.0,C", ",C"), "run time unknown", "a run time of 0 s or more needed, found -1"),
        (("3600.0", "1h"), "wallclock_req not understood", "D-HH:MM:SS, found '1h'"),
    ],
)  # fmt: skip
def test_eagle_jobs_that_cannot_be(log: Write, change: tuple[str, str], reason: str, found: str) -> None:
    row = "5,u1,a1,p1,normal,3600.0,2,72,4,1.0,2019-01-01 08:00:00,2019-01-01 08:01:00,x,60.0,COMPLETED"
    path = log(EAGLE, row, row.replace(*change).replace("5,u", "6,u"))
    w = read_eagle(path)
    assert (w.id.tolist(), dict(w.skipped)) == ([5], {**w.skipped}) and len(w.skipped) == 1
    assert next(iter(w.skipped)).startswith(f"{reason} (first: line 3")
    text = message(lambda: read_eagle(path, strict=True))
    assert text.startswith(f"{path}:3: ") and text.endswith(found)


def test_eagle_time_zone(log: Write) -> None:
    row = "5,u1,a1,p1,normal,3600.0,2,72,4,1.0,2019-07-01 08:00:00,2019-07-01 08:01:00,x,60.0,COMPLETED"
    w = read_eagle(log(EAGLE, row), timezone="America/Denver")
    assert w.submit_time.tolist() == [int(datetime(2019, 7, 1, 14, tzinfo=UTC).timestamp())]
    assert w.header["TimeZoneString"] == "America/Denver"


@pytest.mark.parametrize(
    ("reader", "what", "missing"),
    [(read_openb, "a list of openb's pods", "name"), (read_philly, "a log of Philly", "job_id"),
     (read_eagle, "a log of Eagle", "job_id")],
)  # fmt: skip
def test_other_tables_are_refused(
    log: Write, reader: Callable[[Path], Workload], what: str, missing: str
) -> None:
    path = log("a,b", "1,2")
    assert message(lambda: reader(path)) == f"{path}:1: {what} needs the column {missing}, found 'a', 'b'"


@pytest.mark.parametrize(
    ("reader", "text", "columns"),
    [
        (read_openb, ",".join(OPENB_FIELDS) + "\npod7,1000,1,1,500,0,9,0", {"recorded_wait_time", "cpu_milli", "gpu_milli", "memory"}),
        (read_philly, "duration,job_id,num_gpu,submit_time\n9000,7,2,0", {"spread", "gpus"}),
        (read_eagle, ",".join(EAGLE_FIELDS) + "\n7,60,1,1,0,0,2019-01-01 08:00:00,9", {"cpus", "gpus", "memory"}),
    ],
)  # fmt: skip
def test_fewest_fields(log: Write, reader: Callable[[Path], Workload], text: str, columns: set[str]) -> None:
    w = reader(log(text))
    assert set(w.columns) == {"id", "submit_time", "run_time", "requested_time", "nodes", *columns}
    assert (w.id.tolist(), w.run_time.tolist(), w.labels) == ([7], [9], {})


# --- real logs -------------------------------------------------------------------------------------------


def test_real_openb(shared: Path) -> None:
    w = read_openb(shared / "traces" / "openb_pod_list_default.csv.gz")
    assert len(w) == 7255
    assert dict(w.skipped) == {"never scheduled (first: lines 63, 86, 92)": 897}
    assert dict(w.notes) == {
        "no estimate: run time taken": 7255,
        "deleted at the last moment of the log: perhaps cut short": 34,
    }
    assert (int(w.column("gpu_milli").max()), int(w.column("cpu_milli").max())) == (8000, 120_200)
    assert w.jobs[1].request == Request(w.resources, (6000, 460, 12288 * MIB))


def test_real_philly(shared: Path) -> None:
    w = read_philly(shared / "traces" / "philly-muri-trace1.csv", strict=True)
    assert (len(w), dict(w.notes)) == (1494, {"no estimate: run time taken": 1494})
    assert (int(w.column("gpus").sum()), int(w.submit_time.max())) == (7398, 10_817_570)


def test_real_eagle(shared: Path) -> None:
    w = read_eagle(shared / "traces" / "nrel-eagle-sample-1000.csv")
    assert (len(w), dict(w.skipped)) == (1000, {})
    assert dict(w.notes) == {"run time longer than requested": 14, "job number used before": 451}
    assert sorted(set((w.column("memory") // MIB).tolist())) == [0, 100, 184_000, 720_000]
    assert (int(w.nodes.max()), int(w.column("gpus").max())) == (360, 2)


# --- any log ---------------------------------------------------------------------------------------------

FIRST_LINES = {
    "; MaxProcs: 8\n1 0 -1 5 4" + " -1" * 13: "Standard Workload Format",
    "  1 0 -1 5 4" + " -1" * 13: "Standard Workload Format",
    "JobName,ReqCPUs,ActualDuration,Submit\njob1,4,5,0": "job table",
    "\ufeffSubmit,ActualDuration,ReqCPUs\n0,5,4": "job table",
    "JobID|Submit|ElapsedRaw|NCPUS\n1|2024-03-01T08:00:00|5|4": "sacct --parsable2",
    "JobIDRaw|Submit|ElapsedRaw|NCPUS|\n1|2024-03-01T08:00:00|5|4|": "sacct --parsable2",
    f"{OPENB}\n{PODS[1]}": "openb pod list",
    f"{PHILLY}\n0,1,0,9,dqn,1000,1": "Philly (MURI)",
    SLURM_JSON: "sacct --json, squeue --json",
    PBS: "PBS accounting",
    SGE: "Grid Engine accounting",
    BATSIM: "Batsim",
    GWF: "Grid Workloads Format",
    f"\n{EAGLE}\n5,u1,a1,p1,normal,3600.0,2,72,4,1.0,2019-01-01 08:00:00,2019-01-01 08:01:00,x,60.0,COMPLETED": "Eagle",
}


@pytest.mark.parametrize(("text", "form"), FIRST_LINES.items())
def test_logs_are_known_by_their_first_line(log: Write, text: str, form: str) -> None:
    path = log(text, name="any.log")
    w = read_log(path)
    assert len(w) in (1, 2)
    reader = next(known.read for known in LOG_FORMATS if known.name == form)
    assert w.hash == reader(path).hash
    assert w.provenance == reader(path).provenance


def test_every_form_is_tried() -> None:
    in_parquet = {"PM100", "F-DATA"}  # of which test_other_logs.py makes some
    assert {form.name for form in LOG_FORMATS} - in_parquet == set(FIRST_LINES.values())


def test_a_file_named_swf_is_swf(log: Write) -> None:
    path = log("what is this", name="x.swf")
    assert message(lambda: read_log(path)).startswith(f"{path}:1: not the Standard Workload Format")


def test_logs_of_no_known_form(log: Write) -> None:
    understood = ", ".join(form.name for form in LOG_FORMATS)
    assert understood.startswith("Standard Workload Format, job table, openb")
    path = log("MachineName,TotalMemory", "a,1")
    assert message(lambda: read_log(path)) == (
        f"{path}: a log of a form that is understood ({understood}) needed, found 'MachineName,TotalMemory'"
    )
    empty = log("", name="empty")
    assert message(lambda: read_log(empty)).endswith("needed, found an empty file")
    assert message(lambda: read_log(path.parent / "no.csv")).endswith("no such file")


def test_options_go_to_the_reader(log: Write) -> None:
    path = log("ReqMem,ReqCPUs,ActualDuration,Submit", "1,4,5,0")
    assert read_log(path, memory_unit="GB").column("memory").tolist() == [10**9]
    assert message(lambda: read_log(path, size="requested")) == (
        f"{path}: the options of a log of the form 'job table' are strict, memory_unit, found 'size'"
    )


PIECES = [
    *",|;\n\r\"'",
    "-1",
    "9" * 25,
    "1e5",
    "nan",
    "",
    "\0",
    "é",
    "\u2028",
    "٣",
    "=",
    "&",
    ":",
    "[",
    "Unknown",
]


@given(st.sampled_from(sorted(FIRST_LINES)), st.data())
def test_damaged_logs_never_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + data.draw(st.integers(0, 3)) :]
    path = tmp_path_factory.mktemp("damaged") / "any.log"
    path.write_bytes(text.encode())
    found = ""
    try:
        assert len(read_log(path).jobs) >= 1
    except (WorkloadError, UsageError) as error:
        found = str(error)
    assert not found or (found.startswith(str(path)) and "\n" not in found)


def test_real_logs_are_known(shared: Path) -> None:
    traces = shared / "traces"
    for name, jobs in {
        "lublin-1.swf": 10_000, "ALCF-Theta-2023.swf.gz": 8401, "beocat-2021-03.csv.gz": 68_552,
        "openb_pod_list_default.csv.gz": 7255, "philly-muri-trace1.csv": 1494, "nrel-eagle-sample-1000.csv": 1000,
    }.items():  # fmt: skip
        assert len(read_log(traces / name)) == jobs, name
