"""The search over settings with Optuna, as the guide has it: it prunes, and goes on after an interruption."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs the extra [learn]: pip install 'hpcsimkit[learn]'")

from optuna.trial import TrialState, create_trial

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.callbacks import Pruning
from hpcsimkit.agents.training.learning_curve import Report

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "track_trainings.md"
TRAINING = """
[generate]
nodes = 16
jobs = 200
load = 1.0

[episodes]
jobs = 32

[trainer]
total_timesteps = 128
n_steps = 32
episodes = 2

[validation]
windows = 2
every = 1
"""


def search(trials: int) -> Any:
    """Run the guide's script for a number of trials in all; returns its study."""
    found = re.search(r"```python\n# search\.py\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    script, changed = re.subn(r"^TRIALS = \d+$", f"TRIALS = {trials}", found[1], flags=re.MULTILINE)
    assert changed == 1
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(script, "search.py", "exec"), names)
    return names["study"]


def test_the_search_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("training.toml").write_text(TRAINING)
    study = search(trials=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
    first = study.trials[0]
    assert list(first.intermediate_values) == [64, 128]
    assert first.value == max(first.intermediate_values.values()) < 0
    saved = Path("search/0/training.toml").read_text()
    assert f"learning_rate = {first.params['learning_rate']}" in saved
    assert Path("search/1/best.hpcsim").exists()

    perfect = create_trial(
        value=0.0,
        params=first.params,
        distributions=first.distributions,
        intermediate_values=dict.fromkeys(first.intermediate_values, 0.0),
    )
    study.add_trials([perfect] * 6)
    *_, last = search(trials=9).trials
    assert last.state == TrialState.PRUNED
    assert list(last.intermediate_values) == [64]
    assert last.params not in [first.params, study.trials[1].params]
    assert not Path("search/8").exists()
    assert len(search(trials=9).trials) == 9, "a finished search does nothing more"


class Killed(BaseException):
    """What ends a process at once, as far as Optuna can tell: the trial remains as it is."""


def test_a_killed_trial_resumes_its_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("training.toml").write_text(TRAINING)

    def kill(self: Pruning, report: Report) -> None:
        if report.steps == 128:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Pruning, "on_validation", kill)
        with pytest.raises(Killed):
            search(trials=2)
    place = Path("search/0.partial")
    assert list(place.glob("checkpoint*"))
    study = search(trials=2)
    killed, resumed, other = study.trials
    assert [trial.state for trial in study.trials] == [
        TrialState.FAIL,
        TrialState.COMPLETE,
        TrialState.COMPLETE,
    ]
    assert resumed.params == killed.params != other.params
    assert list(resumed.intermediate_values) == [128], "the first half was not trained again"
    about = Agent.load("search/0/best.hpcsim").about
    assert about is not None and resumed.value == about["validation"]
    assert not place.exists() and not Path("search/1").exists() and Path("search/2").exists()
