"""Questions as cells of a sweep: what is asked, and the numbers that sum up each answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hpcsimkit._version import __version__
from hpcsimkit.engine.identity import digest
from hpcsimkit.engine.task import Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.evaluation.evaluation import Contest, Evaluation, Given
from hpcsimkit.experiments.questions.advise import AdviceQuestion
from hpcsimkit.experiments.questions.describe import DescriptionQuestion
from hpcsimkit.experiments.questions.evaluate import EvaluationQuestion
from hpcsimkit.experiments.questions.explain import ExplanationQuestion
from hpcsimkit.experiments.questions.predict import PREDICTORS, Predicted, PredictionQuestion
from hpcsimkit.experiments.questions.question import Question, answer_here
from hpcsimkit.experiments.questions.validate import ValidationQuestion
from hpcsimkit.experiments.questions.what_if import ChangeQuestion
from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.experiments.sweep.cell import SimulationCell
from hpcsimkit.experiments.sweep.windows import Window

QUESTIONS: Mapping[str, tuple[type[Question], tuple[str, ...]]] = {
    "describe": (DescriptionQuestion, ()),
    "validate": (ValidationQuestion, ("tolerance",)),
    "predict": (PredictionQuestion, ("predictors",)),
    "what-if": (ChangeQuestion, ("set",)),
    "advise": (AdviceQuestion, ("at", "futures", "calibration")),
    "explain": (ExplanationQuestion, ()),
    "evaluate": (EvaluationQuestion, ("model", "sequences", "jobs", "warmup", "metric", "within")),
}
"""Questions by the name of their command, and their keys."""


class QuestionTable(Table):
    """Table ``[question]`` of a sweep: what is asked in place of the metrics of a run.

    Parameters
    ----------
    name : str
        Name of the question, that of its command: describe, validate, predict, what-if, advise,
        explain or evaluate.
    tolerance : float, optional
        Tolerance of a validation [s].
    predictors : list of str, optional
        Names of predictors.
    set : str or list of str, optional
        Changes of the cluster, which ``what-if`` needs.
    at, futures, calibration
        As in :class:`~hpcsimkit.experiments.questions.advise.AdviceQuestion`.
    model : str, optional
        Path of a trained agent, which ``evaluate`` needs; the policies are its baselines.
    sequences, jobs, warmup, metric, within
        As in :class:`~hpcsimkit.experiments.evaluation.evaluation.Evaluation`, for ``evaluate``.

    Examples
    --------
    >>> QuestionTable(name="what-if", set="nodes+=20").measured
    ('mean_wait_before', 'mean_wait_after', 'mean_wait_difference')
    """

    flags: ClassVar[Mapping[str, str]] = {"name": "--question"}

    name: Literal["describe", "validate", "predict", "what-if", "advise", "explain", "evaluate"]
    tolerance: float | None = Field(None, ge=0)
    predictors: str | list[str] | None = None
    set: str | list[str] | None = None
    at: int | str | None = None
    futures: int | None = Field(None, ge=1)
    calibration: int | None = Field(None, ge=0)
    model: str | None = None
    sequences: int | None = Field(None, ge=1)
    jobs: int | None = Field(None, ge=1)
    warmup: int | None = Field(None, ge=0)
    metric: str | None = None
    within: str | None = None

    @model_validator(mode="after")
    def _suits(self) -> Self:
        known = QUESTIONS[self.name][1]
        for key in self.model_fields_set - {"name"}:
            if key not in known:
                raise ValueError(f"{self.name!r} has no key {key!r}")
        return self

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the numbers that sum up an answer."""
        names: tuple[str, ...] = QUESTIONS[self.name][0].answers.measured
        if self.name != "predict":
            return names
        return tuple(f"{predictor}_{name}" for predictor in self._predictors for name in names)

    @property
    def headlines(self) -> list[str]:
        """Names of the numbers in the report."""
        if self.name == "predict":
            return [f"{predictor}_{Predicted.measured[0]}" for predictor in self._predictors]
        return list(self.measured[:3])

    def check(self) -> None:
        """Raise a UsageError if a key is missing, also among the axes."""
        needed = {"what-if": "set", "evaluate": "model"}.get(self.name)
        if needed is not None and getattr(self, needed) is None:
            raise UsageError(f"{self.name!r} needs question.{needed}, found none")

    @property
    def _predictors(self) -> Sequence[str]:
        named = self.predictors or PREDICTORS
        return [named] if isinstance(named, str) else named

    def about(self, case: Case, every: Callable[[], Case]) -> Question:
        """Return the question about a case; `every` is the case with the jobs that do not fit, too."""
        if self.name == "describe":
            return DescriptionQuestion(every().jobs, case.source.cluster)
        if self.name == "validate":
            return ValidationQuestion(case=case, tolerance=self.tolerance)
        if self.name == "predict":
            return PredictionQuestion(case=case, predictors=self._predictors)
        if self.name == "what-if":
            changes = [self.set] if isinstance(self.set, str) else self.set or ()
            return ChangeQuestion(case=every(), changes=changes)
        if self.name == "advise":
            keys = self.model_dump(exclude_none=True, include={"at", "futures", "calibration"})
            return AdviceQuestion(case=case, **keys)
        if self.name == "explain":
            return ExplanationQuestion(case=case, inspector=case.name)
        return EvaluationQuestion(self._contest(case))

    def _contest(self, case: Case) -> Contest:
        own = self.model_dump(exclude_none=True, include={"model", "sequences", "warmup", "within"})
        metrics = None if self.metric is None else [self.metric]
        length = self.jobs or Evaluation.model_fields["jobs"].default
        keys = {**case.source.given, "model": "", **own, "metrics": metrics, "jobs": length}
        evaluation = Evaluation.of_flags(keys)
        return Contest(evaluation, case.jobs, Given(policies={case.name: case.policy}))


class QuestionCell(SimulationCell):
    """Question about a policy with some settings; its outcome has the numbers that sum up the answer.

    Parameters
    ----------
    policy, values, settings, window, identities
        As for a simulation.
    question : mapping
        Keys of a :class:`QuestionTable`.
    """

    kind = "question"

    def __init__(
        self,
        policy: str,
        values: Mapping[str, Any],
        settings: Mapping[str, Any],
        window: Window | None,
        identities: Mapping[str, Any],
        *,
        question: Mapping[str, Any],
    ) -> None:
        super().__init__(policy, values, settings, window, identities)
        self.question = question

    def inputs(self) -> Any:
        """Return what is asked, and the inputs of a simulation."""
        return {**super().inputs(), "question": dict(self.question)}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Ask; write the tables of the answer, and return its numbers and the provenance."""
        case = self.case()
        answer = answer_here(QuestionTable(**self.question).about(case, self.case_of_all))
        answer.save_tables(folder)
        numbers = {name: value if math.isfinite(value) else None for name, value in answer.measures.items()}
        return {
            "policy": repr(case.policy),
            "skipped": sum(case.jobs.skipped.values()),
            "metrics": numbers,
            "workload_sha256": case.jobs.hash,
            "schedule_sha256": digest([case.jobs.hash, json.dumps(numbers)]),
            "version": __version__,
        }
