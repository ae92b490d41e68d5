"""Waits by cause: for what the jobs of a validation waited, on record and in the simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.results.breakdown import GROUPS, By, classes_of
from hpcsimkit.results.compared_use import ComparedUse
from hpcsimkit.results.room_over_time import RoomOverTime
from hpcsimkit.results.validation import Validation

if TYPE_CHECKING:
    import pandas

__all__ = ["CAUSES", "WaitCauses", "cause_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

CAUSES: Mapping[str, str] = {
    "not eligible": "before the job was eligible",
    "dependencies": "jobs on which the job depends",
    "begin time or hold": "a begin time, or a hold",
    "array limit": "the limit of its array",
    "licences": "licences",
    "limits": "limits of QOS, accounts, users and partitions",
    "nodes down": "nodes that are out of order, drained or reserved",
    "resources": "its request is not free",
    "priority": "its request is free, but for other jobs",
}
"""Causes, and their descriptions."""

REASONS: tuple[tuple[str, str], ...] = (
    ("Dependency", "dependencies"),
    ("BeginTime", "begin time or hold"),
    ("JobHeld", "begin time or hold"),
    ("JobArrayTaskLimit", "array limit"),
    ("Licenses", "licences"),
    ("ReqNodeNotAvail", "nodes down"),
    ("NodeDown", "nodes down"),
    ("Nodes required", "nodes down"),
    ("Nodes_required", "nodes down"),
    ("Reservation", "nodes down"),
    ("PartitionDown", "nodes down"),
    ("PartitionInactive", "nodes down"),
    ("Resources", "resources"),
    ("Priority", "priority"),
    *((beginning, "limits") for beginning in ("QOS", "Assoc", "Partition", "Max", "Grp")),
)
"""Beginnings of Slurm's reasons, and the causes."""

GIVEN = ("not eligible", "dependencies", "begin time or hold", "array limit")
"""Causes of the time until a job is eligible, which a simulation takes from the log."""

WAYS: tuple[By, ...] = ("partition", "qos", "group", "size", "run_time")
TOP = 10


def cause_of(reason: str) -> str:
    """Return the cause of a reason of Slurm; empty if it is none, or another one.

    Examples
    --------
    >>> cause_of("QOSMaxJobsPerUserLimit"), cause_of("Dependency"), cause_of("None")
    ('limits', 'dependencies', '')
    """
    return next((cause for beginning, cause in REASONS if reason.startswith(beginning)), "")


@dataclass(frozen=True, eq=False)
class WaitCauses:
    """Causes of the waits of the compared jobs, in the recorded and in the simulated schedule.

    On record, a whole wait counts for the last reason that the log states (column ``recorded_reason``). In
    the simulation, each second counts for the reason for which a limit or a gate held the job. All other
    time is divided by the schedule itself: as long as the job's request was free on the machines that it may
    use, it waited for other jobs to go first (``priority``); as long as it would have been free if no machine
    had been out of order, for these (``nodes down``); else for ``resources``. Where the log does not name
    the nodes of nearly all jobs, free amounts are totals over all nodes. The features that machines
    need to have in common are ignored.

    Parameters
    ----------
    validation : Validation
        The comparison of the schedules.
    cluster : Cluster, optional
        The cluster of the simulation; by default only its size is known.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 0, 1], "run_time": [90, 50, 9], "nodes": [2, 3, 1]}
    >>> w = Workload({**columns, "recorded_wait_time": [0, 90, 139]}, machine_size=4)
    >>> table = WaitCauses(Validation(Simulation(w, Pipeline()).run())).table
    >>> table[table["by"] == "all"].set_index("cause").recorded.round(1).to_dict()
    {'resources': 30.0, 'priority': 46.3}
    >>> table[table["by"] == "all"].set_index("cause").simulated.round(1).to_dict()
    {'resources': 30.0, 'priority': 29.7}
    """

    validation: Validation
    cluster: AnyCluster | None = None

    @cached_property
    def table(self) -> pandas.DataFrame:
        """Mean wait of the jobs of a group by cause.

        Columns: ``by, group, jobs, cause``, ``recorded, simulated`` (mean over all jobs of the group [s]; the
        causes add up to the mean time from submission to start). A row for each cause that occurs, for all
        jobs and by partition, QOS, account (``group``), size and run time; at most ten groups by name.
        """
        import pandas

        rows = list(self._rows("all", "all jobs", np.ones(len(self._seconds["recorded"]), dtype=bool)))
        for by in WAYS:
            number, label = classes_of(self.validation.result, by, TOP if by in GROUPS else None)
            number = number[self.validation.jobs]
            known = np.unique(number)
            if len(known) > 1:
                rows += [row for each in known for row in self._rows(by, label(int(each)), number == each)]
        return pandas.DataFrame(rows, columns=["by", "group", "jobs", "cause", "recorded", "simulated"])

    def _rows(self, by: str, group: str, jobs: Mask) -> Iterator[tuple[str, str, int, str, float, float]]:
        means = [seconds[jobs].mean(axis=0).tolist() for seconds in self._seconds.values()]
        for cause, recorded, simulated in zip(CAUSES, *means, strict=True):
            if recorded or simulated:
                yield by, group, int(jobs.sum()), cause, recorded, simulated

    def sentences(self) -> Iterator[str]:
        """Yield what the log states about the loops that started jobs, and the order of priorities."""
        workload, jobs = self.validation.result.workload, self.validation.jobs
        wait = self.validation.recorded
        if "recorded_backfilled" in workload.columns:
            by_backfill = workload.column("recorded_backfilled")[jobs] == 1
            if by_backfill.any() and wait.sum():
                share = wait[by_backfill].sum() / wait.sum()
                yield (
                    f"backfill started {by_backfill.mean():.0%} of the jobs on record, with {share:.0%} of "
                    "their wait"
                )
        if "recorded_priority" in workload.columns:
            known, ahead = self._overtaking
            if known:
                yield f"{ahead / known:.0%} of the jobs on record started before a job with a higher priority"

    @property
    def _overtaking(self) -> tuple[int, int]:
        """Numbers of jobs with a priority, and of those that started before one above that waited there."""
        result, jobs = self.validation.result, self.validation.jobs
        priority = result.workload.column("recorded_priority")[jobs]
        number = classes_of(result, "partition")[0][jobs]
        submit, start = self._room.use.submit, self._room.use.starts["recorded"]
        ahead = 0
        for part in np.unique(number):
            rows = np.flatnonzero((number == part) & (priority >= 0))
            waits = rows[start[rows] > submit[rows]]
            for row in rows.tolist():
                others = (submit[waits] < start[row]) & (start[waits] > start[row])
                ahead += bool((priority[waits[others]] > priority[row]).any())
        return int((priority >= 0).sum()), ahead

    # --- seconds by cause --------------------------------------------------------------------------------

    @cached_property
    def _room(self) -> RoomOverTime:
        return RoomOverTime(ComparedUse(self.validation, self.cluster))

    @cached_property
    def _seconds(self) -> dict[str, Floats]:
        """Seconds of each schedule by job and cause, shape (jobs, causes)."""
        recorded, simulated = (self._divided(name) for name in ("recorded", "simulated"))
        reasons = self._recorded_reasons
        place = {cause: number for number, cause in enumerate(CAUSES)}
        for row, cause in enumerate(reasons):
            if cause:
                recorded[row] = 0
                recorded[row, place[cause]] = self.validation.recorded[row]
        self._take_out_held(simulated)
        workload, jobs = self.validation.result.workload, self.validation.jobs
        if "recorded_held_time" in workload.columns:
            held = np.maximum(workload.column("recorded_held_time")[jobs], 0)
            given = [place[cause if cause in GIVEN else GIVEN[0]] for cause in reasons]
            for seconds in (recorded, simulated):
                seconds[np.arange(len(held)), given] += held
        return {"recorded": recorded, "simulated": simulated}

    @cached_property
    def _recorded_reasons(self) -> list[str]:
        """The cause that the log states for each job; empty if it states none."""
        workload, jobs = self.validation.result.workload, self.validation.jobs
        if "recorded_reason" not in workload.columns:
            return [""] * int(jobs.sum())
        values, value_of = np.unique(workload.column("recorded_reason")[jobs], return_inverse=True)
        causes = [
            cause_of(workload.label("recorded_reason", value)) if value >= 0 else ""
            for value in values.tolist()
        ]
        return [causes[place] for place in value_of.tolist()]

    def _divided(self, which: str) -> Floats:
        """Return the seconds from submission to start by cause, without those of limits and gates."""
        submit, start = self._room.use.submit, self._room.use.starts[which]
        return self._between(which, np.arange(len(submit)), submit, start)

    def _between(self, which: str, rows: Integers, begin: Integers, end: Integers) -> Floats:
        """Return the seconds between two times that jobs waited for machines, for others, and for outages."""
        seconds = np.zeros((len(rows), len(CAUSES)))
        room = self._room.seconds(which, rows, begin, end)
        without = room
        if self.validation.result.downtime is not None:
            without = self._room.seconds(which, rows, begin, end, down=False)
        parts = {"priority": room, "nodes down": without - room, "resources": end - begin - without}
        for place, cause in enumerate(CAUSES):
            seconds[:, place] = parts.get(cause, 0)
        return seconds

    def _take_out_held(self, seconds: Floats) -> None:
        """Count the time for which limits and gates held jobs for these."""
        held, jobs = self.validation.result.held, self.validation.jobs
        if held is None:
            return
        place_of = np.cumsum(jobs) - 1
        counted = jobs[held.job] & (held.end > held.start)
        rows = place_of[held.job[counted]]
        begin = held.start[counted]
        end = np.maximum(np.minimum(held.end[counted], self._room.use.starts["simulated"][rows]), begin)
        np.subtract.at(seconds, rows, self._between("simulated", rows, begin, end))
        place = {cause: number for number, cause in enumerate(CAUSES)}
        causes = np.array(
            [place[cause_of(reason) or "limits"] for reason in held.reason[counted].tolist()], dtype=np.int64
        )
        np.add.at(seconds.reshape(-1), rows * len(CAUSES) + causes, end - begin)
