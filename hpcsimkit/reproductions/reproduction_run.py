"""Runs of reproductions: their tasks in parallel processes, and the results folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsimkit.engine.engines import Engine, Processes
from hpcsimkit.engine.pace import Pace
from hpcsimkit.engine.provenance import Provenance
from hpcsimkit.engine.results_folder import SETTINGS, ResultsFolder
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.progress import progress_bar
from hpcsimkit.experiments.source import sha256_of
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.rivals import RIVALS, Field, measured_fields
from hpcsimkit.reproductions.targets import Conclusion, targets_json, targets_rows
from hpcsimkit.reproductions.templates import rendered

REPORT, TARGETS, RECORD, TASKS = "report.md", "targets.json", "reproduction.json", "tasks"
PACKAGES = ("numpy", "scipy", "torch", "gymnasium", "simpy", "matplotlib")
"""Packages with recorded versions."""

SHOWN = 3
"""Maximum number of names in a line."""


class ReproductionRun:
    """Run of a reproduction, and its results folder.

    Each task is performed once: the same command resumes an interrupted run, and does not repeat tasks with
    unchanged inputs. A folder belongs to one system, seed, size preset and set of logs; of others, only after
    consent.
    """

    def __init__(
        self,
        reproduction: PaperReproduction,
        place: Path,
        system: str,
        workers: int,
        engine: Engine | None = None,
    ) -> None:
        self.reproduction = reproduction
        self.place = place
        self.system = system
        self.workers = workers
        self.engine = engine or Processes(workers)
        self.folder = ResultsFolder(place, [TASKS, REPORT, TARGETS, "*.png"], RECORD)
        self.store = Store(place / TASKS)

    def run(
        self, *, quiet: bool = False, overwrite: bool = False, say: Callable[[str], None] = print
    ) -> Conclusion:
        """Perform the unfinished tasks, draw the conclusions, and write the folder.

        Results of another seed, size preset or set of logs are replaced with `overwrite`; otherwise the user
        is asked, or they are an error. `say` gets lines on the work and its expected time.
        """
        with self.folder.in_place(
            self._asked,
            overwrite=overwrite,
            of=(self.system, (RECORD, TASKS)),
            kept=lambda: "finished tasks are kept",
        ):
            for line in self.reproduction.prepare():
                say(line)
            self.folder.begin(self._asked)
            self._perform(quiet, say)
            conclusion = self._concluded()
            self._write(conclusion)
        return conclusion

    # --- tasks -----------------------------------------------------------------------------------------

    @property
    def _alone(self) -> bool:
        """Whether only the baselines run."""
        return RIVALS in self.reproduction.chosen

    @cached_property
    def _fields(self) -> Sequence[Field]:
        return self.reproduction.fields()

    @cached_property
    def _tasks(self) -> list[Task]:
        """All tasks, each once: those of the reproduction, and those of the additional baselines."""
        tasks = [] if self._alone else [task for stage in self.reproduction.stages() for task in stage]
        tasks += [task for field in self._fields for task in field.tasks]
        return list({task.name: task for task in tasks}.values())

    def _concluded(self) -> Conclusion:
        """Return the conclusion from the outcomes."""
        reproduction = self.reproduction
        if not self._alone:
            return reproduction.conclude(self.store, self.place)
        lines = "\n".join(f"- {line}" for line in reproduction.prepare())
        return Conclusion([], f"# {reproduction.title.partition(':')[0]}: baselines alone\n\n{lines}")

    def _perform(self, quiet: bool, say: Callable[[str], None]) -> None:
        tasks = self._tasks
        to_do = [task for task in tasks if not self.store.has(task)]
        self._set_aside(to_do, say)
        pace = Pace(to_do, self.reproduction.rates, self.workers)
        say(self._plan(len(tasks), pace))
        with progress_bar(quiet=quiet) as bar:

            def tell(name: str, done: int) -> None:
                pace.tell(name, done)
                decisions, of = pace.decisions()
                rate = (of - decisions) / max(pace.seconds_left(), 1e-6)
                over = (
                    len(tasks) - len(to_do) + sum(pace.done[each] >= pace.sizes[each] for each in pace.done)
                )
                bar.show(f"{over} of {len(tasks)} tasks", decisions, of, rate, "decisions/s")

            perform(to_do, self.store, self.engine, tell=tell)

    def _set_aside(self, tasks: Sequence[Task], say: Callable[[str], None]) -> None:
        """Rename the folders of tasks with changed inputs, and report it."""
        kept = [old.name for task in tasks if (old := self.store.set_aside(task)) is not None]
        if not kept:
            return
        are = "task is" if len(kept) == 1 else "tasks are"
        more = f" and {len(kept) - SHOWN} more" if len(kept) > SHOWN else ""
        say(
            f"{len(kept)} {are} restarted, since hpcsimkit or settings have changed; former results are "
            f"kept: {', '.join(kept[:SHOWN])}{more}"
        )

    def _plan(self, tasks: int, pace: Pace) -> str:
        """Return a line with the remaining work and its expected time."""
        done, seconds = tasks - len(pace.tasks), pace.seconds_left()
        if not pace.tasks:
            return f"all {tasks} tasks are done"
        was = f", {done} of them done" if done else ""
        return (
            f"{tasks} tasks{was}; {grouped(pace.decisions()[1])} decisions to go, about "
            f"{timedelta(seconds=max(60, round(seconds / 60) * 60))} with {self.workers} "
            f"process{'es' * (self.workers != 1)} (by stated rates, corrected on the way)"
        )

    # --- the folder ------------------------------------------------------------------------------------

    @cached_property
    def _asked(self) -> dict[str, Any]:
        """Settings that identify the folder."""
        asked, logs = self.reproduction, self.reproduction.logs
        hashes = [f"{log.name} ({sha256_of(str(log))[:8]})" for log in logs]
        chosen = {flag: flag in asked.chosen for flag in sorted(asked.flags)}
        return {"system": self.system, "seed": asked.seed, "quick": asked.quick, **chosen, "logs": hashes}

    def _write(self, conclusion: Conclusion) -> None:
        """Write the results and their provenance."""
        logs = [[log.name, sha256_of(str(log))] for log in self.reproduction.logs]
        provenance = Provenance(sys.orig_argv, PACKAGES)
        report = rendered(
            "run.md.jinja",
            text=conclusion.text,
            fields=list(measured_fields(self._fields, self.store, alone=self._alone)),
            targets=targets_rows(conclusion.targets),
            command=self._command(),
            origin=Table(("", ""), self._origin(provenance)),
            logs=Table(("log", "SHA-256"), logs),
        )
        write_bytes(self.place / TARGETS, targets_json(conclusion.targets))
        write_bytes(self.place / REPORT, report.encode())
        times = {"workers": self.workers, "processor time": self._times()}
        self.folder.conclude(provenance, {SETTINGS: self._asked}, times)

    def _command(self) -> str:
        """Return the command line that repeats the run, with the bare names of files."""
        reproduction = self.reproduction
        words = [self.system, *(log.name for log in reproduction.logs), *["--quick"] * reproduction.quick]
        words += [f"--{flag}" for flag in sorted(reproduction.chosen)]
        words += [word for code in reproduction.allow_code for word in ("--allow-code", code)]
        words += ["--seed", str(reproduction.seed), "--out", "FOLDER"]
        return f"python -m hpcsimkit.run reproduce {shlex.join(words)}"

    def _origin(self, provenance: Provenance) -> list[tuple[str, str]]:
        """Return the seed and the versions."""
        made = provenance.record()
        versions = {"hpcsimkit": made["version"], **made["packages"]}
        return [
            ("seed", str(self.reproduction.seed)),
            ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
            ("python", made["python"]),
        ]

    def _times(self) -> dict[str, str]:
        """Return the processor time of each kind of task."""
        seconds: dict[str, float] = {}
        for task in self._tasks:
            seconds[task.kind] = seconds.get(task.kind, 0.0) + self.store.seconds(task)
        return {kind: _clock(value) for kind, value in seconds.items()}


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
