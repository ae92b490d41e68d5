"""Trained agents: one for each log, base scheduler and training protocol, and as published."""

from __future__ import annotations

from dataclasses import replace

from hpcsimkit.agents.rlbackfilling.reward import BASELINE
from hpcsimkit.agents.rlbackfilling.settings import EVOLVED, JOBS, PUBLISHED, backfilling_environment
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.rlbackfilling.data import JOBS as TESTED
from hpcsimkit.reproductions.rlbackfilling.data import Trace, Traces, Way

__all__ = ["Learners"]


class Learners:
    """All agents to be trained; each is created once.

    Parameters
    ----------
    traces : Traces
        Logs.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self._made: dict[str, Learner] = {}

    def own(self, trace: Trace, order: str, way: Way) -> Learner:
        """Return the agent of a log, trained on its first fifth."""
        jobs = _jobs(way, trace.part)
        env = backfilling_environment(
            trace.part,
            order,
            way.mode,
            jobs=jobs,
            first=0,
            last=len(trace.part) - jobs,
            longest_time=trace.longest_time,
        )
        return self._learner(f"{trace.name}-{order}-{way.mode}", env, way)

    def published(self, trace: Trace, order: str, way: Way) -> Learner:
        """Return the agent of a log, trained on its first 10 000 jobs, as published."""
        jobs = _jobs(way, trace.slice)
        env = backfilling_environment(
            trace.slice, order, way.mode, jobs=jobs, first=jobs, longest_time=trace.longest_time
        )
        return self._learner(f"{trace.name}-{order}-published", env, way)

    def _learner(self, name: str, env: SchedulingEnv, way: Way) -> Learner:
        name = f"{name}{'-evolved' * way.evolved}"
        if name not in self._made:
            settings = replace(PUBLISHED, total_timesteps=self.traces.scale.steps)
            learner = Learner.of(name, env, "spinning-up-ppo", settings, self.traces.seed)
            if way.evolved:
                learner = replace(
                    learner,
                    reward=Improvement(BASELINE, kind="bounded"),
                    trainer="cem",
                    settings=replace(EVOLVED, total_timesteps=self.traces.scale.evolved_steps),
                )
            self._made[name] = learner
        return self._made[name]


def _jobs(way: Way, part: Workload) -> int:
    """Return the number of jobs of a training sequence: as published, or as in tests."""
    return min(TESTED, len(part) // 2) if way.evolved else JOBS
