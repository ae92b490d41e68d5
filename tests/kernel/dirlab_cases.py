"""What the tests of the published simulators' rules share: references, rules that play on open seats."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab import learned_backfilling, published
from hpcsimkit.policies.dirlab.orders import CorrectedUNICEF
from hpcsimkit.policies.orders import SJF, WFP3, LargestFirst
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.dirlab import read_published

CODES = {"rls": "rlscheduler", "insp": "schedinspector", "rlbf": "rlbackfilling"}
OUR_NAMES = {"smallest": "sqf", "lpf": "ljf", "wfp": "wfp3", "uni": "unicef"}
CORRECTED = {"wfp_fixed": WFP3, "uni_fixed": CorrectedUNICEF}
TRACES = {
    "lublin256": "lublin-1.swf",
    "lublin_256.swf": "lublin-1.swf",
    "lublin_256_new2.swf": "lublin-2.swf",
}
TRIED = {"fcfs": None, "sjf": SJF(), "largest": LargestFirst()}

Step = tuple[int | str, ...]


@cache
def load(shared: Path, trace: str, code: str) -> Workload:
    return read_published(shared / "traces" / TRACES[trace], CODES[code])


@cache
def table(shared: Path, name: str) -> dict[str, NDArray[np.int64]]:
    """Read start times: columns by name."""
    with gzip.open(shared / "refs" / "dirlab" / f"{name}.csv.gz", "rt") as file:
        names = next(csv.reader(file))
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return dict(zip(names, rows.T, strict=True))


def rows(shared: Path, name: str) -> Iterator[dict[str, str]]:
    with gzip.open(shared / "refs" / "dirlab" / f"{name}.csv.gz", "rt") as file:
        yield from csv.DictReader(file)


def base(code: str, policy: str, *, backfilling: bool) -> Pipeline:
    """Return a scheduler by the name that it has in the references."""
    if policy.startswith("fcfs+easyorder:"):
        tried = TRIED[policy.partition(":")[2]]
        return published(CODES[code], "fcfs", backfilling=backfilling, candidates=tried)
    policy = policy.removeprefix("base:")
    if policy in CORRECTED:
        pipeline = published(CODES[code], "fcfs", backfilling=backfilling)
        pipeline.order = CORRECTED[policy]()
        return pipeline
    return published(CODES[code], OUR_NAMES.get(policy, policy), backfilling=backfilling)


# --- inspectors ------------------------------------------------------------------------------------------

INSPECTORS: dict[str, Callable[[int, Decision], bool]] = {
    "accept": lambda step, decision: True,
    "rejonce": lambda step, decision: held(decision) > 0,
    "hash30": lambda step, decision: (17 * step + 31 * decision.job.id) % 10 >= 3,
    "rejunfit": lambda step, decision: decision.system.fits(decision.job),
    "always": lambda step, decision: False,
}
"""Whether a job is accepted, by the step and what is asked."""


def held(decision: Decision) -> int:
    return decision.system.holds.get(decision.job.index, 0)


def inspected(
    scenario: Scenario, order: str, inspector: str, *, backfilling: bool
) -> tuple[Result, list[Step]]:
    """Play an episode of SchedInspector.

    Steps are time, waiting, running and free, job, seconds skipped, rejected. Where a job may not be rejected
    again nobody is asked here, but there: such a step is None.
    """
    seat = External()
    simulation = scenario.simulation(
        published("schedinspector", order, backfilling=backfilling, inspector=seat)
    )
    steps: list[Step] = []
    while (decision := simulation.next_decision()) is not None:
        accepted = INSPECTORS[inspector](len(steps), decision)
        times = held(decision)
        steps.append((*state(decision), decision.job.id, 600 * times, int(not accepted)))
        simulation.answer(accepted)
        if not accepted and times + 1 == 72:
            steps.append(())
    return simulation.result(), steps


def state(decision: Decision) -> tuple[int, int, int, int]:
    system = decision.system
    return system.now, len(system.queue), len(system.running), int(system.free)


# --- backfillers -----------------------------------------------------------------------------------------

BACKFILLERS: dict[str, Callable[[int, Job, list[Job]], Job]] = {
    "first": lambda step, head, jobs: jobs[0],
    "sjf": lambda step, head, jobs: min(jobs, key=lambda job: job.requested_time),
    "largest": lambda step, head, jobs: max(jobs, key=lambda job: job.nodes),
    "hash": lambda step, head, jobs: jobs[(17 * step + 31 * head.id) % len(jobs)],
}
"""Which candidate starts, by the step and the blocked job."""


def backfilled(scenario: Scenario, order: str, agent: str, *, guarded: bool) -> tuple[Result, list[Step]]:
    """Play an episode of RLBackfilling; steps are time, waiting, running and free, head, candidates, action."""
    simulation = scenario.simulation(learned_backfilling(order, guarded=guarded))
    steps: list[Step] = []
    while (decision := simulation.next_decision()) is not None:
        jobs = list(decision.options)
        job = jobs[0]
        if len(jobs) > 1:
            job = BACKFILLERS[agent](len(steps), decision.job, jobs)
            candidates = " ".join(str(each.id) for each in jobs)
            steps.append((*state(decision), decision.job.id, candidates, jobs.index(job)))
        simulation.answer(job)
    return simulation.result(), steps
