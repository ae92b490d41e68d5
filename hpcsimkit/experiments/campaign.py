"""Campaigns: runs of all policies of an experiment, in sequence or in parallel, and their results folder."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from hpcsimkit._version import __version__
from hpcsimkit.cluster.files import write_machines
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.experiment import Experiment, sha256_of
from hpcsimkit.experiments.on_machines import offered_loads
from hpcsimkit.experiments.processes import run_in_processes
from hpcsimkit.experiments.results_folder import (
    FINISHED,
    PROVENANCE,
    ResultsFolder,
    file_name,
    head_of_toml,
)
from hpcsimkit.experiments.runs import Run, fingerprint, finished_run, prepare, run_policy
from hpcsimkit.io.files import write_bytes
from hpcsimkit.io.interruption import Stopped, signal_of
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.workloads.describe import load_remark
from hpcsimkit.workloads.readers.local_time import CLOCK_KEYS

__all__ = ["Campaign"]

PACKAGES = ("simpy", "numpy", "pandas", "pyarrow", "matplotlib", "scipy", "pydantic", "jinja2")
"""Packages with recorded versions."""


class Campaign:
    """Runs of an experiment and their results folder.

    Parameters
    ----------
    experiment : Experiment
        Settings of the comparison.
    workload : Workload
        Workload returned by ``experiment.workload()``.
    place : path
        Path of the results folder; see :class:`~hpcsimkit.experiments.results_folder.ResultsFolder`.
    command : sequence of str
        Command line, for the records.

    Examples
    --------
    >>> import tempfile
    >>> experiment = Experiment(jobs=50, policies=["fcfs", "fcfs+easy"], report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = Campaign(experiment, experiment.workload(), f"{folder}/out").run()
    ...     sorted(os.listdir(f"{folder}/out"))
    ['experiment.toml', 'jobs', 'metrics.csv', 'metrics.json', 'provenance.json', 'schedules']
    >>> [run.policy for run in runs]
    ['fcfs', 'fcfs+easy']
    """

    def __init__(
        self,
        experiment: Experiment,
        workload: Workload,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
    ) -> None:
        self.experiment = experiment
        self.workload = workload
        self.folder = ResultsFolder(place)
        self.command = tuple(command)

    def run(
        self, *, resume: bool = False, tell: Callable[[str, int], None] = lambda policy, jobs: None
    ) -> list[Run]:
        """Simulate every policy and write the results folder.

        Parameters
        ----------
        resume : bool
            Whether finished runs of an interrupted campaign of the same experiment are kept. Default: False.
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
        began = datetime.now(UTC)
        self.folder.open(*self._folders(), resume=resume)
        try:
            self._simulate(tell)
            runs = list(self._finished().values())
            self._write_records(runs, began)
            if self.experiment.report:
                tell("", 0)
                _draw(self.folder)
            self.folder.publish()
        except BaseException as error:
            finished = len(self._finished())
            self.folder.close(keep=finished > 0)
            if isinstance(error, KeyboardInterrupt):
                line = f"{str(error) or 'stopped'}{self._hint(finished)}"
                raise Stopped(line, signal_of(error)) from None
            if isinstance(error, HpcsimkitError) and finished:
                raise type(error)(f"{error}{self._hint(finished)}") from error
            raise
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
                experiment.policy(policy).check_workload(self.workload)
        owners: dict[str, str] = {}
        for policy in experiment.policies:
            other = owners.setdefault(file_name(policy), policy)
            if other != policy:
                raise UsageError(f"-p {other!r} and {policy!r} would be written to the same files")

    def _simulate(self, tell: Callable[[str, int], None]) -> None:
        """Simulate the policies without finished runs, in this process or in worker processes."""
        finished = self._finished()
        for policy in finished:
            tell(policy, len(self.workload))
        missing = [policy for policy in self.experiment.policies if policy not in finished]
        work = partial(
            run_policy, experiment=self.experiment, workload=self.workload, folder=self.folder.work
        )
        workers = min(self.experiment.workers, len(missing))
        if workers > 1:
            prepare(self.workload)
            run_in_processes(missing, work, workers=workers, tell=tell)
            return
        for policy in missing:
            work(policy, partial(tell, policy))

    def _finished(self) -> dict[str, Run]:
        """Return the complete runs on disk that have the fingerprints of this experiment."""
        runs = {policy: finished_run(policy, self.folder.work) for policy in self.experiment.policies}
        return {
            policy: run
            for policy, run in runs.items()
            if run is not None and run.fingerprint == fingerprint(policy, self.experiment, self.workload)
        }

    def _hint(self, finished: int) -> str:
        """Return the number of finished runs and the command to resume, as the end of a message."""
        count = f"{finished} of {len(self.experiment.policies)} policies are finished"
        place = shlex.quote(os.path.relpath(self.folder.place))
        return f"; {count}; to go on: the same command with --resume --out {place}" if finished else ""

    # --- records -------------------------------------------------------------------------------------

    def _write_records(self, runs: list[Run], began: datetime) -> None:
        """Write the metrics, the experiment and the provenance record."""
        work = self.folder.work
        metrics = {run.policy: dict(run.metrics) for run in runs}
        write_bytes(work / "metrics.json", _json(metrics))
        write_bytes(work / "metrics.csv", _csv(metrics).encode())
        if self.experiment.cluster is not None:
            write_machines(self.experiment.cluster, work / "machines.csv")
        write_bytes(work / "experiment.toml", self._toml().encode())
        write_bytes(work / PROVENANCE, _json(self._provenance(runs, began)))

    def _toml(self) -> str:
        command = "python -m hpcsimkit.run compare experiment.toml --out FOLDER"
        return head_of_toml(command, self.experiment.code) + self.experiment.saved()

    def _provenance(self, runs: list[Run], began: datetime) -> dict[str, Any]:
        return {
            "version": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {name: metadata.version(name) for name in PACKAGES},
            "command": shlex.join(self.command),
            "started": began.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": self.experiment.seed,
            "code": self.experiment.code,
            "workload": self._about_workload(),
            "machines": self._about_machines(),
            "options": self.experiment.model_dump(exclude={"policies"}),
            "policies": {
                run.policy: {
                    "file": file_name(run.policy),
                    "policy": run.representation,
                    "seconds": round(run.seconds, 6),
                    "passes": run.passes,
                    "schedule_sha256": run.schedule_sha256,
                    "notes": list(run.notes),
                }
                for run in runs
            },
        }

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
        return {
            "machines": len(cluster),
            "resources": dict(zip(cluster.resources, cluster.totals, strict=True)),
            "offered_load": offered_loads(self.workload, cluster),
            "file": str(Path(file).absolute()) if isinstance(file, str) else None,
            "file_sha256": sha256_of(file) if isinstance(file, str) else None,
        }


def _draw(folder: ResultsFolder) -> None:
    from hpcsimkit.reports.report import write_report

    write_report(folder.work)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _csv(metrics: dict[str, dict[str, float | None]]) -> str:
    """Return a row for each policy; an undefined metric is left empty."""
    text = io.StringIO()
    names = next(iter(metrics.values()), {})
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["policy", *names])
    writer.writerows([policy, *values.values()] for policy, values in metrics.items())
    return text.getvalue()
