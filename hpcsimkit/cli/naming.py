"""What the arguments of a command name: code of the user, and an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from hpcsimkit.experiments import source as sources

Kind = TypeVar("Kind", bound="sources.Source")

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
