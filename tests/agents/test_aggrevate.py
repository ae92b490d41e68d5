"""AggreVaTe: it becomes better than its expert, costs worked out by hand, and going on after a stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Workload, make
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.training.aggrevate import AggreVaTe, AggreVaTeSettings
from tests.agents.tiny_problem import env, goes_on_as_if_never_stopped, mean_wait, seated, small_env

SHORT = AggreVaTeSettings(total_timesteps=5000, episodes=4, n_steps=2, updates=2, kind="slots", hidden=(8,))
OPPOSITE = Pipeline(order=External(base=make("ljf").order), window=12)
"""A seat whose expert does as badly as possible: longest first."""


def test_better_than_its_expert() -> None:
    unseen = range(1000, 1040)
    optimum, expert = (mean_wait(make(name), unseen) for name in ("sjf", "ljf"))
    settings = replace(SHORT, total_timesteps=40_000, n_steps=4, updates=16, guided=0.2)
    agent = AggreVaTe(env(policy=OPPOSITE), settings, seed=2).train()
    learned = mean_wait(seated(agent), unseen)
    assert learned < optimum + 0.1 * (expert - optimum)


def test_costs_by_hand() -> None:
    """One long job and two short ones; the expert goes on longest first."""
    jobs = Workload({"submit_time": [0] * 3, "run_time": [100, 10, 20], "nodes": [1] * 3}, machine_size=1)
    problem = small_env(
        episodes=Fixed(jobs), policy=Pipeline(order=External(base=make("ljf").order), window=4, fitting=True)
    )
    trainer = AggreVaTe(problem, SHORT, seed=1)
    trainer._set_up()
    taken = trainer._play(trainer.networks.network(), 1.0)[1]
    assert len(taken) == 2, "the last job is the only one"
    best = trainer._compare(Fixed(jobs).sample(trainer.rng), [], taken[0])
    # each job first; the slots are longest first, too
    waits = np.array([100 + 120, 20 + 120, 10 + 110]) / 3 / 100
    _, compared, differences = (column[0] for column in trainer.memory.columns())
    assert compared.tolist() == [True, True, True, False]
    assert differences[:3] == pytest.approx(waits.mean() - waits, abs=1e-6)
    assert best == pytest.approx(waits[0] - waits.min(), abs=1e-6)


def test_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> AggreVaTe:
        settings = replace(SHORT, memory=10)
        return AggreVaTe(
            env(), settings, seed=5, validate=lambda agent: agent.about["steps"], validate_every=2
        )

    goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)
