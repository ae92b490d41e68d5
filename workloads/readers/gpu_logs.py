"""Readers for published logs of GPU clusters, each in its own format: openb, Philly, Eagle."""

from __future__ import annotations

import os

import numpy as np

from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import amount, clock_of, milliseconds, moment, whole
from hpcsimkit.workloads.readers.records import read_records
from hpcsimkit.workloads.readers.sacct_cells import conjunction, elapsed, status
from hpcsimkit.workloads.readers.sieve import Sieve, per_node
from hpcsimkit.workloads.readers.tables import parse

__all__ = ["EAGLE_FIELDS", "OPENB_FIELDS", "PHILLY_FIELDS", "read_eagle", "read_openb", "read_philly"]

OPENB_FIELDS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
PHILLY_FIELDS = ("job_id", "num_gpu", "submit_time", "duration")
EAGLE_FIELDS = (
    "job_id",
    "wallclock_req",
    "nodes_req",
    "processors_req",
    "gpus_req",
    "mem_req",
    "submit_time",
    "run_time",
)
"""Required fields, by which the format of a log is recognised; other fields are optional."""

EAGLE_NAMES = {
    "user": "user",
    "group": "account",
    "queue": "partition",
    "partition": "partition",
    "qos": "qos",
}
"""Name columns and the corresponding fields of Eagle; Slurm's queues are its partitions."""

MEBIBYTE = 1024**2
WHOLE = 1000
"""Thousandths in a whole CPU or GPU."""

POD_STATUS = {"Succeeded": 1, "Failed": 0}
"""Completion status of pods, in the codes of SWF field 11."""


def read_openb(path: str | os.PathLike[str], *, shares: bool = True, strict: bool = False) -> Workload:
    """Read a list of pods of Alibaba's GPU cluster (openb, 2023), plain or gzip.

    The log accompanies Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
    Fragmentation Gradient Descent", USENIX ATC 2023; its fields are described at
    https://github.com/alibaba/clusterdata, folder ``cluster-trace-gpu-v2023``.

    - A pod is a job on one machine, submitted at its creation; it runs from its scheduled time to its
      deletion. There are no estimates: requested times are run times.
    - CPUs and GPUs are counted in thousandths: the resources are ``cpu_milli, gpu_milli, memory``. Shares are
      not assigned to individual GPUs: two free halves on different GPUs of a machine count as one free GPU.
    - The ``gpu_spec`` of a pod (acceptable GPU types) becomes a constraint if it names one type. Alternatives
      (``V100M16|V100M32``) cannot be expressed as features; they are ignored and counted in ``notes``.
    - ``qos`` is the quality of service; ``status`` is 1 for pods that succeeded and 0 for pods that failed;
      ``labels["id"]`` holds the pod names.
    - Pods that were never scheduled are skipped. Pods deleted at the last instant of the log, which probably
      continued to run, are counted in ``notes``.

    Parameters
    ----------
    path : str or path
        Path of the list, such as ``openb_pod_list_default.csv``.
    shares : bool
        Whether fractions of CPUs and GPUs are kept. If False, they are rounded up to whole units and the
        resources are ``cpus, gpus, memory``.
    strict : bool
        Whether rows that would be skipped are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such list, or has no usable job; or, if `strict`, any job is
        unusable.
    """
    sieve = _sieve(path, Format.OPENB, OPENB_FIELDS, "a list of openb's pods", strict)
    cells = sieve.table.columns
    submit, start, end = (
        sieve.parse(name, _or_unknown) for name in ("creation_time", "scheduled_time", "deletion_time")
    )
    sieve.leave_out(start < 0, "never scheduled", "a scheduled_time", cells["scheduled_time"])
    run = np.where(end < 0, UNKNOWN, end - start)
    columns = sieve.times(submit, run, np.full(len(run), UNKNOWN))
    sieve.note("deleted at the last moment of the log: perhaps cut short", end == end.max())
    columns |= {"nodes": np.ones_like(run), "recorded_wait_time": np.maximum(start - submit, UNKNOWN)}
    amounts = _pod_amounts(sieve, shares)
    labels: dict[str, tuple[str, ...]] = {}
    columns["id"], _, labels["id"] = sieve.ids("name")
    if "qos" in cells:
        columns["qos"], labels["qos"] = sieve.labelled(cells["qos"])
    if "pod_phase" in cells:
        columns["status"] = sieve.parse("pod_phase", lambda phase: POD_STATUS.get(phase, UNKNOWN))
    if "gpu_spec" in cells:
        specs = list(map(conjunction, cells["gpu_spec"]))
        sieve.note("gpu_spec with alternatives: left out", np.array([spec is None for spec in specs]))
        texts = [spec or "" for spec in specs]
        columns["constraint"], labels["constraint"] = sieve.labelled(texts, numbers=False)
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels)


def _pod_amounts(sieve: Sieve, shares: bool) -> dict[str, Column]:
    names = ("cpu_milli", "num_gpu", "gpu_milli", "memory_mib")
    cpu_milli, gpus, gpu_milli, memory = (sieve.parse(name, amount) for name in names)
    sieve.amounts({"cpu_milli": cpu_milli, "num_gpu": gpus, "memory_mib": memory})
    milli = {"cpu_milli": cpu_milli, "gpu_milli": gpus * gpu_milli}
    if shares:
        return {**milli, "memory": memory * MEBIBYTE}
    rest = np.logical_or.reduce([total % WHOLE > 0 for total in milli.values()])
    sieve.note("shares rounded up to whole CPUs and GPUs", rest)
    cpus, gpus = (per_node(total, np.full_like(total, WHOLE)) for total in milli.values())
    return {"cpus": cpus, "gpus": gpus, "memory": memory * MEBIBYTE}


def read_philly(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read one virtual cluster of Microsoft's Philly, in the form of the MURI simulator, plain or gzip.

    The log is M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    USENIX ATC 2019; the form is that of Y. Zhao et al., "Multi-resource interleaving for deep learning
    training", SIGCOMM 2022.

    - A job has a pooled request for ``num_gpu`` GPUs (1 to 32): the only resource is ``gpus``, and ``spread``
      is 1. The log does not record CPUs and memory.
    - Times are in milliseconds and are rounded to seconds. There are no estimates: requested times are run
      times.
    - ``executable`` is the trained model and ``queue`` the priority, if the file has them.

    Parameters
    ----------
    path : str or path
        Path of the log.
    strict : bool
        Whether rows that would be skipped and repeated job numbers are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such log, or has no usable job; or, if `strict`, any job is
        unusable.
    """
    sieve = _sieve(path, Format.PHILLY, PHILLY_FIELDS, "a log of Philly", strict)
    cells = sieve.table.columns
    submit, run = (sieve.parse(name, milliseconds) for name in ("submit_time", "duration"))
    columns = sieve.times(submit, run, np.full(len(run), UNKNOWN))
    rest = [
        parse(cells[name], lambda text: whole(text) % 1000)[0] > 0 for name in ("submit_time", "duration")
    ]
    sieve.note("times rounded to whole seconds", rest[0] | rest[1])
    amounts = {"gpus": sieve.parse("num_gpu", amount)}
    sieve.amounts(amounts)
    columns |= {"nodes": np.ones_like(run), "spread": np.ones_like(run)}
    labels: dict[str, tuple[str, ...]] = {}
    for field, name in (("model_name", "executable"), ("priority", "queue")):
        if field in cells:
            columns[name], labels[name] = sieve.labelled(cells[field])
    sieve.used_before(cells["job_id"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("job_id")
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels)


def read_eagle(
    path: str | os.PathLike[str], *, timezone: str | None = None, strict: bool = False
) -> Workload:
    """Read jobs of the supercomputer Eagle (National Renewable Energy Laboratory), plain or gzip.

    The format is that of the laboratory's published job data: requests, limits and times of Slurm in a table
    of plain numbers.

    - ``processors_req``, ``gpus_req`` and ``mem_req`` are totals; they are divided by ``nodes_req`` and
      rounded up. Memory is in Slurm's megabytes (1024 x 1024 bytes): 184000 per node, the amount that users
      were told to request, or 0 if none was requested. The log does not record whether nodes were shared.
    - ``requested_time`` is ``wallclock_req``; ``user, group, partition, qos`` are ``user, account, partition,
      qos``, and ``queue`` is also the partition; ``recorded_wait_time`` is the time from submission to start.
    - The tasks of a job array share its number; all are kept and counted in ``notes``.

    Parameters
    ----------
    path : str or path
        Path of the log.
    timezone : str, optional
        Name of a time zone, with which submit times are converted to Unix time; by default they are seconds
        of local time since 1970.
    strict : bool
        Whether rows that would be skipped and repeated job numbers are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such log, or has no usable job; or, if `strict`, any job is
        unusable.
    UsageError
        If there is no such time zone.
    """
    zone = clock_of(timezone)
    sieve = _sieve(path, Format.EAGLE, EAGLE_FIELDS, "a log of Eagle", strict)
    cells = sieve.table.columns
    submit = sieve.parse("submit_time", moment(zone))
    run, limit = (sieve.parse(name, elapsed) for name in ("run_time", "wallclock_req"))
    columns = sieve.times(submit, run, limit)
    sieve.note_rounding(("run_time", "wallclock_req"))
    if "start_time" in cells:
        columns["recorded_wait_time"] = np.maximum(sieve.parse("start_time", moment(zone)) - submit, UNKNOWN)
    nodes, *totals = (sieve.parse(f"{name}_req", amount) for name in ("nodes", "processors", "gpus", "mem"))
    sieve.leave_out(nodes < 1, "no nodes", "at least 1 node", nodes)
    sieve.leave_out(totals[0] < 1, "no CPUs", "at least 1 processor", totals[0])
    columns["nodes"] = nodes = np.maximum(nodes, 1)
    totals[2] *= MEBIBYTE
    sieve.note(
        "totals not divisible by the nodes: rounded up",
        np.logical_or.reduce([total % nodes > 0 for total in totals]),
    )
    amounts = dict(zip(("cpus", "gpus", "memory"), (per_node(total, nodes) for total in totals), strict=True))
    sieve.amounts(amounts)
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in EAGLE_NAMES.items():
        if field in cells:
            columns[name], labels[name] = sieve.labelled(cells[field], numbers=False)
    if "state" in cells:
        columns["status"] = sieve.parse("state", status)
    sieve.used_before(cells["job_id"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("job_id")
    header = {"UnixStartTime": "0"} | ({"TimeZoneString": timezone} if timezone else {})
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels, header=header)


def _sieve(
    path: str | os.PathLike[str], form: Format, fields: tuple[str, ...], what: str, strict: bool
) -> Sieve:
    table = read_records(path, form)
    table.needs(fields, what)
    return Sieve(table, strict)


def _or_unknown(text: str) -> int:
    return whole(text) if text else UNKNOWN
