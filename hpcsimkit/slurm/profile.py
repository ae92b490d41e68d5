"""Slurm as configured: a cluster and its policy, from the files of Slurm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.files import machines_of_scontrol
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partition_files import partitions_of_tables
from hpcsimkit.cluster.scontrol import seconds_of, tables_of_scontrol, whole_of
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.slurm.changes import changed
from hpcsimkit.slurm.configuration import Configuration, read_configuration
from hpcsimkit.slurm.parameters import PRIORITY_FLAGS, SCHEDULING, harmless
from hpcsimkit.slurm.rules import Clocks, Multifactor, Rules
from hpcsimkit.slurm.scheduler import SlurmScheduler
from hpcsimkit.slurm.tres import tres_of

__all__ = ["Slurm"]

MICROSECONDS = 10**6
REQUEUE_DELAY = 121
"""Time from the end of a job that was stopped, with its processes, until it waits again [s]."""

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
    *(
        "PartitionName",
        "Nodes",
        "Default",
        "MaxTime",
        "DefaultTime",
        "MaxNodes",
        "MaxCPUsPerNode",
        "MaxMemPerNode",
    ),
    *(
        "PriorityTier",
        "AllowAccounts",
        "DenyAccounts",
        "AllowQos",
        "DenyQos",
        "TRESBillingWeights",
        "OverSubscribe",
    ),
    *("State", "ExclusiveUser"),
)


@dataclass(frozen=True, repr=False)
class Slurm(Rules):
    """A cluster as its Slurm is configured: the rules, read from its files, and what a run of them needs.

    Further parameters are those of :class:`~hpcsimkit.slurm.rules.Rules`.

    Parameters
    ----------
    configuration : Configuration, optional
        The configuration that was read, for changes.
    """

    configuration: Configuration | None = field(default=None, compare=False)

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

    def changed(self, changes: Mapping[str, str], new: Mapping[str, str] | None = None) -> Slurm:
        """Return the cluster with other values of its configuration; the partitions stay as they are.

        Parameters
        ----------
        changes : mapping of str to str
            New values by name, such as ``{"bf_interval": "60", "qos.high.MaxJobsPU": "5"}``; see
            :func:`~hpcsimkit.slurm.changes.changed`.
        new : mapping of str to str, optional
            Names of partitions that a run has besides, each with that of the partition whose
            ``PriorityJobFactor`` and ``QOS`` it has. Default: none.

        Raises
        ------
        UsageError
            The configuration was not read, a name is unknown, or a value invalid.
        """
        if self.configuration is None:
            raise UsageError("changes of Slurm need a configuration that was read from a folder")
        made = _Made(changed(self.configuration, changes, new), self.partitions.column).profile()
        return replace(made, partitions=self.partitions)

    @property
    def policy(self) -> SlurmScheduler:
        """The policy of a run on :attr:`partitions`."""
        return SlurmScheduler(self)

    @property
    def options(self) -> dict[str, Any]:
        """Options of a run: jobs end at their limits; stopped ones begin anew, 121 s later."""
        return {"walltime": "kill", "restart": Restart(preempted="anew", delay=REQUEUE_DELAY)}


def _grace(name: str, text: str) -> int | None:
    """Return the grace time of a partition [s]; None without any."""
    return (seconds_of(name, text) if ":" in text else whole_of(name, text)) or None


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
            safe="safe" in enforced,
            preempt=preempt,
            preempt_mode=mode,
            preempt_modes=self._modes() if preempt == "partition_prio" else {},
            protected=frozenset(
                part["partitionname"]
                for part in conf.partitions
                if part.get("preemptmode", "").upper() == "OFF"
            ),
            grace_times=self._of_partitions("gracetime", _grace),
            node_weights=self._node_weights(),
        )
        self._note_unknown(profile)
        return replace(profile, notes=dict(conf.notes), configuration=conf)

    def _note_unknown(self, profile: Slurm) -> None:
        for name in {*profile.partition_qos.values()} - {*profile.qos}:
            self.conf.notes[f"partition QOS without a line in sacctmgr show qos: {name}"] += 1

    def _node_weights(self) -> dict[str, int]:
        return {
            node["nodename"]: whole_of("Weight", node.get("weight", "1")) or 0 for node in self.conf.nodes
        }

    def _machines(self) -> Machines:
        """Return the machines by weight, then in the order of the configuration."""
        weights = self._node_weights()
        lines = [
            " ".join(f"{shown}={node[key]}" for key, shown in SHOWN.items() if key in node)
            for node in sorted(self.conf.nodes, key=lambda node: weights[node["nodename"]])
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
        known = {
            name: value for name, value in given.items() if name in {each.name for each in fields(Clocks)}
        }
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

    def _modes(self) -> dict[str, str]:
        """Return what happens to the stopped jobs of the partitions that say so."""
        modes = self._of_partitions("preemptmode", lambda _, text: text.strip().lower())
        for mode in modes.values():
            if mode not in ("requeue", "cancel", "off"):
                self.conf.notes[f"PreemptMode of a partition is not modelled: {mode}"] += 1
        return {name: mode for name, mode in modes.items() if mode in ("requeue", "cancel")}

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
