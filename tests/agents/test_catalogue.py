"""Encoders and other parts of learners that another distribution announces by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.catalogue import ENCODERS, EPISODES, MASKS, NETWORKS, REWARDS
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.experiments.parts.learner_parts import Kind, part_of
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.io import catalogue

POINTS = {
    "hpcsimkit.encoders": [
        EntryPoint("theirs", "tests.agents.test_catalogue:Theirs", "hpcsimkit.encoders"),
        EntryPoint("a-mask", "hpcsimkit.agents.spaces.masks:Slots", "hpcsimkit.encoders"),
        EntryPoint("gone", "no_such_module:Encoder", "hpcsimkit.encoders"),
        EntryPoint("QueueWindow", "no_such_module:Encoder", "hpcsimkit.encoders"),
    ],
    "hpcsimkit.networks": [
        EntryPoint("their scores", "tests.agents.test_catalogue:TheirScores", "hpcsimkit.networks"),
    ],
}


class Theirs(QueueWindow):
    """Encoder of another distribution."""


class TheirScores(SlotScores):
    """Network of another distribution."""

    kind = "their scores"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "entry_points", lambda group: POINTS.get(group, []))


def test_a_training_names_an_encoder_of_another_distribution() -> None:
    encoder, problem = part_of(Kind.of_seat("order")[0], {"name": "theirs"}, {"slots": 4}, None, Trust(()))
    assert problem is None and encoder == Theirs(4)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a-mask", "'a-mask' needs a subclass of Encoder, found"),
        ("gone", "'gone' cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("thers", "unknown encoder 'thers'; nearest: theirs"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(name: str, line: str) -> None:
    _, problem = part_of(Kind.of_seat("order")[0], {"name": name}, {"slots": 4}, None, Trust(()))
    assert problem is not None and line in problem[1]


def test_a_name_of_the_kit_comes_before_theirs() -> None:
    assert ENCODERS["QueueWindow"] is QueueWindow


def test_a_model_file_names_the_plug_in_and_needs_no_consent(tmp_path: Path) -> None:
    network = TheirScores({"weight.0": np.array([[1, 0, 0, 0, 0]]), "bias.0": np.array([0])})
    Agent(Theirs(4), Slots(4), network, "order").save(tmp_path / "a.hpcsim")
    agent = Agent.load(tmp_path / "a.hpcsim")
    assert agent.encoder == Theirs(4) and type(agent.network) is TheirScores


@pytest.mark.parametrize("known", [ENCODERS, MASKS, NETWORKS, REWARDS, EPISODES], ids=lambda each: each.kind)
def test_every_registered_place_has_a_class(known: catalogue.Catalogue[type]) -> None:
    for name, place in known.places.items():
        assert isinstance(known[name], type) and place.endswith(f":{known[name].__name__}")
