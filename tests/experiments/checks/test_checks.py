"""check_policy: every kind of broken policy is caught, with a small example; sound ones pass."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.policies import CheckError, check_policy
from hpcsimkit.experiments.checks.workloads import random_workloads
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Inspector, Order, Placement, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY


class Greedy(Policy):
    """Sound: starts whatever fits."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if self.may_start(job, system):
                system.start(job)

    def may_start(self, job: Job, system: System) -> bool:
        return system.fits(job)


class Hasty(Greedy):
    """Starts what does not fit."""

    def may_start(self, job: Job, system: System) -> bool:
        return True


class StartsTwice(Greedy):
    """Starts everything twice."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if system.fits(job):
                system.start(job)
                system.start(job)


class StartsTheFuture(Policy):
    """Starts jobs that have not been submitted."""

    def schedule(self, system: System) -> None:
        for job in system.jobs:
            if system.start_time(job) < 0 and system.fits(job):
                system.start(job)


class GoesAroundTheSystem(Policy):
    """Writes into the state instead of using the verbs."""

    def schedule(self, system: System) -> None:
        system.free = 10**6
        for job in system.queue:
            system.start(job)


class StarvesLarge(Greedy):
    """Never starts a job that needs the whole machine."""

    def may_start(self, job: Job, system: System) -> bool:
        return system.fits(job) and (job.nodes < system.cluster.size or system.cluster.size == 1)


class Waits(Policy):
    """Wakes up every second and starts nothing."""

    def schedule(self, system: System) -> None:
        system.wake(system.now + 1)


class DrawsFromEverywhere(Greedy):
    """Uses the global random state, not that of the run."""

    def may_start(self, job: Job, system: System) -> bool:
        return system.fits(job) and (random.random() < 0.5 or not system.anything_ahead)


class CountsItsRuns(Greedy):
    """Keeps a number for all runs, and is lazy from the sixth on."""

    runs = 0

    def reset(self, system: System) -> None:
        CountsItsRuns.runs += 1

    def may_start(self, job: Job, system: System) -> bool:
        return system.fits(job) and (self.runs < 6 or not system.anything_ahead)


class KnowsRunTimes(Order):
    """Shortest actual run time first."""

    def key(self, job: Job) -> int:
        return job.run_time


class KnowsEnds(Inspector):
    """Lets a job go on only if no running job ends within 3 s."""

    def accept(self, job: Job, system: System) -> bool:
        ends = [system.start_time(other) + other.run_time for other in system.running_jobs()]
        return all(end - system.now > 3 for end in ends) or not ends


class ForgetsItsParameter(Greedy):
    """Keeps its parameter under another name."""

    def __init__(self, limit: int = 3) -> None:
        self.maximum = limit


class ChangesItsParameter(Greedy):
    """Does more than storing."""

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit + 1


class TakesAnything(Greedy):
    """Has parameters without names."""

    def __init__(self, **options: Any) -> None:
        self.options = options


class CopiesBadly(Greedy):
    """Loses its parameter on the way into a run."""

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def __deepcopy__(self, memo: Any) -> CopiesBadly:
        return CopiesBadly()


class Divides(Policy):
    """Raises."""

    def schedule(self, system: System) -> None:
        print(1 / 0)


RULES, REPEATABLE, MEMORY, CLAIRVOYANT, PROPHET, PARAMETERS = (
    "capacity, starts and ends",
    "same seed, same schedule",
    "no state kept between runs",
    "run times not known before the end",
    "later submissions not known",
    "parameters",
)
BROKEN = [
    (Hasty(), RULES, r"job 2 at t=0 s needs 1 nodes; 0 are free"),
    (StartsTwice(), RULES, r"job 1 at t=0 s cannot start: it must be waiting; it started at t=0 s"),
    (StartsTheFuture(), RULES, r"cannot start: it must be waiting; it is submitted at"),
    (GoesAroundTheSystem(), RULES, r"job 2 starts at t=0 s, when 2 nodes are in use, of 1"),
    (StarvesLarge(), RULES, r"stalled at t=0 s: 1 jobs wait"),
    (Waits(), RULES, r"1 jobs starve: .* the last 10000 passes"),
    (Divides(), RULES, r"ZeroDivisionError: division by zero \(.*test_checks\.py:\d+\)"),
    (DrawsFromEverywhere(), REPEATABLE, r"two runs with seed 0 differ: job \d+ starts"),
    (CountsItsRuns(), MEMORY, r"after a run of another workload, job \d+ starts"),
    (
        Pipeline(order=KnowsRunTimes()),
        CLAIRVOYANT,
        r"of jobs that end after t=0 s \(1, 2\), job 1 ",
    ),
    (Pipeline(inspector=KnowsEnds()), CLAIRVOYANT, r"with other run times of jobs that end after t=\d+ s"),
    (make("fcfs+easy-ar"), CLAIRVOYANT, r"with other run times"),
    (ForgetsItsParameter(), PARAMETERS, r"does not store its parameter 'limit' under this name"),
    (ChangesItsParameter(), PARAMETERS, r"made of its own parameters is ChangesItsParameter\(limit=5\)"),
    (TakesAnything(), PARAMETERS, r"TakesAnything takes \*\*options: each parameter needs a name"),
    (CopiesBadly(4), PARAMETERS, r"a copy of CopiesBadly is CopiesBadly\("),
]


@pytest.mark.parametrize(("policy", "check", "problem"), BROKEN, ids=lambda value: str(value)[:40])
def test_broken_policies_are_caught(policy: Policy, check: str, problem: str) -> None:
    random.seed(1)
    CountsItsRuns.runs = 0
    with pytest.raises(CheckError, match=problem) as caught:
        check_policy(policy)
    message = str(caught.value)
    assert message.startswith(f"{policy!r} fails {check!r}: ")
    assert "\n" not in message


def example_of(policy: Policy) -> Workload:
    with pytest.raises(CheckError) as caught:
        check_policy(policy)
    code = re.search(r"on (Workload\(.*\)) \(smallest example found\)", str(caught.value))
    assert code
    return eval(code[1], {"Workload": Workload})


def test_example_is_small_and_can_be_pasted() -> None:
    workload = example_of(Hasty())
    assert (len(workload), workload.id.tolist(), workload.submit_time.tolist()) == (2, [1, 2], [0, 0])
    assert "user" not in workload.columns
    with pytest.raises(Exception, match="job 2 at t=0 s needs 1 nodes; 0 are free"):
        Simulation(workload, Hasty()).run()
    assert len(example_of(StartsTwice())) == 1
    assert len(example_of(Pipeline(order=KnowsRunTimes()))) == 2
    assert len(example_of(Pipeline(inspector=KnowsEnds()))) <= 3


@pytest.mark.parametrize(
    "name",
    ["fcfs", "sjf+easy", "wfp3+easy-sjf", "random+easy", "fcfs+conservative", "fcfs+conservative-replan",
     "sjf+easy++", "binpacking", "random-fit", "xfactor+easy+window", "f1+easy+commit"],
)  # fmt: skip
def test_sound_policies_pass(name: str) -> None:
    workloads = random_workloads(np.random.default_rng(0), 30)
    report = check_policy(make(name), workloads=workloads)
    assert report.checks == (PARAMETERS, "events", RULES, REPEATABLE, MEMORY, CLAIRVOYANT, PROPHET)
    assert (report.workloads, report.jobs, report.rejected) == (8, 240, 0)


def test_oracles_pass_if_they_say_so() -> None:
    for name in ("oracle-sjf+easy", "fcfs+easy-ar", "fcfs+easy-noise(0.5)"):
        assert CLAIRVOYANT not in check_policy(make(name), oracle=True).checks


def test_a_policy_that_looks_at_later_submissions_is_caught() -> None:
    class Prophet(Order):
        """Puts its jobs in an order that depends on how many will have been submitted in the end."""

        def reset(self, system: System) -> None:
            self._sign = 1 if len(system.jobs) % 2 else -1

        def key(self, job: Job) -> int:
            return self._sign * job.nodes

    with pytest.raises(CheckError, match="fails 'later submissions not known'"):
        check_policy(Pipeline(order=Prophet()))
    with pytest.raises(CheckError, match=r"later submissions not known|run times not known"):
        check_policy(make("slurm(shares=log)"))
    check_policy(make("slurm+easy"))


def test_report_says_how_many_were_rejected() -> None:
    class RejectsLarge(Greedy):
        def schedule(self, system: System) -> None:
            for job in system.queue:
                if job.nodes > 3:
                    system.reject(job)
                elif system.fits(job):
                    system.start(job)

    workloads = random_workloads(np.random.default_rng(1))
    report = check_policy(RejectsLarge(), workloads=workloads)
    assert report.rejected == sum(int((workload.nodes > 3).sum()) for workload in workloads) > 100
    assert f"480 jobs, {report.rejected} of them rejected\n  parameters\n" in str(report)


def test_own_workloads() -> None:
    one = Workload({"submit_time": [0, 0], "run_time": [5, 5], "nodes": [2, 2]}, machine_size=4)
    assert check_policy(Hasty(), workloads=[one]).jobs == 2
    with pytest.raises(UsageError, match="needs a machine size"):
        check_policy(Hasty(), workloads=[Workload({"submit_time": [0], "run_time": [5], "nodes": [2]})])


def test_open_seats_cannot_be_checked() -> None:
    with pytest.raises(CheckError, match="the order seat is open"):
        check_policy(Pipeline(order=External()))


def test_long_examples_are_not_written_out() -> None:
    class CountsTo50(Greedy):
        def may_start(self, job: Job, system: System) -> bool:
            if job.index == 49:
                raise ValueError("too many")
            return super().may_start(job, system)

    with pytest.raises(CheckError, match=r"; on 50 jobs of 'random, 1 nodes, load 0\.8' \(smallest"):
        check_policy(CountsTo50())


def test_random_workloads_hold_the_awkward_cases() -> None:
    workloads = random_workloads(np.random.default_rng(0))
    for workload in workloads:
        assert (workload.run_time == 0).any()
        assert (workload.run_time > workload.requested_time).any()
        assert (workload.run_time == workload.requested_time).any()
        assert (workload.nodes == workload.machine_size).any()
        assert (np.diff(workload.submit_time) == 0).any()
    again = random_workloads(np.random.default_rng(0))
    assert [workload.hash for workload in workloads] == [workload.hash for workload in again]


# --- on machines -------------------------------------------------------------------------------------------


class LastMachines(Placement):
    """The tutorial's own placement: the machines that are listed last."""

    def place(self, job: Job, level: Any, system: System) -> Any:
        machines = system.cluster.usable(job, level)
        return system.cluster.need(job).take(level, machines[::-1])


class AllThatIsFree(Placement):
    """Wrong: looks at all that is free, instead of what does not delay the blocked job."""

    def place(self, job: Job, level: Any, system: System) -> Any:
        return system.cluster.place(job, system.free)


class TooMuch(Placement):
    """Wrong: gives a machine twice."""

    def place(self, job: Job, level: Any, system: System) -> Any:
        return system.cluster.place(job, system.cluster.capacity)


MACHINES = Machines.of(2, cpus=4, memory="8 B") + Machines.of(1, "gpu", cpus=8, gpus=2)


@pytest.mark.parametrize("cluster", [None, MACHINES], ids=["by default", "given"])
def test_a_placement_is_checked_on_machines(cluster: Machines | None) -> None:
    report = check_policy(Pipeline(placement=LastMachines(), backfiller=EASY()), cluster=cluster)
    assert report.workloads == 4 and report.jobs > 100 and not report.notes


@pytest.mark.parametrize(
    ("placement", "problem"),
    [(AllThatIsFree(), "needs a place that delays nobody before it"), (TooMuch(), "does not lie within")],
    ids=repr,
)
def test_a_wrong_placement_fails(placement: Placement, problem: str) -> None:
    with pytest.raises(CheckError, match=f" fails '.*': .*{problem}"):
        check_policy(Pipeline(placement=placement, backfiller=EASY()))


def test_a_placement_that_does_nothing_is_said_so() -> None:
    report = check_policy(make("fcfs+best-fit+easy"), cluster=16)
    assert report.notes == ("not checked: BestFit(), which changes nothing on homogeneous nodes",)
    assert str(report).endswith(report.notes[0])
    assert not check_policy(make("fcfs+best-fit+easy")).notes


# --- policies that select machines themselves ----------------------------------------------------------------


class TwiceTheSameMachine(Policy):
    """Wrong: the first machine that a job could have if nothing ran."""

    selects_machines = True

    def schedule(self, system: System) -> None:
        cluster = system.cluster
        assert isinstance(cluster, Machines)
        for job in system.queue:
            system.start(job, cluster.place(job, cluster.capacity))


@pytest.mark.parametrize("cluster", [None, MACHINES], ids=["by default", "given"])
def test_a_policy_that_selects_machines_is_checked_on_machines(cluster: Machines | None) -> None:
    report = check_policy(make("bfbp"), cluster=cluster)
    assert report.workloads == 4 and report.jobs > 100 and not report.notes


def test_a_policy_that_selects_wrong_machines_fails() -> None:
    with pytest.raises(CheckError, match=r"TwiceTheSameMachine\(\) fails '.*': .*does not lie within"):
        check_policy(TwiceTheSameMachine())


def test_machines_that_are_not_checked_are_said_so() -> None:
    report = check_policy(make("bfbp"), cluster=16)
    assert report.workloads == 4
    assert report.notes == (
        "not checked: the machine selection of BestFitBinPacking(), since homogeneous nodes have no machines",
    )


def test_jobs_that_share_one_machine_each() -> None:
    for workload in random_workloads(np.random.default_rng(0), cluster=MACHINES, shared=True):
        needs = list(map(MACHINES.need, workload.jobs))
        assert len(needs) > 20 and not any(need.spread or need.exclusive or need.nodes > 1 for need in needs)


def test_a_method_that_is_named_like_an_event_and_is_none() -> None:
    class Counter(FCFS):
        def on_end(self, job: Job, system: System) -> None: ...

        def on_finish(self, job: Job, system: System) -> None: ...

    message = (
        r"fails 'events': Counter\.on_finish is never called; known: on_submit, on_start, on_end, on_stop"
    )
    with pytest.raises(CheckError, match=message):
        check_policy(Pipeline(order=Counter()))
