"""Files of partitions: what they say, and the line of each mistake."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hpcsimkit import Machines
from hpcsimkit.cluster.partition_files import read_partitions
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

MACHINES = Machines.of(3, cpus=4) + Machines.of(1, "gpu", cpus=8)

CPU_AND_ALL = """
[[partitions]]
name = "cpu"
machines = ["node*", "gpu1"]
max_time = 3600

[[partitions]]
name = "all"
priority = 2
default = true
"""


def test_names_of_machines_may_have_wildcards(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(CPU_AND_ALL)
    found = read_partitions(tmp_path / "p.toml", MACHINES, "queue")
    assert [part.machines for part in found.parts] == [("node1", "node2", "node3", "gpu1"), None]
    assert [part.max_time for part in found.parts] == [3600, None]
    assert [part.priority for part in found.parts] == [0, 2]
    assert found.column == "queue"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[partitions]]\nname = "a"\n', r"p.toml:1: partition 'a' needs a number of nodes"),
        ('[[partitions]]\nname = "a"\nnodes = 0\n', "nodes needs a whole number of at least 1, found 0"),
        ("[[partitions]]\nnodes = 4\n", "p.toml:1: a partition needs a name, found none"),
        (
            '[[partitions]]\nname = "a"\nnodes = 4\nusers = "ada"\n',
            "'a': users needs a list of names, found 'ada'",
        ),
        (
            '[[partitions]]\nname = "a"\nnodes = 4\nmax_per_job = {gpus = -1}\n',
            "p.toml:1: partition 'a': max_per_job: gpus need a whole number of at least 0, found -1",
        ),
        ('\n[[partitions]]\nname = "a"\nnode = 4\n', "p.toml:2: unknown key 'node' of a partition"),
        (
            '[[partitions]]\nname = "a"\nnodes = 4\n' * 2,
            "p.toml:4: partition 'a' is defined twice, first in .*p.toml:1$",
        ),
        ("x = 1\n", r"tables \[\[partitions\]\] are needed, found x"),
        ("x = \n", "p.toml: not TOML"),
    ],
)
def test_each_mistake_has_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_partitions(tmp_path / "p.toml")


SCONTROL = """\
PartitionName=cpu
   AllowGroups=staff AllowAccounts=physics,ml DenyQos=low AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO GraceTime=0 Hidden=NO
   MaxNodes=2 MaxTime=2-00:00:00 MinNodes=0 LLN=NO
   Nodes=node[1-3]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO
   State=UP TotalCPUs=12 TotalNodes=3 SelectTypeParameters=NONE

PartitionName=gpu
   DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED
   Nodes=gpu1
   PriorityJobFactor=1 PriorityTier=5
   State=DRAIN TotalCPUs=8 TotalNodes=1 MaxMemPerNode=2048 MaxCPUsPerNode=UNLIMITED

PartitionName=old Nodes=(null) State=DOWN TotalNodes=0
"""

PARTS = [
    Partition(
        "cpu",
        machines=MACHINES.names[:3],
        priority=1,
        max_time=172_800,
        default_time=3600,
        max_nodes=2,
        accounts=["physics", "ml"],
        denied_qos=["low"],
        default=True,
    ),
    Partition("gpu", machines=["gpu1"], priority=5, max_per_node={"memory": 2 * 1024**3}),
]


def test_output_of_scontrol(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(SCONTROL)
    assert list(read_partitions(tmp_path / "p.txt", MACHINES).parts) == PARTS
    counted = [replace(part, machines=None, nodes=len(part.machines or ())) for part in PARTS]
    assert list(read_partitions(tmp_path / "p.txt").parts) == counted


def test_one_line_a_partition(tmp_path: Path) -> None:
    blocks = SCONTROL.split("\n\n")
    (tmp_path / "p.txt").write_text("\n".join(" ".join(block.split()) for block in blocks))
    assert list(read_partitions(tmp_path / "p.txt", MACHINES).parts) == PARTS


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (
            "gpu1",
            "gpu[1-3",
            r"p.txt:10: partition 'gpu': Nodes needs a list such as gpu\[01-04\],login, found",
        ),
        ("gpu1", "gpu[3-1]", "p.txt:10: .* Nodes needs a list"),
        ("gpu1", "gpu[1-9999999999]", "p.txt:10: .* Nodes needs a list"),
        ("gpu1", "gpu[12345678901-12345678902]", "p.txt:10: .* Nodes needs a list"),
        ("gpu1", "gpu[1-]", "p.txt:10: .* Nodes needs a list"),
        ("gpu1", "gpu[a-b]", "p.txt:10: .* Nodes needs a list"),
        ("gpu1", "gpu[1-4]", "p.txt:10: partition 'gpu': unknown machine 'gpu2'$"),
        ("gpu1", "gpu[2-4]", "p.txt:10: partition 'gpu': unknown machine 'gpu2'; there are "),
        ("gpu1", "(null)", "p.txt:10: partition 'gpu': at least one machine is needed, found none"),
        ("2-00:00:00", "2d", "p.txt:1: partition 'cpu': MaxTime needs a time such as 2-00:00:00"),
        ("01:00:00", "3-00:00:00", "p.txt:1: partition 'cpu': default_time needs at most max_time"),
        (
            "PriorityTier=5",
            "PriorityTier=high",
            "p.txt:10: partition 'gpu': PriorityTier needs a whole number",
        ),
        ("DRAIN", "BROKEN", "p.txt:10: partition 'gpu': State needs one of UP"),
        ("   Nodes=gpu1", "   Nodes gpu1", "p.txt:10: partition 'gpu': at least one machine is needed"),
        (
            "DRAIN",
            "UP GrpTRES=cpu=1,cpu=2",
            "p.txt:10: .* GrpTRES needs a list such as .* found 'cpu=1,cpu=2'",
        ),
        ("DRAIN", "UP GrpTRES=cpu", "p.txt:10: partition 'gpu': GrpTRES needs a list such as cpu=1.0,"),
        ("DRAIN", "UP GrpTRES=bb/x=1", "p.txt:10: .* GrpTRES needs limits of node, .*, found 'bb/x'"),
        ("DRAIN", "UP TRESBillingWeights=CPU=x", "p.txt:10: .* TRESBillingWeights needs a list such as"),
    ],
)
def test_each_mistake_in_scontrol_has_its_line(tmp_path: Path, was: str, now: str, message: str) -> None:
    assert was in SCONTROL
    (tmp_path / "p.txt").write_text(SCONTROL.replace(was, now))
    found = read_partitions(tmp_path / "p.txt", MACHINES)
    assert found.names[0] == "cpu"
    assert re.search(message, next(iter(found.notes)))


def test_exclusive_partitions_and_the_default_time(tmp_path: Path) -> None:
    """The default time may be as long as the longest one."""
    rules = "OverSubscribe=EXCLUSIVE Default=YES DefaultTime=30 MaxTime=30"
    (tmp_path / "p.txt").write_text(f"PartitionName=a {rules} Nodes=gpu1\nPartitionName=b Nodes=gpu1\n")
    found = read_partitions(tmp_path / "p.txt", MACHINES)
    assert [(part.exclusive, part.default) for part in found.parts] == [(True, True), (False, False)]
    assert (found.parts[0].default_time, found.parts[0].max_time, found.notes) == (1800, 1800, {})


@pytest.mark.parametrize(("count", "shown"), [(6, "n0, n1, n2, n3, n4, n5"), (7, "n0, n1, n2 ... n6")])
def test_machines_are_named_if_none_of_a_partition_exists(count: int, shown: str, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("PartitionName=a Nodes=old1")
    machines = Machines([f"n{number}" for number in range(count)], ["cpus"], [[1]] * count)
    with pytest.raises(UsageError, match=f"unknown machine 'old1'; there are {shown}$"):
        read_partitions(tmp_path / "p.txt", machines)


def test_a_partition_of_scontrol_is_defined_once(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(SCONTROL.replace("PartitionName=gpu", "PartitionName=cpu"))
    with pytest.raises(UsageError, match=r"p.txt:10: partition 'cpu' is defined twice, first in .*p.txt:1$"):
        read_partitions(tmp_path / "p.txt", MACHINES)


def test_partitions_without_machines_that_exist_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(SCONTROL.replace("gpu1", "old[1-2]"))
    found = read_partitions(tmp_path / "p.txt", MACHINES)
    assert found.names == ("cpu",)
    assert sorted(found.notes.values()) == [1, 2]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:15", 1815),
        ("12:00:00", 43_200),
        ("1-6", 108_000),
        ("1-06:30", 109_800),
        ("1-06:30:15", 109_815),
        ("00000000001-06:30:15", 109_815),
    ],
)
def test_times_of_scontrol(tmp_path: Path, text: str, seconds: int) -> None:
    (tmp_path / "p.txt").write_text(f"PartitionName=a MaxTime={text} TotalNodes=4")
    assert read_partitions(tmp_path / "p.txt").parts[0].max_time == seconds


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.5", {"cpus": 1.0, "gpus": 2.5, "memory": 0.25}),
        ("cpu=1,mem=1,license/x=3,node=2", {"cpus": 1.0, "memory": 1024.0}),
        ("mem=512T,gres/gpu:a100=8", {"gpus": 8.0, "memory": 0.5}),
        ("mem=1048576P", {"memory": 1.0}),
        ("gres/gpu:a=1,gres/gpu:b=2,gres/gpu=4", {"gpus:a": 1.0, "gpus:b": 2.0, "gpus": 4.0}),
        (
            "gres/gpu:a=2,gres/gpu=2",
            {"gpus:a": 2.0, "gpus": 2.0},
        ),  # a job with a GPU of the model counts in both
        ("(null)", {}),
    ],
)
def test_billing_of_scontrol(tmp_path: Path, text: str, weights: dict[str, float]) -> None:
    (tmp_path / "p.txt").write_text(f"PartitionName=a TRESBillingWeights={text} Nodes=gpu1")
    found = read_partitions(tmp_path / "p.txt", MACHINES)
    assert found.parts[0].billing == weights
    assert found.billing == ({"a": weights} if weights else {})


WITH_GPUS = Machines.of(2, "gpu", cpus=4, gpus=1, memory="8 GB")


def test_limits_of_a_qos_in_scontrol(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("PartitionName=a Nodes=gpu1\n   GrpTRES=node=1,cpu=6,mem=2G QoS=x\n")
    limits = {"nodes": 1, "cpus": 6, "memory": 2 * 1024**3}
    assert read_partitions(tmp_path / "p.txt", WITH_GPUS).parts[0].in_use == limits
    (tmp_path / "p.txt").write_text("PartitionName=a TotalNodes=4 GrpTRES=node=3\n")
    assert read_partitions(tmp_path / "p.txt").parts[0].in_use == {"nodes": 3}


def test_limits_and_weights_in_toml(tmp_path: Path) -> None:
    table = '[[partitions]]\nname = "a"\nin_use = {nodes = 2, memory = "1 GB"}\nbilling = {cpus = 1, gpus = 8.5}\n'
    (tmp_path / "p.toml").write_text(table)
    (part,) = read_partitions(tmp_path / "p.toml", WITH_GPUS).parts
    assert (part.in_use, part.billing) == ({"nodes": 2, "memory": 10**9}, {"cpus": 1, "gpus": 8.5})
    for wrong in ("{cpus = -1}", "{cpus = inf}", "3"):
        (tmp_path / "p.toml").write_text(table.replace("{cpus = 1, gpus = 8.5}", wrong))
        with pytest.raises(UsageError, match=r"p.toml:1: partition 'a': billing needs numbers of at least 0"):
            read_partitions(tmp_path / "p.toml", WITH_GPUS)


def test_lists_with_partitions_that_do_not_exist() -> None:
    """The first job names one beside another one, the third names no other one, the fourth names none."""
    columns = {"submit_time": [0] * 4, "run_time": [1] * 4, "nodes": [1] * 4, "partition": [0, 1, 2, -1]}
    jobs = Workload(columns, labels={"partition": ("a,x", "a,b", "x")})
    parts = Partitions([Partition("a", nodes=1), Partition("b", nodes=1)])
    assert parts.partly_unknown(jobs).tolist() == [True, False, False, False]
