"""How well are run times predicted? Predictors that watch a run and learn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Asked, Case
from hpcsimkit.experiments.console import number_text, plain_table
from hpcsimkit.experiments.questions.question import (
    Answer,
    OfCases,
    ask,
    columns_of,
    read_seen,
    table_of,
    write_seen,
)
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.predicting.catalogue import predictor_named
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.quality import Forecasts, quality_table

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Predicted", "PredictionQuestion", "predict"]

PREDICTORS = ("requested", "last-two", "history", "regression", "mixture")
"""Default predictors: those that need no extra."""


@dataclass(frozen=True, repr=False)
class Predicted(Answer):
    """Quality of predicted run times.

    The table is that of :func:`~hpcsimkit.policies.predicting.quality.quality_table`.
    """

    stem = "predictions"
    names = ("predictions",)
    measured = (
        *("mean_absolute_error", "under_predicted_share", "pinball_loss"),
        *("calibration_error", "predicted_work_ratio", "median_ratio"),
    )

    table: pandas.DataFrame

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``predictions``."""
        return {"predictions": self.table}

    @property
    def measures(self) -> Mapping[str, float]:
        """Measures of each predictor for all jobs."""
        everyone = self.table[self.table["users"] == "all"]
        return {
            f"{row[0]}_{name}": float(value)
            for row in everyone.itertuples(index=False)
            for name, value in zip(self.measured, row[3:9], strict=True)
        }

    def figure(self) -> Figure:
        """Return a figure of the calibration of the quantiles."""
        from hpcsimkit.reports.answers import draw_predictions

        return draw_predictions(self.table)

    def lines(self) -> Iterator[str]:
        """Yield the measures for all jobs, and the errors by class of users."""
        table, measures = self.table, list(self.table.columns[3:9])
        everyone = table[table["users"] == "all"]
        rows = [[row[0], *map(number_text, row[1:])] for row in everyone[["predictor", *measures]].values]
        yield plain_table(["predictor", *measures], rows)
        errors = table.pivot(index="predictor", columns="users", values=measures[0])
        classes = [users for users in table["users"].unique() if users != "all"]
        rows = [[name, *map(number_text, errors.loc[name, classes])] for name in everyone["predictor"]]
        yield ""
        yield plain_table([measures[0], *(f"{users} users" for users in classes)], rows)


@dataclass(frozen=True, kw_only=True)
class PredictionQuestion(OfCases):
    """How well are run times predicted?

    Parameters
    ----------
    case : Case
        The case.
    predictors : sequence of str, or mapping of str to Predictor
        Names of predictors, or predictors by name.
    """

    answers = Predicted

    predictors: Sequence[str] | Mapping[str, Predictor] = PREDICTORS

    def __post_init__(self) -> None:
        names = list(self.predictors)
        if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
            raise UsageError(f"predictor {twice!r} is named twice")
        self._named()

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        return {"predictors": list(self.predictors)}

    def look(self, case: Case, folder: Path) -> None:
        """Simulate, and write the measures of the predictors."""
        forecasts = Forecasts(self._named(), case.begin)
        result = case.run(forecasts)
        write_seen(folder, **columns_of(quality_table(forecasts, result.workload)))

    def answer(self, store: Store) -> Predicted:
        """Return the measures."""
        return Predicted(table_of(read_seen(store.folder(self.tasks[0]))))

    def _named(self) -> Mapping[str, Predictor]:
        named = self.predictors
        return named if isinstance(named, Mapping) else {name: predictor_named(name) for name in named}


def predict(
    workload: Asked | Case,
    policy: str | Policy = "fcfs+easy",
    cluster: AnyCluster | int | None = None,
    *,
    predictors: Sequence[str] | Mapping[str, Predictor] = PREDICTORS,
    engine: Engine | None = None,
    **options: Any,
) -> Predicted:
    """Measure how well run times are predicted.

    Each predictor predicts each job when it arrives, and learns from it when it has ended.

    Parameters
    ----------
    workload, policy, cluster, **options
        As in :meth:`~hpcsimkit.experiments.comparison.case.Case.of`, or a case.
    predictors : sequence of str, or mapping of str to Predictor
        Names of predictors, or predictors by name; by default all that need no extra.
    engine : Engine, optional
        Engine that executes the simulation; by default this process.

    Raises
    ------
    UsageError
        A name or an option is invalid.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> columns = {"submit_time": [0, 90], "run_time": [30, 60], "requested_time": [60, 60], "nodes": [1, 1]}
    >>> answer = predict(Workload(columns, machine_size=1), predictors=["requested"])
    >>> answer.table["mean absolute error [s]"].tolist()[0]
    15.0
    """
    case = Case.of(workload, policy, cluster, **options)
    found: Predicted = ask(PredictionQuestion(case=case, predictors=predictors), engine)
    return found
