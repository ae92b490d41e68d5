"""Progress bars of trainings and evaluations, shown on terminals only."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hpcsimkit.experiments.console import grouped, number_text

if TYPE_CHECKING:
    from hpcsimkit.agents.training.learning_curve import Report
    from hpcsimkit.experiments.training.training import Training

__all__ = ["progress_bar", "show_evaluation", "show_training", "time_left"]


def time_left(done: float, of: float, rate: float) -> str:
    """Return a text with the remaining time; empty if the rate is 0.

    >>> time_left(1000, 8000, 100.0), time_left(0, 8000, 0.0)
    ('0:01:10 left', '')
    """
    return f"{timedelta(seconds=round((of - done) / rate))} left" if rate > 0 else ""


@contextmanager
def show_training(training: Training, *, quiet: bool) -> Iterator[Callable[[Report], None]]:
    """Show a progress bar of a training; yields the callback for its reports."""
    with progress_bar(quiet=quiet) as draw:
        judged, unit = "", f"{training.trainer_part.trainer.unit}/s"

        def tell(report: Report) -> None:
            nonlocal judged
            if math.isfinite(report.validation):
                value = training.validation.sign * report.validation
                judged = f", {training.validation.metric} {number_text(value)}"
            rate = report.steps_per_second
            draw(f"{training.algorithm}{judged}", report.steps, report.of, rate, unit)

        yield tell


@contextmanager
def show_evaluation(sequences: int, jobs: int, *, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """Show a progress bar of an evaluation; yields the callback ``tell(sequence, jobs)``.

    Parameters
    ----------
    sequences, jobs : int
        Number of sequences, and number of jobs simulated for each.
    quiet : bool
        Whether the bar is suppressed even on a terminal.
    """
    with progress_bar(quiet=quiet) as draw:
        done: dict[str, int] = {}
        began = time.monotonic()

        def tell(sequence: str, jobs_done: int) -> None:
            done[sequence] = jobs_done
            total = sum(done.values())
            rate = total / max(time.monotonic() - began, 1e-6)
            draw(f"{len(done)} of {sequences} sequences", total, sequences * jobs, rate, "jobs/s")

        yield tell


Draw = Callable[[str, float, float, float, str], None]
"""Callback ``draw(description, done, of, rate, unit)`` that updates a progress bar."""


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Draw]:
    """Yield a callback that draws a bar on standard error, at most ten times a second.

    The callback does nothing if `quiet` is True or standard error is not a terminal. Only the callback
    redraws the bar: a thread could interfere with forked processes.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda description, done, of, rate, unit: None
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
    task: Any = bar.add_task("", total=None, rate="", left="")
    drawn = 0.0

    def draw(description: str, done: float, of: float, rate: float, unit: str) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn < 0.1 and done < of:
            return
        drawn = now
        rate_text, left = f"{grouped(rate)} {unit}", time_left(done, of, rate)
        bar.update(task, description=description, completed=done, total=of, rate=rate_text, left=left)
        bar.refresh()

    with bar:
        yield draw
