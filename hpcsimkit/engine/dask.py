"""Engine for the workers of Dask: processes of this machine, or of a cluster with a Dask scheduler."""

from __future__ import annotations

import asyncio
import logging
import pickle
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcsimkit.engine import dask_worker
from hpcsimkit.engine.code_version import code_version
from hpcsimkit.engine.dask_worker import Origin, attempt
from hpcsimkit.engine.engines import Engine, Failed, Work
from hpcsimkit.engine.pool import Message, Pool, WorkerLostError, execute
from hpcsimkit.engine.task import Task
from hpcsimkit.engine.user_code import Consents
from hpcsimkit.errors import HpcsimkitError, UsageError, require_packages

if TYPE_CHECKING:
    from distributed import Client, Future, Security

ENCRYPTED = "tls://"
"""Beginning of the address of a scheduler that knows its users by their certificates."""

LOOPBACK = "127.0.0.1:0"
"""Address of an HTTP server that only this machine reaches; Dask always starts one."""

NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Settings of Dask by which its HTTP servers show nothing: any user of the machine could read it."""

TIME_TO_RESTART = "1 day"
"""Time after which Dask gives up a worker of this machine that is starting anew; by default, 15 s."""

SECONDS_TO_ANSWER = 5
"""Time in which a scheduler has to answer [s]."""

SECONDS_BETWEEN_LOOKS = 0.5
"""Interval between looks for workers that have joined or died [s]."""


def check_address(address: str, *, insecure: bool) -> None:
    """Raise an error if a scheduler would take orders from anyone, unless this is accepted.

    >>> check_address("tls://login1:8786", insecure=False)
    >>> check_address("tcp://login1:8786", insecure=False)
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: tcp://login1:8786: without TLS, all who reach this scheduler can run code \
as you; tls:// is needed, or dask-insecure:tcp://login1:8786 to accept that
    """
    if not insecure and not address.startswith(ENCRYPTED):
        raise UsageError(
            f"{address}: without TLS, all who reach this scheduler can run code as you; "
            f"{ENCRYPTED} is needed, or dask-insecure:{address} to accept that"
        )


class Dask(Engine):
    """Executes tasks on workers of Dask, which use the same folders as this process.

    A worker that dies loses only its own task, which another one attempts once more. Tasks are cancelled with
    this process. The scheduler and the workers that it starts know each other by a certificate in memory,
    made for this run, and listen on the loopback interface.

    Parameters
    ----------
    cluster : int or str
        Number of worker processes to start on this machine, 1 or more; or address of a scheduler, such as
        ``"tls://login1:8786"``, whose workers have one thread each. Its certificates are those of the
        configuration of Dask.
    insecure : bool
        Whether a scheduler without TLS is accepted; all who reach it can run code as its user. Default:
        False.
    """

    def __init__(self, cluster: int | str, *, insecure: bool = False) -> None:
        self.cluster = cluster
        self.insecure = insecure

    @cached_property
    def workers(self) -> int:
        """Number of workers."""
        if isinstance(self.cluster, int):
            return self.cluster
        with self._connected(1) as client:
            found = client.nthreads()
            _check(client, found)
            return len(found)

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`.

        A lost scheduler is an error of the run, not of a task.
        """
        if not tasks:
            return
        with self._connected(len(tasks)) as client:
            execute(_DaskPool(client, tasks, work), tasks, tell, failed)

    @contextmanager
    def _connected(self, tasks: int) -> Iterator[Client]:
        """Connect to the scheduler, or start one."""
        require_packages("this engine", "cluster", "distributed", "cryptography")
        import dask

        silent = dict.fromkeys(("distributed", "distributed.client"), "critical")
        dask.config.set(logging=silent)  # read by the first import: errors are told in one line
        from distributed import Client, Security

        with ExitStack() as stack:
            if isinstance(self.cluster, int):
                # Whether a task is attempted again is decided by the engine.
                stack.enter_context(
                    dask.config.set({"distributed.scheduler.allowed-failures": 0, **NO_PAGES})
                )
                security = Security.temporary()
                cluster = stack.enter_context(self._started(min(self.cluster, tasks), security))
                client = stack.enter_context(Client(cluster, security=security, set_as_default=False))
            else:
                check_address(self.cluster, insecure=self.insecure)
                _check_answer(self.cluster)
                client = stack.enter_context(Client(self.cluster, set_as_default=False))
                with suppress(TimeoutError):  # a worker may be starting anew
                    client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
                if not client.nthreads():
                    raise UsageError(
                        f"{self.cluster}: this Dask scheduler has no workers; `dask worker` starts them"
                    )
            yield client

    @contextmanager
    def _started(self, workers: int, security: Security) -> Iterator[Any]:
        """Start worker processes on this machine, and a scheduler in this process."""
        import dask
        from distributed import LocalCluster

        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": TIME_TO_RESTART}),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=0,
                security=security,
                host="127.0.0.1",
                dashboard_address=LOOPBACK,
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                preload=[dask_worker.__name__],
            ) as cluster,
        ):
            yield cluster


def _check(client: Client, workers: dict[str, int]) -> None:
    """Raise an error if one of these workers, with their numbers of threads, cannot be used."""
    if not workers:
        return
    ours = platform.python_version_tuple()[:2]
    kit = f"hpcsimkit {code_version([])}"
    versions = client.run(platform.python_version_tuple, workers=list(workers), on_error="return")
    kits = client.run(code_version, [], workers=list(workers), on_error="return")
    for worker in client.nthreads().keys() & versions.keys() & kits.keys():  # others have left since
        version, found = versions[worker], kits[worker]
        if isinstance(version, OSError) or isinstance(found, OSError):  # it is leaving
            continue
        if version[:2] != ours:
            raise UsageError(
                f"worker {worker} has Python {'.'.join(version[:2])}; this process has {'.'.join(ours)}"
            )
        if isinstance(found, Exception):
            raise UsageError(f"worker {worker} has no {kit}: {found}")
        if f"hpcsimkit {found}" != kit:
            raise UsageError(f"worker {worker} has hpcsimkit {found}; this process has {kit}")
        if workers[worker] > 1:
            raise UsageError(f"worker {worker} has {workers[worker]} threads; one is needed: --nthreads 1")


def _check_answer(address: str) -> None:
    """Raise an error if no scheduler answers at an address; a client would wait much longer for one."""
    from distributed import Security, rpc

    async def ask() -> None:
        connection = Security().get_connection_args("client")
        async with rpc(address, connection_args=connection, timeout=SECONDS_TO_ANSWER) as scheduler:
            await asyncio.wait_for(scheduler.identity(), SECONDS_TO_ANSWER)

    with ThreadPoolExecutor(1) as pool:  # in this thread, a notebook has a loop of its own
        error = pool.submit(asyncio.run, ask()).exception()
    if error is not None:
        reason = f": {error}" if isinstance(error, ValueError | TypeError) else ""
        raise UsageError(f"{address}: no Dask scheduler answers there{reason}")


class _Attempt(NamedTuple):
    """Attempt of a worker at a task."""

    task: Task
    worker: str
    future: Future


class _DaskPool(Pool):
    """Workers of a scheduler; each task is submitted to a worker that has no other.

    Left to itself, Dask gives a worker several tasks after the death of others, and counts its own death
    against all of them.
    """

    def __init__(self, client: Client, tasks: Sequence[Task], work: Work) -> None:
        self.client = client
        self.origin = Origin.of(tasks)
        self._tasks = {task.name: task for task in tasks}
        self._pickled = pickle.dumps((Consents(), work, self._tasks))
        self._payloads: dict[str, Future] = {}
        self._idle: list[str] = []
        self._attempts: dict[str, _Attempt] = {}
        self._numbers = count()
        self._present: set[str] | None = None
        self._received: SimpleQueue[tuple[str, int | bytes | WorkerLostError | HpcsimkitError]] = (
            SimpleQueue()
        )
        client.subscribe_topic(self.origin.run, lambda event: self._received.put(tuple(event[1])))
        self._look()

    @property
    def has_room(self) -> bool:
        return bool(self._idle)

    @property
    def busy(self) -> bool:
        return bool(self._attempts)

    def start(self, task: Task) -> None:
        worker = self._idle.pop()
        key = f"{self.origin.run}-{next(self._numbers)}"
        future = self.client.submit(
            attempt, self._payloads[worker], self.origin, task.name, key=key, pure=False, workers=[worker]
        )
        self._attempts[key] = _Attempt(task, worker, future)
        future.add_done_callback(partial(self._end, key))

    def messages(self) -> Iterator[tuple[Task, Message]]:
        if time.monotonic() >= self._next_look:
            self._look()
        try:
            key, message = self._received.get(timeout=SECONDS_BETWEEN_LOOKS)
        except Empty:
            return
        found: Message = pickle.loads(message) if isinstance(message, bytes) else message
        if key not in self._attempts:  # an answer of a worker that was given up
            return
        if isinstance(found, int):
            yield self._attempts[key].task, found
            return
        done = self._attempts.pop(key)
        if isinstance(found, WorkerLostError):
            self._forget(done.worker)
        else:
            self._idle.append(done.worker)
        yield done.task, found

    def _end(self, key: str, future: Future) -> None:
        """Receive the end of an attempt without a message: an error of Dask, or the death of the worker."""
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            return
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, KilledWorker):
            self._received.put((key, DIED))
        else:
            self._received.put((key, HpcsimkitError(f"{type(error).__name__}: {error}")))

    def _look(self) -> None:
        """Notice the workers that have died, and give the tasks to those that have joined."""
        try:
            present = self.client.nthreads()
            for worker in self._payloads.keys() - present.keys():
                self._forget(worker)
            ready = self._ready(present)
            joined = {worker: present[worker] for worker in ready if worker not in self._payloads}
            _check(self.client, joined)
            for worker in joined:
                self._send_tasks(worker)
        except OSError:
            if self.client.status == "running":
                raise
        if self.client.status != "running":
            raise HpcsimkitError("the connection to the Dask scheduler was lost")
        self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS

    def _ready(self, present: dict[str, int]) -> set[str]:
        """Return the workers that may get a task.

        The process that starts a worker gives it up if it dies before this process knows it, so that a worker
        that has just joined gets no task yet.
        """
        from distributed import LocalCluster, Status

        if isinstance(self.client.cluster, LocalCluster):
            nannies = self.client.cluster.workers.values()
            if all(nanny.status in (Status.closed, Status.failed) for nanny in nannies):
                raise HpcsimkitError("the workers of Dask have ended, and cannot be started again")
            return present.keys() & {nanny.worker_address for nanny in nannies}
        seen, self._present = self._present, set(present)
        return self._present if seen is None else self._present & seen

    def _send_tasks(self, worker: str) -> None:
        """Send all tasks to a worker, which may have died meanwhile."""
        try:
            self._payloads[worker] = self.client.scatter(self._pickled, workers=[worker], hash=False)
        except (OSError, KeyError, ValueError):
            if worker in self.client.nthreads():
                raise
        else:
            self._idle.append(worker)

    def _forget(self, worker: str) -> None:
        """Forget a worker that has died; its attempt, if any, ends by this."""
        self._payloads.pop(worker, None)
        if worker in self._idle:
            self._idle.remove(worker)
        for key, each in self._attempts.items():
            if each.worker == worker:
                self._received.put((key, DIED))


DIED = WorkerLostError("its worker ended (out of memory?)")
