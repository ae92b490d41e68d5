"""Former names of settings: none is in use, and each stands for a setting that there is."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.agents.training.catalogue import TRAINERS, settings_of, trainer_named
from hpcsimkit.agents.training.old_names import SETTINGS, current_names, renamed_keys
from hpcsimkit.errors import UsageError


def test_current_names_are_those_of_settings() -> None:
    settings = [settings_of(trainer_named(name)) for name in TRAINERS if not name.startswith("cush")]
    names = {field.name for each in settings for field in fields(each)}
    assert set(SETTINGS.values()) <= names
    assert not set(SETTINGS) & names


def test_a_key_that_a_trainer_has_is_no_former_name() -> None:
    assert renamed_keys(["epochs", "discount"], asdict(CushSettings())) == {"discount": "gamma"}


def test_both_names_in_what_was_saved_are_left_alone() -> None:
    saved = {"steps": 3, "total_timesteps": 4}
    assert current_names(saved, {"total_timesteps": 4}) == saved
    assert current_names({"one": [1], "two": 2}, {"one": {"gamma": 1}}) == {"one": [1], "two": 2}


def test_a_checkpoint_of_cush_with_former_names(tmp_path: Path) -> None:
    problem, settings = CushProblem(nodes=4, jobs=4), CushSettings(epochs=1, job_sets=1, simulations=1)
    CushTrainer(problem, settings, seed=1).train(tmp_path)
    file = tmp_path / "checkpoint.safetensors"
    tensors, about = read_model(file, CHECKPOINT_TEXT)
    about["trainer"]["settings"]["discount"] = about["trainer"]["settings"].pop("gamma")
    write_model(file, tensors, about)
    longer = CushTrainer(problem, replace(settings, epochs=2), seed=1)
    longer.train(tmp_path, resume=True)
    assert [report.steps for report in longer.curve] == [1, 2]
    with pytest.raises(UsageError, match="found another one's"):
        CushTrainer(problem, replace(settings, epochs=2, gamma=0.5), seed=1).train(tmp_path, resume=True)
