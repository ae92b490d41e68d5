"""Schedules on machines, equal to those of independent simulators, start by start and machine by machine."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.locality import LOCALITIES
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import FCFS, SJF, BestFitBinPacking, OracleSJF
from hpcsimkit.policies.orders import FCFSShortest
from hpcsimkit.policies.packing import DominantShare
from hpcsimkit.policies.placements import BreadthFirst, DepthFirst, FirstFit
from hpcsimkit.policy import Placement, Policy
from hpcsimkit.result import Result
from hpcsimkit.simulation import Simulation
from hpcsimkit.workload import Workload

BEOCAT: dict[str, Policy] = {
    "fcfs": Pipeline(order=FCFS(), placement=FirstFit()),
    "sjf": Pipeline(order=SJF(), placement=FirstFit(), fitting=True),
    "oracle": Pipeline(order=OracleSJF(), placement=FirstFit(), fitting=True),
    "bfbp": BestFitBinPacking(),
}
FILES = ["20210603", "jobscsv", "trainset1"]


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


def beocat(path: Path) -> Workload:
    table = rows(path)

    def column(name: str) -> Any:
        return np.array([int(row[name]) for row in table])

    return Workload(
        {
            "submit_time": column("Submit"), "run_time": column("ActualDuration"),
            "requested_time": column("ReqDuration"), "nodes": np.ones(len(table)),
            "cpus": column("ReqCPUs"), "gpus": column("ReqGPUs"), "memory": column("ReqMem") * 1000,
        },
        resources=("cpus", "gpus", "memory"),
    )  # fmt: skip


def nine(shared: Path) -> Machines:
    return Machines.read(shared / "refs/beocat/nine_machines.csv.gz")


def starts_and_machines(result: Result) -> list[tuple[str, str]]:
    assert result.placements is not None
    starts = map(str, result.start_time.tolist())
    return list(zip(starts, result.placements.words(), strict=True))


@pytest.mark.parametrize("algorithm", BEOCAT)
@pytest.mark.parametrize("file", FILES)
def test_beocat(file: str, algorithm: str, shared: Path) -> None:
    cluster = nine(shared)
    workload = beocat(shared / f"refs/beocat/{file}_untied_jobs.csv.gz")
    never = cluster.misfits(workload)
    result = Simulation(workload.without(never, "fits no machine"), BEOCAT[algorithm], cluster).run()
    reference = rows(shared / f"refs/beocat/{file}_untied_{algorithm}.csv.gz")
    assert [not row["start"] for row in reference] == never.tolist()
    expected = [(row["start"], row["machine"]) for row in reference if row["start"]]
    assert starts_and_machines(result) == expected
    summary = json.loads((shared / "refs/beocat/beocat_summary.json").read_text())
    assert summary  # read below, where its keys are known


SELECTORS = {"FCFS": FCFSShortest(), "SJF": SJF(), "DRF": DominantShare()}
DEPTH_OR_BREADTH: dict[str, Placement] = {"DF": DepthFirst(), "BF": BreadthFirst()}


class SuitsTheKind(Placement):
    """What a perfect policy selector does: depth-first for compute-bound jobs, breadth-first for others."""

    def place(self, job: Any, level: Any, system: Any) -> Any:
        placement = DEPTH_OR_BREADTH["BF" if job.kind else "DF"]
        return placement.place(job, level, system)


def job_sets(path: Path) -> list[tuple[Workload, list[dict[str, str]]]]:
    with path.open() as file:
        table = list(csv.DictReader(file))
    sets = []
    for number in sorted({int(row["jobset"]) for row in table}):
        chosen = [row for row in table if int(row["jobset"]) == number]

        def column(name: str, chosen: list[dict[str, str]] = chosen) -> Any:
            return np.array([int(row[name]) for row in chosen])

        workload = Workload(
            {
                "submit_time": column("arrival"), "run_time": column("t"), "nodes": np.ones(len(chosen)),
                "cpus": column("cpus"), "gpus": column("gpus"), "spread": np.ones(len(chosen)),
                "kind": column("type(0=dgemm 1=daxpy)"),
            },
            resources=("cpus", "gpus"),
        )  # fmt: skip
        sets.append((workload, chosen))
    return sets


@pytest.mark.parametrize("allocation", ["DF", "BF", "best"])
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize(("system", "gpus"), [("sierra", 4), ("summit", 6)])
def test_cush(system: str, gpus: int, selector: str, allocation: str, shared: Path) -> None:
    cluster = Machines.of(128, cpus=2, gpus=gpus)
    placement = DEPTH_OR_BREADTH.get(allocation, SuitsTheKind())
    policy = Pipeline(order=SELECTORS[selector], placement=placement, fitting=True, window=5)
    sets = job_sets(shared / f"refs/cush/cush_jobsets_{system}.csv")
    assert len(sets) == 10
    for workload, reference in sets:
        result = Simulation(workload, policy, cluster, service_time=LOCALITIES[system]).run()
        column = f"start_{selector}_{allocation}"
        assert result.start_time.tolist() == [int(row[column]) for row in reference]
        styles = [
            allocation if allocation != "best" else ("BF" if kind else "DF")
            for kind in workload.kind.tolist()
        ]
        service = [int(row[f"st_{style}"]) for row, style in zip(reference, styles, strict=True)]
        assert result.run_time.tolist() == service
