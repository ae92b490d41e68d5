"""Who meets on which job sets: those learned from, others, those of files; other clusters and horizons."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.reproductions.cush.data import JobSets
from hpcsimkit.reproductions.cush.learners import CushLearner, Learners
from hpcsimkit.reproductions.cush.methods import (
    CUSH,
    EVOLVED,
    EVOLVED_IN_SIGHT,
    FRESH,
    TAUGHT,
    Method,
    evolved,
    heuristics,
    trained,
)
from hpcsimkit.reproductions.cush.runs import Run
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = ["Contest", "Part", "contests", "swept_problems"]

Part = Literal["validation", "learned", "unseen", "given", "swept learned", "swept unseen"]
"""What job sets are for: learned from by CuSH or not; likewise of who was trained for less long (swept)."""


class Contest(NamedTuple):
    """Everybody on the same job sets.

    Parameters
    ----------
    problem : CushProblem
        On which cluster.
    part : str
        What the job sets are for.
    sequences : SequenceSet
        The job sets.
    contestants : sequence of Method
        Who schedules.
    seed : int
        Where the chance of who draws comes from.
    draws : int
        Runs of who draws, on each of them.
    """

    problem: CushProblem
    part: Part
    sequences: SequenceSet
    contestants: Sequence[Method]
    seed: int
    draws: int = 1

    @property
    def meetings(self) -> dict[str, Run]:
        """Runs of everybody, by row."""
        return {
            each.name: Run(each, self.sequences, self.seed, draws=self.draws if each.by_chance else 1)
            for each in self.contestants
        }

    def families(self, drawn: Collection[str] = ()) -> dict[str, list[str]]:
        """Return rows by what tables call them.

        Parameters
        ----------
        drawn : collection of str
            Families of CuSH whose agents are judged by what they draw; of all others, by what they take for
            the best.
        """
        found: dict[str, list[str]] = {}
        for each in self.contestants:
            if each.selectors is None or each.sample == (each.family in drawn):
                found.setdefault(each.family, []).append(each.name)
        return found


def contests(job_sets: JobSets, learners: Learners) -> Iterator[Contest]:
    """Yield all contests: of each system, of each file, and of Sierra with other clusters and horizons."""
    maker = _Contests(job_sets, learners)
    scale = job_sets.scale
    for system in scale.systems:
        yield from maker.of_system(CushProblem(system=system))
    for given in job_sets.given:
        problem = CushProblem(system=given.system)
        known = given.system in scale.systems
        everybody = maker.everybody(problem) if known else list(heuristics(problem))
        yield maker.contest(problem, "given", given.sequences, everybody, scale.draws)
    for problem in swept_problems(job_sets):
        yield from maker.of_swept(problem)


def swept_problems(job_sets: JobSets) -> list[CushProblem]:
    """Return Sierra with clusters of several sizes, and with several horizons, each once."""
    scale = job_sets.scale
    sizes = [CushProblem(nodes=nodes) for nodes in scale.nodes]
    return list(dict.fromkeys([*sizes, *(CushProblem(horizon=horizon) for horizon in scale.horizons)]))


@dataclass(frozen=True)
class _Contests:
    """Makes contests; see :func:`contests`."""

    job_sets: JobSets
    learners: Learners

    def contest(
        self, problem: CushProblem, part: Part, sequences: SequenceSet, contestants: Sequence[Method],
        draws: int = 1,
    ) -> Contest:  # fmt: skip
        return Contest(problem, part, sequences, contestants, self.job_sets.seed, draws)

    def others(self, problem: CushProblem) -> list[Method]:
        """Return everybody but CuSH as published."""
        learners = self.learners
        return [
            *heuristics(problem), *trained(FRESH, learners.fresh(problem)),
            *trained(TAUGHT, learners.taught(problem)),
            *evolved(EVOLVED, learners.evolved(problem)),
            *evolved(EVOLVED_IN_SIGHT, learners.evolved_in_sight(problem)),
        ]  # fmt: skip

    def everybody(self, problem: CushProblem) -> list[Method]:
        return [*self.others(problem), *trained(CUSH, self.learners.cush(problem))]

    def of_system(self, problem: CushProblem) -> Iterator[Contest]:
        job_sets, learners = self.job_sets, self.learners
        cush, fresh, taught = learners.cush(problem), learners.fresh(problem), learners.taught(problem)
        agents = [*trained(CUSH, cush), *trained(FRESH, fresh), *trained(TAUGHT, taught)]
        yield self.contest(problem, "validation", job_sets.validation(problem), agents)
        others, everybody = self.others(problem), self.everybody(problem)
        for learner in cush:
            contestants = [*others, *trained(CUSH, [learner])]
            yield self.contest(problem, "learned", _played(learner), contestants, job_sets.scale.draws)
        yield self.contest(problem, "unseen", job_sets.unseen(problem), everybody)

    def of_swept(self, problem: CushProblem) -> Iterator[Contest]:
        job_sets, learner = self.job_sets, self.learners.swept(problem)
        contestants = [*heuristics(problem), *trained(CUSH, [learner])]
        if problem == CushProblem(horizon=problem.horizon):  # the cluster is the usual one
            contestants += evolved(EVOLVED_IN_SIGHT, self.learners.evolved_in_sight(problem)[:1])
        yield self.contest(problem, "swept learned", _played(learner), contestants, job_sets.scale.draws)
        yield self.contest(problem, "swept unseen", job_sets.swept(problem), contestants)


def _played(learner: CushLearner) -> SequenceSet:
    """Return the job sets that a learner is trained on."""
    return SequenceSet(f"{learner.name}-learned", tuple(learner.job_sets()))
