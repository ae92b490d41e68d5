"""Reader of Slurm's live queue: the jobs that wait and run, as its commands print them.

Read are ``squeue --json``, ``scontrol show job`` (plain, or with ``--json``), ``sacct --json``, and ``sacct
--parsable2`` with the jobs that have not ended. What the commands have in common is read by the reader of
``sacct``: each job that waits or runs becomes a line of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import HpcsimkitError, WorkloadError
from hpcsimkit.io.files import read_start
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import UNIX_TIME
from hpcsimkit.workloads.readers.json_text import json_of
from hpcsimkit.workloads.readers.sacct import (
    RUNNING,
    WAITING,
    Size,
    read_sacct_table,
    sacct_workload,
)
from hpcsimkit.workloads.readers.sacct_cells import TRES_SCOPES, gres_options, minutes, state, time_limit
from hpcsimkit.workloads.readers.slurm_json import cells_of_job
from hpcsimkit.workloads.readers.tables import MISSING, read_text, table_of_records

__all__ = ["Queue", "read_queue"]

Record = Mapping[str, str]
Integers = NDArray[np.int64]

NEVER = ("JobHeld", "DependencyNeverSatisfied", "BadConstraints", "InvalidAccount", "InvalidQOS", "launch")
"""Beginnings of the reasons of jobs that do not start by themselves."""

NO_LIMIT = 30 * 86_400
"""Run time that is assumed of jobs without a limit [s]."""

MOST_TASKS = 10_000
"""Largest number of waiting tasks of an array."""

NOT_OF_THE_LIVE = ("End", "Elapsed", "Suspended", "JobIDRaw")
"""Fields that say nothing of jobs that have not ended, and numbers that differ from those of the tasks."""

TASKS = re.compile(r"(?P<list>[\d,\-:]+)(?:%(?P<limit>\d{1,9}))?")
PENDING_ARRAY = re.compile(r"(?P<array>\d{1,18})_\[(?P<tasks>[^\]]*)\]")
ONE_TASK = re.compile(r"(?P<array>\d{1,18})_\d{1,9}")
PAIR = re.compile(r"(?:^|\s)([A-Za-z/:_]+)=")

OF_SCONTROL = {
    "JobId": "JobID",
    "Account": "Account",
    "QOS": "QOS",
    "JobState": "State",
    "SubmitTime": "Submit",
    "EligibleTime": "Eligible",
    "StartTime": "Start",
    "EndTime": "End",
    "TimeLimit": "Timelimit",
    "Partition": "Partition",
    "Features": "Constraints",
    "NodeList": "NodeList",
    "NumCPUs": "ReqCPUS",
    "NumNodes": "ReqNodes",
    "ReqTRES": "ReqTRES",
    "AllocTRES": "AllocTRES",
    "Reason": "Reason",
    "Dependency": "Dependency",
    "Priority": "Priority",
    "ArrayTaskThrottle": "ArrayTaskThrottle",
}
"""Fields of ``sacct`` by the keys of ``scontrol show job``."""


@dataclass(frozen=True)
class Queue:
    """The jobs that wait and run at a time.

    Parameters
    ----------
    jobs : Workload
        The jobs. Run times are the requested ones: the true ones are not known. The recorded wait of a job
        that runs is known, that of one that waits is -1.
    at : int
        The time [s of the clock of the jobs].
    reasons : sequence of str
        The reason for which each job waits, as Slurm states it; empty for those that run.
    stuck : mapping of str to str
        Reasons of the jobs that do not start by themselves, by job: held, or with a dependency that is never
        met. They are not among the jobs.
    """

    jobs: Workload
    at: int
    reasons: Sequence[str]
    stuck: Mapping[str, str]

    @property
    def running(self) -> NDArray[np.bool_]:
        """Which jobs run, bool, shape (jobs,)."""
        return self.jobs.recorded_wait_time >= 0


def read_queue(
    path: str | os.PathLike[str],
    at: int | None = None,
    *,
    size: Size = "requested",
    features: Collection[str] = ("constraints",),
    timezone: str | None = None,
    default_times: Mapping[str, int] | None = None,
    cluster: str | None = None,
) -> Queue:
    """Read the jobs that wait and run from what a command of Slurm prints.

    Parameters
    ----------
    path : str or path
        Path of the output of ``squeue --json``, ``scontrol show job``, ``sacct --json`` or ``sacct
        --parsable2``.
    at : int, optional
        Time at which it was printed [s]; by default the last one in it.
    size, features, timezone, default_times, cluster
        As for :func:`~hpcsimkit.workloads.readers.sacct.read_sacct`.

    Raises
    ------
    WorkloadError
        The file cannot be read, is none of these outputs, or no job in it waits or runs.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "squeue.json"
    >>> job = {"job_id": 7, "job_state": "RUNNING", "submit_time": 1795841000, "start_time": 1795841030,
    ...        "time_limit": 5, "tres_req_str": "cpu=4,mem=1G,node=1", "user_name": "ada"}
    >>> waits = {**job, "job_id": 8, "job_state": "PENDING", "start_time": 0, "state_reason": "Resources"}
    >>> _ = file.write_text(json.dumps({"jobs": [job, waits]}))
    >>> queue = read_queue(file)
    >>> queue.jobs.labels["id"], queue.running.tolist(), queue.at, queue.reasons
    (('7', '8'), [True, False], 1795841030, ['', 'Resources'])
    >>> folder.cleanup()
    """
    live: dict[str, Record] = {}
    stuck: dict[str, str] = {}
    times: list[int] = []
    for record in _records(path):
        times += _latest(record)
        word = state(record.get("State", ""))
        for each in _tasks(record) if word in WAITING | RUNNING else ():
            if word in WAITING and each.get("Reason", "").startswith(NEVER):
                stuck[each["JobID"]] = each["Reason"]
            else:
                live[each["JobID"]] = each
    if not live:
        raise WorkloadError(f"{path}: a job that waits or runs is needed, found none")
    given = [*live.values()]
    table = table_of_records(path, enumerate(map(_as_ended, given), start=1))
    jobs = sacct_workload(
        table, size=size, features=features, timezone=timezone, default_times=default_times, cluster=cluster
    )
    assert jobs.lines is not None
    records = [given[line - 1] for line in jobs.lines.tolist()]
    waits = np.array([state(record.get("State", "")) in WAITING for record in records])
    wait = np.where(waits, UNKNOWN, jobs.recorded_wait_time)
    submitted = jobs.submit_time - np.maximum(jobs.column("recorded_held_time"), 0)
    moments = [*np.where(waits, submitted, jobs.submit_time + np.maximum(wait, 0)).tolist(), *times]
    when = max(moments) if at is None else at
    columns = {**jobs.columns, "id": np.arange(len(jobs)), "recorded_wait_time": wait}
    columns |= {name: np.full(len(jobs), UNKNOWN) for name in ("recorded_reason",) if name in columns}
    columns |= _limits_of_arrays(records)
    labels = {**jobs.labels, "id": tuple(record["JobID"] for record in records)}
    columns["dependency"], labels["dependency"] = _dependencies(records, waits)
    reasons = [record.get("Reason", "") if each else "" for record, each in zip(records, waits, strict=True)]
    return Queue(replace(jobs, columns=columns, labels=labels), when, reasons, stuck)


# --- records -------------------------------------------------------------------------------------------


def _records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """Yield the cells of all jobs of an output, by the names of the fields of ``sacct``."""
    start = read_start(path, 4096).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if start.startswith("{"):
        jobs = json_of(path, Format.SLURM_JSON).get("jobs")
        if not isinstance(jobs, list):
            raise WorkloadError(f"{path}: a list of jobs needed, as squeue --json prints it, found none")
        yield from (cells_of_job(job) for job in jobs if isinstance(job, dict))
    elif start.startswith("JobId="):
        texts = re.split(r"\n\s*\n", read_text(path, Format.SCONTROL_JOBS))
        yield from (_of_scontrol(text) for text in texts if text.lstrip().startswith("JobId="))
    elif "jobid" in start.partition("\n")[0].lower() and "|" in start:
        table = read_sacct_table(path)
        for row in range(len(table)):
            yield {name: cells[row].strip() for name, cells in table.columns.items()}
    else:
        found = start.partition("\n")[0][:40]
        raise WorkloadError(
            f"{path}: the output of squeue --json, scontrol show job or sacct --parsable2 is needed, "
            f"found {found!r}"
        )


def _of_scontrol(text: str) -> Record:
    """Return the cells of a job of ``scontrol show job``."""
    cuts = [*PAIR.finditer(text)]
    ends = [*(cut.start() for cut in cuts[1:]), len(text)]
    values = {cut[1]: text[cut.end() : end].strip() for cut, end in zip(cuts, ends, strict=True)}
    cells = {field: values.get(key, "") for key, field in OF_SCONTROL.items()}
    cells = {field: "" if cell in ("(null)", "Unknown", "N/A") else cell for field, cell in cells.items()}
    cells["User"] = values.get("UserId", "").partition("(")[0]
    cells["ReqTRES"] = cells["ReqTRES"] or values.get("TRES", "")
    cells["SubmitLine"] = gres_options(values.get(f"TresPer{scope.title()}", "") for scope in TRES_SCOPES)
    cells["ReqNodes"] = cells["ReqNodes"].partition("-")[0]
    if values.get("ArrayTaskId"):
        tasks = values["ArrayTaskId"]
        array = values.get("ArrayJobId", cells["JobID"])
        cells["JobID"] = f"{array}_{tasks}" if is_whole_number(tasks) else f"{array}_[{tasks}]"
    return cells


def _tasks(record: Record) -> Iterator[Record]:
    """Yield a record for each waiting task of an array, with the limit of the array; else the record."""
    match = PENDING_ARRAY.fullmatch(record.get("JobID", ""))
    tasks = match and TASKS.fullmatch(match["tasks"])
    if match is None or tasks is None:
        yield {**record, **_of_last_task(record)}
        return
    limit = tasks["limit"] or ""
    for number in _numbers(tasks["list"]):
        yield {**record, "JobID": f"{match['array']}_{number}", "Array": match["array"], "ArrayLimit": limit}


def _of_last_task(record: Record) -> Record:
    """Return the array and its limit of a task that waits alone; empty texts for any other job.

    The last waiting task of an array has a number of its own in place of a list, which would state the limit.
    """
    limit = record.get("ArrayTaskThrottle", "")
    match = ONE_TASK.fullmatch(record.get("JobID", ""))
    known = match is not None and is_whole_number(limit) and limit != "0"
    if match is None or not known or state(record.get("State", "")) not in WAITING:
        return {"Array": "", "ArrayLimit": ""}
    return {"Array": match["array"], "ArrayLimit": limit}


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list such as ``1-5,9,10-20:2``, at most `MOST_TASKS` of them."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if match is not None:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            found += range(first, min(last, first + MOST_TASKS * step) + 1, max(step, 1))
    return found[:MOST_TASKS]


def _latest(record: Record) -> list[int]:
    """Return Unix times of a record that have passed: submission, start and end of jobs, last test."""
    known = state(record.get("State", ""))
    names = ["Submit", "Evaluated"]
    names += ["Start"] if known not in WAITING else []
    names += ["End"] if known not in WAITING | RUNNING else []
    cells = (record.get(name, "") for name in names)
    return [int(float(cell)) for cell in cells if UNIX_TIME.fullmatch(cell)]


def _as_ended(record: Record) -> Record:
    """Return the cells of a job as if it had run for its time limit; one that waits started when eligible."""
    waits = state(record.get("State", "")) in WAITING
    submit, eligible = record.get("Submit", ""), record.get("Eligible", "")
    if waits and (eligible in MISSING or eligible in ("Unknown", "None")):
        eligible = ""
    start = (eligible or submit) if waits else record.get("Start", "")
    return {
        **{name: cell for name, cell in record.items() if name not in NOT_OF_THE_LIVE},
        "State": "COMPLETED",
        "Eligible": eligible,
        "Start": start,
        "ElapsedRaw": str(_limit(record)),
    }


def _limit(record: Record) -> int:
    """Return the time limit of a job [s]."""
    for field, parser in (("TimelimitRaw", minutes), ("Timelimit", time_limit)):
        try:
            found = parser(record.get(field, ""))
        except HpcsimkitError:
            continue
        if found > 0:
            return found
    return NO_LIMIT


# --- columns of gates ----------------------------------------------------------------------------------


def _limits_of_arrays(records: Sequence[Record]) -> dict[str, Integers]:
    """Return the arrays of the jobs, and how many of their tasks may run at once."""
    if not any(record.get("ArrayLimit") for record in records):
        return {}

    def numbers(name: str) -> Integers:
        cells = (record.get(name, "") for record in records)
        return np.array([int(cell) if is_whole_number(cell) else UNKNOWN for cell in cells], dtype=np.int64)

    arrays, limits = numbers("Array"), numbers("ArrayLimit")
    running = {record["JobID"].partition("_")[0] for record in records}
    known = {str(array): limit for array, limit in zip(arrays.tolist(), limits.tolist(), strict=True)}
    for place, record in enumerate(records):  # the tasks that run are of the same array
        array, _, task = record["JobID"].partition("_")
        if task and array in known and array in running:
            arrays[place], limits[place] = int(array), known[array]
    return {"array_job": arrays, "array_limit": limits}


def _dependencies(records: Iterable[Record], waits: NDArray[np.bool_]) -> tuple[Integers, tuple[str, ...]]:
    """Return the dependencies of the waiting jobs, and their texts."""
    texts = [
        record.get("Dependency", "") if each else "" for record, each in zip(records, waits, strict=True)
    ]
    known = tuple(dict.fromkeys(text for text in texts if text not in MISSING))
    return np.array([known.index(text) if text in known else UNKNOWN for text in texts]), known
