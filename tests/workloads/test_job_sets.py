"""Job sets for a training in three phases: sampled, real, synthetic; and logs for smaller machines."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import PHASES, default_workload, read_swf, sampled, scaled, three_phases, weeks

WEEK = 7 * 86_400


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def log() -> Workload:
    """1000 jobs in 9 days, each with a run time of its own."""
    submit = np.sort(rng(1).integers(0, 9 * 86_400, 1000))
    return Workload(
        {"submit_time": submit, "run_time": np.arange(1000), "requested_time": np.arange(1000) + 7,
         "nodes": 1 + np.arange(1000) % 64, "preceding": [-1] * 999 + [1]},
        machine_size=64, name="log", notes={"odd": 3},
    )  # fmt: skip


# --- sampled ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 400, 1000])
def test_sampled_without_replacement(log: Workload, jobs: int) -> None:
    w = sampled(log, jobs, rng(2))
    assert (len(w), len(set(w.run_time.tolist())), w.machine_size) == (jobs, jobs, 64)
    assert (w.requested_time == w.run_time + 7).all() and (w.nodes == 1 + w.run_time % 64).all()
    assert w.id.tolist() == list(range(1, jobs + 1)) and "preceding" not in w.columns and not w.notes
    assert w.hash == sampled(log, jobs, rng(2)).hash
    assert w.hash != sampled(log, jobs, rng(3)).hash


def test_sampled_jobs_are_in_random_order(log: Workload) -> None:
    assert abs(np.corrcoef(sampled(log, 1000, rng(2)).run_time, np.arange(1000))[0, 1]) < 0.12


def test_sampled_with_replacement_if_there_are_not_enough(log: Workload) -> None:
    w = sampled(log, 100_000, rng(4))
    counts = np.bincount(w.run_time)
    assert counts.min() > 50 and counts.max() < 150  # 100 each, give or take five deviations
    gaps = np.diff(w.submit_time)
    mean = log.span / 999
    assert gaps.mean() == pytest.approx(mean, rel=0.015) and gaps.std() == pytest.approx(mean, rel=0.02)
    assert w.submit_time[0] >= log.submit_time[0]


def test_sampled_refuses() -> None:
    burst = Workload({"submit_time": [3, 3], "run_time": [1, 1], "nodes": [1, 1]}, name="burst")
    with pytest.raises(WorkloadError, match="burst: submissions at different times"):
        sampled(burst, 5, rng(0))
    with pytest.raises(WorkloadError, match="sampled: jobs needs 1 or more, found 0"):
        sampled(burst, 0, rng(0))


# --- weeks -----------------------------------------------------------------------------------------------


def test_weeks_by_hand() -> None:
    columns = {
        "submit_time": [50 + WEEK, 50, 49 + WEEK, 50 + 3 * WEEK],
        "run_time": [1] * 4,
        "nodes": [1] * 4,
    }
    found = weeks(Workload(columns, name="x"))
    assert [week.id.tolist() for week in found] == [[2, 3], [1], [4]]
    assert [week.name for week in found] == ["x-week-1", "x-week-2", "x-week-4"]
    assert weeks(Workload({"submit_time": [], "run_time": [], "nodes": []})) == []


@given(st.lists(st.integers(0, 20 * WEEK), min_size=1, max_size=40))
def test_weeks_part_a_log(submit: list[int]) -> None:
    log = Workload({"submit_time": submit, "run_time": [1] * len(submit), "nodes": [1] * len(submit)})
    found = weeks(log)
    assert sorted(number for week in found for number in week.id.tolist()) == log.id.tolist()
    assert all(len(week) and week.span < WEEK for week in found)
    for week, following in itertools.pairwise(found):
        assert week.submit_time.max() < following.submit_time.min()


# --- three phases ----------------------------------------------------------------------------------------


def hashes(sets) -> dict[tuple[str, int], str]:
    return {(phase, number): workload.hash for phase, number, workload in sets}


def test_the_papers_job_sets(log: Workload) -> None:
    sets = three_phases(log, rng(1))
    phases = [phase for phase, _ in sets.places]
    assert phases == ["sampled"] * 9 + ["real"] * 2 + ["synthetic"] * 82
    assert [len(sets[place].workload) for place in (0, 9, -1)] == [7840, len(weeks(log)[0]), 7840]
    assert sets[10].workload.hash == weeks(log)[1].hash
    assert (sets[-1].phase, sets[-1].number, sets[-1].workload.name) == ("synthetic", 81, "log-synthetic-82")


def test_a_set_depends_on_seed_phase_and_number_only(log: Workload) -> None:
    sets = three_phases(log, rng(5), sampled=3, synthetic=4, jobs=50)
    whole = hashes(sets)
    assert len(set(whole.values())) == len(whole) == 9
    for length in (1, 2, 3):
        for order in itertools.permutations(PHASES, length):
            part = three_phases(log, rng(5), sampled=2, synthetic=6, jobs=50, order=order)
            assert [phase for phase, _ in itertools.groupby(phase for phase, _ in part.places)] == list(order)
            assert all(whole.get(place, found) == found for place, found in hashes(part).items())
    other = hashes(three_phases(log, rng(6), sampled=3, synthetic=4, jobs=50))
    assert {place for place in whole if whole[place] == other[place]} == {("real", 0), ("real", 1)}


def test_a_training_that_goes_on_gets_the_same_sets(log: Workload) -> None:
    used = rng(5)
    sets = three_phases(log, used, sampled=3, synthetic=4, jobs=50)
    whole = list(hashes(sets).values())
    used.random(100)
    used.spawn(3)
    again = three_phases(log, used, sampled=3, synthetic=4, jobs=50)
    assert list(hashes(again[6:]).values()) == whole[6:]
    assert list(hashes(pickle.loads(pickle.dumps(again))[2:8:2]).values()) == whole[2:8:2]
    assert again[-1].workload.hash == again[8].workload.hash == whole[8]
    with pytest.raises(IndexError):
        again[9]


def test_the_generator_is_left_as_it_is(log: Workload) -> None:
    one, other = rng(5), rng(5)
    list(three_phases(log, one, sampled=1, synthetic=1, jobs=50))
    assert one.random() == other.random() and one.spawn(1)[0].random() == other.spawn(1)[0].random()


def test_generators_of_one_seed_get_sets_of_their_own(log: Workload) -> None:
    parent = rng(5)
    found = [
        hashes(three_phases(log, each, sampled=1, synthetic=1, jobs=50))
        for each in (parent, *parent.spawn(2))
    ]
    assert len({each["sampled", 0] for each in found}) == len({each["synthetic", 0] for each in found}) == 3


def test_each_set_has_a_stream_of_its_own(log: Workload) -> None:
    sets = three_phases(log, rng(5), jobs=50)
    streams = [sets._rng(phase, number) for phase in PHASES for number in range(3)]
    streams += [rng(5), *rng(5).spawn(3), *rng(5).spawn(1)[0].spawn(3)]
    assert len({stream.random() for stream in streams}) == len(streams) == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": ("sampled", "fake")}, "phases are sampled, real, synthetic, found 'fake'"),
        ({"order": ("real", "real")}, "'real' is named twice"),
        ({"order": ()}, "at least one job set is needed"),
        ({"sampled": 0, "order": ("sampled",)}, "at least one job set is needed"),
        ({"synthetic": -1}, "synthetic must be 0 or more, found -1"),
        ({"jobs": 0}, "jobs needs 1 or more, found 0"),
    ],
)
def test_three_phases_refuse(log: Workload, options, message: str) -> None:
    with pytest.raises((UsageError, WorkloadError), match=message):
        three_phases(log, rng(0), **options)


def test_three_phases_need_a_log_that_says_when_jobs_come() -> None:
    for log in (
        Workload({"submit_time": [3], "run_time": [1], "nodes": [1]}),
        Workload({"submit_time": [], "run_time": [], "nodes": []}),
    ):
        with pytest.raises(WorkloadError, match="submissions at different times"):
            three_phases(log, rng(0))


# --- a smaller machine -----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5000), max_size=20), st.integers(1, 6000), st.integers(5000, 9000))
def test_scaled(nodes: list[int], divisor: int, machine: int) -> None:
    log = Workload(
        {"submit_time": [0] * len(nodes), "run_time": [1] * len(nodes), "nodes": nodes}, machine_size=machine
    )
    small = scaled(log, divisor)
    assert small.nodes.tolist() == [math.ceil(n / divisor) for n in nodes]
    assert small.machine_size == math.ceil(machine / divisor)
    assert all(small.nodes <= small.machine_size)
    assert small.provenance == (f"sizes / {divisor}, rounded up",)


def test_scaled_refuses_and_knows_of_no_machine() -> None:
    columns = {"submit_time": [0], "run_time": [1], "nodes": [5], "cpus": [4]}
    with pytest.raises(WorkloadError, match=r"x: jobs that count nodes only .* ask for cpus"):
        scaled(Workload(columns, resources=("cpus",), name="x"), 2)
    del columns["cpus"]
    assert scaled(Workload(columns), 2).machine_size is None
    with pytest.raises(WorkloadError, match=r"workload: sizes are divided by 1 to 2\^31 - 1, found 0"):
        scaled(Workload(columns), 0)
    assert scaled(Workload(columns, machine_size=9), 1).hash == Workload(columns, machine_size=9).hash


# --- as in the paper, and in a training ------------------------------------------------------------------


def test_theta(shared: Path) -> None:
    log = read_swf(shared / "traces" / "ALCF-Theta-2022.swf.gz")
    first = int(log.submit_time.min())
    training = scaled(log.window(first, first + 59 * 86_400), 10)
    assert (training.machine_size, training.nodes.min()) == (436, 13)  # 4360 and 128 nodes
    sets = three_phases(training, rng(0))
    assert len(sets) == 100 and [phase for phase, _ in sets.places].count("real") == 9
    for chosen in (sets[:9], sets[18:36]):
        loads = [made.workload.offered_load() for made in chosen]  # one is off by 5 % in the mean
        assert np.mean(loads) == pytest.approx(training.offered_load(), rel=0.08)
        w = chosen[0].workload
        assert (len(w), w.machine_size) == (7840, 436)
        assert set(w.nodes.tolist()) <= set(training.nodes.tolist())


def test_job_sets_can_be_simulated() -> None:
    from hpcsimkit import Simulation
    from hpcsimkit.experiments.parts import registry

    log = default_workload(rng(1), jobs=300, nodes=64)
    for made in three_phases(log, rng(2), sampled=1, synthetic=1, jobs=100, order=("synthetic", "sampled")):
        result = Simulation(made.workload, registry.make("fcfs+easy")).run()
        assert result.finished.all() and len(result.finished) == 100
