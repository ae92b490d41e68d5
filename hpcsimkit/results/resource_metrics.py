"""Metrics of machine resources: utilisation, fragmentation, locality and turnaround.

All are pure functions of a result; NaN with homogeneous nodes or if there is nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.request import Need
from hpcsimkit.jobs.timeline import Curve
from hpcsimkit.results.machine_levels import MachineLevels
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = [
    "RESOURCE_NAMES",
    "busy",
    "gpu_fragmentation",
    "locality_penalty",
    "normalised_turnaround",
    "resource_utilisation",
    "snapshot_utilisation",
    "unusable_gpus",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

RESOURCE_NAMES: Mapping[str, str] = {"cpus": "CPUs", "gpus": "GPUs", "memory": "memory"}
"""Names of the common resources in texts."""

GPUS = "gpus"


# --- quantities per job ----------------------------------------------------------------------------------


def normalised_turnaround(result: Result) -> Floats:
    """Return (wait + service) / service of each job, with a service time of at least 1 s; NTAT of CuSH.

    The service time is the simulated one, including the effect of a locality model. Shape (jobs,); NaN for
    jobs that never ran, here and below.

    References
    ----------
    Domeniconi, Lee & Morari, "CuSH: cognitive scheduler for heterogeneous high performance computing system",
    DRL4KDD 2019.
    """
    service, turnaround = np.maximum(result.run_time, 1), result.wait_time
    turnaround += service
    turnaround /= service
    return turnaround


def locality_penalty(result: Result) -> Floats:
    """Return the increase in run time of each job due to its placement [s], shape (jobs,).

    NaN if the run had no locality model, in an array that cannot be changed.
    """
    if "service_time" not in result.options:
        return np.broadcast_to(np.nan, len(result))
    return result.run_time - result.workload.column("run_time")


# --- use of a resource -----------------------------------------------------------------------------------


def resource_utilisation(result: Result, resource: str, begin: int, end: int) -> float:
    """Return the mean fraction of a resource in use from `begin` to `end` [s]."""
    total = _total(result, resource)
    if not total or begin == end:
        return float("nan")
    return busy(result, resource).mean(begin, end) / total


def busy(result: Result, resource: str) -> Curve:
    """Return the amount of a resource in use over time; memory in bytes.

    In a result with attempts, it is that of the last attempts; :attr:`Result.by_attempt` has them all.

    Examples
    --------
    >>> from hpcsimkit.cluster.machines import Machines
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
    >>> columns = {"submit_time": [0, 5], "run_time": [10, 10], "nodes": [1, 1], "gpus": [2, 1]}
    >>> result = Simulation(Workload(columns, resources=("gpus",)), Pipeline(), Machines.of(1, gpus=4)).run()
    >>> curve = busy(result, "gpus")
    >>> curve.time.tolist(), curve.value.tolist()
    ([0, 5, 10, 15], [2.0, 3.0, 1.0, 0.0])
    >>> resource_utilisation(result, "gpus", 0, 15)
    0.5
    """
    placements, ran = result.placements, result.finished
    if placements is None or resource not in placements.cluster.resources:
        return Curve.of_changes([], [])
    amount = placements.totals[:, list(placements.cluster.resources).index(resource)][ran]
    times = np.concatenate([result.start_time[ran], result.end_time[ran]])
    return Curve.of_changes(times, np.concatenate([amount, -amount]))


def _total(result: Result, resource: str) -> int:
    return 0 if result.placements is None else int(result.placements.cluster.amount(resource).sum())


# --- utilisation by snapshots ----------------------------------------------------------------------------


def snapshot_utilisation(result: Result, begin: int, end: int) -> float:
    """Return the mean utilisation of machines over snapshots: one after every job start and every job end.

    The utilisation of a machine is the mean fraction in use of its resources, 0 for resources it does not
    have; all machines and all snapshots from `begin` to `end` [s] have equal weight, irrespective of size or
    duration. Jobs that end at one instant do so by requested time. This reproduces the "cluster utilisation"
    of the masked-PPO paper, as computed by its code, for comparisons with the paper.

    Jobs that start at one instant count in the order in which they started or, if the result does not contain
    this order (because it was not produced by a simulation), in the order of the log.
    """
    placements = result.placements
    if placements is None:
        return float("nan")
    events = _by_snapshot(result)
    row = np.where(events >= 0, events, ~events)
    time = np.where(events >= 0, result.start_time[row], result.end_time[row])
    level = np.cumsum(np.where(events >= 0, 1, -1) * _mean_share(placements)[row])
    counted = (time >= begin) & (time <= end)
    return float(level[counted].mean()) if counted.any() else float("nan")


def _mean_share(placements: Placements) -> Floats:
    """Return the contribution of each job to the mean utilisation, shape (jobs,)."""
    capacity = placements.cluster.capacity
    weight = np.divide(1.0, capacity, out=np.zeros(capacity.shape), where=capacity > 0) / capacity.size
    share = (placements.amounts * weight[placements.machine]).sum(axis=1)
    return np.bincount(placements.job, share, placements.jobs).astype(float)


def _by_snapshot(result: Result) -> Integers:
    """Return starts (rows) and ends (complements of rows) in order, simultaneous ends by requested time."""
    events = None if result.placements is None else result.placements.events
    events = _likely_events(result) if events is None else events
    is_end = events < 0
    row = np.where(is_end, ~events, events)
    time = np.where(is_end, result.end_time[row], result.start_time[row])
    begins = np.concatenate([[True], (np.diff(time) != 0) | (np.diff(is_end) != 0)])[: len(events)]
    rank = np.where(is_end, result.workload.column("requested_time")[row], 0)
    return events[np.lexsort((rank, np.cumsum(begins)))]


def _likely_events(result: Result) -> Integers:
    """Return events by time if their order is unknown: ends, starts by row, ends of zero-length jobs."""
    ran = np.flatnonzero(result.finished)
    instant = (result.start_time[ran] == result.end_time[ran]).astype(int)
    rank = np.concatenate([np.ones(len(ran), dtype=int), 2 * instant])
    time = np.concatenate([result.start_time[ran], result.end_time[ran]])
    return np.concatenate([ran, ~ran])[np.lexsort((rank, time))]


# --- fragmentation of GPUs -------------------------------------------------------------------------------


def gpu_fragmentation(result: Result, begin: int, end: int) -> float:
    """Return the expected fraction of all GPUs that are free but unusable from `begin` to `end` [s].

    This is the mean over time of :func:`unusable_gpus`, divided by the total number of GPUs. The fractions of
    used GPUs, of free usable GPUs and of free unusable GPUs sum to 1.
    """
    total, requests = _total(result, GPUS), _gpu_requests(result)
    if not total or not requests or begin == end:
        return float("nan")
    return unusable_gpus(result).mean(begin, end) / total


def unusable_gpus(result: Result) -> Curve:
    """Return the expected number of unusable GPUs over time: free GPUs where a GPU job could not start.

    With p(r) the fraction of the workload's GPU jobs with the request r (per machine, irrespective of the
    number of machines), this is the sum over requests r and machines m of p(r) x [free GPUs of m, if r does
    not fit the free resources of m]. A pooled request fits wherever a GPU is free, unless it requires
    exclusive machines or features. The result is exact, since it changes only when a job starts or ends.

    This is the fragmentation measure of Weng et al. for whole GPUs, without jobs that request no GPU, for
    which every free GPU would be unusable.

    References
    ----------
    Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient
    descent", USENIX ATC 2023.
    """
    requests = _gpu_requests(result)
    if result.placements is None or not requests:
        return Curve.of_changes([], [])
    levels = _levels(result, result.placements)
    alike, first = _alike(levels, [need for need, _ in requests])
    useless = np.zeros(len(first))
    for need, share in requests:
        useless += share * ~_fits(need, levels.free[first], levels.machine[first])
    gpus = levels.free[:, list(result.placements.cluster.resources).index(GPUS)]
    value = gpus * useless[alike]
    opening = np.diff(levels.machine, prepend=-1) != 0
    return Curve.of_changes(levels.time, value - np.where(opening, 0, np.roll(value, 1)))


def _gpu_requests(result: Result) -> list[tuple[Need, float]]:
    """Return the distinct requests of GPU jobs per machine, each with its fraction of the GPU jobs."""
    workload, placements = result.workload, result.placements
    if placements is None or GPUS not in workload.resources or GPUS not in placements.cluster.resources:
        return []
    rows: dict[tuple[object, ...], list[int]] = {}
    for row in np.flatnonzero(workload.column(GPUS)).tolist():
        rows.setdefault(workload.requests[row], []).append(row)  # type: ignore[arg-type]
    jobs = sum(map(len, rows.values()))
    return [(placements.cluster.need(workload.jobs[same[0]]), len(same) / jobs) for same in rows.values()]


def _fits(need: Need, free: Integers, machine: Integers) -> NDArray[np.bool_]:
    """Return where a job, or a part of it, fits, given at least one free GPU."""
    fits = np.ones(len(free), dtype=bool)
    if not need.spread:
        for resource in np.flatnonzero(need.amounts).tolist():
            fits &= free[:, resource] >= need.amounts[resource]
    if need.exclusive:
        fits &= (free == need.shape.capacity[machine]).all(axis=1)
    if need.allowed is not None:
        fits &= need.allowed[machine]
    return fits


def _alike(levels: MachineLevels, needs: Sequence[Need]) -> tuple[Integers, Integers]:
    """Return group numbers of levels that are equivalent for all needs, and one row of each group."""
    amounts = np.array([need.amounts for need in needs])
    tells: list[NDArray[Any]] = [
        np.searchsorted(np.unique(asked), free, side="right")
        for asked, free in zip(amounts.T, levels.free.T, strict=True)
    ]
    if any(need.exclusive for need in needs):
        tells.append((levels.free == needs[0].shape.capacity[levels.machine]).all(axis=1))
    masks = {need.allowed.tobytes(): need.allowed for need in needs if need.allowed is not None}
    tells.extend(allowed[levels.machine] for allowed in masks.values())
    alike = first = np.zeros(len(levels.time), dtype=np.int64)
    for tell in tells:
        key = alike * (tell.max() + 1) + tell
        _, first, alike = np.unique(key, return_index=True, return_inverse=True)
    return alike, first


def _levels(result: Result, placements: Placements) -> MachineLevels:
    """Return the free resources of each machine with GPUs over time, from the first submission.

    What is out of order is not free.
    """
    job, begin, down = placements.job, int(result.submit_time.min()), result.downtime
    parts = placements.machine, result.start_time[job], result.end_time[job], placements.amounts
    if down is not None:
        gone = down.machine, np.maximum(down.start, begin), np.maximum(down.end, begin), down.amounts
        parts = tuple(np.concatenate(pair) for pair in zip(parts, gone, strict=True))  # type: ignore[assignment]
    with_gpus = np.flatnonzero(placements.cluster.amount(GPUS))
    there = np.isin(parts[0], with_gpus)
    used = tuple(column[there] for column in parts)
    return MachineLevels.of(placements.cluster.capacity, begin, with_gpus, used)
