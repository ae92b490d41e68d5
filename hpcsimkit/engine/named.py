"""Engines by name, as on the command line."""

from __future__ import annotations

import re
from typing import Any

from hpcsimkit.engine.engines import Engine, engine_of
from hpcsimkit.errors import UsageError

__all__ = ["FORMS", "engine_named"]

FORMS = ("processes:N", "dask:N", "dask:tcp://HOST:PORT", "slurm:N")
"""Forms of the names; N is the number of workers, 1 or more."""

NUMBER = re.compile(r"[1-9][0-9]{0,5}")


def engine_named(name: str, **of_slurm: Any) -> Engine:
    """Return the engine of a name.

    Parameters
    ----------
    name : str
        Name in one of the forms of `FORMS`.
    **of_slurm
        Parameters of :class:`~hpcsimkit.engine.slurm.Slurm`, used by that engine only.

    Raises
    ------
    UsageError
        There is no such engine.

    Examples
    --------
    >>> engine_named("processes:4").workers, engine_named("dask:tcp://login1:8786").cluster
    (4, 'tcp://login1:8786')
    >>> engine_named("dusk:4")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown engine 'dusk:4'; known: processes:N, dask:N, \
dask:tcp://HOST:PORT, slurm:N
    """
    from hpcsimkit.engine.dask import Dask  # loads asyncio, which hardly any command needs
    from hpcsimkit.engine.slurm import Slurm

    kind, _, where = name.partition(":")
    workers = int(where) if NUMBER.fullmatch(where) else None
    if kind == "dask" and "://" in where:
        return Dask(where)
    if kind == "dask" and workers is not None:
        return Dask(workers)
    if kind == "slurm" and workers is not None:
        return Slurm(workers, **of_slurm)
    if kind == "processes" and workers is not None:
        return engine_of(workers)
    raise UsageError(f"unknown engine {name!r}; known: {', '.join(FORMS)}")
