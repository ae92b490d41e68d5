"""Is an agent better than heuristics? Both on sampled sequences of jobs, with paired tests."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.provenance import Provenance, times_of, write_json
from hpcsimkit.engine.results_folder import FINISHED, PROVENANCE, SETTINGS, ResultsFolder
from hpcsimkit.engine.runner import finish, finished
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Asked, settings_of, setup_of
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.evaluation.evaluation import AGENT, Contest, Evaluation, Given
from hpcsimkit.experiments.evaluation.tables import Verdict, console_text, verdict_of
from hpcsimkit.experiments.evaluation.where import Outcomes, measure_of
from hpcsimkit.experiments.questions.compare import Policies, named_policies
from hpcsimkit.experiments.questions.question import Answer, Question, ask
from hpcsimkit.experiments.source import UNDECISIVE, Source, sha256_of
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Comparison

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Evaluated", "EvaluationQuestion", "EvaluationRun", "evaluate"]

STATISTICS, PAGE = "evaluation.json", "report.html"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated(Answer):
    """Statistics of an agent beside other policies on the same sequences.

    Parameters
    ----------
    contest : Contest
        Policies and sequences.
    outcomes : sequence of mapping
        Outcome of each sequence; see :meth:`~hpcsimkit.experiments.evaluation.evaluation.Contest.outcome`.
    """

    stem = "evaluation"
    names = ("evaluation", "where")
    measured = ("agent_mean", "baseline_mean", "agent_minus_baseline", "relative_difference", "p_value")

    contest: Contest
    outcomes: Outcomes

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Statistics of each metric."""
        return [verdict_of(metric, self.contest, self.outcomes) for metric in self.contest.metrics]

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Metrics of each policy on each sequence (``evaluation``), differences by class (``where``)."""
        import pandas

        about = ("sequence", "first_job", "seed")
        rows = [
            {**{key: outcome[key] for key in about}, "policy": name, **values}
            for outcome in self.outcomes
            for name, values in outcome["metrics"].items()
        ]
        evaluated = pandas.DataFrame(rows, columns=[*about, "policy", *self.contest.measures])
        return {"evaluation": evaluated, "where": pandas.DataFrame(self._where(), columns=OF_WHERE)}

    def _where(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each class of jobs and each feature of choices."""
        tables = {
            (measure_of(verdict.metric), other): parts
            for verdict in self.verdicts
            for other, parts in verdict.where.items()
        }
        tables["feature", self.verdicts[0].behind] = self.verdicts[0].features
        for names, parts in tables.items():
            for part in parts:
                yield (*names, *part[:5], *vars(part.difference).values(), part.share)

    @property
    def measures(self) -> Mapping[str, float]:
        """Means of the agent and of the last baseline by the first metric, their difference, and its p-value.

        The p-value is that of the paired t-test, corrected by Holm's method for all baselines.
        """
        verdict = self.verdicts[0]
        name, against = list(verdict.comparisons.items())[-1]
        means = (verdict.means[AGENT].mean, verdict.means[name].mean, against.difference.mean)
        return dict(zip(self.measured, (*means, against.relative, against.t_test_holm), strict=True))

    def figure(self) -> Figure:
        """Return a figure of the differences from the other policies by the first metric."""
        from hpcsimkit.experiments.evaluation.report import pictures_of

        return next(pictures_of(self.verdicts[0])).figure

    def lines(self) -> Iterator[str]:
        """Yield the means, the differences with their tests, where they arise, and the choices."""
        yield console_text(self.verdicts)
        yield "p-values are corrected by Holm's method; * below 0.05"

    @classmethod
    def files(cls) -> list[str]:
        """Return the names of the files, the one to look at last."""
        return [*(f"{name}.csv" for name in cls.names), STATISTICS, PAGE]

    def save(self, folder: Path) -> None:
        """Write the tables, the report and the statistics.

        Raises
        ------
        StorageError
            A file cannot be written.
        """
        from hpcsimkit.experiments.evaluation.report import evaluation_page

        self.save_tables(folder)
        write_bytes(folder / PAGE, evaluation_page(self.contest, self.verdicts).encode())
        write_json(folder / STATISTICS, self.statistics)

    @property
    def statistics(self) -> dict[str, Any]:
        """Return the statistics without times and places, so that equal evaluations give equal files."""
        contest, evaluation, verdicts = self.contest, self.contest.evaluation, self.verdicts
        return {
            "model": Path(evaluation.model).name,
            "model_sha256": sha256_of(evaluation.model),
            "within": contest.within,
            "behind": contest.behind,
            "stage": contest.agent.stage,
            "sample": contest.agent.sample,
            "workload": {"name": contest.workload.name, "hash": contest.workload.hash},
            "sequences": evaluation.sequences,
            "jobs": evaluation.jobs,
            "warmup": evaluation.warmup,
            "seed": evaluation.seed,
            "share_of_jobs_in_several_sequences": contest.overlap,
            "metrics": {
                verdict.metric: {
                    "unit": METRICS[verdict.metric].unit,
                    "better": METRICS[verdict.metric].direction,
                    "best_heuristic": verdict.best,
                    "policies": {name: _plain(asdict(mean)) for name, mean in verdict.means.items()},
                    "agent_minus": {
                        name: _compared(comparison, METRICS[verdict.metric].direction)
                        for name, comparison in verdict.comparisons.items()
                    },
                }
                for verdict in verdicts
            },
            "choices": dict(verdicts[0].choices),
        }


OF_WHERE = [
    *("measure", "other", "by", "label", "jobs", "agent", "of_other"),
    *("difference", "low", "high", "share"),
]
"""Columns of the table of differences."""


class SequenceRun(Task):
    """Runs of all policies on one sequence; the outcome is that of :meth:`Contest.outcome`."""

    kind = "sequence"

    def __init__(self, contest: Contest, number: int) -> None:
        self.contest = contest
        self.number = number

    @property
    def name(self) -> str:
        """Number of the sequence as text."""
        return str(self.number)

    @property
    def size(self) -> int:
        """Number of jobs over the runs of all policies."""
        return self.contest.jobs_of_sequence

    def inputs(self) -> Any:
        """Return the settings of the evaluation and the number of the sequence."""
        return {"evaluation": self.contest.identity, "sequence": self.number}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate all policies on the sequence."""
        return self.contest.outcome(self.number)


class EvaluationQuestion(Question):
    """Is an agent better than other policies?

    Parameters
    ----------
    contest : Contest
        Policies and sequences.
    """

    answers = Evaluated

    def __init__(self, contest: Contest) -> None:
        self.contest = contest

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """A task for each sequence."""
        return [SequenceRun(self.contest, number) for number in range(self.contest.evaluation.sequences)]

    def answer(self, store: Store) -> Evaluated:
        """Return the statistics."""
        return Evaluated(self.contest, [store.outcome(task) for task in self.tasks])


class EvaluationRun:
    """Run of an evaluation, and its results folder.

    Parameters
    ----------
    contest : Contest
        Policies and sequences to compare.
    place : path
        Path of the results folder; a former evaluation there is replaced when the new one is complete.
    command : sequence of str
        Command line, for the records.
    engine : Engine, optional
        Engine that executes the simulations; by default that of the evaluation.
    """

    def __init__(
        self,
        contest: Contest,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self.contest = contest
        self.question = EvaluationQuestion(contest)
        times = times_of(Path(PROVENANCE)).name
        self.folder = ResultsFolder(place, {*Evaluated.files(), PROVENANCE, times})
        self.command = tuple(command)
        self.engine = engine
        self.store = Store(self.folder.work / FINISHED)

    def run(
        self,
        *,
        resume: bool = False,
        overwrite: bool = False,
        tell: Callable[[str, int], None] = lambda sequence, jobs: None,
    ) -> Evaluated:
        """Simulate all sequences and write the folder; parameters and errors as in :meth:`Campaign.run`."""
        provenance, settings, tasks = Provenance(self.command), self.contest.settings, self.question.tasks

        def kept() -> str:
            return finished(tasks, self.store, "sequences")

        with self.folder.session(FINISHED, resume=resume, settings=settings, overwrite=overwrite, kept=kept):
            finish(tasks, self.store, self._engine_of, tell=tell)
            answer = self.question.answer(self.store)
            answer.save(self.folder.work)
            provenance.write(self.folder.work / PROVENANCE, self._facts())
        return answer

    def _engine_of(self, tasks: Sequence[Task]) -> Engine:
        return self.engine or self.contest.evaluation.engine_for(len(tasks))

    def _facts(self) -> dict[str, Any]:
        """Return the provenance of the evaluation, besides versions and times."""
        return {
            "code": self.contest.code,
            "options": self.contest.evaluation.model_dump(exclude_none=True, exclude={*UNDECISIVE}),
            SETTINGS: self.contest.settings,
            "policies": {name: repr(policy) for name, policy in self.contest.policies.items()},
            "training": dict(self.contest.agent.about or {}),
        }


def evaluate(
    model: str | os.PathLike[str] | Agent | ModelAgent,
    workload: Asked = None,
    policies: Policies = ("fcfs+easy", "sjf+easy"),
    cluster: AnyCluster | int | None = None,
    *,
    engine: Engine | None = None,
    **settings: Any,
) -> Evaluated:
    """Compare an agent with heuristics on sampled job sequences.

    Parameters
    ----------
    model : path, Agent or ModelAgent
        Path of a trained agent (.hpcsim), or the agent.
    workload : Workload, path or Experiment, optional
        Jobs from which sequences are sampled; path of a log or its name in the catalogue; or an experiment or
        the path of its TOML file, which has options of its own. By default the built-in workload.
    policies : iterable of str, Policy or Stage, or mapping of str to one of these
        Baselines, as in :func:`~hpcsimkit.experiments.questions.compare.compare`. Default: ``fcfs+easy`` and
        ``sjf+easy``.
    cluster : Cluster or int, optional
        Cluster, or number of nodes; by default that of the workload.
    engine : Engine, optional
        Engine that executes the sequences; by default this process.
    **settings
        Keys of an :class:`~hpcsimkit.experiments.evaluation.evaluation.Evaluation`, such as ``sequences`` and
        ``metrics``; and further options of a run, fields of a :class:`~hpcsimkit.kernel.setup.Setup`.

    Raises
    ------
    UsageError
        A name or an option is invalid, the agent does not fit the pipeline, or the log is too short.

    Examples
    --------
    >>> from hpcsimkit.rl import ModelAgent, QueueWindow
    >>> shortest = ModelAgent(lambda seen: -seen[:-1, 1], QueueWindow(16))
    >>> found = evaluate(shortest, policies=["fcfs+easy"], sequences=3, jobs=64, metrics=["mean_wait_time"])
    >>> list(found.tables)
    ['evaluation', 'where']
    """
    if isinstance(model, Result):
        raise UsageError("evaluate needs an agent, found a result; its metrics are measure(result)")
    policies = policies if isinstance(policies, Mapping) else list(policies)
    objects = isinstance(policies, Mapping) or any(not isinstance(each, str) for each in policies)
    own = {*Evaluation.model_fields} - {*Source.model_fields} | {"jobs"}
    options = {name: value for name, value in settings.items() if name not in own}
    source = settings_of(workload, cluster, options)
    wanted = {
        **{name: value for name, value in settings.items() if name in own},
        "jobs": settings.get("jobs", Evaluation.model_fields["jobs"].default),
        "model": repr(model) if isinstance(model, Agent | ModelAgent) else str(model),
        "policies": None if objects else policies,
        "seed": options.get("seed", source.seed),
    }
    evaluation = Evaluation.of_flags({**source.given, **wanted})
    contest = Contest(
        evaluation,
        workload if isinstance(workload, Workload) else source.workload(),
        Given(
            model if isinstance(model, Agent | ModelAgent) else None,
            named_policies(policies, Experiment.model_validate({})) if objects else None,
            setup_of(cluster, options),
        ),
    )
    found: Evaluated = ask(EvaluationQuestion(contest), engine)
    return found


def _compared(comparison: Comparison, direction: str) -> dict[str, Any]:
    """Return a comparison for JSON, with wins, ties and losses of the agent if a direction is better."""
    values = asdict(comparison)
    for name in ("lower", "equal", "higher"):
        del values[name]
    return {**_plain(values), **comparison.counts(direction)}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers for JSON: None for non-finite ones."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value if math.isfinite(value) else None
        for name, value in values.items()
    }
