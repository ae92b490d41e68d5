"""Sweeps of trainings: cells, resuming, and learning curves."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.sweep.sweep_run import SweepRun
from hpcsimkit.experiments.sweep.trainings import TrainingSweep, is_training
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.experiments.training.training_run import TrainingRun
from hpcsimkit.reports.learning_curve import read_curve
from hpcsimkit.reports.sweep.curves import draw_curves, plot_curves
from hpcsimkit.reports.sweep.table import SweepTable
from tests.cli.test_train import TINY

AXES = '[sweep]\nseed = { first = 0, count = 2 }\n"trainer.learning_rate" = [0.001, 0.02]\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(TINY + AXES)
    return tmp_path / "tiny.toml"


@pytest.mark.usefixtures("blank_pictures")
def test_cells_are_trainings(file: Path, tmp_path: Path) -> None:
    assert is_training(file)
    sweep = TrainingSweep.read(file).model_copy(update={"report": False})
    assert len(sweep) == 4
    frame = SweepRun(sweep, tmp_path / "out").run()
    assert frame["policy"].tolist() == ["learning_rate 0.001", "learning_rate 0.02"] * 2
    assert frame["seed"].tolist() == [0, 0, 1, 1]
    assert frame["baseline"].nunique() == 1
    last = frame.iloc[3]
    settings = {**sweep.model_dump(exclude_unset=True, exclude={"sweep", "report"}), "seed": 1}
    settings["trainer"] = {**settings["trainer"], "learning_rate": 0.02}
    training = Training(**settings)
    trained = TrainingRun(training, training.workloads(), tmp_path / "alone").run()
    assert last["mean_bounded_slowdown"] == trained.score
    there = tmp_path / "out" / "cells" / last["cell"] / "agent"
    for name in ("best.hpcsim", "curve.csv", "training.toml"):
        assert (there / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()

    # the table again, from agents whose outcome was not written any more; and the saved file
    (there.parent / "outcome.json").unlink()
    before = (there / "best.hpcsim").stat().st_mtime_ns
    again = SweepRun(sweep, tmp_path / "out").run()
    assert again.equals(frame)
    assert (there / "best.hpcsim").stat().st_mtime_ns == before
    saved = TrainingSweep.read(tmp_path / "out" / "sweep.toml")
    assert [cell.name for cell in saved.cells()] == frame["cell"].tolist()

    table = SweepTable.read(tmp_path / "out")
    (picture,) = draw_curves(tmp_path / "out", "agent/curve.csv", table)
    lines = {line.get_label(): line.get_ydata() for line in picture.figure.axes[0].lines}
    curves = [read_curve(tmp_path / "out" / "cells" / cell / "agent/curve.csv") for cell in frame["cell"]]
    values = [-curve["validation"][np.isfinite(curve["validation"])] for curve in curves]
    assert lines["learning_rate 0.02"] == pytest.approx((values[1] + values[3]) / 2)
    shutil.rmtree(tmp_path / "out" / "cells")
    assert not list(draw_curves(tmp_path / "out", "agent/curve.csv", table)), "nothing is left to draw"


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("slot = [1]", "unknown axis 'slot'; nearest: slots"),
        ("out = ['x']", "unknown axis 'out'"),
        ("trainer = ['ppo']", "unknown axis 'trainer'"),
        ('"seed.x" = [1]', "unknown axis 'seed.x'"),
        ("slots = [4, 0]", "slots: slots must be greater than or equal to 1, found 0"),
        ('"trainer.rate" = [1]', "trainer.rate: trainer.rate: unknown key"),
    ],
)
def test_wrong_axes(tmp_path: Path, axis: str, message: str) -> None:
    (tmp_path / "t.toml").write_text(f"{TINY}[sweep]\n{axis}\n")
    with pytest.raises(UsageError) as error:
        TrainingSweep.read(tmp_path / "t.toml")
    assert message in str(error.value)


def test_curves_of_different_lengths() -> None:
    """The band goes as far as the shortest training."""
    steps = np.array([10.0, 20.0, 30.0])
    ax = plot_curves({"ppo": [(steps, np.array([5.0, 3.0, 1.0])), (steps[:2] + 2, np.array([9.0, 4.0]))]})
    assert ax.lines[0].get_xdata().tolist() == [11, 21]
    assert ax.lines[0].get_ydata().tolist() == [7, 3.5]
    low, high = (find(ax.collections[0].get_paths()[0].vertices[:, 1]) for find in (min, max))
    assert (low, high) == (3, 9)


def test_files_that_are_no_trainings(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text("jobs = 5\n[sweep]\nseed = [1]\n")
    assert not is_training(tmp_path / "e.toml")
    (tmp_path / "e.toml").write_text("jobs = [")
    assert not is_training(tmp_path / "e.toml")
