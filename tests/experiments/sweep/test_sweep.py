"""Sweeps: axes, cells, windows, and the table of cells."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Machines, Simulation, Workload, make, measure
from hpcsimkit.engine import lock
from hpcsimkit.engine.results_folder import ResultsFolder
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.generate import Generate
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.experiments.sweep.axes import Axis, axes_of, parsed_axis
from hpcsimkit.experiments.sweep.cell import _policy
from hpcsimkit.experiments.sweep.draws import may_draw
from hpcsimkit.experiments.sweep.results import SweepResults, state_lines
from hpcsimkit.experiments.sweep.sweep import Sweep
from hpcsimkit.experiments.sweep.sweep_run import SweepRun
from hpcsimkit.experiments.sweep.windows import Windows
from hpcsimkit.io.documents import write_record
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.catalogue import CATALOGUE
from hpcsimkit.reports.sweep.summaries import means
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.workloads import write_swf

DAY = 86_400


def sweep_of(**values: Any) -> Sweep:
    return Sweep(**{"jobs": 40, "policies": ["fcfs", "sjf+easy"], "report": False, **values})


def values_of(sweep: Sweep) -> list[dict[str, Any]]:
    return [dict(cell.values) for cell in sweep.cells()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twelve days with a job of half a day at every noon, on one node."""
    noons = np.arange(12) * DAY + DAY // 2
    columns = {"submit_time": noons, "run_time": np.full(12, DAY // 2), "nodes": np.ones(12, int)}
    write_swf(Workload(columns, machine_size=1), tmp_path / "noons.swf")
    return tmp_path / "noons.swf"


# --- axes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"lod_factor": [1]}, "unknown axis 'lod_factor'; nearest: load_factor"),
        ({"policies": [["fcfs"]]}, "unknown axis 'policies': all of them run with every value"),
        ({"generate.loud": [1]}, "unknown axis 'generate.loud'; nearest: load"),
        ({"seed": []}, "seed: at least one value is needed"),
        ({"seed": [1, 2, 1]}, "seed: 1 is given twice"),
        ({"seed": {"first": 0}}, "whole numbers first and count are needed, found {'first': 0}"),
        ({"seed": {"first": 0, "count": 0}}, "count must be from 1 to 100000, found 0"),
        ({"period": {"length": "4 wekes"}}, "a duration such as '4 weeks' or 3600 [s] is needed"),
        ({"period": {"length": 1, "overlap": 2}}, "keys length, step and warmup"),
    ],
)
def test_wrong_axes(table: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        list(axes_of(table))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"sweep": {"load_factor": [1.0, 0.0]}},
            "load_factor must be greater than or equal to 0.000001, found 0.0",
        ),
        ({"sweep": {"walltime": ["run", "stop"]}}, "walltime"),
        (
            {"sweep": {"policy.windw": [1]}},
            "policy.windw: no policy of fcfs, sjf+easy has this parameter; nearest: window",
        ),
        ({"baseline": "saf"}, "--baseline: one of the policies is needed (fcfs, sjf+easy), found 'saf'"),
        ({"metrics": ["mean_wait"]}, "unknown metric 'mean_wait'; nearest: mean_wait_time"),
        ({"policies": ["fcsf"]}, "fcsf"),
    ],
)
def test_wrong_sweeps(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Sweep.of_flags({"policies": ["fcfs", "sjf+easy"], **values})
    assert message in str(error.value)


def test_options_of_the_command_line() -> None:
    assert parsed_axis("load-factor= 0.8 ,1") == ("load_factor", [0.8, 1])
    assert parsed_axis("dependencies=true,false") == ("dependencies", [True, False])
    assert parsed_axis("policy.window=8") == ("policy.window", [8])
    for wrong in ("seed", "=1,2"):
        with pytest.raises(UsageError, match="--axis needs key=value"):
            parsed_axis(wrong)


def test_a_counted_axis_takes_no_memory() -> None:
    assert list(axes_of({"seed": {"first": 5, "count": 100_000}})) == [Axis("seed", range(5, 100_005))]


# --- cells -----------------------------------------------------------------------------------------------


def test_all_combinations() -> None:
    sweep = sweep_of(sweep={"seed": [3, 4], "load_factor": [0.5, 1.0]})
    assert len(sweep) == 8
    assert values_of(sweep) == [
        {"policy": policy, "seed": seed, "load_factor": load}
        for seed in (3, 4)
        for load in (0.5, 1.0)
        for policy in ("fcfs", "sjf+easy")
    ]


def test_parameters_of_policies_are_axes_of_those_that_have_them() -> None:
    sweep = sweep_of(sweep={"policy.window": [2, 8]}, policies=["fcfs+easy", "random+easy", "recorded"])
    cells = list(sweep.cells())
    assert [(cell.policy, cell.values.get("policy.window")) for cell in cells] == [
        ("fcfs+easy+window(2)", 2),
        ("fcfs+easy+window(8)", 8),
        ("random+easy+window(2)", 2),
        ("random+easy+window(8)", 8),
        ("recorded", None),
    ]
    for name, parameter, changed in (
        ("wfp3+easy-k(2)", "count", "wfp3+easy-k(count=3)"),
        ("sjf+window(9)+easy", "window", "sjf+window(3)+easy"),
        ("recorded", "window", None),
    ):
        assert registry.with_parameter(name, parameter, 3, None, Trust(())) == changed


def test_a_policy_that_draws_nothing_runs_once_on_a_log(log: Path) -> None:
    policies = ["sjf+easy", "random+easy", "fcfs"]
    sweep = sweep_of(
        log=str(log), jobs=None, policies=policies, sweep={"seed": [3, 4], "load_factor": [1, 2]}
    )
    assert len(sweep) == 2 * (1 + 2 + 1)
    cells = list(sweep.cells())
    assert [(cell.policy, cell.values.get("seed"), cell.values["load_factor"]) for cell in cells] == [
        ("random+easy", 3, 1), ("sjf+easy", None, 1), ("fcfs", None, 1),
        ("random+easy", 3, 2), ("sjf+easy", None, 2), ("fcfs", None, 2),
        ("random+easy", 4, 1), ("random+easy", 4, 2),
    ]  # fmt: skip
    assert [cell.settings.get("seed") for cell in cells[:2]] == [3, None]
    about = sweep.described(cells)
    assert about["axes"]["policy"] == policies and about["axes"]["seed"] == [3, 4]
    assert about["without_seed"] == ["sjf+easy", "fcfs"] and about["replicates"] == ["seed"]
    alone = sweep.model_copy(update={"policies": ["fcfs"]})
    about = alone.described(list(alone.cells()))
    assert "seed" not in about["axes"] and about["replicates"] == []


def test_seeds_of_generated_jobs_are_for_all_policies(log: Path) -> None:
    assert len(list(sweep_of(sweep={"seed": [1, 2, 3]}).cells())) == 6
    generated = sweep_of(jobs=None, generate={"jobs": 20}, sweep={"seed": [1, 2, 3]})
    assert {cell.settings["generate"]["seed"] for cell in generated.cells()} == {1, 2, 3}
    by_another = sweep_of(jobs=None, generate={"jobs": 20}, sweep={"seed": [1, 2], "generate.seed": [5, 6]})
    assert len(list(by_another.cells())) == len(by_another) == 4, (
        "one key makes the jobs, the other only draws"
    )


@pytest.mark.parametrize("order", ["random", None])
def test_orders_of_partitions_may_draw(order: str | None, log: Path, tmp_path: Path) -> None:
    table = {"name": "all", "nodes": 1, **({} if order is None else {"order": order})}
    settings = {"log": str(log), "partitions": [table], "policies": ["fcfs"], "sweep": {"seed": [0, 1]}}
    assert len(list(Sweep(**settings).cells())) == (1 if order is None else 2)


NAMES = [name for table in (CATALOGUE["order"], CATALOGUE["pipeline"]) for name in table] + [
    f"fcfs+{name}" for seat in ("backfilling", "estimates", "inspector") for name in CATALOGUE[seat]
] + [f"fcfs+easy+{name}" for name in CATALOGUE["placement"]]  # fmt: skip


def test_what_draws_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of the catalogue: a generator of the run is asked for if and only if the part says so."""
    asked: list[bool] = []
    draw = System.random
    monkeypatch.setattr(System, "random", lambda system: asked.append(True) or draw(system))
    columns = {"submit_time": [0, 1, 2], "run_time": [9, 5, 5], "nodes": [1, 2, 1], "cpus": [1, 1, 2]}
    jobs = Workload(columns, resources=("cpus",))
    found = {}
    for name in NAMES:
        try:
            policy = make(name)
            asked.clear()
            Simulation(jobs, policy, Machines.of(2, cpus=2), simulator="simpy").run()
        except UsageError:  # made for other jobs, or not without parameters
            continue
        found[name] = bool(asked)
        assert may_draw(policy) is found[name], name
    assert len(found) > 40 and sum(found.values()) >= 4


def test_names_of_cells_follow_their_inputs() -> None:
    names = [cell.name for cell in sweep_of(sweep={"seed": [0, 1]}).cells()]
    assert len({*names}) == 4
    same = sweep_of(sweep={"seed": [1]}, workers=2, skip=0, load_factor=1.0)
    assert [cell.name for cell in same.cells()] == names[2:], (
        "defaults, and what decides nothing, count alike"
    )
    assert {cell.name for cell in sweep_of(sweep={"seed": [0, 1]}, jobs=41).cells()}.isdisjoint(names)


def test_a_changed_log_makes_other_cells(log: Path) -> None:
    sweep = {"log": str(log), "jobs": None, "sweep": {"load_factor": [1.0]}}
    before = [cell.name for cell in sweep_of(**sweep).cells()]
    log.write_text(log.read_text().replace(" 43200 ", " 43201 "))
    assert [cell.name for cell in sweep_of(**sweep).cells()] != before


def test_a_saved_hash_is_checked(log: Path) -> None:
    sweep = sweep_of(log=str(log), jobs=None, sha256="0" * 64, sweep={"seed": [0]})
    with pytest.raises(WorkloadError, match="a text with SHA-256 0000"):
        list(sweep.cells())


# --- runs ------------------------------------------------------------------------------------------------


def test_cells_are_what_simulations_give(tmp_path: Path) -> None:
    """Of a generated workload, a seed makes other jobs, and a load factor scales them."""
    sweep = sweep_of(jobs=None, generate={"jobs": 90}, sweep={"seed": [1, 2], "load_factor": [1.0, 2.0]})
    frame = SweepRun(sweep, tmp_path / "out").run()
    assert len(frame) == 8
    assert frame["schedule_sha256"].nunique() > 4
    for row in frame.to_dict("records"):
        workload = Generate(jobs=90, seed=row["seed"]).workload()
        if row["load_factor"] != 1:
            workload = workload.scale_load(row["load_factor"])
        result = Simulation(workload, make(row["policy"]), seed=row["seed"]).run()
        assert row["schedule_sha256"] == result.hash
        metrics = measure(result)
        assert {name: row[name] for name in metrics} == pytest.approx(metrics, nan_ok=True, rel=1e-12)
        jobs = Sweep.load(tmp_path / "out").jobs(row["cell"])
        assert jobs["start_time"].tolist() == result.start_time.tolist()


def test_the_same_sweep_performs_nothing_and_a_larger_one_only_what_is_new(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    small = sweep_of(sweep={"seed": [0, 1]})
    first = SweepRun(small, tmp_path / "out").run(tell=lambda *numbers: told.append(numbers))
    assert told == [(done, 0, 4) for done in range(5)]
    again = SweepRun(small, tmp_path / "out").run(tell=lambda *numbers: told.append(numbers))
    assert told[5:] == [(4, 0, 4)]
    assert again.equals(first)
    SweepRun(sweep_of(sweep={"seed": [1, 2]}), tmp_path / "out").run(
        tell=lambda *numbers: told.append(numbers)
    )
    assert told[6:] == [(2, 0, 4), (3, 0, 4), (4, 0, 4)]


def test_a_saved_sweep_is_the_same_sweep(tmp_path: Path, log: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'policies = ["fcfs"]\nreport = false\n[sweep]\nlog = ["noons.swf"]\n'
        'period = { length = "2 days" }\n"policy.window" = [1, 2]\n'
    )
    sweep = Sweep.read(tmp_path / "s.toml")
    SweepRun(sweep, tmp_path / "out").run()
    saved = Sweep.read(tmp_path / "out" / "sweep.toml")
    assert [cell.name for cell in saved.cells()] == [cell.name for cell in sweep.cells()]


def test_windows_of_a_log_are_replicates(tmp_path: Path, log: Path) -> None:
    """Windows of four days after a warm-up of one: two fit twelve days; only their own jobs are measured."""
    axis = {"period": {"length": "4 days", "warmup": "1 day"}}
    sweep = sweep_of(log=str(log), jobs=None, policies=["fcfs"], sweep=axis)
    assert sweep.replicates == ["period"]
    frame = SweepRun(sweep, tmp_path / "out").run()
    assert frame["period"].tolist() == ["day 1", "day 5"]
    assert frame["jobs"].tolist() == [4, 4]
    jobs = SweepResults(tmp_path / "out").jobs(frame["cell"][1])
    assert jobs["submit_time"].tolist() == [day * DAY + DAY // 2 for day in range(4, 9)], "with the warm-up"


def test_windows_begin_at_the_first_submission(log: Path) -> None:
    """A log that begins on day 18 of its clock: before that, nothing is recorded, and there is no warm-up."""
    columns = {"submit_time": 18 * DAY + DAY * np.arange(12), "run_time": np.ones(12), "nodes": np.ones(12)}
    workload = Workload({name: np.asarray(each, int) for name, each in columns.items()}, machine_size=1)
    windows = list(Windows(4 * DAY, 4 * DAY, DAY).of(workload))
    assert [(window.begin // DAY, window.name) for window in windows] == [(19, "day 1"), (23, "day 5")]
    assert [len(window.cut(workload)) for window in windows] == [5, 5]
    with pytest.raises(UsageError, match=r"11\.0 days are too short for a window of 35\.0 days"):
        Windows(28 * DAY, 28 * DAY, 7 * DAY).of(workload)


@pytest.mark.parametrize("zone", [{}, {"UnixStartTime": "1698359400", "TimeZoneString": "Europe/Berlin"}])
@pytest.mark.parametrize("step", [1800, 3600, DAY])
def test_each_window_has_a_name_of_its_own(zone: dict[str, str], step: int) -> None:
    """Also on 29 October 2023, when half past two was twice, and a day after half past midnight was the same day."""
    submit = np.arange(0, 4 * DAY, 900)
    columns = {"submit_time": submit, "run_time": np.ones_like(submit), "nodes": np.ones_like(submit)}
    windows = Windows(1800, step, 0).of(Workload(columns, machine_size=1, header=zone))
    names = [window.name for window in windows]
    assert len({*names}) == len(names) == len(windows) == (4 * DAY - 900 - 1800) // step + 1
    first = "2023-10-27" if zone else "day 0"
    assert names[0] == (first if step == DAY else f"{first} 00:30:00 CEST" if zone else f"{first} 00:00:00")


def test_millions_of_windows_need_consent_before_they_are_planned(tmp_path: Path, log: Path) -> None:
    sweep = sweep_of(log=str(log), jobs=None, sweep={"period": {"length": "1 second"}})
    with pytest.raises(
        UsageError, match=r"^the sweep has more than 20 000 cells \(windows of a log count one"
    ):
        SweepRun(sweep, tmp_path / "out").run()
    assert not (tmp_path / "out").exists()
    assert len(Windows(1, 1, 0).of(Experiment(log=str(log)).workload())) == 11 * DAY + 1


def test_windows_begin_by_hand(log: Path) -> None:
    workload = Experiment(log=str(log), policies=["fcfs"]).workload()
    begins = [window.begin // DAY for window in Windows(3 * DAY, 2 * DAY, 0).of(workload)]
    assert begins == [0, 2, 4, 6, 8]
    with pytest.raises(UsageError, match=r"11.0 days are too short for a window of 12.0 days"):
        list(Windows(12 * DAY, DAY, 0).of(workload))


def test_a_failed_cell_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of 256 nodes does not fit 100, which `strict` makes an error of that cell."""
    sweep = sweep_of(generate={"jobs": 200}, jobs=None, strict=True, sweep={"nodes": [256, 2]})
    frame = SweepRun(sweep, tmp_path / "out").run()
    assert frame["status"].tolist() == ["done", "done", "failed", "failed"]
    assert all("the machine has 2" in reason for reason in frame["reason"][2:])
    assert frame["mean_wait_time"].isna().tolist() == [False, False, True, True]
    remarks = list(SweepResults(tmp_path / "out").remarks())
    assert remarks[0].startswith("failed: 2 of 4 cells: ")
    told: list[tuple[int, int, int]] = []
    SweepRun(sweep, tmp_path / "out").run(tell=lambda *numbers: told.append(numbers))
    assert told == [(2, 2, 4)], "it is not tried again"
    SweepRun(sweep, tmp_path / "out").run(retry=True, tell=lambda *numbers: told.append(numbers))
    assert told[1:] == [(2, 0, 4), (2, 1, 4), (2, 2, 4)], "but on demand"


def test_workers_and_shards_give_the_same_bytes(tmp_path: Path) -> None:
    sweep = sweep_of(sweep={"seed": [0, 1], "load_factor": [1.0, 2.0]})
    SweepRun(sweep, tmp_path / "one").run()
    SweepRun(sweep.model_copy(update={"workers": 2}), tmp_path / "two").run()
    for part in (3, 1, 2):
        missing = "a folder of a sweep is needed" if part == 3 else "cells are missing; run their shards"
        with pytest.raises(UsageError, match=missing):
            SweepRun(sweep, tmp_path / "parts").collect()
        SweepRun(sweep, tmp_path / "parts", shard=(part, 3)).run()
    SweepRun(sweep, tmp_path / "parts").collect()
    tables = [SweepResults(tmp_path / name).to_frame() for name in ("one", "two", "parts")]
    for table in tables[1:]:
        assert table.drop(columns="seconds").equals(tables[0].drop(columns="seconds"))
    for cell in tables[0]["cell"]:
        files = {
            (tmp_path / name / "cells" / cell / "jobs.parquet").read_bytes() for name in ("one", "parts")
        }
        assert len(files) == 1


def test_only_shards_of_the_same_number_run_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "SECONDS_TO_LOOK", 0.1)
    sweep = sweep_of(sweep={"seed": [0, 1]})

    def run(shard: tuple[int, int]) -> None:
        SweepRun(sweep, tmp_path, shard=shard).run()

    run((1, 2))
    with ResultsFolder(tmp_path).in_place(shard=(1, 2)):
        run((2, 2))
        for other in ((1, 2), (1, 3), (1, 1)):
            with pytest.raises(UsageError, match=r"another run is writing there now \(process \d+ on "):
                run(other)
    with (
        ResultsFolder(tmp_path).in_place(),
        pytest.raises(UsageError, match="another run is writing there now"),
    ):
        run((1, 2))
    (tmp_path / ".lock-3-of-4").touch()  # left by a killed process
    run((1, 1))


def test_too_many_cells_need_consent(tmp_path: Path) -> None:
    sweep = sweep_of(sweep={"seed": {"first": 0, "count": 100_000}, "load_factor": [1.0, 2.0, 3.0, 4.0, 5.0]})
    with pytest.raises(UsageError, match="the sweep has 1 000 000 cells; with --yes they run"):
        SweepRun(sweep, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_only_folders_of_sweeps_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="a new folder, or one of a sweep, is needed"):
        SweepRun(sweep_of(), tmp_path).run()
    with pytest.raises(UsageError, match="found a file"):
        SweepRun(sweep_of(), tmp_path / "thesis.tex").run()
    with pytest.raises(UsageError, match="a folder of a sweep is needed"):
        Sweep.load(tmp_path)


# --- remarks and state -----------------------------------------------------------------------------------


def test_waits_that_say_nothing(tmp_path: Path, log: Path) -> None:
    SweepRun(sweep_of(log=str(log), jobs=None, sweep={"load_factor": [1, 2.5]}), tmp_path / "out").run()
    (load,) = SweepResults(tmp_path / "out").remarks()
    assert load.startswith("load: no job waits in 2 of 4 cells")


def test_seeds_of_a_log_that_change_nothing_are_seen_by_their_schedules(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user's order it is not known whether it draws, so that it runs with each seed."""
    monkeypatch.chdir(tmp_path)
    code = "from hpcsimkit import Order\nclass By(Order):\n    def key(self, job): return job.nodes\n"
    (tmp_path / "mine.py").write_text(code)
    policies = ["fcfs", "mine.py:By"]
    given = {"log": str(log), "policies": policies, "report": False, "sweep": {"seed": [0, 1, 2]}}
    frame = SweepRun(Sweep.of_flags(given), tmp_path / "out").run()
    assert frame["policy"].tolist() == ["mine.py:By", "fcfs", "mine.py:By", "mine.py:By"]
    remarks = list(SweepResults(tmp_path / "out").remarks())
    assert remarks[1].startswith("seed: fcfs ran once: on a log, a seed changes only policies that draw")
    assert remarks[2].startswith(
        "copies: 2 cells of 4 repeat the schedule of another one and do not count (mine."
    )
    table = SweepTable.read(tmp_path / "out")
    assert table.repetitions == 1
    assert means(table, "mean_wait_time")["replicates"].tolist() == [1, 1]


def test_state_of_an_unfinished_sweep(tmp_path: Path) -> None:
    sweep = sweep_of(sweep={"seed": [0, 1, 2]})
    SweepRun(sweep, tmp_path / "out", shard=(1, 2)).run()
    cells = json.loads((tmp_path / "out" / "sweep.json").read_text())["cells"]
    for number, file in ((1, "inputs.json"), (3, "failure.json")):
        folder = tmp_path / "out" / "cells" / cells[number]
        folder.mkdir()
        write_record(folder / file, {"reason": "no luck"})
    state = SweepResults(tmp_path / "out").state()
    assert (state.completed, state.failed, state.running, state.pending) == (3, 1, 1, 1)
    assert state.reasons == {"no luck": 1}
    many = replace(state, reasons=Counter({f"reason {number}": number for number in range(1, 9)}))
    assert [*state_lines(many)][-2:] == ["4 failed: reason 4", "6 failed, for 3 other reasons"]
    assert state.rate > 0
    assert state.seconds_left == pytest.approx(2 / state.rate)


def test_undefined_metrics_are_empty(tmp_path: Path) -> None:
    frame = SweepRun(sweep_of(sweep={"warmup": [0.0]}), tmp_path / "out").run()
    assert frame["gpus_utilisation"].isna().all()
    assert math.isfinite(frame["mean_wait_time"].iloc[0])


def constructed(monkeypatch: pytest.MonkeyPatch, place: Path, axes: dict[str, Any]) -> Counter[str]:
    """How often each policy is constructed from its text while a sweep is read and run."""
    made: Counter[str] = Counter()
    construct = registry.policy_named

    def counted(name: str, *arguments: Any) -> Any:
        made[name] += 1
        return construct(name, *arguments)

    _policy.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(registry, "policy_named", counted)
        settings = {"jobs": 20, "policies": ["fcfs", "sjf+easy"], "report": False, "sweep": axes}
        frame = SweepRun(Sweep.of_flags(settings), place).run()
    assert set(frame["status"]) == {"done"}
    return made


def test_a_policy_is_constructed_once_to_be_checked_and_once_to_be_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = {"seed": {"first": 0, "count": 10}}
    assert constructed(monkeypatch, tmp_path / "a", seeds) == {"fcfs": 2, "sjf+easy": 2}
    with_loads = {**seeds, "load_factor": [1.0, 1.5]}
    assert constructed(monkeypatch, tmp_path / "b", with_loads) == {"fcfs": 2, "sjf+easy": 2}
    one, ten = ({"seed": {"first": 0, "count": count}, "policy.window": [4, 8]} for count in (1, 10))
    found = constructed(monkeypatch, tmp_path / "c", one)
    assert found["fcfs+window(4)"] == found["sjf+easy+window(8)"] == 2
    assert constructed(monkeypatch, tmp_path / "d", ten) == found


def test_a_changed_policy_of_the_user_is_not_taken_from_the_cells_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for sign in ("", "-"):
        (tmp_path / "mine.py").write_text(
            f"from hpcsimkit import Order\nclass By(Order):\n    def key(self, job): return {sign}job.nodes\n"
        )
        for name in [name for name in sys.modules if name.startswith("mine@")]:
            del sys.modules[name]
        sweep = Sweep.of_flags(
            {"jobs": 300, "policies": ["mine.py:By"], "report": False, "sweep": {"seed": [1]}}
        )
        found.append(SweepRun(sweep, tmp_path / "out").run()["schedule_sha256"][0])
    assert found[0] != found[1]
