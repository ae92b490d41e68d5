"""A case: files and a command line drawn from a seed, its outcome, and the fault of the outcome, if any."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from hpcsimkit.agents.networks.model_file import read_model, write_model
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.io.budget import VARIABLE
from hpcsimkit.run import _run, _say
from tests.fuzz.mutations import mutated, mutated_arguments, mutated_json
from tests.fuzz.seeds import COMMAND_LINES, KINDS, command_line_files

LIMITS = "jobs=20000, machines=20000, bytes=2000000, cells=200000, line=100000"
"""Limits so low that accepted input is processed at once."""

GOOD = ("accepted", "refused")
BINARY = ("model", "result", "folder-jobs", "pm100", "f-data")
COMMAND_LINE = "command-line"
NAMES = (*KINDS, COMMAND_LINE)


class Hang(BaseException):
    """Nothing came back within the seconds of a case."""


@dataclass(frozen=True)
class Case:
    """An input: files by name, and either a command line or the name of a kind with its reader."""

    kind: str
    seed: int
    files: Mapping[str, bytes]
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, seed: int, kind: str | None = None) -> Case:
        """Make a case of a seed: equal seeds, equal cases."""
        rng = np.random.default_rng(seed)
        name = kind or NAMES[int(rng.integers(len(NAMES)))]
        if name == COMMAND_LINE:
            line = COMMAND_LINES[int(rng.integers(len(COMMAND_LINES)))]
            return cls(name, seed, command_line_files(), tuple(mutated_arguments(line, rng)))
        sound = KINDS[name].files()
        first = next(iter(sound))
        files = {**sound, first: _mutated_file(name, sound[first], rng)}
        commands = KINDS[name].commands
        if not commands or rng.random() < 0.85:
            return cls(name, seed, files)
        command = commands[int(rng.integers(len(commands)))]
        return cls(name, seed, files, tuple(word.replace("{}", first) for word in command))

    def save(self, folder: Path) -> Path:
        """Write the case into a folder, to be repeated."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        record = {"kind": self.kind, "seed": self.seed, "arguments": self.arguments, "files": files}
        path = folder / f"{self.kind}-{self.seed}.json"
        path.write_text(json.dumps(record))
        return path

    @classmethod
    def load(cls, path: Path) -> Case:
        record = json.loads(path.read_text())
        files = {name: base64.b64decode(data) for name, data in record["files"].items()}
        return cls(record["kind"], record["seed"], files, tuple(record["arguments"]))


def _mutated_file(kind: str, data: bytes, rng: np.random.Generator) -> bytes:
    if kind == "model" and rng.random() < 0.8:
        return _mutated_model(data, rng)
    if kind in ("folder-provenance", "folder-metrics") and rng.random() < 0.6:
        return json.dumps(mutated_json(json.loads(data), rng)).encode()
    return mutated(data, rng, text=kind not in BINARY)


def _mutated_model(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a model that says something else, with the hash that belongs to it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.hpcsim"
        path.write_bytes(data)
        tensors, about = read_model(path)
        if rng.random() < 0.3:
            shapes = ((0,), (1, 1), (5, 1), (1, 5, 1), (300, 300))
            tensors = {**tensors, "weight.0": np.full(shapes[int(rng.integers(5))], np.nan, dtype=np.float32)}
        else:
            about = mutated_json(about, rng)
        with suppress(ValueError, TypeError):
            write_model(path, tensors, about)
        return path.read_bytes()


@dataclass(frozen=True)
class Outcome:
    """What came of a case: a word for it, and the text that was shown."""

    word: str
    text: str


def outcome_of(case: Case, seconds: float = 20) -> Outcome:
    """Answer a case in a folder of its own, and judge the answer."""
    out, err = io.StringIO(), io.StringIO()
    with _own_folder(case.files), patch.dict(os.environ, {VARIABLE: LIMITS}):
        try:
            with redirect_stdout(out), redirect_stderr(err), _alarm(seconds):
                code = _run(list(case.arguments)) if case.arguments else _read(case)
        except Hang:
            return Outcome("hang", "".join(traceback.format_exc()))
        except BaseException:
            return Outcome("traceback", "".join(traceback.format_exc()))
    return Outcome(_judged(code, out.getvalue(), err.getvalue()), out.getvalue() + err.getvalue())


def _read(case: Case) -> int:
    """Let the reader of a kind answer as the command line would."""
    reader: Callable[[str], Any] = KINDS[case.kind].read
    try:
        shown = reader(next(iter(case.files)))
    except HpcsimkitError as error:
        return _say(str(error), 2)
    assert shown is not None
    return 0


def _judged(code: int, out: str, err: str) -> str:
    if "a defect of hpcsimkit" in err:
        return "defect"
    if any(not (letter.isprintable() or letter == "\n") for letter in out + err):
        return "control characters"
    if code == 0:
        return "accepted" if not err else "multi-line"
    if (
        code != 2
        or err.count("\n") != 1
        or not err.startswith("hpcsimkit: ")
        or not err.split(": ", 1)[1].strip()
    ):
        return "multi-line"
    return "refused"


@contextmanager
def _own_folder(files: Mapping[str, bytes]) -> Iterator[None]:
    before = Path.cwd()
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"hpcsimkit-fuzz-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        for name, data in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `Hang` after so many seconds."""

    def ring(signal_number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
