"""Metrics: pure functions of a result, in one table with names, units, formulas and directions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.io.catalogue import loaded, plug_ins
from hpcsimkit.results.attempts import Attempts, Downtime, Outcome
from hpcsimkit.results.held_shares import total_wait
from hpcsimkit.results.lost_capacity import Spans, lost_capacity
from hpcsimkit.results.resource_metrics import (
    RESOURCE_NAMES,
    gpu_fragmentation,
    locality_penalty,
    normalised_turnaround,
    resource_utilisation,
    snapshot_utilisation,
)
from hpcsimkit.results.result import MODE_NAMES, Result

__all__ = ["METRICS", "Metric", "Selection", "measure", "select"]

Kind = TypeVar("Kind", bound=np.generic)
Found = TypeVar("Found")
Integers = NDArray[np.int64]
Function = Callable[[Result, "Selection"], float]
Quantity = Callable[[Result], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Selection:
    """The jobs and the time span over which metrics are computed.

    Attributes
    ----------
    jobs : array of bool, shape (jobs,)
        Mask of the selected jobs, by submission time.
    begin, end : int
        Limits of the selected time span [s of the log's clock].
    """

    jobs: NDArray[np.bool_]
    begin: int
    end: int
    _found: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    _values: dict[Any, NDArray[np.float64]] = field(default_factory=dict, init=False, repr=False)

    def values(self, quantity: Quantity, result: Result) -> NDArray[np.float64]:
        """Return a quantity of the selected jobs that ran, computed once for statistics in succession."""
        if (quantity, result) not in self._values:
            self._values.clear()  # of a long log, each quantity fills as much memory as a column of it
            self._values[quantity, result] = self.of(quantity(result), result)
        return self._values[quantity, result]

    def of(self, column: NDArray[Kind], result: Result) -> NDArray[Kind]:
        """Return the values of a column for the selected jobs that ran."""
        ran = self.once(_ran, result)
        return column if self.once(_all_ran, result) else column[ran]

    def once(self, compute: Callable[[Result, Selection], Found], result: Result) -> Found:
        """Return what a function computes of a result and this selection, computed once."""
        if (compute, result) not in self._found:
            self._found[compute, result] = compute(result, self)
        return self._found[compute, result]


@dataclass(frozen=True)
class Metric:
    """One row of `METRICS`.

    Attributes
    ----------
    name : str
        Key of the metric in tables and files.
    unit : str
        Unit: ``"s"``, ``"jobs"``, or ``"1"`` for ratios and shares.
    formula : str
        Formula in terms of the columns of a result; *i* runs over the selected jobs that ran.
    direction : {"lower", "higher", "none"}
        Direction of improvement.
    summary : str
        One-line description.
    function : callable
        Pure function ``function(result, selection)``; NaN for an empty selection.
    """

    name: str
    unit: str
    formula: str
    direction: Literal["lower", "higher", "none"]
    summary: str
    function: Function


def select(result: Result, *, warmup: float = 0, cooldown: float = 0) -> Selection:
    """Trim a result: exclude the initial and final phases, in which the machine fills and drains.

    Jobs are selected if they were submitted between `warmup` seconds after the first submission and
    `cooldown` seconds before the last one; system metrics (utilisation, loss of capacity) cover only this
    time span. With ``cooldown=0`` it lasts until the last job end. In a run that begins within a log, the
    first submission is the first one from its beginning on.

    Raises
    ------
    UsageError
        A duration is negative, or the remaining time span is empty.
    """
    for name, seconds in (("warmup", warmup), ("cooldown", cooldown)):
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"{name} needs 0 s or more, found {seconds}")
    submit = result.submit_time
    if not len(submit):
        return Selection(np.zeros(0, dtype=bool), 0, 0)
    begun = result.options.get("begun", {})
    first, last = begun["at"] if "before" in begun else int(submit.min()), int(submit.max())
    begin, end = first + int(np.ceil(warmup)), last - int(np.ceil(cooldown))
    if begin > end:
        raise UsageError(
            f"{result.workload.name}: warmup {warmup} s and cooldown {cooldown} s leave nothing of the "
            f"{last - first} s between the first and the last submission"
        )
    jobs = (submit >= begin) & (submit <= end)
    return Selection(jobs, begin, end if cooldown else max(end, int(result.end_time.max())))


def measure(
    result: Result, *, warmup: float = 0, cooldown: float = 0, names: Iterable[str | Metric] | None = None
) -> dict[str, float]:
    """Compute metrics of a result.

    Parameters
    ----------
    result : Result
        The result of a run.
    warmup, cooldown : float
        Durations to exclude after the first and before the last submission [s]; see :func:`select`. Default:
        0.
    names : iterable of str or Metric, optional
        Names of the metrics, from `METRICS`, or metrics of your own; by default all of `METRICS`.

    Returns
    -------
    dict of str to float
        Values in the order of `names`; NaN for undefined metrics.

    Raises
    ------
    UsageError
        A name is unknown, or the trimmed time span is empty.

    Examples
    --------
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> r = Result(w, "fcfs", 4, *map(np.array, ([0, 1], [0, 9], [9, 13], [1, 1], [False, False])))
    >>> measure(r, names=["mean_wait_time", "makespan"])
    {'mean_wait_time': 4.0, 'makespan': 13.0}
    """
    chosen = dict(map(_named, METRICS if names is None else names))
    selection = select(result, warmup=warmup, cooldown=cooldown)
    return {name: float(metric.function(result, selection)) for name, metric in chosen.items()}


def _named(metric: str | Metric) -> tuple[str, Metric]:
    return (metric.name, metric) if isinstance(metric, Metric) else (metric, METRICS.named(metric))


# --- metrics of jobs -------------------------------------------------------------------------------------

_STATISTICS: Mapping[str, tuple[str, str]] = {
    "mean": ("mean_i {}", "mean {}"),
    "median": ("median_i {}", "median {}"),
    "p95": ("95th percentile_i {}", "95th percentile of the {}, interpolated linearly"),
    "p99": ("99th percentile_i {}", "99th percentile of the {}, interpolated linearly"),
    "max": ("max_i {}", "longest {}"),
}

PERCENTILES: Mapping[str, int] = {"median": 50, "p95": 95, "p99": 99}
"""Statistics that one partition of the values gives."""


def _bounded_slowdown(result: Result) -> NDArray[np.float64]:
    return result.bounded_slowdown()


_QUANTITIES: Mapping[str, tuple[Quantity, str, str, str, tuple[str, ...]]] = {
    "wait_time": (
        lambda result: result.wait_time,
        "s",
        "start_i - submit_i",
        "wait time",
        ("mean", "median", "p95", "p99", "max"),
    ),
    "response_time": (
        lambda result: result.response_time,
        "s",
        "end_i - submit_i",
        "time from submission to end",
        ("mean", "max"),
    ),
    "slowdown": (
        lambda result: result.slowdown,
        "1",
        "max(1, response_i / max(run_i, 1 s))",
        "slowdown",
        ("mean", "max"),
    ),
    "bounded_slowdown": (
        _bounded_slowdown,
        "1",
        "max(1, response_i / max(run_i, 10 s))",
        "bounded slowdown (threshold 10 s)",
        ("mean", "median", "p95", "max"),
    ),
    "ntat": (
        normalised_turnaround,
        "1",
        "(wait_i + max(run_i, 1 s)) / max(run_i, 1 s)",
        "normalised turnaround time (NTAT)",
        ("mean",),
    ),
    "locality_penalty": (
        locality_penalty,
        "s",
        "run_i - run time of the log_i",
        "time added by where a job was placed",
        ("mean",),
    ),
}


def _of_jobs() -> Iterator[Metric]:
    """Yield the statistics of per-job quantities."""
    for quantity, (values, unit, formula, words, statistics) in _QUANTITIES.items():
        for name in statistics:
            how, summary = _STATISTICS[name]
            text = summary.format(words)
            if unit == "1":
                text = text.replace("longest", "largest")
            yield Metric(
                f"{name}_{quantity}",
                unit,
                how.format(f"({formula})"),
                "lower",
                text[0].upper() + text[1:],
                _over_jobs(values, name),
            )


def _over_jobs(quantity: Quantity, statistic: str) -> Function:
    if statistic in PERCENTILES:
        percentiles = _percentiles(quantity)
        return lambda result, selection: selection.once(percentiles, result)[statistic]
    compute: Callable[..., Any] = np.mean if statistic == "mean" else np.max

    def function(result: Result, selection: Selection) -> float:
        values = selection.values(quantity, result)
        return float(compute(values)) if len(values) else float("nan")

    return function


@cache
def _percentiles(quantity: Quantity) -> Callable[[Result, Selection], dict[str, float]]:
    """Return the function that computes all percentiles of a quantity."""

    def compute(result: Result, selection: Selection) -> dict[str, float]:
        values = selection.values(quantity, result)
        if not len(values):
            return dict.fromkeys(PERCENTILES, float("nan"))
        found = np.percentile(values, list(PERCENTILES.values()))
        return dict(zip(PERCENTILES, found.tolist(), strict=True))

    return compute


def _ran(result: Result, selection: Selection) -> NDArray[np.bool_]:
    """Return which selected jobs ran."""
    return selection.jobs & result.finished


def _all_ran(result: Result, selection: Selection) -> bool:
    """Return whether all jobs of the log are selected and ran."""
    return bool(selection.once(_ran, result).all())


def _jobs(result: Result, selection: Selection) -> float:
    return float(np.count_nonzero(selection.jobs))


def _rejected(result: Result, selection: Selection) -> float:
    return _jobs(result, selection) - float(np.count_nonzero(selection.once(_ran, result)))


def _killed(result: Result, selection: Selection) -> float:
    return float(np.count_nonzero(selection.of(result.killed, result)))


def _locality_penalty_share(result: Result, selection: Selection) -> float:
    added = selection.values(locality_penalty, result)
    if np.isnan(added).any():  # there is no locality model
        return float("nan")
    return _share(float(added.sum()), float(selection.of(result.workload.column("run_time"), result).sum()))


def _user_fairness(result: Result, selection: Selection) -> float:
    """Compute Jain's index of the users' mean bounded slowdowns; jobs of unknown users are ignored."""
    users = selection.of(result.workload.column("user"), result)
    known = users >= 0
    if not known.any():
        return float("nan")
    slowdown = selection.values(_bounded_slowdown, result)
    if not known.all():
        users, slowdown = users[known], slowdown[known]
    if users.max() > len(users):  # some numbers stand for no user
        users = np.unique(users, return_inverse=True)[1]
    jobs = np.bincount(users)
    mean = np.bincount(users, weights=slowdown)[jobs > 0] / jobs[jobs > 0]
    return float(mean.sum() ** 2 / (len(mean) * (mean**2).sum()))


# --- metrics of the system -------------------------------------------------------------------------------


def _makespan(result: Result, selection: Selection) -> float:
    ended = selection.of(result.end_time, result)
    if not len(ended):
        return float("nan")
    return float(ended.max() - _first_submission(result, selection))


def _first_submission(result: Result, selection: Selection) -> int:
    """Return the first submission of a selected job, also of one that never ran [s]."""
    return int(result.submit_time.min(where=selection.jobs, initial=np.iinfo(np.int64).max))


def _utilisation(result: Result, selection: Selection) -> float:
    """Integrate the nodes in use by all jobs of the log."""
    jobs = _spans(result)
    seconds = np.clip(jobs.end, selection.begin, selection.end)
    seconds -= np.clip(jobs.start, selection.begin, selection.end)
    return _share_of_machine(_sum_of_products(jobs.nodes, seconds), result, selection)


def _loss_of_capacity(result: Result, selection: Selection) -> float:
    """Integrate the idle nodes over the time in which the smallest waiting job would fit them."""
    spans = _with_downtime(_spans(result), result.downtime)
    lost = lost_capacity(spans, result.size, selection.begin, selection.end)
    return _share_of_machine(lost, result, selection)


def _spans(result: Result) -> Spans:
    """Return the times and nodes of all attempts of jobs that ran."""
    each, ran = result.by_attempt, result.by_attempt.finished
    spans = Spans(each.submit_time, each.start_time, each.end_time, each.amount)
    return spans if ran.all() else spans.at(ran)


def _with_downtime(spans: Spans, downtime: Downtime | None) -> Spans:
    """Return spans with capacity that is out of order, which is not idle, and waits for nothing."""
    if downtime is None:
        return spans
    return spans.and_also(Spans(downtime.start, downtime.start, downtime.end, downtime.amount))


def _share_started(mode: str, sums: Callable[[Result, Selection], NDArray[np.float64]]) -> Function:
    number = MODE_NAMES.index(mode)

    def function(result: Result, selection: Selection) -> float:
        found = selection.once(sums, result)
        return _share(float(found[number]), float(found.sum()))

    return function


def _jobs_by_mode(result: Result, selection: Selection) -> NDArray[np.float64]:
    mode = selection.of(result.mode, result)
    return np.bincount(mode, minlength=len(MODE_NAMES)).astype(float)


def _node_seconds_by_mode(result: Result, selection: Selection) -> NDArray[np.float64]:
    each = result.by_attempt
    rows = slice(None) if result.attempts is None else result.attempts.job
    counted = (selection.jobs & result.finished)[rows]
    mode, seconds = each.mode[counted], (each.end_time - each.start_time)[counted]
    nodes = each.amount[counted]
    return np.array([_sum_of_products(mode == each, nodes, seconds) for each in range(len(MODE_NAMES))])


def _sum_of_products(*columns: NDArray[Any]) -> float:
    """Return the sum over jobs of the products of columns, in floating point, without copies of columns."""
    operands = [each for column in columns for each in (column, [0])]
    return float(np.einsum(*operands, [], dtype=np.float64))


def _share_of_machine(node_seconds: float, result: Result, selection: Selection) -> float:
    """Return node-seconds as a fraction of the machine's capacity."""
    return _share(node_seconds, result.size * (selection.end - selection.begin))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _of_system() -> Iterator[Metric]:
    """Yield the metrics of the whole machine."""
    yield Metric(
        "utilisation",
        "1",
        "sum (node-seconds used) / (size x time), time from the first submission to the last end",
        "higher",
        "Share of the machine's node-seconds in use; of machines, of their first resource",
        _utilisation,
    )
    yield from _of_resources()
    yield Metric(
        "makespan",
        "s",
        "max_i end_i - min_i submit_i",
        "lower",
        "Time from the first submission to the last end",
        _makespan,
    )
    yield Metric(
        "loss_of_capacity",
        "1",
        "integral of idle(t) x [nodes of the smallest waiting job(t) <= idle(t)] dt / (size x time)",
        "lower",
        "Share of node-seconds left idle while some waiting job would have fitted the idle nodes; "
        "on machines, judged by all that is idle of their first resource",
        _loss_of_capacity,
    )
    yield Metric(
        "locality_penalty_share",
        "1",
        "sum_i (run_i - run time of the log_i) / sum_i run time of the log_i",
        "lower",
        "Share of the log's run time that placements added to it",
        _locality_penalty_share,
    )
    yield Metric(
        "user_fairness",
        "1",
        "(sum_u x_u)^2 / (users x sum_u x_u^2), x_u the mean bounded slowdown of user u",
        "higher",
        "Jain's index over users' mean bounded slowdown: 1 if all fare alike, 1/users at worst",
        _user_fairness,
    )


def _of_attempts() -> Iterator[Metric]:
    """Yield the metrics of jobs that were stopped, and of outages."""
    yield Metric(
        "restarts",
        "jobs",
        "sum_i (attempts_i - 1)",
        "lower",
        "Number of times that a job started again after it was stopped",
        _restarts,
    )
    yield Metric(
        "lost_area_share",
        "1",
        "sum (node-seconds of lost work) / (size x time)",
        "lower",
        "Share of the machine's node-seconds whose work was lost when jobs were stopped",
        _share_of_attempts(lambda attempts: attempts.lost),
    )
    yield Metric(
        "overhead_area_share",
        "1",
        "sum (node-seconds of checkpoints and restarts) / (size x time)",
        "lower",
        "Share of the machine's node-seconds spent on checkpoints and restarts",
        _share_of_attempts(lambda attempts: attempts.overhead),
    )
    yield Metric(
        "down_area_share",
        "1",
        "sum (node-seconds out of order) / (size x time)",
        "none",
        "Share of the machine's node-seconds that were out of order",
        _down,
    )


def _restarts(result: Result, selection: Selection) -> float:
    attempts = result.attempts
    if attempts is None:
        return 0.0
    resumed = np.bincount(attempts.job[attempts.outcome == Outcome.SUSPENDED], minlength=len(result))
    return float(np.maximum(attempts.count(len(result)) - 1 - resumed, 0)[selection.jobs].sum())


def _share_of_attempts(seconds: Callable[[Attempts], Integers]) -> Function:
    """Return the metric of seconds of attempts that end in the time span."""

    def function(result: Result, selection: Selection) -> float:
        attempts = result.attempts
        if attempts is None:
            return _share_of_machine(0.0, result, selection)
        inside = (attempts.end_time > selection.begin) & (attempts.end_time <= selection.end)
        return _share_of_machine(
            _sum_of_products(seconds(attempts), result.by_attempt.amount, inside), result, selection
        )

    return function


def _down(result: Result, selection: Selection) -> float:
    down = result.downtime
    if down is None:
        return _share_of_machine(0.0, result, selection)
    seconds = np.clip(down.end, selection.begin, selection.end)
    seconds -= np.clip(down.start, selection.begin, selection.end)
    return _share_of_machine(_sum_of_products(down.amount, seconds), result, selection)


def _held(result: Result, selection: Selection) -> float:
    held, jobs = result.held, selection.jobs & result.finished
    if held is None:
        return 0.0 if jobs.any() else float("nan")
    return _share(float(held.seconds(held.reasons, len(result))[jobs].sum()), total_wait(result, jobs))


def _of_resources() -> Iterator[Metric]:
    """Yield the metrics of machine resources; undefined with homogeneous nodes."""
    for resource, words in RESOURCE_NAMES.items():
        yield Metric(
            f"{resource}_utilisation",
            "1",
            f"sum ({words} x seconds used) / (all {words} x time)",
            "higher",
            f"Share of all machines' {words} in use",
            _over_time(resource_utilisation, resource),
        )
    yield Metric(
        "gpu_fragmentation",
        "1",
        "integral of sum_r p_r x [free GPUs(t) of machines that r does not fit](t) dt / (all GPUs x time), "
        "p_r the share of GPU jobs that request r of a machine",
        "lower",
        "Expected share of GPUs that are free where a GPU job of the workload could not start",
        _over_time(gpu_fragmentation),
    )
    yield Metric(
        "snapshot_utilisation",
        "1",
        "mean over snapshots (after each start, each end), machines and their resources of the share in use",
        "higher",
        "Utilisation as in the masked-PPO paper: snapshots and machines all weigh the same",
        _over_time(snapshot_utilisation),
    )


def _over_time(function: Callable[..., float], *arguments: str) -> Function:
    return lambda result, selection: function(result.by_attempt, *arguments, selection.begin, selection.end)


def _of_start_modes() -> Iterator[Metric]:
    """Yield the metrics of start modes."""
    how = {
        "ready": "in their turn, never having been the first that did not fit",
        "reserved": "in their turn, after having held the reservation of the first that did not fit",
        "backfilled": "ahead of a blocked job",
        "tested": "for the short time of a test",
    }
    for mode, words in how.items():
        yield Metric(
            f"{mode}_job_share",
            "1",
            f"jobs with mode {mode} / jobs that ran",
            "none",
            f"Share of the jobs started {words}",
            _share_started(mode, _jobs_by_mode),
        )
        yield Metric(
            f"{mode}_area_share",
            "1",
            f"node-seconds of jobs with mode {mode} / node-seconds of all",
            "none",
            f"Share of the node-seconds of jobs started {words}",
            _share_started(mode, _node_seconds_by_mode),
        )


def _table() -> Iterator[Metric]:
    yield Metric("jobs", "jobs", "selected jobs", "none", "Jobs submitted in the time that counts", _jobs)
    yield Metric(
        "rejected", "jobs", "selected jobs that never ran", "lower", "Jobs refused for good", _rejected
    )
    yield Metric(
        "killed",
        "jobs",
        "selected jobs ended at requested_i < run time of the log",
        "none",
        "Jobs ended at their requested time",
        _killed,
    )
    yield from _of_jobs()
    yield from _of_system()
    yield from _of_start_modes()
    yield from _of_attempts()
    yield Metric(
        "held_share",
        "1",
        "sum_i (time for which gates held job i) / sum_i wait_i, over all attempts",
        "none",
        "Share of the wait in which a gate held the job, for its dependencies, licences or limits",
        _held,
    )


GROUP = "hpcsimkit.metrics"
"""Group of the entry points that provide metrics by name."""


class Metrics(Mapping[str, Metric]):
    """Table of metrics by name: those of the kit and of plug-ins.

    Metrics of the user are found by their names, too, once they were imported. They are not listed: only a
    run that names them computes them.
    """

    kind = "metric"

    def __init__(self, known: Iterable[Metric]) -> None:
        self.known = {metric.name: metric for metric in known}
        self.own: dict[str, Metric] = {}

    def __getitem__(self, name: str) -> Metric:
        found = self.known.get(name) or self.own.get(name)
        return found or _checked(name, loaded(_installed(tuple(sys.path))[name]))

    def __contains__(self, name: object) -> bool:
        return name in self.known or name in self.own or name in _installed(tuple(sys.path))

    def __iter__(self) -> Iterator[str]:
        return iter({**self.known, **_installed(tuple(sys.path))})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def add(self, name: str, metric: Metric) -> None:
        """Let a metric of the user be found by its name.

        Raises
        ------
        UsageError
            The object is no metric.
        """
        self.own[name] = _checked(name, metric)

    def named(self, name: str) -> Metric:
        """Return the metric of a name.

        Raises
        ------
        UsageError
            The name is unknown (the message lists similar ones), or the plug-in cannot be imported.
        """
        if name in self:
            return self[name]
        raise UsageError(f"unknown metric {name!r}{nearest(name, self)}")


@lru_cache(maxsize=4)
def _installed(path: tuple[str, ...]) -> dict[str, Any]:
    """Return the entry points of metrics, found once for each search path."""
    return plug_ins(GROUP)


def _checked(name: str, found: Any) -> Metric:
    if not isinstance(found, Metric):
        raise UsageError(f"{name!r} needs a Metric, found {found!r}")
    return found


METRICS = Metrics(_table())
"""All metrics by name; report, command line and documentation are generated from this table."""
