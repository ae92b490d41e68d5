"""Whether jobs that an encoder shows could start now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["fit_each"]


def fit_each(jobs: Sequence[Job], system: System) -> NDArray[np.bool_]:
    """Return whether each job fits until its expected end, beside a calendar, if there is one.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.cluster.calendar import Calendar, Window
    >>> w = Workload({"submit_time": [0, 0], "run_time": [5, 9], "nodes": [4, 4]}, machine_size=4)
    >>> simulation = Simulation(w, Pipeline(External()), calendar=Calendar([Window(5, 8)]))
    >>> fit_each(w.jobs, simulation.next_decision().system).tolist()
    [True, False]
    """
    if system.calendar:
        return np.array([system.fits(job) for job in jobs], dtype=np.bool_)
    return np.asarray(system.cluster.fit_each(jobs, system.free))
