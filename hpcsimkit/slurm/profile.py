"""Slurm as configured: a cluster and its policy, from the files of Slurm."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.files import machines_of_scontrol
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partition_files import partitions_of_tables
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.cluster.scontrol import FIRST, NODE, seconds_of, tables_of_scontrol, whole_of
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.slurm.accounts import Associations, Qos
from hpcsimkit.slurm.configuration import Configuration, read_configuration
from hpcsimkit.slurm.parameters import PRIORITY_FLAGS, SCHEDULING, harmless
from hpcsimkit.slurm.tres import tres_of

if TYPE_CHECKING:
    from hpcsimkit.slurm.scheduler import SlurmScheduler

__all__ = ["Clocks", "Multifactor", "Slurm"]

MICROSECONDS = 10**6
REQUEUE_DELAY = 120
"""Time after which a job that was stopped may start again [s]."""

SHOWN = {
    "nodename": "NodeName",
    "cputot": "CPUTot",
    "cpuefctv": "CPUEfctv",
    "realmemory": "RealMemory",
    "memspeclimit": "MemSpecLimit",
    "gres": "Gres",
    "availablefeatures": "AvailableFeatures",
    "cfgtres": "CfgTRES",
}
"""Keys of nodes as the reader of ``scontrol show node`` spells them."""

KEYS_OF_PARTITIONS = (
    *("PartitionName", "Nodes", "Default", "MaxTime", "DefaultTime", "MaxNodes", "MaxCPUsPerNode", "MaxMemPerNode"),
    *("PriorityTier", "AllowAccounts", "DenyAccounts", "AllowQos", "DenyQos", "TRESBillingWeights", "OverSubscribe"),
    *("State", "ExclusiveUser"),
)


@dataclass(frozen=True)
class Clocks:
    """The two clocks of scheduling, and how far each looks.

    Parameters
    ----------
    bf_interval : int
        Interval of the backfill [s], >= 1; 0 for no backfill. Default: 30.
    bf_resolution : int
        Grid of the plan [s], >= 1. Default: 60.
    bf_window : int
        Length of the plan [s], >= 1. Default: a day.
    bf_max_job_test, bf_max_job_part, bf_max_job_user, bf_max_job_user_part, bf_max_job_assoc, bf_max_job_start : int
        Numbers of jobs that a backfill tests in all, of a partition, of a user, of a user in a partition and of an
        association, and that it starts; 0 for all. Default: 500, and 0.
    default_queue_depth, partition_job_depth : int
        Numbers of jobs that the main loop looks at after an event, in all and of a partition; 0 for all. Default: 100,
        and 0.
    sched_interval : int
        Interval at which the main loop looks at all jobs [s], >= 1. Default: 60.
    sched_min_interval : int
        Shortest interval between two main loops [s], >= 1. Default: 3, the first whole second after Slurm's 2 s.
    defer : bool
        Whether events start no main loop. Default: False.
    """

    bf_interval: int = 30
    bf_resolution: int = 60
    bf_window: int = 86_400
    bf_max_job_test: int = 500
    bf_max_job_part: int = 0
    bf_max_job_user: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_interval: int = 60
    sched_min_interval: int = 3
    defer: bool = False


@dataclass(frozen=True)
class Multifactor:
    """The parameters of the priority.

    Parameters
    ----------
    basic : bool
        Whether all jobs have the same priority, so that the first comes first. Default: False.
    age, fair_share, size, partition, qos : int
        Weights, >= 0. Default: 0.
    tres : mapping of str to float
        Weights of resources. Default: none.
    max_age : int
        Age at which its factor is 1 [s], >= 1. Default: a week.
    half_life : int
        Half-life of usage [s]; 0 for none. Default: a week.
    calc_period : int
        Interval at which priorities are computed anew [s], >= 1. Default: 300.
    favor_small : bool
        Whether the size factor is larger for small jobs. Default: False.
    dampening : float
        Divisor of the usage in the classic fair share, > 0. Default: 1.
    flags : frozenset of str
        Flags, as Slurm spells them. Default: none.
    """

    basic: bool = False
    age: int = 0
    fair_share: int = 0
    size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = field(default_factory=dict)
    max_age: int = 604_800
    half_life: int = 604_800
    calc_period: int = 300
    favor_small: bool = False
    dampening: float = 1.0
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slurm:
    """A cluster as its Slurm is configured.

    Parameters
    ----------
    name : str
        Name of the cluster.
    partitions : Partitions
        The partitions on machines, which are in the order in which they are used: by weight, then as configured.
    factors : mapping of str to int
        Factor of each partition in the priority (``PriorityJobFactor``); 1 for those that are absent. Default: none.
    partition_qos : mapping of str to str
        Name of the QOS of each partition that has one. Default: none.
    clocks : Clocks
        When the two loops run, and how far they look.
    priority : Multifactor
        The parameters of the priority.
    qos : mapping of str to Qos
        QOS by name. Default: none.
    associations : Associations
        The tree of accounts and users. Default: the root only.
    limits : bool
        Whether limits of QOS and associations hold. Default: True.
    preempt : {"", "qos", "partition_prio"}
        What decides which jobs may be stopped for others; empty for none. Default: none.
    preempt_mode : {"off", "requeue", "cancel"}
        What happens to them. Default: ``"off"``.
    protected : frozenset of str
        Partitions whose jobs are never stopped. Default: none.
    notes : mapping of str to int
        What is not modelled, and how often it occurs in the files. Default: none.
    """

    name: str
    partitions: Partitions
    factors: Mapping[str, int] = field(default_factory=dict)
    partition_qos: Mapping[str, str] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=Clocks)
    priority: Multifactor = field(default_factory=Multifactor)
    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: Associations = field(default_factory=Associations)
    limits: bool = True
    preempt: str = ""
    preempt_mode: str = "off"
    protected: frozenset[str] = frozenset()
    notes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], column: str = "partition") -> Slurm:
        """Read the files in a folder; see :mod:`hpcsimkit.slurm.configuration`.

        Parameters
        ----------
        folder : path
            Path of the folder.
        column : {"partition", "queue", "qos"}
            Column of a log with the partitions of its jobs. Default: ``"partition"``.

        Raises
        ------
        UsageError
            It is no folder, lacks nodes or partitions, or a file in it is invalid.
        WorkloadError
            A file cannot be read.
        """
        return _Made(read_configuration(folder), column).profile()

    def __deepcopy__(self, memo: object) -> Slurm:
        return self  # it does not change

    def __repr__(self) -> str:
        return f"Slurm({self.name!r}, {len(self.partitions.parts)} partitions, {self.identity_of_parts})"

    @property
    def identity_of_parts(self) -> str:
        """Beginning of a hash of the values besides machines and partitions."""
        shown = (
            *(self.name, self.partitions.definition, dict(self.factors), dict(self.partition_qos), self.clocks),
            *(self.priority.__dict__ | {"flags": sorted(self.priority.flags)}, sorted(self.qos.items())),
            *(self.associations.each, self.limits, self.preempt, self.preempt_mode, sorted(self.protected)),
        )
        return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]

    @property
    def machines(self) -> Machines:
        """The machines, in the order in which they are used."""
        assert self.partitions.machines is not None
        return self.partitions.machines

    @property
    def policy(self) -> SlurmScheduler:
        """The policy of a run on :attr:`partitions`."""
        from hpcsimkit.slurm.scheduler import SlurmScheduler

        return SlurmScheduler(self)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a run as in Slurm: jobs end at their limit; stopped jobs begin anew, 120 s later on."""
        return {"walltime": "kill", "restart": Restart(preempted="anew", delay=REQUEUE_DELAY)}


class _Made:
    """The profile of a configuration."""

    def __init__(self, conf: Configuration, column: str) -> None:
        self.conf, self.column = conf, column
        self.path = Path(conf.folder) / "slurm.conf"

    def profile(self) -> Slurm:
        """Return the profile."""
        conf = self.conf
        machines = self._machines()
        tables = tables_of_scontrol(self._text_of_partitions(), self.path, machines=machines.names)
        parts = partitions_of_tables(tables.tables, machines, self.column)
        partitions = replace(parts, closed=tables.closed)
        conf.notes.update({**tables.notes, **machines.notes})
        enforced = {each.strip().lower() for each in conf.value("AccountingStorageEnforce").split(",")}
        preempt, mode = self._preemption()
        profile = Slurm(
            name=conf.value("ClusterName", "cluster"),
            partitions=partitions,
            factors=self._of_partitions("priorityjobfactor", whole_of),
            partition_qos=self._of_partitions("qos", lambda _, text: None if text.upper() == "N/A" else text),
            clocks=self._clocks(),
            priority=self._priority(),
            qos=conf.qos,
            associations=conf.associations,
            limits=not conf.values or bool(enforced & {"limits", "safe", "all", "qos"}),
            preempt=preempt,
            preempt_mode=mode,
            protected=frozenset(
                part["partitionname"] for part in conf.partitions if part.get("preemptmode", "").upper() == "OFF"
            ),
        )
        self._note_unknown(profile)
        return replace(profile, notes=dict(conf.notes))

    def _note_unknown(self, profile: Slurm) -> None:
        for name in {*profile.partition_qos.values()} - {*profile.qos}:
            self.conf.notes[f"partition QOS without a line in sacctmgr show qos: {name}"] += 1
        for part in self.conf.partitions:
            if part.get("gracetime", "0") not in ("0", "00:00:00"):
                self.conf.notes["partition is not modelled: GraceTime"] += 1

    def _machines(self) -> Machines:
        """Return the machines by weight, then in the order of the configuration."""
        weights = [whole_of("Weight", node.get("weight", "1")) or 0 for node in self.conf.nodes]
        order = sorted(range(len(weights)), key=lambda place: weights[place])
        lines = [
            " ".join(f"{shown}={node[key]}" for key, shown in SHOWN.items() if key in node)
            for node in (self.conf.nodes[place] for place in order)
        ]
        return machines_of_scontrol(self.path, "\n".join(lines), Machines)

    def _text_of_partitions(self) -> str:
        spelled = {key.lower(): key for key in KEYS_OF_PARTITIONS}
        return "\n".join(
            " ".join(f"{key}={part[low]}" for low, key in spelled.items() if low in part)
            for part in self.conf.partitions
        )

    def _of_partitions(self, key: str, read: Any) -> dict[str, Any]:
        """Return a value of each partition that has it."""
        values = {part["partitionname"]: read(key, part[key]) for part in self.conf.partitions if key in part}
        return {name: value for name, value in values.items() if value is not None}

    def _clocks(self) -> Clocks:
        conf, given = self.conf, dict[str, str]()
        for part in filter(None, conf.value("SchedulerParameters").split(",")):
            key, _, value = part.strip().partition("=")
            given[key.lower()] = value
            if not harmless(SCHEDULING, key):
                conf.notes[f"SchedulerParameters is not modelled: {key}"] += 1
        known = {name: value for name, value in given.items() if name in Clocks.__dataclass_fields__}
        numbers: dict[str, Any] = {
            name: whole_of(name, value) or 0 for name, value in known.items() if name != "defer"
        }
        if "bf_window" in numbers:
            numbers["bf_window"] *= 60
        if "sched_min_interval" in numbers:
            numbers["sched_min_interval"] = numbers["sched_min_interval"] // MICROSECONDS + 1
        for name in ("bf_resolution", "sched_interval", "bf_window"):
            if numbers.get(name, 1) < 1:
                raise UsageError(f"{self.path}: {name} needs at least 1, found {given[name]!r}")
        clocks = Clocks(**numbers, defer="defer" in known)
        builtin = conf.value("SchedulerType", "sched/backfill").lower() == "sched/builtin"
        return replace(clocks, bf_interval=0) if builtin else clocks

    def _priority(self) -> Multifactor:
        conf = self.conf
        flags = [each.strip().upper() for each in conf.value("PriorityFlags").split(",") if each.strip()]
        for flag in flags:
            if not harmless(PRIORITY_FLAGS, flag):
                conf.notes[f"PriorityFlags is not modelled: {flag}"] += 1
        weights = {
            name: whole_of(f"PriorityWeight{key}", conf.value(f"PriorityWeight{key}", "0")) or 0
            for name, key in (
                *(("age", "Age"), ("fair_share", "Fairshare"), ("size", "JobSize")),
                *(("partition", "Partition"), ("qos", "QOS")),
            )
        }
        try:
            dampening = float(conf.value("FairShareDampeningFactor", "1"))
        except ValueError:
            raise UsageError(f"{self.path}: FairShareDampeningFactor needs a number") from None
        return Multifactor(
            basic=conf.value("PriorityType", "priority/multifactor").lower() == "priority/basic",
            **weights,
            tres=tres_of("PriorityWeightTRES", self._weights(), plain=True),
            max_age=self._time("PriorityMaxAge", 604_800) or 1,
            half_life=self._time("PriorityDecayHalfLife", 604_800),
            calc_period=self._time("PriorityCalcPeriod", 300) or 1,
            favor_small=conf.value("PriorityFavorSmall", "NO").upper() in ("YES", "1", "TRUE"),
            dampening=max(dampening, 1.0),
            flags=frozenset(flags),
        )

    def _weights(self) -> str:
        text = self.conf.value("PriorityWeightTRES")
        return "" if text.upper() in ("(NULL)", "NONE") else text

    def _time(self, name: str, default: int) -> int:
        """Return a time [s]."""
        text = self.conf.value(name)
        return default if not text else seconds_of(name, text) or 0

    def _preemption(self) -> tuple[str, str]:
        """Return what decides which jobs may be stopped, and what happens to them."""
        kind = self.conf.value("PreemptType").lower().removeprefix("preempt/")
        modes = [each.strip().lower() for each in self.conf.value("PreemptMode", "off").split(",")]
        if kind not in ("qos", "partition_prio") or "off" in modes:
            return "", "off"
        for mode in modes:
            if mode not in ("requeue", "cancel"):
                self.conf.notes[f"PreemptMode is not modelled: {mode}"] += 1
        return kind, "cancel" if "cancel" in modes else "requeue"
