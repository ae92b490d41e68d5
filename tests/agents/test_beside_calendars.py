"""What encoders show of jobs that would run into a window of a calendar."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.envs.interfaces import Encoder
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import FCFS, Pipeline
from tests.kernel.helpers import workload

ROWS = [(0, 20, 20, 4), (0, 5, 5, 3), (0, 9, 9, 1), (0, 15, 15, 1), (0, 15, 15, 3)]
"""The first job of four nodes does not fit before the window of two nodes from 10 to 20 s."""

WINDOW = Calendar([Window(10, 20, 2)])


def decision_of(calendar: Calendar, **seats: Any) -> Decision:
    simulation = Simulation(workload(ROWS, 4), Pipeline(External(FCFS()), **seats), calendar=calendar)
    decision = simulation.next_decision()
    assert decision is not None
    return decision


def shown(encoder: Encoder, decision: Decision) -> Any:
    out = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(decision.system)(decision, out)
    return out


@pytest.mark.parametrize(("calendar", "fits"), [(Calendar(), [1, 1, 1, 1, 1]), (WINDOW, [0, 1, 1, 1, 0])])
def test_jobs_fit_until_their_expected_ends(calendar: Calendar, fits: list[int]) -> None:
    decision = decision_of(calendar)
    assert shown(QueueWindow(5), decision)[:5, 4].tolist() == fits


def test_an_inspector_counts_the_jobs_that_easy_could_backfill() -> None:
    """The reservation of the first job begins at 20 s; three of the others fit beside it and the window."""
    simulation = Simulation(workload(ROWS, 4), Pipeline(FCFS(), inspector=External()), calendar=WINDOW)
    decision = simulation.next_decision()
    assert decision is not None
    encoder = InspectorFeatures(features="compact", backfilling="easy", jobs=10)
    features = shown(encoder, decision).tolist()
    assert features[4] == pytest.approx(1e-5)
    assert features[-1] == pytest.approx(0.3)
