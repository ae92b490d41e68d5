"""Engine for the workers of Dask: processes of this machine, or of a cluster with a Dask scheduler."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine import dask_worker
from hpcsimkit.engine.code_version import code_version
from hpcsimkit.engine.dask_worker import Origin, attempt
from hpcsimkit.engine.engines import ATTEMPTS, Engine, Failed, Work
from hpcsimkit.engine.task import Task
from hpcsimkit.engine.user_code import Consents
from hpcsimkit.engine.waiting import Waiting
from hpcsimkit.errors import HpcsimkitError, UsageError, require_packages

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Dask"]

SECONDS_TO_ANSWER = 5
"""Time in which a scheduler has to answer [s]."""


class Dask(Engine):
    """Executes tasks on workers of Dask, which use the same folders as this process.

    A worker that dies loses only its own task, which another one attempts once more; of a scheduler that runs
    already, the setting ``allowed-failures`` limits the attempts. Tasks are cancelled with this process.

    Parameters
    ----------
    cluster : int or str
        Number of worker processes to start on this machine, 1 or more; or address of a scheduler, such as
        ``"tcp://login1:8786"``, whose workers have one thread each.
    """

    def __init__(self, cluster: int | str) -> None:
        self.cluster = cluster

    @cached_property
    def workers(self) -> int:
        """Number of workers."""
        if isinstance(self.cluster, int):
            return self.cluster
        with self._connected(1) as client:
            return len(client.nthreads())

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`.

        Raises
        ------
        UsageError
            The scheduler does not answer, or a worker cannot be used.
        HpcsimkitError
            The connection to the scheduler was lost.
        """
        if not tasks:
            return
        with self._connected(len(tasks)) as client:
            submission = _Submission(client, tasks, work)
            waiting = Waiting(tasks, failed)
            while True:
                while submission.has_room(self.workers) and (task := waiting.next()) is not None:
                    submission.submit(task)
                if not submission.futures:
                    return
                task, message = submission.messages.get()
                if isinstance(message, int):
                    tell(task.name, message)
                    continue
                if client.status != "running":
                    raise HpcsimkitError("the connection to the Dask scheduler was lost")
                if submission.futures.pop(task.name, None) is None:
                    continue  # repeated, since its worker died at its end
                if message is None:
                    waiting.complete(task)
                else:
                    waiting.fail(task, message)

    @contextmanager
    def _connected(self, tasks: int) -> Iterator[Client]:
        """Connect to the scheduler, or start one; its workers are checked."""
        require_packages("this engine", "cluster", "distributed")
        import dask

        silent = dict.fromkeys(("distributed", "distributed.client"), "critical")
        dask.config.set(logging=silent)  # read by the first import: errors are told in one line
        from distributed import Client

        own = {
            "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
            "distributed.admin.large-graph-warning-threshold": "1 TB",
        }
        with ExitStack() as stack:
            stack.enter_context(dask.config.set(own))
            scheduler = self.cluster
            if isinstance(scheduler, int):
                scheduler = stack.enter_context(self._started(min(scheduler, tasks)))
            else:
                _check_answer(scheduler)
            client = stack.enter_context(Client(scheduler, set_as_default=False))
            self._check(client)
            yield client

    def _started(self, workers: int) -> AbstractContextManager[Any]:
        """Start worker processes on this machine, and a scheduler in this process."""
        from distributed import LocalCluster

        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            preload=[dask_worker.__name__],
        )

    def _check(self, client: Client) -> None:
        """Raise an error if a scheduler has no workers, or one that cannot be used."""
        if isinstance(self.cluster, str):
            with suppress(TimeoutError):  # one may be starting anew
                client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        threads = client.nthreads()
        if isinstance(self.cluster, str) and not threads:
            raise UsageError(f"{self.cluster}: this Dask scheduler has no workers; `dask worker` starts them")
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        kit = f"hpcsimkit {code_version([])}"
        versions = client.get_versions()["workers"]
        kits = client.run(code_version, [], on_error="return")
        for worker in threads.keys() & versions.keys() & kits.keys():  # others have joined or left since
            theirs = ".".join(versions[worker]["host"]["python"].split(".")[:2])
            if theirs != python:
                raise UsageError(f"worker {worker} has Python {theirs}; this process has {python}")
            found = kits[worker]
            if isinstance(found, Exception):
                raise UsageError(f"worker {worker} has no {kit}: {found}")
            if f"hpcsimkit {found}" != kit:
                raise UsageError(f"worker {worker} has hpcsimkit {found}; this process has {kit}")
            if threads[worker] > 1:
                raise UsageError(
                    f"worker {worker} has {threads[worker]} threads; one is needed: --nthreads 1"
                )


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
        reason = f": {error}" if isinstance(error, ValueError) else ""
        raise UsageError(f"{address}: no Dask scheduler answers there{reason}")


class _Submission:
    """Tasks submitted to a scheduler, and messages on them: progress, or at the end an error or None."""

    def __init__(self, client: Client, tasks: Sequence[Task], work: Work) -> None:
        self.client = client
        self.origin = Origin.of(tasks)
        self.tasks = {task.name: task for task in tasks}
        self.futures: dict[str, Future] = {}
        self.messages: SimpleQueue[tuple[Task, int | Exception | None]] = SimpleQueue()
        # A task of its own: Dask makes it again if the worker that holds it dies.
        self.payload = client.submit(bytes, pickle.dumps((Consents(), work, self.tasks)), key=self.origin.run)
        client.subscribe_topic(self.origin.run, self._hear)

    def _hear(self, event: Any) -> None:
        """Receive a message of a worker."""
        name, message = event[1]
        self.messages.put((self.tasks[name], message if isinstance(message, int) else pickle.loads(message)))

    def has_room(self, workers: int) -> bool:
        """Return whether a worker is free; one that has several tasks when it dies would lose them all."""
        return len(self.futures) < workers

    def submit(self, task: Task) -> None:
        """Submit a task."""
        key = f"{self.origin.run}-{task.name}"
        future = self.client.submit(attempt, self.payload, self.origin, task.name, key=key, pure=False)
        self.futures[task.name] = future
        future.add_done_callback(partial(self._end, task))

    def _end(self, task: Task, future: Future) -> None:
        """Receive the error of a task without a message at its end, mostly for the death of its workers."""
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            return
        error = future.exception() if future.status == "error" else None
        line = f"{type(error).__name__}: {error}"
        if isinstance(error, KilledWorker):
            line = f"its worker ended, {error.allowed_failures + 1} times; is there enough memory?"
        self.messages.put((task, HpcsimkitError(f"{task.label}: {line}")))
