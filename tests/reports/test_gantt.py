"""Gantt charts of clusters with a calendar, and of attempts."""

from __future__ import annotations

from hpcsimkit import Machines, Simulation, Workload, make
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.reports.gantt import plot_gantt, reserved


def test_machines_that_are_reserved_in_a_window() -> None:
    """Only reservations, cut to the window; what is gone for all is drawn as an outage."""
    jobs = Workload({"submit_time": [0], "run_time": [5], "nodes": [1], "user": [1]})
    windows = [
        Window(10, 20, machines=("node2",), users=(1,)),
        Window(15, 90, machines=("node*",), accounts=("x",)),
        Window(10, 20, machines=("node1",)),
        Window(80, 90, machines=("node1",), users=(1,)),
    ]
    result = Simulation(jobs, make("fcfs"), Machines.of(2, cpus=1), calendar=Calendar(windows)).run()
    assert reserved(result, 12, 50) == [(1, 12, 20), (0, 15, 50), (1, 15, 50)]
    dashed = [each for each in plot_gantt(result, window=(0, 100)).patches if each.get_linestyle() == "--"]
    assert len(dashed) == 4


def test_each_attempt_and_outage_is_drawn_with_a_line_where_a_job_was_stopped() -> None:
    """On two nodes, a job of 10 s is stopped at 4 s by an outage until 6 s, and runs from then to 16 s."""
    jobs = Workload({"submit_time": [0], "run_time": [10], "nodes": [2]}, machine_size=2)
    result = Simulation(jobs, make("fcfs"), outages=Outages([Outage(4, 6, nodes=1)])).run()
    axes = plot_gantt(result, window=(0, 20))
    (line,) = axes.collections
    assert [segment[:, 0].tolist() for segment in line.get_segments()] == [[4, 4]]
    drawn = [each for each in axes.patches + axes.artists if hasattr(each, "get_path")]
    (outage,) = (each.get_path().get_extents() for each in drawn if each.get_hatch())
    assert (outage.x0, outage.x1) == (4, 6)
    (attempts,) = (each.get_path() for each in drawn if not each.get_hatch())
    assert sorted(set(attempts.vertices[:, 0].tolist())) == [0, 4, 6, 16]
