"""What the simulation makes of each parameter of Slurm, as one table; the reference shows it.

A parameter that is in no table is not modelled; so is one whose value is not. Both are noted, with how often
they occur, and never dropped silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "NODES",
    "PARTITIONS",
    "PRIORITY_FLAGS",
    "QOS",
    "SCHEDULING",
    "TABLES",
    "WHOLE",
    "Meaning",
    "harmless",
]


class Meaning(NamedTuple):
    """What the simulation makes of a parameter.

    Parameters
    ----------
    followed : bool
        Whether the schedule depends on it here.
    text : str
        Description: what it does, or why it does nothing.
    """

    followed: bool
    text: str


def _followed(**texts: str) -> dict[str, Meaning]:
    return {name: Meaning(True, text) for name, text in texts.items()}


def _without_effect(text: str, *names: str) -> dict[str, Meaning]:
    return {name: Meaning(False, text) for name in names}


GRACE = "time for which jobs that are stopped for others run on first, and up to 30 s longer"

WHOLE: Mapping[str, Meaning] = {
    **_followed(
        ClusterName="name of the cluster in messages",
        Include="the file is read at this place",
        NodeName="nodes, see below; `DEFAULT` sets values of those that follow",
        NodeSet="name of a list of nodes for partitions",
        PartitionName="partitions, see below; `DEFAULT` sets values of those that follow",
        SchedulerParameters="see below",
        SchedulerType="`sched/backfill`: main loop and backfill; `sched/builtin`: the main loop alone",
        PriorityType="`priority/multifactor`; `priority/basic`: first come, first served within a tier",
        PriorityDecayHalfLife="half-life of usage; 0: usage never decays",
        PriorityCalcPeriod="interval at which usage, fair share and all priorities are computed anew",
        PriorityMaxAge="age at which its factor is 1",
        PriorityFavorSmall="`YES`: the size factor is larger for small jobs",
        PriorityFlags="see below",
        PriorityWeightAge="weight of the age since a job became eligible",
        PriorityWeightFairshare="weight of the fair share of the association",
        PriorityWeightJobSize="weight of the size: the mean of the shares of all nodes and of all CPUs",
        PriorityWeightPartition="weight of the PriorityJobFactor of the partition, relative to the largest",
        PriorityWeightQOS="weight of the priority of the QOS, relative to the largest",
        PriorityWeightTRES="weights of the requested resources, each relative to those of the partition",
        FairShareDampeningFactor="divisor of the usage in the classic fair share",
        AccountingStorageEnforce="limits of QOS and associations hold with `limits`, `safe` or `all`; for "
        "`safe` see GrpTRESMins",
        PreemptType="`preempt/qos`, `preempt/partition_prio`: jobs that lack nodes stop others at once",
        PreemptMode="`REQUEUE`: stopped jobs wait again, 121 s after their nodes take others; `CANCEL`: they "
        "are lost",
        DefMemPerCPU="memory of jobs whose log names none is that of the log; the value is noted",
        DefMemPerNode="as DefMemPerCPU",
        JobRequeue="whether failed jobs wait again is said by --restart",
        OverTimeLimit="minutes that a job may exceed its limit by; by default it is stopped there",
    ),
    **_without_effect(
        "addresses, ports and names of daemons",
        *("SlurmctldHost", "SlurmctldPort", "SlurmdPort", "SlurmctldAddr", "SrunPortRange", "NodeAddr"),
        *("AccountingStorageHost", "AccountingStoragePort", "AccountingStorageBackupHost", "ControlMachine"),
        *("ControlAddr", "BackupController", "BackupAddr", "CommunicationParameters", "TopologyParam"),
    ),
    **_without_effect(
        "users, authentication and files of daemons",
        *("SlurmUser", "SlurmdUser", "AuthType", "AuthInfo", "AuthAltTypes", "AuthAltParameters", "CredType"),
        *(
            "CryptoType",
            "StateSaveLocation",
            "SlurmdSpoolDir",
            "SlurmctldLogFile",
            "SlurmdLogFile",
            "PluginDir",
        ),
        *("SlurmctldPidFile", "SlurmdPidFile", "SlurmSchedLogFile", "PlugStackConfig", "MailProg", "TmpFS"),
        *(
            "JobCredentialPrivateKey",
            "JobCredentialPublicCertificate",
            "JobCompLoc",
            "JobCompType",
            "SlurmdSyslogDebug",
        ),
        *(
            "JobCompHost",
            "JobCompUser",
            "JobCompPass",
            "JobCompPort",
            "AccountingStorageUser",
            "SlurmctldSyslogDebug",
        ),
        *(
            "AccountingStoragePass",
            "AccountingStorageType",
            "AccountingStorageLoc",
            "PrivateData",
            "LogTimeFormat",
        ),
    ),
    **_without_effect(
        "messages, accounting and health of the daemons",
        *(
            "SlurmctldDebug",
            "SlurmdDebug",
            "DebugFlags",
            "SlurmSchedLogLevel",
            "JobAcctGatherType",
            "SlurmdParameters",
        ),
        *("JobAcctGatherFrequency", "JobAcctGatherParams", "AccountingStorageTRES", "AcctGatherNodeFreq"),
        *(
            "AcctGatherEnergyType",
            "AcctGatherFilesystemType",
            "AcctGatherInterconnectType",
            "AcctGatherProfileType",
        ),
        *(
            "HealthCheckInterval",
            "HealthCheckNodeState",
            "HealthCheckProgram",
            "AccountingStoreFlags",
            "EpilogMsgTime",
        ),
        *(
            "TrackWCKey",
            "SlurmctldParameters",
            "MinJobAge",
            "MaxArraySize",
            "MaxJobCount",
            "MaxStepCount",
            "FirstJobId",
        ),
        *("MaxJobId", "MaxTasksPerNode", "SlurmctldTimeout", "SlurmdTimeout", "MessageTimeout", "TCPTimeout"),
        *(
            "BatchStartTimeout",
            "CompleteWait",
            "InactiveLimit",
            "KillWait",
            "UnkillableStepTimeout",
            "GetEnvTimeout",
        ),
        *(
            "ResvEpilog",
            "ResvProlog",
            "ResvOverRun",
            "KillOnBadExit",
            "Waittime",
            "ReturnToService",
            "RebootProgram",
        ),
        *(
            "PriorityUsageResetPeriod",
            "PriorityParameters",
            "DisableRootJobs",
            "UsePAM",
            "PropagateResourceLimits",
        ),
        *("PropagateResourceLimitsExcept", "PropagatePrioProcess", "CliFilterPlugins", "GroupUpdateForce"),
        *("GroupUpdateTime", "SwitchType", "SwitchParameters"),
    ),
    **_without_effect(
        "the start of processes on nodes",
        *(
            "ProctrackType",
            "TaskPlugin",
            "TaskPluginParam",
            "TaskProlog",
            "TaskEpilog",
            "MpiDefault",
            "MpiParams",
        ),
        *(
            "Prolog",
            "Epilog",
            "PrologFlags",
            "PrologSlurmctld",
            "EpilogSlurmctld",
            "PrologEpilogTimeout",
            "SrunProlog",
        ),
        *(
            "SrunEpilog",
            "LaunchType",
            "LaunchParameters",
            "JobContainerType",
            "X11Parameters",
            "InteractiveStepOptions",
        ),
        *(
            "SallocDefaultCommand",
            "CoreSpecPlugin",
            "CpuFreqDef",
            "CpuFreqGovernors",
            "VSizeFactor",
            "GpuFreqDef",
        ),
    ),
    **_without_effect(
        "resources are counted as the log names them",
        *(
            "SelectType",
            "SelectTypeParameters",
            "GresTypes",
            "FastSchedule",
            "JobFileAppend",
            "EnforcePartLimits",
        ),
        *("JobSubmitPlugins", "MaxMemPerNode", "MaxMemPerCPU"),
    ),
}
"""Parameters of slurm.conf, by their names there."""

SCHEDULING: Mapping[str, Meaning] = {
    **_followed(
        bf_interval="interval of the backfill [s], 30",
        bf_resolution="grid of the plan [s], 60: planned places are rounded down to it",
        bf_window="window of the plan [min], 1440: a job that would start later gets no place in it",
        bf_max_job_test="number of jobs that a backfill looks at, 500, besides those that a limit holds",
        bf_max_job_part="the same number of each partition, 0: unlimited",
        bf_max_job_user="the same number of each user, 0: unlimited",
        bf_max_job_user_part="the same number of each user in each partition, 0: unlimited",
        bf_max_job_assoc="the same number of each association, 0: unlimited",
        bf_max_job_start="number of jobs that a backfill starts, 0: unlimited",
        default_queue_depth="number of jobs that the main loop looks at after an event, 100, and one more; "
        "those of closed partitions and those that a limit holds count, each task of an array by itself",
        partition_job_depth="the same number of each partition, without the one more, 0: unlimited",
        sched_interval="interval at which the main loop looks at all jobs [s], 60",
        sched_min_interval="shortest interval between two main loops [us], 2 s; in whole seconds: 3 s",
        defer="no attempt at each submission: the main loop waits for its interval",
        completing="none of Slurm's, which ignores it: time from the end of a job that was killed, at its "
        "limit or for another, until its nodes take others [s], 0: how long that takes, no file says",
    ),
    **_without_effect(
        "a pass takes no time here",
        *(
            "bf_continue",
            "bf_yield_interval",
            "bf_yield_sleep",
            "bf_max_time",
            "sched_max_job_start",
            "max_sched_time",
        ),
        *("bf_yield_rpc_cnt", "max_rpc_cnt", "batch_sched_delay", "build_queue_timeout", "max_switch_wait"),
        *(
            "default_gbytes",
            "bf_job_part_count_reserve_no",
            "enable_user_top",
            "salloc_wait_nodes",
            "sbatch_wait_nodes",
        ),
    ),
}
"""Keys of SchedulerParameters."""

PRIORITY_FLAGS: Mapping[str, Meaning] = {
    **_followed(
        FAIR_TREE="fair share by rank in the tree of associations, which is the default",
        NO_FAIR_TREE="the classic fair share, 2^(-usage/shares)",
        MAX_TRES="billing is the largest of the weighted resources, not their sum",
        ACCRUE_ALWAYS="age counts from the submission, also while a job is held",
        SMALL_RELATIVE_TO_TIME="the size factor is CPUs / time limit, relative to all CPUs",
        NO_NORMAL_PART="the factor of the partition is not divided by the largest",
        NO_NORMAL_QOS="the factor of the QOS is not divided by the largest",
        NO_NORMAL_TRES="requested resources are not divided by those of the partition",
    ),
    **_without_effect("only seen while a job runs or is suspended", "CALCULATE_RUNNING"),
}
"""Flags in PriorityFlags."""

NODES: Mapping[str, Meaning] = {
    **_followed(
        NodeName="names, as a host list",
        CPUs="CPUs",
        Procs="CPUs",
        Sockets="CPUs, if CPUs is absent: their product",
        SocketsPerBoard="as Sockets",
        Boards="as Sockets",
        CoresPerSocket="as Sockets",
        ThreadsPerCore="as Sockets",
        RealMemory="memory [MiB]",
        MemSpecLimit="memory that jobs cannot use [MiB]",
        Gres="GPUs, those of each model, MIG slices, shards; models and numbers also from gres.conf",
        Feature="features for constraints",
        Features="features for constraints",
        Weight="nodes of the lowest weight are used first, then the first in the file",
        State="nodes of all states are kept, except `FUTURE`; outages are another option (--failures)",
    ),
    **_without_effect(
        "without effect on the schedule",
        *(
            "NodeAddr",
            "NodeHostname",
            "Port",
            "BcastAddr",
            "Reason",
            "TmpDisk",
            "TRESWeights",
            "CoreSpecCount",
        ),
        *("CpuBind", "RestrictedCoresPerGPU", "CpuSpecList", "Topology"),
    ),
}
"""Keys of a line of nodes."""

PARTITIONS: Mapping[str, Meaning] = {
    **_followed(
        PartitionName="name",
        Nodes="nodes, as a host list, a NodeSet or `ALL`",
        Default="whether jobs without a partition belong to it",
        MaxTime="longest limit of a job; a log holds no longer ones, or they are left out and counted",
        DefaultTime="limit of a job without one; without it MaxTime",
        MaxNodes="largest number of nodes of a job",
        MaxCPUsPerNode="largest number of CPUs of a job on a node",
        MaxMemPerNode="largest memory of a job on a node",
        PriorityTier="tier: its jobs come before those of all lower tiers",
        PriorityJobFactor="factor of the partition in the priority",
        QOS="partition QOS: its limits come before those of the QOS of a job",
        AllowAccounts="accounts whose jobs may run here",
        DenyAccounts="accounts whose jobs may not",
        AllowQos="QOS whose jobs may run here",
        DenyQos="QOS whose jobs may not",
        TRESBillingWeights="weights of resources in usage",
        OverSubscribe="`EXCLUSIVE`: whole nodes; other values are noted",
        PreemptMode="`OFF`: its jobs are never stopped; `REQUEUE`, `CANCEL`: instead of that of slurm.conf "
        "(`preempt/partition_prio`)",
        State="jobs of a partition that is `DOWN` or `INACTIVE` are left out",
        GraceTime=f"{GRACE} (`preempt/partition_prio`)",
    ),
    **_without_effect(
        "without effect on the schedule of a log",
        *(
            "AllocNodes",
            "AllowGroups",
            "DisableRootJobs",
            "Hidden",
            "RootOnly",
            "ReqResv",
            "MinNodes",
            "Alternate",
        ),
        *(
            "DefMemPerCPU",
            "DefMemPerNode",
            "MaxMemPerCPU",
            "JobDefaults",
            "DefCpuPerGPU",
            "DefMemPerGPU",
            "TotalCPUs",
        ),
        *(
            "TotalNodes",
            "TRES",
            "SelectTypeParameters",
            "CpuBind",
            "ResumeTimeout",
            "SuspendTime",
            "SuspendTimeout",
        ),
    ),
}
"""Keys of a line of a partition."""

QOS: Mapping[str, Meaning] = {
    **_followed(
        Priority="factor of the QOS in the priority",
        Preempt="QOS whose jobs may be stopped for jobs of this one",
        PreemptMode="`requeue`, `cancel`; `cluster`: that of slurm.conf",
        GraceTime=f"{GRACE} (`preempt/qos`)",
        Flags="`OverPartQOS`: its limits come before those of the partition QOS; `NoDecay`: what its jobs "
        "have spent never decays; others are noted",
        UsageFactor="factor of the usage of its jobs",
        GrpTRES="resources in use at once by all of its jobs",
        GrpTRESRunMins="the same, each times the minutes left of the limit of the job",
        GrpTRESMins="minutes of resources that its jobs, past and running, may spend; with half-life, and "
        "from the beginning of the run on. With `safe` in AccountingStorageEnforce, those that running jobs "
        "and the job may still spend count, too; without it, running jobs go on when they are spent",
        GrpWall="time that its jobs, past and running, may run in all; with half-life. With `safe`, the "
        "limit of the job counts, too",
        GrpJobs="number of running jobs",
        MaxTRES="resources of a job",
        MaxTRESPerNode="resources of a job on a node",
        MaxTRESMins="resources of a job, times the minutes of its limit",
        MaxWall="longest limit of a job",
        MaxTRESPU="resources in use at once by the jobs of a user",
        MaxJobsPU="number of running jobs of a user",
        MaxTRESPA="resources in use at once by the jobs of an account",
        MaxJobsPA="number of running jobs of an account",
        MaxJobs="number of running jobs of an association, or those that it inherits",
        MinTRES="least resources of a job",
        Fairshare="shares of an association among its siblings; `parent`: those below such an account share "
        "with its siblings, and such a user has the shares of the account",
    ),
    **_without_effect(
        "jobs of a log were accepted at their submission",
        *("GrpSubmit", "MaxSubmit", "MaxSubmitPU", "MaxSubmitPA", "QOS", "DefaultQOS", "DefaultAccount"),
    ),
    **_without_effect(
        "names and rights", "Description", "Organization", "AdminLevel", "Coordinator", "WCKeys"
    ),
}
"""Limits and other values of QOS and associations; those of associations hold up to the root."""

TABLES: Mapping[str, tuple[str, Mapping[str, Meaning]]] = {
    "slurm.conf": ("Parameters of slurm.conf", WHOLE),
    "SchedulerParameters": ("SchedulerParameters", SCHEDULING),
    "PriorityFlags": ("PriorityFlags", PRIORITY_FLAGS),
    "nodes": ("Nodes", NODES),
    "partitions": ("Partitions", PARTITIONS),
    "qos": ("QOS and associations", QOS),
}
"""All tables, with their titles."""


def harmless(table: Mapping[str, Meaning], name: str) -> bool:
    """Return whether a parameter needs no note, as it is in a table.

    >>> harmless(WHOLE, "slurmctldport"), harmless(WHOLE, "PriorityWeightLuck")
    (True, False)
    """
    return name.lower() in {each.lower() for each in table}
