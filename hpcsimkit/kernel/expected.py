"""Expected availability profile: the free capacity over time if running jobs end as estimated."""

from __future__ import annotations

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.limited import LimitedMachines
from hpcsimkit.cluster.limited_profile import LimitedProfile
from hpcsimkit.cluster.machine_profile import MachineProfile, TotalsProfile
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.profile import LevelProfile, Profile
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["expected", "needs_machines"]


def needs_machines(job: Job, system: System) -> bool:
    """Return whether the choice of machines matters for a job.

    It matters for per-node requests, exclusive machines and required features; it does not matter for pooled
    requests and on homogeneous nodes.
    """
    cluster = system.cluster
    return isinstance(cluster, Machines) and not cluster.need(job).by_totals


def expected(system: System, on_machines: bool) -> LevelProfile:
    """Return the availability profile from now on if running jobs end as expected and no job starts.

    Nodes that the calendar takes are excluded, and machines that it closes are closed; those that are out of
    order return at the end of the outage.

    Parameters
    ----------
    system : System
        The current state.
    on_machines : bool
        Whether reservations hold machines instead of totals; required if :func:`needs_machines` is true for
        any job with a reservation. With a calendar, they always do.
    """
    profile = _all_of(system, on_machines)
    now, calendar = system.now, system.calendar
    windows = calendar.windows if isinstance(calendar, Calendar) else ()
    releases = [(end, allocation) for end, _, allocation in system.releases]
    if windows:
        releases += [(each.end, each.nodes) for each in windows if each.start <= now < each.end]
        releases.sort()
    for end, allocation in releases:
        profile.grow(max(end, now + 1), allocation)
    for each in windows:
        if each.start > now:
            profile.occupy(each.start, each.end, each.nodes)
    if isinstance(calendar, Closures):
        assert isinstance(profile, MachineProfile | LimitedProfile)
        profile.close(calendar)
    return profile


def _all_of(system: System, on_machines: bool) -> LevelProfile:
    """Return a constant profile of the capacity that is free now, in the form that suits the cluster."""
    cluster, now, free = system.cluster, system.now, system.free
    if isinstance(cluster, Nodes):
        return Profile(now, free)
    if not isinstance(cluster, Machines):
        return LevelProfile(cluster, now, free)
    kind = MachineProfile if on_machines or system.calendar else TotalsProfile
    if isinstance(cluster, LimitedMachines):
        return LimitedProfile(cluster, kind(cluster.unlimited, now, free), free)
    return kind(cluster, now, free)
