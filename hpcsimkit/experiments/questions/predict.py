"""How well are run times predicted? Predictors that watch a run and learn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.experiments.console import number_text, plain_table
from hpcsimkit.experiments.questions.question import Answer, Asked, Case
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.predicting.catalogue import predictor_named
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.quality import Forecasts, quality_table

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Predicted", "predict"]

PREDICTORS = ("requested", "last-two", "history", "regression", "mixture")
"""Default predictors: those that need no extra."""


@dataclass(frozen=True)
class Predicted(Answer):
    """Quality of predicted run times.

    The table is that of :func:`~hpcsimkit.policies.predicting.quality.quality_table`.
    """

    stem = "predictions"
    names = ("predictions",)

    table: pandas.DataFrame

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``predictions``."""
        return {"predictions": self.table}

    def plot(self) -> Figure:
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


def predict(
    workload: Asked | Case,
    policy: str | Policy = "fcfs+easy",
    cluster: AnyCluster | int | None = None,
    *,
    predictors: Sequence[str] | Mapping[str, Predictor] = PREDICTORS,
    **options: Any,
) -> Predicted:
    """Measure how well run times are predicted.

    Each predictor predicts each job when it arrives, and learns from it when it has ended.

    Parameters
    ----------
    workload, policy, cluster, **options
        As in :meth:`~hpcsimkit.experiments.questions.question.Case.of`, or a case.
    predictors : sequence of str, or mapping of str to Predictor
        Names of predictors, or predictors by name; by default all that need no extra.

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
    if not isinstance(predictors, Mapping):
        predictors = {name: predictor_named(name) for name in predictors}
    forecasts = Forecasts(predictors)
    case = workload if isinstance(workload, Case) else Case.of(workload, policy, cluster, **options)
    result = case.run(forecasts)
    return Predicted(quality_table(forecasts, result.workload))
