"""Partitions that are added, split, merged and removed, and the partitions of the jobs then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpcsimkit import Machines, Workload, what_if
from hpcsimkit.cluster.moves import Move, moved
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError

MACHINES = Machines.of(4, cpus=4)
CLUSTER = Partitions(
    [
        Partition("cpu", machines=["node1", "node2"], default=True),
        Partition("debug", machines=["node2", "node3"], max_time=60),
        Partition("all"),
    ],
    MACHINES,
)
NAMES = ("cpu", "debug", "debug, cpu", "all")


def jobs(*rows: tuple[int, int]) -> Workload:
    """Return jobs of a node, by the number of the name of their partitions (-1: none) and the time [s]."""
    partition, seconds = zip(*rows, strict=True)
    columns = {"submit_time": [0] * len(rows), "run_time": seconds, "nodes": [1] * len(rows)}
    return Workload(
        {**columns, "cpus": [4] * len(rows), "partition": partition},
        resources=("cpus",),
        labels={"partition": NAMES},
    )


def partitions_of(workload: Workload) -> list[str]:
    return [workload.label("partition", number) for number in workload.column("partition").tolist()]


EACH = jobs((-1, 9), (0, 90), (0, 9), (1, 9), (2, 9), (3, 90))


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([("debug", "removed", "all")], ["cpu", "cpu", "cpu", "all", "all,cpu", "all"]),
        ([("debug", "merged", "cpu")], ["cpu", "cpu", "cpu", "cpu", "cpu", "all"]),
        ([("debug", "split", "cpu")], ["debug", "cpu", "debug", "debug", "debug", "all"]),
        ([("debug", "added", "cpu")], ["cpu,debug", "cpu", "cpu,debug", "debug", "debug,cpu", "all"]),
        (
            [("debug", "split", "cpu"), ("cpu", "removed", "all")],
            ["debug", "all", "debug", "debug", "debug", "all"],
        ),
        ([("debug", "removed", "cpu"), ("cpu", "removed", "all")], ["all"] * 6),
    ],
)
def test_where_the_jobs_go(moves: list[tuple[str, str, str]], expected: list[str]) -> None:
    after = CLUSTER
    for move in moves:
        after = Move(*move).on(after)
    assert partitions_of(moved(EACH, CLUSTER, after, [Move(*move) for move in moves])) == expected


def test_what_is_merged_and_what_is_idle() -> None:
    merged = Move("debug", "merged", "cpu").on(CLUSTER)
    assert merged.parts[0].machines == ("node1", "node2", "node3") and merged.names == ("cpu", "all")
    removed = Move("cpu", "removed", "debug").on(CLUSTER)
    assert removed.parts[0] == replace(CLUSTER.parts[1], default=True) and removed.machines is MACHINES
    assert Move("all", "merged", "cpu").on(CLUSTER).parts[0].machines is None
    new = Move("short", "added", "cpu").on(CLUSTER)
    assert new.parts[3] == replace(CLUSTER.parts[0], name="short", default=False)


def test_the_rules_of_the_other_partition_hold() -> None:
    """Jobs of a removed partition have whole machines in one of whole machines."""
    before = Partitions([Partition("cpu", exclusive=True), Partition("debug")], MACHINES)
    move = Move("debug", "removed", "cpu")
    assert moved(jobs((1, 9)), before, move.on(before), [move]).column("exclusive").tolist() == [1]


def test_a_partition_that_gets_jobs_and_is_gone() -> None:
    changes = ["short.split=cpu", "short.removed=all"]
    with pytest.raises(UsageError, match="partition 'short' gets jobs, and is merged or removed after it"):
        what_if(jobs((0, 9)), changes, "fcfs", CLUSTER)


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        (["debug.merged=cpu"], [0, 0, 0, 90]),
        (["debug.removed=cpu"], [0, 0, 90, 90]),
        (["cpu.machines-=node1", "debug.merged=cpu"], [0, 0, 90, 90]),
        (["debug.split=cpu", "debug.max_time=90"], [0, 0, 90, 90]),
        (["long.split=cpu", "long.machines=node[1,3-4]"], [0, 0, 0, 0]),
    ],
)
def test_starts(changes: list[str], starts: list[int]) -> None:
    """Three jobs of 90 s wait for the two machines of ``cpu``, one of 9 s in ``debug`` has the third."""
    rows = jobs((0, 90), (0, 90), (0, 90), (1, 9))
    answer = what_if(rows, changes, "fcfs", CLUSTER)
    assert answer.before.start_time.tolist() == [0, 0, 90, 0]
    assert answer.after.start_time.tolist() == starts
