"""Residue of a validation: how the log accounts for the differences between recorded and simulated starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.compared_use import ComparedUse
from hpcsimkit.results.validation import NEAR, Validation

if TYPE_CHECKING:
    import pandas

__all__ = ["CAUSES", "Residue"]

CAUSES: Mapping[str, str] = {
    "beginning": "first day: the simulated cluster begins empty",
    "beyond": "more in use on record than the cluster has",
    "room": "room on record to start earlier",
    "order": "another order on record than simulated",
    "above": "more in use than ever on record",
}
"""Causes in the order in which they are looked for, and their descriptions."""

UNEXPLAINED = "unexplained"

DAY = 86_400

WAYS: tuple[By, ...] = ("partition", "qos", "size", "hour")
TOP = 10

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Residue:
    """Causes of the errors of start times, as far as a log tells.

    A job belongs to the first of `CAUSES` that applies to it, else it is unexplained. That a cause applies
    does not prove that it is the reason: an error also passes on to the jobs behind.

    Parameters
    ----------
    validation : Validation
        The comparison of the schedules.
    cluster : Cluster, optional
        The cluster of the simulation, whose partitions limit what may be in use; by default only the size of
        the cluster is known.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 90000], "run_time": [900, 9], "nodes": [4, 4]}
    >>> w = Workload({**columns, "recorded_wait_time": [0, 1800]}, machine_size=4)
    >>> residue = Residue(Validation(Simulation(w, Pipeline()).run()))
    >>> residue.table.set_index("cause").share.to_dict()
    {'beginning': 0.0, 'beyond': 0.0, 'room': 1.0, 'order': 0.0, 'above': 0.0, 'unexplained': 0.0}
    """

    validation: Validation
    cluster: AnyCluster | None = None

    @cached_property
    def table(self) -> pandas.DataFrame:
        """Jobs and their share of the sum of the absolute errors, by cause, and those unexplained.

        Columns: ``cause`` (a key of `CAUSES`, or ``unexplained``), ``jobs`` with an error above 10 minutes,
        ``share`` of the sum of all errors, 0 to 1 (0 if there is no error).
        """
        import pandas

        error = np.abs(self.validation.error)
        total = float(error.sum())
        left = np.ones(len(error), dtype=bool)
        rows = []
        for cause in CAUSES:
            here = left & getattr(self, f"_{cause}")
            left &= ~here
            rows.append((cause, here))
        rows.append((UNEXPLAINED, left))
        return pandas.DataFrame(
            [
                (cause, int((error[here] > NEAR).sum()), float(error[here].sum()) / total if total else 0.0)
                for cause, here in rows
            ],
            columns=["cause", "jobs", "share"],
        )

    def sentences(self) -> Iterator[str]:
        """Yield what the table and the classes of jobs say, in words."""
        error = np.abs(self.validation.error)
        total = float(error.sum())
        if not total:
            return
        early = float(error[self.validation.error < 0].sum()) / total
        late = 1 - early
        yield f"the simulation starts jobs too early for {early:.0%} of the error, too late for {late:.0%}"
        for by in WAYS:
            number, label = classes_of(
                self.validation.result, by, TOP if by in ("partition", "qos") else None
            )
            classes, number = np.unique(number[self.validation.jobs], return_inverse=True)
            share = np.bincount(number, weights=error) / total
            jobs = np.bincount(number) / len(error)
            most = int(np.argmax(share - jobs))
            if share[most] - jobs[most] >= 0.1:
                parts = f"{share[most]:.0%} of the error, {jobs[most]:.0%} of the jobs"
                yield f"{by} {label(int(classes[most]))}: {parts}"
        yield self._room_judged()
        if self.validation.result.downtime is not None:
            yield "nodes that were down by the failure log are no room on record"
        elif self._room.any():
            yield "nodes that were down count as room on record: a failure log (--failures FILE) would tell"
        for note, count in self.validation.result.workload.notes.items():
            if note.startswith("eligible"):
                yield f"{count:,} jobs became eligible after their submission: their waits begin then"

    def _room_judged(self) -> str:
        """Return how the room on record was looked for, in words."""
        if self.validation.result.placements is None:
            return "room on record: judged by the number of free nodes"
        known, compared = self.use.known_nodes, len(self.use.submit)
        if self.use.nodes is None:
            return f"room on record: judged by totals, as the log names the nodes of {known:.0%} of the jobs"
        unknown = compared - round(known * compared)
        left_out = f"; {unknown:,} jobs without known nodes: not counted" * bool(unknown)
        return f"room on record: judged on each node{left_out}"

    # --- causes ----------------------------------------------------------------------------------------

    @cached_property
    def use(self) -> ComparedUse:
        """What the jobs ask for and use in both schedules."""
        return ComparedUse(self.validation, self.cluster)

    @property
    def _beginning(self) -> Mask:
        first = self.use.submit.min()
        return (self.use.submit < first + DAY) & (self.use.submit.max() >= first + 7 * DAY)

    @cached_property
    def _beyond(self) -> Mask:
        return (self.validation.error > 0) & self._above_limits("recorded", {})

    @cached_property
    def _above(self) -> Mask:
        most = {
            place: [curve.value.max() for curve in self.use.in_use("recorded", group)]
            for place, (group, _) in enumerate(self.use.groups)
            if group.any()
        }
        return (self.validation.error < 0) & self._above_limits("simulated", most)

    def _above_limits(self, which: str, limits: Mapping[int, list[float]]) -> Mask:
        """Return which jobs start while more is in use than a group has, or than a limit says."""
        found = np.zeros(len(self.use.submit), dtype=bool)
        for place, (group, amounts) in enumerate(self.use.groups):
            if not group.any():
                continue
            start = self.use.starts[which][group]
            most = limits.get(place, amounts)
            over = [
                curve.value[np.searchsorted(curve.time, start)] > limit
                for curve, limit in zip(self.use.in_use(which, group), most, strict=True)
            ]
            found[group] = np.any(over, axis=0)
        return found

    @cached_property
    def _room(self) -> Mask:
        """Jobs that start earlier than recorded, and could have done so among the other recorded starts.

        Where the log names nodes, free amounts of single machines are compared, else those in all.
        """
        result, jobs = self.validation.result, self.validation.jobs
        lasting = (result.end_time - result.start_time)[jobs]
        numbers = np.flatnonzero(jobs).tolist()
        nodes = self.use.nodes
        found = np.zeros(len(self.use.submit), dtype=bool)
        for group, amounts in self.use.groups:
            if not group.any():
                continue
            curves = self.use.in_use("recorded", group, or_down=True)
            free = np.array(amounts)[:, None] - np.array([curve.value for curve in curves])
            for row in np.flatnonzero(group & (self.validation.error < -NEAR)).tolist():
                start, number = int(self.use.starts["recorded"][row]), numbers[row]
                if nodes is not None and nodes.known[number]:
                    first = nodes.earliest(number, self._may_use(number))
                else:
                    submit, took = int(self.use.submit[row]), int(lasting[row])
                    first = _first_gap(curves[0].time, free, submit, start, took, self.use.asked[row])
                found[row] = start - first > NEAR
        return found

    def _may_use(self, job: int) -> NDArray[np.intp]:
        """Return the numbers of the machines of the partition of a job."""
        result, cluster = self.validation.result, self.cluster
        assert result.placements is not None
        if isinstance(cluster, Partitions) and result.started_in is not None:
            numbers = cluster.views[cluster.names.index(str(result.started_in[job]))].numbers
            assert numbers is not None
            return numbers
        return np.arange(len(result.placements.cluster))

    @cached_property
    def _order(self) -> Mask:
        """Jobs of pairs in one partition that start in another order than simulated.

        Only pairs in which the later job asks for at least as much for at least as long count: backfilling
        hardly changes their order.
        """
        result, jobs = self.validation.result, self.validation.jobs
        number, _ = classes_of(result, "partition")
        number = number[jobs]
        found = np.zeros(len(self.use.submit), dtype=bool)
        for each in np.unique(number):
            rows = np.flatnonzero(number == each)
            ordered = rows[np.argsort(self.use.submit[rows], kind="stable")]
            found[ordered[self._reordered(ordered)]] = True
        return found

    def _reordered(self, ordered: Integers) -> Mask:
        """Return which of some jobs, in the order of submission, are in such a pair."""
        recorded, simulated = (starts[ordered] for starts in self.use.starts.values())
        submit, asked = self.use.submit[ordered], self.use.asked[ordered]
        limit = self.validation.result.workload.requested_time[self.validation.jobs][ordered]
        found = np.zeros(len(ordered), dtype=bool)
        stops = np.searchsorted(submit, np.maximum(recorded, simulated)).tolist()
        for place, stop in enumerate(stops):
            later = slice(place + 1, stop)
            swapped = (recorded[later] < recorded[place]) != (simulated[later] < simulated[place])
            if swapped.any():
                swapped &= (limit[later] >= limit[place]) & (asked[later] >= asked[place]).all(axis=1)
                found[later] |= swapped
                found[place] |= swapped.any()
        return found


def _first_gap(
    time: Integers,
    free: NDArray[np.float64],
    submit: int,
    start: int,
    lasting: int,
    asked: NDArray[np.float64],
) -> int:
    """Return the first time [s] from which the free amounts, shape (resources, changes), suffice to the end.

    From its start on, the amounts of the job itself are not among the free ones, and suffice.
    """
    begin = max(int(np.searchsorted(time, submit, side="right")) - 1, 0)
    end = int(np.searchsorted(time, start))
    lacking = np.flatnonzero((free[:, begin:end] < asked[:, None]).any(axis=0)) + begin
    opens = np.maximum(np.append(submit, time[lacking + 1]), submit)
    closes = np.append(time[lacking], start + lasting)
    return int(opens[np.argmax(closes - opens >= lasting)])
