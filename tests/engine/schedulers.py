"""Schedulers of Dask that run already, with TLS, as a user would start them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hpcsimkit.engine import dask as engine
from hpcsimkit.engine.dask import Dask
from tests.waiting import PATIENCE

__all__ = ["dask_scheduler"]


@contextmanager
def dask_scheduler(workers: int) -> Iterator[Dask]:
    """Start a scheduler and workers, with the certificates in the configuration of Dask; yields the engine."""
    import dask
    from distributed import LocalCluster, Security

    security = Security.temporary()
    certificates = {"distributed.comm.tls.ca-file": security.tls_ca_file}
    for role in ("client", "scheduler", "worker"):
        for part in ("cert", "key"):
            content = getattr(security, f"tls_{role}_{part}")
            certificates[f"distributed.comm.tls.{role}.{part}"] = content
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(certificates),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            security=security,
            memory_limit=0,
            silence_logs=50,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
    ):
        patch.setattr(engine, "SECONDS_TO_ANSWER", PATIENCE)  # all workers may be starting anew
        yield Dask(cluster.scheduler_address)
