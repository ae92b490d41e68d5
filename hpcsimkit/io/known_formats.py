"""Formats of files that are recognised: by which mark, and what to do with those that no reader reads.

The first bytes of a file tell its format. A format is added here with its mark and a sentence that says what
to do; formats with a reader are in :mod:`hpcsimkit.workloads.readers.logs`. Pages of the documentation and
messages follow from these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

__all__ = ["NAMED_FORMATS", "NamedFormat", "Start", "named_format"]


class Start(NamedTuple):
    """The beginning of a file.

    Parameters
    ----------
    name : str
        Name of the file.
    content : bytes
        First bytes, decompressed.
    text : str
        The same as text, without a byte-order mark and leading blanks.
    first : str
        First line that is not blank.
    """

    name: str
    content: bytes
    text: str
    first: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Start:
        """Return the beginning of a file from its first bytes."""
        text = content.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        return cls(name, content, text, re.split(r"[\r\n]", text, maxsplit=1)[0].strip())

    @property
    def fields(self) -> Collection[str]:
        """Words of the first line in lower case."""
        return {field.lower() for field in re.split(r"\W+", self.first)}

    @property
    def keys(self) -> Collection[str]:
        """Names in a JSON text, as far as it was read, or of the columns of a Parquet file."""
        if self.text.startswith(("{", "[")):
            return set(re.findall(r'"([^"\\]{1,60})"\s*:', self.text))
        return ()


Looks = Callable[[Start], Any]


class NamedFormat(NamedTuple):
    """A format that no reader reads.

    Parameters
    ----------
    name : str
        Name of the format.
    mark : str
        Mark that tells the format, in words.
    looks : callable
        Check of the beginning of a file; true if it looks like one of the format.
    advice : str
        Sentence that says what to do with such a file.
    """

    name: str
    mark: str
    looks: Looks
    advice: str

    @property
    def refusal(self) -> str:
        """The end of a message that refuses a file of the format."""
        return f"the format is that of {self.name}, which is not read: {self.advice}"


def _pattern(pattern: str) -> Looks:
    return lambda start: re.match(pattern, start.text)


def _fields(*names: str) -> Looks:
    return lambda start: {*names} <= {*start.fields}


def _keys(*names: str) -> Looks:
    return lambda start: {*names} <= {*start.keys}


EXPORT = "export the jobs that ended: sacct --allusers --allocations --parsable2 with the fields of the guide"
CONVERT = 'convert its jobs to a job table (CSV), as the guide "Bring your own log" shows'

NAMED_FORMATS = (
    NamedFormat(
        "Flux",
        "JSON with `t_submit`, `t_run`, `t_inactive`, or a heading `JOBID USER NAME ST NTASKS`",
        lambda start: (
            {"t_submit", "t_run"} <= {*start.keys}
            or re.match(r"\s*JOBID\s+(?:QUEUE\s+)?USER\s+NAME\s+ST\s+NTASKS", start.text)
        ),
        f"{CONVERT}, from flux jobs --json (t_submit, t_run, t_inactive, ntasks, duration)",
    ),
    NamedFormat(
        "sprio, sshare or sdiag",
        "a heading `JOBID PARTITION USER PRIORITY` or `Account User RawShares`",
        _pattern(r"JOBID\s+PARTITION\s+USER\s+PRIORITY|Account\W+User\W+RawShares|\*{20,}\s*\nsdiag"),
        f"it has priorities or shares, no jobs that ended; {EXPORT}",
    ),
    NamedFormat(
        "squeue",
        "a heading with `JOBID` and `NODELIST(REASON)`, `TIME`, `REASON` or `ST`; or its lines without it",
        _pattern(
            r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [^\n]*\n)?"
            r"(?=[^\n]*\bJOBID\b)(?=[^\n]*(?:NODELIST\(REASON\)|\b(?:REASON|START_TIME|ST|TIME|TIME_LEFT|TIME_LIMIT?)\b))"
            r"|\d+(?:_\S+)?(?:\s+\S+){3}\s+(?:R|PD|CG|CF|S)\s+(?:\d+-)?\d+:[\d:]+\s+\d+\s"
        ),
        f"it has the jobs that wait or run now; {EXPORT}",
    ),
    NamedFormat(
        "sacct without --parsable2",
        "a heading of columns, with a line of hyphens below",
        _pattern(r"(?:JobID|JobIDRaw)\b[^\n|,;]*\n\s*-{3,}"),
        "its columns are cut to a width; export again with --parsable2",
    ),
    NamedFormat(
        "sinfo",
        "a heading `PARTITION AVAIL TIMELIMIT`",
        _pattern(r"(?:PARTITION\s+AVAIL|NODELIST\s+NODES|HOSTNAMES\s)"),
        "it has nodes, no jobs; machines are read from scontrol show node (--machines)",
    ),
    NamedFormat(
        "scontrol show job",
        "`JobId=`",
        _pattern(r"JobId=\d+\s+(?:JobName|ArrayJobId|HetJobId)="),
        f"it has the jobs that wait or run now; {EXPORT}",
    ),
    NamedFormat(
        "scontrol show node",
        "`NodeName=`",
        _pattern(r"NodeName=\S+\s"),
        "it has machines, no jobs; give it as --machines",
    ),
    NamedFormat(
        "scontrol show partition",
        "`PartitionName=`",
        _pattern(r"PartitionName=\S+\s"),
        "it has partitions, no jobs; give it as --partitions",
    ),
    NamedFormat(
        "job completions of Slurm (jobcomp/filetxt)",
        "`JobId=... UserId=... Partition=... EndTime=`",
        _pattern(r"JobId=\d+ UserId="),
        EXPORT,
    ),
    NamedFormat(
        "UB Slurm simulator",
        "columns `dt`, `wall_time`, `wall_limit`, `n_tasks`; or lines `-dt 10 -e submit_batch_job | ...`",
        lambda start: (
            {"dt", "wall_time", "wall_limit", "n_tasks"} <= {*start.fields}
            or "sim_job_id" in start.fields
            or re.match(r"-dt\s+[\d.]+\s+-e\s+submit_batch_job\b", start.text)
        ),
        f"{CONVERT}; dt is relative to the job before or to the beginning, wall_time the run time",
    ),
    NamedFormat(
        "Alea machines",
        "numbers, a name and numbers, separated by tabs",
        lambda start: re.match(
            r"\d+[\t ]+[A-Za-z][\w.-]*(?:[\t ]+\d+){2}(?:[\t ]+\d+(?:\.\d+)?){2}\s", start.text
        ),
        "it has machines, no jobs; write them as a table of machines (MachineName,TotalCPUs,TotalMemory)",
    ),
    NamedFormat(
        "LSF accounting (lsb.acct)",
        '`"JOB_FINISH"`',
        _pattern(r'"(?:JOB_\w+|EVENT_\w+|LSF_\w+)" "?\d'),
        f"its fields depend on the version; {CONVERT}, from bacct -l or bhist",
    ),
    NamedFormat(
        "bjobs, bhist or bacct",
        "a heading `JOBID USER STAT QUEUE`, `Summary of time` or `Accounting information about jobs`",
        _pattern(r"JOBID\s+USER\s+STAT\s+QUEUE|Summary of time in seconds|Accounting information about jobs"),
        f"it is laid out for people; {CONVERT}, from the times and slots in bacct -l",
    ),
    NamedFormat(
        "OAR",
        "JSON with `submission_time` and `start_time`, or a heading with `Job id` and `Submission Date`",
        lambda start: (
            {"submissionTime", "startTime"} <= {*start.keys}
            or {"submission_time", "start_time", "state"} <= {*start.keys}
            or re.match(r"Job id\s+S\s+User|Job id\s+Name\s+User\s+Submission Date|Job_Id: \d+", start.text)
        ),
        f"{CONVERT}, from oarstat -J or the table jobs of the database",
    ),
    NamedFormat(
        "qacct",
        "a line of `=` and one that begins with `qname`",
        _pattern(r"={20,}\s*\nqname\s"),
        "give the accounting file itself, which qacct reads: $SGE_ROOT/default/common/accounting",
    ),
    NamedFormat(
        "qstat",
        "a heading `Job id Name User` or `job-ID prior name`, a line `Job Id:`, or JSON with `pbs_server`",
        lambda start: (
            re.match(
                r"Job [iI][dD]\s+(?:Name|User)|job-ID\s+prior|\S+:\s*\n\s*Req'd|Job Id: \S+\s*\n\s+\w+ = ",
                start.text,
            )
            or {"pbs_server", "Jobs"} <= {*start.keys}
        ),
        "it has the jobs that wait or run now; the accounting files of PBS, Torque and Grid Engine are read",
    ),
    NamedFormat(
        "HTCondor history",
        "`ClusterId = ` among lines of `Name = value`, or JSON with `ClusterId`",
        lambda start: (
            re.search(r"^(?:ClusterId|QDate|MyType) = ", start.text, re.MULTILINE)
            or "ClusterId" in start.keys
        ),
        f"{CONVERT}, from condor_history -af QDate JobStartDate CompletionDate RequestCpus",
    ),
    NamedFormat(
        "Modular Workload Format (MWF)",
        "a comment that names it",
        lambda start: re.match(r";[^\n]*\b(?:MWF|Modular Workload)", start.text, re.IGNORECASE),
        "its main file has the fields of SWF; convert it with the tools of the format",
    ),
    NamedFormat(
        "WfCommons",
        "JSON with `workflow` and `schemaVersion`",
        _keys("workflow", "schemaVersion"),
        "it has the tasks of one workflow, no log of a machine; write its tasks as SWF with preceding jobs",
    ),
    NamedFormat(
        "Philly (JSON of Microsoft)",
        "JSON with `jobid`, `vc` and `attempts`",
        _keys("jobid", "vc", "attempts"),
        "the form of the MURI simulator is read: CSV with job_id, num_gpu, submit_time, duration [ms]",
    ),
    NamedFormat(
        "Helios (SenseTime)",
        "columns `job_id`, `gpu_num`, `submit_time`, `duration`, `queue`",
        _fields("gpu_num", "cpu_num", "submit_time", "duration"),
        "make a job table of it: ReqGPUs from gpu_num, ReqCPUs from cpu_num, ActualDuration from duration, "
        "Submit from submit_time (as Unix time)",
    ),
    NamedFormat(
        "PAI (Alibaba 2020)",
        "columns `plan_gpu`, `plan_cpu`, `inst_num`",
        _fields("plan_cpu", "plan_gpu", "inst_num"),
        f"join its tables of jobs and tasks; {CONVERT}",
    ),
    NamedFormat(
        "PAI (Alibaba 2020)",
        "numbers with names of tasks and `inst_num`, without a header",
        lambda start: re.match(
            r"[\w-]+,\w+,\w+(?:\.0)?,(?:Terminated|Failed|Running|Waiting),[\d.]*,[\d.]*(?:,|\n|$)",
            start.text,
        ),
        f"join its tables of jobs and tasks; {CONVERT}",
    ),
    NamedFormat(
        "Alibaba cluster data (2018)",
        "lines `task_name,instances,job,type,Terminated,`, without a header",
        _pattern(r"\w+,\d*,j_\d+,\d+,(?:Terminated|Failed|Running|Waiting),"),
        f"its requests are hundredths of CPUs and of the memory of a machine; {CONVERT}",
    ),
    NamedFormat(
        "database of Slurm",
        "columns `id_job`, `time_submit`",
        _fields("id_job", "time_submit", "time_start"),
        "rename its columns to those of sacct: JobID from id_job, Submit from time_submit, Start, End, "
        "TimelimitRaw from timelimit, ReqCPUS from cpus_req, AllocNodes from nodes_alloc",
    ),
    NamedFormat(
        "AccaSim (configuration of a system)",
        "JSON with `groups` and `nodes` or `resources`, and no `jobs`",
        lambda start: (
            "groups" in start.keys and {"nodes", "resources"} & {*start.keys} and "jobs" not in start.keys
        ),
        "it has machines, no jobs; write them as a table of machines (MachineName,TotalCPUs,TotalMemory)",
    ),
    NamedFormat(
        "Google cluster data",
        "columns `collection_id` or `missing info`",
        lambda start: {"collection_id"} <= {*start.fields, *start.keys},
        f"its requests are parts of the largest machine; {CONVERT}",
    ),
    NamedFormat(
        "XDMoD",
        "columns of the shredder: `local_jobid`, `local_job_array_index`",
        _fields("local_jobid"),
        f"{CONVERT}; or export the same jobs from Slurm with sacct",
    ),
    NamedFormat(
        "spreadsheet",
        "the first bytes of a zip file",
        lambda start: start.content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")),
        "save it as CSV",
    ),
    NamedFormat(
        "archive (tar)",
        "`ustar`",
        lambda start: start.content[257:262] == b"ustar",
        "unpack it and give one of its files",
    ),
    NamedFormat(
        "page of the web",
        "`<!DOCTYPE html>`",
        _pattern(r"(?i)<!doctype html|<html"),
        "download the log itself",
    ),
    NamedFormat(
        "pickle",
        "the first bytes of a pickle",
        lambda start: re.match(rb"\x80[\x02-\x05][\x8c\x95c}]", start.content),
        "a pickle can run code and is never read; write the table as CSV or Parquet",
    ),
)
"""Formats without a reader, each with what to do; readers are in :mod:`hpcsimkit.workloads.readers.logs`."""


def named_format(name: str, content: bytes) -> NamedFormat | None:
    """Return the format without a reader that a file has, from its first bytes; None for any other.

    >>> named_format("x.txt", b"  JOBID PARTITION     NAME     USER ST\\n").name
    'squeue'
    """
    start = Start.of(name, content)
    return next((form for form in NAMED_FORMATS if form.looks(start)), None)
