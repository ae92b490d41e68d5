"""The outcome of a run, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    from hpcsimkit.simulation import Simulation

__all__ = ["MODE_NAMES", "Result"]

MODE_NAMES = ("none", "ready", "reserved", "backfilled")
"""Names of the start modes; their numbers are those of :class:`~hpcsimkit.system.Mode`."""


@dataclass(frozen=True, eq=False)
class Result:
    """What happened to each job, in the order of the log; times in the log's own seconds.

    Parameters
    ----------
    workload : Workload
        The jobs as they were simulated (with ``walltime="kill"``: with the run times they got).
    policy : str
        What tables and pictures call the policy.
    size : int
        Nodes of the cluster.
    submit_time, start_time, end_time : array of int64, shape (jobs,)
        -1 for what never happened (rejected jobs). Submission differs from the log's with dependencies.
    mode : array of uint8, shape (jobs,)
        How each job started: see `MODE_NAMES`.
    killed : array of bool, shape (jobs,)
        Whether the job was ended at its requested time although it would have run longer.
    seed : int
        Seed of the run.
    options : mapping
        Whatever else decided the schedule: ``walltime, dependencies, period``.
    choices : tuple of (str, int)
        Answers of open seats: stage and position among the options.
    seconds : float
        Time the simulation took [s of wall clock], without what happened outside open seats.
    passes : int
        Passes of the policy.
    """

    workload: Workload
    policy: str
    size: int
    submit_time: NDArray[np.int64]
    start_time: NDArray[np.int64]
    end_time: NDArray[np.int64]
    mode: NDArray[np.uint8]
    killed: NDArray[np.bool_]
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    choices: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    passes: int = 0

    @classmethod
    def of(cls, simulation: Simulation, seconds: float) -> Result:
        """Read the outcome of a run that is over."""
        system, given = simulation.system, simulation.workload
        return cls(
            workload=system.workload,
            policy=simulation.name,
            size=simulation.cluster.size,
            submit_time=system.column("submit_time"),
            start_time=np.array(system.starts, dtype=np.int64),
            end_time=np.array(system.finishes, dtype=np.int64),
            mode=np.frombuffer(bytes(system.modes), dtype=np.uint8),
            killed=given.column("run_time") > system.workload.column("run_time"),
            seed=simulation.seed,
            options={
                "walltime": simulation.walltime,
                "dependencies": simulation.dependencies,
                "period": simulation.period,
            },
            choices=tuple(simulation.choices),
            seconds=seconds,
            passes=system.passes,
        )
