"""Logs as RLScheduler, SchedInspector and RLBackfilling load them, and the sequences they are tested on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.columns import Column
from hpcsimkit.errors import UsageError
from hpcsimkit.job import UNKNOWN
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.swf import read_swf_lines, swf_workload
from hpcsimkit.workloads.swf_header import header_number, read_header
from hpcsimkit.workloads.swf_lines import Lines

__all__ = ["CODES", "Code", "published_starts", "read_published"]

FAILED_RUN = 10
"""What those codes take for a run time that is not known [s]."""

ID, RUN, ALLOCATED, REQUESTED, ESTIMATE = 0, 3, 4, 7, 8
"""Rows of the fields (counted from 0) that they read in a way of their own."""


class Code(NamedTuple):
    """What is peculiar to a code base.

    Parameters
    ----------
    keeps_zero_runs : bool
        Jobs with a run time of 0 are kept, which otherwise are dropped.
    estimate : {"requested", "at least run", "run"}
        What counts as requested time.
    clips : bool
        Jobs larger than ``MaxProcs`` are cut down to it.
    hashes_seed : bool
        Its random numbers come from Gym, which hashed seeds.
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
    """Read a log in the Standard Workload Format as one of the published code bases does.

    - A job takes the larger of requested and allocated processors (fields 8 and 5), in RLBackfilling
      ``MaxProcs`` at most, in whole nodes: there are ``MaxNodes`` of them, of ``MaxProcs / MaxNodes``
      processors each.
    - A run time that is not known counts 10 s. Jobs that ran 0 s are dropped, but not by SchedInspector.
    - The requested time is field 9, where unknown the run time; in RLBackfilling at least the run time; in
      SchedInspector the run time always. It is at least 1 s here: those codes have 0 s where a job ran 0 s.
    - Jobs come in the order of their numbers.

    What is changed or dropped is counted in ``notes`` and ``skipped``; so is what cannot be simulated (see
    :func:`~hpcsimkit.workloads.swf.read_swf`), on which those codes fail.

    Parameters
    ----------
    path : str or path
        The log, plain or gzip.
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Who reads it.

    Returns
    -------
    Workload
        ``nodes`` are nodes. Where a node has several processors, the processors are the resource ``cpus``, so
        that orders go by them.

    Raises
    ------
    WorkloadError
        The file cannot be read, or is not SWF.
    UsageError
        The code base is not known.
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
    """Return the lines as a code base has them in memory, and what it dropped and changed."""
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
        "requested time replaced by the run time as published": replaced,
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
    """Return a log of processors as one of whole nodes, if nodes have several processors."""
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
    """Return where the sequences of a published test begin.

    SchedInspector takes sequences of 256 jobs from anywhere in the log, the other two take 1024 and leave
    out 1024 jobs at either end.

    Parameters
    ----------
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Whose test.
    jobs : int
        How many jobs the log has.
    seed : int
        Of the test.
    count : int
        How many.

    Returns
    -------
    array of int64, shape (count,)
        Rows of the first job of each.

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
    """Return what Gym made of a seed before it gave that up."""
    digest = hashlib.sha512(str(seed).encode()).digest()
    return np.frombuffer(digest[:8], dtype="<u4").tolist()
