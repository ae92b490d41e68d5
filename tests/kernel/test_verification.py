"""Impossible schedules are refused: each rule is broken once by hand, and by policies that cheat."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ImpossibleScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel import verified_capacity
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, Licenses
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.verification import verify
from hpcsimkit.kernel.verified_capacity import Use, excess
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result
from tests.kernel.helpers import needs_numba

FOUR = {
    "submit_time": [0, 1, 2, 30], "run_time": [10, 10, 5, 3], "requested_time": [10, 12, 4, 3],
    "nodes": [2, 4, 1, 1], "begin_time": [-1, -1, -1, 40], "hold_until": [-1, -1, 25, -1], "array_job": [7, 7, -1, -1],
    "array_limit": [1, 1, -1, -1], "licenses": [-1, 0, 1, 2],
}  # fmt: skip
"""Jobs that FCFS starts at 0, 10, 20 and 30 s on four nodes, with gates the last two at 25 and 40 s."""

DEPENDENT = {**FOUR, "id": [1, 2, 3, 4], "preceding": [-1, -1, 1, 3], "think_time": [-1, -1, 7, -1]}

Change = Callable[[Result], Result]


def at(row: int, **values: Any) -> Change:
    """Change columns of a result in one row."""

    def changed(result: Result) -> Result:
        columns = {name: np.array(getattr(result, name)) for name in values}
        for name, value in values.items():
            columns[name][row] = value
        return replace(result, **columns)  # type: ignore[arg-type]

    return changed


def moved(row: int, seconds: int) -> Change:
    """Change start and end of a job."""

    def changed(result: Result) -> Result:
        start, end = (int(column[row]) + seconds for column in (result.start_time, result.end_time))
        return at(row, start_time=start, end_time=end)(result)

    return changed


def longer(row: int, seconds: int) -> Change:
    """Change the end of a job."""
    return lambda result: at(row, end_time=int(result.end_time[row]) + seconds)(result)


def simulation(columns: Mapping[str, Any] = FOUR, size: Any = 4, **options: Any) -> Simulation:
    resources = ("cpus", "gpus") if "cpus" in columns else ()
    labels = {"licenses": ("a,b", "b", "a:2"), **options.pop("labels", {})}
    jobs = Workload(columns, labels=labels, resources=resources)
    return Simulation(jobs, make("fcfs"), size, name="mine", simulator="simpy", **options)


LOST = {"start_time": -1, "end_time": -1}
ON_NODES: list[tuple[Any, dict[str, Any], Change, str]] = [
    ("a job is lost", {}, at(2, **LOST), "job 3, submitted at t=2 s, was neither started nor rejected"),
    ("too early", {}, moved(1, -10), "job 2 starts at t=0 s, before it is submitted at t=1 s"),
    (
        "too long",
        {},
        at(1, end_time=21),
        "job 2 starts at t=10 s and ends at t=21 s: it needs 10 s, found 11 s",
    ),
    ("never ends", {}, at(3, end_time=-1), "job 4 starts at t=30 s and ends at t=-1 s: it needs 3 s"),
    ("capacity", {}, moved(1, -5), "job 2 starts at t=5 s, when 6 nodes are in use, of 4"),
    ("submission", {}, at(3, submit_time=29), "job 4 counts as submitted at t=29 s, not 30"),
    ("killed", {"walltime": "kill"}, at(2, end_time=25), "job 3 .* it needs 4 s, found 5 s"),
    ("not killed", {}, at(2, end_time=24), "job 3 .* it needs 5 s, found 4 s"),
    ("between passes", {"period": 10}, moved(3, 1), "job 4 starts at t=31 s, though passes are at multiples of 10 s"),
    (
        "locality", {"service_time": lambda job, seconds, allocation, cluster: 2}, at(2, end_time=29),
        "job 3 .* it needs 7 s, found 5 s",
    ),
    ("locality and kill", {
        "service_time": lambda job, seconds, allocation, cluster: 2, "walltime": "kill"}, longer(2, 3),
        "job 3 .* it needs 4 s, found 7 s"),
    ("before the run begins", {"begun": Begun(at=4, started={0: 0})}, moved(2, -17),
        "job 3 starts at t=3 s; as the run begins at t=4 s, it needs 4 s"),
    ("a begin time", {"gates": (BeginTimes(), Holds())}, moved(3, -1),
        "job 4 starts at t=39 s, before its begin_time of 40 s"),
    ("a hold", {"gates": (BeginTimes(), Holds())}, moved(2, -4), "job 3 starts at t=21 s, before its hold_until of 25 s"),
    ("an array", {"gates": (ArrayLimits(),)}, moved(1, -9), "job 2 starts at t=1 s, when 2 jobs of array 7 run, of 1"),
    ("licences", {"licenses": {"a": 9, "b": 1}}, moved(2, -1),
        "job 3 starts at t=19 s, when 2 licences 'b' are in use, of 1"),
    ("a gate of licences", {"gates": (Licenses({"a": 2, "b": 3}),)}, moved(1, 15),
        "job 4 starts at t=30 s, when 3 licences 'a' are in use, of 2"),
    ("a job that runs", {"begun": Begun(at=4, started={0: 0})}, moved(0, 1),
        "job 1 starts at t=1 s; as the run begins at t=4 s, it needs 0 s"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "change", "message"), [case[1:] for case in ON_NODES], ids=[c[0] for c in ON_NODES])  # fmt: skip
def test_each_rule_on_nodes(options: dict[str, Any], change: Change, message: str) -> None:
    run = simulation(**options)
    result = run.run()
    served = run._run.served if run.setup.service_time is not None else None  # type: ignore[union-attr]
    verify(run, result, served=served)
    with pytest.raises(ImpossibleScheduleError, match=f"^mine: impossible schedule: {message}") as error:
        verify(run, change(result), served=served)
    assert "\n" not in str(error.value)


def attempt(row: int, **values: Any) -> Change:
    """Change columns of the attempts of a result in one row."""

    def changed(result: Result) -> Result:
        assert result.attempts is not None
        columns: dict[str, Any] = {name: np.array(getattr(result.attempts, name)) for name in values}
        for name, value in values.items():
            columns[name][row] = value
        return replace(result, attempts=replace(result.attempts, **columns))

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (attempt(1, start_time=9), "job 1 starts again at t=9 s, before it is due"),
        (attempt(1, work=9), "job 1 starts at t=3 s and does 9 s of work: it needs 10 s"),
        (attempt(0, lost=8), "job 1: an attempt from t=3 s took 7 s, less than its work"),
        (attempt(0, lost=4), "job 1: an attempt from t=3 s took 7 s for 4 s of work"),
    ],
)
def test_attempts(change: Change, message: str) -> None:
    """The job is stopped by a failure after 7 of its 10 s of work, and begins anew at 22 s."""
    columns = {"submit_time": [3], "run_time": [10], "nodes": [4]}
    run = simulation(columns, outages=Outages([Outage(10, 22)]))
    result = run.run()
    verify(run, result)
    with pytest.raises(ImpossibleScheduleError, match=message):
        verify(run, change(result))


def test_a_job_is_not_both_rejected_and_started() -> None:
    run = simulation()
    rejected = np.array([False, False, True, False])
    verify(run, at(2, **LOST)(run.run()), rejected)
    with pytest.raises(ImpossibleScheduleError, match="job 3 starts at t=20 s, though it was rejected"):
        verify(run, run.run(), rejected)


@pytest.mark.parametrize(
    ("change", "rejected", "message"),
    [
        (at(2, submit_time=2), [], "job 3 counts as submitted at t=2 s, not 17"),
        (moved(2, -6), [], "job 3 starts at t=14 s, before it is submitted at t=17 s"),
        (at(2, **LOST), [2], "job 4 starts at t=30 s, though the job that precedes it was rejected"),
    ],
)
def test_dependencies(change: Change, rejected: list[int], message: str) -> None:
    run = simulation(DEPENDENT, dependencies=True)
    result = run.run()
    assert (result.submit_time.tolist(), result.start_time.tolist()) == ([0, 1, 17, 30], [0, 10, 20, 30])
    with pytest.raises(ImpossibleScheduleError, match=message):
        verify(run, change(result), np.isin(np.arange(4), rejected) if rejected else None)


@pytest.mark.parametrize(
    ("dependency", "due"),
    [
        ("after:1+1", 60),
        ("afterany:1:2", 30),
        ("afterany:1?afterany:2", 10),
        ("afterok:1", 10),
        ("afternotok:2", 30),
        ("singleton", 45),
        ("singleton,after:1+1", 60),
    ],
)
def test_a_job_starts_after_others(dependency: str, due: int) -> None:
    """The second job fails; the third and the fifth are of the user and name of the fourth, which depends on others."""
    columns = {
        "submit_time": [0, 0, 0, 1, 0], "run_time": [10, 30, 45, 5, 1], "nodes": [1] * 5, "user": [1, 1, 2, 2, 2],
        "executable": [1, 2, 3, 3, 3], "status": [1, 0, 1, 1, 1], "dependency": [-1, -1, -1, 0, -1],
    }  # fmt: skip
    run = simulation(columns, 9, gates=(AfterJobs(),), labels={"dependency": (dependency,)})
    result = run.run()
    assert result.start_time.tolist() == [0, 0, 0, due, 0]
    verify(run, moved(3, 7)(result))
    message = (
        f"job 4 starts at t={due - 1} s, though its dependency '{re.escape(dependency)}' is met at t={due} s"
    )
    with pytest.raises(ImpossibleScheduleError, match=message):
        verify(run, moved(3, -1)(result))


@pytest.mark.parametrize("dependency", ["afterok:2", "afternotok:1", "afterok:1:2", "afterok:3", "afternotok:1?afterok:3"])  # fmt: skip
def test_a_job_whose_dependency_cannot_be_met_does_not_start(dependency: str) -> None:
    """The second job fails by the log, and the third because of its outage, after which it does not come back."""
    columns = {"submit_time": [0, 0, 0, 1], "run_time": [10, 30, 45, 5], "nodes": [1, 1, 1, 1],
               "status": [1, 0, 1, 1], "dependency": [-1, -1, -1, 0]}  # fmt: skip
    outages = Outages([Outage(40, 50, nodes=6)])
    options: dict[str, Any] = {"outages": outages, "restart": Restart(limit=0)}
    run = simulation(columns, 6, gates=(AfterJobs(),), labels={"dependency": (dependency,)}, **options)
    result = run.run()
    assert (result.start_time.tolist(), result.end_time.tolist()) == ([0, 0, 0, -1], [10, 30, 40, -1])
    given = simulation(columns, 6, labels={"dependency": (dependency,)}, **options)
    started = given.run()
    assert started.start_time.tolist() == [0, 0, 0, 1]
    verify(given, started)
    with pytest.raises(ImpossibleScheduleError, match=r"job 4 starts at t=1 s, though its dependency .* can never be met"):  # fmt: skip
        verify(run, started)


@pytest.mark.parametrize("outages", [(), [Outage(50, 60)]])
def test_a_job_that_reaches_its_limit_has_not_ended_well(outages: list[Outage]) -> None:
    columns = {"submit_time": [0, 1], "run_time": [9, 5], "requested_time": [4, 5], "nodes": [1, 1],
               "dependency": [-1, 0]}  # fmt: skip
    options: dict[str, Any] = {"outages": Outages(outages), "walltime": "kill"}
    run = simulation(columns, gates=(AfterJobs(),), labels={"dependency": ("afternotok:1",)}, **options)
    result = run.run()
    assert result.start_time.tolist() == [0, 4]
    verify(run, result)
    with pytest.raises(ImpossibleScheduleError, match="is met at t=4 s"):
        verify(run, moved(1, -1)(result))
    labels = {"dependency": ("afterok:1",)}
    free = simulation(columns, labels=labels, **options).run()
    run = simulation(columns, gates=(AfterJobs(),), labels=labels, **options)
    with pytest.raises(ImpossibleScheduleError, match="can never be met"):
        verify(run, free)


def test_published_simulators_keep_the_order_of_the_log() -> None:
    run = simulation({"submit_time": [5, 3], "run_time": [1, 1], "nodes": [1, 1]}, event_order=DirlabOrder())
    result = run.run()
    assert result.start_time.tolist() == [5, 5]
    with pytest.raises(
        ImpossibleScheduleError, match="job 2 starts at t=4 s, before it is submitted at t=5 s"
    ):
        verify(run, moved(1, -1)(result))


def test_a_job_without_run_time_uses_nothing_between_its_start_and_end() -> None:
    """Two of them run one after the other in the same instant, each on the whole machine."""
    columns = {"submit_time": [0, 0, 0], "run_time": [0, 0, 5], "nodes": [4, 4, 4]}
    assert simulation(columns).run().start_time.tolist() == [0, 0, 0]


# --- machines ----------------------------------------------------------------------------------------------

CLUSTER = Machines(
    ["a", "b", "c"],
    ("cpus", "gpus"),
    [[8, 2], [8, 0], [8, 0]],
    [["ib", "gpu"], ["ib"], []],
)
ON_MACHINES = {
    "submit_time": [0] * 6, "run_time": [9] * 6, "nodes": [2, 1, 1, 1, 1, 2], "cpus": [6, 10, 1, 2, 8, 1],
    "gpus": [0, 2, 0, 0, 0, 0], "spread": [0, 1, 0, 0, 0, 0], "exclusive": [0, 0, 1, 0, 0, 0],
    "constraint": [-1, -1, -1, 0, -1, 1],
}  # fmt: skip
"""Two machines; pooled; a whole machine; one with InfiniBand; a full one; two, one of them with InfiniBand."""
LABELS = {"constraint": ("ib", "ib*1")}


def placements(result: Result) -> Placements:
    assert result.placements is not None
    return result.placements


def given_as(row: int, machines: list[int], amounts: list[list[int]]) -> Change:
    """Change the allocation of a job."""

    def changed(result: Result) -> Result:
        old = placements(result)
        keep = old.job != row
        job = np.concatenate([old.job[keep], np.full(len(machines), row)])
        order = np.argsort(job, kind="stable")
        parts = np.concatenate([old.machine[keep], machines]).astype(np.int64)
        given = np.concatenate([old.amounts[keep], np.reshape(np.array(amounts, dtype=np.int64), (-1, 2))])
        return replace(result, placements=Placements(old.cluster, old.jobs, job[order], parts[order], given[order]))  # fmt: skip

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (given_as(0, [0], [[6, 0]]), r"job 1 starts at t=0 s with .*: it needs 2 machines with 6 cpus each"),
        (given_as(0, [0, 0], [[6, 0], [2, 0]]), "job 1 .* it needs 2 machines"),
        (given_as(0, [1, 2], [[6, 0], [5, 0]]), "job 1 .* it needs 2 machines with 6 cpus each"),
        (given_as(0, [1, 2], [[6, 0], [7, 0]]), "job 1 .* it needs 2 machines with 6 cpus each"),
        (given_as(0, [1, 3], [[6, 0], [6, 0]]), "job 1 starts at t=0 s on machine number 3, of 3"),
        (given_as(0, [], []), "job 1 .* it needs 2 machines"),
        (given_as(1, [0, 1], [[8, 1], [2, 0]]), "job 2 .* it needs 10 cpus, 2 gpus in all"),
        (given_as(1, [0, 1], [[8, 3], [2, -1]]), "job 2 .* it needs 10 cpus, 2 gpus in all"),
        (given_as(2, [0], [[1, 0]]), "job 3 .* it needs a whole machine with 1 cpus"),
        (given_as(3, [2], [[2, 0]]), "job 4 .* it needs a machine with 2 cpus that has ib"),
        (given_as(5, [2, 2], [[1, 0], [1, 0]]), "job 6 .* 1 of them with ib"),
        (given_as(5, [0, 0], [[1, 0], [1, 0]]), "job 6 .* it needs 2 machines"),
        (at(4, start_time=0, end_time=9), r"job \d starts at t=0 s, when \d+ cpus are in use on machine \w, of 8"),
    ],
)  # fmt: skip
def test_each_rule_on_machines(change: Change, message: str) -> None:
    run = simulation(ON_MACHINES, CLUSTER, labels=LABELS)
    result = run.run()
    verify(run, result)
    with pytest.raises(ImpossibleScheduleError, match=message):
        verify(run, change(result))


def test_counts_of_a_constraint() -> None:
    """Both machines without InfiniBand are free, and the request counts one with it."""
    columns = {name: values[-1:] for name, values in ON_MACHINES.items()}
    cluster = Machines(["a", "b", "c"], ("cpus", "gpus"), [[8, 0]] * 3, [["ib"], [], []])
    run = simulation(columns, cluster, labels=LABELS)
    with pytest.raises(ImpossibleScheduleError, match="1 of them with ib"):
        verify(run, given_as(0, [1, 2], [[1, 0], [1, 0]])(run.run()))
    with pytest.raises(ImpossibleScheduleError, match="1 of them with ib"):
        verify(run, given_as(0, [0, 1], [[1, 0], [0, 0]])(run.run()))


def test_a_whole_machine_is_shared_with_no_job() -> None:
    columns = {"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1], "cpus": [1, 1], "gpus": [0, 0]}
    cluster = Machines(["a", "b"], ("cpus", "gpus"), [[8, 0]] * 2)
    run = simulation({**columns, "exclusive": [1, 0]}, cluster)
    with pytest.raises(ImpossibleScheduleError, match="when 9 cpus are in use on machine a, of 8"):
        verify(run, given_as(1, [0], [[1, 0]])(run.run()))


def test_nodes_of_a_log_are_cpus_of_machines() -> None:
    run = simulation(size=Machines.of(2, cpus=2))
    result = run.run()
    wrong = Placements.of(
        placements(result).cluster,
        [*map(placements(result).allocation, (0, 1, 2)), placements(result).allocation(0)],
    )
    with pytest.raises(ImpossibleScheduleError, match=r"job 4 .* it needs 1 cpus in all"):
        verify(run, replace(result, placements=wrong))


# --- partitions --------------------------------------------------------------------------------------------

NAMES = {"partition": ("cpu", "gpu,cpu")}
IN_TWO = {**FOUR, "nodes": [2, 3, 1, 1], "partition": [0, 0, 1, 1]}


def started_in(row: int, name: str) -> Change:
    def changed(result: Result) -> Result:
        assert result.started_in is not None
        names = result.started_in.astype(object)
        names[row] = name
        return replace(result, started_in=names)

    return changed


def both(*changes: Change) -> Change:
    def changed(result: Result) -> Result:
        for change in changes:
            result = change(result)
        return result

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (started_in(0, "gpu"), "job 1 starts at t=0 s in partition gpu, which does not admit it"),
        (started_in(0, ""), "job 1 starts at t=0 s in no partition, but ''"),
        (started_in(3, "gpu"), "job 4 starts at t=30 s, when 2 nodes are in use in partition gpu, of 1"),
    ],
)  # fmt: skip
def test_partitions_of_nodes(change: Change, message: str) -> None:
    cluster = Partitions([Partition("cpu", nodes=3), Partition("gpu", nodes=1)])
    run = simulation(
        {**IN_TWO, "run_time": [10, 10, 30, 3], "requested_time": [40] * 4}, cluster, labels=NAMES
    )
    result = run.run()
    verify(run, result)
    with pytest.raises(ImpossibleScheduleError, match=message):
        verify(run, change(both(started_in(2, "gpu"), moved(2, 2 - int(result.start_time[2])))(result)))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "in partition gpu on machine b"),
        ({"cpus": 5}, "job 2 starts at t=0 s, when 6 cpus are in use in partition cpu, of 5"),
        ({"nodes": 1}, "job 2 starts at t=0 s, when 2 nodes are in use in partition cpu, of 1"),
    ],
)
def test_partitions_of_machines(limits: dict[str, int], message: str) -> None:
    columns = {
        "submit_time": [0, 0, 0], "run_time": [9, 9, 9], "nodes": [1, 1, 1], "cpus": [3, 3, 1],
        "gpus": [0, 0, 1], "partition": [0, 0, 1],
    }  # fmt: skip
    cluster = Partitions(
        [Partition("cpu", machines=["a", "b", "c"], in_use=limits), Partition("gpu", machines=["a"])],
        machines=CLUSTER,
    )
    run = simulation(columns, cluster, labels={"partition": ("cpu", "gpu")})
    result = run.run()
    verify(run, result)
    change = moved(1, -int(result.start_time[1])) if limits else given_as(2, [1], [[1, 1]])
    with pytest.raises(ImpossibleScheduleError, match=message if limits else "job 3 starts"):
        verify(run, change(result))
    if not limits:
        elsewhere = both(given_as(0, [1], [[3, 0]]), started_in(0, "gpu"))
        with pytest.raises(ImpossibleScheduleError, match="which does not admit it"):
            verify(run, elsewhere(result))


def test_a_partition_keeps_to_its_machines() -> None:
    columns = {"submit_time": [0], "run_time": [9], "nodes": [1], "cpus": [3], "gpus": [0], "partition": [0]}
    cluster = Partitions(
        [Partition("left", machines=["a"]), Partition("right", machines=["b"])], machines=CLUSTER
    )
    run = simulation(columns, cluster, labels={"partition": ("left",)})
    with pytest.raises(ImpossibleScheduleError, match="job 1 starts at t=0 s in partition left on machine b"):
        verify(run, given_as(0, [1], [[3, 0]])(run.run()))


# --- any schedule ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.integers(0, 6)] * 4, st.integers(0, 2)), min_size=1, max_size=12), st.data())
def test_the_first_excess_is_that_of_a_search_second_by_second(
    rows: list[tuple[int, int, int, int, int]], data: st.DataObject
) -> None:
    places = data.draw(st.integers(1, 3))
    resources = 1 if places == 1 else 2
    start, took, *amounts, place = np.array(rows, dtype=np.int64).T
    place = np.minimum(place, places - 1)
    given_amounts = np.stack(amounts[:resources], axis=1)
    available = np.array([[data.draw(st.integers(0, 12)) for _ in range(resources)] for _ in range(places)])
    use = Use(np.arange(len(rows)), start, start + took, given_amounts, place if places > 1 else None)
    expected = None
    for now in range(14):
        there = (start <= now) & (now < start + took)
        used = np.zeros((places, resources), dtype=np.int64)
        np.add.at(used, place[there], given_amounts[there])
        if expected is None and (used > available).any():
            expected = now
    found = excess(use, available)
    assert (None if found is None else found.time) == expected
    if found is not None:
        assert found.used > found.available == available[found.place, found.resource]


def test_numbers_that_cannot_be_packed_are_sorted_as_they_are() -> None:
    """Times or amounts of more than 62 bits together."""
    use = Use(np.arange(2), np.array([0, 2**50]), np.array([2**50, 2**51]), np.full((2, 1), 2**30))
    assert excess(use, np.array([[2**30]])) is None
    found = excess(use, np.array([[2**30 - 1]]))
    assert found is not None and (found.row, found.time) == (0, 0)


# --- given positions in time --------------------------------------------------------------------------------

THREE = Use(np.arange(3), np.array([0, 0, 5]), np.array([5, 9, 9]), np.array([[3], [1], [3]]))
"""Two jobs, and one that starts when the first one ends: 4 nodes are in use at any time."""
CROWDED = THREE._replace(start=np.array([0, 0, 4]))
"""The third one starts a second too early: 7 nodes are in use."""
IN_ORDER = [[0, 1, 3], [2, 4, 5]]


@pytest.mark.parametrize(
    "positions",
    [
        IN_ORDER,
        [[0, 1, 2], [3, 4, 5]],  # those of the crowded jobs
        [
            [1, 0, 2],
            [3, 5, 4],
        ],  # starts before the end at the same instant, though more than fits for a moment
        [[0, 1, 1], [2, 4, 5]],  # a position twice, and none of the third start
        [[1, 1, 2], [3, 4, 5]],  # nothing at the first one
        [[1, 2, 3], [4, 5, 5]],
        [[0, 1, 5], [2, 4, 3]],  # ends before it starts
        [[3, 4, 0], [5, 1, 2]],
        [[0, 1, 3], [2, 4, 6]],  # beyond the last one
        [[-6, -5, -3], [-4, -2, -1]],
        [[0, 1, 3, 6], [2, 4, 5, 7]],  # too many, too few
        [[0, 1], [2, 3]],
        [[0, 1, 3]],
    ],
)
def test_positions_in_time_are_not_relied_on(positions: list[list[int]]) -> None:
    given_order = np.array(positions, dtype=np.int32)
    assert excess(THREE, np.array([[4]]), given_order) is None
    found = excess(CROWDED, np.array([[4]]), given_order)
    assert found is not None and (found.row, found.time, found.used) == (2, 4, 7)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=5), st.integers(0, 8), st.data())
def test_no_positions_hide_an_excess(
    rows: list[tuple[int, int, int]], available: int, data: st.DataObject
) -> None:
    start, took, amount = np.array(rows, dtype=np.int64).T
    use = Use(np.arange(len(rows)), start, start + took, amount[:, None])
    places = st.permutations(range(2 * len(rows)))
    any_places = st.lists(st.integers(-1, 2 * len(rows)), min_size=2 * len(rows), max_size=2 * len(rows))
    positions = np.array(data.draw(places | any_places), dtype=np.int32).reshape(2, -1)
    there = np.array([[available]])
    assert excess(use, there, positions) == excess(use, there)


@pytest.mark.parametrize(
    ("use", "positions"),
    [(THREE, IN_ORDER), (CROWDED, [[0, 1, 2], [3, 4, 5]]), (THREE, [[1, 0, 3], [2, 5, 4]])],
)
def test_positions_in_time_spare_the_sorting(
    use: Use, positions: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_capacity, "_peak", None)
    assert excess(use, np.array([[7]]), np.array(positions, dtype=np.int32)) is None


# --- policies that cheat -----------------------------------------------------------------------------------


class Cheat(Policy):
    """Starts what fits, after an action of its own on the state of the run."""

    def __init__(self, how: str = "") -> None:
        self.how = how

    def schedule(self, system: Any) -> None:
        CHEATS[self.how](system)
        for job in list(system.queue):
            if system.fits(job):
                system.start(job)


def _forget_a_job(system: Any) -> None:
    if system.now == 5:
        system.queue.jobs.clear()


def _rewrite_history(system: Any) -> None:
    for row, start in enumerate(system.ledger.starts):
        if start > 0:
            system.ledger.starts[row] = 0


def _shorten(system: Any) -> None:
    system.jobs = [job._replace(run_time=0) for job in system.jobs]


def _pretend_a_larger_cluster(system: Any) -> None:
    system.cluster, system.free = Nodes(10**6), 10**6


CHEATS: dict[str, Callable[[System], Any]] = {
    "free": lambda system: setattr(system, "free", 10**9),
    "now": lambda system: setattr(system, "now", 0),
    "clear": lambda system: system.queue.jobs.clear(),
    "forget": _forget_a_job,
    "history": _rewrite_history,
    "shorten": _shorten,
    "cluster": _pretend_a_larger_cluster,
}  # fmt: skip

OF_CHEATS = {
    "free": "nodes are in use, of 4",
    "now": "before it is submitted at t=",
    "clear": "was neither started nor rejected",
    "forget": "was neither started nor rejected",
    "history": "before it is submitted at t=",
    "shorten": "it needs 10 s, found 0 s",
    "cluster": "nodes are in use, of 4",
}
CROWD = {"submit_time": [0, 1, 2, 3, 4, 5], "run_time": [10] * 6, "nodes": [2, 4, 1, 3, 4, 1]}


@pytest.mark.parametrize("how", CHEATS)
def test_policies_that_change_the_state_of_the_run(how: str) -> None:
    run = Simulation(Workload(CROWD), Cheat(how), 4, name="mine.py:Cheat")
    with pytest.raises(ImpossibleScheduleError, match=OF_CHEATS[how]) as error:
        run.run()
    assert str(error.value).startswith("mine.py:Cheat: impossible schedule: job ")
    assert "defect" not in str(error.value)
    with pytest.raises(ImpossibleScheduleError):  # a failed run remains failed
        run.result()


def test_rejected_jobs_are_decided() -> None:
    class Picky(Policy):
        def schedule(self, system: System) -> None:
            for job in list(system.queue):
                system.reject(job) if job.nodes > 2 else system.start(job)

    assert Simulation(Workload(CROWD), Picky(), 12).run().start_time.tolist() == [0, -1, 2, -1, -1, 5]


def test_a_locality_model_is_that_of_the_simulation() -> None:
    """A policy that replaces the one that it sees changes no run time."""

    class Replaces(Cheat):
        def schedule(self, system: Any) -> None:
            system.service_time = type(system.service_time)(lambda *_: 0)
            super().schedule(system)

    CHEATS[""] = lambda system: None
    result = Simulation(
        Workload(CROWD), Replaces(), 15, service_time=lambda job, seconds, allocation, cluster: 5
    ).run()
    assert (result.end_time - result.start_time).tolist() == [15] * 6


@needs_numba
def test_open_seats_are_checked_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On both simulators, whoever asks for the result."""
    from hpcsimkit.kernel import simulation as module

    ends: list[str] = []
    monkeypatch.setattr(module, "verify", lambda run, result, *_, **__: ends.append(result.simulator))
    for program in ("simpy", "compiled"):
        run = Simulation(Workload(CROWD), Pipeline(External()), 4)
        run.pause_with(program, [])
        while (decision := run.next_decision()) is not None:
            run.answer(decision.default)
    assert ends == ["simpy", "compiled"]
    Simulation(Workload(CROWD), Pipeline(), 4, simulator="compiled").run()
    assert ends[2:] == ["compiled"]


@needs_numba
@pytest.mark.parametrize("ordered", [True, False])
def test_a_fault_of_a_simulator_is_said_so(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of the policy is the user's, whether the simulator knows the positions of starts and ends."""
    from hpcsimkit.compiled import support

    sound = support.run

    def faulty(run: Simulation) -> tuple[Result, Any]:
        result, positions = sound(run)
        return moved(1, -1)(result), positions if ordered else None

    monkeypatch.setattr(support, "run", faulty)
    with pytest.raises(
        ImpossibleScheduleError, match="of 4; this is a defect of hpcsimkit: please report it"
    ):
        Simulation(Workload(CROWD), Pipeline(), 4, simulator="compiled").run()


def test_no_result_before_the_end() -> None:
    with pytest.raises(UsageError, match="the run is not over yet"):
        Simulation(Workload(CROWD), Pipeline(), 4).result()
