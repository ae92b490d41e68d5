"""SchedInspector's training without a limit of rejections: sequences that are too long are thrown away."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.trainer import InspectorSettings, InspectorTrainer
from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.spaces.sequences import Sequences
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.on_policy import Batch
from hpcsimkit.agents.training.returns import generalised_advantages
from hpcsimkit.agents.training.trainer import CURVE
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.dirlab import published
from hpcsimkit.reports.learning_curve import read_curve
from hpcsimkit.workloads import default_workload
from tests.agents.tiny_problem import goes_on_as_if_never_stopped

JOBS = 10
LONGEST = 22
"""Decisions; who rejects every other time has some 20."""

SETTINGS = InspectorSettings(total_timesteps=3_000, episodes=12, n_epochs=5, longest=LONGEST)
LOG = default_workload(np.random.default_rng(3), jobs=300, load=1.2)


def env() -> SchedulingEnv:
    base = published("schedinspector", "sjf")
    seat = published("schedinspector", "sjf", inspector=External(), max_rejections=None)
    return SchedulingEnv(
        Sequences(LOG, JOBS), seat, InspectorFeatures(), AcceptReject(), Improvement(base, kind="bounded"),
        stage="inspector",
    )  # fmt: skip


class Witness(InspectorTrainer):
    """Notes what is seen in each place, and what becomes of its sequences."""

    def begin_run(self) -> None:
        super().begin_run()
        self.sequences: list[tuple[bool, list[tuple[float, ...]]]] = []
        now: list[list[tuple[float, ...]]] = [[] for _ in range(self.settings.episodes)]
        step = self.vector.step_places

        def noted(places: Any, actions: Any) -> Any:
            for place, seen in zip(places, self.observations[places], strict=True):
                now[place].append(tuple(seen.tolist()))
            outcome = step(places, actions)
            for place, over, info in zip(places, *outcome[2:], strict=True):
                if over:
                    self.sequences.append((info["TimeLimit.truncated"], now[place]))
                    now[place] = []
            return outcome

        self.vector.step_places = noted  # type: ignore[method-assign]


def seen_in(batch: Batch) -> list[tuple[float, ...]]:
    return sorted(map(tuple, batch.observations.tolist()))


@pytest.mark.parametrize("longest", [LONGEST, None])
def test_what_is_too_long_is_not_learned_from(longest: int | None) -> None:
    trainer = Witness(env(), replace(SETTINGS, longest=longest), seed=2)
    trainer._set_up()
    batch, sums = trainer._play()
    kept = [rows for cut, rows in trainer.sequences if not cut]
    thrown = [rows for cut, rows in trainer.sequences if cut]
    assert len(kept) == len(sums) == SETTINGS.episodes, "others are played in the place of those"
    assert seen_in(batch) == sorted(row for rows in kept for row in rows)
    assert trainer.steps == sum(map(len, kept)) + sum(map(len, thrown)), "they count as played"
    if longest is None:
        assert not thrown and max(map(len, kept)) > LONGEST
    else:
        assert {len(rows) for rows in thrown} == {LONGEST}
        assert max(map(len, kept)) <= LONGEST


def test_the_curve_tells_what_was_thrown_away() -> None:
    trainer = Witness(env(), SETTINGS, seed=2)
    reports: list[Report] = []
    trainer.train(tell=reports.append)
    lost = sum(len(rows) for cut, rows in trainer.sequences if cut)
    before = np.diff([0, *(report.steps for report in reports)])
    told = [report.measures["thrown_away"] for report in reports]
    assert np.dot(before, told) == pytest.approx(lost)
    assert 0.1 < lost / trainer.steps < 0.9
    assert reports[-1].episodes == sum(not cut for cut, _ in trainer.sequences)


def test_a_sequence_is_worth_the_same_after_one_that_was_thrown_away() -> None:
    """Two places: a sequence of one decision; one that is cut off after two, and another of two in its place."""
    trainer = InspectorTrainer(env(), replace(SETTINGS, episodes=2, gamma=0.9, gae_lambda=0.8), seed=2)
    trainer._set_up()
    critic = trainer.networks.value_network()
    seen = np.random.default_rng(0).random((5, 7)).astype(np.float32)
    steps, moves = trainer._rollouts
    for rows, playing, rewards, over, cut in (
        ([0, 1], [1, 1], [3, 9], [1, 0], [0, 0]),
        ([2], [0, 1], [0, 9], [0, 1], [0, 1]),
        ([3], [0, 1], [0, 1], [0, 0], [0, 0]),
        ([4], [0, 1], [0, 2], [0, 1], [0, 0]),
    ):
        count = len(rows)
        valid = np.ones((count, 2), dtype=np.bool_)
        steps.add(seen[rows], valid, np.array(rows), np.zeros(count, dtype=np.float32))
        moves.add(*([each] for each in (playing, rewards, over, cut)))
    batch = trainer._worth(critic)
    assert (batch.actions.tolist(), trainer.steps) == ([0, 3, 4], 5)
    values = critic.many(seen)[:, 0]
    alone = generalised_advantages(
        np.array([[1], [2]], dtype=np.float32), values[3:, None], np.array([[False], [True]]),
        np.zeros(1, dtype=np.float32), 0.9, 0.8,
    )[:, 0]  # fmt: skip
    assert batch.advantages.tolist() == pytest.approx([3 - values[0], *alone], rel=1e-5)
    assert batch.returns.tolist() == pytest.approx([3, 1 + 0.9 * 2, 2]), "the critic learns what was earned"
    assert torch.equal(batch.observations, torch.from_numpy(seen[[0, 3, 4]]))


def test_the_environment_stays_as_it_was() -> None:
    given = env()
    InspectorTrainer(given, replace(SETTINGS, total_timesteps=1), seed=2).train()
    assert given.max_steps is None


class Stubborn(InspectorTrainer):
    """Rejects whatever it may after the first round."""

    def act(self, actor: Any, observations: Any, valid: Any) -> Any:
        actions, logarithms = super().act(actor, observations, valid)
        return (actions, logarithms) if self.steps == 0 else (valid[:, 1].astype(np.int64), logarithms)


def test_a_training_ends_though_all_is_thrown_away(tmp_path: Path) -> None:
    reports: list[Report] = []
    settings = replace(SETTINGS, longest=JOBS - 1)
    with pytest.raises(UsageError, match="schedinspector: no sequence ends within longest = 9 decisions"):
        InspectorTrainer(env(), settings, seed=2).train()
    Stubborn(env(), SETTINGS, seed=2).train(tmp_path, tell=reports.append)
    first, last = reports
    assert 0 < first.measures["thrown_away"] < 1
    assert last.measures == {"thrown_away": 1.0} and math.isnan(last.reward)
    assert last.episodes == first.episodes == SETTINGS.episodes
    assert SETTINGS.total_timesteps <= last.steps < SETTINGS.total_timesteps + SETTINGS.episodes * LONGEST
    curve = read_curve(tmp_path / CURVE)
    assert curve["thrown_away"][-1] == 1 and math.isnan(curve["rejected"][-1])


def test_whole_sequences_are_needed() -> None:
    settings = replace(SETTINGS, whole_episodes=False)
    with pytest.raises(UsageError, match="schedinspector: longest needs whole_episodes"):
        InspectorTrainer(env(), settings, seed=2).train()
    InspectorTrainer(env(), replace(settings, longest=None, total_timesteps=1), seed=2).train()


def test_it_goes_on_as_if_never_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> InspectorTrainer:
        return InspectorTrainer(env(), SETTINGS, seed=3, validate=lambda agent: 0.0, validate_every=2)

    goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)
