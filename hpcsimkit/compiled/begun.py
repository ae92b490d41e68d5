"""The state of a run that begins with running and waiting jobs, see :mod:`hpcsimkit.kernel.begun`."""

from __future__ import annotations

import numpy as np

from hpcsimkit.compiled.state import FREE, RUNNING, STARTED, Jobs, Run
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.system import Mode

__all__ = ["take_over"]


def take_over(begun: Begun, jobs: Jobs, run: Run) -> None:
    """Set the running jobs of a begun run; mirrors ``Run.take_over``."""
    count = len(begun.started)
    rows = np.fromiter(begun.started, dtype=np.int64, count=count)
    start_time = np.fromiter(begun.started.values(), dtype=np.int64, count=count)
    run.start_time[rows], run.mode[rows] = start_time, Mode.READY
    end, expected = start_time + jobs.run_time[rows], start_time + run.estimate[rows]
    by_end = np.argsort(end, kind="stable")  # a sorted array is a heap
    by_expected_end = np.lexsort((rows, expected))
    run.ends[:, :count] = end[by_end], by_end, rows[by_end]
    run.expected[:, :count] = expected[by_expected_end], rows[by_expected_end]
    run.counters[FREE] -= jobs.nodes[rows].sum()
    run.counters[RUNNING] = run.counters[STARTED] = count
