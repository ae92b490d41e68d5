"""Episodes by the published rules."""

from __future__ import annotations

import numpy as np
import pytest

from hpcsimkit.agents.spaces.sequences import Sequences
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

LOG = Workload({"submit_time": range(0, 100, 10), "run_time": [5] * 10, "nodes": [1] * 10}, machine_size=1)


def test_sequences_begin_anywhere_between_first_and_last() -> None:
    rng = np.random.default_rng(1)
    drawn = [Sequences(LOG, 3, first=2, last=6).sample(rng) for _ in range(200)]
    begins = {int(scenario.workload.submit_time[0]) // 10 for scenario in drawn}
    assert begins == {2, 3, 4, 5}
    assert all(
        len(scenario.workload) == 3 and scenario.setup.event_order.name == "dirlab" for scenario in drawn
    )
    assert all(
        scenario.setup.event_order.following == scenario.workload.submit_time[-1] + 10 for scenario in drawn
    )


def test_the_last_sequence_has_nobody_behind_it() -> None:
    scenario = Sequences(LOG, 10).sample(np.random.default_rng(0))
    assert (len(scenario.workload), scenario.setup.event_order.following) == (10, None)


@pytest.mark.parametrize(("first", "last"), [(0, 9), (8, None), (5, 5), (-1, 3)])
def test_sequences_that_are_not_in_the_log(first: int, last: int | None) -> None:
    with pytest.raises(UsageError, match="sequences of 3 jobs that begin at rows"):
        Sequences(LOG, 3, first=first, last=last).sample(np.random.default_rng(0))
