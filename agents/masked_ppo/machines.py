"""The machines of the masked-PPO scheduler's experiments."""

from __future__ import annotations

from hpcsimkit.cluster.machines import Machines

__all__ = ["NINE_MACHINES"]

NINE_MACHINES = (
    Machines.of(5, "computeNode", cpus=64, gpus=0, memory="256 GB")
    + Machines.of(2, "bigMemNode", cpus=24, gpus=0, memory="1024 GB")
    + Machines.of(2, "gpuNode", cpus=64, gpus=8, memory="512 GB")
)
"""The nine machines, in the order of the published code; a small part of the cluster of the logs."""
