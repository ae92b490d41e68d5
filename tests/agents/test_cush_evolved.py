"""An agent of seven weights on CuSH's job selector seat: what it sees, what it is paid, that it learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Pipeline, Simulation, Workload
from hpcsimkit.agents.cush.evolved import EVOLVED, JobSets, evolved_environment
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import fared
from hpcsimkit.agents.cush.rows import StartOrHold, delays
from hpcsimkit.agents.training.cross_entropy import CrossEntropy
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Estimator
from hpcsimkit.policies import SJF
from hpcsimkit.policies.placing.placements import BreadthFirst
from hpcsimkit.policies.placing.styles import SuitsKind

PROBLEM = CushProblem()
FROM_SHORTEST_FIRST = (-1.0, 0.0, 0.0, 0.0, 0.0, -3.0, 0.0, 0.0)


def job_set(*rows: tuple[int, int, int], **changes: Sequence[int]) -> Workload:
    """Jobs by when they come, how long they run, and how many of all GPUs they take, from anywhere."""
    submit, run, gpus = zip(*rows, strict=True)
    ones = [1] * len(rows)
    columns = {"submit_time": submit, "run_time": run, "gpus": gpus, "nodes": ones, "spread": ones, **changes}
    return Workload(columns, resources=("gpus",))


def seen(
    workload: Workload, *answers: int, slots: int = 3, horizon: int | None = None, **seats: Any
) -> list[list[float]]:
    """What is seen on three machines with two GPUs each, after some decisions."""
    policy = Pipeline(order=External(decline=True), fitting=True, window=slots, max_interval=1, **seats)
    simulation = Simulation(workload, policy, Machines.of(3, gpus=2))
    for answer in answers:
        assert simulation.next_decision() is not None
        simulation.answer_position(answer)
    decision, encoder = simulation.next_decision(), StartOrHold(slots, horizon=horizon)
    out = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(simulation.system)(decision, out)
    return np.round(out.astype(float), 3).tolist()


# --- rows --------------------------------------------------------------------------------------------------


def test_rows_by_hand() -> None:
    # 4 of 6 GPUs are taken until 6 s. At 2 s: A (3 GPUs, 4 s) is blocked for 4 s; B (1 GPU, 8 s), C (2, 1 s).
    # B would leave 5 at 6 s: enough for A, and C would wait 4 s. C would be gone in 1 s: B waits 1 s.
    # A fourth job waits behind the slots.
    workload = job_set((0, 6, 4), (1, 4, 3), (2, 8, 1), (2, 1, 2), (2, 5, 1))
    assert seen(workload, 0) == [
        [1.386, 0.2, 0.25, 0.0, 0.0, 0.0, 0.0],
        [2.079, 0.133, 0.0, 4.0, 0.0, 0.0, 0.0],
        [0.0, 0.033, 0.0, 0.125, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.333],
    ]


def test_harm_to_a_blocked_job() -> None:
    # 3 of 6 GPUs until 5 s: A needs 4 GPUs for 2 s. B, with 3 GPUs, would keep it from starting until 9 s.
    assert seen(job_set((0, 5, 3), (0, 2, 4), (0, 9, 3)), 0)[1][3:5] == [0.0, 2.0]


def test_who_overruns_is_expected_to_end_in_a_second() -> None:
    class Hasty(Estimator):
        def estimate(self, job: Any) -> int:
            return 1

    # 5 of 6 GPUs are taken until 1 s, or so it was believed. At 3 s B (1 GPU, 9 s) would let A (4 GPUs) start
    # at 4 s all the same, and keep C (6 GPUs, 4 s) waiting until 12 s.
    rows = seen(job_set((0, 9, 5), (3, 2, 4), (3, 9, 1), (3, 4, 6)), 0, estimates=Hasty())
    assert rows[1][3:5] == [0.0, 2.0]


def test_nothing_is_seen_of_jobs_behind_the_slots_and_of_those_to_come() -> None:
    shown = [(0, 6, 4), (1, 4, 3), (2, 8, 1), (2, 1, 2)]
    once = seen(job_set(*shown, (2, 5, 1), (3, 1, 1)), 0)
    assert once == seen(job_set(*shown, (2, 20, 6), (9, 9, 5), (9, 9, 5)), 0)
    assert once == seen(
        job_set(*shown, (2, 5, 1), run_time=[3, 1, 2, 1, 1], requested_time=[6, 4, 8, 1, 5]), 0
    )


def test_who_sees_five_seconds_takes_all_that_is_longer_for_that() -> None:
    rows = [(0, 20, 4), (0, 9, 3), (0, 8, 1), (0, 1, 1)]
    short = [(0, 5, 4), (0, 5, 3), (0, 5, 1), (0, 1, 1)]
    assert seen(job_set(*rows), 0, horizon=5) == seen(job_set(*short), 0), "as if nothing took longer"
    assert seen(job_set(*rows), 0, horizon=20) == seen(job_set(*rows), 0) != seen(job_set(*short), 0)
    with pytest.raises(UsageError, match="horizon needs a number of at least 1, found 0"):
        seen(job_set(*rows), 0, horizon=0)


def test_amounts_in_all_need_machines() -> None:
    workload = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=4)
    simulation = Simulation(workload, Pipeline())
    simulation.run()
    with pytest.raises(UsageError, match="needs machines"):
        StartOrHold().bind(simulation.system)


def earliest(need: np.ndarray, free: np.ndarray, holders: list[tuple[float, np.ndarray]]) -> float:
    """When a job fits, one release after the other."""
    at = 0.0
    for end, held in sorted(holders, key=lambda holder: holder[0]):
        if (need <= free).all():
            break
        at, free = end, free + held
    return at


amounts = st.tuples(st.integers(0, 4), st.integers(1, 4))


@given(
    st.lists(st.tuples(amounts, st.integers(1, 9)), min_size=1, max_size=5),
    st.lists(st.tuples(amounts, st.integers(1, 9)), max_size=5),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_delays_are_those_of_starting_one_and_then_the_other(
    waiting: list[Any], running: list[Any], idle: tuple[int, int]
) -> None:
    held = [(float(end), np.array(amount)) for amount, end in running]
    jobs = [(float(time), np.array(amount)) for amount, time in waiting]
    free = np.array(idle) + np.maximum(
        0, 4 - np.array(idle) - sum((each for _, each in held), np.zeros(2, int))
    )
    asked, times = np.array([each for _, each in jobs]), np.array([time for time, _ in jobs])
    ends, released = np.array([end for end, _ in held]), np.array([each for _, each in held]).reshape(-1, 2)
    found = delays(asked, times, free, ends, released)
    for i, starter in enumerate(jobs):
        for k, (_, need) in enumerate(jobs):
            late = 0.0
            if i != k and (starter[1] <= free).all():
                late = earliest(need, free - starter[1], [*held, starter]) - earliest(need, free, held)
            assert found[i, k] == late


# --- pay ---------------------------------------------------------------------------------------------------


def test_the_sum_of_rewards_is_minus_the_normalised_turnaround_penalties_included() -> None:
    problem = CushProblem(system="summit")
    env = evolved_environment(problem, BreadthFirst())
    env.reset(seed=3)
    rng, total, over = np.random.default_rng(0), 0.0, False
    while not over:
        _, paid, over, _, _ = env.step(rng.choice(np.flatnonzero(env.action_masks())))
        total += paid
    assert env.episode is not None
    system = env.episode.simulation.system
    assert total == pytest.approx(-fared(system).normalised_turnaround)
    assert (np.array(system.ledger.ends) - system.ledger.starts > system.workload.requested_time).any()


def test_job_sets_are_those_of_the_problem() -> None:
    drawn = JobSets(PROBLEM).sample(np.random.default_rng(4))
    same = PROBLEM.scenarios(np.random.default_rng(4), 1)[0]
    assert drawn.workload.hash == same.workload.hash
    assert replace(drawn, workload=same.workload) == same


# --- what is learned ---------------------------------------------------------------------------------------


def turnaround(scenarios: Sequence[Scenario], order: Any) -> float:
    """Mean normalised turnaround, each job being placed as suits it."""
    found = []
    for scenario in scenarios:
        simulation = scenario.simulation(PROBLEM.pipeline(order=order, placement=SuitsKind()))
        simulation.run()
        found.append(fared(simulation.system).normalised_turnaround)
    return float(np.mean(found))


@pytest.mark.slow
def test_an_agent_that_has_evolved_for_seconds_beats_shortest_first_on_other_job_sets() -> None:
    settings = replace(
        EVOLVED, total_timesteps=15_000, episodes=4, population=16, elite=4, first=FROM_SHORTEST_FIRST
    )  # fmt: skip
    env: SchedulingEnv = evolved_environment(PROBLEM)
    agent = CrossEntropy(env, settings, seed=0).train()
    unseen = PROBLEM.scenarios(np.random.default_rng(5), 60)
    assert turnaround(unseen, agent) < 0.93 * turnaround(unseen, SJF())
