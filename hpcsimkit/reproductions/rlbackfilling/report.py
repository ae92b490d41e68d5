"""Results page: tables, significance tests, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.cells import BOTH_TESTS, standings_table
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.figures import draw_boxes, draw_rewards
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rlbackfilling.contest import (
    PUBLISHED_EASY,
    TEXTBOOK_EASY,
    Contest,
    Protocol,
    agent_row,
    row,
)
from hpcsimkit.reproductions.rlbackfilling.data import JOBS, PUBLISHED_SLICE, WAYS_AS_PUBLISHED, Traces, Way
from hpcsimkit.reproductions.rlbackfilling.explanations import FAIR, PROMISES, RULES
from hpcsimkit.reproductions.rlbackfilling.figures import draw_noise
from hpcsimkit.reproductions.rlbackfilling.noise import ACTUAL, ORDERS, Noise
from hpcsimkit.reproductions.rlbackfilling.tables import (
    cross_table,
    duels_table,
    noise_table,
    promises_table,
    summary_table,
    table_4,
)
from hpcsimkit.reproductions.rlbackfilling.targets import (
    agent_targets,
    base_targets,
    fair_duels,
    training_target,
)
from hpcsimkit.reproductions.sequences import SIGNIFICANT
from hpcsimkit.reproductions.targets import Target

__all__ = ["Findings"]

KINDS = (PUBLISHED_EASY, TEXTBOOK_EASY)
"""Panels of figure 1."""

TESTS: Mapping[Protocol, str] = {"published": "as published", "rest": "on jobs that nobody has learned from"}


@dataclass(frozen=True)
class Findings:
    """All measurements, with the logs and agents that they belong to.

    Parameters
    ----------
    traces : Traces
        Logs.
    learners : sequence of Learner
        Trained agents.
    scores : sequence of Scores
        Scores of all comparisons.
    noise : Noise
        Runs of figure 1.
    noises : mapping of (str, str) to float
        Mean bounded slowdowns of figure 1, by level of noise and row.
    quick : bool
        Whether this is the quick version.
    """

    traces: Traces
    learners: Sequence[Learner]
    scores: Sequence[Scores[Contest]]
    noise: Noise
    noises: Mapping[tuple[str, str], float]
    quick: bool

    def conclusion(self, heading: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        self._write_summary(page)
        self._write_rules(page)
        for protocol in TESTS:
            self._write_table_4(page, protocol)
        self._write_duels(page)
        for protocol in TESTS:
            self._write_table_5(page, protocol)
        for protocol in TESTS:
            self._write_everybody(page, protocol, pictures)
        self._write_figure_1(page, pictures)
        self._write_figure_4(page, shelf, pictures)
        return Conclusion(list(self._targets(shelf)), str(page))

    def of(self, protocol: Protocol) -> list[Scores[Contest]]:
        """Return the scores of a protocol, by log."""
        return [scores for scores in self.scores if scores.contest.protocol == protocol]

    def ways(self, protocol: Protocol) -> Sequence[Way]:
        """Return the training protocols of agents, the one of all tables first."""
        return WAYS_AS_PUBLISHED if protocol == "published" else self.traces.scale.ways

    def _targets(self, shelf: Shelf) -> Iterator[Target]:
        for scores in self.of("published"):
            yield from base_targets(scores)
        for scores in self.scores:
            for way in self.ways(scores.contest.protocol):
                yield from agent_targets(scores, self.traces.scale.orders, way)
        yield training_target([shelf.seconds(Training(learner)) for learner in self.learners])

    # --- sections --------------------------------------------------------------------------------------

    def _introduce(self, page: Page) -> None:
        scale = self.traces.scale
        if self.quick:
            page.text(
                f"**The quick version** (`--quick`): {grouped(scale.steps)} decisions an agent, "
                f"{scale.sequences} sequences a log at most, "
                f"{' and '.join(order.upper() for order in scale.orders)} with agents of the kinds "
                f"{' / '.join(map(str, scale.ways))}."
            )
        page.items(list(self.traces.lines()))
        page.text(
            f"An agent learns from {grouped(scale.steps)} decisions, in sequences of 256 jobs, as published: "
            "rounds of 100 sequences, 80 passes over each round, networks of 897 and 25 281 weights, paid at "
            "the end by how much lower the mean bounded slowdown is than that of FCFS with published EASY "
            "that tries the shortest candidate first, as a share of it. It sees 128 candidates at most. "
            "*Drawn* actions are as in the published code, *greedy* ones, the best, as in the paper; rows "
            f"that say neither are drawn. Who draws has {scale.draws} runs on each sequence: a mean counts.",
            f"*Evolved* agents score a candidate by a weighted sum of the same six columns: seven weights, "
            f"found by the cross-entropy method in {grouped(scale.evolved_steps)} decisions, beginning at "
            "*shortest first*, on sequences as long as those of the tests or half of the jobs to learn from.",
            f"All numbers are mean bounded slowdowns: less is better. {BOTH_TESTS}",
        )

    def _write_summary(self, page: Page) -> None:
        for protocol, words in TESTS.items():
            if scores := self.of(protocol):
                page.heading(f"In short, {words}")
                way = self.ways(protocol)[0]
                page.table(*summary_table(scores, self.traces.scale.orders, way))

    def _write_rules(self, page: Page) -> None:
        page.heading("Which rules are in force")
        page.text(RULES)
        page.heading("Which rows are fair to compare")
        page.text(FAIR, PROMISES)

    def _write_table_4(self, page: Page, protocol: Protocol) -> None:
        scores = self.of(protocol)
        if not scores:
            return
        page.heading(f"Table 4, {TESTS[protocol]}")
        published = protocol == "published"
        page.text(
            "The paper's numbers in italics. "
            + (
                f"Agents are trained on the first {grouped(PUBLISHED_SLICE)} jobs and tested on sequences of "
                f"{JOBS} from all of the log, with the seeds that give the paper's base rows: jobs that were "
                "learned from are among them, and sequences overlap."
                if published
                else f"Agents are trained on the first fifth of each log and tested on sequences of {JOBS} "
                "of the rest; no job is in two sequences. The paper's sequences were others."
            )
        )
        if published:
            page.text(self._digits())
        way, *further = self.ways(protocol)
        page.table(*table_4(scores, way, further))

    def _digits(self) -> str:
        """Return the sentence on the paper's numbers without training that are not reproduced."""
        targets = [target for scores in self.of("published") for target in base_targets(scores)]
        if any(target.met is None for target in targets):
            return "With fewer sequences than published, the paper's base numbers cannot come out."
        missed = [target for target in targets if not target.met]
        but = "; ".join(f"{each.what}: {each.ours:.2f}, the paper has {each.paper:.2f}" for each in missed)
        came = (
            f"{len(targets) - len(missed)} of {len(targets)} numbers without training come out to the digit"
        )
        return f"{came}{'. Not so: ' * bool(but)}{but}."

    def _write_duels(self, page: Page) -> None:
        page.heading("Like with like")
        page.text(
            "Each agent and the two rivals that matter: the simple rule on its own seat, and textbook EASY "
            "with SJF candidates. p-values are corrected for these two."
        )
        for scores in self.scores:
            page.text(f"**{_words(scores)}**")
            duels = {
                agent: rivals
                for order in self.traces.scale.orders
                for way in self.ways(scores.contest.protocol)
                for agent, rivals in fair_duels(scores, order, way).items()
            }
            page.table(*duels_table(duels))
            page.text(_power(scores))

    def _write_table_5(self, page: Page, protocol: Protocol) -> None:
        scores = self.of(protocol)
        if len(scores) < 2:
            return
        page.heading(f"Table 5, trained here, tested there, {TESTS[protocol]}")
        others = "" if protocol == "published" else ", of other sequences"
        page.text(
            f"The paper's numbers in italics{others}. Abroad, agents divide by the longest time of that log."
        )
        for order in self.traces.scale.orders:
            page.text(f"**{order.upper()}**")
            page.table(*cross_table(scores, order, self.ways(protocol)[0]))

    def _write_everybody(self, page: Page, protocol: Protocol, pictures: Path) -> None:
        if not self.of(protocol):
            return
        page.heading(f"Everybody on the same sequences, {TESTS[protocol]}")
        for scores in self.of(protocol):
            for order in self.traces.scale.orders:
                page.text(f"**{_words(scores)}, {order.upper()}**")
                agent = row(order, agent_row(self.ways(protocol)[0]))
                rows = scores.contest.rows(order)
                page.table(*standings_table(scores.standings(agent, rows), "agent"))
                page.text("And what was promised to blocked jobs:")
                page.table(*promises_table(scores, order))
                file = f"{protocol}-{scores.contest.trace.name}-{order}.png"
                values = {name: scores.of(name) for name in rows}
                label = "mean bounded slowdown of a sequence, logarithmic"
                save_figure(draw_boxes(values, label), pictures / file)
                page.picture(file, f"{_words(scores)}, {order.upper()}: a dot a sequence")

    def _write_figure_1(self, page: Page, pictures: Path) -> None:
        log, levels = self.noise.log, self.noise.levels
        page.heading("Figure 1: estimates from right to wrong")
        page.text(
            f"Mean bounded slowdowns of {grouped(len(log))} jobs of {self.noise.trace.name} in one run. "
            "Requested times are run times, and a random share of them more: of each job evenly drawn from "
            "0 to the noise. Orders go by them too, as the paper's table 4 shows for SJF. The best of each "
            "column is bold."
        )
        page.table(*noise_table(self.noises, levels, KINDS))
        save_figure(draw_noise(self.noises, levels, KINDS), pictures / "figure-1.png")
        page.picture("figure-1.png", "by where estimates come from")
        for kind in KINDS:
            names = [row(order, kind) for order in ORDERS]
            right = [name for name in names if self._is_best(ACTUAL, name)]
            page.text(
                f"With {kind}, actual run times are best for {len(right)} of {len(names)} base schedulers"
                f"{': ' + ', '.join(right) if right else ''}. (The paper: for SJF alone.)"
            )

    def _is_best(self, level: str, name: str) -> bool:
        return self.noises[level, name] == min(self.noises[each, name] for each in self.noise.levels)

    def _write_figure_4(self, page: Page, shelf: Shelf, pictures: Path) -> None:
        page.heading("Figure 4: training")
        curves = {learner.name: learning_curve_of(shelf.place / learner.name) for learner in self.learners}
        save_figure(draw_rewards(curves), pictures / "figure-4.png")
        page.picture("figure-4.png", "what a sequence was paid, by decisions learned from")
        page.text(
            "0 is FCFS with published EASY that tries the shortest candidate first. What penalty agents are "
            "paid has broken promises taken off."
        )
        rows = []
        for learner in self.learners:
            curve = curves[learner.name]
            tenth = max(1, len(curve["reward"]) // 10)
            first, last = curve["reward"][:tenth].mean(), curve["reward"][-tenth:].mean()
            decisions = grouped(int(curve["steps"][-1]))
            minutes = f"{shelf.seconds(Training(learner)) / 60:.1f}"
            rows.append([learner.name, decisions, minutes, f"{first:.3f}", f"{last:.3f}"])
        headings = ["agent", "decisions", "minutes", "reward, first tenth", "reward, last tenth"]
        page.table(headings, rows)


def _words(scores: Scores[Contest]) -> str:
    contest = scores.contest
    return f"{contest.trace.name}, {TESTS[contest.protocol]}"


def _power(scores: Scores[Contest]) -> str:
    """Return the sentence on the smallest p-value that this number of sequences allows."""
    count = len(scores.contest.sequences.scenarios)
    least = 2.0 ** (1 - count)
    blind = ": too few to show anything by that test" if 2 * least >= SIGNIFICANT else ""
    return f"{count} sequences: Wilcoxon's test gives p = {least:.2g} at least, uncorrected{blind}."
