"""What DRAS's seat and its rivals earn, job by job as they are chosen."""

from __future__ import annotations

import pytest

from hpcsimkit import Pipeline, Workload
from hpcsimkit.agents.dras.measurements import Earnings, earned
from hpcsimkit.agents.dras.settings import dras_environment
from hpcsimkit.agents.spaces.rewards import Capability, Capacity
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.policies import EASY, SJF

BUSY = Workload(
    {"submit_time": [0, 0, 10, 20, 30, 45], "run_time": [60, 30, 50, 20, 10, 5], "nodes": [3, 1, 4, 1, 1, 2]},
    machine_size=4,
)


def totals_of_the_seat(reward: Reward) -> float:
    """Return what the seat earns as it is trained, always answering with the oldest job."""
    env = dras_environment(None, 4, 60)  # type: ignore[arg-type]
    player = Player(env.encoder, env.mask, reward)
    episode, total = Episode(Scenario(BUSY), env.policy, {env.stage: player}, skip=False), 0.0
    while episode.decision is not None:
        episode.answer(0)
        total += episode.reward(env.stage)
    return total


def test_fcfs_with_easy_earns_what_its_seat_does() -> None:
    """Whoever chooses the oldest job on both levels is FCFS/EASY, and is paid for it just so."""
    ours, result = earned(Scenario(BUSY), Pipeline(backfiller=EASY()), Capability(reserved=True))
    assert ours == pytest.approx(totals_of_the_seat(Capability(reserved=True)))
    assert result.start_time.tolist() == [0, 0, 60, 30, 50, 110]


def test_who_is_head_again_is_not_paid_again() -> None:
    """SJF asks anew at each pass: job 2 holds the reservation, loses it to job 3, and gets it back."""
    columns = {"submit_time": [0, 1, 5], "run_time": [10, 50, 20], "nodes": [2, 2, 2]}
    scenario = Scenario(Workload(columns, machine_size=2))
    reward = Capability(reserved=True)
    earnings = Earnings(reward, reserves=True)
    result = scenario.simulation(Pipeline(SJF(), backfiller=EASY()), [reward, earnings]).run()
    assert result.start_time.tolist() == [0, 30, 10]
    assert earnings.choices == 3, "a job each"


def test_earnings_by_hand() -> None:
    """Equation 2, asked once for each job that has been chosen: when it gets the reservation, or starts.

    On 2 nodes job 1 starts (jobs 2 and 3 wait: 1 / 4 and 1 / 2 in the mean), job 2 starts (job 3 waits), job 3
    has the reservation (and waits itself). At 4 s it is still blocked; at 8 s it starts, which is not paid
    again, and job 4 has the reservation (1 / 16).
    """
    columns = {"submit_time": [0, 0, 0, 1], "run_time": [8, 4, 2, 16], "nodes": [1, 1, 2, 2]}
    scenario, easy = Scenario(Workload(columns, machine_size=2)), Pipeline(backfiller=EASY())
    started = -3 / 8 - 1 / 2
    assert earned(scenario, easy, Capacity(reserved=True))[0] == pytest.approx(started - 1 / 2 - 1 / 16)
    without, _ = earned(scenario, Pipeline(fitting=True), Capacity())
    assert without == pytest.approx(started - 1 / 16), (
        "each when it starts; the last one leaves nobody waiting"
    )
