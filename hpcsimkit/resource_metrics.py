"""What became of the resources of machines: how much was used, what was free but of no use.

Pure functions of a result; not a number where nodes are only counted, or where there is nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.need import Need
from hpcsimkit.placements import Placements
from hpcsimkit.result import Result
from hpcsimkit.timeline import Curve

__all__ = [
    "RESOURCE_NAMES", "busy", "gpu_fragmentation", "locality_penalty", "normalised_turnaround",
    "resource_utilisation", "snapshot_utilisation", "unusable_gpus",
]  # fmt: skip

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

RESOURCE_NAMES: Mapping[str, str] = {"cpus": "CPUs", "gpus": "GPUs", "memory": "memory"}
"""How the usual resources are written in texts."""

GPUS = "gpus"


# --- single jobs -----------------------------------------------------------------------------------------


def normalised_turnaround(result: Result) -> Floats:
    """Return (wait + service) / service of each job, its service time taken as at least 1 s; NTAT of CuSH.

    The service time is the simulated one, what a locality model added included. Shape (jobs,); not a number
    for jobs that never ran, here and below.

    References
    ----------
    Domeniconi, Lee & Morari, "CuSH: cognitive scheduler for heterogeneous high performance computing system",
    DRL4KDD 2019.
    """
    service = np.maximum(result.run_time, 1)
    return (result.wait_time + service) / service


def locality_penalty(result: Result) -> Floats:
    """Return by how much longer each job took than in the log [s], for where it was placed; shape (jobs,).

    Not a number if the run had no locality model.
    """
    if "service_time" not in result.options:
        return np.full(len(result), np.nan)
    return result.run_time - result.workload.column("run_time")


# --- use of a resource -----------------------------------------------------------------------------------


def resource_utilisation(result: Result, resource: str, begin: int, end: int) -> float:
    """Return the share of all there is of a resource that jobs have from `begin` to `end` [s], over time."""
    total = _total(result, resource)
    if not total or begin == end:
        return float("nan")
    return busy(result, resource).mean(begin, end) / total


def busy(result: Result, resource: str) -> Curve:
    """Return how much of a resource jobs have, over time; memory in bytes.

    Examples
    --------
    >>> from hpcsimkit.machines import Machines
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.simulation import Simulation
    >>> from hpcsimkit.workload import Workload
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
    """Return the mean utilisation of machines over snapshots: one after every start and every end.

    A machine's utilisation is the mean share of its resources that jobs have, 0 of what it has none of; all
    machines and all snapshots from `begin` to `end` [s] weigh the same, however large or long they are. Jobs
    that end at one instant do so by requested time. The masked-PPO paper's "cluster utilisation" is this, by
    its code; for comparisons with it.

    Jobs that start at one instant count in the order in which they did; where a result does not know it (it
    was not made by a simulation), in the order of the log.
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
    """Return what each job adds to the mean utilisation of all machines and resources, shape (jobs,)."""
    capacity = placements.cluster.capacity
    weight = np.divide(1.0, capacity, out=np.zeros(capacity.shape), where=capacity > 0) / capacity.size
    share = (placements.amounts * weight[placements.machine]).sum(axis=1)
    return np.bincount(placements.job, share, placements.jobs).astype(float)


def _by_snapshot(result: Result) -> Integers:
    """Return starts (rows) and ends (complements of rows) in order, ends of an instant by requested time."""
    events = None if result.placements is None else result.placements.events
    events = _likely_events(result) if events is None else events
    is_end = events < 0
    row = np.where(is_end, ~events, events)
    time = np.where(is_end, result.end_time[row], result.start_time[row])
    begins = np.concatenate([[True], (np.diff(time) != 0) | (np.diff(is_end) != 0)])[: len(events)]
    rank = np.where(is_end, result.workload.column("requested_time")[row], 0)
    return events[np.lexsort((rank, np.cumsum(begins)))]


def _likely_events(result: Result) -> Integers:
    """Order events by time where their order is not known: ends, starts by row, ends of zero-length jobs."""
    ran = np.flatnonzero(result.finished)
    instant = (result.start_time[ran] == result.end_time[ran]).astype(int)
    rank = np.concatenate([np.ones(len(ran), dtype=int), 2 * instant])
    time = np.concatenate([result.start_time[ran], result.end_time[ran]])
    return np.concatenate([ran, ~ran])[np.lexsort((rank, time))]


# --- fragmentation of GPUs -------------------------------------------------------------------------------


def gpu_fragmentation(result: Result, begin: int, end: int) -> float:
    """Return the expected share of all GPUs that are free but of no use from `begin` to `end` [s].

    The mean over time of :func:`unusable_gpus`, over all GPUs there are. Together with the GPUs in use and
    the free ones that are of use it makes 1.
    """
    total, requests = _total(result, GPUS), _gpu_requests(result)
    if not total or not requests or begin == end:
        return float("nan")
    return unusable_gpus(result).mean(begin, end) / total


def unusable_gpus(result: Result) -> Curve:
    """Return how many GPUs are free where a GPU job could not start, over time: their expected number.

    With p(r) the share of the workload's GPU jobs that make the request r (of one machine, however many they
    need), that is the sum over requests r and machines m of p(r) x [free GPUs of m, if r does not fit what
    is free on m]. A request that may be spread over machines in any mix fits wherever a GPU is free, unless
    it asks for whole machines or for features. Exact: it changes only when a job starts or ends.

    This is the measure of fragmentation of Weng et al. for whole GPUs, with jobs that ask for no GPU left out
    of the mix, since to them every free GPU would be of no use.

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
    """Return what GPU jobs need of one machine, and which share of the GPU jobs needs that."""
    workload, placements = result.workload, result.placements
    if placements is None or GPUS not in workload.resources or GPUS not in placements.cluster.resources:
        return []
    rows: dict[tuple[object, ...], list[int]] = {}
    for row in np.flatnonzero(workload.column(GPUS)).tolist():
        rows.setdefault(workload.requests[row], []).append(row)  # type: ignore[arg-type]
    jobs = sum(map(len, rows.values()))
    return [(placements.cluster.need(workload.jobs[same[0]]), len(same) / jobs) for same in rows.values()]


def _fits(need: Need, free: Integers, machine: Integers) -> NDArray[np.bool_]:
    """Tell where a job of some need, or a part of it, fits, if there is a free GPU at all."""
    fits = np.ones(len(free), dtype=bool)
    if not need.spread:
        for resource in np.flatnonzero(need.amounts).tolist():
            fits &= free[:, resource] >= need.amounts[resource]
    if need.exclusive:
        fits &= (free == need.shape.capacity[machine]).all(axis=1)
    if need.allowed is not None:
        fits &= need.allowed[machine]
    return fits


def _alike(levels: _Levels, needs: Sequence[Need]) -> tuple[Integers, Integers]:
    """Number levels so that those of one number are the same to all needs; return a row of each as well."""
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


class _Levels(NamedTuple):
    """What is free on machines with GPUs from a time until the machine's next row, by machine and time."""

    machine: Integers
    time: Integers
    free: Integers


def _levels(result: Result, placements: Placements) -> _Levels:
    """Follow each machine with GPUs through all that starts and ends on it, from the first instant on."""
    capacity = placements.cluster.capacity
    with_gpus = np.flatnonzero(placements.cluster.amount(GPUS))
    parts = np.flatnonzero(np.isin(placements.machine, with_gpus))
    job, amounts = placements.job[parts], placements.amounts[parts]
    first = int(result.submit_time.min())
    machine = np.concatenate([with_gpus, placements.machine[parts], placements.machine[parts]])
    time = np.concatenate([np.full(len(with_gpus), first), result.start_time[job], result.end_time[job]])
    change = np.concatenate([capacity[with_gpus], -amounts, amounts])
    order = np.lexsort((time, machine))  # a machine's capacity comes first at the first instant: it is stable
    machine, time = machine[order], time[order]
    total = np.cumsum(change[order], axis=0)
    opening = np.concatenate([[True], np.diff(machine) != 0])
    free = total - (total - change[order])[opening][np.cumsum(opening) - 1]
    last = np.append((np.diff(machine) != 0) | (np.diff(time) != 0), True)  # of an instant
    return _Levels(machine[last], time[last], free[last])
