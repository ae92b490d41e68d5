"""Changes of a configuration, in Slurm's words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.questions.what_if import Change, what_if
from hpcsimkit.slurm.profile import Slurm
from tests.slurm.small import jobs, profile


@pytest.fixture
def made(tmp_path: Path) -> Slurm:
    return profile(tmp_path)


def test_values_of_the_file(made: Slurm) -> None:
    new = made.changed(
        {"bf_interval": "60", "BF_WINDOW": "100", "priorityweightage": "7", "PreemptMode": "OFF"}
    )
    assert (new.clocks.bf_interval, new.clocks.bf_window, new.clocks.bf_resolution) == (60, 6000, 10)
    assert new.priority == replace(made.priority, age=7)
    assert (made.preempt, new.preempt) == ("qos", "")
    assert new.partitions is made.partitions and made.clocks.bf_interval == 15


def test_qos_and_accounts(made: Slurm) -> None:
    changes = {
        "qos.high.MaxJobsPU": "5",
        "qos.high.Priority": "7",
        "qos.high.GrpTRES": "-1",
        "qos.high.Flags": "OverPartQOS",
    }
    high = made.changed(changes).qos["high"]
    assert dict(high.limits) == {"MaxWall": 3600, "MaxJobsPU": 5}
    assert (high.priority, high.over_partition, high.preempts) == (7, True, ("low",))
    new = made.changed({"account.red.GrpTRES": "cpu=9", "user.ada.Fairshare": "4", "user.ada.MaxJobs": "2"})
    tree = new.associations
    red, ada = tree.each[tree.of("red", "")], tree.each[tree.of("red", "ada")]
    assert (dict(red.limits), red.shares) == ({"GrpTRES": {"cpus": 9}}, 20)
    assert (dict(ada.limits), ada.shares) == ({"MaxJobs": 2}, 4)
    assert not made.associations.each[tree.of("red", "")].limits
    new = made.changed({"partition.work.PriorityJobFactor": "3", "partition.work.QOS": "limited"})
    assert new.factors["work"] == 3 and new.partition_qos == {"gpu": "ofgpu", "work": "limited"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bf_intervall", "3", "unknown parameter 'bf_intervall' of Slurm; nearest: bf_interval"),
        ("SlurmctldPort", "3", "unknown parameter 'SlurmctldPort' of Slurm"),
        ("bf_interval", "soon", "bf_interval needs a whole number or UNLIMITED, found 'soon'"),
        ("qos.hi.MaxWall", "3", "unknown QOS 'hi'; nearest: high"),
        ("qos.high.MaxWal", "3", "unknown limit 'MaxWal'; nearest: MaxWall"),
        ("qos.high.MaxWall", "soon", "MaxWall needs a time"),
        ("qos.high", "3", "'qos.high': a name and a value are needed, such as qos.high.MaxJobsPU"),
        ("account.reed.MaxJobs", "3", "unknown account 'reed'; nearest: red"),
        ("user.eve.MaxJobs", "3", "unknown user 'eve'"),
        ("partition.worck.QOS", "x", "unknown partition 'worck'; nearest: work"),
        ("partition.work.Nodes", "x", "Nodes of partition 'work' is set by work.machines"),
        ("partition.work.maxtime", "60", "maxtime of partition 'work' is set by work.max_time"),
        ("partition.work.State", "DOWN", "unknown value 'State' of a partition of Slurm"),
        ("node.n1.Weight", "3", "one of qos, account, user and partition is needed, found 'node'"),
    ],
)
def test_what_is_wrong(made: Slurm, name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        made.changed({name: value})
    assert message in str(caught.value)


def test_a_profile_that_was_not_read_does_not_change(made: Slurm) -> None:
    with pytest.raises(UsageError, match="need a configuration that was read from a folder"):
        replace(made, configuration=None).changed({"bf_interval": "3"})


def test_a_what_if_of_a_limit(made: Slurm) -> None:
    """Two jobs of a user in ``limited``, one at a time before, both at once after."""
    rows = jobs({"qos": "limited", "cpus": 2}, {"at": 3, "qos": "limited", "cpus": 2})
    answer = what_if(rows, ["slurm.qos.limited.MaxJobsPU=2"], made.policy, made.partitions)
    assert answer.table.iloc[0][["before", "after"]].tolist() == [28.5, 0]
    with pytest.raises(UsageError, match="a change of slurm needs the policy as-configured"):
        what_if(rows, ["slurm.bf_interval=3"], "fcfs", made.partitions)


BUSY = (
    *({"nodes": 5, "cpus": 8, "run": 600, "limit": 600}, {"cpus": 8, "run": 600, "limit": 600}),
    {"at": 3, "cpus": 8},
)
"""Jobs of 600 s on all of ``work``, and one of 60 s, when the main loop may run again."""

THREE = ({"partition": "long", "cpus": 8},) * 3
"""Jobs of ``long``, which has two nodes."""


@pytest.mark.parametrize(
    ("rows", "changes", "before", "after"),
    [
        (THREE, ["long.merged=work"], [0, 0, 60], [0, 0, 0]),
        (THREE, ["short.merged=long"], [0, 0, 60], [0, 0, 0]),
        (THREE, ["short.removed=long"], [0, 0, 60], [0, 0, 60]),
        (THREE, ["long.machines+=n1"], [0, 0, 60], [0, 0, 0]),
        (BUSY, ["quick.split=work", "quick.machines=gpu[1-2]", "quick.max_time=60"], [0, 0, 600], [0, 0, 3]),
        (BUSY, ["quick.added=work", "quick.machines=gpu1"], [0, 0, 600], [0, 0, 3]),
        (BUSY, ["quick.split=work", "quick.machines=gpu1", "quick.max_time=59"], [0, 0, 600], [0, 0, 600]),
    ],
)
def test_other_partitions(
    made: Slurm, rows: tuple[Any, ...], changes: list[str], before: list[int], after: list[int]
) -> None:
    answer = what_if(jobs(*rows), changes, made.policy, made.partitions)
    assert answer.before.start_time.tolist() == before
    assert answer.after.start_time.tolist() == after


def test_a_new_partition_has_the_values_of_the_other_one(made: Slurm) -> None:
    """Jobs of the new partition have its QOS, until it is changed: 6 GPUs at once."""
    new = made.changed({"partition.quick.PriorityJobFactor": "3"}, {"quick": "gpu"})
    assert new.factors["quick"] == 3 and new.partition_qos["quick"] == "ofgpu"
    rows = jobs(*[{"partition": "gpu", "user": user, "gpus": 4} for user in ("cleo", "dan")])
    for more, start in ((), 60), (["slurm.partition.quick.QOS=normal"], 0):
        answer = what_if(rows, ["quick.split=gpu", *more], made.policy, made.partitions)
        assert answer.after.start_time.tolist() == [0, start]


def test_a_partition_may_have_the_name(made: Slurm) -> None:
    assert not Change.of("slurm.nodes+=2").of_slurm and not Change.of("slurm.in_use.gpus=2").of_slurm
    assert Change.of("slurm.qos.high.GrpTRES=cpu=4") == Change("slurm", "qos.high.GrpTRES", "", "cpu=4")
    assert Change.of("slurm.bf_interval = 4").of_slurm
