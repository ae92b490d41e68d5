"""Which clocks and plan reproduce the record? Chosen on the first part of a log, judged on the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.console import number_text, plain_table
from hpcsimkit.experiments.questions.question import Answer, OfCases, read_seen, write_seen
from hpcsimkit.experiments.questions.what_if import changed_case
from hpcsimkit.results.validation import TOLERANCE, Validation, ks_distance
from hpcsimkit.slurm.rules import Clocks
from hpcsimkit.slurm.scheduler import SlurmScheduler

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Calibrated", "CalibrationQuestion"]

GIVEN = "as given"
"""Name of the values that are given."""

FEWEST = 50
"""Number of compared jobs that each part needs at least."""

PERIODS = (10, 30, 60, 300)
"""Scheduling intervals of a policy that are tried beside the given one [s]."""

PLANS = ("easy", "easy-k(20)", "conservative-replan")
"""Backfilling that is tried in place of that of a policy."""

SHOWN = 5
"""Number of values that are printed besides those that are given."""

HEADINGS = ("values", "KS, first part", "ratio", "distance", "KS, second part", "ratio", "distance")

Floats = NDArray[np.float64]


class Waits(NamedTuple):
    """Waits of the compared jobs of a part [s]: on record, and simulated."""

    recorded: Floats
    simulated: Floats

    def agreement(self, tolerance: float) -> tuple[float, float, float]:
        """Return the KS distance, the ratio of the mean waits, and the distance by which values are chosen.

        That is the KS distance plus the logarithm of the factor between the means, to both of which the
        tolerance is added: of waits of seconds, a factor says nothing.

        >>> found = Waits(np.array([0.0, 300.0]), np.array([0.0, 600.0])).agreement(60)
        >>> [round(value, 3) for value in found]
        [0.5, 2.0, 1.039]
        """
        first, second = float(self.recorded.mean()), float(self.simulated.mean())
        ks = ks_distance(self.recorded, self.simulated, tolerance)
        least = max(tolerance, 1.0)
        return (
            ks,
            second / first if first else float("nan"),
            ks + abs(log((second + least) / (first + least))),
        )


@dataclass(frozen=True, repr=False)
class Calibrated(Answer):
    """Agreement of simulations with the record, for values of the clocks and of the plan.

    Parameters
    ----------
    parts : mapping of str to (Waits, Waits)
        Waits of the jobs of the first and of the second part, by values; the given ones are the first.
    tolerance : float
        Difference of two waits up to which they are equal [s].
    heading : str
        Title of the picture. Default: none.
    """

    stem = "calibration"
    names = ("calibration",)
    measured = ("ks_as_given", "ratio_as_given", "ks_chosen", "ratio_chosen")

    parts: Mapping[str, tuple[Waits, Waits]]
    tolerance: float
    heading: str = ""

    @cached_property
    def table(self) -> pandas.DataFrame:
        """Agreement by values, the nearest in the first part on top.

        Columns: ``values``; ``ks_first, ratio_first, distance_first`` and ``ks_second, ratio_second,
        distance_second``: see :meth:`Waits.agreement`; ``jobs_first, jobs_second``; ``chosen``, 1 for the
        values that are chosen.
        """
        import pandas

        rows = []
        for values, parts in self.parts.items():
            numbers = [number for part in parts for number in part.agreement(self.tolerance)]
            rows.append([values, *numbers, *(len(part.recorded) for part in parts)])
        names = [f"{name}_{part}" for part in ("first", "second") for name in ("ks", "ratio", "distance")]
        table = pandas.DataFrame(rows, columns=["values", *names, "jobs_first", "jobs_second"])
        table = table.sort_values("distance_first", kind="stable", ignore_index=True)
        return table.assign(chosen=[1, *[0] * (len(table) - 1)])

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``calibration``."""
        return {"calibration": self.table}

    @property
    def chosen(self) -> str:
        """The values that are nearest to the record in the first part; the given ones if none is nearer."""
        return str(self.table["values"].iloc[0])

    @property
    def measures(self) -> Mapping[str, float]:
        """KS distance and ratio of the mean waits in the second part, as given and as chosen."""
        rows = (self._row(values) for values in (GIVEN, self.chosen))
        numbers = [number for row in rows for number in (row.ks_second, row.ratio_second)]
        return dict(zip(self.measured, map(float, numbers), strict=True))

    def _row(self, values: str) -> Any:
        return self.table[self.table["values"] == values].iloc[0]

    def figure(self) -> Figure:
        """Return a figure of the distributions of the waits in the second part."""
        from hpcsimkit.reports.answers import draw_calibration

        given, chosen = self.parts[GIVEN][1], self.parts[self.chosen][1]
        waits = {"on record": given.recorded, GIVEN: given.simulated, self.chosen: chosen.simulated}
        return draw_calibration(waits, self.heading)

    def lines(self) -> Iterator[str]:
        """Yield the agreement of the given values and of the nearest ones, and what was chosen."""
        table = self.table
        shown = table[(table["values"] == GIVEN) | (table.index < SHOWN)]
        rows = [[row[0], *map(number_text, row[1:7])] for row in shown.itertuples(index=False)]
        yield plain_table(HEADINGS, rows)
        first = table.iloc[0]
        yield (
            f"{len(table)} values tried on the first {first.jobs_first:,} jobs, and judged on the other "
            f"{first.jobs_second:,}; distance: KS + |log of the factor between the mean waits|"
        )
        given, chosen = self._row(GIVEN), self._row(self.chosen)
        if self.chosen == GIVEN:
            yield "no other values are nearer to the record on the first part: the given ones are kept"
            return
        nearer = "nearer" if chosen.distance_second < given.distance_second else "no nearer"
        yield (
            f"chosen: {self.chosen}; on the second part it is {nearer} to the "
            f"record than the given values: distance {number_text(chosen.distance_second)} against "
            f"{number_text(given.distance_second)}"
        )


@dataclass(frozen=True, kw_only=True)
class CalibrationQuestion(OfCases):
    """Which clocks and plan reproduce the record best?

    Of Slurm as configured, ``bf_interval``, ``bf_max_job_test``, ``default_queue_depth`` and
    ``sched_interval`` are varied; of another policy, the scheduling interval and the backfilling.

    Parameters
    ----------
    case : Case
        The case.
    tolerance : float, optional
        Difference of two waits up to which they are equal [s]; by default 60 s.
    """

    answers = Calibrated
    has_trace = False

    tolerance: float | None = None

    def __post_init__(self) -> None:
        wait = self.case.jobs.recorded_wait_time
        known = int((wait >= 0).sum())
        if known < 2 * FEWEST:
            raise UsageError(
                f"{self.case.jobs.name}: --calibrate needs at least {2 * FEWEST} jobs with recorded waits, "
                f"{FEWEST} for each part of the log, found {known}"
            )

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        return {"calibrate": True, "tolerance": self._tolerance}

    @property
    def _tolerance(self) -> float:
        return TOLERANCE if self.tolerance is None else self.tolerance

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The case with each of the values, by these."""
        policy = self.case.policy
        if isinstance(policy, SlurmScheduler):
            each = [", ".join(values) for values in _of_slurm(policy.profile.clocks)]
            return {GIVEN: self.case} | {
                values: changed_case(self.case, [f"slurm.{value}" for value in values.split(", ")])
                for values in each
            }
        return {GIVEN: self.case} | {
            f"{plan}, every {period} s" if period else plan: replace(
                self.case, name=plan, options=replace(self.case.setup, period=period)
            )
            for plan, period in _of_policy(self.case)
        }

    def look(self, case: Case, folder: Path) -> None:
        """Simulate, and write the waits of both parts."""
        found = Validation(case.run(), self._tolerance, case.begin)
        submit = found.result.submit_time[found.jobs]
        write_seen(folder, submit=submit, recorded=found.recorded, simulated=found.simulated)

    def answer(self, store: Store) -> Calibrated:
        """Return the agreement."""
        tasks = {task.name: task for task in self.tasks}
        parts = {values: _parts(read_seen(store.folder(task))) for values, task in tasks.items()}
        heading = f"{self.case.name} on {self.case.jobs.name}, second part"
        return Calibrated(parts, self._tolerance, heading)


def _parts(arrays: Mapping[str, Any]) -> tuple[Waits, Waits]:
    """Return the waits of the first and of the second half of the jobs, by submission."""
    half = arrays["submit"] > np.sort(arrays["submit"])[(len(arrays["submit"]) - 1) // 2]
    first, second = (Waits(arrays["recorded"][part], arrays["simulated"][part]) for part in (~half, half))
    return first, second


def _of_slurm(clocks: Clocks) -> Iterator[list[str]]:
    """Yield values of the configuration that differ from the present ones."""
    interval, tested = clocks.bf_interval, clocks.bf_max_job_test
    intervals = dict.fromkeys([interval, *(max(int(interval * by), 1) for by in (0.25, 0.5, 2, 4))])
    depths = dict.fromkeys([tested, *(max(int(tested * by), 1) for by in (0.2, 5))])
    for one, other in product(intervals if interval else [interval], depths if tested else [tested]):
        values = [("bf_interval", one, interval), ("bf_max_job_test", other, tested)]
        if changed := [f"{name}={value}" for name, value, present in values if value != present]:
            yield changed
    yield [f"default_queue_depth={max(clocks.default_queue_depth // 5, 1)}"]
    for seconds in (max(clocks.sched_interval // 2, 1), 2 * clocks.sched_interval):
        yield [f"sched_interval={seconds}"]


def _of_policy(case: Case) -> Iterator[tuple[str, int | None]]:
    """Yield names of policies with other backfilling, and scheduling intervals, that are not those given."""
    order, _, last = case.name.rpartition("+")
    named = case.given is None and order and last.startswith(("easy", "conservative"))
    plans = [f"{order}+{plan}" for plan in PLANS] if named else []
    period = case.setup.period
    for pair in product(dict.fromkeys([case.name, *plans]), dict.fromkeys([period, *PERIODS])):
        if pair != (case.name, period):
            yield pair
