"""DRAS done again: how logs are cut, what schedulers earn, and the arithmetic behind tables and targets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.measurements import ENTROPY, LARGEST, OFTEN, SLOT_0
from hpcsimkit.agents.dras.settings import LEARNERS
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.rewards import Capability
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.agents.training.trainer import BEST
from hpcsimkit.engine.identity import fingerprint
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.reproductions.cells import spread_cell
from hpcsimkit.reproductions.dras.figures import (
    ADDED_RULES,
    AXES,
    CHANCE,
    FAMILIES,
    FCFS,
    OPTIMIZATION,
    kiviat,
    look_of,
    waits_by_mode,
    weekly,
)
from hpcsimkit.reproductions.dras.own import (
    ADDED_AGENTS,
    MEASURED,
    MONTH,
    PUBLISHED,
    REWARD,
    Family,
    Habits,
    Measured,
    MonthlyLog,
    Overhead,
    behaviour_table,
    best_of,
    in_full_size,
    longest_large_wait,
    metrics_table,
    modes_table,
    outside,
    speed_targets,
    waiting_targets,
)
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.sequences import Contestant, SequenceSet
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import write_swf

DAY, HOUR = 86_400, 3600
KIND: Any = reproduction_named("dras")
TINY = {
    **KIND.paper.sizes["full"], "sampled": 1, "synthetic": 2, "jobs": 5, "learners": ["pg"], "seeds": [0, 1],
    "decima_seeds": [0], "waiting_seeds": [0], "evolved_seeds": [0], "evolved_steps": 99,
}  # fmt: skip
SLOTS = [f"Slot {slot}, two levels" for slot in TINY["slots"]]


def trace_of(path: Path, seed: int = 0, *, full: bool = False) -> MonthlyLog:
    """Return a log, split by months."""
    return MonthlyLog(path, KIND.paper.logs, SimpleNamespace(**TINY, full=full), seed)


def log_of(days: Sequence[float], **columns: object) -> Workload:
    """Return jobs submitted on some days, for a machine of 40 nodes, by the clock of a year that is long ago."""
    count = len(days)
    plain = {"run_time": [HOUR] * count, "requested_time": [2 * HOUR] * count, "nodes": [5] * count}
    submit = [1_000_000 + round(day * DAY) for day in days]
    return Workload({"submit_time": submit, **plain, **columns}, machine_size=40)  # type: ignore[arg-type]


@pytest.fixture
def trace(tmp_path: Path) -> MonthlyLog:
    """Jobs every second day for 120 days: of three months are 46, a minute after a multiple of two days."""
    write_swf(log_of(range(0, 121, 2)), tmp_path / "mine.swf")
    return trace_of(tmp_path / "mine.swf", seed=3)


@pytest.fixture
def paper(trace: MonthlyLog, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The reproduction on this log, of a small size."""
    monkeypatch.setitem(KIND.paper.sizes, "quick", TINY)
    return KIND([trace.path], quick=True, seed=7)


def learner_of(paper: Any, name: str = "dras", **variables: Any) -> Learner:
    """Return an agent of the plan."""
    known = {"algorithm": "pg", "number": 0, **variables}
    found: Learner = paper.workshop.agent(name, {**paper.workshop.parts().variables, **known})
    return found


# --- the data ------------------------------------------------------------------------------------------


def test_months_are_cut_by_the_calendar_from_the_first_submission(trace: MonthlyLog) -> None:
    assert MONTH == 30.4 * DAY
    parts = [trace.part, trace.validation.scenarios[0].workload, trace.test.scenarios[0].workload]
    days = [[(int(time) - 1_000_000) // DAY for time in part.submit_time] for part in parts]
    assert days == [list(range(0, 61, 2)), list(range(62, 92, 2)), list(range(92, 121, 2))]


def test_theta_is_a_tenth_unless_in_full_size(tmp_path: Path) -> None:
    log = log_of(range(0, 121, 2), nodes=[11] * 61)
    path = tmp_path / "ALCF-Theta-2022.swf"
    write_swf(log, path)
    small, full = (trace_of(path, full=full) for full in (False, True))
    assert (small.nodes, small.log.nodes.max(), small.original.machine_size) == (4, 2, 40)
    assert (full.nodes, full.log.nodes.max(), full.original.machine_size) == (40, 11, 40)
    assert small.is_theta and small.objective == "capability"


def test_who_is_paid_by_equation_2(tmp_path: Path) -> None:
    found = [trace_of(tmp_path / name).objective for name in ("HPC2N-2002.swf", "KTH.swf")]
    assert found == ["capacity", "capability"]


def test_jobs_are_killed_at_their_requests(tmp_path: Path) -> None:
    log = log_of(range(0, 121, 2), run_time=[3 * HOUR] * 61)
    write_swf(log, tmp_path / "mine.swf")
    assert set(trace_of(tmp_path / "mine.swf").log.run_time) == {2 * HOUR}


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ([0, 91], "jobs of more than 91.2 days are needed"),
        ([0, 1, 95, 96], "there is nothing to be scheduled in the months to choose by"),
    ],
)
def test_logs_that_are_too_short(tmp_path: Path, days: list[float], words: str) -> None:
    write_swf(log_of(days), tmp_path / "short.swf")
    with pytest.raises(UsageError, match=words):
        trace_of(tmp_path / "short.swf").line()


def test_job_sets_and_how_many_decisions(trace: MonthlyLog) -> None:
    sizes = {phase: [len(jobs) for jobs in sets] for phase, sets in trace.job_sets.items()}
    assert sizes == {"sampled": [5], "real": [4, 3, 4, 3, 4, 3, 4, 3, 3], "synthetic": [5, 5]}
    assert trace.decisions == 5 + 31 + 10


def test_rewards_of_equation_2_are_made_about_one(tmp_path: Path) -> None:
    requests = [10, 40] * 30 + [10]
    log = log_of(range(0, 121, 2), requested_time=requests, run_time=[1] * 61)
    for name, scale in (("HPC2N.swf", 1 / ((16 / 10 + 15 / 40) / 31)), ("mine.swf", 1.0)):
        write_swf(log, tmp_path / name)
        assert trace_of(tmp_path / name).reward_scale == pytest.approx(scale)


# --- who learns, and who meets -------------------------------------------------------------------------


def test_learners(paper: Any) -> None:
    second, real = (
        learner_of(paper, algorithm="ppo", number=1),
        learner_of(paper, suffix="-real", phases=["real"]),
    )
    assert (second.name, second.seed, second.trainer) == ("mine-ppo-1", 8, "dras-ppo")
    assert second is learner_of(paper, algorithm="ppo", number=1), "made once"
    assert (real.name, real.seed) == ("mine-pg-real-0", 7)
    assert [len(jobs) for jobs in real.episodes.workloads] == [4, 3, 4, 3, 4, 3, 4, 3, 3]  # type: ignore[attr-defined]
    assert real.settings.total_timesteps == second.settings.total_timesteps == 46, (
        "the same weeks again, for as many decisions"
    )
    assert (second.validate_every, second.skip, second.stage) == (1, False, "two-level")
    decima, waiting, evolved = (learner_of(paper, name) for name in ("decima", "waiting", "evolved"))
    assert (decima.name, decima.trainer, decima.stage) == ("mine-decima-0", "dras-pg", "order")
    assert (waiting.name, waiting.trainer) == ("mine-dql-waiting-0", "dras-dql")
    assert (evolved.name, evolved.trainer, evolved.settings.total_timesteps) == ("mine-evolved-0", "cem", 99)
    assert waiting.reward == evolved.reward != second.reward
    marks = [fingerprint(each) for each in (second, real, decima, learner_of(paper, algorithm="ppo"))]
    assert len(set(marks)) == 4


def test_orders_begin_with_the_papers(paper: Any) -> None:
    (found,) = paper.studies
    assert list(found.learners) == [each["name"] for each in TINY["orders"]]
    first = [each.episodes.workloads[0].name for each in found.learners.values()]
    assert first == ["mine-sampled-1", "mine-week-1", "mine-week-1", "mine-synthetic-1"]
    assert [each.name for each in found.learners.values()][:2] == ["mine-pg-0", "mine-pg-real-0"]


def test_everybody_meets_and_rivals_are_paid_as_agents(paper: Any) -> None:
    validation, test = paper.contests
    rivals = [FCFS, OPTIMIZATION, "BinPacking", "Random", *ADDED_RULES, *SLOTS, *outside()]
    assert list(validation.meetings) == rivals[: -len(outside())]
    pg = [f"{name} {number}" for name in ("DRAS-PG", "DRAS-PG, drawn") for number in (1, 2)]
    agents = ["Decima-PG 1", *pg, *(f"{name} 1" for name in ADDED_AGENTS)]
    assert list(test.meetings) == [*rivals, *agents]
    paid = {
        name: run.reward.reserved for name, run in test.meetings.items() if isinstance(run.reward, Capability)
    }
    assert paid == {
        name: name in (FCFS, *ADDED_RULES, *SLOTS, *outside(), *agents[1:]) for name in (*rivals, *agents)
    }
    names = {run.name for contest in (validation, test) for run in contest.meetings.values()}
    assert len(names) == len(rivals) * 2 - len(outside()) + len(agents), "a folder each"


def test_sizes_of_networks_decide_the_pace(paper: Any) -> None:
    learner = learner_of(paper, "decima")
    large = replace(learner, settings=replace(learner.settings, hidden=(4000, 1000)))  # type: ignore[call-arg]
    assert in_full_size("training", learner) == "training"
    assert in_full_size("training", large) == "training in full size"
    assert "training in full size" in KIND.rates


# --- agents on their seat -----------------------------------------------------------------------------


def agent_of(learner: Learner) -> Agent:
    """Return an agent that has learned nothing yet."""
    env = SchedulingEnv(
        learner.episodes, learner.policy, learner.encoder, learner.mask, learner.reward, stage=learner.stage,
        skip=learner.skip,
    )  # fmt: skip
    trainer = trainer_named(learner.trainer)(env, learner.settings, seed=0)
    trainer.rng, trainer.steps = np.random.default_rng(0), 0
    trainer._ended = 0
    trainer.build(0)
    return trainer.agent()


def test_an_agent_takes_the_seat_of_two_levels(paper: Any) -> None:
    policy = TwoLevel(External(), 50)
    agent = agent_of(learner_of(paper))
    with_it = with_agent(policy, agent)
    assert isinstance(with_it, TwoLevel) and with_it.seat is agent and with_it.window == 50
    assert isinstance(policy.seat, External) and policy.seat is not agent, "the policy is as it was"


def test_the_best_of_some_is_who_earned_most(paper: Any, tmp_path: Path) -> None:
    some = [learner_of(paper, number=number) for number in range(3)]
    for learner, value in zip(some, (1.0, 3.0, 2.0), strict=True):
        agent = agent_of(learner)
        agent.about = {"validation": value}
        (tmp_path / learner.name).mkdir()
        agent.save(tmp_path / learner.name / BEST)
    assert best_of(some, tmp_path) is some[1]


# --- arithmetic ----------------------------------------------------------------------------------------


def test_kiviat_by_hand() -> None:
    values = {
        "a": {"mean_wait_time": 10.0, "max_wait_time": 4.0, "mean_response_time": 7.0, "mean_slowdown": 3.0,
              "utilisation": 0.5},
        "b": {"mean_wait_time": 20.0, "max_wait_time": 2.0, "mean_response_time": 7.0, "mean_slowdown": 1.0,
              "utilisation": 0.9},
        "c": {"mean_wait_time": 12.5, "max_wait_time": 3.5, "mean_response_time": 7.0, "mean_slowdown": 2.5,
              "utilisation": 0.6},
    }  # fmt: skip
    found = kiviat(values)
    assert found["a"] == pytest.approx([1, 0, 1, 0, 0])
    assert found["b"] == pytest.approx([0, 1, 1, 1, 1])
    assert found["c"] == pytest.approx([0.75, 0.25, 1, 0.25, 0.25])
    assert len(AXES) == 5


def result_of(
    start: Sequence[int],
    mode: Sequence[int],
    nodes: Sequence[int],
    submit: Sequence[int],
    run_time: int = 100,
) -> Result:
    """Return a schedule on 10 nodes of jobs that are all as long."""
    w = Workload(
        {"submit_time": submit, "run_time": [run_time] * len(start), "nodes": nodes}, machine_size=10
    )
    begin = np.array(start)
    return Result(
        w, "x", 10, np.array(submit), begin, begin + run_time, np.array(mode, dtype=np.uint8),
        np.zeros(len(start), dtype=bool),
    )  # fmt: skip


WEEK = 7 * DAY


def test_weeks_by_hand() -> None:
    result = result_of(
        start=[0, WEEK - 1 + 30, WEEK + 50, 3 * WEEK], mode=[1] * 4, nodes=[2, 10, 5, 1],
        submit=[0, WEEK - 1, WEEK, 3 * WEEK],
    )  # fmt: skip
    found = weekly(result)
    assert found.load * WEEK * 10 == pytest.approx([1200, 500, 0, 100])
    assert found.mean == pytest.approx([15, 50, np.nan, 0], nan_ok=True)
    assert found.longest == pytest.approx([30, 50, np.nan, 0], nan_ok=True)


def test_waits_by_mode_and_of_the_largest() -> None:
    result = result_of([5, 7, 9, 20], mode=[1, 2, 2, 3], nodes=[1, 2, 1, 1], submit=[0] * 4)
    found = {mode: waits.tolist() for mode, waits in waits_by_mode(result).items()}
    assert found == {"ready": [5], "reserved": [7, 9], "backfilled": [20]}
    assert longest_large_wait(result) == 7, "a fifth of 10 nodes are 2"
    small = result_of([5], mode=[1], nodes=[1], submit=[0])
    assert np.isnan(longest_large_wait(small))
    assert "reserved" not in waits_by_mode(small)


def test_the_papers_shares_add_up() -> None:
    assert list(PUBLISHED["table_4"].rows) == list(FAMILIES)
    for shares in PUBLISHED["table_4"].rows.values():
        for of in (shares[::2], shares[1::2]):
            assert sum(of) == pytest.approx(100, abs=0.05)


def test_lines_of_pictures_can_be_told_apart() -> None:
    looks = [look_of(family) for family in (*FAMILIES, *ADDED_RULES)]
    assert all(a != b for a, b in itertools.combinations(looks, 2))
    assert [look_of(name).dash for name in ("DRAS-PG", "Decima-PG")] == ["solid", "dashed"]


# --- tables and targets --------------------------------------------------------------------------------


def family(
    name: str, waits: Sequence[float], *, rewards: Sequence[float] = (), longest: Sequence[float] = (),
    shares: Mapping[str, float] = {},
) -> Family:  # fmt: skip
    """Return a method with mean waits [h] by seed, and maximum waits [d]; the largest jobs wait half of it."""
    longest = longest or [1.0] * len(waits)
    rows = {
        f"{name} {number}": {
            **dict.fromkeys((*MEASURED, REWARD), 1.0), **shares, "mean_wait_time": wait * HOUR,
            "max_wait_time": most * DAY,
        }
        for number, (wait, most) in enumerate(zip(waits, longest, strict=True))
    }  # fmt: skip
    results = {
        row: result_of([round(values["max_wait_time"] / 2)], mode=[1], nodes=[2], submit=[0])
        for row, values in rows.items()
    }
    reserves = name not in (OPTIMIZATION, "BinPacking", "Random", "Decima-PG")
    return Family(name, rows, dict(zip(rows, rewards, strict=False)), results, reserves)


@pytest.fixture
def measured(trace: MonthlyLog) -> Measured:
    """FCFS/EASY waits 10 h, Optimization 8 h; DRAS-PG earns more on the month to choose by than DRAS-PPO."""
    families = [
        family(FCFS, [10.0], longest=[2.0]),
        family(OPTIMIZATION, [8.0], longest=[6.0]),
        family(CHANCE, [9.0]),
        family("DRAS-PG", [4.0, 6.0, 8.0], rewards=[5.0, 9.0, 7.0], longest=[3.0, 3.0, 6.0]),
        family("DRAS-PPO", [2.0, 2.0, 2.0], rewards=[10.0, 4.0, 4.0]),
    ]
    return Measured(trace, {each.name: each for each in families}, {FCFS: 8.0, OPTIMIZATION: 3.0})


def test_the_best_learner_is_chosen_by_the_mean_over_seeds(measured: Measured) -> None:
    assert measured.best.name == "DRAS-PG", "7 in the mean, DRAS-PPO 6, whose best seed has 10"
    assert measured.best.shown is measured.best.results["DRAS-PG 1"]
    assert [each.name for each in measured.learned] == ["DRAS-PG", "DRAS-PPO"]


def test_targets_by_hand(measured: Measured) -> None:
    of_others = list(waiting_targets(measured, measured.best))
    assert {target.met for target in of_others} == {None}, "judged on Theta only"
    on_theta = replace(measured, trace=trace_of(Path("ALCF-Theta-2022.swf")))
    gain, gain_2, longest, large = waiting_targets(on_theta, measured.best)
    assert "Theta-2022: DRAS-PG, mean wait shorter than FCFS/EASY's" in gain.what
    assert (gain.ours, gain.spread, gain.met) == (pytest.approx(40), pytest.approx(20), True)
    assert (gain_2.ours, gain_2.spread, gain_2.met) == (pytest.approx(25), pytest.approx(25), True)
    assert (longest.ours, longest.met) == (pytest.approx(2.0), False), "4 days are not 1.5 times 2 days"
    assert (large.ours, large.met) == (pytest.approx(2.0), True)
    assert {target.met for target in waiting_targets(on_theta, family(ADDED_AGENTS[1], [1.0]))} == {None}


def test_times_are_judged_by_the_longest_and_the_largest(paper: Any) -> None:
    small, large = Overhead("dras-dql", 40, 1), Overhead("dras-dql", 400, 1)
    overheads = [(small, {"update": 9.0}), (large, {"update": 1.5})]
    learner = learner_of(paper)
    training, update = speed_targets(learner, 4 * 3600.0, overheads)
    assert learner.name in training.what
    assert (training.ours, training.paper, training.met) == (4.0, 3.0, None), "of another size"
    assert (update.ours, update.paper, update.met) == (1.5, 2.0, True)


def test_metrics_table(measured: Measured) -> None:
    headings, lines = metrics_table(measured)
    rows = {line[0]: dict(zip(headings, line, strict=True)) for line in lines}
    assert rows["DRAS-PG"]["mean wait [h]"] == "6.00 (4.00 to 8.00)"
    assert rows["DRAS-PPO"]["mean wait [h]"] == "**2.00**"
    assert rows["DRAS-PPO"]["utilisation [%]"] == "100.00", "all have the same: nobody is best"
    assert rows["DRAS-PG"]["maximum wait [d]"] == "4.00 (3.00 to 6.00)"
    assert [rows[name]["reservations"] for name in (FCFS, OPTIMIZATION)] == ["yes", "no"]
    assert f"*{CHANCE}*" in rows, "not in the paper"


def test_modes_table(trace: MonthlyLog) -> None:
    shares = {"backfilled_job_share": 0.25, "ready_job_share": 0.5, "reserved_job_share": 0.25,
              "backfilled_area_share": 0.1, "ready_area_share": 0.2, "reserved_area_share": 0.7}  # fmt: skip
    measured = Measured(trace, {FCFS: family(FCFS, [1.0], shares=shares)}, {})
    headings, lines = modes_table(measured)
    assert headings[1:] == ["backfilled: jobs", "backfilled: core hours", "ready: jobs", "ready: core hours",
                            "reserved: jobs", "reserved: core hours"]  # fmt: skip
    assert lines == [[FCFS, "25.00", "10.00", "50.00", "20.00", "25.00", "70.00"]]
    theta = replace(measured, trace=trace_of(Path("ALCF-Theta-2022.swf")))
    beside = modes_table(theta)[1][0]
    assert beside[1::2] == ["79.25", "30.45", "9.88", "16.99", "10.87", "52.56"]
    assert beside[2::2] == lines[0][1:]


def test_waits_of_the_largest_jobs(measured: Measured) -> None:
    pg = measured.families["DRAS-PG"]
    waits = [spread_cell(each, 1 / DAY) for each in (pg.large_waits, pg.over_seeds("max_wait_time"))]
    assert waits == ["2.00 (1.50 to 3.00)", "4.00 (3.00 to 6.00)"]


def test_how_much_is_as_fcfs_does_it(measured: Measured) -> None:
    rule = measured.families[FCFS]
    assert [each.same_starts(rule) for each in measured.agents] == [[0.0] * 3] * 2, "each of three seeds"
    same = family("DRAS-PG", [1.0], rewards=[1.0], longest=[2.0])
    assert same.same_starts(rule) == [100.0]


def test_waits_and_rewards_in_short(measured: Measured) -> None:
    pg, ppo = measured.families["DRAS-PG"], measured.families["DRAS-PPO"]
    assert (pg.mean_wait, pg.longest_wait, pg.reward) == (pytest.approx(6.0), pytest.approx(4.0), 1.0)
    assert measured.leaders == [pg]
    tied = replace(measured, families={**measured.families, "DRAS-PPO": replace(ppo, validations={"a": 7.0})})
    assert [each.name for each in tied.leaders] == ["DRAS-PG", "DRAS-PPO"]
    rule, other = outside()[:2]
    ahead = {**measured.families, rule: family(rule, [5.0], longest=[3.0]), other: family(other, [1.0])}
    assert replace(measured, families=ahead).faster_rules == {(rule, other): ["DRAS-PG"], (): ["DRAS-PPO"]}


def test_who_has_learned(measured: Measured) -> None:
    """Each seed earns more than chance, and than the slot that earns most on the month to choose by."""
    slot, other = SLOTS[:2]
    rewards = {FCFS: 5.0, slot: 8.0, other: 1.0, CHANCE: 3.0}

    def earning(name: str, *values: float) -> Family:
        found = family(name, [1.0] * len(values), rewards=values)
        rows = {
            row: {**of, REWARD: value} for (row, of), value in zip(found.rows.items(), values, strict=True)
        }
        return replace(found, rows=rows)

    families = [
        earning(name, value) for name, value in ((slot, 4.0), (other, 9.0), (CHANCE, 6.0), (FCFS, 2.0))
    ]
    families = [replace(each, validations={}) for each in families]
    families += [earning("DRAS-PG", 6.5, 7.0), earning("DRAS-PPO", 5.9, 9.0), earning("DRAS-A2C", 6.0)]
    log = Measured(measured.trace, {each.name: each for each in families}, rewards)
    assert log.best_constant == slot
    assert log.better_than_constant == ["DRAS-PG"], "one seed of DRAS-PPO is below chance, DRAS-A2C no better"
    headings, lines = behaviour_table(log, {"DRAS-PG": [
        {SLOT_0: 1.0, OFTEN: 0.0, LARGEST: 0.5, ENTROPY: 0.25}, {SLOT_0: 0.5, OFTEN: 3.0, LARGEST: 1.0, ENTROPY: 0.0},
    ]})  # fmt: skip
    row = dict(zip(headings, next(line for line in lines if line[0] == "DRAS-PG"), strict=True))
    assert row["learned"] == "yes" and row["slot 0 [%]"] == "75.00" and row["slot taken most often"] == "0, 3"
    assert (row["largest probability"], row["entropy / that of chance"]) == ("0.75", "0.12")


def test_an_agent_is_watched(paper: Any, tmp_path: Path) -> None:
    """An agent that prefers one slot by far: its other choices are forced."""
    learner = learner_of(paper)
    agent = agent_of(learner)
    tensors = agent.network.tensors
    last = max(
        (name for name in tensors if name.startswith("bias")), key=lambda name: int(name.split(".")[1])
    )
    tensors[last][...] = 0
    tensors[last][2] = 1e6
    (tmp_path / learner.name).mkdir()
    agent.save(tmp_path / learner.name / BEST)
    jobs = Workload({"submit_time": [0] * 5, "run_time": [9] * 5, "nodes": [40] * 5}, machine_size=40)
    task = Habits(
        Contestant("DRAS-PG 1", learner.policy, "textbook", learner), SequenceSet("some", (Scenario(jobs),))
    )
    found = task.run(tmp_path / "habits", lambda done: None)
    assert found["choices"] == 4, "the last job is alone"
    assert found[OFTEN] == 2 and found[LARGEST] > 0.6


def test_overhead_counts_weights(tmp_path: Path) -> None:
    found = {kind: Overhead(kind, 10, 1).run(tmp_path, lambda done: None) for kind in LEARNERS}
    rows, hidden = 110, (100, 25)
    pg = 3 + rows * hidden[0] + hidden[0] * hidden[1] + hidden[1] * 50 + 50
    dql = 3 + 12 * hidden[0] + hidden[0] * hidden[1] + hidden[1] + 1
    assert [each["weights"] for each in found.values()] == [dql, pg, pg + 26, pg + 26]
    assert all(each["decision"] > 0 and each["update"] > 0 for each in found.values())


def test_spread() -> None:
    assert spread_cell(np.array([4.0, 1.0, 4.0])) == "3.00 (1.00 to 4.00)"


def test_names_are_given_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a log 'mine' is given twice"):
        _ = KIND([tmp_path / "mine.swf", tmp_path / "mine.swf.gz"]).traces.all
