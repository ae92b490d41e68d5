"""Encoders, masks and networks that model files and training files may name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.envs.interfaces import Encoder, Mask

__all__ = ["ENCODERS", "MASKS", "NETWORKS", "Catalogue"]

T = TypeVar("T")


class Catalogue(Mapping[str, type[T]], Generic[T]):
    """Classes by name, each imported on first use.

    General code thus finds the parts of every published system without importing any of them.

    Parameters
    ----------
    places : mapping of str to str
        Class of each name, as ``module:Class``.

    Examples
    --------
    >>> ENCODERS["QueueWindow"].__name__, "Missing" in ENCODERS
    ('QueueWindow', False)
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> type[T]:
        module, _, attribute = self.places[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


ENCODERS: Mapping[str, type[Encoder]] = Catalogue(
    {
        "Candidates": "hpcsimkit.agents.rlbackfilling.encoder:Candidates",
        "ClusterImage": "hpcsimkit.agents.cush.encoder:ClusterImage",
        "ExpectedFree": "hpcsimkit.agents.spaces.machine_encoders:ExpectedFree",
        "InspectorFeatures": "hpcsimkit.agents.schedinspector.features:InspectorFeatures",
        "JobKind": "hpcsimkit.agents.cush.encoder:JobKind",
        "JobMachinePairs": "hpcsimkit.agents.spaces.machine_encoders:JobMachinePairs",
        "JobsAndNodes": "hpcsimkit.agents.dras.encoder:JobsAndNodes",
        "MachineRows": "hpcsimkit.agents.spaces.machine_encoders:MachineRows",
        "PairProspects": "hpcsimkit.agents.spaces.prospects:PairProspects",
        "QueueWindow": "hpcsimkit.agents.spaces.encoders:QueueWindow",
        "RequestsAndMachines": "hpcsimkit.agents.spaces.encoders:RequestsAndMachines",
        "StartOrHold": "hpcsimkit.agents.cush.rows:StartOrHold",
        "WaitingJobs": "hpcsimkit.agents.rlscheduler.encoder:WaitingJobs",
        "WholeState": "hpcsimkit.agents.schedinspector.whole_state:WholeState",
    }
)
"""Encoders by the names of their classes."""

MASKS: Mapping[str, type[Mask]] = Catalogue(
    {
        "AcceptReject": "hpcsimkit.agents.spaces.masks:AcceptReject",
        "JobMachine": "hpcsimkit.agents.spaces.masks:JobMachine",
        "QueueSlots": "hpcsimkit.agents.spaces.masks:QueueSlots",
        "Slots": "hpcsimkit.agents.spaces.masks:Slots",
    }
)
"""Masks by the names of their classes."""

NETWORKS: Mapping[str, type[Network]] = Catalogue(
    {
        "dense": "hpcsimkit.agents.networks.numpy_networks:Dense",
        "slots": "hpcsimkit.agents.networks.numpy_networks:SlotScores",
        "image": "hpcsimkit.agents.cush.network:ImageScores",
        "job values": "hpcsimkit.agents.dras.network:JobValues",
        "row filter": "hpcsimkit.agents.dras.network:RowFilter",
    }
)
"""Network classes by their type in model files."""
