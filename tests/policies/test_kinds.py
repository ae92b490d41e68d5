"""Kinds of work learned from executions: by hand, against a naive fit, with noise, and never from the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.agents.seats import play
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Cluster
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import UNKNOWN, Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH, LOCALITIES, NETWORK_BOUND, KindLocality
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Placement, Policy
from hpcsimkit.kernel.service_time import Penalty
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import (
    SJF,
    BreadthFirst,
    DepthFirst,
    DepthOrBreadth,
    FirstFit,
    KindsByExecution,
    KindsInRun,
    LearnedKinds,
    SuitsKind,
)
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, CushJobSets
from hpcsimkit.workloads.models.cush_programs import CushPrograms
from tests.kernel.machine_helpers import asked, jobs_on_machines

Execution = tuple[int, str, float, float]
SUITED = {COMPUTE_BOUND: DEPTH, NETWORK_BOUND: BREADTH}


def learned(executions: Sequence[Execution], told: dict[int, int] | None = None) -> KindsByExecution:
    kinds = KindsByExecution()
    for execution in executions:
        kinds.observe(*execution)
    for program, kind in (told or {}).items():
        kinds.tell(program, kind)
    return kinds


# --- the classifier --------------------------------------------------------------------------------------

PAIRS = [(1, DEPTH, 0.5, 1.5), (1, BREADTH, 0.5, 1.0), (2, DEPTH, 0.5, 0.5), (2, BREADTH, 0.5, 0.6)]


def test_kappas_and_noise_of_told_kinds_by_hand() -> None:
    """Relative to their means, slow-downs are 1 +- 0.2 and 1 -+ 1/11; sizes in the bad style 0.25 +- 0.25.

    So sums of products are 2 x 0.2 x 0.25 = 0.1 and 2 x 0.25 / 11 = 0.5 / 11, of squares 0.125. The prior adds
    0.05 to all of them.
    """
    fit = learned(PAIRS, {1: NETWORK_BOUND, 2: COMPUTE_BOUND}).fit()
    assert fit.network_bound.tolist() == [1, 0]
    assert fit.network_crowded == pytest.approx(0.15 / 0.175)
    assert fit.compute_spread == pytest.approx((0.05 + 0.5 / 11) / 0.175) == pytest.approx(6 / 11)
    network = 2 * 0.2**2 - 2 * (6 / 7) * 0.1 + (6 / 7) ** 2 * 0.125
    compute = 2 / 11**2 - 2 * (6 / 11) * (0.5 / 11) + (6 / 11) ** 2 * 0.125
    assert fit.noise**2 == pytest.approx((4 * 0.2**2 + network + compute) / (4 + 2))


def test_kinds_that_nobody_told() -> None:
    kinds = learned(PAIRS)
    assert kinds.network_bound(1) > 0.95 and kinds.kind(1) == NETWORK_BOUND
    assert kinds.network_bound(2) < 0.1 and kinds.kind(2) == COMPUTE_BOUND
    assert kinds.network_bound(3) == 0.5 and kinds.kind(3) == UNKNOWN


def test_one_style_or_equal_slow_downs_say_nothing() -> None:
    for style in (DEPTH, BREADTH):
        assert learned([(1, style, 0.5, 1.7), (1, style, 0.5, 1.6)]).network_bound(1) == 0.5
    level = learned([(1, DEPTH, 0.5, 0.8), (1, BREADTH, 0.5, 0.8)])
    assert level.network_bound(1) == 0.5 and level.safer(1) == COMPUTE_BOUND


def test_what_others_suffer_says_how_to_take_no_difference() -> None:
    """Where network-bound programs suffer much and compute-bound ones little, no difference is compute-bound."""
    others: list[Execution] = []
    for program in range(1, 7):
        bad = (DEPTH, 1.9) if program % 2 else (BREADTH, 1.02)
        good = BREADTH if program % 2 else DEPTH
        others += [(program, bad[0], 0.5, bad[1]), (program, good, 0.5, 1.0)]
    even: list[Execution] = [(0, DEPTH, 0.5, 1.0), (0, BREADTH, 0.5, 1.0)]
    assert learned(even).kind(0) == UNKNOWN
    assert learned(even + others).kind(0) == COMPUTE_BOUND


def test_the_safer_style_is_that_with_less_to_lose() -> None:
    """Of a new program nothing is known: crowding costs network-bound ones more than spreading the others."""
    assert learned(PAIRS).safer(9) == NETWORK_BOUND
    turned = [(program, DEPTH if style == BREADTH else BREADTH, *rest) for program, style, *rest in PAIRS]
    assert learned(turned).safer(9) == COMPUTE_BOUND  # type: ignore[arg-type]
    assert KindsByExecution().safer(9) == COMPUTE_BOUND


def test_told_kinds_hold_whatever_executions_say() -> None:
    kinds = learned(PAIRS, {1: COMPUTE_BOUND, 5: NETWORK_BOUND})
    assert [kinds.kind(program) for program in (1, 5)] == [COMPUTE_BOUND, NETWORK_BOUND]
    kinds.tell(5, 7)  # a kind that is neither
    assert kinds.kind(5) == NETWORK_BOUND
    kinds.tell(5, COMPUTE_BOUND)
    assert kinds.kind(5) == COMPUTE_BOUND


def test_confidence() -> None:
    with pytest.raises(UsageError, match=r"^confidence needs a number above 0\.5 and below 1, found 1$"):
        KindsByExecution(1)
    probability = learned(PAIRS).network_bound(2)
    for confidence, kind in ((0.999 - probability, COMPUTE_BOUND), (1.001 - probability, UNKNOWN)):
        kinds = KindsByExecution(confidence)
        for execution in PAIRS:
            kinds.observe(*execution)
        assert kinds.kind(2) == kind


def naive(executions: Sequence[Execution], told: dict[int, int]) -> tuple[dict[int, float], float, float]:
    """Fit the same model execution by execution; returns probabilities by program, and both kappas."""
    programs = list(dict.fromkeys(execution[0] for execution in executions))
    kappas, variance = {COMPUTE_BOUND: 1.0, NETWORK_BOUND: 1.0}, 0.04
    network: dict[int, float] = {}

    def about_means(program: int, kind: int) -> list[tuple[float, float]]:
        own = [execution[1:] for execution in executions if execution[0] == program]
        mean = sum(slow for _, _, slow in own) / len(own)
        bad = [size if style != SUITED[kind] else 0 for style, size, _ in own]
        return [(slow / mean - 1, x - sum(bad) / len(bad)) for (_, _, slow), x in zip(own, bad, strict=True)]

    for _ in range(20):
        left = {
            (program, kind): sum((y - kappas[kind] * x) ** 2 for y, x in about_means(program, kind))
            for program in programs
            for kind in kappas
        }
        for program in programs:
            better = left[program, COMPUTE_BOUND] - left[program, NETWORK_BOUND]
            network[program] = 1 / (1 + math.exp(-better / (2 * variance)))
            if program in told:
                network[program] = float(told[program] == NETWORK_BOUND)
        weights = {
            (program, kind): network[program] if kind == NETWORK_BOUND else 1 - network[program]
            for program, kind in left
        }
        for kind in kappas:
            both = [
                (weights[program, kind], y, x) for program in programs for y, x in about_means(program, kind)
            ]
            kappas[kind] = max(
                0, (0.05 + sum(w * y * x for w, y, x in both)) / (0.05 + sum(w * x * x for w, _, x in both))
            )
        freedom = 4 + len(executions) - len(programs)
        variance = (4 * 0.04 + sum(weights[key] * left[key] for key in left)) / freedom
    return network, kappas[COMPUTE_BOUND], kappas[NETWORK_BOUND]


executions = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from([DEPTH, BREADTH]), st.floats(0.01, 1), st.floats(0.1, 3)
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@given(
    seen=executions, told=st.dictionaries(st.integers(0, 3), st.integers(0, 1), max_size=2), data=st.data()
)
def test_against_a_naive_fit_in_any_order(
    seen: list[Execution], told: dict[int, int], data: st.DataObject
) -> None:
    known = {program: kind for program, kind in told.items() if program in {each[0] for each in seen}}
    network, compute_spread, network_crowded = naive(seen, known)
    kinds = learned(data.draw(st.permutations(seen)), known)
    assert kinds.fit().compute_spread == pytest.approx(compute_spread, rel=1e-6, abs=1e-6)
    assert kinds.fit().network_crowded == pytest.approx(network_crowded, rel=1e-6, abs=1e-6)
    for program, probability in network.items():
        assert kinds.network_bound(program) == pytest.approx(probability, abs=1e-6)


# --- in a run --------------------------------------------------------------------------------------------

FOUR = Machines.of(4, cpus=2)
MODEL = KindLocality(compute_spread=0.5, network_crowded=1.0)
NETWORK, COMPUTE = 1, 2
"""Programs by hand: of half the cluster and 20 s; crowded, or spread, they take 30 s and 25 s."""


def executed(
    *jobs: tuple[int, int], kinds: Sequence[int] | None = None, **columns: Sequence[int]
) -> Workload:
    """Return executions of programs that come at some instants."""
    kind_of = {NETWORK: NETWORK_BOUND, COMPUTE: COMPUTE_BOUND, UNKNOWN: COMPUTE_BOUND}
    rows = [asked(at, 20, cpus=4, spread=True, kind=kind_of[program]) for at, program in jobs]
    columns["executable"] = [program for _, program in jobs]
    if kinds is not None:
        columns["kind"] = kinds
    return jobs_on_machines(rows, **columns)


def simulated(
    jobs: Workload, placement: Placement, model: KindLocality | Penalty = MODEL, cluster: Cluster = FOUR
) -> Simulation:
    policy: Policy = Pipeline(order=SJF(), placement=placement, fitting=True, window=5)
    simulation = Simulation(jobs, policy, cluster, service_time=model)
    if not isinstance(placement, External):
        simulation.run()
    return simulation


def styles(simulation: Simulation) -> list[str]:
    return [allocation.style for allocation in simulation.system.allocations or [] if allocation]


ALTERNATING = executed(*((100 * n, program) for n, program in enumerate((1, 1, 2, 2, 1, 2))))


def test_two_programs_by_hand() -> None:
    """Each is tried depth-first, then breadth-first, and from then on it is placed as it should be."""
    simulation = simulated(ALTERNATING, LearnedKinds())
    assert styles(simulation) == [DEPTH, BREADTH, DEPTH, BREADTH, BREADTH, DEPTH]
    assert simulation.result().end_time.tolist() == [30, 120, 220, 325, 420, 520]
    kinds = KindsInRun(simulation.system)
    assert [kinds.kind_of(simulation.system.jobs[row]) for row in (4, 5)] == [NETWORK_BOUND, COMPUTE_BOUND]
    by_hand: list[Execution] = [
        (1, DEPTH, 0.5, 1.5), (1, BREADTH, 0.5, 1.0), (2, DEPTH, 0.5, 1.0), (2, BREADTH, 0.5, 1.25),
        (1, BREADTH, 0.5, 1.0), (2, DEPTH, 0.5, 1.0),
    ]  # fmt: skip
    for program in (1, 2):
        assert kinds.classifier.network_bound(program) == learned(by_hand).network_bound(program)


def test_what_runs_has_been_tried() -> None:
    """Two executions that start together are placed in both styles, although none has ended."""
    assert styles(simulated(executed((0, NETWORK), (0, NETWORK)), LearnedKinds())) == [DEPTH, BREADTH]


def test_jobs_of_no_program_teach_nothing_and_are_placed_as_is_safer() -> None:
    by_user = executed(*((100 * n, UNKNOWN) for n in range(4)), user=[1] * 4)
    assert styles(simulated(by_user, LearnedKinds())) == [DEPTH] * 4
    system = simulated(by_user, LearnedKinds(application="user")).system
    assert KindsInRun(system, "user").kind_of(by_user.jobs[0]) == COMPUTE_BOUND
    assert KindsInRun(system).kind_of(by_user.jobs[0]) == UNKNOWN
    last = executed(*((100 * n, program) for n, program in enumerate((1, 1, 2, 2, UNKNOWN))))
    assert styles(simulated(last, LearnedKinds()))[-1] == BREADTH  # 1 has suffered more crowded than 2 spread


def test_jobs_that_take_no_time_say_nothing() -> None:
    """Else the second, spread, would seem to have been infinitely faster."""
    jobs = executed((0, NETWORK), (100, NETWORK), run_time=[20, 0], requested_time=[20, 20])
    simulation = simulated(jobs, LearnedKinds())
    assert styles(simulation) == [DEPTH, BREADTH] and simulation.result().end_time.tolist() == [30, 100]
    assert KindsInRun(simulation.system).kind_of(jobs.jobs[0]) == UNKNOWN


def test_placements_without_a_style_say_nothing() -> None:
    kinds = KindsInRun(simulated(ALTERNATING, FirstFit()).system)
    assert [kinds.kind_of(job) for job in ALTERNATING.jobs] == [UNKNOWN] * 6


def test_other_columns_may_say_which_jobs_belong_together() -> None:
    by_user = executed(*((100 * n, n) for n in (1, 2, 1)), user=[8, 8, 8], kinds=[NETWORK_BOUND] * 3)
    assert styles(simulated(by_user, LearnedKinds(application="user"))) == [DEPTH, BREADTH, BREADTH]
    for placement in (LearnedKinds(application="colour"), LearnedKinds(known="colour")):
        with pytest.raises(WorkloadError, match="no column 'colour'"):
            simulated(by_user, placement)
    with pytest.raises(UsageError, match="confidence needs a number above"):
        simulated(by_user, LearnedKinds(confidence=0.4))


def test_on_counted_nodes_nothing_is_learned() -> None:
    log = Workload(
        {"submit_time": [0, 0, 1], "run_time": [5, 5, 5], "nodes": [3, 2, 1], "executable": [1] * 3}
    )
    simulation = Simulation(log, Pipeline(placement=LearnedKinds()), 4)
    assert simulation.run().start_time.tolist() == [0, 5, 5]
    assert KindsInRun(simulation.system).kind_of(log.jobs[0]) == UNKNOWN


# --- kinds that were given, and those that were not --------------------------------------------------------


def test_given_kinds_are_used_and_tell_of_the_program() -> None:
    """The first user of each program says so; the second execution need not be tried."""
    said = executed((0, 1), (100, 1), (200, 2), (300, 2), queue=[1, 0, 1, 0])
    assert styles(simulated(said, LearnedKinds(known="queue"))) == [BREADTH, BREADTH, DEPTH, DEPTH]
    assert styles(simulated(said, LearnedKinds())) == [DEPTH, BREADTH, DEPTH, BREADTH]


def test_a_kind_that_is_given_as_unknown_is_learned() -> None:
    """The third job's user has given -1: what the first two have shown counts."""
    said = executed(
        (0, 1), (100, 1), (200, 1), queue=[0, 0, 1], kinds=[NETWORK_BOUND, NETWORK_BOUND, UNKNOWN]
    )
    kinds = KindsInRun(simulated(said, LearnedKinds(known="queue")).system, known="queue")
    assert kinds.kind_of(said.jobs[2]) == NETWORK_BOUND


def hidden(jobs: Workload, model: KindLocality, seen: np.ndarray) -> tuple[Workload, Penalty]:
    """Return the same jobs with other kinds to be seen, and a model that goes by the real ones."""
    real = jobs.column("kind").tolist()

    def penalty(job: Job, seconds: int, allocation: Allocation, cluster: AnyCluster) -> float:
        return model.penalty(job._replace(kind=real[job.index]), seconds, allocation, cluster)

    columns = {**jobs.columns, "kind": seen}
    return Workload(columns, resources=jobs.resources, labels=jobs.labels), penalty


def programs(system: str, jobsets: int, seed: int = 0, least_used: float = 1.0) -> Workload:
    sets = CushJobSets(system=system)  # type: ignore[arg-type]
    return CushPrograms(sets=sets, least_used=least_used).generate(np.random.default_rng(seed), jobsets)


def cluster_of(system: str) -> Machines:
    return Machines.of(128, **CUSH_SYSTEMS[system]._asdict())


@pytest.mark.parametrize("seen", ["unknown", "others"])
def test_kinds_that_were_not_given_are_never_seen(seen: str) -> None:
    """With kinds hidden, or those of others in their place, every job starts when and where it did."""
    jobs, cluster = programs("summit", 8), cluster_of("summit")
    kinds = np.full(len(jobs), UNKNOWN) if seen == "unknown" else jobs.column("kind")[::-1]
    blind, model = hidden(jobs, LOCALITIES["summit"], kinds)
    runs = [
        simulated(log, LearnedKinds(), what, cluster)
        for log, what in ((jobs, LOCALITIES["summit"]), (blind, model))
    ]
    assert runs[0].system.ledger.starts == runs[1].system.ledger.starts
    assert runs[0].system.allocations == runs[1].system.allocations
    assert set(styles(runs[0])) == {DEPTH, BREADTH}


def test_given_kinds_are_the_only_ones_seen() -> None:
    """Those of half of the jobs are given: the others' may be anything."""
    given = np.arange(160) % 2
    jobs, cluster = programs("summit", 8), cluster_of("summit")
    jobs = Workload({**jobs.columns, "queue": given}, resources=jobs.resources, labels=jobs.labels)
    blind, model = hidden(jobs, LOCALITIES["summit"], np.where(given, jobs.column("kind"), UNKNOWN))
    allocations = [
        simulated(log, LearnedKinds(known="queue"), what, cluster).system.allocations
        for log, what in ((jobs, LOCALITIES["summit"]), (blind, model))
    ]
    assert allocations[0] == allocations[1]


# --- somebody else on the seat -----------------------------------------------------------------------------


def test_whoever_takes_the_seat_may_ask_the_same_classifier() -> None:
    """An answerer that follows the run as the stage does comes to the same schedule."""
    jobs, cluster = programs("sierra", 4), cluster_of("sierra")
    stage = simulated(jobs, LearnedKinds(), LOCALITIES["sierra"], cluster)
    open_seat = simulated(jobs, External(DepthOrBreadth()), LOCALITIES["sierra"], cluster)  # type: ignore[arg-type]
    followed: list[KindsInRun] = []

    def answer(decision: Decision) -> Allocation:
        if not followed:
            followed.append(KindsInRun(decision.system))
        assert decision.job is not None
        kind = followed[0].kind_of(decision.job)
        choice: Allocation = decision.options[followed[0].to_try(decision.job) if kind == UNKNOWN else kind]
        return choice

    play(open_seat, answer)
    assert open_seat.system.allocations == stage.system.allocations


# --- measured ----------------------------------------------------------------------------------------------


def right_placements(simulation: Simulation) -> list[tuple[int, bool]]:
    """Return of each job, by start, which execution of its program it is and whether its style suits it."""
    jobs, seen, right = simulation.workload.jobs, dict[int, int](), []
    for row in np.argsort(simulation.system.ledger.starts, kind="stable").tolist():
        number = seen[jobs[row].executable] = seen.get(jobs[row].executable, 0) + 1
        right.append((number, simulation.system.given(row).style == SUITED[jobs[row].kind]))
    return right


def share_right(runs: Sequence[Simulation], first: int, last: int) -> float:
    return float(
        np.mean([right for run in runs for number, right in right_placements(run) if first <= number <= last])
    )


def mean_ntat(runs: Sequence[Simulation]) -> float:
    """Return the mean time from submission to end over the time from start to end."""
    results = [run.result() for run in runs]
    return float(np.mean([(r.end_time - r.submit_time) / (r.end_time - r.start_time) for r in results]))


def runs_of(system: str, placement: Placement, least_used: float, jobsets: int = 20) -> list[Simulation]:
    return [
        simulated(
            programs(system, jobsets, seed, least_used), placement, LOCALITIES[system], cluster_of(system)
        )
        for seed in range(3)
    ]


@pytest.mark.parametrize("system", [pytest.param("sierra", marks=pytest.mark.slow), "summit"])
def test_a_few_executions_are_enough(system: str) -> None:
    """Two to try; of the third to sixth more than nine in ten are right, of the later ones nearly all."""
    runs = runs_of(system, LearnedKinds(), least_used=1.0)
    assert share_right(runs, 1, 2) == pytest.approx(0.5, abs=0.1)
    assert share_right(runs, 3, 6) > 0.9 and share_right(runs, 7, 99) > 0.97
    depth, breadth, best = (
        mean_ntat(runs_of(system, placement, least_used=1.0))
        for placement in (DepthFirst(), BreadthFirst(), SuitsKind())
    )
    assert best < mean_ntat(runs) < depth
    if system == "summit":
        assert mean_ntat(runs) < breadth


@pytest.mark.parametrize(
    ("least_used", "wanted"), [(0.5, 0.9), pytest.param(0.0, 0.75, marks=pytest.mark.slow)]
)
def test_loose_requests_take_more_executions(least_used: float, wanted: float) -> None:
    """Run times between all and half of the requested time, or none of it, uniform."""
    runs = runs_of("summit", LearnedKinds(), least_used)
    exact = runs_of("summit", LearnedKinds(), 1.0)
    assert share_right(exact, 3, 6) > share_right(runs, 3, 6)
    assert share_right(runs, 7, 99) > wanted


def test_kappas_are_found() -> None:
    """The penalties of Summit are 1.0 and 1.7; a program's mean stands in for its level, so a little less."""
    fit = KindsInRun(
        simulated(programs("summit", 40), LearnedKinds(), LOCALITIES["summit"], cluster_of("summit")).system
    )
    fit.kind_of(programs("summit", 1).jobs[0])
    found = fit.classifier.fit()
    assert found.compute_spread == pytest.approx(1.0, rel=0.15)
    assert found.network_crowded == pytest.approx(1.7, rel=0.15)
