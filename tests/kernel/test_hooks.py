"""Stages and policies that follow the events of their run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, Pipeline
from hpcsimkit.results.attempts import Outcome
from tests.kernel.helpers import run, starts, workload


class FairShare(Order):
    """The user with the least node-seconds so far first."""

    def reset(self, system: System) -> None:
        self.used: dict[int, int] = {}
        self.system = system

    def on_end(self, job: Job, system: System) -> None:
        self.used[job.user] = self.used.get(job.user, 0) + job.nodes * job.run_time

    def scores(self, jobs: Any, now: int) -> Any:
        return [self.used.get(user, 0) for user in jobs.user.tolist()]


HEARD: list[tuple[str, int, int]] = []


class Listening(Policy):
    """Starts what fits, and writes down what it hears."""

    def on_submit(self, job: Job, system: System) -> None:
        HEARD.append(("submit", job.id, system.now))

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        HEARD.append(("start", job.id, system.now))

    def on_end(self, job: Job, system: System) -> None:
        HEARD.append(("end", job.id, system.now))

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        HEARD.append((why.name, job.id, system.now))

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if system.fits(job):
                system.start(job)


ROWS = [(0, 9, 9, 1), (1, 5, 5, 1), (2, 5, 5, 1)]


@pytest.mark.parametrize("backfiller", [None, EASY()])
def test_an_order_that_learns_from_ends(backfiller: Any) -> None:
    """User 1 has had 9 s when the node is free again, so that the job of user 2 comes before that of user 1."""
    jobs = workload(ROWS, 1, user=[1, 1, 2])
    assert starts(jobs, Pipeline(FairShare(), backfiller=backfiller)) == [0, 14, 9]
    assert starts(jobs, "fcfs") == [0, 9, 14]


def test_a_policy_hears_of_all_events() -> None:
    HEARD.clear()
    run(workload([(0, 9, 9, 1)], 1), Listening(), outages=Outages([Outage(4, 6)]))
    assert HEARD == [
        ("submit", 1, 0),
        ("start", 1, 0),
        ("FAILED", 1, 4),
        ("submit", 1, 4),
        ("start", 1, 6),
        ("end", 1, 15),
    ]


def test_each_partition_hears_of_all_jobs() -> None:
    HEARD.clear()
    cluster = Partitions([Partition("a", nodes=1), Partition("b", nodes=1)])
    jobs = workload([(0, 5, 5, 1), (0, 5, 5, 1)], 2, partition=[0, 1])
    Simulation(replace(jobs, labels={"partition": ("a", "b")}), Listening(), cluster).run()
    once = [(what, job, at) for what, at in (("submit", 0), ("start", 0), ("end", 5)) for job in (1, 2)]
    assert sorted(HEARD) == sorted(once * 2)


def test_running_jobs_can_be_iterated() -> None:
    class Youngest(Policy):
        def schedule(self, system: System) -> None:
            for job in system.queue:
                if system.fits(job):
                    system.start(job)
            assert [job.index for job in system.running] == system.running.rows

    run(workload(ROWS, 2), Youngest())


class Forgetful(Policy):
    """Starts what fits; the copy that runs does without the part that its original has."""

    def __init__(self) -> None:
        self.part: Policy | None = Listening()

    def __deepcopy__(self, memo: Any) -> Forgetful:
        copied = type(self)()
        copied.part = None
        return copied

    def schedule(self, system: System) -> None:
        for job in list(system.queue):
            system.start(job)


def test_a_part_that_the_copy_does_without_hears_nothing() -> None:
    HEARD.clear()
    run(workload([(0, 9, 9, 1)], 1), Forgetful())
    assert HEARD == []
