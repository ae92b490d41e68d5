"""``explain`` as a user types it, and what stands in its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.schedinspector.features import FEATURES, InspectorFeatures
from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.evaluation.explanation import Explanation, explained
from hpcsimkit.reports.answers import draw_explanation
from hpcsimkit.workloads import default_workload
from tests.cli.conftest import CLI

LOG = default_workload(np.random.default_rng(3), jobs=200, load=1.2)


def rejects_what_does_not_fit() -> Agent:
    weight = np.zeros((2, 7))
    weight[1, 4] = -2.0
    network = Dense({"weight.0": weight, "bias.0": np.array([0.0, 1.0])}, "relu")
    return Agent(InspectorFeatures(), AcceptReject(), network, "inspector")


def test_of_an_agent_that_rejects_what_does_not_fit() -> None:
    policy = Pipeline(make("sjf").queue_order, rejects_what_does_not_fit())
    found = explained(policy, Scenario(LOG))
    runnable = found.seen[:, FEATURES.index("runnable")] > 0.5
    np.testing.assert_array_equal(found.rejected, ~runnable)
    assert found.ratio == pytest.approx(np.mean(~runnable))
    assert isinstance(policy.inspector, Agent), "the policy is as it was"
    row = dict(zip(found.names, found.rows(), strict=True))["runnable"]
    assert row[-2:] == ["100.0 %", "0.0 %"]


def test_a_heuristic_is_explained_alike() -> None:
    ours = explained(Pipeline(make("sjf").queue_order, rejects_what_does_not_fit()), Scenario(LOG))
    heuristic = explained(make("sjf+hold-unfit"), Scenario(LOG))
    np.testing.assert_array_equal(heuristic.rejected, ours.rejected)
    assert heuristic.names == ours.names


def test_the_table_holds_the_distributions() -> None:
    seen = np.array([[0.1, 0.0], [0.4, 1.0], [0.9, 0.5]])
    found = Explanation(["a", "b"], seen, np.array([True, False, True]))
    table = found.table()
    assert len(table) == 2 * 201
    at_half = table[table["value"] == 0.5].set_index("feature")[["all", "rejected"]]
    assert at_half.loc["a"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert at_half.loc["b"].tolist() == pytest.approx([2 / 3, 1])


def test_without_any_rejection_there_is_a_table_too() -> None:
    found = Explanation(["a"], np.array([[0.1], [0.4]]), np.array([False, False]))
    assert found.rows() == [["a", "0.250", "nan", "1.00", "0.0 %", "0.0 %"]]


def test_the_picture_has_a_panel_for_each_feature() -> None:
    found = explained(make("sjf+hold-unfit"), Scenario(LOG))
    figure = draw_explanation(found, "what it rejects")
    assert [ax.get_title(loc="left") for ax in figure.axes[:7]] == list(FEATURES[:7])
    assert len(figure.axes[0].lines) == 2


@pytest.mark.parametrize(
    ("policy", "log", "message"),
    [
        (make("sjf"), LOG, "a pipeline with an inspector is needed, found Pipeline"),
        (Pipeline(inspector=External()), LOG, "a pipeline with an inspector is needed"),
        (make("sjf+hold-unfit"), Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1),
         "was never asked"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained(policy: Pipeline, log: Workload, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        explained(policy, Scenario(log))


@pytest.mark.pictures
def test_the_command(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "my agents").mkdir()
    rejects_what_does_not_fit().save(tmp_path / "my agents" / "unfit.hpcsim")
    found = cli("explain", "my agents/unfit.hpcsim", "--within", "sjf", "--jobs", "300", "--out", "why")
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert any(line.startswith("runnable") and line.endswith("0.0 %") for line in lines), found.out
    assert lines[-1] == "results: why/explanation.png"
    assert (tmp_path / "why" / "explanation.png").stat().st_size > 10_000
    assert (tmp_path / "why" / "explanation.csv").read_text().startswith("feature,value,all,rejected\n")


def test_the_command_without_an_inspector(cli: CLI) -> None:
    found = cli("explain", "sjf+easy", "--jobs", "300")
    assert (found.code, found.out.count("\n")) == (2, 3)
    assert "a pipeline with an inspector is needed" in found.err
