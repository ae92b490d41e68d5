"""Reader for jobs of Slurm in JSON: ``sacct --json``, ``squeue --json``, ``scontrol show job --json``.

The names and forms of the values changed with the versions of Slurm's data parser; all of them become the
cells that ``sacct --parsable2`` prints.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import UNIX_TIME
from hpcsimkit.workloads.readers.json_text import json_of
from hpcsimkit.workloads.readers.sacct import Size, sacct_workload
from hpcsimkit.workloads.readers.sacct_cells import TRES_SCOPES, gres_options
from hpcsimkit.workloads.readers.tables import shown, table_of_records

__all__ = ["cells_of_job", "read_slurm_json"]

NO_VALUE = (0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE, 0xFFFE)
"""Numbers that stand for no value in old versions."""

INFINITE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFF)


def read_slurm_json(
    path: str | os.PathLike[str],
    *,
    size: Size = "requested",
    features: Collection[str] = ("constraints",),
    default_times: Mapping[str, int] | None = None,
    cluster: str | None = None,
    strict: bool = False,
) -> Workload:
    """Read jobs that Slurm printed in JSON, plain or compressed.

    The meaning is that of :func:`~hpcsimkit.workloads.readers.sacct.read_sacct`. ``squeue`` and ``scontrol``
    print the jobs that wait and run, and those that ended some minutes ago; only the latter can be simulated.
    In messages, the number of a line is that of the job in the list.

    Parameters
    ----------
    path : str or path
        Path of the output.
    size, features, default_times, cluster, strict
        As for :func:`~hpcsimkit.workloads.readers.sacct.read_sacct`.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such output, or has no usable job; or, if `strict`, any job is
        unusable.
    UsageError
        If an option has an invalid value.
    """
    content = json_of(path, Format.SLURM_JSON)
    jobs = content.get("jobs")
    if not isinstance(jobs, list):
        raise WorkloadError(f"{path}: a list of jobs needed, as sacct --json prints it, found none")
    if not jobs:
        raise WorkloadError(f"{path}: no job in it")
    accounting = any(isinstance(job, dict) and "time" in job for job in jobs)
    table = table_of_records(path, _records(jobs))
    try:
        return sacct_workload(
            table,
            size=size,
            features=features,
            default_times=default_times,
            cluster=cluster,
            strict=strict,
        )
    except WorkloadError as error:
        if accounting or "no usable job" not in str(error):
            raise
        why = "squeue --json prints jobs that wait or run; export those that ended: sacct --json"
        raise WorkloadError(f"{error} ({why})") from None


def _records(jobs: list[Any]) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    for number, job in enumerate(jobs, start=1):
        if isinstance(job, dict):
            yield number, cells_of_job(job)
        else:
            yield number, shown(str(job))


def cells_of_job(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a job of any of these commands, by the names of the fields of ``sacct``."""
    return _of_accounting(job) if isinstance(job.get("time"), dict) else _of_queue(job)


def _of_accounting(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a job of ``sacct --json``."""
    time, required = job["time"], _table(job.get("required"))
    tres, association = _table(job.get("tres")), _table(job.get("association"))
    requested, allocated = _listed(tres.get("requested")), _listed(tres.get("allocated"))
    state = job.get("state")
    if isinstance(state, dict):
        state = state.get("current")
    return {
        "JobID": _id(job, _table(job.get("array"))),
        "Cluster": _text(job.get("cluster") or association.get("cluster")),
        "User": _text(job.get("user") or association.get("user")),
        "Account": _text(job.get("account") or association.get("account")),
        "Partition": _text(job.get("partition")),
        "QOS": _text(job.get("qos")),
        "State": _state(state),
        "Submit": _moment(time.get("submission")),
        "Eligible": _moment(time.get("eligible")),
        "Start": _moment(time.get("start")),
        "End": _moment(time.get("end")),
        "ElapsedRaw": _number(time.get("elapsed")),
        "Suspended": _number(time.get("suspended")),
        "TimelimitRaw": _number(time.get("limit")),
        "ReqTRES": requested,
        "AllocTRES": allocated,
        "ReqCPUS": _number(required.get("CPUs")),
        "AllocNodes": _number(job.get("allocation_nodes")),
        "ReqMem": _memory(required),
        "Constraints": _text(job.get("constraints")),
        "SubmitLine": _text(job.get("submit_line")),
        "NodeList": _text(job.get("nodes")),
    }


def _of_queue(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a job of ``squeue --json`` or ``scontrol show job --json``."""
    start, end = _moment(job.get("start_time")), _moment(job.get("end_time"))
    suspended = _number(job.get("pre_sus_time"))
    elapsed = ""
    if all(UNIX_TIME.fullmatch(time) for time in (start, end)) and float(end) >= float(start):
        elapsed = f"{round(float(end)) - round(float(start))}"
    array = {"job_id": job.get("array_job_id"), "task_id": job.get("array_task_id")}
    return {
        "JobID": _id(job, array),
        "Cluster": _text(job.get("cluster")),
        "User": _text(job.get("user_name")),
        "Account": _text(job.get("account")),
        "Partition": _text(job.get("partition")),
        "QOS": _text(job.get("qos")),
        "State": _state(job.get("job_state", "PENDING")),
        "Submit": _moment(job.get("submit_time")),
        "Eligible": _moment(job.get("eligible_time")),
        "Start": start,
        "End": end,
        "ElapsedRaw": elapsed,
        "Suspended": "" if suspended else "0",
        "TimelimitRaw": _number(job.get("time_limit")),
        "ReqTRES": _text(job.get("tres_req_str")),
        "AllocTRES": _text(job.get("tres_alloc_str")),
        "ReqCPUS": _number(job.get("cpus")),
        "AllocNodes": _number(job.get("node_count")),
        "ReqMem": "",
        "Constraints": _text(job.get("features")),
        "SubmitLine": _options(job),
        "NodeList": _text(job.get("nodes")),
        "Reason": _text(job.get("state_reason")),
        "Dependency": _text(job.get("dependency")),
        "Priority": _number(job.get("priority")),
        "Evaluated": _moment(job.get("last_sched_evaluation")),
        "ArrayTaskThrottle": _number(job.get("array_max_tasks")),
    }


def _options(job: Mapping[str, Any]) -> str:
    """Return the options of a job in the queue: its GPUs, and whether it takes whole nodes.

    >>> _options({"shared": "none"}), _options({"shared": ["none"]}), _options({"shared": None})
    (' --exclusive', ' --exclusive', '')
    """
    gpus = gres_options(_text(job.get(f"tres_per_{scope}")) for scope in TRES_SCOPES)
    return f"{gpus} --exclusive" if _state(job.get("shared")) == "none" else gpus


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return (
        value
        if isinstance(value, str)
        else ""
        if value is None or isinstance(value, dict | list)
        else f"{value}"
    )


def _number(value: object) -> str:
    """Return a number of an old version, or a structure of a new one; an empty text if it is unset.

    >>> _number(60), _number({"set": True, "infinite": False, "number": 60}), _number({"set": False})
    ('60', '60', '')
    >>> _number({"set": True, "infinite": True, "number": 0}), _number(None)
    ('UNLIMITED', '')
    """
    if isinstance(value, dict):
        if value.get("infinite"):
            return "UNLIMITED"
        return _number(value.get("number")) if value.get("set", True) else ""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value in NO_VALUE:
        return ""
    return "UNLIMITED" if value in INFINITE else f"{value}"


def _moment(value: object) -> str:
    """Return a time; 0 stands for none.

    >>> _moment(0), _moment({"set": True, "infinite": False, "number": 1709276400})
    ('', '1709276400')
    """
    text = _number(value)
    return "" if text in ("0", "UNLIMITED") else text


def _state(value: object) -> str:
    """Return the first of a list of states, or of flags, or the text itself."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return _text(value)


def _id(job: Mapping[str, Any], array: Mapping[str, Any]) -> str:
    """Return the job number, with that of the task of an array."""
    whole, task = _number(array.get("job_id")), _number(array.get("task_id"))
    if whole not in ("", "0") and task not in ("", "UNLIMITED"):
        return f"{whole}_{task}"
    if whole not in ("", "0") and _text(job.get("array_task_string")):
        return f"{whole}_[{_text(job.get('array_task_string'))}]"
    return _number(job.get("job_id"))


def _listed(resources: object) -> str:
    """Return trackable resources as a list.

    >>> _listed([{"type": "cpu", "count": 8}, {"type": "gres", "name": "gpu:a100", "count": 2}])
    'cpu=8,gres/gpu:a100=2'
    """
    if not isinstance(resources, list):
        return ""
    parts = []
    for each in resources:
        count = _number(_table(each).get("count"))
        kind, name = _text(_table(each).get("type")), _text(_table(each).get("name"))
        if count and kind:
            parts.append(f"{kind}/{name}={count}" if name else f"{kind}={count}")
    return ",".join(parts)


def _memory(required: Mapping[str, Any]) -> str:
    """Return the requested memory as ``ReqMem`` of old versions, with its scope."""
    for name, scope in (("memory_per_cpu", "c"), ("memory_per_node", "n"), ("memory", "")):
        if (text := _number(required.get(name))) not in ("", "0", "UNLIMITED"):
            return f"{text}M{scope}"
    return ""
