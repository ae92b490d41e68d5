"""Single parts by name: machines, readers of logs, metrics, placements, locality models, classes."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts.registry import only_stage, policy_named
from hpcsimkit.experiments.parts.trust import Trust, importing
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.io.files import is_file
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.policy import Order, Placement
from hpcsimkit.kernel.service_time import ServiceTime, as_service_time
from hpcsimkit.results.metrics import METRICS, Metric
from hpcsimkit.workloads.readers.logs import READERS, LogFormat

MACHINES: Catalogue[Any] = Catalogue(
    "machines",
    "hpcsimkit.machines",
    {"nine-machines": "hpcsimkit.agents.masked_ppo.machines:NINE_MACHINES"},
)
"""Machines by name: objects, or functions without required arguments that return them."""

NAME = re.compile(r".+:[^\W\d]\w*")


def _named(known: Catalogue[Any], name: str, folder: str | None, trust: Trust) -> Any:
    """Return an object of a catalogue, or the one of ``module:Name`` or ``file.py:Name``."""
    return trust.imported(name, folder) if ":" in name else known.named(name)


def class_named(
    known: Catalogue[Any], base: type[Any], name: str, folder: str | None, trust: Trust
) -> type[Any]:
    """Return the class of a name in a catalogue, or of code, which needs a base class."""
    found = _named(known, name, folder, trust)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"{name!r} needs a subclass of {base.__name__}, found {found!r}")
    return found


def is_name(text: object, folder: Path | None = None) -> bool:
    """Return whether a text is a name of machines, and not the path of a file.

    >>> is_name("nine-machines"), is_name("mine.py:cluster"), is_name("machines.toml")
    (True, True, False)
    """
    if not isinstance(text, str) or is_file((folder or Path()) / text):
        return False
    return text in MACHINES.places or NAME.fullmatch(text) is not None or text in MACHINES


def machines_named(name: str, folder: str | None, trust: Trust) -> Machines:
    """Return the machines of a name in `MACHINES`, or of code: machines, or a function that returns them.

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
    """Return the format of logs of a name.

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
    """Return the metric of a name.

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


def placement_of(name: str, folder: str | None, trust: Trust) -> Placement:
    """Return the placement of a name.

    >>> placement_of("best-fit", None, Trust(()))
    BestFit()
    """
    from hpcsimkit.policies.catalogue import CATALOGUE

    placement: Placement | None = only_stage(policy_named(name, folder, trust), "placement")
    if placement is None:
        known = ", ".join(CATALOGUE["placement"])
        raise UsageError(f"{name!r} is no placement alone; placements are {known}")
    return placement


def locality_of(name: str, folder: str | None, trust: Trust) -> ServiceTime:
    """Return the locality model of a name in :data:`hpcsimkit.kernel.locality.LOCALITIES`, or of code.

    Code is a :class:`~hpcsimkit.kernel.service_time.ServiceTime` (a class without required arguments, or an
    object) or a function ``penalty(job, seconds, allocation, cluster)``.

    >>> locality_of("sierra", None, Trust(()))
    KindLocality(compute_spread=0.1, network_crowded=2.0)
    """
    if name in LOCALITIES:
        return LOCALITIES[name]
    if ":" not in name:
        known = ", ".join(LOCALITIES)
        raise UsageError(f"unknown locality {name!r}; known are {known}, and your own: module:name")
    found = trust.imported(name, folder)
    if isinstance(found, type) and issubclass(found, ServiceTime):
        try:
            return found()
        except TypeError as error:
            raise UsageError(f"{name!r} cannot be made: {error}") from None
    model = as_service_time(found) if isinstance(found, ServiceTime) or inspect.isfunction(found) else None
    if model is None:
        raise UsageError(f"{name!r} needs a ServiceTime or a function, found a {type(found).__name__}")
    return model


def with_orders(partitions: Partitions, folder: str | None, trust: Trust) -> Partitions:
    """Return partitions with the orders that they name.

    >>> with_orders(Partitions([Partition("gpu", nodes=2, order="sjf")]), None, Trust(())).parts[0].order
    SJF()
    """
    parts = [
        replace(part, order=_order_of(part, folder, trust)) if isinstance(part.order, str) else part
        for part in partitions.parts
    ]
    return replace(partitions, parts=parts)


def _order_of(part: Partition, folder: str | None, trust: Trust) -> Order:
    try:
        order: Order | None = only_stage(policy_named(part.order, folder, trust), "order")
    except UsageError as error:
        raise UsageError(f"partition {part.name!r}: order: {error}") from None
    if order is None:
        raise UsageError(f"partition {part.name!r}: order needs the name of an order, found {part.order!r}")
    return order
