"""Misuse that would otherwise run for ever, or fail somewhere far away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster import Nodes
from hpcsimkit.errors import PolicyError, StalledError, UsageError
from hpcsimkit.observers import Observer
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import RandomOrder
from hpcsimkit.policy import Order, Policy
from hpcsimkit.registry import make
from hpcsimkit.simulation import Simulation
from hpcsimkit.system import System
from hpcsimkit.workload import Workload

ONE_JOB = Workload({"submit_time": [5], "run_time": [3], "nodes": [1]}, machine_size=2)


def test_a_policy_that_only_asks_to_be_woken_is_stalled() -> None:
    class Sleepy(Policy):
        def schedule(self, system: System) -> None:
            system.wake(system.now + 1)

    with pytest.raises(StalledError, match=r"stalled at t=\d+ s: 1 jobs wait"):
        Simulation(ONE_JOB, Sleepy()).run()


def test_a_policy_may_wait_for_a_time_of_day() -> None:
    class Noon(Policy):
        def schedule(self, system: System) -> None:
            if system.now < 43_200:
                system.wake(min(system.now + 600, 43_200))
            else:
                system.start(system.queue.first())

    assert Simulation(ONE_JOB, Noon()).run().start_time.tolist() == [43_200]


def test_only_decisions_may_be_yielded() -> None:
    class Chatty(Policy):
        def schedule(self, system: System) -> Any:
            yield 17

    with pytest.raises(PolicyError, match="may yield decisions only, found 17"):
        Simulation(ONE_JOB, Chatty()).run()


def test_an_order_that_a_policy_brings_along_is_reset() -> None:
    class FirstOfARandomQueue(Policy):
        @property
        def queue_order(self) -> Order:
            return RandomOrder()

        def schedule(self, system: System) -> None:
            system.start(system.queue.first())

    assert Simulation(ONE_JOB, FirstOfARandomQueue()).run().start_time.tolist() == [5]


def test_an_observer_that_fails_at_the_end_is_one_line() -> None:
    class Fails(Observer):
        def on_finish(self, system: System) -> None:
            raise RuntimeError("disk\non fire")

    with pytest.raises(PolicyError, match=r"RuntimeError: disk on fire \(.*test_misuse\.py:\d+\)"):
        Simulation(ONE_JOB, Pipeline(), observers=[Fails()]).run()


@pytest.mark.parametrize("name", ["easy-k(0)", "easy-k(-1)", "easy-k(x)", "easy-noise(-1)", "easy-noise(x)"])
def test_numbers_out_of_range(name: str) -> None:
    with pytest.raises(UsageError, match=r"found (0|-1|'x')"):
        Simulation(ONE_JOB, make(name)).run()


def test_spaces_between_parts() -> None:
    assert make("sjf + easy++") == make("sjf+easy++")


def test_what_is_no_workload() -> None:
    with pytest.raises(UsageError, match="workload needs a Workload, found None"):
        Simulation(None, Pipeline())  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers_of_nodes() -> None:
    assert Nodes(np.int64(4)) == Nodes(4)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="found True"):
        Nodes(True)
