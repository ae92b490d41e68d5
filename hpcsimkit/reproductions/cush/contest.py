"""Policies under test on training, unseen and given job sets, and on other clusters and horizons."""

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
    EVOLVED_ON_ALL,
    FRESH,
    TAUGHT,
    Method,
    evolved,
    heuristics,
    outsiders,
    trained,
)
from hpcsimkit.reproductions.cush.runs import Run
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = ["Contest", "Part", "contests", "swept_problems"]

Part = Literal["validation", "learned", "unseen", "given", "swept learned", "swept unseen"]
"""Uses of job sets: for training CuSH or not; "swept" ones belong to agents with shorter trainings."""


class Contest(NamedTuple):
    """All policies under test on the same job sets.

    Parameters
    ----------
    problem : CushProblem
        Cluster and observation.
    part : str
        Use of the job sets.
    sequences : SequenceSet
        Job sets.
    contestants : sequence of Method
        Policies under test.
    seed : int
        Random seed of stochastic policies.
    draws : int
        Number of runs of a stochastic policy on each job set.
    """

    problem: CushProblem
    part: Part
    sequences: SequenceSet
    contestants: Sequence[Method]
    seed: int
    draws: int = 1

    @property
    def meetings(self) -> dict[str, Run]:
        """Runs of all policies, by row."""
        return {
            each.name: Run(each, self.sequences, self.seed, draws=self.draws if each.by_chance else 1)
            for each in self.contestants
        }

    def families(self, drawn: Collection[str] = ()) -> dict[str, list[str]]:
        """Return rows by name in the tables.

        Parameters
        ----------
        drawn : collection of str
            Groups of CuSH agents compared with sampled actions; all others are compared with greedy actions.
        """
        found: dict[str, list[str]] = {}
        for each in self.contestants:
            if each.selectors is None or each.sample == (each.family in drawn):
                found.setdefault(each.family, []).append(each.name)
        return found


def contests(job_sets: JobSets, learners: Learners) -> Iterator[Contest]:
    """Yield all comparisons: by system, by file, and for Sierra with other clusters and horizons."""
    maker = _Contests(job_sets, learners)
    scale = job_sets.scale
    for system in scale.systems:
        yield from maker.of_system(CushProblem(system=system))
    for given in job_sets.given:
        problem = CushProblem(system=given.system)
        known = given.system in scale.systems
        everybody = maker.everybody(problem) if known else [*heuristics(problem), *outsiders(problem)]
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
    """Factory of comparisons; see :func:`contests`."""

    job_sets: JobSets
    learners: Learners

    def contest(
        self,
        problem: CushProblem,
        part: Part,
        sequences: SequenceSet,
        contestants: Sequence[Method],
        draws: int = 1,
    ) -> Contest:
        return Contest(problem, part, sequences, contestants, self.job_sets.seed, draws)

    def others(self, problem: CushProblem) -> list[Method]:
        """Return all policies but CuSH as published."""
        learners = self.learners
        return [
            *heuristics(problem),
            *outsiders(problem),
            *trained(FRESH, learners.fresh(problem)),
            *trained(TAUGHT, learners.taught(problem)),
            *evolved(EVOLVED, learners.evolved(problem)),
            *evolved(EVOLVED_IN_SIGHT, learners.evolved_in_sight(problem)),
            *evolved(EVOLVED_ON_ALL, learners.evolved_on_all(problem)),
        ]

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
        if problem == CushProblem(horizon=problem.horizon):  # the cluster has its default size
            contestants += evolved(EVOLVED_IN_SIGHT, self.learners.evolved_in_sight(problem)[:1])
        yield self.contest(problem, "swept learned", _played(learner), contestants, job_sets.scale.draws)
        yield self.contest(problem, "swept unseen", job_sets.swept(problem), contestants)


def _played(learner: CushLearner) -> SequenceSet:
    """Return the training job sets of a learner."""
    return SequenceSet(f"{learner.name}-learned", tuple(learner.job_sets()))
