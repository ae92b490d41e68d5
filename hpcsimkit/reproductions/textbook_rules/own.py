"""What is textbook rules' own: seats, agents in pairs, verdicts, tables and targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.spinning_up import SpinningUpSettings
from hpcsimkit.agents.training.together import Together
from hpcsimkit.agents.training.trainer import LAST
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tables import Table
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.reports.figures import MUTED
from hpcsimkit.reports.learning_curve import draw_rewards
from hpcsimkit.reproductions.cells import comparison_cells, mean_cells, per_cent
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.planned import PaperFindings
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import BSLD
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.textbook_rules.figures import BLUE, GREEN, RED, Dots, Panel, draw_ratios
from hpcsimkit.results.statistics import SIGNIFICANT, Mean, mean_of, paired
from hpcsimkit.results.statistics import Comparison as Paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Judged",
    "OwnFindings",
    "SeatLearner",
    "TogetherLearner",
    "Verdict",
    "backfiller_seat",
    "backfilling",
    "both_seats",
    "heuristic",
    "inspecting",
    "inspector_seat",
    "judged",
    "prompt",
    "verdicts",
]

Floats = NDArray[np.float64]

ORDERS: Mapping[str, type[Order]] = {"sjf": SJF, "f1": F1}
"""Orders of the queue of the baseline heuristics."""

RIVALS = ("SJF, EASY-SJF", "F1, EASY-SJF")
"""Baseline heuristics; agents are compared with the better one on each log."""

JOBS, SLOTS = 256, 32
"""Number of jobs of a sequence, and maximum number of candidates in a backfiller's observation."""

ATTEMPTS = 1000
"""Maximum number of sequences drawn, one after the other, until one has a decision."""

LESS, MORE = "▼", "▲"
"""Marks of values significantly below and above the baseline."""

RIVAL = "rival"
"""Entry in the baseline's own row."""

LOGS_NEEDED = 3
MINUTES: Mapping[str, float | None] = {"inspectors": 10.0, "backfillers": 60.0, "both": None}
"""Maximum time of a training [min of a core], or None if there is no limit."""


# --- schedulers, the same with open seats, and training environments --------------------------------------


@part
def heuristic(order: str) -> Pipeline:
    """Return EASY with shortest-first candidates behind an order: the best heuristic of its class."""
    return Pipeline(ORDERS[order](), backfiller=EASY(SJF()))


@part
def inspector_seat(order: str) -> Pipeline:
    """Return the heuristic with an open seat for an inspector, which may hold the job about to start."""
    return _inspected(heuristic(order))


@part
def backfiller_seat(order: str) -> Pipeline:
    """Return the heuristic with an open seat for a backfiller, which picks an EASY candidate or none."""
    return backfilling_seat(ORDERS[order](), "guarded", semantics="textbook", decline=True, slots=SLOTS)


@part
def both_seats(order: str) -> Pipeline:
    """Return the heuristic with both seats open."""
    return _inspected(backfiller_seat(order))


def _inspected(pipeline: Pipeline) -> Pipeline:
    pipeline.inspector = External()
    pipeline.max_interval, pipeline.max_rejections = MAX_INTERVAL, MAX_REJECTIONS
    return pipeline


@part
def prompt(order: str) -> PromptImprovement:
    """Return the dense reward, by the heuristic of the same order."""
    return PromptImprovement(heuristic(order), kind="bounded")


@part
def inspecting(log: Workload, order: str, longest_time: int) -> SchedulingEnv:
    """Return the training environment of an inspector."""
    return SchedulingEnv(
        Windows(log, JOBS),
        inspector_seat(order),
        InspectorFeatures(longest_time=longest_time, backfilling="easy"),
        AcceptReject(),
        prompt(order),
        stage="inspector",
        attempts=ATTEMPTS,
    )


@part
def backfilling(log: Workload, order: str, longest_time: int) -> SchedulingEnv:
    """Return the training environment of a backfiller."""
    return SchedulingEnv(
        Windows(log, JOBS),
        backfiller_seat(order),
        Candidates(SLOTS, longest_time=longest_time, decline=True),
        Slots(SLOTS, decline=True),
        Improvement(heuristic(order), kind="bounded"),
        stage="backfiller",
        attempts=ATTEMPTS,
    )


# --- agents in pairs --------------------------------------------------------------------------------------


@part
@dataclass(frozen=True)
class SeatLearner(Learner):
    """A learner, optionally beside a trained partner.

    Parameters
    ----------
    partner : Learner, optional
        Learner of the agent on the pipeline's other seat, which is kept fixed. Its training has to be
        finished before, in the same folder of tasks.
    """

    partner: Learner | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return () if self.partner is None else (self.partner.name,)

    def with_others(self, policy: Policy, store: Path, *, sample: bool) -> Policy:
        """Return a policy with the partner, if any, at its seat, from the folder of all tasks."""
        return (
            policy if self.partner is None else with_agent(policy, self.partner_agent(store, sample=sample))
        )

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks; CEM agents never sample."""
        partner = self.partner
        assert partner is not None
        return trained_agent(partner, store / partner.name, sample=sample and partner.trainer != "cem")


@part
@dataclass(frozen=True)
class TogetherLearner(SeatLearner):
    """A learner and its partner, trained at the same time; the partner has no training of its own.

    Training steps are counted as one decision per job.
    """

    PARTNER = "partner.hpcsim"

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before: none."""
        return ()

    @property
    def rounds(self) -> int:
        """Number of updates, each from `settings.episodes` sequences."""
        return math.ceil(self.settings.total_timesteps / (self.settings.episodes * JOBS))

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train both agents, or resume; the folder keeps agents, learning curve and a checkpoint."""
        assert self.partner is not None
        players: dict[str, Player] = {}
        settings: dict[str, SpinningUpSettings] = {}
        for each in (self, self.partner):
            assert isinstance(each.settings, SpinningUpSettings)
            players[each.stage] = Player(each.encoder, each.mask, each.reward)
            settings[each.stage] = each.settings
        both = Together(
            self.episodes,
            self.policy,
            players,
            settings,
            rounds=self.rounds,
            seed=self.seed,
            attempts=self.attempts,
        )
        agents = both.train(
            folder,
            resume=True,
            tell=lambda report: tell(min(report.steps * JOBS, self.settings.total_timesteps)),
        )
        agents[self.partner.stage].save(folder / self.PARTNER)
        agents[self.stage].save(folder / LAST)
        return agents[self.stage]

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks."""
        assert self.partner is not None
        file = store / self.name / self.PARTNER
        return Agent.load(file, encoder=self.partner.encoder, mask=self.partner.mask, sample=sample)


# --- paired comparisons with the better heuristic -----------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Comparison of a row with the baseline on the same sequences.

    Parameters
    ----------
    mean : Mean
        Mean of the row.
    against : Comparison
        Paired differences, row minus baseline.
    ratio : Mean
        Geometric mean of the ratios of row to baseline, with its interval (that of the logarithms' mean).
    """

    mean: Mean
    against: Paired
    ratio: Mean

    @property
    def is_better(self) -> bool:
        """Whether the row is significantly lower.

        Both p-values are below 0.05, and both the mean and most sequences are lower.
        """
        found = self.against
        return found.is_significant and found.difference.mean < 0 and found.lower > found.higher

    @property
    def is_worse(self) -> bool:
        """Whether the row is significantly higher."""
        found = self.against
        return found.is_significant and found.difference.mean > 0 and found.lower < found.higher


def verdicts(values: Mapping[str, Floats], rival: Floats) -> dict[str, Verdict]:
    """Compare rows with a baseline on the same sequences.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Positive values of each row; p-values are corrected for the number of rows.
    rival : array of float, shape (sequences,)
        Values of the baseline.

    Examples
    --------
    >>> rival = np.array([2.0, 4.0, 8.0])
    >>> found = verdicts({"half": rival / 2, "same": rival}, rival)
    >>> half = found["half"].against
    >>> round(half.relative, 3), round(found["half"].ratio.mean, 3), half.lower, half.higher
    (-0.5, 0.5, 3, 0)
    >>> round(half.t_test_holm, 4), round(half.wilcoxon_holm, 4)  # 2 x 0.1181, 2 x 0.25
    (0.2362, 0.5)
    """
    found = paired([(each, rival) for each in values.values()])
    return {
        name: Verdict(mean_of(each), against, _geometric_mean(each / rival))
        for (name, each), against in zip(values.items(), found, strict=True)
    }


def _geometric_mean(ratios: Floats) -> Mean:
    found = mean_of(np.log(ratios))
    return Mean(*(float(np.exp(each)) for each in (found.mean, found.low, found.high)))


@dataclass(frozen=True)
class Judged:
    """Measurements of a log, with the comparisons of its rows.

    Parameters
    ----------
    scores : Scores
        Measurements.
    rival : str
        Row of the better heuristic: the one with the lower mean on the test sequences themselves, so that no
        agent wins because the wrong heuristic was picked.
    learned, others : mapping of str to Verdict
        Comparisons of trained agents, and of all other rows but the baseline; p-values are corrected
        separately in each.
    """

    scores: Scores
    rival: str
    learned: Mapping[str, Verdict]
    others: Mapping[str, Verdict]

    @property
    def name(self) -> str:
        """Name of the log."""
        return self.scores.contest.trace.name

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Comparisons of all rows but the baseline, in their order."""
        found = {**self.learned, **self.others}
        return {row: found[row] for row in self.scores.values if row in found}

    @property
    def best(self) -> str:
        """Learned row with the lowest mean."""
        return min(self.learned, key=lambda row: self.learned[row].mean.mean)

    @property
    def better(self) -> list[str]:
        """Learned rows significantly below the baseline."""
        return [row for row, verdict in self.learned.items() if verdict.is_better]

    @property
    def worse(self) -> list[str]:
        """Learned rows significantly above the baseline."""
        return [row for row, verdict in self.learned.items() if verdict.is_worse]

    def ratios(self) -> dict[str, Floats]:
        """Return the ratios of every row to the baseline, sequence by sequence."""
        rival = self.scores.of(self.rival)
        return {row: self.scores.of(row) / rival for row in self.scores.values if row != self.rival}


def judged(scores: Scores) -> Judged:
    """Pick the better heuristic, and compare all other rows with it."""
    rival = min(RIVALS, key=scores.mean)
    learned = [each.name for each in scores.contest.contestants if each.learner is not None]
    others = [row for row in scores.values if row != rival and row not in learned]
    return Judged(scores, rival, _against(scores, learned, rival), _against(scores, others, rival))


def _against(scores: Scores, rows: Iterable[str], rival: str) -> dict[str, Verdict]:
    return verdicts({row: scores.of(row, BSLD) for row in rows}, scores.of(rival, BSLD))


# --- tables -------------------------------------------------------------------------------------------


def mark(verdict: Verdict) -> str:
    """Return the mark of a significant difference, after a space; an empty string otherwise."""
    return f" {LESS}" * verdict.is_better + f" {MORE}" * verdict.is_worse


def log_table(log: Judged) -> Table:
    """Return the table of a log: one row per policy, each compared with the better heuristic."""
    headings = ["", "mean", "95 % interval", f"minus {log.rival}", "relative", "ratio"]
    headings += ["p, paired t", "p, Wilcoxon", "below : above"]
    lines = []
    for row in log.scores.values:
        verdict, mean = log.verdicts.get(row), mean_cells(mean_of(log.scores.of(row)))
        if verdict is None:
            lines.append([f"**{row}**", *mean, RIVAL, *[""] * 5])
        else:
            lines.append([f"{_name(log, row)}{mark(verdict)}", *mean, *_cells(verdict)])
    return Table(headings, lines)


def _cells(verdict: Verdict) -> list[str]:
    difference, relative, *ps = comparison_cells(verdict.against)
    counts = f"{verdict.against.lower} : {verdict.against.higher}"
    return [difference, relative, f"{verdict.ratio.mean:.3f}", *ps, counts]


def _name(log: Judged, row: str) -> str:
    """Return the name of a row, in italics for learned rows."""
    return f"*{row}*" if row in log.learned else row


def matrix(logs: Sequence[Judged]) -> Table:
    """Return the table of all logs: each row's mean relative to that of the better heuristic of the log."""
    headings = ["", *(log.name for log in logs), f"{LESS} : {MORE}"]
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [
            RIVAL if each is None else f"{per_cent(each.against.relative)}{mark(each)}" for each in found
        ]
        known = [each for each in found if each is not None]
        count = f"{sum(each.is_better for each in known)} : {sum(each.is_worse for each in known)}"
        lines.append([_name(logs[0], row), *cells, count])
    return Table(headings, lines)


def typical_matrix(logs: Sequence[Judged]) -> Table:
    """Return the table of all logs by geometric means of ratios, with their intervals."""
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [RIVAL if each is None else _ratio(each) for each in found]
        lines.append([_name(logs[0], row), *cells])
    return Table(["", *(log.name for log in logs)], lines)


def _ratio(verdict: Verdict) -> str:
    ratio = verdict.ratio
    return f"{ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def promises_table(logs: Sequence[Judged]) -> Table:
    """Return the share of reservation violations, by row and log."""
    headings = ["", *(log.name for log in logs)]
    return Table(
        headings,
        [[_name(logs[0], row), *(_promises(log, row) for log in logs)] for row in logs[0].scores.values],
    )


def _promises(log: Judged, row: str) -> str:
    made, broken = map(int, log.scores.promises(row)[:2])
    share = 100 * broken / made if made else 0.0
    return f"{grouped(broken)} of {grouped(made)} ({share:.1f} %)"


# --- figure -----------------------------------------------------------------------------------------------


def colour_of(log: Judged, row: str) -> str:
    """Return the colour of a row: grey, or for learned ones by the significance of the difference.

    Green is significantly below the baseline, red significantly above, and blue neither.
    """
    if row not in log.learned:
        return MUTED
    verdict = log.learned[row]
    return GREEN if verdict.is_better else RED if verdict.is_worse else BLUE


def _panel(log: Judged) -> Panel:
    ratios, found = log.ratios(), log.verdicts
    rows = {
        row: Dots(ratios[row], found[row].ratio, colour_of(log, row)) if row in ratios else None
        for row in log.scores.values
    }
    return Panel(f"{log.name}, over {log.rival}", rows)


# --- measurements -----------------------------------------------------------------------------------------


class OwnFindings(PaperFindings):
    """Measurements of agents and heuristics."""

    @cached_property
    def logs(self) -> list[Judged]:
        """Measurements and comparisons of each log."""
        return [judged(scores) for scores in self.scores]

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        yield "ratios", draw_ratios([_panel(log) for log in self.logs])
        for name, curves in self.curves.items():
            yield name, draw_rewards(curves)

    def targets(self) -> Iterator[Target]:
        """Yield the number of logs with a better learned row, and the longest training time of each group."""
        found = sum(bool(log.better) for log in self.logs)
        what = (
            f"logs on which a learned row beats the better heuristic, p < {SIGNIFICANT} by both tests "
            f"(needed: {LOGS_NEEDED}; tested: {len(self.logs)})"
        )
        yield Target(what, None, float(found), None, found >= LOGS_NEEDED)
        seconds: dict[str, list[float]] = {who: [] for who in MINUTES}
        for learner in self.plan.trained:
            who = "both" if learner.trainer == "together" else f"{learner.stage}s"
            seconds[who].append(self.seconds(learner))
        for who, limit in MINUTES.items():
            longest = max(seconds[who]) / 60
            met = None if limit is None else longest <= limit
            bound = f", at most {limit:g}" if limit is not None else ""
            yield Target(f"longest training of {who} [min of a core{bound}]", None, longest, None, met)
