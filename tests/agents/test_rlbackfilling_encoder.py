"""What RLBackfilling's agent sees is what the published code shows it, and by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import Simulation, Workload
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.episode import Episode, Player
from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.rewards import MinusMeanWait
from hpcsimkit.policies.dirlab import learned_backfilling
from hpcsimkit.scenario import Scenario
from tests.kernel.dirlab_cases import BACKFILLERS, load, rows


def test_every_step_of_the_references(shared: Path) -> None:
    log = load(shared, "lublin256", "rlbf")
    encoder = Candidates(128, longest_time=int(log.run_time.max()))
    episodes = defaultdict(list)
    for row in rows(shared, "rlbf_env_steps"):
        episodes[row["base"], row["guarded"], row["policy"], int(row["start_index"]), int(row["n"])].append(row)
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
                np.testing.assert_allclose(observation[slot, :5], np.fromstring(row[name], sep=" "), rtol=2e-7)
            np.testing.assert_array_equal(observation[count:], [[0, 1, 1, 1, 1, 0]] * (128 - count))
            assert not observation[:, 5].any()
            job = BACKFILLERS[agent](number, decision.job, list(decision.options))
            episode.answer(list(decision.options).index(job))
            seen += 1
        assert episode.decision is None
    assert seen == 245
