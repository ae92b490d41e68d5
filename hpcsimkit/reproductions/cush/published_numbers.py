"""Numbers of the paper (DRL4KDD 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["GAINS", "HORIZONS", "TABLE_1", "Published"]


class Published(NamedTuple):
    """Row of table 1.

    Parameters
    ----------
    ntat : float
        Mean normalised turnaround.
    wait : float
        Mean wait [steps].
    rewards : float
        Mean return of the job selector's decisions.
    """

    ntat: float
    wait: float
    rewards: float


_ROWS = ("CuSH", "FCFS DF", "FCFS BF", "SJF DF", "SJF BF", "DRF DF", "DRF BF", "Rand DF", "Rand BF")

_SIERRA = (
    (3.33, 11.09, -379.92),
    (7.13, 22.68, -2342.47),
    (5.71, 15.58, -1407.31),
    (5.19, 18.53, -853.70),
    (4.13, 12.07, -444.83),
    (7.43, 21.45, -2623.49),
    (5.54, 12.76, -1267.79),
    (7.17, 23.62, -2197.91),
    (5.42, 13.53, -1114.54),
)

_SUMMIT = (
    (3.80, 11.79, -489.03),
    (6.54, 20.90, -2014.06),
    (7.07, 19.45, -2292.52),
    (5.23, 18.37, -949.60),
    (5.14, 15.33, -766.75),
    (6.40, 19.59, -1854.43),
    (6.69, 17.86, -2059.94),
    (7.01, 22.39, -2332.09),
    (6.46, 16.38, -1820.30),
)

TABLE_1: Mapping[str, Mapping[str, Published]] = {
    system: {row: Published(*numbers) for row, numbers in zip(_ROWS, table, strict=True)}
    for system, table in (("sierra", _SIERRA), ("summit", _SUMMIT))
}
"""Numbers by system and row; DF is depth-first, BF breadth-first."""

GAINS: Mapping[str, float] = {"sierra": 19.0, "summit": 26.0}
"""Reduction of CuSH's NTAT relative to the best heuristic row [%]."""

HORIZONS: Mapping[int, float] = {2: 3.66, 5: 3.33, 10: 3.34, 20: 3.37}
"""CuSH's NTAT on Sierra by horizon [steps] (section 4.2.2)."""
