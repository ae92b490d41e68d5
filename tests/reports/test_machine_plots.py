"""Pictures of schedules on machines: bands and lanes, resources over time, classes by what jobs ask for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import PathPatch, StepPatch
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.placing.placements import BestFit
from hpcsimkit.reports import figures, plots, workload_plots
from hpcsimkit.reports.gallery import draw_comparison, draw_pictures
from hpcsimkit.reports.gantt import BAND
from hpcsimkit.results.node_numbers import most_at_once
from hpcsimkit.results.result import Result

GPU_NODE = Machines.of(1, "gpu", cpus=4, gpus=2)
EDGE = (1 - BAND) / 2
"""What a band leaves free above and below."""


def ran(cluster: Machines, **columns: Any) -> Result:
    """The result of FCFS; jobs come at once and take 10 s unless columns say otherwise."""
    jobs = len(columns["cpus"])
    table = {"submit_time": [0] * jobs, "run_time": [10] * jobs, "nodes": [1] * jobs, **columns}
    resources = tuple(name for name in ("cpus", "gpus", "memory") if name in columns)
    labels = {"kind": ("dgemm", "daxpy")}
    return Simulation(Workload(table, resources=resources, labels=labels), Pipeline(), cluster).run()


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """A thousand jobs on nine machines under two policies."""
    rng = np.random.default_rng(4)
    jobs = 1000
    columns = {
        "submit_time": np.cumsum(rng.integers(0, 120, jobs)), "run_time": rng.integers(0, 9000, jobs),
        "nodes": np.ones(jobs), "cpus": rng.integers(1, 33, jobs), "memory": rng.integers(1, 64, jobs),
        "gpus": np.where(rng.random(jobs) < 0.1, rng.integers(1, 3, jobs), 0),
        "kind": rng.integers(0, 2, jobs),
    }  # fmt: skip
    labels = {"kind": ("dgemm", "daxpy")}
    workload = Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels, name="nine")
    cluster = Machines(
        [f"node{k}" for k in range(1, 10)],
        ["cpus", "gpus", "memory"],
        [[64, 0, 128]] * 6 + [[64, 8, 256]] * 3,
    )
    easy = Pipeline(backfiller=EASY(), placement=BestFit())
    return {
        "fcfs": Simulation(workload, Pipeline(), cluster, name="fcfs").run(),
        "fcfs+easy": Simulation(workload, easy, cluster, name="fcfs+easy").run(),
    }


def paths(ax: Any) -> list[PathPatch]:
    return [patch for patch in [*ax.artists, *ax.patches] if isinstance(patch, PathPatch)]


def rectangles(ax: Any) -> NDArray[np.float64]:
    """Left, bottom, right and top of every rectangle, sorted, shape (rectangles, 4)."""
    every = np.concatenate([patch.get_path().vertices.reshape(-1, 5, 2) for patch in paths(ax)])
    found = np.concatenate([every.min(axis=1), every.max(axis=1)], axis=1)
    return found[np.lexsort(found.T[::-1])]


# --- bands and lanes -----------------------------------------------------------------------------------


def test_lanes_are_as_high_as_the_largest_share() -> None:
    # half of the CPUs and no GPU; a quarter of the CPUs and half of the GPUs
    ax = plots.plot_gantt(ran(GPU_NODE, cpus=[2, 1], gpus=[0, 1]), window=(0, 20))
    expected = [[0, EDGE, 10, 0.5], [0, 0.5, 10, 1 - EDGE]]
    assert rectangles(ax) == pytest.approx(np.array(expected))


def test_jobs_that_complement_each_other_share_the_band() -> None:
    # all of the CPUs, and all of the GPUs: a share of 1 each, while both run
    ax = plots.plot_gantt(ran(GPU_NODE, cpus=[4, 0], gpus=[0, 2]), window=(0, 20))
    expected = [[0, EDGE, 10, 0.5], [0, 0.5, 10, 1 - EDGE]]
    assert rectangles(ax) == pytest.approx(np.array(expected))


def test_a_job_on_several_machines_is_in_the_band_of_each() -> None:
    result = ran(Machines.of(3, cpus=4), cpus=[4], nodes=[2])
    ax = plots.plot_gantt(result, window=(0, 10))
    expected = [[0, EDGE, 10, 1 - EDGE], [0, 1 + EDGE, 10, 2 - EDGE]]
    assert rectangles(ax) == pytest.approx(np.array(expected))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["node1", "node2", "node3"]
    assert ax.get_ylim() == (3, 0)  # the first on top


def test_a_job_without_cpus_is_there() -> None:
    ax = plots.plot_gantt(ran(GPU_NODE, cpus=[0], gpus=[1]), window=(0, 10))
    assert len(rectangles(ax)) == 1


def test_most_at_once_by_hand() -> None:
    def most(start: list[int], end: list[int], nodes: list[int]) -> int:
        return most_at_once(np.array(start), np.array(end), np.array(nodes))

    assert most([0, 5], [5, 9], [3, 4]) == 4  # the first ends before the second starts
    assert most([0, 4], [5, 9], [3, 4]) == 7
    assert most([3, 3], [3, 5], [3, 4]) == 4  # no length: gone before the second starts
    assert most([-1], [-1], [9]) == most([], [], []) == 0


def test_bands_show_what_runs(results: dict[str, Result]) -> None:
    result = results["fcfs+easy"]
    assert result.placements is not None
    begin, end = plots.busy_window(results, 300)
    ax = plots.plot_gantt(result, window=(begin, end))
    drawn = rectangles(ax)
    unit = (end - begin) / ax.get_xlim()[1]
    left, bottom, right, top = drawn.T
    machine = np.floor(bottom)
    assert (top <= machine + 1).all()
    assert set(machine.tolist()) == set(range(9))
    for number in range(9):  # at no time do two jobs have the same place
        of_machine = drawn[(machine == number) & ((right - left) * unit > 1.01 * (end - begin) / 400)]
        for at in np.linspace(0.01, ax.get_xlim()[1], 50):
            there = of_machine[(of_machine[:, 0] <= at) & (at < of_machine[:, 2])]
            there = there[np.argsort(there[:, 1])]
            assert (there[1:, 1] >= there[:-1, 3] - 1e-9).all()
    placements = result.placements
    jobs = placements.job[
        (result.start_time < end)[placements.job] & (result.end_time > begin)[placements.job]
    ]
    assert len(drawn) >= len(jobs)  # at least one rectangle a job
    assert len(paths(ax)) <= 9
    assert len(ax.get_children()) < 30


def test_machines_without_number() -> None:
    cluster = Machines.of(359, cpus=16)
    ax = plots.plot_gantt(ran(cluster, cpus=[16] * 359), window=(0, 10))
    assert len(rectangles(ax)) == 359
    assert len(ax.get_yticklabels()) <= 24
    assert ax.get_yticklabels()[1].get_text() == "node16"


# --- over time -----------------------------------------------------------------------------------------


def test_resource_over_time_by_hand() -> None:
    # job 1 has all CPUs for 10 s, so that both GPUs are of no use to job 2, which has one for 10 s then
    result = ran(GPU_NODE, cpus=[4, 1], gpus=[0, 1])
    edges = np.array([0.0, 10, 20, 40])
    ax = plots.plot_resource(result, "gpus", edges=edges)
    patches = [patch for patch in [*ax.artists, *ax.patches] if isinstance(patch, StepPatch)]
    assert patches[0].get_data().values.tolist() == [0, 50, 0]
    top, _, base = patches[-1].get_data()
    assert (np.asarray(base).tolist(), top.tolist()) == ([0, 50, 0], [100, 50, 0])
    assert patches[-1].get_hatch()
    assert ax.get_ylabel() == "GPUs busy [%]"
    cpus = plots.plot_resource(result, "cpus", edges=edges)
    drawn = [patch for patch in [*cpus.artists, *cpus.patches] if isinstance(patch, StepPatch)]
    assert drawn[0].get_data().values.tolist() == [100, 25, 0]
    assert not any(patch.get_hatch() for patch in drawn)


# --- the gallery ---------------------------------------------------------------------------------------


def test_every_picture_speaks_of_machines(results: dict[str, Result]) -> None:
    pictures = {picture.name: picture for picture in draw_pictures(results)}
    assert list(pictures) == [
        "wait_time", "slowdown", "classes", "difference", "over_time", "gantt", "start_modes",
    ]  # fmt: skip
    headings = [text.get_text() for text in pictures["over_time"].figure.texts]
    assert headings == ["Jobs waiting", "CPUs busy [%]", "GPUs busy [%]", "Memory busy [%]"]
    assert [ax.get_title(loc="left") for ax in pictures["classes"].figure.axes] == [
        "By size of the job [CPUs]", "By run time of the job", "By use of GPUs", "By kind of work",
    ]  # fmt: skip
    assert "band of its machine" in pictures["gantt"].reading
    for picture in pictures.values():
        assert not re.search(r"\bnodes?\b", picture.reading + picture.caption)
        svg = figures.inline_svg(picture.figure, picture.name, picture.title)
        assert "http" not in svg
        for drawn, _, _ in figures.PALETTE.values():
            assert drawn not in svg


def test_what_says_nothing_is_left_out() -> None:
    result = ran(Machines.of(2, cpus=4), cpus=[1, 2])
    pictures = {picture.name: picture for picture in draw_pictures({"x": result})}
    titles = [ax.get_title(loc="left") for ax in pictures["classes"].figure.axes]
    assert titles == ["By size of the job [CPUs]"]
    assert [text.get_text() for text in pictures["over_time"].figure.texts] == [
        "Jobs waiting",
        "CPUs busy [%]",
    ]
    assert "GPU" not in pictures["over_time"].reading
    assert "the whole run" in pictures["gantt"].caption


def test_comparison_on_machines(results: dict[str, Result]) -> None:
    metrics = {name: {"mean_wait_time": 9.0, "mean_bounded_slowdown": 2.0} for name in results}
    figure = draw_comparison(results, metrics)
    charts = [ax for ax in figure.axes if ax.get_title(loc="left").startswith("A busy window")]
    assert [ax.get_yticklabels()[0].get_text() for ax in charts] == ["node1", "node1"]


# --- workloads -----------------------------------------------------------------------------------------


def test_sizes_of_jobs_that_ask_for_resources() -> None:
    columns = {
        "submit_time": [0, 3600, 7200], "run_time": [100, 50, 100], "nodes": [1, 2, 2], "gpus": [4, 4, 4],
        "spread": [0, 0, 1],
    }  # fmt: skip
    workload = Workload(columns, resources=("gpus",))
    ax = workload_plots.plot_sizes(workload)  # 4, 8 and 4 GPUs in all
    heights = [bar.get_height() for box in ax.containers for bar in box.patches]
    assert heights == pytest.approx([0, 0, 200 / 3, 100 / 3, 0, 0, 200 / 3, 100 / 3])
    assert ax.get_xlabel() == "GPUs (classes by powers of two)"
    figure = workload_plots.draw_workload(workload, 8)
    assert figure.get_suptitle() == "workload: 3 jobs, 8 GPUs"
