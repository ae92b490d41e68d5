"""Engine for the jobs of a Slurm cluster, whose workers are those of Dask."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine.dask import LOOPBACK, NO_PAGES, Dask
from hpcsimkit.errors import UsageError, require_packages
from hpcsimkit.io.units import memory_bytes

if TYPE_CHECKING:
    from distributed import Security


class Slurm(Dask):
    """Executes tasks in jobs of Slurm, which are submitted from this machine and replaced when they end.

    The workers show a certificate, made for this run, whose key is in a file of the working directory (or of
    the ``shared-temp-directory`` of dask-jobqueue) that only the user can read, until the run ends.

    Parameters
    ----------
    workers : int
        Number of workers, 1 or more; each performs one task at a time.
    partition : str, optional
        Partition of the jobs; by default that of the configuration of dask-jobqueue, else of Slurm.
    time : str, optional
        Time limit of a job in the notation of Slurm, which has to exceed the time of the longest task; by
        default that of the configuration of dask-jobqueue, else 30 minutes.
    memory : str
        Memory of a job. Default: 4 GiB for each core.
    cores : int
        Number of cores of a job, and of workers in it. Default: 1.
    logs : str, optional
        Path of a folder for the output of the jobs; by default it is discarded.
    """

    def __init__(
        self,
        workers: int,
        *,
        partition: str | None = None,
        time: str | None = None,
        memory: str | None = None,
        cores: int = 1,
        logs: str | None = None,
    ) -> None:
        super().__init__(workers)
        self.partition = partition
        self.time = time
        self.memory = f"{4 * cores} GiB" if memory is None else memory
        self.cores = cores
        self.logs = logs

    @contextmanager
    def _started(self, workers: int, security: Security) -> Iterator[Any]:
        """Start a scheduler in this process, and submit the jobs of the workers."""
        require_packages("this engine", "cluster", "dask_jobqueue")
        if shutil.which("sbatch") is None:
            raise UsageError("the engine slurm submits jobs with sbatch, which is not on this machine")
        import dask
        from distributed.utils import get_ip

        cluster_class = _cluster_class()  # its import adds the section to the configuration
        configured = dask.config.get("jobqueue.slurm")
        options = {"dashboard": False, "dashboard_address": LOOPBACK, **configured["scheduler-options"]}
        if not configured["interface"] and options.keys().isdisjoint(("host", "interface")):
            options["host"] = get_ip()  # the address that the workers are told, and no other
        with cluster_class(
            queue=self.partition,
            walltime=self.time,
            memory=f"{memory_bytes(self.memory)} B",
            cores=self.cores,
            processes=self.cores,
            job_name="hpcsimkit",
            log_directory=self.logs,
            job_extra_directives=["--output=/dev/null"] if self.logs is None else [],
            scheduler_options=options,
            security=security,
            shared_temp_directory=configured["shared-temp-directory"] or str(Path.cwd()),  # for the key
            worker_extra_args=[*configured["worker-extra-args"], "--dashboard-address", LOOPBACK],
            job_script_prologue=[*configured["job-script-prologue"], *map(_exported, NO_PAGES)],
            silence_logs="critical",
        ) as cluster:
            _check(cluster.job_script())
            cluster.adapt(minimum=workers, maximum=workers)  # unlike scale, it replaces jobs that end
            yield cluster


def _cluster_class() -> Any:
    """Return the class of Slurm clusters of dask-jobqueue, whose import replaces the handler of Ctrl-C."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue import SLURMCluster
    finally:
        signal.signal(signal.SIGINT, handler)
    return SLURMCluster


def _exported(setting: str) -> str:
    """Return the line of a script by which a setting of Dask is an empty list for the workers."""
    return f"export DASK_{setting.upper().replace('.', '__')}='[]'"


def _check(script: str) -> None:
    """Raise an error if Slurm would refuse a job."""
    test = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True)
    if test.returncode:
        reason = test.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise UsageError(f"Slurm refuses the jobs of the workers: {reason[0]}")
