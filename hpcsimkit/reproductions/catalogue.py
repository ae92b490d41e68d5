"""Catalogue of the reproductions, which are imported on demand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.reproductions.papers import PAPERS

if TYPE_CHECKING:
    from hpcsimkit.reproductions.reproduction import Reproduction

__all__ = ["SYSTEMS", "reproduction_named"]

SYSTEMS = tuple(PAPERS)
"""Names of all reproductions."""


def reproduction_named(name: str, allow_code: Sequence[str] = ()) -> type[Reproduction]:
    """Return the reproduction of a system, or that of a folder with ``plan.toml``.

    Parameters
    ----------
    name : str
        Name of the system, or path of the folder.
    allow_code : sequence of str
        Modules, files and folders from which the plan of a folder may import code.

    Raises
    ------
    UsageError
        No reproduction has that name.

    Examples
    --------
    >>> reproduction_named("masked-pppo")
    Traceback (most recent call last):
    hpcsimkit.errors.UsageError: unknown system 'masked-pppo'; nearest: masked-ppo
    """
    from hpcsimkit.experiments.trust import Trust
    from hpcsimkit.reproductions.plans.planned import reproduction_of

    if name in SYSTEMS:
        return reproduction_of(PAPERS[name])
    if (Path(name) / "plan.toml").is_file():
        return reproduction_of(Path(name).resolve(), Trust(tuple(allow_code)))
    raise UsageError(f"unknown system {name!r}{nearest(name, SYSTEMS)}")
