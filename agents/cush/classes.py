"""Placements that suit the type of a job, summed over the jobs of each type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.models.cush import CUSH_KINDS

SUMS = tuple(f"{quantity}, {kind}" for kind in CUSH_KINDS for quantity in ("jobs", "suited"))
"""Keys of the numbers of jobs of each type, and of those that are placed as suits them."""


def suited_sums(result: Result, styles: Sequence[str]) -> dict[str, float]:
    """Return the number of jobs of each type, and of those with a suitable placement, by `SUMS`.

    The style of each job is :data:`~hpcsimkit.kernel.locality.DEPTH` or
    :data:`~hpcsimkit.kernel.locality.BREADTH`.
    """
    kind = result.workload.column("kind")
    suited = np.array(styles) == np.where(kind == COMPUTE_BOUND, DEPTH, BREADTH)
    counts = ((kind == place, suited & (kind == place)) for place in range(len(CUSH_KINDS)))
    return dict(zip(SUMS, (float(each.sum()) for pair in counts for each in pair), strict=True))
