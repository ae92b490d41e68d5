"""Schedules on machines, equal to those of independent simulators, start by start and machine by machine."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.agents.seats import RandomChoice, play
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Placement, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import FCFS, SJF, BestFitBinPacking, OracleSJF
from hpcsimkit.policies.orders import FCFSShortest
from hpcsimkit.policies.placing.packing import DominantShare
from hpcsimkit.policies.placing.placements import BreadthFirst, DepthFirst, FirstFit
from hpcsimkit.results.result import Result

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
@pytest.mark.parametrize("file", [*FILES[:2], pytest.param(FILES[2], marks=pytest.mark.slow)])
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
    name = f"beocat_{file}_untied_jobs.csv"
    (row,) = (row for row in summary if (row["input"], row["alg"]) == (name, algorithm))
    assert result.wait_time.mean() == pytest.approx(row["avg_wait_s"], rel=1e-12)


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


# The paper's table 1: NTAT and mean wait of eight heuristics (specification of CuSH, section 7).
TABLE_1 = {
    "sierra": {
        ("FCFS", "DF"): (7.13, 22.68), ("FCFS", "BF"): (5.71, 15.58), ("SJF", "DF"): (5.19, 18.53),
        ("SJF", "BF"): (4.13, 12.07), ("DRF", "DF"): (7.43, 21.45), ("DRF", "BF"): (5.54, 12.76),
        ("Rand", "DF"): (7.17, 23.62), ("Rand", "BF"): (5.42, 13.53),
    },
    "summit": {
        ("FCFS", "DF"): (6.54, 20.90), ("FCFS", "BF"): (7.07, 19.45), ("SJF", "DF"): (5.23, 18.37),
        ("SJF", "BF"): (5.14, 15.33), ("DRF", "DF"): (6.40, 19.59), ("DRF", "BF"): (6.69, 17.86),
        ("Rand", "DF"): (7.01, 22.39), ("Rand", "BF"): (6.46, 16.38),
    },
}  # fmt: skip


@pytest.mark.parametrize(("system", "gpus"), [("sierra", 4), ("summit", 6)])
def test_cush_table_1_on_the_selected_job_sets(system: str, gpus: int, shared: Path) -> None:
    """Every row within 10 %, the tolerance by which the job sets were selected.

    The rows of the random selector are means over ten seeds. The selection knew another stream of random
    numbers, so for them it is 15 %: the model's largest deviation on whole populations is 14 %.
    """
    cluster = Machines.of(128, cpus=2, gpus=gpus)
    sets = [workload for workload, _ in job_sets(shared / f"refs/cush/cush_jobsets_{system}.csv")]
    for (selector, allocation), paper in TABLE_1[system].items():
        order = SELECTORS.get(selector, External())
        policy = Pipeline(order=order, placement=DEPTH_OR_BREADTH[allocation], fitting=True, window=5)
        found = []
        for seed in range(10 if selector == "Rand" else 1):
            for number, workload in enumerate(sets):
                run = Simulation(workload, policy, cluster, service_time=LOCALITIES[system])
                result = play(run, RandomChoice(np.random.default_rng([seed, number])))
                ntat = (result.wait_time + result.run_time) / result.run_time
                found.append((ntat.mean(), result.wait_time.mean()))
        tolerance = 0.15 if selector == "Rand" else 0.10
        assert np.mean(found, axis=0) == pytest.approx(paper, rel=tolerance), (selector, allocation)
