"""Checks of encoders, rewards and agents: each finds its error, and passes the kit's own components."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from hpcsimkit import check_agent, check_encoder, check_reward, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.catalogue import REWARDS
from hpcsimkit.agents.dras.encoder import JobsAndNodes
from hpcsimkit.agents.networks.numpy_networks import Network, SlotScores
from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.machine_encoders import JobMachinePairs, MachineRows
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import OfChoices
from hpcsimkit.envs.interfaces import Encode, Encoder, Mask, Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.policies import CheckError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System


class One(Encoder):
    """Encoder of one number, written by a method."""

    shape = (1,)

    def bind(self, system: System) -> Encode:
        def encode(decision: Decision, out: Any) -> None:
            out[0] = self.number(decision)

        return encode

    def number(self, decision: Decision) -> float:
        return float(decision.options[0].nodes)


class Counting(One):
    def number(self, decision: Decision) -> float:
        self._calls = getattr(self, "_calls", 0) + 1
        return self._calls


class Remembering(One):
    """Counts episodes, not decisions."""

    def bind(self, system: System) -> Encode:
        self._episodes = getattr(self, "_episodes", 0) + 1
        return super().bind(system)

    def number(self, decision: Decision) -> float:
        return float(self._episodes)


class Bounded(One):
    low, high = 0.0, 1.0


class NoNumber(One):
    def number(self, decision: Decision) -> float:
        return float("nan")


class Silent(One):
    def bind(self, system: System) -> Encode:
        return lambda decision, out: None


class LooksAtRunTimes(One):
    def number(self, decision: Decision) -> float:
        return float(decision.options[0].run_time) + 1


class LooksAtTheLog(One):
    def number(self, decision: Decision) -> float:
        return float(len(decision.system.workload))


class Drawing(One):
    """Takes numbers from the run's generator; the schedule stays, the observations differ."""

    def number(self, decision: Decision) -> float:
        return float(np.random.default_rng().random()) + 1


class TwoNumbers(One):
    def bind(self, system: System) -> Encode:
        def encode(decision: Decision, out: Any) -> None:
            out[1] = 1

        return encode


class NoFunction(One):
    def bind(self, system: System) -> Any:
        return None


class OtherName(One):
    def __init__(self, scale: float = 1.0) -> None:
        self.factor = scale


class Zero(One):
    shape = (0,)


class Starting(One):
    """Starts a job by itself."""

    def number(self, decision: Decision) -> float:
        job = decision.options[-1]
        if len(decision.options) > 1 and decision.system.fits(job):
            decision.system.start(job)
        return 1.0


class Unshown(One):
    """Declares more than is true: compiled runs show no version of the state."""

    reads_compiled = True

    def number(self, decision: Decision) -> float:
        return 1.0 + decision.system.version % 2


class Shown(One):
    reads_compiled = True


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Unshown(), r"fails 'the same in compiled runs': .*'Shown' object has no attribute 'version'"),
        (Counting(), r"^Counting\(\) fails 'same decision, same observation': .* is \d+\.0 instead of \d+\.0 at t=\d+ s; on"),
        (Remembering(), r"fails 'no state kept between episodes': after a run of another workload, the value at \[0\] is 3\.0 instead of 1\.0"),
        (Bounded(), r"fails 'shape, type and bounds': the value \d+\.0 at \[0\] is not in its bounds, 0\.0 to 1\.0, at"),
        (NoNumber(), r"fails 'shape, type and bounds': the value nan at \[0\] is not finite, at t="),
        (Silent(), r"fails 'shape, type and bounds': all observations are zero"),
        (LooksAtRunTimes(), r"fails 'run times not known before the end': with other run times of jobs that end after t="),
        (LooksAtTheLog(), r"fails 'later submissions not known': without the jobs submitted after t=\d+ s, the value"),
        (Drawing(), r"fails 'same decision, same observation'"),
        (TwoNumbers(), r"fails 'shape, type and bounds': .*IndexError"),
        (NoFunction(), r"fails 'shape, type and bounds': .*bind\(system\) needs to return a function, found None"),
        (OtherName(), r"fails 'parameters': OtherName does not store its parameter 'scale' under this name"),
        (Starting(), r"^Starting\(\) fails '"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Encoder) else "",
)  # fmt: skip
def test_errors_of_encoders(encoder: Encoder, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check_encoder(encoder)


def test_what_is_no_encoder() -> None:
    with pytest.raises(UsageError, match=r"check_encoder needs an Encoder, found 3"):
        check_encoder(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"shape needs whole numbers of at least 1"):
        check_encoder(Zero())
    with pytest.raises(UsageError, match=r"a seat of order, .* is needed, found 'throne'"):
        check_encoder(One(), "throne")
    with pytest.raises(UsageError, match="there is no decision for the backfiller seat"):
        check_encoder(One(), "backfiller", cluster=1)


def test_an_oracle_is_allowed_where_asked_for() -> None:
    assert check_encoder(LooksAtRunTimes(), oracle=True).decisions == check_encoder(One()).decisions > 500


@pytest.mark.parametrize(
    ("encoder", "stage", "cluster"),
    [
        (QueueWindow(8), "order", None),
        (QueueWindow(8), "backfiller", None),
        (InspectorFeatures(), "inspector", None),
        (JobsAndNodes(slots=8, nodes=16), "two-level", 16),
        (MachineRows(machines=6, resources=3), "placement", None),
        (JobMachinePairs(slots=8, machines=6, resources=3), "dispatch", None),
    ],
)
def test_encoders_of_the_kit(encoder: Encoder, stage: str, cluster: int | None) -> None:
    report = check_encoder(encoder, stage, cluster=cluster)
    assert report.decisions > 50
    assert "later submissions not known" in str(report)


def test_declared_encoders_are_compared_in_compiled_runs() -> None:
    assert check_encoder(Shown()).checks[-1] == "the same in compiled runs"
    assert "the same in compiled runs" not in check_encoder(One()).checks


def test_an_encoder_scaled_by_the_whole_log_is_told() -> None:
    """RLScheduler's observations, which their authors scale by the longest request of the log."""
    with pytest.raises(CheckError, match="fails 'later submissions not known'"):
        check_encoder(WaitingJobs(8))


# --- rewards -----------------------------------------------------------------------------------------------


class FreeAtStarts(Reward):
    """Declares more than is true: in compiled runs, starts are told only before the next decision."""

    reads_compiled = True

    def on_begin(self, system: System) -> None:
        self.sum = 0

    def on_start(self, job: Any, allocation: Any, system: System) -> None:
        self.sum += system.free

    def take(self, system: System) -> float:
        taken, self.sum = self.sum, 0
        return taken


def test_declared_rewards_are_compared_in_compiled_runs() -> None:
    with pytest.raises(
        CheckError, match=r"fails 'the same in compiled runs': in a compiled run, the reward is"
    ):
        check_reward(FreeAtStarts())


class Unpaid(OfChoices):
    pass


class Untaken(Reward):
    def take(self, system: System) -> float:
        raise NotImplementedError


class Jobs(Reward):
    """One for each start."""

    def on_begin(self, system: System) -> None:
        self._starts = 0

    def on_start(self, job: Any, allocation: Any, system: System) -> None:
        self._starts += 1

    def take(self, system: System) -> Any:
        starts, self._starts = self._starts, 0
        return starts


class NeverReset(Jobs):
    def on_begin(self, system: System) -> None:
        self._starts = getattr(self, "_starts", 0)

    def take(self, system: System) -> Any:
        return self._starts


class Infinite(Jobs):
    def take(self, system: System) -> Any:
        return float("inf")


class Text(Jobs):
    def take(self, system: System) -> Any:
        return "much"


class Random(Jobs):
    def take(self, system: System) -> Any:
        return float(np.random.default_rng().random())


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (NeverReset(), r"^NeverReset\(\) fails 'no state kept between episodes': after a run of another workload, the reward is"),
        (Infinite(), r"fails 'finite numbers': a finite number is needed at t=\d+ s, found inf; on"),
        (Text(), r"fails 'finite numbers': .* found 'much'"),
        (Unpaid(), r"fails 'finite numbers': Unpaid needs a method pay\(job, system\) \(.*test_part_checks.py:\d+\); on"),
        (Untaken(), r"fails 'finite numbers': .* in Untaken: NotImplementedError \(.*test_part_checks.py:\d+\); on"),
        (Random(), r"fails 'same episode, same rewards': two runs with seed 0 differ: the reward is"),
    ],
)  # fmt: skip
def test_errors_of_rewards(reward: Reward, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check_reward(reward)


def test_what_is_no_reward() -> None:
    with pytest.raises(UsageError, match=r"check_reward needs a Reward, found QueueWindow\(slots=8\)"):
        check_reward(QueueWindow(8))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_of_the_kit(name: str) -> None:
    reward = REWARDS[name]
    of_a_baseline = "baseline" in inspect.signature(reward).parameters
    assert check_reward(reward(make("fcfs")) if of_a_baseline else reward()).decisions > 500


# --- agents ------------------------------------------------------------------------------------------------

FIRST = SlotScores({"weight.0": np.array([[1, 0, 0, 0, 0]]), "bias.0": np.array([0])})


class NoAction(Slots):
    def write(self, decision: Decision, out: Any) -> None:
        pass


class Beyond(Slots):
    def position(self, decision: Decision, action: int) -> int:
        return action + len(decision.options)


class NoActions(Mask):
    pass


class Unwritten(Mask):
    actions = 4


class Short(One):
    shape = (5,)


class Unscored(Network):
    kind = "unscored"


def test_an_agent_that_passes() -> None:
    plain = Agent(QueueWindow(4), Slots(4), FIRST, "order")
    report = check_agent(Agent(QueueWindow(4), Slots(4), FIRST, "order", about={"seed": 1, "steps": 2048}))
    assert report.part == repr(plain)  # without what is known of its training
    assert report.checks[0] == "encoder: parameters"
    assert report.checks[-1] == "rules of policies"


@pytest.mark.parametrize(
    ("encoder", "mask", "message"),
    [
        (QueueWindow(4), NoAction(4), r"fails 'actions are options': no action is valid for Decision"),
        (
            QueueWindow(4),
            Beyond(4),
            r"fails 'actions are options': action 0 stands for option \d+ of Decision",
        ),
        (QueueWindow(4), NoActions(), r"NoActions needs a property actions \(.*test_part_checks.py:\d+\)"),
        (
            QueueWindow(4),
            Unwritten(),
            r"fails 'actions are options': Unwritten needs a method write\(decision, out\) \(",
        ),
        (LooksAtRunTimes(), Slots(4), r"^LooksAtRunTimes\(\) fails 'run times not known"),
    ],
)
def test_errors_of_agents(encoder: Encoder, mask: Mask, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check_agent(Agent(encoder, mask, FIRST, "order"))


def test_a_network_without_scores() -> None:
    network = Unscored({"weight.0": np.zeros((4, 5)), "bias.0": np.zeros(4)})
    with pytest.raises(CheckError, match=r"fails 'scores of the network': Unscored needs a method scores\("):
        check_agent(Agent(Short(), Slots(4), network, "order"))


def test_what_is_no_agent() -> None:
    with pytest.raises(UsageError, match=r"check_agent needs a Network as network, found Slots\(slots=4\)"):
        check_agent(Agent(QueueWindow(4), Slots(4), Slots(4), "order"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"check_agent needs an Agent, found Slots\(slots=4\)"):
        check_agent(Slots(4))  # type: ignore[arg-type]
