"""Reading of Slurm's files: what they say, what is not modelled, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.slurm.accounts import Association
from hpcsimkit.slurm.parameters import TABLES
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.rules import Clocks
from tests.slurm.small import ACCOUNTS, CONF, QOS, profile, write
from tests.slurm.snapshots import configuration

GIB = 1024**3

SMALLEST = """\
ClusterName=one
NodeName=n1 CPUs=4 RealMemory=1024
PartitionName=all Nodes=ALL
"""


def read(folder: Path, text: str, **files: str) -> Slurm:
    (folder / "slurm.conf").write_text(text)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return Slurm.read(folder)


def test_nodes_by_weight_and_partitions(tmp_path: Path) -> None:
    made = profile(tmp_path)
    assert made.name == "small" and not made.notes
    assert made.machines.names == ("n1", "n2", "n3", "n4", "big", "gpu1", "gpu2")
    assert made.machines.amount("cpus").tolist() == [8] * 4 + [16, 8, 8]
    assert made.machines.amount("gpus:a100").tolist() == [0] * 5 + [4, 4]
    work, long, short, everything, gpu = made.partitions.parts
    assert work.machines == ("n1", "n2", "n3", "n4", "big") and work.default and work.priority == 2
    assert (long.max_time, long.max_nodes, long.default_time) == (7 * 86400, 1, 600)
    assert short.max_time == 1800 and everything.machines == ("n1", "n2", "n3", "n4", "big", "gpu1", "gpu2")
    assert gpu.accounts == ("blue",) and made.partition_qos == {"gpu": "ofgpu"}
    assert made.factors == {"work": 20, "long": 10, "short": 40, "any": 1, "gpu": 20}


def test_clocks_priority_and_preemption(tmp_path: Path) -> None:
    made = profile(tmp_path)
    assert made.clocks == Clocks(bf_interval=15, bf_resolution=10, bf_window=172_800, bf_max_job_test=200)
    rules = made.priority
    assert (rules.age, rules.partition, rules.qos, rules.max_age) == (1000, 1000, 2000, 86_400)
    assert (rules.half_life, rules.calc_period) == (7 * 86_400, 300)
    assert (made.preempt, made.preempt_mode, made.limits) == ("qos", "requeue", True)
    assert read(tmp_path, SMALLEST).clocks == Clocks()
    other = "SchedulerParameters=sched_min_interval=5500000,defer\nSchedulerType=sched/builtin\nPriorityType=priority/basic\n"
    made = read(tmp_path, SMALLEST + other)
    assert (made.clocks.sched_min_interval, made.clocks.defer, made.clocks.bf_interval) == (6, True, 0)
    assert made.priority.basic and not made.limits and made.preempt == ""


def test_qos_and_accounts(tmp_path: Path) -> None:
    made = profile(tmp_path)
    high, limited = made.qos["high"], made.qos["limited"]
    assert high.priority == 100 and high.preempts == ("low",)
    assert dict(high.limits) == {"GrpTRES": {"cpus": 24}, "MaxWall": 3600, "MaxJobsPU": 3}
    assert dict(limited.limits) == {
        "GrpJobs": 2,
        "MaxTRES": {"cpus": 16},
        "MaxTRESPU": {"cpus": 8},
        "MaxJobsPU": 1,
    }
    assert made.qos["low"].mode == "requeue"
    tree = made.associations
    assert tree.each[tree.of("red", "")] == Association("red", shares=20)
    assert [tree.each[place].account for place in tree.path(tree.of("red", "ben"))] == ["red", "red", "root"]


def test_models_of_devices_in_a_dump(tmp_path: Path) -> None:
    """The colon of a model separates no values."""
    text = ACCOUNTS.replace("Account - 'red':", "Account - 'red':GrpTRES=cpu=9,gres/gpu:a100=2:MaxJobs=4:")
    red = profile(tmp_path, accounts=text).associations
    one = red.each[red.of("red", "")]
    assert dict(one.limits) == {"GrpTRES": {"cpus": 9, "gpus:a100": 2}, "MaxJobs": 4} and one.shares == 20


def test_the_table_of_associations(tmp_path: Path) -> None:
    table = (
        "Cluster|Account|User|Partition|Share|GrpTRES|MaxJobs|ParentName\n"
        "one|root|||1|cpu=99||\none|top|||2|||root\none|below|||3|||top\none|below|ada||5||2|\none|below|ben|gpu|5|||\n"
    )
    made = read(tmp_path, SMALLEST, assoc_txt=table)
    tree = made.associations
    assert [each.account for each in map(tree.each.__getitem__, tree.path(tree.of("below", "ada")))] == [
        "below", "below", "top", "root",
    ]  # fmt: skip
    assert (
        tree.each[0].limits == {"GrpTRES": {"cpus": 99}}
        and tree.limit(tree.of("below", "ada"), "MaxJobs") == 2
    )
    assert tree.of("below", "ben") == tree.of("below", "")
    ben = tree.each[tree.of("below", "ben", "gpu")]
    assert (ben.user, ben.partition, ben.shares) == ("ben", "gpu", 5) and not made.notes


def test_includes_sets_and_devices(tmp_path: Path) -> None:
    text = (
        "ClusterName=one\ninclude nodes.inc\nNodeSet=few Nodes=n[1-2]\n"
        "PartitionName=a Nodes=few,n4 \\\n  PriorityTier=3 # a comment\nPartitionName=b Nodes=g1 State=DOWN\n"
    )
    nodes = (
        "NodeName=n[1-4] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=2048 MemSpecLimit=1024\n"
        "NodeName=g1 CPUs=4 RealMemory=1024 Gres=gpu:4\nNodeName=later State=FUTURE\n"
    )
    gres = "AutoDetect=off\nNodeName=g1 Name=gpu Type=h100 File=/dev/nvidia[0-2]\nNodeName=g1 Name=gpu Type=l4 Count=1\n"
    made = read(tmp_path, text, nodes_inc=nodes, gres_conf=gres)
    assert made.machines.names == ("n1", "n2", "n3", "n4", "g1")
    assert made.machines.amount("cpus").tolist() == [32] * 4 + [4]
    assert made.machines.amount("memory").tolist() == [GIB] * 5
    assert [made.machines.amount(name)[4] for name in ("gpus", "gpus:h100", "gpus:l4")] == [4, 3, 1]
    (part,) = made.partitions.parts
    assert (part.name, part.machines, part.priority) == ("a", ("n1", "n2", "n4"), 3)
    assert made.partitions.closed == {"b": "DOWN"} and not made.notes


def test_what_commands_print_in_place_of_the_file(tmp_path: Path, shared: Path) -> None:
    """``scontrol show config``, ``show node`` and ``show partition`` of the real cluster are its slurm.conf."""
    whole, shown = tmp_path / "whole", tmp_path / "shown"
    whole.mkdir()
    shown.mkdir()
    made = Slurm.read(configuration(shared, whole))
    lines = (whole / "slurm.conf.in").read_text().splitlines()
    config = [
        line.replace("=", "   = ", 1) for line in lines if not line.startswith(("NodeName", "PartitionName"))
    ]
    (shown / "config.txt").write_text("Configuration data as of 2026-11-28T05:00:00\n" + "\n".join(config))
    for name in ("nodes.txt", "partitions.txt"):
        (shown / name).write_text((shared / "slurm/day/snapshot" / name).read_text())
    for file in whole.glob("sacctmgr_*"):
        (shown / file.name).write_text(file.read_text())
    other = Slurm.read(shown)
    assert other.machines.names == made.machines.names
    assert other.machines.amount("gpus").tolist() == made.machines.amount("gpus").tolist()
    for mine, theirs in zip(made.partitions.parts, other.partitions.parts, strict=True):
        assert {**vars(mine), "machines": sorted(mine.machines)} == {
            **vars(theirs),
            "machines": sorted(theirs.machines),
        }
    assert (other.clocks, other.priority, other.qos) == (made.clocks, made.priority, made.qos)
    assert (other.factors, other.partition_qos) == (made.factors, made.partition_qos)


def test_the_real_configuration_has_nothing_that_is_not_modelled(tmp_path: Path, shared: Path) -> None:
    assert dict(Slurm.read(configuration(shared, tmp_path)).notes) == {}


def test_all_that_is_not_modelled_is_noted(tmp_path: Path) -> None:
    text = (
        SMALLEST
        + "PriorityWeightLuck=5\nSchedulerParameters=bf_interval=9,bf_luck=3\nPriorityFlags=LUCKY\nDownNodes=n1 State=DOWN\n"
    )
    text = text.replace("NodeName=n1", "NodeName=n1 Luck=1").replace(
        "PartitionName=all", "PartitionName=all Luck=2 QOS=gone"
    )
    made = read(
        tmp_path,
        text + "PreemptType=preempt/qos\nPreemptMode=SUSPEND,GANG\n",
        qos_txt="Name|Priority|Flags|Luck\nnormal|1|NoReserve|3\nhigh|9||\n",
        dump_cfg="Cluster - 'one':Fairshare=1\nParent - 'root'\nAccount - 'a':Fairshare=parent:Luck=1\n",
        other_txt="a shopping list\n",
    )
    assert dict(made.notes) == {
        "slurm.conf is not modelled: priorityweightluck": 1,
        "slurm.conf is not modelled: downnodes": 1,
        "SchedulerParameters is not modelled: bf_luck": 1,
        "PriorityFlags is not modelled: LUCKY": 1,
        "PreemptMode is not modelled: suspend": 1,
        "PreemptMode is not modelled: gang": 1,
        "node is not modelled: luck": 1,
        "partition is not modelled: luck": 1,
        "partition QOS without a line in sacctmgr show qos: gone": 1,
        "QOS is not modelled: Luck": 1,
        "QOS is not modelled: Flags=NoReserve": 1,
        "association is not modelled: Luck": 1,
        "file not read: other.txt": 1,
    }


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"slurm.conf": "ClusterName=x\nPartitionName=a Nodes=ALL\n"}, "nodes are needed, in slurm.conf or in the output of scontrol show node, found none"),
        ({"slurm.conf": "ClusterName=x\nNodeName=n1\n"}, "partitions are needed"),
        ({}, "nodes are needed"),
        ({"a.conf": SMALLEST, "b.conf": SMALLEST}, "b.conf: it looks like a second slurm.conf, beside a.conf"),
        ({"slurm.conf": SMALLEST + "include x.conf\n"}, "the included file 'x.conf' is needed in the folder, found none"),
        ({"slurm.conf": SMALLEST + "include x.conf\n", "x.conf": "include x.conf\n"}, "it includes 'x.conf' again"),
        ({"slurm.conf": SMALLEST + "PriorityMaxAge=soon\n"}, "PriorityMaxAge needs a time such as 2-00:00:00 or UNLIMITED, found 'soon'"),
        ({"slurm.conf": SMALLEST + "SchedulerParameters=bf_resolution=0\n"}, "bf_resolution needs at least 1, found '0'"),
        ({"slurm.conf": SMALLEST, "qos": "Name|Priority|GrpTRES\nx|1|cpus\n"}, "GrpTRES needs a list such as cpu=16,mem=64G,gres/gpu=2, found 'cpus'"),
        ({"slurm.conf": SMALLEST, "qos": "Name|Priority|GrpTRES\nx|1\n"}, "qos:2: 3 cells are needed, found 2"),
        ({"slurm.conf": SMALLEST.replace("n1 ", "n[1- ")}, "Nodes needs a list such as"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as caught:
        Slurm.read(tmp_path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a folder with slurm\.conf is needed, found none"):
        Slurm.read(tmp_path / "nothing")


def test_every_parameter_of_the_small_cluster_is_in_the_tables() -> None:
    known = {name.lower() for _, meanings in TABLES.values() for name in meanings}
    words = [line.partition("=")[0].lower() for line in CONF.splitlines()]
    assert set(words) <= known
    headings = [heading.lower() for heading in QOS.partition("\n")[0].split("|")]
    assert set(headings) - {"name"} <= known


def test_the_order_of_nodes_changes_nothing_but_ties(tmp_path: Path) -> None:
    """The same cluster with its lines in another order, besides nodes of equal weight, is equal."""
    lines = CONF.splitlines()
    moved = [line for line in lines if not line.startswith("NodeName=gpu")]
    moved.insert(1, next(line for line in lines if line.startswith("NodeName=gpu")))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = Slurm.read(write(tmp_path / "a"))
    text = "\n".join(moved).replace("NodeName=gpu[1-2]", "NodeName=gpu[1-2] CPUs=8 RealMemory=16000")
    other = Slurm.read(write(tmp_path / "b", conf=text))
    assert one.machines == other.machines and one.clocks == other.clocks
