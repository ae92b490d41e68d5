"""Resource requests in Slurm accounting data: nodes, amounts per node, features."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

import numpy as np

from hpcsimkit.jobs.columns import AMOUNT_LIMIT, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.workloads.readers.sacct_cells import (
    PER_CPU,
    PER_NODE,
    condition,
    conjunction,
    count,
    gpu_type,
    memory_scope,
    requested_memory,
    tres,
)
from hpcsimkit.workloads.readers.sieve import Mask, Sieve, per_node
from hpcsimkit.workloads.readers.tables import Cells, Parser

__all__ = ["LEFT_OUT", "SACCT_FEATURES", "constraints", "first_known", "requested_amounts"]

SACCT_FEATURES = ("constraints", "partition", "gpu_type")
"""Sources of the required features of a job's machines."""

LEFT_OUT = (
    "constraint in common to several nodes, or with counts among alternatives or beyond the nodes: left out"
)
NEEDED = "a constraint with counts of at most all nodes, joined by &, and with no features in common,"

Source = tuple[str, Parser]
"""A field and its parser."""


def first_known(sieve: Sieve, sources: Iterable[Source], least: int = 0) -> Column:
    """Return for each row the value of the first field with a number of at least `least`."""
    values = np.full(len(sieve.table), UNKNOWN)
    for name, parser in sources:
        if name in sieve.table.columns:
            values = np.where(values >= least, values, sieve.parse(name, parser))
    return values


def _ordered(requested: list[Source], allocated: list[Source], asked: bool) -> list[Source]:
    return requested + allocated if asked else allocated + requested


def requested_amounts(sieve: Sieve, *, requested: bool) -> tuple[Column, dict[str, Column]]:
    """Return the number of nodes and the amounts per node; exclude jobs without CPUs.

    Parameters
    ----------
    sieve : Sieve
        Row filter of the ``sacct`` rows.
    requested : bool
        Whether requested amounts take precedence over allocated amounts.
    """
    cpus = first_known(
        sieve,
        _ordered(
            [("ReqTRES", tres("cpu")), ("ReqCPUS", count)],
            [("AllocTRES", tres("cpu")), ("AllocCPUS", count), ("NCPUS", count)],
            requested,
        ),
        least=1,
    )
    nodes = first_known(
        sieve,
        _ordered(
            [("ReqTRES", tres("node")), ("ReqNodes", count)],
            [("AllocTRES", tres("node")), ("AllocNodes", count), ("NNodes", count)],
            requested,
        ),
        least=1,
    )
    sieve.leave_out(cpus < 1, "no CPUs", "at least 1 CPU", cpus)
    sieve.leave_out(nodes > 2**31, "nodes beyond 2^31", "up to 2^31 nodes", nodes)
    sieve.note("number of nodes unknown: 1 taken", nodes < 1)
    nodes = np.maximum(nodes, 1)
    gpus = _gpus(sieve, requested)
    memory, shared_out = _memory(sieve, requested, nodes, cpus)
    amounts = {"cpus": per_node(cpus, nodes), "gpus": per_node(gpus, nodes), "memory": memory}
    uneven = (cpus % nodes > 0) | (gpus % nodes > 0) | shared_out
    sieve.note("totals not divisible by the nodes: rounded up", uneven)
    return nodes, amounts


def _lists(sieve: Sieve, requested: bool) -> list[str]:
    """Return the first non-empty list of resources of each row."""
    fields = ("ReqTRES", "AllocTRES") if requested else ("AllocTRES", "ReqTRES")
    columns = [sieve.table.columns[field] for field in fields if field in sieve.table.columns]
    if not columns:
        return [""] * len(sieve.table)
    return [next(filter(None, map(str.strip, cells)), "") for cells in zip(*columns, strict=True)]


def _gpus(sieve: Sieve, requested: bool) -> Column:
    """Return the GPUs of each job; count jobs with none that have GPUs in other fields."""
    columns = sieve.table.columns
    gpus = np.maximum(sieve.parse("gres/gpu", tres("gres/gpu"), _lists(sieve, requested)), 0)
    if requested and "AllocTRES" in columns:
        unasked = (gpus == 0) & (sieve.parse("AllocTRES", tres("gres/gpu")) > 0)
        sieve.note("GPUs allocated but not requested: not counted", unasked)
    for field in ("ReqGRES", "AllocGRES"):
        if field in columns:
            old = np.array(["gpu" in cell for cell in columns[field]])
            sieve.note(f"GPUs in {field} only: not read", old & (gpus == 0))
    return gpus


def _memory(sieve: Sieve, requested: bool, nodes: Column, cpus: Column) -> tuple[Column, Mask]:
    """Return the memory per node [bytes], and a mask of jobs with totals that were rounded up."""
    columns = sieve.table.columns
    memory, uneven = np.full(len(nodes), UNKNOWN), np.zeros(len(nodes), dtype=bool)
    everything = np.zeros(len(nodes), dtype=bool)
    asked = ("ReqTRES", "ReqMem")
    for field in (*asked, "AllocTRES") if requested else ("AllocTRES", *asked):
        if field not in columns:
            continue
        total = sieve.parse(field, requested_memory if field == "ReqMem" else tres("mem"))
        scope = sieve.parse(field, memory_scope) if field == "ReqMem" else np.zeros_like(nodes)
        there = (memory <= 0) & (total > 0)
        for_cpus = _product(total, per_node(cpus, nodes))
        each = np.select([scope == PER_NODE, scope == PER_CPU], [total, for_cpus], per_node(total, nodes))
        memory = np.where(there, each, memory)
        uneven |= there & (scope == 0) & (total % nodes > 0)
        everything |= (total == 0) & (field in asked)
    known = memory > 0
    sieve.note("all memory of the nodes asked for (mem=0): the allocated amount taken", everything & known)
    sieve.note("all memory of the nodes asked for (mem=0), amount unknown: 0 taken", everything & ~known)
    sieve.note("memory unknown: 0 taken", ~everything & ~known)
    return np.maximum(memory, 0), uneven


def _product(a: Column, b: Column) -> Column:
    """Return products without integer overflow; products above `AMOUNT_LIMIT` become `AMOUNT_LIMIT` + 1."""
    beyond = a.astype(float) * b > AMOUNT_LIMIT
    return np.where(beyond, AMOUNT_LIMIT + 1, a * b)


def constraints(sieve: Sieve, nodes: Column, features: Collection[str]) -> tuple[Column, tuple[str, ...]]:
    """Return the constraint numbers of the jobs, and the constraints by number.

    Parameters
    ----------
    sieve : Sieve
        Row filter of the ``sacct`` rows.
    nodes : array of int64, shape (rows,)
        Number of nodes of each job.
    features : collection of str
        Sources of the features, a subset of `SACCT_FEATURES`.
    """
    texts = [""] * len(sieve.table)
    unsaid = np.zeros(len(texts), dtype=bool)
    for name in (name for name in SACCT_FEATURES if name in features):
        cells = _feature_cells(sieve, name)
        parse = cache((lambda cell, nodes: conjunction(cell)) if name == "gpu_type" else condition)
        said = list(map(parse, cells, nodes.tolist()))
        unsaid |= np.array([each is None for each in said])
        texts = ["&".join(filter(None, both)) for both in zip(texts, said, strict=True)]
    asked = sieve.table.columns.get("Constraints", texts)
    sieve.note(LEFT_OUT, unsaid, NEEDED, asked)
    return sieve.labelled(texts, numbers=False)


def _feature_cells(sieve: Sieve, name: str) -> Cells:
    if name == "gpu_type":
        return list(map(gpu_type, _lists(sieve, requested=True)))
    field = "Constraints" if name == "constraints" else "Partition"
    return sieve.table.columns.get(field, [""] * len(sieve.table))
