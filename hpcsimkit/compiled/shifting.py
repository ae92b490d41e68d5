"""Insertion into and removal from sorted arrays of which the first places are used."""

from __future__ import annotations

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.state import Integers, Numbers

place_of = np.uintp
"""Type of an index that is not negative: with others, loops over indices become no vector instructions."""


@machine_code
def open_gap(values: Integers | Numbers, place: int, count: int) -> None:
    """Move the values from a place on by one; `count` places are in use."""
    for at in range(count, place, -1):
        values[place_of(at)] = values[place_of(at - 1)]


@machine_code
def close_gap(values: Integers, place: int, gap: int, count: int) -> None:
    """Remove the `gap` values from a place on; `count` places are in use."""
    for at in range(place, count - gap):
        values[place_of(at)] = values[place_of(at + gap)]
