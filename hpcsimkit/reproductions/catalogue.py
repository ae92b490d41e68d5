"""Catalogue of the reproductions, which are imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.reproductions.papers import PAPERS

if TYPE_CHECKING:
    from hpcsimkit.reproductions.reproduction import Reproduction

__all__ = ["SYSTEMS", "reproduction_named"]

SYSTEMS = tuple(PAPERS)
"""Names of all reproductions."""


def reproduction_named(name: str) -> type[Reproduction]:
    """Return the reproduction of a system.

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
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}{nearest(name, SYSTEMS)}")
    from hpcsimkit.reproductions.plans.planned import reproduction_of

    return reproduction_of(PAPERS[name])
