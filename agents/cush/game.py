"""Parallel simulations of job sets, as episodes of the two selectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.encoder import Sketch
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import Fared, Floats, fared, local_rewards
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.garbage import gc_frozen
from hpcsimkit.kernel.locality import BREADTH
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.styles import STYLES

Valid = NDArray[np.bool_]
Selector = Callable[[Sketch, Valid], NDArray[np.float32]]
"""A function that returns action probabilities for a batch of states; masked actions have probability 0."""


class Placed(NamedTuple):
    """Placement of a job.

    Parameters
    ----------
    kind : int
        Job type.
    breadth_first : int
        Placement mode: 1 for breadth-first (spread), 0 for depth-first (pack).
    penalty : int
        Excess of the run time over that of the best placement [s].
    """

    kind: int
    breadth_first: int
    penalty: int


class DrawnStyle(Placement):
    """Depth-first (pack) or breadth-first (spread) placement, at random.

    Parameters
    ----------
    breadth : array of float, shape (kinds,)
        Probability of breadth-first placement, for each job type.
    """

    draws = True

    def __init__(self, breadth: Floats) -> None:
        self.breadth = breadth

    def reset(self, system: System) -> None:
        """Get a random number generator from the run."""
        self._random, self._breadth = system.random(), self.breadth.tolist()

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Draw a placement mode, and return an allocation in it."""
        breadth_first = self._random.random() < self._breadth[job.kind]
        return STYLES[int(breadth_first)].place(job, level, system)


class Game:
    """One simulation, which stops at each decision of the job selector.

    Parameters
    ----------
    scenario : Scenario
        Job set, cluster and penalties.
    problem : CushProblem
        Encoder and mask of the job selector.
    breadth : array of float, shape (kinds,)
        Policy selector's probability of breadth-first placement, for each job type.
    rng : numpy.random.Generator
        Random number generator of the run, for placements.

    Raises
    ------
    UsageError
        The type of a job is unknown.

    Attributes
    ----------
    system : System
        State of the run.
    decision : Decision or None
        Open decision of the job selector; None when the run is over.
    taken : list of (int, int, int)
        Decisions taken: step of the simulation, number of the state, action.
    """

    def __init__(
        self, scenario: Scenario, problem: CushProblem, breadth: Floats, rng: np.random.Generator
    ) -> None:
        _check_kinds(scenario, len(breadth))
        policy = problem.pipeline(External(decline=True, skip=True), DrawnStyle(breadth))
        own = scenario.changed(seed=int(rng.integers(2**62)))
        self.simulation: Simulation = own.simulation(policy, name="game")
        self.taken: list[tuple[int, int, int]] = []
        self.decision: Decision | None = self.simulation.next_decision()
        self.system: System = self.simulation.system

    @property
    def step(self) -> int:
        """Number of decisions so far: one per second, and one per start."""
        system = self.system
        started = (len(system.events) + len(system.running.entries)) // 2  # the others are starts and ends
        return system.now + started

    def take(self, state: int, action: int, position: int) -> None:
        """Answer the open decision, and run the simulation to the next."""
        self.taken.append((self.step, state, action))
        self.decision = self.simulation.proceed(position)

    @property
    def placed(self) -> list[Placed]:
        """Placements of the jobs in order of their starts, after the end of the run."""
        system = self.system
        jobs = [system.jobs[row] for row in system.events if row >= 0]
        return [
            Placed(
                job.kind,
                int(system.given(job.index).style == BREADTH),
                system.ledger.end_of(job.index) - system.ledger.start_of(job.index) - job.run_time,
            )
            for job in jobs
        ]

    def rewards(self) -> Floats:
        """Return the local rewards of all decisions, after the end of the run."""
        return local_rewards(self.system)

    def fared(self) -> Fared:
        """Return the means over the jobs, after the end of the run."""
        return fared(self.system)


def _check_kinds(scenario: Scenario, kinds: int) -> None:
    """Check that the policy selector knows the type of every job."""
    found = scenario.workload.column("kind")
    unknown = ((found < 0) | (found >= kinds)).nonzero()[0]
    if len(unknown):
        workload, row = scenario.workload, unknown[0]
        raise UsageError(
            f"{workload.name}: job {workload.id[row]} needs a kind from 0 to {kinds - 1}, found {found[row]}"
        )


@dataclass
class States:
    """The distinct states of a set of simulations, each stored and evaluated once.

    Simulations of one job set have many states in common, the more so as selectors become deterministic. The
    probabilities are those of one fixed selector.
    """

    busy: list[NDArray[np.uint8]] = field(default_factory=list)
    jobs: list[NDArray[np.float32]] = field(default_factory=list)
    valid: list[Valid] = field(default_factory=list)
    probabilities: list[NDArray[np.float32]] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, sketch: Sketch, valid: Valid) -> int:
        """Return the number of a state; a new state has no probabilities yet."""
        key = sketch.busy.tobytes() + sketch.jobs.tobytes() + valid.tobytes()
        number = self._numbers.setdefault(key, len(self.busy))
        if number == len(self.busy):
            self.busy.append(sketch.busy)
            self.jobs.append(sketch.jobs)
            self.valid.append(valid)
        return number

    def some(self, numbers: Sequence[int]) -> States:
        """Return the states of the given numbers, without their probabilities."""
        return States(
            [self.busy[number] for number in numbers],
            [self.jobs[number] for number in numbers],
            [self.valid[number] for number in numbers],
        )

    def shuffled(self, rng: np.random.Generator) -> tuple[States, NDArray[np.int64]]:
        """Return the same states with their jobs permuted among the slots; empty slots stay last.

        The permuted states have no probabilities; with them is the original action for each of their actions,
        shape (states, actions).
        """
        jobs, valid = np.array(self.jobs), np.array(self.valid)
        order = np.where(jobs[..., -1] > 0, rng.random(jobs.shape[:2]), 1.0).argsort(axis=1)
        actions = np.tile(np.arange(valid.shape[1]), (len(valid), 1))  # the last one starts no job
        actions[:, : order.shape[1]] = order
        jobs = np.take_along_axis(jobs, order[..., None], axis=1)
        valid = np.take_along_axis(valid, actions, axis=1)
        return States(self.busy, list(jobs), list(valid)), actions

    def think(self, selector: Selector) -> None:
        """Evaluate the selector on the new states."""
        first = len(self.probabilities)
        if first < len(self.busy):
            sketch = Sketch(np.array(self.busy[first:]), np.array(self.jobs[first:]))
            self.probabilities.extend(selector(sketch, np.array(self.valid[first:])))


@gc_frozen()
def play(games: Sequence[Game], problem: CushProblem, selector: Selector, rng: np.random.Generator) -> States:
    """Run simulations in parallel to their ends, with sampled actions; return their states."""
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
        actions = (chances <= draws[:, None]).sum(axis=1)
        before = np.arange(mask.actions) < actions[:, None]
        positions = (valid & before).sum(axis=1)  # options are in the order of actions
        answers = zip(going, numbers, actions.tolist(), positions.tolist(), strict=True)
        for run, number, action, position in answers:
            games[run].take(number, action, position)
    return states


def _decision(game: Game) -> Decision:
    assert game.decision is not None
    return game.decision
