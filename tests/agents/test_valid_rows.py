"""Networks of slots that reckon only rows with options give what they give for all rows."""

from __future__ import annotations

import numpy as np
import torch

from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores
from hpcsimkit.agents.networks.torch_networks import ActorCritic, masked_log_probabilities

RNG = np.random.default_rng(8)
OBSERVATIONS = RNG.random((50, 13, 6), dtype=np.float32)
VALID = RNG.random((50, 12)) < 0.3
VALID[:, 4] = True


def networks() -> ActorCritic:
    torch.manual_seed(0)
    return ActorCritic((13, 6), 12, kind="slots", hidden=(32, 16, 8), activation="relu")


def test_scores_and_gradients_in_torch() -> None:
    found, gradients = [], []
    for valid in (None, torch.from_numpy(VALID)):
        made = networks()
        scores = made.scores(torch.from_numpy(OBSERVATIONS), valid)
        assert scores.shape == (50, 12)
        chosen = masked_log_probabilities(scores, torch.from_numpy(VALID))
        found.append(chosen.detach().numpy())
        chosen[:, 4].sum().backward()
        gradients.append(np.concatenate([each.grad.numpy().ravel() for each in made.actor.parameters()]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)
    assert np.abs(gradients[0]).max() > 0
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_scores_in_numpy() -> None:
    network = networks().network()
    assert isinstance(network, SlotScores)
    everywhere = network.many(OBSERVATIONS)
    assert everywhere.shape == (50, 13)
    found = network.many(OBSERVATIONS, VALID)
    np.testing.assert_allclose(found[VALID], everywhere[:, :12][VALID], rtol=1e-5, atol=1e-7)
    assert not found[~VALID].any()
    rows = np.flatnonzero(VALID[0])
    np.testing.assert_allclose(
        network.scores_of(OBSERVATIONS[0], rows), network.scores(OBSERVATIONS[0])[rows], rtol=1e-5, atol=1e-7
    )


def test_dense_networks_read_everything_anyway() -> None:
    weights = {"weight.0": RNG.random((3, 6), dtype=np.float32), "bias.0": np.zeros(3, dtype=np.float32)}
    network, observation = Dense(weights), OBSERVATIONS[0, 0]
    np.testing.assert_array_equal(
        network.scores_of(observation, np.array([2])), network.scores(observation)[[2]]
    )
    np.testing.assert_array_equal(
        network.many(OBSERVATIONS[:, 0], np.zeros((50, 3), dtype=np.bool_)), network.many(OBSERVATIONS[:, 0])
    )
