"""Command lines run in processes of their own, each in the same fresh folder, with an audit hook that listens."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import platform
import shlex
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import matplotlib.pyplot  # noqa: F401 - what most lines load, these and others, so that no copy has to
import numba  # noqa: F401
import pandas  # noqa: F401
import scipy.stats  # noqa: F401
import torch._dynamo  # noqa: F401

from hpcsimkit.run import main
from tests.audit.hearing import EVIL, Ears
from tests.audit.lines import Line, files

CODE = "import pathlib\npathlib.Path('executed').touch()\nfrom hpcsimkit.policies import SJF as Run\n"
SHOWN_GLOBALS = ("__builtins__", "<module '")
"""What a text with globals of the kit would show."""


@dataclass
class Heard:
    """What was heard of a run: what must not happen, files that were read with their formats, modules that it loaded."""

    forbidden: list[str] = field(default_factory=list)
    read: list[tuple[str, str]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    shown: str = ""


class Stage:
    """The folder in which a line is run, and a copy of it as it was before.

    Parameters
    ----------
    folder : Path
        Empty folder.
    line : Line
        Line to run.
    """

    def __init__(self, folder: Path, line: Line) -> None:
        platform.processor()  # asks another program, once
        gc.disable()  # in copies, it would write to all objects that they share
        self.line = line
        self.here, self.kept = folder / "here", folder / "kept"
        self.here.mkdir(parents=True)
        for name, content in files().items():
            (self.here / name).parent.mkdir(exist_ok=True)
            (self.here / name).write_bytes(content)
        (self.here / f"{EVIL}.py").write_text(CODE)
        for each in line.after:
            in_a_copy(lambda each=each: answered(each, self.here))
        shutil.copytree(self.here, self.kept)
        self.sound = self.run({})
        for module in self.sound.modules:  # in this process, so that no copy has to load it
            with contextlib.suppress(Exception):
                import_module(module)
        if self.sound.forbidden:  # libraries make caches of their own when they are loaded first
            self.sound = self.run({})

    def run(self, changed: dict[str, bytes]) -> Heard:
        """Run the line on the files as they were, but some with another content."""
        shutil.rmtree(self.here)
        shutil.copytree(self.kept, self.here)
        for name, content in changed.items():
            (self.here / name).write_bytes(content)
        return in_a_copy(lambda: heard(self.line, self.here))


def heard(line: Line, folder: Path) -> Heard:
    """Run a line, and listen; in a copy of the process, as hooks stay."""
    os.chdir(folder)
    tempfile.tempdir = str(folder / "out.temporary")
    Path(tempfile.tempdir).mkdir()
    if line.start is not None:
        line.start()
    before = set(sys.modules)
    with tempfile.TemporaryFile() as notes:
        ears = Ears(folder, notes.fileno())
        sys.addaudithook(ears)
        ears.listening = True
        text = answered(line.call or line.words, folder)
        ears.listening = False
        notes.seek(0)
        noted = [json.loads(each) for each in notes]
    found = Heard(shown=text[-2000:])
    found.forbidden = [words[1] for words in noted if words[0] == "forbidden"]
    found.forbidden += [f"shown: {word}" for word in SHOWN_GLOBALS if word in text]
    found.read = [(words[1], words[2]) for words in noted if words[0] == "read"]
    found.opened = [words[1] for words in noted if words[0] == "opened"]
    found.modules = sorted(
        name
        for name, module in sys.modules.items()
        if name not in before and getattr(module, "__spec__", None)
    )
    return found


def answered(line: str | Callable[[], object], folder: Path) -> str:
    """Run a command line or a function in a folder, from which Python loads modules too; returns what it shows."""
    os.chdir(folder)
    os.environ["XDG_CONFIG_HOME"] = str(folder / "home")
    sys.path.insert(0, str(folder))
    shown = io.StringIO()
    with (
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(shown),
        contextlib.suppress(SystemExit),
    ):
        try:
            main(shlex.split(line)) if isinstance(line, str) else print(line())
        except Exception:
            traceback.print_exc()
    return shown.getvalue()


def in_a_copy(work: Callable[[], object]) -> Heard:
    """Return what a function returns in a copy of this process."""
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        _be_the_copy(work, theirs)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        text = answer.read()
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, text
    return Heard(**json.loads(text))


def _be_the_copy(work: Callable[[], object], answer: int) -> NoReturn:
    code = 1
    try:
        result = work()
        found = result if isinstance(result, Heard) else Heard(shown=str(result))
        with os.fdopen(answer, "w") as file:
            json.dump(vars(found), file)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
