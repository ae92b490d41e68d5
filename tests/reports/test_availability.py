"""Pictures of capacity that changes and of jobs with several attempts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import make
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partition_files import partitions_of_tables
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.reports import plots
from hpcsimkit.reports.availability import draw_availability, plot_availability
from hpcsimkit.reports.gallery import draw_pictures
from hpcsimkit.reports.partition_plots import draw_partitions
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result

EDGES = np.array([0.0, 10.0, 20.0, 30.0, 40.0])


def job(**columns: Any) -> Workload:
    jobs = len(columns["run_time"])
    return Workload({"submit_time": [0] * jobs, "nodes": [1] * jobs, **columns}, machine_size=4)


def bands(result: Result) -> list[list[float]]:
    """The heights of the bands, from below."""
    ax = plot_availability(result, edges=EDGES)
    drawn = [patch.get_data() for patch in ax.patches]
    return [(each.values - each.baseline).tolist() for each in drawn]


def test_what_worked_what_was_lost_and_what_was_out_of_order() -> None:
    # All four nodes for 15 s, hit after 10 s; two of them are gone from 10 to 20, so that it starts anew at 20.
    outages = Outages([Outage(10, 20, nodes=2)])
    result = Simulation(job(run_time=[15], nodes=[4]), make("fcfs"), outages=outages).run()
    assert bands(result) == [[0, 0, 100, 50], [100, 0, 0, 0], [0, 50, 0, 0]]  # kept, lost, down


def test_what_is_reserved_is_outlined() -> None:
    log = Workload(
        {"submit_time": [0], "run_time": [40], "nodes": [1], "gpus": [1], "user": [1]}, resources=("gpus",)
    )
    calendar = Calendar([Window(20, 30, machines=("node2",), users=(7,))])
    ax = plot_availability(
        Simulation(log, make("fcfs"), Machines.of(2, gpus=4), calendar=calendar).run(), edges=EDGES
    )
    (line,) = [patch for patch in ax.patches if not patch.get_fill()]
    assert line.get_data().values.tolist() == [100, 100, 50, 100]


def test_without_any_change_there_is_no_picture() -> None:
    log = job(run_time=[15, 5], nodes=[4, 1])
    plain = Simulation(log, make("fcfs")).run()
    assert draw_availability({"fcfs": plain}) is None
    failing = Simulation(log, make("fcfs"), outages=Outages([Outage(10, 20, nodes=2)])).run()
    names = [picture.name for picture in draw_pictures({"fcfs": plain, "failing": failing})]
    assert "availability" in names


@pytest.fixture
def preempted() -> Result:
    """Four GPUs: a job of 10 s gives way to one of 4 s from 2 to 6, and ends at 14; nothing is idle."""
    columns = {"submit_time": [0, 2], "run_time": [10, 4], "nodes": [1, 1], "gpus": [4, 4]}
    log = Workload(columns, resources=("gpus",))
    return Simulation(log, make("oracle-srtf"), Machines.of(1, gpus=4)).run()


def test_resources_are_those_of_all_attempts(preempted: Result) -> None:
    ax = plots.plot_resource(preempted, "gpus", edges=np.array([0.0, 2.0, 6.0, 14.0]))
    (drawn,) = {tuple(patch.get_data().values) for patch in ax.patches}
    assert drawn == (100, 100, 100)


def test_partitions_show_all_attempts() -> None:
    columns = {"submit_time": [0, 2, 0], "run_time": [10, 4, 14], "nodes": [1] * 3, "gpus": [4, 4, 4]}
    log = Workload(
        {**columns, "queue": [0, 0, 1], "qos": [0, 1, 0]}, resources=("gpus",), labels={"queue": ("a", "b")}
    )
    tables = [{"name": "a", "machines": ["n1"]}, {"name": "b", "machines": ["n2"]}]
    partitions = partitions_of_tables(tables, Machines.of(2, "n", gpus=4), "queue")
    result = Simulation(log, make("fcfs+preempt(by=qos)"), partitions).run()
    picture = draw_partitions({"preempt": result})
    assert picture is not None
    lines = [patch.get_data().values for patch in picture.figure.axes[1].patches]
    assert lines[0].max() == pytest.approx(50)


def test_gpus_that_are_out_of_order_are_not_free() -> None:
    columns = {"submit_time": [0, 0], "run_time": [20, 20], "nodes": [1, 1], "gpus": [2, 4]}
    log = Workload(columns, resources=("gpus",))
    outages = Outages([Outage(0, 20, machines=("small1",))])
    machines = Machines.of(1, "large", gpus=4) + Machines.of(1, "small", gpus=2)
    result = Simulation(log, make("fcfs"), machines, outages=outages).run()
    assert result.start_time.tolist() == [0, 20]
    # Until 20, 2 GPUs of the large machine are of no use for the half of the jobs that asks for 4, and those
    # of the small one are out of order; then the large one is full, and the small one is of no use for that half.
    assert measure(result, names=["gpu_fragmentation"])["gpu_fragmentation"] == pytest.approx(1 / 6)
