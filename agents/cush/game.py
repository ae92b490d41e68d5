"""Games: simulations of job sets that two selectors play, many side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.encoder import Sketch
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import Fared, Floats, fared, local_rewards
from hpcsimkit.allocation import Allocation
from hpcsimkit.clock import what_is_there_frozen
from hpcsimkit.cluster import Level
from hpcsimkit.decision import Decision, External
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.locality import BREADTH
from hpcsimkit.policies.styles import STYLES
from hpcsimkit.policy import Placement
from hpcsimkit.scenario import Scenario
from hpcsimkit.simulation import Simulation
from hpcsimkit.system import System

__all__ = ["DrawnStyle", "Fared", "Game", "Placed", "Selector", "States", "Valid", "play"]

Valid = NDArray[np.bool_]
Selector = Callable[[Sketch, Valid], NDArray[np.float32]]
"""Returns probabilities of actions for many states, those that are no options having none."""


class Placed(NamedTuple):
    """How a job was placed.

    Parameters
    ----------
    kind : int
        Of its work.
    breadth_first : int
        1 if so, 0 if depth-first.
    penalty : int
        By how much longer than at its best it took [s].
    """

    kind: int
    breadth_first: int
    penalty: int


class DrawnStyle(Placement):
    """Depth- or breadth-first, as chance has it.

    Parameters
    ----------
    breadth : array of float, shape (kinds,)
        How probable breadth-first is, for each kind of work.
    """

    def __init__(self, breadth: Floats) -> None:
        self.breadth = breadth

    def reset(self, system: System) -> None:
        """Take a stream of random numbers of the run."""
        self._random, self._breadth = system.random(), self.breadth.tolist()

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Draw a style, and return an allocation of it."""
        breadth_first = self._random.random() < self._breadth[job.kind]
        return STYLES[int(breadth_first)].place(job, level, system)


class Game:
    """One simulation, stopped wherever the job selector has a choice.

    Parameters
    ----------
    scenario : Scenario
        Job set, cluster and penalties.
    problem : CushProblem
        What the job selector sees and may do.
    breadth : array of float, shape (kinds,)
        How probable the policy selector's breadth-first is, for each kind of work.
    rng : numpy.random.Generator
        Where the run's randomness comes from: placements are drawn.

    Raises
    ------
    UsageError
        A job's kind of work is not known.

    Attributes
    ----------
    decision : Decision or None
        The job selector's; None when the run is over, and between :meth:`take` and :meth:`go_on`.
    taken : list of (int, int, int)
        Decisions taken: which step of the game, number of the state, action.
    """

    def __init__(
        self, scenario: Scenario, problem: CushProblem, breadth: Floats, rng: np.random.Generator
    ) -> None:
        _check_kinds(scenario, len(breadth))
        policy = problem.pipeline(External(decline=True, skip=True), DrawnStyle(breadth))
        own = replace(scenario, seed=int(rng.integers(2**62)))
        self.simulation: Simulation = own.simulation(policy, name="game")
        self.taken: list[tuple[int, int, int]] = []
        self.decision: Decision | None = self.simulation.next_decision()

    @property
    def system(self) -> System:
        """The state of the run."""
        return self.simulation.system

    @property
    def step(self) -> int:
        """How many decisions there were: a step for each second, and for each start."""
        system = self.system
        started = (len(system.events) + len(system.running.entries)) // 2  # the others are starts and ends
        return system.now + started

    def take(self, state: int, action: int, position: int) -> None:
        """Take the decision at hand; :meth:`go_on` goes on to the next."""
        self.taken.append((self.step, state, action))
        self.simulation.answer_position(position)
        self.decision = None

    def go_on(self) -> None:
        """Let time run to the next decision."""
        self.decision = self.simulation.next_decision()

    @property
    def placed(self) -> list[Placed]:
        """How jobs were placed, in the order in which they started, when it is over."""
        system = self.system
        jobs = [system.jobs[row] for row in system.events if row >= 0]
        return [
            Placed(
                job.kind, int(system.given(job.index).style == BREADTH),
                system.finishes[job.index] - system.starts[job.index] - job.run_time,
            )
            for job in jobs
        ]  # fmt: skip

    def rewards(self) -> Floats:
        """Return the local rewards of all decisions, when it is over."""
        return local_rewards(self.system)

    def fared(self) -> Fared:
        """Return how its jobs fared on average, when it is over."""
        return fared(self.system)


def _check_kinds(scenario: Scenario, kinds: int) -> None:
    """See that the policy selector can say something about every job."""
    found = scenario.workload.column("kind")
    unknown = ((found < 0) | (found >= kinds)).nonzero()[0]
    if len(unknown):
        workload, row = scenario.workload, unknown[0]
        raise UsageError(
            f"{workload.name}: job {workload.id[row]} needs a kind from 0 to {kinds - 1}, found {found[row]}"
        )


@dataclass
class States:
    """The different states that games came through: equal ones are kept, and thought about, once.

    Simulations of one job set have much in common, the more so the surer the selectors are. Probabilities are
    those of one selector, which does not change meanwhile.
    """

    busy: list[NDArray[np.uint8]] = field(default_factory=list)
    jobs: list[NDArray[np.float32]] = field(default_factory=list)
    valid: list[Valid] = field(default_factory=list)
    probabilities: list[NDArray[np.float32]] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, sketch: Sketch, valid: Valid) -> int:
        """Return the number of a state; a new one has no probabilities yet."""
        key = sketch.busy.tobytes() + sketch.jobs.tobytes() + valid.tobytes()
        number = self._numbers.setdefault(key, len(self.busy))
        if number == len(self.busy):
            self.busy.append(sketch.busy)
            self.jobs.append(sketch.jobs)
            self.valid.append(valid)
        return number

    def some(self, numbers: Sequence[int]) -> States:
        """Return some of them, by number; what was thought about them stays here."""
        return States(
            [self.busy[number] for number in numbers],
            [self.jobs[number] for number in numbers],
            [self.valid[number] for number in numbers],
        )

    def shuffled(self, rng: np.random.Generator) -> tuple[States, NDArray[np.int64]]:
        """Return the same states with their jobs in other slots, the last ones staying empty.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where orders are drawn from.

        Returns
        -------
        States
            What was thought about them stays here.
        array of int64, shape (states, actions)
            Which action each of theirs is here.
        """
        jobs, valid = np.array(self.jobs), np.array(self.valid)
        order = np.where(jobs[..., -1] > 0, rng.random(jobs.shape[:2]), 1.0).argsort(axis=1)
        actions = np.tile(np.arange(valid.shape[1]), (len(valid), 1))  # to start none is no slot's
        actions[:, : order.shape[1]] = order
        jobs = np.take_along_axis(jobs, order[..., None], axis=1)
        valid = np.take_along_axis(valid, actions, axis=1)
        return States(self.busy, list(jobs), list(valid)), actions

    def think(self, selector: Selector) -> None:
        """Ask the selector about the states that are new."""
        first = len(self.probabilities)
        if first < len(self.busy):
            sketch = Sketch(np.array(self.busy[first:]), np.array(self.jobs[first:]))
            self.probabilities.extend(selector(sketch, np.array(self.valid[first:])))


@what_is_there_frozen()
def play(games: Sequence[Game], problem: CushProblem, selector: Selector, rng: np.random.Generator) -> States:
    """Play games to their ends, side by side, actions being drawn; returns the states they came through.

    Parameters
    ----------
    games : sequence of Game
        New ones, at least one.
    problem : CushProblem
        What the job selector sees and may do.
    selector : callable
        The job selector.
    rng : numpy.random.Generator
        Where actions are drawn from.
    """
    states, mask = States(), problem.mask
    look = problem.image.sketcher([game.system for game in games])
    while going := [run for run, game in enumerate(games) if game.decision is not None]:
        valid = np.zeros((len(going), mask.actions), dtype=np.bool_)
        for run, options in zip(going, valid, strict=True):
            mask.write(_decision(games[run]), options)
        seen = zip(*look(going), valid, strict=True)
        numbers = [states.number(Sketch(busy, jobs), options) for busy, jobs, options in seen]
        states.think(selector)
        chances = np.array([states.probabilities[number] for number in numbers]).cumsum(axis=1)
        draws = rng.random(len(going)) * chances[:, -1]
        actions = (chances <= draws[:, None]).sum(axis=1).tolist()
        for run, number, action in zip(going, numbers, actions, strict=True):
            position = sum(states.valid[number][:action].tolist())  # options are in the order of actions
            games[run].take(number, action, position)
        for run in going:  # a loop of its own: the same work many times in a row is done faster
            games[run].go_on()
    return states


def _decision(game: Game) -> Decision:
    assert game.decision is not None
    return game.decision
