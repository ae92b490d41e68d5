"""The same log on a smaller machine."""

from __future__ import annotations

from hpcsimkit.errors import WorkloadError
from hpcsimkit.workload import Workload

__all__ = ["scaled"]


def scaled(log: Workload, divisor: int) -> Workload:
    """Return a log for a machine with fewer nodes: all sizes are divided by a number, and rounded up.

    Times stay as they are. Rounding up adds load where jobs are small: one of 1 node keeps it on a machine of
    a tenth. So scale machines whose jobs are large, and compare
    :meth:`~hpcsimkit.workload.Workload.offered_load` before and after.

    Parameters
    ----------
    log : Workload
        Whose jobs count nodes only.
    divisor : int
        At least 1.

    Raises
    ------
    WorkloadError
        The divisor is below 1, or jobs ask for resources.

    Examples
    --------
    >>> log = Workload({"submit_time": [0, 5], "run_time": [9, 9], "nodes": [128, 4360]}, machine_size=4360)
    >>> small = scaled(log, 10)
    >>> small.nodes.tolist(), small.machine_size, small.provenance
    ([13, 436], 436, ('sizes / 10, rounded up',))
    """
    if divisor < 1:
        raise WorkloadError(f"{log.name}: sizes are divided by 1 or more, found {divisor}")
    if log.resources:
        raise WorkloadError(
            f"{log.name}: jobs that count nodes only are needed to divide their sizes, "
            f"found jobs that ask for {', '.join(log.resources)}"
        )
    size = log.machine_size and -(-log.machine_size // divisor)
    columns = {**log.columns, "nodes": -(-log.nodes // divisor)}
    return log._derive(columns, f"sizes / {divisor}, rounded up", machine_size=size)
