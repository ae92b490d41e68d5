"""What must not happen while a command reads files of others: an audit hook that hears it, and each file that is read."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

from hpcsimkit.compiled.cache_folder import CACHE
from hpcsimkit.io.files import READ

CANARY = "canary"
"""Word in all texts that are names of code."""

EVIL = "evil_of_others"
"""Name of a module beside the files, which no command line names."""

NEVER = (
    "os.system", "os.exec",   "os.posix_spawn", "os.spawn", "os.startfile", "subprocess.Popen", "pty.spawn",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "ctypes.dlopen", "pickle.find_class", "marshal.load", "webbrowser.open",
)  # fmt: skip
CHANGING = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate", "os.utime",
    "shutil.move", "shutil.rmtree", "shutil.unpack_archive",
}  # fmt: skip
"""Events of changed files."""

UNPICKLING = (
    ("hpcsimkit/compiled/kept.py", "load_overload"),
    ("multiprocessing/connection.py", "recv"),
    ("multiprocessing/queues.py", "get"),
)
"""Functions that unpickle: the cache of compiled functions, which is the user's own, and pipes of own processes."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
INSTALLED = tuple({f"{sys.prefix}/", f"{sys.base_prefix}/lib/"})
ROOTS = (*INSTALLED, f"{Path(__file__).resolve().parents[2]}/", "<")
"""Where code comes from that may run: installed, the kit's own, or made by a library from a template of its own."""


class Ears:
    """Audit hook that records what must not happen, and the files that are read.

    Parameters
    ----------
    folder : Path
        Current folder, in which only `out` and names that begin with it may be written; elsewhere, only the kit's
        cache of compiled functions.
    notes : int
        Number of the open file in which it is recorded, of this process and those that it forks.
    """

    def __init__(self, folder: Path, notes: int) -> None:
        self.folder = str(folder.resolve())
        self.cache = os.path.relpath(CACHE, self.folder)
        self.notes = notes
        self.listening = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.listening:
            return
        if event == READ:
            self._note("read", arguments[0], self._inside(arguments[1]))
        elif event == "open" and not _writes(*arguments):
            if (path := self._inside(arguments[0])) and not path.startswith(("..", "out")):
                self._note("opened", path)
        elif what := self._forbidden(event, arguments):
            self._note("forbidden", what)

    def _note(self, *words: str) -> None:
        os.write(self.notes, f"{json.dumps(words)}\n".encode())

    def _forbidden(self, event: str, arguments: tuple[Any, ...]) -> str:
        """Return what must not happen, if an event is such; else nothing."""
        if event == "pickle.find_class" and _within(UNPICKLING):
            return ""
        if event in NEVER and not "".join(map(str, arguments[:1])).startswith(INSTALLED):
            return f"{event} {arguments!r}"[:300]
        if event == "import" and arguments[0].partition(".")[0] in (EVIL, "this", "antigravity"):
            return f"import {arguments[0]}"
        if event == "compile":
            # what ast.parse is given is read, not run; a template is heard when it does something
            mine = not str(arguments[1]).endswith(("<unknown>", "<template>", ".jinja>")) and CANARY in str(
                arguments[0]
            )
            return f"compile {arguments[1]}" if mine else ""
        if event == "exec" and isinstance(arguments[0], CodeType):
            code = arguments[0]
            return "" if code.co_filename.startswith(ROOTS) else f"exec {code.co_filename}"
        if event == "open":
            return self._changed("open for writing", arguments[:1])
        return self._changed(event, arguments) if event in CHANGING else ""

    def _changed(self, event: str, arguments: tuple[Any, ...]) -> str:
        paths = [each for each in arguments if isinstance(each, str | bytes | os.PathLike)]
        names = [self._inside(path, *arguments[-1:]) for path in paths]
        outside = [
            name
            for name in names
            if not (re.match(r"\.?out($|[./])|/dev/|/proc/", name) or self._in_cache(name))
        ]
        return f"{event} {', '.join(outside)}" if outside else ""

    def _in_cache(self, name: str) -> bool:
        """Return whether a path is that of the cache of compiled functions, in it, or the folder that it is made in."""
        return name in (self.cache, os.path.dirname(self.cache)) or name.startswith(f"{self.cache}/")  # noqa: PTH120

    def _inside(self, path: Any, folder: object = -1) -> str:
        """Return a path relative to the folder; absolute if it is a device, empty if it is the number of an open file.

        It may be relative to another folder, which is open under a number, the last argument of some events.
        """
        if not isinstance(path, str | bytes | os.PathLike):
            return ""
        base = self.folder
        if isinstance(folder, int) and folder > 2:
            with suppress(OSError):
                base = os.readlink(f"/proc/self/fd/{folder}")  # noqa: PTH115
        absolute = os.path.join(base, os.fsdecode(path))  # noqa: PTH118 - no object is made in a hook
        return (
            absolute if absolute.startswith(("/dev/", "/proc/")) else os.path.relpath(absolute, self.folder)
        )


def _within(functions: Sequence[tuple[str, str]]) -> bool:
    """Return whether one of some functions, by the end of its file and its name, is being executed."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if any(code.co_filename.endswith(file) and code.co_name == name for file, name in functions):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _writes(path: object, mode: object, flags: object) -> bool:
    return bool(isinstance(flags, int) and flags & WRITING) or (
        isinstance(mode, str) and bool(set(mode) & set("wax+"))
    )
