"""A month of a centre as its own Slurm would have recorded it: jobs, a scheduler, `sacct` and `scontrol`.

Written from Slurm's documentation, not from the kernel of the kit:

* multifactor priority (https://slurm.schedmd.com/priority_multifactor.html): age, fair share with a half-life,
  partition and QOS, recomputed every `PriorityCalcPeriod`;
* main loop (https://slurm.schedmd.com/sched_config.html): at each submission and end, jobs in the order of the
  tiers of partitions and of priorities, until one of a partition has to wait, which ends the turn of that partition,
  and closes its nodes to the jobs of other partitions that follow (the month of the guide was made before this was
  known: there, `closes_nodes` is false);
* backfill: every `bf_interval`, each job in that order gets the earliest nodes on a grid of `bf_resolution` within
  `bf_window`, so that it delays no expected start of a job before it; jobs that may start now, do;
* limits of partitions: time, nodes, accounts. A job ends at its limit, and one without gets that of the partition.

``python -m tests.little_slurm FOLDER [DAYS] [JOBS] [SEED]`` writes the month of the guide "Your cluster in an
afternoon".
"""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

DAY, HOUR = 86_400, 3600
FIRST = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())

KINDS = {"cpu": (64, 32, 0, 128), "fat": (6, 64, 0, 1024), "gpu": (10, 32, 4, 256), "test": (2, 32, 0, 128)}
NAMES = [f"{kind}{n}" for kind, (count, *_) in KINDS.items() for n in range(1, count + 1)]
"""Nodes of each kind: number, CPUs, GPUs, memory [GiB]."""


@dataclass(frozen=True)
class Queue:
    """A partition: its nodes in Slurm's notation, limits, tier, and a share of the jobs."""

    name: str
    nodes: str
    max_time: int
    default_time: int
    tier: int
    factor: int
    share: float
    max_nodes: int | None = None
    accounts: tuple[str, ...] = ()
    default: bool = False


QUEUES = (
    Queue("cpu", "cpu[1-64]", 2 * DAY, 8 * HOUR, 2, 2, 0.52, default=True),
    Queue("long", "cpu[41-64]", 7 * DAY, DAY, 1, 1, 0.06, max_nodes=4),
    Queue("gpu", "gpu[1-10]", 2 * DAY, 8 * HOUR, 2, 2, 0.24, accounts=("ml", "physics", "biology")),
    Queue("fat", "fat[1-6]", 3 * DAY, 12 * HOUR, 2, 2, 0.06),
    Queue("debug", "test[1-2]", HOUR, 30 * 60, 3, 4, 0.12, max_nodes=2),
)
ACCOUNTS = ("physics", "chemistry", "ml", "biology", "climate")
LIMITS = np.array([600, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, 7 * DAY])
QOS = {"normal": 0.0, "high": 1.0}

AGE, FAIR_SHARE, PARTITION, QUALITY = 1000, 3000, 1000, 2000  # PriorityWeight...
MAX_AGE, HALF_LIFE, CALC_PERIOD = 7 * DAY, 7 * DAY, 300
BF_INTERVAL, BF_RESOLUTION, BF_WINDOW, BF_MAX_JOBS, BF_MAX_JOBS_PART = 600, 1800, DAY, 100, 25


@dataclass
class Work:
    """A job, with what happened to it."""

    number: int
    user: str
    account: str
    queue: Queue
    qos: str
    submit: int
    run: int
    limit: int
    limited: bool
    nodes: int
    request: tuple[int, int, int]  # per node: CPUs, GPUs, memory [GiB]
    patience: int
    state: str = "PENDING"
    start: int = -1
    end: int = -1
    where: list[int] = field(default_factory=list)
    priority: float = 0.0

    @property
    def rank(self) -> tuple[float, ...]:
        return (-self.queue.tier, -self.priority, self.number)


def drawn_jobs(days: int, jobs: int, seed: int) -> list[Work]:
    """Return jobs of 60 users, with more submissions by day and on weekdays."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    weight = np.where((hours // 24 + 6) % 7 < 5, 1.0, 0.45) * (
        1 + 0.8 * np.sin((hours % 24 - 8) * np.pi / 12)
    )
    hour = rng.choice(hours, size=jobs, p=weight / weight.sum())
    submits = np.sort(FIRST + hour * HOUR + rng.integers(0, HOUR, jobs))
    activity = rng.dirichlet(np.full(60, 0.5))
    account = [ACCOUNTS[number] for number in rng.integers(0, len(ACCOUNTS), 60)]
    shares = np.array([queue.share for queue in QUEUES])
    drawn = []
    for number, submit in enumerate(submits.tolist(), start=1000):
        user = int(rng.choice(60, p=activity))
        queue = QUEUES[int(rng.choice(len(QUEUES), p=shares / shares.sum()))]
        if queue.accounts and account[user] not in queue.accounts:
            queue = QUEUES[0]
        drawn.append(_drawn(rng, number, user, account[user], queue, submit))
    return drawn


def _drawn(rng: np.random.Generator, number: int, user: int, account: str, queue: Queue, submit: int) -> Work:
    _, cores, gpus, memory = KINDS[queue.nodes.split("[")[0]]
    typical = {"debug": 300, "cpu": 1800, "gpu": 5200, "fat": 4500, "long": 9000}[queue.name]
    run = int(min(rng.lognormal(math.log(typical), 1.5), 1.1 * queue.max_time)) + 5
    nodes = (
        1
        if queue.name == "gpu" or rng.random() < 0.7
        else int(2 ** rng.integers(1, 4 if queue.name == "cpu" else 2))
    )
    cpus = cores if nodes > 1 else int(min(cores, 2 ** rng.integers(0, 7)))
    cards = int(rng.choice([1, 2, 4], p=[0.6, 0.2, 0.2])) if gpus else 0
    limited = rng.random() > 0.05
    wanted = min(run * (1 + rng.exponential(1.5)), queue.max_time)
    limit = int(LIMITS[np.searchsorted(LIMITS, wanted * rng.choice([1, 1, 1, 0.7]))])
    share = max(cpus / cores, cards / gpus if gpus else 0)
    return Work(
        number, f"u{user:02d}", account, queue, "high" if rng.random() < 0.1 else "normal", submit, run,
        min(limit, queue.max_time) if limited else queue.default_time, limited, nodes,
        (cpus, cards, max(1, int(memory * share * rng.uniform(0.3, 0.9)))),
        int(rng.exponential(2 * DAY)) if rng.random() < 0.03 else 10**9,
    )  # fmt: skip


class LittleSlurm:
    """The scheduler: jobs are submitted, started in the main loop or by backfill, and ended."""

    def __init__(self, jobs: list[Work], *, every_job: bool = False, closes_nodes: bool = True) -> None:
        self.jobs = jobs
        self.closes_nodes = closes_nodes
        self.tested = (len(jobs), len(jobs)) if every_job else (BF_MAX_JOBS, BF_MAX_JOBS_PART)
        self.names = NAMES
        rows = [[*amounts] for count, *amounts in KINDS.values() for _ in range(count)]
        self.capacity = np.array(rows)
        self.free = self.capacity.copy()
        self.places = {queue: np.array(_numbers(queue.nodes, self.names)) for queue in QUEUES}
        self.pending: list[Work] = []
        self.running: set[int] = set()
        self.by_number = {job.number: job for job in jobs}
        self.usage: dict[str, float] = {}
        self.users = {job.user for job in jobs}
        self.now = self.charged_at = FIRST

    def run(self) -> None:
        """Simulate until all jobs have ended."""
        events = [(job.submit, 1, job.number) for job in self.jobs]
        events += [(job.submit + job.patience, 2, job.number) for job in self.jobs if job.patience < 10**9]
        heapq.heapify(events)
        self.events = events
        tick = FIRST
        while events or self.pending:
            self.now = min(events[0][0] if events else tick, tick if self.pending else 10**12)
            while events and events[0][0] == self.now:
                self._happen(*heapq.heappop(events)[1:])
            if self.now >= tick:
                self._prioritise()
                self._backfill()
                tick = self.now - self.now % BF_INTERVAL + BF_INTERVAL
            self._main_loop()
            tick = max(tick, self.now - self.now % BF_INTERVAL + BF_INTERVAL)

    def _happen(self, kind: int, number: int) -> None:
        job = self.by_number[number]
        if kind == 0:
            self.free[job.where] += job.request
            self.running.discard(number)
            job.state = "TIMEOUT" if job.run > job.limit else "COMPLETED"
        elif kind == 1:
            self.pending.append(job)
            self._set_priority(job)
            self.pending.sort(key=lambda each: each.rank)
        elif job.state == "PENDING":
            job.state, job.end = f"CANCELLED by {job.user[1:]}", self.now
            self.pending.remove(job)

    # --- priority --------------------------------------------------------------------------------------

    def _charge(self) -> None:
        """Let usage decay, and charge running jobs for their CPUs, and 8 CPUs for a GPU."""
        seconds = self.now - self.charged_at
        if not seconds:
            return
        for user in self.usage:
            self.usage[user] *= 0.5 ** (seconds / HALF_LIFE)
        for number in sorted(self.running):
            job = self.by_number[number]
            ran = min(seconds, self.now - job.start)
            billing = job.nodes * (job.request[0] + 8 * job.request[1])
            self.usage[job.user] = self.usage.get(job.user, 0.0) + ran * billing
        self.charged_at = self.now

    def _set_priority(self, job: Work) -> None:
        total = sum(self.usage.values()) or 1.0
        fair = 2.0 ** (-self.usage.get(job.user, 0.0) / total * len(self.users))
        largest = max(queue.factor for queue in QUEUES)
        job.priority = (
            AGE * min((self.now - job.submit) / MAX_AGE, 1.0)
            + FAIR_SHARE * fair
            + PARTITION * job.queue.factor / largest
            + QUALITY * QOS[job.qos]
        )

    def _prioritise(self) -> None:
        self._charge()
        for job in self.pending:
            self._set_priority(job)
        self.pending.sort(key=lambda job: job.rank)

    # --- scheduling ------------------------------------------------------------------------------------

    def _main_loop(self) -> None:
        blocked: set[str] = set()
        closed = np.zeros(len(self.free), dtype=bool)
        for job in list(self.pending):
            if len(blocked) == len(QUEUES):
                return
            if job.queue.name in blocked:
                continue
            places = self.places[job.queue]
            nodes = self._chosen(job, np.where(closed[places, None], 0, self.free[places]))
            if nodes is None:
                blocked.add(job.queue.name)
                closed[places] |= self.closes_nodes
            else:
                self._start(job, nodes)

    def _chosen(self, job: Work, free: np.ndarray) -> list[int] | None:
        """Return the nodes for a job: those with the fewest free CPUs that are enough."""
        able = np.flatnonzero((free >= job.request).all(axis=1))
        if len(able) < job.nodes:
            return None
        fullest = able[np.argsort(free[able, 0], kind="stable")[: job.nodes]]
        found: list[int] = self.places[job.queue][fullest].tolist()
        return found

    def _start(self, job: Work, nodes: list[int]) -> None:
        self.pending.remove(job)
        self.free[nodes] -= job.request
        self.running.add(job.number)
        job.start, job.where, job.state = self.now, nodes, "RUNNING"
        job.end = self.now + min(job.run, job.limit)
        heapq.heappush(self.events, (job.end, 0, job.number))

    def _backfill(self) -> None:
        if not self.pending:
            return
        slots = BF_WINDOW // BF_RESOLUTION
        change = np.zeros((3, slots, len(self.free)), dtype=np.int32)
        change[:, 0] = self.free.T
        for number in self.running:
            job = self.by_number[number]
            slot = -(-(job.start + job.limit - self.now) // BF_RESOLUTION)
            if slot < slots:
                change[:, max(slot, 1), job.where] += np.array(job.request, dtype=np.int32)[:, None]
        level = change.cumsum(axis=1, dtype=np.int32)
        tested: Counter[str] = Counter()
        most, most_of_partition = self.tested
        for job in self.pending[:most]:
            tested[job.queue.name] += 1
            if tested[job.queue.name] > most_of_partition:
                continue
            places = self.places[job.queue]
            here = slice(places[0], places[-1] + 1)
            length = min(-(-job.limit // BF_RESOLUTION), slots)
            lacking = np.zeros((slots + 1, len(places)), dtype=np.int32)
            cpus, gpus, memory = job.request
            short = (level[0, :, here] < cpus) | (level[1, :, here] < gpus) | (level[2, :, here] < memory)
            np.cumsum(short, axis=0, out=lacking[1:])
            ends = np.minimum(np.arange(slots) + length, slots)
            able = lacking[ends] == lacking[:-1]
            fitting = np.flatnonzero(able.sum(axis=1) >= job.nodes)
            if not len(fitting):
                continue
            first = int(fitting[0])
            nodes = places[np.flatnonzero(able[first])[: job.nodes]].tolist()
            if first == 0:
                self._start(job, nodes)
            for level_of_one, amount in zip(level, job.request, strict=True):
                level_of_one[first : first + length, nodes] -= amount


def _numbers(nodes: str, names: list[str]) -> list[int]:
    kind, _, ends = nodes.rstrip("]").partition("[")
    first, _, last = ends.partition("-")
    return [names.index(f"{kind}{number}") for number in range(int(first), int(last) + 1)]


# --- what it prints ------------------------------------------------------------------------------------

FIELDS = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|"
    "AllocTRES|Constraints|NodeList"
)


def sacct(jobs: list[Work]) -> str:
    """Return the output of ``sacct --parsable2`` with Unix times."""
    lines = [FIELDS]
    for job in jobs:
        cpus, gpus, memory = (amount * job.nodes for amount in job.request)
        cards = f"gres/gpu={gpus}," if gpus else ""
        tres = f"billing={cpus + 8 * gpus},cpu={cpus},{cards}mem={memory}G,node={job.nodes}"
        began = job.start >= 0
        lines.append(
            f"{job.number}|{job.number}|{job.user}|{job.account}|{job.queue.name}|{job.qos}|{job.state}|{job.submit}|"
            f"{job.submit}|{job.start if began else 'None'}|{job.end}|{job.end - job.start if began else 0}|"
            f"{job.limit // 60 if job.limited else 'Partition_Limit'}|{tres}|{tres if began else ''}||"
            f"{_node_list(job)}"
        )
    return "\n".join(lines) + "\n"


def _node_list(job: Work) -> str:
    """Return the nodes of a job as Slurm does, in brackets if there are several."""
    if job.start < 0:
        return "None assigned"
    kind = job.queue.nodes.split("[")[0]
    numbers = [NAMES[node].removeprefix(kind) for node in sorted(job.where)]
    return f"{kind}{numbers[0]}" if len(numbers) == 1 else f"{kind}[{','.join(numbers)}]"


def scontrol() -> str:
    """Return the output of ``scontrol show partition``."""
    return "\n".join(map(_shown, QUEUES))


def nodes() -> str:
    """Return the output of ``scontrol show node --oneliner``."""
    return "\n".join(
        f"NodeName={kind}{number} Arch=x86_64 CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.01 "
        f"AvailableFeatures=(null) ActiveFeatures=(null) Gres={f'gpu:a100:{gpus}(S:0-1)' if gpus else '(null)'} "
        f"NodeAddr={kind}{number} OS=Linux 5.14.0 #1 SMP RealMemory={memory * 1024} AllocMem=0 State=IDLE "
        f"Weight=1 Partitions={','.join(queue.name for queue in QUEUES if queue.nodes.startswith(kind))}"
        for kind, (count, cpus, gpus, memory) in KINDS.items()
        for number in range(1, count + 1)
    )


def _shown(queue: Queue) -> str:
    first, last = queue.nodes.rstrip("]").partition("[")[2].split("-")
    count = int(last) - int(first) + 1
    return (
        f"PartitionName={queue.name}\n"
        f"   AllowGroups=ALL AllowAccounts={','.join(queue.accounts) or 'ALL'} AllowQos=ALL\n"
        f"   AllocNodes=ALL Default={'YES' if queue.default else 'NO'} QoS=N/A\n"
        f"   DefaultTime={_clock(queue.default_time)} DisableRootJobs=NO GraceTime=0 Hidden=NO\n"
        f"   MaxNodes={queue.max_nodes or 'UNLIMITED'} MaxTime={_clock(queue.max_time)} MinNodes=0 LLN=NO\n"
        f"   Nodes={queue.nodes}\n"
        f"   PriorityJobFactor={queue.factor} PriorityTier={queue.tier} RootOnly=NO ReqResv=NO OverSubscribe=NO\n"
        f"   State=UP TotalNodes={count} SelectTypeParameters=NONE\n"
        "   TRESBillingWeights=CPU=1.0,GRES/gpu=8.0\n"
    )


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, DAY)
    return f"{days}-{rest // HOUR:02d}:{rest // 60 % 60:02d}:00"


def month(days: int = 31, jobs: int = 20_000, seed: int = 0, *, every_job: bool = False) -> list[Work]:
    """Return the jobs of the month of the guide, scheduled; with `every_job`, backfill tests all waiting jobs."""
    drawn = drawn_jobs(days, jobs, seed)
    LittleSlurm(drawn, every_job=every_job, closes_nodes=False).run()
    return drawn


def write(
    folder: Path, days: int = 31, jobs: int = 20_000, seed: int = 0, *, every_job: bool = False
) -> None:
    """Write what the three commands print: march.sacct, partitions.txt and nodes.txt."""
    (folder / "march.sacct").write_text(sacct(month(days, jobs, seed, every_job=every_job)))
    (folder / "partitions.txt").write_text(scontrol())
    (folder / "nodes.txt").write_text(nodes())


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
