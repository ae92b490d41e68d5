"""Plots show in a fresh notebook: without %matplotlib, without plt.show(), whatever a plot is given."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tests.notebooks import kinds_of, run_cells

SETUP = """
import numpy as np
from hpcsimkit import Simulation, default_workload
from hpcsimkit.reports.plots import plot_gantt, plot_queue, plot_wait
workload = default_workload(np.random.default_rng(1), jobs=100)
results = [Simulation(workload, name).run() for name in ("fcfs", "fcfs+easy")]
"""

PLOTS = {
    "a result": "plot_wait(results[0]);",
    "several": "plot_queue(results);",
    "a mapping": "plot_gantt({'a': results[0], 'b': results[1]});",
    "not the last line": "ax = plot_gantt(results[0])\nx = 1",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    _, *shown = run_cells([SETUP, *PLOTS.values()], tmp_path_factory.mktemp("notebook"))
    return dict(zip(PLOTS, shown, strict=True))


@pytest.mark.parametrize("what", PLOTS)
def test_a_plot_is_a_picture_in_a_fresh_kernel(outputs: dict[str, list[Any]], what: str) -> None:
    assert len(outputs[what]) == 1, "exactly one picture"
    assert "image/png" in kinds_of(outputs[what])
