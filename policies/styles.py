"""Depth or breadth first: both offered to an open seat, or that one which suits the kind of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from hpcsimkit.allocation import Allocation
from hpcsimkit.cluster import Level
from hpcsimkit.job import Job
from hpcsimkit.locality import COMPUTE_BOUND
from hpcsimkit.policies.placements import BreadthFirst, DepthFirst
from hpcsimkit.policy import Placement
from hpcsimkit.system import System

__all__ = ["STYLES", "DepthOrBreadth", "SuitsKind"]

STYLES: tuple[Placement, ...] = (DepthFirst(), BreadthFirst())
"""What an open seat may choose among, by number: as few machines as possible, or as many."""


class DepthOrBreadth(Placement):
    """Depth-first; an open seat with it behind chooses: option 0 is depth-first, option 1 breadth-first.

    Both are options wherever a job fits, even if they come to the same machines. (Domeniconi et al., CuSH,
    DRL4KDD 2019, section 3.3.)

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.machines import Machines
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
        """Return both allocations, each worked out when it is looked at; none if the job does not fit."""
        return _Both(job, level, system) if system.cluster.fits(job, level) else []


class _Both(Sequence[Allocation | None]):
    """Allocations in both styles, worked out when they are asked for: most often it is one of them only."""

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
    """Compute-bound jobs depth-first, all others breadth-first: what a perfect policy selector does.

    Examples
    --------
    >>> SuitsKind()
    SuitsKind()
    """

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation in the style that suits the job's kind."""
        return STYLES[int(job.kind != COMPUTE_BOUND)].place(job, level, system)
