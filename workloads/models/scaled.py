"""Logs scaled to a smaller machine."""

from __future__ import annotations

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload

__all__ = ["scaled"]


def scaled(log: Workload, divisor: int) -> Workload:
    """Return a log scaled to a machine with fewer nodes; all sizes are divided and rounded up.

    Times do not change. Rounding up adds load if jobs are small: a job on 1 node still needs 1 node on a
    machine of a tenth of the size. So scale only logs with large jobs, and compare
    :meth:`~hpcsimkit.jobs.workload.Workload.offered_load` before and after.

    Parameters
    ----------
    log : Workload
        Log of jobs that request nodes only.
    divisor : int
        Divisor of all sizes, 1 to 2^31 - 1.

    Raises
    ------
    WorkloadError
        If the divisor is out of range, or jobs request resources.

    Examples
    --------
    >>> log = Workload({"submit_time": [0, 5], "run_time": [9, 9], "nodes": [128, 4360]}, machine_size=4360)
    >>> small = scaled(log, 10)
    >>> small.nodes.tolist(), small.machine_size, small.provenance
    ([13, 436], 436, ('sizes / 10, rounded up',))
    """
    if not 1 <= divisor < 2**31:
        raise WorkloadError(f"{log.name}: sizes are divided by 1 to 2^31 - 1, found {divisor}")
    if log.resources:
        raise WorkloadError(
            f"{log.name}: jobs that count nodes only are needed to divide their sizes, "
            f"found jobs that ask for {', '.join(log.resources)}"
        )
    size = log.machine_size and -(-log.machine_size // divisor)
    columns = {**log.columns, "nodes": -(-log.nodes // divisor)}
    return log._derive(columns, f"sizes / {divisor}, rounded up", machine_size=size)
