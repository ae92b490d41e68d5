"""`check` as a user types it: one line of what was checked, or one line of what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from tests.cli.conftest import CLI

MINE = """
import numpy as np
from hpcsimkit import Order, Pipeline, Policy
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.envs.interfaces import Encoder, Mask, Reward


class FewestNodes(Order):
    def key(self, job):
        return job.nodes


class Clairvoyant(Order):
    def key(self, job):
        return job.run_time


def scheduler(window: int = 4) -> Policy:
    return Pipeline(order=FewestNodes(), window=window)


class Length(Encoder):
    shape = (1,)
    high = 1000.0

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def bind(self, system):
        def encode(decision, out):
            out[:] = self.value(decision, system) / self.scale

        return encode

    def value(self, decision, system):
        return len(system.queue)


class Wide(Length):
    def bind(self, system):
        def encode(decision, out):
            out[:] = np.zeros(3)

        return encode


class Words(Length):
    def value(self, decision, system):
        return "two"


class Large(Length):
    high = 0.5


class Future(Length):
    def value(self, decision, system):
        return decision.options[0].run_time


class Drawn(Length):
    def value(self, decision, system):
        return np.random.default_rng().random()


class Remembers(Length):
    def bind(self, system):
        self.episodes = getattr(self, "episodes", 0) + 1
        return super().bind(system)

    def value(self, decision, system):
        return self.episodes


class Loses(Length):
    def __init__(self, scale: float = 1.0):
        self.scaled_by = scale


class Starts(Reward):
    def on_begin(self, system):
        self._started = 0

    def on_start(self, job, allocation, system):
        self._started += 1

    def take(self, system):
        started, self._started = self._started, 0
        return float(started)


class Nan(Starts):
    def take(self, system):
        return float("nan")


class Sums(Starts):
    total = 0

    def on_begin(self, system):
        self._started = 0

    def take(self, system):
        self.total += self._started
        return float(self.total)


class AMask(Mask):
    actions = 2


class Neither:
    pass


NUMBER = 3
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["mine.py:FewestNodes"], "Pipeline(order=FewestNodes()): passed on 8 workloads, 480 jobs: parameters; events; capacity"),
        (["mine:FewestNodes+easy"], "Pipeline(order=FewestNodes(), backfiller=EASY()): passed on 8 workloads"),
        (["mine:scheduler(window=2)"], "Pipeline(order=FewestNodes(), window=2): passed"),
        (["sjf+easy", "--kind", "policy"], "Pipeline(order=SJF(), backfiller=EASY()): passed on 8 workloads"),
        (["fcfs+first-fit"], "Pipeline(order=FCFS(), placement=FirstFit()): passed on 4 workloads"),
        (["mine:Clairvoyant", "--oracle"], "Pipeline(order=Clairvoyant()): passed on 8 workloads"),
        (["mine.py:Length"], "Length(): passed on 8 workloads, 878 decisions: parameters; shape, type and bounds"),
        (["mine:Length(scale=2.5)", "--stage", "inspector"], "Length(scale=2.5): passed on 8 workloads"),
        (["mine:Length", "--machines", "nine-machines"], "Length(): passed on 4 workloads"),
        (["mine:Future", "--oracle"], "Future(): passed"),
        (["mine:Starts", "--kind", "reward"], "Starts(): passed on 8 workloads, 878 decisions: parameters; finite numbers"),
        (["MinusMeanWait", "--kind", "reward", "--stage", "backfiller"], "MinusMeanWait(): passed"),
    ],
)  # fmt: skip
def test_what_was_checked(cli: CLI, arguments: list[str], line: str) -> None:
    outcome = cli("check", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(line) and outcome.out.count("\n") == 1


def test_quiet(cli: CLI) -> None:
    assert cli("check", "mine:Length", "--quiet", "--seed", 3) == (0, "", "")


def test_an_agent(cli: CLI) -> None:
    network = SlotScores({"weight.0": np.array([[1, 0, 0, 0, 0]]), "bias.0": np.array([0])})
    Agent(QueueWindow(4), Slots(4), network, "order").save("a.hpcsim")
    outcome = cli("check", "a.hpcsim")
    assert outcome.code == 0 and outcome.out.endswith("rules of policies\n") and outcome.out.count("\n") == 1
    assert (
        cli("check", "a.hpcsim", "--kind", "encoder").line() == "'a.hpcsim' is of the kind agent, not encoder"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine:Wide", "into shape (1,)"),
        ("mine:Words", "fails 'shape, type and bounds'"),
        ("mine:Large", "Large() fails 'shape, type and bounds': the value"),
        ("mine:Future", "Future() fails 'run times not known before the end': with other run times"),
        ("mine:Drawn", "fails 'same decision, same observation': the same decision is encoded twice"),
        ("mine:Remembers", "fails 'no state kept between episodes': after a run of another workload, the value at [0] is"),
        ("mine:Loses", "Loses does not store its parameter 'scale' under this name"),
        ("mine:Nan", "Nan() fails 'finite numbers': a finite number is needed at t="),
        ("mine:Sums", "Sums() fails 'no state kept between episodes': after a run of another workload, the reward is"),
        ("mine:Clairvoyant", "fails 'run times not known before the end'"),
        ("mine:AMask", "an encoder, a reward or an agent's file can be checked, found the class AMask"),
        ("mine:Neither", "can be checked, found the class Neither"),
        ("mine:NUMBER", "a function of mine that returns one; found a int"),
        ("mine:Length(widht=2)", "'mine:Length(widht=2)': got an unexpected keyword argument 'widht'; parameters: scale"),
        ("mine:Lenght", "'mine:Lenght': mine has no 'Lenght'"),
        ("sjff+easy", "unknown policy 'sjff' in 'sjff+easy'; nearest: sjf"),
        ("nosuch.hpcsim", "nosuch.hpcsim: no such file"),
    ],
)  # fmt: skip
def test_what_is_wrong(cli: CLI, name: str, message: str) -> None:
    assert message in cli("check", name).line()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine:Length", "--kind", "rewrd"], "--kind: one of policy, encoder, reward, agent is needed, found 'rewrd'; nearest: reward"),
        (["mine:Length", "--kind", "reward"], "'mine:Length' is of the kind encoder, not reward"),
        (["mine:FewestNodes", "--kind", "encoder"], "'mine:FewestNodes' is of the kind policy, not encoder"),
        (["best", "--kind", "agent"], "an agent's file (*.hpcsim) is needed, found 'best'"),
        (["QueueWindw", "--kind", "encoder"], "unknown encoder 'QueueWindw'; nearest: QueueWindow"),
        (["mine:Length", "--stage", "ordr"], "--stage: one of order, inspector, placement, backfiller, preemptor, gate, tester, dispatch, two-level is needed, found 'ordr'"),
        (["sjf+easy", "--stage", "tester"], "--stage is the seat of an encoder or a reward, found a policy"),
    ],
)  # fmt: skip
def test_flags_that_make_no_sense(cli: CLI, arguments: list[str], message: str) -> None:
    assert message in cli("check", *arguments).line()


def test_as_typed(shell: CLI) -> None:
    outcome = shell("check", "mine.py:Length")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    assert "fails 'run times not known" in shell("check", "mine.py:Future").line()
