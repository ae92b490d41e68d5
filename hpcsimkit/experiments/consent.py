"""Consent to code that files name: the code given on the command line, and that remembered for a folder.

Consent is remembered in the user's configuration folder, which is the owner's only, and never beside a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import is_file, is_folder, make_folder, read_bytes, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.printable import warn

if TYPE_CHECKING:
    from hpcsimkit.experiments import source as sources

Kind = TypeVar("Kind", bound="sources.Source")

FILES = ("source", "model", "inspector", "system", "name")
"""Arguments of commands that may be files with names of code."""

SUFFIXES = (".toml", ".hpcsim")

NAMING = (
    *("name", "policies", "placement", "locality", "within", "inspector", "beside", "algorithm"),
    *("reader", "machines", "metrics", "named"),
)
"""Arguments of commands that may be names of code; `named` are values within other ones."""


def allowed_code(arguments: Mapping[str, Any]) -> list[str]:
    """Return the modules, files and folders that the user names on the command line.

    Names in files may refer to this code, and to no other; see :mod:`hpcsimkit.experiments.parts.trust`.
    """
    from hpcsimkit.experiments.parts import registry

    given = [arguments.get(name) for name in NAMING]
    names = [name for value in given for name in (value if isinstance(value, list) else [value]) if name]
    code = [part for name in names for part in registry.code_of(name)]
    return [*(arguments.get("allow_code") or ()), *filter(None, [arguments.get("parts")]), *code]


def experiment_of(kind: type[Kind], arguments: Mapping[str, Any], **changes: object) -> Kind:
    """Return the experiment defined by the arguments of a command; `changes` replace arguments."""
    source, allowed = arguments["source"], allowed_code(arguments)
    flags = {name: value for name, value in arguments.items() if name in kind.model_fields} | changes
    flags["allow_code"] = allowed
    if isinstance(source, Path) and source.suffix == ".toml":
        return kind.of_flags(flags, kind.read(source, allowed).model_dump(exclude_unset=True))
    return kind.of_flags({**flags, "log": None if source is None else str(source)})


def consented(arguments: Mapping[str, Any], *, remember: bool | None) -> list[str]:
    """Return the consented code of a command: that of ``--allow-code``, and that remembered for the folder.

    Parameters
    ----------
    arguments : mapping
        Arguments of the command.
    remember : bool or None
        Whether the code is remembered for the folder of the file, or what is remembered is forgotten; None
        for neither.

    Raises
    ------
    UsageError
        There is no file or no code to remember.
    """
    given, folder = list(arguments.get("allow_code") or ()), _folder(arguments)
    if folder is None:
        if remember is not None:
            raise UsageError("--remember-code and --forget-code need a file that names code (.toml, .hpcsim)")
        return given
    if remember is None:
        found = _remembered().get(str(folder), [])
        if found and not arguments.get("quiet"):
            warn(f"consent to {', '.join(found)} is remembered for {folder}; --forget-code forgets it")
        return [*given, *found]
    if remember and not given:
        raise UsageError("--remember-code needs code to remember: --allow-code NAME")
    others = {place: code for place, code in _remembered().items() if place != str(folder)}
    _write({**others, str(folder): _absolute(given, folder)} if remember else others)
    return given


def _folder(arguments: Mapping[str, Any]) -> Path | None:
    """Return the folder of the file with names of code, if a command has one."""
    for name in FILES:
        path = arguments.get(name)
        if path is not None and is_file(path) and Path(path).suffix in SUFFIXES:
            return Path(path).resolve().parent
        if name == "system" and path is not None and is_folder(path):
            return Path(path).resolve()
    return None


def _absolute(code: Sequence[str], folder: Path) -> list[str]:
    """Return the paths of consented files and folders; the names of other modules."""
    from hpcsimkit.engine.user_code import file_of, places_of

    found = []
    for name in code:
        path = Path(name) if is_folder(name) else file_of(name, places_of(str(folder)))
        found.append(name if path is None else str(path.resolve()))
    return found


def _memory() -> Path:
    import typer

    return Path(typer.get_app_dir("hpcsimkit"), "allowed-code.json")


def _remembered() -> dict[str, list[str]]:
    """Return the remembered code by folder.

    Raises
    ------
    UsageError
        The file with it is damaged, or others may write to it.
    """
    from hpcsimkit.io.documents import json_value

    file = _memory()
    if not is_file(file):
        return {}
    about = file.stat()
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        raise UsageError(f"{file}: a file that only you may write is needed")
    try:
        found = json_value(read_bytes(file, Format.CONSENT).decode(), file)
    except ValueError:
        found = None
    if not (isinstance(found, dict) and all(_are_names(names) for names in found.values())):
        raise UsageError(f"{file}: names of code by folder are needed; remove the file to forget all of it")
    return found


def _are_names(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _write(remembered: Mapping[str, Sequence[str]]) -> None:
    file = _memory()
    make_folder(file.parent.parent)
    if not file.parent.exists():
        file.parent.mkdir(mode=0o700)
    write_bytes(file, f"{json.dumps(remembered, indent=1)}\n".encode())
    file.chmod(0o600)
