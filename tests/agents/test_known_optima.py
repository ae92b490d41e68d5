"""Trainings at their shipped settings come most of the way from chance to a known optimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hpcsimkit import External, Simulation
from hpcsimkit.agents.masked_ppo.environments import SCALED
from hpcsimkit.agents.networks.torch_networks import ActorCritic
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.machine_encoders import JobMachinePairs
from hpcsimkit.envs.interfaces import Encoder
from tests.agents.known_optima_of_seats import (
    AT_LONGEST,
    BACKFILLING,
    CANDIDATES,
    DISPATCH,
    INSPECTOR,
    SEAT_PRESETS,
    TWO_MACHINES,
    UNSEEN,
    Problem,
    dispatched,
    for_two_machines,
)
from tests.agents.known_optimum import PRESETS, bounds, way

SHORT = {"cem": 0.1}
"""Shares of the trainings in the quick form, of algorithms that learn within a second or two."""

OPTIMAL = tuple(PRESETS)
"""Algorithms that come 90 % of the way with each of three seeds: all."""

SHORT_FORMS = {
    "ppo": 0.5,
    "maskable-ppo": 0.5,
    "sb3-ppo": 0.5,
    "a2c": 0.5,
    "pg": 0.5,
    "dras-pg": 1.0,
    "dras-ppo": 1.0,
}
"""Shares of the trainings after which algorithms have come 60 % of the way with the first seed."""

SEATS_SHORT = {"rlbackfilling": 1.0, "prompt-inspector": 0.5, "cush": 0.45}
"""The same at other seats."""

SEEDS = range(3)


def test_chance_and_the_optimum() -> None:
    """A job waits for the half of the nine others by chance: 9 / 2 x 50 s."""
    chance, best = bounds()
    assert chance == pytest.approx(4.5 * 50, rel=0.03)
    assert best < 0.7 * chance


@pytest.mark.parametrize("algorithm", SHORT)
def test_most_of_the_way(algorithm: str) -> None:
    assert way(PRESETS[algorithm], 0, SHORT[algorithm]) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", SHORT_FORMS)
def test_most_of_the_way_in_a_part_of_a_minute(algorithm: str) -> None:
    assert way(PRESETS[algorithm], 0, SHORT_FORMS[algorithm]) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", OPTIMAL)
@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_all_of_the_way(algorithm: str, seed: int) -> None:
    assert way(PRESETS[algorithm], seed) > 0.9


@pytest.mark.parametrize(
    "problem", [INSPECTOR, BACKFILLING, DISPATCH], ids=["inspector", "backfiller", "dispatch"]
)
def test_optima_at_other_seats(problem: Problem) -> None:
    assert problem.best() < 0.96 * problem.mean_wait(problem.chance)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEATS_SHORT)
def test_most_of_the_way_at_other_seats(name: str) -> None:
    assert SEAT_PRESETS[name](0, SEATS_SHORT[name]) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", SEAT_PRESETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_all_of_the_way_at_other_seats(name: str, seed: int) -> None:
    assert SEAT_PRESETS[name](seed) > 0.9


@pytest.mark.parametrize(
    ("encoder", "least", "most"),
    [
        (RequestsAndMachines(CANDIDATES, 2), 0.0, 1e-6),
        (JobMachinePairs(CANDIDATES, 2, 3, AT_LONGEST), 0.1, 1.0),
    ],
    ids=["published", "scaled"],
)
def test_raw_observations_saturate_the_network(encoder: Encoder, least: float, most: float) -> None:
    """Slopes of the first hidden layer at the first decisions: without any, nothing is learned of the inputs."""
    seen = np.zeros((10, *encoder.shape), dtype=np.float32)
    for row, seed in enumerate(UNSEEN[:10]):
        jobs = for_two_machines(np.random.default_rng(seed))
        simulation = Simulation(jobs, dispatched(External()), TWO_MACHINES)
        decision = simulation.next_decision()
        assert decision is not None
        encoder.bind(simulation.system)(decision, seen[row])
    torch.manual_seed(0)
    networks = ActorCritic(encoder.shape, 2 * CANDIDATES, hidden=SCALED.hidden, activation=SCALED.activation)
    first = next(layer for layer in networks.actor if isinstance(layer, nn.Linear))
    slopes = 1 - torch.tanh(first(torch.from_numpy(seen).flatten(1))).square()
    assert least <= float(slopes.mean()) <= most
