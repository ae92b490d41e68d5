"""The work of a study as tasks: simulations on line, and searches over recorded predictions."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.learn.goal import Goal, figures_of
from hpcsimkit.experiments.learn.recipe import Family
from hpcsimkit.experiments.policy_run import Ended
from hpcsimkit.experiments.registry import make
from hpcsimkit.io.files import read_bytes, write_bytes
from hpcsimkit.io.npz import arrays_in
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.prediction import LEVELS
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.portfolio.guarded import Guarded
from hpcsimkit.policies.predicting.quality import Quality
from hpcsimkit.results.result import Result

__all__ = ["Search", "Simulated"]

Floats = NDArray[np.float64]
Walltime = Literal["run", "kill"]

SCHEDULE = "schedule.npz"
"""File with the schedule of a simulation and, if recorded, the predictions."""

WORTH_COMPILING = 200_000
"""Number of simulated jobs from which a search takes the compiled simulator, if numba is installed."""

WIDTH = 0.5
"""First standard deviation of a search, in all dimensions."""


class Recorder(Observer):
    """Observer that records what the estimator predicts for each job when it arrives.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    """

    def __init__(self, jobs: int) -> None:
        self.mean = np.zeros(jobs)
        self.harmonic = np.zeros(jobs)
        self.quantiles = np.zeros((jobs, len(LEVELS)))

    def on_submit(self, job: Job, system: System) -> None:
        """Record the prediction."""
        prediction = system.estimator.prediction(job)
        self.mean[job.index] = max(prediction.mean, 1.0)
        self.harmonic[job.index] = prediction.harmonic
        self.quantiles[job.index] = prediction.quantiles

    @property
    def arrays(self) -> dict[str, Floats]:
        """What was recorded, by name."""
        return {"mean": self.mean, "harmonic": self.harmonic, "quantiles": self.quantiles}


class Simulated(Task):
    """Simulation of a policy as it would run: it knows only the past.

    Parameters
    ----------
    policy : str
        Name of the policy.
    workload : Workload
        The jobs.
    part : str
        Name of the period that the jobs cover, for the name of the task.
    walltime : {"run", "kill"}
        Treatment of jobs that exceed their requested time.
    seed : int
        Random seed of the run.
    records : bool
        Whether predictions are recorded. Default: False.
    """

    kind = "simulation"

    def __init__(
        self,
        policy: str,
        workload: Workload,
        part: str,
        walltime: Walltime,
        seed: int,
        *,
        records: bool = False,
    ) -> None:
        self.policy = policy
        self.workload = workload
        self.part = part
        self.walltime: Walltime = walltime
        self.seed = seed
        self.records = records

    @property
    def name(self) -> str:
        """Period and policy."""
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
        """Return the policy, the jobs and the options."""
        return [make(self.policy), self.workload, self.walltime, self.seed, self.records]

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and write the schedule."""
        recorder = Recorder(len(self.workload))
        observers = [Ended(tell), *[recorder] * self.records]
        simulation = self._simulation(observers)
        result = simulation.run()
        predictions = recorder.arrays if self.records else {}
        file = io.BytesIO()
        np.savez_compressed(
            file,
            allow_pickle=False,
            start_time=result.start_time,
            end_time=result.end_time,
            mode=result.mode,
            killed=result.killed,
            **predictions,
        )
        write_bytes(folder / SCHEDULE, file.getvalue())
        outcome = {"policy": self.policy, "schedule_sha256": result.hash, "seconds": result.seconds}
        if isinstance(simulation.policy, Pipeline) and isinstance(simulation.policy.order, Guarded):
            order = simulation.system.order
            assert isinstance(order, Guarded)
            outcome["followed"] = order.followed
        return outcome

    def _simulation(self, observers: Sequence[Observer]) -> Simulation:
        return Simulation(
            self.workload,
            make(self.policy),
            seed=self.seed,
            walltime=self.walltime,
            observers=observers,
            name=self.policy,
        )

    def arrays(self, store: Store) -> dict[str, NDArray[Any]]:
        """Return the arrays of a complete simulation: the schedule and, if recorded, the predictions."""
        file = store.folder(self) / SCHEDULE
        return arrays_in(read_bytes(file), file)

    def calibration(self, store: Store, jobs: NDArray[np.bool_]) -> dict[str, float]:
        """Return the share of some jobs that do not exceed each recorded quantile, by its level."""
        found, took = self.arrays(store), self.workload.run_time.astype(np.float64)
        quality = Quality(found["mean"], found["quantiles"], took).among(jobs)
        return {f"{level:g}": float(share) for level, share in zip(LEVELS, quality.coverage, strict=True)}

    def result(self, store: Store) -> Result:
        """Return the result of a complete simulation."""
        found: dict[str, Any] = dict(self.arrays(store))
        workload = self.workload.killed_at_limit if self.walltime == "kill" else self.workload
        assert workload.machine_size is not None
        return Result(
            workload=workload,
            policy=self.policy,
            size=workload.machine_size,
            submit_time=workload.column("submit_time"),
            start_time=found["start_time"],
            end_time=found["end_time"],
            mode=found["mode"],
            killed=found["killed"],
        )


class Search(Task):
    """Search for the parameters of a family of orders by CMA-ES.

    Candidates are simulated on all jobs of the past, with the predictions recorded in a simulation of FCFS
    with EASY. What a candidate is worth is the mean of its losses in the parts, relative to FCFS with EASY.
    (Hansen, The CMA Evolution Strategy: A Tutorial, 2016.)

    Parameters
    ----------
    family : Family
        Family of orders.
    workload : Workload
        Jobs from which to learn.
    parts : mapping of str to array of bool, shape (jobs,)
        Parts of the jobs.
    recording : Simulated
        Simulation of FCFS with EASY of the same jobs with recorded predictions.
    store : Store
        Store of the outcome of the recording.
    goal : Goal
        Goal of the search.
    evaluations : int
        Number of simulations.
    """

    kind = "search"

    def __init__(
        self,
        family: Family,
        workload: Workload,
        parts: Mapping[str, NDArray[np.bool_]],
        recording: Simulated,
        store: Store,
        goal: Goal,
        evaluations: int,
    ) -> None:
        self.family = family
        self.workload = workload
        self.parts = parts
        self.recording = recording
        self.store = store
        self.goal = goal
        self.evaluations = evaluations

    @property
    def name(self) -> str:
        """Family and parts."""
        return f"search-{self.family.name}-{'-'.join(self.parts)}"

    @property
    def size(self) -> int:
        """Number of simulations."""
        return self.evaluations

    def inputs(self) -> Any:
        """Return the family, the jobs, the recording and the goal."""
        parts = {name: mask.astype(np.int64) for name, mask in self.parts.items()}
        return [self.family, self.workload, parts, self.recording.fingerprint, self.goal, self.evaluations]

    def run(self, folder: Path, tell: Tell) -> Any:
        """Search, and return the best parameters with their loss."""
        import cma

        reference = self._figures(self.recording.result(self.store))
        logarithms, submit = self._logarithms(), self.workload.submit_time.astype(np.float64)
        longest = max(figures["max_wait_time"] for figures in reference.values())
        evolution = cma.CMAEvolutionStrategy(
            self.family.start(longest),
            WIDTH,
            {
                "bounds": [list(ends) for ends in self.family.ranges],
                "maxfevals": self.evaluations,
                "seed": self.recording.seed + 1,  # 0 would be the clock
                "verbose": -9,
            },
        )
        best, least, done = {}, np.inf, 0
        while not evolution.stop():
            positions, losses = evolution.ask(), []
            for position in positions:
                parameters = self.family.parameters(position)
                figures = self._figures(self._simulated(self.family.order(parameters, submit, logarithms)))
                losses.append(
                    sum(self.goal.loss(figures[part], reference[part]) for part in figures) / len(figures)
                )
                if losses[-1] < least:
                    best, least = parameters, losses[-1]
                done += 1
                tell(min(done, self.evaluations))
            evolution.tell(positions, losses)
        return {"family": self.family.name, "parameters": best, "loss": least, "evaluations": done}

    def _logarithms(self) -> dict[str, Floats]:
        """Return the natural logarithms of all features of the jobs."""
        predictions = self.recording.arrays(self.store)
        return {
            "mean": np.log(predictions["mean"]),
            "harmonic": np.log(predictions["harmonic"]),
            "requested": np.log(self.workload.requested_time),
            "size": np.log(np.maximum(self.workload.size, 1)),
        }

    def _simulated(self, order: Order) -> Result:
        """Return the result of an order with EASY."""
        compiles = len(self.workload) * self.evaluations >= WORTH_COMPILING and find_spec("numba") is not None
        return Simulation(
            self.workload,
            Pipeline(order, backfiller=EASY()),
            seed=self.recording.seed,
            walltime=self.recording.walltime,
            simulator="compiled" if compiles else "simpy",
        ).run()

    def _figures(self, result: Result) -> dict[str, dict[str, float]]:
        """Return the metrics of each part."""
        return {name: figures_of(result, mask) for name, mask in self.parts.items()}
