"""Version of the code that determines an outcome: a change of it changes fingerprints."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from hpcsimkit import _version
from hpcsimkit._version import __version__
from hpcsimkit.io.files import sha256_of_content

__all__ = ["code_files", "code_version", "hash_of", "hash_of_packages"]

DECISIVE = ("agents", "cluster", "envs", "jobs", "kernel", "policies", "results", "workloads")
"""Packages of hpcsimkit that decide the outcome of simulations and trainings."""


def code_version(modules: Collection[str]) -> str:
    """Return the version of hpcsimkit with hashes of the code that determines an outcome.

    The code consists of the packages for simulation and training, and of the given modules outside of them:
    those of the user, and those of the reproductions.

    Parameters
    ----------
    modules : collection of str
        Names of imported modules; names of modules without a file add nothing.

    Examples
    --------
    >>> code_version(["hpcsimkit.kernel.policy", "math"]) == code_version([])
    True
    """
    return " ".join([__version__, hash_of_packages(DECISIVE), *code_files(modules).values()])


def code_files(modules: Collection[str]) -> dict[str, str]:
    """Return the hashes of the files of modules outside the packages for simulation and training.

    >>> list(code_files(["hpcsimkit.kernel.policy", "math"]))
    []
    """
    files = filter(None, map(_file_of, sorted(modules)))
    return {str(file): hash_of(file) for file in files}


def hash_of(file: Path) -> str:
    """Return the hash of a file."""
    return _of_file(file, file.stat().st_mtime_ns)


@cache
def hash_of_packages(packages: Sequence[str], pattern: str = "*.py") -> str:
    """Return the hash of the files of packages of hpcsimkit, the same for an editable and an installed kit.

    Parameters
    ----------
    packages : tuple of str
        Names of the packages, without ``hpcsimkit.``
    pattern : str
        Pattern of the names of files. Default: ``*.py``.

    Examples
    --------
    >>> hash_of_packages(("engine",)) == hash_of_packages(("results",))
    False
    """
    root = Path(_version.__file__).parent
    total = hashlib.sha256()
    for package in packages:
        for file in sorted((root / package).rglob(pattern)):
            total.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return total.hexdigest()[:16]


@cache
def _of_file(file: Path, modified: int) -> str:
    return sha256_of_content(file)[:16]


def _file_of(module: str) -> Path | None:
    """Return the source file of a module outside the decisive packages and the standard library."""
    top, *rest = module.split(".")
    if top in sys.stdlib_module_names or (top == "hpcsimkit" and rest and rest[0] in DECISIVE):
        return None
    file = Path(str(getattr(sys.modules.get(module), "__file__", None)))
    return file if file.is_file() else None
