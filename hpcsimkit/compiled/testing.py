"""Pipelines with a tester: which are compiled, and their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.backfill.testing import HoleTests

if TYPE_CHECKING:
    from hpcsimkit.compiled.hole_tests import Tests

TESTERS = (type(None), HoleTests)
"""Classes of testers that are compiled."""


def obstacles(policy: Pipeline) -> Iterator[str]:
    """Yield the reasons why the tester of a pipeline is not compiled with its other stages."""
    if policy.tester is not None and type(policy.backfiller) is not EASY:
        yield f"it knows tests with EASY only, found {policy.backfiller!r}"


def tester_of(
    policy: Pipeline, workload: Workload, nodes: int, random: Callable[[], np.random.Generator]
) -> Tests:
    """Return the tester of a pipeline as numbers.

    Parameters
    ----------
    policy : Pipeline
        The pipeline, with a tester.
    workload : Workload
        The jobs of the run.
    nodes : int
        Number of nodes of the cluster.
    random : callable
        Returns the next generator of the run.
    """
    from hpcsimkit.compiled.hole_tests import Tests

    tester = policy.tester
    assert isinstance(tester, HoleTests)
    levels = np.array(tester.levels, dtype=np.int64)
    return Tests(levels, tester.levels_of_jobs(workload, Nodes(nodes), random))
