"""What CuSH's decisions were worth, against reference runs, and the games in which they are taken."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.encoder import JobKind, Sketch
from hpcsimkit.agents.cush.game import Game, Selector, States, Valid, play
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import Fared, fared, job_selector_returns, local_rewards
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.ranges import check_ranges
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.locality import BREADTH, DEPTH, LOCALITIES
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF
from hpcsimkit.policies.orders import FCFSShortest
from hpcsimkit.policies.placing.packing import DominantShare
from hpcsimkit.policies.placing.placements import BreadthFirst, DepthFirst
from hpcsimkit.policies.placing.styles import DepthOrBreadth, SuitsKind
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, read_job_sets
from tests.agents.test_cush import job_set, made

SYSTEMS = ("sierra", "summit")

# --- returns -----------------------------------------------------------------------------------------------

SELECTORS: dict[str, Order] = {"FCFS": FCFSShortest(), "SJF": SJF(), "DRF": DominantShare()}
ALLOCATIONS: dict[str, Placement] = {"DF": DepthFirst(), "BF": BreadthFirst(), "best": SuitsKind()}


def reference_sets(shared: Path, system: str) -> list[Workload]:
    return read_job_sets(shared / "refs" / "cush" / f"cush_jobsets_{system}.csv")


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_rewards_and_returns_are_those_of_the_reference(system: str, selector: str, shared: Path) -> None:
    cluster = Machines.of(128, **CUSH_SYSTEMS[system]._asdict())
    sets = reference_sets(shared, system)
    with (shared / "refs" / "cush" / f"cush_jobsets_{system}_summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["selector"] == selector]
    assert len(rows) == 30
    for row in rows:
        policy = Pipeline(
            SELECTORS[selector], placement=ALLOCATIONS[row["allocation"]], fitting=True, window=5
        )
        simulation = Simulation(
            sets[int(row["jobset"])], policy, cluster, service_time=LOCALITIES[system]
        )  # fmt: skip
        simulation.run()
        rewards, (_, ntat, wait) = local_rewards(simulation.system), fared(simulation.system)
        returns = job_selector_returns([rewards], np.array([ntat]), gamma=0.9)[:, 0]
        assert len(rewards) == len(returns) == int(row["decision_steps"])
        found = {
            "mean_wait": wait, "mean_NTAT": ntat, "sum_r": rewards.sum(),
            "discounted_r_from_step0": returns[0] / ntat, "mean_discounted_r": returns.mean() / ntat,
            "mean_v(=mean_discounted_r*NTAT)": returns.mean(),
        }  # fmt: skip
        assert found == pytest.approx({name: float(row[name]) for name in found}, rel=2e-6)


def finished(*rows: tuple[int, ...]) -> Simulation:
    """Let jobs run on a node of two CPUs, first come first served."""
    simulation = Simulation(job_set(*rows), Pipeline(), Machines.of(1, cpus=2, gpus=1))
    simulation.run()
    return simulation


def test_local_rewards_by_hand() -> None:
    """A runs to 2 alone; B (4 s) and C (1 s), there since 0, wait a quarter and once their time per second.

    ::

        time      0      1      2                  3  4  5
        decision  A -    -      B       C  -       -  -  -
        reward    0 0  -1.25   -2       0  0       0  0  0     (C waited 2 s as B starts)
    """
    simulation = finished((0, 2, 2, 0), (0, 4, 1, 0), (0, 1, 1, 0))
    assert simulation.system.ledger.starts == [0, 2, 2]
    assert local_rewards(simulation.system).tolist() == [0, 0, -1.25, -2, 0, 0, 0, 0, 0]


def test_local_rewards_of_jobs_that_come_later() -> None:
    """Nobody is there at 0. A runs from 1 to 4; B (2 s), there since 2, has waited half its time at 3.

    ::

        time      0   1      2   3     4      5   6
        decision  -   A  -   -   -     B  -   -   C  -
    """
    simulation = finished((1, 3, 2, 0), (2, 2, 2, 0), (6, 1, 1, 0))
    assert simulation.system.ledger.starts == [1, 4, 6]
    assert local_rewards(simulation.system).tolist() == [0, 0, 0, 0, -0.5, 0, 0, 0, 0, 0]


def test_how_jobs_fared_by_hand() -> None:
    """Turnarounds 2, 6 and 3, over 2, 4 and 1 s; waits 0, 2 and 2 s."""
    found = fared(finished((0, 2, 2, 0), (0, 4, 1, 0), (0, 1, 1, 0)).system)
    assert found == pytest.approx(Fared(11 / 3, (1 + 1.5 + 3) / 3, 4 / 3))


def test_what_a_placement_costs_is_part_of_the_service_time() -> None:
    """Two jobs of 2 s take 3 s each, one after the other: turnarounds 3 and 6."""
    jobs, node = job_set((0, 2, 2, 0), (0, 2, 2, 0)), Machines.of(1, cpus=2, gpus=1)
    simulation = Simulation(jobs, Pipeline(), node, service_time=lambda *about: 1.0)
    simulation.run()
    assert fared(simulation.system) == pytest.approx(Fared(4.5, (1 + 2) / 2, 1.5))
    # The second has waited 1/2 and 2/2 of what it requested; three seconds and a start on either side.
    assert local_rewards(simulation.system).tolist() == [0, 0, -0.5, -1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("gamma", "expected"),
    [
        (0.5, [[-9, -16], [-12, 0], [-12, 0]]),  # 3 (1 + 2/2 + 4/4), 3 (2 + 4/2), 3 x 4; 2 x 8
        (0.0, [[-3, -16], [-6, 0], [-12, 0]]),
        (1.0, [[-21, -16], [-18, 0], [-12, 0]]),
    ],
)
def test_returns_by_hand(gamma: float, expected: list[list[float]]) -> None:
    rewards = [np.array([-1.0, -2.0, -4.0]), np.array([-8.0])]
    found = job_selector_returns(rewards, np.array([3.0, 2.0]), gamma)
    assert found.dtype == np.float32
    assert found.tolist() == expected


# --- selectors whose choice is known -----------------------------------------------------------------------

Choose = Callable[[NDArray[np.float32], Valid], int]
SMALL = CushProblem(nodes=2, slots=3, horizon=20)
"""Two nodes: 4 CPUs and 8 GPUs; no job is so long that its picture is cut."""

ALL = (4, 8)
BY_KIND = np.array([0.0, 1.0])
LATER = (50, 1, 1, 1, 0)
"""A job that comes much later: so long may time go on while nothing is started."""


def sure(choose: Choose) -> Selector:
    """Return a selector that chooses one action, seeing the jobs and what is valid."""

    def selector(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        chosen = [choose(jobs, options) for jobs, options in zip(sketch.jobs, valid, strict=True)]
        return np.eye(valid.shape[1], dtype=np.float32)[chosen]

    return selector


def first(jobs: NDArray[np.float32], valid: Valid) -> int:
    return int(valid.argmax())


def nothing_if_possible(jobs: NDArray[np.float32], valid: Valid) -> int:
    return len(jobs) if valid[-1] else int(valid.argmax())


def shortest(jobs: NDArray[np.float32], valid: Valid) -> int:
    """The shortest of those that fit, the one in front of equal ones; nothing only if nobody fits."""
    return int(np.where(valid[:-1], jobs[:, -2], np.inf).argmin()) if valid[:-1].any() else len(jobs)


def played(
    jobs: Workload, selector: Selector, problem: CushProblem = SMALL, breadth: Any = BY_KIND,
    count: int = 1, seed: int = 0,
) -> tuple[list[Game], States]:  # fmt: skip
    rng = np.random.default_rng(seed)
    scenario = problem.scenario(jobs)
    games = [Game(scenario, problem, breadth, rng) for _ in range(count)]
    return games, play(games, problem, selector, rng)


def steps(game: Game) -> list[int]:
    return [step for step, _, _ in game.taken]


def actions(game: Game) -> list[int]:
    return [action for _, _, action in game.taken]


# --- games -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_who_takes_the_shortest_plays_the_schedule_of_sjf(system: Any, shared: Path) -> None:
    """With styles by kind, that of the closed pipeline, which is that of the reference."""
    problem = CushProblem(system=system, horizon=20)
    with (shared / "refs" / "cush" / f"cush_jobsets_{system}.csv").open() as file:
        rows = list(csv.DictReader(file))
    for number, jobs in enumerate(reference_sets(shared, system)):
        (game,), _ = played(jobs, sure(shortest), problem)
        closed = Pipeline(SJF(), placement=SuitsKind(), fitting=True, window=5)
        run = problem.scenario(jobs).simulation(closed)
        run.run()
        found, expected = game.system, run.system
        assert found.ledger.starts == expected.ledger.starts and found.ledger.ends == expected.ledger.ends
        assert found.allocations == expected.allocations
        reference = [int(row["start_SJF_best"]) for row in rows if int(row["jobset"]) == number]
        assert found.ledger.starts == reference
        assert game.rewards().tolist() == local_rewards(expected).tolist()
        assert game.fared() == fared(expected)
        assert game.step == len(game.rewards()) and max(steps(game)) < game.step


def test_what_nobody_has_a_choice_about_is_not_asked() -> None:
    """A and B want all there is: which of them is first is the only question, as nothing else is to come."""
    (game,), _ = played(job_set((0, 2, *ALL), (0, 3, *ALL)), sure(first))
    assert game.taken == [(0, 0, 0)]
    assert game.system.ledger.starts == [0, 2]
    assert game.step == len(game.rewards()) == 5 + 2
    (game,), states = played(job_set((0, 2, *ALL)), sure(first))
    assert game.taken == [] and states.busy == [] and game.decision is None


def test_time_goes_on_to_the_next_decision() -> None:
    """A waits for nobody, B comes at 5: what A's start was asked for is no decision about B."""
    jobs, rng = job_set((0, 9, 1, 1), (5, 2, 1, 1)), np.random.default_rng(0)
    game = Game(SMALL.scenario(jobs), SMALL, BY_KIND, rng)
    asked = game.decision
    game.take(0, 0, 0)
    assert asked is not None and game.decision is not None
    assert game.decision is not asked and game.system.now == 5


def test_nothing_lets_a_second_pass() -> None:
    """A (3 s) waits for B, which comes at 5; then one of them must start, and the other waits for its end."""
    (game,), _ = played(job_set((0, 3, 1, 1), (5, 2, 1, 1)), sure(nothing_if_possible))
    assert game.system.ledger.starts == [5, 8]
    # At 5 the start is the sixth step; nothing is started after it, nor at 6 and 7. At 8 only B is left.
    assert steps(game) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert actions(game) == [3, 3, 3, 3, 3, 0, 3, 3, 3]


def test_who_stands_behind_the_slots_moves_up_at_once() -> None:
    """Four one after the other in the same second, of which three are seen; the steps are counted."""
    jobs = job_set(*[(0, 9, 1, 1)] * 4, LATER)
    (game,), states = played(jobs, sure(first))
    assert game.system.ledger.starts == [0, 0, 0, 0, 50]
    assert (steps(game), actions(game)) == ([0, 1, 2, 3], [0, 0, 0, 0])
    seen = [np.count_nonzero(each[:, -1]) for each in states.jobs]
    assert seen == [3, 3, 2, 1]


def test_equal_states_have_one_number_and_are_thought_about_once() -> None:
    asked: list[int] = []

    def counting(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        asked.append(len(valid))
        return sure(first)(sketch, valid)

    jobs = job_set((0, 4, 2, 1), (0, 4, 2, 7), (1, 3, 1, 1), (1, 3, 1, 1), LATER)
    games, states = played(jobs, counting, count=5)
    assert all(game.taken == games[0].taken for game in games) and len(games[0].taken) >= 3
    assert [state for _, state, _ in games[0].taken] == list(range(len(states.busy)))
    assert sum(asked) == len(states.busy) == len(states.probabilities)


def test_states_differ_by_anything_that_is_seen() -> None:
    states = States()
    busy, jobs, valid = np.zeros(4, np.uint8), np.zeros((2, 4), np.float32), np.ones(3, np.bool_)
    assert states.number(Sketch(busy, jobs), valid) == 0
    assert states.number(Sketch(busy + 1, jobs), valid) == 1
    assert states.number(Sketch(busy, jobs + 1), valid) == 2
    assert states.number(Sketch(busy, jobs), ~valid) == 3
    assert states.number(Sketch(busy.copy(), jobs.copy()), valid.copy()) == 0
    assert len(states.busy) == len(states.jobs) == len(states.valid) == 4


def test_actions_are_drawn_as_probable_as_they_are() -> None:
    """The first of 600 games each; what has no probability never."""
    chances = np.array([0.5, 0.0, 0.2, 0.3], dtype=np.float32)

    def selector(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        new = np.isclose(sketch.jobs[:, :, -1], 1.0).all(axis=1)
        return np.where(new[:, None], chances, sure(first)(sketch, valid)).astype(np.float32)

    games, _ = played(job_set(*[(0, 1, *ALL)] * 3, (4, 1, 1, 1)), selector, count=600)
    shares = np.bincount([actions(game)[0] for game in games], minlength=4) / 600
    assert shares[1] == 0
    assert shares == pytest.approx(chances, abs=4 * 0.5 / 600**0.5)


def test_actions_of_one_game_are_independent() -> None:
    """Nine in ten decline each second: in 400 games they do so 9 times on average before the job starts."""

    def selector(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        return np.tile(np.array([0.1, 0, 0, 0.9], dtype=np.float32), (len(valid), 1))

    games, _ = played(job_set((0, 1, 1, 1), (999, 1, 1, 1)), selector, count=400)
    waits = np.array([game.system.ledger.starts[0] for game in games])
    assert waits.mean() == pytest.approx(9, abs=4 * (0.9 / 0.01 / 400) ** 0.5)


def test_placements_are_drawn_as_probable_as_they_are_and_noted() -> None:
    """Each takes 40 s at its best and needs a quarter of 128 nodes; spread 0.1 of that longer, packed 2.0."""
    problem = CushProblem(nodes=32, slots=3)
    jobs = job_set((0, 40, 64, 1, 0), (0, 40, 64, 1, 1), (0, 40, 1, 128, 1))
    games, _ = played(jobs, sure(first), problem, breadth=np.array([0.3, 0.8]), count=500)
    placed = [each for game in games for each in game.placed]
    for kind, share in ((0, 0.3), (1, 0.8)):
        styles = [each.breadth_first for each in placed if each.kind == kind]
        assert np.mean(styles) == pytest.approx(share, abs=4 * (share * (1 - share) / len(styles)) ** 0.5)
    for game in games[:50]:
        order = np.argsort(game.system.ledger.starts, kind="stable").tolist()
        assert len(order) == len(game.placed) == 3
        for row, each in zip(order, game.placed, strict=True):
            assert each.kind == game.system.jobs[row].kind
            assert game.system.given(row).style == (DEPTH, BREADTH)[each.breadth_first]
            assert each.penalty == {(0, BREADTH): 1, (1, DEPTH): 20}.get(
                (each.kind, game.system.given(row).style), 0
            )


def unlike(problem: CushProblem, seed: int = 3) -> Selector:
    """Return a selector with a network of chance, far from even."""
    network = made(problem.image, seed=seed)

    def selector(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        with torch.no_grad():
            scores = network(torch.from_numpy(sketch.busy), torch.from_numpy(sketch.jobs)) / 20
            return scores.masked_fill(~torch.from_numpy(valid), -torch.inf).softmax(dim=1).numpy()

    return selector


def test_the_same_generator_gives_the_same_games() -> None:
    problem = CushProblem(nodes=4, jobs=8)
    (scenario,) = problem.scenarios(np.random.default_rng(5), 1)
    half = np.array([0.5, 0.5])
    runs = [
        played(scenario.workload, unlike(problem), problem, half, count=6, seed=seed)[0] for seed in (1, 1, 2)
    ]
    told = [[(game.taken, game.placed, game.system.ledger.starts) for game in games] for games in runs]
    assert told[0] == told[1] != told[2]
    assert len({str(each) for each in told[0]}) > 1, "the games of a set are different ones"


@pytest.mark.parametrize("kind", [-1, 2])
def test_jobs_of_kinds_that_the_policy_selector_does_not_know(kind: int) -> None:
    with pytest.raises(UsageError, match=f"job 2 needs a kind from 0 to 1, found {kind}$"):
        played(job_set((0, 1, 1, 1, 0), (0, 1, 1, 1, kind)), sure(first))


# --- problems ----------------------------------------------------------------------------------------------


def test_job_sets_of_a_problem_are_those_of_the_generator() -> None:
    problem = CushProblem(system="summit", nodes=16, jobs=7, distribution="C0")
    one, two = problem.scenarios(np.random.default_rng(4), 2)
    assert len(one.workload) == 7 and one.workload.hash != two.workload.hash
    assert problem.scenarios(np.random.default_rng(4), 1)[0].workload.hash == one.workload.hash
    assert repr(one.setup.cluster) == "Machines(16: 32 cpus, 96 gpus)"


def test_small_clusters_pay_what_so_many_nodes_of_the_large_one_pay() -> None:
    """16 nodes of 128: an eighth. On the whole cluster the share of units is what counts."""
    for nodes, size in ((16, 16 / 128), (128, 1.0)):
        problem = CushProblem(nodes=nodes)
        simulation = problem.scenario(job_set((0, 8, 2 * nodes, 1, 1))).simulation(problem.pipeline())
        while simulation.next_decision() is not None:
            simulation.answer_position(0)  # depth-first, which does not suit it
        assert simulation.system.ledger.ends == [8 + round(2.0 * 8 * size)]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"system": "frontier"}, "CuSH: system needs one of sierra, summit, found 'frontier'"),
        ({"distribution": "C2"}, "CuSH: distribution needs one of C1, C0, found 'C2'"),
        ({"nodes": 0}, "CuSH: nodes needs a whole number of at least 1, found 0"),
        ({"jobs": 0}, "CuSH: jobs needs a whole number of at least [12], found 0"),
        ({"slots": 0}, "CuSH: slots needs a whole number of at least 1, found 0"),
        ({"horizon": 1}, "CuSH: horizon needs a whole number of at least 2, found 1"),
        ({"horizon": 2.5}, r"CuSH: horizon needs a whole number of at least 2, found 2\.5"),
    ],
)
def test_problems_that_are_none(changes: dict[str, Any], found: str) -> None:
    check_ranges(CushProblem(), "CuSH")
    with pytest.raises(UsageError, match=f"^{found}$"):
        check_ranges(CushProblem(**changes), "CuSH")


# --- agents on the seats -----------------------------------------------------------------------------------


def agents(problem: CushProblem) -> tuple[Agent, Agent, Selector]:
    """Return agents for both seats, and a selector that is sure of what the first likes best."""
    network = made(problem.image, seed=7)
    with torch.no_grad():
        network.bias[-1] -= 5  # which declines now and then only
    by_kind = Dense({"weight.0": np.array([[1, -1], [-1, 1]]), "bias.0": np.zeros(2)}, "relu")

    def best(sketch: Sketch, valid: Valid) -> NDArray[np.float32]:
        with torch.no_grad():
            scores = network(torch.from_numpy(sketch.busy), torch.from_numpy(sketch.jobs)).numpy()
        return np.eye(valid.shape[1], dtype=np.float32)[np.where(valid, scores, -np.inf).argmax(axis=1)]

    order = Agent(problem.image, problem.mask, network.acting(), "order")
    return order, Agent(JobKind(), Slots(2), by_kind, "placement"), best


@pytest.mark.parametrize("seats", ["order", "both", "both, with a base"])
def test_agents_on_the_seats_play_the_game_of_their_best_actions(seats: str) -> None:
    problem = CushProblem(nodes=8, jobs=12)
    order, placement, best = agents(problem)
    if seats == "order":
        placement = SuitsKind()  # type: ignore[assignment]
    elif seats == "both, with a base":
        placement.base = DepthOrBreadth()
    declined = 0
    for scenario in problem.scenarios(np.random.default_rng(2), 8):
        (game,), _ = played(scenario.workload, best, problem)
        run = scenario.simulation(problem.pipeline(order, placement))
        run.run()
        assert run.system.ledger.starts == game.system.ledger.starts
        assert run.system.allocations == game.system.allocations
        declined += actions(game).count(problem.slots)
    assert declined > 10, "not only because everybody starts at once"
    assert seats != "both" or placement.base is None, "who is handed in stays as it is"
