"""A Slurm of its own in a folder, with several nodes on this host: packages slurm-wlm and munge of Debian, as root."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tests.waiting import until

__all__ = ["PROGRAMS", "private_slurm"]

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel")

CONFIGURATION = """
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=8000
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=8000
PartitionName=short Nodes=one,two Default=YES MaxTime=60:00 State=UP
"""


@contextmanager
def private_slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start the daemons; yields the environment in which `sbatch` finds them."""
    for name in ("state", "spool-one", "spool-two"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    configuration = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    configuration.write_text(CONFIGURATION.format(host=host, folder=folder, ports=free_ports(3)))
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    paths = {"key-file": key, "socket": folder / "munge.socket", "pid-file": folder / "munged.pid",
             "log-file": folder / "munged.log", "seed-file": folder / "munged.seed"}  # fmt: skip
    munged = ["munged", "--foreground", "--force", *(f"--{name}={path}" for name, path in paths.items())]
    with ExitStack() as stack:

        def start(*command: str) -> None:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start(*munged)
        until((folder / "munge.socket").exists)
        start("slurmctld", "-D")
        for node in ("one", "two"):
            start("slurmd", "-D", "-N", node)
        until(lambda: idle_nodes(environment) == 2)
        yield environment


def idle_nodes(environment: dict[str, str]) -> int:
    """Number of nodes that wait for jobs."""
    command = ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return len(done.stdout.split())


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def missing_programs() -> list[str]:
    """Programs of Slurm that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]
