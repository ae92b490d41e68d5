"""The life cycle of every training run: set-up, rounds, reports, validation, checkpoints, agents.

A run can be interrupted at any time. Its whole state is written to one file per worker after the first round,
every few minutes, and at an interruption; a resumed run gives the same result, bit for bit, as one without an
interruption (on the same processor).
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.ranges import check_ranges
from hpcsimkit.agents.training.callbacks import Callback, call_all
from hpcsimkit.agents.training.checkpoints import (
    CHECKPOINT,
    Checkpoints,
    Tensors,
    arrays_of,
    below,
    put_arrays,
)
from hpcsimkit.agents.training.global_random_state import one_thread
from hpcsimkit.agents.training.learning_curve import Report, TensorBoard, curve_table
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.agents.training.workers import Workers
from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import make_folder, write_bytes
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.io.progress_bar import counting
from hpcsimkit.jobs.views import views

__all__ = [
    "BEST",
    "CHECKPOINT",
    "CURVE",
    "LAST",
    "Learned",
    "Outcome",
    "Round",
    "State",
    "Trainer",
    "Validated",
]

CURVE = "curve.csv"
TENSORBOARD = "tensorboard"
BEST, LAST = "best.hpcsim", "last.hpcsim"
SECONDS_BETWEEN_CHECKPOINTS = 120.0

Outcome = TypeVar("Outcome")
"""Result of a training: one agent, or several by seat."""

Learned = Mapping[str, tuple[torch.nn.Module, torch.optim.Optimizer]]
"""Networks in training and their optimisers, by name."""


class Round(NamedTuple):
    """Result of a round: a rollout and an update.

    Parameters
    ----------
    sums : list of float
        Returns of the episodes that ended.
    measures : dict of str to float
        Measures of the algorithm.
    episodes : int, optional
        Number of episodes that ended, if `sums` has means over several of them.
    """

    sums: list[float]
    measures: dict[str, float]
    episodes: int | None = None


class Validated(NamedTuple):
    """Outcome of a validation.

    Parameters
    ----------
    score : float
        Score, larger is better.
    measures : mapping of str to float
        Further measures, columns of the learning curve.
    """

    score: float
    measures: Mapping[str, float]


class Counted(Callback):
    """Callback that shows the steps so far in a progress bar."""

    def __init__(self, count: Callable[[float], None]) -> None:
        self.count = count

    def on_update(self, report: Report) -> None:
        """Show the steps."""
        self.count(report.steps)


class State(NamedTuple):
    """State of an algorithm, besides its networks.

    Parameters
    ----------
    tensors : mapping of str to array
        Tensors that float32 represents exactly.
    about : mapping
        Further state as JSON data.
    """

    tensors: Tensors
    about: Mapping[str, Any]


class Trainer(ABC, Generic[Outcome]):
    """A training run, of which subclasses implement the algorithm.

    Algorithms for one seat of an environment derive from
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Parameters
    ----------
    settings : dataclass
        Training settings.
    seed : int
        Random seed of the run.
    validate : callable, optional
        Function of the outcome that returns a score, larger is better, or a :class:`Validated`; the best
        outcome is kept.
    validate_every : int
        Number of rounds between validations.
    workers : Workers, optional
        Workers of the run, with the rank of this process; by default this process alone.

    Attributes
    ----------
    steps : int
        Number of steps so far, counted by :meth:`round`.
    rounds : int
        Number of finished rounds.
    curve : list of Report
        Report of each finished round.
    """

    algorithm: str = ""
    """Name in files and plots."""

    unit: ClassVar[str] = "steps"
    """Unit of :attr:`steps`, for progress bars."""

    learns_policy: ClassVar[bool] = True
    """Whether the scores of its agents are logits of a policy, and not values of actions."""

    settings: Any

    def __init__(
        self,
        settings: Any,
        *,
        seed: int = 0,
        validate: Callable[[Outcome], float | Validated] | None = None,
        validate_every: int = 10,
        workers: Workers | None = None,
    ) -> None:
        self.settings = settings
        self.seed = seed
        self.validate = validate
        self.validate_every = validate_every
        self.workers = workers if workers is not None else Workers()

    @property
    def simulators(self) -> Counter[str]:
        """Number of episodes begun on each simulator, ``"simpy"`` or ``"compiled"``, as far as known."""
        return Counter()

    # --- hooks for subclasses ------------------------------------------------------------------------

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of steps in the whole run."""

    @abstractmethod
    def begin_run(self) -> None:
        """Create networks, optimisers and all else from the seed."""

    @abstractmethod
    def round(self) -> Round:
        """Run a rollout, update from it, and add to :attr:`steps`."""

    @abstractmethod
    def agents(self) -> dict[str, Agent]:
        """Return the current agents, by seat."""

    @abstractmethod
    def outcome(self, agents: dict[str, Agent]) -> Outcome:
        """Return agents in the form in which :meth:`train` returns them."""

    @abstractmethod
    def learned(self) -> Learned:
        """Return the networks in training and their optimisers, by name."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the parameters that a checkpoint must match to be resumed from."""

    def prepare(self, folder: Path | None, *, resume: bool, tell: Callable[[Report], None]) -> None:
        """Train an agent that the run needs first, for example; parameters are those of :meth:`train`."""

    def check(self) -> None:
        """Check all parameters; raise a UsageError if one is out of range."""
        check_ranges(self.settings, self.algorithm)
        if self.seed < 0:
            raise UsageError(f"{self.algorithm}: seed needs a whole number of at least 0, found {self.seed}")

    def state(self) -> State:
        """Return any further state that a resumed run needs."""
        return State({}, {})

    def restore(self, state: State) -> None:
        """Restore a state from :meth:`state`; everything else is restored already."""

    def surroundings(self) -> dict[str, Any]:
        """Return the state of episodes and random number generators, as JSON data."""
        return {}

    def restore_surroundings(self, about: Mapping[str, Any]) -> None:
        """Restore the state from :meth:`surroundings`."""

    def settle(self) -> bool:
        """Synchronise the workers after a round; return whether checkpoints of this round may be written."""
        return True

    def keep(self, folder: Path) -> None:
        """Write files after a round; none by default."""

    def file_of(self, seat: str, name: str) -> str:
        """Return the file name of an agent, given its seat and ``last.hpcsim`` or ``best.hpcsim``."""
        return f"{seat}-{name}"

    def loaded(self, seat: str, file: Path) -> Agent:
        """Return the agent of a seat from its file."""
        return Agent.load(file)

    # --- the run -------------------------------------------------------------------------------------

    @one_thread()
    def train(
        self,
        folder: Path | None = None,
        *,
        resume: bool = False,
        tensorboard: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
        callbacks: Sequence[Callback] = (),
        progress: bool = False,
    ) -> Outcome:
        """Train to the end and return the best outcome (without a validation, the last).

        Parameters
        ----------
        folder : Path, optional
            Folder for the learning curve, checkpoints and agents.
        resume : bool
            Whether to resume from the folder's checkpoint, if there is one.
        tensorboard : bool
            Whether to write the curve for TensorBoard too, into a subfolder of that name.
        tell : callable
            Function called with the report of every round, to show progress; also by :meth:`prepare`.
        callbacks : sequence of Callback
            Callbacks after every round and every validation of this run.
        progress : bool
            Whether to show a progress bar. Default: False.

        Raises
        ------
        UsageError
            A setting is out of range; a checkpoint belongs to another training run, exists without `resume`,
            or is not of the same round for all workers; another worker has died; a value is not finite; or
            TensorBoard has no folder.
        WorkloadError
            The folder cannot be written; the last checkpoint is unchanged.
        Stopped
            Ctrl-C, or SIGTERM. With a folder, the current round is finished and a checkpoint written first,
            so that nothing is lost; a second signal interrupts at once.
        """
        if tensorboard and folder is None:
            raise UsageError("TensorBoard needs a folder of the run to write to")
        self.prepare(folder, resume=resume, tell=tell)
        self.check()
        if folder is not None and not resume and self._checkpoints(folder).exist:
            raise UsageError(f"{folder}: there is a checkpoint already: resume it, or choose another folder")
        self._set_up()
        if folder is not None and resume:
            self._restore(folder)
        resumed_at = self.rounds
        is_shown = tensorboard and folder is not None and not self.workers.rank
        board = TensorBoard(folder / TENSORBOARD, self.steps) if is_shown and folder is not None else None
        try:
            with counting(self.total, self.unit, shown=progress) as count:
                self._run(folder, board, tell, [Counted(count), *callbacks] if progress else callbacks)
        finally:
            if board is not None:
                board.close()
        self.settle()
        if folder is not None:
            self._write(folder, checkpoint=self.rounds > resumed_at or not self.rounds)
            self.workers.least(self.rounds)  # a barrier: all workers have written their checkpoints
            self._checkpoints(folder).forget_before()
            self.workers.least(self.rounds)  # a barrier: the folder is complete, and may be moved
        return self.outcome(self._best[1] if self._best is not None else self.agents())

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean return of the episodes of each round over the steps, and return the axes.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default those of a new figure.
        """
        return views().plot_training(self, ax)

    def __repr__(self) -> str:
        done = self.curve[-1].steps if getattr(self, "curve", None) else 0
        return f"<{type(self).__name__}: {done:,} of {self.total:,} {self.unit}>"

    def _repr_html_(self) -> str:
        """Return the settings, the state and the learning curve, for notebooks."""
        return str(views().training_html(self))

    def _run(
        self,
        folder: Path | None,
        board: TensorBoard | None,
        tell: Callable[[Report], None],
        callbacks: Sequence[Callback],
    ) -> None:
        """Run the remaining rounds; with a folder, an interruption takes effect at the end of a round."""
        self._written = float("-inf")  # the first round is worth a checkpoint
        with nullcontext(Stopping()) if folder is None else Stopping() as stopping:
            for report in self._reports():
                if board is not None:
                    board.add(report)
                if folder is not None:
                    self.keep(folder)
                tell(report)
                call_all(callbacks, report)
                if self.settle():
                    self._pause(folder, stopping)

    def _pause(self, folder: Path | None, stopping: Stopping) -> None:
        """Write checkpoints when they are due, and stop if any worker has been asked to."""
        late = time.monotonic() - self._written > SECONDS_BETWEEN_CHECKPOINTS
        asked, late_ones = self.workers.total(np.array([float(stopping.asked), float(late)]))
        if folder is not None and (asked or late_ones):
            self._write(folder)
            self._written = time.monotonic()
        if asked:
            raise Stopped(number=stopping.number)

    def _set_up(self) -> None:
        """Create everything from the seed."""
        self.steps = self.rounds = self._ended = 0
        self.curve: list[Report] = []
        self._best: tuple[float, dict[str, Agent]] | None = None
        self.begin_run()

    def _reports(self) -> Iterator[Report]:
        """Run the remaining rounds, and report after each."""
        began, at_begin = time.monotonic(), self.steps
        while self.steps < self.total:
            sums, measures, episodes = self.round()
            self.rounds += 1
            self._ended += len(sums) if episodes is None else episodes
            rate = (self.steps - at_begin) / (time.monotonic() - began)
            reward = float(np.mean(sums)) if sums else float("nan")
            score, further = self._validated()
            measures = {**measures, **further}
            report = Report(self.steps, self.total, self._ended, reward, rate, score, measures)
            self.curve.append(report)
            yield report

    def _validated(self) -> Validated:
        """Run a validation if it is due, and keep the best agents so far."""
        is_over = self.steps >= self.total
        if self.validate is None or not (is_over or self.rounds % self.validate_every == 0):
            return Validated(float("nan"), {})
        agents = self.agents()
        found = self.validate(self.outcome(agents))
        found = found if isinstance(found, Validated) else Validated(float(found), {})
        if self._best is None or found.score > self._best[0]:
            for agent in agents.values():
                agent.about = {**(agent.about or {}), "validation": found.score}
            self._best = (found.score, agents)
        return found

    # --- files ---------------------------------------------------------------------------------------

    def _write(self, folder: Path, *, checkpoint: bool = True) -> None:
        """Write each file completely or not at all; this worker's checkpoint last.

        The first worker writes agents and learning curve.
        """
        make_folder(folder)
        if self.workers.rank == 0:
            best = {} if self._best is None else self._best[1]
            for name, agents in ((LAST, self.agents()), (BEST, best)):
                for seat, agent in agents.items():
                    agent.save(folder / self.file_of(seat, name))
            write_bytes(folder / CURVE, curve_table(self.curve))
        if not checkpoint:
            return
        own = self.state()
        about = {
            "steps": self.steps,
            "rounds": self.rounds,
            "ended": self._ended,
            "surroundings": self.surroundings(),
            "curve": [report.words() for report in self.curve],
            "best": None if self._best is None else self._best[0],
            "own": dict(own.about),
        }
        tensors = {f"own.{name}": values for name, values in own.tensors.items()}
        for name, parts in self.learned().items():
            tensors |= {f"{name}.{key}": values for key, values in arrays_of(*parts).items()}
        self._checkpoints(folder).write(tensors, about)

    def _restore(self, folder: Path) -> None:
        """Resume from the last round with a checkpoint of every worker, if there is one."""
        found, workers = self._checkpoints(folder).read(), self.workers
        latest = max(found, default=-1)
        if -workers.least(-latest) < 0:  # no worker has a checkpoint
            return
        rounds = workers.least(latest)
        if not workers.least(int(rounds in found)):
            mine = f"checkpoints of rounds {', '.join(map(str, sorted(found)))}" if found else "none"
            raise UsageError(
                f"{folder}: all workers need a checkpoint of the same round, worker {workers.rank} has "
                f"{mine}: bring back what is missing, or begin elsewhere"
            )
        tensors, about = found[rounds]
        for name, parts in self.learned().items():
            put_arrays(below(name, tensors), *parts)
        self.steps, self.rounds, self._ended = about["steps"], rounds, about["ended"]
        self.restore_surroundings(about["surroundings"])
        self.curve = [Report.of_words(words) for words in about["curve"]]
        if about["best"] is not None:
            best = {seat: self.loaded(seat, folder / self.file_of(seat, BEST)) for seat in self.agents()}
            self._best = (about["best"], best)
        self.restore(State(below("own", tensors), about["own"]))

    def _checkpoints(self, folder: Path) -> Checkpoints:
        """Return the checkpoints of this worker."""
        identity = {"algorithm": self.algorithm, "seed": self.seed, **self.identity()}
        plain = json.loads(json.dumps(identity))
        return Checkpoints(folder, plain, rank=self.workers.rank, count=self.workers.count)

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings as JSON data, with lists for tuples."""
        return dict(json.loads(json.dumps(asdict(self.settings))))
