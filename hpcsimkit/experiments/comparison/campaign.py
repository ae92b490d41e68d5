"""Campaigns: runs of all policies of an experiment, in sequence or in parallel, and their results folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.files import write_machines
from hpcsimkit.compiled.support import announced
from hpcsimkit.engine.engines import Engine, InProcess, Processes, Threads
from hpcsimkit.engine.provenance import Provenance, write_json
from hpcsimkit.engine.results_folder import (
    FINISHED,
    PROVENANCE,
    SETTINGS,
    ResultsFolder,
    file_name,
    head_of_toml,
)
from hpcsimkit.engine.runner import finish, finished
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import PolicyRun, Run, prepare
from hpcsimkit.experiments.parts.named_parts import is_name
from hpcsimkit.experiments.parts.on_machines import offered_loads
from hpcsimkit.experiments.source import UNDECISIVE, sha256_of
from hpcsimkit.io.documents import csv_text
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.workloads.describe import load_remark
from hpcsimkit.workloads.readers.local_time import CLOCK_KEYS

__all__ = ["Campaign"]

PACKAGES = ("simpy", "numpy", "pandas", "pyarrow", "matplotlib", "scipy", "pydantic", "jinja2")
"""Packages with recorded versions."""


THREADS = 2
"""Number of threads for runs of the compiled simulator: one writes its files while the other simulates."""


class Campaign:
    """Runs of an experiment and their results folder.

    Parameters
    ----------
    experiment : Experiment
        Settings of the comparison.
    workload : Workload
        Workload returned by ``experiment.workload()``.
    place : path
        Path of the results folder; see :class:`~hpcsimkit.engine.results_folder.ResultsFolder`.
    command : sequence of str
        Command line, for the records.
    engine : Engine, optional
        Engine that executes the simulations; by default that of the experiment.

    Examples
    --------
    >>> import tempfile
    >>> experiment = Experiment(jobs=50, policies=["fcfs", "fcfs+easy"], report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = Campaign(experiment, experiment.workload(), f"{folder}/out").run()
    ...     sorted(os.listdir(f"{folder}/out"))
    ['experiment.toml', 'jobs', 'metrics.csv', 'metrics.json', 'provenance.json', 'provenance.run.json', \
'schedules']
    >>> [run.policy for run in runs]
    ['fcfs', 'fcfs+easy']
    """

    def __init__(
        self,
        experiment: Experiment,
        workload: Workload,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self.experiment = experiment
        self.workload = workload
        self.folder = ResultsFolder(place)
        self.command = tuple(command)
        self.engine = engine
        self.store = Store(self.folder.work / FINISHED)
        self.tasks = [
            PolicyRun(Case(workload, policy, experiment), self.folder.work) for policy in experiment.policies
        ]

    def run(
        self,
        *,
        resume: bool = False,
        overwrite: bool = False,
        tell: Callable[[str, int], None] = lambda policy, jobs: None,
    ) -> list[Run]:
        """Simulate every policy and write the results folder.

        Parameters
        ----------
        resume : bool
            Whether finished runs of an interrupted campaign of the same experiment are kept. Default: False.
        overwrite : bool
            Whether finished results of other settings are replaced; otherwise the user is asked, or they are
            an error. Default: False.
        tell : callable
            Callback ``tell(policy, jobs)`` with the number of ended jobs of a run; ``tell("", 0)`` when the
            report is drawn.

        Returns
        -------
        list of Run
            Runs in the order of the experiment's policies.

        Raises
        ------
        HpcsimkitError
            A policy failed, or a file cannot be written. Finished runs are kept for `resume`.
        Stopped
            Ctrl-C or SIGTERM was received. Finished runs are kept for `resume`.
        """
        self._check()
        provenance = Provenance(self.command, PACKAGES)
        settings = self.experiment.settings()
        with self.folder.session(
            *self._folders(), resume=resume, settings=settings, overwrite=overwrite, kept=self._kept
        ):
            runs = self._simulate(tell)
            self._write_records(runs, provenance)
            if self.experiment.report:
                tell("", 0)
                _draw(self.folder)
        return runs

    def _folders(self) -> list[str]:
        """Return the subfolders of the results folder, temporary ones included."""
        placements = ["placements"] * (self.experiment.cluster is not None)
        return ["jobs", "schedules", FINISHED, *placements, *["traces"] * self.experiment.trace]

    def _check(self) -> None:
        """Raise an error early for settings that would fail after the runs."""
        experiment, span = self.experiment, self.workload.span
        if experiment.warmup + experiment.cooldown > span:
            raise UsageError(
                f"--warmup {experiment.warmup:g} s and --cooldown {experiment.cooldown:g} s leave nothing of "
                f"the {span} s in which jobs of {self.workload.name} are submitted"
            )
        for policy in experiment.policies:
            with guarded(policy):
                experiment.policy_named(policy).check_workload(self.workload)
        owners: dict[str, str] = {}
        for policy in experiment.policies:
            other = owners.setdefault(file_name(policy), policy)
            if other != policy:
                raise UsageError(f"-p {other!r} and {policy!r} would be written to the same files")

    def _simulate(self, tell: Callable[[str, int], None]) -> list[Run]:
        """Simulate the policies without finished runs, and return all runs."""
        policies = {task.name: task.policy for task in self.tasks}
        in_threads = self._suit_threads()
        # The longest runs are first, so that none of them is alone at the end.
        tasks = sorted(self.tasks, key=lambda task: -task.slowness) if in_threads else self.tasks

        def engine_of(unfinished: Sequence[Task]) -> Engine:
            engine = self.engine or self.experiment.engine_for(len(unfinished))
            if isinstance(engine, Processes):
                prepare(self.workload)
            if isinstance(engine, InProcess):
                names = {task.name for task in unfinished}
                stack.enter_context(announced(task.case.simulation for task in tasks if task.name in names))
            return Threads(THREADS) if in_threads else engine

        with ExitStack() as stack:
            outcomes = finish(
                tasks, self.store, engine_of, tell=lambda name, jobs: tell(policies[name], jobs)
            )
        runs = {outcome["policy"]: Run(**outcome) for outcome in outcomes}
        return [runs[task.policy] for task in self.tasks]

    def _suit_threads(self) -> bool:
        """Return whether runs save time in threads: on several cores, if all of them are compiled ones."""
        experiment = self.experiment
        chosen = self.engine or experiment.engine or "workers" in experiment.model_fields_set
        several = len(self.tasks) > 1 and (os.cpu_count() or 1) > 1
        return not chosen and several and all(task.slowness for task in self.tasks)

    def _kept(self) -> str:
        return finished(self.tasks, self.store, "policies")

    # --- records -------------------------------------------------------------------------------------

    def _write_records(self, runs: list[Run], provenance: Provenance) -> None:
        """Write the metrics, the experiment and the provenance record."""
        work, experiment = self.folder.work, self.experiment
        metrics = {run.policy: dict(run.metrics) for run in runs}
        write_json(work / "metrics.json", metrics)
        write_bytes(work / "metrics.csv", _csv(metrics).encode())
        if experiment.cluster is not None:
            write_machines(experiment.cluster, work / "machines.csv")
        command = "python -m hpcsimkit.run compare experiment.toml --out FOLDER"
        text = head_of_toml(command, experiment.code) + experiment.saved()
        write_bytes(work / "experiment.toml", text.encode())
        facts = {
            "seed": experiment.seed,
            "code": experiment.code,
            "workload": self._about_workload(),
            "machines": self._about_machines(),
            "options": experiment.model_dump(exclude={"policies", *UNDECISIVE}),
            SETTINGS: experiment.settings(),
            "policies": {run.policy: _about_run(run) for run in runs},
        }
        took = {run.policy: {"seconds": round(run.seconds, 6), "simulator": run.simulator} for run in runs}
        provenance.write(work / PROVENANCE, facts, {"policies": took})

    def _about_workload(self) -> dict[str, Any]:
        workload, log = self.workload, self.experiment.log
        return {
            "name": workload.name,
            "jobs": len(workload),
            "nodes": workload.machine_size,
            "resources": list(workload.resources),
            "hash": workload.hash,
            "log": str(Path(log).absolute()) if log is not None else None,
            "log_sha256": sha256_of(log) if log is not None else None,
            "skipped": dict(workload.skipped),
            "notes": dict(workload.notes),
            "steps": list(workload.provenance),
            "load_remark": load_remark(workload),
            "clock": {key: workload.header[key] for key in CLOCK_KEYS if key in workload.header},
        }

    def _about_machines(self) -> dict[str, Any] | None:
        cluster, file = self.experiment.cluster, self.experiment.machines
        if cluster is None:
            return None
        path = file if isinstance(file, str) and not is_name(file) else None
        return {
            "machines": len(cluster),
            "resources": dict(zip(cluster.resources, cluster.totals, strict=True)),
            "offered_load": offered_loads(self.workload, cluster),
            "file": None if path is None else str(Path(path).absolute()),
            "file_sha256": None if path is None else sha256_of(path),
        }


def _draw(folder: ResultsFolder) -> None:
    from hpcsimkit.reports.report import write_report

    write_report(folder.work)


def _about_run(run: Run) -> dict[str, Any]:
    return {
        "file": file_name(run.policy),
        "policy": run.representation,
        "passes": run.passes,
        "schedule_sha256": run.schedule_sha256,
        "notes": list(run.notes),
    }


def _csv(metrics: dict[str, dict[str, float | None]]) -> str:
    """Return a row for each policy; an undefined metric is left empty."""
    names = next(iter(metrics.values()), {})
    return csv_text(["policy", *names], ([policy, *values.values()] for policy, values in metrics.items()))
