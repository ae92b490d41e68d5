"""Base class of the trainers of CuSH's two selectors: epochs of simulations, averaging over workers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.encoder import JobKind, Sketch
from hpcsimkit.agents.cush.game import Game, Placed, States, Valid, play
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import Fared
from hpcsimkit.agents.cush.selectors import JobSelector, PolicySelector
from hpcsimkit.agents.ranges import Count, Positive, check_ranges
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.trainer import LAST, Learned, Round, State, Trainer
from hpcsimkit.agents.training.workers import Workers
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.workloads.models.cush import CUSH_KINDS

AGENTS = {"order": "job_selector.hpcsim", "placement": "policy_selector.hpcsim"}
"""Files of the two agents, by seat."""

DECISIONS = 30
"""Approximate number of decisions with a choice of the job selector in a simulation."""

WEIGHTS, FIRST_LOOK, JOB_SETS, GAMES = range(4)
"""Random streams, by purpose."""

Floats = NDArray[np.float32]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class GamesSettings:
    """Settings shared by CuSH's trainers.

    Parameters
    ----------
    epochs : int
        Number of epochs, each with one update phase.
    job_sets : int
        Number of job sets in an epoch.
    simulations : int
        Number of simulations per job set in an epoch, shared among the workers: M.
    fresh : bool
        Whether each epoch draws new job sets instead of repeating the same ones.
    learning_rate, style_learning_rate : float
        Learning rates of the job selector and of the policy selector.
    average_every : int
        Number of epochs between averagings of the workers' weights: K.
    """

    epochs: Count = 5000
    job_sets: Count = 10
    simulations: Count = 24
    fresh: bool = False
    learning_rate: Positive = 1e-4
    style_learning_rate: Positive = 1e-3
    average_every: Count = 5

    @property
    def decisions(self) -> int:
        """Approximate number of decisions of the training, or of others that take as long."""
        return self.epochs * self._decisions_of_epoch

    def decided(self, report: Report) -> int:
        """Return how many of the decisions are over at a report."""
        return self.decisions - (self.epochs - report.steps) * self._decisions_of_epoch

    @property
    def _decisions_of_epoch(self) -> int:
        return self.job_sets * self.simulations * DECISIONS


class GamesTrainer(Trainer[dict[str, Agent]]):
    """Base class of trainers of the job selector and the policy selector, from the same simulations.

    A round is an epoch. Subclasses implement the update of the job selector; the policy selector learns to
    reduce the penalties of placements.

    Parameters
    ----------
    problem : CushProblem
        Training problem.
    settings : GamesSettings
        Training settings.
    seed : int
        Random seed. The random numbers of an epoch do not depend on interruptions of the run.
    workers : Workers
        Workers of the run, with the rank of this process.
    """

    unit = "epochs"

    problem: CushProblem
    settings: GamesSettings

    def __init__(
        self, problem: CushProblem, settings: GamesSettings, *, seed: int = 0, workers: Workers | None = None
    ) -> None:
        super().__init__(settings, seed=seed, workers=workers)
        self.problem = problem

    # --- hooks for subclasses -----------------------------------------------------------------------------

    @abstractmethod
    def learn(self, games: Sequence[Game], states: States) -> Sequence[float]:
        """Update the job selector from finished simulations; return the mean return of each of them."""

    def check(self) -> None:
        """Check all parameters; raise a UsageError if one is out of range."""
        super().check()
        check_ranges(self.problem, self.algorithm)
        if self.workers.count > self.settings.simulations:
            raise UsageError(
                f"{self.algorithm}: {self.workers.count} workers need at least as many simulations of a job "
                f"set, found {self.settings.simulations}"
            )

    def game(self, scenario: Scenario, breadth: Shares, rng: np.random.Generator) -> Game:
        """Begin a simulation; see :class:`~hpcsimkit.agents.cush.game.Game`."""
        return Game(scenario, self.problem, breadth, rng)

    def optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser of the job selector's weights: RMSprop, as published."""
        return torch.optim.RMSprop(network.parameters(), self.settings.learning_rate)

    # --- implementation of a trainer -----------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of epochs."""
        return self.settings.epochs

    def identity(self) -> dict[str, Any]:
        """Return the parameters that identify a training run, without its number of epochs."""
        settings = asdict(self.settings)
        settings.pop("epochs")
        return {"problem": asdict(self.problem), "settings": settings, "workers": self.workers.count}

    def begin_run(self) -> None:
        """Create everything from the seed; all workers begin with the same weights."""
        generator = torch.Generator().manual_seed(int(self._chance(WEIGHTS).integers(2**62)))
        settings, problem = self.settings, self.problem
        self.job_selector = JobSelector(problem, self.optimiser, generator)
        self.policy_selector = PolicySelector(len(CUSH_KINDS), settings.style_learning_rate, generator)
        games = self._games(self._chance(FIRST_LOOK), each=1)
        anything = play(games, problem, _evenly, self._chance(FIRST_LOOK))
        self.job_selector.look(anything)
        self._agreed = -1

    def agents(self) -> dict[str, Agent]:
        """Return the current agents, by seat: ``order`` and ``placement``."""
        about = {
            "algorithm": self.algorithm,
            "problem": asdict(self.problem),
            "settings": asdict(self.settings),
            "seed": self.seed,
            "epochs": self.rounds,
            "workers": self.workers.count,
        }
        order = self.job_selector.network.acting()
        placement = self.policy_selector.acting()
        return {
            "order": Agent(self.problem.image, self.problem.mask, order, "order", about=about),
            "placement": Agent(JobKind(), Slots(2), placement, "placement", about=about),
        }

    def outcome(self, agents: dict[str, Agent]) -> dict[str, Agent]:
        """Return the agents."""
        return agents

    def learned(self) -> Learned:
        """Return the networks of the two selectors, and their optimisers."""
        selectors: dict[str, JobSelector | PolicySelector] = {
            "order": self.job_selector,
            "placement": self.policy_selector,
        }
        return {seat: (each.network, each.optimiser) for seat, each in selectors.items()}

    def file_of(self, seat: str, name: str) -> str:
        """Return the file name of a selector."""
        return AGENTS[seat] if name == LAST else super().file_of(seat, name)

    def restore(self, state: State) -> None:
        """Note that the workers have agreed on the restored weights."""
        self._agreed = self.rounds

    def settle(self) -> bool:
        """Set the weights of all workers to their mean, every few epochs and at the end."""
        if self.rounds % self.settings.average_every and self.rounds < self.settings.epochs:
            return False
        self._agree()
        return True

    def _agree(self) -> None:
        if self._agreed == self.rounds:  # the mean of equal numbers may differ in the last bits
            return
        self._agreed = self.rounds
        for network in (self.job_selector.network, self.policy_selector.network):
            self.workers.average(network)

    def _chance(self, *what: int) -> np.random.Generator:
        """Return the random number generator of a stream, in the same state at every call."""
        return np.random.default_rng([self.seed, *what])

    # --- an epoch ------------------------------------------------------------------------------------

    def round(self) -> Round:
        """Run an epoch's simulations, and update from them."""
        if not self.rounds:
            self._agree()
        settings, rng = self.settings, self._chance(GAMES, self.rounds, self.workers.rank)
        games = self._games(rng, self.workers.share(settings.simulations))
        states = play(games, self.problem, self.job_selector, rng)
        earned = self.learn(games, states)
        placed = [each for game in games for each in game.placed]
        self.policy_selector.learn(placed)
        measures = self._told(games, earned, placed)
        self.steps += 1
        return Round([measures.pop("return")], measures, settings.job_sets * settings.simulations)

    def job_sets(self, epoch: int) -> list[Scenario]:
        """Return the job sets of an epoch, counted from 0."""
        rng = self._chance(JOB_SETS, epoch if self.settings.fresh else 0)
        return self.problem.scenarios(rng, self.settings.job_sets)

    def _games(self, rng: np.random.Generator, each: int) -> list[Game]:
        """Begin a number of simulations of each job set of the epoch."""
        breadth = self.policy_selector.probabilities()[:, 1]
        scenarios = self.job_sets(self.rounds)
        return [self.game(scenario, breadth, rng) for scenario in scenarios for _ in range(each)]

    def _told(
        self, games: Sequence[Game], earned: Sequence[float], placed: Sequence[Placed]
    ) -> dict[str, float]:
        """Return means over all simulations: job results, return, share of breadth-first placements."""
        rows = [[*game.fared(), each, 1.0] for game, each in zip(games, earned, strict=True)]
        *sums, count = self.workers.total(np.sum(rows, axis=0)).tolist()
        told = {name: each / count for name, each in zip((*Fared._fields, "return"), sums, strict=True)}
        for kind, name in enumerate(CUSH_KINDS):
            styles = [each.breadth_first for each in placed if each.kind == kind]
            breadth, jobs = self.workers.total(np.array([sum(styles), len(styles)], dtype=float)).tolist()
            told[f"{name}_breadth_first"] = breadth / max(jobs, 1)
        return told


def _evenly(sketch: Sketch, valid: Valid) -> Floats:
    """Return equal probabilities for all valid actions."""
    return (valid / valid.sum(axis=1, keepdims=True)).astype(np.float32)
