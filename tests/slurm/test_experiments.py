"""Experiments on a real Slurm, one rule each, played again: who runs where, who waits, and for which reason.

The submissions and what ``squeue`` printed some seconds later are read from the shared folder; the pauses between the
submissions are those of its scripts. Fair shares are those of the users at that time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hpcsimkit import Machines, Simulation, Workload
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.accounts import Associations
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.scheduler import SlurmScheduler
from tests.slurm.snapshots import configuration

FAIR = {"ada": 0.125, "ben": 0.5, "cleo": 0.75, "dan": 0.625, "eve": 0.25, "fay": 0.875}
ACCOUNTS = {"ada": "physics", "eve": "physics", "ben": "ml", "dan": "ml", "cleo": "chem", "fay": "chem"}
TWO = "limits_tiers_preemption_reservations.txt", "preemption_backfill_mainloop.txt"

OTHERS = ("Priority", "Resources", "BeginTime", "None")
"""Reasons of jobs that no limit holds, and beginnings of them."""


class Seen(NamedTuple):
    """A job as ``squeue`` printed it."""

    running: bool
    priority: int
    reason: str
    nodes: str


class Trial(NamedTuple):
    """An experiment: the command lines by job number, and what was seen of each job in the last list."""

    submitted: dict[int, str]
    seen: dict[int, Seen]


def trials(shared: Path) -> dict[str, Trial]:
    found: dict[str, Trial] = {}
    text = "\n".join((shared / "slurm/day" / name).read_text() for name in TWO)
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        name = part.split()[0]
        submitted = {
            int(number): words for words, number in re.findall(r"^(--uid.*) -> (\d+) $", part, re.MULTILINE)
        }
        seen = {}
        for line in re.findall(r"^\d+\|.*$", part, re.MULTILINE):
            cells = line.split("|")
            seen[int(cells[0])] = Seen(cells[4] == "RUNNING", int(cells[5]), cells[9], cells[11])
        found[name] = Trial(submitted, seen)
    return found


class GivenShares(SlurmScheduler):
    """The scheduler with fair shares that do not change."""

    def reset(self, system: Any) -> None:
        super().reset(system)
        waiting = self._waiting
        waiting._fair = np.array([FAIR.get(one.user, 0.0) for one in waiting.associations.each])
        waiting.calculate = lambda now: False  # type: ignore[method-assign]


def of_nodes(made: Slurm) -> Slurm:
    """Return the profile with the name of each node among its features, for ``-w``."""
    old = made.machines
    features = [{*words, name} for name, words in zip(old.names, old.features, strict=True)]
    machines = Machines(old.names, old.resources, old.capacity, features)
    return replace(made, partitions=replace(made.partitions, machines=machines))


def job(words: str, at: int, run: int | None) -> dict[str, Any]:
    """Return the columns of a command line of ``sbatch``."""

    def value(pattern: str, default: str) -> str:
        found = re.search(rf"(?:^| ){pattern}", words)
        return default if found is None else found[1]

    user = value(r"--uid=(\w+)", "")
    node = value(r"-w (\S+)", "")
    return {
        "submit_time": at,
        "run_time": run or int(value(r"sleep (\d+)", "1")),
        "requested_time": 60 * int(value(r"-t (\d+)", "10")),
        "nodes": int(value(r"-N(\d+)", "1")),
        "cpus": int(value(r"-c(\d+)", "1")),
        "memory": int(value(r"--mem=(\d+)", "100")) * 2**20,
        "user": user,
        "group": ACCOUNTS[user],
        "partition": value(r"-p (\S+)", "cpu"),
        "qos": value(r"--qos=(\w+)", "normal"),
        "constraint": node.replace(",", "|"),
    }


def workload(rows: list[dict[str, Any]]) -> Workload:
    columns: dict[str, Any] = {}
    labels = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if isinstance(values[0], str):
            names = list(dict.fromkeys(values))
            columns[name] = [names.index(value) if value else -1 for value in values]
            labels[name] = tuple(names)
        else:
            columns[name] = values
    return Workload(columns, resources=("cpus", "memory"), labels=labels)


def played(made: Slurm, trial: Trial, pauses: dict[int, int], **options: Any) -> Result:
    """Return the result of an experiment; a pause follows the submission of a number, counted from 1."""
    at, rows = 0, []
    for number, words in enumerate(trial.submitted.values(), start=1):
        rows.append(job(words, at, None))
        at += pauses.get(number, 0)
    return Simulation(workload(rows), GivenShares(made), made.partitions, **{**made.options, **options}).run()


def state(result: Result, row: int, at: int) -> tuple[bool, str, str]:
    """Return whether a job runs at a time, the reason of a limit that holds it, and its nodes."""
    running = bool(0 <= result.start_time[row] <= at < result.end_time[row])
    if result.attempts is not None:
        each = result.attempts
        running = bool(((each.job == row) & (each.start_time <= at) & (at < each.end_time)).any())
    held = result.held
    reasons: list[str] = []
    if held is not None:
        here = (held.job == row) & (held.start <= at) & ((held.end > at) | (result.start_time[row] < 0))
        reasons = held.reason[here].tolist()
    assert result.placements is not None
    return running, reasons[-1] if reasons else "", result.placements.words()[row] if running else ""


def agreement(result: Result, trial: Trial, at: int) -> list[tuple[int, Any, Any]]:
    """Return the jobs for which Slurm and the simulation differ, with both."""
    found = []
    for row, number in enumerate(trial.submitted):
        seen = trial.seen[number]
        if number in STARTING:
            continue
        if number in FOR_EVER:
            found += (
                [] if result.start_time[row] < 0 and not seen.running else [(number, seen, "not rejected")]
            )
            continue
        reason = "" if seen.running or seen.reason.startswith((*OTHERS, "Nodes required")) else seen.reason
        nodes = " ".join(spelled(seen.nodes)) if seen.running else ""
        expected, simulated = (seen.running, reason, nodes), state(result, row, at)
        if expected != simulated:
            found.append((number, expected, simulated))
    return found


def spelled(nodes: str) -> list[str]:
    found = re.fullmatch(r"(\w+)\[(\d)-(\d)\]", nodes)
    return [nodes] if found is None else [f"{found[1]}{n}" for n in range(int(found[2]), int(found[3]) + 1)]


@pytest.fixture
def real(shared: Path, tmp_path: Path) -> Slurm:
    return of_nodes(Slurm.read(configuration(shared, tmp_path)))


@pytest.fixture
def seen(shared: Path) -> dict[str, Trial]:
    return trials(shared)


def limited(made: Slurm, **limits: dict[str, Any]) -> Slurm:
    """Return the profile with limits of users and accounts."""
    each = [
        replace(
            one,
            limits=limits.get(one.user or one.account, {})
            if one.user or one.account in limits
            else one.limits,
        )
        for one in made.associations.each
    ]
    return replace(made, associations=Associations(tuple(each)))


CASES = {  # pauses after submissions, and when squeue was called
    "E1": ({}, 18),
    "E2": ({}, 18),
    "E3": ({}, 18),
    "E5": ({1: 2}, 22),
    "E6": ({1: 3, 2: 3, 3: 3, 4: 3, 5: 5, 6: 18}, 38),
    "F1": ({1: 2, 2: 2, 3: 2, 4: 2, 5: 3}, 15),
    "F2": ({1: 2, 5: 3}, 10),
    "F3": ({1: 2}, 24),
    "F3b": ({1: 2}, 20),
    "F4": ({1: 2}, 17),
    "F5": ({1: 2}, 10),
    "F6": ({}, 6),
}

FOR_EVER = {408, 409, 414}
"""Jobs that wait for ever in Slurm, as they exceed a limit by themselves: they are rejected here."""

STARTING = {489, 495}
"""Jobs for which others are being stopped, which takes no time here."""

CLOCKS = {
    "F3": {"bf_interval": 10, "bf_max_job_test": 2},
    "F4": {"bf_interval": 600, "sched_interval": 5},
}

LIMITS = {
    "fay": {"MaxJobs": 1},
    "chem": {"GrpTRES": {"cpus": 12.0}},
    "eve": {"GrpTRESRunMins": {"cpus": 20.0}},
    "ml": {"GrpJobs": 2},
}


@pytest.mark.parametrize("name", list(CASES))
def test_jobs_run_and_wait_as_in_slurm(real: Slurm, seen: dict[str, Trial], name: str) -> None:
    pauses, at = CASES[name]
    trial = seen[name]
    if name == "F3b":
        trial = trial._replace(submitted=seen["F3"].submitted)
    made = replace(real, clocks=replace(real.clocks, **CLOCKS.get(name, {})))
    made = limited(made, **LIMITS) if name == "E3" else made
    assert agreement(played(made, trial, pauses), trial, at) == []


@pytest.mark.parametrize("name", ["E1", "E2", "E3", "E5", "F6"])
def test_priorities_are_those_that_squeue_printed(real: Slurm, seen: dict[str, Trial], name: str) -> None:
    trial = seen[name]
    rows = [job(words, 0, None) for words in trial.submitted.values()]
    jobs = workload(rows)
    policy = GivenShares(real)
    simulation = Simulation(jobs, policy, real.partitions)
    simulation.next_decision()
    waiting = simulation._run._policy._waiting  # type: ignore[union-attr]
    waiting._at = 0
    parts = np.array([real.partitions.names.index(row["partition"]) for row in rows])
    waiting._since[:] = 0
    found = waiting.priorities(np.arange(len(rows)), parts).tolist()
    assert found == [trial.seen[number].priority for number in trial.submitted]
