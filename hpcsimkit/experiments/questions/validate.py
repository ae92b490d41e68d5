"""Does the model agree with the record? A simulation beside the recorded schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.experiments.comparison.case import Asked, Case
from hpcsimkit.experiments.comparison.policy_run import RESULT
from hpcsimkit.experiments.console import grouped, number_text, plain_table
from hpcsimkit.experiments.questions.question import Answer, OfCases, ask
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.result import Result
from hpcsimkit.results.validation import TOLERANCE, Validation
from hpcsimkit.results.wait_causes import CAUSES as CAUSES_OF_WAITS
from hpcsimkit.results.wait_causes import WaitCauses

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Validated", "ValidationQuestion", "validate"]

HEADINGS = ("waits", "jobs", "recorded [s]", "simulated [s]", "ratio", "Wasserstein [s]", "KS")
HEADINGS_OF_CAUSES = (
    "cause of waits",
    "the job waits for",
    "recorded [s]",
    "share",
    "simulated [s]",
    "share",
)
OF_MARKS = ["part", "measure", "value", "good", "fair", "grade"]


@dataclass(frozen=True, repr=False)
class Validated(Answer):
    """Agreement of a simulation with the recorded schedule."""

    stem = "validation"
    names = ("validation", "agreement", "residue", "causes")
    measured = (
        *("median_start_error", "p90_start_error", "share_within_10_min"),
        *("share_started_as_recorded", "waits_ks_distance", "mean_wait_factor", "moved_use_share"),
    )

    validation: Validation
    residue: Residue
    causes: WaitCauses

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Waits by group (``validation``), measures with grades (``agreement``), and causes.

        Those of the errors are ``residue``, and those of the waits ``causes``.
        """
        import pandas

        marks = pandas.DataFrame([(*mark, mark.grade) for mark in self.validation.marks], columns=OF_MARKS)
        return {
            "validation": self.validation.table,
            "agreement": marks,
            "residue": self.residue.table,
            "causes": self.causes.table,
        }

    @property
    def summary(self) -> str:
        """Grade, those of its parts, and the tolerance of waits."""
        validation = self.validation
        parts = ", ".join(f"{part} {grade}" for part, grade in validation.grades.items())
        return f"{validation.grade} ({parts}; waits up to {validation.tolerance:g} s apart are equal)"

    @property
    def measures(self) -> Mapping[str, float]:
        """Errors of the start times, and the measures that are graded."""
        values = [*self.validation.summary.values(), *(mark.value for mark in self.validation.marks)]
        return dict(zip(self.measured, values, strict=True))

    def figure(self) -> Figure:
        """Return a figure of the queue and the use over time, and of the causes of the errors."""
        from hpcsimkit.reports.answers import draw_validation

        result = self.validation.result
        return draw_validation(self.residue, f"{result.policy} on {result.workload.name}: {self.summary}")

    def lines(self) -> Iterator[str]:
        """Yield the table of waits, the errors of the start times, their causes, and the grades."""
        validation, tables = self.validation, dict[str, Any](self.tables)
        waits = tables["validation"]
        rows = [
            [row.group if row.by == "all" else f"{row.by} {row.group}", grouped(row.jobs)]
            + [number_text(value if value == value else None) for value in row[3:]]
            for row in waits[waits["by"] != "hour"].itertuples(index=False)
        ]
        yield plain_table(HEADINGS, rows)
        yield from self._lines_of_causes(tables["causes"])
        median, most, near = validation.summary.values()
        yield (
            f"start times: {number_text(median)} s off in the median, {number_text(most)} s at 90 %; "
            f"{100 * near:.1f} % of {grouped(len(validation.error))} jobs within 10 min"
        )
        rows = [
            [CAUSES.get(row.cause, row.cause), grouped(row.jobs), f"{row.share:.1%}"]
            for row in tables["residue"].itertuples(index=False)
            if f"{row.share:.1%}" != "0.0%"
        ]
        if rows:
            yield plain_table(("what explains the errors", "jobs > 10 min off", "share of the error"), rows)
        yield from self.residue.sentences()
        marks = [
            [row.part, row.measure, *map(number_text, (row.value, row.good, row.fair)), row.grade]
            for row in tables["agreement"].itertuples(index=False)
        ]
        yield plain_table(("agreement", *OF_MARKS[1:]), marks)
        yield f"agreement of {validation.result.policy} with the record: {self.summary}"

    def _lines_of_causes(self, causes: pandas.DataFrame) -> Iterator[str]:
        """Yield the waits of all jobs by cause, and what the log states of them."""
        every = causes[causes["by"] == "all"]
        names, recorded, simulated = (every[name].tolist() for name in ("cause", "recorded", "simulated"))
        sums = sum(recorded), sum(simulated)
        rows = [
            [cause, CAUSES_OF_WAITS[cause]]
            + [
                text
                for seconds, total in zip(both, sums, strict=True)
                for text in (number_text(seconds), f"{seconds / total:.1%}" if total else "")
            ]
            for cause, *both in zip(names, recorded, simulated, strict=True)
        ]
        if rows:
            yield plain_table(HEADINGS_OF_CAUSES, rows)
        yield from self.causes.sentences()


@dataclass(frozen=True, kw_only=True)
class ValidationQuestion(OfCases):
    """Does a simulation agree with the recorded schedule?

    Parameters
    ----------
    case : Case
        The case.
    tolerance : float, optional
        Difference of two waits up to which they are equal [s]; by default the scheduling interval, or 60 s.
    """

    answers = Validated

    tolerance: float | None = None

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        return {"tolerance": self._tolerance}

    def look(self, case: Case, folder: Path) -> None:
        """Simulate, and write the result."""
        case.run().save(folder / RESULT)

    def answer(self, store: Store) -> Validated:
        """Return the agreement."""
        cluster = self.case.setup.cluster
        result = Result.load(store.folder(self.tasks[0]) / RESULT)
        validation = Validation(result, self._tolerance, self.case.begin)
        described = cluster if isinstance(cluster, Machines | Partitions) else None
        return Validated(validation, Residue(validation, described), WaitCauses(validation, described))

    @property
    def _tolerance(self) -> float:
        return (self.case.setup.period or TOLERANCE) if self.tolerance is None else self.tolerance


def validate(
    workload: Asked | Case,
    policy: str | Policy = "fcfs+easy",
    cluster: AnyCluster | int | None = None,
    *,
    tolerance: float | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Validated:
    """Compare a simulation with the recorded schedule.

    Parameters
    ----------
    workload, policy, cluster, **options
        As in :meth:`~hpcsimkit.experiments.comparison.case.Case.of`, or a case.
    tolerance : float, optional
        Difference of two waits up to which they are equal [s]; by default the scheduling interval, or 60 s.
    engine : Engine, optional
        Engine that executes the simulation; by default this process.

    Raises
    ------
    UsageError
        A name or an option is invalid.
    WorkloadError
        The log has no recorded waits.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> columns = {"submit_time": [0, 10], "run_time": [900, 9], "nodes": [4, 4]}
    >>> recorded = Workload({**columns, "recorded_wait_time": [0, 890]}, machine_size=4)
    >>> validate(recorded, "fcfs").validation.grade
    'good'
    """
    case = Case.of(workload, policy, cluster, **options)
    found: Validated = ask(ValidationQuestion(case=case, tolerance=tolerance), engine)
    return found
