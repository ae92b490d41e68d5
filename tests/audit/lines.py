"""Sound files of all formats, and the command lines, and functions of Python, that read them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from hpcsimkit import Simulation, default_workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.agents.training.checkpoints import Checkpoints
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.learning_curve import read_curve
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_job_sets
from tests.fuzz.seeds import (
    BATSIM,
    CALENDAR,
    CUSH,
    EAGLE,
    EXPERIMENT,
    FAILURES,
    GWF,
    JOB_SETS,
    MACHINES_CSV,
    MACHINES_TOML,
    OPENB,
    PARTITIONS,
    PBS,
    PHILLY,
    RESERVATIONS,
    SACCT,
    SCONTROL,
    SCONTROL_JOBS,
    SGE,
    SLURM_FILES,
    SLURM_JSON,
    TABLE,
    TRAINING,
    Files,
    gzip_files,
    model_files,
    parquet_files,
    saved_result,
    swf,
)

SWEEP = EXPERIMENT.replace("seed = 3\n", "") + "\n[sweep]\nseed = [1, 2]\n"
SHORT = TRAINING.replace("total_timesteps = 512", "total_timesteps = 256").replace("jobs = 60", "jobs = 200")
TRAININGS = SHORT.replace("seed = 2\n", "") + "\n[sweep]\nseed = [1]\n"
NODES = (
    "NodeName=node1 Arch=x86_64 CoresPerSocket=16\n   AvailableFeatures=intel ActiveFeatures=intel,ib\n   CPUTot=32 CPUAlloc=0\n"
    "   Gres=(null)\n   RealMemory=128000 State=IDLE\n   CfgTRES=cpu=32,mem=128000M\n\n"
)
PLAN = """
title = "Ours"

[logs]
needed = "a log"
code = "swf"

[rates]
"runs" = 1000.0

[sizes.full]
sequences = 1

[rows.ours]
name = "ours"
policy = { part = "kernel.pipeline:Pipeline", order = { part = "policies:SJF" } }

[comparisons.rest]
sequences = "rest"
folder = "rest"
label = "rest"
rivals = false
rows = [{ rows = ["ours"] }]
"""
PUBLISHED = """
[tables.table]
source = "ours"
columns = ["wait"]

[tables.table.rows]
ours = [1.5]
"""
PAGE = "# {{ title }}\n\n{% for name in plan.rates %}\n{{ name }}\n{% endfor %}\n{{ plan.title|upper }}\n"


def log_of_weeks() -> str:
    """Return a log of a few weeks with so many jobs that they wait."""
    rng = np.random.default_rng(5)
    lines = [";MaxProcs: 4\n"]
    for number in range(1, 61):
        took, size = int(rng.integers(600, 90_000)), int(rng.integers(1, 5))
        lines.append(
            f"{number} {number * 40_000} 7 {took} {size} -1 -1 {size} {2 * took} -1 1 {number % 3} -1 -1 1 1 -1 -1\n"
        )
    return "".join(lines)


@cache
def inspector() -> bytes:
    """Return an agent on the seat of the inspector."""
    network = Dense({"weight.0": np.zeros((2, 7)), "bias.0": np.array([0.0, 1.0])}, "relu")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "inspector.hpcsim"
        Agent(
            InspectorFeatures(), AcceptReject(), network, "inspector", about={"training": {"policy": "sjf"}}
        ).save(path)
        return path.read_bytes()


@cache
def files() -> Files:
    """Return the files beside which a command line runs, by their paths."""
    texts = {
        "log.swf": swf(), "weeks.swf": log_of_weeks(), "jobs.sacct": SACCT, "table.csv": TABLE, "pods.csv": OPENB, "philly.csv": PHILLY,
        "eagle.csv": EAGLE, "jobs.json": SLURM_JSON, "jobs.txt": SCONTROL_JOBS, "20240101": PBS, "accounting": SGE, "batsim.json": BATSIM, "grid.gwf": GWF, "sets.csv": JOB_SETS, "machines.csv": MACHINES_CSV, "machines.toml": MACHINES_TOML, "nodes.txt": NODES,
        "partitions.toml": PARTITIONS, "partitions.txt": SCONTROL, "calendar.toml": CALENDAR, "reservations.txt": RESERVATIONS, "failures.csv": FAILURES, "experiment.toml": EXPERIMENT, "sweep.toml": SWEEP,
        "training.toml": SHORT, "trainings.toml": TRAININGS, "cush.toml": CUSH, "paper/plan.toml": PLAN,
        "paper/published.toml": PUBLISHED, "paper/report.md.jinja": PAGE, "curve.csv": "steps,validation\n10,5.5\n20,4.5\n", "policy.json": json.dumps({"policy": "sjf+easy", "log": "kth"}),
    }  # fmt: skip
    texts |= {f"conf/{name}": text for name, text in SLURM_FILES.items()}
    content = {name: text.encode() for name, text in texts.items()}
    return {
        **content,
        **gzip_files(),
        **parquet_files(),
        **saved_result(),
        "agent.hpcsim": model_files()["agent.hpcsim"],
        "inspector.hpcsim": inspector(),
    }


class Line(NamedTuple):
    """A command line, or a function of Python, in a folder with `files`.

    Parameters
    ----------
    words : str
        The command line.
    reads : set of Format
        Formats of the files that it reads, of those that are there before.
    after : tuple
        Command lines, or functions of Python, that make some of these.
    start : callable, optional
        Function called in its process, immediately before.
    call : callable, optional
        Function of Python, instead of the command line; `words` is its name.
    slow : bool
        Whether the line is for slow tests only.
    """

    words: str
    reads: frozenset[Format] = frozenset()
    after: tuple[str | Callable[[], object], ...] = ()
    start: Callable[[], object] | None = None
    call: Callable[[], object] | None = None
    slow: bool = False


def line(words: str, *reads: Format, **more: object) -> Line:
    return Line(words, frozenset(reads), **more)  # type: ignore[arg-type]


def again(words: str, *reads: Format) -> Line:
    """Return a line that finds the results of its own former run."""
    return line(words, *reads, after=(words,))


def stopped() -> None:
    """Run a training to the end of a round, where it is interrupted."""
    from hpcsimkit.agents.training.on_policy import OnPolicyTrainer
    from hpcsimkit.run import main

    play, rounds = OnPolicyTrainer._play, iter(range(1))

    def interrupted(self: OnPolicyTrainer) -> object:
        if next(rounds, None) is None:
            raise KeyboardInterrupt
        return play(self)

    OnPolicyTrainer._play = interrupted  # type: ignore[method-assign, assignment]
    main(shlex.split(TRAIN))


CHECKPOINTS = Checkpoints(Path(), {"seed": 1})


def checkpoint() -> None:
    """Leave a checkpoint of a training."""
    CHECKPOINTS.write({"weight": np.ones(2, np.float32)}, {"rounds": 5, "seed": "1"})


def plain_run() -> Simulation:
    """Return a small simulation whose policy remembers a plan."""
    return Simulation(default_workload(np.random.default_rng(1)).first(20), make("fcfs+conservative"))


def snapshot() -> None:
    """Leave a snapshot of this simulation."""
    plain_run().snapshot(4000).write("snapshot.npz")


def remember() -> None:
    """Leave a file with code that the user has allowed for a folder, by an earlier `--remember`."""
    from hpcsimkit.experiments import consent

    file = Path("home/hpcsimkit/allowed-code.json")
    file.parent.mkdir(parents=True)
    consent._write({str(Path.cwd()): ["mine"]})
    assert file.is_file()


def lock() -> None:
    """Leave the lock of a results folder, as another process would."""
    Path("out.partial").mkdir()
    Path("out.partial/.lock").write_text(" (process 1 on another)")


def hold() -> None:
    """Hold that lock until this process ends."""
    flock(os.open("out.partial/.lock", os.O_RDWR), LOCK_EX)


F = Format
COMPARE = "compare experiment.toml --jobs 9 --no-report -q --out out"
PLOTTED = "compare table.csv --machines machines.csv -p fcfs -p sjf --no-report -q --out out"
PARTITIONED = "jobs.sacct --machines machines.csv --partitions partitions.toml"
SWEEPING = "sweep sweep.toml --no-report --out out"
TRAININGS_LINE = "sweep trainings.toml -q --out out"
TRAIN = "train training.toml -q --out out"
LEARN = "learn weeks.swf --times 10 --seconds 60 -q --out out"
REPRODUCE = "reproduce paper log.swf --workers 1 -q --out out"
EXPLAIN = "explain inspector.hpcsim log.swf --jobs 9 -q --out out"

LINES: dict[str, tuple[Line, ...]] = {
    "compare": (
        line(
            "compare log.swf.gz -p learned:policy.json -p fcfs+agent:agent.hpcsim --jobs 9 --no-report -q --out out",
            F.SWF, F.LEARNED_POLICY, F.MODEL,
        ),
        line(
            f"compare {PARTITIONED} --calendar calendar.toml -p fcfs+easy --no-report -q --out out",
            F.SACCT, F.MACHINES, F.PARTITIONS, F.CALENDAR,
        ),
        line("compare jobs.sacct --slurm conf --no-report -q --out out", F.SACCT, F.SLURM),
        line(
            "compare jobs.sacct --machines machines.csv --failures failures.csv -p fcfs+easy --no-report -q --out out",
            F.SACCT, F.MACHINES, F.FAILURES,
        ),
        line(COMPARE, F.EXPERIMENT, F.PROVENANCE, F.CONSENT, after=(COMPARE, remember)),
        line(COMPARE, F.EXPERIMENT, F.LOCK, after=(lock,), start=hold),
    ),
    "sweep": (
        again(SWEEPING, F.SWEEP, F.TASK, F.PROVENANCE, F.SWEEP_RESULTS, F.TABLE),
        line("sweep --status out", F.SWEEP_RESULTS, after=(SWEEPING,)),
        line(
            TRAININGS_LINE, F.SWEEP, F.TASK, F.CURVE, F.SWEEP_RESULTS, F.TABLE,
            after=(f"{TRAININGS_LINE} --no-report",), slow=True,
        ),
    ),
    "train": (
        line(TRAIN, F.TRAINING, F.PROVENANCE, after=(TRAIN,)),
        line(TRAIN + " --resume", F.TRAINING, F.CHECKPOINT, F.CURVE, F.MODEL, after=(stopped,), slow=True),
        line("train cush.toml -q --out out", F.TRAINING, slow=True),
    ),
    "evaluate": (again("evaluate agent.hpcsim log.swf -p fcfs --sequences 2 --jobs 4 -q --out out", F.MODEL, F.SWF, F.PROVENANCE),),
    "learn": (again(LEARN, F.SWF, F.TASK, F.TASK_ARRAYS, F.PROVENANCE),),
    "validate": (again(f"validate {PARTITIONED} -q --out out", F.SACCT, F.MACHINES, F.PARTITIONS, F.PROVENANCE),),
    "predict": (again(f"predict {PARTITIONED} -q --out out", F.SACCT, F.MACHINES, F.PARTITIONS, F.PROVENANCE),),
    "advise": (
        again(
            f"advise {PARTITIONED} --futures 2 --calibration 1 --what-if time=60 -q --out out",
            F.SACCT, F.MACHINES, F.PARTITIONS, F.PROVENANCE,
        ),
        line(
            f"advise {PARTITIONED} --queue jobs.txt --futures 2 --calibration 0 -q --out out",
            F.SACCT, F.MACHINES, F.PARTITIONS, F.SCONTROL_JOBS,
        ),
    ),
    "what-if": (again("what-if log.swf --set nodes+=2 -q --out out", F.SWF, F.PROVENANCE),),
    "explain": (again(EXPLAIN, F.MODEL, F.SWF, F.PROVENANCE),),
    "reproduce": (
        line(REPRODUCE, F.PLAN, F.PUBLISHED, F.TEMPLATE, F.SWF),
        line(
            REPRODUCE, F.PLAN, F.PUBLISHED, F.TEMPLATE, F.SWF, F.PROVENANCE, F.TASK, F.CONSENT,
            after=(REPRODUCE, remember),
        ),
    ),
    "describe": (
        line("describe table.csv --machines machines.toml -o out/x.png", F.JOB_TABLE, F.MACHINES),
        line("describe jobs.sacct --machines nodes.txt --no-picture", F.SACCT, F.MACHINES),
        line("describe pods.csv --no-picture", F.OPENB),
        line("describe philly.csv --no-picture", F.PHILLY),
        line("describe eagle.csv --no-picture", F.EAGLE),
        line("describe jobs.json --no-picture", F.SLURM_JSON),
        line("describe 20240101 --no-picture", F.PBS),
        line("describe accounting --no-picture", F.SGE),
        line("describe batsim.json --no-picture", F.BATSIM),
        line("describe grid.gwf --no-picture", F.GWF),
        line("describe pm100.parquet --no-picture", F.PARQUET_LOG),
        line("describe experiment.toml --no-picture", F.EXPERIMENT),
    ),
    "policies": (line("policies"),),
    "parts": (line("parts --json"),),
    "check": (
        line("check agent.hpcsim --kind encoder", F.MODEL),
        line("check agent.hpcsim", F.MODEL, slow=True),
        line("check fcfs --machines machines.csv", F.MACHINES, slow=True),
    ),
    "plot": (line("plot out", F.PROVENANCE, F.METRICS, F.TABLE, F.MACHINES, F.EXPERIMENT, F.SWF, after=(PLOTTED,)),),
    "generate lublin": (line("generate lublin --nodes 16 --jobs 20 -o out/x.swf", after=(lambda: Path("out").mkdir(),)),),
    "generate mimic": (line("generate mimic log.swf --jobs 20 -o out/x.swf", F.SWF, after=(lambda: Path("out").mkdir(),)),),
}  # fmt: skip
"""Command lines of each command."""

READERS: dict[str, tuple[Line, ...]] = {
    "Result.load": (line("Result.load", F.RESULT, call=lambda: repr(Result.load("result.npz"))),),
    "Snapshot.read": (
        line(
            "Snapshot.read",
            F.SNAPSHOT,
            after=(snapshot,),
            call=lambda: plain_run().resume("snapshot.npz").run(),
        ),
    ),
    "read_job_sets": (line("read_job_sets", F.JOB_SETS, call=lambda: read_job_sets("sets.csv")),),
    "Checkpoints.read": (
        line("Checkpoints.read", F.CHECKPOINT, after=(checkpoint,), call=lambda: repr(CHECKPOINTS.read())),
    ),
    "read_curve": (line("read_curve", F.CURVE, call=lambda: read_curve("curve.csv")),),
    "SweepTable.read": (
        line(
            "SweepTable.read",
            F.SWEEP_RESULTS,
            F.TABLE,
            after=(SWEEPING,),
            call=lambda: SweepTable.read("out"),
        ),
    ),
}
"""Functions of Python that read files, which no command does, or not all kinds of them."""
