"""Spread of measures over seeds: mean, minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.cells import number

__all__ = ["Spread", "spread_cell", "spread_of"]

Floats = NDArray[np.float64]


class Spread(NamedTuple):
    """Mean, minimum and maximum of a measure over seeds."""

    mean: float
    least: float
    most: float


def spread_of(values: Floats) -> Spread:
    """Return the mean, minimum and maximum.

    >>> spread_of(np.array([1.0, 2.0, 6.0]))
    Spread(mean=3.0, least=1.0, most=6.0)
    """
    return Spread(float(values.mean()), float(values.min()), float(values.max()))


def spread_cell(spread: Spread, by: float = 1.0, form: Callable[[float], str] = number) -> str:
    """Return the text of a mean with its minimum and maximum; for a single value, of the number only.

    >>> spread_cell(Spread(3.0, 1.0, 6.0)), spread_cell(Spread(3.0, 3.0, 3.0), by=2)
    ('3.00 (1.00 to 6.00)', '6.00')
    """
    mean, least, most = (form(each * by) for each in spread)
    return mean if least == most else f"{mean} ({least} to {most})"
