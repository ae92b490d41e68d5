"""The work of a study as tasks: online simulations, and a search over recorded predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled.support import obstacle
from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.comparison.case import Ended
from hpcsimkit.experiments.comparison.policy_run import inputs_of
from hpcsimkit.experiments.learn.goal import REFERENCE, Goal, figures_of
from hpcsimkit.experiments.learn.recipe import RANGES, keys, parameters, start
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in, write_arrays
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.prediction import LEVELS
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import KeyColumn
from hpcsimkit.policies.portfolio.guarded import Guarded
from hpcsimkit.policies.predicting.quality import Quality
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

Floats = NDArray[np.float64]
SCHEDULE = "schedule.npz"
"""File with the schedule of a simulation and, if recorded, the predictions."""

WORTH_COMPILING = 200_000
"""Number of simulated jobs from which a search takes the compiled simulator where it can."""

PARTS = ("job", "machine", "amounts")
"""Arrays of placements."""

WIDTH, WIDTHS = 0.25, [1.0, 2.0, 1.0, 1.0, 1.0]
"""First standard deviation of a search, and its factors for the dimensions."""

RESTRAINT = 0.05
"""Loss for each squared unit of distance from the first position, in units of the factors above."""

VERSIONS = 3
"""Number of versions of the past on which each candidate is simulated: the log's own and shaken ones."""

SHIFT, DAY = 2, 86_400
"""Maximum number of days by which a user is shifted, and their length [s]."""


class Recorder(Observer):
    """Observer that records what the estimator predicts for each job when it arrives."""

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

    `part` is the name of the period that the jobs cover, for the name of the task. Predictions are recorded
    if `records`.
    """

    kind = "simulation"

    def __init__(
        self,
        policy: str,
        workload: Workload,
        part: str,
        settings: Learning,
        *,
        records: bool = False,
    ) -> None:
        self.policy = policy
        self.workload = workload
        self.part = part
        self.settings = settings
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
        """Return the policy, the jobs, the machines and the options."""
        return [inputs_of(self.policy, self.settings, self.workload), self.records]

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and write the schedule."""
        recorder = Recorder(len(self.workload))
        observers = [Ended(tell), *[recorder] * self.records]
        simulation = self._simulation(observers)
        result = simulation.run()
        predictions = recorder.arrays if self.records else {}
        write_arrays(
            folder / SCHEDULE,
            submit_time=result.submit_time,
            start_time=result.start_time,
            end_time=result.end_time,
            mode=result.mode,
            killed=result.killed,
            **predictions,
            **_where(result),
        )
        outcome: dict[str, Any] = {"policy": self.policy, "schedule_sha256": result.hash}
        if isinstance(simulation.policy, Pipeline) and isinstance(simulation.policy.order, Guarded):
            order = simulation.system.order
            assert isinstance(order, Guarded)
            outcome["followed"] = order.followed
        return outcome

    def _simulation(self, observers: Sequence[Observer]) -> Simulation:
        policy, setup = self.settings.policy_named(self.policy), self.settings.setup
        return Simulation(self.workload, policy, setup=setup, observers=observers, name=self.policy)

    def arrays(self, store: Store) -> dict[str, NDArray[Any]]:
        """Return the arrays of a complete simulation: the schedule and, if recorded, the predictions."""
        file = store.folder(self) / SCHEDULE
        return arrays_in(read_bytes(file, Format.TASK_ARRAYS), file)

    def calibration(self, store: Store, jobs: NDArray[np.bool_]) -> dict[str, float]:
        """Return the share of some jobs that do not exceed each recorded quantile, by its level."""
        found, took = self.arrays(store), self.workload.run_time.astype(np.float64)
        quality = Quality(found["mean"], found["quantiles"], took).among(jobs)
        return {f"{level:g}": float(share) for level, share in zip(LEVELS, quality.coverage, strict=True)}

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


def _where(result: Result) -> dict[str, NDArray[Any]]:
    """Return the machines and the partition of each job as arrays by name, so far as there are any."""
    found: dict[str, NDArray[Any]] = {}
    if result.placements is not None:
        found |= {f"placements.{name}": getattr(result.placements, name) for name in PARTS}
    if result.started_in is not None:
        found["started_in"] = result.started_in
    return found


class Search(Task):
    """Search for the parameters of the order by CMA-ES.

    Candidates are simulated on the past and on shaken versions of it, with the predictions recorded in a
    simulation of FCFS with EASY. What a candidate is worth is the mean of its losses in all versions and
    parts, relative to a heuristic: a small change of the jobs changes the metrics of one schedule as much as
    one of the parameters does. For the same reason, a distance from the first position counts as a loss.
    (Hansen, The CMA Evolution Strategy: A Tutorial, 2016; on shaking: Tsafrir,
    Ouaknine & Feitelson, MASCOTS 2007.)

    `recording` is the simulation of FCFS with EASY of the same jobs with recorded predictions, and `store`
    has its outcome; `rival` is the heuristic to beat, and `evaluations` the number of simulations.
    """

    kind = "search"

    def __init__(
        self,
        workload: Workload,
        parts: Mapping[str, NDArray[np.bool_]],
        recording: Simulated,
        rival: str,
        store: Store,
        goal: Goal,
        evaluations: int,
        seed: int,
    ) -> None:
        self.workload = workload
        self.parts = parts
        self.recording = recording
        self.rival = rival
        self.store = store
        self.goal = goal
        self.evaluations = evaluations
        self.seed = seed

    @property
    def name(self) -> str:
        """Name of the recording, for predictions are all in which two searches of a study differ."""
        return f"search-{self.recording.name}"

    @property
    def label(self) -> str:
        """The word for what is done."""
        return "search"

    @property
    def size(self) -> int:
        """Number of simulations."""
        return self.evaluations

    def inputs(self) -> Any:
        """Return the jobs, the recording, the baseline, the goal and the effort."""
        parts = {name: mask.astype(np.int64) for name, mask in self.parts.items()}
        effort = [self.evaluations, self.seed, VERSIONS]
        rival = self.recording.settings.policy_named(self.rival)
        return [self.workload, parts, self.recording.fingerprint, rival, self.goal, *effort]

    def run(self, folder: Path, tell: Tell) -> Any:
        """Search, and return the parameters with their loss."""
        import cma

        numbers = np.random.default_rng(self.seed)
        versions = [self.workload, *(shaken(self.workload, numbers) for _ in range(VERSIONS - 1))]
        reference, rival = (
            [
                self._figures(self._simulated(self.recording.settings.policy_named(name), each))
                for each in versions
            ]
            for name in (REFERENCE, self.rival)
        )
        logarithms = self._logarithms()
        longest = max(figures["max_wait_time"] for figures in reference[0].values())
        first = np.array(start(longest, logarithms["size"]))
        shortest = EASY(candidates=KeyColumn(logarithms["mean"]))

        def loss(position: Floats) -> float:
            """Return the mean loss of a position in all parts of all versions, plus the restraint."""
            losses = []
            for version, ours, theirs in zip(versions, reference, rival, strict=True):
                order = keys(parameters(position.tolist()), version.submit_time.astype(float), logarithms)
                figures = self._figures(self._simulated(Pipeline(order, backfiller=shortest), version))
                losses += [self.goal.loss(figures[part], ours[part], theirs[part]) for part in figures]
            away = (position - first) / WIDTHS
            return float(np.mean(losses)) + RESTRAINT * float(away @ away)

        low, high = zip(*RANGES, strict=True)
        evolution = cma.CMAEvolutionStrategy(
            first,
            WIDTH,
            {
                "bounds": [list(low), list(high)],
                "CMA_stds": WIDTHS,
                "maxfevals": self.evaluations // VERSIONS,
                "seed": self.seed + 1,  # 0 would be the clock
                "verbose": -9,
            },
        )
        done = 0
        while not evolution.stop():
            positions, losses = evolution.ask(), []
            for position in positions:
                losses.append(loss(position))
                done += VERSIONS
                tell(min(done, self.evaluations))
            evolution.tell(positions, losses)
        best = parameters(evolution.result.xbest.tolist())
        return {"parameters": best, "loss": float(evolution.result.fbest), "evaluations": done}

    def _logarithms(self) -> dict[str, Floats]:
        """Return the natural logarithms of all features of the jobs."""
        return {
            "mean": np.log(self.recording.arrays(self.store)["mean"]),
            "requested": np.log(self.workload.requested_time),
            "size": np.log(np.maximum(self.workload.size, 1)),
        }

    def _simulated(self, policy: Policy, version: Workload) -> Result:
        """Return the result of a policy on a version of the past."""
        settings = self.recording.settings
        setup = replace(settings.setup, simulator="simpy")
        simulation = Simulation(version, settings.placed(policy), setup=setup)
        if len(version) * self.evaluations >= WORTH_COMPILING and obstacle(simulation) is None:
            compiled = replace(setup, simulator="compiled")
            simulation = Simulation(version, simulation.policy, setup=compiled)
        return simulation.run()

    def _figures(self, result: Result) -> dict[str, dict[str, float]]:
        """Return the metrics of each part."""
        return {name: figures_of(result, mask) for name, mask in self.parts.items()}


def shaken(workload: Workload, numbers: np.random.Generator) -> Workload:
    """Return the jobs with those of each user submitted up to two days earlier or later, all alike.

    Whole days leave the hours of submission and the sessions of a user as they are; what changes is which
    users meet. Jobs of unknown users are shifted one by one. No job is submitted before the first one.

    >>> jobs = Workload({"submit_time": [0, 500_000, 500_007], "run_time": [9] * 3, "nodes": [1] * 3,
    ...                  "user": [1, 2, 2]})
    >>> shift = shaken(jobs, np.random.default_rng(1)).submit_time - jobs.submit_time
    >>> bool(shift[1] == shift[2]), int(shift[1]) % 86_400
    (True, 0)
    """
    user = workload.user
    users = np.unique(np.where(user >= 0, user, -1 - np.arange(len(user))), return_inverse=True)[1]
    shift = numbers.integers(-SHIFT, SHIFT + 1, users.max(initial=0) + 1)[users] * DAY
    submit = workload.submit_time
    columns = {**workload.columns, "submit_time": np.maximum(submit + shift, submit.min(initial=0))}
    return replace(workload, columns=columns)
