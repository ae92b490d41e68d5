"""Slurm: results in jobs of a real Slurm are those of this process, also with a job cancelled in the middle."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.engine.engines import InProcess
from hpcsimkit.engine.slurm import Slurm
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.run import main
from tests.engine.private_slurm import missing_programs, private_slurm
from tests.waiting import until

if find_spec("dask_jobqueue") is None:  # an import would replace the handler of Ctrl-C
    pytest.skip("needs the extra [cluster]: pip install 'hpcsimkit[cluster]'", allow_module_level=True)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_programs()), reason="needs Slurm: apt-get install slurm-wlm munge"),
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="starts the daemons of Slurm as root"),
]

WAITING = """
import os
from pathlib import Path
from hpcsimkit.policies import FCFS

class Waiting(FCFS):
    def reset(self, system):
        if not Path("go").exists():
            Path("job").write_text(os.environ["SLURM_JOB_ID"])
            while not Path("go").exists():
                pass
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with private_slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(autouse=True)
def folder(slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compared(out: str, engine: Any, *policies: str) -> dict[str, bytes]:
    """Compare policies; returns the contents of the files, without what is of one run."""
    experiment = Experiment(jobs=300, policies=["fcfs+easy", "sjf+easy", *policies], report=False)
    Campaign(experiment, experiment.workload(), out, engine=engine).run()
    files = (file for file in Path(out).rglob("*") if file.is_file() and not file.name.endswith(".run.json"))
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def jobs() -> list[str]:
    """Numbers of the jobs of Slurm that wait or run."""
    return subprocess.run(
        ["squeue", "--noheader", "--format=%i"], capture_output=True, text=True
    ).stdout.split()


def test_a_comparison_with_a_job_cancelled(folder: Path) -> None:
    (folder / "waiting.py").write_text(WAITING)
    canceller = os.fork()
    if not canceller:
        until((folder / "job").exists)
        until(lambda: bool((folder / "job").read_text()))
        subprocess.run(["scancel", "--signal=KILL", (folder / "job").read_text()], check=True)
        (folder / "go").touch()
        os._exit(0)
    there = compared("there", Slurm(2, partition="short", memory="1 GB"), "waiting.py:Waiting")
    assert os.waitpid(canceller, 0)[1] == 0
    assert there == compared("here", InProcess(), "waiting.py:Waiting")
    until(lambda: not jobs())
    assert not [*folder.glob("*.out"), *folder.glob("*.err")]


def test_the_command_line_takes_the_resources_of_a_file(folder: Path) -> None:
    (folder / "e.toml").write_text(
        'policies = ["fcfs", "sjf"]\n[generate]\njobs = 50\n'
        '[engine]\nname = "slurm:1"\npartition = "short"\nmemory = "1 GB"\ntime = "10:00"\nlogs = "logs"\n'
    )
    for command in (["compare", "e.toml"], ["sweep", "e.toml", "--axis", "seed=0:20"]):
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*command, "--engine", "slurm:2", "--out", command[0], "--no-report", "-q"])
    assert (folder / "compare" / "jobs" / "sjf.csv").exists()
    assert len(list((folder / "sweep" / "cells").glob("*/outcome.json"))) == 40
    assert len(list((folder / "logs").glob("hpcsimkit-*.out"))) >= 2
    until(lambda: not jobs())


def test_jobs_that_slurm_refuses() -> None:
    with pytest.raises(UsageError, match=r"^Slurm refuses the jobs of the workers: .*[Ii]nvalid partition"):
        compared("there", Slurm(1, partition="absent", memory="1 GB"))
    with pytest.raises(UsageError, match=r"^Slurm refuses the jobs of the workers: "):
        compared("there", Slurm(1, memory="1 TB"))


def test_without_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"^the engine slurm submits jobs with sbatch, which is not on this"):
        compared("there", Slurm(1))
