"""What is published rules' own: swapped estimates, EASY rule by rule, minimal cases, tables and targets."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.dirlab import published, textbook
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.plans.plan import paper_files
from hpcsimkit.reproductions.published_rules.figures import Seeds, draw_cases, draw_means, draw_seeds
from hpcsimkit.reproductions.sequences import BSLD, SequenceSet
from hpcsimkit.reproductions.targets import Conclusion, Target, same_digits
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import SIGNIFICANT, Mean, compared, mean_of, ratio_of_means
from hpcsimkit.workloads.dirlab import CODES, read_published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CASES",
    "Case",
    "Cell",
    "Effect",
    "OwnFindings",
    "effects",
    "of_seeds",
    "published_mean",
    "repeated",
    "share_of_gain",
    "spread_of_ratios",
    "swapped",
]

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]
"""Mean bounded slowdowns of each row of a comparison: of its sequences, or of its seeds."""

SOURCES = {
    "schedinspector": "SchedInspector, table 4",
    "rlbackfilling": "RLBackfilling, table 4",
    "rlscheduler": "RLScheduler, read-me",
}
"""Sources of published numbers by paper; its published test is a comparison of the same name."""

PUBLISHED, TEXTBOOK, HEAD, ESTIMATES, MEANT = (
    "published",
    "textbook",
    "head anew",
    "other estimates",
    "as meant",
)
RULES = (
    HEAD,
    "events together",
    ESTIMATES,
    "nobody skipped",
    "candidates in order",
    "+ reservation anew",
    "+ last second",
    "+ spare nodes",
    TEXTBOOK,
)
"""Rules in the order of tables."""

UNFIT, UNFIT_FREE = "reject iff unfit", "reject iff unfit, no cap"
UNGUARDED, GUARDED, EASY_SJF = "unguarded shortest", "guarded shortest", "textbook, SJF candidates"

AS_CODED = ("wfp3", "unicef")
"""Orders with published code that differs from the intended formula."""

REPEATS = 5
"""Number of runs of each sequence with a stochastic policy."""


# --- sequences --------------------------------------------------------------------------------------------


@part
def swapped(log: PaperLog) -> SequenceSet:
    """Return the test sequences with requested times where the published code has run times, and vice versa.

    Where the code has run times, requested times are those of RLBackfilling, which are at least run times.
    """
    times = np.maximum(log.log.run_time, 1)
    if CODES[log.plan.code].estimate == "run":
        asked = read_published(log.path, "rlbackfilling")
        known = dict(zip(asked.id.tolist(), asked.requested_time.tolist(), strict=True))
        ids = log.log.id.tolist()
        times = np.array([known.get(job, time) for job, time in zip(ids, times.tolist(), strict=True)])
    other = replace(log.log, columns={**log.log.columns, "requested_time": times})
    return log.sequences_of(other, log.starts(log.test_seed))


@part
def repeated(log: PaperLog) -> SequenceSet:
    """Return the test sequences, each several times for runs of a stochastic policy."""
    sequences = log.drawn
    return replace(sequences, scenarios=tuple(each for each in sequences.scenarios for _ in range(REPEATS)))


@part
def of_seeds(log: PaperLog, seeds: int) -> SequenceSet:
    """Return the sequences of the published test with several seeds from 0 on, seed by seed."""
    return log.sequences_of(log.log, [start for seed in range(seeds) for start in log.starts(seed)])


# --- minimal cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A few jobs with different schedules under published and textbook semantics.

    Parameters
    ----------
    name : str
        Name of the case, M1 to M8.
    rule : str
        Rule under test.
    nodes : int
        Number of nodes of the machine.
    jobs : sequence of sequence of int
        Jobs in the order of submission: submission [s], run time [s], nodes, requested time [s].
    code : str
        Code base with this rule.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    published, textbook : sequence of int
        Start times of the published programs and of the textbook [s].
    """

    name: str
    rule: str
    nodes: int
    jobs: Sequence[Sequence[int]]
    code: str
    order: str
    backfilling: bool
    published: Sequence[int]
    textbook: Sequence[int]

    @property
    def scenario(self) -> Scenario:
        """Jobs on the machine, under the published event semantics."""
        submit, run, nodes, requested = zip(*self.jobs, strict=True)
        columns = {"submit_time": submit, "run_time": run, "nodes": nodes, "requested_time": requested}
        return Scenario(
            Workload(columns, machine_size=self.nodes, name=self.name), Setup(event_order=DirlabOrder())
        )

    @cached_property
    def schedules(self) -> tuple[Result, Result]:
        """Schedules of the published program, and of the same base scheduler under textbook semantics."""
        by_published, by_textbook = self._by(published), self._by(textbook)
        other = Scenario(self.scenario.workload)
        return self.scenario.simulation(by_published).run(), other.simulation(by_textbook).run()

    def _by(self, rules: Callable[..., Pipeline]) -> Pipeline:
        return rules(self.code, self.order, backfilling=self.backfilling)

    @property
    def equal(self) -> int:
        """Number of schedules, of the two, that are as expected."""
        pairs = zip(self.schedules, (self.published, self.textbook), strict=True)
        return sum(result.start_time.tolist() == list(times) for result, times in pairs)


CASES = tuple(
    Case(name, **case)
    for name, case in tomllib.loads(
        Path(__file__).with_name("minimal_cases.toml").read_text(encoding="utf-8")
    ).items()
)
"""All minimal cases, from the file beside this one."""

DRAWN = ("M1", "M2", "M4", "M5")
"""Cases drawn in the figure."""


# --- published numbers ------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """Position of values in the published tables: paper, log, and base scheduler."""

    code: str
    log: str
    order: str
    backfilling: bool

    @property
    def words(self) -> str:
        """Log and order."""
        return f"{self.log} {self.order.upper()}"

    @property
    def with_easy(self) -> str:
        """Log and order, and whether the base scheduler backfills."""
        return self.words + " + EASY" * self.backfilling


BASE, ACTUAL, AGENT = "", " ar", " agent"
"""Kinds of published means: of a base scheduler, with known run times (EASY-AR), of an agent beside it."""

RLSCHEDULER_ORDERS = ("fcfs", "wfp3", "unicef", "sjf", "f1")

COLUMNS: Mapping[str, Sequence[tuple[str, bool, str]]] = {
    "schedinspector": [("sjf", False, BASE)],
    "rlbackfilling": [
        *((order, True, BASE) for order in ("fcfs", "sjf", "wfp3", "f1")),
        *((order, True, ACTUAL) for order in ("fcfs", "sjf")),
    ],
    "rlscheduler": [(order, bf, BASE) for bf in (False, True) for order in RLSCHEDULER_ORDERS],
}
"""Order, backfilling and kind of the published means of base schedulers, by paper."""


def published_mean(cell: Cell, kind: str = BASE) -> float:
    """Return a published mean bounded slowdown, or NaN if there is none.

    RLScheduler's agent, which is itself the scheduler, is that of all orders.

    Examples
    --------
    >>> cell = Cell("schedinspector", "Lublin-1", "sjf", False)
    >>> published_mean(cell), published_mean(cell, AGENT), published_mean(cell._replace(backfilling=True))
    (333.19, 27.97, nan)
    """
    row = cell.log
    if cell.code == "schedinspector":
        has_it = cell.order == "sjf" and not cell.backfilling
        row = {"Lublin-1": "Lublin"}.get(row, row)
        column = {BASE: "base", AGENT: "own"}.get(kind, "") * has_it
    elif cell.code == "rlbackfilling":
        column = f"{cell.order}{kind}" * cell.backfilling
    else:
        row += ", with backfilling" * cell.backfilling
        column = {BASE: cell.order.upper(), AGENT: "agent"}.get(kind, "")
    return _table_of(cell.code).number(row, column)


def _table_of(code: str) -> Any:
    """Return the published table of a paper with its base schedulers."""
    tables = paper_files(PAPERS[code])[1]
    return tables["read_me" if code == "rlscheduler" else "table_4"]


def published_logs(code: str) -> list[str]:
    """Return the logs of a paper, in the order of its table.

    >>> published_logs("schedinspector")
    ['SDSC-SP2', 'CTC-SP2', 'Lublin-1', 'HPC2N']
    """
    logs = (row.partition(",")[0] for row in _table_of(code).rows)
    return list(dict.fromkeys("Lublin-1" if log == "Lublin" else log for log in logs))


# --- effects of rules -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effect:
    """Comparison of a scheduler with the published one.

    Parameters
    ----------
    mean : float
        Mean bounded slowdown.
    ratio : Mean
        Ratio of the mean to the published one, with its interval; sequences are paired.
    difference : Mean
        Mean difference from the published scheduler, sequence by sequence.
    p : float
        p-value of the paired t-test of the differences, corrected for all rows (Holm); NaN for the published
        row.
    same : bool
        Whether no sequence differs.
    """

    mean: float
    ratio: Mean
    difference: Mean
    p: float
    same: bool

    def words(self) -> str:
        """Return ratio and interval, bold if the corrected p-value is below 0.05.

        >>> Effect(33.4, Mean(0.1, 0.05, 0.15), Mean(-300.0, -310.0, -290.0), 0.001, False).words()
        '**0.10** [0.05, 0.15]'
        >>> Effect(33.4, Mean(1.0, 1.0, 1.0), Mean(0.0, 0.0, 0.0), 1.0, True).words()
        '='
        """
        if self.same:
            return "="
        ratio, low, high = map(_digits, (self.ratio.mean, self.ratio.low, self.ratio.high))
        ratio = f"**{ratio}**" if self.p < SIGNIFICANT else ratio
        return ratio if np.isnan(self.ratio.low) else f"{ratio} [{low}, {high}]"


def _digits(value: float) -> str:
    """Return a ratio with two decimals, or with two significant digits if it is below 0.1.

    >>> _digits(0.1), _digits(0.0173), _digits(12.345)
    ('0.10', '0.017', '12.35')
    """
    return f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"


def effects(values: Values) -> dict[str, Effect]:
    """Compare all rows with the published one, on the same sequences.

    Examples
    --------
    >>> found = effects({"published": np.array([2.0, 4.0]), "other": np.array([1.0, 3.0])})
    >>> found["other"].mean, round(found["other"].ratio.mean, 3), found["published"].same
    (2.0, 0.667, True)
    """
    base = values[PUBLISHED]
    tests = compared(base, {row: each for row, each in values.items() if row != PUBLISHED})
    return {
        row: Effect(
            mean=float(each.mean()),
            ratio=ratio_of_means(each, base),
            difference=mean_of(each - base),
            p=tests[row].t_test_holm if row in tests else float("nan"),
            same=bool(np.array_equal(each, base)),
        )
        for row, each in values.items()
    }


def share_of_gain(base: float, agent: float, other: float) -> float:
    """Return the gain of a policy over the base as a share of the agent's gain [%].

    NaN if no agent was published, or if the agent is not below its base.
    >>> round(share_of_gain(333.19, 27.97, 33.44), 1), share_of_gain(85.63, 105.59, 61.23)
    (98.2, nan)
    """
    return 100 * (base - other) / (base - agent) if agent < base else float("nan")


def _shares(base: float, agent: float, others: Mapping[str, float]) -> dict[str, str]:
    """Return the cells of the shares of other policies, by heading."""
    shares = {f"share: {row}": share_of_gain(base, agent, other) for row, other in others.items()}
    return {heading: "" if np.isnan(share) else f"{share:.0f} %" for heading, share in shares.items()}


def spread_of_ratios(means: Floats) -> float:
    """Return the factor that bounds 95 % of the ratios of two tests of a scheduler with different seeds.

    >>> spread_of_ratios(np.array([100.0, 100.0, 120.0]))
    1.2
    """
    ratios = means[:, None] / means[None, :]
    others = ratios[~np.eye(len(means), dtype=bool)]
    return float(np.percentile(np.maximum(others, 1 / others), 95, method="higher"))


def _interval(name: str, mean: Mean) -> dict[str, float]:
    return {name: mean.mean, f"{name}_low": mean.low, f"{name}_high": mean.high}


# --- measurements -----------------------------------------------------------------------------------------


class OwnFindings(PaperFindings):
    """Measurements of schedulers under published and textbook rules."""

    @cached_property
    def tested(self) -> dict[Cell, Values]:
        """Mean bounded slowdowns of the sequences of published tests, averaged over the runs of each."""
        return self._values(SOURCES, lambda sequences: len(sequences.scenarios))

    @cached_property
    def seeds(self) -> dict[Cell, Values]:
        """Means of published tests with many seeds."""
        return self._values(("seeds-rlbackfilling", "seeds-schedinspector"), lambda _: self.scale.seeds)

    def _values(self, protocols: Iterable[str], count: Callable[[SequenceSet], int]) -> dict[Cell, Values]:
        found: dict[Cell, Values] = {}
        for scores in self.scores:
            contest = scores.contest
            if contest.protocol in protocols:
                order, backfilling = (contest.variables[name] for name in ("order", "backfilling"))
                cell = Cell(contest.plan.paper, contest.trace.name, order, backfilling)
                shape = count(contest.sequences), -1
                found[cell] = {row: scores.of(row, BSLD).reshape(shape).mean(axis=1) for row in scores.values}
        return found

    @property
    def scale(self) -> Any:
        """Size preset."""
        return self.plan.traces.scale

    @property
    def logs(self) -> list[str]:
        """Names of the logs."""
        return list(dict.fromkeys(cell.log for cell in self.tested))

    def mean(self, cell: Cell, row: str = PUBLISHED) -> float:
        """Return a mean, or NaN if it was not simulated."""
        values = self.tested.get(cell, {})
        return float(values[row].mean()) if row in values else float("nan")

    def cells(self, code: str, *, backfilling: bool) -> list[Cell]:
        """Return the cells of a paper, by log."""
        return [cell for cell in self.tested if (cell.code, cell.backfilling) == (code, backfilling)]

    @property
    def has_agents(self) -> bool:
        """Whether agents were published for any of the logs."""
        return any(not set(published_logs(code)).isdisjoint(self.logs) for code in SOURCES)

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report; figures and a table of all effects are written to a folder."""
        import pandas

        rows = [
            {
                **cell._asdict(),
                "backfilling": "yes" if cell.backfilling else "no",
                "scheduler": row,
                "sequences": len(values[row]),
                "mean_bounded_slowdown": effect.mean,
                **_interval("ratio", effect.ratio),
                **_interval("difference", effect.difference),
                "p_paired_t_holm": effect.p,
            }
            for cell, values in self.tested.items()
            for row, effect in effects(values).items()
        ]
        table = pandas.DataFrame(rows).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_bytes(pictures / "effects.csv", table.encode())
        return super().conclusion(pictures)

    # --- published numbers ------------------------------------------------------------------------------

    def recomputed(self, cell: Cell, kind: str = BASE) -> float:
        """Return the measured value of a published mean of a base scheduler."""
        return self.mean(cell, ESTIMATES if kind == ACTUAL else PUBLISHED)

    def recomputed_table(self, code: str) -> Table:
        """Return the published numbers of a paper, with differing measured ones in brackets."""
        rows = []
        for log in [log for log in published_logs(code) if log in self.logs]:
            row = {"log": log}
            for order, bf, kind in COLUMNS[code]:
                heading = order.upper() + " + EASY" * bf + "-AR" * (kind == ACTUAL)
                row[heading] = self._beside(Cell(code, log, order, bf), kind)
            rows.append(row)
        return Table.of(rows)

    def _beside(self, cell: Cell, kind: str) -> str:
        theirs, ours = published_mean(cell, kind), self.recomputed(cell, kind)
        differs = not np.isnan(theirs) and not same_digits(ours, theirs)
        return number(theirs) + f" ({number(ours)})" * differs

    def targets(self) -> Iterator[Target]:
        """Yield the published numbers, and the number of expected schedules, of two, for each case."""
        yield from self.digit_targets()
        for case in CASES:
            what = f"{case.name}, {case.rule}: schedules equal, published and textbook"
            yield Target(what, 2.0, float(case.equal), None, case.equal == 2)

    def digit_targets(self) -> Iterator[Target]:
        """Yield the number of published values reproduced to the digit, for each source and log."""
        for code, source in SOURCES.items():
            for log in self.logs:
                cells = [(Cell(code, log, order, bf), kind) for order, bf, kind in COLUMNS[code]]
                pairs = [(self.recomputed(*each), published_mean(*each)) for each in cells]
                known = [pair for pair in pairs if not np.isnan(pair[1])]
                if known:
                    equal = sum(same_digits(*pair) for pair in known)
                    what = f"{source}, {log}: numbers equal to the digit"
                    yield Target(what, float(len(known)), float(equal), None, equal == len(known))

    # --- one rule at a time -----------------------------------------------------------------------------

    def rules_table(self, code: str, *, backfilling: bool) -> Table:
        """Return the effect of each rule: the ratio of mean bounded slowdowns to the published one."""
        cells = [cell for cell in self.cells(code, backfilling=backfilling) if HEAD in self.tested[cell]]
        shown = [row for row in RULES if any(row in self.tested[cell] for cell in cells)]
        rows = []
        for cell in cells:
            values = {row: each for row, each in self.tested[cell].items() if row in (PUBLISHED, *shown)}
            found = effects(values)
            words = {row: found[row].words() if row in found else "" for row in shown}
            rows.append({"scheduler": cell.words, PUBLISHED: number(found[PUBLISHED].mean), **words})
        return Table.of(rows)

    def as_coded(self) -> Iterator[tuple[Cell, dict[str, Effect]]]:
        """Yield the effects of WFP3 and UNICEF as meant, and as meant under textbook semantics."""
        for cell in self._in_read_me():
            if cell.order in AS_CODED:
                yield cell, effects(self.tested[cell])

    def _in_read_me(self) -> list[Cell]:
        return [cell for bf in (False, True) for cell in self.cells("rlscheduler", backfilling=bf)]

    # --- untrained policies -----------------------------------------------------------------------------

    def inspector_table(self, *, published: bool) -> Table:
        """Return SchedInspector's bases and agents beside untrained policies.

        Parameters
        ----------
        published : bool
            Whether to show the rows with a published agent, or else all other rows.
        """
        rows = []
        for cell in self.cells("schedinspector", backfilling=False):
            agent = published_mean(cell, AGENT)
            if math.isnan(agent) is published or cell.order == "fcfs":
                continue
            base, unfit, free, anew = (
                self.mean(cell, row) for row in (PUBLISHED, UNFIT, UNFIT_FREE, TEXTBOOK)
            )
            easy = self.mean(cell._replace(backfilling=True), TEXTBOOK)
            shares = {UNFIT: unfit, "not committed": anew}
            rows.append(
                {
                    "base": cell.words,
                    "committed": number(base),
                    **({"*agent*": number(agent)} if published else {}),
                    UNFIT: number(unfit),
                    UNFIT_FREE: number(free),
                    "not committed": number(anew),
                    "not committed + EASY": number(easy),
                    **(_shares(base, agent, shares) if published else {}),
                }
            )
        return Table.of(rows)

    def backfiller_table(self) -> Table:
        """Return RLBackfilling's EASY and agents beside untrained policies."""
        ruled = ("unguarded random", UNGUARDED, "guarded random", GUARDED, TEXTBOOK, EASY_SJF)
        rows = []
        for cell in self.cells("rlbackfilling", backfilling=True):
            if cell.order in ("fcfs", "sjf"):
                base, agent = self.mean(cell), published_mean(cell, AGENT)
                means = {row: self.mean(cell, row) for row in ruled}
                learnable = {row: means[row] for row in (UNGUARDED, GUARDED, EASY_SJF)}
                known = {"base": cell.words, "published EASY": number(base), "*agent*": number(agent)}
                ours = {row: number(mean) for row, mean in means.items()}
                rows.append({**known, **ours, **_shares(base, agent, learnable)})
        return Table.of(rows)

    def least(self, log: str, row: str, *, backfilling: bool) -> tuple[float, str]:
        """Return the lowest mean of RLScheduler's five base schedulers in a row, and the scheduler's name."""
        cells = (Cell("rlscheduler", log, order, backfilling) for order in RLSCHEDULER_ORDERS)
        return min((self.mean(cell, row), cell.order.upper()) for cell in cells)

    def read_me_table(self) -> Table:
        """Return RLScheduler's agents beside its best base scheduler, published and textbook."""
        rows = []
        for cell in self._in_read_me():
            if cell.order == RLSCHEDULER_ORDERS[0]:
                agent = published_mean(cell, AGENT)
                old, new = (
                    self.least(cell.log, row, backfilling=cell.backfilling) for row in (PUBLISHED, TEXTBOOK)
                )
                rows.append(
                    {
                        "log": cell.log + " + EASY" * cell.backfilling,
                        "*agent*": number(agent),
                        "best as published": f"{number(old[0])} ({old[1]})",
                        "best by the textbook": f"{number(new[0])} ({new[1]})",
                        "*agent* / that": number(agent / new[0]),
                    }
                )
        return Table.of(rows)

    # --- seeds and cases --------------------------------------------------------------------------------

    def seeds_table(self) -> Table:
        """Return the variation of the means of published tests over seeds."""
        rows = []
        for cell, values in self.seeds.items():
            means, anew, paper = values[PUBLISHED], values[TEXTBOOK], published_mean(cell)
            mean, spread = float(means.mean()), float(means.std(ddof=1))
            low, high = np.percentile(anew / means, [2.5, 97.5])
            below = "" if np.isnan(paper) else f"{np.count_nonzero(means < paper)} of {len(means)}"
            rows.append(
                {
                    "scheduler": cell.with_easy,
                    "mean over seeds": number(mean),
                    "standard deviation": number(spread),
                    "of the mean": f"{100 * spread / mean:.0f} %",
                    "least": number(float(means.min())),
                    "most": number(float(means.max())),
                    "*paper*": number(paper),
                    "seeds below it": below,
                    "two seeds differ by a factor of": f"{spread_of_ratios(means):.2f}",
                    "textbook / published": f"{anew.mean() / mean:.2f}",
                    "95 % of seeds": f"{low:.2f} to {high:.2f}",
                }
            )
        return Table.of(rows)

    # --- figures ----------------------------------------------------------------------------------------

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        drawn = {f"{case.name}: {case.rule}": case.schedules for case in CASES if case.name in DRAWN}
        yield "cases", draw_cases(drawn)
        modes = {"without backfilling": False, "with EASY backfilling": True}
        rows = {"published rules": PUBLISHED, "textbook": TEXTBOOK}
        both = {words: self.cells("schedinspector", backfilling=mode) for words, mode in modes.items()}
        panels = {
            words: {cell.words: {kind: self.mean(cell, row) for kind, row in rows.items()} for cell in cells}
            for words, cells in both.items()
        }
        yield "rules", draw_means(panels, stacked=False)
        seeds = {cell: Seeds(each[PUBLISHED], published_mean(cell)) for cell, each in self.seeds.items()}
        yield "seeds", draw_seeds({cell.with_easy: each for cell, each in seeds.items()})
        if self.has_agents:
            agents = {source: dict(self._beside_agents(code)) for code, source in SOURCES.items()}
            drawn_agents = {source: each for source, each in agents.items() if each}
            yield "agents", draw_means(drawn_agents, stacked=True)

    def _beside_agents(self, code: str) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield the lines of a paper: its published agents beside rules without training."""
        rows = {"schedinspector": (UNFIT, TEXTBOOK), "rlbackfilling": (UNGUARDED, GUARDED, EASY_SJF)}
        if code == "rlscheduler":
            yield from self._beside_rlscheduler()
            return
        for log in published_logs(code):
            for cell in self.tested:
                agent = published_mean(cell, AGENT)
                if (cell.code, cell.log) == (code, log) and not np.isnan(agent):
                    means = {row: self.mean(cell, row) for row in rows[code]}
                    yield cell.words, {"published rules": self.mean(cell), "published agent": agent, **means}

    def _beside_rlscheduler(self) -> Iterator[tuple[str, dict[str, float]]]:
        for row in _table_of("rlscheduler").rows:
            log, _, backfilling = row.partition(", ")
            if log in self.logs:
                cell = Cell("rlscheduler", log, RLSCHEDULER_ORDERS[0], bool(backfilling))
                old, new = (
                    self.least(log, each, backfilling=cell.backfilling)[0] for each in (PUBLISHED, TEXTBOOK)
                )
                means = {"published rules": old, "textbook": new}
                means["published agent"] = published_mean(cell, AGENT)
                yield f"{log} best of five{' + EASY' * cell.backfilling}", means
