"""An evaluation: an agent and heuristics on the same sampled sequences of jobs of a log."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, field_validator

from hpcsimkit import __version__, registry
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.episodes import Windows
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.campaigns.checked_table import Problem, Table
from hpcsimkit.campaigns.evaluation_sequences import beginnings, places, share_in_several
from hpcsimkit.campaigns.experiment import Generate
from hpcsimkit.campaigns.runs import fingerprint
from hpcsimkit.campaigns.training_data import Rules, check_lengths, measured
from hpcsimkit.campaigns.training_parts import seated
from hpcsimkit.campaigns.training_source import Source
from hpcsimkit.decision import Answering
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.metrics import METRICS
from hpcsimkit.policies.one_seat import ONE_SEAT
from hpcsimkit.policy import Policy
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload

__all__ = ["AGENT", "RANDOM", "Contest", "Evaluation", "RandomAgent"]

AGENT, RANDOM = "agent", "random agent"
"""What the agent is called in tables, and who answers anything in its place."""

USUAL = "fcfs+easy"
"""The pipeline whose seat an agent takes if neither its file nor anybody says which."""


class Evaluation(Source):
    """What is evaluated, on what.

    Keys that say what is simulated are those of an :class:`~hpcsimkit.campaigns.experiment.Experiment`, but
    for ``jobs``.

    Parameters
    ----------
    model : str
        Path of the agent.
    parts : str, optional
        Module or file.py with the classes of its encoder and mask, if they are not the kit's own. Nothing is
        imported because a model file says so.
    policies : list of str
        What it is compared with.
    sequences : int
        How many sequences are sampled; no job counts in two of them as long as the log has room.
    jobs, warmup : int
        Jobs of each, by submission, and of those before them that fill the machine and do not count.
    metrics : list of str, optional
        What is compared, of :data:`~hpcsimkit.metrics.METRICS`; by default what the agent was validated by.
    within : str, optional
        The pipeline whose seat the agent takes; by default that of its training.
    sample : bool, optional
        Draw actions, or take the best; by default as the agent's file says.
    seed : int
        Where the choice of sequences and the randomness of runs come from.
    workers : int
        Sequences simulated at the same time, in processes of their own.
    out : str, optional
        The results folder.
    """

    inner: ClassVar[Mapping[str, type[Table]]] = {"generate": Generate}
    flags: ClassVar[Mapping[str, str]] = {"policies": "-p", "metrics": "--metric"}

    model: str = Field(min_length=1)
    parts: str | None = Field(None, min_length=1)
    policies: list[str] = Field(["fcfs+easy", "sjf+easy"], min_length=1)
    sequences: int = Field(50, ge=1)
    jobs: int = Field(256, ge=1)
    warmup: int = Field(0, ge=0)
    metrics: list[str] | None = Field(None, min_length=1)
    within: str | None = None
    sample: bool | None = None
    seed: int = Field(0, ge=0)
    workers: int = Field(1, ge=1)
    out: str | None = Field(None, min_length=1)

    @field_validator("metrics")
    @classmethod
    def _are_known(cls, names: list[str] | None) -> list[str] | None:
        for name in names or ():
            if name not in METRICS:
                near = difflib.get_close_matches(name, METRICS, n=3)
                raise ValueError(f"unknown metric {name!r}; nearest: {', '.join(near or METRICS)}")
        return names

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Any, Problem | None]:
        """Return an evaluation whose parts can be made, or where something is wrong, and what."""
        evaluation, problem = super().checked(values)
        if evaluation is None:
            return None, problem
        try:
            evaluation.imported_parts()
        except HpcsimkitError as error:
            return None, (("parts",), f": {error}")
        for index, name in enumerate(evaluation.policies):
            if evaluation.policies.count(name) > 1:
                return None, (("policies", index), f": {name!r} is named twice")
            try:
                evaluation.experiment().policy(name)
            except HpcsimkitError as error:
                return None, (("policies", index), f": {error}")
        return evaluation, None

    def keys_of_experiment(self) -> dict[str, Any]:
        """Return what is given of an experiment's keys; ``jobs`` is the length of a sequence."""
        return {name: value for name, value in super().keys_of_experiment().items() if name != "jobs"}

    def imported_parts(self) -> Any:
        """Return the module that the user says the agent's encoder and mask are in; None if he does not."""
        return None if self.parts is None else registry.module_named(self.parts, self.import_from)


class Contest:
    """Who meets on which sequences.

    Parameters
    ----------
    evaluation : Evaluation
        What is to be evaluated.
    workload : Workload
        What ``evaluation.experiment().workload()`` returned.

    Raises
    ------
    UsageError
        The model cannot be used, does not fit the pipeline, or the log is too short.
    """

    def __init__(self, evaluation: Evaluation, workload: Workload) -> None:
        self.evaluation = evaluation
        self.workload = workload
        self.experiment = evaluation.experiment()
        self.agent = Agent.load(
            evaluation.model, parts=evaluation.imported_parts(), sample=evaluation.sample
        )  # fmt: skip
        check_lengths([workload], evaluation.jobs + evaluation.warmup, "sequences")
        self.policies = {
            AGENT: self._seated(self.agent),
            RANDOM: self._seated(RandomAgent(self.agent.mask, decline=self.agent.decline)),
            **{name: self.experiment.policy(name) for name in evaluation.policies},
        }

    @property
    def trained(self) -> Mapping[str, Any]:
        """What the agent's file says of its training."""
        return (self.agent.about or {}).get("training", {})

    @property
    def within(self) -> str:
        """The pipeline whose seat the agent takes."""
        usual = "fcfs" if self.agent.stage in ONE_SEAT else USUAL
        return self.evaluation.within or str(self.trained.get("policy", usual))

    @property
    def metrics(self) -> list[str]:
        """What is compared."""
        return self.evaluation.metrics or [str(self.trained.get("metric", "mean_bounded_slowdown"))]

    @property
    def about(self) -> str:
        """Who takes which seat, and how, in one line."""
        how = "draws actions" if self.agent.sample else "takes the best action"
        return f"{self.evaluation.model}: on the {self.agent.stage} seat of {self.within}, {how}"

    @property
    def jobs_of_sequence(self) -> int:
        """How many jobs are simulated for a sequence, in the runs of all policies."""
        return len(self.policies) * (self.evaluation.jobs + self.evaluation.warmup)

    def _seated(self, holder: Answering) -> Policy:
        """Return the pipeline with somebody on the agent's seat."""
        try:
            return seated(self.experiment.policy(self.within), holder, self.agent.stage, self.agent.slots)
        except HpcsimkitError as error:
            raise UsageError(f"--within {self.within}: {error}") from None

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The sequences: the first ones are the same, however many there are."""
        evaluation, experiment = self.evaluation, self.experiment
        rules = Rules(experiment.cluster, experiment.walltime, experiment.service_time, experiment.semantics)
        windows = Windows(self.workload, evaluation.jobs, rules.cluster, warmup=evaluation.warmup)
        seeds = self._chances[1].integers(2**31, size=evaluation.sequences).tolist()
        return [
            rules.applied(windows.at(first, seed))
            for first, seed in zip(self._beginnings, seeds, strict=True)
        ]  # fmt: skip

    @cached_property
    def _chances(self) -> list[np.random.Generator]:
        """Streams of random numbers: for where sequences begin, and for the seeds of their runs."""
        return np.random.default_rng(self.evaluation.seed).spawn(2)

    @property
    def _counting(self) -> int:
        """How many jobs of the log can count: all but the first, which only warm up."""
        return len(self.workload) - self.evaluation.warmup

    @cached_property
    def _beginnings(self) -> list[int]:
        evaluation = self.evaluation
        return beginnings(self._counting, evaluation.jobs, evaluation.sequences, self._chances[0])

    @property
    def overlap(self) -> float:
        """The share of the jobs that count in several sequences, of those that count."""
        return share_in_several(self._beginnings, self.evaluation.jobs)

    @property
    def warning(self) -> str:
        """What is to be said if sequences overlap."""
        if not self.overlap:
            return ""
        room, jobs = places(self._counting, self.evaluation.jobs), self.evaluation.jobs
        return (
            f"{100 * self.overlap:.2g} % of the jobs are in several sequences, which makes p-values too "
            f"small; the log has room for {room} sequence{'s' * (room != 1)} of {jobs} jobs side by side"
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides what comes of a sequence."""
        evaluation = self.evaluation
        facts: list[object] = [__version__, evaluation.jobs, evaluation.warmup, evaluation.seed]
        facts += [repr(self.policies[name]) for name in (AGENT, RANDOM)]
        facts += [fingerprint(name, self.experiment, self.workload) for name in evaluation.policies]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def outcome(self, number: int) -> dict[str, Any]:
        """Run all policies on a sequence; returns its first job, its seed, and every policy's metrics.

        Raises
        ------
        HpcsimkitError
            A policy failed; the message begins with its name.
        """
        scenario = self.scenarios[number]
        jobs = scenario.workload
        first = int(jobs.id[jobs.arrival_order[self.evaluation.warmup]])
        metrics = {name: self._metrics(name, scenario) for name in self.policies}
        return {"sequence": number, "first_job": first, "seed": scenario.seed, "metrics": metrics}

    def _metrics(self, name: str, scenario: Scenario) -> dict[str, float | None]:
        """Return the metrics of a policy; None where one is not defined."""
        try:
            result = scenario.simulation(self.policies[name], name=name).run()
        except HpcsimkitError as error:
            who = f"{self.evaluation.model}" if name == AGENT else name
            text = str(error)
            raise type(error)(text if text.startswith(name) else f"{who}: {text}") from None
        metrics = measured(result, scenario)
        return {key: value if math.isfinite(value) else None for key, value in metrics.items()}
