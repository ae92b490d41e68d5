"""A small cluster with partitions that share nodes, tiers, QOS and accounts, and jobs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcsimkit import Simulation, Workload
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.profile import Slurm

CONF = """\
ClusterName=small   # with five nodes and a pair with GPUs
SchedulerParameters=bf_interval=15,bf_resolution=10,bf_window=2880,bf_max_job_test=200,bf_continue
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=0
PriorityWeightJobSize=0
PriorityWeightPartition=1000
PriorityWeightQOS=2000
PriorityMaxAge=1-0
AccountingStorageEnforce=associations,limits,qos
PreemptType=preempt/qos
PreemptMode=REQUEUE
NodeName=DEFAULT CPUs=8 RealMemory=16000
NodeName=n[1-4] Weight=10 Feature=n
NodeName=big CPUs=16 RealMemory=64000 Weight=50 Feature=big
NodeName=gpu[1-2] Gres=gpu:a100:4 Weight=90 Feature=gpu
PartitionName=DEFAULT MaxTime=1-0 DefaultTime=10
PartitionName=work Nodes=n[1-4],big Default=YES PriorityTier=2 PriorityJobFactor=20
PartitionName=long Nodes=n[3-4] PriorityTier=1 PriorityJobFactor=10 MaxTime=7-0 MaxNodes=1
PartitionName=short Nodes=n1,gpu1 PriorityTier=5 PriorityJobFactor=40 MaxTime=30
PartitionName=any Nodes=ALL PriorityTier=1 PriorityJobFactor=1
PartitionName=gpu Nodes=gpu[1-2] PriorityTier=2 PriorityJobFactor=20 QOS=ofgpu AllowAccounts=blue
"""

QOS = """\
Name|Priority|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|GrpJobs|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU
normal|10||||||||||
high|100|low||||cpu=24|||01:00:00||3
low|1||requeue||||||||
limited|0||||||2|cpu=16||cpu=8|1
ofgpu|0|||||gres/gpu=6||||gres/gpu=4|
"""

ACCOUNTS = """\
Cluster - 'small':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':Fairshare=1
Account - 'red':Description='red':Fairshare=20
Account - 'blue':Fairshare=40
Parent - 'red'
User - 'ada':DefaultAccount='red':Fairshare=1
User - 'ben':Fairshare=1
Parent - 'blue'
User - 'cleo':Fairshare=1
User - 'dan':Fairshare=1
"""

ACCOUNT_OF = {"ada": "red", "ben": "red", "cleo": "blue", "dan": "blue"}
QOS_NAMES = ("normal", "high", "low", "limited")


def write(folder: Path, conf: str = CONF, qos: str = QOS, accounts: str = ACCOUNTS) -> Path:
    """Write the files of the cluster."""
    for name, text in (("slurm.conf", conf), ("qos.txt", qos), ("accounts.cfg", accounts)):
        (folder / name).write_text(text)
    return folder


def profile(folder: Path, **files: str) -> Slurm:
    """Return the profile of the cluster."""
    return Slurm.read(write(folder, **files))


def jobs(*rows: dict[str, Any]) -> Workload:
    """Return jobs; by default each needs one CPU of one node of ``work`` for a minute."""
    base = {
        "at": 0, "run": 60, "limit": 60, "nodes": 1, "cpus": 1, "gpus": 0, "partition": "work", "user": "ada",
        "qos": "normal", "on": "", "exclusive": -1,
    }  # fmt: skip
    each = [base | row for row in rows]

    def numbers(key: str) -> tuple[list[int], tuple[str, ...]]:
        names = list(dict.fromkeys(row[key] for row in each))
        return [names.index(row[key]) for row in each], tuple(names)

    for row in each:
        row["account"] = ACCOUNT_OF[row["user"]]
    labels = {}
    columns = {
        "submit_time": [row["at"] for row in each],
        "run_time": [row["run"] for row in each],
        "requested_time": [row["limit"] for row in each],
        "nodes": [row["nodes"] for row in each],
        "exclusive": [row["exclusive"] for row in each],
        "cpus": [row["cpus"] for row in each],
        "gpus": [row["gpus"] for row in each],
        "memory": [10**6] * len(each),
    }
    for column, key in (("partition", "partition"), ("user", "user"), ("group", "account"), ("qos", "qos")):
        columns[column], labels[column] = numbers(key)
    if any(row["on"] for row in each):
        columns["constraint"], labels["constraint"] = numbers("on")
        columns["constraint"] = [
            -1 if labels["constraint"][value] == "" else value for value in columns["constraint"]
        ]
    return Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)


def run(made: Slurm, workload: Workload, **options: Any) -> Result:
    """Simulate jobs on the cluster."""
    return Simulation(workload, made.policy, made.partitions, **{**made.options, **options}).run()


def places(result: Result) -> list[str]:
    """Return the names of the machines of each job."""
    assert result.placements is not None
    return result.placements.words()


def reasons(result: Result, row: int) -> list[str]:
    """Return the reasons for which a job was held, in order."""
    return [] if result.held is None else result.held.reason[result.held.job == row].tolist()
