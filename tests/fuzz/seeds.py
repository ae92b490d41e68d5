"""Sound files of every kind that the kit reads, made here: where mutations begin, and who reads them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow
from pyarrow import parquet

from hpcsimkit import Machines, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.cluster.calendar_files import read_calendar
from hpcsimkit.cluster.failure_files import read_failures
from hpcsimkit.cluster.partition_files import read_partitions
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.parts.on_machines import described
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.reports.saved_results import SavedResults
from hpcsimkit.results.result import Result
from hpcsimkit.run import main
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.workloads import (
    days,
    default_workload,
    read_batsim,
    read_eagle,
    read_fdata,
    read_gwf,
    read_job_sets,
    read_job_table,
    read_log,
    read_openb,
    read_pbs,
    read_philly,
    read_pm100,
    read_sacct,
    read_sge,
    read_swf,
    swf_text,
)
from hpcsimkit.workloads.readers.slurm_queue import read_queue

Files = Mapping[str, bytes]

SACCT = """\
JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES|Constraints
17|17|ada|physics|batch|normal|COMPLETED|2024-01-01T08:00:00|2024-01-01T08:00:10|2024-01-01T09:00:10|3600|120|cpu=8,mem=64G,node=2|cpu=8,mem=64G,node=2|intel&ib
17.batch|17.batch||physics||||2024-01-01T08:00:10|2024-01-01T08:00:10|2024-01-01T09:00:10|3600|||cpu=4|
18_1|19|ben|chemistry|gpu|high|CANCELLED by 1000|2024-01-01T08:05:00|2024-01-01T08:06:00|2024-01-01T08:07:30|90|UNLIMITED|cpu=4,mem=8000M,node=1,gres/gpu:a100=2|cpu=4,mem=8000M,node=1,gres/gpu=2|
20|20|ben|chemistry|gpu|high|PENDING|2024-01-01T08:05:00|Unknown|Unknown|0|60|cpu=4|||
"""
TABLE = """\
JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit,Nodes,Spread,Exclusive,Constraint,Kind,User
job261221,128 GB,16,0,1-00:00:00,20:00:00,1614621600,1,0,0,,0=dgemm,ada
job261222,1.5 GiB,1,2,60:00,12.5,1614621700,2,1,0,a100&ib,1,ben
job261223,0 B,4,0,,90,1614708000,1,0,1,,,
"""
QUEUE_JSON = """\
{"jobs": [
{"job_id": 31, "job_state": ["RUNNING"], "submit_time": {"set": true, "infinite": false, "number": 1704096000}, "start_time": 1704096300,
"time_limit": {"set": true, "infinite": false, "number": 60}, "tres_req_str": "cpu=4,mem=1G,node=1", "user_name": "ada", "nodes": "node1"},
{"job_id": 32, "array_job_id": 32, "array_task_string": "1-3%2", "job_state": "PENDING", "submit_time": 1704096360, "eligible_time": 0,
"time_limit": null, "tres_req_str": "cpu=4,mem=1G,node=1", "user_name": "ben", "state_reason": "Priority", "dependency": "afterok:31"}
]}
"""
SCONTROL_JOBS = """\
JobId=31 JobName=wrap
   UserId=ada(1001) GroupId=root(0) MCS_label=N/A
   Priority=10737 Nice=0 Account=physics QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:10:00 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=2024-01-01T10:00:00 EligibleTime=2024-01-01T10:00:00
   StartTime=2024-01-01T10:05:00 EndTime=2024-01-01T11:05:00 Deadline=N/A
   Partition=batch AllocNode:Sid=localhost:4059
   NodeList=node1
   NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=1
   TRES=cpu=4,mem=1000M,node=1,billing=4
   Features=(null) DelayBoot=00:00:00

JobId=32 ArrayJobId=32 ArrayTaskId=1-3%2 JobName=x
   UserId=ben(1002) GroupId=root(0) MCS_label=N/A
   Priority=99 Nice=0 Account=chem QOS=normal
   JobState=PENDING Reason=Priority Dependency=afterok:31(unfulfilled)
   RunTime=00:00:00 TimeLimit=00:20:00 TimeMin=N/A
   SubmitTime=2024-01-01T10:06:00 EligibleTime=2024-01-01T10:06:00
   StartTime=Unknown EndTime=Unknown Partition=batch NodeList=(null)
   NumNodes=1-2 NumCPUs=4 TRES=cpu=4,mem=1000M,node=1,billing=4
   Features=(null) DelayBoot=00:00:00
"""
SLURM_JSON = """\
{"meta": {"plugins": {"data_parser": "data_parser/v0.0.40"}}, "jobs": [
{"job_id": 17, "array": {"job_id": 0, "task_id": {"set": false, "number": 0}}, "user": "ada", "account": "physics", "cluster": "a",
"partition": "batch", "qos": "normal", "state": {"current": ["COMPLETED"], "reason": "None"}, "constraints": "intel",
"required": {"CPUs": 8, "memory_per_node": {"set": true, "infinite": false, "number": 64000}}, "nodes": "n[1-2]",
"time": {"submission": 1704096000, "eligible": 1704096000, "start": 1704096010, "end": 1704099610, "elapsed": 3600, "suspended": 0,
"limit": {"set": true, "infinite": false, "number": 120}},
"tres": {"requested": [{"type": "cpu", "name": "", "count": 8}, {"type": "mem", "name": "", "count": 64000}, {"type": "node", "name": "", "count": 2},
{"type": "gres", "name": "gpu:a100", "count": 2}], "allocated": [{"type": "cpu", "name": "", "count": 8}]}},
{"job_id": 18, "user_name": "ben", "partition": "batch", "job_state": "COMPLETED", "submit_time": 1704096000, "start_time": 1704096060,
"end_time": 1704096120, "time_limit": 60, "tres_req_str": "cpu=1,mem=4G,node=1"}]}
"""
PBS = """\
01/01/2024 08:00:00;Q;17.head;queue=batch
01/01/2024 09:00:10;E;17.head;user=ada group=g account="a b" queue=batch ctime=1704096000 qtime=1704096000 etime=1704096005 start=1704096010 \
exec_host=n1/0*4+n2/0*4 Resource_List.select=2:ncpus=4:mem=8gb:ngpus=1 Resource_List.place=excl Resource_List.walltime=02:00:00 Exit_status=0 end=1704099610
01/01/2024 09:00:10;E;18[1].head;user=ben group=g queue=batch ctime=1704096000 start=1704096010 Resource_List.nodes=1:ppn=2 end=1704096070 Exit_status=271
"""
SGE = """\
# Version: 8.1.9
all.q:n1:g:ada:sim:17:sge:0:1704096000:1704096010:1704099610:0:0:3600:1.5:0.5:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:none:dep:mpi:16:0:9.5:0.1:0:-l h_rt=7200,h_vmem=4G -pe mpi 16:0.0:NONE:1.2G:0:0
all.q:n1:g:ben:sim:18:sge:0:1704096000:1704096010:1704096070:0:1:60:1.5:0.5:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:none:dep:NONE:1:3:9.5:0.1:0:NONE:0.0:NONE:1.2G:0:0
"""
GWF = """\
# Version: 1.0
# JobID SubmitTime WaitTime RunTime NProcs AverageCPUTimeUsed UsedMemory ReqNProcs ReqTime ReqMemory Status UserID GroupID
17\t1120000000\t10\t3600\t4\t-1\t-1\t4\t7200\t-1\t1\tU1\tG1\tX1\tQ1\t-1\tS1\tS2\tUNITARY\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\tV1\tP1
18\t1120000060\t-1\t60\t1\t-1\t-1\t-1\t-1\t-1\t0\tU2\tG1\tX1\tQ1\t-1\tS1\tS1\tUNITARY\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\tV1\tP1
"""
SGE_JSON = """\
{"job_number":17,"task_number":0,"qname":"all.q","hostname":"n1","group":"g","owner":"ada","job_name":"sim","account":"sge","priority":0,"submission_time":1704096000000000,"start_time":1704096010000000,"end_time":1704099610000000,"failed":0,"exit_status":0,"project":null,"granted_pe":"mpi","slots":16,"category":"-l h_rt=7200,h_vmem=4G -pe mpi 16","pe_taskid":null,"usage":{"rusage":{"ru_wallclock":3600}}}
{"job_number":18,"task_number":3,"qname":"all.q","hostname":"n1","group":"g","owner":"ben","job_name":"sim","account":"sge","priority":0,"submission_time":1704096000000000,"start_time":1704096010000000,"end_time":1704096070000000,"failed":0,"exit_status":1,"granted_pe":"NONE","slots":1,"pe_taskid":"NONE"}
"""
BATSIM = """\
{"nb_res": 4, "jobs": [{"id": "w0!1", "subtime": 0, "walltime": 100, "res": 4, "profile": "d"}, {"id": 2, "subtime": 10.5, "res": 1, "profile": "c"}],
"profiles": {"d": {"type": "delay", "delay": 60}, "c": {"type": "composed", "repeat": 2, "seq": ["d", "d"]}}}
"""
OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,V100M16|V100M32,LS,Succeeded,427061,12902960,427061
openb-pod-0002,3150,11264,0,0,T4,BE,Failed,506671,,506680
"""
PHILLY = (
    "job_id,num_gpu,submit_time,duration,model_name,priority\na,8,0,60000,resnet,1\nb,1,1500,120000,vgg,2\n"
)
EAGLE = """\
job_id,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,start_time,run_time,user,account,partition,qos
1,4:00:00,2,72,0,184000,2020-01-01 08:00:00,2020-01-01 08:05:00,3:10:00,u1,a1,short,normal
2,86400,1,36,2,90000,2020-01-01 09:00:00,2020-01-01 09:00:01,12.5,u2,a1,gpu,high
"""
JOB_SETS = "jobset,job,arrival,t,cpus,gpus,type\n0,0,0,3,10,20,0\n0,1,1,12,4,0,1\n1,0,0,5,256,512,0\n"
MACHINES_CSV = """\
MachineName,TotalCPUs,TotalGPUs,TotalMemory,Features
node1,32,0,128 GB,intel
node2,32,0,128 GB,intel;ib
gpu1,64,4,512 GB,a100
"""
MACHINES_TOML = """\
[[machines]]
count = 64
name = "node"
cpus = 32
memory = "128 GB"

[[machines]]
count = 4
name = "gpu"
cpus = 64
gpus = 4
memory = "512 GB"
features = ["a100"]
"""
PARTITIONS = """\
[[partitions]]
name = "batch"
machines = ["node*"]
max_time = 172800
default_time = 3600
max_nodes = 2
default = true

[[partitions]]
name = "gpu"
machines = ["gpu1", "node?"]
priority = 1
"""
SLURM_CONF = """\
ClusterName=tiny  # a comment
SchedulerParameters=bf_interval=60,bf_window=1440,bf_max_job_test=50,default_queue_depth=20,partition_job_depth=9
PriorityFlags=ACCRUE_ALWAYS,NO_NORMAL_PART
PriorityDecayHalfLife=7-0
PriorityWeightAge=1000
PriorityWeightFairshare=2000
PriorityWeightTRES=CPU=100,Mem=50,GRES/gpu=300
AccountingStorageEnforce=limits,qos
PreemptType=preempt/qos
PreemptMode=REQUEUE
NodeName=node[1-2] CPUs=32 RealMemory=128000 Feature=intel,ib \\
  Weight=10
NodeName=gpu1 Sockets=2 CoresPerSocket=32 RealMemory=512000 Gres=gpu:4 State=UNKNOWN
NodeSet=small Nodes=node[1-2]
PartitionName=DEFAULT MaxTime=2-0 DefaultTime=1:00:00
PartitionName=batch Nodes=small Default=YES PriorityTier=2 TRESBillingWeights="CPU=1.0,Mem=0.25G"
PartitionName=gpu Nodes=ALL QOS=ofgpu PriorityJobFactor=10
"""
GRES_CONF = "NodeName=gpu1 Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"
QOS_TABLE = """\
Name|Priority|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|GrpJobs|MaxWall|MaxTRESPU|MaxJobsPU|GrpTRESRunMins
normal|10|||OverPartQOS|1.000000|||1-00:00:00||3|
high|100|normal|requeue||2.0|cpu=24,gres/gpu:a100=2|||||cpu=90000
ofgpu|0|||||||2-00:00:00|gres/gpu=4||
"""
DUMP = """\
# a comment
Cluster - 'tiny':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics':Fairshare=40:GrpTRES=cpu=64,gres/gpu:a100=4:MaxJobs=9
Account - 'chemistry':Fairshare=parent:MaxWallDurationPerJob=2880
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=1:QOS='high,normal'
Parent - 'chemistry'
User - 'ben':Fairshare=3
"""
ASSOC_TABLE = """\
Cluster|Account|User|Partition|Share|GrpJobs|GrpTRES|MaxJobs|QOS
tiny|root|||1||||normal
tiny|physics|||40||cpu=64||normal
tiny|physics|ada||1|||2|normal
tiny|chemistry|ben|gpu|1||||normal
"""
CALENDAR = """\
[[calendar]]
name = "maintenance"
start = "2024-02-01 08:00"
end = "2024-02-01T18:00:00"
machines = ["node*"]

[[calendar]]
start = 3600
duration = 7200
every = 86400
times = 3
machines = ["gpu1"]
users = ["alice"]
accounts = ["physics"]
"""
FAILURES = """\
machine,start,end,state,reason
node1,2024-02-01T08:00:00,2024-02-01T08:30:00,down,power
"node[1-2]",2024-02-01 09:00:00,2024-02-01 09:45:00,DRAIN,disk
gpu1,2024-02-01T10:00:00,,fail,
"""
EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
tiny||2024-02-01T00:00:00|2024-02-01T00:10:00||Cluster Registered TRES|
tiny|node1|2024-02-01T08:00:00|2024-02-01T08:30:00|DOWN*|Not responding|slurm(64030)
tiny|node2|2024-02-01T08:10:00|2024-02-01T09:00:00|DRAIN|disk|bad|root(0)
tiny|gpu1|2024-02-01T08:10:00|Unknown|DOWN|fan|root(0)
"""
RULED_EVENTS = """\
   Cluster        NodeName           TimeStart             TimeEnd   State                         Reason       User
---------- --------------- ------------------- ------------------- ------- ------------------------------ ----------
      tiny           node1 2024-02-01T08:00:00 2024-02-01T08:30:00   DOWN* Not responding                 slurm(640+
      tiny           node2 2024-02-01T08:10:00             Unknown   DRAIN disk bad                         root(0)
"""
LANL = """\
System,machine type,nodes,nodenum,purpose,Prob Started (mm/dd/yy hh:mm),Prob Fixed (mm/dd/yy hh:mm),Down Time,Hardware
2,cluster,49,0,graphics.fe,2/1/2024 10:54,2/1/2024 11:00,6,Graphics Accel Hdwr
2,cluster,49,1,compute,02/01/24 10:54,02/02/24 11:00,1446,
"""
RESERVATIONS = """\
ReservationName=maint StartTime=2024-02-01T08:00:00 EndTime=2024-02-01T18:00:00 Duration=10:00:00
   Nodes=node[1-2] NodeCnt=2 CoreCnt=32 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=32
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=course StartTime=2024-02-02T10:00:00 EndTime=2024-02-02T12:00:00 Duration=02:00:00
   Nodes=gpu1 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=(null) Flags=WEEKLY,SPEC_NODES
   TRES=cpu=8
   Users=alice Groups=(null) Accounts=-music Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""
SCONTROL = """\
PartitionName=batch
   AllowGroups=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0
   Nodes=node[1-2]
   PriorityJobFactor=1 PriorityTier=1 State=UP TotalCPUs=64 TotalNodes=2

PartitionName=gpu
   Default=NO DefaultTime=NONE MaxNodes=1 MaxTime=UNLIMITED
   Nodes=gpu1,node[1,2]
   PriorityTier=10 State=UP TotalCPUs=64 TotalNodes=3
"""
EXPERIMENT = """\
policies = ["fcfs", "sjf+easy", "easy-k(4)"]
jobs = 20
skip = 1
load_factor = 1.2
walltime = "kill"
period = 60
warmup = 0.0
seed = 3
report = false

[generate]
model = "lublin"
nodes = 16
jobs = 30
seed = 1
load = 0.9
estimates = true
"""
ON_MACHINES = """\
log = "table.csv"
policies = ["fcfs", "drf+easy"]
placement = "best-fit"
locality = "sierra"
strict = false
report = false

[[machines]]
count = 3
cpus = 32
gpus = 4
memory = "256 GB"
features = ["a100", "ib"]
"""
TRAINING = """\
policy = "fcfs+easy"
seed = 2

[generate]
nodes = 16
jobs = 60

[trainer]
algorithm = "ppo"
total_timesteps = 512
episodes = 4
n_steps = 32
hidden = [8]
n_epochs = 1

[episodes]
jobs = 16

[validation]
windows = 2
every = 2
"""


CUSH = """\
seed = 3

[problem]
nodes = 4
jobs = 4

[trainer]
algorithm = "cush"
epochs = 2
job_sets = 2
simulations = 3
learning_rate = 0.001
gamma = 0.9
"""
SEATS = (
    TRAINING.replace('algorithm = "ppo"', 'algorithm = "together"').replace(
        "total_timesteps = 512", "rounds = 2"
    )
    + """
[reward]
name = "MinusMeanWait"

[seats.inspector.reward]
name = "MinusMeanBoundedSlowdown"
"""
)


class Kind(NamedTuple):
    """A kind of input.

    Parameters
    ----------
    files : callable
        Its sound files by name, the mutated one first.
    read : callable
        What reads them in the current folder, given the name of the first.
    commands : tuple of tuple of str
        Command lines that read them.
    """

    files: Callable[[], Files]
    read: Callable[[str], object]
    commands: tuple[tuple[str, ...], ...] = ()


def text_file(name: str, text: str, **others: str) -> Callable[[], Files]:
    return lambda: {
        name: text.encode(),
        **{other.replace("_", "."): t.encode() for other, t in others.items()},
    }


def swf() -> str:
    rng = np.random.default_rng(5)
    jobs = 12
    columns = {
        "submit_time": np.cumsum(rng.integers(0, 90, jobs)),
        "run_time": rng.integers(0, 400, jobs),
        "allocated_processors": rng.integers(1, 9, jobs),
        "cpu_time": rng.random(jobs).round(2),
        "requested_time": rng.integers(60, 600, jobs),
        "status": rng.integers(0, 2, jobs),
        "user": rng.integers(1, 4, jobs),
        "preceding": np.where(np.arange(jobs) == 7, 3, -1),
    }
    header = {"Version": "2.2", "Computer": "made here", "MaxProcs": "8", "UnixStartTime": "825613000",
              "TimeZoneString": "Europe/Stockholm", "Queue": "1 short\n2 long"}  # fmt: skip
    return swf_text(columns, header)


def swf_files() -> Files:
    return {"log.swf": swf().encode()}


def gzip_files() -> Files:
    return {"log.swf.gz": gzip.compress(swf().encode(), mtime=0)}


@cache
def model_files() -> Files:
    row = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}
    about = {"training": {"policy": "fcfs+easy", "metric": "mean_wait_time"}}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agent.hpcsim"
        Agent(QueueWindow(8), Slots(8), SlotScores(row), "order", about=about).save(path)
        return {"agent.hpcsim": path.read_bytes(), **swf_files()}


def _result() -> Result:
    return Simulation(default_workload(np.random.default_rng(1), jobs=20, nodes=16), make("fcfs+easy")).run()


@cache
def saved_result() -> Files:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        _result().save(path)
        return {"result.npz": path.read_bytes()}


@cache
def results_folder() -> Mapping[str, bytes]:
    """Files of a results folder by their paths, made by the command line itself."""
    with TemporaryDirectory() as folder:
        place, log = Path(folder) / "out", Path(folder) / "table.csv"
        log.write_text(TABLE)
        (Path(folder) / "m.csv").write_text(MACHINES_CSV)
        with suppress(SystemExit):
            main([
                "compare", str(log), "--machines", str(Path(folder) / "m.csv"), "-p", "fcfs", "-p", "sjf",
                "--no-report", "-q", "--out", str(place),
            ])  # fmt: skip
        files = sorted(path for path in place.rglob("*") if path.is_file())
        found = {f"out/{path.relative_to(place)}": path.read_bytes() for path in files}
    name = "out/experiment.toml"
    experiment = found[name].replace(f"{folder}/".encode(), b"../")
    return {**found, name: experiment, "table.csv": TABLE.encode(), "m.csv": MACHINES_CSV.encode()}


def folder_file(ending: str) -> Callable[[], Files]:
    """Return a results folder of which the file with an ending is mutated."""

    def files() -> Files:
        first = next(name for name in results_folder() if name.endswith(ending))
        return {first: results_folder()[first], **results_folder()}

    return files


def _described(workload: object) -> str:
    return str(described(workload, None))  # type: ignore[arg-type]


def _training(name: str) -> object:
    training = Training.read(Path(name))
    return [training.saved(), *training.workloads()]


def _experiment(name: str) -> object:
    experiment = Experiment.read(Path(name))
    return experiment.workload(), experiment.cluster, experiment.saved()


def _partitions(name: str) -> object:
    return read_partitions(name, Machines.read("m.csv"))


def _profile(name: str) -> object:
    return repr(Slurm.read(Path(name).parent))


def parquet_files() -> Files:
    """Return a table of PM100 and one of F-DATA."""
    times = {
        "submit_time": [1588291200, 1588291260],
        "start_time": [1588291210, 1588291270],
        "end_time": [1588294810, 1588291330],
    }
    stamps = {
        name: pyarrow.array([each * 1000 for each in values], pyarrow.timestamp("ms", "UTC"))
        for name, values in times.items()
    }
    pm100 = {
        "job_id": [1, 2], **stamps, "num_cores_req": [128, 4], "num_nodes_req": [2, 1], "num_gpus_req": [8, 0],
        "mem_req": [400, 7], "time_limit": [120, 60], "job_state": ["COMPLETED", "FAILED"], "user_id": [5, 6], "partition": ["1", "2"],
    }  # fmt: skip
    fdata = {
        "jid": ["a", "b"], "usr": ["u1", "u2"], "adt": stamps["submit_time"], "sdt": stamps["start_time"], "edt": stamps["end_time"],
        "nnumr": [384, 1], "elpl": [7200, 60], "exit state": ["completed", "failed"],
    }  # fmt: skip
    return {"pm100.parquet": _parquet(pm100), "fdata.parquet": _parquet(fdata)}


def _parquet(columns: Mapping[str, object]) -> bytes:
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), content)
    return content.getvalue()


def one_parquet(name: str) -> Callable[[], Files]:
    return lambda: {name: parquet_files()[name]}


DESCRIBE = ("describe", "{}", "--no-picture")
COMPARE = ("compare", "{}", "--jobs", "20", "-p", "sjf+easy", "--no-report", "--out", "made")
ADVISE = (
    "advise", "jobs.sacct", "--machines", "m.csv", "--partitions", "p.toml", "--queue", "{}", "--futures", "2",
    "--calibration", "0", "--out", "made",
)  # fmt: skip
PLACED = ("compare", "{}", "--machines", "m.csv", "-p", "drf+easy", "--no-report", "--out", "made")
PARTITIONED = (
    "compare", "jobs.sacct", "--machines", "m.csv", "--partitions", "{}", "-p", "fcfs+easy", "--no-report", "--out", "made",
)  # fmt: skip

CONFIGURED = ("compare", "jobs.sacct", "--slurm", ".", "--no-report", "--out", "made")
SLURM_FILES = {
    "slurm.conf": SLURM_CONF,
    "gres.conf": GRES_CONF,
    "qos.txt": QOS_TABLE,
    "dump.cfg": DUMP,
    "assoc.txt": ASSOC_TABLE,
}

RESERVED = (
    "compare", "jobs.sacct", "--machines", "m.csv", "--calendar", "{}", "-p", "fcfs+easy", "--no-report", "--out", "made",
)  # fmt: skip

FAILING = (
    "compare", "jobs.sacct", "--machines", "m.csv", "--failures", "{}", "-p", "fcfs+easy", "--no-report", "--out", "made",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "swf": Kind(swf_files, lambda name: _described(read_swf(name)), (DESCRIBE, COMPARE)),
    "swf-strict": Kind(swf_files, lambda name: read_swf(name, strict=True, size="allocated")),
    "gzip": Kind(gzip_files, lambda name: _described(read_log(name)), (DESCRIBE,)),
    "sacct": Kind(
        text_file("jobs.sacct", SACCT, m_csv=MACHINES_CSV),
        lambda name: _described(read_sacct(name, timezone="Europe/Berlin")), (DESCRIBE, PLACED),
    ),
    "table": Kind(
        text_file("table.csv", TABLE, m_csv=MACHINES_CSV), lambda name: _described(read_job_table(name)), (DESCRIBE, PLACED)
    ),
    "beocat": Kind(
        text_file("2021-03.csv", TABLE), lambda name: days(read_job_table(name).merge(read_job_table(name)), 1, 9)
    ),
    "slurm-json": Kind(text_file("jobs.json", SLURM_JSON), lambda name: _described(read_log(name)), (DESCRIBE,)),
    "queue": Kind(
        text_file("jobs.txt", SCONTROL_JOBS, jobs_sacct=SACCT, m_csv=MACHINES_CSV, p_toml=PARTITIONS), read_queue, (ADVISE,)
    ),
    "queue-json": Kind(text_file("squeue.json", QUEUE_JSON), read_queue),
    "pbs": Kind(text_file("20240101", PBS), lambda name: _described(read_pbs(name)), (DESCRIBE,)),
    "sge": Kind(text_file("accounting", SGE), lambda name: _described(read_sge(name)), (DESCRIBE,)),
    "sge-json": Kind(text_file("accounting.jsonl", SGE_JSON), lambda name: _described(read_sge(name)), (DESCRIBE,)),
    "gwf": Kind(text_file("grid.gwf", GWF), lambda name: _described(read_gwf(name)), (DESCRIBE,)),
    "batsim": Kind(text_file("w.json", BATSIM), lambda name: _described(read_batsim(name)), (DESCRIBE,)),
    "pm100": Kind(one_parquet("pm100.parquet"), lambda name: _described(read_pm100(name)), (DESCRIBE,)),
    "f-data": Kind(one_parquet("fdata.parquet"), lambda name: _described(read_fdata(name)), (DESCRIBE,)),
    "openb": Kind(text_file("pods.csv", OPENB), lambda name: _described(read_openb(name)), (DESCRIBE,)),
    "philly": Kind(text_file("philly.csv", PHILLY), lambda name: _described(read_philly(name)), (DESCRIBE,)),
    "eagle": Kind(text_file("eagle.csv", EAGLE), lambda name: _described(read_eagle(name)), (DESCRIBE,)),
    "job-sets": Kind(text_file("sets.csv", JOB_SETS), read_job_sets),
    "machines-csv": Kind(
        text_file("machines.csv", MACHINES_CSV, table_csv=TABLE), Machines.read,
        (("describe", "--machines", "{}", "table.csv", "--no-picture"),),
    ),
    "machines-toml": Kind(
        text_file("machines.toml", MACHINES_TOML, table_csv=TABLE), Machines.read,
        (("describe", "--machines", "{}", "table.csv", "--no-picture"),),
    ),
    "partitions": Kind(
        text_file("partitions.toml", PARTITIONS, m_csv=MACHINES_CSV, jobs_sacct=SACCT), _partitions, (PARTITIONED,)
    ),
    "scontrol": Kind(
        text_file("partitions.txt", SCONTROL, m_csv=MACHINES_CSV, jobs_sacct=SACCT), _partitions, (PARTITIONED,)
    ),
    **{
        f"slurm-{name}": Kind(
            text_file(name, text, jobs_sacct=SACCT, slurm_conf=SLURM_CONF) if name != "slurm.conf"
            else text_file(name, text, jobs_sacct=SACCT, qos_txt=QOS_TABLE),
            _profile, (CONFIGURED,),
        )
        for name, text in SLURM_FILES.items()
    },
    "calendar": Kind(
        text_file("calendar.toml", CALENDAR, m_csv=MACHINES_CSV, jobs_sacct=SACCT), read_calendar, (RESERVED,)
    ),
    "reservations": Kind(
        text_file("reservations.txt", RESERVATIONS, m_csv=MACHINES_CSV, jobs_sacct=SACCT), read_calendar, (RESERVED,)
    ),
    **{
        name: Kind(text_file("failures.csv", text, m_csv=MACHINES_CSV, jobs_sacct=SACCT), read_failures, (FAILING,))
        for name, text in {
            "failures": FAILURES, "events": EVENTS, "ruled-events": RULED_EVENTS, "failures-lanl": LANL,
        }.items()
    },
    "experiment": Kind(
        text_file("experiment.toml", EXPERIMENT), _experiment,
        (("compare", "{}", "--jobs", "9", "--no-report", "--out", "made"), ("describe", "{}", "--no-picture")),
    ),
    "experiment-machines": Kind(
        text_file("experiment.toml", ON_MACHINES, table_csv=TABLE), _experiment,
        (("compare", "{}", "--jobs", "9", "--no-report", "--out", "made"), ("describe", "{}", "--no-picture")),
    ),
    "training": Kind(text_file("training.toml", TRAINING), _training),
    "training-seats": Kind(text_file("training.toml", SEATS), _training),
    "training-problem": Kind(text_file("training.toml", CUSH), lambda name: Training.read(Path(name)).saved()),
    "model": Kind(
        model_files, Agent.load,
        (("compare", "log.swf", "-p", "fcfs+agent:{}", "--jobs", "10", "--no-report", "--out", "made"),),
    ),
    "result": Kind(saved_result, lambda name: repr(Result.load(name))),
    "folder-provenance": Kind(folder_file("provenance.json"), lambda name: SavedResults.read("out")),
    "folder-metrics": Kind(folder_file("metrics.json"), lambda name: SavedResults.read("out")),
    "folder-jobs": Kind(folder_file("jobs/fcfs.parquet"), lambda name: SavedResults.read("out")),
    "folder-machines": Kind(folder_file("machines.csv"), lambda name: SavedResults.read("out")),
    "folder-experiment": Kind(
        folder_file("experiment.toml"), _experiment, (("compare", "{}", "--jobs", "5", "--no-report", "--out", "made"),)
    ),
}  # fmt: skip

COMMAND_LINES = (
    ("compare", "log.swf", "-p", "fcfs", "-p", "sjf+easy", "--jobs", "9", "--skip", "1", "--nodes", "8", "--seed", "1",
     "--period", "5", "--load-factor", "1.5", "--warmup", "1", "--cooldown", "1", "--walltime", "kill", "--size", "allocated",
     "--workers", "1", "--no-report", "--out", "made", "--semantics", "textbook", "--limit", "jobs=1000"),
    ("compare", "table.csv", "--machines", "m.csv", "--placement", "best-fit", "--locality", "sierra", "-p", "fcfs",
     "--no-report", "--out", "made"),
    ("describe", "log.swf", "--no-picture", "--skip", "2", "--nodes", "9", "--strict"),
    ("generate", "lublin", "--nodes", "16", "--jobs", "20", "--seed", "1", "--load", "0.9", "-o", "made.swf"),
    ("generate", "mimic", "log.swf", "--jobs", "20", "--days", "60", "--divide", "2", "--seed", "1", "-o", "made.swf"),
    ("explain", "sjf+hold-unfit", "log.swf", "--jobs", "9", "--within", "sjf", "--out", "made"),
    ("evaluate", "agent.hpcsim", "log.swf", "--sequences", "0", "--jobs", "5", "--seed", "1", "--out", "made"),
    ("train", "training.toml", "--algorithm", "none", "--steps", "8", "--seed", "1", "--out", "made"),
    ("plot", "nowhere", "--overview", "x.png"),
    ("reproduce", "nothing", "log.swf", "--quick", "--seed", "1", "--workers", "1", "--out", "made"),
    ("policies",),
    ("parts", "encoder", "--json"),
    ("validate", "log.swf", "-p", "sjf+easy", "--jobs", "9", "--out", "made"),
)  # fmt: skip
"""Those that would train, evaluate or reproduce for long have something wrong from the start."""


def command_line_files() -> Files:
    """Return the files that `COMMAND_LINES` name."""
    return {
        **model_files(),
        "table.csv": TABLE.encode(),
        "m.csv": MACHINES_CSV.encode(),
        "training.toml": TRAINING.encode(),
    }
