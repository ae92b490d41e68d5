"""Numbers of the paper (IEEE TPDS 2022)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "HOURS_OF_TRAINING",
    "LONGEST_WAITS",
    "MOST_BETTER",
    "SECONDS_OF_UPDATE",
    "TABLE_4",
]

_FREE = (0.0, 0.0, 100.0, 100.0, 0.0, 0.0)

TABLE_4: Mapping[str, tuple[float, ...]] = {
    "FCFS/EASY": (79.25, 30.45, 9.88, 16.99, 10.87, 52.56),
    "Optimization": _FREE,
    "BinPacking": _FREE,
    "Random": _FREE,
    "Decima-PG": _FREE,
    "DRAS-DQL": (84.83, 34.17, 6.84, 10.91, 8.33, 54.92),
    "DRAS-PG": (83.76, 33.67, 8.63, 11.29, 7.61, 55.04),
    "DRAS-A2C": (80.36, 38.48, 10.60, 13.95, 9.03, 47.56),
    "DRAS-PPO": (79.73, 38.57, 10.96, 13.39, 9.30, 48.03),
}
"""Shares of jobs and of core hours [%]: backfilled, ready, reserved."""

LONGEST_WAITS: Mapping[str, str] = {
    "FCFS/EASY": "13",
    "Optimization": "twice DRAS",
    "BinPacking": "95",
    "Random": "170",
    "Decima-PG": "170",
    "DRAS-DQL": "14 to 20",
    "DRAS-PG": "14 to 20",
    "DRAS-A2C": "14 to 20",
    "DRAS-PPO": "14 to 20",
}
"""Longest waits on Theta [d], as stated in the text."""

MOST_BETTER = 50.0
"""Maximum improvement of DRAS over existing methods [%]."""

SECONDS_OF_UPDATE: Mapping[str, float] = {"dras-dql": 2.0, "dras-pg": 1.0, "dras-a2c": 1.0, "dras-ppo": 1.0}
"""Maximum time of an update [s]."""

HOURS_OF_TRAINING = 3.0
"""Maximum time of a training, to the model in use [h]."""
