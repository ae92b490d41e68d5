"""Callbacks of trainings: called after each round and each validation, also of a resumed run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hpcsimkit.agents.training.a2c import A2C
from hpcsimkit.agents.training.callbacks import Callback
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.on_policy import Settings
from tests.agents.tiny_problem import env

SETTINGS = Settings(total_timesteps=96, episodes=2, n_steps=8)


class Notes(Callback):
    def __init__(self) -> None:
        self.updates: list[Report] = []
        self.validations: list[Report] = []

    def on_update(self, report: Report) -> None:
        self.updates.append(report)

    def on_validation(self, report: Report) -> None:
        assert report is self.updates[-1]
        self.validations.append(report)


class Stop(Callback):
    """Raises an exception after a number of steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_update(self, report: Report) -> None:
        if report.steps >= self.steps:
            raise RuntimeError("enough")


def trainer() -> A2C:
    return A2C(env(), SETTINGS, seed=0, validate=lambda agent: 0.5, validate_every=4)


def test_each_round_and_each_validation() -> None:
    notes, learner = Notes(), trainer()
    learner.train(callbacks=[notes])
    assert notes.updates == learner.curve
    assert [report.steps for report in notes.updates] == [16, 32, 48, 64, 80, 96]
    assert [report.steps for report in notes.validations] == [64, 96]
    assert all(report.validation == 0.5 for report in notes.validations)
    assert math.isnan(notes.updates[0].validation)


def test_an_exception_ends_the_training_and_a_resumed_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="enough"):
        trainer().train(tmp_path, callbacks=[Stop(32)])
    notes = Notes()
    trainer().train(tmp_path, resume=True, callbacks=[notes])
    assert [report.steps for report in notes.updates] == [32, 48, 64, 80, 96]
