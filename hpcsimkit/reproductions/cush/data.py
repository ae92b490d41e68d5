"""Job sets for validation and tests, generated or read from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import numpy as np

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, read_job_sets

__all__ = ["FULL", "QUICK", "Given", "JobSets", "Scale", "System", "label_of", "title_of"]

System = Literal["sierra", "summit"]

VALIDATION, UNSEEN = 101, 102
"""Keys of the random streams for validation and test sets; trainings use other streams."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    systems : tuple of {"sierra", "summit"}
        Systems for which agents are trained.
    epochs, job_sets, simulations : int
        Settings of a training of CuSH; see :class:`~hpcsimkit.agents.cush.trainer.CushSettings`.
    seeds, fresh_seeds, taught_seeds, evolved_seeds : int
        Number of agents of each type and system: trained as published, trained on new job sets in each epoch,
        trained by imitation, and trained by the cross-entropy method.
    taught_epochs : int
        Number of epochs of imitation learning.
    evolved_steps : int or None
        Number of decisions used to train a cross-entropy agent; None for the default.
    whole_queue_seeds : int
        Number of cross-entropy agents of each system with all jobs in slots.
    whole_queue_steps : int
        Number of decisions used to train each of these.
    validation, unseen : int
        Number of job sets for validation, and for tests.
    draws : int
        Number of runs of a stochastic policy on each training job set and on each set from a file.
    sweep_epochs : int
        Number of epochs of each training on clusters of other sizes, and with other horizons.
    nodes, horizons : tuple of int
        Sizes of Sierra's cluster (figure 8), and horizons of the observation [steps]; an empty tuple omits
        the comparison.
    sweep_unseen : int
        Number of test job sets of these agents.
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
    whole_queue_seeds: int = 1
    whole_queue_steps: int = 400_000
    validation: int = 100
    unseen: int = 500
    draws: int = 30
    sweep_epochs: int = 60
    nodes: tuple[int, ...] = (16, 32, 64, 128, 256)
    horizons: tuple[int, ...] = (2, 5, 10, 20)
    sweep_unseen: int = 500


FULL = Scale()
QUICK = Scale(
    systems=("sierra",),
    epochs=30,
    job_sets=5,
    simulations=12,
    seeds=1,
    fresh_seeds=1,
    taught_seeds=1,
    evolved_seeds=1,
    taught_epochs=10,
    evolved_steps=100_000,
    whole_queue_steps=20_000,
    validation=20,
    unseen=50,
    draws=3,
    sweep_epochs=5,
    nodes=(16, 128),
    horizons=(2, 5),
    sweep_unseen=50,
)


def title_of(system: str) -> str:
    """Return the name of a system in texts.

    >>> title_of("sierra")
    'Sierra'
    """
    return system.capitalize()


def label_of(problem: CushProblem) -> str:
    """Return a short name of a problem, valid as part of a folder name.

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
        CSV file, plain or gzip; see :func:`~hpcsimkit.workloads.models.cush.read_job_sets`. Its name contains
        the name of the system.

    Examples
    --------
    >>> Given(Path("my_Sierra_sets.csv")).system, Given(Path("my_sierra_sets.csv.gz")).name
    ('sierra', 'my_sierra_sets.csv')
    """

    @property
    def system(self) -> System:
        """System of the job sets, by the file name."""
        found = [system for system in CUSH_SYSTEMS if system in self.path.name.lower()]
        if len(found) != 1:
            raise UsageError(
                f"{self.path}: the system of the job sets is unknown; the file name must contain one of the "
                f"words {', '.join(CUSH_SYSTEMS)}"
            )
        return cast(System, found[0])

    @cached_property
    def sequences(self) -> SequenceSet:
        """Job sets on the paper's cluster."""
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
        """Return a line on the file."""
        count = len(self.sequences.scenarios)
        return f"{self.name}: {count} job set{'s' * (count != 1)} for {title_of(self.system)}"


@dataclass(frozen=True)
class JobSets:
    """All job sets other than the training ones.

    Parameters
    ----------
    paths : sequence of Path
        Files of given job sets.
    scale : Scale
        Size preset of the experiment.
    seed : int
        Random seed.
    """

    paths: Sequence[Path]
    scale: Scale
    seed: int

    @cached_property
    def given(self) -> Sequence[Given]:
        """Files of given job sets."""
        return each_once([Given(path) for path in self.paths])

    def validation(self, problem: CushProblem) -> SequenceSet:
        """Return the validation sets, which decide between sampled and greedy actions."""
        return self._drawn(problem, "validation", VALIDATION, self.scale.validation)

    def unseen(self, problem: CushProblem) -> SequenceSet:
        """Return the test sets, on which no agent is trained."""
        return self._drawn(problem, "unseen", UNSEEN, self.scale.unseen)

    def swept(self, problem: CushProblem) -> SequenceSet:
        """Return the first test sets on another cluster: jobs request the same shares of it."""
        return self._drawn(problem, "swept-unseen", UNSEEN, self.scale.sweep_unseen)

    def _drawn(self, problem: CushProblem, part: str, purpose: int, count: int) -> SequenceSet:
        rng = np.random.default_rng([self.seed, purpose])
        return SequenceSet(f"{label_of(problem)}-{part}", tuple(problem.scenarios(rng, count)))

    def lines(self) -> Iterator[str]:
        """Yield a line on each system and each file."""
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
