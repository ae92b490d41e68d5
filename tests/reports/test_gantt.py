"""Gantt charts of clusters with a calendar."""

from __future__ import annotations

from hpcsimkit import Machines, Simulation, Workload, make
from hpcsimkit.cluster.calendar import Calendar, Window
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
