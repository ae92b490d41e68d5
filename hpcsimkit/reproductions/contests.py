"""Base classes of reproductions that train agents and compare them with baselines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.reproduction import Reproduction
from hpcsimkit.reproductions.rivals import RIVALS
from hpcsimkit.reproductions.sequences import BSLD, OF_PROMISES, Contestant, Meeting, Standing, standings

__all__ = ["Contest", "ContestReproduction", "Scores", "TrainedAndRun"]

Floats = NDArray[np.float64]


class Contest(Protocol):
    """Protocol of a comparison of policies on the same sequences.

    Each reproduction has its own class, with the keys of its tables (log, base scheduler).
    """

    @property
    def contestants(self) -> Sequence[Contestant]:
        """Policies to compare."""

    @property
    def meetings(self) -> Mapping[str, Meeting]:
        """Runs of all policies, by row."""


C = TypeVar("C", bound=Contest)


@dataclass(frozen=True)
class Scores(Generic[C]):
    """Measured values of a comparison.

    Parameters
    ----------
    contest : Contest
        Comparison with the values.
    values : mapping of str to mapping of str to array of float, shape (sequences,)
        Values by row and measure.

    Examples
    --------
    >>> values = {"ours": {BSLD: np.arange(8.0)}, "theirs": {BSLD: np.arange(8.0) + [1, 2, 1, 2, 1, 2, 1, 2]}}
    >>> scores = Scores(None, values)
    >>> scores.mean("theirs"), scores.mean("nobody"), scores.beats("ours", "theirs")
    (5.0, nan, True)
    """

    contest: C
    values: Mapping[str, Mapping[str, Floats]]

    @classmethod
    def kept(cls, contest: C, store: Store) -> Scores[C]:
        """Return the values of a comparison from the stored outcomes."""
        outcomes = {row: store.outcome(task) for row, task in contest.meetings.items()}
        return cls(
            contest,
            {
                row: {measure: np.array(values, dtype=np.float64) for measure, values in outcome.items()}
                for row, outcome in outcomes.items()
            },
        )

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return the values of a measure of a row on each sequence."""
        return self.values[row][measure]

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return the mean of a measure of a row; NaN if the row does not exist."""
        return float(self.of(row, measure).mean()) if row in self.values else float("nan")

    def promises(self, row: str) -> tuple[float, float, float]:
        """Return the numbers of reservations and of violations of a row, and the mean delay [s]."""
        made, broken, delay = (self.of(row, measure) for measure in OF_PROMISES)
        total = float(broken.sum())
        return float(made.sum()), total, float((broken * delay).sum()) / max(total, 1.0)

    def standings(
        self, one: str, rows: Iterable[str] | None = None, measure: str = BSLD
    ) -> dict[str, Standing]:
        """Compare a row with some rows, or with all; p-values are corrected for their number."""
        names = list(self.values if rows is None else dict.fromkeys([*rows, one]))
        return standings({name: self.of(name, measure) for name in names}, one)

    def beats(self, row: str, other: str, measure: str = BSLD) -> bool:
        """Return whether a row is significantly lower than another, among all rows; see :class:`Standing`."""
        return self.standings(row, measure=measure)[other].is_beaten


class TrainedAndRun(Reproduction):
    """Reproduction that trains agents, and then runs all policies."""

    @abstractmethod
    def learners(self) -> Iterable[Learner]:
        """Return all agents to train, in this order; repetitions are allowed."""

    @abstractmethod
    def runs(self) -> Iterable[Task]:
        """Return the tasks that follow the trainings."""

    @property
    def trained(self) -> list[Learner]:
        """All agents to train, each once."""
        return list({learner.name: learner for learner in self.learners()}.values())

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the trainings, then those that need other agents, if any, and the runs.

        Longer trainings are first. Those by a trainer with a rate of its own are a kind of their own.
        """
        trainings = [self._training(learner) for learner in self.trained]
        trainings.sort(key=lambda task: task.size / self.rates[task.kind], reverse=True)
        stages: list[list[Task]] = [
            [task for task in trainings if bool(task.requires) is later] for later in (False, True)
        ]
        return [*filter(None, stages), list(self.runs())]

    def _training(self, learner: Learner) -> Training:
        kind = f"training by {learner.trainer}"
        return Training(learner, kind) if kind in self.rates else Training(learner)


class ContestReproduction(TrainedAndRun, Generic[C]):
    """Reproduction with comparisons of agents with baselines on sets of sequences, defined by `contests`.

    All compared agents are trained; :meth:`further_learners` and :meth:`further_runs` are for other figures.
    """

    @property
    @abstractmethod
    def contests(self) -> Sequence[C]:
        """Comparisons; always the same objects, so the property should be cached."""

    def further_learners(self) -> Iterable[Learner]:
        """Return agents outside the comparisons; by default none."""
        return ()

    def further_runs(self) -> Iterable[Task]:
        """Return tasks outside the comparisons; by default none."""
        return ()

    def learners(self) -> Iterator[Learner]:
        """Yield the compared agents, then the others."""
        yield from learners_of(self.contests)
        yield from self.further_learners()

    def runs(self) -> Iterator[Task]:
        """Yield further tasks, then the runs of the comparisons."""
        yield from self.further_runs()
        for contest in self.contests:
            yield from contest.meetings.values()

    def words(self) -> str:
        """Return a text with the numbers of agents and comparisons."""
        agents, sets = len(self.trained), len(self.contests)
        if RIVALS in self.chosen:
            return f"{sets} set{'s' * (sets != 1)} of sequences with heuristics only"
        learned = f"{agents} agent{'s' * (agents != 1)}, " if agents else ""
        return f"{learned}{sets} set{'s' * (sets != 1)} of sequences with all their rivals"

    def scores(self, store: Store) -> list[Scores[C]]:
        """Return the measured values of all comparisons."""
        return [Scores.kept(contest, store) for contest in self.contests]


def learners_of(contests: Iterable[Contest]) -> Iterator[Learner]:
    """Yield the compared agents, once for each comparison."""
    for contest in contests:
        for contestant in contest.contestants:
            if contestant.learner is not None:
                yield contestant.learner
