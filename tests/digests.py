"""Digests of what the kit computes, to tell whether a change of its structure changed any result.

``python -m tests.digests record FILE`` computes them with the code as it is; ``python -m tests.digests compare
BEFORE AFTER`` lists the differences and exits with 1 if there are any. Only the command line and the names of
``hpcsimkit`` itself are used, so that modules may move in between. Real logs are read from the folder
that ``HPCSIMKIT_SHARED`` names.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

SHARED = Path(os.environ.get("HPCSIMKIT_SHARED") or Path(__file__).resolve().parents[2] / "shared")
TRACES = SHARED / "traces"

SCHEDULES = {
    "KTH-SP2-1996-2.1-cln.swf.gz": (
        "fcfs fcfs+easy fcfs+conservative sjf+easy ljf+easy saf+easy laf+easy wfp3+easy unicef+easy "
        "f1+easy f2+easy f3+easy f4+easy"
    ),
    "SDSC-SP2-1998-4.2-cln.swf.gz": "fcfs fcfs+easy",
    "HPC2N-2002-2.2-cln.swf.gz": "fcfs+easy",
    "lublin-1.swf": "fcfs fcfs+easy fcfs+conservative",
    "lublin-2.swf": "fcfs fcfs+easy sjf+easy fcfs+conservative",
}
"""Logs and the policies whose schedules independent simulators agree with."""

ORDER = """
[generate]
nodes = 16
jobs = 300
load = 1.1
[episodes]
jobs = 48
[validation]
windows = 2
[trainer]
algorithm = "{algorithm}"
steps = 512
"""

INSPECTOR = ORDER.replace("\n[generate]", 'stage = "inspector"\npolicy = "sjf+easy"\n[generate]', 1)

TWO_LEVEL = """
stage = "two-level"
slots = 8
[generate]
nodes = 16
jobs = 300
load = 0.9
[episodes]
jobs = 40
[encoder]
name = "JobsAndNodes"
nodes = 16
size_scale = 16
time_scale = 86400
[reward]
name = "Capability"
reserved = true
[validation]
windows = 2
[trainer]
algorithm = "{algorithm}"
steps = 300
"""

TRAININGS = {
    **dict.fromkeys(
        [
            "ppo",
            "spinning-up-ppo",
            "a2c",
            "pg",
            "dql",
            "cem",
            "cma-es",
            "aggrevate",
            "imitation",
            "maskable-ppo",
            "sb3-ppo",
            "sb3-a2c",
            "sb3-dqn",
        ],
        ORDER,
    ),
    **dict.fromkeys(["schedinspector", "prompt-inspector"], INSPECTOR),
    **dict.fromkeys(["dras-dql", "dras-pg", "dras-a2c", "dras-ppo"], TWO_LEVEL),
}
"""Algorithms, and a training file of each."""

REPRODUCTIONS = {
    "masked-ppo": ["beocat-2021-03.csv.gz", "beocat-2021-04.csv.gz", "beocat-2021-05.csv.gz"],
    "published-rules": ["SDSC-SP2-1998-4.2-cln.swf.gz"],
    "schedinspector": ["SDSC-SP2-1998-4.2-cln.swf.gz"],
    "rlbackfilling": ["SDSC-SP2-1998-4.2-cln.swf.gz"],
    "textbook-rules": ["SDSC-SP2-1998-4.2-cln.swf.gz"],
    "dras": ["ALCF-Theta-2022.swf.gz"],
    "cush": [],
}
"""Published systems, and the logs of their quick versions."""

TIMES = re.compile(r"second|_s$|pace|speed|hours|cpu", re.IGNORECASE)
"""Columns that hold wall-clock times, which differ from run to run."""

Digests = dict[str, str]


def of_bytes(content: bytes) -> str:
    """Return a short SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def of_table(path: Path) -> str:
    """Return the digest of a CSV table without the columns of wall-clock times."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    kept = [place for place, name in enumerate(rows[0]) if not TIMES.search(name)] if rows else []
    return of_bytes(repr([[row[place] for place in kept if place < len(row)] for row in rows]).encode())


def of_weights(path: Path) -> str:
    """Return the digest of a model file's tensors."""
    import safetensors.numpy

    tensors = safetensors.numpy.load(path.read_bytes())
    return of_bytes(b"".join(name.encode() + tensors[name].tobytes() for name in sorted(tensors)))


def command(*arguments: str) -> None:
    """Run the command line; its failure ends the recording."""
    done = subprocess.run([sys.executable, "-m", "hpcsimkit.run", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")


def tables(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the digests of all tables below a folder."""
    for path in sorted(folder.rglob("*.csv")):
        yield f"{name}/{path.relative_to(folder).as_posix()}", of_table(path)


def schedules(work: Path) -> Iterator[tuple[str, str]]:
    """Yield the digests of start times on real logs."""
    from hpcsimkit import Simulation, make, read_swf

    for log, policies in SCHEDULES.items():
        workload = read_swf(TRACES / log)
        workload = workload.fitting(workload.machine_size)
        for policy in policies.split():
            yield f"schedule/{log}/{policy}", Simulation(workload, make(policy)).run().hash


def default_run(work: Path) -> Iterator[tuple[str, str]]:
    """Yield the digests of the tables that the command line writes without any argument."""
    command("compare", "--no-report", "--quiet", "--out", str(work / "default"))
    yield from tables(work / "default", "default")
    for path in sorted((work / "default" / "schedules").iterdir()):
        yield f"default/schedules/{path.name}", of_bytes(path.read_bytes())


def trainings(work: Path) -> Iterator[tuple[str, str]]:
    """Yield the digests of the weights of a short training by each algorithm, and of what uses an agent."""
    for algorithm, text in TRAININGS.items():
        file, out = work / f"{algorithm}.toml", work / algorithm
        file.write_text(text.format(algorithm=algorithm), encoding="utf-8")
        command("train", str(file), "--quiet", "--out", str(out))
        yield f"training/{algorithm}/weights", of_weights(out / "last.hpcsim")
    agent = work / "ppo" / "best.hpcsim"
    short = ["--jobs", "32", "--sequences", "3", "-p", "saf+easy", "--quiet"]
    command("evaluate", str(agent), *short, "--out", str(work / "evaluated"))
    yield from tables(work / "evaluated", "evaluate")
    command("explain", "sjf+hold-unfit", "--jobs", "500", "--quiet", "--out", str(work / "explained"))
    yield from tables(work / "explained", "explain")


def reproductions(work: Path) -> Iterator[tuple[str, str]]:
    """Yield the digests of the tables of the quick version of each reproduction."""
    for name, logs in REPRODUCTIONS.items():
        out = work / f"reproduced-{name}"
        paths = [str(TRACES / log) for log in logs]
        command("reproduce", name, *paths, "--quick", "--quiet", "--workers", "1", "--out", str(out))
        yield from tables(out, f"reproduce/{name}")
        report = re.sub(r"[\d.]+ (s|min|h)\b", "", (out / "report.md").read_text(encoding="utf-8"))
        yield f"reproduce/{name}/report", of_bytes(report.encode())


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "schedules": schedules,
    "default": default_run,
    "trainings": trainings,
    "reproductions": reproductions,
}

app = typer.Typer(add_completion=False)


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="JSON file that the digests are written to.")],
    parts: Annotated[list[str] | None, typer.Option("--part", help=f"One of {', '.join(PARTS)}.")] = None,
) -> None:
    """Compute the digests with the code as it is; digests of other parts in the file stay."""
    found: Digests = json.loads(file.read_text()) if file.exists() else {}
    for part in parts or PARTS:
        with tempfile.TemporaryDirectory() as work:
            for name, digest in PARTS[part](Path(work)):
                print(digest[:16], name, flush=True)
                found[name] = digest
        file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


@app.command()
def compare(before: Path, after: Path) -> None:
    """List the digests that differ; exit code 1 if any do."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    differing = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    for name in differing:
        print(f"{name}: {old.get(name, 'missing')} before, {new.get(name, 'missing')} after")
    print(f"{len(old | new) - len(differing)} equal, {len(differing)} differ")
    raise typer.Exit(bool(differing))


if __name__ == "__main__":
    app()
