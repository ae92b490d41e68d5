"""The scheduler against a second one, written one second after the other, on small random days."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Workload
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.slurm.accounts import Qos
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.rules import Clocks, Multifactor
from tests.slurm.naive import Naive, Part, Work
from tests.slurm.small import run

TIER = st.integers(1, 3)


@st.composite
def days(draw: st.DrawFn) -> tuple[Naive, Slurm, Workload]:
    """A cluster, jobs and clocks, for both schedulers."""
    cpus = draw(st.lists(st.sampled_from([4, 8]), min_size=2, max_size=5))
    count = draw(st.integers(1, 3))
    parts = [
        Part(sorted(draw(st.sets(st.integers(0, len(cpus) - 1), min_size=1))), draw(TIER), 100 * draw(TIER))
        for _ in range(count)
    ]
    jobs = []
    for number in range(1, draw(st.integers(2, 14)) + 1):
        named = sorted(draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2)))
        nodes = draw(st.integers(1, min(len(parts[part].nodes) for part in named)))
        most = draw(st.sampled_from([0, 0, 0, 1, 2]))
        jobs.append(
            Work(
                number, draw(st.integers(0, 120)), draw(st.integers(1, 90)), draw(st.integers(1, 90)), nodes,
                draw(st.integers(1, 4)), named, 0, draw(st.sampled_from(["ada", "ben"])), most,
            )
        )  # fmt: skip
    jobs.sort(key=lambda job: (job.at, job.number))
    for number, job in enumerate(jobs, start=1):
        job.number = number
        job.most = {"ada": 1, "ben": 2}[job.user] if job.most else 0
    naive = Naive(
        cpus, parts, jobs, age=draw(st.sampled_from([0, 1000, 70])), period=draw(st.sampled_from([20, 60])),
        bf_interval=draw(st.sampled_from([7, 15, 30])), resolution=draw(st.sampled_from([1, 10])),
        depth=draw(st.sampled_from([2, 100])), tested=draw(st.sampled_from([2, 200])), window=draw(st.sampled_from([60, 10**5])),
    )  # fmt: skip
    return naive, profile_of(naive), workload_of(naive)


def profile_of(naive: Naive) -> Slurm:
    machines = Machines([f"n{n}" for n in range(len(naive.cpus))], ["cpus"], [[each] for each in naive.cpus])
    parts = [
        Partition(f"p{n}", machines=[f"n{node}" for node in part.nodes], priority=part.tier)
        for n, part in enumerate(naive.parts)
    ]
    clocks = Clocks(
        bf_interval=naive.bf_interval, bf_resolution=naive.resolution, bf_window=naive.window,
        bf_max_job_test=naive.tested, default_queue_depth=naive.depth,
    )  # fmt: skip
    rules = Multifactor(
        age=naive.age,
        partition=1,
        max_age=1000,
        calc_period=naive.period,
        flags=frozenset({"NO_NORMAL_PART"}),
    )
    return Slurm(
        "naive", Partitions(parts, machines), factors={f"p{n}": part.value for n, part in enumerate(naive.parts)},
        clocks=clocks, priority=rules, qos={name: Qos(name, limits={"MaxJobsPU": most}) for name, most in QOS.items()},
    )  # fmt: skip


QOS = {"one": 1, "two": 2}


def workload_of(naive: Naive) -> Workload:
    users, names = ["ada", "ben"], sorted({tuple(job.parts) for job in naive.jobs})
    columns = {
        "submit_time": [job.at for job in naive.jobs],
        "run_time": [job.run for job in naive.jobs],
        "requested_time": [job.limit for job in naive.jobs],
        "nodes": [job.nodes for job in naive.jobs],
        "cpus": [job.cpus for job in naive.jobs],
        "user": [users.index(job.user) for job in naive.jobs],
        "partition": [names.index(tuple(job.parts)) for job in naive.jobs],
        "qos": [users.index(job.user) if job.most else -1 for job in naive.jobs],
    }
    labels = {
        "user": tuple(users),
        "partition": tuple(",".join(f"p{part}" for part in parts) for parts in names),
        "qos": ("one", "two"),
    }
    return Workload(columns, resources=("cpus",), labels=labels)


@given(days())
def test_both_start_all_jobs_at_the_same_times(day: tuple[Naive, Slurm, Workload]) -> None:
    naive, made, workload = day
    assert run(made, workload).start_time.tolist() == naive.run(horizon=2500)
