"""`train` with former names of settings: the same training, one line that says the current names."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.agents.training.old_names import SETTINGS
from hpcsimkit.agents.training.ppo import PPO
from tests.cli.test_train import TINY, without_rates

KEYS = "gamma = 0.9\ngae_lambda = 0.8\nbatch_size = 64\nclip_range = 0.1\nent_coef = 0.01\n"
TEXT = TINY.replace("n_epochs = 1\n", f"n_epochs = 1\n{KEYS}")
FORMER = {new: old for old, new in SETTINGS.items()}
AGENTS = ("best.hpcsim", "last.hpcsim")


def in_former_names(text: str) -> str:
    """Return a training file with the former names of all settings."""
    return re.sub(r"^\w+", lambda key: FORMER.get(key[0], key[0]), text, flags=re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text(TEXT)
    (tmp_path / "old.toml").write_text(in_former_names(TEXT))


def test_a_file_with_former_names_trains_the_same(cli, files, tmp_path) -> None:
    assert cli("train", "new.toml", "--out", "new", "-q") == (0, "", "")
    outcome = cli("train", "old.toml", "--out", "old", "-q")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.only_line() == (
        "old.toml: trainer: steps is now total_timesteps, rollout is now n_steps, epochs is now n_epochs, discount "
        "is now gamma, trace is now gae_lambda, batch is now batch_size, clip is now clip_range, entropy_weight is "
        "now ent_coef; the next release reads the new names only"
    )
    for file in (*AGENTS, "training.toml", "curve.csv"):
        assert (tmp_path / "new" / file).read_bytes() == (tmp_path / "old" / file).read_bytes()
    assert {"approx_kl"} < set(without_rates(tmp_path / "old")[0])


def test_flags_beside_former_names(cli, files, tmp_path) -> None:
    for flag in ("--steps", "--total-timesteps"):
        outcome = cli("train", "old.toml", flag, 128, "--out", flag.strip("-"), "-q")
        assert (outcome.code, len(without_rates(tmp_path / flag.strip("-")))) == (0, 1)
    for file in AGENTS:
        assert (tmp_path / "steps" / file).read_bytes() == (tmp_path / "total-timesteps" / file).read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = 9\ntotal_timesteps = 9\n", "steps: former name of total_timesteps, which is given too; only one"),
        ("total_timesteps = 9\nsteps = 9\n", "steps: former name of total_timesteps, which is given too; only one"),
        ("sed = 1\nhidden = [8]\n", "sed: unknown key"),
        ("kind = 'slots'\nclip = -0.2\n", "clip must be greater than or equal to 0, found -0.2"),
        ("algorithm = 'a2c'\nclip = 0.2\n", "clip: unknown key"),
        ("algorithm = 'sb3-ppo'\nbatch = 64\n", "batch: unknown key"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_of_the_key_in_the_file(cli, tmp_path, text, message) -> None:
    (tmp_path / "t.toml").write_text(f"[trainer]\n{text}")
    line = cli("train", "t.toml").line()
    place = 2 + [each.partition(" ")[0] for each in text.splitlines()].index(re.match(r"\w+", message)[0])  # type: ignore[index]
    assert line.startswith(f"t.toml:{place}: trainer.{message}")


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_training_begun_with_former_names_is_resumed(cli, files, tmp_path, monkeypatch) -> None:
    """As it was interrupted before the names changed: in the training file, the checkpoint and the curve."""
    assert cli("train", "new.toml", "--out", "straight", "-q") == (0, "", "")
    learn, rounds = PPO.learn, []

    def interrupted(trainer: PPO, batch: Any) -> dict[str, float]:
        rounds.append(batch)
        if len(rounds) == 2:
            signal.raise_signal(signal.SIGINT)
        return learn(trainer, batch)

    with monkeypatch.context() as patch:
        patch.setattr(PPO, "learn", interrupted)
        assert cli("train", "new.toml", "--out", "agent", "-q").code == 130

    partial = tmp_path / "agent.partial"
    saved = partial / "training.toml"
    saved.write_text(in_former_names(saved.read_text()))
    tensors, about = read_model(partial / "checkpoint.safetensors", CHECKPOINT_TEXT)
    settings = about["trainer"]["settings"]
    about["trainer"]["settings"] = {FORMER.get(name, name): value for name, value in settings.items()}
    assert {"discount", "value_trace"} < set(about["trainer"]["settings"])
    for row in about["curve"]:
        row["divergence"] = row.pop("approx_kl")
    write_model(partial / "checkpoint.safetensors", tensors, about)

    assert cli("train", "old.toml", "--out", "agent", "-q", "--resume").code == 0
    for file in (*AGENTS, "training.toml"):
        assert (tmp_path / "straight" / file).read_bytes() == (tmp_path / "agent" / file).read_bytes()
    assert without_rates(tmp_path / "straight") == without_rates(tmp_path / "agent")
