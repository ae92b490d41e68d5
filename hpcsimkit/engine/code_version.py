"""Version of the code that determines an outcome: a change of it changes fingerprints."""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from hpcsimkit._version import __version__
from hpcsimkit.engine.user_code import file_of
from hpcsimkit.io.files import sha256_of_content
from hpcsimkit.io.own_code import hash_of_kit

LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Folders of Python and of installed packages, which are identified by their versions."""


def code_version(modules: Collection[str]) -> str:
    """Return the version of hpcsimkit with hashes of all code that may determine an outcome.

    The code is the whole kit, and some modules of the user with all that they import. No part of the kit is
    left out: a list of those that matter would have to be right after every change.

    Examples
    --------
    >>> code_version(["hpcsimkit.kernel.policy", "math"]) == code_version([])
    True
    """
    return " ".join([__version__, hash_of_kit(), *code_files(modules).values()])


def code_files(modules: Collection[str]) -> dict[str, str]:
    """Return the hashes of the files of modules outside the kit, and of the modules that they import.

    >>> list(code_files(["hpcsimkit.kernel.policy", "math", "numpy"]))
    []
    """
    here = str(Path.cwd())
    return _with_imported((name, here) for name in modules)


def hash_of_code(file: Path, module: str) -> str:
    """Return the hash of a module of the user, and of all that it imports."""
    names = _imported(file, _state(file), module)
    others = _with_imported((name, str(file.parent)) for name in names)
    hashes = [hash_of(file), *(value for name, value in others.items() if name != str(file))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]


def _with_imported(modules: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the hashes of the files of modules, given with the folders of their importers, by path."""
    found: dict[str, str] = {}
    waiting = [*modules]
    known = {*waiting}
    while waiting:
        name, folder = waiting.pop()
        if (file := _file_of(name, folder)) is None:
            continue
        found[str(file)] = hash_of(file)
        names = _imported(file, _state(file), name)
        imported = {(each, str(file.parent)) for each in names} - known
        known |= imported
        waiting += imported
    return dict(sorted(found.items()))


def hash_of(file: Path) -> str:
    """Return the hash of a file."""
    return _of_file(file, _state(file))


@cache
def _of_file(file: Path, state: tuple[int, ...]) -> str:
    return sha256_of_content(file)[:16]


def _state(file: Path) -> tuple[int, ...]:
    """Return numbers that change with a file."""
    about = file.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


def _file_of(module: str, folder: str) -> Path | None:
    """Return the source file of a module of the user, which may be beside its importer; None for others."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "hpcsimkit" or _is_library(top):
        return None
    if (loaded := sys.modules.get(module)) is not None:
        file = Path(getattr(loaded, "__file__", None) or "")
    else:  # imported by a function that has not been called yet
        file = file_of(module, [folder, str(Path.cwd()), *sys.path]) or Path()
    return file if file.suffix == ".py" and file.is_file() and not _is_installed(file) else None


def _is_library(top: str) -> bool:
    """Return whether a loaded module or package without a dot in its name is an installed one."""
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and _is_installed(Path(file))


@cache
def _is_installed(file: Path) -> bool:
    return any(file.is_relative_to(folder) for folder in LIBRARIES)


@cache
def _imported(file: Path, state: tuple[int, ...], module: str) -> tuple[str, ...]:
    """Return the names of the modules that the source of a module imports, wherever in it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(dict.fromkeys(name for node in ast.walk(tree) for name in _names_in(node, package)))


def _names_in(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        within = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*within, *([node.module] if node.module else [])])
        names = [base, *(f"{base}.{alias.name}" for alias in node.names)]  # a module, or a name in one
    else:
        return
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[: length + 1]) for length in range(len(parts)))  # packages, too
