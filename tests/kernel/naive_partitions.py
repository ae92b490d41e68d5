"""A slow simulator of partitions on shared machines, written from the page of the semantics, not from the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log


@dataclass
class NaiveJob:
    row: int
    submit: int
    run: int
    requested: int
    nodes: int
    cpus: int
    partitions: list[int]
    user: int = 0
    start: int = -1
    where: list[int] = field(default_factory=list)
    started_in: NaivePartition | None = None

    def expected_end(self, now: int) -> int:
        return max(self.start + self.requested, now + 1)


@dataclass
class NaivePartition:
    machines: list[int]
    priority: int
    order: str = ""
    most_nodes: int = 1000
    most_cpus: int = 1000
    waiting: list[NaiveJob] = field(default_factory=list)
    needs_pass: bool = False
    reserved: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    """Start and machines of the reservation of each waiting job, by row (conservative)."""
    next_start: int | None = None
    last_pass: int = -1
    exceeded: bool = False
    exceeding: int = 0
    """Number of passes beside a job that exceeds its estimate."""
    some_ended: bool = False
    disturbed: bool = False
    """Whether the other partitions have changed what is planned."""

    def allows(self, jobs: list[NaiveJob]) -> bool:
        """Tell whether jobs may run here at once."""
        nodes, cpus = sum(job.nodes for job in jobs), sum(job.nodes * job.cpus for job in jobs)
        return nodes <= self.most_nodes and cpus <= self.most_cpus


@dataclass
class NaiveShares:
    """Slurm's priority with equal shares: age of a week, fair share and short requests, each with weight 1000."""

    half_life: float
    jobs: list[NaiveJob]
    """The jobs whose users and requests count, of any time."""
    partition: NaivePartition | None = None
    """The partition in which a job must have started to be charged; None for any."""

    def priority(self, job: NaiveJob, now: int) -> float:
        submitted = [each for each in self.jobs if each.submit <= now]
        users, longest = {each.user for each in submitted}, max(each.requested for each in submitted)
        used = {user: sum(self.usage(each, now) for each in submitted if each.user == user) for user in users}
        share = used[job.user] / max(sum(used.values()), 1e-9)
        age = min((now - job.submit) / (7 * 86400), 1)
        return 1000 * (age + 2 ** -(share * len(users)) + 1 - job.requested / longest)

    def usage(self, job: NaiveJob, now: int) -> float:
        """Integrate the processors of a job from its start to its end, each second decayed until now."""
        if job.start < 0 or not (self.partition is None or self.partition is job.started_in):
            return 0
        begin, end = now - job.start, max(now - job.start - job.run, 0)
        rate = log(2) / self.half_life
        return job.nodes * job.cpus * (exp(-end * rate) - exp(-begin * rate)) / rate


def naive_starts(
    jobs: list[NaiveJob],
    partitions: list[NaivePartition],
    cpus: list[int],
    order: str,
    backfilling: str,
    usage: str = "partition",
    half_life: float = 50,
) -> list[int]:
    """Return the start time of each job, -1 if it never starts."""
    free, running = list(cpus), []
    ranked = sorted(partitions, key=lambda partition: -partition.priority)
    keys = {
        "fcfs": lambda job: (job.submit, job.row),
        "sjf": lambda job: (job.requested, job.submit, job.row),
    }

    def key_in(partition, now):
        if (partition.order or order) != "slurm":
            return keys[partition.order or order]
        if usage == "cluster":
            shares = NaiveShares(half_life, jobs)
        else:
            here = [job for job in jobs if any(partitions[number] is partition for number in job.partitions)]
            shares = NaiveShares(half_life, here, partition)
        return lambda job: (-shares.priority(job, now), job.submit, job.row)

    def first_fit(job, level, machines):
        able = [machine for machine in machines if level[machine] >= job.cpus]
        return able[: job.nodes] if len(able) >= job.nodes else None

    def running_in(partition):
        return [job for job in running if job.started_in is partition]

    def end_jobs(now):
        for job in [job for job in running if job.start + job.run == now]:
            running.remove(job)
            for machine in job.where:
                free[machine] += job.cpus
            for partition in partitions:
                if set(job.where) & set(partition.machines):
                    partition.needs_pass = partition.needs_pass or bool(partition.waiting)
                    partition.some_ended |= partition is job.started_in
                    partition.disturbed |= partition is not job.started_in

    def start(job, where, here, now):
        job.start, job.where, job.started_in = now, where, here
        running.append(job)
        for machine in where:
            free[machine] -= job.cpus
        for partition in partitions:
            reservation = partition.reserved.pop(job.row, None)
            if partition is not here:
                partition.disturbed |= bool(reservation or set(where) & set(partition.machines))
            if job in partition.waiting:
                partition.waiting.remove(job)
                if partition is not here and partition.waiting:
                    partition.needs_pass = True

    def schedule(partition, now):
        key = key_in(partition, now)
        if backfilling == "conservative":
            schedule_by_plan(partition, key, now)
            return
        while partition.waiting:
            head = min(partition.waiting, key=key)
            where = first_fit(head, free, partition.machines)
            if where is None or not partition.allows([head, *running_in(partition)]):
                break
            start(head, where, partition, now)
        if not partition.waiting or backfilling == "none":
            return
        shadow, later = shadow_of(head, partition, now)
        for job in sorted(partition.waiting, key=key):
            if job is head:
                continue
            machines = partition.machines
            lasting = job.requested > shadow - now and backfilling == "easy"
            if lasting:
                machines = permitted(job, head, later, machines)
            where = first_fit(job, free, machines)
            if not partition.allows([job, *running_in(partition)]):
                continue
            if lasting and not partition.allows([job, head, *running_at(shadow, partition, now)]):
                continue
            if where is not None:
                start(job, where, partition, now)
                for machine in where if lasting else ():
                    later[machine] -= job.cpus

    def running_at(shadow, partition, now):
        return [job for job in running_in(partition) if job.expected_end(now) > shadow]

    def shadow_of(head, partition, now):
        for shadow in sorted({job.expected_end(now) for job in running}):
            later = list(free)
            for job in running:
                if job.expected_end(now) <= shadow:
                    for machine in job.where:
                        later[machine] += job.cpus
            allowed = partition.allows([head, *running_at(shadow, partition, now)])
            if allowed and first_fit(head, later, partition.machines) is not None:
                return shadow, later
        raise AssertionError("the head never fits")

    def permitted(job, head, later, machines):
        able = [machine for machine in machines if later[machine] >= head.cpus]
        spare = len(able) - head.nodes
        if job.nodes <= spare:
            return machines
        critical = [
            machine for machine in able if free[machine] >= job.cpus and later[machine] - job.cpus < head.cpus
        ]
        return [machine for machine in machines if machine not in critical[max(spare, 0) :]]

    def schedule_by_plan(partition, key, now):
        """Run a pass of conservative backfilling."""
        reserved, queue = partition.reserved, sorted(partition.waiting, key=key)
        on_it = [job for job in running if set(job.where) & set(partition.machines)]
        exceeds = any(job.start + job.requested <= now for job in on_it)
        late = any(at < now or at <= partition.last_pass for at, _ in reserved.values())
        new = sorted((job for job in queue if job.row not in reserved), key=lambda job: (job.submit, job.row))
        if exceeds or partition.exceeded or partition.disturbed or late:
            before = dict(reserved)
            reserved.clear()
            for row in sorted(before, key=lambda row: (before[row][0], row)):
                reserved[row] = earliest(jobs[row], partition, now)
        elif partition.some_ended:
            for job in [job for job in queue if job.row in reserved]:
                before = reserved.pop(job.row)
                found = earliest(job, partition, now)
                assert found[0] <= before[0]
                reserved[job.row] = found if found[0] < before[0] else before
        for job in new:
            reserved[job.row] = earliest(job, partition, now)
        partition.exceeded, partition.last_pass = exceeds, now
        partition.exceeding += exceeds
        partition.some_ended = partition.disturbed = False
        for job in queue:
            at, _ = reserved[job.row]
            if at <= now:
                del reserved[job.row]
                start(job, slot(job, partition, now, now), partition, now)
        starts = [at for at, _ in reserved.values() if at > now + exceeds]
        partition.next_start = min(starts, default=None)

    def earliest(job, partition, now):
        """Return the start of the earliest slot, and the first machines that are free throughout."""
        ends = [each.expected_end(now) for each in running]
        ends += [at + jobs[row].requested for row, (at, _) in partition.reserved.items()]
        found = ((at, slot(job, partition, at, now)) for at in sorted({now, *ends}))
        return next((at, where) for at, where in found if where is not None)

    def slot(job, partition, at, now):
        """Return the first machines that are free from an instant on for as long as a job requests, or None."""
        end = at + job.requested
        instants = {at, *(start for start, _ in partition.reserved.values() if at < start < end)}
        level = list(cpus)
        for instant in instants:
            there, beside = list(cpus), [job]
            for each in running:
                if each.expected_end(now) > instant:
                    beside += [each] if each.started_in is partition else []
                    for machine in each.where:
                        there[machine] -= each.cpus
            for row, (start, where) in partition.reserved.items():
                if start <= instant < start + jobs[row].requested:
                    beside.append(jobs[row])
                    for machine in where:
                        there[machine] -= jobs[row].cpus
            if not partition.allows(beside):
                return None
            level = list(map(min, level, there))
        return first_fit(job, level, partition.machines)

    coming = sorted(jobs, key=lambda job: (job.submit, job.row))
    while coming or running:
        instants = [job.start + job.run for job in running] + [job.submit for job in coming[:1]]
        now = min(instants + [part.next_start for part in partitions if part.next_start is not None])
        for partition in partitions:
            if partition.next_start == now:
                partition.next_start, partition.needs_pass = None, bool(partition.waiting)
        end_jobs(now)
        while coming and coming[0].submit == now:
            job = coming.pop(0)
            for number in job.partitions:
                partitions[number].waiting.append(job)
                partitions[number].needs_pass = True
        while needing := [partition for partition in ranked if partition.needs_pass]:
            needing[0].needs_pass = False
            if needing[0].waiting:
                schedule(needing[0], now)
            end_jobs(now)
    return [job.start for job in jobs]
