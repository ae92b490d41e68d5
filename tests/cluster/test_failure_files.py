"""Failure logs: tables, what Slurm prints of its events, and the failure data of LANL."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit import Machines, Nodes, Simulation, Workload, make
from hpcsimkit.cluster.failure_files import FailureLog, read_failures
from hpcsimkit.cluster.outages import Outage
from hpcsimkit.errors import HpcsimkitError
from tests.fuzz.seeds import EVENTS, FAILURES, LANL, RULED_EVENTS
from tests.kernel.machine_helpers import asked, jobs_on_machines

EIGHT = 1706774400
"""1 February 2024, 8:00, in seconds of local time since 1970."""

CLUSTER = Machines(["node1", "node2", "gpu1"], ["cpus"], [[4], [4], [4]])


def read(folder: Path, text: str, **options: str) -> FailureLog:
    (folder / "failures.csv").write_text(text)
    return read_failures(folder / "failures.csv", **options)


def found(log: FailureLog) -> list[tuple[object, ...]]:
    return [(*each.machines, each.start - EIGHT, each.end - EIGHT, each.drain) for each in log.listed]


def test_a_table_of_dates(tmp_path: Path) -> None:
    log = read(tmp_path, FAILURES)
    assert log.dated
    assert found(log) == [
        ("node1", 0, 1800, False),
        ("node1", 3600, 6300, True),
        ("node2", 3600, 6300, True),
        ("gpu1", 7200, -1 - EIGHT, False),
    ]
    assert log.notes == {"without an end: until the last submission": 1}


@pytest.mark.parametrize("text", [EVENTS, RULED_EVENTS])
def test_events_of_slurm(text: str, tmp_path: Path) -> None:
    """A separator within a reason is no separator; events of the whole cluster have no node."""
    log = read(tmp_path, text)
    assert found(log)[0] == ("node1", 0, 1800, False)
    assert found(log)[1][:2] == ("node2", 600) and log.listed[1].drain


def test_states_in_which_nodes_are_there(tmp_path: Path) -> None:
    text = "node,start,end,state\na,1,2,IDLE+POWERED_DOWN\na,1,2,PLANNED\na,1,2,MAINT\na,1,2,DOWN+DRAIN\na,3,3,DOWN\na,Unknown,9,DOWN\n"
    log = read(tmp_path, text)
    assert [each.drain for each in log.listed] == [True, False]
    assert log.notes == {
        "in the state 'IDLE+POWERED_DOWN'": 1,
        "in the state 'PLANNED'": 1,
        "without a beginning (first: line 7)": 1,
        "without any time (first: line 6)": 1,
    }


def test_the_failure_data_of_lanl(tmp_path: Path) -> None:
    """Dates are American, years of two digits are those from 1970 on, and "nodes" is the size of the system."""
    log = read(tmp_path, LANL)
    assert found(log) == [("0", 10440, 10800, False), ("1", 10440, 10440 + 86760, False)]
    two = LANL + "20,cluster,512,7,compute,02/01/96 10:54,02/02/96 11:00,1446,\n"
    with pytest.raises(HpcsimkitError, match="one cluster must be chosen of 2, 20: 'FILE, 2'"):
        read(tmp_path, two)
    assert [each.machines for each in read(tmp_path, two, cluster="20").listed] == [("7",)]
    with pytest.raises(HpcsimkitError, match="a cluster of 2, 20 needed, found '3'"):
        read(tmp_path, two, cluster="3")


def test_counted_nodes_and_seconds(tmp_path: Path) -> None:
    log = read(tmp_path, "nodes;start;end\n2;10;20\n")
    assert not log.dated and log.listed == (Outage(10, 20, nodes=2),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start,end\n1,2\n", "failures.csv:1: a column machine or node or nodename or nodes or count needed"),
        (
            "node,start\na,1\n",
            "failures.csv:1: a column end or end_time or timeend needed, found 'node', 'start'",
        ),
        ("node,start,end\n", "outages are needed, found only a header line"),
        (
            "node,start,end\na,x,y\n",
            "outages are needed, found none: 1 start not understood (first: line 2: 'x')",
        ),
        ("node,start,end\na[1-,1,2\n", "failures.csv:2: "),
        ("nodes,start,end\n0,1,2\n", "found none: 1 nodes not understood"),
        ("", "failures.csv"),
        ("node,node,start,end\na,b,1,2\n", "failures.csv:1: "),
    ],
)
def test_wrong_files_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HpcsimkitError) as error:
        read(tmp_path, text)
    assert message in str(error.value) and "\n" not in str(error.value)


# --- in runs ------------------------------------------------------------------------------------------------


def log_of(*listed: Outage, dated: bool = False) -> FailureLog:
    return FailureLog("failures.csv", listed, dated)


def test_a_machine_fails_at_the_date_of_the_log(tmp_path: Path) -> None:
    """The second job of the log is submitted at 8:10; its machine fails at 8:30, and is back at 9:00."""
    jobs = jobs_on_machines([asked(0, 5, cpus=4), asked(600, 3600, cpus=4)])
    header = {"UnixStartTime": str(EIGHT - 3600), "TimeZoneString": "Europe/Berlin"}
    jobs = Workload(dict(jobs.columns), resources=jobs.resources, header=header)
    log = read(tmp_path, "node,start,end\nnode1,2024-02-01T08:30:00,2024-02-01T09:00:00\n")
    result = Simulation(jobs, make("fcfs"), Machines(["node1"], ["cpus"], [[4]]), outages=log).run()
    assert result.end_time.tolist() == [5, 7200]


def test_an_outage_without_an_end_ends_with_the_submissions() -> None:
    w = Workload({"submit_time": [0, 50], "run_time": [10, 10], "nodes": [1, 2]}, machine_size=2)
    result = Simulation(w, make("fcfs"), outages=log_of(Outage(20, -1))).run()
    assert result.start_time.tolist() == [0, 51]


def test_outages_of_one_machine_follow_each_other() -> None:
    log = log_of(
        Outage(5, 20, machines=("a",)),
        Outage(10, 30, machines=("a",)),
        Outage(12, 18, machines=("a",)),
        Outage(13, 30, machines=("a",)),
    )
    w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    assert [(each.start, each.end) for each in log.on(w, Nodes(1)).listed] == [(5, 20), (20, 30)]


def test_no_more_machines_than_homogeneous_nodes() -> None:
    """Each machine is one node; those beyond the last node would not exist."""
    w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=2)
    log = log_of(*(Outage(at, at + 5, machines=(name,)) for at, name in ((5, "a"), (20, "b"), (40, "a"))))
    assert len(log.on(w, Nodes(2)).listed) == 3
    with pytest.raises(
        HpcsimkitError, match=r"failures.csv: at most one machine for each of 1 nodes .* found 2$"
    ):
        log.on(w, Nodes(1))


def test_unknown_machines_are_counted_and_all_unknown_ones_an_error() -> None:
    jobs = jobs_on_machines([asked(0, 50, cpus=4)])
    log = log_of(
        Outage(5, 20, machines=("gpu1",)), Outage(5, 20, machines=("gpu7",)), Outage(6, 9, machines=("1",))
    )
    assert [each.machines for each in log.on(jobs, CLUSTER).listed] == [("gpu1",), (1,)]
    assert log.notes_on(CLUSTER) == {"failures.csv: outage of an unknown machine: left out": 1}
    with pytest.raises(HpcsimkitError, match=r"failures.csv: machines of .* are needed, found gpu7"):
        Simulation(jobs, make("fcfs"), CLUSTER, outages=log_of(Outage(5, 20, machines=("gpu7",)))).run()


def test_more_outages_than_nodes_are_one_line() -> None:
    w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    log = log_of(Outage(5, 20), Outage(6, 9))
    with pytest.raises(HpcsimkitError, match="outages at 6 s: 2 nodes are out of order at once, of 1"):
        Simulation(w, make("fcfs"), outages=log).run()


def test_dates_need_a_log_with_dates() -> None:
    w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    with pytest.raises(HpcsimkitError, match="a log with dates is needed for a failure log with dates"):
        Simulation(w, make("fcfs"), outages=log_of(Outage(5, 20), dated=True)).run()
