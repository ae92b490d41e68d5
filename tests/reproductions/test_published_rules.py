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
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, SJF, HoldUnfit
from hpcsimkit.policies.dirlab import (
    FittingCandidates,
    PublishedEASY,
    ShortestFitting,
    learned_backfilling,
    published,
)
from hpcsimkit.policies.orders import F1, SAF
from hpcsimkit.reproductions.published_rules import rules as by
from hpcsimkit.reproductions.published_rules.data import FULL, Scale, Trace, Trial
from hpcsimkit.reproductions.published_rules.effects import Measured, effects
from hpcsimkit.reproductions.published_rules.figures import _lowest_nodes
from hpcsimkit.reproductions.published_rules.minimal_cases import CASES, DRAWN
from hpcsimkit.reproductions.published_rules.published_numbers import AGENTS, BASES, same_digits
from hpcsimkit.reproductions.published_rules.reproduction import PublishedRules
from hpcsimkit.reproductions.published_rules.rules import (
    Scheduler,
    as_meant,
    one_rule_at_a_time,
    untrained,
)
from hpcsimkit.reproductions.published_rules.runs import Cell, Runs, all_runs
from hpcsimkit.reproductions.published_rules.tables import recomputed, recomputed_tables, share_of_gain
from hpcsimkit.reproductions.published_rules.variants import PartialEASY
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.workloads import default_workload, write_swf
from hpcsimkit.workloads.dirlab import read_published
from tests.kernel.dirlab_cases import backfilled, load, rows
from tests.kernel.helpers import rows_and_size, workload

ORDERS = {"fcfs": FCFS(), "sjf": SJF(), "f1": F1(), "saf": SAF()}


# --- minimal cases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_minimal_cases_by_hand(case: object) -> None:
    assert case.by_published_rules.start_time.tolist() == list(case.published)  # type: ignore[attr-defined]
    assert case.by_the_textbook.start_time.tolist() == list(case.textbook)  # type: ignore[attr-defined]
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
        assert (listed, jobs.machine_size) == (list(case.jobs), case.nodes)


def test_drawn_jobs_lie_side_by_side_within_the_machine() -> None:
    assert [case.name for case in CASES if case.name in DRAWN] == list(DRAWN)
    for case in CASES:
        for result in (case.by_published_rules, case.by_the_textbook):
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
        scenario = Scenario(workload(jobs, size), semantics=semantics)
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
    scenario = Scenario(workload(jobs, size), semantics="dirlab")
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
        scenario = replace(case.scenario, semantics="textbook")  # type: ignore[attr-defined]
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


def test_the_shortest_candidate_is_the_references_agent(shared: Path) -> None:
    scenario = Scenario.sequence(load(shared, "lublin256", "rlbf"), 4989, 256)
    for guarded in (False, True):
        pipeline = dict(untrained("rlbackfilling", "fcfs", backfilling=True))
        row = by.GUARDED if guarded else by.UNGUARDED
        found = scenario.simulation(pipeline[row].policy).run().start_time
        expected = backfilled(scenario, "fcfs", "sjf", guarded=guarded)[0].start_time
        np.testing.assert_array_equal(found, expected)


# --- who is compared with whom -----------------------------------------------------------------------------


def test_one_rule_at_a_time_changes_one_rule() -> None:
    rows = dict(one_rule_at_a_time("rlbackfilling", "sjf", backfilling=True, estimates=True))
    base = published("rlbackfilling", "sjf", backfilling=True)
    assert list(rows) == [by.PUBLISHED, *by.RULES]
    assert rows[by.PUBLISHED] == Scheduler(base)
    assert rows[by.TOGETHER] == Scheduler(base, rules="textbook")
    assert rows[by.ESTIMATES] == Scheduler(base, swapped=True)
    assert rows[by.TEXTBOOK] == Scheduler(Pipeline(SJF(), backfiller=EASY()), rules="textbook")
    changed = {by.HEAD: base.backfiller, by.NOT_SKIPPED: PublishedEASY(), by.IN_ORDER: PublishedEASY(SJF()),
               by.ANEW: PartialEASY(spare_nodes=False, last_second=False),
               by.LAST_SECOND: PartialEASY(spare_nodes=False), by.SPARE: EASY()}  # fmt: skip
    for rule, backfiller in changed.items():
        policy = rows[rule].policy
        assert (policy.order, policy.backfiller) == (base.order, backfiller), rule
        assert (policy.commit, rows[rule].rules) == (rule != by.HEAD, "dirlab"), rule
    bare = dict(one_rule_at_a_time("schedinspector", "f1", backfilling=False, estimates=False))
    assert list(bare) == [by.PUBLISHED, by.HEAD, by.TOGETHER, by.TEXTBOOK]
    assert bare[by.TEXTBOOK].policy.backfiller is None


def test_what_was_meant_keeps_to_the_published_rules_otherwise() -> None:
    rows = dict(as_meant("unicef", backfilling=True))
    assert list(rows) == [by.PUBLISHED, by.MEANT, by.TEXTBOOK]
    assert rows[by.MEANT].policy.commit
    assert rows[by.MEANT].policy.order != rows[by.PUBLISHED].policy.order
    assert rows[by.TEXTBOOK].policy.order == rows[by.MEANT].policy.order


def test_who_needs_no_learning_sits_on_the_agents_seat() -> None:
    rows = dict(untrained("schedinspector", "sjf", backfilling=False))
    assert rows[by.UNFIT].policy == published("schedinspector", "sjf", inspector=HoldUnfit())
    assert (rows[by.UNFIT].policy.max_rejections, rows[by.UNFIT_FREE].policy.max_rejections) == (72, None)
    rows = dict(untrained("rlbackfilling", "fcfs", backfilling=True))
    seat = learned_backfilling("fcfs", guarded=True).backfiller.base  # type: ignore[union-attr]
    shortest = rows[by.GUARDED].policy.backfiller
    assert isinstance(shortest, ShortestFitting)
    assert shortest.base == seat
    assert rows[by.GUARDED_CHANCE].repeats == 5
    assert not rows[by.UNGUARDED].policy.commit


def test_who_draws_is_a_mean_of_several_runs() -> None:
    log = default_workload(np.random.default_rng(3), jobs=300, load=1.3)
    scenario = Scenario(log, semantics="dirlab")
    drawing = dict(untrained("rlbackfilling", "fcfs", backfilling=True))[by.UNGUARDED_CHANCE]
    once = replace(drawing, repeats=1)
    values = [once.slowdown(scenario, seed) for seed in range(5, 10)]
    assert len(set(values)) > 1
    assert drawing.slowdown(scenario, 1) == pytest.approx(np.mean(values))


# --- tests and numbers -------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    write_swf(default_workload(np.random.default_rng(1), jobs=3100, load=1.1), tmp_path / "lublin-1.swf")
    return Trace(tmp_path / "lublin-1.swf")


def test_swapped_estimates(trace: Trace) -> None:
    inspected, asked = (trace.log(code) for code in ("schedinspector", "rlbackfilling"))
    assert not np.array_equal(asked.requested_time, asked.run_time)
    np.testing.assert_array_equal(inspected.requested_time, np.maximum(inspected.run_time, 1))
    by_id = dict(zip(asked.id.tolist(), asked.requested_time.tolist(), strict=True))
    swapped = trace.log("schedinspector", swapped=True)
    for job, time, run in zip(swapped.id, swapped.requested_time, swapped.run_time, strict=True):
        assert time == by_id.get(int(job), max(int(run), 1))
    back = trace.log("rlbackfilling", swapped=True)
    np.testing.assert_array_equal(back.requested_time, np.maximum(back.run_time, 1))
    assert trace.has_requests("schedinspector")


def test_sequences_of_several_seeds_come_seed_by_seed(trace: Trace) -> None:
    several = Trial(trace, "schedinspector", (4, 1), 50)
    assert several.starts[50:] == Trial.published(trace, "schedinspector", FULL).starts
    assert [scenario.workload.id[0] for scenario in several.scenarios()] == [
        start + 1 for start in several.starts
    ]


def test_published_seeds(trace: Trace) -> None:
    assert Trial.published(trace, "rlbackfilling", FULL).seeds == (40,)
    assert Trial.published(trace, "rlscheduler", FULL).seeds == (1,)
    assert Trial.published(trace, "rlscheduler", FULL).is_whole
    assert not Trial.published(trace, "rlscheduler", Scale(share=0.2)).is_whole


def test_every_published_number_is_computed(trace: Trace) -> None:
    """On Lublin-1: the 15 numbers there are; and no two tasks have one name."""
    from hpcsimkit.reproductions.published_rules.data import QUICK, Traces

    for scale in (FULL, QUICK):
        runs = list(all_runs(Traces([trace.path]), scale))
        assert len({each.name for each in runs}) == len(runs)
        cells = {each.cell: each.schedulers for each in runs if not each.of_seeds}
        for base in BASES:
            if base.log == "Lublin-1":
                assert by.PUBLISHED in cells[Cell(base.code, base.log, base.order, base.backfilling)]
    assert sum(base.log == "Lublin-1" for base in BASES) == 15
    assert (len(BASES), len(AGENTS)) == (64, 20)


def test_recomputed_numbers_stand_beside_published_ones() -> None:
    cell = Cell("rlscheduler", "HPC2N", "sjf", False)
    measured = Measured({cell: {by.PUBLISHED: np.array([157.0, 158.42])}}, {}, True)
    base = next(each for each in BASES if (each.log, each.order, each.value) == ("HPC2N", "sjf", 157.71))
    assert same_digits(recomputed(base, measured), base.value)
    assert np.isnan(recomputed(next(iter(BASES)), measured))
    table = dict(recomputed_tables(measured))["rlscheduler"]
    assert table[1][0][:5] == ["HPC2N", "297.18 ()", "426.99 ()", "609.77 ()", "157.71"]


def test_published_base_of_a_real_test(shared: Path) -> None:
    """SchedInspector's 333.19, and SJF that does not commit on the same sequences."""
    trial = Trial.published(Trace(shared / "traces" / "lublin-1.swf"), "schedinspector", FULL)
    rows = dict(one_rule_at_a_time("schedinspector", "sjf", backfilling=False, estimates=False))
    runs = Runs(trial, "sjf", False, {row: rows[row] for row in (by.PUBLISHED, by.TEXTBOOK)})
    told: list[int] = []
    outcome = runs.run(Path(), told.append)
    assert told[-1] == runs.size == 2 * 50 * 256
    assert same_digits(float(np.mean(outcome[by.PUBLISHED])), 333.19)
    assert round(float(np.mean(outcome[by.TEXTBOOK])), 2) == 33.44


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
    assert np.isnan(share_of_gain(100.0, None, 25.0))


# --- the page ----------------------------------------------------------------------------------------------


class Made:
    """Stands for a store on which everything is done: values drawn by chance."""

    def outcome(self, task: Runs) -> dict[str, list[float]]:
        rng = np.random.default_rng(len(task.name))
        return {row: (1 + rng.exponential(9, len(task.trial.starts))).tolist() for row in task.schedulers}


def test_a_page_without_published_numbers(tmp_path: Path) -> None:
    write_swf(default_workload(np.random.default_rng(1), jobs=3100), tmp_path / "other.swf")
    made = PublishedRules([tmp_path / "other.swf"], quick=True)
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
