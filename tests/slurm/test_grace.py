"""Grace times of a real Slurm: when jobs are stopped, and when those start for which they are.

``tests/slurm_witness/grace`` has what Slurm 22.05 left of two scripted experiments, ten times faster than time:
preemption by QOS and by tiers, on nodes of which each has partitions of its own. ``submitted.txt`` says what was
submitted, and when.

- 1, 5, 6, 9: `GraceTime` of 300 s. They are stopped at Slurm's next look at limits, up to 30 s later.
- 2: 200 s, and `PreemptMode=CANCEL`, so that it does not come back.
- 3: it reaches its limit in its grace time, and is requeued nevertheless.
- 4: the job for which it is to be stopped is cancelled meanwhile; it is stopped all the same.
- 7: it ends by itself in its grace time.
- 8, and 10 by QOS: no grace time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit import Simulation
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.source import CONFIGURED
from hpcsimkit.results.attempts import Outcome

FOLDER = Path(__file__).parents[1] / "slurm_witness/grace"

Spans = dict[str, list[tuple[int, int, bool]]]
"""Start, end, and whether it was stopped, of each attempt of each job."""

UNSEEN = "4"
"""The job that was to be stopped for one that never started, which is not in the log."""

NEAR = 45
"""Largest difference of a time [s]: looks at limits every 30 s, and commands that take some seconds."""

MEAN = 10
"""Largest mean difference of the times at which jobs are stopped [s]."""


def _recorded(log: Path) -> Spans:
    heading, *lines = log.read_text().splitlines()
    found: Spans = {}
    for line in lines:
        row = dict(zip(heading.split("|"), line.split("|"), strict=True))
        if row["Start"].isdecimal():
            stopped = row["State"] == "PREEMPTED"
            found.setdefault(row["JobID"], []).append((int(row["Start"]), int(row["End"]), stopped))
    return found


def _simulated(folder: Path) -> Spans:
    flags = {"log": str(folder / "day.sacct"), "slurm": str(folder), "policies": [CONFIGURED]}
    case = Case.of(Experiment.of_flags(flags), CONFIGURED)
    attempts = Simulation(case.jobs, case.policy, setup=case.setup).run().attempts
    assert attempts is not None
    found: Spans = {}
    columns = (attempts.job, attempts.start_time, attempts.end_time, attempts.outcome)
    for job, start, end, outcome in zip(*(each.tolist() for each in columns), strict=True):
        name = case.jobs.label("id", int(case.jobs.id[job]))
        found.setdefault(name, []).append((start, end, outcome == Outcome.PREEMPTED))
    return found


@pytest.mark.parametrize("kind", ["qos", "partitions"])
def test_grace_times_of_a_real_slurm(kind: str) -> None:
    recorded, simulated = _recorded(FOLDER / kind / "day.sacct"), _simulated(FOLDER / kind)
    assert sum(spans[0][2] for spans in recorded.values()) >= 7
    late = []
    for job in recorded.keys() - {UNSEEN}:
        for (start, end, stopped), (begin, over, was_stopped) in zip(
            recorded[job], simulated[job], strict=True
        ):
            assert abs(begin - start) <= NEAR and abs(over - end) <= NEAR, job
            assert stopped == was_stopped or len(recorded[job]) == 1, (
                job
            )  # what was cancelled may just end then
            if stopped:
                late.append(abs(over - end))
    assert sum(late) <= MEAN * len(late)
