"""Objects in notebooks and terminals: what they show, and that nothing of a log becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

import hpcsimkit as hk
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.policies import EASY, SJF

MARKUP = "<script>alert('x')</script>\"'&"
COLUMNS = {"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [2, 2, 1], "user": [0, 0, 0]}


class Nasty(SJF):
    """An order whose representation is markup."""

    def __repr__(self) -> str:
        return MARKUP


@pytest.fixture(scope="module")
def nasty() -> dict[str, Any]:
    """An object of each kind, with markup wherever a log or a user may put text."""
    workload = hk.Workload(
        {**COLUMNS, "cpus": [1, 1, 1]},
        machine_size=2,
        name=MARKUP,
        resources=("cpus",),
        labels={"user": (MARKUP,)},
    )
    plain = hk.Workload(COLUMNS, machine_size=2, name=MARKUP, labels={"user": (MARKUP,)})
    policies = {MARKUP: Nasty(), "sjf": "sjf"}
    machines = hk.Machines([MARKUP, "b"], ["cpus"], [[2], [2]], [["<b>"], []])
    result = hk.Simulation(plain, "fcfs", name=MARKUP).run()
    compared = hk.compare(plain, policies)
    return {
        "workload": workload,
        "description": workload.describe(),
        "result": result,
        "chart": result.gantt(interactive=True),
        "machines": machines,
        "partitions": Partitions([Partition(MARKUP, nodes=2)]),
        "pipeline": hk.Pipeline(order=Nasty(), backfiller=EASY()),
        "comparison": compared,
        "sweep": hk.Sweep.of(plain, policies, {"seed": [0, 1]}).run(),
    }


KINDS = (
    "workload",
    "description",
    "result",
    "chart",
    "machines",
    "partitions",
    "pipeline",
    "comparison",
    "sweep",
)


class Tags(HTMLParser):
    """The tags and the text of a page; a page within the page is opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")], "a handler of events"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_logs_are_no_markup(nasty: dict[str, Any], kind: str) -> None:
    page = nasty[kind]._repr_html_()
    if kind == "chart":
        inner = nasty[kind].page()
        assert "<script>alert" not in inner
        assert Tags(page).tags == ["iframe"]
        return
    assert "script" not in Tags(page).tags
    assert "<script" not in page
    assert "alert(" in Tags(page).text, "the text itself is shown"


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_shows_plain_text(nasty: dict[str, Any], kind: str) -> None:
    text = repr(nasty[kind])
    assert 0 < len(text) < 5000
    assert "<div" not in text
    assert " object at 0x" not in text


def test_a_workload_shows_its_size_its_load_and_first_rows() -> None:
    workload = hk.default_workload(np.random.default_rng(1), jobs=100)
    shown = Tags(workload._repr_html_())
    assert "100" in shown.text
    assert "256 nodes" in shown.text
    assert f"{workload.offered_load():.3g}" in shown.text
    assert shown.tags.count("img") == 1
    assert workload.head(3)["run_time"].tolist() == workload.run_time[:3].tolist()


def test_an_empty_workload_and_one_without_a_machine_are_shown() -> None:
    assert "unknown" in hk.Workload(COLUMNS)._repr_html_()
    empty = hk.Workload({name: [] for name in ("submit_time", "run_time", "nodes")})
    assert "img" not in Tags(empty._repr_html_()).tags


def test_a_result_of_which_nothing_ran_is_shown() -> None:
    result = hk.Simulation(
        hk.Workload({name: [] for name in ("submit_time", "run_time", "nodes")}), "fcfs", 4
    ).run()
    assert "img" not in Tags(result._repr_html_()).tags


def test_equal_machines_are_one_row() -> None:
    machines = hk.Machines.of(3, cpus=4) + hk.Machines.of(1, "gpu", cpus=4, gpus=1)
    shown = Tags(machines._repr_html_())
    assert shown.tags.count("tr") == 1 + 2 + 2, "head, two kinds, two totals"
    assert "node1 ... node3" in shown.text


def test_a_pipeline_shows_its_seats_in_their_order() -> None:
    page = hk.Pipeline(order=hk.External(), backfiller=EASY(), window=4)._repr_html_()
    boxes = re.findall(r"<b>(\w+)</b>( \(open\))?", page)
    assert boxes == [("order", " (open)"), ("start", ""), ("backfiller", "")]
    assert page.count("dashed") == 1
    assert "no backfilling" in hk.Pipeline(order=SJF())._repr_html_()


def test_results_draw_and_sum_up_themselves() -> None:
    result = hk.Simulation(hk.default_workload(np.random.default_rng(1), jobs=60), "fcfs+easy").run()
    for kind in (
        "wait",
        "wait_tail",
        "slowdown",
        "fairness",
        "start_modes",
        "gantt",
        "queue",
        "busy",
        "availability",
    ):
        assert isinstance(result.plot(kind), Axes)
    mine = pyplot.subplots()[1]
    assert result.gantt(mine) is result.queue(mine) is result.plot(ax=mine) is mine
    with pytest.raises(UsageError, match=r"unknown plot 'gant'; nearest: gantt, wait; plots are wait, "):
        result.plot("gant")
    assert result.metrics == pytest.approx(hk.measure(result), nan_ok=True)
    summary = result.summary()
    assert summary.loc["mean_wait_time", "value"] == result.metrics["mean_wait_time"]
    assert summary.loc["mean_wait_time", "unit"] == "s"
    assert not summary["value"].isna().any()


def test_workloads_draw_themselves() -> None:
    workload = hk.default_workload(np.random.default_rng(1), jobs=60)
    for kind in ("hours", "weekdays", "sizes", "durations", "accuracy", "load"):
        assert isinstance(workload.plot(kind), Axes)
    assert len(workload.plot()) == 6
    with pytest.raises(UsageError, match="a kind is needed"):
        workload.plot(ax=pyplot.subplots()[1])
    with pytest.raises(UsageError, match="the offered load needs a machine_size, found none"):
        hk.Workload(COLUMNS).plot("load")


def test_a_chart_of_all_jobs_is_a_page_without_links(tmp_path: Path) -> None:
    result = hk.Simulation(hk.Workload(COLUMNS, machine_size=2), "fcfs").run()
    page = result.gantt(interactive=True).save(tmp_path / "chart.html").read_text()
    assert 'id="zoom"' in page
    assert "src=" not in page
    assert "http" not in page
