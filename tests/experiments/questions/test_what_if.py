"""Changes of clusters with machines."""

from __future__ import annotations

import pytest

from hpcsimkit import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.questions.what_if import Change, changed_cluster

MACHINES = Machines.of(3, cpus=4) + Machines.of(2, "gpu", cpus=8, features=["a100"])
CLUSTER = Partitions([Partition("gpu", machines=["gpu1", "gpu2"]), Partition("all")], MACHINES)


def test_new_machines_are_like_the_last_one() -> None:
    found = changed_cluster(CLUSTER, [Change.of("gpu.nodes+=2"), Change.of("all.max_time=1d")])
    assert isinstance(found, Partitions) and found.machines is not None
    assert found.views[0].cluster.names == ("gpu1", "gpu2", "gpu-new1", "gpu-new2")
    assert found.views[0].cluster.capacity.tolist() == [[8]] * 4
    assert found.machines.features[-1] == {"a100"}
    assert len(found.views[1].cluster) == 7
    assert found.parts[1].max_time == 86_400


def test_removed_machines_are_removed_from_all_partitions() -> None:
    found = changed_cluster(CLUSTER, [Change.of("gpu.nodes=1")])
    assert isinstance(found, Partitions) and found.machines is not None
    assert found.machines.names == ("node1", "node2", "node3", "gpu1")
    with pytest.raises(UsageError, match="gpu needs at least one machine, found none left"):
        changed_cluster(CLUSTER, [Change.of("gpu.nodes-=2")])


def test_machines_without_partitions() -> None:
    found = changed_cluster(MACHINES, [Change.of("nodes=4"), Change.of("nodes+=1")])
    assert found.names == ("node1", "node2", "node3", "gpu1", "node-new1")


def test_limits_of_resources() -> None:
    changes = ["gpu.in_use.cpus=8", "gpu.in_use.cpus+=4", "gpu.in_use.nodes=1", "all.max_per_job.cpus=4"]
    found = changed_cluster(CLUSTER, [Change.of(text) for text in changes])
    assert isinstance(found, Partitions)
    assert [part.in_use for part in found.parts] == [{"cpus": 12, "nodes": 1}, {}]
    assert [part.max_per_job for part in found.parts] == [{}, {"cpus": 4}]
    assert found.views[0].cluster.limits == {"cpus": 12, "nodes": 1}
    with pytest.raises(
        UsageError, match="partition 'gpu': in_use needs amounts of nodes, cpus, found 'gpus'"
    ):
        changed_cluster(CLUSTER, [Change.of("gpu.in_use.gpus=1")])
