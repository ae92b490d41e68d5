"""Engines by name, as on the command line."""

from __future__ import annotations

import re
from typing import Any

from hpcsimkit.engine.engines import Engine, engine_of
from hpcsimkit.errors import UsageError

FORMS = ("processes:N", "dask:N", "dask:tls://HOST:PORT", "dask-insecure:tcp://HOST:PORT", "slurm:N")
"""Forms of the names; N is the number of workers, 1 or more."""

NUMBER = re.compile(r"[1-9][0-9]{0,5}")


def engine_named(name: str, **of_slurm: Any) -> Engine:
    """Return the engine of a name.

    >>> engine_named("processes:4").workers, engine_named("dask:tls://login1:8786").cluster
    (4, 'tls://login1:8786')
    >>> engine_named("dusk:4")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown engine 'dusk:4'; known: processes:N, dask:N, \
dask:tls://HOST:PORT, dask-insecure:tcp://HOST:PORT, slurm:N
    """
    from hpcsimkit.engine.dask import Dask, check_address  # loads asyncio, which hardly any command needs
    from hpcsimkit.engine.slurm import Slurm

    kind, _, where = name.partition(":")
    workers = int(where) if NUMBER.fullmatch(where) else None
    if kind in ("dask", "dask-insecure") and "://" in where:
        insecure = kind == "dask-insecure"
        check_address(where, insecure=insecure)
        return Dask(where, insecure=insecure)
    if kind == "dask" and workers is not None:
        return Dask(workers)
    if kind == "slurm" and workers is not None:
        return Slurm(workers, **of_slurm)
    if kind == "processes" and workers is not None:
        return engine_of(workers)
    raise UsageError(f"unknown engine {name!r}; known: {', '.join(FORMS)}")
