"""CuSH's job selector, taught: it learns from an agent of few weights what each start would lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cross_entropy import CrossEntropy, CrossEntropySettings
from hpcsimkit.agents.cush.evolved import EVOLVED, evolved_environment
from hpcsimkit.agents.cush.game import Game, States
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.training import Floats, GamesSettings, GamesTrainer, Shares
from hpcsimkit.agents.cush.workers import Workers
from hpcsimkit.agents.learning_curve import Report
from hpcsimkit.errors import UsageError
from hpcsimkit.scenario import Scenario

__all__ = ["TaughtGame", "TaughtSettings", "TaughtTrainer", "teacher_of"]

LEAST_RATE = 0.03
"""Of the learning rate, at the end."""

BATCHES = 4
"""What random numbers are for, beside those of all trainings by games."""


@dataclass(frozen=True)
class TaughtSettings(GamesSettings):
    """How the job selector is taught.

    Parameters
    ----------
    epochs, job_sets, simulations, fresh, style_learning_rate, average_every
        As in :class:`~hpcsimkit.agents.cush.training.GamesSettings`.
    learning_rate : float
        Of the job selector's dense layer at first, by Adam; from epoch to epoch it falls, along half a
        cosine, to almost nothing.
    filter_learning_rate : float
        The same of all before the dense layer. There are a thousand times fewer weights: what is a small step
        for these is a leap for the dense layer, in which all that stand for a long row of like units move
        together.
    batch : int
        States of a step.
    passes : int
        How often each state of an epoch is learned from, each time with its jobs in other slots.
    guided : float
        The share of decisions that the teacher takes falls from 1 to 0 in that share of the epochs.
    certainty : float
        How much it counts that the teacher's choice is the most probable, besides what others lose; see
        :meth:`~hpcsimkit.agents.cush.selectors.JobSelector.imitate`.
    """

    counted = (*GamesSettings.counted, "batch", "passes")
    rates = (*GamesSettings.rates, "filter_learning_rate")

    epochs: int = 450
    job_sets: int = 40
    simulations: int = 1
    fresh: bool = True
    learning_rate: float = 3e-5
    filter_learning_rate: float = 1e-3
    style_learning_rate: float = 0.05
    batch: int = 64
    passes: int = 2
    guided: float = 0.2
    certainty: float = 0.05


class TaughtGame(Game):
    """A game whose decisions a teacher looks at, and sometimes takes.

    Parameters
    ----------
    scenario, problem, breadth, rng
        As for :class:`~hpcsimkit.agents.cush.game.Game`.
    teacher : Agent
        For the job selector's seat.
    guidance : float
        How probable it is that the teacher takes a decision.

    Attributes
    ----------
    regrets : list of (int, array of float32)
        Of each decision the number of the state, and by how much the teacher scores each action lower than
        the best one; 0 for those that are no options.
    """

    def __init__(
        self, scenario: Scenario, problem: CushProblem, breadth: Shares, rng: np.random.Generator,
        *, teacher: Agent, guidance: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(scenario, problem, breadth, rng)
        self.regrets: list[tuple[int, Floats]] = []
        self._teacher, self._guidance, self._rng = teacher, guidance, rng
        self._look = teacher.encoder.bind(self.system)

    def take(self, state: int, action: int, position: int) -> None:
        """Ask the teacher, and take the decision at hand."""
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
    """Lets the job selector learn what a teacher thinks of all that it could do, where it comes to itself.

    The network is CuSH's, and so is what it sees. But it does not find out what its actions are worth: in
    each state a teacher says by how much each is worse than the best, and the less of that is lost on
    average, the better. The teacher may be one that sees something else, such as what a start does to other
    jobs (:class:`~hpcsimkit.agents.cush.rows.StartOrHold`). States are those that the selector itself comes
    to, at first with the teacher's help (Ross, Gordon and Bagnell, AISTATS 2011); what is lost, instead of
    which action is the best, is learned as by Ross and Bagnell (AggreVaTe, 2014), the teacher's scores taking
    the place of the cost to go. A start loses the same in whichever slot the job is: each time that a state
    is learned from, its jobs are in other slots. The policy selector learns from penalties, as always. Not
    the paper's.

    Parameters
    ----------
    problem, settings, seed, workers
        As for :class:`~hpcsimkit.agents.cush.training.GamesTrainer`.
    teacher : Agent
        For the same seat and the same actions; see :func:`teacher_of`.

    Examples
    --------
    >>> problem = CushProblem(nodes=4, jobs=4)
    >>> few = CrossEntropySettings(steps=40, episodes=1, population=4, elite=2)
    >>> teacher = teacher_of(problem, few, seed=1)
    >>> settings = TaughtSettings(epochs=2, job_sets=3, batch=8)
    >>> agents = TaughtTrainer(problem, settings, teacher=teacher, seed=1).train()
    >>> {seat: type(agent.network).__name__ for seat, agent in agents.items()}
    {'order': 'ImageScores', 'placement': 'Dense'}
    """

    algorithm = "cush-taught"
    settings: TaughtSettings

    def __init__(
        self, problem: CushProblem, settings: TaughtSettings, *, teacher: Agent, seed: int = 0,
        workers: Workers | None = None,
    ) -> None:  # fmt: skip
        super().__init__(problem, settings, seed=seed, workers=workers)
        self.teacher = teacher

    def check(self) -> None:
        """See that all settings are in their ranges, and the teacher knows the seat; else a UsageError."""
        super().check()
        settings, teacher = self.settings, self.teacher
        for name in ("guided", "certainty"):
            if not 0 <= getattr(settings, name) <= 1:
                raise UsageError(
                    f"CuSH: {name} needs a number from 0 to 1, found {getattr(settings, name)!r}"
                )
        wanted = repr(self.problem.mask)
        if teacher.stage != "order" or repr(teacher.mask) != wanted:
            raise UsageError(
                f"CuSH: a teacher for the order seat with {wanted} is needed, found one for {teacher.stage} "
                f"with {teacher.mask!r}"
            )
        teacher.check()

    def identity(self) -> dict[str, Any]:
        """Return what tells a training from others; that it is to end when it does is part of it."""
        network = self.teacher.network
        teacher = {
            "sees": repr(self.teacher.encoder), "network": network.kind, "activation": network.activation,
            **{name: values.tolist() for name, values in network.tensors.items()},
        }  # fmt: skip
        return {**super().identity(), "settings": asdict(self.settings), "teacher": teacher}

    def optimiser(self, network: torch.nn.Module) -> torch.optim.Optimizer:
        """Return who moves the job selector's weights."""
        weights = dict(network.named_parameters())
        dense = [weights.pop(name) for name in ("weight", "bias")]
        return torch.optim.Adam([
            {"params": dense, "initial_lr": self.settings.learning_rate},
            {"params": list(weights.values()), "initial_lr": self.settings.filter_learning_rate},
        ])  # fmt: skip

    def game(self, scenario: Scenario, breadth: Shares, rng: np.random.Generator) -> TaughtGame:
        """Begin a game; the teacher takes the fewer decisions the later it is."""
        return TaughtGame(
            scenario, self.problem, breadth, rng, teacher=self.teacher, guidance=self._guidance()
        )  # fmt: skip

    def _guidance(self) -> float:
        guided = self.settings.guided * self.settings.epochs
        return max(0.0, 1 - self.epoch / guided) if guided else 0.0

    def learn(self, games: Sequence[Game], states: States) -> list[float]:
        """Let the job selector learn to lose less; returns minus what a decision of each game loses."""
        said = [game.regrets for game in games if isinstance(game, TaughtGame)]
        known = {state: regrets for each in said for state, regrets in each}
        if known:  # somebody had a choice
            self._imitate(states, list(known), np.array(list(known.values())))
        lost = [[float(states.probabilities[state] @ regrets) for state, regrets in each] for each in said]
        return [-sum(each) / max(len(each), 1) for each in lost]

    def _imitate(self, states: States, numbers: Sequence[int], regrets: Floats) -> None:
        """Learn from states in random batches; a regret of 1 is the mean of all that are not the best."""
        settings = self.settings
        done = self.epoch / settings.epochs
        share = LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * done)) / 2
        for group in self.job_selector.optimiser.param_groups:
            group["lr"] = group["initial_lr"] * share
        others = regrets > 0
        if others.any():
            regrets = regrets / regrets[others].mean()
        rng = self._chance(BATCHES, self.epoch, self.workers.rank)
        for _ in range(settings.passes):
            order = rng.permutation(len(numbers))
            for first in range(0, len(order), settings.batch):
                some = order[first : first + settings.batch]
                batch, actions = states.some([numbers[each] for each in some]).shuffled(rng)
                lost = np.take_along_axis(regrets[some], actions, axis=1)
                self.job_selector.imitate(batch, lost, settings.certainty)


def teacher_of(
    problem: CushProblem, settings: CrossEntropySettings = EVOLVED, *, seed: int = 0,
    folder: Path | None = None, resume: bool = False, tell: Callable[[Report], None] = lambda report: None,
) -> Agent:  # fmt: skip
    """Return an agent of few weights that sees as far as pictures of the problem go; it evolves first.

    Parameters
    ----------
    problem : CushProblem
        Whose job selector's seat it is for.
    settings : CrossEntropySettings
        How it evolves.
    seed : int
        Where all chance comes from.
    folder : Path, optional
        Where it is written.
    resume : bool
        Go on with what was begun there, if anything was.
    tell : callable
        Is told how it goes.

    Raises
    ------
    UsageError
        What was begun there was another one's evolution.
    """
    env = evolved_environment(problem, horizon=problem.horizon)
    return CrossEntropy(env, settings, seed=seed).train(folder, resume=resume, tell=tell)
