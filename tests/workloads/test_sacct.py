"""Slurm's accounting: every form in which sacct prints a job, and a whole export with known truth."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import describe, read_sacct, write_job_table
from hpcsimkit.workloads.readers.cells import moment
from hpcsimkit.workloads.readers.records import MENDED
from hpcsimkit.workloads.readers.sacct_cells import tres
from hpcsimkit.workloads.readers.sacct_requests import LEFT_OUT, MORE_ALLOCATED

GIB = 1024**3
USUAL = {
    "JobID": "100", "Submit": "2024-03-01T08:00:00", "Start": "2024-03-01T08:05:00", "End": "2024-03-01T09:05:00",
    "Elapsed": "01:00:00", "Timelimit": "02:00:00", "State": "COMPLETED",
    "ReqTRES": "billing=8,cpu=8,mem=32G,node=1", "AllocTRES": "billing=8,cpu=8,mem=32G,node=1",
}  # fmt: skip
Write = Callable[..., Path]


@pytest.fixture
def export(tmp_path: Path) -> Write:
    """Return a function that writes jobs as sacct would: the usual fields, changed ones by name."""

    def write(
        *jobs: dict[str, str], without: tuple[str, ...] = (), delimiter: str = "|", end: str = ""
    ) -> Path:
        names = [*USUAL, *dict.fromkeys(name for job in jobs for name in job if name not in USUAL)]
        names = [name for name in names if name not in without]
        rows = [names, *([{**USUAL, **job}.get(name, "") for name in names] for job in jobs)]
        path = tmp_path / "export.sacct"
        path.write_text("".join(delimiter.join(row) + f"{end}\n" for row in rows))
        return path

    return write


def message(call: Callable[[], object]) -> str:
    with pytest.raises((WorkloadError, UsageError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


def asked(workload: Workload) -> list[tuple[int, ...]]:
    """Nodes, CPUs, GPUs and GiB of memory on each, job by job."""
    gib = workload.column("memory") / GIB
    table = np.column_stack([workload.nodes, workload.column("cpus"), workload.column("gpus"), gib])
    return [tuple(row) for row in table.tolist()]


# --- the command of the guides -------------------------------------------------------------------------

FIELDS_OF_22_05 = """
    Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveCPUFreq AveDiskRead
    AveDiskWrite AvePages AveRSS AveVMSize BlockID Cluster Comment Constraints ConsumedEnergy
    ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex DerivedExitCode Elapsed ElapsedRaw Eligible
    End ExitCode Flags GID Group JobID JobIDRaw JobName Layout MaxDiskRead MaxDiskReadNode
    MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask
    MaxRSS MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode
    MinCPUTask NCPUS NNodes NodeList NTasks Partition Priority QOS QOSRAW Reason ReqCPUFreq
    ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqMem ReqNodes ReqTRES Reservation ReservationId
    Start State Submit SubmitLine Suspended SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU
    TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin
    TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax
    TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask
    TRESUsageOutTot UID User UserCPU WCKey WCKeyID WorkDir
"""
"""Fields that ``sacct --helpformat`` lists in Slurm 22.05.8, without those that later releases renamed."""

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"\bsacct (?:[^`\n]*\\\n)*?[^`\n]*--format[ =]((?:[\w,]|\\+\n *)+)")


def test_commands_name_fields_that_slurm_22_05_knows() -> None:
    """One field too many, and sacct prints an error and no job at all."""
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder in ("hpcsimkit", "agents", "policies", "workloads"):
        texts += (ROOT / folder).rglob("*.py")
    fields = {
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}": found[1]
        for path in texts
        if "_build" not in path.parts
        for text in [path.read_text(encoding="utf-8")]
        for found in COMMAND.finditer(text)
    }
    where = {place.partition(":")[0] for place in fields}
    assert where >= {
        "docs/guides/slurm_log.md", "docs/guides/your_cluster_in_an_afternoon.md", "workloads/readers/sacct.py"
    }  # fmt: skip
    for place, text in fields.items():
        named = [name for name in re.split(r"[,\\\s]+", text) if name]
        assert len(named) > 10, place
        assert set(named) - set(FIELDS_OF_22_05.split()) == set(), place


# --- one job -------------------------------------------------------------------------------------------


def test_a_job_with_all_fields(export: Write) -> None:
    path = export(
        {"JobID": "4711", "JobIDRaw": "4711", "User": "ada", "Account": "physics", "Partition": "gpu", "QOS": "normal",
         "ReqTRES": "billing=32,cpu=32,gres/gpu:a100=4,gres/gpu=4,mem=128G,node=2", "Constraints": "ib&ssd",
         "Restarts": "0", "JobName": "train", "ExitCode": "0:0"},
    )  # fmt: skip
    w = read_sacct(path, strict=True)
    assert w.id.tolist() == [4711]
    assert w.submit_time.tolist() == [int(datetime(2024, 3, 1, 8, tzinfo=UTC).timestamp())]
    assert (w.run_time.tolist(), w.requested_time.tolist()) == ([3600], [7200])
    assert w.recorded_wait_time.tolist() == [300]
    assert w.status.tolist() == [1]
    assert w.labels == {
        "user": ("ada",), "group": ("physics",), "queue": ("gpu",), "partition": ("gpu",), "qos": ("normal",),
        "constraint": ("ib&ssd",),
    }  # fmt: skip
    assert w.jobs[0].nodes == 2
    names = ("cpus", "gpus", "memory", "gpus:a100")
    assert w.jobs[0].request == Request(names, (16, 2, 64 * GIB, 2), constraint="ib&ssd")
    assert dict(w.notes) == {} and dict(w.skipped) == {}
    assert w.name == "export"


def test_a_higher_qos_waits_no_longer_under_slurm(export: Write) -> None:
    """Every fourth job has QOS high, the rest is normal; all else about them is alike.

    Read as the queue, whose share of node-seconds counted, the rarer QOS waited longer.
    """
    from hpcsimkit import Machines, Simulation, make

    jobs = [{"JobID": str(1000 + n), "QOS": "high" if n % 4 == 0 else "normal", "User": f"u{n % 3}", "Partition": "cpu",
             "ElapsedRaw": "3600", "ReqTRES": "cpu=8,node=1"} for n in range(48)]  # fmt: skip
    w = read_sacct(export(*jobs))
    assert w.labels["qos"] == ("high", "normal") and w.labels["queue"] == ("cpu",)
    high = w.qos == w.labels["qos"].index("high")

    def waits(policy: str) -> tuple[float, float]:
        result = Simulation(w, make(policy), Machines.of(2, cpus=16, memory="1 TB")).run()
        wait = result.start_time - result.submit_time
        return float(wait[high].mean()), float(wait[~high].mean())

    urgent, usual = waits("slurm(qos_priority={'high': 10, 'normal': 1})+easy")
    assert urgent < usual / 2
    alike, others = waits("slurm+easy")
    assert alike == pytest.approx(others, rel=0.15)


def test_fewest_fields(export: Write) -> None:
    keep = ("JobID", "Submit", "Elapsed", "ReqTRES")
    w = read_sacct(export({}, without=tuple(set(USUAL) - set(keep))))
    assert asked(w) == [(1, 8, 0, 32)]
    assert dict(w.notes) == {"no estimate: run time taken": 1}
    assert set(w.columns) == {
        "id", "submit_time", "run_time", "requested_time", "nodes", "cpus", "gpus", "memory"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "without", "run"),
    [
        ({"Elapsed": "1-02:03:04"}, (), 93_784),
        ({"Elapsed": "03:04"}, (), 184),
        ({"Elapsed": "00:00:10.600"}, (), 11),
        ({"ElapsedRaw": "77", "Elapsed": "00:09:00"}, (), 77),
        ({"ElapsedRaw": "77"}, ("Elapsed", "Start", "End"), 77),
        ({}, ("Elapsed",), 3600),
        ({"Elapsed": "INVALID"}, (), 3600),
    ],
)
def test_run_time(export: Write, fields: dict[str, str], without: tuple[str, ...], run: int) -> None:
    w = read_sacct(export(fields, without=without))
    assert w.run_time.tolist() == [run]
    rounded = w.notes.get("times rounded to whole seconds", 0)
    assert rounded == ("." in fields.get("Elapsed", ""))


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"Timelimit": "2-00:00:00"}, 172_800),
        ({"TimelimitRaw": "90", "Timelimit": "9-00:00:00"}, 5400),
        ({"TimelimitRaw": "UNLIMITED"}, 7200),
        ({"Timelimit": "UNLIMITED"}, None),
        ({"Timelimit": "Partition_Limit"}, None),
        ({"Timelimit": "PARTITION_LIMIT"}, None),
        ({"Timelimit": ""}, None),
        ({"Timelimit": "00:00:00"}, None),
    ],
)
def test_time_limit(export: Write, fields: dict[str, str], limit: int | None) -> None:
    w = read_sacct(export(fields))
    assert w.requested_time.tolist() == [limit or 3600]
    assert w.notes.get("no estimate: run time taken", 0) == (limit is None)


@pytest.mark.parametrize(
    ("partition", "limit", "known"),
    [("cpu", 7200, True), ("gpu", 3600, False), ("cpu,long", 86_400, True), ("cpu,gpu", 3600, False)],
)
def test_time_limit_of_the_partition(export: Write, partition: str, limit: int, known: bool) -> None:
    log = export({"Timelimit": "Partition_Limit", "Partition": partition})
    w = read_sacct(log, default_times={"cpu": 7200, "long": 86_400})
    assert w.requested_time.tolist() == [limit]
    assert w.notes.get("no estimate: time limit of the partition taken", 0) == known
    assert w.notes.get("no estimate: run time taken", 0) == (not known)
    log = export({"Timelimit": "00:10:00", "Partition": partition})
    assert read_sacct(log, default_times={"cpu": 7200}).requested_time.tolist() == [600]


def test_a_job_over_its_limit_is_kept(export: Write) -> None:
    w = read_sacct(export({"Timelimit": "00:59:00", "State": "TIMEOUT"}))
    assert (w.run_time.tolist(), w.requested_time.tolist(), w.status.tolist()) == ([3600], [3540], [0])
    assert dict(w.notes) == {"run time longer than requested": 1}


ASKED = [
    # fields, size, (nodes, cpus, gpus, GiB), notes
    ({"ReqTRES": "cpu=10,mem=40G,node=4"}, "requested", (4, 3, 0, 10), ["totals not divisible"]),
    ({"ReqTRES": "cpu=4,gres/gpu=3,mem=4G,node=2"}, "requested", (2, 2, 2, 2), ["totals not divisible"]),
    ({"ReqTRES": "cpu=4,gres/gpu:v100=2,gres/gpu:a100=2,mem=4G,node=2"}, "requested", (2, 2, 2, 2), []),
    ({"ReqTRES": "cpu=4,mem=512M,node=1"}, "requested", (1, 4, 0, 0.5), []),
    ({"ReqTRES": "cpu=4,mem=1.50G,node=1"}, "requested", (1, 4, 0, 1.5), []),
    ({"ReqTRES": "cpu=4,mem=2T,node=1"}, "requested", (1, 4, 0, 2048), []),
    ({"ReqTRES": "cpu=4,mem=1048576K,node=1"}, "requested", (1, 4, 0, 1), []),
    ({"ReqTRES": "cpu=4,mem=2048,node=1"}, "requested", (1, 4, 0, 2), []),
    ({"ReqTRES": "cpu=2K,mem=1G,node=1K"}, "requested", (1024, 2, 0, 1 / 1024), []),
    ({"ReqTRES": "cpu=1,mem=4G,node=1"}, "allocated", (1, 8, 0, 32), []),
    ({"ReqTRES": "cpu=1,mem=4G,node=1", "AllocTRES": "cpu=64,gres/gpu=4,mem=256G,node=1"}, "requested", (1, 1, 0, 4),
     ["GPUs allocated but not requested: not counted"]),
    ({"ReqTRES": "", "AllocTRES": "cpu=64,gres/gpu=4,mem=256G,node=1"}, "requested", (1, 64, 4, 256), []),
    ({"ReqTRES": "cpu=8,mem=0,node=1"}, "requested", (1, 8, 0, 32), ["all memory of the nodes asked for (mem=0): the"]),
    ({"ReqTRES": "cpu=8,mem=0,node=1", "AllocTRES": "cpu=8,node=1"}, "requested", (1, 8, 0, 0),
     ["all memory of the nodes asked for (mem=0), amount unknown"]),
    ({"ReqTRES": "cpu=8,node=1", "AllocTRES": "cpu=8,node=1"}, "requested", (1, 8, 0, 0), ["memory unknown: 0 taken"]),
    ({"ReqTRES": "cpu=8,mem=8G"}, "requested", (1, 8, 0, 8), []),
    ({"ReqTRES": "cpu=8,mem=8G", "AllocTRES": "cpu=8"}, "requested", (1, 8, 0, 8), ["number of nodes unknown: 1"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "tres", "models"),
    [
        ("sbatch --gres=gpu:v100:2 -N1 job", "gres/gpu=2", {"gpus:v100": 2}),
        ("sbatch -G V100:2 job", "gres/gpu=2", {"gpus:v100": 2}),
        ("sbatch --gpus-per-node v100:2 job", "gres/gpu=2", {"gpus:v100": 2}),
        ("sbatch --gres=nvme:1,gpu:v100 job", "gres/gpu=1", {"gpus:v100": 1}),
        ("sbatch --gres=gpu:2 job", "gres/gpu=2", {}),
        ("sbatch --gres=gpu:a100:1,gpu:v100:1 job", "gres/gpu=2", {}),
        ("sbatch --wrap 'run --gpus=v100:2'", "gres/gpu=2", {}),
        ("sbatch --gres=gpu:v100:2 job", "gres/gpu=2,gres/gpu:a100=2", {"gpus:a100": 2}),
    ],
)
def test_models_of_gpus_on_the_command_line(
    export: Write, line: str, tres: str, models: dict[str, int]
) -> None:
    """Lists of resources have the models of ``AccountingStorageTRES`` only."""
    w = read_sacct(export({"ReqTRES": f"cpu=1,mem=1G,node=1,{tres}", "SubmitLine": line}))
    assert {name: int(w.column(name)[0]) for name in w.resources if name.startswith("gpus:")} == models


@pytest.mark.parametrize(("fields", "size", "expected", "notes"), ASKED)
def test_amounts(
    export: Write, fields: dict[str, str], size: str, expected: tuple[float, ...], notes: list[str]
) -> None:
    w = read_sacct(export(fields), size=size)  # type: ignore[arg-type]
    assert asked(w) == [expected]
    usual = [note for note in w.notes if note != MORE_ALLOCATED]
    assert len(usual) == len(notes)
    assert all(found.startswith(note) for found, note in zip(usual, notes, strict=True))


OLD = [
    ({"ReqMem": "4Gn"}, 4),
    ({"ReqMem": "1.50Gn"}, 1.5),
    ({"ReqMem": "1024Mc"}, 12),  # of 48 CPUs on 4 nodes
    ({"ReqMem": "64G"}, 16),
    ({"ReqMem": "4096M"}, 1),
    ({"ReqMem": "0n"}, 0),
]


@pytest.mark.parametrize(("fields", "gib"), OLD)
def test_old_slurm_without_resource_lists(export: Write, fields: dict[str, str], gib: float) -> None:
    path = export(
        {"NCPUS": "48", "NNodes": "4", "ReqGRES": "gpu:2", **fields}, without=("ReqTRES", "AllocTRES")
    )
    w = read_sacct(path)
    assert asked(w) == [(4, 12, 2, gib)]
    assert w.notes["GPUs in ReqGRES only: taken on each node"] == 1
    assert w.notes.get("all memory of the nodes asked for (mem=0), amount unknown: 0 taken", 0) == (gib == 0)


def test_requested_counts_come_before_allocated_ones(export: Write) -> None:
    fields = {"ReqCPUS": "6", "AllocCPUS": "8", "ReqNodes": "1", "AllocNodes": "2", "ReqMem": "4G"}
    path = export(fields, without=("ReqTRES", "AllocTRES"))
    assert asked(read_sacct(path)) == [(1, 6, 0, 4)]
    assert asked(read_sacct(path, size="allocated")) == [(2, 4, 0, 2)]


def test_amounts_never_wrap_around(export: Write) -> None:
    fields = {"NCPUS": "999999999999", "NNodes": "1", "ReqMem": "9999999Tc"}
    path = export(fields, {"JobID": "2", **fields, "ReqMem": "1G"}, without=("ReqTRES", "AllocTRES"))
    assert dict(read_sacct(path).skipped) == {"amount beyond 10^16 (first: line 2)": 1}


@pytest.mark.parametrize(
    ("features", "fields", "expected", "left_out"),
    [
        (("constraints",), {"Constraints": "intel&ib", "Partition": "long"}, "intel&ib", 0),
        (("constraints",), {"Constraints": " intel & ib & ib"}, "intel&ib", 0),
        (("constraints",), {"Constraints": ""}, "", 0),
        (("constraints",), {"Constraints": "a100|v100"}, "(a100|v100)", 0),
        (("constraints",), {"Constraints": "[rack1|rack2]"}, "([rack1|rack2])", 0),
        (("constraints",), {"Constraints": "[rack1|rack2]", "ReqTRES": "cpu=4,node=2"}, "", 1),
        (("constraints",), {"Constraints": "intel*4"}, "", 1),
        (("constraints",), {"Constraints": "intel*1"}, "intel*1", 0),
        (("constraints",), {"Constraints": "[a*2&(b|c)*1&ib]", "ReqTRES": "cpu=4,node=4"}, "ib&a*2&(b|c)*1", 0),
        (("constraints",), {"Constraints": "a*2&b*3", "ReqTRES": "cpu=4,node=4"}, "", 1),
        (("constraints",), {"Constraints": "[a*2|b*2]", "ReqTRES": "cpu=4,node=4"}, "", 1),
        (("constraints",), {"Constraints": "[a|b]*2", "ReqTRES": "cpu=4,node=4"}, "", 1),
        (("constraints", "partition"), {"Constraints": "a*1", "Partition": "x,y", "ReqTRES": "cpu=4,node=4"},
         "a*1&(x|y)", 0),
        ((), {"Constraints": "a100|v100"}, "", 0),
        (("partition",), {"Constraints": "intel", "Partition": "long"}, "long", 0),
        (("partition",), {"Partition": "short,long"}, "(short|long)", 0),
        (("gpu_type",), {"ReqTRES": "cpu=1,gres/gpu:a100=1,mem=1G,node=1"}, "a100", 0),
        (("gpu_type",), {"ReqTRES": "cpu=1,gres/gpu=1,mem=1G,node=1"}, "", 0),
        (("gpu_type",), {"ReqTRES": "cpu=1,gres/gpu:a=1,gres/gpu:b=1,node=1"}, "", 1),
        (("gpu_type", "constraints", "partition"),
         {"Constraints": "ib", "Partition": "gpu", "ReqTRES": "cpu=1,gres/gpu:a100=1,node=1"}, "ib&gpu&a100", 0),
        (("constraints", "partition"), {"Constraints": "a|b", "Partition": "gpu"}, "(a|b)&gpu", 0),
    ],
)  # fmt: skip
def test_features(
    export: Write, features: tuple[str, ...], fields: dict[str, str], expected: str, left_out: int
) -> None:
    w = read_sacct(export(fields), features=features)
    request = w.jobs[0].request
    assert request is not None and request.constraint == expected
    assert w.notes.get(LEFT_OUT, 0) == left_out


def test_strict_readers_refuse_constraints_that_cannot_be_simulated(export: Write) -> None:
    path = export({}, {"JobID": "2", "Constraints": "[a*2&b*1]"})
    assert message(lambda: read_sacct(path, strict=True)) == (
        f"{path}:3: a constraint with counts of at most all nodes, joined by &, and with no features in common, "
        "needed, found '[a*2&b*1]'"
    )
    assert [job.request.constraint for job in read_sacct(path).jobs if job.request] == ["", ""]


def test_nodes_of_the_jobs(export: Write) -> None:
    path = export(
        {"NodeList": "n[1-2]"}, {"JobID": "2", "NodeList": "None assigned"}, {"JobID": "3", "NodeList": "n1"}
    )
    w = read_sacct(path)
    assert (w.column("node_list").tolist(), w.labels["node_list"]) == ([0, -1, 1], ("n[1-2]", "n1"))


def test_what_slurm_recorded_of_waits(export: Write) -> None:
    given = (
        ("QOSGrpGRES", "SchedMain,StartRecieved", "9324"),
        ("None", "StartRecieved,SchedBackfill", "0"),
        ("ReqNodeNotAvail, UnavailableNodes:c3", "", "many"),
        ("(null)", "SchedSubmit", "9" * 40),
    )
    rows = [
        {"JobID": str(n), **dict(zip(("Reason", "Flags", "Priority"), cells, strict=True))}
        for n, cells in enumerate(given, 1)
    ]
    w = read_sacct(export(*rows))
    assert w.column("recorded_reason").tolist() == [0, -1, 1, -1]
    assert w.labels["recorded_reason"] == ("QOSGrpGRES", "ReqNodeNotAvail, UnavailableNodes:c3")
    assert w.column("recorded_backfilled").tolist() == [0, 1, -1, -1]
    assert w.column("recorded_priority").tolist() == [9324, 0, -1, -1]
    assert "recorded_held_time" not in w.columns


def test_jobs_that_became_eligible_later(export: Write) -> None:
    """Job 1 waited for another one and counts from there; the cells of jobs 2 and 3 say nothing or too much."""
    times = {"Submit": "2024-01-01T00:00:00", "Start": "2024-01-01T02:00:00", "End": "2024-01-01T03:00:00"}
    eligible = ("2024-01-01T01:30:00", "Unknown", "2024-01-01T02:30:00")
    w = read_sacct(
        export(*({"JobID": str(n), **times, "Eligible": each} for n, each in enumerate(eligible, 1)))
    )
    assert w.recorded_wait_time.tolist() == [1800, 7200, 7200]
    assert (w.submit_time - w.submit_time.min()).tolist() == [5400, 0, 0]
    assert w.column("recorded_held_time").tolist() == [5400, 0, 0]
    assert w.notes["eligible after submission (dependency, hold, array limit): submitted then"] == 1


def test_states(export: Write) -> None:
    states = {"COMPLETED": 1, "FAILED": 0, "CANCELLED by 1234": 5, "CANCELLED+": 5, "OUT_OF_ME+": -1,
              "OUT_OF_MEMORY": 0, "NODE_FAIL": 0, "PREEMPTED": 0, "TIMEOUT": 0}  # fmt: skip
    path = export(*({"JobID": str(number), "State": word} for number, word in enumerate(states, start=1)))
    assert read_sacct(path).status.tolist() == list(states.values())


# --- lines that are not of one whole job -----------------------------------------------------------------


def test_steps_are_skipped_and_counted(export: Write) -> None:
    steps = ["100.batch", "100.extern", "100.0", "100.interactive", "7_1.batch", "8+0.batch"]
    rest = {"Timelimit": "", "ReqTRES": "", "AllocTRES": "cpu=8,mem=32G,node=1", "Start": "Unknown"}
    w = read_sacct(export({}, *({"JobID": step, **rest} for step in steps)), strict=True)
    assert (w.id.tolist(), dict(w.skipped), dict(w.notes)) == ([100], {"job step": 6}, {})


def test_array_tasks_and_heterogeneous_jobs(export: Write) -> None:
    rows = [{"JobID": "7_1", "JobIDRaw": "8"}, {"JobID": "7_2", "JobIDRaw": "9"}, {"JobID": "7_[3-9%2]", "JobIDRaw": "7"},
            {"JobID": "20+0", "JobIDRaw": "20"}, {"JobID": "20+1", "JobIDRaw": "21"}]  # fmt: skip
    path = export(*rows)
    w = read_sacct(path)
    assert w.id.tolist() == [8, 9, 20, 21]
    assert dict(w.skipped) == {"array tasks still pending (first: line 4)": 1}
    assert dict(w.notes) == {"component of a heterogeneous job: read as a job of its own": 2}
    assert message(lambda: read_sacct(path, strict=True)) == (
        f"{path}:4: a job that started needed, found '7_[3-9%2]'"
    )
    w = read_sacct(export(*({"JobID": row["JobID"]} for row in rows)))
    assert w.id.tolist() == [0, 1, 2, 3]
    assert w.labels["id"] == ("7_1", "7_2", "20+0", "20+1")


def test_job_numbers_alone_will_do(export: Write) -> None:
    w = read_sacct(export({"JobIDRaw": "5"}, {"JobIDRaw": "5.batch"}, {"JobIDRaw": "6"}, without=("JobID",)))
    assert (w.id.tolist(), dict(w.skipped)) == ([5, 6], {"job step": 1})


def attempt(state: str, start: str, end: str, submit: str = "08:00:00", job: str = "100") -> dict[str, str]:
    """A record on 1 March 2024, whose elapsed time is that from start to end."""
    times = {"Submit": submit, "Start": start, "End": end}
    hours, minutes = (int(end[place]) * 10 + int(end[place + 1]) for place in (0, 3))
    took = 60 * (60 * hours + minutes) - 60 * (60 * int(start[:2]) + int(start[3:5]))
    elapsed = f"{took // 3600:02}:{took // 60 % 60:02}:00"
    dated = {name: f"2024-03-01T{time}" for name, time in times.items()}
    return {"JobID": job, "State": state, "Elapsed": elapsed, **dated}


def test_attempts_are_one_job(export: Write) -> None:
    """Submitted and started when it first was; the last attempt was long enough without the others."""
    path = export(
        attempt("PREEMPTED", "08:01:00", "08:11:00"),
        attempt("COMPLETED", "08:02:00", "08:20:00", job="7"),
        attempt("NODE_FAIL", "08:30:00", "08:35:00", submit="08:11:00"),
        attempt("COMPLETED", "09:00:00", "09:40:00", submit="08:35:00"),
    )
    w = read_sacct(path, strict=True)
    assert w.id.tolist() == [7, 100]
    assert w.run_time.tolist() == [18 * 60, 40 * 60]
    assert w.recorded_wait_time.tolist() == [120, 60]
    assert w.submit_time[0] == w.submit_time[1]
    assert dict(w.skipped) == {"earlier attempt of a job": 2}
    assert dict(w.notes) == {"preempted, failed or requeued before: one job with all attempts": 1}


def test_a_job_that_kept_work_needs_all_of_it(export: Write) -> None:
    w = read_sacct(
        export(
            attempt("PREEMPTED", "08:00:00", "10:00:00"),
            attempt("COMPLETED", "10:05:00", "10:35:00", submit="10:00:00"),
        )
    )
    assert w.run_time.tolist() == [9000]
    assert w.notes["an earlier attempt took longer: run time is the sum of all attempts"] == 1


def test_a_job_whose_last_attempt_was_interrupted(export: Write) -> None:
    w = read_sacct(
        export(
            attempt("NODE_FAIL", "08:00:00", "08:30:00"),
            attempt("REQUEUED", "08:40:00", "08:50:00", submit="08:30:00"),
        )
    )
    assert w.run_time.tolist() == [1800]


def test_attempts_of_a_job_that_has_not_ended_are_no_jobs(export: Write) -> None:
    running = {**attempt("RUNNING", "08:40:00", "08:50:00", submit="08:30:00"), "End": "Unknown"}
    w = read_sacct(
        export(
            attempt("PREEMPTED", "08:00:00", "08:30:00"),
            running,
            attempt("COMPLETED", "08:00:00", "08:30:00", job="7"),
        )
    )
    assert w.id.tolist() == [7]
    assert [count for _, count in sorted(w.skipped.items())] == [1, 1]


def test_a_number_that_is_used_again_is_another_job(export: Write, tmp_path: Path) -> None:
    path = export(
        attempt("COMPLETED", "08:00:00", "08:30:00"),
        attempt("NODE_FAIL", "09:00:00", "09:10:00", submit="09:00:00"),
        {**attempt("COMPLETED", "09:20:00", "09:50:00", submit="09:10:00"), "Restarts": "1"},
    )
    w = read_sacct(path)
    assert w.id.tolist() == [100, 100]
    assert w.run_time.tolist() == [1800, 1800]
    assert dict(w.notes) == {
        "preempted, failed or requeued before: one job with all attempts": 1,
        "requeued before: submitted then for the last time": 1,
        "job number used before": 1,
    }
    assert message(lambda: read_sacct(path, strict=True)) == (
        f"{path}:4: a job number of its own needed, found '100' again"
    )


NEVER = [
    {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "AllocTRES": ""},
    {"State": "CANCELLED by 0", "Start": "None", "Elapsed": "00:00:00", "AllocTRES": ""},
    {"State": "CANCELLED by 7", "Start": "2024-03-01T09:00:00", "Elapsed": "00:00:00", "AllocTRES": ""},
    {"State": "REVOKED", "Start": "Unknown", "End": "Unknown"},
]
RUNNING = [
    {"State": "RUNNING", "End": "Unknown"},
    {"State": "RUNNING"},  # with an end that --truncate made
    {"State": "SUSPENDED", "End": "Unknown"},
    {"State": "COMPLETED", "End": "Unknown"},
]


@pytest.mark.parametrize(
    ("job", "reason", "needed"),
    [(job, "never started", "a job that started") for job in NEVER]
    + [(job, "not ended", "a job that ended") for job in RUNNING],
)
def test_jobs_that_did_not_run_to_an_end(
    export: Write, job: dict[str, str], reason: str, needed: str
) -> None:
    path = export({"JobID": "1"}, {"JobID": "2", **job}, {"JobID": "3"})
    w = read_sacct(path)
    assert w.id.tolist() == [1, 3]
    assert dict(w.skipped) == {f"{reason} (first: line 3)": 1}
    assert message(lambda: read_sacct(path, strict=True)) == f"{path}:3: {needed} needed, found '2'"


def test_never_started_without_start_times(export: Write) -> None:
    gone = {"JobID": "2", "State": "CANCELLED by 7", "Elapsed": "00:00:00", "NCPUS": "0"}
    short = {"JobID": "3", "Elapsed": "00:00:00", "NCPUS": "8"}
    for without, kept in ((("NCPUS", "AllocTRES"), [3]), (("AllocTRES",), [3])):
        w = read_sacct(export(gone, short, without=("Start", "End", *without)))
        assert w.id.tolist() == kept
        assert dict(w.notes) == {"run time 0": 1}


UNUSABLE = [
    ({"Submit": "Unknown"}, "submit time unknown or negative", "a submit time of 0 s or more needed, found -1"),
    ({"Elapsed": "INVALID", "Start": "2024-03-01T09:05:01"}, "run time unknown", "a run time of 0 s or more needed, found -1"),
    ({"ReqTRES": "mem=4G,node=1", "AllocTRES": "mem=4G,node=1"}, "no CPUs", "at least 1 CPU needed, found -1"),
    ({"ReqTRES": "cpu=8,mem=4G,node=3G"}, "nodes beyond 2^31", "up to 2^31 nodes needed, found 3221225472"),
    ({"JobID": "x12"}, "JobID not understood", "JobID: a job number such as 123, 123_4 or 123.batch needed, found 'x12'"),
    ({"Submit": "01/03/24 08:00"}, "Submit not understood",
     "Submit: a time such as 2024-01-31T23:59:59 needed, found '01/03/24 08:00'"),
    ({"Submit": "2024-02-30T08:00:00"}, "Submit not understood", "found '2024-02-30T08:00:00'"),
    ({"Elapsed": "1-02:03:04x"}, "Elapsed not understood",
     "Elapsed: a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found '1-02:03:04x'"),
    ({"Timelimit": "1-2:99:00"}, "Timelimit not understood", "found '1-2:99:00'"),
    ({"ReqTRES": "cpu=eight"}, "ReqTRES not understood", "ReqTRES: cpu such as 16, 4K or 1.50G needed, found 'eight'"),
    ({"ReqTRES": "cpu=8,mem"}, "ReqTRES not understood",
     "ReqTRES: resources such as cpu=8,mem=64G,gres/gpu=2 needed, found 'cpu=8,mem'"),
    ({"ReqTRES": "cpu=8,mem=4Q"}, "ReqTRES not understood", "ReqTRES: mem such as 16, 4K or 1.50G needed, found '4Q'"),
    ({"ReqTRES": "cpu=-8"}, "ReqTRES not understood", "found '-8'"),
]  # fmt: skip


@pytest.mark.parametrize(("job", "reason", "found"), UNUSABLE)
def test_unusable_jobs_are_counted_or_refused(
    export: Write, job: dict[str, str], reason: str, found: str
) -> None:
    path = export({"JobID": "1"}, {"JobID": "2", **job}, {"JobID": "3"})
    w = read_sacct(path)
    assert w.id.tolist() == [1, 3]
    (skipped,) = w.skipped
    assert skipped.startswith(f"{reason} (first: line 3")
    text = message(lambda: read_sacct(path, strict=True))
    assert text.startswith(f"{path}:3: ")
    assert text.endswith(found)


def test_names_with_a_separator_in_them(export: Write) -> None:
    rows = {"JobName": "a"}, {"JobID": "101", "JobName": "crazy|na|me"}, {"JobID": "102", "JobName": "b"}
    w = read_sacct(export(*rows), strict=True)
    assert w.id.tolist() == [100, 101, 102]
    assert dict(w.notes) == {MENDED: 1}
    assert asked(w) == [(1, 8, 0, 32)] * 3
    w = read_sacct(export(*({**row, "Constraints": ""} for row in rows)), strict=True)
    assert w.id.tolist() == [100, 101, 102], "a constraint does not end with a separator"
    path = export(*({**row, "Constraints": "ib"} for row in rows))
    w = read_sacct(path)
    assert w.id.tolist() == [100, 102], "which of the two had it?"
    assert dict(w.skipped) == {"malformed line (first: line 3: 13 cells)": 1}
    assert message(lambda: read_sacct(path, strict=True)) == f"{path}:3: 11 cells needed, found 13 cells"


def test_lines_cut_in_two(tmp_path: Path) -> None:
    path = tmp_path / "x.sacct"
    rows = [
        "1|a|2024-03-01T08:00:00|60|4",
        "2|two\nlines|2024-03-01T08:00:00|60|4",
        "3|b|2024-03-01T08:00:00|60|4",
        "4|no end|2024-03-",
        "5|c|2024-03-01T08:00:00|60|4",
    ]
    path.write_text("\n".join(["JobID|JobName|Submit|Elapsed|NCPUS", *rows]))
    w = read_sacct(path)
    assert w.id.tolist() == [1, 2, 3, 5]
    assert w.lines is not None and w.lines.tolist() == [2, 3, 5, 7]
    assert w.notes[MENDED] == 1
    assert dict(w.skipped) == {"malformed line (first: line 6: 3 cells)": 1}


# --- forms of text --------------------------------------------------------------------------------------


def test_parsable_and_other_delimiters(export: Write) -> None:
    expected = read_sacct(export({})).hash
    assert read_sacct(export({}, end="|")).hash == expected, "--parsable"
    assert read_sacct(export({}, delimiter="^|^")).hash == expected
    assert read_sacct(export({}, delimiter="\t")).hash == expected


def test_months_put_one_behind_the_other(export: Write) -> None:
    path = export({"JobID": "1"}, {name: name for name in USUAL}, {"JobID": "2"})
    w = read_sacct(path, strict=True)
    assert (w.id.tolist(), dict(w.skipped)) == ([1, 2], {"header line repeated": 1})


def test_case_and_line_ends(tmp_path: Path) -> None:
    text = "\ufeffjobid|submit|elapsedraw|ncpus\r\n1|2024-03-01T08:00:00|60|4\r\n\r\n"
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    w = read_sacct(path)
    assert (w.name, w.run_time.tolist(), w.column("cpus").tolist()) == ("x", [60], [4])


def test_headers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.sacct"

    def found(text: str) -> str:
        path.write_text(text)
        return message(lambda: read_sacct(path)).removeprefix(f"{path}:1: ")

    assert found("       JobID    JobName  Partition\n------------ ---------- ----------\n") == (
        "fields separated by | (sacct --parsable2) needed, found 'JobID    JobName  Partition'"
    )
    assert found("100|2024-03-01T08:00:00|60\n") == (
        "a header line of sacct is needed, found '100|2024-03-01T08:00:00|60'; "
        "give the names of its fields (--fields NAME,NAME) or export with a header line"
    )
    assert found("JobID|Elapsed\n") == "the field Submit needed, found JobID, Elapsed"
    assert found("Submit|Elapsed\n") == "the field JobID or JobIDRaw needed, found Submit, Elapsed"
    assert found("JobID|Submit|Start\n") == (
        "the field ElapsedRaw or Elapsed or Start with End needed, found JobID, Submit, Start"
    )
    assert found("JobID|Submit|Elapsed|ReqMem\n") == (
        "the field ReqTRES or AllocTRES or ReqCPUS or AllocCPUS or NCPUS needed, "
        "found JobID, Submit, Elapsed, ReqMem"
    )
    assert found("JobID|Submit|Elapsed|NCPUS\n") == f"{path}: no job in it, only a header line"


def test_only_steps(export: Write) -> None:
    path = export({"JobID": "1.batch"}, {"JobID": "1.0"})
    assert message(lambda: read_sacct(path)) == f"{path}: no usable job; skipped: 2 job step"


def test_options_out_of_range_are_refused(export: Write) -> None:
    path = export({})
    assert message(lambda: read_sacct(path, size="used")) == (  # type: ignore[arg-type]
        "size must be 'requested' or 'allocated', found 'used'"
    )
    assert message(lambda: read_sacct(path, features=("nodes",))) == (
        "features must be some of constraints, partition, gpu_type, found ('nodes',)"
    )
    assert message(lambda: read_sacct(path, features="partition")).endswith("found 'partition'")
    assert message(lambda: read_sacct(path, timezone="Mars/Olympus")) == (
        "a time zone such as 'Europe/Berlin' needed, found 'Mars/Olympus'"
    )


# --- clocks ----------------------------------------------------------------------------------------------


def unix(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]


def test_time_zones(export: Write) -> None:
    times = ["2024-03-31T01:59:59", "2024-03-31T03:00:00", "2024-10-27T02:30:00"]
    path = export(*({"JobID": str(n), "Submit": t, "Start": t} for n, t in enumerate(times)))
    local = read_sacct(path)
    assert local.submit_time.tolist() == [
        unix(2024, 3, 31, 1, 59, 59), unix(2024, 3, 31, 3), unix(2024, 10, 27, 2, 30)
    ]  # fmt: skip
    berlin = read_sacct(path, timezone="Europe/Berlin")
    assert berlin.submit_time.tolist() == [
        unix(2024, 3, 31, 0, 59, 59), unix(2024, 3, 31, 1), unix(2024, 10, 27, 0, 30)
    ]  # fmt: skip
    assert np.diff(berlin.submit_time)[0] == 1, "the hour that summer time takes away never was"
    assert "first submission" in describe(berlin).sections["time"]
    assert describe(local).by_hour[[1, 2, 3]].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31T23:59:59", unix(2024, 1, 31, 23, 59, 59)),
        ("2024-01-31 23:59:59", unix(2024, 1, 31, 23, 59, 59)),
        ("2024-01-31T23:59:59+01:00", unix(2024, 1, 31, 22, 59, 59)),
        ("2024-01-31T23:59:59-0700", unix(2024, 2, 1, 6, 59, 59)),
        ("2024-01-31T23:59:59Z", unix(2024, 1, 31, 23, 59, 59)),
        ("1706745599", 1_706_745_599),
        ("Unknown", -1), ("None", -1), ("", -1),
    ],
)  # fmt: skip
def test_moments(text: str, expected: int) -> None:
    assert moment()(text) == expected


@pytest.mark.parametrize(
    "text", ["2024-1-31T23:59:59", "2024-01-31", "23:59:59", "20240131T235959", "2024-W05", "noon"]
)
def test_other_moments_are_refused(text: str) -> None:
    assert message(lambda: moment()(text)) == f"a time such as 2024-01-31T23:59:59 needed, found {text!r}"


# --- a whole export, made up with known truth -------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What a made-up job really was."""

    number: int
    submit: datetime
    wait: int
    run: int
    limit: int
    nodes: int
    cpus: int
    gpus: int
    gib: int


def span(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S")


def accounting(jobs: int, rng: np.random.Generator) -> Iterator[tuple[Truth | None, list[str]]]:
    """Yield the lines that sacct prints for a busy fortnight, each with the truth if it is of a job."""
    submit = datetime(2024, 2, 20, 7, 0, 0)
    number = 900_000
    for _ in range(jobs):
        submit += timedelta(seconds=int(rng.integers(0, 400)))
        number += 1
        nodes = int(rng.choice([1, 1, 1, 2, 4]))
        gpus = int(rng.choice([0, 0, 1, 4])) if nodes == 1 else 0
        truth = Truth(
            number, submit, int(rng.integers(0, 9999)), int(rng.integers(0, 200_000)),
            60 * int(rng.integers(10, 4000)), nodes, int(rng.integers(1, 65)), gpus, int(rng.integers(1, 257)),
        )  # fmt: skip
        lines = list(_job_lines(truth, rng))
        yield truth if len(lines) > 1 else None, lines[0]
        yield from ((None, line) for line in lines[1:])


def _job_lines(job: Truth, rng: np.random.Generator) -> Iterator[list[str]]:
    user = f"user{rng.integers(0, 12):02d}"
    lists = [f"billing={job.cpus * job.nodes}", f"cpu={job.cpus * job.nodes}"]
    if job.gpus:
        lists += [f"gres/gpu:a100={job.gpus * job.nodes}", f"gres/gpu={job.gpus * job.nodes}"]
    wanted = ",".join([*lists, f"mem={job.gib * job.nodes}G", f"node={job.nodes}"])
    who = [user, f"group{user[-1]}", "gpu" if job.gpus else "batch"]
    number = str(job.number)
    if rng.random() < 0.05:
        never = [
            number,
            number,
            *who,
            "CANCELLED by 501",
            stamp(job.submit),
            "None",
            stamp(job.submit),
            "00:00:00",
        ]
        yield [*never, span(job.limit), wanted, ""]
        return
    start = job.submit + timedelta(seconds=job.wait)
    end = start + timedelta(seconds=job.run)
    task = f"{job.number - 1}_{rng.integers(0, 99)}" if rng.random() < 0.2 else number
    state = str(rng.choice(["COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 501"]))
    times = [stamp(job.submit), stamp(start), stamp(end), span(job.run)]
    yield [task, number, *who, state, *times, span(job.limit), wanted, wanted]
    for step in ("batch", "extern", "0")[: int(rng.integers(1, 4))]:
        times[0] = stamp(start)
        yield [f"{task}.{step}", f"{number}.{step}", "", who[1], "", "COMPLETED", *times, "", "", wanted]


FIELDS = "JobID|JobIDRaw|User|Account|Partition|State|Submit|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES"


def test_a_whole_export(tmp_path: Path) -> None:
    lines = list(accounting(500, np.random.default_rng(7)))
    path = tmp_path / "fortnight.sacct"
    path.write_text("\n".join([FIELDS, *("|".join(cells) for _, cells in lines)]) + "\n")
    truths = [truth for truth, _ in lines if truth]
    w = read_sacct(path)
    assert len(w) == len(truths) > 400
    for name, expected in {
        "id": [t.number for t in truths],
        "submit_time": [int(t.submit.replace(tzinfo=UTC).timestamp()) for t in truths],
        "run_time": [t.run for t in truths],
        "requested_time": [t.limit for t in truths],
        "recorded_wait_time": [t.wait for t in truths],
        "nodes": [t.nodes for t in truths],
        "cpus": [t.cpus for t in truths],
        "gpus": [t.gpus for t in truths],
        "memory": [t.gib * GIB for t in truths],
    }.items():
        assert w.column(name).tolist() == expected, name
    never = sum(cells[5].startswith("CANCELLED") and cells[7] == "None" for _, cells in lines)
    steps = sum("." in cells[0] for _, cells in lines)
    counts = {reason.split(" (")[0]: count for reason, count in w.skipped.items()}
    assert counts == {"job step": steps, "never started": never}
    assert len(w) + steps + never == len(lines)
    assert w.labels["partition"] == ("gpu", "batch") or w.labels["partition"] == ("batch", "gpu")
    write_job_table(w, tmp_path / "fortnight.csv")  # every column has its place there


def test_a_year_is_read_in_one_go(tmp_path: Path) -> None:
    rows = ["|".join(cells) for _, cells in accounting(3000, np.random.default_rng(3))]
    path = tmp_path / "year.sacct"
    path.write_text("\n".join([FIELDS, *(rows * 5)]) + "\n")
    w = read_sacct(path)
    assert len(w) + sum(w.skipped.values()) == 5 * len(rows)
    assert len(w) > 14_000


def test_lists_of_resources() -> None:
    text = (
        "billing=8,cpu=8,energy=1234,fs/disk=5,gres/gpu:a100=1,gres/gpu:h100=3,mem=1.25G,node=1,license/x=2"
    )
    assert [tres(name)(text) for name in ("cpu", "gres/gpu", "mem", "node", "gres/nvme")] == [
        8, 4, 1_342_177_280, 1, -1
    ]  # fmt: skip
