"""Restart = continue: each reference schedule, begun at three of its busiest instants, remains the same.

Conservative backfilling is left out: its plan is a memory, which a snapshot keeps and a begun run does not.
Begun runs know neither the locality model of CuSH nor the order of events of published simulators: there, the
run goes on from snapshots.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import begun_at, begun_in
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.simulation import Simulation
from tests.kernel import dirlab_cases, test_dirlab_references
from tests.kernel.test_machine_references import (
    BEOCAT,
    DEPTH_OR_BREADTH,
    FILES,
    SELECTORS,
    SuitsTheKind,
    beocat,
    job_sets,
    nine,
    rows,
    starts_and_machines,
)
from tests.kernel.test_references import CASES, load
from tests.kernel.test_small_references import COUNTED, FOLDER, columns, jobs_of, jobs_on_gpus, schedules

Starts = np.ndarray[Any, np.dtype[np.int64]]

MEMORYLESS = [case for case in schedules(*COUNTED) if "conservative" not in case[1]]
ON_MACHINES = [case for case in schedules("gpu_cluster") if "conservative" not in case[1]]
OF_LOGS = [
    pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
    for case in CASES
    if "conservative" not in str(case.values[1])
]


def busiest(jobs: Workload, starts: Starts, count: int = 3) -> list[int]:
    """Instants at which most jobs wait, of different thirds of the log."""
    times = np.unique(jobs.submit_time)
    waiting = np.searchsorted(jobs.submit_time[jobs.arrival_order], times, side="right") - np.searchsorted(
        np.sort(starts), times, side="right"
    )
    thirds = np.array_split(np.arange(len(times)), count)
    return [int(times[third[waiting[third].argmax()]]) for third in thirds]


def assert_continues(
    jobs: Workload, policy: str, mode: str, starts: Starts, cluster: Machines | None = None
) -> None:
    whole = Simulation(jobs, make(policy), cluster, walltime=mode).run()
    np.testing.assert_array_equal(whole.start_time, starts)
    for at in busiest(jobs, starts):
        remaining, begun = begun_at(whole, at)
        result = Simulation(remaining, make(policy), cluster, walltime=mode, begun=begun).run()
        np.testing.assert_array_equal(result.start_time, starts[whole.end_time > at], f"{policy} from {at} s")
        result = Simulation(jobs, make(policy), cluster, walltime=mode, begun=begun_in(whole, at)).run()
        np.testing.assert_array_equal(result.start_time, starts, f"{policy} from {at} s, with its past")


@pytest.mark.parametrize(("name", "policy", "mode"), MEMORYLESS)
def test_restart_is_continue(name: str, policy: str, mode: str) -> None:
    jobs = Workload(jobs_of(name, "nodes"), machine_size=COUNTED[name])
    assert_continues(jobs, policy, mode, columns(name)[f"{policy}.{mode}"])


@pytest.mark.parametrize(("name", "policy", "mode"), ON_MACHINES)
def test_restart_is_continue_on_machines(name: str, policy: str, mode: str) -> None:
    cluster = Machines.read(FOLDER / "machines.csv")
    assert_continues(jobs_on_gpus(name), policy, mode, columns(name)[f"{policy}.{mode}"], cluster)


@pytest.mark.parametrize(("log", "policy", "mode"), OF_LOGS)
def test_restart_is_continue_on_logs(log: str, policy: str, mode: str, shared: Path) -> None:
    file = shared / "refs" / f"{log}.{policy}.{mode}.csv.gz"
    expected = np.loadtxt(file, dtype=np.int64, delimiter=",", skiprows=1)
    assert_continues(load(shared / "traces", log), policy, mode, expected[:, 1])


@pytest.mark.parametrize("algorithm", BEOCAT)
@pytest.mark.parametrize(
    "file", [FILES[0], *(pytest.param(file, marks=pytest.mark.slow) for file in FILES[1:])]
)
def test_restart_is_continue_on_beocat(file: str, algorithm: str, shared: Path) -> None:
    cluster, policy = nine(shared), BEOCAT[algorithm]
    workload = beocat(shared / f"refs/beocat/{file}_untied_jobs.csv.gz")
    workload = workload.without(cluster.misfits(workload), "fits no machine")
    reference = rows(shared / f"refs/beocat/{file}_untied_{algorithm}.csv.gz")
    expected = [(row["start"], row["machine"]) for row in reference if row["start"]]
    whole = Simulation(workload, policy, cluster).run()
    for at in busiest(workload, whole.start_time):
        remaining, begun = begun_at(whole, at)
        found = starts_and_machines(Simulation(remaining, policy, cluster, begun=begun).run())
        left = (whole.end_time > at).tolist()
        assert found == [each for each, is_left in zip(expected, left, strict=True) if is_left]
        result = Simulation(workload, policy, cluster, begun=begun_in(whole, at)).run()
        assert starts_and_machines(result) == expected


def assert_goes_on(simulation: Callable[[], Simulation], starts: Starts, where: str) -> None:
    compared = 0
    for at in busiest(simulation().workload, starts):
        with suppress(UsageError):  # the last pass comes before
            snapshot = simulation().snapshot(at)
            result = simulation().resume(snapshot).run()
            np.testing.assert_array_equal(result.start_time, starts, f"{where} from {at} s")
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize("allocation", ["DF", "BF", "best"])
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize(("system", "gpus"), [("sierra", 4), ("summit", 6)])
def test_restart_is_continue_on_the_job_sets_of_cush(
    system: str, gpus: int, selector: str, allocation: str, shared: Path
) -> None:
    placement = DEPTH_OR_BREADTH.get(allocation, SuitsTheKind())
    policy = Pipeline(order=SELECTORS[selector], placement=placement, fitting=True, window=5)
    cluster = Machines.of(128, cpus=2, gpus=gpus)
    for workload, reference in job_sets(shared / f"refs/cush/cush_jobsets_{system}.csv")[::4]:

        def simulation(workload: Workload = workload) -> Simulation:
            return Simulation(workload, policy, cluster, service_time=LOCALITIES[system])

        starts = np.array([int(row[f"start_{selector}_{allocation}"]) for row in reference])
        assert_goes_on(simulation, starts, f"{selector}, {allocation}")


@test_dirlab_references.some_or_all
@pytest.mark.parametrize("name", test_dirlab_references.STARTS)
def test_restart_is_continue_under_published_rules(name: str, every: int, shared: Path) -> None:
    code = name.partition("_")[0]
    log, expected = dirlab_cases.load(shared, "lublin256", code), dirlab_cases.table(shared, name)
    policies = [column for column in expected if column.startswith("start_")]
    for sequence in np.unique(expected["seq"])[:: 3 * every]:
        part = expected["seq"] == sequence
        scenario = Scenario.sequence(log, int(expected["job_index"][part][0]), np.count_nonzero(part))
        for column in policies if every == 1 else policies[::3]:
            policy = dirlab_cases.base(
                code, column.removeprefix("start_"), backfilling=test_dirlab_references.STARTS[name]
            )
            assert_goes_on(
                lambda policy=policy, scenario=scenario: scenario.simulation(policy),  # type: ignore[misc]
                expected[column][part],
                f"{column}, sequence {sequence}",
            )
