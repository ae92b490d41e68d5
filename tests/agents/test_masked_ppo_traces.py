"""The environment of the masked-PPO scheduler: decisions, masks, observations and rewards as published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Machines
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.one_seat.dispatch import Dispatch, PairDecision
from hpcsimkit.workloads import read_job_table
from tests.kernel.test_machine_references import nine, rows


class Watched(RunningMeanWait):
    """Both published rewards of one run."""

    def __init__(self) -> None:
        self.utilisation = RunningUtilisation()

    def on_begin(self, system):  # type: ignore[no-untyped-def]
        super().on_begin(system)
        self.utilisation.on_begin(system)

    def on_start(self, job, allocation, system):  # type: ignore[no-untyped-def]
        self.utilisation.on_start(job, allocation, system)

    def on_end(self, job, system):  # type: ignore[no-untyped-def]
        super().on_end(job, system)
        self.utilisation.on_end(job, system)


@pytest.mark.parametrize("depth", [10, 60])
def test_steps_of_the_published_environment(depth: int, shared: Path) -> None:
    folder = shared / "refs/beocat"
    workload = read_job_table(folder / "20210603_untied_jobs.csv.gz")
    cluster: Machines = nine(shared)
    encoder, reward = RequestsAndMachines(depth, 9), Watched()
    episode = Episode(
        Scenario(workload, Setup(cluster)),
        Dispatch(External(), slots=depth),
        {"dispatch": Player(encoder, JobMachine(depth, 9), reward)},
        skip=False,
    )
    system = episode.simulation.system
    observation, valid = np.zeros(encoder.shape), np.zeros(9 * depth, dtype=bool)
    trace = rows(folder / f"20210603_untied_env_q{depth}.csv.gz")
    assert len(trace) == len(workload)
    for number, row in enumerate(trace):
        decision = episode.decision
        assert isinstance(decision, PairDecision)
        episode.write(observation, valid)  # type: ignore[arg-type]
        actions = np.flatnonzero(valid)
        action = int(actions[7919 * number % len(actions)])
        job, machine = decision.options[int(np.searchsorted(actions, action))]
        assert int(row["clock_before"]) == system.now
        assert int(row["n_schedulable"]) == decision.waiting_and_fitting
        assert (int(row["n_valid"]), int(row["valid_sum"])) == (len(actions), actions.sum())
        assert (int(row["action"]), row["machine"]) == (action, cluster.names[machine])
        assert row["job"] == f"job{job.id}"
        episode.answer(action)
        assert reward.take(system) == pytest.approx(float(row["reward_wait"]), rel=1e-12)
        assert reward.utilisation.take(system) == pytest.approx(float(row["reward_util"]), rel=1e-9)
        assert (row["done"] == "1") == (episode.decision is None)
        if episode.decision is not None:
            episode.write(observation, valid)  # type: ignore[arg-type]
            assert int(row["clock_after"]) == system.now
            assert int(row["obs_sum"]) == observation.sum()
            assert int(row["obs_wsum"]) == (observation * np.arange(1, len(observation) + 1)).sum()
