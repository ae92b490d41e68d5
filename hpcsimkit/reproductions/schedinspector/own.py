"""What is SchedInspector's own: rejected jobs (figure 13), its tables, and its targets."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.schedinspector.settings import RATIO
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.evaluation.explanation import HEADINGS, Explanation, explained
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in, write_arrays
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.dirlab import MAX_REJECTIONS
from hpcsimkit.reports.explanation import draw_explanation
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reports.plots import draw_boxes
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.planned import BOXES, PaperFindings, Study
from hpcsimkit.reproductions.schedinspector.figures import draw_curves
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.targets import Target, same_digits
from hpcsimkit.results.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explaining", "OwnFindings", "improvement"]

DECISIONS = "decisions.npz"
BASE, NOT_COMMITTED, UNFIT = "base", "base that does not commit", "reject iff it does not fit"
AGENTS = ("inspector", "prompt inspector")
"""Rows of agents on the log that they were trained on."""

OF_PAPER = "SDSC-SP2"
"""Log of the inspector that the paper tests on all other logs, and of its figures."""

LAST_ROUNDS = 10
"""Number of updates at the end of a training over which its table averages."""

MINUTES, PAPERS_MINUTES, PAPERS_SEQUENCES = 10.0, 35.0, 50


@part
@dataclass(frozen=True)
class Explaining(Task):
    """A run of an inspector over a whole log; observations and actions are saved in the task's folder.

    Parameters
    ----------
    learner : Learner
        Learner of the inspector, which samples its actions.
    log : Workload
        Log as read by the published code.
    """

    learner: Learner
    log: Workload

    @property
    def name(self) -> str:
        """Name of the task: that of the learner with a prefix."""
        return f"explained-{self.learner.name}"

    @property
    def kind(self) -> str:
        """Type of the task: that of runs of agents, which have the same rate."""
        return "runs of agents"

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return len(self.log)

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return (self.learner.name,)

    def inputs(self) -> Any:
        """Return the inputs of the task: learner and log."""
        return {"learner": self.learner, "log": self.log}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, with the limit of rejections of the tests, and save the decisions."""
        agent = trained_agent(self.learner, folder.parent / self.learner.name, sample=True)
        tested: Any = copy.copy(self.learner.policy)
        tested.max_rejections = MAX_REJECTIONS
        found = explained(with_agent(tested, agent), Scenario(self.log, Setup(event_order=DirlabOrder())))
        write_arrays(folder / DECISIONS, seen=found.seen.astype(np.float32), rejected=found.rejected)
        return {"names": list(found.names)}

    def explanation(self, folder: Path, outcome: Any) -> Explanation:
        """Return the saved observations and rejections."""
        kept = arrays_in(read_bytes(folder / DECISIONS, Format.TASK_ARRAYS), folder / DECISIONS)
        return Explanation(outcome["names"], kept["seen"].astype(np.float64), kept["rejected"])


class OwnFindings(PaperFindings):
    """Measurements of inspectors and their rivals."""

    agents = AGENTS

    @cached_property
    def explanation(self) -> Explanation:
        """Features of rejected jobs (figure 13)."""
        task = self.plan.tasks["explaining"]
        assert isinstance(task, Explaining)
        return task.explanation(self.store.folder(task), self.store.outcome(task))

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {**super().values(), "ratio": RATIO}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        yield "figure-13", draw_explanation(self.explanation)
        for scores in self.of("rest"):
            yield scores.contest.label, draw_boxes({row: scores.of(row) for row in scores.values}, BOXES)
        for name, curves in self.curves.items():
            yield name, draw_curves(curves)

    # --- tables: the paper's numbers in italics -------------------------------------------------------------

    def table_4(self, contests: Sequence[Scores]) -> Table:
        """Return the mean bounded slowdown under SJF, a row for each log.

        If the first log is not the paper's, its numbers for an inspector of the first log are left out.
        """
        first = self.plan.traces.first.name
        theirs = [f"*of {first}*"] if first == OF_PAPER else []
        own = ["*own*", "own", "own, greedy", f"prompt, of {first}", "prompt", "prompt, greedy"]
        headings = ["log", "*base*", "base", *theirs, f"of {first}", *own, "reject unfit", "no commit"]
        return Table(headings, [self._row_4(scores, first) for scores in contests])

    def _row_4(self, scores: Scores, first: str) -> list[str]:
        name = scores.contest.trace.name
        paper = self.plan.published["table_4"].of(name)
        (visitor, *own), prompt = (
            [
                number(scores.mean(each))
                for each in (row if name == first else f"{row} of {first}", row, f"{row}, greedy")
            ]
            for row in AGENTS
        )
        theirs = [number(paper["of SDSC-SP2"])] if first == OF_PAPER else []
        base, *others = (number(scores.mean(row)) for row in (BASE, UNFIT, NOT_COMMITTED))
        return [
            name,
            number(paper["base"]),
            base,
            *theirs,
            visitor,
            number(paper["own"]),
            *own,
            *prompt,
            *others,
        ]

    def table_5(self) -> Table:
        """Return the utilisation of base and inspectors [%]."""
        rows = []
        for scores in self.of("rest"):
            contest, variables = scores.contest, scores.contest.variables
            paper = self.plan.published["table_5"].of(contest.about)
            ours = {row: number(100 * scores.mean(row, "utilisation")) for row in (BASE, *AGENTS)}
            rows.append(
                {
                    "log": contest.trace.name,
                    "order": variables["order"].upper(),
                    "backfilling": "yes" if variables["backfilling"] else "no",
                    "*base*": number(paper["base"]),
                    BASE: ours.pop(BASE),
                    "*inspector*": number(paper["inspector"]),
                    **ours,
                }
            )
        return Table.of(rows)

    def cross_table(self, contests: Sequence[Scores], row: str) -> Table:
        """Return the results of agents on other logs: a row per test log, a column per training log."""
        names, rows = [scores.contest.trace.name for scores in contests], []
        for scores in contests:
            home = scores.contest.trace.name
            means = {name: scores.mean(row if name == home else f"{row} of {name}") for name in names}
            known = {"tested on": home, "base": number(scores.mean(BASE))}
            rows.append({**known, **{f"trained on {name}": number(each) for name, each in means.items()}})
        return Table.of(rows)

    def study_table(self, study: Study) -> Table:
        """Return rewards and shares of rejections at the end of trainings, with the paper's for its log."""
        the_same = study.name == "figure-7" and self.plan.traces.first.name == OF_PAPER
        paper = self.plan.published["figure_7"].of("rejected" if the_same else "")
        lines = []
        for name, curve in self.curves[study.name].items():
            reward, rejected = (_at_the_end(curve[column]) for column in ("reward", "rejected"))
            published, discarded = number(paper.get(name.lower())), number(_thrown_away(curve))
            lines.append([name, f"{reward:.3f}", f"{100 * rejected:.1f} %", published, discarded])
        at_the_end = ["reward at the end", "rejected at the end", "*paper* [%]"]
        return Table(["agent", *at_the_end, "thrown away, of all decisions [%]"], lines)

    def explanation_table(self) -> Table:
        """Return the medians and distances of the features that an inspector observes."""
        return Table(HEADINGS, self.explanation.rows())

    def gain(self, scores: Scores, agent: str) -> float:
        """Return the reduction of the mean bounded slowdown relative to the base scheduler [%]."""
        return 100 * (1 - scores.mean(agent) / scores.mean(BASE))

    # --- targets --------------------------------------------------------------------------------------------

    def targets(self) -> Iterator[Target]:
        """Yield the paper's gains, the baselines that justify a training, and the training times."""
        for protocol in ("whole", "rest"):
            for scores in self.of(protocol, order="sjf", backfilling=False):
                yield from self._of_paper(scores)
        seconds: dict[str, list[float]] = {}
        for learner in self.plan.compared:
            seconds.setdefault(str(learner.trainer), []).append(self.seconds(learner))
        for trainer, of_agents in seconds.items():
            what = f"longest training of {trainer} agents of a table [min of a core]"
            longest = max(of_agents) / 60
            yield Target(what, PAPERS_MINUTES, longest, None, longest <= MINUTES)

    def _of_paper(self, scores: Scores) -> Iterator[Target]:
        """Yield the targets for SJF under published semantics: the base's value and the paper's gains."""
        contest = scores.contest
        where = f"{contest.trace.name}, {'published test' if contest.protocol == 'whole' else 'unseen jobs'}"
        paper, base = self.plan.published["table_4"].of(contest.trace.name), scores.mean(BASE)
        known = contest.trace.name in self.plan.published["table_4"].rows
        if known:
            whole = contest.protocol == "whole" and len(contest.sequences.scenarios) == PAPERS_SEQUENCES
            same = same_digits(base, paper["base"]) if whole else None
            yield Target(f"{where}: SJF's mean bounded slowdown", paper["base"], base, None, same)
        gain = improvement(paper["base"], paper["own"]) if known else None
        for agent in AGENTS:
            for row in (agent, f"{agent}, greedy"):
                ours = improvement(base, scores.mean(row))
                met = None if gain is None else ours >= gain
                yield Target(f"{where}: {row}, below SJF by [%]", gain, ours, None, met)
            yield _above_not_committing(scores, agent, where)


def improvement(base: float, other: float) -> float:
    """Return the reduction relative to the base's value [%].

    >>> improvement(8.0, 6.0)
    25.0
    """
    return 100 * (base - other) / base


def _above_not_committing(scores: Scores, agent: str, where: str) -> Target:
    """Return the target for an agent's gain over the base without commitment, the part due to learning."""
    rival = scores.standings(agent)[NOT_COMMITTED]
    assert rival.against is not None
    gained, what = -100 * rival.against.relative, f"{where}: {agent}, below SJF that does not commit by [%]"
    if scores.contest.protocol == "whole":  # overlapping sequences are not independent samples
        return Target(what, None, gained, None, None)
    return Target(f"{what}, p < {SIGNIFICANT} by both tests", None, gained, None, rival.is_beaten)


def _at_the_end(values: NDArray[np.float64]) -> float:
    """Return the mean over the last updates with a finite value.

    >>> _at_the_end(np.array([9.0] + 9 * [1.0] + [2.0, np.nan]))
    1.1
    """
    learned = values[np.isfinite(values)][-LAST_ROUNDS:]
    return float(learned.mean()) if len(learned) else float("nan")


def _thrown_away(curve: Mapping[str, NDArray[np.float64]] | Curve) -> float | None:
    """Return the share of decisions discarded in training [%], or None if the curve has no such column.

    >>> _thrown_away({"steps": np.array([100.0, 400.0]), "thrown_away": np.array([0.0, 0.5])})
    37.5
    """
    if "thrown_away" not in curve:
        return None
    played = np.diff(curve["steps"], prepend=0.0)
    return float(100 * played @ curve["thrown_away"] / played.sum())
