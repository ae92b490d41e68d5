"""How SchedInspector was trained and on what, by its paper and its code; and how it learns faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from hpcsimkit.agents.masks import AcceptReject
from hpcsimkit.agents.prompt_improvement import PromptImprovement, PromptRatio
from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.trainer import InspectorSettings, PromptInspectorSettings
from hpcsimkit.agents.sequences import Sequences
from hpcsimkit.decision import External
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.learning import Encoder, Reward
from hpcsimkit.policies.dirlab import MAX_REJECTIONS, published
from hpcsimkit.workload import Workload

__all__ = ["JOBS", "METRICS", "PROMPT", "PUBLISHED", "RATIO", "inspector_environment"]

JOBS = 128
"""Of a sequence that is learned from."""

METRICS: Mapping[str, str] = {
    "bsld": "mean_bounded_slowdown", "wait": "mean_wait_time", "mbsld": "max_bounded_slowdown"
}  # fmt: skip
"""What the paper calls metrics, and their names in :data:`~hpcsimkit.metrics.METRICS`."""

PUBLISHED = InspectorSettings()
"""100 sequences a round, learned from 80 times at most; networks of 938 and 929 weights."""

PROMPT = PromptInspectorSettings()
"""The same networks, paid while jobs wait: 50 sequences a round, learned from 8 times."""

RATIO = replace(PROMPT, entropy_weight=0.01)
"""The same for ``kind="ratio"``; without some entropy a training may end where everything is accepted."""


def inspector_environment(
    log: Workload, order: str = "sjf", *, metric: str = "bsld", backfilling: bool = False,
    kind: Literal["native", "percentage", "win-loss", "bounded", "ratio"] = "bounded",
    first: int = JOBS, last: int | None = None, max_rejections: int | None = MAX_REJECTIONS,
    encoder: Encoder | None = None, prompt: bool = False,
) -> SchedulingEnv:  # fmt: skip
    """Return what SchedInspector learns from, by the published rules.

    Parameters
    ----------
    log : Workload
        As :func:`~hpcsimkit.workloads.dirlab.read_published` returns it for ``"schedinspector"``.
    order, backfilling
        Of the base scheduler; see :func:`~hpcsimkit.policies.dirlab.published`.
    metric : {"bsld", "wait", "mbsld"}
        What is to be made lower than under the base scheduler.
    kind : str
        How that is paid; see :class:`~hpcsimkit.agents.rewards.Improvement`. ``ratio`` is paid while jobs
        wait, as :class:`~hpcsimkit.agents.prompt_improvement.PromptRatio`.
    first, last : int
        Sequences begin at one of these rows; by default as published, but for the end of the log.
    max_rejections : int, optional
        How often a job is rejected at most. (Published: in tests only, in training without limit.)
    encoder : Encoder, optional
        What is seen; by default the seven features, the longest run time of the log being one.
    prompt : bool
        It is paid while jobs wait, by a :class:`~hpcsimkit.agents.prompt_improvement.PromptImprovement`,
        and not only at the end. (Published: at the end.)

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
