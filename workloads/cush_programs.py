"""Programs that are executed again and again on CuSH's cluster, each of one kind of work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cush import CUSH_KINDS, CushJobSets

__all__ = ["CushPrograms"]


@dataclass(frozen=True, kw_only=True)
class CushPrograms:
    """A generator of a log of CuSH's job sets, one after the other, in which programs come back.

    Each job is an execution of a program, all equally likely; column ``executable`` says of which. Every
    other program, in random order, is network-bound, and so are all of its executions. How long an execution
    takes and how much it asks for does not depend on the program: that is as in the job sets. So all that an
    execution tells about the next is the kind.

    Parameters
    ----------
    sets : CushJobSets
        What draws the job sets.
    programs : int
        How many programs there are, >= 1.
    every : int
        Time between the beginnings of job sets [steps], >= 0; nearly all are over after 200.
    least_used : float
        Jobs run for a share of the time requested that is uniform from this to 1, rounded up to steps, in
        [0, 1]; 1, as in CuSH, if requests are exact.

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
        """Return a log of so many job sets: times in steps (a step is a second of the simulation).

        Raises
        ------
        UsageError
            A parameter is out of its range.
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
            "id": np.arange(1, jobs + 1), "submit_time": columns["submit_time"] + begins,
            "run_time": np.maximum(used, 1), "executable": executable, "kind": kinds[executable],
        }  # fmt: skip
        name = f"cush-{self.sets.system}-programs"
        step = f"{self!r}: {jobsets} job sets"
        return Workload(
            columns, name=name, provenance=(step,), resources=sets[0].resources, labels=sets[0].labels
        )
