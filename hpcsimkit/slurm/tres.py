"""Trackable resources (TRES) of Slurm, in the names and units of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.io.units import resource_of
from hpcsimkit.jobs.workload import Workload

__all__ = ["MIB", "NODES", "Amounts", "amounts_of", "reason_word", "requested", "tres_of"]

MIB = 1024**2
"""Unit of memory in Slurm [bytes]."""

NODES = "nodes"
"""Name of the number of nodes among resources."""

PAIR = re.compile(r"([a-z]+(?:/[\w.:-]+)?)=(-1|\d{1,15}(?:\.\d{1,12})?)([kmgtp]?)", re.IGNORECASE)
UNITS = {"k": 1024, "": MIB, "m": MIB, "g": 1024**3, "t": 1024**4, "p": 1024**5}
NAMES = {"cpu": "cpus", "mem": "memory", "node": NODES, "billing": "billing"}

WORDS = {"cpus": "Cpu", "memory": "Memory", NODES: "Node", "billing": "Billing"}
"""Words of the resources in reasons; all else is GRES."""

Amounts = Mapping[str, float]
"""Amount of each resource, memory in bytes; beside the resources of machines ``nodes`` and ``billing``."""


def tres_of(key: str, text: str, *, plain: bool = False) -> dict[str, float]:
    """Return the amounts in a list such as ``cpu=16,mem=64G,gres/gpu=2``; those of -1 are no limits.

    Memory is in MiB without a unit. With `plain`, the numbers are weights, taken as they are.

    Raises
    ------
    UsageError
        The text is no such list.

    Examples
    --------
    >>> tres_of("GrpTRES", "cpu=24,gres/gpu:a100=2,mem=-1")
    {'cpus': 24.0, 'gpus:a100': 2.0}
    >>> tres_of("PriorityWeightTRES", "CPU=100,Mem=50", plain=True)
    {'cpus': 100.0, 'memory': 50.0}
    """
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        pair = PAIR.fullmatch(part.strip())
        if pair is None:
            raise UsageError(f"{key} needs a list such as cpu=16,mem=64G,gres/gpu=2, found {text!r}")
        name, number, unit = resource(pair[1]), float(pair[2]), pair[3].lower()
        if number >= 0:
            scale = UNITS[unit] if name == "memory" else {"k": 1e3, "m": 1e6, "g": 1e9}.get(unit, 1)
            found[name] = number if plain else number * scale
    return found


def resource(name: str) -> str:
    """Return the name of a resource here.

    >>> resource("CPU"), resource("gres/gpu:a100"), resource("license/matlab")
    ('cpus', 'gpus:a100', 'license/matlab')
    """
    name = name.lower()
    if not name.startswith("gres/"):
        return NAMES.get(name, name)
    kind, _, model = name.removeprefix("gres/").partition(":")
    return resource_of(kind, model)


def reason_word(name: str) -> str:
    """Return the word of a resource in Slurm's reasons."""
    return WORDS.get(name, "GRES")


def requested(workload: Workload, resources: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return what each job asks for in all, by resource; a pooled request counts one node.

    Parameters
    ----------
    workload : Workload
        The jobs; without named resources, its processors are CPUs.
    resources : sequence of str
        Names of the resources of the machines.
    """
    pooled = workload.column("spread") == 1
    if not workload.resources:
        nodes = np.ones(len(workload))
        return {"cpus": workload.column("nodes").astype(float), NODES: nodes}
    nodes = np.where(pooled, 1, workload.column("nodes")).astype(float)
    found = {name: workload.column(name) * nodes for name in workload.resources}
    totals = {"gpus": [name for name in found if name.startswith("gpus:")]}
    for total, models in totals.items():
        if models and total in resources:
            found[total] = np.maximum(
                found.get(total, np.zeros(len(workload))), sum(found[each] for each in models)
            )
    return {**found, NODES: nodes}


def amounts_of(amounts: Mapping[str, NDArray[np.float64]], row: int) -> dict[str, float]:
    """Return the amounts of one job."""
    return {name: float(values[row]) for name, values in amounts.items() if values[row]}
