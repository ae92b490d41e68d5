"""Observations for seats that decide on one job, or on places; and flat observations."""

from __future__ import annotations

import math

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation, shape_of
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["Flat", "OneJob", "Places"]


class Flat(Encoder):
    """The observations of another encoder as a row of numbers.

    Parameters
    ----------
    encoder : Encoder
        The other encoder.

    Examples
    --------
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> Flat(QueueWindow(4)).shape
    (25,)
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def reads_compiled(self) -> bool:  # type: ignore[override]
        """Whether the other encoder reads only what a compiled run shows."""
        return bool(vars(type(self.encoder)).get("reads_compiled", False))

    @property
    def low(self) -> float:  # type: ignore[override]
        """Lower bound of all values."""
        return self.encoder.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """Upper bound of all values."""
        return self.encoder.high

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (numbers,)."""
        return (math.prod(shape_of(self.encoder)),)

    def bind(self, system: System) -> Encode:
        """Bind the other encoder."""
        inner, shape = self.encoder.bind(system), shape_of(self.encoder)

        def encode(decision: Decision, out: Observation) -> None:
            inner(decision, out.reshape(shape))

        return encode


class OneJob(Encoder):
    """The job in question and the state of the cluster, for inspectors and gates.

    ======== =========== ==========================================================
    position range       meaning
    ======== =========== ==========================================================
    0        >= 0        requested time, divided by `time_scale`
    1        (0, 1]      requested share of the cluster
    2        >= 0        wait so far, divided by `time_scale`
    3        0 or 1      whether the job fits now
    4        >= 0        free share of the cluster
    5        >= 0        waiting jobs, divided by 64
    6        >= 0        running jobs, divided by 64
    7        >= 0        number of times that the job was held, divided by 8
    ======== =========== ==========================================================

    Parameters
    ----------
    time_scale : float
        Unit of time [s].

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.rl import AcceptReject, Fixed, MinusMeanWait, SchedulingEnv
    >>> w = Workload(
    ...     {"submit_time": [0, 0], "run_time": [60, 60], "requested_time": [7200, 7200], "nodes": [1, 4]},
    ...     machine_size=4,
    ... )
    >>> parts = Fixed(w), Pipeline(inspector=External()), OneJob(3600.0), AcceptReject(), MinusMeanWait()
    >>> SchedulingEnv(*parts, stage="inspector").reset(seed=0)[0].tolist()
    [2.0, 1.0, 0.0, 0.0, 0.75, 0.015625, 0.015625, 0.0]
    """

    low, high = 0.0, np.inf

    def __init__(self, time_scale: Positive = 86_400.0) -> None:
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (8,)."""
        return (8,)

    def bind(self, system: System) -> Encode:
        """Bind the cluster of the run."""
        cluster, scale = system.cluster, self.time_scale

        def encode(decision: Decision, out: Observation) -> None:
            job, state = decision.job, decision.system
            assert job is not None
            out[:] = (
                job.requested_time / scale,
                cluster.asked(job) / cluster.size,
                (state.now - job.submit_time) / scale,
                state.fits(job),
                cluster.share(state.free),
                len(state.queue) / 64,
                len(state.running) / 64,
                state.holds.get(job.index, 0) / 8,
            )

        return encode


class Places(Encoder):
    """Places for a job on machines, one row per option: what is free on them before and after its start.

    ====== =========== ==========================================================
    column range       meaning
    ====== =========== ==========================================================
    0      0 or 1      whether the row has a place
    1      (0, 1]      share of the machines that it takes
    2      [0, 1]      free share of the first resource on them, before the start
    3      [0, 1]      free share of the first resource on them, after the start
    4      [0, 1]      least free share of any resource on them, after the start
    ====== =========== ==========================================================

    Parameters
    ----------
    slots : int
        Number of rows; the first `slots` options of a decision are encoded.

    Examples
    --------
    >>> Places(4).shape
    (4, 5)
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int) -> None:
        self.slots = slots

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots, 5)."""
        return (self.slots, 5)

    def bind(self, system: System) -> Encode:
        """Bind the capacity of the machines."""
        capacity = np.maximum(system.cluster.capacity, 1)

        def encode(decision: Decision, out: Observation) -> None:
            free = decision.system.free
            for place, allocation in enumerate(decision.options[: self.slots]):
                machines = list(allocation.machines)
                before = free[machines] / capacity[machines]
                after = (free[machines] - allocation.amounts) / capacity[machines]
                share = len(machines) / len(capacity)
                out[place] = (1, share, before[:, 0].mean(), after[:, 0].mean(), after.min())

        return encode
