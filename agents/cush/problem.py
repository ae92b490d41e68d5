"""The problem CuSH was trained on, by its paper: a cluster, its job sets, and two open seats."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hpcsimkit.agents.cush.encoder import ClusterImage
from hpcsimkit.agents.masks import QueueSlots
from hpcsimkit.decision import External
from hpcsimkit.errors import UsageError
from hpcsimkit.locality import LOCALITIES, KindLocality
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.styles import DepthOrBreadth
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cush import CUSH_SYSTEMS, DEMANDS, CushJobSets

__all__ = ["CushProblem"]

NODES = 128
"""Of the paper's clusters, to whose size the calibrated penalties belong."""


@dataclass(frozen=True, kw_only=True)
class CushProblem:
    """Job sets on a cluster of equal nodes with CPUs and GPUs, and what the job selector sees of it.

    Parameters
    ----------
    system : {"sierra", "summit"}
        The node: 2 CPUs and 4 GPUs, or 2 CPUs and 6 GPUs.
    nodes : int
        N.
    jobs : int
        In a set.
    distribution : {"C1", "C0"}
        Of the jobs; see :class:`~hpcsimkit.workloads.cush.CushJobSets`.
    slots : int
        Q: waiting jobs among which one is selected; the others stand behind them and are not seen.
    horizon : int
        T: steps of a second that are seen.
    wait_unit : float
        Seconds of waiting that count as one in the picture. (The paper names none.)

    Examples
    --------
    >>> problem = CushProblem(system="summit")
    >>> problem.image.shape, problem.mask.actions
    ((6, 5, 1024), 6)
    >>> problem.scenarios(np.random.default_rng(1), 2)[1].cluster
    Machines(128: 256 cpus, 768 gpus)
    """

    system: Literal["sierra", "summit"] = "sierra"
    nodes: int = NODES
    jobs: int = 20
    distribution: Literal["C1", "C0"] = "C1"
    slots: int = 5
    horizon: int = 5
    wait_unit: float = 20.0

    def check(self) -> None:
        """See that all parameters are in their ranges.

        Raises
        ------
        UsageError
            One is not.
        """
        for name, known in (("system", CUSH_SYSTEMS), ("distribution", DEMANDS)):
            value = getattr(self, name)
            if value not in known:
                raise UsageError(f"CuSH: {name} needs one of {', '.join(known)}, found {value!r}")
        for name, least in (("nodes", 1), ("jobs", 1), ("slots", 1), ("horizon", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"CuSH: {name} needs a whole number of at least {least}, found {value!r}")
        if not self.wait_unit > 0:
            raise UsageError(f"CuSH: wait_unit needs a number above 0, found {self.wait_unit!r}")

    @property
    def image(self) -> ClusterImage:
        """What the job selector sees."""
        return ClusterImage(
            self.nodes, list(CUSH_SYSTEMS[self.system]), self.slots, self.horizon, self.wait_unit
        )

    @property
    def mask(self) -> QueueSlots:
        """What the job selector may do: start the job in a slot, or nothing more."""
        return QueueSlots(self.slots, decline=True)

    def pipeline(self, order: Any = None, placement: Any = None) -> Pipeline:
        """Return a scheduler with CuSH's rules: which job starts, and how is it placed?

        Time stands still while jobs are started, one after the other, and goes on by a second when nothing
        more is. Who is among the first so many and fits may start; nobody blocks anybody.

        Parameters
        ----------
        order, placement : stage, optional
            Who sits on the two seats; by default they are open. Agents for the placement need not say what
            there is to choose among.
        """
        placement = External() if placement is None else copy(placement)
        if isinstance(placement, External) and placement.base is None:
            placement.base = DepthOrBreadth()
        return Pipeline(
            order=order if order is not None else External(decline=True),
            placement=placement, fitting=True, window=self.slots, max_interval=1,
        )  # fmt: skip

    def scenario(self, job_set: Workload) -> Scenario:
        """Return a job set on the cluster, with its penalties."""
        return Scenario(job_set, self._cluster, service_time=self._locality)

    def scenarios(self, rng: np.random.Generator, count: int) -> list[Scenario]:
        """Return so many job sets that chance draws."""
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
        """The calibrated penalties; of other clusters, as large as the same nodes of the paper's pay."""
        model = LOCALITIES[self.system]
        if self.nodes == NODES:
            return model
        return KindLocality(model.compute_spread, model.network_crowded, nodes=NODES)
