"""CuSH's training problem, from its paper: a cluster, its job sets, and two open seats."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from hpcsimkit.agents.cush.encoder import ClusterImage
from hpcsimkit.agents.ranges import Count, Positive, Range
from hpcsimkit.agents.spaces.masks import QueueSlots
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.locality import LOCALITIES, KindLocality
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.placing.styles import DepthOrBreadth
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, CushJobSets

__all__ = ["CushProblem"]

NODES = 128
"""Number of nodes of the paper's clusters, for which the penalties are calibrated."""


@dataclass(frozen=True, kw_only=True)
class CushProblem:
    """Job sets on a cluster of homogeneous nodes with CPUs and GPUs, and the job selector's view of it.

    Parameters
    ----------
    system : {"sierra", "summit"}
        Node type: 2 CPUs and 4 GPUs, or 2 CPUs and 6 GPUs.
    nodes : int
        Number of nodes: N.
    jobs : int
        Number of jobs in a set.
    distribution : {"C1", "C0"}
        Distribution of the jobs; see :class:`~hpcsimkit.workloads.models.cush.CushJobSets`.
    slots : int
        Number of waiting jobs to choose from: Q; the jobs behind them are not visible.
    horizon : int
        Number of steps of one second in an image: T.
    wait_unit : float
        Unit of wait times in the image [s]. (The paper gives none.)

    Examples
    --------
    >>> problem = CushProblem(system="summit")
    >>> problem.image.shape, problem.mask.actions
    ((6, 5, 1024), 6)
    >>> problem.scenarios(np.random.default_rng(1), 2)[1].setup.cluster
    Machines(128: 256 cpus, 768 gpus)
    """

    system: Literal["sierra", "summit"] = "sierra"
    nodes: Count = NODES
    jobs: Count = 20
    distribution: Literal["C1", "C0"] = "C1"
    slots: Count = 5
    horizon: Annotated[int, Range(2)] = 5
    wait_unit: Positive = 20.0

    @property
    def image(self) -> ClusterImage:
        """Encoder of the job selector."""
        return ClusterImage(
            self.nodes, list(CUSH_SYSTEMS[self.system]), self.slots, self.horizon, self.wait_unit
        )

    @property
    def mask(self) -> QueueSlots:
        """Mask of the job selector: start the job in a slot, or no further job."""
        return QueueSlots(self.slots, decline=True)

    def pipeline(self, order: Any = None, placement: Any = None) -> Pipeline:
        """Return a scheduler with CuSH's rules and two seats, for the next job and for its placement.

        The clock does not advance while jobs start, one after the other; it advances by a second when no
        further job starts. Each of the first `slots` jobs may start if it fits: greedy scheduling without
        head-of-line blocking.

        Parameters
        ----------
        order, placement : stage, optional
            Stages on the two seats; by default the seats are open. Agents for the placement may leave the
            candidate placements to the pipeline.
        """
        placement = External() if placement is None else copy(placement)
        if isinstance(placement, External) and placement.base is None:
            placement.base = DepthOrBreadth()
        return Pipeline(
            order=order if order is not None else External(decline=True),
            placement=placement,
            fitting=True,
            window=self.slots,
            max_interval=1,
        )

    def scenario(self, job_set: Workload) -> Scenario:
        """Return the scenario of a job set on the cluster, with its penalties."""
        return Scenario(job_set, Setup(self._cluster, service_time=self._locality))

    def scenarios(self, rng: np.random.Generator, count: int) -> list[Scenario]:
        """Return scenarios of randomly drawn job sets."""
        generator = CushJobSets(
            system=self.system, nodes=self.nodes, jobs=self.jobs, distribution=self.distribution
        )
        return [self.scenario(job_set) for job_set in generator.generate(rng, count)]

    @cached_property
    def _cluster(self) -> Machines:
        node = CUSH_SYSTEMS[self.system]
        return Machines.of(self.nodes, cpus=node.cpus, gpus=node.gpus)

    @cached_property
    def _locality(self) -> KindLocality:
        """Calibrated penalties; on other cluster sizes, those of as many nodes of the paper's cluster."""
        model = LOCALITIES[self.system]
        if self.nodes == NODES:
            return model
        return KindLocality(model.compute_spread, model.network_crowded, nodes=NODES)
