"""Calibration: values are chosen on the first part of the record, and judged on the second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest

from hpcsimkit import Simulation, UsageError, Workload, make
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.questions.calibrate import GIVEN, Calibrated, CalibrationQuestion
from hpcsimkit.experiments.questions.question import ask
from hpcsimkit.run import app
from hpcsimkit.slurm.profile import Slurm
from tests.slurm.small import CONF, jobs, profile, run

JOBS = 120


def _recorded(jobs: Workload, wait: np.ndarray) -> Workload:
    return replace(jobs, columns={**jobs.columns, "recorded_wait_time": wait.astype(np.int64)})


def _log(period: int | None) -> Workload:
    """Jobs of a node, whose recorded waits are those of a scheduler with an interval."""
    rng = np.random.default_rng(3)
    columns = {
        "submit_time": np.sort(rng.integers(0, 40_000, JOBS)),
        "run_time": rng.integers(50, 500, JOBS),
        "nodes": rng.integers(1, 3, JOBS),
    }
    plain = Workload(columns, machine_size=2)
    return _recorded(plain, Simulation(plain, make("fcfs"), period=period).run().wait_time)


def _calibrated(jobs: Workload, policy: str = "fcfs") -> Calibrated:
    found: Calibrated = ask(CalibrationQuestion(case=Case.of(jobs, policy)))
    return found


def test_the_interval_of_the_record_is_found() -> None:
    found = _calibrated(_log(300))
    assert found.chosen == "fcfs, every 300 s"
    chosen = found.table.iloc[0]
    assert (chosen.ks_second, chosen.ratio_second, chosen.distance_second) == (0, 1, 0)
    assert (chosen.jobs_first, chosen.jobs_second) == (JOBS // 2, JOBS // 2)
    assert found.measures["ratio_as_given"] < 0.9 < found.measures["ratio_chosen"]
    assert "it is nearer to the record" in [*found.lines()][-1]


def test_the_second_part_has_no_say() -> None:
    log = _log(300)
    wait = log.recorded_wait_time.copy()
    wait[JOBS // 2 :] = 0
    found, other = _calibrated(log), _calibrated(_recorded(log, wait))
    first = ["values", "ks_first", "ratio_first", "distance_first"]
    assert found.table[first].equals(other.table[first])
    assert "it is no nearer to the record" in [*other.lines()][-1]


def test_given_values_that_are_right_are_kept() -> None:
    found: Calibrated = ask(CalibrationQuestion(case=Case.of(_log(60), "fcfs", period=60)))
    assert found.chosen == GIVEN and "the given ones are kept" in [*found.lines()][-1]


def test_backfilling_is_found() -> None:
    log = _log(None)
    recorded = Simulation(log, make("fcfs+conservative-replan")).run().wait_time
    found = _calibrated(_recorded(log, recorded), "fcfs+easy")
    distance = found.table.set_index("values").distance_first
    assert distance["fcfs+conservative-replan"] == distance.min() == 0


def test_values_of_slurm(tmp_path: Path) -> None:
    made = profile(tmp_path, conf=CONF.replace("bf_interval=15", "bf_interval=240"))
    rng = np.random.default_rng(5)
    each = [
        {"at": int(at), "run": int(run_time), "limit": 2 * int(run_time), "cpus": 8, "nodes": int(nodes)}
        for at, run_time, nodes in zip(
            np.sort(rng.integers(0, 9000, JOBS)), rng.integers(60, 400, JOBS), rng.integers(1, 3, JOBS),
            strict=True,
        )
    ]  # fmt: skip
    log = jobs(*each)
    log = _recorded(log, run(made, log).wait_time)
    (tmp_path / "slurm.conf").write_text(CONF.replace("bf_interval=15", "bf_interval=60"))
    other = Slurm.read(tmp_path)
    case = Case.of(log, other.policy, other.partitions, **other.options)
    found: Calibrated = ask(CalibrationQuestion(case=case))
    assert found.chosen == "bf_interval=240" and found.table.iloc[0].distance_second == 0
    names = {value.partition("=")[0] for values in found.parts for value in values.split(", ")}
    assert names == {GIVEN, "bf_interval", "bf_max_job_test", "default_queue_depth", "sched_interval"}


def test_a_log_that_is_too_short_is_refused() -> None:
    short = _log(60).select(np.arange(99))
    with pytest.raises(UsageError, match="needs at least 100 jobs with recorded waits, 50 for each"):
        CalibrationQuestion(case=Case.of(short, "fcfs"))


def test_the_command_writes_a_table_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = _log(300)
    lines = ["; MaxNodes: 2"]
    for row in range(JOBS):
        wait, nodes = int(log.recorded_wait_time[row]), int(log.nodes[row])
        run_time = int(log.run_time[row])
        cells = [row + 1, int(log.submit_time[row]), wait, run_time, nodes, -1, -1, nodes, run_time, -1, 1]
        lines.append(" ".join(map(str, [*cells, *[-1] * 7])))
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    app(["validate", "log.swf", "-p", "fcfs", "--calibrate", "-q", "--out", "out"], standalone_mode=False)
    table = pandas.read_csv(tmp_path / "out/calibration.csv")
    assert table["values"][0] == "fcfs, every 300 s" and table["chosen"].tolist() == [1, 0, 0, 0, 0]
    assert (tmp_path / "out/calibration.png").stat().st_size > 1000
