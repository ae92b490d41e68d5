"""What RLBackfilling's agent sees is what the published code shows it, and by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.policies.dirlab import learned_backfilling
from hpcsimkit.policies.predicting.predicted import Predicted
from tests.agents.predictors import HalfOfRequest
from tests.kernel.dirlab_cases import BACKFILLERS, load, rows


def test_every_step_of_the_references(shared: Path) -> None:
    log = load(shared, "lublin256", "rlbf")
    encoder = Candidates(128, longest_time=int(log.run_time.max()))
    episodes = defaultdict(list)
    for row in rows(shared, "rlbf_env_steps"):
        episodes[row["base"], row["guarded"], row["policy"], int(row["start_index"]), int(row["n"])].append(
            row
        )
    seen = 0
    for (order, guarded, agent, start, jobs), steps in episodes.items():
        player = Player(encoder, Slots(128), MinusMeanWait())
        policy = learned_backfilling(order, guarded=guarded == "1")
        episode = Episode(Scenario.sequence(log, start, jobs), policy, {"backfiller": player})
        observation, valid = np.empty(encoder.shape, dtype=np.float32), np.empty(128, dtype=np.bool_)
        for number, row in enumerate(steps):
            decision = episode.decision
            assert decision is not None and decision.job is not None
            assert decision.system.now == int(row["t"])
            episode.write(observation, valid)
            count, action = int(row["n_cand"]), int(row["action"])
            assert valid.tolist() == [True] * count + [False] * (128 - count)
            for slot, name in ((0, "cand_feats_first"), (action, "action_feats")):
                np.testing.assert_allclose(
                    observation[slot, :5], np.fromstring(row[name], sep=" "), rtol=2e-7
                )
            np.testing.assert_array_equal(observation[count:], [[0, 1, 1, 1, 1, 0]] * (128 - count))
            assert not observation[:, 5].any()
            job = BACKFILLERS[agent](number, decision.job, list(decision.options))
            episode.answer(list(decision.options).index(job))
            seen += 1
        assert episode.decision is None
    assert seen == 245


def test_rows_by_hand() -> None:
    # 10 nodes. At 50 s: job 0 runs until 100 s on 6; job 1 needs 8 and is blocked; 2 and 3 fit.
    columns = {"submit_time": [0, 20, 30, 50], "run_time": [100, 60, 40, 4320], "nodes": [6, 8, 4, 1],
               "requested_time": [100, 60, 49, 4320]}  # fmt: skip
    log = Workload(columns, machine_size=10)
    for decline in (False, True):
        encoder = Candidates(3, longest_time=216, decline=decline)
        policy = backfilling_seat(mode="unguarded", decline=decline)
        simulation = Simulation(log, policy)
        while (decision := simulation.next_decision()) is not None and decision.system.now < 50:
            simulation.answer(None if decline else decision.options[0])
        if (
            not decline
        ):  # job 2 was started at 30 s, alone; at 50 s no node is free but for job 3: nobody is asked
            assert decision is None
            continue
        assert decision is not None
        assert [job and job.id for job in decision.options] == [3, 4, None]
        found = np.zeros(encoder.shape, dtype=np.float32)
        encoder.bind(simulation.system)(decision, found)
        most, half_day = 0.99999, 43_200
        expected = [
            [20 / half_day, 49 / 216, 0.4, 49 / 52, most, 0],  # 50 s to the reservation, and 2
            [0, most, 0.1, most, 0.25, 0],
            [0, 1, 1, 1, 1, 0],
            [30 / half_day, 60 / 216, 0.8, most, most, 1],
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predicted_run_times_by_hand() -> None:
    """The last column of the rows above: half of each request, over the longest request of 216 s."""
    columns = {"submit_time": [0, 20, 30, 50], "run_time": [100, 60, 40, 4320], "nodes": [6, 8, 4, 1],
               "requested_time": [100, 60, 49, 4320]}  # fmt: skip
    policy = backfilling_seat(mode="unguarded", decline=True)
    policy.estimates = Predicted(HalfOfRequest())
    simulation = Simulation(Workload(columns, machine_size=10), policy)
    while (decision := simulation.next_decision()) is not None and decision.system.now < 50:
        simulation.answer(None)
    assert decision is not None
    encoder = Candidates(3, longest_time=216, decline=True, predicted=True)
    found = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(simulation.system)(decision, found)
    np.testing.assert_allclose(found[:, 6], [49 / 432, 0.99999, 1, 60 / 432], rtol=1e-6)
    plain = Candidates(3, longest_time=216, decline=True)
    same = np.zeros(plain.shape, dtype=np.float32)
    plain.bind(simulation.system)(decision, same)
    np.testing.assert_array_equal(found[:, :6], same)


def test_only_the_first_candidates_have_rows() -> None:
    columns = {"submit_time": [0] * 6, "run_time": [100] * 6, "nodes": [5, 9, 1, 1, 1, 1]}
    simulation = Simulation(Workload(columns, machine_size=10), backfilling_seat(mode="unguarded", slots=2))
    decision = simulation.next_decision()
    assert decision is not None
    assert len(decision.options) == 2
    guarded = Simulation(Workload(columns, machine_size=10), backfilling_seat())
    decision = guarded.next_decision()
    assert decision is not None
    assert len(decision.options) == 4
    found = np.zeros((2, 6), dtype=np.float32)
    Candidates(2).bind(guarded.system)(decision, found)
    np.testing.assert_allclose(found[:, 2], 0.1, rtol=1e-6)


def test_other_seats_have_no_blocked_job() -> None:
    columns = {"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}
    simulation = Simulation(Workload(columns, machine_size=4), Pipeline(order=External()))
    decision = simulation.next_decision()
    assert decision is not None
    encode = Candidates(2).bind(simulation.system)
    with pytest.raises(UsageError, match="needs a decision behind a blocked job"):
        encode(decision, np.zeros((2, 6), dtype=np.float32))
