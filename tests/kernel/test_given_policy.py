"""Policies by name, as stages, and as objects are the same to a simulation and to a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import Pipeline, Simulation, default_workload
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.given_policy import policy_of
from hpcsimkit.policies import EASY, SJF

WORKLOAD = default_workload(np.random.default_rng(1), jobs=100)


@pytest.mark.parametrize("given", ["sjf", SJF(), Pipeline(order=SJF())])
def test_a_name_a_stage_and_a_policy(given: Any) -> None:
    expected = Simulation(WORKLOAD, Pipeline(order=SJF())).run()
    result = Simulation(WORKLOAD, given).run()
    assert result.hash == expected.hash
    assert result.policy == (given if isinstance(given, str) else repr(policy_of(given)))
    assert Simulation(WORKLOAD, given, name="mine").run().policy == "mine"


def test_every_seat_takes_a_stage() -> None:
    assert policy_of(EASY()) == Pipeline(backfiller=EASY())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sfj", "unknown policy 'sfj'; nearest: "),
        (5, "a policy, a stage of a pipeline or the name of a policy is needed, found 5"),
        (SJF, "a policy, a stage of a pipeline or the name of a policy is needed, found <class"),
    ],
)
def test_what_is_no_policy(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Simulation(WORKLOAD, given)
