"""Who is trained, and for which table or figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from hpcsimkit.agents.episodes import Windows
from hpcsimkit.agents.masks import AcceptReject
from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import JOBS, PUBLISHED, inspector_environment
from hpcsimkit.agents.schedinspector.whole_state import WholeState
from hpcsimkit.decision import External
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS, published
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.schedinspector.data import PUBLISHED_SLICE, Trace, Traces
from hpcsimkit.workload import Workload

__all__ = ["Learners", "Study", "honest_base"]

CODE = "schedinspector"


class Study(NamedTuple):
    """A figure of the paper: what its panels compare.

    Parameters
    ----------
    name : str
        Fit to be the name of a file.
    about : str
        What it is about.
    learners : mapping of str to Learner
        By what the panel is called.
    """

    name: str
    about: str
    learners: Mapping[str, Learner]


def honest_base(order: str, inspector: Any = None) -> Pipeline:
    """Return the best heuristic rival: an order with EASY that tries the shortest candidate first."""
    return Pipeline(
        order_of(CODE, order), inspector, backfiller=EASY(SJF()), max_interval=MAX_INTERVAL,
        max_rejections=MAX_REJECTIONS,
    )  # fmt: skip


class Learners:
    """All agents to be trained; each is made once.

    Parameters
    ----------
    traces : Traces
        The logs.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self.scale = traces.scale
        self._made: dict[str, Learner] = {}

    def own(self, trace: Trace, order: str, *, backfilling: bool = False) -> Learner:
        """Return the agent of a log, trained on its first fifth."""
        name = f"{trace.name}-{order}{'-bf' * backfilling}"
        part = trace.first_part(trace.log)
        return self._published(name, part, trace, self.scale.steps, order=order, backfilling=backfilling)

    def whole(self, trace: Trace, order: str) -> Learner:
        """Return the agent of a log, trained as the published code does: on its first 10 000 jobs."""
        part = trace.log.first(PUBLISHED_SLICE)
        return self._published(
            f"{trace.name}-{order}-whole", part, trace, self.scale.steps, order=order, first=JOBS
        )

    def honest(self, trace: Trace, order: str) -> Learner:
        """Return the agent of a log by the textbook's rules, behind EASY with SJF candidates."""
        part = trace.first_part(trace.honest)
        env = SchedulingEnv(
            Windows(part, JOBS), honest_base(order, External()),
            InspectorFeatures(longest_time=int(part.requested_time.max()), backfilling="easy"),
            AcceptReject(), Improvement(honest_base(order), kind="bounded"), stage="inspector",
        )  # fmt: skip
        return self._learner(f"{trace.name}-{order}-honest", env, self.scale.steps)

    @cached_property
    def studies(self) -> list[Study]:
        """The paper's figures of trainings; those beyond the first only if there are steps for them."""
        figure_4 = {
            f"{trace.name}, {order.upper()}": self.own(trace, order)
            for order in self.scale.orders for trace in self.traces.all
        }  # fmt: skip
        found = [Study("figure-4", "training on each log", figure_4)]
        return found + list(self._further_studies()) if self.scale.study_steps else found

    def _further_studies(self) -> Iterator[Study]:
        trace = self.traces.first
        wholly = WholeState(longest_time=trace.longest_time)
        compact = InspectorFeatures(longest_time=trace.longest_time, features="compact")
        yield Study("figure-5", f"features, SJF on {trace.name}", {
            "manual": self._study("manual"), "compact": self._study("compact", encoder=compact),
            "native": self._study("native", encoder=wholly),
        })  # fmt: skip
        kinds = ("bounded", "percentage", "native", "win-loss")
        yield Study("figure-6", f"rewards, SJF on {trace.name}", {
            kind: self._study("manual" if kind == "bounded" else kind, kind=kind) for kind in kinds
        })  # fmt: skip
        orders = ("fcfs", "lcfs", "srf", "saf")
        yield Study("figure-7", f"base schedulers on {trace.name}", {
            order.upper(): self._study(order, order=order) for order in orders
        })  # fmt: skip
        yield Study("figure-9", f"metrics on {trace.name}", {
            f"{metric}, {order.upper()}": self._study(f"{order}-{metric}", order=order, metric=metric)
            for metric in ("wait", "mbsld") for order in self.scale.orders
        })  # fmt: skip
        yield Study("figure-11", f"with backfilling on {trace.name}", {
            f"{metric}, {order.upper()}":
                self._study(f"{order}-{metric}-bf", order=order, metric=metric, backfilling=True)
            for metric in ("bsld", "wait") for order in self.scale.orders
        })  # fmt: skip
        yield Study("figure-12", f"Slurm's priority on {trace.name}", {"Slurm": self._slurm(trace)})

    def _study(self, name: str, **how: Any) -> Learner:
        trace = self.traces.first
        part = trace.first_part(trace.log)
        return self._published(f"{trace.name}-study-{name}", part, trace, self.scale.study_steps, **how)

    def _slurm(self, trace: Trace) -> Learner:
        """Return the agent of section 4.5: the multifactor order, of the textbook, with their backfilling."""
        made = self._study("slurm", backfilling=True)
        policy, base = (
            published(CODE, backfilling=True, inspector=External()), published(CODE, backfilling=True)
        )  # fmt: skip
        policy.order, base.order = SlurmMultifactor(), SlurmMultifactor()
        return replace(made, policy=policy, reward=Improvement(base, kind="bounded"))

    def _published(
        self, name: str, part: Workload, trace: Trace, steps: int, *, encoder: Any = None, first: int = 0,
        metric: str = "bsld", **how: Any,
    ) -> Learner:  # fmt: skip
        """Return a learner by the published rules."""
        if encoder is None:
            of_metric: Any = "wait" if metric == "wait" else "bounded_slowdown"
            encoder = InspectorFeatures(longest_time=trace.longest_time, metric=of_metric)
        env = inspector_environment(part, metric=metric, encoder=encoder, first=first, **how)
        return self._learner(name, env, steps)

    def _learner(self, name: str, env: SchedulingEnv, steps: int) -> Learner:
        if name not in self._made:
            self._made[name] = Learner(
                name, env.episodes, env.policy, env.encoder, env.mask, env.reward, "schedinspector",
                replace(PUBLISHED, steps=steps), seed=self.traces.seed, stage="inspector",
            )  # fmt: skip
        return self._made[name]
