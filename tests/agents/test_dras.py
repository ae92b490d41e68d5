"""DRAS: what it sees, its networks, what it is paid, and how its four learners move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit import Pipeline, Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.actor_critic import DrasA2C, DrasA2CSettings
from hpcsimkit.agents.dras.network import JobValues, RowFilter, shapes
from hpcsimkit.agents.dras.policy_gradient import DrasPG, DrasPGSettings
from hpcsimkit.agents.dras.ppo import DrasPPO, DrasPPOSettings
from hpcsimkit.agents.dras.q_learning import DrasDQL, DrasDQLSettings
from hpcsimkit.agents.dras.settings import STEADY, decima_environment, dras_environment
from hpcsimkit.agents.dras.torch_network import JobValuesNetwork, RowFilterNetwork
from hpcsimkit.agents.dras.trainer import SNAPSHOTS, DrasTrainer, Steps
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.spaces.long_waits import MinusLongWaits
from hpcsimkit.agents.spaces.rewards import Capability
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.policies import SJF
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.workloads import default_workload

LEARNERS = {
    "dras-pg": (DrasPG, DrasPGSettings), "dras-a2c": (DrasA2C, DrasA2CSettings),
    "dras-ppo": (DrasPPO, DrasPPOSettings), "dras-dql": (DrasDQL, DrasDQLSettings),
}  # fmt: skip
TINY: dict[str, Any] = {"hidden": (6, 5), "gamma": 0.9}


class Largest(Answering):
    """Chooses the largest job that is offered."""

    def answer(self, decision: Decision) -> int:
        sizes = [job.nodes for job in decision.options]
        return sizes.index(max(sizes))


# --- networks ----------------------------------------------------------------------------------------------


def test_parameters_are_those_of_table_3(shared: Path) -> None:
    table = json.loads((shared / "refs" / "dras_cases.json").read_text())["table3"]
    assert len(table) == 8
    agreeing = 0
    for case in table:
        sizes = shapes(case["rows"], (case["fc1"], case["fc2"]), case["out"])
        found = sum(int(np.prod(shape)) for shape in sizes.values())
        assert found == case["formula"]
        assert (found == case["paper"]) == case["match"]
        agreeing += found == case["paper"]
    assert agreeing == 7, "the eighth is a slip of the paper"


@pytest.mark.parametrize("values", [False, True])
def test_numpy_and_torch_agree(values: bool) -> None:
    torch.manual_seed(1)
    learning = RowFilterNetwork(14, (7, 5), actions=3, values=values)
    acting = learning.network()
    seen = np.random.default_rng(1).normal(size=(4, 14, 2)).astype(np.float32)
    expected = learning.outputs(torch.from_numpy(seen)).detach().numpy()
    np.testing.assert_allclose(acting.many(seen), expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(acting.scores(seen[2]), expected[2], rtol=2e-5, atol=1e-6)
    assert acting.parameters == sum(weights.numel() for weights in learning.parameters())


def test_numpy_and_torch_agree_on_the_values_of_jobs() -> None:
    torch.manual_seed(2)
    learning = JobValuesNetwork(2 + 8, (7, 5))
    acting = learning.network()
    seen = np.random.default_rng(1).normal(size=(4, 2 * 3 + 8, 2)).astype(np.float32)
    expected = learning.outputs(torch.from_numpy(seen)).detach().numpy()
    assert expected.shape == (4, 3)
    np.testing.assert_allclose(acting.many(seen), expected, rtol=2e-5, atol=1e-6)
    chosen = np.array([2, 0])
    np.testing.assert_allclose(acting.scores_of(seen[1], chosen), expected[1, chosen], rtol=2e-5, atol=1e-6)
    for slot in range(3):  # a job's value is what the five layers say of it alone
        alone = np.concatenate([seen[:, 2 * slot : 2 * slot + 2], seen[:, 6:]], axis=1)
        same = RowFilter(acting.tensors).many(alone)[:, 0]
        np.testing.assert_allclose(expected[:, slot], same, rtol=2e-5, atol=1e-6)


def test_the_network_that_acts_while_learning_has_the_same_weights() -> None:
    learning = RowFilterNetwork(10, (4, 3), actions=2)
    shared = learning.shared()
    seen = np.ones((10, 2), dtype=np.float32)
    before = shared.scores(seen)
    with torch.no_grad():
        for weights in learning.parameters():
            weights += 0.25
    assert not np.allclose(before, shared.scores(seen))
    np.testing.assert_allclose(shared.scores(seen), learning.network().scores(seen))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias.2": None}, "needs filter.weight"),
        ({"weight.1": np.zeros((2, 9))}, r"weight.1 of a network of rows has the wrong shape \(2, 9\)"),
        ({"weight.0": np.full((2, 3), np.nan)}, "weight.0 holds what is no finite number"),
    ],
)
def test_tensors_that_make_no_network(change: dict[str, Any], words: str) -> None:
    tensors = {name: np.ones(shape) for name, shape in shapes(3, (2, 2), 1).items()} | change
    with pytest.raises(UsageError, match=words):
        RowFilter({name: values for name, values in tensors.items() if values is not None})


# --- rewards -----------------------------------------------------------------------------------------------


def test_a_reservation_is_paid_once_and_the_start_that_follows_is_not() -> None:
    # 4 nodes. Job 1 (2 nodes) at 0. Job 2 (4 nodes) comes at 10, is reserved at once, starts at 100.
    # Job 3 (2 nodes, 40 s) comes at 20 and is backfilled: job 2 has waited 10 s, it has not.
    columns = {"submit_time": [0, 10, 20], "run_time": [100, 50, 40], "nodes": [2, 4, 2]}
    paid: list[float] = []

    class Noted(Capability):
        def take(self, system: Any) -> float:
            paid.append(super().take(system))
            return paid[-1]

    reward = Noted(reserved=True)
    simulation = Simulation(Workload(columns, machine_size=4), TwoLevel(Largest()), observers=[reward])
    simulation.run()
    total = reward.take(simulation.system)
    # age of the first is 0 / 1 (nobody waits), size 2/4, use 2/4; the reservation: 0, 4/4, 2/4; backfilled:
    # 0, 2/4, 4/4; and nothing at 100 s.
    assert total == pytest.approx((0 + 1 / 2 + 1 / 2 + 0 + 1 + 1 / 2 + 0 + 1 / 2 + 1) / 3)


def test_only_starts_are_paid_otherwise() -> None:
    columns = {"submit_time": [0, 10, 20], "run_time": [100, 50, 40], "nodes": [2, 4, 2]}
    reward = Capability()
    simulation = Simulation(Workload(columns, machine_size=4), TwoLevel(Largest()), observers=[reward])
    simulation.run()
    # as above, but job 2 is paid at 100 s: age 90 / 90, size 4/4, use 4/4
    expected = (1 / 2 + 1 / 2 + 1 / 2 + 1 + 1 + 1 + 1) / 3
    assert reward.take(simulation.system) == pytest.approx(expected)


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_long_waits_add_up_however_often_they_are_asked_for(power: float) -> None:
    log = default_workload(np.random.default_rng(4), jobs=120)
    log = log.scale_load(3.0)
    asked: list[float] = []

    class Asking(MinusLongWaits):
        def on_pass(self, seconds: float, system: Any) -> None:
            if system.passes % 7 == 0:
                asked.append(self.take(system))

    reward = Asking(power, scale=3600.0)
    simulation = Simulation(log, Pipeline(), observers=[reward])
    waits = simulation.run().wait_time
    total = sum(asked) + reward.take(simulation.system)
    assert len(asked) > 10
    assert waits.max() > 0
    assert total == pytest.approx(-float(((waits / 3600) ** power).mean()))


# --- learners ----------------------------------------------------------------------------------------------


def environment(jobs: int = 40, window: int = 4) -> SchedulingEnv:
    rng = np.random.default_rng(5)
    sets = [
        Workload(
            {
                "submit_time": np.sort(rng.integers(0, 600, jobs)), "run_time": rng.integers(1, 90, jobs),
                "requested_time": np.full(jobs, 90), "nodes": rng.integers(1, 7, jobs),
            },
            machine_size=8,
        )
        for _ in range(3)
    ]  # fmt: skip
    return dras_environment(InTurn(sets), 8, 100, window=window)


def trainer(name: str, env: SchedulingEnv | None = None, **settings: Any) -> DrasTrainer:
    kind, of_kind = LEARNERS[name]
    return kind(env or environment(), of_kind(**{**TINY, "total_timesteps": 120, **settings}), seed=3)


def some_steps(window: int = 4, rows: int = 16) -> Steps:
    rng = np.random.default_rng(6)
    valid = torch.tensor([[True, True, True, False], [True, True, False, False], [True, True, True, True]])
    following_valid = torch.tensor([[True, True, False, False], [True] * 4, [False] * 4])
    seen = torch.from_numpy(rng.normal(size=(4, rows, 2)).astype(np.float32))
    return Steps(
        seen[:3], valid, torch.tensor([2, 0, 3]), torch.tensor([0.5, 0.25, 1.0]), seen[1:], following_valid
    )


def loss_of(learner: DrasTrainer, steps: Steps) -> float:
    """The loss as the paper has it, reckoned in float64 and apart from what learns."""
    outputs = {
        name: learner.networks.double().outputs(getattr(steps, name).double()).detach().numpy()
        for name in ("observations", "following")
    }
    settings: Any = learner.settings
    rewards, gamma = steps.rewards.double().numpy(), settings.gamma
    returns = np.array(
        [sum(gamma ** (later - k) * rewards[later] for later in range(k, 3)) for k in range(3)]
    )
    taken, rows = steps.actions.numpy(), np.arange(3)
    if isinstance(learner, DrasDQL):
        values = outputs["observations"][rows, taken]
        fixed = learner.fixed  # type: ignore[attr-defined]
        return 0.5 * float(((values - fixed) ** 2).sum())
    scores = np.where(steps.valid.numpy(), outputs["observations"][:, :4], -np.inf)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    chosen = logs[rows, taken]
    if isinstance(learner, DrasA2C):
        values = outputs["observations"][:, 4]
        entropy = -np.where(np.isfinite(logs), np.exp(logs) * np.where(np.isfinite(logs), logs, 0), 0).sum()
        advantages = returns - learner.fixed  # type: ignore[attr-defined]
        gain = (chosen * advantages).sum()
        if isinstance(learner, DrasPPO):
            ratio = np.exp(chosen - learner.before)  # type: ignore[attr-defined]
            gain = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages).sum()
        return float(-gain + settings.vf_coef * ((values - returns) ** 2).sum() - settings.ent_coef * entropy)
    return float(-(chosen * returns).sum())  # no past updates: the baseline is 0


@pytest.mark.parametrize("name", LEARNERS)
def test_gradients_are_those_of_the_published_losses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published: dict[str, dict[str, Any]] = {
        "dras-a2c": {"scaled": False}, "dras-ppo": {"scaled": False, "n_epochs": 1},
    }  # fmt: skip
    learner = trainer(name, **published.get(name, {}))
    learner.train()
    if name == "dras-pg":
        learner.past = type(learner.past)()  # type: ignore[attr-defined]
    steps = some_steps()
    weights = learner.vector_of_weights
    with torch.no_grad():
        weights += 0.3 * torch.from_numpy(
            np.random.default_rng(7).normal(size=len(weights)).astype(np.float32)
        )
    found: list[torch.Tensor] = []
    monkeypatch.setattr(learner.optimiser, "step", lambda: found.append(weights.grad.clone()))  # type: ignore[union-attr]
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *given: None)
    with torch.no_grad():
        outputs, following = (
            learner.networks.outputs(getattr(steps, part)) for part in ("observations", "following")
        )
    if name == "dras-dql":  # r + gamma max Q of what may be done next; nothing comes after the last
        best = [float(following[0, :2].max()), float(following[1].max()), 0.0]
        learner.fixed = steps.rewards.numpy() + 0.9 * np.array(best)  # type: ignore[attr-defined]
    elif name != "dras-pg":
        learner.fixed = outputs[:, -1].double().numpy()  # type: ignore[attr-defined]
        scores = outputs[:, :4].double().masked_fill(~steps.valid, -torch.inf)
        learner.before = scores.log_softmax(1).numpy()[np.arange(3), steps.actions.numpy()]  # type: ignore[attr-defined]
    learner.learn(steps)
    kept, step = weights.detach().double().clone(), 1e-5
    chosen = np.random.default_rng(8).choice(len(kept), 40, replace=False)
    learner.networks.double()
    parameters = list(learner.networks.parameters())

    def at(place: int, move: float) -> float:
        vector = kept.clone()
        vector[place] += move
        torch.nn.utils.vector_to_parameters(vector, parameters)
        return loss_of(learner, steps)

    slopes = [(at(place, step) - at(place, -step)) / (2 * step) for place in chosen.tolist()]
    assert np.abs(slopes).max() > 1e-2
    np.testing.assert_allclose(found[0].numpy()[chosen], slopes, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", ["dras-a2c", "dras-ppo"])
def test_scaled_returns_and_losses_by_hand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns are standardised by all so far, a decision without a choice is left out, and losses are means."""
    learner: Any = trainer(name, gamma=0.5, ent_coef=0.0, **({"n_epochs": 1} if name == "dras-ppo" else {}))
    learner.train()
    learner.past = type(learner.past)()
    learner.past.add([7.0])
    steps = some_steps()
    steps.valid[1] = torch.tensor([True, False, False, False])
    returns = np.array([0.875, 0.75, 1.0])
    every = np.append(returns, 7.0)
    expected = ((returns - every.mean()) / every.std(ddof=1))[[0, 2]]
    kept, found = learner.targets(steps)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    assert kept.actions.tolist() == [2, 3] and len(kept.observations) == len(kept.valid) == 2

    losses: list[float] = []
    monkeypatch.setattr(learner, "descend", lambda loss: losses.append(float(loss)))
    monkeypatch.setattr(learner, "targets", lambda steps: (kept, found))
    with torch.no_grad():
        scores, values = (each.double() for each in learner.scores_and_values(kept.observations))
    logs = scores.masked_fill(~kept.valid, -torch.inf).log_softmax(1)[[0, 1], [2, 3]].numpy()
    advantages, errors = expected - values.numpy(), ((values.numpy() - expected) ** 2).sum()
    gain = advantages.sum() if name == "dras-ppo" else (logs * advantages).sum()
    learner.learn(steps)
    assert losses == [pytest.approx((-gain + 0.5 * errors) / 2, rel=1e-4)]


def test_without_a_choice_nothing_is_learned() -> None:
    steps = some_steps()
    steps.valid[:, 1:] = False
    learner = trainer("dras-ppo")
    learner.begin()
    before = learner.network()
    assert learner.learn(steps) == {}
    assert learner.network() == before


def test_scaled_advantages_and_losses_of_the_policy_gradient_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advantages are divided by their deviation so far, a decision without a choice is left out; a mean loss."""
    learner: Any = trainer("dras-pg", gamma=0.5, scaled=True, ent_coef=0.1)
    learner.begin()
    learner.past.add([0.25])
    learner.scale.add([1.0])
    steps = some_steps()
    steps.valid[1] = torch.tensor([True, False, False, False])
    above = np.array([0.875 - 0.25, 0.75, 1.0])  # of later decisions nothing is known: their baseline is 0
    scaled = (above / np.append(above, 1.0).std(ddof=1))[[0, 2]]
    losses: list[float] = []
    monkeypatch.setattr(learner, "descend", lambda loss: losses.append(loss.item()))
    with torch.no_grad():
        scores = learner.networks.outputs(steps.observations).double()[[0, 2]]
    logs = scores.masked_fill(~steps.valid[[0, 2]], -torch.inf).log_softmax(1).numpy()
    entropies = [-(np.exp(row) * row).sum() for row in (each[np.isfinite(each)] for each in logs)]
    learner.learn(steps)
    expected = -(logs[[0, 1], [2, 3]] * scaled).sum() - 0.1 * sum(entropies)
    assert losses == [pytest.approx(expected / 2, rel=1e-4)]
    steps.valid[:, 1:] = False
    assert learner.learn(steps) == {} and len(losses) == 1


def test_a_second_network_evaluates_what_the_first_one_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    learner: Any = trainer("dras-dql", target_every=2)
    learner.begin()
    steps, rng = some_steps(), np.random.default_rng(1)
    with torch.no_grad():
        learner.vector_of_weights += torch.from_numpy(
            rng.normal(size=len(learner.vector_of_weights)).astype(np.float32)
        )
        values = learner.networks.outputs(steps.observations)[[0, 1, 2], steps.actions].numpy()
        first, second = (each.outputs(steps.following).numpy() for each in (learner.networks, learner.target))
    best = [int(first[0, :2].argmax()), int(first[1].argmax())]
    assert any(second[row].argmax() != action for row, action in enumerate(best)), "the two disagree"
    later = np.array([second[0, best[0]], second[1, best[1]], 0.0])
    targets = steps.rewards.numpy() + 0.9 * later
    assert float(learner.loss(steps)) == pytest.approx(0.5 * ((values - targets) ** 2).sum(), rel=1e-4)

    def same() -> bool:
        return torch.equal(*(each.outputs(steps.following) for each in (learner.networks, learner.target)))

    copied = []
    for _ in range(4):
        learner.learn(steps)
        copied.append(same())
    assert copied == [False, True, False, True]
    learner.begin(trainer("dras-dql", target_every=2).train())
    assert same(), "what goes on learning begins with two equal networks"


def test_values_are_learned_from_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    learner: Any = trainer("dras-dql", memory=5, batch_size=40)
    learner.begin()
    drawn: list[Steps] = []
    loss = learner.loss
    monkeypatch.setattr(learner, "loss", lambda steps: drawn.append(steps) or loss(steps))
    first = some_steps()
    learner.learn(first)
    learner.learn(first._replace(rewards=torch.tensor([7.0, 8.0, 9.0])))
    assert [len(each.actions) for each in drawn] == [40, 40]
    assert set(drawn[0].rewards.tolist()) == {0.5, 0.25, 1.0}
    assert set(drawn[1].rewards.tolist()) == {0.25, 1.0, 7.0, 8.0, 9.0}, "the oldest is replaced"
    for place, reward in enumerate((0.25, 1.0), start=1):
        row = drawn[1].rewards.tolist().index(reward)
        assert drawn[1].actions[row] == first.actions[place]
        for name in ("observations", "valid", "following", "following_valid"):
            assert torch.equal(getattr(drawn[1], name)[row], getattr(first, name)[place]), name


STOPPED = [*((name, {}) for name in LEARNERS), *((name, STEADY[name]) for name in ("dras-dql", "dras-pg"))]


@pytest.mark.parametrize(("name", "settings"), STOPPED)
def test_a_stopped_training_goes_on_bit_for_bit(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    settings = {**settings, **({"target_every": 3} if "target_every" in settings else {})}
    whole = trainer(name, **settings).train()
    stopped = trainer(name, **settings)

    def interrupt(report: Any) -> None:
        if report.steps >= 80:
            stopped._write(tmp_path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.train(tmp_path, tell=interrupt)
    resumed = trainer(name, **settings)
    assert resumed.train(tmp_path, resume=True).network == whole.network
    snapshots = sorted(path.name for path in (tmp_path / SNAPSHOTS).iterdir())
    assert snapshots == ["episode-001.hpcsim", "episode-002.hpcsim", "episode-003.hpcsim"]
    assert Agent.load(tmp_path / SNAPSHOTS / snapshots[-1]).network == whole.network


@pytest.mark.parametrize("name", LEARNERS)
def test_a_job_is_chosen_once_and_updates_come_every_ten_instances(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, seen = trainer(name, total_timesteps=40), list[int]()
    learn = learner.learn

    def noted(steps: Steps) -> dict[str, float]:
        seen.append(len(steps.actions))
        return learn(steps)

    monkeypatch.setattr(learner, "learn", noted)
    learner.train()
    assert sum(seen) == learner.steps == 40
    assert all(count >= 10 for count in seen[:-1]), "ten instances, each with a choice or more"


SPEEDY: dict[str, dict[str, Any]] = {
    "dras-pg": {"learning_rate": 1e-2}, "dras-a2c": {"learning_rate": 3e-3, "ent_coef": 0.1},
    "dras-ppo": {"learning_rate": 1e-3}, "dras-dql": {"learning_rate": 1e-2},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_the_short_job_first_is_learned(name: str) -> None:
    """Behind a running job two wait for all nodes, a short and a long one, in this order or the other."""
    times, submit = [], []
    for day, short_first in enumerate(np.random.default_rng(9).random(30) < 0.5):
        times += [20, 5, 95] if short_first else [20, 95, 5]
        submit += [day * 1000, day * 1000 + 5, day * 1000 + 5]
    log = Workload({"submit_time": submit, "run_time": times, "nodes": np.full(90, 2)}, machine_size=2)
    one = dras_environment(InTurn([log]), 2, 100, window=3)
    env = SchedulingEnv(
        one.episodes, one.policy, one.encoder, one.mask, MinusLongWaits(1.0, scale=1.0), stage=one.stage,
        skip=False,
    )  # fmt: skip
    agent = trainer(name, env, total_timesteps=90 * 100, hidden=(32, 16), gamma=0.5, **SPEEDY[name]).train()
    waits = Simulation(log, TwoLevel(agent, 3)).run().wait_time
    best = Simulation(log, Pipeline(order=SJF())).run().wait_time
    assert best.mean() < Simulation(log, Pipeline()).run().wait_time.mean()
    assert waits.mean() == best.mean()


def test_decima_chooses_among_what_fits_and_reserves_nothing() -> None:
    columns = {"submit_time": [0, 1, 1], "run_time": [100, 10, 10], "nodes": [2, 4, 2]}
    log = Workload(columns, machine_size=4)
    env = decima_environment(InTurn([log]), 4, 100, window=3)
    env.reset(seed=0)
    offered = []
    over = False
    while not over:
        assert env.episode is not None
        assert env.episode.decision is not None
        offered.append([job.id for job in env.episode.decision.options])
        over = env.step(0)[2]
    assert offered == [[1], [3], [2]]


def test_an_agent_goes_on_learning_from_what_it_knows() -> None:
    first = trainer("dras-ppo")
    agent = first.train()
    second = trainer("dras-ppo", learning_rate=0.0)
    second.begin(agent)
    episode, told = second.play(second.env.episodes.number(0, second.rng), 1000)
    assert len(told) == 1, "one update in so few instances"
    assert episode.decision is None
    assert second.network() == agent.network, "with a rate of 0 nothing moves"


def test_the_learning_rate_falls_to_zero_over_a_training() -> None:
    """Job sets of 40 decisions: the rate of each is that of the share of 100 decisions that is left."""
    rates = []

    class Watched(DrasPG):
        def learn(self, steps: Steps) -> dict[str, float]:
            rates.append(self.optimiser.param_groups[0]["lr"])
            return super().learn(steps)

    settings = DrasPGSettings(
        total_timesteps=100, hidden=(8, 4), learning_rate=0.5, annealed=True, instances=1000
    )
    Watched(environment(), settings, seed=1).train()
    assert rates == pytest.approx([0.5, 0.5 * 0.6, 0.5 * 0.2])


def test_layers_are_in_proportion_to_the_nodes() -> None:
    learner = trainer("dras-pg", hidden=())
    learner.begin()
    assert [tuple(weight.shape) for weight in learner.networks.weight] == [(100, 16), (25, 100), (4, 25)]


def test_who_goes_on_learning_values_explores_little() -> None:
    learner = trainer("dras-dql")
    agent = learner.train()
    learner.begin()
    assert learner.exploration == 1.0  # type: ignore[attr-defined]
    learner.begin(agent)
    assert learner.exploration == 0.01  # type: ignore[attr-defined]
    assert learner.network() == agent.network


def test_clear_words_for_what_makes_no_sense() -> None:
    with pytest.raises(UsageError, match=r"dras-pg: instances needs a whole number of at least 1, found 0"):
        trainer("dras-pg", instances=0).train()
    with pytest.raises(UsageError, match=r"dras-pg: two hidden layers are needed, found \(8,\)"):
        trainer("dras-pg", hidden=(8,)).train()
    with pytest.raises(UsageError, match=r"dras-pg: episodes needs a whole number from 1 to 1, found 2"):
        trainer("dras-pg", episodes=2).train()
    with pytest.raises(UsageError, match=r"dras-ppo: n_epochs needs a whole number of at least 1, found 0"):
        trainer("dras-ppo", n_epochs=0).train()
    with pytest.raises(UsageError, match=r"dras-dql: gamma needs a number from 0 to 1, found 1\.5"):
        trainer("dras-dql", gamma=1.5).train()
    with pytest.raises(UsageError, match=r"dras-ppo needs a network like RowFilter.* found JobValues"):
        trainer("dras-ppo").begin(trainer("dras-dql").train())
    from hpcsimkit.agents.spaces.encoders import QueueWindow

    env = environment()
    other = SchedulingEnv(env.episodes, env.policy, QueueWindow(4), env.mask, env.reward, stage=env.stage)
    with pytest.raises(UsageError, match="two rows of two numbers for each of 4 jobs are needed"):
        trainer("dras-dql", other).train()
    wrong = dras_environment(env.episodes, 9, 100, window=4)
    with pytest.raises(
        UsageError, match=r"JobsAndNodes\(.*nodes=9.* needs 9 homogeneous nodes, found Nodes\(count=8\)"
    ):
        wrong.reset(seed=0)


def test_model_files_know_these_networks(tmp_path: Path) -> None:
    for name in ("dras-ppo", "dras-dql"):
        agent = trainer(name, total_timesteps=40).train()
        agent.save(tmp_path / "agent.hpcsim")
        again = Agent.load(tmp_path / "agent.hpcsim")
        assert again.network == agent.network
        assert isinstance(again.network, JobValues if name == "dras-dql" else RowFilter)
        env = environment()
        scenario = env.episodes.number(0, np.random.default_rng(0))
        starts = [
            Simulation(scenario.workload, TwoLevel(each, 4)).run().start_time.tolist()
            for each in (agent, again)
        ]
        assert starts[0] == starts[1]
