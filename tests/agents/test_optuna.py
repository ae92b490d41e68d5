"""The search over settings with Optuna, as the guide has it: it prunes, and goes on after an interruption."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs the extra [learn]: pip install 'hpcsimkit[learn]'")

from optuna.trial import TrialState, create_trial

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

    study.ask()  # what a killed process leaves
    perfect = create_trial(
        value=0.0,
        params=first.params,
        distributions=first.distributions,
        intermediate_values=dict.fromkeys(first.intermediate_values, 0.0),
    )
    study.add_trials([perfect] * 6)
    *_, running, _, _, _, _, _, _, last = search(trials=9).trials
    assert (running.state, last.state) == (TrialState.RUNNING, TrialState.PRUNED)
    assert list(last.intermediate_values) == [64]
    assert last.params not in [first.params, study.trials[1].params]
    assert not Path("search/9").exists()
    assert len(search(trials=9).trials) == 10, "a finished search does nothing more"
