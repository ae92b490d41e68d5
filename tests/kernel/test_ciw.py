"""Servers that fail, job by job against Ciw, a simulator of queueing networks.

(Palmer, Knight, Harper & Hawa, Journal of Simulation 13(1), 2019.) Its wheel installs a package `tests`, which hides the
one of this repository. So it is no requirement of the tests, and has a folder of its own::

    pip install --no-deps --target ciw ciw==3.2.7 && rm -r ciw/tests
    PYTHONPATH=$PWD:ciw python -m pytest tests/kernel/test_ciw.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation

ciw = pytest.importorskip("ciw")

UP, DOWN, JOBS = 100_000, 30_000, 1_000
"""All servers fail after so long, for so long, again and again [s]."""


def ends_by_ciw(gaps: list[int], services: list[int], servers: int, preemption: str) -> list[int]:
    """End of each job that arrives after a gap, first come first served."""
    schedule = ciw.Schedule([servers, 0], shift_end_dates=[UP, UP + DOWN], preemption=preemption)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, float("inf")])],
        service_distributions=[ciw.dists.Sequential(services)],
        number_of_servers=[schedule],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(gaps), method="Finish")
    records: list[Any] = simulation.get_all_records(only=["service"])
    return [int(each.exit_date) for each in sorted(records, key=lambda each: each.id_number)]


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize(
    ("preemption", "restart"), [("resume", Restart(checkpoint=1)), ("restart", Restart())]
)
def test_failing_servers_as_in_ciw(servers: int, preemption: str, restart: Restart) -> None:
    """Stopped jobs go on where they were, or begin anew; no job ends at the instant of a failure."""
    rng = np.random.default_rng(1)
    gaps = rng.integers(1, 36_000 // servers, JOBS)
    services = rng.integers(1, 25_000, JOBS)
    jobs = Workload(
        {"submit_time": gaps.cumsum(), "run_time": services, "nodes": np.ones(JOBS)}, machine_size=servers
    )
    begins = range(UP, 2 * int(gaps.sum() + services.sum()), UP + DOWN)
    outages = Outages([Outage(begin, begin + DOWN, servers) for begin in begins])
    result = Simulation(jobs, Pipeline(), outages=outages, restart=restart).run()
    assert result.attempts is not None and len(result.attempts) > JOBS + 20
    assert result.end_time.tolist() == ends_by_ciw(gaps.tolist(), services.tolist(), servers, preemption)
