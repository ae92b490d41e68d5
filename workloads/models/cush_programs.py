"""Logs with repeated executions of programs on CuSH's cluster, where each program has one job type."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.models.cush import CUSH_KINDS, CushJobSets

__all__ = ["CushPrograms"]


@dataclass(frozen=True, kw_only=True)
class CushPrograms:
    """Generator of logs of consecutive CuSH job sets with repeated executions of programs.

    Each job is an execution of a program, chosen uniformly at random and given in the column ``executable``.
    A random half of the programs is network-bound, with all their executions. Run times and requests do not
    depend on the program and are distributed as in the job sets, so executions of a program have only their
    job type in common.

    Parameters
    ----------
    sets : CushJobSets
        Generator of the job sets.
    programs : int
        Number of programs, >= 1.
    every : int
        Time between the starts of consecutive job sets [steps], >= 0; nearly all sets end within 200 steps.
    least_used : float
        Minimum of the ratio of run time to requested time, which is uniform up to 1, in [0, 1]; run times are
        rounded up to steps. With 1, as in CuSH, requested times are exact.

    Examples
    --------
    >>> log = CushPrograms(programs=10).generate(np.random.default_rng(1), jobsets=3)
    >>> len(log), log.labels["kind"], int(log.submit_time.max()) // 200
    (60, ('dgemm', 'daxpy'), 2)
    >>> len({(program, kind) for program, kind in zip(log.executable.tolist(), log.column("kind").tolist())})
    10
    """

    sets: CushJobSets = field(default_factory=CushJobSets)
    programs: int = 40
    every: int = 200
    least_used: float = 1.0

    def generate(self, rng: np.random.Generator, jobsets: int = 1) -> Workload:
        """Return a log of `jobsets` job sets, with times in steps (one step is one simulated second).

        Raises
        ------
        UsageError
            If a parameter is out of its range.
        """
        if self.programs < 1 or self.every < 0 or not 0 <= self.least_used <= 1:
            raise UsageError(
                "CushPrograms needs programs of at least 1, every of at least 0 and least_used from 0 to 1, "
                f"found {self.programs}, {self.every} and {self.least_used}"
            )
        kinds = rng.permutation(self.programs) % len(CUSH_KINDS)
        sets = self.sets.generate(rng, jobsets)
        columns = {name: np.concatenate([each.column(name) for each in sets]) for name in sets[0].columns}
        jobs = len(columns["id"])
        begins = np.repeat(np.arange(jobsets) * self.every, self.sets.jobs)
        executable = rng.integers(0, self.programs, jobs)
        used = np.ceil(columns["requested_time"] * rng.uniform(self.least_used, 1, jobs))
        columns |= {
            "id": np.arange(1, jobs + 1),
            "submit_time": columns["submit_time"] + begins,
            "run_time": np.maximum(used, 1),
            "executable": executable,
            "kind": kinds[executable],
        }
        name = f"cush-{self.sets.system}-programs"
        step = f"{self!r}: {jobsets} job sets"
        return Workload(
            columns, name=name, provenance=(step,), resources=sets[0].resources, labels=sets[0].labels
        )
