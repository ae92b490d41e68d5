"""Pictures: what is drawn is what happened, nothing leaks, nothing is one artist a job."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import PathPatch, StepPatch
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.reports import figures, plots, workload_plots
from hpcsimkit.reports.difference import plot_changes
from hpcsimkit.reports.gallery import draw_comparison, draw_pictures
from hpcsimkit.reports.learning_curve import plot_validation
from hpcsimkit.reports.time_plots import bin_means
from hpcsimkit.results.difference import compare_results
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import default_workload


def outcome(
    submit: list[int], start: list[int], run: list[int], *, nodes: list[int] | None = None, size: int = 100,
    mode: list[int] | None = None, user: list[int] | None = None,
) -> Result:  # fmt: skip
    """A result written down by hand; a start of -1 is a rejected job."""
    jobs = len(submit)
    columns: dict[str, list[int]] = {"submit_time": submit, "run_time": run, "nodes": nodes or [1] * jobs}
    if user is not None:
        columns["user"] = user
    begin = np.array(start)
    end = np.where(begin < 0, -1, begin + np.array(run))
    modes = np.array(mode if mode is not None else [1 if s >= 0 else 0 for s in start], dtype=np.uint8)
    workload = Workload(columns, machine_size=size)
    return Result(workload, "by hand", size, np.array(submit), begin, end, modes, np.zeros(jobs, dtype=bool))


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Two policies on a small workload, and users that were made up."""
    made = default_workload(np.random.default_rng(3), jobs=400)
    workload = Workload({**made.columns, "user": np.arange(400) % 7}, machine_size=256, name="small")
    easy = Pipeline(backfiller=EASY())
    return {
        "fcfs": Simulation(workload, Pipeline(), name="fcfs").run(),
        "fcfs+easy": Simulation(workload, easy, name="fcfs+easy").run(),
    }


# --- distributions -------------------------------------------------------------------------------------


def test_wait_by_hand() -> None:
    result = outcome([0, 0, 0, 0], [0, 0, 5, 20], [9, 9, 9, 9])
    line = plots.plot_wait({"x": result}).lines[0]
    assert line.get_xdata().tolist() == [0, 5, 20, 20]
    assert line.get_ydata().tolist() == [50, 75, 100, 100]
    assert line.get_drawstyle() == "steps-post"


def test_zero_wait_has_a_place_on_the_axis() -> None:
    ax = plots.plot_wait({"x": outcome([0, 0], [0, 1000], [1, 1])})
    left, second = ax.transData.transform([(0, 0), (1, 0)])[:, 0]
    assert second > left + 5
    assert [text.get_text() for text in ax.get_xticklabels()][:3] == ["0", "1 s", "10 s"]


def test_wait_tail_by_hand() -> None:
    result = outcome([0] * 4, [0, 2, 5, 20], [9] * 4)
    line = plots.plot_wait_tail({"x": result}).lines[0]
    assert line.get_xdata().tolist() == [2, 5, 20]
    assert line.get_ydata() == pytest.approx([50, 25, 0], abs=1e-6)


def test_rejected_jobs_are_not_drawn() -> None:
    line = plots.plot_wait({"x": outcome([0, 0], [-1, 5], [9, 9])}).lines[0]
    assert line.get_ydata().tolist() == [0, 100, 100]


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=2000))
def test_every_point_of_a_curve_is_exact(values: list[int]) -> None:
    at, share = plots.cumulative(np.array(values, dtype=float))
    assert len(at) <= plots.POINTS + 2
    assert at[-1] == max(values)
    assert (np.diff(at) > 0).all()
    exact = [(np.array(values) <= x).mean() for x in at]
    assert share == pytest.approx(exact)


def test_thinned_curve_keeps_both_ends() -> None:
    values = np.arange(100_000, dtype=float)
    at, _ = plots.cumulative(values)
    assert set(range(10)) <= set(at.tolist())
    assert set(range(99_995, 100_000)) <= set(at.tolist())


def test_slowdown_by_hand() -> None:
    # run 10 s each: bounded slowdowns 1, 2, 3, 4, 90
    ax = plots.plot_slowdown({"x": outcome([0] * 5, [0, 10, 20, 30, 890], [10] * 5)})
    drawn = [np.unique(line.get_xdata()).tolist() for line in ax.lines]
    assert [1 + 0.2, 4 + 0.8 * 86] in [pytest.approx(x) for x in drawn]  # 5th and 95th percentile
    assert [3] in drawn  # median
    assert [90] in drawn  # maximum
    assert [20] in drawn  # mean
    assert {(box.get_x(), box.get_width()) for box in ax.patches} == {(2, 2)}


def test_ticks_of_slowdowns_that_are_close_together_are_plain_numbers() -> None:
    """All between 1 and 3, so that ticks between powers of ten are labelled, too."""
    ax = plots.plot_slowdown({"x": outcome([0] * 3, [0, 10, 20], [10] * 3)})
    ax.figure.canvas.draw()
    labels = [each.get_text() for each in ax.get_xticklabels(which="both")]
    assert {"1", "2"} <= set(labels)
    assert not any("$" in label for label in labels)


def test_ticks_of_validations_that_are_far_apart_are_plain_numbers() -> None:
    curve = {"steps": np.array([1.0, 2.0, 3.0]), "validation": -np.array([1.5, 5.0, 900.0])}
    ax = plot_validation(curve, "mean_wait_time", baselines={"fcfs": 3.0})
    ax.figure.canvas.draw()
    labels = [each.get_text() for each in ax.get_yticklabels(which="both")]
    assert {"10", "100"} <= set(labels)
    assert not any("$" in label for label in labels)


def test_user_slowdowns_by_hand() -> None:
    result = outcome([0] * 4, [0, 10, 40, 30], [10] * 4, user=[7, 7, 3, -1])
    assert plots.user_slowdowns(result).tolist() == [5.0, 1.5]  # users 3 and 7; unknown ones left out


def test_fairness_draws_a_dot_a_user() -> None:
    result = outcome([0] * 4, [0, 10, 40, 30], [10] * 4, user=[7, 7, 3, 9])
    dots = [line for line in plots.plot_fairness({"x": result}).lines if line.get_marker() == "o"]
    assert [sorted(line.get_xdata().tolist()) for line in dots] == [[1.5, 4.0, 5.0]]


# --- classes and shares --------------------------------------------------------------------------------


def test_start_modes_by_hand() -> None:
    result = outcome([0] * 5, [0, 1, 2, 3, -1], [1] * 5, mode=[1, 3, 3, 2, 0])
    ax = plots.plot_start_modes({"x": result})
    bars = [(container.get_label(), container.patches[0]) for container in ax.containers]
    drawn = {label: (bar.get_x(), bar.get_width()) for label, bar in bars}
    assert drawn == {"ready": (0, 25), "reserved": (25, 25), "backfilled": (50, 50)}


def test_heat_map_is_stronger_where_larger() -> None:
    ax = plots.plot_heat_map({"a": [0.0, 3600.0], "b": [60.0, float("nan")]}, ["small", "large"])
    opacity = ax.collections[0].get_facecolor()[:, 3]
    assert opacity[0] < opacity[2] < opacity[1]
    assert opacity[3] == 0
    assert [text.get_text() for text in ax.texts] == ["0 s", "1 h", "1 min", "-"]


@pytest.mark.parametrize(
    ("values", "scale"), [([2.0, 4.0], "linear"), ([1.0, 40.0], "log"), ([0.0, 4.0], "linear")]
)
def test_values_have_bars_only_on_an_axis_with_a_zero(values: list[float], scale: str) -> None:
    ax = plots.plot_values(dict(zip("ab", values, strict=True)))
    assert ax.get_xscale() == scale
    assert len(ax.patches) == (2 if scale == "linear" else 0)
    if scale == "linear":
        assert ax.get_xlim()[0] == 0


# --- over time -----------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=30),
    st.integers(1, 40),
    st.integers(-20, 20),
)
def test_bin_means_are_exact(changes: list[tuple[int, int]], bins: int, shift: int) -> None:
    time = np.cumsum([gap for gap, _ in changes])
    value = np.array([level for _, level in changes])
    edges = np.arange(bins + 1) * 7.0 + shift
    instants = np.arange(edges[0], edges[-1])  # whole seconds: what holds in [t, t + 1)
    place = np.searchsorted(time, instants, side="right")
    each = np.where(place > 0, value[np.maximum(place, 1) - 1], 0)
    assert bin_means(time, value, edges) == pytest.approx(each.reshape(bins, 7).mean(axis=1))


def test_queue_and_busy_by_hand() -> None:
    result = outcome([0, 0], [0, 10], [10, 10], nodes=[4, 2], size=8)
    edges = np.array([0.0, 5.0, 10.0, 20.0])
    queue, busy = plots.plot_queue(result, edges=edges), plots.plot_busy(result, edges=edges)
    drawn = [next(p for p in [*ax.artists, *ax.patches] if isinstance(p, StepPatch)) for ax in (queue, busy)]
    assert drawn[0].get_data().values.tolist() == [1, 1, 0]
    assert drawn[1].get_data().values.tolist() == [50, 50, 25]


def rectangles(ax: Any) -> NDArray[np.float64]:
    """Left, bottom, right and top of every rectangle of a Gantt chart, shape (rectangles, 4)."""
    corners = [patch.get_path().vertices.reshape(-1, 5, 2) for patch in _paths(ax) if len(patch.get_path())]
    every = np.concatenate(corners)
    return np.concatenate([every.min(axis=1), every.max(axis=1)], axis=1)


def _paths(ax: Any) -> list[PathPatch]:
    return [patch for patch in [*ax.artists, *ax.patches] if isinstance(patch, PathPatch)]


def test_gantt_shows_the_busy_nodes(results: dict[str, Result]) -> None:
    result = results["fcfs+easy"]
    begin, end = plots.busy_window(results, 100)
    ax = plots.plot_gantt(result, window=(begin, end))
    unit = (end - begin) / ax.get_xlim()[1]
    left, bottom, right, top = rectangles(ax).T
    assert (bottom >= 0).all()
    assert (top <= result.size).all()
    long = (right - left) * unit > 1.01 * (end - begin) / 400  # shorter ones are drawn longer than they are
    inside = (result.start_time < end) & (result.end_time > begin)
    length = np.minimum(result.end_time, end) - np.maximum(result.start_time, begin)
    area = (length * result.workload.nodes)[inside & (length > 1.01 * (end - begin) / 400)].sum()
    assert ((right - left) * (top - bottom) * unit)[long].sum() == pytest.approx(area)
    assert area > 0


def test_gantt_never_gives_a_node_to_two_jobs(results: dict[str, Result]) -> None:
    result = results["fcfs"]
    begin, end = plots.busy_window(results, 100)
    ax = plots.plot_gantt(result, window=(begin, end))
    shortest = ax.get_xlim()[1] / 400
    drawn = rectangles(ax)
    long = drawn[drawn[:, 2] - drawn[:, 0] > 1.01 * shortest]
    for a, b in combinations(long, 2):
        apart = a[2] <= b[0] + 1e-9 or b[2] <= a[0] + 1e-9 or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (a, b)


def test_gantt_draws_a_few_paths_a_mode_and_not_an_artist_a_job(results: dict[str, Result]) -> None:
    result = results["fcfs+easy"]
    begin, end = int(result.submit_time.min()), int(result.end_time.max())
    ax = plots.plot_gantt(result, window=(begin, end))
    assert 3 <= len(_paths(ax)) <= 9
    assert len(rectangles(ax)) >= len(result)
    assert len(ax.get_children()) < 30


def test_gantt_colours_by_start_mode() -> None:
    result = outcome([0] * 4, [0] * 4, [10] * 4, mode=[1, 2, 3, 4], size=4)
    ax = plots.plot_gantt(result, window=(0, 10))
    drawn = {matplotlib.colors.to_hex(p.get_facecolor()): p.get_path().vertices[0, 1] for p in _paths(ax)}
    ready, reserved, backfilled, tested = figures.MODE_COLOURS.values()
    assert drawn == {ready: 0, reserved: 1, backfilled: 2, tested: 3}


def test_busy_window_by_hand() -> None:
    # ten stretches of 4 jobs, a minute apart; the k-th waits k s a job
    submit = [60 * stretch + job for stretch in range(10) for job in range(4)]
    start = [at + at // 60 for at in submit]
    begin, end = plots.busy_window({"x": outcome(submit, start, [1] * 40)}, jobs=4)
    assert 8 * 60 <= begin < end
    assert end - begin >= 3  # four jobs


def test_busy_window_of_a_small_log_is_all_of_it() -> None:
    result = outcome([5, 6, 7], [5, 50, -1], [40, 10, 9])
    assert plots.busy_window({"x": result}, jobs=12) == (5, 60)
    assert plots.busy_window({"x": result}, jobs=8) != (5, 60)


def test_busy_window_of_a_burst_is_long_enough_to_see_jobs() -> None:
    result = outcome([5] * 8, [5 + 100 * job for job in range(8)], [100] * 8)
    assert plots.busy_window({"x": result}, jobs=8) == (5, 205)


# --- all of them ---------------------------------------------------------------------------------------


def test_every_picture_is_drawn(results: dict[str, Result]) -> None:
    pictures = list(draw_pictures(results))
    assert [picture.name for picture in pictures] == [
        "wait_time", "slowdown", "classes", "groups", "difference", "over_time", "gantt", "start_modes", "fairness",
    ]  # fmt: skip
    for picture in pictures:
        assert picture.reading.endswith(".")
        assert picture.caption.endswith(".")


def test_long_names_of_policies_leave_room_for_the_plots(results: dict[str, Result]) -> None:
    """With names of 110 letters, all axes are as wide as with short ones, but for the labels of rows."""
    number = ",".join(f"parameter{place}=0.12345" for place in range(4))
    long = {f"{name}({number})+history": result for name, result in results.items()}
    for short, picture in zip(draw_pictures(results), draw_pictures(long), strict=True):
        widths = []
        for each in (short, picture):
            each.figure.draw_without_rendering()
            widths.append([ax.get_window_extent().width for ax in each.figure.axes])
        assert np.all(np.array(widths[1]) >= 0.6 * np.array(widths[0])), picture.name


def test_no_fairness_without_users() -> None:
    names = [picture.name for picture in draw_pictures({"x": outcome([0, 1], [0, 9], [9, 9])})]
    assert "fairness" not in names
    assert "slowdown" in names


def test_nothing_to_draw_if_nothing_ran() -> None:
    assert list(draw_pictures({"x": outcome([0], [-1], [9])})) == []


def test_policies_have_the_same_colour_in_every_picture(results: dict[str, Result]) -> None:
    expected = [line.colour for line in figures.line_styles(results).values()]
    assert [line.get_color() for line in plots.plot_wait(results).lines] == expected
    assert [line.get_color() for line in plots.plot_wait_tail(results).lines] == expected
    boxes = plots.plot_slowdown(results).patches
    assert [matplotlib.colors.to_hex(box.get_edgecolor()) for box in boxes[::2]] == expected


def test_32_policies_can_be_told_apart() -> None:
    lines = figures.line_styles(str(number) for number in range(32)).values()
    assert len({(line.colour, str(line.dash)) for line in lines}) == 32


def test_drawing_on_given_axes_and_no_others(results: dict[str, Result]) -> None:
    for draw in (plots.plot_wait, plots.plot_wait_tail, plots.plot_slowdown, plots.plot_start_modes):
        left, right = figures.new_figure(rows=1, columns=2).axes
        assert draw(results, left) is left
        assert not right.has_data()


def test_matplotlib_is_left_as_it_was(results: dict[str, Result], tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    for picture in draw_pictures(results):
        figures.inline_svg(picture.figure, picture.name, "x")
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys; from hpcsimkit.reports import figures, plots, workload_plots, gallery, report;"
        "assert 'matplotlib' not in sys.modules, 'loaded by an import';"
        "figures.save_figure(figures.new_figure(), sys.argv[1]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "x.png"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_are_written_as_they_are(results: dict[str, Result]) -> None:
    name = "my_module:Policy($a^2$) <&>"
    picture = next(draw_pictures({name: results["fcfs"]}))
    svg = figures.inline_svg(picture.figure, "x", name)
    assert "my_module:Policy($a^2$) &lt;&amp;&gt;" in svg


def test_comparison_draws_two_schedules_and_two_metrics(results: dict[str, Result]) -> None:
    metrics = {
        name: {"mean_wait_time": wait, "mean_bounded_slowdown": 2.0}
        for name, wait in zip(results, (9.0, 5.0), strict=True)
    }
    titles = [ax.get_title(loc="left") for ax in draw_comparison(results, metrics).axes]
    assert sorted(titles) == [
        "A busy window: fcfs", "A busy window: fcfs+easy", "Mean bounded slowdown", "Mean wait", "Wait time of all jobs",
    ]  # fmt: skip


# --- in a column of a paper ------------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [50, 20_000, 3_000_000, 30_000_000])
def test_labels_do_not_collide_at_column_width(longest: int) -> None:
    day = 846_374_400
    result = outcome([0, 0, 90_000], [0, longest, 90_000], [30, 30, 30])
    header = {"UnixStartTime": str(day), "TimeZoneString": "Europe/Stockholm"}
    result = dataclasses.replace(result, workload=dataclasses.replace(result.workload, header=header))
    for draw in (plots.plot_wait, plots.plot_wait_tail, plots.plot_slowdown):
        check_labels(draw({"x": result}, figures.new_figure(3.4, 2.4).axes[0]))
    check_labels(plots.plot_gantt(result, figures.new_figure(3.4, 2.4).axes[0]))
    moves = {"x": compare_results(result, outcome([0] * 3, [0, 0, 90_000], [30] * 3))}
    check_labels(plot_changes(moves, figures.new_figure(3.4, 2.4).axes[0]))


def check_labels(ax: Any) -> None:
    """No label of a horizontal axis touches the next one or leaves the figure."""
    figure = ax.figure
    figure.draw_without_rendering()
    labels = [text for text in ax.get_xticklabels() if text.get_text()]
    boxes = sorted((text.get_window_extent() for text in labels), key=lambda box: box.x0)
    assert len(boxes) > 1
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes)), [text.get_text() for text in labels]
    title = ax.xaxis.label.get_window_extent()
    assert 0 <= title.x0 < title.x1 <= figure.bbox.x1, ax.get_xlabel()


# --- saving --------------------------------------------------------------------------------------------


def test_numbers_in_texts_keep_their_digits() -> None:
    figure = figures.new_figure()
    figure.axes[0].set_title("learning rate 0.0003")
    svg = figures.inline_svg(figure, "x", "x")
    assert ">learning rate 0.0003<" in svg
    assert not re.search(r'd="[^"]*\d\.\d{3}', svg)


def test_inline_svg_stands_alone(results: dict[str, Result]) -> None:
    for picture in draw_pictures(results):
        svg = figures.inline_svg(picture.figure, picture.name, 'a "title"')
        assert "http" not in svg
        assert "<style" not in svg
        assert svg.startswith('<svg role="img" aria-label="a &quot;title&quot;"')
        identifiers = re.findall(r'id="([^"]*)"', svg)
        assert len(set(identifiers)) == len(identifiers)
        assert set(re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', svg)) <= {(i, "") for i in identifiers} | {
            ("", i) for i in identifiers
        }
        for drawn, _, _ in figures.PALETTE.values():
            assert drawn not in svg


def test_equal_figures_give_equal_files(results: dict[str, Result], tmp_path: Path) -> None:
    files = []
    for name in ("a.svg", "b.svg"):
        files.append(figures.save_figure(plots.plot_wait(results).figure, tmp_path / name).read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize(("name", "begin"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml"), ("x.PDF", b"%PDF")])
def test_save_figure(name: str, begin: bytes, tmp_path: Path) -> None:
    assert figures.save_figure(figures.new_figure(), tmp_path / name).read_bytes().startswith(begin)


def test_save_figure_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"x\.jpg: a picture needs the ending \.png, \.svg or \.pdf, found '\.jpg'"
    ):
        figures.save_figure(figures.new_figure(), tmp_path / "x.jpg")
    with pytest.raises(WorkloadError, match="cannot be written"):
        figures.save_figure(figures.new_figure(), tmp_path / "missing" / "x.png")


# --- workloads -----------------------------------------------------------------------------------------

FOUR = Workload(
    {
        "submit_time": [0, 3600, 3600, 7200],
        "run_time": [100, 50, 0, 300],
        "requested_time": [100, 100, 100, 200],
        "nodes": [1, 2, 3, 8],
    },
    machine_size=10,
)


def heights(ax: Any, label: str | None = None) -> list[float]:
    bars = [bar for box in ax.containers if label in (None, box.get_label()) for bar in box.patches]
    return [bar.get_height() for bar in bars]


def test_arrivals_by_hand() -> None:
    hours = heights(workload_plots.plot_hours(FOUR))
    assert (hours[:4], sum(hours)) == ([25, 50, 25, 0], 100)
    assert heights(workload_plots.plot_weekdays(FOUR)) == [100, 0, 0, 0, 0, 0, 0]


def test_sizes_by_hand() -> None:
    ax = workload_plots.plot_sizes(FOUR)
    assert heights(ax, "of the jobs") == [25, 25, 25, 25]
    assert heights(ax, "of the work") == pytest.approx([100 / 26, 100 / 26, 0, 2400 / 26])


def test_accuracy_by_hand() -> None:
    drawn = heights(workload_plots.plot_accuracy(FOUR))  # 1, 0.5, 0, 1.5
    assert {round(0.05 * place, 2): height for place, height in enumerate(drawn) if height} == {
        0: 25,
        0.5: 25,
        1: 50,
    }


def test_durations_by_hand() -> None:
    run, requested = workload_plots.plot_durations(FOUR).lines
    assert (run.get_xdata().tolist(), run.get_ydata().tolist()) == ([0, 50, 100, 300], [25, 50, 75, 100])
    assert (requested.get_xdata().tolist(), requested.get_ydata().tolist()) == ([0, 100, 200], [0, 75, 100])


def test_offered_load_adds_up() -> None:
    workload = default_workload(np.random.default_rng(2), jobs=1000)
    ax = workload_plots.plot_offered_load(workload, machine_size=256)
    values, edges, _ = next(patch for patch in ax.patches if isinstance(patch, StepPatch)).get_data()
    length = np.diff(np.minimum(edges * 86_400, workload.span))
    assert float((values * length).sum()) / workload.span == pytest.approx(workload.offered_load())


@pytest.mark.parametrize(
    ("columns", "size", "reason"),
    [
        ({"submit_time": [0, 9], "run_time": [5, 5], "nodes": [1, 1]}, None, "names\nno machine size"),
        ({"submit_time": [4, 4], "run_time": [5, 5], "nodes": [1, 1]}, 4, "at one instant"),
    ],
)
def test_unknown_load_is_said(columns: dict[str, Any], size: int | None, reason: str) -> None:
    figure = workload_plots.draw_workload(Workload(columns, machine_size=size))
    assert any(reason in text.get_text() for text in figure.axes[-1].texts)


def test_empty_workload_is_refused() -> None:
    empty = Workload({"submit_time": [], "run_time": [], "nodes": []}, machine_size=4)
    with pytest.raises(WorkloadError, match="at least one job"):
        workload_plots.draw_workload(empty)


def test_real_log(shared: Path, tmp_path: Path) -> None:
    from hpcsimkit.workloads import read_swf

    workload = read_swf(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz")
    ax = workload_plots.plot_weekdays(workload)
    weekend, week = sum(heights(ax)[5:]) / 2, sum(heights(ax)[:5]) / 5
    assert weekend < 0.7 * week
    file = figures.save_figure(workload_plots.draw_workload(workload), tmp_path / "kth.png")
    assert file.stat().st_size > 10_000
