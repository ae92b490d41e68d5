"""Where a job runs changes how long it takes: the calibrated penalties, models of one's own, and what may go wrong."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster, Level
from hpcsimkit.errors import PolicyError, ScheduleError, UsageError
from hpcsimkit.jobs.job import Job, Request
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH, LOCALITIES, NETWORK_BOUND, KindLocality
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.service_time import ServiceTime, as_service_time
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY
from hpcsimkit.policies.placing.placements import BreadthFirst, DepthFirst, FirstFit
from tests.kernel.helpers import workload
from tests.kernel.machine_helpers import asked, jobs_on_machines, placed, run_on

SIERRA, SUMMIT = Machines.of(128, cpus=2, gpus=4), Machines.of(128, cpus=2, gpus=6)


def job_of(
    kind: int, cpus: int, gpus: int, *, seconds: int = 10, requested: int = 10, spread: bool = True
) -> Job:
    return Job(
        0, 1, 0, seconds, requested, 1, request=Request(("cpus", "gpus"), (cpus, gpus), spread), kind=kind
    )


ON_ONE = {style: Allocation([0], [[0, 0]], style) for style in (DEPTH, BREADTH)}

# --- the calibrated penalties ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "kind", "style", "kappa"),
    [
        ("sierra", NETWORK_BOUND, DEPTH, 2.0), ("sierra", COMPUTE_BOUND, BREADTH, 0.1),
        ("summit", NETWORK_BOUND, DEPTH, 1.7), ("summit", COMPUTE_BOUND, BREADTH, 1.0),
        ("sierra", NETWORK_BOUND, BREADTH, 0), ("sierra", COMPUTE_BOUND, DEPTH, 0),
        ("summit", NETWORK_BOUND, BREADTH, 0), ("summit", COMPUTE_BOUND, DEPTH, 0),
        ("sierra", 2, DEPTH, 0), ("sierra", -1, BREADTH, 0),
    ],
)  # fmt: skip
def test_penalties_are_kappa_times_seconds_times_size(
    system: str, kind: int, style: str, kappa: float
) -> None:
    """The size is the larger share: 64 of 256 CPUs, or 384 of 512 (768) GPUs."""
    cluster, model = {"sierra": SIERRA, "summit": SUMMIT}[system], LOCALITIES[system]
    few, many = job_of(kind, 64, 10), job_of(kind, 64, 384)
    large = 384 / cluster.totals[1]
    assert model.penalty(few, 20, ON_ONE[style], cluster) == pytest.approx(kappa * 20 * 0.25)
    assert model.penalty(many, 20, ON_ONE[style], cluster) == pytest.approx(kappa * 20 * large)
    assert model.actual(many, ON_ONE[style], cluster) == round(10 + kappa * 10 * large)


def test_memory_does_not_count_in_the_size() -> None:
    """A asks for all memory only; B for half of the CPUs, an eighth of the GPUs and all memory."""
    cluster, model = Machines.of(1, cpus=4, gpus=8, memory="3 B"), KindLocality(0.0, 2.0)
    memory = asked(0, 1, memory=3, kind=NETWORK_BOUND)
    packed = Pipeline(placement=DepthFirst())
    assert run_on(cluster, [memory], packed, service_time=model).end_time.tolist() == [1]
    request = Request(("cpus", "gpus", "memory"), (2, 1, 3))
    both = Job(0, 1, 0, 10, 10, 1, request=request, kind=NETWORK_BOUND)
    assert model.penalty(both, 10, Allocation([0], [[2, 1, 3]], DEPTH), cluster) == 2.0 * 10 * 0.5


def test_size_in_nodes() -> None:
    """n / 128 with n the fewest nodes that could hold the job, whatever the size of the cluster."""
    model = KindLocality(0.1, 2.0, nodes=128)
    small = Machines.of(16, cpus=2, gpus=4)
    for cpus, gpus, nodes in ((3, 4, 2), (1, 17, 5), (2, 4, 1), (32, 64, 16), (0, 0, 1)):
        job = job_of(NETWORK_BOUND, cpus, gpus)
        assert model.penalty(job, 10, ON_ONE[DEPTH], small) == pytest.approx(2.0 * 10 * nodes / 128)
    four = Job(0, 1, 0, 9, 9, 4, request=Request(("cpus",), (1,)), kind=NETWORK_BOUND)
    assert model.penalty(four, 10, ON_ONE[DEPTH], small) == pytest.approx(2.0 * 10 * 4 / 128)
    largest = Machines.of(2, cpus=2) + Machines.of(1, cpus=8)
    assert model.penalty(job_of(NETWORK_BOUND, 9, 0), 10, ON_ONE[DEPTH], largest) == pytest.approx(
        20 * 2 / 128
    )


def test_an_allocation_without_style_is_judged_by_its_machines() -> None:
    cluster, model = Machines.of(8, cpus=4, memory="10 B"), KindLocality(1.0, 1.0)
    request = Request(("cpus", "memory"), (4, 8), spread=True)
    network = Job(0, 1, 0, 32, 32, 1, request=request, kind=NETWORK_BOUND)
    parts = {count: Allocation(range(count), [[4 // count, 0]] * count) for count in (1, 2, 4)}
    # From one machine to four (a CPU each): one and two are nearer to the fewest, four is the most.
    penalties = {count: model.penalty(network, 32, each, cluster) for count, each in parts.items()}
    assert penalties == {1: 4.0, 2: 4.0, 4: 0.0}
    compute = network._replace(kind=COMPUTE_BOUND)
    assert [model.penalty(compute, 32, each, cluster) for each in parts.values()] == [0.0, 0.0, 4.0]


def test_service_times_are_whole_seconds_at_least_one() -> None:
    cluster = Machines.of(10, cpus=1)
    for run, kappa, expected in (
        (10, 0.04, 10),
        (10, 0.5, 10),
        (10, 1.5, 12),
        (10, 0.6, 11),
        (1, 0.1, 1),
        (0, 9.0, 0),
    ):
        job = job_of(COMPUTE_BOUND, 1, 0, seconds=run)  # a tenth of the cluster; halves are rounded to even
        assert KindLocality(kappa, 0).actual(job, ON_ONE[BREADTH], cluster) == expected


def test_locality_needs_machines_and_kinds() -> None:
    log = workload([(0, 5, 5, 2)], 4, kind=[NETWORK_BOUND])
    with pytest.raises(UsageError, match=r"^KindLocality\(.*\) needs machines, found Nodes\(count=4\)$"):
        Simulation(log, Pipeline(), service_time=LOCALITIES["sierra"]).run()
    without = workload([(0, 5, 5, 2)], 4)
    assert Simulation(without, Pipeline(), service_time=LOCALITIES["sierra"]).run().end_time.tolist() == [5]


# --- in a run --------------------------------------------------------------------------------------------


def test_a_schedule_with_penalties() -> None:
    """Of 8 CPUs: A (network, half of them) takes 10 + 2.0 x 10 / 2 = 20 s depth-first, B waits that long."""
    four = Machines.of(4, cpus=2)
    jobs = [
        asked(0, 10, cpus=4, spread=True, kind=NETWORK_BOUND),
        asked(0, 10, cpus=6, spread=True, kind=COMPUTE_BOUND),
    ]
    model = KindLocality(0.4, 2.0)
    depth = run_on(four, jobs, Pipeline(placement=DepthFirst()), service_time=model)
    assert depth.start_time.tolist() == [0, 20] and depth.end_time.tolist() == [20, 30]
    breadth = run_on(four, jobs, Pipeline(placement=BreadthFirst()), service_time=model)
    assert breadth.start_time.tolist() == [0, 10] and breadth.end_time.tolist() == [10, 23]
    assert breadth.run_time.tolist() == [10, 13] and breadth.options["service_time"] == repr(model)
    assert "service_time" not in run_on(four, jobs, Pipeline()).options


def test_killed_at_the_requested_time() -> None:
    """A is killed for its penalty, B has none, C would have run too long anyway, D ends just in time."""
    cluster = Machines.of(4, cpus=1)
    jobs = [
        asked(0, 10, requested=12, cpus=1, kind=NETWORK_BOUND), asked(0, 10, requested=12, cpus=1, kind=COMPUTE_BOUND),
        asked(0, 20, requested=12, cpus=1, kind=COMPUTE_BOUND), asked(0, 8, requested=12, cpus=1, kind=NETWORK_BOUND),
    ]  # fmt: skip
    policy, model = (
        Pipeline(placement=DepthFirst()),
        KindLocality(0, 2.0),
    )  # a quarter of the cluster: half as long again
    killed = run_on(cluster, jobs, policy, service_time=model, walltime="kill")
    assert killed.end_time.tolist() == [12, 10, 12, 12] and killed.killed.tolist() == [
        True,
        False,
        True,
        False,
    ]
    full = run_on(cluster, jobs, policy, service_time=model)
    assert full.end_time.tolist() == [15, 10, 20, 12] and not full.killed.any()


class Jitter(ServiceTime):
    """Draws the penalty anew whenever it is asked, and writes down how long the job would take."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.drawn: dict[int, int] = {}

    def penalty(self, job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> float:
        penalty = int(self.random.integers(-5, 6))
        self.drawn[job.index] = seconds + penalty
        return penalty


def test_killed_is_who_was_killed_though_the_model_draws_random_numbers() -> None:
    """The penalty counts that was drawn when the job started; the model is not asked again."""
    jobs, model = [asked(0, 10, requested=10, cpus=1)] * 60, Jitter(1)
    result = run_on(Machines.of(1, cpus=4), jobs, Pipeline(), service_time=model, walltime="kill")
    wanted = np.array([model.drawn[row] for row in range(60)])
    assert result.killed.tolist() == (wanted > 10).tolist() and 0 < result.killed.sum() < 60
    np.testing.assert_array_equal(result.end_time - result.start_time, np.minimum(wanted, 10))


def test_overrunning_penalties_and_easy() -> None:
    """A is believed to end at 10 and ends at 20; at each pass the head's reservation moves with the clock."""
    cluster = Machines.of(2, cpus=2)
    jobs = [
        asked(0, 10, cpus=3, spread=True, kind=NETWORK_BOUND), asked(1, 5, cpus=2, nodes=2),
        asked(12, 2, cpus=1), asked(13, 1, cpus=1),
    ]  # fmt: skip
    policy = Pipeline(placement=DepthFirst(), backfiller=EASY())
    result = run_on(cluster, jobs, policy, service_time=KindLocality(0, 4 / 3))
    # B needs all there is. At 12 and at 13 it is expected a second later: C is too long for that, D is not.
    assert result.start_time.tolist() == [0, 20, 25, 13] and result.end_time[0] == 20


class Asking(Placement):
    """Depth- or breadth-first, whichever is expected to cost less."""

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        both = [placement.place(job, level, system) for placement in (DepthFirst(), BreadthFirst())]
        found = [each for each in both if each is not None]
        return min(found, key=lambda each: system.expected_penalty(job, each), default=None)


def test_policies_may_ask_for_the_expected_penalty() -> None:
    four = Machines.of(4, cpus=2)
    jobs = [asked(20 * kind, 10, cpus=4, spread=True, kind=1 - kind) for kind in (0, 1)]
    result = run_on(four, jobs, Pipeline(placement=Asking()), service_time=LOCALITIES["sierra"])
    assert result.placements is not None and result.placements.machine_count.tolist() == [4, 2]
    assert result.run_time.tolist() == [10, 10]


def test_the_expected_penalty_reads_the_requested_time_only() -> None:
    """Whatever the run time, the answer is the same; without a model it is 0."""
    seen: list[tuple[float, float]] = []

    class Curious(Placement):
        def place(self, job: Job, level: Level, system: System) -> Allocation | None:
            allocation = DepthFirst().place(job, level, system)
            assert allocation is not None
            seen.append((system.expected_penalty(job, allocation), system.expected_penalty(job, allocation)))
            return allocation

    four = Machines.of(4, cpus=2)
    for run in (1, 20, 400):
        jobs = [asked(0, run, requested=30, cpus=4, spread=True, kind=NETWORK_BOUND)]
        run_on(four, jobs, Pipeline(placement=Curious()), service_time=KindLocality(0, 2.0))
    run_on(four, jobs, Pipeline(placement=Curious()))
    assert seen == [(30.0, 30.0)] * 3 + [(0.0, 0.0)]


# --- models of one's own ---------------------------------------------------------------------------------


def far_apart(job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> float:
    """A tenth for every further machine."""
    return 0.1 * seconds * (len(allocation.machines) - 1)


class Slow(ServiceTime):
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def penalty(self, job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> float:
        return self.factor * seconds


def test_a_function_is_a_model() -> None:
    jobs = [asked(0, 50, cpus=4, nodes=nodes) for nodes in (1, 2, 3)]
    result = run_on(Machines.of(6, cpus=4), jobs, Pipeline(placement=FirstFit()), service_time=far_apart)
    assert result.run_time.tolist() == [50, 55, 60] and result.options["service_time"] == "far_apart"


def test_a_model_on_counted_nodes() -> None:
    """The allocation is the number of nodes there."""
    log = workload([(0, 10, 10, 1), (0, 10, 10, 3)], 4)
    model = lambda job, seconds, allocation, cluster: seconds * (allocation - 1)  # noqa: E731
    assert Simulation(log, Pipeline(), service_time=model).run().end_time.tolist() == [10, 30]


def test_models_by_parameters() -> None:
    assert repr(LOCALITIES["sierra"]) == "KindLocality(compute_spread=0.1, network_crowded=2.0)"
    assert KindLocality(0.1, 2.0) == LOCALITIES["sierra"] != LOCALITIES["summit"]
    for model in (copy.deepcopy(LOCALITIES["summit"]), pickle.loads(pickle.dumps(LOCALITIES["summit"]))):
        assert model == LOCALITIES["summit"] and hash(model) == hash(LOCALITIES["summit"])
    assert as_service_time(None) is None and ServiceTime().penalty(job_of(0, 1, 0), 9, None, Nodes(1)) == 0


@pytest.mark.parametrize("model", ["sierra", 3, Slow, KindLocality])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(UsageError, match=r"^service_time needs a ServiceTime or a function, found "):
        Simulation(workload([(0, 10, 10, 1)], 4), Pipeline(), service_time=model)


@pytest.mark.parametrize("penalty", [3, 3.0, np.int64(3), np.float32(3.0)])
def test_penalties_may_be_numbers_of_any_kind(penalty: Any) -> None:
    log = workload([(0, 10, 10, 1)], 4)
    assert Simulation(log, Pipeline(), service_time=lambda *_: penalty).run().end_time.tolist() == [13]


@pytest.mark.parametrize("penalty", [float("nan"), float("inf"), -11, -10, -10.0, None, "3", 2j])
def test_penalties_that_make_no_sense(penalty: Any) -> None:
    def mine(job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> Any:
        return penalty

    log = workload([(0, 10, 10, 1)], 4, id=[7])
    with pytest.raises(
        ScheduleError,
        match=r"mine for job 7: a penalty needs to be a number of seconds, more than -10 where the job takes 10 s and up to 10\^11 s with it, found ",
    ) as error:
        Simulation(log, Pipeline(), service_time=mine).run()
    assert str(error.value).endswith(f"found {penalty!r}")
    assert Simulation(log, Pipeline(), service_time=lambda *_: -9.9).run().end_time.tolist() == [1]


def test_an_error_inside_a_model_is_told_with_its_line() -> None:
    def mine(job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> float:
        return seconds / 0

    with pytest.raises(
        PolicyError,
        match=r"at t=0 s, in mine for job 1: ZeroDivisionError: division by zero \(.*test_locality\.py:\d+\)",
    ):
        Simulation(workload([(0, 10, 10, 1)], 4), Pipeline(), service_time=mine).run()


def test_dependencies_wait_for_the_real_end() -> None:
    jobs = jobs_on_machines([asked(0, 10, cpus=1, nodes=2), asked(0, 5, cpus=1)], preceding=[-1, 1])
    result = run_on(Machines.of(2, cpus=4), jobs, Pipeline(), service_time=far_apart, dependencies=True)
    assert placed(result) == [(0, "node1 node2"), (11, "node1")]


def test_a_faster_machine_may_save_a_job_from_being_killed() -> None:
    """150 s of work at half the time end at 75, before the limit of 100; 300 s do not."""

    def faster(job: Job, seconds: int, allocation: Any, cluster: AnyCluster) -> float:
        return -seconds / 2

    log = workload([(0, 150, 100, 1), (0, 300, 100, 1)], 2)
    result = Simulation(log, Pipeline(), service_time=faster, walltime="kill").run()
    assert result.end_time.tolist() == [75, 100] and result.killed.tolist() == [False, True]
