"""Policies that a centre may choose from: rules with and without a guard and tests, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

RULES = {
    "fcfs": ("fcfs", "+easy"),
    "fcfs, shortest backfilled": ("fcfs", "+easy-sjf"),
    "sjf": ("sjf", "+easy"),
    "wfp3": ("wfp3", "+easy"),
    "xfactor": ("xfactor", "+easy"),
    "unicef": ("unicef", "+easy"),
    "predicted-aging": ("aged(mean=1)", "+easy-weighted(mean=1)+live-history"),
}
"""Orders, and what is behind them."""

UNGUARDED = ("fcfs", "fcfs, shortest backfilled")
"""Rules that a guard does not change: the longest wait goes first anyway."""

RECIPE = "aged(mean=1)+guarded-wait(times=30)+easy-weighted(mean=1)+live-history"
"""What the name ``predicted-aging`` stands for."""


class Candidate(NamedTuple):
    """A rule with a guard and with tests, or without them.

    Parameters
    ----------
    rule : str
        Name among `RULES`.
    times : float, optional
        Multiple of the running mean wait from which a job goes first; None for no guard.
    seconds : int, optional
        Time limit of tests [s]; None for no tests.
    users : float
        Share of the users who allow tests. Default: 1.

    Examples
    --------
    >>> Candidate("unicef", 30, 300, 0.5).name
    'unicef+guarded-wait(times=30)+easy+tests(seconds=300,users=0.5)'
    >>> Candidate("predicted-aging", 30).name
    'predicted-aging'
    """

    rule: str
    times: float | None = None
    seconds: int | None = None
    users: float = 1.0

    @property
    def name(self) -> str:
        """Name of the policy."""
        order, behind = RULES[self.rule]
        guard = "" if self.times is None else f"+guarded-wait(times={self.times:g})"
        found = f"{order}{guard}{behind}"
        return f"{'predicted-aging' if found == RECIPE else found}{self._tests}"

    @property
    def _tests(self) -> str:
        if self.seconds is None:
            return ""
        return f"+tests(seconds={self.seconds}{'' if self.users == 1 else f',users={self.users:g}'})"


def candidates(times: Sequence[float], seconds: Sequence[int]) -> dict[str, Candidate]:
    """Return all candidates by name: each rule, with each guard and each time limit of tests, and without.

    >>> len(candidates([10, 30], [300])), len(candidates([], []))
    (34, 7)
    """
    return {found.name: found for found in _all(times, seconds)}


def _all(times: Sequence[float], seconds: Sequence[int]) -> Iterator[Candidate]:
    for rule in RULES:
        for guard in (None, *(times if rule not in UNGUARDED else ())):
            for limit in (None, *seconds):
                yield Candidate(rule, guard, limit)


def plain() -> list[str]:
    """Return the names of the rules as they are, without a guard, tests or predictions."""
    return [Candidate(rule).name for rule in RULES if rule != "predicted-aging"]


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the numbers of the points that no other one is better than, by the first value.

    >>> front([(3, 1), (1, 3), (2, 2), (2, 3), (4, 1)])
    [1, 2, 0]
    """
    found: list[int] = []
    for number in sorted(range(len(points)), key=lambda each: points[each]):
        if not found or points[number][1] < points[found[-1]][1]:
            found.append(number)
    return found
