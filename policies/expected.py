"""What will be free when if running jobs end as expected: where plans begin."""

from __future__ import annotations

from hpcsimkit.cluster import Nodes
from hpcsimkit.job import Job
from hpcsimkit.machines import Machines
from hpcsimkit.policies.machine_profile import MachineProfile, TotalsProfile
from hpcsimkit.policies.profile import LevelProfile, Profile
from hpcsimkit.system import System

__all__ = ["expected", "needs_machines"]


def needs_machines(job: Job, system: System) -> bool:
    """Tell whether it matters which machines a job gets.

    It does if it needs so much on each of them, or whole ones, or such that have some feature; not if it
    needs totals that any machines may give in any mix, and not on counted nodes.
    """
    return isinstance(system.cluster, Machines) and not system.cluster.need(job).by_totals


def expected(system: System, on_machines: bool) -> LevelProfile:
    """Return what is free from now on if running jobs end as expected, and nobody starts.

    Parameters
    ----------
    system : System
        The state now.
    on_machines : bool
        Reservations hold machines, since some job that is to have one :func:`needs_machines`; else totals.
    """
    profile = _all_of(system, on_machines)
    soonest = system.now + 1
    for end, _, allocation in system.running.entries:
        profile.grow(max(end, soonest), allocation)
    return profile


def _all_of(system: System, on_machines: bool) -> LevelProfile:
    """Return what is free now, as if for ever, in the form that suits the cluster."""
    cluster, now, free = system.cluster, system.now, system.free
    if isinstance(cluster, Nodes):
        return Profile(now, free)
    if not isinstance(cluster, Machines):
        return LevelProfile(cluster, now, free)
    return MachineProfile(cluster, now, free) if on_machines else TotalsProfile(cluster, now, free)
