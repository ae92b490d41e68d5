"""Reader for logs in the Grid Workloads Format (GWF) of the Grid Workloads Archive.

A line has 29 fields, the first 16 of which are those of the Standard Workload Format; comments begin with
``#``. The fields are those that A. Iosup et al., "The Grid Workloads Archive", Future Generation Computer
Systems 24(7), 2008, name.
"""

from __future__ import annotations

import os
from dataclasses import replace

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.sieve import UNREAD
from hpcsimkit.workloads.readers.swf import Size, swf_workload
from hpcsimkit.workloads.readers.swf_lines import parse_lines
from hpcsimkit.workloads.readers.tables import read_text

__all__ = ["FIELDS_IN_COMMON", "FIELD_COUNT", "read_gwf"]

FIELD_COUNT = 29
FIELDS_IN_COMMON = 16
"""Number of fields that a line begins with as in the Standard Workload Format."""

OTHER_FIELDS = (
    *(
        "OrigSiteID",
        "LastRunSiteID",
        "JobStructure",
        "JobStructureParams",
        "UsedNetwork",
        "UsedLocalDiskSpace",
    ),
    *("UsedResources", "ReqPlatform", "ReqNetwork", "ReqLocalDiskSpace", "ReqResources", "VOID", "ProjectID"),
)


def read_gwf(
    path: str | os.PathLike[str],
    *,
    size: Size = "requested",
    machine_size: int | None = None,
    strict: bool = False,
) -> Workload:
    """Read a log in the Grid Workloads Format, plain or compressed.

    The fields that GWF has in common with the Standard Workload Format mean the same; see
    :func:`~hpcsimkit.workloads.readers.swf.read_swf`. Sites, networks and the structure of jobs are not read.
    A grid has several sites: without a `machine_size`, the size of the machine is unknown.

    Parameters
    ----------
    path : str or path
        Path of the log.
    size, machine_size, strict
        As for :func:`~hpcsimkit.workloads.readers.swf.read_swf`.

    Raises
    ------
    WorkloadError
        If the file cannot be read, has no job line, or has no usable job; or, if `strict`, any line is
        unusable.
    UsageError
        If an option has an invalid value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "grid.gwf"
    >>> _ = log.write_text("# GWF\\n7 100 5 60 4 -1 -1 4 90 -1 1 U1 G1 X1 Q1 P1 S1 S2" + " -1" * 11 + "\\n")
    >>> w = read_gwf(log)
    >>> w.id.tolist(), w.run_time.tolist(), w.nodes.tolist(), w.labels["queue"]
    ([7], [60], [4], ('Q1',))
    >>> folder.cleanup()
    """
    text = read_text(path, Format.GWF)
    lines = parse_lines("\n".join(map(_as_swf, text.split("\n"))).encode())
    if not len(lines.line):
        raise WorkloadError(f"{path}: lines of {FIELD_COUNT} fields needed, found none")
    workload = swf_workload(path, lines, size=size, machine_size=machine_size, strict=strict)
    name = workload.name.removesuffix(".gwf")
    return replace(workload, name=name, header={**workload.header, UNREAD: ", ".join(OTHER_FIELDS)})


def _as_swf(line: str) -> str:
    """Return a line as one of the Standard Workload Format."""
    if line.lstrip().startswith("#"):
        return f";{line.lstrip().lstrip('#')}"
    fields = line.split()
    if len(fields) < FIELDS_IN_COMMON + 2:
        return line  # too short there as well
    return " ".join([*fields[:FIELDS_IN_COMMON], "-1", "-1"])
