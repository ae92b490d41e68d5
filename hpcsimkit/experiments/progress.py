"""Progress bars: of commands, on terminals only; and of functions, where the caller asks for one."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hpcsimkit.experiments.console import grouped, number_text
from hpcsimkit.io.progress_bar import counting

if TYPE_CHECKING:
    from hpcsimkit.agents.training.learning_curve import Report
    from hpcsimkit.experiments.training.training import Training


@contextmanager
def show_runs(
    sizes: Mapping[str, int], unit: str = "policies", *, quiet: bool
) -> Iterator[Callable[[str, int], None]]:
    """Show a progress bar of runs; yields the callback ``tell(run, jobs)``.

    Parameters
    ----------
    sizes : mapping of str to int
        Number of jobs of each run.
    unit : str
        Plural of what is counted. Default: ``"policies"``.
    quiet : bool
        Whether the bar is suppressed even on a terminal.
    """
    done = dict.fromkeys(sizes, 0)
    with progress_bar(quiet=quiet) as bar:

        def tell(run: str, ended: int) -> None:
            if not run:
                bar.conclude()
                return
            done[run] = ended
            finished = sum(done[name] >= size for name, size in sizes.items())
            bar.count(f"{finished} of {len(done)} {unit}", sum(done.values()), sum(sizes.values()), "jobs/s")

        yield tell


@contextmanager
def show_tasks(
    sizes: Mapping[str, int], unit: str = "jobs", *, progress: bool = False
) -> Iterator[Callable[[str, int], None]]:
    """Show the progress of tasks in a notebook or on a terminal, if asked for; yields ``tell(task, done)``.

    Parameters
    ----------
    sizes : mapping of str to int
        Size of each task by name.
    unit : str
        Unit of the sizes. Default: ``"jobs"``.
    progress : bool
        Whether a bar of tqdm is shown; a notebook has its own kind. Default: False.
    """
    done = dict.fromkeys(sizes, 0)
    with counting(sum(sizes.values()), unit, shown=progress) as count:

        def tell(task: str, ended: int) -> None:
            done[task] = max(ended, done[task])
            count(sum(done.values()))

        yield tell


@contextmanager
def show_cells(unit: str = "cells", *, quiet: bool) -> Iterator[Callable[[int, int, int], None]]:
    """Show a progress bar of a sweep; yields the callback ``tell(done, failed, of)``.

    `unit` is the plural of what is counted.
    """
    with progress_bar(quiet=quiet) as bar:

        def tell(done: int, failed: int, of: int) -> None:
            failures = f", {grouped(failed)} failed" if failed else ""
            text = f"{grouped(done)} of {grouped(of)} {unit}{failures}"
            bar.count(text, done + failed, of, f"{unit}/s")
            if done + failed == of:
                bar.conclude()

        yield tell


@contextmanager
def show_training(training: Training, *, quiet: bool) -> Iterator[Callable[[Report], None]]:
    """Show a progress bar of a training; yields the callback for its reports."""
    with progress_bar(quiet=quiet) as bar:
        judged, unit = "", f"{training.trainer_part.trainer.unit}/s"

        def tell(report: Report) -> None:
            nonlocal judged
            if math.isfinite(report.validation):
                value = training.validation.sign * report.validation
                judged = f", {training.validation.metric} {number_text(value)}"
            rate = report.steps_per_second
            bar.show(f"{training.algorithm}{judged}", report.steps, report.of, rate, unit)

        yield tell


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Bar]:
    """Yield a bar on standard error, which shows nothing if `quiet` or without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield Bar(None)
        return
    from rich import progress
    from rich.console import Console

    texts = [progress.TextColumn(f"{{task.fields[{name}]}}") for name in ("rate", "left")]
    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *texts,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
    try:
        yield Bar(bar)
    finally:
        bar.stop()


class Bar:
    """Progress bar, redrawn at most ten times a second, and only by its methods.

    A thread that redraws it could interfere with forked processes. It appears with the first progress, since
    it would paint over a question before the work begins.

    Parameters
    ----------
    bar : rich.progress.Progress, optional
        Bar of rich; without it, nothing is shown.
    """

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.task = None if bar is None else bar.add_task("", total=None, rate="", left="")
        self.began = time.monotonic()
        self.drawn = 0.0
        self.first: float | None = None

    def count(self, description: str, done: float, of: float, unit: str) -> None:
        """Show the completed part of the total; the rate is that since the first call."""
        if self.first is None:
            self.first = done
        seconds = max(time.monotonic() - self.began, 1e-6)
        self.show(description, done, of, (done - self.first) / seconds, unit)

    def show(self, description: str, done: float, of: float, rate: float, unit: str) -> None:
        """Show the completed part of the total, with the rate [unit] and the remaining time."""
        now = time.monotonic()
        if self.bar is None or (now - self.drawn < 0.1 and done < of):
            return
        self.drawn = now
        texts = {"rate": f"{number_text(rate)} {unit}", "left": time_left(done, of, rate)}
        self.bar.start()
        self.bar.update(self.task, description=description, completed=done, total=of, **texts)
        self.bar.refresh()

    def conclude(self) -> None:
        """Show that the report is being drawn."""
        if self.bar is not None:
            self.bar.start()
            self.bar.update(self.task, description="drawing the report", completed=None, rate="", left="")
            self.bar.refresh()


def time_left(done: float, of: float, rate: float) -> str:
    """Return a text with the remaining time; empty if the rate is 0.

    >>> time_left(1000, 8000, 100.0), time_left(0, 8000, 0.0)
    ('0:01:10 left', '')
    """
    return f"{timedelta(seconds=round((of - done) / rate))} left" if rate > 0 else ""
