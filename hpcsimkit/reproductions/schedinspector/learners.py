"""Trained agents, and the tables and figures that need them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import JOBS, PUBLISHED, RATIO, inspector_environment
from hpcsimkit.agents.schedinspector.whole_state import WholeState
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab import MAX_REJECTIONS, published
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.schedinspector.data import PUBLISHED_SLICE, Trace, Traces

__all__ = ["Learners", "Study", "tested"]

CODE = "schedinspector"


def tested(learner: Learner) -> Pipeline:
    """Return the test pipeline of an agent: at most 72 rejections per job, regardless of the training limit.

    (The published code has that limit in its test alone.)
    """
    pipeline = copy.copy(learner.policy)
    assert isinstance(pipeline, Pipeline)
    pipeline.max_rejections = MAX_REJECTIONS
    return pipeline


class Study(NamedTuple):
    """A figure of the paper that compares trainings.

    Parameters
    ----------
    name : str
        Name of the figure, valid as a file name.
    about : str
        Subject of the figure.
    learners : mapping of str to Learner
        Learners by panel title.
    """

    name: str
    about: str
    learners: Mapping[str, Learner]


class Learners:
    """All agents to be trained; each is created once.

    Parameters
    ----------
    traces : Traces
        Logs.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self.scale = traces.scale
        self._made: dict[str, Learner] = {}

    def own(self, trace: Trace, order: str, *, prompt: bool = False, backfilling: bool = False) -> Learner:
        """Return the agent of a log, trained on its first fifth."""
        name = f"{trace.name}-{order}{'-bf' * backfilling}{'-prompt' * prompt}"
        part = trace.part
        return self._learner(name, part, trace, order=order, backfilling=backfilling, prompt=prompt)

    def whole(self, trace: Trace, order: str, *, prompt: bool = False) -> Learner:
        """Return the agent of a log, trained as in the published code: on its first 10 000 jobs."""
        part, name = trace.log.first(PUBLISHED_SLICE), f"{trace.name}-{order}-whole{'-prompt' * prompt}"
        return self._learner(name, part, trace, order=order, first=JOBS, prompt=prompt)

    @cached_property
    def studies(self) -> list[Study]:
        """Figures of trainings in the paper; those beyond figure 4 only if the preset has steps for them."""
        found = [
            Study(
                f"figure-4{'-prompt' * prompt}",
                f"training on each log{', paid promptly' * prompt}",
                {
                    f"{trace.name}, {order.upper()}": self.own(trace, order, prompt=prompt)
                    for order in self.scale.orders
                    for trace in self.traces.all
                },
            )
            for prompt in (False, True)
        ]
        if self.scale.whole:
            found.append(
                Study(
                    "figure-4-whole",
                    "training on the first 10 000 jobs of each log",
                    {
                        f"{trace.name}, SJF{', prompt' * prompt}": self.whole(trace, "sjf", prompt=prompt)
                        for prompt in (False, True)
                        for trace in self.traces.all
                    },
                )
            )
        return found + list(self._further_studies()) if self.scale.study_steps else found

    def _further_studies(self) -> Iterator[Study]:
        trace = self.traces.first
        wholly = WholeState(longest_time=trace.longest_time)
        compact = InspectorFeatures(longest_time=trace.longest_time, features="compact")
        yield Study(
            "figure-5",
            f"features, SJF on {trace.name}",
            {
                "manual": self._study("manual"),
                "compact": self._study("compact", encoder=compact),
                "native": self._study("native", encoder=wholly),
            },
        )
        kinds = ("bounded", "percentage", "native", "win-loss")
        yield Study(
            "figure-6",
            f"rewards, SJF on {trace.name}",
            {kind: self._study("manual" if kind == "bounded" else kind, kind=kind) for kind in kinds},
        )
        orders = ("fcfs", "lcfs", "srf", "saf")
        yield Study(
            "figure-7",
            f"base schedulers on {trace.name}",
            {order.upper(): self._study(order, order=order) for order in orders},
        )
        yield Study(
            "figure-9",
            f"metrics on {trace.name}",
            {
                f"{metric}, {order.upper()}": self._study(f"{order}-{metric}", order=order, metric=metric)
                for metric in ("wait", "mbsld")
                for order in self.scale.orders
            },
        )
        yield Study(
            "figure-11",
            f"with backfilling on {trace.name}",
            {
                f"{metric}, {order.upper()}": self._study(
                    f"{order}-{metric}-bf", order=order, metric=metric, backfilling=True
                )
                for metric in ("bsld", "wait")
                for order in self.scale.orders
            },
        )
        yield Study("figure-12", f"Slurm's priority on {trace.name}", {"Slurm": self._slurm(trace)})

    def _study(self, name: str, **how: Any) -> Learner:
        trace = self.traces.first
        part = trace.part
        return self._learner(f"{trace.name}-study-{name}", part, trace, steps=self.scale.study_steps, **how)

    def _slurm(self, trace: Trace) -> Learner:
        """Return the agent of section 4.5: textbook multifactor order, published backfilling."""
        made = self._study("slurm", backfilling=True)
        policy = published(CODE, backfilling=True, inspector=External(), max_rejections=None)
        base = published(CODE, backfilling=True)
        policy.order, base.order = SlurmMultifactor(shares="log"), SlurmMultifactor(shares="log")
        return replace(made, policy=policy, reward=Improvement(base, kind="bounded"))

    def _learner(
        self,
        name: str,
        part: Workload,
        trace: Trace,
        *,
        steps: int | None = None,
        encoder: Any = None,
        first: int = 0,
        metric: str = "bsld",
        prompt: bool = False,
        **how: Any,
    ) -> Learner:
        """Return a learner under published semantics; each name is created once."""
        if name not in self._made:
            if encoder is None:
                of_metric: Any = "wait" if metric == "wait" else "bounded_slowdown"
                encoder = InspectorFeatures(longest_time=trace.longest_time, metric=of_metric)
            as_paid: dict[str, Any] = {"kind": "ratio"} if prompt else {"max_rejections": None}
            env = inspector_environment(part, metric=metric, encoder=encoder, first=first, **as_paid, **how)
            trainer = "prompt-inspector" if prompt else "schedinspector"
            usual = self.scale.prompt_steps if prompt else self.scale.steps
            settings = replace(RATIO if prompt else PUBLISHED, total_timesteps=steps or usual)
            self._made[name] = Learner.of(name, env, trainer, settings, self.traces.seed)
        return self._made[name]
