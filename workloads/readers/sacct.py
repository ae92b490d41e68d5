"""Reader for Slurm accounting data, as printed by ``sacct --parsable2``.

A suitable export, with one line per job and all fields that :func:`read_sacct` uses::

    sacct --allusers --allocations --parsable2 --noconvert --starttime 2024-01-01 --endtime 2024-02-01 \\
          --format JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,\\
    TimelimitRaw,ReqTRES,AllocTRES,Constraints,Eligible,NodeList > january.sacct

The fields are described at https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.files import read_start
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import UNIX_TIME, clock_of, moment
from hpcsimkit.workloads.readers.records import Columns, like, read_records
from hpcsimkit.workloads.readers.sacct_cells import (
    count,
    elapsed,
    minutes,
    state,
    status,
    time_limit,
)
from hpcsimkit.workloads.readers.sacct_requests import (
    SACCT_FEATURES,
    constraints,
    first_known,
    requested_amounts,
)
from hpcsimkit.workloads.readers.sieve import Mask, Sieve
from hpcsimkit.workloads.readers.tables import (
    MISSING,
    Cells,
    EncodedCells,
    InBulk,
    Parser,
    Table,
    changed,
    digits,
    parse,
    shown,
    whole_ids,
)

__all__ = ["NO_HEADER", "RUNNING", "WAITING", "Size", "read_sacct", "read_sacct_table", "sacct_workload"]

Size = Literal["requested", "allocated"]

FIELDS = (
    "Cluster",
    "JobID",
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "Elapsed",
    "ElapsedRaw",
    "Timelimit",
    "TimelimitRaw",
    "ReqTRES",
    "AllocTRES",
    "ReqCPUS",
    "AllocCPUS",
    "NCPUS",
    "ReqNodes",
    "AllocNodes",
    "NNodes",
    "ReqMem",
    "ReqGRES",
    "AllocGRES",
    "Constraints",
    "Restarts",
    "Suspended",
    "SubmitLine",
    "Licenses",
    "NodeList",
    "Reason",
    "Flags",
    "Priority",
)
"""Fields that are read; all others are ignored."""

NOWHERE = {"None assigned", "(null)", "None", "Unknown"}
"""Cells of jobs without nodes."""

NO_REASON = {"", "None", "(null)", "Unknown"}
"""Reasons of jobs that waited for resources or behind others, if at all."""

LONGEST_PRIORITY = 12
"""Digits of a priority: those of an unsigned 32-bit number, and two more."""

NAMES = {"user": "User", "group": "Account", "queue": "Partition", "partition": "Partition", "qos": "QOS"}
"""Name columns and the corresponding fields; Slurm's queues are its partitions."""

SPELLING = {field.lower(): field for field in FIELDS}

WHOLE_NODES = re.compile(r"(?:^|\s)--exclusive(?=\s|$)")
ONE_USER = re.compile(r"(?:^|\s)--exclusive=(?:user|mcs)\b")
"""Options in the command line of a job for nodes that are not shared."""

PARTITIONS = re.compile(r"\s(?:-p\s*|--partition[=\s]\s*)([\w.-]+(?:,[\w.-]+)+)(?=\s|$)")
"""Option in the command line of a job for several partitions."""

LICENSES = re.compile(r"\s(?:-L\s*|--licenses[=\s]\s*)(\S+)")
"""Option in the command line of a job for licences."""

MOMENTS = ("Submit", "Eligible", "Start", "End")
MOST_DIFFERENCE = 3
"""Difference between the run time and that from start to end that is due to rounding [s]."""

INTERRUPTED = {"PREEMPTED", "NODE_FAIL", "REQUEUED", "BOOT_FAIL"}
"""States of attempts after which a job may be tried again."""

WAITING = {"PENDING", "REVOKED"}
RUNNING = {"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING"}

NO_HEADER = "give the names of its fields (--fields NAME,NAME) or export with a header line"
"""What is needed of an export without a header."""

START = 1 << 16
"""Number of bytes in which the first line is looked for."""

JOB, COMPONENT, STEP, PENDING_ARRAY, HEADER = range(5)
JOB_ID = re.compile(
    r"(?P<job>\d+(_\d+)?)(?P<component>\+\d+)?(?P<step>\..+)?|(?P<pending>\d+_\[.*)|(?P<header>jobid\w*)"
)

TIME = like(r"\d{4}-\d\d-\d\d[T ].*|\d{9,11}(\.\d*)?|unknown|none|nat|nan|submit|eligible|start|end")
SPAN = like(
    r"[\d:.-]+|\d+ days? [\d:.]+|unlimited|partition_limit|invalid|nan|elapsed\w*|timelimit\w*|suspended"
)
NUMBER = like(r"-?\d+(\.\d*)?|[a-z]+")
COUNT = like(r"[\d.]+[kmgtpe]?|nan|[a-z]*(cpus|nodes)|restarts")
COMMAND = like(r"(?s:([\w.+/-]*/)?(sbatch|salloc|srun|scrontab)(\s.*)?)|submitline")
PATH = like(r"/.*|\(null\)|workdir|std\w+")


def _is_list(cell: str) -> bool:
    """Return whether a cell looks like a list of resources, in which none occurs twice."""
    names = [pair.partition("=")[0] for pair in cell.split(",")]
    return not cell or (all(map(LISTED_PAIR.fullmatch, cell.split(","))) and len(set(names)) == len(names))


def _is_constraint(cell: str) -> bool:
    """Return whether a cell looks like a constraint, with signs between words and brackets that match."""
    brackets = "".join(sign for sign in cell if sign in "()[]")
    for _ in range(len(brackets) // 2):
        brackets = brackets.replace("()", "").replace("[]", "")
    return not brackets and not SIGNS_ASIDE.search(cell) and CONSTRAINT.fullmatch(cell) is not None


SIGNS_ASIDE = re.compile(r"^[&|,]|[&|,]$|[&|,]\s*[&|,]")
CONSTRAINT = re.compile(r"[\w.:&|,*()\[\]\s/-]*")
LISTED_PAIR = re.compile(r"[\w/:.-]+=[\w.]+|(req|alloc)tres", re.IGNORECASE)

COLUMNS = Columns(
    read=SPELLING,
    looks={
        "cluster": like(r"[\w.-]+"),
        "jobid": like(r"\d+(_\d+|_\[.*)?(\+\d+)?(\..+)?|jobid"),
        "jobidraw": like(r"\d+(\+\d+)?(\..+)?|jobidraw"),
        "state": like(r"[a-z_]+\+?( by \S+)?"),
        **dict.fromkeys(("submit", "eligible", "start", "end"), TIME),
        **dict.fromkeys(("elapsed", "elapsedraw", "timelimit", "timelimitraw", "suspended"), SPAN),
        **dict.fromkeys(
            ("reqcpus", "alloccpus", "ncpus", "reqnodes", "allocnodes", "nnodes", "restarts"), COUNT
        ),
        **dict.fromkeys(("reqtres", "alloctres"), _is_list),
        "reqmem": like(r"[\d.]+[kmgtpe]?[cn?]?|reqmem"),
        **dict.fromkeys(
            ("priority", "uid", "gid", "associd", "qosraw", "dbindex", "cputimeraw", "ntasks"), NUMBER
        ),
        **dict.fromkeys(("reserved", "planned", "cputime", "totalcpu", "usercpu", "systemcpu"), SPAN),
        "flags": like(r"[a-z,_]+"),
        "reason": like(r"[\w().:,-]+"),
        "exitcode": like(r"\d+:\d+|exitcode"),
        "constraints": _is_constraint,
        "nodelist": like(r"[\w.,\[\]-]+|none assigned|\(null\)"),
        "submitline": COMMAND,
        **dict.fromkeys(("workdir", "stdin", "stdout", "stderr"), PATH),
        **dict.fromkeys(("user", "account", "partition", "qos"), like(r"[^\s/|=]+")),
    },
    free=(
        *(
            "jobname",
            "constraints",
            "comment",
            "admincomment",
            "systemcomment",
            "extra",
            "submitline",
            "workdir",
        ),
        *(
            "stdin",
            "stdout",
            "stderr",
            "container",
            "reason",
            "failednode",
            "licenses",
            "wckey",
            "reservation",
        ),
    ),
    lists=("partition", "reqtres", "alloctres", "nodelist"),
)


def read_sacct(
    path: str | os.PathLike[str],
    *,
    size: Size = "requested",
    features: Collection[str] = ("constraints",),
    timezone: str | None = None,
    default_times: Mapping[str, int] | None = None,
    fields: str | Sequence[str] | None = None,
    cluster: str | None = None,
    strict: bool = False,
) -> Workload:
    """Read the output of ``sacct --parsable2`` (or ``--parsable``), plain or compressed.

    The fields may be any subset in any order that includes ``JobID`` or ``JobIDRaw``; ``Submit``; one of
    ``ElapsedRaw``, ``Elapsed``, ``Start`` with ``End``; and one of ``ReqTRES``, ``AllocTRES``, ``ReqCPUS``,
    ``AllocCPUS``, ``NCPUS``. All fields except `FIELDS` are ignored. A different ``--delimiter`` is detected,
    and tables of such fields that pandas and spreadsheets write (CSV with quotes) are read as well.

    - ``sacct`` does not escape ``|`` and line breaks in job names, comments and command lines. Such records
      are put together again where the cells around these texts leave only one way, and counted in ``notes``.

    - CPUs, GPUs and memory are the job's totals divided by its nodes, rounded up: the request per machine on
      ``nodes`` different machines. They are taken from ``ReqTRES``, then from ``ReqCPUS``, ``ReqNodes``,
      ``ReqMem``, then from the allocated amounts; with ``size="allocated"`` in reverse order. Exclusive use
      of nodes is visible in the allocated amounts, and in ``SubmitLine`` if the command line has
      ``--exclusive``; ``notes`` counts the jobs that were allocated more than they requested.
    - GPUs only in the fields of old versions (``ReqGRES``, else ``AllocGRES``) are taken on each node.
    - GPUs of a model (``gres/gpu:a100``) are a resource ``gpus:a100`` beside ``gpus``, which counts all
      models. Slices (``gres/gpu:1g.5gb``) are a resource ``mig:1g.5gb`` and no GPUs; so are ``shards`` and
      ``mps``.
    - Units of memory are powers of 1024. ``mem=0`` requests all memory of the nodes; the allocated amount is
      used.
    - ``requested_time`` is the time limit. If there is no limit (``UNLIMITED``, ``Partition_Limit``), it is
      the longest of the `default_times` of the job's partitions, and without these the run time, which no
      scheduler knows. ``notes`` counts both.
    - A job that became eligible after its submission (``Eligible``: it had a dependency, a begin time, was
      held, or was throttled in its array) counts as submitted then; ``notes`` counts such jobs.
    - ``user, group, partition, qos`` are ``User, Account, Partition, QOS``, with names in the labels, and
      ``queue`` is also the partition. ``status`` is ``State`` in the codes of SWF; ``recorded_wait_time`` is
      the time from submission to start.
    - GPUs are of the model that the options of the command line (``SubmitLine``) name, if the lists of
      resources name none: they have the models in ``AccountingStorageTRES`` only.
    - A job whose command line (``SubmitLine``) names several partitions, one of them its own, is of all of
      them; ``queue`` is that in which it ran. ``notes`` counts such jobs.
    - Licences (``Licenses``, else ``--licenses`` in ``SubmitLine``) become the column ``licenses``, if any
      job asks for some: the option `licenses` of a simulation reads it.
    - ``Reason`` (the last one while the job waited), ``Flags`` (of them, which loop started it) and
      ``Priority`` become the columns ``recorded_reason``, ``recorded_backfilled`` and ``recorded_priority``;
      ``recorded_held_time`` is the time from the submission until the job was eligible.
    - Job numbers are ``JobIDRaw``, else ``JobID``; if these are not plain numbers (array tasks ``7_1``), jobs
      are numbered from 0 and ``labels["id"]`` holds the original cells.
    - ``Elapsed`` is without the time for which a job was suspended; ``notes`` has this time.
    - ``notes`` counts the jobs of each cluster (``Cluster``) if there are several, which never compete.
    - The records of a job that was preempted, failed with its node or was requeued (``--duplicates``) are its
      attempts: one job, submitted and started when it first was. Its run time is that of the last attempt,
      since Slurm begins a requeued job anew; if an earlier attempt took longer, the job must have kept work
      (checkpoints), and its run time is the sum of all attempts. ``notes`` counts both. If the last attempt
      was interrupted as well, the longest one counts.
    - Each component of a heterogeneous job is a separate job.
    - Skipped are job steps; jobs that never started or have not ended; pending array tasks, which ``sacct``
      prints on one line; jobs without CPUs; and lines and cells that cannot be parsed.

    Parameters
    ----------
    path : str or path
        Path of the export.
    size : {"requested", "allocated"}
        Source of the amounts that jobs request.
    features : collection of str
        Fields that become required features of a job's machines: ``constraints`` (``--constraint=a&b``),
        ``partition``, ``gpu_type`` (``gres/gpu:a100``). Alternatives (``a|b``; several partitions) and counts
        of at most all nodes (``a*2&b*4``) are supported, counts among alternatives (``a*2|b*4``) and features
        in common to several nodes (``[a|b]``) are not: such constraints are ignored and counted in ``notes``.
    timezone : str, optional
        Name of the cluster's time zone, with which submit times are converted to Unix time. By default they
        are seconds of local time since 1970, since ``sacct`` prints no zone, and jump by an hour when
        daylight saving time begins or ends. A time that occurs twice is its first occurrence, unless a job
        would then start before its submission, or end before its start. Unix times are printed in UTC.
    default_times : mapping of str to int, optional
        Requested times [s] of jobs without a time limit, by partition; see
        :attr:`~hpcsimkit.cluster.partitions.Partitions.default_times`.
    fields : str or sequence of str, optional
        Names of the fields of an export without a header (``sacct --noheader``), in their order, as given to
        ``--format``. By default the first line has them.
    cluster : str, optional
        Name of the cluster whose jobs are read, in an export of several. By default all.
    strict : bool
        Whether rows that would be skipped, except job steps and repeated headers, and repeated job numbers
        are an error; jobs of several clusters, too.

    Returns
    -------
    Workload
        The usable jobs, in the order of the file, with the resources ``cpus, gpus, memory`` and of models.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks a header or a required field, or has no usable job; or, if `strict`,
        any job is unusable.
    UsageError
        If an option has an invalid value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "january.sacct"
    >>> _ = log.write_text(
    ...     "JobID|Submit|Elapsed|Timelimit|ReqTRES\\n"
    ...     "17|2024-01-31T23:59:59|00:30:00|1-00:00:00|cpu=16,gres/gpu=2,mem=64G,node=2\\n"
    ...     "17.batch|2024-01-31T23:59:59|00:30:00||\\n"
    ... )
    >>> w = read_sacct(log)
    >>> w.id.tolist(), w.requested_time.tolist(), w.nodes.tolist(), w.jobs[0].request.amounts
    ([17], [86400], [2], (8, 1, 34359738368))
    >>> dict(w.skipped)
    {'job step': 1}
    >>> folder.cleanup()
    """
    return sacct_workload(
        read_sacct_table(path, fields),
        size=size,
        features=features,
        timezone=timezone,
        default_times=default_times,
        cluster=cluster,
        strict=strict,
    )


def sacct_workload(
    table: Table,
    *,
    size: Size = "requested",
    features: Collection[str] = ("constraints",),
    timezone: str | None = None,
    default_times: Mapping[str, int] | None = None,
    cluster: str | None = None,
    strict: bool = False,
) -> Workload:
    """Return the workload of a table of the fields of ``sacct``; see :func:`read_sacct`."""
    if size not in ("requested", "allocated"):
        raise UsageError(f"size must be 'requested' or 'allocated', found {size!r}")
    unknown = [name for name in features if name not in SACCT_FEATURES]
    if isinstance(features, str) or unknown:
        raise UsageError(f"features must be some of {', '.join(SACCT_FEATURES)}, found {features!r}")
    zone = clock_of(timezone)
    table = _whole_ids(table)
    sieve = Sieve(table, strict)
    _leave_out_other_lines(sieve)
    _of_cluster(sieve, cluster)
    columns = _times(sieve, zone, default_times or {})
    columns["nodes"], amounts = requested_amounts(sieve, requested=size == "requested")
    sieve.amounts(amounts)
    names, labels = _names(sieve)
    columns |= names
    columns["constraint"], labels["constraint"] = constraints(sieve, np.asarray(columns["nodes"]), features)
    if "SubmitLine" in table.columns:
        columns["exclusive"] = _asked_for_whole_nodes(sieve)
    if "NodeList" in table.columns:
        cells = changed(table.columns["NodeList"], lambda cell: "" if cell.strip() in NOWHERE else cell)
        columns["node_list"], labels["node_list"] = sieve.labelled(cells, numbers=False)
    licenses, names_of_licenses = sieve.labelled(_licenses(table), numbers=False)
    if names_of_licenses:
        columns["licenses"], labels["licenses"] = licenses, names_of_licenses
    recorded, labels["recorded_reason"] = _recorded(sieve)
    columns |= recorded
    _note_clusters(sieve)
    sieve.used_before(sieve.table.columns[_id_field(sieve.table)], "job number")
    columns["id"], word, labels["id"] = sieve.ids(
        "JobIDRaw" if "JobIDRaw" in sieve.table.columns else "JobID"
    )
    universal = timezone is None and all(
        map(UNIX_TIME.fullmatch, map(str.strip, sieve.table.columns["Submit"]))
    )
    clock = "UTC" if universal else timezone
    header = {"UnixStartTime": "0", "JobName": word} | ({"TimeZoneString": clock} if clock else {})
    resources = tuple(amounts)
    return sieve.workload({**columns, **amounts}, resources=resources, labels=labels, header=header)


# --- lines ---------------------------------------------------------------------------------------------


def read_sacct_table(path: str | os.PathLike[str], fields: str | Sequence[str] | None = None) -> Table:
    """Return the fields that are read, in the spelling of `FIELDS`."""
    if isinstance(fields, str):
        fields = [re.sub(r"%-?\d*$", "", field.strip()) for field in fields.split(",")]
    if fields is None:
        _refuse_without_header(path)
    table = read_records(path, Format.SACCT, COLUMNS, fields)
    _check_fields(table)
    return table


def _refuse_without_header(path: str | os.PathLike[str]) -> None:
    """Raise an error for a file that begins with a job in place of a header."""
    start = read_start(path, START).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    first = start.partition("\n")[0].strip()
    words = re.split(r"\W+", first.lower())
    if first and not SPELLING.keys() & set(words) and re.search(r"\S\W*[^\s\w]", first):
        raise WorkloadError(f"{path}:1: a header line of sacct is needed, found {shown(first)}; {NO_HEADER}")


def _check_fields(table: Table) -> None:
    there = table.columns.keys()
    for choice in (
        ({"JobID"}, {"JobIDRaw"}),
        ({"Submit"},),
        ({"ElapsedRaw"}, {"Elapsed"}, {"Start", "End"}),
        ({"ReqTRES"}, {"AllocTRES"}, {"ReqCPUS"}, {"AllocCPUS"}, {"NCPUS"}),
    ):
        if not any(fields <= there for fields in choice):
            needed = " or ".join(" with ".join(sorted(fields, reverse=True)) for fields in choice)
            raise WorkloadError(f"{table.path}:1: the field {needed} needed, found {', '.join(there)}")


def _id_field(table: Table) -> str:
    return "JobID" if "JobID" in table.columns else "JobIDRaw"


def _whole_ids(table: Table) -> Table:
    """Return the table with whole job numbers."""
    ids = {name: whole_ids(table.columns[name]) for name in ("JobID", "JobIDRaw") if name in table.columns}
    return replace(table, columns={**table.columns, **ids})


def _leave_out_other_lines(sieve: Sieve) -> None:
    """Exclude lines that are not complete jobs."""
    ids = _id_field(sieve.table)
    kinds = sieve.parse(ids, KindOfLine())
    sieve.leave_out(kinds == STEP, "job step")
    sieve.leave_out(kinds == HEADER, "header line repeated")
    pending, cells = kinds == PENDING_ARRAY, sieve.table.columns[ids]
    sieve.leave_out(pending, "array tasks still pending", "a job that started", cells)
    sieve.note("component of a heterogeneous job: read as a job of its own", kinds == COMPONENT)


class KindOfLine:
    """Parser for the kind of a line, from its job number."""

    def __call__(self, job_id: str) -> int:
        match = JOB_ID.fullmatch(job_id.lower())
        if match is None or not job_id.isascii():
            raise UsageError(f"a job number such as 123, 123_4 or 123.batch needed, found {shown(job_id)}")
        kinds = {"header": HEADER, "pending": PENDING_ARRAY, "step": STEP, "component": COMPONENT}
        return next((kind for part, kind in kinds.items() if match[part]), JOB)

    def bulk(self, cells: Cells) -> tuple[Column, NDArray[np.intp]]:
        """Return the kinds of plain job numbers, and the rows of all others."""
        _, plain = digits(cells, 18)
        return np.full(len(plain), JOB), np.flatnonzero(~plain)


def _asked_for_whole_nodes(sieve: Sieve) -> Column:
    """Return 1 for jobs whose command line asks for whole nodes, else -1."""
    lines = sieve.table.columns["SubmitLine"]
    asked = parse(lines, lambda line: int(WHOLE_NODES.search(line) is not None))[0]
    by_user = parse(lines, lambda line: int(ONE_USER.search(line) is not None))[0]
    sieve.note("asked for nodes of one user only (--exclusive=user): shared with others here", by_user > 0)
    return np.where(asked > 0, 1, UNKNOWN)


def _recorded(sieve: Sieve) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Return what Slurm recorded about the wait of each job, and the reasons."""
    fields = sieve.table.columns
    columns: dict[str, Column] = {}
    reasons: tuple[str, ...] = ()
    if "Reason" in fields:
        cells = changed(fields["Reason"], lambda cell: "" if cell.strip() in NO_REASON else cell.strip())
        columns["recorded_reason"], reasons = sieve.labelled(cells, numbers=False)
    if "Flags" in fields:
        columns["recorded_backfilled"] = parse(fields["Flags"], _backfilled)[0]
    if "Priority" in fields:
        columns["recorded_priority"] = parse(fields["Priority"], _priority)[0]
    return columns, reasons


def _backfilled(flags: str) -> int:
    """Return 1 for a job that backfill started, 0 for one of the main loop, else -1."""
    words = flags.lower().split(",")
    return 1 if "schedbackfill" in words else 0 if "schedmain" in words else UNKNOWN


def _priority(cell: str) -> int:
    """Return a priority; -1 for none."""
    cell = cell.strip()
    return int(cell) if is_whole_number(cell) and len(cell) <= LONGEST_PRIORITY else UNKNOWN


def _of_cluster(sieve: Sieve, name: str | None) -> None:
    """Exclude the jobs of other clusters than that of a name; without one, count those of each."""
    columns = sieve.table.columns
    if "Cluster" not in columns:
        if name is not None:
            raise WorkloadError(
                f"{sieve.table.path}:1: the field Cluster needed to choose {name!r}, found none"
            )
        return
    numbers, names = sieve.labelled(columns["Cluster"], numbers=False)
    if name is not None and name not in names:
        raise WorkloadError(
            f"{sieve.table.path}: a cluster of {', '.join(names) or 'any name'} needed, found {name!r}"
        )
    if name is not None:
        sieve.leave_out((numbers >= 0) & (numbers != names.index(name)), "of another cluster")


def _note_clusters(sieve: Sieve) -> None:
    """Count the jobs of several clusters, which never compete; strict readers need one to be chosen."""
    if "Cluster" not in sieve.table.columns:
        return
    numbers, names = sieve.labelled(sieve.table.columns["Cluster"], numbers=False)
    if len(names) > 1:
        counts = np.bincount(numbers[numbers >= 0], minlength=len(names)).tolist()
        shares = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        text = f"jobs of {len(names)} clusters: {shares}: choose one with --cluster"
        sieve.note(text, numbers >= 0, "jobs of one cluster (--cluster NAME)", sieve.table.columns["Cluster"])


# --- times ---------------------------------------------------------------------------------------------


def _times(sieve: Sieve, zone: tzinfo | None, default_times: Mapping[str, int]) -> dict[str, ArrayLike]:
    """Return the time columns; exclude jobs that never started or have not ended."""
    columns, rows = sieve.table.columns, len(sieve.table)
    names = sieve.table.columns[_id_field(sieve.table)]
    unknown = np.full(rows, UNKNOWN)
    first = moment(zone)
    submit = sieve.parse("Submit", first)
    start = _not_before(submit, sieve, "Start", zone) if "Start" in columns else None
    end = sieve.parse("End", first) if start is None and "End" in columns else None
    if start is not None and "End" in columns:
        end = _not_before(start, sieve, "End", zone)
    submitted, submit = submit, _eligible(sieve, submit, start, first)
    eligible = submit
    run = first_known(sieve, (("ElapsedRaw", InBulk(elapsed)), ("Elapsed", elapsed)))
    if start is not None and end is not None:
        run = np.where((run < 0) & (start >= 0) & (end >= 0), end - start, run)
    states = columns.get("State") or EncodedCells([""], np.zeros(rows, dtype=np.int64))
    attempts_run, began = run.copy(), None if start is None else start.copy()
    submit, began, run = _put_together(sieve, submit, began, run, states)
    never = _among(states, WAITING) | ((run == 0) & _nothing_allocated(sieve, states))
    never |= (start < 0) if start is not None else False
    sieve.leave_out(never, "never started", "a job that started", names)
    running = _among(states, RUNNING) | ((end < 0) if end is not None else False)
    sieve.leave_out(running, "not ended", "a job that ended", names)
    limit = first_known(sieve, (("TimelimitRaw", minutes), ("Timelimit", time_limit)))
    partitions = columns.get("Partition", EncodedCells([""], np.zeros(rows, dtype=np.int64)))
    default = parse(partitions, lambda names: _longest(names, default_times))[0]
    times = sieve.times(submit, run, limit, default)
    sieve.note_rounding(name for name in (*MOMENTS, "ElapsedRaw", "Elapsed") if name in columns)
    _note_suspended(sieve, start, end, attempts_run)
    wait = began - submit if began is not None else unknown
    sieve.note("started before it was submitted: no wait recorded", (wait < 0) & (start is not None))
    held = np.where(submit == eligible, eligible - submitted, UNKNOWN)
    about = {"recorded_held_time": held} if "Eligible" in columns else {}
    return {**times, **about, "recorded_wait_time": np.maximum(wait, UNKNOWN)}


def _put_together(
    sieve: Sieve, submit: Column, start: Column | None, run: Column, states: Cells
) -> tuple[Column, Column | None, Column]:
    """Return submissions, first starts and run times of jobs; attempts but the last are left out."""
    stopped = _among(states, INTERRUPTED) & sieve.kept
    if not stopped.any():
        return submit, start, run
    cells, clusters = sieve.table.columns[_id_field(sieve.table)], sieve.table.columns.get("Cluster")
    names = [cell.strip() for cell in cells]
    again = {names[row] for row in np.flatnonzero(stopped).tolist()}
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(sieve.kept).tolist():
        if names[row] in again:
            cluster = "" if clusters is None else clusters[row]
            rows_of.setdefault((cluster, names[row]), []).append(row)
    submit, run, start = submit.copy(), run.copy(), None if start is None else start.copy()
    earlier, summed, together = (np.zeros(len(run), dtype=bool) for _ in range(3))
    for rows in rows_of.values():
        for chain in _chains(sorted(rows, key=lambda row: (submit[row], row)), stopped):
            first, last = chain[0], chain[-1]
            earlier[chain[:-1]] = together[last] = True
            submit[last] = submit[first]
            if start is not None and start[first] >= 0:
                start[last] = start[first]
            times = np.maximum(run[chain], 0)
            if stopped[last]:
                run[last] = times.max()
            elif 0 <= run[last] < times[:-1].max():
                run[last], summed[last] = times.sum(), True
    sieve.leave_out(earlier, "earlier attempt of a job")
    sieve.note("preempted, failed or requeued before: one job with all attempts", together)
    sieve.note("an earlier attempt took longer: run time is the sum of all attempts", summed)
    return submit, start, run


def _chains(rows: Sequence[int], stopped: Mask) -> Iterator[list[int]]:
    """Yield attempts of one job among rows with the same number: all but the last were interrupted."""
    chain: list[int] = []
    for row in rows:
        chain.append(row)
        if not stopped[row]:
            if len(chain) > 1:
                yield chain
            chain = []
    if len(chain) > 1:
        yield chain


def _note_suspended(sieve: Sieve, start: Column | None, end: Column | None, run: Column) -> None:
    """Count the jobs that were suspended, whose run times are without that time."""
    if "Suspended" in sieve.table.columns:
        seconds = sieve.parse("Suspended", elapsed)
    elif start is not None and end is not None:
        seconds = np.where((start >= 0) & (end >= 0) & (run >= 0), end - start - run, 0)
        seconds[np.abs(seconds) % 1800 < MOST_DIFFERENCE] = 0  # rounding, and clocks that are set
    else:
        return
    seconds = np.where(sieve.kept, np.maximum(seconds, 0), 0)
    if seconds.any():
        sieve.note(f"suspended: run time without {int(seconds.sum())} s", seconds > 0)


def _not_before(earlier: Column, sieve: Sieve, name: str, zone: tzinfo | None) -> Column:
    """Return the times of a column; a local time that occurs twice is the second one if events need it."""
    times = sieve.parse(name, moment(zone))
    before = (times >= 0) & (earlier >= 0) & (times < earlier)
    if zone is None or not before.any():
        return times
    second = sieve.parse(name, moment(zone, fold=1))
    return np.where(before & (second >= earlier), second, times)


def _eligible(sieve: Sieve, submit: Column, start: Column | None, moment: Parser) -> Column:
    """Return the times at which jobs became eligible, if after their submission and not after their start."""
    if "Eligible" not in sieve.table.columns or start is None:
        return submit
    eligible = sieve.parse("Eligible", moment)
    held = (submit >= 0) & (eligible > submit) & (eligible <= start)
    sieve.note("eligible after submission (dependency, hold, array limit): submitted then", held)
    return np.where(held, eligible, submit)


def _longest(names: str, times: Mapping[str, int]) -> int:
    """Return the longest default time of the partitions that a job names; -1 if one has none."""
    found = [times.get(name.strip(), UNKNOWN) for name in names.split(",")]
    return UNKNOWN if UNKNOWN in found else max(found)


def _among(states: Cells, wanted: Collection[str]) -> Mask:
    return parse(states, lambda text: state(text) in wanted)[0] > 0


def _nothing_allocated(sieve: Sieve, states: Cells) -> Mask:
    """Return a mask of jobs without an allocation; if the log lacks the fields, of cancelled jobs."""
    columns = sieve.table.columns
    if "AllocTRES" in columns:
        return parse(columns["AllocTRES"], lambda text: text.lower() in MISSING)[0] > 0
    for name in ("AllocNodes", "AllocCPUS", "NCPUS"):
        if name in columns:
            return sieve.parse(name, count) <= 0
    return _among(states, {"CANCELLED"})


def _asked_partitions(sieve: Sieve) -> Cells:
    """Return the partition of each job, or all that its command line names, if that is one of them."""
    table = sieve.table
    named = changed(table.columns["SubmitLine"], _partitions_in)
    pairs = list(zip(table.columns["Partition"], named, strict=True))
    several = np.array(
        [part in several.split(",") and part != several for part, several in pairs], dtype=bool
    )
    sieve.note("several partitions asked for (SubmitLine): may start in any of them", several)
    return [names if chosen else part for (part, names), chosen in zip(pairs, several.tolist(), strict=True)]


def _partitions_in(line: str) -> str:
    """Return the partitions in the options of a command line, if they are several; ``--wrap`` ends them."""
    found = PARTITIONS.search(line.partition("--wrap")[0])
    return "" if found is None else found[1]


def _licenses(table: Table) -> Cells:
    """Return the licences of each job: those in the field of that name, or else in its command line."""
    if "Licenses" in table.columns:
        return changed(table.columns["Licenses"], lambda cell: "" if cell.strip() in NOWHERE else cell)
    lines = table.columns.get("SubmitLine")
    return [""] * len(table.line) if lines is None else changed(lines, _licenses_in)


def _licenses_in(line: str) -> str:
    """Return the licences in the options of a command line; ``--wrap`` ends them."""
    found = LICENSES.search(line.partition("--wrap")[0])
    return "" if found is None else found[1].strip("'\"")


def _names(sieve: Sieve) -> tuple[dict[str, Column], dict[str, tuple[str, ...]]]:
    """Return the columns of users, accounts, partitions, QOS and status, and the names for their numbers."""
    columns: dict[str, Column] = {}
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in NAMES.items():
        if field in sieve.table.columns:
            columns[name], labels[name] = sieve.labelled(sieve.table.columns[field], numbers=False)
    if {"Partition", "SubmitLine"} <= sieve.table.columns.keys():
        cells = _asked_partitions(sieve)
        columns["partition"], labels["partition"] = sieve.labelled(cells, numbers=False)
    if "State" in sieve.table.columns:
        columns["status"] = sieve.parse("State", status)
    if "Restarts" in sieve.table.columns:
        sieve.note("requeued before: submitted then for the last time", sieve.parse("Restarts", count) > 0)
    return columns, labels
