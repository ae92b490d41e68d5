"""What an agent does: counted by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import EASY, Pipeline, Simulation, Workload
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.seats import ConstantAction, Watched
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import QueueSlots, Slots
from hpcsimkit.agents.training.behaviour import Behaviour, evenness
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.policies.orders import FCFS

THREE = Workload(
    {"submit_time": [0, 0, 0], "run_time": [50, 90, 10], "requested_time": [50, 90, 20], "nodes": [1, 1, 1]},
    machine_size=1,
)


def counted(model: object, *, learns_policy: bool = True) -> Behaviour:
    """Return the behaviour of a model on the order seat of three jobs on one node."""
    agent = ModelAgent(model, QueueWindow(3), base=FCFS())
    behaviour = Behaviour(agent, learns_policy=learns_policy)
    watched = Watched(agent, behaviour)
    watched.base = FCFS()
    Simulation(THREE, Pipeline(order=watched, backfiller=EASY(), window=3)).run()
    return behaviour


def test_choices_by_hand() -> None:
    """The shortest job first: at 0 s job 3 of (1, 2, 3), then job 1 of (1, 2), which waits; at 10 s job 1 again,
    then job 2 alone, which waits; at 60 s job 2 alone."""
    behaviour = counted(lambda seen: -seen[:-1, 1])
    assert (behaviour.decisions, behaviour.choices, behaviour.taken) == (5, 3, {2: 1, 0: 2})
    found = behaviour.measures()
    shares = [found[name] for name in ("forced", "agreement", "commonest")]
    assert (shares, behaviour.commonest) == (
        [pytest.approx(2 / 5), pytest.approx(2 / 3), pytest.approx(2 / 3)],
        0,
    )


def test_agreement_by_hand_of_chance_and_of_a_constant() -> None:
    """Behind the seat first come, first served: job 1 of three, then of two, twice; always slot 0."""
    found = counted(lambda seen: -seen[:-1, 1]).measures()
    assert found["chance"] == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert found["constant"] == 1.0
    shares = [found[f"action_{action}"] for action in range(3)]
    assert shares == pytest.approx([2 / 3, 0, 1 / 3])
    assert "action_3" not in found


def test_a_choice_of_the_heuristic_without_a_slot_agrees_with_no_constant() -> None:
    """Two slots for three jobs: once the heuristic selects the last job, once the second."""
    agent = SimpleNamespace(mask=Slots(2), scores=np.zeros(2))
    behaviour = Behaviour(agent)  # type: ignore[arg-type]
    system: Any = SimpleNamespace(partition="", now=0)
    options = [SimpleNamespace(index=number) for number in range(3)]
    for default in (options[2], options[1]):
        decision = Decision("order", system, None, lambda: options, lambda found=default: found)  # type: ignore[misc]
        behaviour._observe(decision, 0)
    found = behaviour.measures()
    assert (found["agreement"], found["chance"], found["constant"]) == (0.0, 0.5, 0.5)


def test_entropy_by_hand() -> None:
    """Scores 2, 1, 1 of three jobs, once, and 2, 1 of two jobs, twice."""
    found = counted(lambda seen: np.log([2.0, 1.0, 1.0])).measures()
    three, two = 1.5 * math.log(2) / math.log(3), math.log(3) / math.log(2) - 2 / 3
    assert found["evenness"] == pytest.approx((three + 2 * two) / 3)


def test_values_of_actions_have_no_entropy() -> None:
    assert "evenness" not in counted(lambda seen: -seen[:-1, 1], learns_policy=False).measures()


def test_a_constant_and_a_uniform_policy_are_named() -> None:
    constant = counted(lambda seen: np.array([9.0, 0.0, 0.0]))
    assert constant.warning.startswith("the agent takes action 0 in 100.0 % of its 3 choices in validation")
    tired = counted(lambda seen: -0.001 * seen[:-1, 1])
    assert tired.warning == (
        "the policy is still uniform: its entropy in validation is 100.0 % of the largest possible one"
    )
    sure = counted(lambda seen: -1e6 * seen[:-1, 1])
    assert sure.warning == ""
    assert counted(lambda seen: -0.001 * seen[:-1, 1], learns_policy=False).warning == ""


def test_without_choices_shares_are_undefined() -> None:
    behaviour = Behaviour(ModelAgent(lambda seen: seen[:-1, 1], QueueWindow(3)))
    assert (behaviour.choices, behaviour.commonest, behaviour.warning) == (0, 0, "")
    assert all(math.isnan(share) for share in behaviour.measures().values())


def test_a_single_action_is_no_choice_among_several_options() -> None:
    """One slot: the network scores the first job of the window only."""
    agent = ModelAgent(lambda seen: seen[:1, 1], QueueWindow(1), Slots(1))
    behaviour = Behaviour(agent)
    Simulation(THREE, Pipeline(order=Watched(agent, behaviour), backfiller=EASY(), window=3)).run()
    assert (behaviour.decisions, behaviour.choices) == (5, 0)
    assert behaviour.measures()["forced"] == 1.0


def test_evenness_of_two_to_one() -> None:
    """ln 3 - 2/3 ln 2 of ln 2, by hand."""
    assert evenness(np.log([2.0, 1.0])) == pytest.approx((math.log(3) - 2 / 3 * math.log(2)) / math.log(2))


@pytest.mark.parametrize(("action", "taken"), [(0, 1), (1, 1), (2, 1), (3, 3), (9, 3)])
def test_a_constant_action_that_is_invalid_is_the_nearest_one_below(action: int, taken: int) -> None:
    assert ConstantAction(Slots(4), action)._choice(np.array([1, 3])) == taken


@pytest.mark.parametrize("mask", [Slots(3), QueueSlots(3)])
def test_a_constant_action_is_a_place_in_the_queue(mask: Slots) -> None:
    policy = Pipeline(order=ConstantAction(mask, 1), backfiller=EASY(), window=3)
    assert Simulation(THREE, policy).run().start_time.tolist() == [100, 0, 90]
