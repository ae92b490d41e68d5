"""The work of a study as tasks: simulations of policies that know only the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.comparison.case import Ended
from hpcsimkit.experiments.comparison.policy_run import inputs_of
from hpcsimkit.experiments.learn.goal import figures_of
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in, write_arrays
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

SCHEDULE = "schedule.npz"
"""File with the schedule of a simulation."""

PARTS = ("job", "machine", "amounts")
"""Arrays of placements."""

LOST = "lost"
"""Array of lost work by job, and name of its share in the figures of a policy."""


class Simulated(Task):
    """Simulation of a policy as it would run: it knows only the past.

    `part` is the name of the part of the log that the jobs are, for the name of the task.
    """

    kind = "simulation"

    def __init__(self, policy: str, workload: Workload, part: str, settings: Learning) -> None:
        self.policy = policy
        self.workload = workload
        self.part = part
        self.settings = settings

    @property
    def name(self) -> str:
        """Part of the log and policy."""
        return f"{self.part}-{file_name(self.policy)}"

    @property
    def label(self) -> str:
        """Name of the policy."""
        return self.policy

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.workload)

    def inputs(self) -> Any:
        """Return the policy, the jobs, the machines and the options."""
        return inputs_of(self.policy, self.settings, self.workload)

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and write the schedule."""
        policy, setup = self.settings.policy_named(self.policy), self.settings.setup
        scenario = Scenario(self.workload, setup)
        result = scenario.simulation(policy, [Ended(tell)], self.policy).run()
        write_arrays(
            folder / SCHEDULE,
            submit_time=result.submit_time,
            start_time=result.start_time,
            end_time=result.end_time,
            mode=result.mode,
            killed=result.killed,
            lost=_lost(result),
            **_where(result),
        )
        return {"policy": self.policy, "schedule_sha256": result.hash}

    def arrays(self, store: Store) -> dict[str, NDArray[Any]]:
        """Return the arrays of a complete simulation."""
        file = store.folder(self) / SCHEDULE
        return arrays_in(read_bytes(file, Format.TASK_ARRAYS), file)

    def figures(self, store: Store, jobs: NDArray[np.bool_]) -> dict[str, float]:
        """Return the metrics of some jobs of a complete simulation, and their lost work as a share of all."""
        work = float((self.workload.run_time * self.workload.size)[jobs].sum())
        lost = float(self.arrays(store)[LOST][jobs].sum())
        return {**figures_of(self.result(store), jobs), LOST: lost / work if work else 0.0}

    def result(self, store: Store) -> Result:
        """Return the result of a complete simulation."""
        found, kill = dict(self.arrays(store)), self.settings.setup.walltime == "kill"
        workload = self.workload.killed_at_limit if kill else self.workload
        cluster = as_cluster(self.settings.scheduled, workload)
        machines = cluster.whole if isinstance(cluster, Partitions) else cluster
        parts = {name: found[f"placements.{name}"] for name in PARTS if f"placements.{name}" in found}
        return Result(
            workload=workload,
            policy=self.policy,
            size=cluster.size,
            submit_time=found["submit_time"],
            start_time=found["start_time"],
            end_time=found["end_time"],
            mode=found["mode"],
            killed=found["killed"],
            placements=Placements(machines, len(workload), **parts)
            if isinstance(machines, Machines)
            else None,
            started_in=found.get("started_in"),
        )


def _lost(result: Result) -> NDArray[np.float64]:
    """Return the lost work of each job [node-seconds, or those of the first resource]."""
    if result.attempts is None:
        return np.zeros(len(result.workload))
    return result.attempts.lost_work(result.workload).astype(np.float64)


def _where(result: Result) -> dict[str, NDArray[Any]]:
    """Return the machines and the partition of each job as arrays by name, so far as there are any."""
    found: dict[str, NDArray[Any]] = {}
    if result.placements is not None:
        found |= {f"placements.{name}": getattr(result.placements, name) for name in PARTS}
    if result.started_in is not None:
        found["started_in"] = result.started_in
    return found
