"""Training settings and environment of SchedInspector, as published, and settings that learn faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.trainer import InspectorSettings, PromptInspectorSettings
from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement, PromptRatio
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.spaces.sequences import Sequences
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Reward
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.dirlab import MAX_REJECTIONS, published

__all__ = ["JOBS", "METRICS", "PROMPT", "PUBLISHED", "RATIO", "inspector_environment"]

JOBS = 128
"""Number of jobs in a training sequence."""

METRICS: Mapping[str, str] = {
    "bsld": "mean_bounded_slowdown",
    "wait": "mean_wait_time",
    "mbsld": "max_bounded_slowdown",
}
"""Metrics by their names in the paper, with their names in :data:`~hpcsimkit.results.metrics.METRICS`."""

PUBLISHED = InspectorSettings()
"""100 sequences per round, with at most 80 passes over them; networks of 938 and 929 weights."""

PROMPT = PromptInspectorSettings()
"""The same networks with a dense reward: 50 sequences per round, with 8 epochs."""

RATIO = replace(PROMPT, ent_coef=0.01)
"""The same for ``kind="ratio"``; without an entropy bonus a training may end in accepting every job."""


def inspector_environment(  # noqa: PLR0913 - keywords
    log: Workload,
    order: str = "sjf",
    *,
    metric: str = "bsld",
    backfilling: bool = False,
    kind: Literal["native", "percentage", "win-loss", "bounded", "ratio"] = "bounded",
    first: int = JOBS,
    last: int | None = None,
    max_rejections: int | None = MAX_REJECTIONS,
    encoder: Encoder | None = None,
    prompt: bool = False,
) -> SchedulingEnv:
    """Return the training environment of SchedInspector, by the published rules.

    Parameters
    ----------
    log : Workload
        Log, as :func:`~hpcsimkit.workloads.dirlab.read_published` returns it for ``"schedinspector"``.
    order, backfilling
        Base scheduler; see :func:`~hpcsimkit.policies.dirlab.published`.
    metric : {"bsld", "wait", "mbsld"}
        Metric to improve over the base scheduler; lower is better.
    kind : str
        Reward type; see :class:`~hpcsimkit.agents.spaces.rewards.Improvement`. ``ratio`` is the dense reward
        :class:`~hpcsimkit.agents.spaces.prompt_improvement.PromptRatio`.
    first, last : int
        Range of the start indices of sequences; by default as published, except at the end of the log.
    max_rejections : int, optional
        Maximum number of rejections per job. (Published: in tests only; no limit in training.)
    encoder : Encoder, optional
        Encoder of the observations; by default the seven features, with the longest run time of the log as
        the unit of requested times.
    prompt : bool
        Whether the reward is dense, a :class:`~hpcsimkit.agents.spaces.prompt_improvement.PromptImprovement`,
        instead of a single one at the end. (Published: at the end.)

    Examples
    --------
    >>> import numpy as np
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=300)
    >>> observation, info = inspector_environment(log).reset(seed=1)
    >>> observation.shape
    (7,)
    """
    if encoder is None:
        encoder = InspectorFeatures(
            longest_time=int(log.run_time.max()), metric="wait" if metric == "wait" else "bounded_slowdown"
        )
    base = published("schedinspector", order, backfilling=backfilling)
    seat = published(
        "schedinspector", order, backfilling=backfilling, inspector=External(), max_rejections=max_rejections
    )
    last = len(log) - JOBS - 1 if last is None else last
    reward: Reward
    if kind == "ratio":
        reward = PromptRatio(base, METRICS[metric])
    else:
        reward = (PromptImprovement if prompt else Improvement)(base, METRICS[metric], kind)
    return SchedulingEnv(
        Sequences(log, JOBS, first=first, last=last), seat, encoder, AcceptReject(), reward, stage="inspector"
    )
