"""Agents on open seats, and stand-ins for them: the default heuristic, random choice, a constant, replay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.envs.interfaces import Mask
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.results.result import Result

__all__ = [
    "Answer",
    "ConstantAction",
    "ConstantSlot",
    "Observe",
    "RandomAgent",
    "RandomChoice",
    "Replay",
    "Watched",
    "Watcher",
    "default_choice",
    "play",
    "with_agent",
]

Answer = Callable[[Decision], Any]
"""A function that answers the decisions of a seat: it returns one of the options."""


Observe = Callable[[Decision, int], None]
"""Function that observes a decision and the position of the chosen option."""


def play(simulation: Simulation, answer: Answer) -> Result:
    """Run a simulation with open seats to its end.

    Parameters
    ----------
    simulation : Simulation
        Simulation to run, possibly already started; closed seats answer for themselves.
    answer : callable
        Function ``answer(decision)`` that returns one of ``decision.options``. It is called for the
        decisions of all open seats; ``decision.stage`` identifies the seat.

    Returns
    -------
    Result
        Result of the run, with the position of each answer among its options in ``choices``.

    Examples
    --------
    >>> from hpcsimkit.kernel.decision import External
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> shortest = lambda decision: min(decision.options, key=lambda job: job.requested_time)
    >>> play(Simulation(w, Pipeline(order=External())), shortest).start_time.tolist()
    [4, 0]
    """
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(answer(decision))
    return simulation.result()


def with_agent(policy: Policy, agent: Agent) -> Policy:
    """Return a copy of a policy with an agent at its open seat, and the heuristic behind it.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline
    >>> from hpcsimkit.policies import SJF
    >>> from hpcsimkit.rl import ModelAgent, QueueWindow
    >>> def first(seen):
    ...     return 0
    >>> seated = with_agent(Pipeline(order=External(SJF()), window=4), ModelAgent(first, QueueWindow(4)))
    >>> seated.order, seated.order.base
    (ModelAgent(first, QueueWindow(slots=4), Slots(slots=4)), SJF())
    """
    seat = "seat" if isinstance(policy, Dispatch | TwoLevel) else agent.stage
    seated = copy.copy(policy)
    agent.base = getattr(policy, seat).base
    setattr(seated, seat, agent)
    return seated


def default_choice(decision: Decision) -> Any:
    """Return the choice of the heuristic behind the seat: the schedule is that of the closed pipeline."""
    return decision.default


class RandomChoice:
    """Uniform random choice among the options.

    Parameters
    ----------
    rng : numpy.random.Generator
        Random number generator.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __call__(self, decision: Decision) -> Any:
        """Draw an option."""
        return decision.options[int(self.rng.integers(len(decision.options)))]


class OfActions(Answering):
    """A stand-in for an agent that chooses among the valid actions of its mask.

    Parameters
    ----------
    mask : Mask
        Mask of the agent that it replaces.
    base : Stage, optional
        Heuristic behind the seat.
    decline : bool
        Whether starting no further job is an option.
    """

    def __init__(self, mask: Mask, base: Any = None, *, decline: bool = False) -> None:
        super().__init__(base, decline=decline)
        self.mask = mask

    def answer(self, decision: Decision) -> int:
        """Return the position of the option of the chosen action."""
        valid = np.zeros(self.mask.actions, dtype=np.bool_)
        self.mask.write(decision, valid)
        return self.mask.position(decision, self._choice(np.flatnonzero(valid)))

    def _choice(self, actions: NDArray[np.int64]) -> int:
        """Return one of the valid actions, which are in ascending order."""
        raise NotImplementedError


class RandomAgent(OfActions):
    """An untrained agent for comparison: uniform random choice among the valid actions.

    Parameters are those of :class:`OfActions`.
    """

    draws = True

    def reset(self, system: System) -> None:
        """Get a random number generator from the run."""
        super().reset(system)
        self._random = system.random()

    def _choice(self, actions: NDArray[np.int64]) -> int:
        return int(actions[self._random.integers(len(actions))])


class ConstantAction(OfActions):
    """An agent that always takes one action, or the nearest valid one below it, else the first valid one.

    It is the best that an agent without any view of the jobs can do. Further parameters are those of
    :class:`OfActions`.

    Parameters
    ----------
    action : int
        The action, from 0.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [5, 5, 5], "nodes": [1] * 3}, machine_size=1)
    >>> Simulation(w, Pipeline(order=ConstantAction(Slots(3), 1), window=3)).run().start_time.tolist()
    [10, 0, 5]
    """

    def __init__(self, mask: Mask, action: int, base: Any = None, *, decline: bool = False) -> None:
        super().__init__(mask, base, decline=decline)
        self.action = action

    def _choice(self, actions: NDArray[np.int64]) -> int:
        return int(actions[max(int(np.searchsorted(actions, self.action, side="right")) - 1, 0)])


class ConstantSlot(Answering):
    """An agent that always picks the same slot of the window, or the last occupied one.

    It is the behaviour of an agent that has learned nothing about jobs.

    Parameters
    ----------
    slot : int
        Index of the slot, from 0, the job that has waited longest; slot 0 is equivalent to FCFS with EASY.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.policies.one_seat.two_level import TwoLevel
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [5, 5, 5], "nodes": [1] * 3}, machine_size=1)
    >>> Simulation(w, TwoLevel(ConstantSlot(slot=1))).run().start_time.tolist()
    [10, 0, 5]
    """

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

    def answer(self, decision: Decision) -> int:
        """Return the slot, or the last one."""
        return min(self.slot, len(decision.options) - 1)


class Watcher(Protocol):
    """Protocol of an object that observes the decisions of runs, those with a single option too."""

    def bind(self, system: System) -> Observe:
        """Return the function that observes the decisions of a run."""


class Watched(Answering):
    """Wrapper of the holder of a seat that shows its decisions to a watcher.

    Parameters
    ----------
    holder : Answering or Inspector
        The agent or heuristic that answers.
    watcher : Watcher
        Object that observes the decisions.
    """

    def __init__(self, holder: Any, watcher: Watcher) -> None:
        super().__init__(getattr(holder, "base", None), decline=getattr(holder, "decline", False))
        self.holder = holder
        self.watcher = watcher

    def __deepcopy__(self, memory: dict[int, Any]) -> Watched:
        copy = Watched(self.holder, self.watcher)
        copy.base = self.base
        return copy

    def reset(self, system: System) -> None:
        """Prepare for a run."""
        super().reset(system)
        self.holder.reset(system)
        self._observe = self.watcher.bind(system)

    def answer(self, decision: Decision) -> int:
        """Return the holder's choice."""
        if isinstance(self.holder, Answering):
            position = self.holder.answer(decision)
        else:
            assert decision.job is not None
            position = decision.options.index(self.holder.accept(decision.job, decision.system))
        self._observe(decision, position)
        return position


class Replay:
    """Replay of recorded choices, which reproduces the run bit for bit.

    A run is determined by its workload, cluster, policy, seed, options and choices; all must match the
    record.

    Parameters
    ----------
    choices : sequence of (str, int)
        Stage and position of each answer, as in ``Result.choices``.

    Raises
    ------
    UsageError
        When called: the decision differs from the recorded one, or the record has ended.

    Examples
    --------
    >>> from hpcsimkit.kernel.decision import External
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> policy = Pipeline(order=External())
    >>> first = play(Simulation(w, policy), RandomChoice(np.random.default_rng(1)))
    >>> play(Simulation(w, policy), Replay(first.choices)).hash == first.hash
    True
    """

    def __init__(self, choices: Sequence[tuple[str, int]]) -> None:
        self.choices = choices
        self._given = 0

    def __call__(self, decision: Decision) -> Any:
        """Return the next recorded choice."""
        if self._given == len(self.choices):
            raise UsageError(f"the record ends after {self._given} choices, at {decision!r}")
        stage, position = self.choices[self._given]
        self._given += 1
        if stage != decision.stage or not 0 <= position < len(decision.options):
            raise UsageError(
                f"choice {self._given} of the record is option {position} of the {stage} seat; "
                f"it does not fit {decision!r}"
            )
        return decision.options[position]
