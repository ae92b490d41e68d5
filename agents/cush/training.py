"""Base class of the trainers of CuSH's two selectors: epochs of simulations, averaging, checkpoints."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.checkpoints import Checkpoints
from hpcsimkit.agents.cush.encoder import JobKind, Sketch
from hpcsimkit.agents.cush.game import Fared, Game, Placed, States, Valid, play
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.selectors import JobSelector, PolicySelector
from hpcsimkit.agents.cush.workers import Workers
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.training.learning_curve import Report, curve_table
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.agents.training.trainer import CURVE, arrays_of, below, put_arrays
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import make_folder, write_bytes
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = ["AGENTS", "GamesSettings", "GamesTrainer", "check_settings", "check_unused"]

AGENTS = {"order": "job_selector.hpcsim", "placement": "policy_selector.hpcsim"}
"""Files of the two agents, by seat."""

SECONDS_BETWEEN_CHECKPOINTS = 120.0

WEIGHTS, FIRST_LOOK, JOB_SETS, GAMES = range(4)
"""Random streams, by purpose."""

Tell = Callable[[Report], None]
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

    counted: ClassVar[tuple[str, ...]] = ("epochs", "job_sets", "simulations", "average_every")
    rates: ClassVar[tuple[str, ...]] = ("learning_rate", "style_learning_rate")

    epochs: int = 5000
    job_sets: int = 10
    simulations: int = 24
    fresh: bool = False
    learning_rate: float = 1e-4
    style_learning_rate: float = 1e-3
    average_every: int = 5


def check_settings(problem: CushProblem, settings: GamesSettings, seed: int) -> None:
    """Check the ranges of a problem, settings and a seed.

    Raises
    ------
    UsageError
        A value is out of range.
    """
    problem.check()
    for name, value in asdict(settings).items():
        if name in settings.counted and (not isinstance(value, int) or value < 1):
            raise UsageError(f"CuSH: {name} needs a whole number of at least 1, found {value!r}")
        if name in settings.rates and not 0 < value < float("inf"):
            raise UsageError(f"CuSH: {name} needs a number above 0, found {value!r}")
    if seed < 0:
        raise UsageError(f"CuSH: seed needs a whole number of at least 0, found {seed!r}")


def check_unused(folder: Path, rank: int = 0) -> None:
    """Check that a folder has no checkpoint of a worker.

    Raises
    ------
    UsageError
        The folder has one.
    """
    if Checkpoints(folder, rank, {}).exist:
        raise UsageError(f"{folder}: there is a checkpoint already: go on with it (--resume), or elsewhere")


class GamesTrainer(ABC):
    """Base class of trainers of the job selector and the policy selector, from the same simulations.

    Subclasses implement the update of the job selector; the policy selector learns to reduce the penalties of
    placements.

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

    Attributes
    ----------
    epoch : int
        Number of finished epochs.
    curve : list of Report
        Report of each finished epoch.
    """

    algorithm: ClassVar[str]

    settings: GamesSettings

    def __init__(
        self, problem: CushProblem, settings: GamesSettings, *, seed: int = 0, workers: Workers | None = None
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.seed = seed
        self.workers = workers if workers is not None else Workers()

    # --- hooks for subclasses -----------------------------------------------------------------------------

    @abstractmethod
    def learn(self, games: Sequence[Game], states: States) -> Sequence[float]:
        """Update the job selector from finished simulations; return the mean return of each of them."""

    def check(self) -> None:
        """Check all parameters; raise a UsageError if one is out of range."""
        check_settings(self.problem, self.settings, self.seed)
        if self.workers.count > self.settings.simulations:
            simulations = self.settings.simulations
            raise UsageError(
                f"CuSH: {self.workers.count} workers need at least as many simulations of a job set, found "
                f"{simulations}"
            )

    def game(self, scenario: Scenario, breadth: Shares, rng: np.random.Generator) -> Game:
        """Begin a simulation; see :class:`~hpcsimkit.agents.cush.game.Game`."""
        return Game(scenario, self.problem, breadth, rng)

    def optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser of the job selector's weights: RMSprop, as published."""
        return torch.optim.RMSprop(network.parameters(), self.settings.learning_rate)

    def identity(self) -> dict[str, Any]:
        """Return the parameters that identify a training run, without its number of epochs."""
        settings = asdict(self.settings)
        settings.pop("epochs")
        return {
            "problem": asdict(self.problem),
            "settings": settings,
            "seed": self.seed,
            "workers": self.workers.count,
        }

    # --- the run -------------------------------------------------------------------------------------

    def train(
        self, folder: Path | None = None, *, resume: bool = False, tell: Tell = lambda report: None
    ) -> dict[str, Agent]:
        """Train to the end; return the agents by seat, ``order`` and ``placement``.

        Parameters
        ----------
        folder : Path, optional
            Folder for the agents, the learning curve, and the checkpoints, one per worker.
        resume : bool
            Whether to resume from the folder's checkpoints, if there are any.
        tell : callable
            Callback after every epoch, called with its report; its steps are epochs.

        Raises
        ------
        UsageError
            A parameter is out of range; the checkpoint belongs to another training run, exists without
            `resume`, or is not of the same epoch for all workers; another worker has died.
        Stopped
            Ctrl-C, or SIGTERM. With a folder, a checkpoint is written first.
        """
        self._check(folder, resume=resume)
        torch.set_num_threads(1)  # two are slower for networks of this size
        self._set_up()
        if resume and folder is not None:
            self._restore(folder)
        went_on_from = self.epoch
        self._run(folder, tell)
        self._agree()
        if folder is not None:
            self._write(folder, checkpoint=self.epoch > went_on_from)
            self.workers.least(self.epoch)  # a barrier: all workers have written their checkpoints
            self._checkpoints(folder).forget_before()
        return self.agents()

    def agents(self) -> dict[str, Agent]:
        """Return the current agents, by seat."""
        about = {
            "algorithm": self.algorithm,
            "problem": asdict(self.problem),
            "settings": asdict(self.settings),
            "seed": self.seed,
            "epochs": self.epoch,
            "workers": self.workers.count,
        }
        order = self.job_selector.network.acting()
        placement = self.policy_selector.acting()
        return {
            "order": Agent(self.problem.image, self.problem.mask, order, "order", about=about),
            "placement": Agent(JobKind(), Slots(2), placement, "placement", about=about),
        }

    def job_sets(self, epoch: int) -> list[Scenario]:
        """Return the job sets of an epoch, counted from 0."""
        rng = self._chance(JOB_SETS, epoch if self.settings.fresh else 0)
        return self.problem.scenarios(rng, self.settings.job_sets)

    def _check(self, folder: Path | None, *, resume: bool) -> None:
        """Check the parameters and the folder before the run."""
        self.check()
        if folder is not None and not resume:
            check_unused(folder, self.workers.rank)

    def _set_up(self) -> None:
        """Create everything from the seed; all workers begin with the same weights."""
        generator = torch.Generator().manual_seed(int(self._chance(WEIGHTS).integers(2**62)))
        settings, problem = self.settings, self.problem
        self.job_selector = JobSelector(problem, self.optimiser, generator)
        self.policy_selector = PolicySelector(len(CUSH_KINDS), settings.style_learning_rate, generator)
        self.epoch, self._agreed = 0, -1
        self.curve: list[Report] = []
        games = self._games(self._chance(FIRST_LOOK), each=1)
        anything = play(games, problem, _evenly, self._chance(FIRST_LOOK))
        self.job_selector.look(anything)

    def _chance(self, *what: int) -> np.random.Generator:
        """Return the random number generator of a stream, in the same state at every call."""
        return np.random.default_rng([self.seed, *what])

    def _run(self, folder: Path | None, tell: Tell) -> None:
        """Run the remaining epochs, with averaging over the workers and checkpoints in between."""
        began, at_begin = time.monotonic(), self.epoch
        self._written = began
        with Stopping() as stopping:
            while self.epoch < self.settings.epochs:
                if self.epoch % self.settings.average_every == 0:
                    self._agree()
                    self._pause(folder, stopping)
                measures = self._play_and_learn()
                self.epoch += 1
                rate = (self.epoch - at_begin) / (time.monotonic() - began)
                settings, nothing = self.settings, float("nan")
                played = self.epoch * settings.job_sets * settings.simulations
                report = Report(
                    self.epoch, settings.epochs, played, measures.pop("return"), rate, nothing, measures
                )
                self.curve.append(report)
                tell(report)

    def _agree(self) -> None:
        """Set the weights of all workers to their mean, unless that has just been done."""
        if self._agreed == self.epoch:  # the mean of equal numbers may differ in the last bits
            return
        self._agreed = self.epoch
        for network in (self.job_selector.network, self.policy_selector.network):
            self.workers.average(network)

    def _pause(self, folder: Path | None, stopping: Stopping) -> None:
        """Write checkpoints when they are due, and stop if any worker has been asked to."""
        late = time.monotonic() - self._written > SECONDS_BETWEEN_CHECKPOINTS
        late |= self.epoch == self.settings.average_every  # the first result is worth a checkpoint, too
        asked, late_ones = self.workers.total(np.array([float(stopping.asked), float(late)]))
        if folder is not None and (asked or late_ones):
            self._write(folder)
            self._written = time.monotonic()
        if asked:
            raise Stopped(number=stopping.number)

    # --- an epoch ------------------------------------------------------------------------------------

    def _games(self, rng: np.random.Generator, each: int) -> list[Game]:
        """Begin a number of simulations of each job set of the epoch."""
        breadth = self.policy_selector.probabilities()[:, 1]
        scenarios = self.job_sets(self.epoch)
        return [self.game(scenario, breadth, rng) for scenario in scenarios for _ in range(each)]

    def _play_and_learn(self) -> dict[str, float]:
        """Run an epoch's simulations, and update from them; return the measures to report."""
        rng = self._chance(GAMES, self.epoch, self.workers.rank)
        games = self._games(rng, self.workers.share(self.settings.simulations))
        states = play(games, self.problem, self.job_selector, rng)
        earned = self.learn(games, states)
        placed = [each for game in games for each in game.placed]
        self.policy_selector.learn(placed)
        return self._told(games, earned, placed)

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

    # --- files ---------------------------------------------------------------------------------------

    def _write(self, folder: Path, *, checkpoint: bool = True) -> None:
        """Write this worker's checkpoint, keeping the previous one; the first worker writes the agents."""
        make_folder(folder)
        if self.workers.rank == 0:
            for seat, agent in self.agents().items():
                agent.save(folder / AGENTS[seat])
            write_bytes(folder / CURVE, curve_table(self.curve))
        if not checkpoint:
            return
        tensors = {
            f"{seat}.{name}": values
            for seat, selector in self._selectors().items()
            for name, values in arrays_of(selector.network, selector.optimiser).items()
        }
        about = {"epoch": self.epoch, "curve": [each.words() for each in self.curve]}
        self._checkpoints(folder).write(tensors, about)

    def _restore(self, folder: Path) -> None:
        """Resume from the last epoch with a checkpoint of every worker, if there is one."""
        found = self._checkpoints(folder).read()
        latest = max(found, default=0)
        if not -self.workers.least(-latest):  # no worker has a checkpoint
            return
        epoch = self.workers.least(latest)
        everybody = self.workers.least(int(epoch in found))
        if not everybody:
            mine = f"checkpoints of epochs {', '.join(map(str, sorted(found)))}" if found else "none"
            raise UsageError(
                f"{folder}: all workers need a checkpoint of the same epoch, worker {self.workers.rank} has "
                f"{mine}: bring back what is missing, or begin elsewhere"
            )
        tensors, about = found[epoch]
        for seat, selector in self._selectors().items():
            put_arrays(below(seat, tensors), selector.network, selector.optimiser)
        self.epoch = self._agreed = epoch
        self.curve = [Report.of_words(words) for words in about["curve"]]

    def _selectors(self) -> dict[str, JobSelector | PolicySelector]:
        return {"order": self.job_selector, "placement": self.policy_selector}

    def _checkpoints(self, folder: Path) -> Checkpoints:
        """Return the checkpoints of this worker."""
        return Checkpoints(folder, self.workers.rank, json.loads(json.dumps(self.identity())))


def _evenly(sketch: Sketch, valid: Valid) -> Floats:
    """Return equal probabilities for all valid actions."""
    return (valid / valid.sum(axis=1, keepdims=True)).astype(np.float32)
