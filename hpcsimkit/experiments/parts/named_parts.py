"""Machines, readers of logs and metrics by name: those of the kit, of plug-ins, and user-defined ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts.trust import Trust, importing
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.io.files import is_file
from hpcsimkit.results.metrics import METRICS, Metric
from hpcsimkit.workloads.readers.logs import READERS, LogFormat

__all__ = ["MACHINES", "is_name", "known_metrics", "machines_named", "metric_named", "reader_named"]

MACHINES: Catalogue[Any] = Catalogue(
    "machines",
    "hpcsimkit.machines",
    {"nine-machines": "hpcsimkit.agents.masked_ppo.machines:NINE_MACHINES"},
)
"""Machines by name: objects, or functions without required arguments that return them."""

NAME = re.compile(r".+:[^\W\d]\w*")


def is_name(text: object, folder: Path | None = None) -> bool:
    """Return whether a text is a name of machines, and not the path of a file.

    >>> is_name("nine-machines"), is_name("mine.py:cluster"), is_name("machines.toml")
    (True, True, False)
    """
    if not isinstance(text, str) or is_file((folder or Path()) / text):
        return False
    return text in MACHINES.places or NAME.fullmatch(text) is not None or text in MACHINES


def machines_named(name: str, folder: str | None, trust: Trust) -> Machines:
    """Return the machines of a name.

    Parameters
    ----------
    name : str
        Name in `MACHINES`, or ``module:Name`` or ``file.py:Name`` of :class:`Machines
        <hpcsimkit.cluster.machines.Machines>`, or of a function without required arguments that returns them.
    folder : str or None
        Additional search folder for modules besides the current one.
    trust : Trust
        Permission to import code.

    Raises
    ------
    UsageError
        The name is unknown, may not be imported, or refers to another kind of object.

    Examples
    --------
    >>> len(machines_named("nine-machines", None, Trust(())).names)
    9
    """
    found = _named(MACHINES, name, folder, trust)
    if callable(found):
        found = importing(found, name, "made")
    if not isinstance(found, Machines):
        raise UsageError(f"{name!r} needs Machines, or a function that returns them, found {found!r}")
    return found


def reader_named(name: str, folder: str | None, trust: Trust) -> LogFormat:
    """Return the format of logs of a name; parameters and errors are those of :func:`machines_named`.

    The name is one of :data:`~hpcsimkit.workloads.readers.logs.READERS`, or refers to a
    :class:`~hpcsimkit.workloads.readers.logs.LogFormat` or a function ``read(path)`` that returns a workload.

    >>> reader_named("swf", None, Trust(())).name
    'swf'
    """
    found = _named(READERS, name, folder, trust)
    if isinstance(found, LogFormat):
        return found
    if not callable(found):
        raise UsageError(f"{name!r} needs a LogFormat or a function that reads a log, found {found!r}")
    return LogFormat(name, found)


def metric_named(name: str, folder: str | None, trust: Trust) -> Metric:
    """Return the metric of a name; parameters and errors are those of :func:`machines_named`.

    The name is one of :data:`~hpcsimkit.results.metrics.METRICS`, or refers to a
    :class:`~hpcsimkit.results.metrics.Metric`, which is then in that table under this name.

    >>> metric_named("makespan", None, Trust(())).unit
    's'
    """
    if ":" in name:
        METRICS.add(name, trust.imported(name, folder))
    return METRICS.named(name)


def known_metrics(names: list[str] | None) -> list[str] | None:
    """Return names of metrics, or raise a `ValueError` if one is unknown; code is not imported.

    >>> known_metrics(["makespan", "mine.py:Best"])
    ['makespan', 'mine.py:Best']
    """
    for name in names or ():
        if ":" not in name and name not in METRICS:
            raise ValueError(f"unknown metric {name!r}{nearest(name, METRICS)}")
    return names


def _named(known: Catalogue[Any], name: str, folder: str | None, trust: Trust) -> Any:
    return trust.imported(name, folder) if ":" in name else known.named(name)
