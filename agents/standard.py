"""Environments by name: ``gymnasium.make("hpcsimkit/Order-v0", log=..., policy=..., reward=...)``.

``import hpcsimkit`` registers a name for each seat; without arguments they need no file. ``...Flat-v0`` are
the same with flat observations, for code that takes nothing but a name. ``gymnasium.make_vec`` with
``vectorization_mode="vector_entry_point"`` writes the observations of all environments into one array, which
is faster than ``SyncVectorEnv``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcsimkit.agents.catalogue import REWARDS
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import Generated, Windows
from hpcsimkit.agents.spaces.holes import JobAndHole
from hpcsimkit.agents.spaces.masks import AcceptReject, JobMachine, Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait
from hpcsimkit.agents.spaces.running_jobs import RunningJobs
from hpcsimkit.agents.spaces.seat_encoders import Flat, OneJob, Places
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encoder, Mask, Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.given_policy import GivenPolicy, policy_of
from hpcsimkit.kernel.pipeline import LIMITS, Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.backfill.testing import HoleTests
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.orders import UNICEF
from hpcsimkit.policies.placing.placements import BestFit
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.workloads import default_workload
from hpcsimkit.workloads.readers.logs import read_log

if TYPE_CHECKING:
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.envs.gymnasium_vector import SchedulingVectorEnv

__all__ = [
    "backfill",
    "backfiller",
    "dispatch",
    "gate",
    "inspector",
    "order",
    "placement",
    "preemptor",
    "tester",
]

GIGABYTE = 10**9
ATTEMPTS = 100
"""Maximum number of windows to try until one has a decision; short windows may have none."""

MACHINES = Machines.of(5, cpus=64, memory="256 GB") + Machines.of(2, "gpu", cpus=64, gpus=8, memory="512 GB")
"""Machines of the environments that need some."""

Log = Workload | str | os.PathLike[str] | None
"""A workload, the path of a log, or None for a workload that needs no file."""


class Usual(NamedTuple):
    """What the environment of a seat has if nothing else is given."""

    stage: str
    policy: GivenPolicy
    encoder: Encoder
    mask: Mask
    reward: Reward

    def environment(self, slots: int, jobs: int, options: dict[str, Any]) -> SchedulingEnv:
        """Return the environment with some options; see :func:`order`."""
        from hpcsimkit.envs.environment import SchedulingEnv

        given = {"attempts": ATTEMPTS, **options}
        log, flat = given.pop("log", None), given.pop("flat", False)
        episodes = given.pop("episodes", None) or Windows(_workload(log), jobs)
        policy, encoder, mask, reward = (
            usual if (found := given.pop(name, None)) is None else found
            for name, usual in zip(self._fields[1:], self[1:], strict=True)
        )
        return SchedulingEnv(
            episodes,
            opened(policy_of(policy), self.stage, slots),
            Flat(encoder) if flat else encoder,
            mask,
            REWARDS.named(reward)() if isinstance(reward, str) else reward,
            stage=self.stage,
            **given,
        )


def _workload(log: Log) -> Workload:
    if isinstance(log, Workload):
        return log
    return default_workload(np.random.default_rng(0)) if log is None else read_log(log)


def order(slots: int = 16, jobs: int = 256, render_mode: str | None = None, **options: Any) -> SchedulingEnv:
    """Choose the next job among those that have waited longest.

    Parameters
    ----------
    slots : int
        Number of options that have an action. Default: 16.
    jobs : int
        Number of jobs in an episode: a window of the log. Default: 256.
    render_mode : str, optional
        Render mode of :class:`~hpcsimkit.envs.environment.SchedulingEnv`.
    **options
        ``log``: workload or path, by default the built-in workload of 5 000 jobs on 256 nodes; ``policy``:
        name or policy with the seat, by default ``fcfs+easy``; ``encoder``, ``mask``, ``reward`` (an object,
        or its name); ``flat``: whether observations are rows of numbers; ``episodes`` in place of a log; and
        keywords of :class:`~hpcsimkit.envs.environment.SchedulingEnv`. The reward is by default minus the
        mean bounded slowdown.

    Raises
    ------
    UsageError
        An option is invalid.

    Examples
    --------
    >>> env = order(slots=4, policy="sjf", reward="MinusMeanWait", flat=True)
    >>> env.policy
    Pipeline(order=External(base=SJF()), window=4)
    >>> env.observation_space.shape
    (25,)
    """
    parts = QueueWindow(slots), Slots(slots), MinusMeanBoundedSlowdown()
    usual = Usual("order", "fcfs+easy", *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def backfiller(
    slots: int = 16, jobs: int = 256, render_mode: str | None = None, **options: Any
) -> SchedulingEnv:
    """Choose a job to backfill behind the first blocked one, or none; reward: minus the mean wait [h].

    Parameters are those of :func:`order`; one more action declines.
    """
    parts = QueueWindow(slots), Slots(slots, decline=True), MinusMeanWait(scale=3600)
    usual = Usual("backfiller", "fcfs+easy", *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


backfill = backfiller


def inspector(
    slots: int = 16, jobs: int = 256, render_mode: str | None = None, **options: Any
) -> SchedulingEnv:
    """Accept the next job, or hold it for ten minutes at most, 16 times at most; reward: that of `order`.

    Parameters are those of :func:`order`; `slots` has no effect.
    """
    policy = Pipeline(backfiller=EASY(), max_interval=600, max_rejections=16)
    parts = OneJob(), AcceptReject(), MinusMeanBoundedSlowdown()
    usual = Usual("inspector", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def gate(slots: int = 16, jobs: int = 256, render_mode: str | None = None, **options: Any) -> SchedulingEnv:
    """Let a job start or block others now, or skip it until the next pass; reward: that of `order`.

    Parameters are those of :func:`order`; `slots` has no effect.
    """
    policy = Pipeline(backfiller=EASY(), max_interval=600)
    parts = OneJob(), AcceptReject(), MinusMeanBoundedSlowdown()
    usual = Usual("gate", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def placement(
    slots: int = 7, jobs: int = 200, render_mode: str | None = None, **options: Any
) -> SchedulingEnv:
    """Choose the machine of each job, of five with CPUs and two with GPUs; reward: minus the mean wait [h].

    Parameters are those of :func:`order`; without a log, each episode generates new jobs.
    """
    parts = Places(slots), Slots(slots), MinusMeanWait(scale=3600)
    if options.get("log") is None:
        options.setdefault("episodes", Generated(partial(_requests, jobs), MACHINES))
    policy = Pipeline(placement=BestFit(), backfiller=EASY())
    usual = Usual("placement", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def preemptor(
    slots: int = 16, jobs: int = 256, render_mode: str | None = None, **options: Any
) -> SchedulingEnv:
    """Choose running jobs to stop for an urgent job that does not fit; reward: minus the mean wait [h].

    Parameters are those of :func:`order`. Urgent are jobs with a larger number of their queue; of the
    built-in workload, one in four. One more action lets the job wait.
    """
    parts = RunningJobs(slots), Slots(slots, decline=True), MinusMeanWait(scale=3600)
    if options.get("log") is None:
        options["log"] = _with_urgent_jobs(default_workload(np.random.default_rng(0)))
    policy = Pipeline(backfiller=EASY(), preemptor=PreemptLowerTiers())
    usual = Usual("preemptor", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def tester(  # no test of the kit's
    slots: int = 16,  # noqa: PT028
    jobs: int = 256,  # noqa: PT028
    render_mode: str | None = None,  # noqa: PT028
    **options: Any,
) -> SchedulingEnv:
    """Test a job in the hole that reservations leave, for 300 s at most, or not now; reward: that of `order`.

    Parameters are those of :func:`order`; `slots` has no effect.
    """
    policy = Pipeline(UNICEF(), backfiller=EASY(), tester=HoleTests())
    parts = JobAndHole(), AcceptReject(), MinusMeanBoundedSlowdown()
    usual = Usual("tester", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def dispatch(
    slots: int = 10, jobs: int = 200, render_mode: str | None = None, **options: Any
) -> SchedulingEnv:
    """Choose a job and its machine, of five with CPUs and two with GPUs; reward: minus the mean wait [h].

    Parameters are those of :func:`order`, without `log` and `policy`; each episode generates new jobs.
    """
    parts = (
        RequestsAndMachines(slots, len(MACHINES)),
        JobMachine(slots, len(MACHINES)),
        MinusMeanWait(scale=3600),
    )
    options.setdefault("episodes", Generated(partial(_requests, jobs), MACHINES))
    policy = Dispatch(External(), slots=slots)
    usual = Usual("dispatch", policy, *parts)
    return usual.environment(slots, jobs, {"render_mode": render_mode, **options})


def opened(policy: Any, stage: str, slots: int) -> Any:
    """Return a policy with an open seat, and its stage as the heuristic behind it.

    Parameters
    ----------
    policy : Policy
        Pipeline whose seat is opened, or a policy whose seat is open.
    stage : str
        The seat.
    slots : int
        Maximum number of options, if the policy does not limit them.

    Raises
    ------
    UsageError
        The policy has no such seat.
    """
    if stage == "dispatch":
        return policy
    if not isinstance(policy, Pipeline):
        raise UsageError(f"{policy!r} has no {stage} seat: a pipeline is needed, such as fcfs+easy")
    made = copy.copy(policy)
    if not isinstance(getattr(made, stage), External):
        declines = stage == "backfiller"
        setattr(made, stage, External(getattr(made, stage), decline=declines))
    limit = LIMITS.get(stage)
    if limit is not None and made.window is None and getattr(made, limit) is None:
        setattr(made, limit, slots)
    made.check()
    return made


# --- vectors of environments -------------------------------------------------------------------------------


def _vector(
    make: Callable[..., SchedulingEnv], num_envs: int = 1, *, autoreset_mode: str = "NextStep", **options: Any
) -> SchedulingVectorEnv:
    """Return environments that are stepped in one process; parameters are those of `make`."""
    from hpcsimkit.envs.gymnasium_vector import SchedulingVectorEnv

    return SchedulingVectorEnv(make(**options), num_envs, autoreset_mode=autoreset_mode)


order_vector = partial(_vector, order)
backfill_vector = backfiller_vector = partial(_vector, backfiller)
inspector_vector = partial(_vector, inspector)
gate_vector = partial(_vector, gate)
placement_vector = partial(_vector, placement)
preemptor_vector = partial(_vector, preemptor)
tester_vector = partial(_vector, tester)
dispatch_vector = partial(_vector, dispatch)


# --- jobs --------------------------------------------------------------------------------------------------


def _with_urgent_jobs(workload: Workload) -> Workload:
    """Return a workload in which every fourth job is urgent: its queue is 2, that of others 1."""
    queue = np.where(np.arange(len(workload)) % 4 == 3, 2, 1)
    return replace(workload, columns={**workload.columns, "queue": queue})


def _requests(jobs: int, rng: np.random.Generator) -> Workload:
    """Return jobs with random arrivals that request CPUs, memory and, one in ten, GPUs."""
    run_time = np.rint(np.exp(rng.normal(8, 1.5, jobs))).astype(np.int64) + 1
    columns: dict[str, Any] = {
        "submit_time": np.cumsum(rng.exponential(300, jobs)).astype(np.int64),
        "run_time": run_time,
        "requested_time": np.rint(run_time * rng.uniform(1, 5, jobs)).astype(np.int64),
        "nodes": np.ones(jobs),
        "cpus": rng.integers(1, 33, jobs),
        "gpus": np.where(rng.random(jobs) < 0.1, rng.integers(1, 5, jobs), 0),
        "memory": rng.integers(1, 129, jobs) * GIGABYTE,
    }
    return Workload(columns, name="requests", resources=("cpus", "gpus", "memory"))
