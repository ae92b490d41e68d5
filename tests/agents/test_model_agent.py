"""Models of any kind take decisions at any seat: in runs, comparisons, evaluations, by name, and from a file."""

from __future__ import annotations

import copy
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import hpcsimkit as hk
from hpcsimkit import rl
from hpcsimkit.agents.networks.models import scorer_of
from hpcsimkit.engine.engines import Processes
from hpcsimkit.errors import HpcsimkitError, PolicyError, UsageError
from hpcsimkit.run import main

SLOTS = 8
WORKLOAD = hk.default_workload(np.random.default_rng(1), jobs=80)


class Net(torch.nn.Module):
    """Scores each row of the queue by itself."""

    def __init__(self, hidden: int = 4, *, sign: float = 1.0) -> None:
        super().__init__()
        self.hidden, self.sign = hidden, sign
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(5, hidden), torch.nn.Dropout(), torch.nn.Linear(hidden, 1)
        )
        drawn = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=drawn))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return self.sign * self.layers(seen[:, :-1]).squeeze(-1)


def by_hand(seen: Any) -> Any:
    """The scores of the net, in numpy."""
    one, _, two = Net().layers
    values = [layer.detach().numpy() for layer in (one.weight, one.bias, two.weight, two.bias)]
    return ((seen[:-1] @ values[0].T + values[1]) @ values[2].T + values[3])[:, 0]


def agent_of(model: Any, **options: Any) -> rl.ModelAgent:
    return rl.ModelAgent(model, rl.QueueWindow(SLOTS), **options)


def run(agent: Any) -> hk.Result:
    return hk.Simulation(WORKLOAD, hk.Pipeline(order=agent, backfiller=hk.EASY(), window=SLOTS)).run()


@pytest.mark.parametrize(
    "model",
    [
        Net(),
        by_hand,
        lambda seen, mask: int(np.where(mask, by_hand(seen), -np.inf).argmax()),
        lambda seen: torch.as_tensor(by_hand(seen)),
        type("Holder", (), {"predict": staticmethod(by_hand)})(),
    ],
    ids=["module", "scores", "action", "tensor", "predict"],
)
def test_all_kinds_of_models_choose_the_same(model: Any) -> None:
    assert run(agent_of(model)).hash == run(agent_of(by_hand)).hash


def test_the_best_option_starts() -> None:
    shortest = run(agent_of(lambda seen: -seen[:-1, 1]))
    assert shortest.hash != run(agent_of(lambda seen: seen[:-1, 1])).hash
    first = run(agent_of(lambda seen: -np.arange(SLOTS)))
    assert first.hash == hk.Simulation(WORKLOAD, "fcfs+easy").run().hash


def test_a_module_is_shared_and_left_as_it_was() -> None:
    """Never copied, evaluated without dropout and gradients, and in the mode of training again."""
    net = Net().train()

    class Counted(Net):
        def __deepcopy__(self, memory: Any) -> Any:
            raise AssertionError("copied")

    assert run(agent_of(Counted())).hash == run(agent_of(net)).hash == run(agent_of(net)).hash
    assert net.training
    assert all(parameter.grad is None for parameter in net.parameters())
    agent = agent_of(net)
    assert copy.deepcopy(agent).model is net
    with torch.no_grad():
        net.layers[0].weight.mul_(-1)
    assert run(agent).hash != run(agent_of(Net())).hash, "what is learned later counts at once"


def test_batches_are_answered_as_one_by_one() -> None:
    agent, rng = agent_of(Net()), np.random.default_rng(0)
    seen = rng.normal(size=(50, SLOTS + 1, 5)).astype(np.float32)
    valid = rng.random((50, SLOTS)) < 0.5
    valid[:, 0] = True
    actions, _ = agent.choose(seen, valid)
    single = [int(agent.choose(seen[[row]], valid[[row]])[0][0]) for row in range(50)]
    assert actions.tolist() == single
    assert valid[np.arange(50), actions].all()
    env = rl.SchedulingVectorEnv(
        rl.SchedulingEnv(
            rl.Windows(WORKLOAD, 60), hk.Pipeline(order=hk.External(), window=SLOTS), rl.QueueWindow(SLOTS),
            rl.Slots(SLOTS), rl.MinusMeanWait(), attempts=20,
        ),
        3,
    )  # fmt: skip
    observations, _ = env.reset(seed=0)
    actions, _ = agent.choose(observations, env.action_masks())
    assert env.action_masks()[np.arange(3), actions].all()


def test_flat_observations() -> None:
    flat = torch.nn.Linear((SLOTS + 1) * 5, SLOTS)
    assert run(agent_of(flat, flat=True)).finished.all()
    with pytest.raises(
        HpcsimkitError, match=r"Linear fails on observations of shape \(1, 9, 5\): .*; flat=True"
    ):
        run(agent_of(flat))


def test_sampled_actions_depend_on_the_seed_of_the_run() -> None:
    agent = agent_of(by_hand, sample=True)
    policy = hk.Pipeline(order=agent, backfiller=hk.EASY(), window=SLOTS)
    hashes = [hk.Simulation(WORKLOAD, policy, seed=seed).run().hash for seed in (0, 1, 0)]
    assert hashes[0] == hashes[2] != hashes[1]
    assert agent.draws


def test_comparisons_and_evaluations_in_python() -> None:
    agent = agent_of(by_hand)
    seated = hk.Pipeline(order=agent, backfiller=hk.EASY(), window=SLOTS)
    compared = hk.compare(WORKLOAD, {"mine": seated, "fcfs+easy": "fcfs+easy"}, engine=Processes(2))
    assert compared.result("mine").hash == run(agent).hash
    alone = hk.compare(WORKLOAD, [agent]).table["schedule_sha256"][0]
    assert alone == hk.Simulation(WORKLOAD, hk.Pipeline(order=agent, window=SLOTS)).run().hash
    evaluated = hk.evaluate(agent, WORKLOAD, sequences=3, jobs=20)
    assert set(evaluated.tables["evaluation"]["policy"]) >= {"agent", "fcfs+easy", "sjf+easy"}


def test_a_module_at_the_inspector() -> None:
    """Seats of yes and no have their mask by themselves."""
    from hpcsimkit.agents.schedinspector.features import InspectorFeatures

    agent = rl.ModelAgent(lambda seen: np.array([1.0, 0.0]), InspectorFeatures(), stage="inspector")
    accepted = hk.Simulation(WORKLOAD, hk.Pipeline(inspector=agent, max_interval=600)).run()
    assert accepted.hash == hk.Simulation(WORKLOAD, "fcfs").run().hash


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (5, UsageError, "a model is needed: a function predict.*, found 5"),
        (Net, UsageError, "a model is needed: .*, found <class"),
        (lambda seen: 99, HpcsimkitError, "<lambda> answers 99; an action from 0 to 7 is needed"),
        (lambda seen: "first", HpcsimkitError, "<lambda> answers 'first'; an action or 8 scores are needed"),
        (lambda seen: np.zeros(3), HpcsimkitError, "an action or 8 scores are needed"),
        (lambda seen: np.full(SLOTS, np.nan), HpcsimkitError, "scores no option with a finite number"),
        (lambda seen: 1 // 0, PolicyError, "ZeroDivisionError"),
        (
            torch.nn.Linear(5, 3),
            HpcsimkitError,
            r"Linear gives \(1, 9, 3\) for \(1, 9, 5\); a score .* of 8 actions",
        ),
    ],
    ids=["number", "class", "no action", "text", "too few", "nan", "exception", "shape"],
)
def test_what_is_no_model(model: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        run(agent_of(model))
    assert "\n" not in str(caught.value)


def test_an_encoder_without_slots_needs_a_mask() -> None:
    class Bare(rl.Encoder):
        shape = (1,)

    with pytest.raises(
        UsageError, match=r"a mask is needed: Bare\(\) does not say how many options there are"
    ):
        rl.ModelAgent(by_hand, Bare())


def test_functions_of_one_and_of_two_arguments() -> None:
    one, two = np.zeros((1, 2)), np.ones((1, 3), dtype=np.bool_)
    for function in (
        lambda seen: 2, lambda seen, mask: 2, lambda seen, k=2: k, lambda seen, mask=None: 2 if mask is not None else 0,
    ):  # fmt: skip
        assert scorer_of(function).scores(one, two, None)[0].tolist() == [[0, 0, 1]]


# --- in files and by name ----------------------------------------------------------------------------------

MINE = """
import torch
from hpcsimkit import rl

class Net(torch.nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.hidden = hidden
        self.layer = torch.nn.Linear(5, 1)
        torch.nn.init.constant_(self.layer.weight, -1.0)

    def forward(self, seen):
        return self.layer(seen[:, :-1]).squeeze(-1)

class Mine(rl.ModelAgent):
    def __init__(self):
        super().__init__(Net(), rl.QueueWindow(8))

def mine() -> rl.ModelAgent:
    return rl.ModelAgent(Net(), rl.QueueWindow(8))
"""


def status(arguments: list[str]) -> Any:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a user, in the current folder."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    found = ModuleType("mine")
    exec(MINE, found.__dict__)
    for kind in (found.Net, found.Mine):
        kind.__module__ = "mine"
    return found


def test_models_by_name_on_the_command_line(mine: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    expected = hk.Simulation(WORKLOAD, hk.Pipeline(order=mine.mine(), backfiller=hk.EASY(), window=8)).run()
    for name in ("mine.py:Mine+easy", "mine.py:mine+easy"):
        assert hk.Simulation(WORKLOAD, name).run().hash == expected.hash
    assert (
        status(["compare", "--jobs", "50", "-p", "mine.py:Mine+easy", "-p", "fcfs", "--no-report", "--quiet"])
        == 0
    )


def test_a_file_may_name_a_model_with_consent_only(
    mine: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("e.toml").write_text('jobs = 50\npolicies = ["mine.py:Mine+easy"]\nreport = false\n')
    assert status(["compare", "e.toml", "--quiet"]) == 2
    assert "may not name it without consent: --allow-code mine.py" in capsys.readouterr().err
    assert status(["compare", "e.toml", "--quiet", "--allow-code", "mine.py"]) == 0


def test_a_module_is_saved_without_pickle_and_loaded_with_its_class(mine: ModuleType) -> None:
    agent = mine.mine()
    with torch.no_grad():
        agent.model.layer.weight.mul_(0.5)
    agent.save("net.hpcsim")
    content = Path("net.hpcsim").read_bytes()
    assert b"mine:Net" in content
    assert int.from_bytes(content[:8], "little") < 4096, "safetensors: the length of a header of JSON"
    again: Any = rl.Agent.load("net.hpcsim", parts=mine)
    assert run(again).hash == run(agent).hash
    assert (again.model.hidden, again.stage, again.flat) == (4, "order", False)
    named = hk.Simulation(WORKLOAD, "agent:net.hpcsim(parts=mine.py)+easy").run()
    assert named.hash == run(agent).hash
    with pytest.raises(
        UsageError, match=r"net.hpcsim: made for mine:Net, .*: parts=mine, for evaluate --parts mine"
    ):
        rl.Agent.load("net.hpcsim")


def test_what_cannot_be_saved(mine: ModuleType) -> None:
    with pytest.raises(UsageError, match=r"by_hand is no PyTorch module: .*mine.py:agent"):
        agent_of(by_hand).save("x.hpcsim")

    class Hidden(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()

    with pytest.raises(UsageError, match=r"parameter 'width' must be an attribute, self.width = width"):
        agent_of(Hidden(3)).save("x.hpcsim")
    with pytest.raises(UsageError, match=r"layer.weight is torch.float64, float32 is needed"):
        agent_of(mine.Net().double()).save("x.hpcsim")
    assert not Path("x.hpcsim").exists()


def test_an_agent_of_a_notebook_tells_what_it_will_need(
    mine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine.mine().save("quiet.hpcsim")
    mine.Net.__module__ = "__main__"
    with pytest.warns(
        UserWarning, match=r"net.hpcsim names Net of this notebook .* into a file, such as mine.py"
    ):
        mine.mine().save("net.hpcsim")
    assert run(rl.Agent.load("net.hpcsim", parts=mine)).hash == run(mine.mine()).hash

    class Seen(rl.QueueWindow):
        """An encoder of a notebook."""

    monkeypatch.setattr(Seen, "__module__", "__main__")
    dense = rl.Dense({"weight.0": np.ones((2, 15), np.float32), "bias.0": np.zeros(2, np.float32)})
    with pytest.warns(UserWarning, match="a.hpcsim names Seen of this notebook or script"):
        rl.Agent(Seen(2), rl.Slots(2), dense, "order").save("a.hpcsim")
    assert sys.modules["__main__"] is not mine


def test_agents_show_themselves() -> None:
    agent = agent_of(by_hand, about={"training": {"policy": "<b>", "metric": "mean_wait_time"}})
    page = agent._repr_html_()
    assert "&lt;b&gt;" in page
    assert "QueueWindow(slots=8)" in page
    assert repr(agent) == "ModelAgent(by_hand, QueueWindow(slots=8), Slots(slots=8))"
