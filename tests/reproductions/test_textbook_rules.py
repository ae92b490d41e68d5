"""By the textbook's rules: who learns from what, who sits on which seat, and who is better for sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores
from hpcsimkit.agents.seats import RandomAgent, play
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.agents.training.trainer import LAST
from hpcsimkit.engine.identity import fingerprint, identity_of
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.predictions import LastTwo, ShortestPredicted
from hpcsimkit.reproductions import learners as frame
from hpcsimkit.reproductions.learners import Training, learning_curve_of, trained_agent
from hpcsimkit.reproductions.partners import SeatLearner, TogetherLearner
from hpcsimkit.reproductions.plans.comparisons import Comparison as Contest
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import PaperLog, PaperLogs
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.planned import PaperReproduction, reproduction_named
from hpcsimkit.reproductions.scores import Scores, Verdict, verdicts
from hpcsimkit.reproductions.sequences import BSLD, OF_PROMISES, Contestant, SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.reproductions.textbook_rules.own import (
    JOBS,
    both_seats,
    heuristic,
)
from hpcsimkit.results.statistics import Comparison, Mean, p_value_text
from hpcsimkit.workloads import default_workload, write_swf

KIND: Any = reproduction_named("textbook-rules")
TINY = {
    **KIND.paper.sizes["full"],
    "sequences": 3,
    "inspector_steps": 50,
    "backfiller_steps": 100,
    "together_steps": 3 * JOBS,
}
LOG_JOBS, LEARNED_JOBS = 1600, 320
RIVALS = ("SJF, EASY-SJF", "F1, EASY-SJF")

DECLINES = (0.0, 0.0, 0.0, 0.0, 0.0, 99.0, 0.0)
LONGEST_FIRST = (0.0, 3.0, 0.0, 0.0, 0.0, -10.0, 0.0)
"""Weights of backfillers: six columns and a bias; the last column marks the row that starts nothing."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log on which jobs queue, and whose longest request is the last job's."""
    log = default_workload(np.random.default_rng(0), jobs=LOG_JOBS, load=1.2)
    requested = log.requested_time.copy()
    requested[-1] = 10 * requested.max()
    path = tmp_path_factory.mktemp("logs") / "busy.swf"
    write_swf(replace(log, columns={**log.columns, "requested_time": requested}), path)
    return path


def paper_on(path: Path, seed: int = 3, **sizes: Any) -> PaperReproduction:
    found: PaperReproduction = KIND([path], seed=seed)
    scale = SimpleNamespace(**{**TINY, **sizes})
    vars(found)["traces"] = PaperLogs([path], scale, seed, KIND.paper.logs)
    return found


@pytest.fixture
def paper(path: Path) -> PaperReproduction:
    return paper_on(path)


@pytest.fixture
def trace(paper: PaperReproduction) -> PaperLog:
    return paper.traces.first


def agent(paper: PaperReproduction, name: str, order: str = "sjf") -> Any:
    """The learner of an agent on the log."""
    return paper.workshop.agent(name, {**paper.workshop.parts().variables, "order": order})


def starts(scenario: Scenario, policy: Policy) -> list[int]:
    return scenario.simulation(policy).run().start_time.tolist()  # type: ignore[no-any-return]


def backfiller_of(learner: SeatLearner, weights: Sequence[float]) -> Agent:
    """Someone on the backfiller's seat with these weights, the last one the bias."""
    tensors = {"weight.0": np.array([weights[:-1]]), "bias.0": np.array(weights[-1:])}
    return Agent(learner.encoder, learner.mask, SlotScores(tensors), "backfiller")


def accepting(learner: SeatLearner) -> Agent:
    """An inspector that accepts all jobs."""
    tensors = {"weight.0": np.zeros((2, learner.encoder.shape[0])), "bias.0": np.array([500.0, -500.0])}
    return Agent(learner.encoder, learner.mask, Dense(tensors), "inspector")


def put(agent: Agent, folder: Path, file: str = LAST) -> None:
    """Leave an agent where a training would."""
    folder.mkdir(parents=True, exist_ok=True)
    agent.save(folder / file)


# --- data --------------------------------------------------------------------------------------------------


def test_trained_and_tested_jobs_are_disjoint(trace: PaperLog, paper: PaperReproduction) -> None:
    everybody = [
        agent(paper, "inspector", "f1"), agent(paper, "backfiller"), agent(paper, "in-turn"),
        agent(paper, "together"),
    ]  # fmt: skip
    first = trace.log.id[:LEARNED_JOBS].tolist()
    rng = np.random.default_rng(0)
    for learner in everybody:
        assert learner.episodes.workload.id.tolist() == first, learner.name  # type: ignore[attr-defined]
        drawn = learner.episodes.sample(rng).workload.id.tolist()
        assert len(drawn) == JOBS
        assert set(drawn) <= set(first)
    for seed in range(6):
        many = replace(trace, scale=SimpleNamespace(**{**TINY, "sequences": 200}), seed=seed)
        tested = [job for scenario in many.rest.scenarios for job in scenario.workload.id.tolist()]
        assert len(tested) == 5 * JOBS == len(set(tested)), "1280 jobs: five sequences that share none"
        assert not set(tested) & set(first)
        assert all(scenario.setup.event_order.name == "textbook" for scenario in many.rest.scenarios)


def test_agents_know_the_longest_time_of_their_jobs_only(trace: PaperLog, paper: PaperReproduction) -> None:
    longest = int(trace.log.requested_time[:LEARNED_JOBS].max())
    assert trace.longest_time == longest < trace.log.requested_time.max()
    pair = agent(paper, "in-turn")
    assert pair.partner is not None
    assert pair.encoder.longest_time == pair.partner.encoder.longest_time == longest  # type: ignore[attr-defined]


def test_what_there_is_and_what_is_skipped(paper: PaperReproduction, trace: PaperLog, tmp_path: Path) -> None:
    (line,) = paper.traces.lines()
    assert line == (
        "busy: 1 600 jobs, the first 320 to learn from; 3 sequences of 256 of the rest to be tested on"
    )
    path = tmp_path / "other.swf"
    odd = ["9001 {0} -1 -1 4 -1 -1 4 60", "9002 {0} -1 -1 4 -1 -1 4 60", "9003 {0} -1 5 99999 -1 -1 99999 60"]
    last = int(trace.log.submit_time[-1])
    rows = "".join(row.format(last) + " -1" * 9 + "\n" for row in odd)
    path.write_text(trace.path.read_text() + rows)
    (line,) = replace(paper.traces, paths=[path]).lines()
    assert line.startswith(
        "other: 1 600 jobs, 2 skipped (run time unknown), "
        f"1 skipped (larger than the machine of {trace.log.machine_size} nodes), the first 320 to learn from;"
    )


# --- schedulers --------------------------------------------------------------------------------------------


def test_on_sjf_easy_is_easy_sjf(trace: PaperLog) -> None:
    """As the page says; where jobs come in another order it is not."""
    for scenario in trace.rest.scenarios:
        assert starts(scenario, Pipeline(SJF(), backfiller=EASY())) == starts(scenario, heuristic("sjf"))
    first_come = [
        [starts(each, Pipeline(backfiller=backfiller)) for each in trace.rest.scenarios]
        for backfiller in (EASY(), EASY(SJF()))
    ]
    assert first_come[0] != first_come[1]


def first_of(learner: SeatLearner) -> Agent:
    """The agent before it has learned anything."""
    env = SchedulingEnv(
        learner.episodes, learner.policy, learner.encoder, learner.mask, learner.reward, stage=learner.stage
    )
    trainer = trainer_named(learner.trainer)(env, learner.settings, seed=0)
    trainer.build(0)
    return Agent(learner.encoder, learner.mask, trainer.network(), learner.stage)


def seated(agent: Agent, learner: SeatLearner, store: Path) -> Policy:
    """The agent on its seat, as it meets others."""
    put(agent, store / learner.name)
    return Contestant("someone", learner.policy, "textbook", learner, sample=False).scheduler(store)


def test_a_backfiller_begins_as_the_rival(trace: PaperLog, paper: PaperReproduction, tmp_path: Path) -> None:
    learner = agent(paper, "backfiller")
    beginner = seated(first_of(learner), learner, tmp_path / "first")
    other = seated(backfiller_of(learner, LONGEST_FIRST), learner, tmp_path / "longest")
    sequences = trace.rest.scenarios
    for scenario in sequences:
        assert starts(scenario, beginner) == starts(scenario, heuristic("sjf"))
    different = sum(starts(each, other) != starts(each, heuristic("sjf")) for each in sequences)
    assert different == len(sequences), "there is something to choose"


def test_a_backfiller_begins_as_the_rival_on_a_real_log(shared: Path, tmp_path: Path) -> None:
    """Many jobs request the same round time, or one longer than any that is learned from."""
    paper = paper_on(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz", seed=1)
    trace, learner = paper.traces.first, agent(paper, "backfiller")
    beginner = seated(first_of(learner), learner, tmp_path)
    for scenario in trace.rest.scenarios:
        assert len(set(scenario.workload.requested_time.tolist())) < JOBS / 2
        assert starts(scenario, beginner) == starts(scenario, heuristic("sjf"))


# --- two in one pipeline -----------------------------------------------------------------------------------


def env_of(learner: SeatLearner, store: Path, monkeypatch: pytest.MonkeyPatch) -> SchedulingEnv:
    """What the learner's trainer is given to learn from."""
    found: list[SchedulingEnv] = []

    class Noted:
        def __init__(self, env: SchedulingEnv, settings: Any, **how: Any) -> None:
            found.append(env)

        def train(self, folder: Path, **how: Any) -> None:
            """Learn nothing."""

    monkeypatch.setattr(frame, "trainer_named", lambda name: Noted)
    learner.train(store / learner.name, lambda done: None)
    (env,) = found
    return env


def test_in_turn_the_trained_partner_is_on_its_seat_while_the_inspector_learns(
    trace: PaperLog, paper: PaperReproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, partner = agent(paper, "in-turn"), agent(paper, "backfiller")
    assert learner.partner is partner, "whoever is trained alone"
    put(backfiller_of(partner, DECLINES), tmp_path / partner.name)
    env = env_of(learner, tmp_path, monkeypatch)
    assert env.stage == "inspector"
    policy = env.policy
    assert isinstance(policy, Pipeline)
    assert isinstance(policy.inspector, External)
    assert isinstance(policy.backfiller, Agent)
    assert policy.backfiller.network == backfiller_of(partner, DECLINES).network
    assert policy.backfiller.base == EASY()
    assert not policy.backfiller.sample, "who evolved takes the best action"
    assert learner.policy == both_seats("sjf"), "the description stays as it was"
    scenario = trace.rest.scenarios[0]
    accepted = play(scenario.simulation(policy), lambda decision: True).start_time.tolist()
    assert accepted == starts(scenario, Pipeline(SJF())) != starts(scenario, heuristic("sjf"))


def test_alone_nobody_sits_beside_a_learner(
    trace: PaperLog, paper: PaperReproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = env_of(agent(paper, "inspector", "f1"), tmp_path, monkeypatch).policy
    assert isinstance(policy, Pipeline)
    assert (policy.order, policy.backfiller) == (F1(), EASY(SJF()))


@pytest.mark.parametrize("who", ["both, in turn", "both, together"])
@pytest.mark.parametrize("greedy", [False, True])
def test_both_agents_meet_others(
    who: str, greedy: bool, trace: PaperLog, paper: PaperReproduction, tmp_path: Path
) -> None:
    rows = rows_of(paper)
    team = rows[f"SJF, {who}{', greedy' * greedy}"]
    learner = team.learner
    assert isinstance(learner, SeatLearner)
    assert isinstance(learner.partner, SeatLearner)
    together = isinstance(learner, TogetherLearner)
    assert together == (who == "both, together")
    put(accepting(learner), tmp_path / learner.name)
    partner = backfiller_of(learner.partner, DECLINES)
    if together:
        put(partner, tmp_path / learner.name, TogetherLearner.PARTNER)
    else:
        put(partner, tmp_path / learner.partner.name)
    policy = team.scheduler(tmp_path)
    assert isinstance(policy, Pipeline)
    assert (policy.max_interval, policy.max_rejections) == (600, 72)
    inspector, backfiller = policy.inspector, policy.backfiller
    assert isinstance(inspector, Agent)
    assert isinstance(backfiller, Agent)
    assert inspector.sample is not greedy
    assert backfiller.sample is (together and not greedy)
    scenario = trace.rest.scenarios[0]
    assert starts(scenario, policy) == starts(scenario, Pipeline(SJF()))


def changed_pair(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Other settings of agents that learn together."""
    for name in ("together", "partner"):
        plan = KIND.paper.agents[name]
        update = {"settings": {**plan.settings, **settings}}
        monkeypatch.setitem(KIND.paper.agents, name, plan.model_copy(update=update))


def test_together_both_learn_and_are_kept(
    paper: PaperReproduction, trace: PaperLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_pair(monkeypatch, episodes=2, n_epochs=2, hidden=[4])
    learner = agent(paper, "together")
    assert (learner.rounds, learner.settings.total_timesteps) == (2, 3 * JOBS), "3 sequences, 2 a round"
    told: list[int] = []
    folder = tmp_path / learner.name
    folder.mkdir()
    returned = learner.train(folder, told.append)
    assert told == [2 * JOBS, 3 * JOBS]
    inspector = trained_agent(learner, folder, sample=True)
    backfiller = learner.partner_agent(tmp_path, sample=True)
    assert (inspector.stage, inspector.network) == ("inspector", returned.network)
    assert (backfiller.stage, backfiller.mask.actions) == ("backfiller", 33)
    assert (inspector.network.inputs, backfiller.network.inputs) == (8, 6)
    assert (inspector.network.kind, backfiller.network.kind) == ("dense", "slots")
    assert inspector.sample is backfiller.sample is True
    curve = learning_curve_of(folder)
    assert curve["steps"].tolist() == [2, 4]
    assert np.isfinite(curve["reward"]).all()
    assert {"backfiller"} <= curve.keys()
    assert learner.partner is not None
    assert identity_of(learner.partner.reward) == identity_of(learner.reward), "paid for the same"


# --- what is done again ------------------------------------------------------------------------------------


def mark_of(learner: SeatLearner) -> str:
    return fingerprint(Training(learner).inputs())


def test_another_partner_is_another_learner(paper: PaperReproduction, path: Path) -> None:
    learner = agent(paper, "in-turn")
    assert mark_of(learner) == mark_of(agent(paper_on(path), "in-turn"))
    longer = paper_on(path, backfiller_steps=200)
    other = agent(longer, "in-turn")
    assert other.settings == learner.settings
    assert mark_of(other) != mark_of(learner)
    alone = agent(longer, "inspector")
    assert mark_of(alone) == mark_of(agent(paper, "inspector"))
    assert mark_of(replace(learner, partner=None)) != mark_of(learner)
    assert mark_of(replace(learner, attempts=7)) != mark_of(learner)
    met, met_other = meetings_of(paper), meetings_of(longer)
    changed = {row for row in met if met[row] != met_other[row]}
    assert changed == {"SJF, backfiller", "SJF, both, in turn", "SJF, both, in turn, greedy"}


def meetings_of(paper: PaperReproduction) -> dict[str, str]:
    (contest,) = paper.contests
    return {row: fingerprint(task.inputs()) for row, task in contest.meetings.items()}


def test_how_a_pair_learns_is_part_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mark_of(agent(paper_on(path), "together"))
    changed_pair(monkeypatch, learning_rate=0.5)
    assert mark_of(agent(paper_on(path), "together")) != before


def test_who_needs_a_trained_partner_is_trained_later(paper: PaperReproduction) -> None:
    first, later, runs = paper.stages()
    assert [task.name for task in later] == ["busy-sjf-in-turn"]
    assert {task.name for task in first} == {
        "busy-sjf-inspector", "busy-f1-inspector", "busy-sjf-backfiller", "busy-sjf-together",
    }  # fmt: skip
    hours = [task.size / paper.rates[task.kind] for task in first]
    assert hours == sorted(hours, reverse=True), "the longest first"
    assert len(runs) == len(rows_of(paper))
    assert list(paper.prepare())[-1] == "5 agents, 1 set of sequences with all their baselines"


# --- who meets ---------------------------------------------------------------------------------------------


def rows_of(paper: PaperReproduction) -> dict[str, Contestant]:
    (contest,) = paper.contests
    return {each.name: each for each in contest.contestants}


def test_who_meets(paper: PaperReproduction, trace: PaperLog) -> None:
    (contest,) = paper.contests
    rows = {each.name: each for each in contest.contestants}
    learned = [
        "SJF, inspector", "SJF, inspector, greedy", "SJF, backfiller", "F1, inspector",
        "F1, inspector, greedy", "SJF, both, in turn", "SJF, both, in turn, greedy", "SJF, both, together",
        "SJF, both, together, greedy",
    ]  # fmt: skip
    assert [each.name for each in contest.contestants if each.learner] == learned
    assert list(rows) == [
        *RIVALS, "SJF, EASY", "F1, EASY", "EASY++", *learned, "SJF, random inspector",
        "F1, random inspector", "SJF, random backfiller",
    ]  # fmt: skip
    assert [rows[name].policy for name in RIVALS] == [
        Pipeline(order, backfiller=EASY(SJF())) for order in (SJF(), F1())
    ]
    assert rows["EASY++"].policy == Pipeline(
        backfiller=EASY(candidates=ShortestPredicted()), estimates=LastTwo()
    )
    assert {each.rules for each in rows.values()} == {"textbook"}
    takes_best = {name for name, each in rows.items() if not each.sample}
    assert takes_best == {name for name in learned if name.endswith("greedy")} | {"SJF, backfiller"}
    assert all(
        task.promises and task.sequences.scenarios is trace.rest.scenarios
        for task in contest.meetings.values()
    )


def test_chance_sits_where_agents_do(paper: PaperReproduction) -> None:
    rows = rows_of(paper)
    for what, stage in (("inspector", "inspector"), ("backfiller", "backfiller")):
        policy, agent = rows[f"SJF, random {what}"].policy, rows[f"SJF, {what}"]
        assert isinstance(getattr(policy, stage), RandomAgent)
        assert agent.learner is not None
        assert getattr(policy, stage).mask == agent.learner.mask
        closed = {name: each for name, each in vars(policy).items() if name != stage}
        assert closed == {name: each for name, each in vars(agent.policy).items() if name != stage}


# --- verdicts by hand --------------------------------------------------------------------------------------

EIGHT = np.arange(1.0, 9.0)
RIVAL = np.full(8, 16.0)
"""Rows have 1, 2 ... 8 less: t = -4.5 / (sqrt(6) / sqrt(8)) with 7 degrees of freedom; Wilcoxon 2 / 2^8."""

P_T, P_WILCOXON = 0.0012590, 2 / 2**8


def test_a_verdict_by_hand() -> None:
    found = verdicts({"less": RIVAL - EIGHT}, RIVAL)["less"]
    assert (found.mean.mean, found.against.difference.mean) == (11.5, -4.5)
    assert found.against.relative == -4.5 / 16
    margin = 1.96 * np.sqrt(
        5.25 / 8
    )  # a bootstrap's variance is that of the values themselves; nothing is skewed
    ends = (found.against.difference.low, found.against.difference.high)
    assert ends == pytest.approx((-4.5 - margin, -4.5 + margin), abs=0.15)
    assert found.against.t_test_holm == pytest.approx(P_T, rel=1e-3)
    assert found.against.wilcoxon_holm == pytest.approx(P_WILCOXON)
    assert (found.against.lower, found.against.higher) == (8, 0)
    assert (found.is_better, found.is_worse) == (True, False)
    worse = verdicts({"more": RIVAL + EIGHT}, RIVAL)["more"]
    assert (worse.is_better, worse.is_worse, worse.against.lower, worse.against.higher) == (False, True, 0, 8)


def test_geometric_means_by_hand() -> None:
    found = verdicts({"a": np.array([5.0, 40.0]), "b": np.array([10.0, 90.0])}, np.array([10.0, 10.0]))
    # ratios 1/2 and 4: logarithms -1 and 2 to the base 2, mean 0.5; a bootstrap of two has no others at its ends
    ratio = found["a"].ratio
    assert ratio.mean == pytest.approx(2**0.5)
    assert (ratio.low, ratio.high) == pytest.approx((0.5, 4.0))
    assert (found["a"].against.lower, found["a"].against.higher) == (1, 1)
    assert found["b"].ratio.mean == pytest.approx(3.0)
    assert (found["b"].against.lower, found["b"].against.higher) == (0, 1), "one is the same"


def test_p_values_are_corrected_for_all_rows() -> None:
    some = np.array([-1.0, 2.0, -3.0, 4.0, -5.0, 6.0, -7.0, 8.0])  # rank sum 16 of 36: p = 0.844
    rows = {"chance": RIVAL + some, "one": RIVAL - EIGHT, "same": RIVAL, "other": RIVAL - EIGHT}
    found = verdicts(rows, RIVAL)
    assert found["one"].against.t_test_holm == pytest.approx(4 * P_T, rel=1e-3)
    assert found["other"].against.t_test_holm == found["one"].against.t_test_holm, (
        "not less than that of who comes before"
    )
    assert found["one"].against.wilcoxon_holm == pytest.approx(4 * P_WILCOXON)
    assert found["same"].against.t_test_holm == found["same"].against.wilcoxon_holm == 1.0
    assert found["chance"].against.wilcoxon_holm == 1.0, "2 x 0.844, but 1 at most"
    assert verdicts({"chance": rows["chance"]}, RIVAL)["chance"].against.wilcoxon_holm == pytest.approx(
        0.84375
    )


NOTHING = Mean(0.0, 0.0, 0.0)
SURE = Comparison(
    difference=Mean(-1.0, -2.0, 0.0), relative=-0.1, t_test=0.01, wilcoxon=0.01, t_test_holm=0.01,
    wilcoxon_holm=0.01, lower=6, equal=0, higher=2,
)  # fmt: skip
MORE = Mean(1.0, 0.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ({}, " ▼"),
        ({"t_test_holm": 0.05}, ""),
        ({"wilcoxon_holm": 0.05}, ""),
        ({"lower": 4, "higher": 4}, ""),
        ({"lower": 2, "higher": 6}, ""),
        ({"difference": MORE}, ""),
        ({"difference": MORE, "lower": 2, "higher": 6}, " ▲"),
        ({"difference": MORE, "lower": 2, "higher": 6, "t_test_holm": 0.05}, ""),
        ({"difference": MORE, "lower": 2, "higher": 6, "wilcoxon_holm": float("nan")}, ""),
    ],
)
def test_for_sure_means_that_all_agree(changes: Mapping[str, Any], marks: str) -> None:
    found = Verdict(NOTHING, replace(SURE, **changes), NOTHING)
    assert (found.is_better, found.is_worse) == (marks == " ▼", marks == " ▲")


# --- a log, judged -----------------------------------------------------------------------------------------

SJF_ROW, F1_ROW = RIVALS


def log_of(
    learned: Mapping[str, Any], others: Mapping[str, Any], name: str = "log", **promises: Any
) -> Scores:
    """A log on which F1 has 16, SJF 17, and others what is given."""
    values = {SJF_ROW: RIVAL + 1, F1_ROW: RIVAL, **others, **learned}
    agent = SimpleNamespace(name="agent", stage="inspector", trainer="prompt-inspector")
    rows = [
        Contestant(row, Pipeline(), "textbook", agent if row in learned else None)  # type: ignore[arg-type]
        for row in values
    ]
    jobs = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    sequences = SequenceSet.of("x", jobs, [0], 1)
    trace: Any = SimpleNamespace(name=name)
    plan = KIND.paper.comparisons["rest"]
    of_rows = dict.fromkeys(values, KIND.paper.rows["easy"])
    contest = Contest(plan, "rest", trace, Parts({"log": name}), sequences, rows, of_rows)
    measured = {
        row: {BSLD: np.array(each), **{key: np.array(found) for key, found in promises.items()}}
        for row, each in values.items()
    }
    return Scores(contest, measured)


def findings(*logs: Scores) -> PaperFindings:
    """The measurements of these logs, after trainings that took their time."""
    took = {"alone": 60.0, "in turn": 601.0, "backfiller": 3600.0, "other": 1.0, "both": 90_000.0}
    trainers = ("prompt-inspector", "prompt-inspector", "cem", "cem", "together")
    trained = [
        SimpleNamespace(name=name, trainer=of, size=1) for name, of in zip(took, trainers, strict=True)
    ]
    traces = SimpleNamespace(first=logs[0].contest.trace, scale=SimpleNamespace())
    plan: Any = SimpleNamespace(trained=trained, traces=traces, paper=KIND.paper, published={})
    store: Any = SimpleNamespace(seconds=lambda task: took[task.name])
    found = PaperFindings(plan, store)
    vars(found)["scores"] = list(logs)
    return found


def rows_in(table: str, *logs: Scores) -> dict[str, list[str]]:
    """The lines of a table, by their first cells."""
    return {line[0]: list(line) for line in findings(*logs).tabulated(table).rows}


BETTER, WORSE = RIVAL - EIGHT, RIVAL + EIGHT
NEARLY = RIVAL - np.array([-1.0, 2.0, -3.0, 4.0, -5.0, 6.0, -7.0, 8.0])
"""0.5 less than the rival on average; Wilcoxon's p is 0.844."""


def test_the_better_heuristic_is_the_rival() -> None:
    found = rows_in("log", log_of({"a": BETTER}, {"SJF, EASY": WORSE}))
    assert list(found) == [f"{SJF_ROW} ▲", f"**{F1_ROW}**", "SJF, EASY ▲", "*a* ▼"]
    assert found[f"{SJF_ROW} ▲"][3] == "+1.00"
    uneven = np.array([1.0] * 7 + [1000.0])
    found = rows_in("log", log_of({"a": BETTER}, {F1_ROW: uneven}))
    assert f"**{SJF_ROW}**" in found, "by the mean, though F1 is lower on seven of eight"
    assert found["*a* ▼"][3] == "-5.50"


def test_learned_rows_are_corrected_among_themselves() -> None:
    found = rows_in("log", log_of({"a": BETTER, "b": NEARLY, "c": NEARLY}, {"SJF, EASY": BETTER}))
    assert found["*a* ▼"][7] == p_value_text(3 * P_WILCOXON)
    assert found["SJF, EASY ▼"][7] == p_value_text(2 * P_WILCOXON), "with SJF, EASY-SJF"
    many = {f"row {number}": NEARLY for number in range(6)}
    found = rows_in("log", log_of({"a": BETTER, **many}, {}))
    assert found["*a*"][7] == p_value_text(7 * P_WILCOXON), "above 0.05"


def test_tables_of_all_logs() -> None:
    promises = dict(zip(OF_PROMISES, ([1000.0, 600.0], [3.0, 5.0], [9.0, 9.0]), strict=True))
    log = log_of({"a": BETTER, "b": WORSE, "c": NEARLY}, {"SJF, EASY": BETTER}, **promises)
    headings, lines = findings(log).tabulated("log")
    assert headings[3] == f"minus {F1_ROW}"
    cells = {line[0]: line for line in lines}
    assert list(cells) == [f"{SJF_ROW} ▲", f"**{F1_ROW}**", "SJF, EASY ▼", "*a* ▼", "*b* ▲", "*c*"]
    assert cells[f"**{F1_ROW}**"][1:5] == ["16.00", "16.00 to 16.00", "baseline", ""]
    assert cells["*a* ▼"][1] == "11.50"
    assert cells["*a* ▼"][3:5] == ["-4.50", "-28.1 %"]
    assert cells["*a* ▼"][7:] == ["0.0234*", "8 : 0"]
    assert cells["*c*"][7:] == ["0.844", "4 : 4"]
    assert {len(line) for line in lines} == {len(headings)}

    other = log_of({"a": BETTER, "b": BETTER, "c": NEARLY}, {SJF_ROW: RIVAL / 2, "SJF, EASY": BETTER}, "two")
    assert findings(log, other).tabulated("relative").headings == ["", "log", "two"]
    both = rows_in("relative", log, other)
    assert both["*a*"][1:] == ["-28.1 % ▼", "+43.8 % ▲"]
    assert both[SJF_ROW][1:] == ["+6.2 % ▲", "baseline"]
    assert both[F1_ROW][1:] == ["baseline", "+100.0 % ▲"]
    typical = rows_in("typical", log, other)
    assert typical[SJF_ROW][1:] == ["1.062 (1.062 to 1.062)", "baseline"]
    assert typical[F1_ROW][1:] == ["baseline", "2.000 (2.000 to 2.000)"]
    assert rows_in("promises", log)[SJF_ROW][1] == "8 of 1 600 (0.5 %)"


# --- what is said ------------------------------------------------------------------------------------------


def summary(*logs: Scores) -> list[str]:
    """The paragraphs of the summary."""
    text = rendered("textbook_rules/summary.md.jinja", found=findings(*logs), rivals=RIVALS)
    return text.strip().split("\n\n")


def test_an_agent_wins() -> None:
    lines = summary(
        log_of({"a": BETTER, "b": WORSE}, {}, "one"), log_of({"a": NEARLY, "b": NEARLY + 1}, {}, "two")
    )
    assert lines[0] == (
        "**On 1 of 2 logs a trained agent has a significantly lower mean bounded slowdown than the "
        "better heuristic.**"
    )
    assert lines[1] == (
        "one: F1, EASY-SJF has 16.00; the best agent is *a* with 11.50 (-28.1 %). Significantly "
        "lower: *a* (-28.1 %)."
    )
    assert lines[2].startswith(
        "two: F1, EASY-SJF has 16.00; the best agent is *a* with 15.50 (-3.1 %), not significant (p = "
    )
    assert lines[3] == (
        "Of all 4 comparisons of agents with their baseline 1 are significantly lower, 1 significantly "
        "higher (on 1 logs); the others are not significant."
    )


def test_no_agent_wins() -> None:
    lines = summary(log_of({"a": NEARLY}, {"SJF, EASY": BETTER}, "one"), log_of({"a": WORSE}, {}, "two"))
    assert lines[0].startswith(
        "**On none of 2 logs does a trained agent have a significantly lower mean bounded slowdown than the "
        "better heuristic.** "
    )
    assert "and 0.84)" in lines[1], "p of Wilcoxon's test"
    assert "Significantly lower" not in " ".join(lines)
    assert "0 are significantly lower, 1 significantly higher (on 1 logs)" in lines[3]


def targets(*logs: Scores) -> list[Target]:
    return list(findings(*logs).targets())


def test_targets() -> None:
    won, other, third = (log_of({"a": BETTER}, {}, name) for name in ("one", "other", "third"))
    lost, too = (log_of({"a": NEARLY}, {"SJF, EASY": BETTER}, name) for name in ("lost", "too"))
    reached, *_ = targets(won, lost, other, third)
    assert (reached.ours, reached.met, reached.paper) == (3.0, True, None)
    assert reached.what.endswith("(needed: 3; tested: 4)")
    assert targets(won, lost, other, too)[0].met is False
    found = {each.what: each for each in targets(won)}
    inspectors = found["longest training of inspectors [min of a core, at most 10]"]
    assert (inspectors.ours, inspectors.met) == (pytest.approx(601 / 60), False)
    backfillers = found["longest training of backfillers [min of a core, at most 60]"]
    assert (backfillers.ours, backfillers.met) == (60.0, True)
    both = found["longest training of both [min of a core]"]
    assert (both.ours, both.met) == (1500.0, None)
