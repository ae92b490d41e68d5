"""RLScheduler's models of other logs beside a DRAS-PG of Theta's own past (section 6.6 of DRAS's paper, figure 11)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.measurements import Validation
from hpcsimkit.agents.dras.settings import dras_environment, settings_for
from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.rlscheduler.seat import scheduling_seat
from hpcsimkit.agents.rlscheduler.settings import PUBLISHED, SLOTS, scheduling_environment
from hpcsimkit.agents.seats import RandomAgent, with_agent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.dras.own import MonthlyLog, episodes
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.results.metrics import measure
from hpcsimkit.workloads.dirlab import read_published
from tests.tables import TRACES

THETA = "ALCF-Theta-2022.swf.gz"
MODELS = {
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "Lublin-1": "lublin-1.swf",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
}
"""Logs of RLScheduler's models, by name."""

PHASES = ("sampled", "real", "synthetic")

TRAINING = replace(PUBLISHED, total_timesteps=400_000, episodes=20, n_epochs=10)
"""Settings of RLScheduler's trainings: as published, but for fewer decisions in smaller rounds.

Published: 2 560 000 decisions, 100 sequences in a round, 80 passes over it.
"""

MEASURES = {
    "mean_wait_time": HOUR,
    "max_wait_time": DAY,
    "mean_response_time": HOUR,
    "mean_slowdown": 1.0,
}
"""Measures and their units."""

HEADINGS = ("scheduler", "mean wait [h]", "maximum wait [d]", "mean response [h]", "mean slowdown")


def theta() -> MonthlyLog:
    """Theta as in the reproduction of DRAS: sizes divided by ten; two months to learn from, one to choose by."""
    scale = SimpleNamespace(full=False, sampled=9, synthetic=20, jobs=2000)
    return MonthlyLog(TRACES / THETA, reproduction_named("dras").paper.logs, scale, 0)


def generic(log: str) -> Agent:
    """Return RLScheduler's agent of the first fifth of a log, by the published rules, without backfilling."""
    jobs = read_published(TRACES / log, "rlscheduler")
    env = scheduling_environment(jobs.first(len(jobs) // 5), first=0)
    agent: Agent = trainer_named("spinning-up-ppo")(env, TRAINING, seed=0).train()
    return agent


def customised(log: MonthlyLog) -> Policy:
    """Return DRAS-PG of the log's own past, the best snapshot in the month to choose by."""
    env = dras_environment(episodes(log, PHASES), log.nodes, log.longest_time, objective=log.objective)
    own: Any = settings_for("dras-pg", log.nodes, log.reward_scale)
    validate = Validation(log.month, env.policy, env.reward)
    about: dict[str, Any] = {"validate": validate, "validate_every": 1, "attempts": 100}
    own = replace(own, total_timesteps=log.decisions)
    learner = Learner.of("pg", env, "dras-pg", own, 0, **about)
    with tempfile.TemporaryDirectory() as folder:
        learner.train(Path(folder), lambda steps: None)
        return with_agent(env.policy, trained_agent(learner, Path(folder), sample=False))


def schedulers(log: MonthlyLog) -> Iterator[tuple[str, Policy]]:
    """Yield names and schedulers; a model sees requested times and sizes by the maxima of the tested jobs."""
    yield "FCFS, EASY", Pipeline(backfiller=EASY())
    yield "SJF, EASY", Pipeline(order=SJF(), backfiller=EASY())
    encoder = WaitingJobs.of(log.test.scenarios[0].workload, SLOTS)
    agents: dict[str, Any] = {"chance": RandomAgent(Slots(SLOTS))}
    for name, file in MODELS.items():
        agents[f"RLScheduler of {name}"] = _seeing(generic(file), encoder)
    for words, backfilling in (("", False), (", EASY", True)):
        for name, agent in agents.items():
            policy = scheduling_seat(backfilling=backfilling)
            policy.order = agent
            yield f"{name}{words}", policy
    yield "DRAS-PG of Theta", customised(log)


def _seeing(agent: Agent, encoder: WaitingJobs) -> Agent:
    """Return an agent with another encoder."""
    return Agent(encoder, agent.mask, agent.network, agent.stage)


def rows() -> Iterator[list[str]]:
    """Yield a row for each scheduler, and show it at once."""
    log = theta()
    (test,) = log.test.scenarios
    for name, policy in schedulers(log):
        found = measure(test.simulation(policy).run(), names=tuple(MEASURES))
        yield [name, *(f"{found[each] / unit:.2f}" for each, unit in MEASURES.items())]
        print(name, found, file=sys.stderr, flush=True)
