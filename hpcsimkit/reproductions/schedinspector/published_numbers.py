"""Numbers of the paper."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["REJECTION_RATIOS", "TABLE_4", "TABLE_5", "Row4", "improvement"]


class Row4(NamedTuple):
    """Row of table 4: mean bounded slowdown of SJF, of the SDSC-SP2 inspector, and of the log's own."""

    base: float
    of_sdsc: float
    own: float


TABLE_4 = {
    "SDSC-SP2": Row4(149.5, 130.75, 130.75),
    "CTC-SP2": Row4(13.36, 10.79, 10.1),
    "Lublin": Row4(333.19, 320.39, 27.97),
    "HPC2N": Row4(8.26, 4.39, 3.27),
}

TABLE_5 = {
    ("SDSC-SP2", "sjf", False): (59.64, 59.37),
    ("SDSC-SP2", "f1", False): (60.18, 60.59),
    ("CTC-SP2", "sjf", False): (51.35, 49.92),
    ("CTC-SP2", "f1", False): (54.40, 54.23),
    ("Lublin", "sjf", False): (61.49, 61.06),
    ("Lublin", "f1", False): (67.37, 63.04),
    ("HPC2N", "sjf", False): (23.72, 23.47),
    ("HPC2N", "f1", False): (24.00, 23.79),
    ("SDSC-SP2", "sjf", True): (78.45, 78.37),
    ("SDSC-SP2", "f1", True): (76.71, 76.93),
    ("CTC-SP2", "sjf", True): (74.98, 74.89),
    ("CTC-SP2", "f1", True): (75.47, 76.05),
    ("Lublin", "sjf", True): (79.38, 77.71),
    ("Lublin", "f1", True): (80.38, 78.08),
    ("HPC2N", "sjf", True): (56.81, 57.10),
    ("HPC2N", "f1", True): (57.11, 56.57),
}
"""Utilisation of base and inspector [%], by log, order and backfilling."""

REJECTION_RATIOS = {"fcfs": 5.0, "lcfs": 39.1, "srf": 41.0, "saf": 48.2}
"""Rejections as a share of decisions at the end of trainings on SDSC-SP2 [%] (figure 7)."""


def improvement(base: float, other: float) -> float:
    """Return the reduction relative to the base's value [%].

    >>> improvement(8.0, 6.0)
    25.0
    """
    return 100 * (base - other) / base
