"""What every training run is: rounds, reports, validation, and files to go on from.

A run can be stopped at any time: every few minutes, and when it is interrupted, its whole state is written to
one file, and what goes on from there comes out as if it had never been stopped, bit for bit (on the same
processor). Chance comes from generators that are written too; episodes are restored by playing their actions
again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.learning_curve import Report, TensorBoard, curve_table
from hpcsimkit.agents.model_file import read_model, write_model
from hpcsimkit.agents.networks import Network
from hpcsimkit.agents.stopping import Stopping
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.files import write_bytes
from hpcsimkit.vector_environment import SchedulingVecEnv

__all__ = ["Round", "RunSettings", "State", "Trainer", "arrays_of", "below", "put_arrays"]

CHECKPOINT = "checkpoint.safetensors"
CURVE = "curve.csv"
TENSORBOARD = "tensorboard"
BEST, LAST = "best.hpcsim", "last.hpcsim"
SECONDS_BETWEEN_CHECKPOINTS = 120.0

Tensors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class RunSettings:
    """What every run is set by.

    Parameters
    ----------
    steps : int
        Decisions to learn from, in all.
    episodes : int
        Played side by side.
    """

    steps: int = 100_000
    episodes: int = 16


class Round(NamedTuple):
    """What came of playing for a while, and learning from it.

    Parameters
    ----------
    sums : list of float
        Of rewards, for each episode that ended.
    measures : dict of str to float
        What the algorithm has to say of it.
    """

    sums: list[float]
    measures: dict[str, float]


class State(NamedTuple):
    """What a trainer needs to go on, beside networks and episodes.

    Parameters
    ----------
    tensors : mapping of str to array
        Of numbers that float32 holds exactly.
    about : mapping
        What JSON can say.
    """

    tensors: Tensors
    about: Mapping[str, Any]


class Trainer:
    """Trains an agent for the seat of an environment.

    Subclasses say how: :meth:`build`, :meth:`round`, :meth:`network`, and :meth:`state` and :meth:`restore`
    for what they know beside ``networks`` and ``optimiser``.

    Parameters
    ----------
    env : SchedulingEnv
        What is to be learned.
    settings : RunSettings
        How.
    seed : int
        Where all chance comes from: first weights, episodes, actions, the order of learning.
    validate : callable, optional
        ``validate(agent)`` returns a number, larger is better; the best agent is kept.
    validate_every : int
        Rounds between validations.

    Attributes
    ----------
    vector : SchedulingVecEnv
        The episodes that are played.
    observations : array of float32, shape (episodes, ...)
        What they show now.
    rng : numpy.random.Generator
        Where chance comes from, other than that of the episodes.
    networks : torch.nn.Module
        What learns.
    optimiser : torch.optim.Optimizer
        How its weights are moved.
    steps : int
        Decisions so far; :meth:`round` counts them.
    """

    algorithm = ""
    """What files and pictures call it."""

    networks: torch.nn.Module
    optimiser: torch.optim.Optimizer

    def __init__(
        self, env: SchedulingEnv, settings: RunSettings, *, seed: int = 0,
        validate: Callable[[Agent], float] | None = None, validate_every: int = 10,
    ) -> None:  # fmt: skip
        self.env = env
        self.settings = settings
        self.seed = seed
        self.validate = validate
        self.validate_every = validate_every

    # --- what a subclass says ------------------------------------------------------------------------

    def build(self, seed: int) -> None:
        """Make networks and optimiser; first weights come from the seed."""
        raise NotImplementedError(f"{type(self).__name__} needs a method build(seed)")

    def round(self) -> Round:
        """Play for a while from where the episodes are, and learn from it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method round()")

    def network(self) -> Network:
        """Return what has been learned so far, as a network that acts: a copy."""
        raise NotImplementedError(f"{type(self).__name__} needs a method network()")

    def state(self) -> State:
        """Return what else must be known to go on bit for bit."""
        return State({}, {})

    def restore(self, state: State) -> None:
        """Go on from what :meth:`state` returned; networks, optimiser and episodes are there already."""

    def keep(self, folder: Path) -> None:
        """Write what is to be kept of a round that is over; nothing by default."""

    # --- the run -------------------------------------------------------------------------------------

    def train(
        self, folder: Path | None = None, *, resume: bool = False, tensorboard: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
    ) -> Agent:  # fmt: skip
        """Train to the end and return the best agent (without a validation, the last).

        Parameters
        ----------
        folder : Path, optional
            Where the learning curve, checkpoints and agents are written.
        resume : bool
            Go on from the folder's checkpoint, if there is one.
        tensorboard : bool
            Write the curve for TensorBoard too, into a folder of that name inside.
        tell : callable
            Is told how it goes, after every round.

        Raises
        ------
        UsageError
            The checkpoint is of another training, something is not finite, or TensorBoard has no folder.
        WorkloadError
            The folder cannot be written; the last checkpoint is as it was.
        KeyboardInterrupt
            Ctrl-C, or SIGTERM. With a folder, the round at hand is played to its end and a checkpoint
            written first, so that nothing is lost; who cannot wait interrupts again.
        """
        if tensorboard and folder is None:
            raise UsageError("TensorBoard needs a folder of the run to write to")
        torch.set_num_threads(1)  # two are slower for networks of this size
        self._set_up()
        if resume and folder is not None and (folder / CHECKPOINT).exists():
            self._restore(folder / CHECKPOINT)
        board = TensorBoard(folder / TENSORBOARD, self.steps) if tensorboard and folder is not None else None
        try:
            self._run(folder, board, tell)
        finally:
            if board is not None:
                board.close()
        if folder is not None:
            self._write(folder)
        return self._best[1] if self._best is not None else self.agent()

    def _run(
        self, folder: Path | None, board: TensorBoard | None, tell: Callable[[Report], None]
    ) -> None:  # fmt: skip
        """Play and learn to the end; with a folder, who interrupts it has to wait for the end of a round."""
        written = time.monotonic()
        with nullcontext(Stopping()) if folder is None else Stopping() as stopping:
            for report in self._reports():
                if board is not None:
                    board.add(report)
                if folder is not None:
                    self.keep(folder)
                tell(report)
                late = time.monotonic() - written > SECONDS_BETWEEN_CHECKPOINTS
                if folder is not None and (late or stopping.asked):
                    self._write(folder)
                    written = time.monotonic()
                if stopping.asked:
                    raise KeyboardInterrupt

    def _set_up(self) -> None:
        """Make everything from the seed."""
        streams = np.random.SeedSequence(self.seed).spawn(3)
        weights, actions, episodes = (int(stream.generate_state(1)[0]) for stream in streams)
        self.rng = np.random.default_rng(actions)
        self.vector = SchedulingVecEnv(self.env, self.settings.episodes, seed=episodes)
        self.observations = self.vector.reset()
        self.steps = self._rounds = self._ended = 0
        self._curve: list[Report] = []
        self._best: tuple[float, Agent] | None = None
        self.build(weights)

    def _reports(self) -> Iterator[Report]:
        """Play and learn to the end, and report after every round."""
        began, at_begin, settings = time.monotonic(), self.steps, self.settings
        while self.steps < settings.steps:
            sums, measures = self.round()
            self._rounds += 1
            self._ended += len(sums)
            rate = (self.steps - at_begin) / (time.monotonic() - began)
            reward = float(np.mean(sums)) if sums else float("nan")
            report = Report(
                self.steps, settings.steps, self._ended, reward, rate, self._validated(), measures
            )  # fmt: skip
            self._curve.append(report)
            yield report

    # --- what has been learned -----------------------------------------------------------------------

    def agent(self) -> Agent:
        """Return the agent as it is now."""
        about = {
            "algorithm": self.algorithm, "settings": self.plain_settings(), "seed": self.seed,
            "steps": self.steps, "episodes": self._ended,
        }  # fmt: skip
        return Agent(self.env.encoder, self.env.mask, self.network(), self.env.stage, about=about)

    def _validated(self) -> float:
        """Ask the validation when it is time; the best agent so far is kept."""
        is_over = self.steps >= self.settings.steps
        if self.validate is None or not (is_over or self._rounds % self.validate_every == 0):
            return float("nan")
        agent = self.agent()
        score = float(self.validate(agent))
        if self._best is None or score > self._best[0]:
            agent.about = {**(agent.about or {}), "validation": score}
            self._best = (score, agent)
        return score

    # --- files ---------------------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        """Write agents, learning curve and checkpoint, each whole or not at all; the checkpoint last."""
        folder.mkdir(parents=True, exist_ok=True)
        self.agent().save(folder / LAST)
        if self._best is not None:
            self._best[1].save(folder / BEST)
        write_bytes(folder / CURVE, curve_table(self._curve))
        own = self.state()
        about = {
            "trainer": self._identity(), "steps": self.steps, "rounds": self._rounds, "ended": self._ended,
            "rng": json.dumps(self.rng.bit_generator.state), "episodes": json.dumps(self.vector.state()),
            "curve": [report.words() for report in self._curve],
            "best": None if self._best is None else self._best[0],
            "own": dict(own.about),
        }  # fmt: skip
        tensors = {f"own.{name}": values for name, values in own.tensors.items()}
        write_model(folder / CHECKPOINT, tensors | arrays_of(self.networks, self.optimiser), about)

    def _restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        tensors, about = read_model(path)
        if about.get("trainer") != self._identity():
            raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
        put_arrays(tensors, self.networks, self.optimiser)
        self.rng.bit_generator.state = json.loads(about["rng"])
        self.observations = self.vector.restore(json.loads(about["episodes"]))
        self.steps, self._rounds, self._ended = about["steps"], about["rounds"], about["ended"]
        self._curve = [Report.of_words(words) for words in about["curve"]]
        if about["best"] is not None:
            env = self.env
            agent = Agent.load(path.parent / BEST, encoder=env.encoder, mask=env.mask)
            self._best = (about["best"], agent)
        self.restore(State(below("own", tensors), about["own"]))

    def _identity(self) -> dict[str, Any]:
        """Return what a checkpoint must have been made by to be gone on with."""
        env, settings = self.env, self.plain_settings()
        settings.pop("device", None)  # a checkpoint may be gone on with on another
        return {
            "algorithm": self.algorithm, "settings": settings, "seed": self.seed,
            "environment": [repr(part) for part in (env.policy, env.encoder, env.mask, env.reward)],
        }  # fmt: skip

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings as JSON would give them back: lists for tuples."""
        return dict(json.loads(json.dumps(asdict(self.settings))))


# --- torch's own state as arrays ---------------------------------------------------------------------


def arrays_of(
    networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> dict[str, NDArray[np.float32]]:
    """Return weights, and what an optimiser keeps of each of them, as arrays."""
    arrays = {f"networks.{name}": _array(values) for name, values in networks.state_dict().items()}
    states = {} if optimiser is None else optimiser.state_dict()["state"]
    for number, state in states.items():
        arrays |= {f"optimiser.{number}.{name}": _array(values) for name, values in state.items()}
    return arrays


def put_arrays(
    arrays: Tensors, networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> None:
    """Put back what :func:`arrays_of` returned."""
    weights = {name: torch.from_numpy(values.copy()) for name, values in below("networks", arrays).items()}
    networks.load_state_dict(weights)
    if optimiser is None:
        return
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, values in below("optimiser", arrays).items():
        number, part = name.split(".")
        states.setdefault(int(number), {})[part] = torch.from_numpy(values.copy())
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})


def _array(values: torch.Tensor) -> NDArray[np.float32]:
    return values.detach().cpu().numpy()


def below(prefix: str, arrays: Tensors) -> dict[str, NDArray[np.float32]]:
    """Return the arrays whose names begin with a prefix, without it."""
    begin = f"{prefix}."
    return {name.removeprefix(begin): values for name, values in arrays.items() if name.startswith(begin)}
