"""Prospects of pairs: every number worked out by hand; slots that stand for kinds of requests."""

from __future__ import annotations

from math import log10
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Machines, Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects, past_run_times
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.policies.one_seat.dispatch import Dispatch, PairDecision

CLUSTER = Machines.of(1, cpus=8, memory="64 GB") + Machines.of(1, cpus=4, memory="32 GB")
GIGABYTE = 10**9


def jobs(*rows: tuple[int, int, int, int, int]) -> Workload:
    """Jobs by submission, run time, requested time [s], CPUs and memory [GB]."""
    submit, run, requested, cpus, memory = zip(*rows, strict=True)
    columns: dict[str, Any] = {
        "submit_time": submit, "run_time": run, "requested_time": requested, "nodes": [1] * len(rows),
        "cpus": cpus, "memory": [each * GIGABYTE for each in memory],
    }  # fmt: skip
    return Workload(columns, resources=("cpus", "memory"))


def decisions(workload: Workload, answers: list[int], **how: Any) -> Decision:
    """Answer some decisions, and return the next."""
    simulation = Simulation(workload, Dispatch(External(), slots=4, **how), CLUSTER)
    for position in answers:
        assert simulation.next_decision() is not None
        simulation.answer_position(position)
    decision = simulation.next_decision()
    assert decision is not None
    return decision


def seen(encoder: PairProspects, decision: Decision) -> Any:
    out = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(decision.system)(decision, out)
    return out.reshape(encoder.slots, encoder.machines, -1)


def logarithm(seconds: float) -> float:
    return log10(1 + seconds) / 3 - 1


def test_every_column() -> None:
    # Job 1 runs on the large machine from 0 on, and is expected to end at 200. At 10 comes job 2.
    workload = jobs((0, 100, 200, 6, 16), (10, 50, 60, 2, 16))
    past = [[2, 16 * GIGABYTE, 60, 3, 96]]
    rows = seen(PairProspects(4, 2, 2, past), decisions(workload, [0]))
    likely = (96 + 0.13 * 60) / 4  # three jobs of the past, and one that takes what is usual
    for machine, (left, beyond, longer) in enumerate(
        (
            ((0, 32 / 64), (1 - 2 / 8, 1 - 16 / 64), 0),  # in use until 200 anyway
            ((2 / 4, 16 / 32), (4 / 8 - 2 / 8, 32 / 64 - 16 / 64), 60),
        )
    ):
        stretch = 1 + logarithm(longer)
        expected = [
            1, logarithm(60), logarithm(likely), logarithm(0), 1 + log10(2 / 12 + 1e-4) / 2, *left, *beyond,
            *(each * (1 + logarithm(60)) for each in beyond),
            *(each * (1 + logarithm(likely)) for each in beyond), stretch,
            *(each * stretch for each in beyond),
        ]  # fmt: skip
        assert rows[0, machine].tolist() == pytest.approx(expected, abs=1e-6)
    assert not rows[1:].any()


def test_without_products_of_columns() -> None:
    decision = decisions(jobs((0, 100, 200, 6, 16), (10, 50, 60, 2, 16)), [0])
    every, few = (seen(PairProspects(4, 2, 2, products=each), decision) for each in (True, False))
    assert few.shape[-1] == 10
    assert few.tolist() == every[:, :, [*range(9), 13]].tolist()


def test_jobs_that_have_ended_teach() -> None:
    # Two jobs of the same request have taken 30 and 50 s when the third comes.
    workload = jobs((0, 30, 100, 1, 1), (0, 50, 100, 1, 1), (60, 9, 100, 1, 1))
    rows = seen(PairProspects(4, 2, 2), decisions(workload, [0, 0]))
    assert rows[0, 0, 2] == pytest.approx(logarithm((3 * 13 + 30 + 50) / 5), abs=1e-6)


def test_what_is_no_option_is_zero() -> None:
    rows = seen(PairProspects(4, 2, 2), decisions(jobs((0, 9, 9, 8, 1)), []))
    assert rows[0, 0].any()
    assert not rows[0, 1].any()  # four CPUs only


def test_the_past_of_other_resources() -> None:
    with pytest.raises(UsageError, match="needs a past of 5 columns"):
        seen(PairProspects(4, 2, 2, [[1, 60, 1, 1]]), decisions(jobs((0, 9, 9, 1, 1)), []))


def test_a_model_file_keeps_the_past(tmp_path: Path) -> None:
    past = past_run_times(jobs(*((0, each, 60 * each, 1, 1) for each in range(1, 31))))
    encoder = PairProspects(4, 2, 2, past)
    network = SlotScores({"weight.0": np.zeros((1, 16)), "bias.0": np.zeros(1)})
    Agent(encoder, JobMachine(4, 2), network, "dispatch").save(tmp_path / "x.hpcsim")
    loaded = Agent.load(tmp_path / "x.hpcsim").encoder
    assert loaded == encoder
    assert vars(loaded) == vars(encoder)
    assert "list of 30" in repr(loaded)


def test_a_slot_for_each_kind_of_request() -> None:
    # Three jobs ask for the same, one for more time, one for more memory.
    workload = jobs((0, 5, 60, 1, 1), (0, 6, 60, 1, 1), (0, 7, 90, 1, 1), (0, 8, 60, 1, 1), (0, 9, 60, 1, 2))
    every = decisions(workload, [])
    assert isinstance(every, PairDecision)
    assert [job.id for job in every.jobs] == [1, 2, 3, 4]
    first = decisions(workload, [], distinct=True)
    assert isinstance(first, PairDecision)
    assert [job.id for job in first.jobs] == [1, 3, 5]
    assert first.waiting_and_fitting == 5
    after = decisions(workload, [0], distinct=True)  # the first has started: another one stands for it
    assert isinstance(after, PairDecision)
    assert [job.id for job in after.jobs] == [2, 3, 5]
