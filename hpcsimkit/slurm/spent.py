"""What the jobs of a group have spent: minutes of resources and time, which lose half in each half-life."""

from __future__ import annotations

from math import exp2, log

from hpcsimkit.slurm.tres import Amounts

__all__ = ["Spent"]

MINUTE = 60
LN2 = log(2)

JOBS = ""
"""Name under which the jobs themselves are counted."""

LEAST = 1e-6
"""Least amount times seconds that counts: less is what a half-life leaves of the distant past."""


class Spent:
    """Amounts times seconds of the running and past jobs of a group.

    Parameters
    ----------
    half_life : float
        Half-life [s]; 0 for none.
    now : int
        Time at which the account begins [s].

    Examples
    --------
    >>> spent = Spent(half_life=0, now=0)
    >>> spent.begin(7, {"cpus": 4.0}, factor=1.0, now=0)
    >>> spent.minutes("cpus", now=90), spent.time(now=90)
    (6.0, 90.0)
    """

    def __init__(self, half_life: float, now: int) -> None:
        self._half_life, self._at = half_life, now
        self._sums: dict[str, float] = {}
        self._running: dict[int, dict[str, float]] = {}

    @property
    def decays(self) -> bool:
        """Whether time alone makes it less."""
        return bool(self._half_life)

    def begin(self, row: int, amounts: Amounts, factor: float, now: int) -> None:
        """Enter that a job has started, whose resources count by a factor."""
        self._advance(now)
        self._running[row] = {JOBS: 1.0, **{name: factor * amount for name, amount in amounts.items()}}

    def end(self, row: int, now: int) -> None:
        """Enter that a job runs no longer."""
        self._advance(now)
        del self._running[row]

    def minutes(self, name: str, now: int) -> float:
        """Return the minutes of a resource."""
        self._advance(now)
        return self._sums.get(name, 0.0) / MINUTE

    def time(self, now: int) -> float:
        """Return the time of all jobs [s]."""
        return self.minutes(JOBS, now) * MINUTE

    def _advance(self, now: int) -> None:
        seconds: float = now - self._at
        if seconds <= 0:
            return
        left = 1.0
        if self._half_life:
            left = exp2(-seconds / self._half_life)
            seconds = (1.0 - left) * self._half_life / LN2
        kept = {name: amount * left for name, amount in self._sums.items()}
        self._sums = {name: amount for name, amount in kept.items() if amount > LEAST}
        for rates in self._running.values():
            for name, rate in rates.items():
                self._sums[name] = self._sums.get(name, 0.0) + rate * seconds
        self._at = now
