"""Shares of the time of a learner's step, by timers at the borders of the parts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.benchmarks import agents

__all__ = ["shares"]

REST = "masks and checks"


class Timers:
    """Time of functions without the timed functions that they call, summed by part [s]."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._parts: list[str] = []
        self._since = 0.0

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return the function with a timer."""

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            self._change()
            self._parts.append(part)
            try:
                return function(*given, **named)
            finally:
                self._change()
                self._parts.pop()

        return call

    def time(self, owner: Any, name: str, part: str) -> None:
        """Time a function of a class or module from now on."""
        setattr(owner, name, self.timed(getattr(owner, name), part))

    def time_returned(self, owner: Any, name: str, part: str) -> None:
        """Time the functions that a method returns from now on."""
        method = getattr(owner, name)
        setattr(owner, name, lambda *given: self.timed(method(*given), part))

    def _change(self) -> None:
        now = time.perf_counter()
        if self._parts:
            self.spent[self._parts[-1]] += now - self._since
        self._since = now


def _with_timers(source: str) -> Timers:
    """Put timers into the parts of the kit that a case uses."""
    from hpcsimkit.agents.spaces.rewards import Improvement
    from hpcsimkit.envs import episode_batch
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.envs.episode import Episode
    from hpcsimkit.kernel.scheduler import Scheduler
    from hpcsimkit.kernel.simulation import Simulation
    from hpcsimkit.kernel.system import System

    timers = Timers()
    timers.time_returned(Episode, "_bound", "observation")
    for owner, name, part in (
        (System, "start", "starts"), (Scheduler, "_asked", "passes"), (Scheduler, "run_pass", "passes"),
        (Simulation, "_advance", "events"), (Episode, "reward", "rewards"), (SchedulingEnv, "begin", "episodes"),
        (Improvement, "on_begin", "baseline"), (episode_batch, "evaluate", "episodes"),
        (SchedulingEnv, "step", REST), (SchedulingEnv, "reset", REST),
    ):  # fmt: skip
        timers.time(owner, name, part)
    if source == "games":
        _time_games(timers)
    if source == "training":
        _time_training(timers)
    return timers


def _time_games(timers: Timers) -> None:
    from hpcsimkit.agents.cush.encoder import ClusterImage
    from hpcsimkit.agents.cush.game import DrawnStyle, Game, States
    from hpcsimkit.agents.spaces.masks import QueueSlots

    timers.time_returned(ClusterImage, "sketcher", "observation")
    for owner, name, part in (
        (States, "number", "observation"), (DrawnStyle, "place", "placements"), (Game, "__init__", "episodes"),
        (Game, "take", REST), (QueueSlots, "write", REST),
    ):  # fmt: skip
        timers.time(owner, name, part)


def _time_training(timers: Timers) -> None:
    from sb3_contrib import MaskablePPO

    from hpcsimkit.agents.training.ppo import PPO
    from hpcsimkit.envs.vector_environment import SchedulingVecEnv

    for owner, name, part in (
        (PPO, "learn", "updates"), (MaskablePPO, "train", "updates"), (PPO, "_play", "sampling"),
        (MaskablePPO, "collect_rollouts", "sampling"), (SchedulingVecEnv, "step_places", REST),
    ):  # fmt: skip
        timers.time(owner, name, part)


def shares(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run another case on the kernel, with timers; returns its seconds, and the largest shares of parts first [%]."""
    timers, measure = _with_timers(source), getattr(agents, source)
    system, policy = "sierra" if source == "games" else source, f"{policy}, SimPy"
    measure(traces, system, policy, 1)
    timers.spent.clear()
    measure(traces, system, policy, repetitions)
    whole = timers.spent.total()
    return {"seconds": whole, **{part: 100 * spent / whole for part, spent in timers.spent.most_common()}}
