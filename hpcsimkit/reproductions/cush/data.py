"""Job sets: those that everybody is tested on, those to choose by, and those of files that are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import numpy as np

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.errors import UsageError
from hpcsimkit.machines import Machines
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads.cush import CUSH_SYSTEMS, read_job_sets

__all__ = ["FULL", "QUICK", "Given", "JobSets", "Scale", "System", "label_of", "title_of"]

System = Literal["sierra", "summit"]

VALIDATION, UNSEEN = 101, 102
"""What random numbers are for; trainings have other ones."""


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Parameters
    ----------
    systems : tuple of {"sierra", "summit"}
        For which agents are trained.
    epochs, job_sets, simulations : int
        Of a training of CuSH; see :class:`~hpcsimkit.agents.cush.trainer.CushSettings`.
    seeds, fresh_seeds, taught_seeds, evolved_seeds : int
        Agents of each kind and system: trained as published, on other job sets in each epoch, by a teacher,
        and evolved.
    taught_epochs : int
        Of a training by a teacher.
    evolved_steps : int or None
        Decisions that an agent takes while it evolves; None for the usual number.
    validation, unseen : int
        Job sets to choose by, and to be tested on.
    draws : int
        Runs of who draws on each of few job sets: on those learned from, and on those of files.
    sweep_epochs : int
        Of each training on clusters of other sizes, and with other horizons.
    nodes, horizons : tuple of int
        Sizes of Sierra's cluster (figure 8), and steps that are seen; none for none of it.
    sweep_unseen : int
        Job sets that these agents are tested on.
    """

    systems: tuple[System, ...] = ("sierra", "summit")
    epochs: int = 300
    job_sets: int = 10
    simulations: int = 24
    seeds: int = 3
    fresh_seeds: int = 3
    taught_seeds: int = 3
    evolved_seeds: int = 3
    taught_epochs: int = 450
    evolved_steps: int | None = None
    validation: int = 100
    unseen: int = 500
    draws: int = 30
    sweep_epochs: int = 60
    nodes: tuple[int, ...] = (16, 32, 64, 128, 256)
    horizons: tuple[int, ...] = (2, 5, 10, 20)
    sweep_unseen: int = 500


FULL = Scale()
QUICK = Scale(
    systems=("sierra",), epochs=30, job_sets=5, simulations=12, seeds=1, fresh_seeds=1, taught_seeds=1,
    evolved_seeds=1, taught_epochs=10, evolved_steps=100_000, validation=20, unseen=50, draws=3,
    sweep_epochs=5, nodes=(16, 128), horizons=(2, 5), sweep_unseen=50,
)  # fmt: skip


def title_of(system: str) -> str:
    """Return what texts call a system.

    >>> title_of("sierra")
    'Sierra'
    """
    return system.capitalize()


def label_of(problem: CushProblem) -> str:
    """Return a short name of a problem, fit to be part of the name of a folder.

    >>> label_of(CushProblem()), label_of(CushProblem(system="summit", nodes=16, horizon=2))
    ('sierra', 'summit-16-nodes-horizon-2')
    """
    usual = CushProblem(system=problem.system)
    nodes = f"-{problem.nodes}-nodes" * (problem.nodes != usual.nodes)
    return f"{problem.system}{nodes}" + f"-horizon-{problem.horizon}" * (problem.horizon != usual.horizon)


@dataclass(frozen=True)
class Given(Log):
    """A file of job sets.

    Parameters
    ----------
    path : Path
        CSV, plain or gzip; see :func:`~hpcsimkit.workloads.cush.read_job_sets`. Its name says for which
        system its job sets are.

    Examples
    --------
    >>> Given(Path("my_Sierra_sets.csv")).system, Given(Path("my_sierra_sets.csv.gz")).name
    ('sierra', 'my_sierra_sets.csv')
    """

    @property
    def system(self) -> System:
        """Whose nodes the job sets are for."""
        found = [system for system in CUSH_SYSTEMS if system in self.path.name.lower()]
        if len(found) != 1:
            raise UsageError(
                f"{self.path}: whose nodes are these job sets for? The name of a file must have one of the "
                f"words {', '.join(CUSH_SYSTEMS)} in it"
            )
        return cast(System, found[0])

    @cached_property
    def sequences(self) -> SequenceSet:
        """The job sets on the paper's cluster."""
        problem = CushProblem(system=self.system)
        scenarios = tuple(map(problem.scenario, read_job_sets(self.path)))
        for scenario in scenarios:
            cluster, jobs = scenario.cluster, scenario.workload
            assert isinstance(cluster, Machines)
            misfits = jobs.id[cluster.misfits(jobs)]
            if len(misfits):
                raise UsageError(
                    f"{self.path}: job {misfits[0]} of {jobs.name} asks for more than all {problem.nodes} "
                    f"nodes of {title_of(self.system)} have"
                )
        return SequenceSet(self.name, scenarios)

    def line(self) -> str:
        """Say what there is."""
        count = len(self.sequences.scenarios)
        return f"{self.name}: {count} job set{'s' * (count != 1)} for {title_of(self.system)}"


@dataclass(frozen=True)
class JobSets:
    """All job sets but those that agents learn from.

    Parameters
    ----------
    paths : sequence of Path
        Files that are given.
    scale : Scale
        How many are drawn.
    seed : int
        Where the chance comes from.
    """

    paths: Sequence[Path]
    scale: Scale
    seed: int

    @cached_property
    def given(self) -> Sequence[Given]:
        """Those of files."""
        return each_once([Given(path) for path in self.paths])

    def validation(self, problem: CushProblem) -> SequenceSet:
        """Return those by which it is chosen whether agents draw or take the best action."""
        return self._drawn(problem, "validation", VALIDATION, self.scale.validation)

    def unseen(self, problem: CushProblem) -> SequenceSet:
        """Return those that everybody is tested on: nobody has learned from them."""
        return self._drawn(problem, "unseen", UNSEEN, self.scale.unseen)

    def swept(self, problem: CushProblem) -> SequenceSet:
        """Return the first of them on another cluster: jobs ask for the same shares of it."""
        return self._drawn(problem, "swept-unseen", UNSEEN, self.scale.sweep_unseen)

    def _drawn(self, problem: CushProblem, part: str, purpose: int, count: int) -> SequenceSet:
        rng = np.random.default_rng([self.seed, purpose])
        return SequenceSet(f"{label_of(problem)}-{part}", tuple(problem.scenarios(rng, count)))

    def lines(self) -> Iterator[str]:
        """Say what there is."""
        scale = self.scale
        for system in scale.systems:
            node = CUSH_SYSTEMS[system]
            yield (
                f"{title_of(system)}: {CushProblem().nodes} nodes of {node.cpus} CPUs and {node.gpus} GPUs; "
                f"{scale.job_sets} job sets to learn from with each seed, {scale.validation} to choose by, "
                f"{scale.unseen} to be tested on"
            )
        for given in self.given:
            yield given.line()
