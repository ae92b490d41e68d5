"""Callbacks of a training run, called with its reports: for trackers and searches over settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hpcsimkit.agents.training.learning_curve import Report

__all__ = ["Callback", "Pruning", "call_all"]


class Callback:
    """Observer of a training run; subclasses override the methods that they need.

    The calls come after a round has been counted and before its checkpoint. An exception ends the training;
    the last checkpoint stays. A resumed run calls only for rounds that it runs itself. With several workers,
    each worker calls its own callbacks.

    Examples
    --------
    >>> class Scores(Callback):
    ...     def on_validation(self, report):
    ...         print(report.steps, report.validation)
    >>> call_all([Scores()], Report(32, 64, 1, -2.5, 1000.0, float("nan"), {}))
    >>> call_all([Scores()], Report(64, 64, 2, -2.0, 1000.0, -1.5, {}))
    64 -1.5
    """

    def on_update(self, report: Report) -> None:
        """Called after each round: a rollout and an update."""

    def on_validation(self, report: Report) -> None:
        """Called after :meth:`on_update` if the round had a validation; the report has its score."""


class Pruning(Callback):
    """Callback that shows each validation to a trial of Optuna, and ends the training if it is to be pruned.

    Parameters
    ----------
    trial : optuna.Trial
        Trial of a study that maximises the score; its steps are those of the training.

    Raises
    ------
    optuna.TrialPruned
        From :meth:`on_validation`: the pruner of the study ends the trial.
    """

    def __init__(self, trial: Any) -> None:
        self.trial = trial

    def on_validation(self, report: Report) -> None:
        """Report the score; end the trial if the pruner says so."""
        from optuna import TrialPruned

        self.trial.report(report.validation, report.steps)
        if self.trial.should_prune():
            raise TrialPruned


def call_all(callbacks: Sequence[Callback], report: Report) -> None:
    """Call callbacks, in their order, with the report of a round."""
    for callback in callbacks:
        callback.on_update(report)
        if not math.isnan(report.validation):
            callback.on_validation(report)
