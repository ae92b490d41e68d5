"""Real logs: all load, and hold exactly the jobs that the reference schedules were made of."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from hpcsimkit.workloads import read_swf, write_swf

# log: (file, machine, usable jobs, skipped)
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 28_475, {"no processors (first: line 27323)": 1}),
    "SDSC-SP2": (
        "SDSC-SP2-1998-4.2-cln.swf.gz", 128, 54_044, {"run time unknown (first: lines 57, 88, 113)": 5671}
    ),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 338, 77_222, {}),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240, 202_871, {}),
    "lublin-1": ("lublin-1.swf", 256, 10_000, {}),
    "lublin-2": ("lublin-2.swf", 256, 10_000, {}),
    "NASA-iPSC": ("NASA-iPSC-1993-3.1-cln.swf.gz", 128, 18_239, {}),
    "LANL-CM5": (
        "LANL-CM5-1994-4.1-cln.swf.gz", 1024, 122_057, {"no processors (first: lines 43383, 43384, 43385)": 3}
    ),
    "Sandia-Ross": (
        "Sandia-Ross-2001-1.1-cln.swf.gz", 1524, 57_867, {"no processors (first: lines 45, 25037, 38296)": 15}
    ),
    "ALCF-Theta-2022": ("ALCF-Theta-2022.swf.gz", 4360, 23_911, {}),
    "ALCF-Theta-2023": ("ALCF-Theta-2023.swf.gz", 4360, 8_401, {}),
    "theta-train": ("theta-cqgym-train.swf", 4360, 3_000, {}),
    "theta-validate": ("theta-cqgym-validate.swf", 4360, 5_000, {}),
}  # fmt: skip


@pytest.mark.parametrize("log", LOGS)
def test_log_loads(shared: Path, log: str) -> None:
    file, machine, jobs, skipped = LOGS[log]
    workload = read_swf(shared / "traces" / file)
    assert (workload.machine_size, len(workload), dict(workload.skipped)) == (machine, jobs, skipped)


def test_no_log_is_forgotten(shared: Path) -> None:
    assert {path.name for path in (shared / "traces").glob("*.swf*")} == {file for file, *_ in LOGS.values()}


@pytest.mark.parametrize(
    "log",
    [
        "KTH-SP2",
        "SDSC-SP2",
        pytest.param("HPC2N", marks=pytest.mark.slow),
        "lublin-1",
        "lublin-2",
        "ALCF-Theta-2022",
    ],
)
def test_jobs_are_those_of_the_reference_schedules(shared: Path, log: str) -> None:
    file, machine, *_ = LOGS[log]
    workload = read_swf(shared / "traces" / file).fitting(machine)
    schedules = sorted((shared / "refs").glob(f"{log}.*.csv.gz"))
    assert schedules
    for schedule in schedules:
        with gzip.open(schedule, "rt", newline="") as text:
            rows = csv.DictReader(text)
            assert workload.id.tolist() == [int(row["job_id"]) for row in rows], schedule.name


def test_known_facts_of_the_logs(shared: Path) -> None:
    traces = shared / "traces"
    theta = read_swf(traces / "ALCF-Theta-2023.swf.gz")
    assert theta.notes["out of order of submission"] == 2726
    assert sum(theta.fitting(4360).skipped.values()) == 8
    ctc = read_swf(traces / "CTC-SP2-1996-3.1-cln.swf.gz")
    assert ctc.notes["requested processors unknown: the other field taken"] == len(ctc)
    nasa = read_swf(traces / "NASA-iPSC-1993-3.1-cln.swf.gz")
    assert nasa.notes["no estimate: run time taken"] == len(nasa)
    train = read_swf(traces / "theta-cqgym-train.swf")
    assert train.notes["more than 18 fields: the rest ignored"] == len(train)
    assert train.user.max() > 10**13
    kth = read_swf(traces / "KTH-SP2-1996-2.1-cln.swf.gz")
    assert round(kth.notes["run time longer than requested"] / len(kth), 3) == 0.017


def test_a_real_log_written_reads_back_equal(shared: Path, tmp_path: Path) -> None:
    workload = read_swf(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz")
    write_swf(workload, tmp_path / "kth.swf.gz")
    again = read_swf(tmp_path / "kth.swf.gz", strict=True)
    assert again.hash == workload.hash
    kept = {key: value for key, value in again.header.items() if key != "Provenance"}
    assert kept == {**workload.header, "MaxJobs": "28475", "MaxRecords": "28475"}
