"""Evaluation runs, and their folder with a table of all runs and their statistics."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import platform
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.console import metric_heading, number_text, plain_table
from hpcsimkit.experiments.evaluation import AGENT, Contest
from hpcsimkit.experiments.experiment import sha256_of
from hpcsimkit.experiments.processes import run_in_processes
from hpcsimkit.experiments.results_folder import FINISHED, PROVENANCE, ResultsFolder
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import write_bytes
from hpcsimkit.io.interruption import Stopped, signal_of
from hpcsimkit.kernel.watchdog import Watchdog
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.statistics import CONFIDENCE, SIGNIFICANT, Comparison, Mean, compared, mean_of

__all__ = ["EvaluationRun", "Verdict", "verdict_table"]

TABLE, STATISTICS = "evaluation.csv", "evaluation.json"
FILES = {TABLE, STATISTICS, PROVENANCE}
INTERVAL = f"{CONFIDENCE:.0%} interval".replace("%", " %")

Floats = NDArray[np.float64]


class Verdict(NamedTuple):
    """Statistics of one metric over the sequences.

    Parameters
    ----------
    metric : str
        Name of the metric.
    means : mapping of str to Mean
        Mean of each policy.
    comparisons : mapping of str to Comparison
        Differences between the agent and each other policy.
    """

    metric: str
    means: Mapping[str, Mean]
    comparisons: Mapping[str, Comparison]


class EvaluationFolder(ResultsFolder):
    """Results folder that may replace a former evaluation."""

    def _check_place(self) -> None:
        if not (self.place.is_dir() and {entry.name for entry in self.place.iterdir()} <= FILES):
            super()._check_place()


class EvaluationRun:
    """Run of an evaluation, and its results folder.

    Parameters
    ----------
    contest : Contest
        Policies and sequences to compare.
    place : path
        Path of the results folder; a former evaluation there is replaced when the new one is complete.
    command : sequence of str
        Command line, for the records.
    """

    def __init__(self, contest: Contest, place: str | os.PathLike[str], command: Sequence[str] = ()) -> None:
        self.contest = contest
        self.folder = EvaluationFolder(place)
        self.command = tuple(command)

    def run(
        self, *, resume: bool = False, tell: Callable[[str, int], None] = lambda sequence, jobs: None
    ) -> list[Verdict]:
        """Simulate all sequences and write the folder.

        Parameters
        ----------
        resume : bool
            Whether finished sequences of an interrupted run of the same evaluation are kept. Default: False.
        tell : callable
            Callback ``tell(sequence, jobs)`` for each finished sequence, with the number of jobs in its runs.

        Raises
        ------
        HpcsimkitError
            A policy failed, or a file cannot be written. Finished sequences are kept for `resume`.
        Stopped
            Ctrl-C or SIGTERM was received. Finished sequences are kept for `resume`.
        """
        began = datetime.now(UTC)
        self.folder.open(FINISHED, resume=resume)
        try:
            self._simulate(tell)
            outcomes = list(self._finished().values())
            verdicts = [_verdict(metric, outcomes) for metric in self.contest.metrics]
            write_bytes(self.folder.work / TABLE, _csv(outcomes).encode())
            write_bytes(self.folder.work / STATISTICS, _json(self._statistics(verdicts)))
            write_bytes(self.folder.work / PROVENANCE, _json(self._provenance(began)))
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
        return verdicts

    def _simulate(self, tell: Callable[[str, int], None]) -> None:
        """Simulate the unfinished sequences, in this process or in worker processes."""
        finished = self._finished()
        for number in finished:
            tell(str(number), self.contest.jobs_of_sequence)
        missing = [str(number) for number in range(len(self.contest.scenarios)) if number not in finished]
        workers = min(self.contest.evaluation.workers, len(missing))
        if workers > 1:
            run_in_processes(missing, self._work, workers=workers, tell=tell)
            return
        for name in missing:
            self._work(name, partial(tell, name))

    def _work(self, number: str, tell: Callable[[int], None]) -> None:
        """Run all policies on a sequence, and write the outcome to disk."""
        contest = self.contest
        with Watchdog():
            outcome = {"fingerprint": contest.fingerprint, **contest.outcome(int(number))}
        write_bytes(self._file(int(number)), _json(outcome))
        tell(contest.jobs_of_sequence)

    def _file(self, number: int) -> Path:
        return self.folder.work / FINISHED / f"{number}.json"

    def _finished(self) -> dict[int, dict[str, Any]]:
        """Return the complete sequences on disk that have the fingerprint of this evaluation."""
        found = {number: json_record(self._file(number)) for number in range(len(self.contest.scenarios))}
        return {
            number: outcome
            for number, outcome in found.items()
            if outcome.get("fingerprint") == self.contest.fingerprint
        }

    def _hint(self, finished: int) -> str:
        """Return the number of finished sequences and the command to resume, as the end of a message."""
        count = f"{finished} of {len(self.contest.scenarios)} sequences are finished"
        place = shlex.quote(os.path.relpath(self.folder.place))
        return f"; {count}; to go on: the same command with --resume --out {place}" if finished else ""

    # --- records ---------------------------------------------------------------------------------------

    def _statistics(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return the statistics without times and places, so that equal evaluations give equal files."""
        contest, evaluation = self.contest, self.contest.evaluation
        return {
            "model": Path(evaluation.model).name,
            "model_sha256": sha256_of(evaluation.model),
            "within": contest.within,
            "stage": contest.agent.stage,
            "sample": contest.agent.sample,
            "workload": {"name": contest.workload.name, "hash": contest.workload.hash},
            "sequences": evaluation.sequences,
            "jobs": evaluation.jobs,
            "warmup": evaluation.warmup,
            "seed": evaluation.seed,
            "share_of_jobs_in_several_sequences": contest.overlap,
            "metrics": {
                verdict.metric: {
                    "unit": METRICS[verdict.metric].unit,
                    "better": METRICS[verdict.metric].direction,
                    "policies": {name: _plain(asdict(mean)) for name, mean in verdict.means.items()},
                    "agent_minus": {
                        name: _plain(asdict(comparison)) for name, comparison in verdict.comparisons.items()
                    },
                }
                for verdict in verdicts
            },
        }

    def _provenance(self, began: datetime) -> dict[str, Any]:
        evaluation = self.contest.evaluation
        return {
            "version": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "command": shlex.join(self.command),
            "started": began.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "code": self.contest.code,
            "options": evaluation.model_dump(exclude_none=True),
            "policies": {name: repr(policy) for name, policy in self.contest.policies.items()},
            "training": dict(self.contest.agent.about or {}),
        }


def _verdict(metric: str, outcomes: Sequence[Mapping[str, Any]]) -> Verdict:
    """Compare the agent with the other policies by a metric."""
    values = {name: _values(metric, name, outcomes) for name in outcomes[0]["metrics"]}
    others = {name: column for name, column in values.items() if name != AGENT}
    means = {name: mean_of(column) for name, column in values.items()}
    return Verdict(metric, means, compared(values[AGENT], others))


def _values(metric: str, policy: str, outcomes: Sequence[Mapping[str, Any]]) -> Floats:
    values = [outcome["metrics"][policy][metric] for outcome in outcomes]
    if None in values:
        raise UsageError(f"{metric} of {policy} is not defined on sequence {values.index(None)}")
    return np.array(values, dtype=np.float64)


# --- output ----------------------------------------------------------------------------------------------


def verdict_table(verdict: Verdict) -> str:
    """Return the table of a metric; p-values are corrected by Holm's method, a star marks significance."""
    headings = [
        metric_heading(verdict.metric),
        "mean",
        INTERVAL,
        "agent minus it",
        INTERVAL,
        "t-test",
        "Wilcoxon",
    ]
    rows = [
        [name, number_text(mean.mean), _interval(mean), *_cells(verdict.comparisons.get(name))]
        for name, mean in verdict.means.items()
    ]
    return plain_table(headings, rows)


def _cells(comparison: Comparison | None) -> Iterator[str]:
    """Yield the cells of a comparison; the agent is not compared with itself."""
    if comparison is None:
        yield from [""] * 4
        return
    share = "" if math.isnan(comparison.relative) else f" ({comparison.relative:+.1%})"
    yield f"{number_text(comparison.difference.mean)}{share}".replace("%", " %")
    yield _interval(comparison.difference)
    yield _p_value(comparison.t_test_holm)
    yield _p_value(comparison.wilcoxon_holm)


def _interval(mean: Mean) -> str:
    return "-" if math.isnan(mean.low) else f"{number_text(mean.low)} to {number_text(mean.high)}"


def _p_value(p: float) -> str:
    if math.isnan(p):
        return "-"
    star = "*" if p < SIGNIFICANT else " "
    return f"{star}{p:.1e}" if p < 0.001 else f"{star}{p:.3f}"


# --- files -----------------------------------------------------------------------------------------------


def _csv(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each sequence and policy; an undefined metric is left empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sequence", "first_job", "seed", "policy", *METRICS])
    for outcome in outcomes:
        about = [outcome[name] for name in ("sequence", "first_job", "seed")]
        writer.writerows([*about, name, *values.values()] for name, values in outcome["metrics"].items())
    return text.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers for JSON: None for non-finite ones."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value if math.isfinite(value) else None
        for name, value in values.items()
    }
