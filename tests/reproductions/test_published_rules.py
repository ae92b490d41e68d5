"""What published rules do: minimal cases, parts made for the comparison, what is compared with what."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.event_order import EVENT_ORDERS, DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, SJF, HoldUnfit
from hpcsimkit.policies.dirlab import (
    FittingCandidates,
    PartialEASY,
    PublishedEASY,
    ShortestFitting,
    learned_backfilling,
    published,
)
from hpcsimkit.policies.orders import F1, SAF
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.planned import PaperReproduction, reproduction_named
from hpcsimkit.reproductions.plans.quantities import Quantities
from hpcsimkit.reproductions.published_rules.own import CASES, OwnFindings
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting
from hpcsimkit.reproductions.targets import same_digits
from hpcsimkit.results.metrics import measure
from hpcsimkit.workloads import default_workload, write_swf
from hpcsimkit.workloads.dirlab import read_published
from tests.kernel.dirlab_cases import backfilled, load, rows
from tests.kernel.helpers import rows_and_size, workload

ORDERS = {"fcfs": FCFS(), "sjf": SJF(), "f1": F1(), "saf": SAF()}
KIND: type[PaperReproduction] = reproduction_named("published-rules")  # type: ignore[assignment]


PUBLISHED, TEXTBOOK, HEAD, ESTIMATES, MEANT = (
    "published",
    "textbook",
    "head anew",
    "other estimates",
    "as meant",
)
RULES = (
    *(HEAD, "events together", ESTIMATES, "nobody skipped", "candidates in order", "+ reservation anew"),
    *("+ last second", "+ spare nodes", TEXTBOOK),
)
UNFIT, UNFIT_FREE = "reject iff unfit", "reject iff unfit, no cap"
UNGUARDED, GUARDED = "unguarded shortest", "guarded shortest"
PAPERS_TESTED = ("schedinspector", "rlbackfilling", "rlscheduler")


# --- minimal cases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_minimal_cases_by_hand(case: object) -> None:
    by_published, by_textbook = (each.start_time.tolist() for each in case.schedules)  # type: ignore[attr-defined]
    assert by_published == list(case.published)  # type: ignore[attr-defined]
    assert by_textbook == list(case.textbook)  # type: ignore[attr-defined]
    assert case.equal == 2  # type: ignore[attr-defined]
    assert replace(case, textbook=case.published).equal == 1  # type: ignore[type-var, attr-defined]


def test_minimal_cases_are_those_of_the_references(shared: Path) -> None:
    """The published programs' start times, and those of another textbook scheduler."""
    folder = shared / "refs" / "dirlab" / "min"
    expected: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in csv.DictReader((folder / "starts.csv").read_text().splitlines()):
        expected[row["case"].partition("_")[0], row["simulator"]].append(int(row["start"]))
    simulators = {"rlscheduler": ("rls_bf0", "rls_bf1"), "rlbackfilling": ("rlbf_easy", "rlbf_easy")}
    for case in CASES:
        theirs = expected[case.name, simulators[case.code][case.backfilling]]
        textbook = expected[case.name, "textbook_easy" if case.backfilling else "textbook_nobf"]
        assert (list(case.published), list(case.textbook)) == (theirs, textbook), case.name
        file = next(folder.glob(f"{case.name}_*.swf"))
        jobs = read_published(file, case.code)
        columns = (jobs.submit_time, jobs.run_time, jobs.nodes, jobs.requested_time)
        listed = [tuple(row) for row in np.stack(columns, axis=1)[: len(case.jobs)].tolist()]
        assert (listed, jobs.machine_size) == (list(map(tuple, case.jobs)), case.nodes)


# --- EASY, rule by rule ------------------------------------------------------------------------------------


@given(crowd=rows_and_size(max_jobs=20), order=st.sampled_from(sorted(ORDERS)), commit=st.booleans())
def test_partial_easy_with_all_rules_is_easy(
    crowd: tuple[list[tuple[int, int, int, int]], int], order: str, commit: bool
) -> None:
    jobs, size = crowd
    for semantics in ("textbook", "dirlab"):
        scenario = Scenario(workload(jobs, size), Setup(event_order=EVENT_ORDERS[semantics]()))
        whole, partial = (
            scenario.simulation(Pipeline(ORDERS[order], backfiller=each, commit=commit)).run().start_time
            for each in (EASY(), PartialEASY())
        )
        np.testing.assert_array_equal(whole, partial)


@given(crowd=rows_and_size(max_jobs=20, exact=True), order=st.sampled_from(sorted(ORDERS)))
def test_partial_easy_without_its_rules_is_the_published_guard_made_anew(
    crowd: tuple[list[tuple[int, int, int, int]], int], order: str
) -> None:
    """Where nobody outlives his request; candidates are then those of RLBackfilling's guarded environment."""
    jobs, size = crowd
    scenario = Scenario(workload(jobs, size), Setup(event_order=DirlabOrder()))
    bare = PartialEASY(spare_nodes=False, last_second=False)
    one, other = (
        scenario.simulation(Pipeline(ORDERS[order], backfiller=each, commit=True)).run().start_time
        for each in (bare, FittingCandidates(guarded=True))
    )
    np.testing.assert_array_equal(one, other)


def test_partial_easy_on_minimal_cases() -> None:
    """M2 needs the spare nodes, M3 the last second."""
    m2, m3 = CASES[1], CASES[2]

    def third_start(case: object, easy: PartialEASY) -> int:
        scenario = Scenario(case.scenario.workload)  # type: ignore[attr-defined]
        return int(scenario.simulation(Pipeline(backfiller=easy)).run().start_time[2])

    assert third_start(m2, PartialEASY(last_second=False)) == 2
    assert third_start(m2, PartialEASY(spare_nodes=False)) == 100
    assert third_start(m3, PartialEASY(spare_nodes=False)) == 2
    assert third_start(m3, PartialEASY(spare_nodes=False, last_second=False)) == 150


def test_partial_easy_against_the_references(shared: Path) -> None:
    """Mean slowdowns of another textbook EASY without its rules, on Lublin-1 and the first 12 sequences."""
    log = load(shared, "lublin256", "rls")
    variants = {
        "plain_bsld": None,
        "easy_bsld": EASY(),
        "easy_fcfsorder_bsld": PartialEASY(candidates=FCFS()),
        "easy_noextra_bsld": PartialEASY(spare_nodes=False, candidates=FCFS()),
        "easy_noextra_strict_bsld": PartialEASY(spare_nodes=False, last_second=False, candidates=FCFS()),
    }
    compared = 0
    for row in rows(shared, "textbook_easy_compare"):
        if row["trace"] != "lublin256" or int(row["seq"]) >= 12 or row["policy"] not in ORDERS:
            continue
        part = Scenario.sequence(log, int(row["start_index"]), int(row["n"])).workload
        for column, backfiller in variants.items():
            result = Simulation(part, Pipeline(ORDERS[row["policy"]], backfiller=backfiller)).run()
            found = measure(result, names=["mean_bounded_slowdown"])["mean_bounded_slowdown"]
            assert found == pytest.approx(float(row[column]), rel=1e-9), (row["seq"], row["policy"], column)
            compared += 1
    assert compared >= 12 * 3 * len(variants)


# --- who is compared with whom -----------------------------------------------------------------------------


@pytest.fixture
def paper(tmp_path: Path) -> PaperReproduction:
    write_swf(default_workload(np.random.default_rng(1), jobs=3100, load=1.1), tmp_path / "lublin-1.swf")
    return KIND([tmp_path / "lublin-1.swf"])


def contest_of(paper: PaperReproduction, protocol: str, order: str, *, backfilling: bool) -> Comparison:
    found = [
        each for each in paper.contests
        if (each.protocol, each.variables.get("order")) == (protocol, order)
        and each.variables.get("backfilling") is backfilling
    ]  # fmt: skip
    assert len(found) == 1
    return found[0]


def rows_of(contest: Comparison) -> dict[str, Contestant]:
    return {each.name: each for each in contest.contestants}


def test_one_rule_at_a_time_changes_one_rule(paper: PaperReproduction) -> None:
    contest = contest_of(paper, "rlbackfilling", "sjf", backfilling=True)
    rows = rows_of(contest)
    base = published("rlbackfilling", "sjf", backfilling=True)
    assert list(rows)[: 1 + len(RULES)] == [PUBLISHED, *RULES]
    for row in (PUBLISHED, "events together", ESTIMATES):
        assert rows[row].policy == base
        assert rows[row].rules == ("textbook" if row == "events together" else "dirlab")
    assert list(contest.apart) == [ESTIMATES, "unguarded random", "guarded random"]
    assert (rows[TEXTBOOK].policy, rows[TEXTBOOK].rules) == (Pipeline(SJF(), backfiller=EASY()), "textbook")
    changed = {HEAD: base.backfiller, "nobody skipped": PublishedEASY(),
               "candidates in order": PublishedEASY(SJF()),
               "+ reservation anew": PartialEASY(spare_nodes=False, last_second=False),
               "+ last second": PartialEASY(spare_nodes=False), "+ spare nodes": EASY()}  # fmt: skip
    for rule, backfiller in changed.items():
        policy = rows[rule].policy
        assert isinstance(policy, Pipeline)
        assert (policy.order, policy.backfiller) == (base.order, backfiller), rule
        assert (policy.commit, rows[rule].rules) == (rule != HEAD, "dirlab"), rule
    bare = rows_of(contest_of(paper, "schedinspector", "f1", backfilling=False))
    assert list(bare) == [PUBLISHED, HEAD, "events together", ESTIMATES, TEXTBOOK, UNFIT, UNFIT_FREE]
    assert bare[TEXTBOOK].policy.backfiller is None  # type: ignore[attr-defined]


def test_a_log_without_requested_times_has_no_others(shared: Path) -> None:
    paper = KIND([shared / "traces" / "lublin-1.swf"], quick=True)
    assert not [each for each in paper.contests if ESTIMATES in rows_of(each)]


def test_what_was_meant_keeps_to_the_published_rules_otherwise(paper: PaperReproduction) -> None:
    rows = rows_of(contest_of(paper, "rlscheduler", "unicef", backfilling=True))
    assert list(rows) == [PUBLISHED, MEANT, TEXTBOOK]
    coded, meant, textbook = (each.policy for each in rows.values())
    assert isinstance(coded, Pipeline) and isinstance(meant, Pipeline) and isinstance(textbook, Pipeline)
    assert meant.commit
    assert meant.order != coded.order
    assert textbook.order == meant.order


def test_who_needs_no_learning_sits_on_the_agents_seat(paper: PaperReproduction) -> None:
    rows = rows_of(contest_of(paper, "schedinspector", "sjf", backfilling=False))
    assert rows[UNFIT].policy == published("schedinspector", "sjf", inspector=HoldUnfit())
    limits = [rows[row].policy.max_rejections for row in (UNFIT, UNFIT_FREE)]  # type: ignore[attr-defined]
    assert limits == [72, None]
    rows = rows_of(contest_of(paper, "rlbackfilling", "fcfs", backfilling=True))
    for row, guarded in ((UNGUARDED, False), (GUARDED, True)):
        policy = rows[row].policy
        assert isinstance(policy, Pipeline) and not policy.commit
        seat = learned_backfilling("fcfs", guarded=guarded).backfiller.base  # type: ignore[union-attr]
        assert policy.backfiller == ShortestFitting(seat)


def test_the_shortest_candidate_is_the_references_agent(paper: PaperReproduction, shared: Path) -> None:
    scenario = Scenario.sequence(load(shared, "lublin256", "rlbf"), 4989, 256)
    rows = rows_of(contest_of(paper, "rlbackfilling", "fcfs", backfilling=True))
    for guarded in (False, True):
        found = scenario.simulation(rows[GUARDED if guarded else UNGUARDED].policy).run().start_time
        expected = backfilled(scenario, "fcfs", "sjf", guarded=guarded)[0].start_time
        np.testing.assert_array_equal(found, expected)


def test_who_draws_runs_each_sequence_five_times_in_a_row(paper: PaperReproduction) -> None:
    contest = contest_of(paper, "rlbackfilling", "fcfs", backfilling=True)
    several = contest.apart["unguarded random"].scenarios
    assert [several[place] for place in range(0, 50, 5)] == list(contest.sequences.scenarios)
    assert several[5:10] == (several[5],) * 5
    meeting = contest.meetings["unguarded random"]
    few = replace(meeting, sequences=replace(meeting.sequences, scenarios=several[:5]))
    values = few.run(Path(), lambda done: None)["mean_bounded_slowdown"]
    assert len(set(values)) > 1, "each run has a seed of its own"


# --- tests and numbers -------------------------------------------------------------------------------------


def test_swapped_estimates(paper: PaperReproduction) -> None:
    inspected, asked = (paper.traces.test_of(name).all[0].log for name in ("schedinspector", "rlbackfilling"))
    assert not np.array_equal(asked.requested_time, asked.run_time)
    by_id = dict(zip(asked.id.tolist(), asked.requested_time.tolist(), strict=True))
    contest = contest_of(paper, "schedinspector", "sjf", backfilling=True)
    pairs = zip(contest.sequences.scenarios, contest.apart[ESTIMATES].scenarios, strict=True)
    for own, other in pairs:
        jobs = other.workload
        np.testing.assert_array_equal(own.workload.requested_time, np.maximum(own.workload.run_time, 1))
        for job, time, run in zip(jobs.id, jobs.requested_time, jobs.run_time, strict=True):
            assert time == by_id.get(int(job), max(int(run), 1))
    assert len(inspected) >= len(asked)
    for scenario in contest_of(paper, "rlbackfilling", "sjf", backfilling=True).apart[ESTIMATES].scenarios:
        back = scenario.workload
        np.testing.assert_array_equal(back.requested_time, np.maximum(back.run_time, 1))


def test_sequences_of_several_seeds_come_seed_by_seed(paper: PaperReproduction) -> None:
    """The published test of SchedInspector has seed 1."""
    several = contest_of(paper, "seeds-schedinspector", "sjf", backfilling=False).sequences.scenarios
    whole = contest_of(paper, "schedinspector", "sjf", backfilling=False).sequences.scenarios
    assert (len(several), len(whole)) == (80 * 50, 50)
    firsts = [[int(each.workload.id[0]) for each in scenarios] for scenarios in (several, whole)]
    assert firsts[0][50:100] == firsts[1]


def test_tests_are_those_of_the_papers(paper: PaperReproduction, tmp_path: Path) -> None:
    """Seeds found by search, or 1; and RLScheduler's sequences begin in the first 10 000 jobs."""
    logs = {name: paper.traces.test_of(name).all[0] for name in PAPERS_TESTED}
    assert {name: log.test_seed for name, log in logs.items()} == {
        "schedinspector": 1, "rlbackfilling": 40, "rlscheduler": 1,
    }  # fmt: skip
    assert {name: len(log.drawn.scenarios) for name, log in logs.items()} == {
        "schedinspector": 50, "rlbackfilling": 10, "rlscheduler": 10,
    }  # fmt: skip
    write_swf(default_workload(np.random.default_rng(1), jobs=12_000), tmp_path / "other.swf")
    other = KIND([tmp_path / "other.swf"])
    assert other.traces.test_of("rlbackfilling").all[0].test_seed == 1
    starts = other.traces.test_of("rlscheduler").all[0].starts(1)
    assert starts == [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]


def test_every_published_number_is_computed(paper: PaperReproduction) -> None:
    """And no two tasks have one name."""
    for quick in (False, True):
        contests = KIND(paper.logs, quick=quick).contests
        names = [task.name for each in contests for task in each.meetings.values()]
        assert len(set(names)) == len(names)
    found = KIND(paper.logs, quick=True)
    targets = list(found.findings(found, Made()).targets())  # type: ignore[arg-type]
    assert sum(target.paper or 0 for target in targets if "digit" in target.what) == 15, "those of Lublin-1"


def scores_of(
    paper: PaperReproduction, code: str, order: str, rows: dict[str, list[float]], **variables: bool
) -> Scores:
    """A comparison with values that were not measured."""
    contest = contest_of(paper, code, order, **variables)
    values = {row: {BSLD: np.array(each)} for row, each in rows.items()}
    return Scores(contest, values)


def findings(paper: PaperReproduction, *scores: Scores) -> OwnFindings:
    found = OwnFindings(paper, Made())  # type: ignore[arg-type]
    vars(found)["scores"] = list(scores)
    return found


def test_recomputed_numbers_stand_beside_published_ones(paper: PaperReproduction) -> None:
    scores = scores_of(paper, "rlscheduler", "sjf", {PUBLISHED: [277.0, 277.7]}, backfilling=False)
    other = scores_of(paper, "rlscheduler", "f1", {PUBLISHED: [157.0, 158.42]}, backfilling=False)
    measured = findings(paper, scores, other)
    rows = {line[0]: line[1:] for line in measured.tabulated("rlscheduler").rows}
    assert rows == {"Lublin-1, SJF": ["277.35", "277.35"], "Lublin-1, F1": ["258.37", "157.71"]}
    targets = {target.what: target for target in measured.targets()}
    digits = targets["RLScheduler, read-me, Lublin-1: numbers equal to the digit"]
    assert (digits.paper, digits.ours, digits.met) == (2.0, 1.0, False)


def test_easy_ar_is_easy_with_the_other_estimates(paper: PaperReproduction) -> None:
    """18.87 for FCFS on HPC2N: not those of the published row."""

    class Log(str):
        name = property(str)

    rows = {PUBLISHED: [28.0, 28.32], ESTIMATES: [18.8, 18.94]}
    scores = scores_of(paper, "rlbackfilling", "fcfs", rows, backfilling=True)
    measured = findings(paper, replace(scores, contest=scores.contest._replace(trace=Log("HPC2N"))))
    assert [line[1:] for line in measured.tabulated("rlbackfilling").rows] == [
        ["28.16", "28.16"], ["18.87", "18.87"],
    ]  # fmt: skip
    digits = next(each for each in measured.targets() if "RLBackfilling, table 4, HPC2N" in each.what)
    assert (digits.paper, digits.ours, digits.met) == (2.0, 2.0, True)


def test_bases_with_a_published_agent_and_others_are_apart(paper: PaperReproduction) -> None:
    rows = {PUBLISHED: [333.2], UNFIT: [109.28], UNFIT_FREE: [33.44], TEXTBOOK: [33.44]}
    each = [
        scores_of(paper, "schedinspector", order, rows, backfilling=False) for order in ("fcfs", "sjf", "f1")
    ]
    behind = scores_of(paper, "schedinspector", "sjf", {TEXTBOOK: [20.0]}, backfilling=True)
    measured = findings(paper, *each, behind)
    with_agent, without = (measured.tabulated(name).rows for name in ("inspector", "inspector-without-agent"))
    assert with_agent == [
        ["Lublin-1 SJF", "333.20", "27.97", "109.28", "33.44", "33.44", "20.00", "73 %", "98 %"]
    ]
    assert without == [["Lublin-1 F1", "333.20", "109.28", "33.44", "33.44", ""]]


def test_published_base_of_a_real_test(shared: Path) -> None:
    """SchedInspector's 333.19, and SJF that does not commit on the same sequences."""
    paper = KIND([shared / "traces" / "lublin-1.swf"], quick=True)
    contest = contest_of(paper, "schedinspector", "sjf", backfilling=False)
    means = {
        row: np.mean(contest.meetings[row].run(Path(), lambda done: None)["mean_bounded_slowdown"])
        for row in (PUBLISHED, TEXTBOOK)
    }
    assert same_digits(float(means[PUBLISHED]), 333.19)
    assert round(float(means[TEXTBOOK]), 2) == 33.44


# --- effects -----------------------------------------------------------------------------------------------


def test_effects_are_paired_ratios() -> None:
    values = {"published": [10.0, 20.0, 30.0], "half": [5.0, 10.0, 15.0], "mixed": [12.0, 18.0, 33.0]}
    found = Quantities(Scores(None, {row: {BSLD: np.array(each)} for row, each in values.items()}), {})
    half, mixed = (found.interval(row, over="published") for row in ("half", "mixed"))
    assert (half.mean, half.low, half.high) == (0.5, 0.5, 0.5)
    assert found.interval("half", minus="published").mean == -10
    assert mixed.mean == 1.05
    assert 0.9 <= mixed.low < 1.05 < mixed.high <= 1.2  # the least and the largest of the three
    assert found.effect("published", "published", ["half"]) == "="
    assert found.effect("nobody", "published", ["half"]) == ""
    assert found.effect("mixed", "published", ["half", "mixed"]).startswith("1.05 [0.9")
    sure = {"published": np.arange(10.0, 30.0), "less": np.arange(10.0, 30.0) - 1 - np.arange(20) % 2}
    found = Quantities(Scores(None, {row: {BSLD: each} for row, each in sure.items()}), {})
    assert found.effect("less", "published", ["less"]).startswith("**0.92** [")
    alone = Quantities(Scores(None, {"a": {BSLD: np.array([2.0])}, "b": {BSLD: np.array([1.0])}}), {})
    assert alone.effect("b", "a", ["b"]) == "0.50"


# --- the page ----------------------------------------------------------------------------------------------


class Made:
    """Stands for a store on which everything is done: values drawn by chance."""

    def outcome(self, task: Meeting) -> dict[str, list[float]]:
        rng = np.random.default_rng(len(task.name))
        return {"mean_bounded_slowdown": (1 + rng.exponential(9, len(task.sequences.scenarios))).tolist()}


def test_a_page_without_published_numbers(tmp_path: Path) -> None:
    write_swf(default_workload(np.random.default_rng(1), jobs=3100), tmp_path / "other.swf")
    made = KIND([tmp_path / "other.swf"], quick=True)
    conclusion = made.conclude(Made(), tmp_path)  # type: ignore[arg-type]
    assert (tmp_path / "seeds-other-fcfs.png").exists()
    assert all(target.what.startswith("M") for target in conclusion.targets)
    page = conclusion.text
    assert "Of 0 published means of base schedulers on these logs 0 are reproduced" in page
    assert "**SchedInspector, table 4**" not in page
    assert "Where no agent is published:\n\n| base | committed | reject iff unfit |" in page


# --- the article -------------------------------------------------------------------------------------------


def test_every_number_of_the_article_is_in_the_report(root: Path) -> None:
    """Decimals and percentages of the text; examples are executed, and whole logs have their own command."""
    article = (root / "docs" / "background" / "what_the_simulator_decides.md").read_text()
    results = root / "docs" / "results"
    report = "".join(
        (folder / "published_rules.md").read_text() for folder in (results, results / "appendix")
    )
    on_whole_logs = article[article.index("### On whole logs") : article.index("## Estimates")]
    text = re.sub(r"```.*?```", "", article.replace(on_whole_logs, ""), flags=re.DOTALL)
    numbers = set(re.findall(r"(?<![\w.])\d+\.\d+(?:\d| %)?|(?<![\w.])\d+ %", text))
    assert len(numbers) > 50
    assert [each for each in sorted(numbers) if not re.search(rf"(?<![\d.]){each}(?!\d)", report)] == []
