"""Imitation learning for CuSH's job selector, from an expert with few weights that scores every action."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.evolved import EVOLVED, evolved_environment
from hpcsimkit.agents.cush.game import Game, States
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.training import Floats, GamesSettings, GamesTrainer, Shares
from hpcsimkit.agents.ranges import Count, Positive, Share
from hpcsimkit.agents.training.cross_entropy import CrossEntropy, CrossEntropySettings
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.workers import Workers
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError

__all__ = ["TaughtGame", "TaughtSettings", "TaughtTrainer", "teacher_of"]

LEAST_RATE = 0.03
"""Final learning rate, as a share of the initial one."""

TEACHER = "teacher"
"""Folder of the expert's training, inside that of the run."""

EVOLVES_FASTER, SLOWER = 2, 6
"""Ratio of decisions per second in cross-entropy training to those in CuSH's training, and of the time of a
decision in imitation learning to one in CuSH's: hardly any states recur."""

BATCHES = 4
"""Random stream of the minibatches, after the streams of all trainers."""


@dataclass(frozen=True)
class TaughtSettings(GamesSettings):
    """Settings of the imitation learning of the job selector.

    Parameters
    ----------
    epochs, job_sets, simulations, fresh, style_learning_rate, average_every
        Parameters of :class:`~hpcsimkit.agents.cush.training.GamesSettings`.
    learning_rate : float
        Initial learning rate of the job selector's dense layer, for Adam; it falls to almost nothing by a
        half-cosine schedule over the epochs.
    filter_learning_rate : float
        Initial learning rate of the layers before the dense layer. They have a thousand times fewer weights,
        and the weights of the dense layer for a long run of equal units move together, so it needs smaller
        steps.
    batch_size : int
        Number of states in an update (minibatch size).
    passes : int
        Number of passes over the states of an epoch, each with the jobs in other slots.
    guided : float
        Share of the epochs over which the share of decisions taken by the expert falls from 1 to 0.
    certainty : float
        Weight of the log probability of the expert's choice, in addition to the regret; see
        ``JobSelector.imitate``.
    teacher_timesteps : int
        Number of decisions to train the expert with first, by the cross-entropy method, if none is given.
    """

    epochs: Count = 450
    job_sets: Count = 40
    simulations: Count = 1
    fresh: bool = True
    learning_rate: Positive = 3e-5
    filter_learning_rate: Positive = 1e-3
    style_learning_rate: Positive = 0.05
    batch_size: Count = 64
    passes: Count = 2
    guided: Share = 0.2
    certainty: Share = 0.05
    teacher_timesteps: Count = EVOLVED.total_timesteps

    @property
    def decisions(self) -> int:
        """Approximate number of decisions of the training, the expert's included."""
        return super().decisions + self.teacher_timesteps // EVOLVES_FASTER

    def decided(self, report: Report) -> int:
        """Return how many of the decisions are over at a report, of the expert's training or its pupil's."""
        is_of_expert = report.of != self.epochs
        return report.steps // EVOLVES_FASTER if is_of_expert else super().decided(report)

    @property
    def _decisions_of_epoch(self) -> int:
        return super()._decisions_of_epoch * SLOWER


class TaughtGame(Game):
    """A simulation in which an expert scores each decision, and takes some of them.

    Parameters
    ----------
    scenario, problem, breadth, rng
        Parameters of :class:`~hpcsimkit.agents.cush.game.Game`.
    teacher : Agent
        Expert for the job selector's seat.
    guidance : float
        Probability that the expert takes a decision.

    Attributes
    ----------
    regrets : list of (int, array of float32)
        Number of the state and regrets of the actions at each decision: by how much the expert scores an
        action lower than the best one; 0 for masked actions.
    """

    def __init__(
        self,
        scenario: Scenario,
        problem: CushProblem,
        breadth: Shares,
        rng: np.random.Generator,
        *,
        teacher: Agent,
        guidance: float = 0.0,
    ) -> None:
        super().__init__(scenario, problem, breadth, rng)
        self.regrets: list[tuple[int, Floats]] = []
        self._teacher, self._guidance, self._rng = teacher, guidance, rng
        self._look = teacher.encoder.bind(self.system)

    def take(self, state: int, action: int, position: int) -> None:
        """Record the expert's scores, and answer the open decision."""
        decision = self.decision
        assert decision is not None
        seen = np.zeros(self._teacher.encoder.shape, dtype=np.float32)
        valid = np.zeros(self._teacher.mask.actions, dtype=np.bool_)
        self._look(decision, seen)
        self._teacher.mask.write(decision, valid)
        scores = self._teacher.network.scores(seen)[: len(valid)]
        regrets = np.where(valid, scores[valid].max() - scores, 0).astype(np.float32)
        self.regrets.append((state, regrets))
        if self._rng.random() < self._guidance:
            action = int(np.where(valid, scores, -np.inf).argmax())
            position = int(np.count_nonzero(valid[:action]))
        super().take(state, action, position)


class TaughtTrainer(GamesTrainer):
    """Imitation learning of the job selector from an expert, in the states that the job selector visits.

    Network and observations are CuSH's own. But the job selector does not have to discover the values of its
    actions: in each state an expert gives the regret of each action, and training minimises the expected
    regret. The expert may have other observations, such as the effects of a start on other jobs
    (:class:`~hpcsimkit.agents.cush.rows.StartOrHold`). The states are those that the job selector visits,
    with decisions by the expert at first (DAgger: Ross, Gordon and Bagnell, AISTATS 2011); learning from
    regrets instead of best actions follows Ross and Bagnell (AggreVaTe, 2014), with the expert's scores in
    place of the cost to go. The regret of a start does not depend on the job's slot, so each pass over the
    states permutes the slots. The policy selector learns from penalties as usual. Not from the paper.

    Parameters
    ----------
    problem, settings, seed, workers
        Parameters of :class:`~hpcsimkit.agents.cush.training.GamesTrainer`.
    teacher : Agent, optional
        Expert for the same seat and the same actions; by default that of :func:`teacher_of`, trained first,
        with its files in the subfolder ``teacher``.

    Examples
    --------
    >>> problem = CushProblem(nodes=4, jobs=4)
    >>> few = CrossEntropySettings(total_timesteps=40, episodes=1, population=4, elite=2)
    >>> teacher = teacher_of(problem, few, seed=1)
    >>> settings = TaughtSettings(epochs=2, job_sets=3, batch_size=8)
    >>> agents = TaughtTrainer(problem, settings, teacher=teacher, seed=1).train()
    >>> {seat: type(agent.network).__name__ for seat, agent in agents.items()}
    {'order': 'ImageScores', 'placement': 'Dense'}
    """

    algorithm = "cush-taught"
    settings: TaughtSettings

    def __init__(
        self,
        problem: CushProblem,
        settings: TaughtSettings,
        *,
        teacher: Agent | None = None,
        seed: int = 0,
        workers: Workers | None = None,
    ) -> None:
        super().__init__(problem, settings, seed=seed, workers=workers)
        self.teacher = teacher

    @property
    def _teacher(self) -> Agent:
        assert self.teacher is not None
        return self.teacher

    def prepare(self, folder: Path | None, *, resume: bool, tell: Callable[[Report], None]) -> None:
        """Train the expert, if none is given."""
        if self.teacher is not None:
            return
        super().check()
        if self.workers.count > 1:
            raise UsageError(f"{self.algorithm} is for one process, found {self.workers.count}")
        self.teacher = teacher_of(
            self.problem,
            replace(EVOLVED, total_timesteps=self.settings.teacher_timesteps),
            seed=self.seed,
            folder=None if folder is None else folder / TEACHER,
            resume=resume,
            tell=tell,
        )

    def check(self) -> None:
        """Check the settings, and that the expert fits the seat; raise a UsageError otherwise."""
        super().check()
        teacher = self._teacher
        wanted = repr(self.problem.mask)
        if teacher.stage != "order" or repr(teacher.mask) != wanted:
            raise UsageError(
                f"{self.algorithm}: a teacher for the order seat with {wanted} is needed, found one for "
                f"{teacher.stage} with {teacher.mask!r}"
            )
        teacher.check()

    def identity(self) -> dict[str, Any]:
        """Return the parameters that identify a training run, including its number of epochs."""
        network = self._teacher.network
        teacher = {
            "sees": repr(self._teacher.encoder),
            "network": network.kind,
            "activation": network.activation,
            **{name: values.tolist() for name, values in network.tensors.items()},
        }
        return {**super().identity(), "settings": asdict(self.settings), "teacher": teacher}

    def optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser of the job selector's weights."""
        weights = dict(network.named_parameters())
        dense = [weights.pop(name) for name in ("weight", "bias")]
        return torch.optim.Adam(
            [
                {"params": dense, "initial_lr": self.settings.learning_rate},
                {"params": list(weights.values()), "initial_lr": self.settings.filter_learning_rate},
            ]
        )

    def game(self, scenario: Scenario, breadth: Shares, rng: np.random.Generator) -> TaughtGame:
        """Begin a simulation; the expert's share of the decisions falls over the epochs."""
        return TaughtGame(
            scenario, self.problem, breadth, rng, teacher=self._teacher, guidance=self._guidance()
        )

    def _guidance(self) -> float:
        guided = self.settings.guided * self.settings.epochs
        return max(0.0, 1 - self.rounds / guided) if guided else 0.0

    def learn(self, games: Sequence[Game], states: States) -> list[float]:
        """Update the job selector; return minus the mean regret of the decisions of each simulation."""
        said = [game.regrets for game in games if isinstance(game, TaughtGame)]
        known = {state: regrets for each in said for state, regrets in each}
        if known:  # some decision had an alternative
            self._imitate(states, list(known), np.array(list(known.values())))
        lost = [[float(states.probabilities[state] @ regrets) for state, regrets in each] for each in said]
        return [-sum(each) / max(len(each), 1) for each in lost]

    def _imitate(self, states: States, numbers: Sequence[int], regrets: Floats) -> None:
        """Update from random minibatches, with the mean regret of all but the best actions scaled to 1."""
        settings = self.settings
        done = self.rounds / settings.epochs
        share = LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * done)) / 2
        for group in self.job_selector.optimiser.param_groups:
            group["lr"] = group["initial_lr"] * share
        others = regrets > 0
        if others.any():
            regrets = regrets / regrets[others].mean()
        rng = self._chance(BATCHES, self.rounds, self.workers.rank)
        for _ in range(settings.passes):
            order = rng.permutation(len(numbers))
            for first in range(0, len(order), settings.batch_size):
                some = order[first : first + settings.batch_size]
                batch, actions = states.some([numbers[each] for each in some]).shuffled(rng)
                lost = np.take_along_axis(regrets[some], actions, axis=1)
                self.job_selector.imitate(batch, lost, settings.certainty)


def teacher_of(
    problem: CushProblem,
    settings: CrossEntropySettings = EVOLVED,
    *,
    seed: int = 0,
    folder: Path | None = None,
    resume: bool = False,
    tell: Callable[[Report], None] = lambda report: None,
) -> Agent:
    """Train and return an expert with few weights, and with the time horizon of the problem's images.

    Parameters
    ----------
    problem : CushProblem
        Problem of the job selector.
    settings : CrossEntropySettings
        Settings of the cross-entropy method.
    seed : int
        Random seed of the training run.
    folder : Path, optional
        Folder for its files.
    resume : bool
        Whether to resume the run in the folder, if there is one.
    tell : callable
        Callback after each round, called with its report.

    Raises
    ------
    UsageError
        The folder holds another training run.
    """
    env = evolved_environment(problem, horizon=problem.horizon)
    return CrossEntropy(env, settings, seed=seed).train(folder, resume=resume, tell=tell)
