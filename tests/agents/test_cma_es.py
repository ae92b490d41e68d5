"""CMA-ES: a known optimum, going on after a stop, and the line where the package is absent."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import make
from hpcsimkit.agents.training.cma_es import CMAES, CMAESSettings
from hpcsimkit.errors import UsageError
from tests.agents.tiny_problem import env, goes_on_as_if_never_stopped, mean_wait, seated, told_by

SHORT = CMAESSettings(total_timesteps=12 * 8 * 3 * 6, episodes=3, population=8)
LONG_FIRST = (0.0, 5.0, 0.0, 0.0, 0.0, 0.0)
"""Weights of the columns of the queue window, and the bias: the longer, the better."""


def test_package_is_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(UsageError, match=r"^cma-es needs the package cma: pip install 'hpcsimkit\[learn\]'$"):
        CMAES(env(), SHORT).train()


def test_population_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="cma-es: population needs a whole number of at least 2, found 1"):
        CMAES(env(), replace(SHORT, population=1)).train()


class TestWithPackage:
    @pytest.fixture(autouse=True)
    def package(self) -> None:
        pytest.importorskip("cma", reason="needs the extra [learn]: pip install 'hpcsimkit[learn]'")

    def test_shortest_first_is_learned(self) -> None:
        unseen, waits = range(1000, 1040), []
        optimum = mean_wait(make("sjf"), unseen)
        for steps in (0, 20_000):
            settings = CMAESSettings(total_timesteps=steps, episodes=4, spread=8.0, first=LONG_FIRST)
            waits.append(mean_wait(seated(CMAES(env(), settings, seed=2).train()), unseen))
        assert waits[0] > 1.5 * optimum
        assert waits[1] == pytest.approx(optimum)

    def test_same_seed_same_curve_other_seed_another(self) -> None:
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        curves = [told_by(CMAES(env(), SHORT, seed=seed)) for seed in (3, 3, 4)]
        assert curves[0] == curves[1] != curves[2]
        assert np.random.get_state()[1].tolist() == before, "numpy's global generator was used"  # noqa: NPY002

    def test_goes_on_bit_for_bit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def made() -> CMAES:
            return CMAES(
                env(), replace(SHORT, hidden=(4,)), seed=5,
                validate=lambda agent: agent.network.tensors["bias.0"][0], validate_every=2,
            )  # fmt: skip

        goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)
