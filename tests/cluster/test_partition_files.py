"""Files of partitions: what they say, and the line of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit import Machines
from hpcsimkit.cluster.partition_files import read_partitions
from hpcsimkit.errors import UsageError

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
        ('\n[[partitions]]\nname = "a"\nnode = 4\n', "p.toml:2: unknown key 'node' of a partition"),
        ('[[partitions]]\nname = "a"\nnodes = 4\n' * 2, "p.toml: partition 'a' is defined twice"),
        ("x = 1\n", r"tables \[\[partitions\]\] are needed, found x"),
        ("x = \n", "p.toml: not TOML"),
    ],
)
def test_each_mistake_has_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_partitions(tmp_path / "p.toml")
