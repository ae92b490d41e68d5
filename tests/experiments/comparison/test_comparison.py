"""Comparisons in Python, and options of commands that are keys of experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
import pytest

from hpcsimkit import Machines, Pipeline, Simulation, compare, default_workload, make, measure
from hpcsimkit.cli.flags import OF_EXPERIMENT
from hpcsimkit.engine.engines import Processes
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.settings.engine_table import EngineTable
from hpcsimkit.policies import SJF
from hpcsimkit.reports.sweep.summaries import differences, means
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.results.metrics import Metric


def test_rows_are_what_simulations_give() -> None:
    one = default_workload(np.random.default_rng(0), jobs=50)
    other = replace(one.scale_load(2), name="busy")
    table = compare(
        [one, other], {"mine": make("sjf+easy"), "random": make("random")}, seeds=[1, 2], walltime="kill"
    ).table
    assert len(table) == 8
    for row, (workload, policy, seed) in zip(
        table.to_dict("records"),
        [(w, p, s) for w in (one, other) for p in ("mine", "random") for s in (1, 2)],
        strict=True,
    ):
        assert (row["workload"], row["policy"], row["seed"]) == (workload.name, policy, seed)
        named = make({"mine": "sjf+easy", "random": "random"}[policy])
        metrics = measure(Simulation(workload, named, seed=seed, walltime="kill").run())
        assert {name: row[name] for name in metrics} == pytest.approx(metrics, nan_ok=True)
    again = compare([one, other], {"mine": make("sjf+easy"), "random": make("random")}, seeds=[1, 2],
                    walltime="kill", engine=Processes(2)).table  # fmt: skip
    assert again.equals(table)


OWN = Metric(
    "longest", "s", "max_i wait_i", "lower", "Longest wait", lambda result, _: result.wait_time.max()
)


def test_metrics_are_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, objects, and names of code that each worker imports."""
    (tmp_path / "mine.py").write_text(
        "from hpcsimkit.results.metrics import Metric\n"
        "JOBS = Metric('n', 'jobs', 'n', 'none', 'Jobs', lambda result, _: len(result.workload))\n"
    )
    monkeypatch.chdir(tmp_path)
    workload = default_workload(np.random.default_rng(0), jobs=40)
    for engine in (None, Processes(2)):
        table = compare(
            workload, ["fcfs", "sjf"], metrics=["max_wait_time", OWN, "mine.py:JOBS"], engine=engine
        ).table
        assert [*table] == [
            "workload",
            "policy",
            "seed",
            "max_wait_time",
            "longest",
            "mine.py:JOBS",
            "schedule_sha256",
        ]
        assert table["longest"].tolist() == table["max_wait_time"].tolist()
        assert table["mine.py:JOBS"].tolist() == [40, 40]
    assert {"longest", "mine.py:JOBS"}.isdisjoint(compare(workload, ["fcfs"]).table)  # not in later tables
    with pytest.raises(UsageError, match="unknown metric 'makespann'; nearest: makespan"):
        compare(workload, ["fcfs"], metrics=["makespann"])
    with pytest.raises(UsageError, match="two metrics have the name 'longest'; rename one: replace"):
        compare(workload, ["fcfs"], metrics=[OWN, OWN])


def test_copies_are_seen_in_the_table_of_a_sweep() -> None:
    """Seeds change nothing but what policies draw: one of both has a single schedule."""
    workload = default_workload(np.random.default_rng(0), jobs=60)
    policies = ["sjf+easy", "random+easy"]
    cells = compare(workload, policies, seeds=range(5), metrics=["mean_wait_time"]).table
    table = SweepTable.of(cells, {"policy": policies, "seed": list(range(5))}, ["seed"])
    assert means(table, "mean_wait_time")["replicates"].tolist() == [1, 5]
    assert differences(table, "mean_wait_time")["replicates"].tolist() == [1]


def test_names_are_distinct() -> None:
    workload = default_workload(np.random.default_rng(0), jobs=5)
    with pytest.raises(UsageError, match="two workloads have the name 'lublin-256'"):
        compare([workload, workload], ["fcfs"])
    with pytest.raises(UsageError, match="two policies have the name 'fcfs'"):
        compare(workload, ["fcfs", "fcfs"])


def test_objects_and_machines() -> None:
    workload = default_workload(np.random.default_rng(0), jobs=30).fitting(64)
    table = compare(workload, ["fcfs", Pipeline(SJF())], Machines.of(16, cpus=4)).table
    assert table["policy"].tolist() == ["fcfs", "Pipeline(order=SJF())"]
    assert table["cpus_utilisation"].notna().all()


def test_options_are_keys_with_the_same_types() -> None:
    """Every key of an experiment is an option, but for those that the command line has other words for."""
    others = {"log", "sha256", "generate", "import_from", "report", "trace", "snapshots"}
    others |= {"machines_sha256", "partitions_sha256", "calendar_sha256", "failures_sha256", "slurm_sha256"}
    assert {*OF_EXPERIMENT} == {*Experiment.model_fields} - others
    for name, option in OF_EXPERIMENT.items():
        assert get_origin(option) is Annotated
        kinds = {*get_args(get_args(option)[0])} - {NoneType}
        assert kinds == kinds_of(Experiment.model_fields[name].annotation), name


def kinds_of(annotation: object) -> set[object]:
    """Types of a field on the command line: a literal is a text, and tables of machines are in files only."""
    if isinstance(annotation, UnionType):
        found: set[object] = set()
        return found.union(*map(kinds_of, get_args(annotation))) - {NoneType, list[dict[str, Any]]}
    if annotation is EngineTable:
        return {dict[str, str]}  # of which the command line has the name
    return {str} if get_origin(annotation) is Literal else {annotation}
