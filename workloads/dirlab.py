"""Log reader and test sequences of RLScheduler, SchedInspector and RLBackfilling."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.swf import read_swf_lines, swf_workload
from hpcsimkit.workloads.readers.swf_header import header_number, read_header
from hpcsimkit.workloads.readers.swf_lines import Lines

__all__ = ["CODES", "REPLACED", "Code", "published_starts", "read_published"]

REPLACED = "requested time replaced by the run time as published"
"""Note for jobs with a requested time that is not used."""

FAILED_RUN = 10
"""Run time that these code bases assume if it is unknown [s]."""

ID, RUN, ALLOCATED, REQUESTED, ESTIMATE = 0, 3, 4, 7, 8
"""Rows of the fields (counted from 0) with rules of their own."""


class Code(NamedTuple):
    """Reading rules of a code base.

    Parameters
    ----------
    keeps_zero_runs : bool
        Whether jobs with a run time of 0 are kept instead of dropped.
    estimate : {"requested", "at least run", "run"}
        Definition of the requested time.
    clips : bool
        Whether the sizes of jobs larger than ``MaxProcs`` are reduced to it.
    hashes_seed : bool
        Whether random numbers come from Gym, which hashed seeds.
    """

    keeps_zero_runs: bool
    estimate: str
    clips: bool
    hashes_seed: bool


CODES = {
    "rlscheduler": Code(keeps_zero_runs=False, estimate="requested", clips=False, hashes_seed=True),
    "schedinspector": Code(keeps_zero_runs=True, estimate="run", clips=False, hashes_seed=True),
    "rlbackfilling": Code(keeps_zero_runs=False, estimate="at least run", clips=True, hashes_seed=False),
}
"""The code bases by name."""


def read_published(path: str | os.PathLike[str], code: str) -> Workload:
    """Read a log in the Standard Workload Format by the rules of one of the published code bases.

    - A job takes the larger of requested and allocated processors (fields 8 and 5), in RLBackfilling at most
      ``MaxProcs``, in whole nodes: there are ``MaxNodes`` nodes of ``MaxProcs / MaxNodes`` processors each.
    - An unknown run time counts as 10 s. Jobs that ran 0 s are dropped, except by SchedInspector.
    - The requested time is field 9, or the run time if field 9 is unknown. In RLBackfilling it is at least
      the run time; in SchedInspector it is always the run time. Here it is at least 1 s, while these code
      bases use 0 s for jobs that ran 0 s.
    - Jobs are sorted by job number.

    Jobs that are changed or dropped are counted in ``notes`` and ``skipped``, as are jobs that cannot be
    simulated (see :func:`~hpcsimkit.workloads.readers.swf.read_swf`), on which these code bases fail.

    Parameters
    ----------
    path : str or path
        Path of the log, plain or gzip.
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Name of the code base.

    Returns
    -------
    Workload
        The workload, in nodes. If a node has several processors, the processors are the resource ``cpus``, so
        that they determine job sizes in orders.

    Raises
    ------
    WorkloadError
        If the file cannot be read or is not SWF.
    UsageError
        If the code base is unknown.
    """
    rules = _code(code)
    lines = read_swf_lines(path)
    header = read_header(text for _, text in lines.comments)
    lines, skipped, notes = _as_loaded(lines, rules, header_number(header, "MaxProcs"))
    log = swf_workload(path, lines)
    log = replace(log, skipped={**log.skipped, **skipped}, notes={**log.notes, **notes})
    log = _in_nodes(log, header_number(header, "MaxNodes"))
    return log if log.machine_size is None else log.fitting(log.machine_size)


def _code(name: str) -> Code:
    if name not in CODES:
        raise UsageError(f"a code base needs one of {', '.join(CODES)}, found {name!r}")
    return CODES[name]


def _as_loaded(
    lines: Lines, rules: Code, processors: int | None
) -> tuple[Lines, dict[str, int], dict[str, int]]:
    """Return the lines as loaded by a code base, and the counts of dropped and of changed jobs."""
    by_number = np.argsort(lines.fields[ID], kind="stable")
    fields, line = lines.fields[:, by_number], lines.line[by_number]
    unknown = fields[RUN] == UNKNOWN if rules.keeps_zero_runs else fields[RUN] < 0
    fields[RUN, unknown] = FAILED_RUN
    sizes = np.maximum(fields[ALLOCATED], fields[REQUESTED])
    too_large = sizes > processors if rules.clips and processors else np.zeros(len(sizes), dtype=bool)
    fields[REQUESTED] = np.where(too_large, processors, sizes)
    estimates = _estimates(fields, rules.estimate)
    replaced = (fields[ESTIMATE] != UNKNOWN) & (estimates != fields[ESTIMATE])
    fields[ESTIMATE] = estimates
    dropped = (fields[RUN] == 0) & (not rules.keeps_zero_runs)
    skipped = {"run time 0: dropped as published": dropped}
    notes = {
        f"run time unknown: {FAILED_RUN} s taken as published": unknown,
        REPLACED: replaced,
        "larger than the machine: cut down as published": too_large,
    }
    kept = replace(lines, fields=fields[:, ~dropped], line=line[~dropped])
    return kept, _counts(skipped), _counts(notes)


def _estimates(fields: NDArray[np.float64], rule: str) -> NDArray[np.float64]:
    run, requested = fields[RUN], fields[ESTIMATE]
    if rule == "run":
        return run.copy()
    known = np.where(requested == UNKNOWN, run, requested)
    return np.maximum(known, run) if rule == "at least run" else known


def _counts(jobs: dict[str, NDArray[np.bool_]]) -> dict[str, int]:
    return {reason: int(np.count_nonzero(those)) for reason, those in jobs.items() if those.any()}


def _in_nodes(log: Workload, nodes: int | None) -> Workload:
    """Return a log in processors converted to whole nodes, if nodes have several processors."""
    processors = log.machine_size
    if nodes is None or processors is None or nodes == processors:
        return log
    columns = {**log.columns, "cpus": log.nodes, "spread": np.ones(len(log), dtype=np.int64)}
    columns["nodes"] = np.ceil(log.nodes / (processors / nodes)).astype(np.int64)
    step = f"whole nodes of {processors / nodes:g} processors"
    return replace(
        log, columns=columns, machine_size=nodes, resources=("cpus",), provenance=(*log.provenance, step)
    )


def published_starts(code: str, jobs: int, seed: int, count: int) -> Column:
    """Return the start indices of the job sequences of a published test.

    SchedInspector uses sequences of 256 jobs from the whole log; the other two use sequences of 1024 jobs and
    exclude 1024 jobs at both ends of the log.

    Parameters
    ----------
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Name of the code base.
    jobs : int
        Number of jobs in the log.
    seed : int
        Random seed of the test.
    count : int
        Number of sequences.

    Returns
    -------
    array of int64, shape (count,)
        Row of the first job of each sequence.

    Examples
    --------
    >>> published_starts("rlscheduler", 10_000, seed=1, count=10).tolist()
    [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    """
    rng = np.random.RandomState(_hashed(seed) if _code(code).hashes_seed else seed)
    if code == "schedinspector":
        return rng.randint(0, jobs - 256, count)
    return rng.randint(1024, jobs - 1025, count)


def _hashed(seed: int) -> list[int]:
    """Return the hash of a seed as computed by Gym versions that hashed seeds."""
    digest = hashlib.sha512(str(seed).encode()).digest()
    return np.frombuffer(digest[:8], dtype="<u4").tolist()
