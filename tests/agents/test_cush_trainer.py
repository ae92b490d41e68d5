"""CuSH's training: gradients against plain torch, stopping and going on, several workers, what is learned."""

from __future__ import annotations

import copy
import csv
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush import training as trainer_module
from hpcsimkit.agents.cush.game import Game, Placed
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.selectors import AT_ONCE, JobSelector, PolicySelector
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.cush.training import AGENTS
from hpcsimkit.agents.networks.model_file import read_model
from hpcsimkit.agents.training import trainer as life_cycle
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.agents.training.trainer import CURVE
from hpcsimkit.agents.training.workers import Workers, joined_workers
from hpcsimkit.errors import UsageError
from hpcsimkit.policies import SJF
from hpcsimkit.policies.placing.styles import SuitsKind
from tests.agents import kavg
from tests.agents.test_cush import plain, some_sketches
from tests.agents.tiny_problem import StopError, without_rates

torch.set_num_threads(1)

TINY = CushProblem(system="summit", nodes=16, jobs=6, slots=3, horizon=4)
SHORT = CushSettings(epochs=7, job_sets=2, simulations=4, average_every=2, learning_rate=1e-3)


def trainer(seed: int = 3, workers: Workers | None = None, **changes: Any) -> CushTrainer:
    return CushTrainer(TINY, replace(SHORT, **changes), seed=seed, workers=workers)


FILES = ("checkpoint.safetensors", "checkpoint-1.safetensors")


def rmsprop(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(network.parameters(), 1e-3)


# --- selectors ---------------------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_valid_scores() -> None:
    """Of more states than are thought about at a time; what is no option has none at all."""
    selector = JobSelector(TINY, rmsprop, torch.Generator().manual_seed(1))
    rng, count = np.random.default_rng(2), 2 * AT_ONCE + 5
    sketch = some_sketches(rng, count, TINY.image)
    valid = rng.random((count, 4)) < 0.6
    valid[:, 1] |= ~valid.any(axis=1)
    found = selector(sketch, valid)
    assert found.shape == (count, 4) and found.dtype == np.float32
    for number in range(count):
        with torch.no_grad():
            (scores,) = selector.network(
                *(torch.from_numpy(part[number : number + 1]) for part in sketch)
            ).numpy()
        weights = np.where(valid[number], np.exp(scores), 0)
        np.testing.assert_allclose(found[number], weights / weights.sum(), rtol=1e-5)
    assert (found[~valid] == 0).all()


class Recorded(Game):
    """A game that keeps, of each decision, the picture, what is valid, the action and the number of the step."""

    def take(self, state: int, action: int, position: int) -> None:
        assert self.decision is not None
        seen = np.zeros(TINY.image.shape, dtype=np.float32)
        valid = np.zeros(TINY.mask.actions, dtype=np.bool_)
        TINY.image.bind(self.system)(self.decision, seen)
        TINY.mask.write(self.decision, valid)
        started = sum(start >= 0 for start in self.system.ledger.starts)
        self.__dict__.setdefault("seen", []).append((seen, valid, action, self.system.now + started))
        super().take(state, action, position)


class OneEpoch:
    """What a training knew before an epoch, the games it played, and what came of them."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, step: bool, before: Callable[[CushTrainer], None],
        equal_sets: bool = False,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(trainer_module, "Game", Recorded)
        learner = self.learner = trainer(equal_sets=equal_sets)
        played: list[list[Any]] = []
        make = learner._games

        def kept(rng: Any, each: int) -> list[Any]:
            played.append(make(rng, each))
            return played[-1]

        monkeypatch.setattr(learner, "_games", kept)
        learner._set_up()
        before(learner)
        self.first_look = played.pop()
        self.job_selector, self.policy_selector = (
            copy.deepcopy(selector.network) for selector in (learner.job_selector, learner.policy_selector)
        )
        if not step:
            for selector in (learner.job_selector, learner.policy_selector):
                monkeypatch.setattr(selector.optimiser, "step", lambda: None)
        (earned,), measures, _ = learner.round()
        self.told = {**measures, "return": earned}
        (self.games,) = played

    def returns(self, game: Any) -> list[float]:
        """Return what each decision was worth, term by term."""
        rewards, ntat = game.rewards().tolist(), self.ntat(game)
        return [
            ntat * sum(0.9 ** (later - step) * rewards[later] for later in range(step, len(rewards)))
            for step in range(len(rewards))
        ]

    def ntat(self, game: Any) -> float:
        system = game.system
        rows = zip(system.jobs, system.ledger.starts, system.ledger.ends, strict=True)
        return float(np.mean([(end - job.submit_time) / (end - start) for job, start, end in rows]))

    def expected(self, number: int, step: int) -> float:
        """Return the mean of all games of the same job set at a step; who has ended counts 0."""
        first = number // SHORT.simulations * SHORT.simulations
        others = [self.returns(game) for game in self.games[first : first + SHORT.simulations]]
        return sum(each[step] for each in others if step < len(each)) / SHORT.simulations

    def above(self, number: int) -> list[float]:
        """Return by how much each decision of a game was worth more than expected."""
        return [
            each - self.expected(number, step) for step, each in enumerate(self.returns(self.games[number]))
        ]

    def size(self, number: int) -> float:
        """Return the root mean square of that, over all decisions in the game's job set."""
        first = number // SHORT.simulations * SHORT.simulations
        values = [each for other in range(first, first + SHORT.simulations) for each in self.above(other)]
        return math.sqrt(sum(each**2 for each in values) / len(values))


def away_from_zero(learner: CushTrainer) -> None:
    """Move all weights, so that no gradient is 0 by chance of the first ones."""
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for selector in (learner.job_selector, learner.policy_selector):
            for values in selector.network.parameters():
                values += 0.03 * torch.randn(values.shape, generator=generator)


@pytest.mark.parametrize("equal_sets", [False, True])
def test_the_job_selector_follows_the_gradient_of_reinforce(
    monkeypatch: pytest.MonkeyPatch, equal_sets: bool
) -> None:
    """Decision by decision, picture by picture, by torch's own layers."""
    epoch = OneEpoch(monkeypatch, step=False, before=away_from_zero, equal_sets=equal_sets)
    layers: Any = plain(epoch.job_selector).double()
    total, decisions = torch.zeros((), dtype=torch.float64), 0
    for number, game in enumerate(epoch.games):
        above, size = epoch.above(number), epoch.size(number) if equal_sets else 1
        for picture, valid, action, step in game.seen:
            scores = layers(torch.from_numpy(picture)[None].double())[0]
            logarithms = scores.masked_fill(~torch.from_numpy(valid), -torch.inf).log_softmax(dim=0)
            total = total + above[step] / size * logarithms[action]
            decisions += 1
    assert decisions > 60
    total.backward()
    network = epoch.learner.job_selector.network
    own = (network.filter_weight, network.filter_bias, network.norm_scale, network.norm_shift)
    for ours, theirs in zip((*own, network.weight, network.bias), layers.parameters(), strict=True):
        uphill = theirs.grad.reshape(ours.shape)
        assert ours.grad is not None
        assert float(uphill.abs().max()) > 1e-2
        torch.testing.assert_close(-ours.grad.double(), uphill, rtol=0, atol=1e-4 * float(uphill.abs().max()))


def test_the_policy_selector_follows_the_gradient_of_reinforce(monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = OneEpoch(monkeypatch, step=False, before=away_from_zero)
    network: Any = copy.deepcopy(epoch.policy_selector).double()
    total = torch.zeros((), dtype=torch.float64)
    for game in epoch.games:
        for job, allocation in zip(game.system.jobs, game.system.allocations, strict=True):
            kind = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)[job.kind]
            style = ("depth", "breadth").index(allocation.style)
            longer = game.system.ledger.ends[job.index] - game.system.ledger.starts[job.index] - job.run_time
            total = total - longer * network(kind).log_softmax(dim=0)[style]
    total.backward()
    assert min(float(values.grad.abs().max()) for values in network.parameters()) > 1e-2
    for ours, theirs in zip(
        epoch.learner.policy_selector.network.parameters(), network.parameters(), strict=True
    ):
        assert ours.grad is not None
        torch.testing.assert_close(
            -ours.grad.double(), theirs.grad, rtol=1e-4, atol=1e-5 * float(theirs.grad.abs().max())
        )


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_every_kind_has_hidden_units_of_its_own_and_an_even_start(kinds: int) -> None:
    for seed in range(20):
        selector = PolicySelector(kinds, 1e-3, torch.Generator().manual_seed(seed))
        hidden, rectifier = selector.network[0], selector.network[1]
        alive = (rectifier(hidden(selector.kinds)) > 0).sum(dim=0)
        assert (alive == 1).all(), "a unit is alive for one kind"
        each = (rectifier(hidden(selector.kinds)) > 0).sum(dim=1)
        assert each.min() >= 10 // kinds
        assert (selector.probabilities() == 0.5).all()


def test_weights_move_uphill_as_rmsprop_moves_them_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first step of RMSprop goes ten rates far (1 / sqrt(1 - 0.99)), whatever the size of the gradient."""
    epoch = OneEpoch(monkeypatch, step=True, before=away_from_zero)
    for selector, before, rate in (
        (epoch.learner.job_selector, epoch.job_selector, SHORT.learning_rate),
        (epoch.learner.policy_selector, epoch.policy_selector, SHORT.style_learning_rate),
    ):
        for now, then in zip(selector.network.parameters(), before.parameters(), strict=True):
            assert now.grad is not None
            clear = now.grad.abs() > 1e-3
            moves = (now - then)[clear].detach()
            torch.testing.assert_close(
                moves, -10 * rate * now.grad.sign()[clear], rtol=1e-3, atol=20 * rate * 1e-4
            )


def found_by_filters(
    network: Any, pictures: Sequence[NDArray[np.float32]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and variance of what each filter finds in some pictures."""
    with torch.no_grad():
        found = plain(network)[:2](torch.from_numpy(np.array(pictures)))
        return found.mean(dim=(0, 2, 3)), found.var(dim=(0, 2, 3), unbiased=False)


def test_normalisation_goes_by_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first each state of a game without preferences; then each decision, a tenth of the way."""
    epoch = OneEpoch(monkeypatch, step=False, before=lambda learner: None)
    states = {
        seen.tobytes() + valid.tobytes(): seen for game in epoch.first_look for seen, valid, *_ in game.seen
    }
    mean, variance = found_by_filters(epoch.job_selector, list(states.values()))
    torch.testing.assert_close(epoch.job_selector.mean, mean)
    torch.testing.assert_close(epoch.job_selector.variance, variance, rtol=1e-4, atol=1e-6)
    pictures = [seen for game in epoch.games for seen, *_ in game.seen]
    then = found_by_filters(epoch.job_selector, pictures)
    now = epoch.learner.job_selector.network
    torch.testing.assert_close(now.mean, 0.9 * mean + 0.1 * then[0])
    torch.testing.assert_close(now.variance, 0.9 * variance + 0.1 * then[1], rtol=1e-4, atol=1e-6)


def test_what_is_told_of_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def prefers(learner: CushTrainer) -> None:
        first, _, last = learner.policy_selector.network
        with torch.no_grad():
            for layer, row in ((first, [[1.0, 0.0]] * 10), (last, [[1.0] * 10, [-1.0] * 10])):
                layer.weight.copy_(torch.tensor(row))
                layer.bias.zero_()

    epoch = OneEpoch(monkeypatch, step=False, before=prefers)
    systems = [game.system for game in epoch.games]
    waits = [
        start - job.submit_time for s in systems for job, start in zip(s.jobs, s.ledger.starts, strict=True)
    ]
    turnarounds = [
        end - job.submit_time for s in systems for job, end in zip(s.jobs, s.ledger.ends, strict=True)
    ]
    styles: dict[int, list[bool]] = {0: [], 1: []}
    for system in systems:
        for job in system.jobs:
            styles[job.kind].append(system.given(job.index).style == "breadth")
    assert np.mean(styles[0]) < 0.1 < np.mean(styles[1])
    assert epoch.told == pytest.approx(
        {
            "turnaround": np.mean(turnarounds), "wait": np.mean(waits),
            "normalised_turnaround": np.mean([epoch.ntat(game) for game in epoch.games]),
            "return": np.mean([np.mean(epoch.returns(game)) for game in epoch.games]),
            "dgemm_breadth_first": np.mean(styles[0]), "daxpy_breadth_first": np.mean(styles[1]),
        },
        rel=1e-5,
    )  # fmt: skip


def test_what_is_expected_is_a_mean_over_all_simulations_of_a_job_set() -> None:
    """Two sets, four simulations each, two here; those of another worker, which are longer, add up to 1."""

    class BesideAnother(Workers):
        count = 2

        def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
            return values + 1

        def least(self, number: int) -> int:
            return min(number, -3)

    learner = trainer(workers=BesideAnother())
    returns = np.array([[1, 2, 10, 20], [3, 0, 30, 40]], dtype=np.float32)  # the second of a set has ended
    found = learner._expected(returns)
    assert found.tolist() == [[(3 + 1) / 4, (30 + 1) / 4], [(3 + 1) / 4, (70 + 1) / 4], [0.25, 0.25]]


@pytest.mark.parametrize("average_every", [1, 2])
def test_workers_average_their_weights_every_few_epochs(
    average_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three workers in threads: at the beginning, after each K epochs, and at the end; then all are equal."""
    averaged: list[int] = []
    average = kavg.InThreads.average

    def noted(workers: kavg.InThreads, module: torch.nn.Module) -> None:
        averaged.append(workers.rank)
        average(workers, module)

    monkeypatch.setattr(kavg.InThreads, "average", noted)
    trainers = kavg.trained(TINY, replace(SHORT, epochs=4, average_every=average_every), 3)
    assert averaged.count(0) == 2 * (1 + 4 // average_every)  # of two networks
    first, *others = [each.job_selector.network.state_dict() for each in trainers]
    assert all(torch.equal(first[name], each[name]) for each in others for name in first)


def test_a_job_set_whose_games_are_all_alike_teaches_nothing() -> None:
    """Two sets, two simulations each: nothing was worth more than expected in the first one."""
    learner = trainer(equal_sets=True, simulations=2)
    games: Any = [SimpleNamespace(step=2)] * 4
    returns = np.array([[1, 1, 10, 20], [5, 5, 30, 40]], dtype=np.float32)
    found = learner._above_expected(games, returns)
    assert found.tolist() == [[0, 0, -1, 1], [0, 0, -1, 1]]


def test_styles_become_more_probable_the_less_they_cost() -> None:
    selector = PolicySelector(2, 1e-2, torch.Generator().manual_seed(1))
    before = selector.probabilities()
    assert before.shape == (2, 2) and before.sum(axis=1) == pytest.approx([1, 1])
    selector.learn([Placed(0, 1, 3), Placed(0, 0, 1), Placed(1, 0, 2)])
    after = selector.probabilities()
    assert after[0, 0] > before[0, 0] and after[1, 1] > before[1, 1]
    acting = selector.acting()
    assert acting.parameters == 2 * 10 + 10 + 10 * 2 + 2 == 52
    for kind in (0, 1):
        scores = acting.scores(np.eye(2, dtype=np.float32)[kind])
        assert np.exp(scores) / np.exp(scores).sum() == pytest.approx(after[kind], rel=1e-5)


# --- the run -----------------------------------------------------------------------------------------------


def networks_of(agents: dict[str, Agent]) -> list[Any]:
    return [agents[seat].network for seat in ("order", "placement")]


@cache
def straight() -> list[Any]:
    """The networks of a training from beginning to end."""
    return networks_of(trainer().train())


def test_same_seed_same_training_other_seed_another() -> None:
    runs: list[Any] = []
    for seed in (3, 3, 4):
        told: list[Report] = []
        agents = trainer(seed, epochs=3).train(tell=told.append)
        runs.append((without_rates(told), networks_of(agents)))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0] and runs[0][1] != runs[2][1]


def test_job_sets_are_the_same_in_all_epochs_or_fresh_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for fresh in (False, True):
        learner, seen = trainer(epochs=3, fresh=fresh), []
        make = learner._games

        def noted(rng: Any, each: int, make: Any = make, seen: Any = seen) -> Any:
            games = make(rng, each)
            seen.append([game.system.workload.hash for game in games])
            assert [len(set(seen[-1][first : first + each])) for first in range(0, len(games), each)] == [
                1,
                1,
            ]
            return games

        monkeypatch.setattr(learner, "_games", noted)
        learner.train()
        assert len(seen) == 4
        assert len({str(sorted(set(hashes))) for hashes in seen[1:]}) == (3 if fresh else 1)


def test_what_is_written(tmp_path: Path) -> None:
    told: list[Report] = []
    learner = trainer(epochs=3)
    agents = learner.train(tmp_path / "run", tell=told.append)
    assert [(report.steps, report.of, report.episodes) for report in told] == [
        (1, 3, 8),
        (2, 3, 16),
        (3, 3, 24),
    ]
    assert learner.curve == told
    rows = list(csv.DictReader((tmp_path / "run" / CURVE).read_text().splitlines()))
    assert [float(row["reward"]) for row in rows] == [report.reward for report in told]
    assert [float(row["normalised_turnaround"]) for row in rows] == [
        report.measures["normalised_turnaround"] for report in told
    ]
    for seat, file in AGENTS.items():
        again = Agent.load(tmp_path / "run" / file)
        assert again == agents[seat] and again.network == agents[seat].network
        assert again.about is not None and (again.about["epochs"], again.about["seed"]) == (3, 3)
        assert (again.stage, again.mask) == (seat, agents[seat].mask)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is written whenever it may be."""
    monkeypatch.setattr(life_cycle, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)


def stop_at(epoch: int, told: list[Report] | None = None) -> Callable[[Report], None]:
    def tell(report: Report) -> None:
        if told is not None:
            told.append(report)
        if report.steps == epoch:
            raise StopError

    return tell


def same_files(one: Path, other: Path) -> None:
    """Whatever is written is the same."""
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in other.iterdir()
    }


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(fresh: bool, tmp_path: Path) -> None:
    """Killed in the fifth epoch of seven: the checkpoint is that of the fourth, as workers agreed."""
    whole: list[Report] = []
    straight = trainer(fresh=fresh).train(tmp_path / "straight", tell=whole.append)
    told: list[Report] = []
    with pytest.raises(StopError):
        trainer(fresh=fresh).train(tmp_path / "stopped", tell=stop_at(5, told))
    assert [read_model(path)[1]["rounds"] for path in (tmp_path / "stopped").glob("checkpoint*")] == [4]
    rest: list[Report] = []
    gone_on = trainer(fresh=fresh).train(tmp_path / "stopped", resume=True, tell=rest.append)
    assert without_rates(told) == without_rates(whole[:5])
    assert without_rates(rest) == without_rates(whole[4:])
    assert networks_of(gone_on) == networks_of(straight)
    same_files(tmp_path / "straight", tmp_path / "stopped")
    again = trainer(fresh=fresh).train(tmp_path / "stopped", resume=True, tell=stop_at(1))
    assert networks_of(again) == networks_of(straight), "what is over stays over"


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_asked_to_stop_does_so_when_workers_agree_next(number: int, tmp_path: Path) -> None:
    told: list[Report] = []

    def tell(report: Report) -> None:
        told.append(report)
        if report.steps == 3:
            signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt):
        trainer().train(tmp_path, tell=tell)
    assert told[-1].steps == 4
    assert read_model(tmp_path / "checkpoint.safetensors")[1]["rounds"] == 4
    rest: list[Report] = []
    gone_on = trainer().train(tmp_path, resume=True, tell=rest.append)
    assert [report.steps for report in rest] == [5, 6, 7]
    assert networks_of(gone_on) == straight()


def test_checkpoints_are_written_at_first_and_now_and_then(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        trainer().train(tmp_path, tell=stop_at(5))
    assert [read_model(path)[1]["rounds"] for path in tmp_path.glob("checkpoint*")] == [2]


@pytest.mark.parametrize(
    "other",
    [
        lambda: trainer(seed=4), lambda: trainer(learning_rate=2e-3), lambda: trainer(fresh=True),
        lambda: CushTrainer(replace(TINY, system="sierra"), SHORT, seed=3),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("often")
def test_a_checkpoint_of_another_training(other: Callable[[], CushTrainer], tmp_path: Path) -> None:
    with pytest.raises(StopError):
        trainer().train(tmp_path, tell=stop_at(3))
    with pytest.raises(
        UsageError,
        match=r"^\S*checkpoint.safetensors: a checkpoint of this training is needed, found another",
    ):
        other().train(tmp_path, resume=True)


def test_what_is_over_may_go_on_for_longer(tmp_path: Path) -> None:
    trainer(epochs=4).train(tmp_path)
    rest: list[Report] = []
    longer = trainer().train(tmp_path, resume=True, tell=rest.append)
    assert [report.steps for report in rest] == [5, 6, 7]
    assert networks_of(longer) == straight()


@pytest.mark.usefixtures("often")
def test_what_was_trained_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        trainer().train(tmp_path, tell=stop_at(3))
    with pytest.raises(UsageError, match="there is a checkpoint already: resume it"):
        trainer().train(tmp_path)
    (tmp_path / "checkpoint.safetensors").rename(tmp_path / "checkpoint-0-before.safetensors")
    with pytest.raises(UsageError, match="there is a checkpoint already"):
        trainer().train(tmp_path)


ALONE = "needs a whole number of at least 1, found 0"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"epochs": 0}, f"epochs {ALONE}"),
        ({"job_sets": 0}, f"job_sets {ALONE}"),
        ({"simulations": 0}, f"simulations {ALONE}"),
        ({"average_every": 0}, f"average_every {ALONE}"),
        ({"epochs": 2.5}, "epochs needs a whole number of at least 1, found 2.5"),
        ({"learning_rate": -1.0}, "learning_rate needs a number above 0, found -1.0"),
        ({"style_learning_rate": float("nan")}, "style_learning_rate needs a number above 0, found nan"),
        ({"gamma": 1.5}, "gamma"),
        ({"seed": -1}, "seed needs a whole number of at least 0, found -1"),
    ],
)
def test_settings_that_are_none(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(UsageError, match=f"^cush: {found}"):
        trainer(**changes).train()


def test_where_nobody_has_a_choice_only_styles_are_learned() -> None:
    """A job alone starts at once; on many nodes its placement matters."""
    problem, how = replace(TINY, jobs=1, nodes=128), replace(SHORT, job_sets=10)
    learner, first = (CushTrainer(problem, how, seed=3) for _ in range(2))
    learner.train()
    first._set_up()
    untrained, trained = networks_of(first.agents()), networks_of(learner.agents())
    assert untrained[0] == trained[0] and untrained[1] != trained[1]
    assert [report.measures["wait"] for report in learner.curve] == [0] * 7


def test_waiting_times_cannot_be_counted_in_nothing() -> None:
    with pytest.raises(UsageError, match="wait_unit"):
        CushTrainer(replace(TINY, wait_unit=0.0), SHORT).train()


def test_weights_that_are_no_numbers() -> None:
    with pytest.raises(UsageError):
        trainer(learning_rate=1e30).train()


# --- what is learned ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_right_styles_and_shorter_turnarounds_are_learned() -> None:
    """On two job sets, from worse to no worse than the shortest first, placed by their kinds."""
    problem = CushProblem(system="summit", nodes=32, jobs=6, wait_unit=1.0)
    settings = CushSettings(
        epochs=20, job_sets=2, simulations=12, learning_rate=1e-3, style_learning_rate=3e-2
    )
    learner = CushTrainer(problem, settings, seed=2)
    learner.train()
    ntat = [report.measures["normalised_turnaround"] for report in learner.curve]
    results = [
        scenario.simulation(problem.pipeline(SJF(), SuitsKind())).run() for scenario in learner.job_sets(0)
    ]
    best = np.mean([((each.wait_time + each.run_time) / each.run_time).mean() for each in results])
    assert ntat[-1] < 0.6 * ntat[0] and ntat[-1] < 1.05 * best < ntat[0]
    earned = [report.reward for report in learner.curve]
    assert earned[0] < 5 * earned[-1] < 0
    assert learner.curve[-1].measures["dgemm_breadth_first"] < 0.1
    assert learner.curve[-1].measures["daxpy_breadth_first"] > 0.9


# --- workers -----------------------------------------------------------------------------------------------


def test_games_are_shared_evenly() -> None:
    for games, count in ((24, 1), (24, 12), (24, 5), (3, 3)):
        shares = []
        for rank in range(count):
            worker = Workers()
            worker.rank, worker.count = rank, count
            shares.append(worker.share(games))
        assert sum(shares) == games and max(shares) - min(shares) <= 1


def test_more_workers_than_simulations() -> None:
    class Many(Workers):
        count = 5

    with pytest.raises(
        UsageError, match=r"^cush: 5 workers need at least as many simulations of a job set, found 4$"
    ):
        trainer(workers=Many()).train()


def test_who_was_not_started_by_torchrun_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with joined_workers() as workers:
        assert type(workers) is Workers and (workers.rank, workers.count) == (0, 1)
        module = nn.Linear(2, 1)
        before = copy.deepcopy(module.state_dict())
        workers.average(module)
        assert all(torch.equal(before[name], values) for name, values in module.state_dict().items())
        assert workers.total(np.array([1.0, 2.0])).tolist() == [1, 2] and workers.least(7) == 7


def test_workers_that_do_not_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with (
        pytest.raises(UsageError, match=r"^workers do not come together: .*RANK") as caught,
        joined_workers(),
    ):
        pass
    assert "\n" not in str(caught.value)


class Beside(Workers):
    """One of several that are threads of this process, and meet at a barrier."""

    def __init__(self, rank: int, barrier: threading.Barrier, table: list[Any]) -> None:
        self.rank, self.count, self._barrier, self._table = rank, len(table), barrier, table

    def _all(self, values: Any) -> list[Any]:
        self._table[self.rank] = values
        self._barrier.wait(60)
        everybody = list(self._table)
        self._barrier.wait(60)
        return everybody

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sum(self._all(values.copy()), axis=0)

    def least(self, number: int) -> int:
        return min(self._all(number))

    def average(self, module: nn.Module) -> None:
        states = self._all(copy.deepcopy(module.state_dict()))
        module.load_state_dict(
            {name: sum(state[name] for state in states) / self.count for name in states[0]}
        )


def beside_each_other(
    folder: Path | None, *, resume: bool = False, stop: int = 0, count: int = 2, **changes: Any
) -> list[CushTrainer]:
    """Train in threads; returns the trainers, after the end or after an epoch that tells them to stop."""
    barrier, table = threading.Barrier(count), [None] * count
    changes = {"simulations": 5, **changes}
    learners = [trainer(workers=Beside(rank, barrier, table), **changes) for rank in range(count)]
    failures: list[BaseException] = []

    def work(learner: CushTrainer) -> None:
        try:
            learner.train(folder, resume=resume, tell=stop_at(stop))
        except (StopError, KeyboardInterrupt):
            pass
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [
        threading.Thread(target=work, args=[learner], name=f"worker {learner.workers.rank}")
        for learner in learners
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return learners


@cache
def straight_of_two() -> list[Any]:
    """The networks of a training of two workers from beginning to end."""
    return networks_of(beside_each_other(None)[0].agents())


def test_workers_agree_and_each_learns_from_games_of_its_own() -> None:
    one, other = beside_each_other(None)
    assert networks_of(one.agents()) == networks_of(other.agents())
    assert without_rates(one.curve) == without_rates(other.curve), "told of all games, to everybody"
    assert networks_of(one.agents()) != networks_of(trainer(simulations=5).train())
    assert one.curve[-1].episodes == 7 * 2 * 5
    between, other = beside_each_other(None, stop=1)
    assert networks_of(between.agents()) != networks_of(other.agents()), "they agree every other epoch only"


def test_chance_is_another_one_in_each_epoch_and_for_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the first look, by which all normalise alike."""
    states, shares = list[int](), list[int]()
    real = trainer_module.play

    def noted(games: Any, mask: Any, selector: Any, rng: np.random.Generator) -> Any:
        states.append(rng.bit_generator.state["state"]["state"])
        shares.append(len(games))
        return real(games, mask, selector, rng)

    monkeypatch.setattr(trainer_module, "play", noted)
    beside_each_other(None, epochs=3)
    assert sorted(Counter(states).values()) == [1] * 6 + [2]
    assert sorted(shares) == [2, 2, 4, 4, 4, 6, 6, 6], "of five simulations of two job sets three and two"


def test_if_one_is_asked_to_stop_all_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OneIsAsked(Stopping):
        def __enter__(self) -> Stopping:
            self.asked = threading.current_thread().name == "worker 1"
            return self

    monkeypatch.setattr(life_cycle, "Stopping", OneIsAsked)
    assert [learner.rounds for learner in beside_each_other(tmp_path)] == [2, 2]
    for file in FILES:
        assert read_model(tmp_path / file)[1]["rounds"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_seven_workers_go_on_bit_for_bit(tmp_path: Path) -> None:
    """The mean of seven equal numbers is not always that number: they must not agree once more."""
    seven: dict[str, Any] = {"count": 7, "simulations": 7, "job_sets": 1, "epochs": 4}
    straight = beside_each_other(None, **seven)
    beside_each_other(tmp_path, stop=3, **seven)
    gone_on = beside_each_other(tmp_path, resume=True, **seven)
    assert networks_of(gone_on[0].agents()) == networks_of(straight[0].agents())


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("lost", "goes_on_after"), [("checkpoint-1.s", 2), ("checkpoint.s", 2)])
def test_workers_go_on_from_the_last_checkpoint_that_all_have(
    lost: str, goes_on_after: int, tmp_path: Path
) -> None:
    """Both were killed in the fifth epoch, one of them before it had written the checkpoint of the fourth."""
    beside_each_other(tmp_path, stop=5)
    for path in tmp_path.glob(f"{lost}*"):
        path.unlink()
    learners = beside_each_other(tmp_path, resume=True, stop=goes_on_after + 1)
    assert [learner.rounds for learner in learners] == [goes_on_after + 1] * 2
    gone_on = beside_each_other(tmp_path, resume=True)
    assert [networks_of(each.agents()) for each in gone_on] == [straight_of_two()] * 2


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("rank", [0, 1])
def test_workers_do_not_begin_anew_because_one_has_nothing(rank: int, tmp_path: Path) -> None:
    """What the other has learned would be written over."""
    beside_each_other(tmp_path, stop=5)
    for path in (tmp_path / FILES[rank], tmp_path / f"checkpoint-{rank}-before.safetensors"):
        path.unlink()
    others = {path: path.read_bytes() for path in tmp_path.glob("checkpoint*")}
    with pytest.raises(UsageError, match=r"worker \d has (none|checkpoints of rounds 2, 4)"):
        beside_each_other(tmp_path, resume=True)
    assert {path: path.read_bytes() for path in tmp_path.glob("checkpoint*")} == others


def test_workers_begin_where_nobody_has_anything(tmp_path: Path) -> None:
    learners = beside_each_other(tmp_path, resume=True)
    assert [learner.rounds for learner in learners] == [7, 7]


SCRIPT = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
import torch
from hpcsimkit.agents.cush import trainer
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.training import trainer as life_cycle
from hpcsimkit.agents.training.workers import joined_workers
from hpcsimkit.errors import HpcsimkitError

life_cycle.SECONDS_BETWEEN_CHECKPOINTS = 0.0
folder, dies_in = Path(sys.argv[1]), int(sys.argv[2])
try:
    with joined_workers() as workers:
        layer = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(layer.weight, 3.0 * workers.rank)
        torch.nn.init.constant_(layer.bias, 1.0)
        workers.average(layer)
        said = {
            "count": workers.count, "total": workers.total(np.array([1.0 + workers.rank, 0.25])).tolist(),
            "least": workers.least(5 - workers.rank), "weight": layer.weight.tolist(), "bias": layer.bias.tolist(),
        }
        (folder.parent / f"said-{workers.rank}.json").write_text(json.dumps(said))

        def tell(report):
            if workers.rank == 1 and report.steps == dies_in:
                os.kill(os.getpid(), signal.SIGKILL)

        problem = CushProblem(**json.loads(sys.argv[3]))
        settings = trainer.CushSettings(**json.loads(sys.argv[4]))
        learner = trainer.CushTrainer(problem, settings, seed=3, workers=workers)
        learner.train(folder, resume=True, tell=tell)
        for seat, agent in learner.agents().items():
            agent.save(folder.parent / f"{seat}-{workers.rank}.hpcsim")
except HpcsimkitError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun has no gloo over its sockets there")
def test_workers_that_torchrun_starts(tmp_path: Path, root: Path) -> None:
    """One of two is killed: the other ends too, not only after ten minutes, and says why. Started again, they come to the same weights."""
    script, folder = tmp_path / "workers.py", tmp_path / "run"
    script.write_text(SCRIPT)

    def start(dies_in: int) -> subprocess.CompletedProcess[str]:
        settings = replace(SHORT, simulations=5)
        parts = [json.dumps(asdict(part)) for part in (TINY, settings)]
        return subprocess.run(
            [
                sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                "--monitor-interval", "2", script, folder, str(dies_in), *parts,
            ],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=500,
        )  # fmt: skip

    killed = start(dies_in=5)
    assert killed.returncode != 0
    assert "worker 0 of 2: another worker has died or cannot be reached (" in killed.stderr
    assert "start all of them again to go on from their checkpoints" in killed.stderr
    for rank in (0, 1):
        assert json.loads((tmp_path / f"said-{rank}.json").read_text()) == {
            "count": 2, "total": [3.0, 0.5], "least": 4, "weight": [[1.5, 1.5]], "bias": [1.0],
        }  # fmt: skip
        assert read_model(folder / FILES[rank])[1]["rounds"] == 4
    again = start(dies_in=0)
    assert again.returncode == 0, again.stderr
    straight, _ = beside_each_other(None)
    for seat, agent in straight.agents().items():
        for rank in (0, 1):
            assert Agent.load(tmp_path / f"{seat}-{rank}.hpcsim").network == agent.network
        assert Agent.load(folder / AGENTS[seat]).network == agent.network
    assert without_rates(Report.of_words(row) for row in read_model(folder / FILES[1])[1]["curve"]) == (
        without_rates(straight.curve)
    )  # fmt: skip
