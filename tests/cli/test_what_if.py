"""`what-if` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from tests.cli.conftest import CLI
from tests.cli.test_partitions import TWO

WEEK = 604_800


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    """Two jobs at once in each of four weeks: a second one waits in partition 1 (2 nodes) for 100, 200 ... s."""
    lines = ["; MaxProcs: 6", "; UnixStartTime: 345600"]  # a Monday
    for week in range(4):
        for job in (1, 2):
            run = 100 * (week + 1)
            lines.append(
                f"{2 * week + job} {week * WEEK} -1 {run} 2 -1 -1 2 {run} -1 1 {job} -1 -1 -1 1 -1 -1"
            )
    (tmp_path / "weeks.swf").write_text(
        "\n".join([*lines, f"9 {WEEK} -1 5 4 -1 -1 4 9999 -1 1 1 -1 -1 -1 2 -1 -1\n"])
    )
    (tmp_path / "two.toml").write_text(TWO)
    return tmp_path


def test_more_nodes_and_a_time_limit(cli: CLI, weeks: Path) -> None:
    common = ("what-if", "weeks.swf", "--partition-column", "partition", "--partitions", "two.toml")
    outcome = cli(*common, "--set", "1.nodes+=2", "--set", "2.max_time=1h", "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "1 job may run only before the change: not compared" in outcome.out
    table = pandas.read_csv(weeks / "out" / "what-if.csv").set_index(["by", "group"])
    everything = table.loc["all", "all jobs"]
    assert everything[["jobs", "before", "after", "difference"]].tolist() == [8, 125, 0, -125]
    assert -200 <= everything.low < -125 < everything.high <= -50  # means of weeks: 50 to 200
    assert table.loc["user"].before.to_dict() == {"1": 0, "2": 250}


def test_jobs_that_fit_neither_cluster_are_counted(cli: CLI, weeks: Path) -> None:
    outcome = cli("what-if", "weeks.swf", "--nodes", 2, "--set", "nodes+=1", "--out", "out")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("weeks: 9 jobs kept on 2 nodes")
    assert lines[-2:] == [
        "1 job may run neither before nor after the change: not compared",
        "results: out/what-if.png",
    ]


def test_without_partitions(cli: CLI, weeks: Path) -> None:
    outcome = cli("what-if", "weeks.swf", "--set", "nodes-=4", "--jobs", "2", "--out", "out")
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("all jobs")]
    assert row.split() == ["all", "jobs", "2", "0", "50", "50", "-"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("1.node+=2", "'1.node+=2': unknown key 'node'; nearest: nodes, order, max_nodes"),
        (
            "1.in_use.gpus=2",
            "partition '1': in_use of homogeneous nodes needs at least 1 of nodes, found 2 of gpus",
        ),
        ("1.in_use.nodes+=2", "1.in_use.nodes is unlimited: += needs a present value"),
        (
            "1.in_use.memory=2",
            "'1.in_use.memory=2': memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found '2'",
        ),
        ("1.in_use=2", "'1.in_use=2': unknown key 'in_use'; nearest: in_use.gpus"),
        ("3.nodes=2", "unknown partition '3'; known: 1, 2"),
        ("1.nodes=2h", "'1.nodes=2h': a whole number is needed, found '2h'"),
        ("1.max_time=long", "'1.max_time=long': a time such as 36h or 2d is needed, found 'long'"),
        ("1.max_time+=2d", "1.max_time is unlimited: += needs a present value"),
        ("1.nodes-=2", "partition '1': nodes needs a whole number of at least 1, found 0"),
        ("1.order=easy", "partition '1': order needs the name of an order, found 'easy'"),
        ("1.order+=sjf", "'1.order+=sjf': a name after order= is needed, found +="),
        ("order=sjf", "'order=sjf': PARTITION.order=NAME is needed"),
        ("1.policy=sjf", "'1.policy=sjf': policy=NAME; a partition has an order is needed"),
        ("policy=sfj", "unknown policy 'sfj'; nearest: srf, sqf, spf"),
        ("1.removed=", "'1.removed=': removed=PARTITION is needed, found none"),
        ("1.merged=3", "unknown partition '3'; known: 1, 2"),
        ("3.removed=1", "unknown partition '3'; known: 1, 2"),
        ("1.removed=1", "1.removed needs another partition, found the same"),
        ("3.split=4", "unknown partition '4'; known: 1, 2"),
        ("3,4.split=1", "a partition needs a name without a comma, found '3,4'"),
        ("merged=1", "'merged=1': PARTITION.merged=NAME is needed"),
        ("1.merged+=2", "'1.merged+=2': a name after merged= is needed, found +="),
        ("machines=n1", "'machines=n1': PARTITION.machines is needed"),
        ("1.machines-=n1", "partition '1' has no machine 'n1'"),
        ("1.machines=n[1-", "Nodes needs a list such as gpu[01-04],login, found 'n[1-'"),
        ("1.machines=n1", "partition '1' needs a number of nodes, found no machines to choose from"),
        ("1.nodes", "a change such as gpu.nodes+=20 or long.max_time=2d is needed, found '1.nodes'"),
    ],
)
def test_mistakes_are_one_line(cli: CLI, weeks: Path, change: str, message: str) -> None:
    assert (
        cli("what-if", "weeks.swf", "--partitions", "two.toml", "--set", change).line() == f"--set: {message}"
    )
    assert not (weeks / "results").exists()


def test_merged_split_and_removed(cli: CLI, weeks: Path) -> None:
    """Waits of all 9 jobs: before the changes 1000 s. Jobs that the other partition admits not are not compared.

    With the others in one partition, job 9 waits 200 s, unless its limit is too long. In partition 3, the
    jobs of the first two weeks do not wait.
    """
    common = ("what-if", "weeks.swf", "--partitions", "two.toml")
    for changes, after, more in (
        (("1.merged=2",), 200 / 9, ()),
        (("1.removed=2",), 200 / 9, ()),
        (("1.removed=2", "2.max_time=5m"), 0, ("3 jobs may run only before the change: not compared",)),
        (("3.split=1", "3.max_time=200", "3.nodes=4"), 700 / 9, ()),
    ):
        words = [word for change in changes for word in ("--set", change)]
        outcome = cli(*common, *words, "--out", "out", "--overwrite")
        assert outcome.code == 0, outcome.err
        table = pandas.read_csv(weeks / "out" / "what-if.csv")
        assert table["after"][0] == pytest.approx(after)
        assert [line for line in outcome.out.splitlines() if "not compared" in line] == [*more]


def test_another_order_and_another_policy(cli: CLI, tmp_path: Path) -> None:
    """In both partitions, a long and then a short job wait for the machine."""
    jobs = [(1, 0, 100), (2, 1, 100), (3, 2, 10)]
    lines = [
        f"{10 * part + job} {submit} -1 {run} {2 * part} -1 -1 {2 * part} {run} -1 1 1 -1 -1 -1 {part} -1 -1"
        for part in (1, 2)
        for job, submit, run in jobs
    ]
    (tmp_path / "jobs.swf").write_text("\n".join(["; MaxProcs: 6", *lines, ""]))
    (tmp_path / "two.toml").write_text(TWO)
    common = ("what-if", "jobs.swf", "--partitions", "two.toml", "-p", "fcfs")
    changes = {"order": {"1": -30, "2": 0}, "policy": {"1": -30, "2": -30}}
    for changed, text in (("order", "1.order=sjf"), ("policy", "policy=sjf")):
        outcome = cli(*common, "--set", text, "--out", changed)
        assert outcome.code == 0, outcome.err
        table = pandas.read_csv(tmp_path / changed / "what-if.csv").set_index(["by", "group"])
        assert table.loc["partition"].difference.to_dict() == changes[changed]
