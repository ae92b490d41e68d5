"""Resource requests in Slurm accounting data: nodes, amounts per node, features."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import numpy as np

from hpcsimkit.io.units import MIG, resource_of
from hpcsimkit.jobs.columns import AMOUNT_LIMIT, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.workloads.readers.sacct_cells import (
    PER_CPU,
    PER_NODE,
    condition,
    conjunction,
    count,
    gpu_model,
    gpu_type,
    gres_list,
    memory_scope,
    requested_memory,
    tres,
)
from hpcsimkit.workloads.readers.sieve import Mask, Sieve, per_node
from hpcsimkit.workloads.readers.tables import (
    MISSING,
    Cells,
    EncodedCells,
    Parser,
    changed,
    labelled,
    parse,
)

__all__ = ["LEFT_OUT", "MORE_ALLOCATED", "SACCT_FEATURES", "constraints", "first_known", "requested_amounts"]

SACCT_FEATURES = ("constraints", "partition", "gpu_type")
"""Sources of the required features of a job's machines."""

LEFT_OUT = (
    "constraint in common to several nodes, or with counts among alternatives or beyond the nodes: left out"
)
MORE_ALLOCATED = "jobs were allocated more than they requested (whole nodes?): --size allocated"
"""Note for jobs whose allocation tells that they may have had whole nodes."""

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


def _note_more_allocated(sieve: Sieve, cpus: Column) -> None:
    """Count the jobs that were allocated more CPUs than they requested."""
    sources = (("AllocTRES", tres("cpu")), ("AllocCPUS", count))
    if {"ReqTRES", "ReqCPUS"} & sieve.table.columns.keys():
        sieve.note(MORE_ALLOCATED, first_known(sieve, sources) > cpus)


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
    gpus = _gpus(sieve, requested, nodes)
    memory, shared_out = _memory(sieve, requested, nodes, cpus)
    all_gpus, *kinds = gpus
    amounts = {
        "cpus": cpus,
        all_gpus: gpus[all_gpus],
        "memory": memory,
        **{name: gpus[name] for name in kinds},
    }
    uneven = shared_out
    for name, total in amounts.items():
        if name != "memory":
            uneven = uneven | (total % nodes > 0)
            amounts[name] = per_node(total, nodes)
    sieve.note("totals not divisible by the nodes: rounded up", uneven)
    if requested:
        _note_more_allocated(sieve, cpus)
    return nodes, amounts


def _lists(sieve: Sieve, requested: bool) -> Cells:
    """Return the first non-empty list of resources of each row."""
    fields = ("ReqTRES", "AllocTRES") if requested else ("AllocTRES", "ReqTRES")
    columns = [sieve.table.columns[field] for field in fields if field in sieve.table.columns]
    if not columns:
        return EncodedCells([""], np.zeros(len(sieve.table), dtype=np.int64))
    if len(columns) == 1:
        return columns[0]
    first, second = columns
    empty = parse(first, lambda text: text.lower() in MISSING)[0] > 0
    if isinstance(first, EncodedCells) and isinstance(second, EncodedCells):
        codes = np.where(empty, second.codes + len(first.distinct), first.codes)
        return EncodedCells([*first.distinct, *second.distinct], codes)
    return [other if none else one for one, other, none in zip(first, second, empty.tolist(), strict=True)]


def _gpus(sieve: Sieve, requested: bool, nodes: Column) -> dict[str, Column]:
    """Return the GPUs of each job, and the amounts of each model, of MIG slices, and of shares of GPUs."""
    columns, lists = sieve.table.columns, _lists(sieve, requested)
    amounts = {
        name: np.maximum(sieve.parse(tres_name, tres(tres_name), lists), 0)
        for name, tres_name in _kinds(lists)
    }
    gpus = np.maximum(sieve.parse("gres/gpu", tres("gres/gpu"), lists), 0)
    for name, values in amounts.items():
        if name.startswith(MIG):
            gpus = np.maximum(gpus - values, 0)
    if requested and "AllocTRES" in columns:
        unasked = (gpus == 0) & (sieve.parse("AllocTRES", tres("gres/gpu")) > 0)
        for name, values in amounts.items():
            unasked &= (values == 0) | (not name.startswith(MIG))
        sieve.note("GPUs allocated but not requested: not counted", unasked)
    found = _with_old_fields(sieve, {"gpus": gpus, **amounts}, requested, nodes)
    found = _with_models(sieve, found)
    return {name: values for name, values in found.items() if name == "gpus" or values[sieve.kept].any()}


def _with_old_fields(
    sieve: Sieve, amounts: dict[str, Column], requested: bool, nodes: Column
) -> dict[str, Column]:
    """Return the amounts with those of ``ReqGRES``, else ``AllocGRES``, of jobs that have none elsewhere.

    Slurm 20.02 and earlier print these fields, with the numbers on each node.
    """
    fields = ("ReqGRES", "AllocGRES") if requested else ("AllocGRES", "ReqGRES")
    field = next((field for field in fields if field in sieve.table.columns), None)
    if field is None:
        return amounts
    lists = changed(sieve.table.columns[field], gres_list)
    found = {
        name: np.maximum(sieve.parse(field, tres(tres_name), lists), 0) * nodes
        for name, tres_name in [("gpus", "gres/gpu"), *_kinds(lists)]
    }
    for name, values in found.items():
        if name.startswith(MIG):
            found["gpus"] = np.maximum(found["gpus"] - values, 0)
    nothing = np.zeros_like(nodes)
    taken = np.sum([*amounts.values()], axis=0) == 0
    sieve.note(f"GPUs in {field} only: taken on each node", taken & (np.sum([*found.values()], axis=0) > 0))
    return {
        name: np.where(taken, found.get(name, nothing), amounts.get(name, nothing))
        for name in [*amounts, *(name for name in found if name not in amounts)]
    }


def _with_models(sieve: Sieve, amounts: dict[str, Column]) -> dict[str, Column]:
    """Return the amounts with the models of GPUs that requests name where the lists of resources do not.

    The lists have models that ``AccountingStorageTRES`` names only; the options of a command line have all.
    """
    field = next((field for field in ("SubmitLine", "ReqGRES") if field in sieve.table.columns), None)
    if field is None:
        return amounts
    numbers, models = labelled(changed(sieve.table.columns[field], gpu_model), numbers=False)
    gpus, typed = amounts["gpus"], np.zeros_like(amounts["gpus"])
    for name, values in amounts.items():
        if name.startswith("gpus:"):
            typed = typed + values
    found = dict(amounts)
    for number, model in enumerate(models):
        name = resource_of("gpu", model)
        if name.startswith("gpus:"):
            found[name] = np.where(
                (numbers == number) & (typed == 0), gpus, found.get(name, np.zeros_like(gpus))
            )
    return found


def _kinds(lists: Cells) -> list[tuple[str, str]]:
    """Return the resources in lists beside all GPUs, each with the name in the lists, sorted."""
    texts = lists.distinct if isinstance(lists, EncodedCells) else lists
    found = {each for text in texts for each in DEVICES.findall(text)}
    return sorted((resource_of(*each.removeprefix("gres/").partition(":")[::2]), each) for each in found)


DEVICES = re.compile(r"(?:^|,)(gres/(?:gpu:[^=,]+|shard(?:s?)|mps)(?==))")
"""Names in lists of resources of models of GPUs, of MIG slices, and of shares of GPUs."""


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
    nothing = EncodedCells([""], np.zeros(len(sieve.table), dtype=np.int64))
    texts: Cells = nothing
    unsaid = np.zeros(len(nodes), dtype=bool)
    for name in (name for name in SACCT_FEATURES if name in features):
        cells = _feature_cells(sieve, name) or nothing
        said, unclear = _said(cells, nodes, plain=name == "gpu_type")
        unsaid |= unclear
        texts = said if texts is nothing else _joined(texts, said)
    asked = sieve.table.columns.get("Constraints", nothing)
    sieve.note(LEFT_OUT, unsaid, NEEDED, asked)
    return sieve.labelled(texts, numbers=False)


def _said(cells: Cells, nodes: Column, *, plain: bool) -> tuple[Cells, Mask]:
    """Return the constraints in cells, and a mask of those that cannot be simulated."""
    numbers, names = labelled(cells, numbers=False)
    kinds = len(names) + 1
    pairs, rows = np.unique(nodes * kinds + numbers + 1, return_inverse=True)
    said = [
        "" if not pair % kinds else _one_said(names[pair % kinds - 1], pair // kinds, plain=plain)
        for pair in pairs.tolist()
    ]
    unclear = np.array([each is None for each in said], dtype=bool)
    return EncodedCells([each or "" for each in said], rows), unclear[rows]


def _one_said(name: str, nodes: int, *, plain: bool) -> str | None:
    return conjunction(name) if plain else condition(name, nodes)


def _joined(first: Cells, second: Cells) -> Cells:
    """Return constraints that require both."""
    return ["&".join(filter(None, both)) for both in zip(first, second, strict=True)]


def _feature_cells(sieve: Sieve, name: str) -> Cells | None:
    if name == "gpu_type":
        return changed(_lists(sieve, requested=True), gpu_type)
    return sieve.table.columns.get("Constraints" if name == "constraints" else "Partition")
