"""Small inputs from public bug reports, with the right answers: shared/cases/README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcsimkit import Simulation, make
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.source import Source
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_log
from hpcsimkit.workloads.readers.sacct_requests import MORE_ALLOCATED

GIB = 1024**3


@pytest.fixture
def cases(shared: Path) -> Path:
    folder = shared / "cases"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    return folder


def simulated(folder: Path, **options: Any) -> tuple[Workload, list[int]]:
    """Return the jobs of a case on its machines and partitions, and their waits."""
    files = {"log": "log.sacct", "machines": "nodes.txt", "partitions": "partitions.txt"}
    given: dict[str, Any] = {key: str(folder / name) for key, name in files.items()}
    source = Source(**given, **options)
    workload = source.workload()
    result = Simulation(workload, make("fcfs+easy"), source.scheduled).run()
    return workload, result.wait_time.tolist()


def test_gpus_have_models(cases: Path) -> None:
    assert simulated(cases / "k1a-gpu-type-per-node")[1] == [0, 3599]


def test_a_partition_gives_whole_nodes(cases: Path) -> None:
    assert simulated(cases / "k2a-partition-exclusive")[1] == [0, 3599, 0]


def test_whole_nodes_are_noticed(cases: Path) -> None:
    workload, waits = simulated(cases / "k2c-job-exclusive")
    assert (waits, workload.notes[MORE_ALLOCATED]) == ([0, 0, 0], 3)
    assert simulated(cases / "k2c-job-exclusive", size="allocated")[1] == [0, 0, 3598]


def test_weights_by_model_of_gpu(cases: Path) -> None:
    assert simulated(cases / "k3a-billing-by-gpu-type")[1] == [0, 3599]


def test_a_retired_partition(cases: Path) -> None:
    folder = cases / "k3b-retired-partition"
    workload, _ = simulated(folder)
    assert (workload.id.tolist(), dict(workload.skipped)) == (
        [1],
        {"may not run: unknown partition 'gone'": 1},
    )
    with pytest.raises(HpcsimkitError, match="found partition 'gone'"):
        simulated(folder, strict=True)


def test_csv_with_quotes(cases: Path) -> None:
    w = read_log(cases / "k4a-csv-with-quotes/log.csv")
    assert (w.column("cpus").tolist(), w.column("memory").tolist()) == ([1] * 3, [6 * GIB] * 3)
    assert w.requested_time.tolist() == [7200, 3600, 7200]
    assert w.notes["no estimate: run time taken"] == 1


def test_two_free_texts(cases: Path) -> None:
    w = read_log(cases / "k4c-two-free-texts/log.sacct")
    assert (w.column("cpus").tolist(), w.run_time.tolist()) == ([4], [3600])


def test_no_header(cases: Path) -> None:
    path = cases / "k4e-no-header/log.sacct"
    with pytest.raises(HpcsimkitError, match="sacct without a header: give the names of its fields"):
        read_log(path)
    names = (
        "JobID,JobIDRaw,User,Account,State,Start,End,ElapsedRaw,AllocCPUS,ReqMem,AllocNodes,Submit,TimelimitRaw,"
        "NodeList,Partition,ReqTRES"
    )
    assert read_log(path, fields=names).column("cpus").tolist() == [8, 8]


def test_header_of_swf(cases: Path) -> None:
    assert read_log(cases / "k5a-maxprocs-with-comma/log.swf").machine_size == 1024
    w = read_log(cases / "k5c-text-beyond-field-18/log.swf")
    assert (len(w), w.notes["more than 18 fields: the rest ignored"]) == (2, 2)


def test_two_clusters(cases: Path) -> None:
    path = cases / "k6a-two-clusters/log.sacct"
    assert any("jobs of 2 clusters: alpha 2, beta 1" in note for note in read_log(path).notes)
    assert read_log(path, cluster="beta").id.tolist() == [901]


def test_suspended(cases: Path) -> None:
    w = read_log(cases / "k6c-suspended/log.sacct")
    assert (w.run_time.tolist()[0], w.notes["suspended: run time without 7200 s"]) == (3600, 1)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("squeue.txt", "squeue"),
        ("squeue.json", "squeue --json"),
        ("ub_trace.csv", "UB Slurm simulator"),
        ("scontrol_show_job.txt", "scontrol show job"),
    ],
)
def test_named_formats(cases: Path, name: str, named: str) -> None:
    with pytest.raises(HpcsimkitError) as caught:
        read_log(cases / "k7-formats" / name)
    assert named in str(caught.value) and "\n" not in str(caught.value)


def test_named_machines(cases: Path) -> None:
    with pytest.raises(UsageError, match="Alea machines"):
        Machines.read(cases / "k7-formats/alea.machines")
