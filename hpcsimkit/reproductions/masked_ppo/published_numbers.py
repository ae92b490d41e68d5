"""Numbers of the paper's tables I and II, over 23 days, and its p-values."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LOWER_THAN_BFBP", "MODEL", "P_VALUES", "TABLES"]

MODEL = "RL model"

TABLES: Mapping[str, Mapping[str, float]] = {
    "wait": {"Oracle SJF": 308.55, "SJF": 454.05, MODEL: 456.79, "BFBP": 549.59, "FCFS": 2779.20},
    "utilisation": {"Oracle SJF": 45.18, "SJF": 44.73, MODEL: 45.61, "BFBP": 45.63, "FCFS": 41.26},
}
"""Mean wait [min] and utilisation [%]."""

P_VALUES: Mapping[str, Mapping[str, float]] = {
    "wait": {"Oracle SJF": 3.156e-10, "SJF": 0.9238, "BFBP": 0.003718, "FCFS": 2.2e-16},
    "utilisation": {"Oracle SJF": 0.3567, "SJF": 0.05552, "BFBP": 0.9671, "FCFS": 2.2e-16},
}
"""p-values of t-tests against the model."""

LOWER_THAN_BFBP = 16.9
"""Reduction of the model's mean wait relative to BFBP's [%]."""
