"""A user of the same machine who is not the owner of a run reaches nothing of its scheduler and workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.engine.dask import Dask
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.named import engine_named
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.slurm import Slurm
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from tests.engine.private_slurm import PROGRAMS, missing_programs, private_slurm
from tests.engine.steps import Step

REASON = "needs the extra [cluster]: pip install 'hpcsimkit[cluster]'"
distributed = pytest.importorskip("distributed", reason=REASON)
pytest.importorskip("cryptography", reason=REASON)
psutil = pytest.importorskip("psutil", reason=REASON)


def listening() -> Iterator[tuple[str, int]]:
    """Addresses that this process and its workers listen on; daemons of Slurm start those of its jobs."""
    own = psutil.Process()
    programs = [own, *own.children(recursive=True), *filter(is_worker, psutil.process_iter())]
    for process in programs:
        if process.name() in PROGRAMS:
            continue
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                yield tuple(connection.laddr)


def is_worker(process: Any) -> bool:
    """Whether a process is a worker in a job of this test's Slurm."""
    try:
        return (
            "dask" in " ".join(process.cmdline())
            and os.environ.get("SLURM_CONF") in process.environ().values()
        )
    except psutil.Error:
        return False


async def answers(scheme: str, host: str, port: int, security: Any) -> bool:
    """Whether a scheduler or worker answers to a stranger."""
    arguments = {**security.get_connection_args("client"), "require_encryption": False}
    address = f"{scheme}://{host}:{port}"
    try:
        async with distributed.rpc(address, connection_args=arguments, timeout=2) as other:
            await asyncio.wait_for(other.identity(), 2)
    except (OSError, ValueError):  # the latter where TLS meets a plain port
        return False
    return True


def page(host: str, port: int, path: str) -> int | None:
    """Status of the answer to a request for a page; None if the port does not speak HTTP."""
    connection = HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def found_by_a_stranger(engine: Engine, folder: Path) -> dict[str, Any]:
    """Who listens while a command runs, and who answers to a stranger, whether he speaks TLS or not."""
    found: dict[str, Any] = {}

    async def ask(addresses: list[tuple[str, int]]) -> list[bool]:
        plain, other = distributed.Security(), distributed.Security.temporary()
        tries = [answers("tcp", *each, plain) for each in addresses]
        tries += [answers("tls", *each, other) for each in addresses]
        return await asyncio.gather(*tries)

    def tell(name: str, done: int) -> None:
        if name == "a" and done == 0:
            found["addresses"] = sorted(set(listening()))
            found["answers"] = asyncio.run(ask(found["addresses"]))
            found["pages"] = {
                page(*address, path)
                for address in found["addresses"]
                for path in ("/info/main/workers.html", "/health")
            }

    perform([Step("a"), Step("b")], Store(folder), engine, tell=tell)
    return found


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    """By the scheduler and the workers of a running command."""
    found = found_by_a_stranger(Dask(2), tmp_path)
    assert len(found["addresses"]) >= 4, "a scheduler, workers, and those that start them"
    assert {host for host, _ in found["addresses"]} == {"127.0.0.1"}
    assert found["answers"] == [False] * 2 * len(found["addresses"])
    assert found["pages"] <= {None, 404}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_programs()), reason="needs Slurm: apt-get install slurm-wlm munge")
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="starts the daemons of Slurm as root")
def test_a_stranger_is_refused_by_jobs_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """Hosts of a cluster have to reach the scheduler, so that it listens on one address of this host, not on all."""
    pytest.importorskip("dask_jobqueue", reason=REASON)
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm").mkdir()
    with private_slurm(tmp_path / "slurm") as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        found = found_by_a_stranger(Slurm(2, partition="short", memory="1 GB"), tmp_path)
    assert len(found["addresses"]) >= 2, "a scheduler and workers"
    hosts = {host for host, _ in found["addresses"]}
    assert hosts <= {distributed.utils.get_ip(), "127.0.0.1"} and not hosts & {"0.0.0.0", "::"}
    assert found["answers"] == [False] * 2 * len(found["addresses"])
    assert found["pages"] <= {None, 404}


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "ws://127.0.0.1:9"])
def test_a_scheduler_without_tls_needs_a_word(address: str) -> None:
    line = f"^{address}: without TLS, all who reach this scheduler can run code as you; tls:// is needed, or "
    for engine in (lambda: Dask(address).workers, lambda: engine_named(f"dask:{address}")):
        with pytest.raises(UsageError, match=line):
            engine()
    accepted = engine_named(f"dask-insecure:{address}")
    assert isinstance(accepted, Dask)
    assert accepted.insecure


def test_tls_without_certificates_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^tls://127\.0\.0\.1:9: no Dask scheduler answers there: .*TLS"):
        _ = Dask("tls://127.0.0.1:9").workers
