"""Pack (depth-first) vs. spread (breadth-first) placement: chosen by an open seat or by job type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.locality import COMPUTE_BOUND
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.placements import BreadthFirst, DepthFirst

__all__ = ["STYLES", "DepthOrBreadth", "SuitsKind"]

STYLES: tuple[Placement, ...] = (DepthFirst(), BreadthFirst())
"""Options of an open seat, by number: as few machines as possible, or as many as possible."""


class DepthOrBreadth(Placement):
    """Depth-first placement that offers an open seat two options: 0 is depth-first, 1 is breadth-first.

    Both are options whenever a job fits, even if they use the same machines. (Domeniconi et al., CuSH,
    DRL4KDD 2019, section 3.3.)

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.cluster.machines import Machines
    >>> columns = {"submit_time": [0], "run_time": [9], "nodes": [1], "gpus": [2], "spread": [1]}
    >>> workload = Workload(columns, resources=("gpus",))
    >>> seat = Pipeline(placement=External(DepthOrBreadth()))
    >>> simulation = Simulation(workload, seat, Machines.of(2, gpus=4))
    >>> [option.machines for option in simulation.next_decision().options]
    [(0,), (0, 1)]
    """

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation on as few machines as possible."""
        return STYLES[0].place(job, level, system)

    def options(self, job: Job, level: Level, system: System) -> Any:
        """Return both allocations, each computed on access; none if the job does not fit."""
        return _Both(job, level, system) if system.cluster.fits(job, level) else []


class _Both(Sequence[Allocation | None]):
    """Allocations in both styles, computed on access, since usually only one of them is needed."""

    def __init__(self, job: Job, level: Level, system: System) -> None:
        self._asked = job, level, system

    def __len__(self) -> int:
        return len(STYLES)

    @overload
    def __getitem__(self, position: int) -> Allocation | None: ...
    @overload
    def __getitem__(self, position: slice) -> list[Allocation | None]: ...
    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [style.place(*self._asked) for style in STYLES[position]]
        return STYLES[position].place(*self._asked)


class SuitsKind(Placement):
    """Depth-first placement of compute-bound jobs, breadth-first of all others: a perfect policy selector.

    Examples
    --------
    >>> SuitsKind()
    SuitsKind()
    """

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation in the style that suits the job's type."""
        return STYLES[int(job.kind != COMPUTE_BOUND)].place(job, level, system)
