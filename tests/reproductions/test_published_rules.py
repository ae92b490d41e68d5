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
from hpcsimkit.reproductions.published_rules.figures import _lowest_nodes
from hpcsimkit.reproductions.published_rules.own import (
    AGENT,
    CASES,
    COLUMNS,
    DRAWN,
    ESTIMATES,
    GUARDED,
    HEAD,
    MEANT,
    PUBLISHED,
    RULES,
    SOURCES,
    TEXTBOOK,
    UNFIT,
    UNFIT_FREE,
    UNGUARDED,
    Cell,
    OwnFindings,
    effects,
    published_logs,
    published_mean,
    share_of_gain,
)
from hpcsimkit.reproductions.sequences import Contestant, Meeting
from hpcsimkit.reproductions.targets import same_digits
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.workloads import default_workload, write_swf
from hpcsimkit.workloads.dirlab import read_published
from tests.kernel.dirlab_cases import backfilled, load, rows
from tests.kernel.helpers import rows_and_size, workload

ORDERS = {"fcfs": FCFS(), "sjf": SJF(), "f1": F1(), "saf": SAF()}
KIND: type[PaperReproduction] = reproduction_named("published-rules")  # type: ignore[assignment]


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


def test_drawn_jobs_lie_side_by_side_within_the_machine() -> None:
    assert [case.name for case in CASES if case.name in DRAWN] == list(DRAWN)
    for case in CASES:
        for result in case.schedules:
            lows = _lowest_nodes(result)
            busy = np.zeros((int(result.end_time.max()), case.nodes), dtype=np.int64)
            for job, low in enumerate(lows):
                high = low + int(result.workload.nodes[job])
                assert high <= case.nodes, case.name
                busy[result.start_time[job] : result.end_time[job], low:high] += 1
            assert busy.max() == 1, case.name


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
            found = evaluate(result, names=["mean_bounded_slowdown"])["mean_bounded_slowdown"]
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
    logs = {name: paper.traces.test_of(name).all[0] for name in SOURCES}
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
        cells = {(each.protocol, each.variables.get("order"), each.variables.get("backfilling")): rows_of(each)
                 for each in contests}  # fmt: skip
        for code, columns in COLUMNS.items():
            for order, backfilling, _ in columns:
                assert PUBLISHED in cells[code, order, backfilling]
    every = {code: [Cell(code, log, *column[:2]) for log in published_logs(code) for column in columns]
             for code, columns in COLUMNS.items()}  # fmt: skip
    columns = [(Cell(code, log, order, bf), kind) for code in COLUMNS for log in published_logs(code)
               for order, bf, kind in COLUMNS[code]]  # fmt: skip
    known = [cell for cell, kind in columns if not np.isnan(published_mean(cell, kind))]
    assert (len(known), sum(cell.log == "Lublin-1" for cell in known)) == (64, 15)
    agents = {(cell.code, cell.log, "" if cell.code == "rlscheduler" else cell.order, cell.backfilling)
              for cells in every.values() for cell in cells if not np.isnan(published_mean(cell, AGENT))}  # fmt: skip
    assert len(agents) == 20


def findings(paper: PaperReproduction, tested: dict[Cell, dict[str, np.ndarray]]) -> OwnFindings:  # type: ignore[type-arg]
    found = OwnFindings(paper, Made())  # type: ignore[arg-type]
    vars(found)["tested"] = tested
    return found


def test_recomputed_numbers_stand_beside_published_ones(paper: PaperReproduction) -> None:
    cell = Cell("rlscheduler", "HPC2N", "sjf", False)
    measured = findings(paper, {cell: {PUBLISHED: np.array([157.0, 158.42])}})
    assert published_mean(cell) == 157.71
    assert same_digits(measured.recomputed(cell), 157.71)
    assert np.isnan(measured.recomputed(cell._replace(log="SDSC-SP2")))
    table = measured.recomputed_table("rlscheduler")
    assert table.rows[0][:5] == ["HPC2N", "297.18 ()", "426.99 ()", "609.77 ()", "157.71"]
    assert [target.ours for target in measured.digit_targets()] == [0, 0, 1]


def test_bases_with_a_published_agent_and_others_are_apart(paper: PaperReproduction) -> None:
    cells = [
        Cell("schedinspector", log, order, False)
        for log in ("Lublin-1", "KTH-SP2")
        for order in ("fcfs", "sjf", "f1")
    ]
    rows = {PUBLISHED: 333.2, UNFIT: 109.28, UNFIT_FREE: 33.44, TEXTBOOK: 33.44}
    measured = findings(
        paper, {cell: {row: np.array([mean]) for row, mean in rows.items()} for cell in cells}
    )
    with_agent, without = (measured.inspector_table(published=each).rows for each in (True, False))
    assert with_agent == [["Lublin-1 SJF", "333.20", "27.97", "109.28", "33.44", "33.44", "", "73 %", "98 %"]]
    assert [row[0] for row in without] == ["Lublin-1 F1", "KTH-SP2 SJF", "KTH-SP2 F1"]
    assert {len(row) for row in without} == {6}


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
    values = {"published": np.array([10.0, 20.0, 30.0]), "half": np.array([5.0, 10.0, 15.0]),
              "mixed": np.array([12.0, 18.0, 33.0])}  # fmt: skip
    found = effects(values)
    half = found["half"]
    assert (half.mean, half.ratio.mean, half.ratio.low, half.ratio.high) == (10.0, 0.5, 0.5, 0.5)
    assert half.difference.mean == -10
    mixed = found["mixed"]
    assert mixed.ratio.mean == 1.05
    assert 0.9 <= mixed.ratio.low < 1.05 < mixed.ratio.high <= 1.2  # the least and the largest of the three
    assert not found["mixed"].same
    assert found["published"].same
    alone = effects({"published": np.array([2.0]), "other": np.array([1.0])})["other"]
    assert alone.ratio.mean == 0.5 and np.isnan(alone.ratio.low)


def test_share_of_gain() -> None:
    assert share_of_gain(100.0, 50.0, 25.0) == 150
    assert share_of_gain(100.0, 50.0, 110.0) == -20
    assert np.isnan(share_of_gain(100.0, np.nan, 25.0))


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
    assert not (tmp_path / "agents.png").exists()
    assert (tmp_path / "seeds.png").exists()
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
