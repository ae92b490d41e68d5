"""Base class of all trainers: rounds, reports, validation, checkpoints.

A run can be interrupted at any time. Its whole state is written to one file after the first round, every few
minutes, and at an interruption; a resumed run gives the same result, bit for bit, as one without an
interruption (on the same processor). The states of the random number generators are saved too; episodes are
restored by replaying their actions.
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
from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.training.learning_curve import Report, TensorBoard, curve_table
from hpcsimkit.agents.training.old_names import current_names
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import make_folder, write_bytes
from hpcsimkit.io.interruption import Stopped

__all__ = ["Round", "RunSettings", "State", "Trainer", "arrays_of", "below", "put_arrays"]

CHECKPOINT = "checkpoint.safetensors"
CURVE = "curve.csv"
TENSORBOARD = "tensorboard"
BEST, LAST = "best.hpcsim", "last.hpcsim"
SECONDS_BETWEEN_CHECKPOINTS = 120.0

Tensors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class RunSettings:
    """Settings shared by all trainers.

    Parameters
    ----------
    total_timesteps : int
        Total number of decisions to learn from.
    episodes : int
        Number of parallel episodes.
    """

    total_timesteps: int = 100_000
    episodes: int = 16


class Round(NamedTuple):
    """Result of a round: a rollout and an update.

    Parameters
    ----------
    sums : list of float
        Returns of the episodes that ended.
    measures : dict of str to float
        Measures of the algorithm.
    """

    sums: list[float]
    measures: dict[str, float]


class State(NamedTuple):
    """State of a trainer, besides its networks and episodes.

    Parameters
    ----------
    tensors : mapping of str to array
        Tensors that float32 represents exactly.
    about : mapping
        Further state as JSON data.
    """

    tensors: Tensors
    about: Mapping[str, Any]


class Trainer:
    """Base class of trainers of an agent for the seat of an environment.

    Subclasses implement :meth:`build`, :meth:`round` and :meth:`network`; :meth:`state` and :meth:`restore`
    are for any state besides ``networks`` and ``optimiser``.

    Parameters
    ----------
    env : SchedulingEnv
        Training environment.
    settings : RunSettings
        Training settings.
    seed : int
        Random seed of the run: initial weights, episodes, actions, order of updates.
    validate : callable, optional
        Function ``validate(agent)`` that returns a score, larger is better; the best agent is kept.
    validate_every : int
        Number of rounds between validations.

    Attributes
    ----------
    vector : SchedulingVecEnv
        Parallel episodes.
    observations : array of float32, shape (episodes, ...)
        Current observations.
    rng : numpy.random.Generator
        Random number generator, for everything but the episodes.
    networks : torch.nn.Module
        Networks in training.
    optimiser : torch.optim.Optimizer
        Optimiser of their weights.
    total_timesteps : int
        Number of decisions so far, counted by :meth:`round`.
    """

    algorithm = ""
    """Name in files and plots."""

    networks: torch.nn.Module
    optimiser: torch.optim.Optimizer

    def __init__(
        self,
        env: SchedulingEnv,
        settings: RunSettings,
        *,
        seed: int = 0,
        validate: Callable[[Agent], float] | None = None,
        validate_every: int = 10,
    ) -> None:
        self.env = env
        self.settings = settings
        self.seed = seed
        self.validate = validate
        self.validate_every = validate_every

    # --- hooks for subclasses ------------------------------------------------------------------------

    def build(self, seed: int) -> None:
        """Create networks and optimiser, with initial weights from the seed."""
        raise NotImplementedError(f"{type(self).__name__} needs a method build(seed)")

    def round(self) -> Round:
        """Run a rollout from the current state of the episodes, and update from it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method round()")

    def network(self) -> Network:
        """Return a copy of the current network, for inference."""
        raise NotImplementedError(f"{type(self).__name__} needs a method network()")

    def state(self) -> State:
        """Return any further state that a resumed run needs."""
        return State({}, {})

    def restore(self, state: State) -> None:
        """Restore a state from :meth:`state`; networks, optimiser and episodes are restored already."""

    def keep(self, folder: Path) -> None:
        """Write files after a round; none by default."""

    # --- the run -------------------------------------------------------------------------------------

    def train(
        self,
        folder: Path | None = None,
        *,
        resume: bool = False,
        tensorboard: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
    ) -> Agent:
        """Train to the end and return the best agent (without a validation, the last).

        Parameters
        ----------
        folder : Path, optional
            Folder for the learning curve, checkpoints and agents.
        resume : bool
            Whether to resume from the folder's checkpoint, if there is one.
        tensorboard : bool
            Whether to write the curve for TensorBoard too, into a subfolder of that name.
        tell : callable
            Callback after every round, called with its report.

        Raises
        ------
        UsageError
            The checkpoint belongs to another training run, a value is not finite, or TensorBoard has no
            folder.
        WorkloadError
            The folder cannot be written; the last checkpoint is unchanged.
        Stopped
            Ctrl-C, or SIGTERM. With a folder, the current round is finished and a checkpoint written first,
            so that nothing is lost; a second signal interrupts at once.
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

    def _run(self, folder: Path | None, board: TensorBoard | None, tell: Callable[[Report], None]) -> None:
        """Run the remaining rounds; with a folder, an interruption takes effect at the end of a round."""
        written = float("-inf")  # the first round is worth a checkpoint
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
                    raise Stopped(number=stopping.number)

    def _set_up(self) -> None:
        """Create everything from the seed."""
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
        """Run the remaining rounds, and report after each."""
        began, at_begin, settings = time.monotonic(), self.steps, self.settings
        while self.steps < settings.total_timesteps:
            sums, measures = self.round()
            self._rounds += 1
            self._ended += len(sums)
            rate = (self.steps - at_begin) / (time.monotonic() - began)
            reward = float(np.mean(sums)) if sums else float("nan")
            report = Report(
                self.steps, settings.total_timesteps, self._ended, reward, rate, self._validated(), measures
            )
            self._curve.append(report)
            yield report

    # --- agents --------------------------------------------------------------------------------------

    def agent(self) -> Agent:
        """Return the current agent."""
        about = {
            "algorithm": self.algorithm,
            "settings": self.plain_settings(),
            "seed": self.seed,
            "steps": self.steps,
            "episodes": self._ended,
        }
        return Agent(self.env.encoder, self.env.mask, self.network(), self.env.stage, about=about)

    def _validated(self) -> float:
        """Run a validation if it is due, and keep the best agent so far."""
        is_over = self.steps >= self.settings.total_timesteps
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
        """Write agents, learning curve and checkpoint, each completely or not at all; the checkpoint last."""
        make_folder(folder)
        self.agent().save(folder / LAST)
        if self._best is not None:
            self._best[1].save(folder / BEST)
        write_bytes(folder / CURVE, curve_table(self._curve))
        own = self.state()
        about = {
            "trainer": self._identity(),
            "steps": self.steps,
            "rounds": self._rounds,
            "ended": self._ended,
            "rng": json.dumps(self.rng.bit_generator.state),
            "episodes": json.dumps(self.vector.state()),
            "curve": [report.words() for report in self._curve],
            "best": None if self._best is None else self._best[0],
            "own": dict(own.about),
        }
        tensors = {f"own.{name}": values for name, values in own.tensors.items()}
        write_model(folder / CHECKPOINT, tensors | arrays_of(self.networks, self.optimiser), about)

    def _restore(self, path: Path) -> None:
        """Resume from a checkpoint."""
        tensors, about = read_model(path, CHECKPOINT_TEXT)
        identity = self._identity()
        if current_names(about.get("trainer"), identity) != identity:
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
        """Return the parameters that a checkpoint must match to be resumed from."""
        env, settings = self.env, self.plain_settings()
        settings.pop("device", None)  # a checkpoint can be resumed on another device
        return {
            "algorithm": self.algorithm,
            "settings": settings,
            "seed": self.seed,
            "environment": [repr(part) for part in (env.policy, env.encoder, env.mask, env.reward)],
        }

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings as JSON data, with lists for tuples."""
        return dict(json.loads(json.dumps(asdict(self.settings))))


# --- torch's own state as arrays ---------------------------------------------------------------------


def arrays_of(
    networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> dict[str, NDArray[np.float32]]:
    """Return the weights, and the optimiser's state of each of them, as arrays."""
    arrays = {f"networks.{name}": _array(values) for name, values in networks.state_dict().items()}
    states = {} if optimiser is None else optimiser.state_dict()["state"]
    for number, state in states.items():
        arrays |= {f"optimiser.{number}.{name}": _array(values) for name, values in state.items()}
    return arrays


def put_arrays(
    arrays: Tensors, networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> None:
    """Restore the arrays of :func:`arrays_of`."""
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
    """Return the arrays with a prefix in their names, without it."""
    begin = f"{prefix}."
    return {name.removeprefix(begin): values for name, values in arrays.items() if name.startswith(begin)}
