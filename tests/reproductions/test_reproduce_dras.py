"""DRAS done again: how logs are cut, what schedulers earn, and the arithmetic behind tables and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Pipeline, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.measurements import LARGEST_WAIT, METRICS, RESERVES, REWARD, longest_large_wait
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.rewards import Capability
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.engine.identity import fingerprint
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.reproductions.cells import spread_cell
from hpcsimkit.reproductions.dras.own import (
    MONTH,
    MonthlyLog,
    OwnFindings,
    in_full_size,
)
from hpcsimkit.reproductions.judged_logs import LearningLog, LearningLogs
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.logs import PaperLogs
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.rivals import rules_without
from hpcsimkit.reproductions.scores import VALIDATION, Scores
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import write_swf

DAY, HOUR = 86_400, 3600
KIND: Any = reproduction_named("dras")
TINY = {
    **KIND.paper.sizes["full"], "sampled": 1, "synthetic": 2, "jobs": 5, "learners": ["pg"], "seeds": [0, 1],
    "decima_seeds": [0], "waiting_seeds": [0], "evolved_seeds": [0], "evolved_steps": 99,
}  # fmt: skip
FCFS, OPTIMIZATION, CHANCE = "FCFS/EASY", "Optimization", "Random, two levels"
ADDED_RULES = ("SJF/EASY", CHANCE, "Shortest, two levels", "Largest, two levels")
ADDED_AGENTS = ("DRAS-DQL, paid for short waits", "Evolved, two levels")
SLOTS = [f"Slot {slot}, two levels" for slot in TINY["slots"]]


def outside() -> list[str]:
    """Return the heuristics of the kit that the page has no rows for."""
    return [name for name, _ in rules_without(["FCFS/EASY", "SJF/EASY"])]


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
    rewards = {name: run.measuring.reward(run.contestant.policy) for name, run in test.meetings.items()}
    paid = {name: each.reserved for name, each in rewards.items() if isinstance(each, Capability)}
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


# --- arithmetic ----------------------------------------------------------------------------------------


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


def test_waits_of_the_largest() -> None:
    result = result_of([5, 7, 9, 20], mode=[1, 2, 2, 3], nodes=[1, 2, 1, 1], submit=[0] * 4)
    assert longest_large_wait(result) == 7, "a fifth of 10 nodes are 2"
    assert np.isnan(longest_large_wait(result_of([5], mode=[1], nodes=[1], submit=[0])))


def test_the_papers_shares_add_up() -> None:
    for shares in KIND.published["table_4"].rows.values():
        for of in (shares[::2], shares[1::2]):
            assert sum(of) == pytest.approx(100, abs=0.05)


# --- tables and targets --------------------------------------------------------------------------------


def family(
    waits: Sequence[float], *, best: Sequence[float] = (), longest: Sequence[float] = (), **others: Any
) -> dict[str, list[float]]:
    """Mean waits [h] by seed, maximum waits [d] and validation rewards; the largest jobs wait half as long."""
    days = [DAY * each for each in longest or [1.0] * len(waits)]
    found = {name: [1.0] * len(waits) for name in (*METRICS, REWARD, RESERVES)}
    found |= {"mean_wait_time": [HOUR * each for each in waits], "max_wait_time": days}
    return {
        **found,
        LARGEST_WAIT: [each / 2 for each in days],
        **({VALIDATION: list(best)} if best else {}),
        **others,
    }


def scores_of(
    trace: MonthlyLog, families: Mapping[str, Mapping[str, Sequence[float]]], protocol: str = "test"
) -> Scores:
    values, contestants, tables = {}, [], {}
    for name, of in families.items():
        known = [row for row in KIND.paper.rows.values() if row.group == "paper"]
        group = "paper" if name in PAPER else "added" if name in ADDED_AGENTS else ""
        assert len(known) == 6
        for number in range(len(of[REWARD])):
            row = f"{name} {number + 1}" if len(of[REWARD]) > 1 else name
            values[row] = {measure: np.array([each[number]]) for measure, each in of.items()}
            contestants.append(SimpleNamespace(name=row, learner=None))
            tables[row] = SimpleNamespace(family=name, group=group)
    plan, parts = KIND.paper.comparisons[protocol], Parts({"log": trace})
    sequences: Any = SequenceSet("x", [None])  # type: ignore[list-item]
    return Scores(Comparison(plan, protocol, trace, parts, sequences, contestants, tables), values)  # type: ignore[arg-type]


PAPER = (FCFS, OPTIMIZATION, "DRAS-PG", "DRAS-PPO", "DRAS-A2C")
MEASUREMENTS = {
    FCFS: family([10.0], longest=[2.0]),
    OPTIMIZATION: family([8.0], longest=[6.0], **{RESERVES: [0.0]}),
    CHANCE: family([9.0]),
    "DRAS-PG": family([4.0, 6.0, 8.0], best=[5.0, 9.0, 7.0], longest=[3.0, 3.0, 6.0]),
    "DRAS-PPO": family([2.0, 2.0, 2.0], best=[10.0, 4.0, 4.0]),
    ADDED_AGENTS[1]: family([1.0], best=[1.0]),
}
"""FCFS/EASY waits 10 h, Optimization 8 h; DRAS-PG earns more on the month to choose by than DRAS-PPO."""


def findings(*scores: Scores) -> OwnFindings:
    traces = SimpleNamespace(first=scores[0].contest.trace, scale=SimpleNamespace())
    plan: Any = SimpleNamespace(
        paper=KIND.paper, published=KIND.published, traces=traces, trained=[], compared=[]
    )
    found = OwnFindings(plan, SimpleNamespace())  # type: ignore[arg-type]
    vars(found)["scores"] = list(scores)
    return found


def targets_of(trace: MonthlyLog, **changes: Any) -> dict[str, Target]:
    scores = scores_of(trace, {**MEASUREMENTS, **changes})
    return {target.what.partition(": ")[2]: target for target in findings(scores).targets()}


def test_targets_by_hand(trace: MonthlyLog) -> None:
    of_others = targets_of(trace)
    assert {target.met for target in of_others.values()} == {None}, "judged on Theta only"
    on_theta = targets_of(trace_of(Path("ALCF-Theta-2022.swf")))
    gain, gain_2 = (
        on_theta[f"DRAS-PG, mean wait shorter than {rival}'s by [%] (needed: 20)"]
        for rival in (FCFS, OPTIMIZATION)
    )
    assert (gain.ours, gain.spread, gain.met) == (pytest.approx(40), pytest.approx(20), True)
    assert (gain_2.ours, gain_2.spread, gain_2.met) == (pytest.approx(25), pytest.approx(25), True)
    longest = on_theta["DRAS-PG, maximum wait, times FCFS/EASY's (at most 1.5)"]
    large = on_theta["DRAS-PG, maximum wait of the largest jobs, times FCFS/EASY's (at most 2)"]
    assert (longest.ours, longest.met) == (pytest.approx(2.0), False), "4 days are not 1.5 times 2 days"
    assert (large.ours, large.met) == (pytest.approx(2.0), True)
    assert {target.met for what, target in on_theta.items() if "Evolved" in what} == {None}
    assert not [what for what in on_theta if "PPO" in what], "6 in the mean, though its best seed has 10"


def test_learners_that_earn_the_same_are_judged_both(trace: MonthlyLog) -> None:
    found = targets_of(trace, **{"DRAS-PPO": family([2.0], best=[7.0])})
    assert {"DRAS-PG", "DRAS-PPO"} <= {what.partition(",")[0] for what in found}


def test_waits_that_nobody_has(trace: MonthlyLog) -> None:
    """On an underloaded machine there is nothing to divide by."""
    found = targets_of(trace, **{FCFS: family([0.0], longest=[0.0])})
    gain = found[f"DRAS-PG, mean wait shorter than {FCFS}'s by [%] (needed: 20)"]
    longest = found["DRAS-PG, maximum wait, times FCFS/EASY's (at most 1.5)"]
    assert np.isnan([gain.ours, longest.ours]).all()


def test_metrics_table(trace: MonthlyLog) -> None:
    headings, lines = findings(scores_of(trace, MEASUREMENTS)).tabulated("metrics")
    rows = {line[0]: dict(zip(headings, line, strict=True)) for line in lines}
    assert rows["DRAS-PG"]["mean wait [h]"] == "6.00 (4.00 to 8.00)"
    assert rows["*Evolved, two levels*"]["mean wait [h]"] == "**1.00**"
    assert rows["DRAS-PPO"]["utilisation [%]"] == "100.00", "all have the same: nobody is best"
    assert rows["DRAS-PG"]["maximum wait [d]"] == "4.00 (3.00 to 6.00)"
    assert [rows[name]["reservations"] for name in (FCFS, OPTIMIZATION)] == ["yes", "no"]
    assert f"*{CHANCE}*" in rows, "not in the paper"
    largest = {
        line[0]: line[1:] for line in findings(scores_of(trace, MEASUREMENTS)).tabulated("largest").rows
    }
    assert largest["DRAS-PG"] == ["2.00 (1.50 to 3.00)", "4.00 (3.00 to 6.00)"]


def test_modes_table(trace: MonthlyLog) -> None:
    shares = {"backfilled_job_share": [0.25], "ready_job_share": [0.5], "reserved_job_share": [0.25],
              "backfilled_area_share": [0.1], "ready_area_share": [0.2], "reserved_area_share": [0.7]}  # fmt: skip
    families = {FCFS: family([1.0], **shares)}
    headings, lines = findings(scores_of(trace, families)).tabulated("modes")
    assert headings[1:] == ["backfilled: jobs", "backfilled: core hours", "ready: jobs", "ready: core hours",
                            "reserved: jobs", "reserved: core hours"]  # fmt: skip
    assert lines == [[FCFS, "25.00", "10.00", "50.00", "20.00", "25.00", "70.00"]]
    theta = scores_of(trace_of(Path("ALCF-Theta-2022.swf")), families)
    (beside,) = findings(theta).tabulated("modes").rows
    assert beside[1::2] == ["79.25", "30.45", "9.88", "16.99", "10.87", "52.56"]
    assert beside[2::2] == lines[0][1:]


def test_who_has_learned(trace: MonthlyLog) -> None:
    """Each seed earns more than chance, and than the slot that earns most on the month to choose by."""
    slot, other = SLOTS[:2]
    months = {FCFS: 5.0, slot: 8.0, other: 1.0, CHANCE: 3.0}
    validation = scores_of(
        trace, {name: family([1.0], **{REWARD: [value]}) for name, value in months.items()}, "validation"
    )
    rewards = {slot: [4.0], other: [9.0], CHANCE: [6.0], FCFS: [2.0], "DRAS-PG": [6.5, 7.0],
               "DRAS-PPO": [5.9, 9.0], "DRAS-A2C": [6.0]}  # fmt: skip
    families = {
        name: family([1.0] * len(of), best=of if "DRAS" in name else (), **{REWARD: of})
        for name, of in rewards.items()
    }
    headings, lines = findings(validation, scores_of(trace, families)).tabulated("slots")
    rows = {line[0]: dict(zip(headings, line, strict=True)) for line in lines}
    learned = {name: rows[name]["learned"] for name in ("DRAS-PG", "DRAS-PPO", "DRAS-A2C", FCFS)}
    assert learned == {"DRAS-PG": "yes", "DRAS-PPO": "no", "DRAS-A2C": "no", FCFS: ""}
    assert rows[f"*{slot}*"]["reward on the month to choose by"] == "8.0"


def test_spread() -> None:
    assert spread_cell(np.array([4.0, 1.0, 4.0])) == "3.00 (1.00 to 4.00)"


def test_names_are_given_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a log 'mine' is given twice"):
        _ = KIND([tmp_path / "mine.swf", tmp_path / "mine.swf.gz"]).traces.all


def plus_log(folder: Path, window: int = 10) -> LearningLog:
    """Return a log of 60 weeks on one node with a job every third of a day, which waits in every sixth week."""
    submit = np.arange(0, 60 * 7 * DAY, DAY // 3)
    run_time = np.where(submit // (7 * DAY) % 6 == 5, DAY // 3 + 60, DAY // 6)
    columns = {
        "submit_time": submit,
        "run_time": run_time,
        "requested_time": run_time * 2,
        "nodes": submit * 0 + 1,
    }
    path = folder / "HPC2N-mine.swf"
    write_swf(Workload(columns, machine_size=1), path)
    return LearningLog(path, weeks=0, seed=0, least=2 * window)


def test_what_dras_plus_learns_from_is_chosen_by_and_judged_on(tmp_path: Path) -> None:
    """The first half, the next sixth, and the last third, each job once."""
    log = plus_log(tmp_path)
    (whole,) = log.whole.scenarios
    parts = [log.learn.submit_time, log.choose.submit_time]
    jobs = len(whole.workload)
    assert [len(each) for each in parts] == pytest.approx([jobs / 2, jobs / 6], abs=12)
    past = np.concatenate(parts)
    assert (past == whole.workload.submit_time[: len(past)]).all()
    assert f"{jobs - len(past):,}".replace(",", " ") in log.line() and log.name == "HPC2N"
    with pytest.raises(UsageError, match="4000 jobs to learn from are needed, found"):
        _ = plus_log(tmp_path, 2000).learn


def test_only_the_last_third_is_judged(tmp_path: Path) -> None:
    log = plus_log(tmp_path)
    (whole,) = log.whole.scenarios
    policy = Pipeline()
    (plan,) = (each for each in KIND.paper.comparisons.values() if each.when == {"plus": [True]})
    meeting = Meeting(
        Contestant("FCFS", policy, "textbook"),
        log.whole,
        names=plan.meeting["names"],
        warmup=log.before_judged,
    )
    found = meeting.run(tmp_path, lambda done: None)
    result = whole.simulation(policy).run()
    last = slice(len(log.learn) + len(log.choose), None)
    assert found["mean_wait_time"] == [pytest.approx(result.wait_time[last].mean())]
    assert found["max_wait_time"] == [result.wait_time[last].max()]
    assert found["mean_bounded_slowdown"] == [pytest.approx(result.bounded_slowdown()[last].mean())]
    assert result.wait_time[last].mean() != pytest.approx(result.wait_time.mean())


def test_a_side_study_has_its_own_logs_and_report_and_no_figure_of_the_paper(tmp_path: Path) -> None:
    plus_log(tmp_path)
    of_paper, aside = (KIND([tmp_path / "HPC2N-mine.swf"], chosen=chosen) for chosen in ((), ["plus"]))
    assert of_paper.side_study is None and isinstance(of_paper.traces, PaperLogs)
    assert isinstance(aside.traces, LearningLogs) and aside.traces.first.name == "HPC2N"
    assert aside.paper.studies and aside.studies == []
    templates = [KIND.findings(each, SimpleNamespace()).template for each in (of_paper, aside)]
    assert templates == ["dras/report.md.jinja", "dras/plus.md.jinja"]
