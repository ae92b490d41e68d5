"""Pipelines with a tester: which are compiled, and their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.backfill.conservative import Conservative
from hpcsimkit.policies.backfill.testing import HoleTests

if TYPE_CHECKING:
    from hpcsimkit.compiled.state import Tests

TESTERS = (type(None), HoleTests)
"""Classes of testers that are compiled."""


def obstacles(setup: Setup, policy: Pipeline) -> Iterator[str]:
    """Yield the reasons why tests are not compiled with other parameters of a run."""
    if policy.tester is None or type(policy.backfiller) is not Conservative:
        return
    if "outages" in setup.given or setup.restart.cost or not setup.restart.plain:
        yield "it knows no outages, checkpoints or costs of restarts where conservative backfilling has tests"


def tester_of(
    simulation: Any,
    cluster: AnyCluster,
    policy: Pipeline,
    workload: Workload,
    random: Callable[[], np.random.Generator],
) -> Tests | None:
    """Return the tester of a pipeline as numbers; None if it has none.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    cluster : Nodes or Machines
        Its cluster, without a partition over all of it.
    policy : Pipeline
        The pipeline.
    workload : Workload
        The jobs of the run.
    random : callable
        Returns the next generator of the run.
    """
    from hpcsimkit.compiled.state import NO_LIMIT, Tests

    tester, count = policy.tester, len(workload)
    if not isinstance(tester, HoleTests):
        return None
    return Tests(
        np.array(tester.levels, dtype=np.int64),
        tester.levels_of_jobs(workload, cluster, random),
        asked=np.zeros(count, dtype=np.int64),
        reserved=np.full(count, NO_LIMIT, dtype=np.int64),
        delay=simulation.setup.restart.delay,
    )
