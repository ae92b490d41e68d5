"""What policy gradients, A2C and PPO have in common: play, reckon what actions were worth, learn, repeat.

A training run can be stopped at any time: every few minutes its whole state is written to one file, and what
goes on from there comes out as if it had never been stopped, bit for bit (on the same processor). Chance
comes from one generator; episodes are restored by playing their actions again.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.model_file import read_model, write_model
from hpcsimkit.agents.returns import generalised_advantages
from hpcsimkit.agents.torch_networks import ActorCritic, masked_log_probabilities
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.files import write_bytes
from hpcsimkit.vector_environment import SchedulingVecEnv

__all__ = ["Batch", "OnPolicyTrainer", "Report", "Settings"]

CHECKPOINT = "checkpoint.safetensors"
CURVE = "curve.csv"
BEST, LAST = "best.hpcsim", "last.hpcsim"
SECONDS_BETWEEN_CHECKPOINTS = 120.0


class Batch(NamedTuple):
    """Steps that were played, as tensors of one row a step."""

    observations: torch.Tensor
    valid: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def rows(self, rows: NDArray[np.int64]) -> Batch:
        """Return some of the steps."""
        chosen = torch.from_numpy(rows)
        return Batch(*(values[chosen] for values in self))


class Report(NamedTuple):
    """How a training run goes: told after every round, one row of the learning curve.

    ``reward`` is the mean sum of rewards of the episodes that ended in the round, not a number if none did;
    ``validation`` is what the validation says (larger is better), where it was asked.
    """

    steps: int
    of: int
    episodes: int
    reward: float
    policy_loss: float
    value_loss: float
    entropy: float
    steps_per_second: float
    validation: float


@dataclass(frozen=True)
class Settings:
    """What all three learners are set by.

    Parameters
    ----------
    steps : int
        Decisions to learn from, in all.
    episodes : int
        Played side by side.
    rollout : int
        Decisions of each before something is learned.
    learning_rate : float
        Of Adam.
    discount : float
        gamma, in [0, 1].
    trace : float
        lambda of generalised advantages, in [0, 1].
    entropy_weight, value_weight : float
        Of the two other parts of the loss.
    gradient_limit : float
        Largest norm of a gradient.
    kind, hidden, activation
        Of the networks; see :class:`~hpcsimkit.agents.torch_networks.ActorCritic`.
    """

    steps: int = 100_000
    episodes: int = 16
    rollout: int = 128
    learning_rate: float = 3e-4
    discount: float = 0.99
    trace: float = 0.95
    entropy_weight: float = 0.0
    value_weight: float = 0.5
    gradient_limit: float = 0.5
    kind: str = "dense"
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"


class OnPolicyTrainer:
    """Plays with the policy as it is, and learns from that.

    Subclasses say how: :meth:`learn`.

    Parameters
    ----------
    env : SchedulingEnv
        What is to be learned.
    settings : Settings
        How.
    seed : int
        Where all chance comes from: first weights, episodes, actions, the order of learning.
    validate : callable, optional
        ``validate(agent)`` returns a number, larger is better; the best agent is kept.
    validate_every : int
        Rounds between validations.
    """

    algorithm = ""
    """What files and pictures call it."""

    def __init__(
        self, env: SchedulingEnv, settings: Settings, *, seed: int = 0,
        validate: Callable[[Agent], float] | None = None, validate_every: int = 10,
    ) -> None:  # fmt: skip
        self.env = env
        self.settings = settings
        self.seed = seed
        self.validate = validate
        self.validate_every = validate_every

    # --- what a subclass says ------------------------------------------------------------------------

    def learn(self, batch: Batch) -> tuple[float, float, float]:
        """Learn from a round of steps; returns the mean policy loss, value loss and entropy."""
        raise NotImplementedError

    # --- the run -------------------------------------------------------------------------------------

    def train(
        self, folder: Path | None = None, *, resume: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
    ) -> Agent:  # fmt: skip
        """Train to the end and return the best agent (without a validation, the last).

        Parameters
        ----------
        folder : Path, optional
            Where the learning curve, checkpoints and agents are written.
        resume : bool
            Go on from the folder's checkpoint, if there is one.
        tell : callable
            Is told how it goes, after every round.
        """
        torch.set_num_threads(1)  # two are slower for networks of this size
        self._set_up()
        if resume and folder is not None and (folder / CHECKPOINT).exists():
            self._restore(folder / CHECKPOINT)
        written, began, at_begin = time.monotonic(), time.monotonic(), self._steps
        while self._steps < self.settings.steps:
            batch, reward = self._play()
            losses = self.learn(batch)
            self._rounds += 1
            rate = (self._steps - at_begin) / (time.monotonic() - began)
            report = Report(
                self._steps, self.settings.steps, self._ended, reward, *losses, rate, self._validated()
            )
            self._curve.append(report)
            tell(report)
            if folder is not None and time.monotonic() - written > SECONDS_BETWEEN_CHECKPOINTS:
                self._write(folder)
                written = time.monotonic()
        if folder is not None:
            self._write(folder)
        return self._best[1] if self._best is not None else self._agent()

    def _set_up(self) -> None:
        """Make everything from the seed."""
        settings = self.settings
        streams = np.random.SeedSequence(self.seed).spawn(3)
        weights, actions, episodes = (int(stream.generate_state(1)[0]) for stream in streams)
        with torch.random.fork_rng():
            torch.manual_seed(weights)
            self.networks = ActorCritic(
                self.env.encoder.shape, self.env.mask.actions, kind=settings.kind, hidden=settings.hidden,
                activation=settings.activation,
            )  # fmt: skip
        self.optimiser = torch.optim.Adam(self.networks.parameters(), lr=settings.learning_rate, eps=1e-5)
        self.rng = np.random.default_rng(actions)
        self._vector = SchedulingVecEnv(self.env, settings.episodes, seed=episodes)
        self._observations = self._vector.reset()
        self._steps = self._rounds = self._ended = 0
        self._curve: list[Report] = []
        self._best: tuple[float, Agent] | None = None

    def _play(self) -> tuple[Batch, float]:
        """Play a round; returns its steps, and the mean sum of rewards of the episodes that ended."""
        settings, vector = self.settings, self._vector
        size = (settings.rollout, settings.episodes)
        observations = np.zeros((*size, *self.env.encoder.shape), dtype=np.float32)
        valid = np.zeros((*size, self.env.mask.actions), dtype=np.bool_)
        actions, over = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        values, rewards, chosen = (np.zeros(size, dtype=np.float32) for _ in range(3))
        sums: list[float] = []
        for step in range(settings.rollout):
            observations[step], valid[step] = self._observations, vector.action_masks()
            actions[step], chosen[step], values[step] = self._act(observations[step], valid[step])
            after_it, rewards[step], over[step], infos = vector.step(actions[step])
            self._observations = np.asarray(after_it)
            for place in np.flatnonzero(over[step]).tolist():
                sums.append(infos[place]["episode"]["r"])
                if infos[place]["TimeLimit.truncated"]:  # cut off, not over: what would have come counts
                    last = torch.from_numpy(infos[place]["terminal_observation"][None])
                    with torch.no_grad():
                        rewards[step, place] += settings.discount * float(self.networks.values(last))
        with torch.no_grad():
            after = self.networks.values(torch.from_numpy(self._observations)).numpy()
        advantages = generalised_advantages(
            rewards, values, over, after, settings.discount, settings.trace
        )  # fmt: skip
        self._steps += actions.size
        self._ended += len(sums)
        columns = (observations, valid, actions, chosen, advantages, advantages + values)
        batch = Batch(*(torch.from_numpy(column.reshape(-1, *column.shape[2:])) for column in columns))
        return batch, float(np.mean(sums)) if sums else float("nan")

    def _act(
        self, observations: NDArray[np.float32], valid: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Draw an action for each episode; returns them, their log probabilities, and the states' values."""
        seen = torch.from_numpy(observations)
        with torch.no_grad():
            logarithms = masked_log_probabilities(self.networks.scores(seen), torch.from_numpy(valid)).numpy()
            values = self.networks.values(seen).numpy()
        noise = self.rng.gumbel(size=logarithms.shape)
        actions = np.where(valid, logarithms + noise, -np.inf).argmax(axis=1)
        return actions, logarithms[np.arange(len(actions)), actions], values

    def descend(self, loss: torch.Tensor) -> None:
        """Take a step down the gradient of a loss.

        Raises
        ------
        UsageError
            The loss is no finite number.
        """
        if not torch.isfinite(loss):
            raise UsageError(f"{self.algorithm}: the loss is {float(loss)} after {self._steps} steps")
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.networks.parameters(), self.settings.gradient_limit)
        self.optimiser.step()

    # --- what has been learned -----------------------------------------------------------------------

    def _agent(self) -> Agent:
        about = {
            "algorithm": self.algorithm, "settings": _plain(asdict(self.settings)), "seed": self.seed,
            "steps": self._steps, "episodes": self._ended,
        }  # fmt: skip
        env = self.env
        return Agent(env.encoder, env.mask, self.networks.network(), env.stage, about=about)

    def _validated(self) -> float:
        """Ask the validation when it is time; the best agent so far is kept."""
        is_over = self._steps >= self.settings.steps
        if self.validate is None or not (is_over or self._rounds % self.validate_every == 0):
            return float("nan")
        agent = self._agent()
        score = float(self.validate(agent))
        if self._best is None or score > self._best[0]:
            agent.about = {**(agent.about or {}), "validation": score}
            self._best = (score, agent)
        return score

    # --- files ---------------------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        """Write agents, learning curve and checkpoint, each whole or not at all; the checkpoint last."""
        folder.mkdir(parents=True, exist_ok=True)
        self._agent().save(folder / LAST)
        if self._best is not None:
            self._best[1].save(folder / BEST)
        table = io.StringIO()
        csv.writer(table).writerows([Report._fields, *self._curve])
        write_bytes(folder / CURVE, table.getvalue().encode())
        tensors = {f"networks.{name}": values for name, values in _arrays(self.networks.state_dict())}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": values for name, values in _arrays(state)}
        about = {
            "trainer": self._identity(), "steps": self._steps, "rounds": self._rounds, "ended": self._ended,
            "rng": json.dumps(self.rng.bit_generator.state), "episodes": json.dumps(self._vector.state()),
            "curve": [[str(value) for value in report] for report in self._curve],
            "best": None if self._best is None else self._best[0],
        }  # fmt: skip
        write_model(folder / CHECKPOINT, tensors, about)

    def _restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        tensors, about = read_model(path)
        if about.get("trainer") != self._identity():
            raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
        of_networks = {
            name.removeprefix("networks."): torch.from_numpy(values.copy())
            for name, values in tensors.items()
            if name.startswith("networks.")
        }
        self.networks.load_state_dict(of_networks)
        states: dict[int, dict[str, torch.Tensor]] = {}
        for name, values in tensors.items():
            if name.startswith("optimiser."):
                _, number, part = name.split(".")
                states.setdefault(int(number), {})[part] = torch.from_numpy(values.copy())
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": states})
        self.rng.bit_generator.state = json.loads(about["rng"])
        self._observations = self._vector.restore(json.loads(about["episodes"]))
        self._steps, self._rounds, self._ended = about["steps"], about["rounds"], about["ended"]
        self._curve = [Report(*map(_number, row)) for row in about["curve"]]
        if about["best"] is not None:
            self._best = (about["best"], Agent.load(path.parent / BEST))

    def _identity(self) -> dict[str, Any]:
        """Return what a checkpoint must have been made by to be gone on with."""
        env = self.env
        parts: Sequence[Any] = (env.policy, env.encoder, env.mask, env.reward)
        return {
            "algorithm": self.algorithm, "settings": _plain(asdict(self.settings)), "seed": self.seed,
            "environment": [repr(part) for part in parts],
        }  # fmt: skip


def _arrays(state: Mapping[str, Any]) -> list[tuple[str, NDArray[np.float32]]]:
    return [(name, np.asarray(values.detach().numpy())) for name, values in state.items()]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON would make of values: lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else float(text)
