"""CuSH's job selector, taught: what the teacher says, gradients against plain torch, what is learned."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.encoder import Sketch
from hpcsimkit.agents.cush.game import Game, States, play
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.rows import StartOrHold
from hpcsimkit.agents.cush.selectors import AT_ONCE, JobSelector
from hpcsimkit.agents.cush.taught import TaughtGame, TaughtSettings, TaughtTrainer, teacher_of
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.masks import QueueSlots, Slots
from hpcsimkit.agents.training import trainer as life_cycle
from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.workers import Workers
from hpcsimkit.errors import UsageError
from hpcsimkit.policies.placing.styles import SuitsKind
from tests.agents.test_cush import plain, some_sketches
from tests.agents.test_cush_trainer import networks_of, rmsprop, stop_at
from tests.agents.tiny_problem import StopError, without_rates

torch.set_num_threads(1)

TINY = CushProblem(system="summit", nodes=16, jobs=8, slots=3, horizon=4)
SHORT = TaughtSettings(epochs=4, job_sets=6, batch_size=16)
BREADTH = np.array([0.0, 1.0])


def teacher(problem: CushProblem = TINY, **changes: Any) -> Agent:
    """Shortest first, and large ones rather not; it never holds unless it must."""
    weights = np.array([[-1.0, -0.5, 0.0, 0.0, 0.0, -3.0, 0.0]])
    network = SlotScores({"weight.0": weights, "bias.0": np.zeros(1)})
    encoder = StartOrHold(problem.slots, horizon=problem.horizon)
    return Agent(
        **{"encoder": encoder, "mask": problem.mask, "network": network, "stage": "order", **changes}
    )


def taught(seed: int = 3, problem: CushProblem = TINY, **changes: Any) -> TaughtTrainer:
    return TaughtTrainer(problem, replace(SHORT, **changes), teacher=teacher(problem), seed=seed)


def first_slot(sketch: Any, valid: Any) -> Any:
    """Always take the first action that is possible."""
    return np.eye(valid.shape[1], dtype=np.float32)[valid.argmax(axis=1)]


# --- what the teacher says ---------------------------------------------------------------------------------


def games(guidance: float, count: int = 5) -> list[TaughtGame]:
    rng = np.random.default_rng(4)
    return [
        TaughtGame(scenario, TINY, BREADTH, rng, teacher=teacher(), guidance=guidance)
        for scenario in TINY.scenarios(np.random.default_rng(7), count)
    ]


def starts(played: Game) -> list[int]:
    return list(played.system.ledger.starts)


def test_regrets_are_differences_of_the_teachers_scores() -> None:
    """By the decisions of another game that takes the same actions, asked by hand."""
    seen: list[list[float]] = []
    encoder = StartOrHold(3, horizon=4)

    class Asked(Game):
        def take(self, state: int, action: int, position: int) -> None:
            assert self.decision is not None
            rows, valid = np.zeros((4, 7), dtype=np.float32), np.zeros(4, dtype=np.bool_)
            encoder.bind(self.system)(self.decision, rows)
            TINY.mask.write(self.decision, valid)
            scores = (rows @ np.array([-1, -0.5, 0, 0, 0, -3, 0])).tolist()
            best = max(score for score, possible in zip(scores, valid, strict=True) if possible)
            seen.append([
                best - score if possible else 0 for score, possible in zip(scores, valid, strict=True)
            ])  # fmt: skip
            super().take(state, action, position)

    (one,) = games(0.0, 1)
    (scenario,) = TINY.scenarios(np.random.default_rng(7), 1)
    same = Asked(scenario, TINY, BREADTH, np.random.default_rng(4))
    for game in (one, same):
        play([game], TINY, first_slot, np.random.default_rng(1))
    assert len(seen) >= 8
    np.testing.assert_allclose([regrets for _, regrets in one.regrets], seen, atol=1e-5)
    assert [state for state, _ in one.regrets] == [state for _, state, _ in one.taken]


def test_a_guided_game_is_that_of_the_teacher() -> None:
    """As if the teacher itself sat on the seat; without guidance it is that of the selector."""
    scenarios = TINY.scenarios(np.random.default_rng(7), 5)
    alone = [
        scenario.simulation(TINY.pipeline(order=teacher(), placement=SuitsKind())).run()
        for scenario in scenarios
    ]
    led, own = games(1.0), games(0.0)
    plain_games = [Game(scenario, TINY, BREADTH, np.random.default_rng(4)) for scenario in scenarios]
    for some in (led, own, plain_games):
        play(some, TINY, first_slot, np.random.default_rng(1))
    assert [starts(game) for game in led] == [result.start_time.astype(int).tolist() for result in alone]
    assert [starts(game) for game in own] == [starts(game) for game in plain_games]
    assert [starts(game) for game in led] != [starts(game) for game in own]
    assert all(
        regrets[action] == 0
        for game in led
        for (_, _, action), (_, regrets) in zip(game.taken, game.regrets, strict=True)
    )


# --- how it is learned -------------------------------------------------------------------------------------


def some_states(count: int) -> tuple[States, np.ndarray[Any, Any]]:
    """States, and what is lost by each action: nothing by one of the valid ones."""
    rng = np.random.default_rng(2)
    sketch = some_sketches(rng, count, TINY.image)
    valid = rng.random((count, 4)) < 0.6
    valid[:, 1] = True
    lost = np.where(valid, rng.exponential(size=(count, 4)), 0).astype(np.float32)
    lost[np.arange(count), np.where(valid, lost, np.inf).argmin(axis=1)] = 0
    return States(list(sketch.busy), list(sketch.jobs), list(valid)), lost


@pytest.mark.parametrize("certainty", [0.0, 0.3])
def test_it_goes_down_what_is_lost(certainty: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """State by state, by torch's own layers: the loss expected, and the logarithm of the best one."""
    selector = JobSelector(TINY, rmsprop, torch.Generator().manual_seed(1))
    layers: Any = plain(copy.deepcopy(selector.network)).double()
    monkeypatch.setattr(selector.optimiser, "step", lambda: None)
    count = AT_ONCE + 5
    states, lost = some_states(count)
    selector.imitate(states, lost, certainty)
    total = torch.zeros((), dtype=torch.float64)
    for busy, jobs, valid, row in zip(states.busy, states.jobs, states.valid, lost, strict=True):
        picture = np.zeros(TINY.image.shape, dtype=np.float32)
        TINY.image.draw(Sketch(busy, jobs), picture)
        scores = layers(torch.from_numpy(picture)[None].double())[0]
        logarithms = scores.masked_fill(~torch.from_numpy(valid), -torch.inf).log_softmax(dim=0)
        best = int(np.where(valid, row, np.inf).argmin())
        expected = (logarithms.exp() * torch.from_numpy(row).double()).sum()
        total = total + (expected - certainty * logarithms[best]) / count
    total.backward()
    network = selector.network
    own = (network.filter_weight, network.filter_bias, network.norm_scale, network.norm_shift)
    for ours, theirs in zip((*own, network.weight, network.bias), layers.parameters(), strict=True):
        downhill = theirs.grad.reshape(ours.shape)
        assert ours.grad is not None and float(downhill.abs().max()) > 1e-4
        torch.testing.assert_close(
            ours.grad.double(), downhill, rtol=0, atol=1e-4 * float(downhill.abs().max())
        )


def test_rates_fall_along_half_a_cosine() -> None:
    """From 1 to 0.03 of them: after a quarter of the epochs to 0.03 + 0.97 (1 + 0.7071) / 2."""
    learner = taught(epochs=4, learning_rate=0.01, filter_learning_rate=0.2)
    rates: list[list[float]] = []
    learner.train(
        tell=lambda report: rates.append([each["lr"] for each in learner.job_selector.optimiser.param_groups])
    )
    shares = [1, 0.8579, 0.515, 0.1721]
    np.testing.assert_allclose(rates, [[0.01 * share, 0.2 * share] for share in shares], rtol=1e-3)


def test_the_dense_layer_has_a_rate_of_its_own() -> None:
    """A first step of Adam is as long as the rate, in every weight that it has a direction for."""
    learner = taught(epochs=1, learning_rate=1e-5, filter_learning_rate=1e-2, passes=1, batch_size=10_000)
    learner._set_up()
    network = learner.job_selector.network
    before = {name: weights.detach().clone() for name, weights in network.named_parameters()}
    learner.round()
    moved = {name: weights - before[name] for name, weights in network.named_parameters()}
    longest = {name: float(each.detach().abs().max()) for name, each in moved.items()}
    rates = {name: 1e-5 if name in ("weight", "bias") else 1e-2 for name in before}
    assert longest == pytest.approx(rates, rel=1e-2)


def test_jobs_are_learned_from_in_other_slots() -> None:
    """A job keeps what its start loses; there are so many orders that none comes up all the time."""
    count, rng = 200, np.random.default_rng(1)
    jobs = rng.random((count, 3, 4)).astype(np.float32) + 0.5
    jobs[count // 2 :, 2] = 0  # no third job
    valid = rng.random((count, 4)) < 0.7
    valid[count // 2 :, 2] = False
    worth = np.concatenate([jobs[..., 0], np.full((count, 1), 9.0)], axis=1)  # of nothing: 9
    states = States([np.zeros(5, dtype=np.uint8)] * count, list(jobs), list(valid))
    others, actions = states.shuffled(rng)
    moved = np.take_along_axis(worth, actions, axis=1)
    np.testing.assert_array_equal(moved[:, :3], np.array(others.jobs)[..., 0])
    assert (moved[:, 3] == 9).all(), "to start none stays the last action"
    np.testing.assert_array_equal(np.array(others.jobs)[count // 2 :, 2], 0)
    for here, there, which in zip(valid, others.valid, actions, strict=True):
        assert there.tolist() == [bool(here[action]) for action in which]
    orders, counts = np.unique(actions[: count // 2], axis=0, return_counts=True)
    assert len(orders) == 6 and counts.min() >= 5
    assert len(np.unique(actions[count // 2 :], axis=0)) == 2
    assert others.busy is states.busy


def test_guidance_ends_when_it_should() -> None:
    learner = taught(epochs=8, guided=0.5)
    learner._set_up()
    scenario, rng = learner.job_sets(0)[0], np.random.default_rng(1)
    found = []
    for learner.rounds in range(6):
        found.append(learner.game(scenario, BREADTH, rng)._guidance)
    assert found == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    assert taught(guided=0.0)._guidance() == 0.0


def test_what_is_told_is_what_is_lost() -> None:
    """Minus the mean over games, by the probabilities before anything was learned."""
    learner = taught(guided=0.0)
    learner._set_up()
    rng = np.random.default_rng(1)
    played = learner._games(rng, 1)
    states = play(played, TINY, learner.job_selector, rng)
    by_hand = [
        -np.mean([
            sum(chance * loss for chance, loss in zip(states.probabilities[state].tolist(), regrets.tolist(), strict=True))
            for state, regrets in game.regrets
        ])
        for game in played
        if isinstance(game, TaughtGame)
    ]  # fmt: skip
    assert learner.learn(played, states) == pytest.approx(by_hand, rel=1e-5)


def test_all_is_learned_from_passes_times_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = taught(epochs=1, passes=3, batch_size=20)
    learner._set_up()
    sizes: list[int] = []
    regrets: list[Any] = []

    def noted(states: States, lost: Any, certainty: float) -> None:
        sizes.append(len(states.busy))
        regrets.append(lost)
        assert len(lost) == len(states.jobs) == len(states.valid) and certainty == SHORT.certainty

    monkeypatch.setattr(learner.job_selector, "imitate", noted)
    learner.round()
    total = sum(sizes) // 3
    each = [20] * (total // 20) + [total % 20] * (total % 20 > 0)
    assert total > 40 and sizes == each * 3
    everything = np.concatenate(regrets)
    assert everything[everything > 0].mean() == pytest.approx(1, rel=1e-5), "a regret of 1 is the usual one"


@pytest.mark.slow
def test_the_teacher_is_learned_from() -> None:
    """On job sets of its own in each epoch less and less is lost."""
    learner = taught(epochs=30, job_sets=10, passes=2)
    lost: list[float] = []
    learner.train(tell=lambda report: lost.append(-report.reward))
    assert np.mean(lost[-5:]) < 0.6 * np.mean(lost[:5])


# --- runs --------------------------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life_cycle, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole: list[Report] = []
    straight = taught(average_every=2, guided=1.0).train(tmp_path / "straight", tell=whole.append)
    with pytest.raises(StopError):
        taught(average_every=2, guided=1.0).train(tmp_path / "stopped", tell=stop_at(3))
    rest: list[Report] = []
    gone_on = taught(average_every=2, guided=1.0).train(tmp_path / "stopped", resume=True, tell=rest.append)
    assert without_rates(rest) == without_rates(whole[2:])
    assert networks_of(gone_on) == networks_of(straight) != networks_of(taught(seed=4).train())


def test_it_ends_when_it_was_to_end(tmp_path: Path) -> None:
    """Rates and guidance depend on it."""
    taught().train(tmp_path)
    with pytest.raises(UsageError, match="another one's"):
        taught(epochs=9).train(tmp_path, resume=True)
    learner = taught()
    learner.teacher = teacher(network=SlotScores({"weight.0": np.ones((1, 7)), "bias.0": np.zeros(1)}))
    with pytest.raises(UsageError, match="another one's"):
        learner.train(tmp_path, resume=True)


class Two(Workers):
    count = 2


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"batch_size": 0}, "cush-taught: batch_size needs a whole number of at least 1, found 0"),
        ({"batch_size": 2.5}, "cush-taught: batch_size needs a whole number of at least 1, found 2.5"),
        ({"passes": 0}, "cush-taught: passes needs a whole number of at least 1, found 0"),
        ({"guided": 1.5}, "cush-taught: guided needs a number from 0 to 1, found 1.5"),
        ({"certainty": -0.1}, "cush-taught: certainty needs a number from 0 to 1, found -0.1"),
        ({"learning_rate": 0.0}, "cush-taught: learning_rate needs a number above 0, found 0.0"),
    ],
)
def test_settings_that_are_none(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(UsageError, match=found):
        taught(**changes).train()


@pytest.mark.parametrize(
    "changes",
    [
        {"stage": "dispatch"},
        {"mask": QueueSlots(3, decline=False)},
        {"mask": QueueSlots(2, decline=True)},
        {"mask": Slots(4)},
    ],
)
def test_a_teacher_of_something_else(changes: dict[str, Any]) -> None:
    learner = TaughtTrainer(TINY, SHORT, teacher=teacher(**changes))
    with pytest.raises(UsageError, match="a teacher for the order seat with QueueSlots"):
        learner.train()


def test_a_teacher_that_cannot_read_what_it_sees() -> None:
    """Six weights for rows of seven numbers."""
    network = SlotScores({"weight.0": np.ones((1, 6)), "bias.0": np.zeros(1)})
    learner = TaughtTrainer(TINY, SHORT, teacher=teacher(network=network))
    with pytest.raises(UsageError, match="reads 6 numbers"):
        learner.train()


def test_a_teacher_that_sees_more_slots() -> None:
    """It scores more actions than there are: those beyond are nobody's."""
    learner = TaughtTrainer(
        TINY, replace(SHORT, epochs=1), teacher=teacher(encoder=StartOrHold(5, horizon=4))
    )
    learner.train()
    assert learner.rounds == 1


def test_a_teacher_that_sees_something_else_is_another_one(tmp_path: Path) -> None:
    taught().train(tmp_path)
    learner = TaughtTrainer(TINY, SHORT, teacher=teacher(encoder=StartOrHold(3)), seed=3)
    with pytest.raises(UsageError, match="another one's"):
        learner.train(tmp_path, resume=True)


def test_one_simulation_is_for_one_worker() -> None:
    learner = TaughtTrainer(TINY, SHORT, teacher=teacher(), workers=Two())
    with pytest.raises(UsageError, match="2 workers need at least as many simulations of a job set, found 1"):
        learner.train()


def test_who_teaches_sees_as_far_as_the_pupil(tmp_path: Path) -> None:
    few = CrossEntropySettings(total_timesteps=60, episodes=1, population=4, elite=2)
    agent = teacher_of(TINY, few, seed=2, folder=tmp_path / "teacher", resume=True)
    assert agent.encoder == StartOrHold(3, horizon=4) and repr(agent.mask) == repr(TINY.mask)
    again = teacher_of(TINY, few, seed=2, folder=tmp_path / "teacher", resume=True)
    assert agent.network.tensors["weight.0"].tolist() == again.network.tensors["weight.0"].tolist()
    TaughtTrainer(TINY, replace(SHORT, epochs=1), teacher=agent).train()
