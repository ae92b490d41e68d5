"""How objects are drawn and shown in notebooks: by a package above them, imported when one is first shown.

``hpcsimkit`` registers :mod:`hpcsimkit.reports.views`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LOADERS_OF_VIEWS", "views"]

LOADERS_OF_VIEWS: list[Callable[[], Any]] = []
"""Functions that import and return the module of the views; the first one is used."""


def views() -> Any:
    """Return the module whose functions draw and show objects."""
    return LOADERS_OF_VIEWS[0]()
