"""Encoders, masks, networks, rewards and episodes that model files and training files may name.

The classes of the kit are registered here, and nowhere else; those of other distributions are found by their
entry points.
"""

from __future__ import annotations

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward
from hpcsimkit.io.catalogue import Catalogue

ENCODERS: Catalogue[type[Encoder]] = Catalogue(
    "encoder",
    "hpcsimkit.encoders",
    {
        "Candidates": "hpcsimkit.agents.rlbackfilling.encoder:Candidates",
        "ClusterImage": "hpcsimkit.agents.cush.encoder:ClusterImage",
        "ExpectedFree": "hpcsimkit.agents.spaces.machine_encoders:ExpectedFree",
        "InspectorFeatures": "hpcsimkit.agents.schedinspector.features:InspectorFeatures",
        "JobAndHole": "hpcsimkit.agents.spaces.holes:JobAndHole",
        "JobKind": "hpcsimkit.agents.cush.encoder:JobKind",
        "JobMachinePairs": "hpcsimkit.agents.spaces.machine_encoders:JobMachinePairs",
        "JobsAhead": "hpcsimkit.agents.dras.ahead:JobsAhead",
        "JobsAndNodes": "hpcsimkit.agents.dras.encoder:JobsAndNodes",
        "MachineRows": "hpcsimkit.agents.spaces.machine_encoders:MachineRows",
        "OneJob": "hpcsimkit.agents.spaces.seat_encoders:OneJob",
        "PairProspects": "hpcsimkit.agents.spaces.prospects:PairProspects",
        "Places": "hpcsimkit.agents.spaces.seat_encoders:Places",
        "QueueWindow": "hpcsimkit.agents.spaces.encoders:QueueWindow",
        "RequestsAndMachines": "hpcsimkit.agents.spaces.encoders:RequestsAndMachines",
        "RunningJobs": "hpcsimkit.agents.spaces.running_jobs:RunningJobs",
        "StartOrHold": "hpcsimkit.agents.cush.rows:StartOrHold",
        "JobsInContext": "hpcsimkit.agents.cush.context:JobsInContext",
        "WaitingJobs": "hpcsimkit.agents.rlscheduler.encoder:WaitingJobs",
        "WholeState": "hpcsimkit.agents.schedinspector.whole_state:WholeState",
    },
)
"""Encoders by the names of their classes."""

MASKS: Catalogue[type[Mask]] = Catalogue(
    "mask",
    "hpcsimkit.masks",
    {
        "AcceptReject": "hpcsimkit.agents.spaces.masks:AcceptReject",
        "GuardedSlots": "hpcsimkit.agents.spaces.masks:GuardedSlots",
        "JobMachine": "hpcsimkit.agents.spaces.masks:JobMachine",
        "QueueSlots": "hpcsimkit.agents.spaces.masks:QueueSlots",
        "Slots": "hpcsimkit.agents.spaces.masks:Slots",
    },
)
"""Masks by the names of their classes."""

NETWORKS: Catalogue[type[Network]] = Catalogue(
    "network",
    "hpcsimkit.networks",
    {
        "dense": "hpcsimkit.agents.networks.numpy_networks:Dense",
        "slots": "hpcsimkit.agents.networks.numpy_networks:SlotScores",
        "image": "hpcsimkit.agents.cush.network:ImageScores",
        "job values": "hpcsimkit.agents.dras.network:JobValues",
        "row filter": "hpcsimkit.agents.dras.network:RowFilter",
    },
)
"""Network classes by their type in model files."""

REWARDS: Catalogue[type[Reward]] = Catalogue(
    "reward",
    "hpcsimkit.rewards",
    {
        "Capability": "hpcsimkit.agents.spaces.rewards:Capability",
        "Capacity": "hpcsimkit.agents.spaces.rewards:Capacity",
        "FinalScore": "hpcsimkit.agents.spaces.rewards:FinalScore",
        "Improvement": "hpcsimkit.agents.spaces.rewards:Improvement",
        "MinusLongWaits": "hpcsimkit.agents.spaces.long_waits:MinusLongWaits",
        "MinusMeanBoundedSlowdown": "hpcsimkit.agents.spaces.rewards:MinusMeanBoundedSlowdown",
        "MinusMeanWait": "hpcsimkit.agents.spaces.rewards:MinusMeanWait",
        "MinusRelativeWait": "hpcsimkit.agents.cush.relative_wait:MinusRelativeWait",
        "PromptImprovement": "hpcsimkit.agents.spaces.prompt_improvement:PromptImprovement",
        "PromptRatio": "hpcsimkit.agents.spaces.prompt_improvement:PromptRatio",
        "TimelyImprovement": "hpcsimkit.agents.rlbackfilling.reward:TimelyImprovement",
        "Utilisation": "hpcsimkit.agents.spaces.rewards:Utilisation",
    },
)
"""Rewards by the names of their classes."""

EPISODES: Catalogue[type[Episodes]] = Catalogue("episodes", "hpcsimkit.episodes", {})
"""Sources of training episodes by name; those of the kit are windows of logs, and need no name."""
