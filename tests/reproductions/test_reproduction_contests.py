"""The frame of reproductions: who is trained, what is done when, and who counts as better."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.agents.training.ppo import PPOSettings
from hpcsimkit.engine.store import Store
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import FCFS, SJF
from hpcsimkit.reproductions.cells import number, standings_table
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.plans.logs import each_once, name_among
from hpcsimkit.reproductions.plans.planned import PaperReproduction, reproduction_named
from hpcsimkit.reproductions.scores import Scores, standings
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting, SequenceSet
from hpcsimkit.results.statistics import p_value_text

# --- who is better -----------------------------------------------------------------------------------------


def scores(*differences: float) -> Scores:
    """Ours is so much more than theirs, sequence by sequence."""
    theirs = np.arange(1.0, 1.0 + len(differences))
    return Scores(None, {"ours": {BSLD: theirs + differences}, "theirs": {BSLD: theirs}})


LESS = [-1.0, -2.0] * 10


def test_better_is_who_has_less_by_both_tests() -> None:
    assert scores(*LESS).standings("ours")["theirs"].is_beaten
    assert not scores(*LESS).standings("theirs")["ours"].is_beaten
    assert not scores(*(-each for each in LESS)).standings("ours")["theirs"].is_beaten
    assert not scores(*[0.0] * 20).standings("ours")["theirs"].is_beaten
    assert not scores(-1.0).standings("ours")["theirs"].is_beaten, "one sequence says nothing"


def test_the_t_test_alone_is_not_enough() -> None:
    found = scores(-1.0, -1.01, -1.02, -1.03, -1.04)  # of five pairs Wilcoxon's p is 2 / 2^5 at least
    against = found.standings("ours")["theirs"].against
    assert against is not None
    assert against.t_test_holm < 1e-6
    assert against.wilcoxon_holm == pytest.approx(0.0625)
    assert not found.standings("ours")["theirs"].is_beaten


def test_wilcoxons_test_alone_is_not_enough() -> None:
    found = scores(*[-1.0] * 19, -1000.0)
    against = found.standings("ours")["theirs"].against
    assert against is not None
    assert against.wilcoxon_holm < 1e-3
    assert against.t_test_holm > 0.3
    assert not found.standings("ours")["theirs"].is_beaten


def test_p_values_are_corrected_for_all_rows_or_those_in_question() -> None:
    base = np.arange(1.0, 21.0)
    noise = np.random.default_rng(5).normal(0.9, 1.0, 20)
    rivals = {f"rival {number}": {BSLD: base + np.roll(noise, number)} for number in range(30)}
    found = Scores(None, {"ours": {BSLD: base}, **rivals})
    alone = found.standings("ours", ["rival 3"])
    assert list(alone) == ["rival 3", "ours"]
    assert alone["rival 3"].is_beaten
    against = alone["rival 3"].against
    assert against is not None
    assert 0.05 / 30 < against.t_test < 0.05
    assert not found.standings("ours")["rival 3"].is_beaten, "one of thirty"


def test_means_of_rows() -> None:
    found = scores(*LESS)
    assert found.mean("theirs") == 10.5
    assert np.isnan(found.mean("nobody"))
    assert found.of("ours").tolist()[:2] == [0.0, 0.0]


# --- cells -------------------------------------------------------------------------------------------------


def test_a_table_of_standings() -> None:
    values = {"a": np.array([1.0, 2.0, 4.0]), "b": np.array([2.0, 4.0, 5.0])}
    headings, lines = standings_table(standings(values, "a"), "agent")
    assert headings[3] == "agent minus it"
    assert {len(line) for line in lines} == {len(headings)}
    assert lines[0] == ["a", "2.33", "1.33 to 4.00", "", "", "", ""]
    assert lines[1][3:5] == ["-1.33", "-36.4 %"]
    assert (number(None), number(float("inf")), number(0.0)) == ("", "", "0.00")
    assert (p_value_text(0.05), p_value_text(0.0499999)) == ("0.05", "0.05*")


# --- logs --------------------------------------------------------------------------------------------------


class Log(NamedTuple):
    name: str
    path: Path


def test_logs_by_name_and_each_once() -> None:
    names = {r"sdsc": "SDSC", r"lublin[-_]?1(\.|$)": "Lublin"}
    found = [name_among(Path(file), names) for file in ("x/SDSC-1.swf.gz", "lublin-1.swf", "lublin-12.swf")]
    assert found == ["SDSC", "Lublin", "lublin-12"]
    one, two, again = Log("A", Path("a.swf")), Log("B", Path("b.swf")), Log("A", Path("c.swf"))
    assert each_once([one, two]) == [one, two]
    with pytest.raises(UsageError, match=r"^a\.swf: a log 'A' is given twice$"):
        each_once([one, two, again])


# --- what is done when -------------------------------------------------------------------------------------

JOBS = Workload({"submit_time": [0, 1], "run_time": [9, 9], "nodes": [3, 4]}, machine_size=4)
LEARNER = Learner(
    "one", Fixed(JOBS), Pipeline(order=External()), QueueWindow(4), Slots(4), MinusMeanWait(), "ppo",
    PPOSettings(total_timesteps=10), seed=0, stage="order",
)  # fmt: skip


class Duel(NamedTuple):
    contestants: list[Contestant]

    @property
    def parts_of_values(self) -> list[int]:
        return [1]

    @property
    def meetings(self) -> dict[str, Meeting]:
        on = SequenceSet("all", [Scenario(JOBS)])
        return {each.name: Meeting(each, on) for each in self.contestants}


class Duels(PaperReproduction):
    title, logs_needed = "Duels", "a log"
    rates = {"training": 1.0}  # noqa: RUF012

    @cached_property
    def contests(self) -> list[Duel]:
        agent = Contestant("agent", LEARNER.policy, learner=LEARNER)
        return [Duel([agent, replace(agent, name="greedy", sample=False)]),
                Duel([Contestant("fcfs", Pipeline(FCFS()), rules="textbook"),
                      Contestant("sjf", Pipeline(SJF()), rules="textbook")])]  # fmt: skip

    def further_learners(self) -> list[Learner]:
        return [replace(LEARNER, name="two"), LEARNER]

    def further_runs(self) -> list[Meeting]:
        return [Meeting(Contestant("first", Pipeline()), SequenceSet("all", [Scenario(JOBS)]))]

    @cached_property
    def traces(self) -> SimpleNamespace:
        return SimpleNamespace(lines=list)


def test_agents_are_trained_once_then_everybody_runs(tmp_path: Path) -> None:
    duels = Duels([])
    assert list(duels.prepare()) == ["2 agents, 2 sets of sequences with all their baselines"]
    trainings, runs = duels.stages()
    assert [task.name for task in trainings] == ["one", "two"]
    assert all(isinstance(task, Training) for task in trainings)
    expected = ["runs-all-first", "runs-all-agent", "runs-all-greedy", "runs-all-fcfs", "runs-all-sjf"]
    assert [task.name for task in runs] == expected

    store = Store(tmp_path)
    for task in runs[3:]:
        store.perform(task, lambda done: None)
    kept = Scores.kept(duels.contests[1], store)
    assert list(kept.values) == ["fcfs", "sjf"]
    assert kept.of("fcfs", "mean_wait_time").tolist() == [4.0]  # 0 and 8 s
    assert kept.contest is duels.contests[1]


def test_masked_ppo_is_of_that_kind_too() -> None:
    kind = reproduction_named("masked-ppo")
    assert issubclass(kind, PaperReproduction)
    assert kind.stages is PaperReproduction.stages
