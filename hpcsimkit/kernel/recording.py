"""Observers that record or display a run: event trace, progress bar, cost of each pass."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
import time
import weakref
from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.results.result import MODE_NAMES

if TYPE_CHECKING:
    from rich.console import Console

    from hpcsimkit.kernel.decision import Decision
    from hpcsimkit.kernel.system import System

__all__ = ["PassProfile", "Progress", "Trace"]

# --- trace -----------------------------------------------------------------------------------------------


class Trace(Observer):
    """Event trace: every event and decision as a line of JSON, in chronological order.

    Each line has ``t`` [s of the log's clock], ``event``, and further keys by event:

    ========  =========================================================================================
    begin     ``workload, jobs, nodes`` (size of the cluster; on machines the total amount of the first
              resource, under its name), ``seed, kit`` (version of hpcsimkit)
    submit    ``job`` (its number in the log)
    start     ``job, mode, nodes``; on machines ``job, mode, machines`` (their names)
    end       ``job``
    reject    ``job``
    hold      ``job, reason``: a gate holds it, or takes it out of the queue
    decision  ``stage, job`` (in question, or null), ``options`` (number of options), ``position`` (of the
              answer among them), ``choice`` (a job's number, true or false, an allocation, or null; on
              machines an allocation is the amounts on each machine, by the machines' names)
    finish    no further keys
    ========  =========================================================================================

    The file is renamed to `path` at the end of the run. A failed run leaves no file: the partial file is
    removed at the end of a ``with`` statement or together with this object, at the latest when Python exits.

    Parameters
    ----------
    path : str or path
        Path of the file; compressed if the name ends in ``.gz``.

    Raises
    ------
    UsageError
        The file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._discard: Callable[[], object] = bool  # a no-op

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self._discard()

    def on_begin(self, system: System) -> None:
        """Open a temporary file."""
        self._discard()
        target = Path(self.path)
        self._temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        self._lines: list[str] = []
        try:
            self._file = _open(self._temporary, compress=target.suffix == ".gz")
        except OSError as error:
            raise self._unwritable(error) from None
        self._discard = weakref.finalize(self, _discard, self._file, self._temporary)
        workload = system.workload
        self._write(
            system,
            f'"begin", "workload": {json.dumps(workload.name)}, "jobs": {len(workload)}, '
            f'{json.dumps(system.cluster.unit)}: {system.cluster.size}, "seed": {system.seed}, '
            f'"kit": "{__version__}"',
        )

    def on_submit(self, job: Job, system: System) -> None:
        """Write the submission."""
        self._write(system, f'"submit", "job": {job.id}')

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Write the start."""
        mode = MODE_NAMES[system.ledger.modes[job.index]]
        where = f'"nodes": {job.nodes}'
        if isinstance(allocation, Allocation):
            where = f'"machines": {json.dumps(list(_by_name(allocation, system)))}'
        self._write(system, f'"start", "job": {job.id}, "mode": "{mode}", {where}')

    def on_end(self, job: Job, system: System) -> None:
        """Write the end."""
        self._write(system, f'"end", "job": {job.id}')

    def on_reject(self, job: Job, system: System) -> None:
        """Write the rejection."""
        self._write(system, f'"reject", "job": {job.id}')

    def on_hold(self, job: Job, reason: str, system: System) -> None:
        """Write that a gate holds the job."""
        self._write(system, f'"hold", "job": {job.id}, "reason": {json.dumps(reason)}')

    def on_decision(self, decision: Decision, choice: Any, system: System) -> None:
        """Write the decision."""
        job = "null" if decision.job is None else decision.job.id
        self._write(
            system,
            f'"decision", "stage": "{decision.stage}", "job": {job}, "options": {len(decision.options)}, '
            f'"position": {decision.position(choice)}, "choice": {json.dumps(_plain(choice, system))}',
        )

    def on_finish(self, system: System) -> None:
        """Rename the file."""
        self._write(system, '"finish"')
        try:
            self._flush()
            self._file.close()
            self._temporary.replace(self.path)
        except OSError as error:
            raise self._unwritable(error) from None
        self._discard()

    def _write(self, system: System, event: str) -> None:
        self._lines.append(f'{{"t": {system.now}, "event": {event}}}\n')
        if len(self._lines) >= 4096:
            self._flush()

    def _flush(self) -> None:
        try:
            self._file.write("".join(self._lines).encode())
        except OSError as error:
            raise self._unwritable(error) from None
        self._lines.clear()

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(f"{self.path}: the trace cannot be written: {error.strerror or error}")


def _open(path: Path, compress: bool) -> BinaryIO:
    path.unlink(missing_ok=True)  # so that a new file is opened and no link is followed
    return cast(BinaryIO, gzip.open(path, "xb", compresslevel=4)) if compress else path.open("xb")


def _discard(file: BinaryIO, temporary: Path) -> None:
    """Close and remove the file of a failed run."""
    with suppress(OSError):
        file.close()
    with suppress(OSError):
        temporary.unlink()


def _plain(choice: Any, system: System) -> Any:
    """Return a choice as a JSON-compatible value."""
    if isinstance(choice, Job):
        return choice.id
    if isinstance(choice, Allocation):
        return _by_name(choice, system)
    return choice.tolist() if isinstance(choice, (np.ndarray, np.generic)) else choice


def _by_name(allocation: Allocation, system: System) -> dict[str, list[int]]:
    """Return the amounts on each machine, by its name, or by its number if the cluster has no names."""
    names = getattr(system.cluster, "names", None)
    called = allocation.machines if names is None else [names[machine] for machine in allocation.machines]
    return dict(zip(map(str, called), allocation.rows, strict=True))


# --- progress --------------------------------------------------------------------------------------------


class Progress(Observer):
    """Progress bar on standard error: number of ended jobs, jobs per second, time left.

    There is no output if `quiet`, or if standard error is not a terminal. A ``with`` statement restores the
    terminal after a failed run.

    Parameters
    ----------
    label : str
        Label before the bar. Default: ``"simulating"``.
    quiet : bool
        Whether to suppress the output. Default: False.
    console : rich.console.Console, optional
        Console of the output; by default standard error.
    """

    needs_events = False

    INTERVAL = 0.1
    """Minimum time between two updates [s]."""

    def __init__(
        self, label: str = "simulating", *, quiet: bool = False, console: Console | None = None
    ) -> None:
        self.label = label
        self.quiet = quiet
        self.console = console
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def on_begin(self, system: System) -> None:
        """Show the empty bar."""
        self._stop()
        self._ended, self._look_at = 0, math.inf
        terminal = sys.stderr.isatty() if self.console is None else self.console.is_terminal
        if self.quiet or not terminal:
            return
        self._bar = _bar(self.console)
        self._task = self._bar.add_task(self.label, total=len(system.workload), rate="")
        self._bar.start()
        self._began = self._looked = self._drawn = time.perf_counter()
        self._step, self._look_at = 1, 1

    def on_end(self, job: Job, system: System) -> None:
        """Count the job; check the time occasionally."""
        self._ended += 1
        if self._ended >= self._look_at:
            self._look()

    def on_finish(self, system: System) -> None:
        """Show the full bar."""
        if self._bar is not None:
            self._draw()
            self._stop()

    def _look(self) -> None:
        """Redraw the bar if it is due, and choose the number of jobs until the next check."""
        now = time.perf_counter()
        since, self._looked = now - self._looked, now
        self._step = max(1, int(self._step * min(2.0, self.INTERVAL / 4 / max(since, 1e-9))))
        self._look_at = self._ended + self._step
        if now - self._drawn >= self.INTERVAL:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        rate = self._ended / max(time.perf_counter() - self._began, 1e-9)
        self._bar.update(self._task, completed=self._ended, rate=f"{rate:,.0f} jobs/s")
        self._bar.refresh()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _bar(console: Console | None) -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
        console=console or Console(stderr=True),
        auto_refresh=False,
    )


# --- cost of the passes ----------------------------------------------------------------------------------


class PassProfile(Observer):
    """Recorder of the computing time of each pass and the memory of the process after it.

    Attributes
    ----------
    seconds : array of float64, shape (passes,)
        Computing time of the policy in each pass [s of wall clock].
    resident : array of int64, shape (passes,)
        Resident set of the whole process after each pass [bytes]; its peak where the current value is
        unavailable, or 0 where neither is available.
    """

    def __init__(self) -> None:
        self._seconds = array("d")
        self._resident = array("q")

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Computing time of each pass [s]."""
        return np.array(self._seconds, dtype=np.float64)

    @property
    def resident(self) -> NDArray[np.int64]:
        """Resident set after each pass [bytes]."""
        return np.array(self._resident, dtype=np.int64)

    def on_begin(self, system: System) -> None:
        """Clear the record of an earlier run."""
        self._seconds, self._resident, self._memory = array("d"), array("q"), _Memory()

    def on_pass(self, seconds: float, system: System) -> None:
        """Record a pass."""
        self._seconds.append(seconds)
        self._resident.append(self._memory.resident())

    def on_finish(self, system: System) -> None:
        """Close the source of memory readings."""
        del self._memory

    def summary(self) -> dict[str, float]:
        """Return the number of passes, and quantiles of their cost; NaN if there were none.

        Keys: ``passes``; ``seconds_total, seconds_mean, seconds_median, seconds_p95, seconds_p99,
        seconds_max`` [s]; ``resident_mean, resident_max`` [bytes].
        """
        passes = len(self._seconds)
        seconds = self.seconds if passes else np.array([math.nan])
        resident = self.resident if passes else np.array([math.nan])
        median, p95, p99 = np.quantile(seconds, (0.5, 0.95, 0.99))
        values = {
            "passes": passes,
            "seconds_total": sum(self._seconds),
            "seconds_mean": seconds.mean(),
            "seconds_median": median,
            "seconds_p95": p95,
            "seconds_p99": p99,
            "seconds_max": seconds.max(),
            "resident_mean": resident.mean(),
            "resident_max": resident.max(),
        }
        return {name: float(value) for name, value in values.items()}


class _Memory:
    """Reader of the memory size of this process, for repeated use."""

    PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def __init__(self) -> None:
        try:
            self._status: BinaryIO | None = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115
        except OSError:
            self._status = None

    def resident(self) -> int:
        """Return the resident set [bytes]; without /proc, its peak; 0 if unavailable."""
        if self._status is not None:
            self._status.seek(0)
            return int(self._status.read().split()[1]) * self.PAGE
        try:
            import resource
        except ImportError:  # not a Unix system
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024

    def __del__(self) -> None:
        if self._status is not None:
            self._status.close()
