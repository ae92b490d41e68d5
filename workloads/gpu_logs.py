"""Published logs of clusters with GPUs, each in a form of its own: openb, Philly, Eagle."""

from __future__ import annotations

import os

import numpy as np

from hpcsimkit.columns import Column
from hpcsimkit.job import UNKNOWN
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cells import amount, clock_of, milliseconds, moment, whole
from hpcsimkit.workloads.sacct_cells import conjunction, elapsed, status
from hpcsimkit.workloads.sieve import Sieve, per_node
from hpcsimkit.workloads.tables import parse, read_csv

__all__ = ["EAGLE_FIELDS", "OPENB_FIELDS", "PHILLY_FIELDS", "read_eagle", "read_openb", "read_philly"]

OPENB_FIELDS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
PHILLY_FIELDS = ("job_id", "num_gpu", "submit_time", "duration")
EAGLE_FIELDS = (
    "job_id", "wallclock_req", "nodes_req", "processors_req", "gpus_req", "mem_req",
    "submit_time", "run_time",
)  # fmt: skip
"""Fields that must be there, by which a log is known; others may be."""

MEBIBYTE = 1024**2
WHOLE = 1000
"""Thousandths of a CPU or GPU."""

POD_STATUS = {"Succeeded": 1, "Failed": 0}
"""How a pod ended, in the numbers of SWF's field 11."""


def read_openb(path: str | os.PathLike[str], *, shares: bool = True, strict: bool = False) -> Workload:
    """Read a list of pods of Alibaba's GPU cluster (openb, 2023), plain or gzip.

    The log accompanies Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
    Fragmentation Gradient Descent", USENIX ATC 2023; its fields are described at
    https://github.com/alibaba/clusterdata, folder ``cluster-trace-gpu-v2023``.

    - A pod is a job of one machine, submitted at its creation; it runs from when it was scheduled to its
      deletion. There are no estimates: the run time is taken.
    - CPUs and GPUs come in thousandths: the resources are ``cpu_milli, gpu_milli, memory``. Of which GPU a
      share is, nobody keeps track: two free halves on different GPUs of a machine look like one free GPU.
    - A pod's ``gpu_spec`` (types of GPU that will do) becomes a constraint if it names one type. Alternatives
      (``V100M16|V100M32``) cannot be said with features: they are left out, and counted in ``notes``.
    - ``queue`` is the quality of service; ``status`` is 1 for pods that succeeded, 0 for those that failed;
      ``labels["id"]`` has the names.
    - Skipped are pods that were never scheduled. Pods deleted at the last moment of the log probably ran on:
      they are noted.

    Parameters
    ----------
    path : str or path
        The list, such as ``openb_pod_list_default.csv``.
    shares : bool
        False rounds CPUs and GPUs up to whole ones: the resources are ``cpus, gpus, memory`` then.
    strict : bool
        Refuse what is otherwise skipped.

    Raises
    ------
    WorkloadError
        The file cannot be read, is no such list, or holds no usable job; or, if `strict`, any job is not
        usable.
    """
    sieve = _sieve(path, OPENB_FIELDS, "a list of openb's pods", strict)
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
        columns["queue"], labels["queue"] = sieve.labelled(cells["qos"])
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

    - A job asks for ``num_gpu`` GPUs in all (1 to 32), wherever they are: the only resource is ``gpus``, and
      ``spread`` is 1. The log says nothing of CPUs and memory.
    - Times count milliseconds; they are rounded to seconds. There are no estimates: the run time is taken.
    - ``executable`` is the model that is trained, ``queue`` the priority, where the file has them.

    Parameters
    ----------
    path : str or path
        The log.
    strict : bool
        Refuse what is otherwise skipped, and job numbers used twice.

    Raises
    ------
    WorkloadError
        The file cannot be read, is no such log, or holds no usable job; or, if `strict`, any job is not
        usable.
    """
    sieve = _sieve(path, PHILLY_FIELDS, "a log of Philly", strict)
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

    The form is that of the laboratory's published job data: requests, limits and times of Slurm in a table of
    plain numbers.

    - ``processors_req``, ``gpus_req`` and ``mem_req`` are totals: they are divided by ``nodes_req``, rounded
      up. Memory counts Slurm's megabytes, 1024 x 1024 bytes: 184000 a node, as the machine's users were told
      to ask for; 0 where none was asked for. Whether nodes were shared the log does not say.
    - ``requested_time`` is ``wallclock_req``; ``user, group, queue, partition`` are ``user, account, qos,
      partition``; ``recorded_wait_time`` is from submission to start.
    - The tasks of a job array share its number: all are kept, and noted.

    Parameters
    ----------
    path : str or path
        The log.
    timezone : str, optional
        Name of a time zone: then submit times are Unix time. By default they are seconds of the local clock
        since 1970.
    strict : bool
        Refuse what is otherwise skipped, and job numbers used twice.

    Raises
    ------
    WorkloadError
        The file cannot be read, is no such log, or holds no usable job; or, if `strict`, any job is not
        usable.
    UsageError
        There is no such time zone.
    """
    zone = clock_of(timezone)
    sieve = _sieve(path, EAGLE_FIELDS, "a log of Eagle", strict)
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
    for field, name in (("user", "user"), ("account", "group"), ("qos", "queue"), ("partition", "partition")):
        if field in cells:
            columns[name], labels[name] = sieve.labelled(cells[field], numbers=False)
    if "state" in cells:
        columns["status"] = sieve.parse("state", status)
    sieve.used_before(cells["job_id"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("job_id")
    header = {"UnixStartTime": "0"} | ({"TimeZoneString": timezone} if timezone else {})
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels, header=header)


def _sieve(path: str | os.PathLike[str], fields: tuple[str, ...], what: str, strict: bool) -> Sieve:
    table = read_csv(path)
    table.needs(fields, what)
    return Sieve(table, strict)


def _or_unknown(text: str) -> int:
    return whole(text) if text else UNKNOWN
