"""Trainings at their shipped settings come most of the way from chance to a known optimum."""

from __future__ import annotations

import pytest

from tests.agents.known_optima_of_seats import BACKFILLING, DISPATCH, INSPECTOR, SEAT_PRESETS, Problem
from tests.agents.known_optimum import PRESETS, bounds, way

SHORT = {"cem": 0.1}
"""Shares of the trainings in the quick form, of algorithms that learn within a second or two."""

LEARNED = ("dras-dql", "dras-pg", "dras-a2c", "dras-ppo", "ppo", "dql", "maskable-ppo", "sb3-ppo")
"""Algorithms that come 60 % of the way with the first seed, in about a minute of a core at most."""

OPTIMAL = ("cem", "dql")
"""Algorithms that come 90 % of the way with each of three seeds."""

AT_SEATS = {"rlbackfilling": (1.0, 0.9), "cush": (0.3, 0.6)}
"""Shares of the trainings at other seats, and how far they come with the first seed, in about a minute."""


def test_chance_and_the_optimum() -> None:
    """A job waits for the half of the nine others by chance: 9 / 2 x 50 s."""
    chance, best = bounds()
    assert chance == pytest.approx(4.5 * 50, rel=0.03)
    assert best < 0.7 * chance


@pytest.mark.parametrize("algorithm", SHORT)
def test_most_of_the_way(algorithm: str) -> None:
    assert way(PRESETS[algorithm], 0, SHORT[algorithm]) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", LEARNED)
def test_most_of_the_way_in_a_minute(algorithm: str) -> None:
    assert way(PRESETS[algorithm], 0) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", OPTIMAL)
@pytest.mark.parametrize("seed", range(3))
def test_nearly_all_of_the_way(algorithm: str, seed: int) -> None:
    assert way(PRESETS[algorithm], seed) > 0.9


@pytest.mark.parametrize(
    "problem", [INSPECTOR, BACKFILLING, DISPATCH], ids=["inspector", "backfiller", "dispatch"]
)
def test_optima_at_other_seats(problem: Problem) -> None:
    assert problem.best() < 0.96 * problem.mean_wait(problem.chance)


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_SEATS)
def test_most_of_the_way_at_other_seats(name: str) -> None:
    share, least = AT_SEATS[name]
    assert SEAT_PRESETS[name](0, share) > least
