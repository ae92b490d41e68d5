"""Reproductions that train agents and then let everybody run: what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.reproduction import Reproduction
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting, Standing, standings
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["Contest", "ContestReproduction", "Scores", "TrainedAndRun"]

Floats = NDArray[np.float64]


class Contest(Protocol):
    """Everybody on the same sequences.

    Each reproduction has a class of its own, with what its tables are ordered by (log, base scheduler).
    """

    @property
    def contestants(self) -> Sequence[Contestant]:
        """Who meets."""

    @property
    def meetings(self) -> Mapping[str, Meeting]:
        """Runs of everybody, by row."""


C = TypeVar("C", bound=Contest)


@dataclass(frozen=True)
class Scores(Generic[C]):
    """What was measured in a contest.

    Parameters
    ----------
    contest : Contest
        Which.
    values : mapping of str to mapping of str to array of float, shape (sequences,)
        By row and measure.

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
    def kept(cls, contest: C, shelf: Shelf) -> Scores[C]:
        """Take what has come out of a contest from the shelf."""
        outcomes = {row: shelf.outcome(task) for row, task in contest.meetings.items()}
        return cls(contest, {
            row: {measure: np.array(values, dtype=np.float64) for measure, values in outcome.items()}
            for row, outcome in outcomes.items()
        })  # fmt: skip

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return a measure of a row on each sequence."""
        return self.values[row][measure]

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return its mean; not a number where the row is not there."""
        return float(self.of(row, measure).mean()) if row in self.values else float("nan")

    def standings(
        self, one: str, rows: Iterable[str] | None = None, measure: str = BSLD
    ) -> dict[str, Standing]:
        """Compare a row with some rows, or with all; p-values are corrected for their number."""
        names = list(self.values if rows is None else dict.fromkeys([*rows, one]))
        return standings({name: self.of(name, measure) for name in names}, one)

    def beats(self, row: str, other: str, measure: str = BSLD) -> bool:
        """Tell whether a row has less than another for sure, compared with all: see :class:`Standing`."""
        return self.standings(row, measure=measure)[other].is_beaten


class TrainedAndRun(Reproduction):
    """Agents are trained, then everybody runs."""

    @abstractmethod
    def learners(self) -> Iterable[Learner]:
        """Return all agents that are trained, in this order; one may come several times."""

    @abstractmethod
    def runs(self) -> Iterable[Task]:
        """Return what is done when all are trained."""

    @property
    def trained(self) -> list[Learner]:
        """All agents that are trained, each once."""
        return list({learner.name: learner for learner in self.learners()}.values())

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, then runs."""
        return [[Training(learner) for learner in self.trained], list(self.runs())]


class ContestReproduction(TrainedAndRun, Generic[C]):
    """Contests: sets of sequences on which agents meet their rivals. What a subclass fills in is `contests`.

    An agent that meets is trained; :meth:`further_learners` and :meth:`further_runs` are for figures that are
    not about contests.
    """

    @property
    @abstractmethod
    def contests(self) -> Sequence[C]:
        """Who meets on which sequences; always the same ones, so have it cached."""

    def further_learners(self) -> Iterable[Learner]:
        """Return agents that meet nobody."""
        return ()

    def further_runs(self) -> Iterable[Task]:
        """Return tasks that are no meetings."""
        return ()

    def learners(self) -> Iterator[Learner]:
        """Yield who meets, then the others."""
        yield from learners_of(self.contests)
        yield from self.further_learners()

    def runs(self) -> Iterator[Task]:
        """Yield further tasks, then meetings."""
        yield from self.further_runs()
        for contest in self.contests:
            yield from contest.meetings.values()

    def words(self) -> str:
        """Say how many agents and contests there are."""
        agents, sets = len(self.trained), len(self.contests)
        return (
            f"{agents} agent{'s' * (agents != 1)}, {sets} set{'s' * (sets != 1)} of sequences "
            "with all their rivals"
        )

    def scores(self, shelf: Shelf) -> list[Scores[C]]:
        """Return what has come out of all contests."""
        return [Scores.kept(contest, shelf) for contest in self.contests]


def learners_of(contests: Iterable[Contest]) -> Iterator[Learner]:
    """Yield the agents that meet in contests, again wherever they do."""
    for contest in contests:
        for contestant in contest.contestants:
            if contestant.learner is not None:
                yield contestant.learner
