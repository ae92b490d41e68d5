"""The configuration of Slurm as values: clocks, priority, limits and partitions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.slurm.accounts import Associations, Qos

__all__ = ["Clocks", "Multifactor", "Rules"]


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
    bf_max_job_test : int
        Number of jobs that a backfill tests; 0 for all. Default: 500.
    bf_max_job_part, bf_max_job_user, bf_max_job_user_part, bf_max_job_assoc : int
        The same number of a partition, of a user, of a user in a partition and of an association. Default: 0.
    bf_max_job_start : int
        Number of jobs that a backfill starts; 0 for all. Default: 0.
    default_queue_depth : int
        Number of jobs that the main loop looks at after an event; 0 for all. Default: 100.
    partition_job_depth : int
        The same number of a partition. Default: 0.
    sched_interval : int
        Interval at which the main loop looks at all jobs [s], >= 1. Default: 60.
    sched_min_interval : int
        Shortest interval between two main loops [s], >= 1. Default: 3, the first whole second after Slurm's 2
        s.
    defer : bool
        Whether events start no main loop. Default: False.
    end_groups : bool
        Whether running jobs end in groups in the plan, as in Slurm. Without, a plan is made faster, and jobs
        that do not start now have earlier places than in Slurm. Default: True.
    completing : int
        Time from the end of a job that was killed, at its limit or for another, until its machines take other
        jobs [s]. Default: 0.
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
    end_groups: bool = True
    completing: int = 0


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
class Rules:
    """A cluster as its Slurm is configured.

    Parameters
    ----------
    name : str
        Name of the cluster.
    partitions : Partitions
        The partitions on machines, which are in the order in which they are used: by weight, then as
        configured.
    factors : mapping of str to int
        Factor of each partition in the priority (``PriorityJobFactor``); 1 for those that are absent.
        Default: none.
    partition_qos : mapping of str to str
        Name of the QOS of each partition that has one. Default: none.
    clocks : Clocks
        Times of the two loops, and how far they look.
    priority : Multifactor
        The parameters of the priority.
    qos : mapping of str to Qos
        QOS by name. Default: none.
    associations : Associations
        The tree of accounts and users. Default: the root only.
    limits : bool
        Whether limits of QOS and associations hold. Default: True.
    safe : bool
        Whether a job starts only if minutes of resources suffice to its limit (``safe``). Default: False.
    preempt : {"", "qos", "partition_prio"}
        Property by which jobs may be stopped for others; empty for none. Default: none.
    preempt_mode : {"off", "requeue", "cancel"}
        Fate of jobs that are stopped. Default: ``"off"``.
    preempt_modes : mapping of str to str
        Fate of the jobs of each partition that are stopped by tiers, if it is another one. Default: none.
    protected : frozenset of str
        Partitions whose jobs are never stopped. Default: none.
    grace_times : mapping of str to int
        Time for which jobs of each partition run on first when they are to be stopped for others [s]; 0 for
        those that are absent. Default: none.
    node_weights : mapping of str to int
        Weight of each machine; 1 for those that are absent. Default: none.
    notes : mapping of str to int
        Parameters that are not modelled, and how often each occurs in the files. Default: none.
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
    safe: bool = False
    preempt: str = ""
    preempt_mode: str = "off"
    preempt_modes: Mapping[str, str] = field(default_factory=dict)
    protected: frozenset[str] = frozenset()
    grace_times: Mapping[str, int] = field(default_factory=dict)
    node_weights: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def __deepcopy__(self, memo: object) -> Rules:
        return self  # it does not change

    def __repr__(self) -> str:
        return f"Slurm({self.name!r}, {len(self.partitions.parts)} partitions, {self.identity_of_parts})"

    @property
    def identity_of_parts(self) -> str:
        """Beginning of a hash of the values besides machines and partitions.

        What has no effect is left out, so that a configuration is the same as before there was such a value.
        """
        weights = [sorted(self.node_weights.items())] if self.preempt else []
        of_parts = [sorted(each.items()) for each in (self.grace_times, self.preempt_modes) if each]
        shown = (
            *(
                self.name,
                self.partitions.definition,
                dict(self.factors),
                dict(self.partition_qos),
                self.clocks,
            ),
            *(self.priority.__dict__ | {"flags": sorted(self.priority.flags)}, sorted(self.qos.items())),
            *(
                self.associations.each,
                self.limits,
                self.safe,
                self.preempt,
                self.preempt_mode,
                sorted(self.protected),
            ),
            *weights,
            *of_parts,
        )
        text = repr(shown).replace(", completing=0)", ")").replace(", grace_time=0)", ")")
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def without_grace(self) -> Rules:
        """The same rules, by which jobs are stopped at once."""
        qos = {name: replace(each, grace_time=0) for name, each in self.qos.items()}
        return replace(self, qos=qos, grace_times={})

    @property
    def grants_grace(self) -> bool:
        """Whether some jobs that are stopped for others run on first."""
        if self.preempt == "qos":
            return any(each.grace_time for each in self.qos.values())
        return bool(self.preempt) and any(self.grace_times.values())

    @property
    def machines(self) -> Machines:
        """The machines, in the order in which they are used."""
        assert self.partitions.machines is not None
        return self.partitions.machines
