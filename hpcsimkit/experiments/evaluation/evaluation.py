"""Evaluations: an agent and baselines on the same sampled sequences of jobs of a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.seats import RandomAgent, Watched
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.engine.identity import identity_of
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.comparison.policy_run import inputs_of
from hpcsimkit.experiments.evaluation.choices import Choices
from hpcsimkit.experiments.evaluation.sequences import beginnings, places, share_in_several
from hpcsimkit.experiments.evaluation.where import class_sums
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.learner_parts import heuristic_behind, seated
from hpcsimkit.experiments.parts.named_parts import known_metrics, metric_named
from hpcsimkit.experiments.parts.trust import code_in, version_of
from hpcsimkit.experiments.settings.checked_table import Table, limited
from hpcsimkit.experiments.settings.engine_table import EngineTable, Parallel
from hpcsimkit.experiments.settings.toml_lines import Location
from hpcsimkit.experiments.source import Source, sha256_of
from hpcsimkit.experiments.training.data import RANDOM, check_lengths, measured, warmup_of
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Answering
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.result import Result

__all__ = ["AGENT", "Contest", "Evaluation", "Given", "RandomAgent"]

AGENT = "agent"
"""Names in tables of the agent, and of the random agent with the same options."""

USUAL = "fcfs+easy"
"""Default pipeline with the seat of an agent, if neither its file nor the user names one."""


class Evaluation(Source, Parallel):
    """Settings of an evaluation.

    Keys of the simulation are those of a :class:`~hpcsimkit.experiments.source.Source`, except ``jobs``.

    Parameters
    ----------
    model : str
        Path of the agent's file.
    parts : str, optional
        Module or file.py with user-defined classes of its encoder and mask; by default those of hpcsimkit. A
        model file cannot cause imports itself.
    policies : list of str
        Names of the baselines. Default: ``fcfs+easy`` and ``sjf+easy``.
    sequences : int
        Number of sampled sequences, 1 or more, which share no measured jobs if the log is long enough.
        Default: 50.
    jobs : int
        Number of consecutive jobs of a sequence, 1 or more. Default: 256.
    warmup : int
        Number of jobs before a sequence that fill the cluster and are not measured, 0 or more. Default: 0.
    metrics : list of str, optional
        Names of the metrics to compare; see :func:`hpcsimkit.experiments.parts.named_parts.metric_named`. By
        default the validation metric of the agent.
    within : str, optional
        Name of the pipeline with the agent's seat; by default that of its training.
    sample : bool, optional
        Whether actions are sampled; otherwise the best one is taken. By default as in the agent's file.
    seed : int
        Random seed of the sequences and the runs, 0 or more. Default: 0.
    workers : int
        Number of sequences simulated in parallel, each in its own process, 1 or more. Default: 1.
    engine : EngineTable, optional
        Engine that executes the simulations; by default that number of processes.
    out : str, optional
        Path of the results folder.

    Examples
    --------
    >>> Evaluation(model="agent.hpcsim", sequences=20, metrics=["mean_wait_time"]).policies
    ['fcfs+easy', 'sjf+easy']
    """

    inner: ClassVar[Mapping[str, type[Table]]] = {**Source.inner, "engine": EngineTable}
    flags: ClassVar[Mapping[str, str]] = {"policies": "-p", "metrics": "--metric"}

    model: str = Field(min_length=1)
    parts: str | None = Field(None, min_length=1)
    policies: list[str] = Field(["fcfs+easy", "sjf+easy"], min_length=1)
    sequences: Annotated[int, limited("sequences")] = Field(50, ge=1)
    jobs: int = Field(256, ge=1)
    warmup: int = Field(0, ge=0)
    metrics: list[str] | None = Field(None, min_length=1)
    within: str | None = None
    sample: bool | None = None
    out: str | None = Field(None, min_length=1)

    @field_validator("metrics")
    @classmethod
    def _are_known(cls, names: list[str] | None) -> list[str] | None:
        return known_metrics(names)

    def _parts(self) -> Iterator[tuple[Location, Callable[[], object]]]:
        """Yield the locations of names, each with a function that checks or constructs its object."""
        for index, name in enumerate(self.policies):  # all of them before anything is imported
            yield ("policies", index), partial(self._check_policy, name)
        yield from super()._parts()
        yield ("parts",), self.imported_parts
        for index, name in enumerate(self.metrics or ()):
            yield ("metrics", index), partial(metric_named, name, self.import_from, self.trust)
        for index, name in enumerate(self.policies):
            yield ("policies", index), partial(self.policy_named, name)

    def _check_policy(self, name: str) -> None:
        if self.policies.count(name) > 1:
            raise UsageError(f"{name!r} is named twice")
        registry.check(name, self.import_from, self.trust)

    def source(self, **changes: Any) -> Source:
        """Return the jobs and machines alone; all jobs, since ``jobs`` is the length of a sequence here."""
        return super().source(**{"jobs": None, **changes})

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide the results; see :meth:`Source.settings`."""
        model = f"{Path(self.model).name} ({sha256_of(self.model)[:8]})"
        return {**super().settings(), "jobs": self.jobs, "model": model}

    def imported_parts(self) -> Any:
        """Return the module with user-defined classes of encoder and mask; None if none is given."""
        return None if self.parts is None else self.trust.module(self.parts, self.import_from)


class Given(NamedTuple):
    """Objects in place of names in the settings of an evaluation.

    Parameters
    ----------
    agent : Agent or ModelAgent, optional
        The agent.
    policies : mapping of str to Policy, optional
        Baselines by name.
    setup : Setup, optional
        Options of the runs.
    """

    agent: Agent | ModelAgent | None = None
    policies: Mapping[str, Policy] | None = None
    setup: Setup | None = None


class Contest:
    """Comparison of an agent with baselines on sampled sequences.

    Parameters
    ----------
    evaluation : Evaluation
        Settings of the evaluation.
    workload : Workload
        Workload returned by ``evaluation.source().workload()``.
    given : Given
        Objects in place of names in the settings. Default: none.

    Raises
    ------
    UsageError
        The model cannot be used, does not fit the pipeline, or the log is too short.
    """

    def __init__(self, evaluation: Evaluation, workload: Workload, given: Given | None = None) -> None:
        self.evaluation = evaluation
        self.workload = workload
        self.given = given or Given()
        self.source = evaluation.source()
        self.agent = self.given.agent or Agent.load(
            evaluation.model, parts=evaluation.imported_parts(), sample=evaluation.sample
        )
        trust = self.source.trust
        for name in self.metrics:
            metric_named(name, evaluation.import_from, trust if evaluation.metrics else trust.of_files)
        check_lengths([workload], evaluation.jobs + evaluation.warmup, "sequences")
        self.policies = {
            AGENT: self._seated(self.agent),
            RANDOM: self._seated(RandomAgent(self.agent.mask, decline=self.agent.decline)),
            self.behind: self._named(self.behind),
            **(self.given.policies or {name: self.source.policy_named(name) for name in evaluation.policies}),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return Contest, (self.evaluation, self.workload, self.given)  # code is imported by its name

    @property
    def trained(self) -> Mapping[str, Any]:
        """Facts about the training, from the agent's file."""
        return self.agent.trained

    @property
    def code(self) -> list[str]:
        """Modules and files imported by the names, sorted."""
        names = (*self.evaluation.policies, self.within)
        named = {code for name in names for code in registry.code_of(name)}
        named |= {code_in(name) for name in self.metrics} | {self.evaluation.parts or ""}
        return sorted((named | {*self.source.code}) - {""})

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that decide the results, with the versions of the user's code."""
        versions = [version_of(code, self.evaluation.import_from) for code in self.code]
        return {**self.evaluation.settings(), **({"code": versions} if versions else {})}

    @property
    def within(self) -> str:
        """Name of the pipeline with the agent's seat."""
        usual = "fcfs" if self.agent.stage in ONE_SEAT else USUAL
        return self.evaluation.within or str(self.trained.get("policy", usual))

    @property
    def behind(self) -> str:
        """Name of the heuristic behind the seat, which is one of the baselines."""
        return heuristic_behind(self.within, self.agent.stage)

    @property
    def heuristics(self) -> list[str]:
        """Names of the baselines without agents, or else that of the heuristic behind the seat."""
        names = [name for name in self.policies if name not in (AGENT, RANDOM)]
        return [name for name in names if registry.AGENT not in name] or [self.behind]

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics to compare."""
        return self.evaluation.metrics or [str(self.trained.get("metric", "mean_bounded_slowdown"))]

    @property
    def measures(self) -> list[str]:
        """Names of the metrics of every run: all that are known, and those of the user to compare."""
        return [*dict.fromkeys([*METRICS, *self.metrics])]

    @property
    def about(self) -> str:
        """One-line description of the agent, its seat, and the selection of its actions."""
        how = "draws actions" if self.agent.sample else "takes the best action"
        return f"{self.evaluation.model}: on the {self.agent.stage} seat of {self.within}, {how}"

    @property
    def jobs_of_sequence(self) -> int:
        """Number of jobs simulated for a sequence, over the runs of all policies."""
        return len(self.policies) * (self.evaluation.jobs + self.evaluation.warmup)

    def _seated(self, holder: Answering) -> Policy:
        """Return the pipeline with an agent or baseline at the agent's seat."""
        policy = self._named(self.within)
        try:
            return seated(policy, holder, self.agent.stage, self.agent.slots)
        except HpcsimkitError as error:
            raise UsageError(f"--within {self.within}: {error}") from None

    def _named(self, name: str) -> Policy:
        """Return the policy behind the seat; a name from the model file has the trust of a file."""
        trust = self.source.trust
        try:
            return self.source.policy_of(name, trust if self.evaluation.within else trust.of_files)
        except HpcsimkitError as error:
            raise UsageError(f"--within {self.within}: {error}") from None

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """Sampled sequences; the first ones do not depend on their number."""
        evaluation, source = self.evaluation, self.source
        windows = Windows(self.workload, evaluation.jobs, warmup=evaluation.warmup)
        seeds = self._chances[1].integers(2**31, size=evaluation.sequences).tolist()
        return [
            windows.at(first, seed).under(self.given.setup or source.setup)
            for first, seed in zip(self._beginnings, seeds, strict=True)
        ]

    @cached_property
    def _chances(self) -> list[np.random.Generator]:
        """Random number generators of the start indices and of the seeds of the runs."""
        return np.random.default_rng(self.evaluation.seed).spawn(2)

    @property
    def _counting(self) -> int:
        """Number of jobs of the log that can be measured: all but the first ones, used for warm-up."""
        return len(self.workload) - self.evaluation.warmup

    @cached_property
    def _beginnings(self) -> list[int]:
        evaluation = self.evaluation
        return beginnings(self._counting, evaluation.jobs, evaluation.sequences, self._chances[0])

    @property
    def overlap(self) -> float:
        """Share of the measured jobs that are in several sequences."""
        return share_in_several(self._beginnings, self.evaluation.jobs)

    @property
    def warning(self) -> str:
        """Warning about overlapping sequences; empty if there are none."""
        if not self.overlap:
            return ""
        room, jobs = places(self._counting, self.evaluation.jobs), self.evaluation.jobs
        side_by_side = f"{room} sequence{'s' * (room != 1)} of {jobs} jobs side by side"
        again = len(self._beginnings) - len({*self._beginnings})
        copies = f"; {again} of {len(self._beginnings)} were sampled before, and count once" if again else ""
        return (
            f"{100 * self.overlap:.2g} % of the jobs are in several sequences, which makes p-values too "
            f"small; the log has room for {side_by_side}{copies}"
        )

    @cached_property
    def identity(self) -> Any:
        """Identity of everything that determines the outcomes of the sequences."""
        evaluation = self.evaluation
        if self.given != Given():
            return repr(evaluation)  # objects are not resumed
        lengths = {"jobs": evaluation.jobs, "warmup": evaluation.warmup, "seed": evaluation.seed}
        seats = {name: self.policies[name] for name in (AGENT, RANDOM, self.behind)}
        runs = [inputs_of(name, self.source, self.workload) for name in evaluation.policies]
        return identity_of({**lengths, "seats": seats, "baselines": runs})

    def outcome(self, number: int) -> dict[str, Any]:
        """Run all policies on a sequence.

        The outcome has ``first_job`` and ``seed`` of the sequence; ``schedules``, hashes of the start times,
        by which sequences that were sampled twice are recognised; ``metrics`` and ``classes`` of jobs
        (:func:`~hpcsimkit.experiments.evaluation.where.class_sums`) of each policy; ``choices`` of the agent
        (:class:`~hpcsimkit.experiments.evaluation.choices.Choices`).
        """
        scenario, choices = self.scenarios[number], Choices()
        jobs = scenario.workload
        policies = {**self.policies, AGENT: self._seated(Watched(self.agent, choices))}
        results = {name: self._result(name, policy, scenario) for name, policy in policies.items()}
        return {
            "sequence": number,
            "first_job": int(jobs.id[jobs.arrival_order[self.evaluation.warmup]]),
            "seed": scenario.setup.seed,
            "schedules": {name: result.hash for name, result in results.items()},
            "metrics": {
                name: _finite(measured(result, scenario, self.measures)) for name, result in results.items()
            },
            "classes": {
                name: class_sums(result, warmup_of(result, scenario)) for name, result in results.items()
            },
            "choices": choices.record(),
        }

    def _result(self, name: str, policy: Policy, scenario: Scenario) -> Result:
        """Return the schedule of a policy."""
        try:
            return scenario.simulation(policy, name=name).run()
        except HpcsimkitError as error:
            who = f"{self.evaluation.model}" if name == AGENT else name
            text = str(error)
            raise type(error)(text if text.startswith(name) else f"{who}: {text}") from None


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics for JSON: None for undefined ones."""
    return {key: value if math.isfinite(value) else None for key, value in metrics.items()}
