"""The cross-entropy method: a round worked out by hand, a known optimum, and going on after a stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import make
from hpcsimkit.agents.training.cross_entropy import CrossEntropy, CrossEntropySettings
from hpcsimkit.errors import UsageError
from tests.agents.tiny_problem import env, goes_on_as_if_never_stopped, mean_wait, seated, told_by

SHORT = CrossEntropySettings(total_timesteps=12 * 8 * 3 * 6, episodes=3, population=8, elite=2)
LONG_FIRST = (0.0, 5.0, 0.0, 0.0, 0.0, 0.0)
"""Weights of the columns of the queue window, and the bias: the longer, the better."""


def test_a_round_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four networks the two that rank long jobs last do best; mean and spread go two thirds of the way."""
    settings = replace(SHORT, population=4, elite=2, episodes=1, inertia=0.25, first=LONG_FIRST, spread=8.0)
    trainer = CrossEntropy(env(), settings, seed=3)
    trainer._set_up()
    played: list[float] = []

    def play(network: Any, scenario: Any) -> float:
        played.append(float(network.tensors["weight.0"][0, 1]))
        return -played[-1]

    monkeypatch.setattr(trainer, "_play", play)
    trainer.round()
    assert played[0] == 5.0
    low = sorted(played)[:2]
    assert trainer._mean[1] == pytest.approx(0.25 * 5.0 + 0.75 * np.mean(low), rel=1e-6)
    assert trainer._spread[1] == pytest.approx(max(0.25 * 8.0 + 0.75 * np.std(low), 0.2), rel=1e-6)


def test_shortest_first_is_learned() -> None:
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen)
    for steps in (0, 20_000):
        settings = CrossEntropySettings(
            total_timesteps=steps, episodes=4, population=16, elite=4, spread=8.0, first=LONG_FIRST
        )
        waits.append(mean_wait(seated(CrossEntropy(env(), settings, seed=2).train()), unseen))
    assert waits[0] > 1.5 * optimum
    assert waits[1] == pytest.approx(optimum)


def test_same_seed_same_curve_other_seed_another() -> None:
    curves = [told_by(CrossEntropy(env(), SHORT, seed=seed)) for seed in (3, 3, 4)]
    assert curves[0] == curves[1] != curves[2]


def test_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> CrossEntropy:
        return CrossEntropy(
            env(), replace(SHORT, hidden=(4,)), seed=5, validate=lambda agent: agent.network.tensors["bias.0"][0],
            validate_every=2,
        )  # fmt: skip

    goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (replace(SHORT, elite=9), "elite needs 1 to 8 networks, found 9"),
        (replace(SHORT, first=(1.0, 2.0)), "first needs 6 weights, found 2"),
    ],
)
def test_settings_that_do_not_go_together(settings: CrossEntropySettings, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CrossEntropy(env(), settings).train()
