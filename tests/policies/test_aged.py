"""Orders in which priority grows with the wait: known special cases."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from hpcsimkit import Simulation, Workload, check_policy, make
from tests.compiled.test_equality import workloads


def test_by_hand() -> None:
    """At 100 s, the rates are (100 - 0) / 16 = 6.25, (100 - 60) / 4 = 10 and (100 - 90) / 1 = 10."""
    jobs = Workload(
        {
            "submit_time": [0, 0, 60, 90],
            "run_time": [100, 5, 5, 5],
            "requested_time": [100, 256, 16, 1],
            "nodes": [1, 1, 1, 1],
        },
        machine_size=1,
    )
    assert Simulation(jobs, make("aged(requested=0.5)")).run().start_time.tolist() == [0, 110, 100, 105]


@given(workloads())
def test_the_request_alone_is_xfactor(jobs: Workload) -> None:
    found, expected = (
        Simulation(jobs, make(name)).run() for name in ("aged(requested=1)+easy", "xfactor+easy")
    )
    np.testing.assert_array_equal(found.start_time, expected.start_time)


def test_it_is_a_correct_policy() -> None:
    check_policy(make("aged(mean=0.7,harmonic=0.2,size=-0.4)+easy+history"))
