"""What is RLBackfilling's own: baselines, inaccurate estimates (figure 1), tables and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.rlbackfilling.seat import Mode
from hpcsimkit.agents.rlbackfilling.settings import JOBS, backfilling_environment
from hpcsimkit.engine.task import Task
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.experiments.tables import Table
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab import published, textbook
from hpcsimkit.policies.oracles import Actual, OracleSJF
from hpcsimkit.reports.learning_curve import draw_rewards
from hpcsimkit.reports.plots import draw_boxes
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.plans.planned import BOXES, PaperFindings
from hpcsimkit.reproductions.rlbackfilling.figures import draw_noise
from hpcsimkit.reproductions.scores import Scores, Standing
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Target, same_digits
from hpcsimkit.results.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Noise",
    "OwnFindings",
    "actual_run_times",
    "environment",
    "noisy",
    "row",
]

CODE, TESTED = "rlbackfilling", 1024
"""Name of the code base, and number of jobs of a test sequence."""

PUBLISHED_EASY, EASY_AR, TEXTBOOK_EASY = "published EASY", "published EASY-AR", "textbook EASY"
EASY_SJF, CHANCE = "textbook EASY, SJF candidates", "random agent, unguarded"
UNGUARDED_SHORTEST, GUARDED_SHORTEST = "shortest fitting first, unguarded", "shortest fitting first, guarded"
ALSO = (
    *(f"{order} + {PUBLISHED_EASY}" for order in ("FCFS", "SJF", "WFP3", "F1")),
    f"SJF + {EASY_SJF}",
    f"F1 + {EASY_SJF}",
)
"""Rows shown beside those of any base scheduler: the paper's columns, and the best baselines."""

KINDS = (PUBLISHED_EASY, TEXTBOOK_EASY)
"""Panels of figure 1."""

ORDERS = ("fcfs", "wfp3", "sjf", "f1")
REQUESTED, ACTUAL = "as requested", "actual"
TESTS = {"published": "as published", "rest": "on unseen jobs"}
MINUTES, PUBLISHED_SEQUENCES = 60.0, 10
LEAST_GAIN = 26.0
"""Gain of agents over FCFS with EASY on every log, as claimed in the paper [%]."""


def row(order: str, backfiller: str) -> str:
    """Return the name of a row.

    >>> row("fcfs", PUBLISHED_EASY)
    'FCFS + published EASY'
    """
    return f"{order.upper()} + {backfiller}"


def agent_row(way: str, *, greedy: bool = False) -> str:
    """Return the label of an agent; those of the cross-entropy method always take the best action.

    >>> agent_row("guarded", greedy=True), agent_row("unguarded, evolved", greedy=True)
    ('agent, guarded, greedy', 'agent, unguarded, evolved')
    """
    return f"agent, {way}{', greedy' * (greedy and not is_evolved(way))}"


def is_evolved(way: str) -> bool:
    """Return whether an agent is trained by the cross-entropy method."""
    return way.endswith(", evolved")


def rows_of(way: str, order: str) -> list[str]:
    """Return the rows of an agent: with sampled actions, as in the published code, and with the best ones."""
    return list(dict.fromkeys(row(order, agent_row(way, greedy=each)) for each in (False, True)))


# --- environments and baselines -------------------------------------------------------------------------


@part
def environment(
    log: Workload,
    order: str,
    longest_time: int,
    mode: Mode = "unguarded",
    *,
    evolved: bool = False,
    published: bool = False,
) -> SchedulingEnv:
    """Return the training environment; the cross-entropy method has sequences as long as in tests."""
    jobs = min(TESTED, len(log) // 2) if evolved else JOBS
    bounds: Any = {"first": jobs} if published else {"first": 0, "last": len(log) - jobs}
    return backfilling_environment(log, order, mode, jobs=jobs, longest_time=longest_time, **bounds)


@part
def actual_run_times(order: str) -> Pipeline:
    """Return EASY-AR as published: actual run times are known, to the order too.

    (With the run times known to backfilling alone, SJF has 5.47 on HPC2N and not the paper's 3.73.)
    """
    pipeline = published(CODE, order, backfilling=True)
    pipeline.estimates = Actual()
    if order == "sjf":
        pipeline.order = OracleSJF()
    return pipeline


# --- figure 1 -------------------------------------------------------------------------------------------


def noisy(log: Workload, noise: float, seed: int) -> Workload:
    """Return a log with new requested times: run times plus a random share of them.

    Parameters
    ----------
    log : Workload
        Log with the run times.
    noise : float
        Maximum share added; the share of each job is uniform between 0 and this value.
    seed : int
        Random seed; with the same seed, errors grow in proportion to `noise`.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1], "run_time": [100, 0], "nodes": [1, 1]}, machine_size=1)
    >>> noisy(w, 0.2, seed=1).requested_time.tolist()  # the first draw is 0.51
    [110, 1]
    """
    shares = np.random.default_rng(seed).random(len(log))
    times: NDArray[np.int64] = np.rint(log.run_time * (1 + noise * shares)).astype(np.int64)
    return replace(log, columns={**log.columns, "requested_time": np.maximum(times, 1)})


@part
@dataclass(frozen=True)
class Noise:
    """Runs of EASY on a whole log, with estimates from exact to inaccurate.

    Parameters
    ----------
    trace : PaperLog
        Log of the runs.
    """

    trace: PaperLog

    @property
    def log(self) -> Workload:
        """Whole log, or its first jobs."""
        jobs = self.trace.scale.noise_jobs
        return self.trace.log.first(jobs) if jobs else self.trace.log

    @property
    def levels(self) -> list[str]:
        """Sources of estimates, exact ones first; requested times only if the log has them."""
        noises = [f"+{100 * noise:g} %" for noise in self.trace.scale.noises]
        return [ACTUAL, *noises, *[REQUESTED] * (not self.trace.times_are_known)]

    @property
    def tasks(self) -> list[Task]:
        """All runs."""
        return list(self.meetings.values())

    @cached_property
    def meetings(self) -> Mapping[tuple[str, str], Meeting]:
        """Runs by level of noise and row."""
        return {(level, each.name): meeting for level in self.levels for each, meeting in self._runs(level)}

    def _runs(self, level: str) -> Iterator[tuple[Contestant, Meeting]]:
        name = "".join(each if each.isalnum() else "-" for each in level).strip("-")
        log = self._log(level)
        sequences = SequenceSet.of(f"{self.trace.name}-estimates-{name}", log, [0], len(log))
        for order in ORDERS:
            for each in (
                Contestant(row(order, PUBLISHED_EASY), published(CODE, order, backfilling=True)),
                Contestant(
                    row(order, TEXTBOOK_EASY), textbook(CODE, order, backfilling=True), rules="textbook"
                ),
            ):
                yield each, Meeting(each, sequences, self.trace.seed)

    def _log(self, level: str) -> Workload:
        if level == REQUESTED:
            return self.log
        noise = dict(zip(self.levels, (0.0, *self.trace.scale.noises), strict=False))[level]
        return noisy(self.log, noise, self.trace.seed)


# --- measurements ---------------------------------------------------------------------------------------


class OwnFindings(PaperFindings):
    """Measurements of backfilling agents and their rivals."""

    @property
    def noise(self) -> Noise:
        """Runs of figure 1."""
        noise = self.plan.tasks["noise"]
        assert isinstance(noise, Noise)
        return noise

    @cached_property
    def noises(self) -> dict[tuple[str, str], float]:
        """Mean bounded slowdowns of figure 1, by level of noise and row."""
        meetings = self.noise.meetings
        return {place: float(np.mean(self.store.outcome(task)[BSLD])) for place, task in meetings.items()}

    @property
    def orders(self) -> Sequence[str]:
        """Base schedulers for which agents backfill."""
        return tuple(self.plan.traces.scale.orders)

    @property
    def digits(self) -> list[Target]:
        """Targets of the published test without training."""
        return [target for scores in self.of("published") for target in self.base_targets(scores)]

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for scores in self.scores:
            for order in self.orders:
                boxes = draw_boxes({name: scores.of(name) for name in rows_beside(scores, order)}, BOXES)
                yield f"{scores.contest.label}-{order}", boxes
        yield "figure-1", draw_noise(self.noises, self.noise.levels, KINDS, ORDERS)
        yield "figure-4", draw_rewards({each.name: self.curve(each) for each in self.plan.trained})

    def ways(self, protocol: str) -> list[str]:
        """Return the agents of a protocol, the one of all tables first."""
        if protocol == "published":
            return ["unguarded", "unguarded, evolved"]
        scale = self.plan.traces.scale
        return [*scale.modes, *(f"{mode}, evolved" for mode in scale.evolved_modes)]

    def about(self, scores: Scores) -> str:
        """Return the log and the protocol of a comparison."""
        return f"{scores.contest.trace.name}, {TESTS[scores.contest.protocol]}"

    def standings(self, scores: Scores, order: str) -> dict[str, Standing]:
        """Compare the agent of a base scheduler with all rows."""
        agent = row(order, agent_row(self.ways(scores.contest.protocol)[0]))
        return scores.standings(agent, rows_beside(scores, order))

    def best_with_run_times(self, kind: str) -> list[str]:
        """Return the rows of an EASY variant for which no estimates are better than run times."""
        names = [row(order, kind) for order in ORDERS]
        least = {name: min(self.noises[level, name] for level in self.noise.levels) for name in names}
        return [name for name in names if self.noises[ACTUAL, name] == least[name]]

    # --- tables: the paper's numbers in italics -------------------------------------------------------------

    def table_4(self, protocol: str) -> Table:
        """Return mean bounded slowdowns, one row per log and base scheduler."""
        way, *further = self.ways(protocol)
        agents = ["*agent*", "agent, drawn", "agent, greedy", *further]
        headings = ["log, base scheduler", "*EASY*", "EASY", "*EASY-AR*", "EASY-AR", *agents]
        rows = [
            PUBLISHED_EASY,
            EASY_AR,
            agent_row(way),
            agent_row(way, greedy=True),
            *map(agent_row, further),
        ]
        lines = []
        for scores in self.of(protocol):
            name = scores.contest.trace.name
            paper = self.plan.published["table_4"].of(name)
            for order in ("fcfs", "sjf", "wfp3", "f1"):
                theirs = [paper.get(f"{order}{column}") for column in ("", " ar", " agent")]
                ours = [number(scores.mean(row(order, each))) for each in rows]
                pairs = [cell for each in zip(map(number, theirs), ours, strict=False) for cell in each]
                lines.append([f"{name}, {order.upper()}", *pairs, *ours[3:]])
        return Table(headings, lines)

    def summary_table(self, protocol: str) -> Table:
        """Return the key numbers: an agent, EASY, the best simple rules, reservation violations."""
        way, rows = self.ways(protocol)[0], []
        for scores in self.of(protocol):
            for order in self.orders:

                def mean(name: str, scores: Scores = scores, order: str = order) -> str:
                    return number(scores.mean(row(order, name)))

                easy, agent = row(order, PUBLISHED_EASY), row(order, agent_row(way))
                made, broken, _ = scores.promises(agent)
                rows.append(
                    {
                        "log, base scheduler": f"{scores.contest.trace.name}, {order.upper()}",
                        PUBLISHED_EASY: number(scores.mean(easy)),
                        "agent, drawn": number(scores.mean(agent)),
                        "below EASY": f"{100 * (1 - scores.mean(agent) / scores.mean(easy)):.1f} %",
                        "agent, greedy": mean(agent_row(way, greedy=True)),
                        "random agent": mean(CHANCE),
                        "shortest, unguarded": mean(UNGUARDED_SHORTEST),
                        EASY_SJF: mean(EASY_SJF),
                        "promises the agent breaks": f"{100 * broken / made:.1f} %" if made else "",
                    }
                )
        return Table.of(rows)

    def duels(self, scores: Scores) -> dict[str, dict[str, Standing]]:
        """Compare all agents of a comparison with baselines under the same restrictions."""
        ways = self.ways(scores.contest.protocol)
        pairs = [(order, way) for order in self.orders for way in ways]
        return {
            agent: rivals for order, way in pairs for agent, rivals in fair_duels(scores, order, way).items()
        }

    def promises_table(self, scores: Scores, order: str) -> Table:
        """Return the guaranteed start times and the reservation violations of each row."""
        rows = []
        for name in rows_beside(scores, order):
            made, broken, delay = scores.promises(name)
            rows.append(
                {
                    "scheduler": name,
                    "promises": _count(made),
                    "broken": _count(broken),
                    "share": f"{100 * broken / made:.1f} %" if made else "",
                    "mean delay [min]": f"{delay / 60:.1f}" if broken else "",
                }
            )
        return Table.of(rows)

    def cross_table(self, protocol: str, order: str) -> Table:
        """Return the results of agents on other logs, one row per test log."""
        contests, way = self.of(protocol), self.ways(protocol)[0]
        paper, rows = self.plan.published.get(f"table_5_{order}"), []
        for scores in contests:
            home = scores.contest.trace.name
            cells = {"tested on": home, "published EASY": number(scores.mean(row(order, PUBLISHED_EASY)))}
            for name in [other.contest.trace.name for other in contests]:
                what = agent_row(way) if name == home else f"agent of {name}"
                cells[f"*of {name}*"] = number(paper.number(home, name)) if paper else ""
                cells[f"of {name}"] = number(scores.mean(row(order, what)))
            rows.append(cells)
        return Table.of(rows)

    def noise_table(self) -> Table:
        """Return mean bounded slowdowns by source of estimates; the best of each column is bold."""
        columns, levels = [row(order, each) for each in KINDS for order in ORDERS], self.noise.levels
        least = {name: min(self.noises[level, name] for level in levels) for name in columns}
        cells = {
            level: {name: _bold(self.noises[level, name], least[name]) for name in columns}
            for level in levels
        }
        return Table.of([{"estimates": level, **of} for level, of in cells.items()])

    # --- targets --------------------------------------------------------------------------------------------

    def targets(self) -> Iterator[Target]:
        """Yield the paper's numbers and gains, the baselines that an agent must beat, the training time."""
        for scores in self.of("published"):
            yield from self.base_targets(scores)
        for scores in self.scores:
            for way in self.ways(scores.contest.protocol):
                yield from self.agent_targets(scores, way)
        longest = max(map(self.seconds, self.plan.trained)) / 60
        yield Target("longest training [min of a core]", None, longest, None, longest <= MINUTES)

    def base_targets(self, scores: Scores) -> Iterator[Target]:
        """Yield targets for the columns of table 4 without training, on the published sequences."""
        contest = scores.contest
        name = contest.trace.name
        whole = len(contest.sequences.scenarios) == PUBLISHED_SEQUENCES
        for column, value in self.plan.published["table_4"].of(name).items():
            order, _, variant = column.partition(" ")
            each = row(order, EASY_AR if variant else PUBLISHED_EASY)
            if variant != "agent" and each in scores.values and value == value:
                ours = scores.mean(each)
                met = same_digits(ours, value) if whole else None
                yield Target(f"{name}, published test: {each}, mean bounded slowdown", value, ours, None, met)

    def agent_targets(self, scores: Scores, way: str) -> Iterator[Target]:
        """Yield targets for the gains of agents over published EASY and over the baselines.

        The paper claims its gain for FCFS; with other base schedulers it is stated for comparison.
        """
        name = scores.contest.trace.name
        test = "published test" if scores.contest.protocol == "published" else "unseen jobs"
        for order in self.orders:
            base = scores.mean(row(order, PUBLISHED_EASY))
            for agent in rows_of(way, order):
                gain = 100 * (1 - scores.mean(agent) / base)
                met = bool(gain >= LEAST_GAIN) if order == "fcfs" else None
                what = f"{name}, {test}: {agent}, below"
                theirs = self._published_gain(name, order)
                yield Target(f"{what} {order.upper()} + {PUBLISHED_EASY} by [%]", theirs, gain, None, met)
                rivals = scores.standings(agent, [row(order, UNGUARDED_SHORTEST), row(order, EASY_SJF)])
                for other, rival in rivals.items():
                    if rival.against is not None:
                        tested = f"{what} {other} by [%], p < {SIGNIFICANT} by both tests"
                        yield Target(tested, None, -100 * rival.against.relative, None, rival.is_beaten)

    def _published_gain(self, name: str, order: str) -> float | None:
        """Return the gain of the paper's agent over EASY [%], or None if the paper has no such number."""
        paper = self.plan.published["table_4"]
        if name not in paper.rows or f"{order} agent" not in paper.columns:
            return None
        return 100 * (1 - paper.number(name, f"{order} agent") / paper.number(name, order))


def rows_beside(scores: Scores, order: str) -> list[str]:
    """Return the rows of a base scheduler, and those shown beside all."""
    names = [each.name for each in scores.contest.contestants]
    own = [name for name in names if name.startswith(f"{order.upper()} + ")]
    return own + [name for name in ALSO if name in names and name not in own]


def fair_duels(scores: Scores, order: str, way: str) -> dict[str, dict[str, Standing]]:
    """Compare agents with baselines under the same restrictions, by agent (sampling and greedy) and baseline.

    Guarded agents are compared with a guarded rule, unguarded ones with an unguarded rule, and both with
    textbook EASY with SJF candidates; p-values are corrected for the two baselines.
    """
    shortest = GUARDED_SHORTEST if way.partition(",")[0] == "guarded" else UNGUARDED_SHORTEST
    rivals = [row(order, shortest), row(order, EASY_SJF)]
    return {agent: scores.standings(agent, rivals) for agent in rows_of(way, order)}


def _count(value: float) -> str:
    """Return a formatted number of reservations, which may be a mean over runs."""
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _bold(value: float, least: float) -> str:
    return f"**{number(value)}**" if value == least else number(value)
