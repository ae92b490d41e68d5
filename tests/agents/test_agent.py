"""Agents as stages, and their files: what is written is read back, anything else is one clear error."""

from __future__ import annotations

import copy
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.model_file import read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores
from hpcsimkit.agents.seats import default_choice, play
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.masks import JobMachine, Slots
from hpcsimkit.envs.interfaces import Mask
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.parts.learner_parts import seated
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.kernel.decision import Answering
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.workloads import burst, default_workload

LOG = default_workload(np.random.default_rng(3), jobs=300)

# Prefers the shortest requested time: column 1 of a row, and any job (column 0) to the row of the machine.
SHORTEST = SlotScores({"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)})


def shortest(**changes: Any) -> Agent:
    return Agent(
        **{"encoder": QueueWindow(8), "mask": Slots(8), "network": SHORTEST, "stage": "order", **changes}
    )


def dense(seed: int = 0, inputs: int = 45, outputs: int = 8) -> Dense:
    rng = np.random.default_rng(seed)
    shapes = {"weight.0": (6, inputs), "bias.0": (6,), "weight.1": (outputs, 6), "bias.1": (outputs,)}
    return Dense({name: rng.normal(size=shape) for name, shape in shapes.items()})


# --- acting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backfilling", ["", "+easy"])
def test_an_agent_that_prefers_the_shortest_gives_the_schedule_of_sjf(backfilling: str) -> None:
    heuristic = make(f"sjf{backfilling}+window(8)")
    learned = make(f"fcfs{backfilling}+window(8)")
    learned.order = shortest(base=SJF())  # which keeps the queue, and with it the order of backfilling
    expected = Simulation(LOG, heuristic).run()
    assert Simulation(LOG, learned).run().hash == expected.hash
    assert Simulation(LOG, learned).run().choices == ()


def test_an_agent_inside_chooses_what_it_chooses_from_outside() -> None:
    agent = Agent(QueueWindow(8), Slots(8), dense(), "order")
    inside = Simulation(LOG, Pipeline(order=agent, window=8)).run()
    outside = Simulation(LOG, Pipeline(order=External(), window=8))
    watched = copy.deepcopy(agent)
    outside.next_decision()
    watched.reset(outside.system)
    result = play(outside, lambda decision: decision.options[watched.answer(decision)])
    assert result.hash == inside.hash


def test_sampling_follows_the_scores_and_the_seed() -> None:
    agent = Agent(QueueWindow(8), Slots(8), dense(), "order", sample=True)
    hashes = [Simulation(LOG, Pipeline(order=agent, window=8), seed=seed).run().hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_sampled_actions_have_the_probabilities_of_the_softmax() -> None:
    agent = shortest(
        sample=True, network=SlotScores({"weight.0": np.array([[0, -1e5, 0, 0, 0]]), "bias.0": np.zeros(1)})
    )
    simulation = Simulation(LOG, Pipeline(order=External(), window=2))
    while len((decision := simulation.next_decision()).options) == 1:  # type: ignore[union-attr]
        simulation.answer_position(0)
    agent.reset(simulation.system)
    times = np.array([job.requested_time for job in decision.options]) / 86_400  # type: ignore[union-attr]
    agent.network = SlotScores(
        {"weight.0": np.array([[0, 1 / np.ptp(times), 0, 0, 0]]), "bias.0": np.zeros(1)}
    )
    drawn = np.bincount([agent.answer(decision) for _ in range(4000)], minlength=2) / 4000  # type: ignore[arg-type]
    scores = np.exp(times / np.ptp(times))
    assert drawn == pytest.approx(scores / scores.sum(), abs=0.03)


def test_copies_share_the_weights() -> None:
    agent = shortest()
    assert copy.deepcopy(Pipeline(order=agent)).order.network is agent.network  # type: ignore[union-attr]


def test_a_network_of_the_wrong_size() -> None:
    agent = Agent(QueueWindow(8), Slots(8), dense(outputs=4), "order")
    with pytest.raises(
        UsageError, match=r"Dense\(45-6-4 tanh, \w+\) scores 4 actions; Slots\(slots=8\) has 8"
    ):
        Simulation(LOG, Pipeline(order=agent, window=8)).run()


def test_an_answer_that_is_none() -> None:
    class Wild(Answering):
        def answer(self, decision: Any) -> int:
            return 99

    with pytest.raises(UsageError, match=r"Wild answers 99 to Decision\('order', t=\d+ s, \d+ options\)"):
        Simulation(LOG, Pipeline(order=Wild(), window=8)).run()


# --- networks ----------------------------------------------------------------------------------------------


def test_layers_by_hand() -> None:
    tensors = {
        "weight.0": np.array([[1, 2], [0, -1]]), "bias.0": np.array([0.5, 0]),
        "weight.1": np.array([[1, 1]]), "bias.1": np.array([-1]),
    }  # fmt: skip
    hidden = np.array([1 * 3 + 2 * 4 + 0.5, -4.0])
    inputs = np.array([3, 4], dtype=np.float32)
    assert Dense(tensors, "relu").scores(inputs) == pytest.approx([11.5 - 1])
    assert Dense(tensors).scores(inputs) == pytest.approx([np.tanh(hidden).sum() - 1])
    rows = np.array([[3, 4], [0, 0]], dtype=np.float32)
    assert SlotScores(tensors, "relu").scores(rows) == pytest.approx([10.5, -0.5])
    assert Dense(tensors).parameters == 9


def test_the_same_as_torch() -> None:
    import torch

    layers = torch.nn.Sequential(torch.nn.Linear(45, 6), torch.nn.Tanh(), torch.nn.Linear(6, 8))
    tensors = {
        f"{'weight' if 'weight' in name else 'bias'}.{int(name[0]) // 2}": values.detach().numpy()
        for name, values in layers.named_parameters()
    }
    inputs = np.random.default_rng(0).normal(size=45).astype(np.float32)
    assert Dense(tensors).scores(inputs) == pytest.approx(
        layers(torch.tensor(inputs)).detach().numpy(), abs=1e-5
    )


@pytest.mark.parametrize(
    ("tensors", "activation", "message"),
    [
        ({}, "tanh", "a network needs tensors weight.0, bias.0, ..., found none"),
        ({"weight.0": [[1]]}, "tanh", "a network needs tensors weight.0, bias.0, ..., found weight.0"),
        (
            {"weight.0": [[1]], "bias.0": [1, 2]},
            "tanh",
            r"layer 0 needs 1 inputs, found shapes \(1, 1\) and \(2,\)",
        ),
        ({"weight.0": [[np.nan]], "bias.0": [1]}, "tanh", "layer 0 holds what is no finite number"),
        ({"weight.0": [[1]], "bias.0": [1]}, "gelu", "activation needs one of relu, tanh, found 'gelu'"),
    ],
)
def test_networks_that_are_none(tensors: dict[str, Any], activation: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Dense({name: np.array(values) for name, values in tensors.items()}, activation)


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent",
    [
        shortest(about={"seed": 3, "data": "lublin", "mean wait": 1.5}),
        Agent(
            QueueWindow(8, time_scale=60.0),
            Slots(8, decline=True),
            dense(outputs=9),
            "backfiller",
            sample=True,
        ),
        Agent(RequestsAndMachines(5, 3), JobMachine(5, 3), dense(inputs=29, outputs=15), "dispatch"),
    ],
)
def test_what_is_saved_is_loaded(agent: Agent, tmp_path: Path) -> None:
    agent.save(tmp_path / "agent.hpcsim")
    loaded = Agent.load(tmp_path / "agent.hpcsim")
    assert loaded == agent
    assert loaded.network == agent.network
    assert (loaded.stage, loaded.decline) == (agent.stage, agent.decline)
    again = tmp_path / "again.hpcsim"
    loaded.save(again)
    assert again.read_bytes() == (tmp_path / "agent.hpcsim").read_bytes()


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    shortest().save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(UsageError, match=r"found something else or damaged|the file is damaged"):
            Agent.load(path)
    for length in (0, 7, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match="found something else or damaged"):
            Agent.load(path)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"none.hpcsim"):
        Agent.load(tmp_path / "none.hpcsim")
    text = tmp_path / "text.hpcsim"
    text.write_text("hello")
    with pytest.raises(
        UsageError, match=r"text.hpcsim: a model of hpcsimkit is needed, found something else"
    ):
        Agent.load(text)


def rewritten(path: Path, change: Any) -> Path:
    """Change what a file says of itself, and hash it as if that were right."""
    tensors, about = read_model(path)
    change(about)
    about.pop("format", None) if about.get("format") == "hpcsimkit model 1" else None
    write_model(path, tensors, about)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda about: about.update(format="hpcsimkit model 9"),
            "'hpcsimkit model 1' is needed, found 'hpcsimkit model 9'",
        ),
        (lambda about: about.pop("mask"), "the model lacks or misuses 'mask'"),
        (
            lambda about: about["encoder"].update(name="os:system"),
            "made for os:system, which is not the kit's own",
        ),
        (
            lambda about: about["encoder"]["parameters"].update(rows=3),
            "QueueWindow: got an unexpected keyword",
        ),
        (
            lambda about: about["network"].update(kind="magic"),
            "a network of a known kind is needed .*found 'magic'",
        ),
    ],
)
def test_files_that_say_something_else(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    shortest().save(path)
    with pytest.raises(UsageError, match=message):
        Agent.load(rewritten(path, change))


class Mine(QueueWindow):
    """An encoder of a user's own."""


class Banded(QueueWindow):
    """One with a tuple for a parameter, which JSON gives back as a list."""

    def __init__(self, slots: int, bands: tuple[int, ...] = (1, 2)) -> None:
        super().__init__(slots)
        self.bands = bands


class NoSlots(Mask):
    """A mask without an attribute `slots`: action i is option i."""

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def actions(self) -> int:
        return self.count

    def write(self, decision: Any, out: Any) -> None:
        out[: len(decision.options)] = True


def test_an_encoder_of_ones_own_is_handed_in(tmp_path: Path) -> None:
    agent = shortest(encoder=Mine(8))
    agent.save(tmp_path / "mine.hpcsim")
    with pytest.raises(
        UsageError, match=r"made for .*:Mine, which is not the kit's own: hand it to Agent.load, or say where"
    ):
        Agent.load(tmp_path / "mine.hpcsim")
    assert Agent.load(tmp_path / "mine.hpcsim", encoder=Mine(8)) == agent
    with pytest.raises(UsageError, match=r"made for .*:Mine.*'slots': 8.*given Mine\(slots=9\)"):
        Agent.load(tmp_path / "mine.hpcsim", encoder=Mine(9))


def test_own_parts_are_made_from_where_the_user_says(tmp_path: Path) -> None:
    agent = shortest(encoder=Mine(8, time_scale=60.0), mask=NoSlots(8))
    agent.save(tmp_path / "mine.hpcsim")
    parts = sys.modules[__name__]
    assert Agent.load(tmp_path / "mine.hpcsim", parts=parts) == agent
    with pytest.raises(UsageError, match=r"mine.hpcsim: made for .*:Mine; math has no Encoder 'Mine'"):
        Agent.load(tmp_path / "mine.hpcsim", parts=math)
    swapped = SimpleNamespace(Mine=NoSlots, NoSlots=NoSlots)
    with pytest.raises(UsageError, match="has no Encoder 'Mine'"):
        Agent.load(tmp_path / "mine.hpcsim", parts=swapped)


def test_a_model_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shortest(encoder=Mine(8)).save(tmp_path / "mine.hpcsim")
    Path("trap.py").write_text(
        "open('executed', 'w')\nfrom hpcsimkit.agents.spaces.encoders import QueueWindow as Mine\n"
    )
    rewritten(tmp_path / "mine.hpcsim", lambda about: about["encoder"].update(name="trap:Mine"))
    for load in (Agent.load, lambda path: make(f"agent:{path}+easy")):
        with pytest.raises(UsageError, match="made for trap:Mine, which is not the kit's own"):
            load("mine.hpcsim")
    assert not Path("executed").exists()
    assert isinstance(make("agent:mine.hpcsim(parts=trap)+easy").order, Agent)  # type: ignore[attr-defined]
    assert Path("executed").exists()


def test_parts_from_a_file_are_named_as_from_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deep").mkdir()
    Path("deep/seeing.py").write_text(
        "from hpcsimkit.agents.spaces.encoders import QueueWindow\nclass Seen(QueueWindow): pass\n"
    )
    seen = CALLER.imported("deep/seeing.py:Seen")
    agent = shortest(encoder=seen(8))
    agent.save("a.hpcsim")
    assert read_model("a.hpcsim")[1]["encoder"]["name"] == "seeing:Seen"
    Path("deep").rename("elsewhere")
    for parts in ("'elsewhere/seeing.py'", "seeing.py", "seeing"):
        policy = make(f"fcfs+easy+agent:a.hpcsim(parts={parts})", folder="elsewhere")
        assert repr(policy.order.encoder) == repr(agent.encoder)  # type: ignore[attr-defined]
    with pytest.raises(
        UsageError, match=r"parameters not understood: \(parts=3\); parameters: sample, parts"
    ):
        make("agent:a.hpcsim(parts=3)")


def test_parameters_that_json_changes_or_cannot_say(tmp_path: Path) -> None:
    agent = shortest(encoder=Banded(8, bands=(3, 4)))
    agent.save(tmp_path / "a.hpcsim")
    assert Agent.load(tmp_path / "a.hpcsim", encoder=Banded(8, bands=(3, 4))) == agent
    for bands in ({1, 2}, np.arange(3), (float("nan"),)):
        with pytest.raises(UsageError, match=r"Banded\(.*\) cannot be written into a model file"):
            shortest(encoder=Banded(8, bands=bands)).save(tmp_path / "b.hpcsim")  # type: ignore[arg-type]


def test_a_mask_without_slots(tmp_path: Path) -> None:
    agent = shortest(mask=NoSlots(8))
    assert agent.slots is None
    assert shortest(mask=NoSlots(8), about={"training": {"slots": 5}}).slots == 5
    assert shortest().slots == 8
    parts = SimpleNamespace(NoSlots=NoSlots)
    agent.save(tmp_path / "a.hpcsim")
    loaded = Agent.load(tmp_path / "a.hpcsim", parts=parts)
    log = burst(8, np.random.default_rng(0), machine_size=8)
    run = Simulation(log, Pipeline(order=loaded, backfiller=EASY()))
    assert (
        run.run().hash == Simulation(log, Pipeline(order=shortest(), backfiller=EASY(), window=8)).run().hash
    )


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    shortest().save(tmp_path / "agent.hpcsim")

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", never)
    monkeypatch.setattr(pickle, "load", never)
    monkeypatch.setattr(pickle, "Unpickler", never)
    Agent.load(tmp_path / "agent.hpcsim")


def test_the_header_is_json_that_others_can_read(tmp_path: Path) -> None:
    shortest(about={"seed": 3}).save(tmp_path / "agent.hpcsim")
    content = (tmp_path / "agent.hpcsim").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["hpcsimkit"][64:])
    assert about["encoder"] == {"name": "QueueWindow", "parameters": {"slots": 8, "time_scale": 86400.0}}
    assert about["about"] == {"seed": 3}


# --- by name -----------------------------------------------------------------------------------------------


def test_agents_by_name(tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    shortest().save(path)
    expected = Simulation(LOG, make("sjf+easy+window(8)")).run().hash
    for name in (f"sjf+agent:{path}+easy", f"agent:{path}+easy+sjf"):
        assert Simulation(LOG, make(name)).run().hash == expected
    policy = make(f"agent:{path}(sample=true)")
    assert policy.order.sample is True  # type: ignore[attr-defined]
    assert make("agent:agent.hpcsim", str(tmp_path)).window == 8  # type: ignore[attr-defined]


def test_slots_of_a_backfiller_do_not_limit_the_order(tmp_path: Path) -> None:
    """With the candidates of the heuristic, the first of which is taken, the schedule is the heuristic's."""
    path = tmp_path / "agent.hpcsim"
    Agent(QueueWindow(2), Slots(2), dense(inputs=15, outputs=2), "backfiller").save(path)
    named = make(f"sjf+easy+agent:{path}")
    opened = seated(make("sjf+easy"), External(), "backfiller", 2)
    assert named.max_candidates == opened.max_candidates == 2  # type: ignore[attr-defined]
    limited = seated(Pipeline(backfiller=EASY(), max_candidates=1), External(), "backfiller", 2)
    assert limited.max_candidates == 1, "the limit of the user"  # type: ignore[attr-defined]
    played = play(Simulation(LOG, opened), default_choice)
    assert played.hash == Simulation(LOG, make("sjf+easy")).run().hash


def test_an_agent_that_dispatches_by_name(tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    Agent(RequestsAndMachines(5, 3), JobMachine(5, 3), dense(inputs=29, outputs=15), "dispatch").save(path)
    policy = make(f"agent:{path}")
    assert policy.slots == 5  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="is a whole policy: it cannot be joined with others"):
        make(f"agent:{path}+easy")


def test_wrong_names_of_agents(tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    shortest().save(path)
    with pytest.raises(WorkloadError, match=r"none\.hpcsim: "):
        make("agent:none.hpcsim")
    with pytest.raises(UsageError, match=r"gives the order twice"):
        make(f"agent:{path}+agent:{path}")
    with pytest.raises(UsageError, match=r"parameters not understood: \(greedy=true\); parameters: sample"):
        make(f"agent:{path}(greedy=true)")


def test_a_network_that_does_not_fit_its_encoder_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "agent.hpcsim"
    Agent(QueueWindow(8), Slots(8), dense(inputs=44), "order").save(path)
    with pytest.raises(
        UsageError, match=r"agent\.hpcsim: Dense.* reads 44 numbers; QueueWindow\(slots=8\) gives 45"
    ):
        Agent.load(path)
