"""Pipelines beside the windows of a calendar: which are compiled, their state, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.results.attempts import Downtime
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from hpcsimkit.compiled.profile import Profile
    from hpcsimkit.compiled.state import Jobs, Run
    from hpcsimkit.compiled.windows import Windows


def obstacles(cluster: AnyCluster, stops: bool) -> Iterator[str]:
    """Yield the reasons why the calendar of a run, in which jobs may be stopped, is not compiled."""
    if type(cluster) is not Nodes:
        yield "it knows a calendar on homogeneous nodes only"
    if stops:
        yield "it knows no calendar where jobs may be stopped"


def windows_of(simulation: Any, cluster: AnyCluster, jobs: Jobs, run: Run) -> Windows:
    """Return the windows of a run on a cluster, from whose free nodes they take theirs.

    Raises
    ------
    UsageError
        The windows do not fit the cluster.
    """
    from hpcsimkit.compiled.windows import new_windows

    calendar = simulation.setup.calendar.on(simulation.workload)
    calendar.check_nodes(cluster)
    count = len(jobs.submit_time)
    return new_windows(calendar, run, count, int(jobs.submit_time.min()) if count else 0)


def profile_of(windows: Windows, jobs: int, nodes: int) -> Profile:
    """Return the profile of an idle cluster beside windows, with space for a number of jobs."""
    from hpcsimkit.compiled.profile import new_profile
    from hpcsimkit.compiled.windows import announce

    profile = new_profile(jobs + windows.windows.shape[1], nodes)
    announce(profile, windows)
    return profile


def with_downtime(result: Result, windows: Windows) -> Result:
    """Return a result with the times in which nodes were gone and not in use."""
    from hpcsimkit.compiled.windows import RECORDED

    start, end, nodes = windows.down[:, : windows.counters[RECORDED]]
    if not len(start):
        return result
    machine = np.zeros(len(start), dtype=np.int64)
    return replace(result, downtime=Downtime(start.copy(), end.copy(), machine, nodes[:, None].copy()))
