"""Reader for workloads of the simulator Batsim, in JSON; see https://batsim.readthedocs.io."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import whole
from hpcsimkit.workloads.readers.json_text import json_of
from hpcsimkit.workloads.readers.sieve import Sieve
from hpcsimkit.workloads.readers.tables import parse, shown, table_of_records

__all__ = ["read_batsim"]

DELAYS = ("delay",)
SEQUENCES = ("composed", "sequential_composition", "msg_par_hg_composition")
MOST_LEVELS = 20
LONGEST = 10**15
"""Times [s] are shorter, as in other logs: longer ones do not add up in 64 bits."""


def read_batsim(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read a workload of Batsim, plain or compressed.

    - ``nodes`` is the number of resources of a job (``res``), and ``machine_size`` that of the platform
      (``nb_res``). ``requested_time`` is ``walltime``, else the run time.
    - The run time is that of the job's profile, if it is a delay or a sequence of delays. Other profiles have
      a duration on a platform only; such jobs are skipped and counted by the type of their profile.
    - Times are rounded to seconds.

    Parameters
    ----------
    path : str or path
        Path of the workload.
    strict : bool
        Whether jobs that would be skipped are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such workload, or has no usable job; or, if `strict`, any job is
        unusable.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "w.json"
    >>> _ = log.write_text('{"nb_res": 4, "jobs": [{"id": 1, "subtime": 5, "walltime": 90, "res": 2, '
    ...     '"profile": "d"}], "profiles": {"d": {"type": "delay", "delay": 60}}}')
    >>> w = read_batsim(log)
    >>> w, w.run_time.tolist(), w.nodes.tolist()
    (Workload('w', 1 jobs, machine_size=4), [60], [2])
    >>> folder.cleanup()
    """
    content = json_of(path, Format.BATSIM)
    jobs, profiles = content.get("jobs"), content.get("profiles", {})
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise WorkloadError(f"{path}: a workload of Batsim needs lists of jobs and profiles, found neither")
    sieve = Sieve(table_of_records(path, _records(jobs, profiles)), strict)
    cells = sieve.table.columns
    for name in dict.fromkeys(cells["other"]):
        if name:
            other = parse(cells["other"], lambda text, name=name: int(text == name))[0] > 0  # type: ignore[misc]
            sieve.leave_out(
                other, f"profile without a duration: {name}", "a profile that is a delay", cells["other"]
            )
    submit = sieve.parse("subtime", _seconds)
    run = sieve.parse("run", _seconds)
    limit = sieve.parse("walltime", lambda text: _seconds(text) if text else UNKNOWN)
    columns: dict[str, ArrayLike] = dict(sieve.times(submit, run, limit))
    sieve.note_rounding(("subtime", "run", "walltime"))
    nodes = sieve.parse("res", whole)
    sieve.leave_out(nodes < 1, "no resources", "at least 1 resource", nodes)
    sieve.leave_out(nodes > 2**31, "resources beyond 2^31", "up to 2^31 resources", nodes)
    labels: dict[str, tuple[str, ...]] = {}
    columns["executable"], labels["executable"] = sieve.labelled(cells["profile"])
    sieve.used_before(cells["id"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("id")
    size = content.get("nb_res")
    known = isinstance(size, int) and not isinstance(size, bool) and 0 < size < 2**31
    return sieve.workload({**columns, "nodes": nodes}, labels=labels, machine_size=size if known else None)


def _records(jobs: list[Any], profiles: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    """Yield the number and the cells of each job; of an entry that is none, what was found."""
    known: dict[str, tuple[float | None, str]] = {}
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, dict):
            yield number, shown(str(job))
            continue
        profile = str(job.get("profile", ""))
        if profile not in known:
            known[profile] = _duration(profiles, profile, 0)
        seconds, other = known[profile]
        cells = {name: _text(job.get(name)) for name in ("id", "subtime", "walltime", "res")}
        cells["id"] = cells["id"].rpartition("!")[2]
        if cells["walltime"].startswith("-"):
            cells["walltime"] = ""  # no limit
        yield number, cells | {"profile": profile, "run": _text(seconds), "other": other}


def _text(value: object) -> str:
    return "" if value is None else f"{value}"


def _duration(profiles: Mapping[str, Any], name: str, level: int) -> tuple[float | None, str]:
    """Return the duration of a profile [s], or None with the type that has none."""
    profile = profiles.get(name)
    if not isinstance(profile, dict) or level > MOST_LEVELS:
        return None, "unknown profile"
    kind = str(profile.get("type", "no type"))
    if kind in DELAYS and _is_number(profile.get("delay")):
        return float(profile["delay"]), ""
    parts = profile.get("seq")
    if kind in SEQUENCES and isinstance(parts, list) and len(parts) < 10_000:
        lengths = [_duration(profiles, str(part), level + 1) for part in dict.fromkeys(map(str, parts))]
        by_name = dict(zip(dict.fromkeys(map(str, parts)), lengths, strict=True))
        repeat = profile.get("repeat", profile.get("nb", 1))
        if _is_number(repeat) and all(length is not None for length, _ in lengths):
            return sum(by_name[str(part)][0] or 0.0 for part in parts) * float(repeat or 0), ""
        return None, next((other for _, other in lengths if other), kind)
    return None, shown(kind)[1:-1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12


def _seconds(text: str) -> int:
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        seconds = float(text)
        if not abs(seconds) < LONGEST:  # nor a number
            raise ValueError
        return int(np.rint(seconds))
    except ValueError:
        raise UsageError(f"a time in seconds needed, found {shown(text)}") from None
