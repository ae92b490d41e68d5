"""Results page: tables, figures and targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.io.files import write_bytes
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.published_rules.data import PROTOCOLS, Scale, Traces
from hpcsimkit.reproductions.published_rules.effects import Measured, effects_csv
from hpcsimkit.reproductions.published_rules.figures import draw_agents, draw_cases, draw_rules, draw_seeds
from hpcsimkit.reproductions.published_rules.published_numbers import AGENTS, BASES, SOURCES, same_digits
from hpcsimkit.reproductions.published_rules.rules import (
    ANEW,
    ESTIMATES,
    HEAD,
    IN_ORDER,
    LAST_SECOND,
    NOT_SKIPPED,
    REPEATS,
    SPARE,
    TEXTBOOK,
    TOGETHER,
)
from hpcsimkit.reproductions.published_rules.tables import (
    as_coded_table,
    backfiller_table,
    cases_table,
    inspector_table,
    read_me_table,
    recomputed,
    recomputed_tables,
    rules_table,
    seeds_table,
)
from hpcsimkit.reproductions.published_rules.targets import case_targets, digit_targets
from hpcsimkit.reproductions.reproduction import Conclusion

__all__ = ["Findings"]

EFFECTS = "effects.csv"

PROTOCOL_WORDS = {
    "schedinspector": (
        "50 sequences of 256 jobs from anywhere in the log, seed 1; requested times are replaced by run "
        "times when a log is read"
    ),
    "rlbackfilling": (
        "10 sequences of 1024 jobs; the seeds are not published: 29 for SDSC-SP2, 15 for HPC2N, 40 for "
        "Lublin-1 and 17 for Lublin-2 were found by search. *AR*: requested times are replaced by run "
        "times, which changes the order of SJF too"
    ),
    "rlscheduler": "10 sequences of 1024 jobs from the first 10 000 of the log, seed 1",
}

RULE_WORDS = {
    HEAD: (
        "a job that was selected and does not fit is not kept to; whoever is first of the order at the "
        "next event is selected"
    ),
    TOGETHER: (
        "all that happens at one instant happens before anything is decided; the published programs "
        "decide after each single event"
    ),
    ESTIMATES: (
        "requested times of the log where the published test has run times, and the other way round; logs "
        "without requested times have none"
    ),
    NOT_SKIPPED: "after a job was backfilled the next one is looked at too",
    IN_ORDER: "candidates of backfilling are tried in the order of the policy, not as submitted",
    ANEW: "and the reservation is made again at each event",
    LAST_SECOND: "and a job may end at the very second of the reservation",
    SPARE: ("and it may run on nodes that the blocked job leaves over, which makes it textbook EASY"),
    TEXTBOOK: "all of these but the estimates",
}
"""Descriptions of rules, by column of the tables."""


@dataclass(frozen=True)
class Findings:
    """All measurements, with the logs that they belong to.

    Parameters
    ----------
    traces : Traces
        Logs.
    scale : Scale
        Size preset of the experiment.
    measured : Measured
        Measurements.
    quick : bool
        Whether this is the quick version.
    """

    traces: Traces
    scale: Scale
    measured: Measured
    quick: bool

    def conclusion(self, heading: str, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures and a table of all effects are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        self._write_recomputed(page)
        self._write_cases(page, pictures)
        self._write_rules(page, pictures)
        self._write_as_coded(page)
        self._write_untrained(page, pictures)
        self._write_seeds(page, pictures)
        write_bytes(pictures / EFFECTS, effects_csv(self.measured))
        return Conclusion([*digit_targets(self.measured), *case_targets()], str(page))

    def _introduce(self, page: Page) -> None:
        if self.quick:
            page.text(
                f"**The quick version** (`--quick`): the rules are compared for "
                f"{' and '.join(order.upper() for order in self.scale.orders)} only, and {self.scale.seeds} "
                "seeds are tried."
            )
        page.items(list(self.traces.lines()))
        page.text(
            "All numbers are means of the bounded slowdown (threshold 10 s) over sequences of jobs. Each "
            "sequence begins on an empty machine and all of its jobs count, as published. Everybody gets the "
            "same sequences. Nobody learns anything: what published agents reach is taken from the papers.",
        )

    def _write_recomputed(self, page: Page) -> None:
        page.heading("Published numbers, computed again")
        logs = {cell.log for cell in self.measured.runs}
        bases = [base for base in BASES if base.log in logs]
        equal = sum(same_digits(recomputed(base, self.measured), base.value) for base in bases)
        page.text(
            f"Of {len(bases)} published means of base schedulers on these logs {equal} come out to the digit "
            "(rounded, or cut off). Where this kit's number is another one, it stands behind in brackets."
        )
        for code, table in recomputed_tables(self.measured):
            if table[1]:
                page.text(f"**{SOURCES[code]}**: {PROTOCOL_WORDS[code]}.")
                page.table(*table)

    def _write_cases(self, page: Page, pictures: Path) -> None:
        page.heading("One rule a case")
        page.text("A job is (submission, run time, nodes, requested time); times in seconds.")
        page.table(*cases_table())
        save_figure(draw_cases(), pictures / "cases.png")
        page.picture(
            "cases.png", "schedules of four cases, by the published rules (left) and by the textbook"
        )

    def _write_rules(self, page: Page, pictures: Path) -> None:
        page.heading("One rule at a time")
        page.text(
            "A cell is the mean bounded slowdown with that rule changed, as a ratio to the mean by all "
            "published rules, and its 95 % interval (sequences being pairs); *=*: no sequence differs; bold: "
            "p < 0.05, paired t-test of the differences, corrected for the cells of the row (Holm). Where "
            "few sequences carry most of a mean, interval and test need not agree.",
        )
        page.items([f"*{rule}*: {words}" for rule, words in RULE_WORDS.items()])
        page.text(
            "The last four columns before *textbook* each contain the ones to their left (and *nobody "
            "skipped*): what nodes an old reservation leaves over is not defined, so that rule cannot be "
            "changed alone, and the kit's published backfilling has its reservation and its last second in "
            "one piece. In RLScheduler's test *+ reservation anew* also has a job that outlives its "
            "request end within a second, not in the past (M8); in the other two no job can."
        )
        for code, backfilling, words in (
            ("schedinspector", False, "without backfilling"),
            ("schedinspector", True, "with backfilling"),
            ("rlbackfilling", True, "with backfilling"),
            ("rlscheduler", False, "without backfilling"),
            ("rlscheduler", True, "with backfilling"),
        ):
            if code == "rlscheduler" and not self.scale.read_me_rules:
                continue
            trial = f"{self.scale.sequences(code)} x {PROTOCOLS[code].jobs} jobs"
            page.text(f"**{SOURCES[code].split(',')[0]}'s test, {words}** ({trial})")
            page.table(*rules_table(self.measured, code, backfilling=backfilling))
        save_figure(draw_rules(self.measured), pictures / "rules.png")
        page.picture("rules.png", "SchedInspector's test by the published rules and by the textbook")
        page.text(f"All of it, with p-values: [{EFFECTS}]({EFFECTS}).")

    def _write_as_coded(self, page: Page) -> None:
        page.heading("WFP3 and UNICEF, as coded and as meant")
        page.text(
            "RLScheduler's test. As coded, the waiting time is minus the submission time less a second, "
            "whatever the clock says; as meant, it is the time since submission."
        )
        page.table(*as_coded_table(self.measured))

    def _write_untrained(self, page: Page, pictures: Path) -> None:
        page.heading("What needs no learning")
        page.text(
            "On the very sequences of the published tests, what published agents reach (in italics) and "
            "what rules reach that learned nothing. *Share*: how much of the difference between base and "
            "agent a rule makes; empty where the agent is not below its base, or none is published. Agents "
            "cannot be tested against rules: papers have no values of single sequences.",
            "**SchedInspector's test.** *Committed* is the published base. *Reject iff unfit* rejects a "
            "job exactly when it does not fit, 72 times at most as in the published test, or without that "
            "cap. *Not committed* is the same order by the textbook, with the same knowledge.",
        )
        for published, words in ((True, ""), (False, "Where no agent is published:")):
            table = inspector_table(self.measured, published=published)
            if table[1]:
                page.text(*filter(None, [words]))
                page.table(*table)
        page.text(
            "**RLBackfilling's test.** *Guarded* and *unguarded* rules sit on the agent's seat, with the "
            "same candidates: all that fit (unguarded), or those that end before the reservation. "
            "*Shortest* takes the shortest requested time, "
            f"*random* any (mean of {REPEATS} runs). "
            "Textbook EASY tries candidates in the order of the policy, or the shortest first.",
        )
        page.table(*backfiller_table(self.measured))
        page.text(
            "**RLScheduler's test.** Its agent is a scheduler itself; beside it the best of FCFS, WFP3, "
            "UNICEF, SJF and F1, as published, and by the textbook (WFP3 and UNICEF as meant)."
        )
        page.table(*read_me_table(self.measured))
        if {agent.log for agent in AGENTS} & {cell.log for cell in self.measured.runs}:
            save_figure(draw_agents(self.measured), pictures / "agents.png")
            page.picture("agents.png", "published agents beside rules that learned nothing")

    def _write_seeds(self, page: Page, pictures: Path) -> None:
        page.heading("How much a seed matters")
        page.text(
            f"The published tests by {self.scale.seeds} seeds, from 0 on, all else being equal. "
            "*Two seeds differ by a factor of*: 95 % of all pairs of seeds are within it, for one "
            "and the same scheduler. A difference between two schedulers on different sequences says "
            "nothing unless it is larger. On the same sequences much smaller ones can be seen: the last "
            "column is the ratio of textbook to published rules, seed by seed."
        )
        page.table(*seeds_table(self.measured))
        save_figure(draw_seeds(self.measured), pictures / "seeds.png")
        page.picture("seeds.png", "means of tests by many seeds")
