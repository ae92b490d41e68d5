"""Start windows: draws, futures that are the run itself, calibration, and WRENCH's estimates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Workload, default_workload
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.advice.arrivals import DAY, WEEK, PastArrivals
from hpcsimkit.experiments.advice.futures import Futures, _again
from hpcsimkit.experiments.advice.run_times import PastRunTimes
from hpcsimkit.experiments.advice.windows import FEWEST, Windows, scores, stretched, windows_of
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.questions.advise import AdviceQuestion, _table, advise
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.run import app
from tests.drawn import examples

HOUR = 3600


@pytest.fixture(scope="module")
def log() -> Workload:
    """Two weeks of jobs of ten users, who ask for more time than they use."""
    rng = np.random.default_rng(5)
    drawn = default_workload(rng).window(0, 14 * DAY)
    columns = {
        **drawn.columns,
        "user": rng.integers(0, 10, len(drawn)),
        "requested_time": drawn.run_time * rng.integers(1, 5, len(drawn)),
    }
    return Workload(columns, machine_size=drawn.machine_size, name="fortnight")


# --- draws ---------------------------------------------------------------------------------------------


def past(run_time: list[int], requested: list[int], user: list[int], end: list[int]) -> PastRunTimes:
    jobs = len(run_time)
    columns = {"submit_time": [0] * jobs, "run_time": run_time, "requested_time": requested, "user": user}
    return PastRunTimes(Workload({**columns, "nodes": [1] * jobs}), np.array(end))


def test_a_job_draws_from_the_ended_jobs_of_its_user() -> None:
    # A job of user 1, which asks for 100 s: that user has had 60 s of 100 s, others 10 s; 90 s is to come.
    drawn = past([60, 10, 90, 1], [100] * 4, [1, 2, 1, 1], [5, 5, 50, -1])
    times = drawn.draw(np.array([3]), np.array([0]), 10, 4000, np.random.default_rng(0))
    assert {*times.ravel().tolist()} == {60, 10}
    assert (times == 60).mean() > 0.9


def test_the_youngest_jobs_weigh_most() -> None:
    drawn = past([60, 10, 1], [100] * 3, [1, 1, 1], [9, 10, -1])  # the second one ends at that very time
    times = drawn.draw(np.array([2]), np.array([0]), 10, 4000, np.random.default_rng(0))
    assert 0.5 < (times == 10).mean() < 0.56
    others = past([60, 10, 1], [100] * 3, [1, 1, 1], [10, 9, -1])
    assert (
        0.44
        < (others.draw(np.array([2]), np.array([0]), 10, 4000, np.random.default_rng(0)) == 10).mean()
        < 0.5
    )


def test_a_request_names_its_partition_unless_one_is_the_default() -> None:
    columns = {
        "submit_time": [0],
        "run_time": [9],
        "requested_time": [9],
        "nodes": [1],
        "cpus": [1],
        "partition": [0],
    }
    log = Workload(columns, resources=("cpus",), labels={"partition": ("a",)})

    def starts(**default: bool) -> list[int]:
        parts = [Partition("a"), Partition("b", **default)]
        cluster = Partitions(parts, Machines.of(2, cpus=4))
        question = {"requests": ["time=60,cpus=1"], "futures": 1, "calibration": 0}
        return advise(log, None, "fcfs", cluster, **question).requests.as_requested.tolist()

    with pytest.raises(
        UsageError, match="'time=60,cpus=1': a partition is needed, as none is the default: a, b"
    ):
        starts()
    assert starts(default=True) == [0]


def test_run_times_of_other_requests_count_as_shares() -> None:
    drawn = past([50, 1], [100, 200], [1, 1], [5, -1])
    times = drawn.draw(np.array([1]), np.array([0]), 10, 9, np.random.default_rng(0))
    assert {*times.ravel().tolist()} == {100}


def test_a_job_that_has_run_draws_what_is_longer() -> None:
    drawn = past([20, 80, 1], [100, 100, 100], [1, 1, 1], [5, 6, -1])
    of = lambda ran: {*drawn.draw(np.array([2]), np.array([ran]), 10, 50, np.random.default_rng(0)).ravel()}  # noqa: E731
    assert of(19) == {20, 80}
    assert of(20) == {80}
    assert of(80) == {100}  # nothing was as long: as requested
    assert of(130) == {131}  # beyond the request: it ends at once


def test_equal_jobs_of_a_user_draw_together() -> None:
    drawn = past([10, 90, 1, 1], [100] * 4, [1, 1, 1, 1], [5, 6, -1, -1])
    times = drawn.draw(np.array([2, 3]), np.zeros(2, int), 10, 4000, np.random.default_rng(0))
    assert (times[:, 0] == times[:, 1]).mean() > 0.85


@given(st.data())
@examples(0.5)
def test_nothing_of_what_is_to_come_is_drawn(data: st.DataObject) -> None:
    """Other run times of jobs that have not ended, and other arrivals later, change no draw."""
    jobs = data.draw(st.integers(2, 12))
    numbers = st.lists(st.integers(1, 60), min_size=jobs, max_size=jobs)
    run_time, requested, user = (data.draw(numbers) for _ in range(3))
    end = data.draw(st.lists(st.integers(1, 40), min_size=jobs, max_size=jobs))
    changed = [run + (ends > 20) * 7 for run, ends in zip(run_time, end, strict=True)]
    rows, ran = np.arange(jobs), np.zeros(jobs, int)
    first, second = (
        past(times, requested, user, end).draw(rows, ran, 20, 5, np.random.default_rng(1))
        for times in (run_time, changed)
    )
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize(
    ("length", "period"), [(9 * WEEK, WEEK), (5 * WEEK, DAY), (9 * DAY, DAY), (2 * DAY, DAY), (HOUR, HOUR)]
)
def test_arrivals_are_past_ones_at_the_same_time_of_the_period(length: int, period: int) -> None:
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(0, 2 * length, 400))
    submit[0] = 0
    log = Workload({"submit_time": submit, "run_time": [1] * 400, "nodes": [1] * 400})
    rows, times = PastArrivals(log).draw(length, 3 * period, rng)
    assert len(rows) > 0
    assert submit[rows].max() <= length  # known by then
    assert (times > length).all()
    assert (times <= length + 3 * period).all()
    assert ((times - submit[rows]) % period == 0).all()


@pytest.mark.parametrize("length", [3 * HOUR, DAY, 3 * DAY, 8 * DAY, 10 * DAY, 8 * WEEK, 10 * WEEK])
def test_futures_have_different_arrivals(length: int) -> None:
    """Also if the log has only one day, or one week, which would be all that is drawn."""
    rng = np.random.default_rng(0)
    submit = np.arange(0, length, 600)
    one = [1] * len(submit)
    past = PastArrivals(Workload({"submit_time": submit, "run_time": one, "nodes": one}))
    seen = {tuple(past.draw(length, 2 * HOUR, rng)[0][:4].tolist()) for _ in range(40)}
    assert len(seen) > (2 if length == 3 * DAY else 5)


def test_a_log_that_has_just_begun_has_no_arrivals() -> None:
    log = Workload({"submit_time": [0, 9], "run_time": [1] * 2, "nodes": [1] * 2})
    assert PastArrivals(log).draw(9, WEEK, np.random.default_rng(0))[0].tolist() == []


# --- futures -------------------------------------------------------------------------------------------

MACHINES = Machines.of(4, cpus=64)
HALVES = Partitions([Partition("a", nodes=128), Partition("b", nodes=128)], column="queue")


@pytest.mark.parametrize(
    ("policy", "cluster"),
    [
        ("fcfs+easy", None),
        ("sjf+conservative-replan", None),
        ("fcfs+easy++", None),
        ("slurm+easy", None),
        ("fcfs+easy", MACHINES),
        ("wfp3+easy", HALVES),
    ],
)
def test_the_future_with_what_happens_is_the_run_itself(log: Workload, policy: str, cluster: object) -> None:
    if cluster is not None:  # at most 64 CPUs on a machine, 128 nodes in a partition
        columns, most = {**log.columns, "nodes": np.minimum(log.nodes, 128)}, np.minimum(log.nodes, 64)
        if cluster is MACHINES:
            log = Workload({**columns, "nodes": np.ones(len(log)), "cpus": most}, resources=("cpus",))
        else:
            queue = np.arange(len(log)) % 2
            log = Workload({**columns, "queue": queue}, labels={"queue": ("a", "b")}).scale_load(2.0)
    case = Case.of(log, policy, cluster)  # type: ignore[arg-type]
    result = case.run()
    waiting = [np.sum((log.submit_time <= at) & (result.start_time > at)) for at in log.submit_time]
    at = int(log.submit_time[int(np.argmax(waiting))])
    futures = Futures(case, result)
    moment = futures.moment(at)
    coming = np.flatnonzero(log.submit_time > at)
    starts = futures._starts(
        moment, futures._begun(moment), log.run_time[moment.active], coming, log.submit_time[coming]
    )
    assert len(starts) >= 3
    assert starts.tolist() == result.start_time[moment.waiting].tolist()


@pytest.mark.parametrize("preempted", ["continue", "anew"])
def test_stopped_jobs_wait_and_run_on(log: Workload, preempted: str) -> None:
    tiers = Workload({**log.columns, "qos": np.arange(len(log)) % 3}, machine_size=log.machine_size)
    case = Case.of(tiers, "fcfs+easy+preempt(by=qos)", restart=Restart(preempted))  # type: ignore[arg-type]
    result = case.run()
    assert result.attempts is not None
    futures, stopped = Futures(case, result), 0
    stops = result.attempts.end_time[result.attempts.outcome == Outcome.PREEMPTED]
    for at in np.unique(stops)[1::5].tolist():
        moment = futures.moment(at)
        coming = np.flatnonzero(log.submit_time > at)
        starts = futures._starts(
            moment, futures._begun(moment), log.run_time[moment.active], coming, log.submit_time[coming]
        )
        assert starts.tolist() == futures.next_start(moment).tolist()
        stopped += int((futures._done(moment) > 0).sum())
    assert len(stops) > 40
    assert (stopped > 3) == (preempted == "continue")


def test_jobs_that_were_stopped_for_good_have_ended_then(log: Workload) -> None:
    """A policy with a memory hears of their last attempts, which were shorter than their run times."""
    tiers = Workload({**log.columns, "qos": np.arange(len(log)) % 3}, machine_size=log.machine_size)
    case = Case.of(tiers, "slurm+easy+preempt(by=qos,mode=cancel)")
    result = case.run()
    assert result.attempts is not None
    futures, seen = Futures(case, result), 0
    stops = result.attempts.end_time[result.attempts.outcome == Outcome.CANCELLED]
    for at in np.unique(stops)[1::5].tolist():
        moment = futures.moment(at)
        coming = np.flatnonzero(log.submit_time > at)
        starts = futures._starts(
            moment, futures._begun(moment), log.run_time[moment.active], coming, log.submit_time[coming]
        )
        assert starts.tolist() == futures.next_start(moment).tolist()
        seen += len(moment.past)
    assert len(stops) > 40 and seen


def test_the_further_job_is_the_last_to_wait(log: Workload) -> None:
    at = int(log.submit_time[300])
    found = advise(
        log, at, requests=["nodes=1,time=0:01:00", "nodes=257,time=1:00:00"], futures=3, calibration=0
    )
    easy, never = found.requests.as_requested
    assert at <= easy <= found.table.as_requested.max()
    assert never == -1
    assert "never" in "\n".join(found.lines())


def test_a_request_may_come_to_a_cluster_where_no_job_waits(log: Workload) -> None:
    found = advise(log.first(1), requests=["nodes=1,time=0:01:00"], futures=3, calibration=2)
    assert found.requests.high.tolist() == [int(log.first(1).submit_time[0])]
    assert "no job waits" in [*found.lines()]


def test_wrench_estimates_the_same_starts() -> None:
    """Facts of BatchServiceFCFSTest and BatchServiceConservativeTest of WRENCH: ``getStartTimeEstimates``.

    Whole hosts under conservative backfilling, and cores of hosts under FCFS; hosts and time [s] of each job.
    """
    jobs = [(2, 120), (3, 60), (3, 60), (1, 60)]
    asked = {
        (1, 60): 0,
        (1, 10_000): 0,
        (2, 10): 60,
        (2, 80): 240,
        (5, 400): -1,
        (3, 400): 240,
        (4, 400): 240,
    }
    nodes, times = zip(*jobs, strict=True)
    columns = {"submit_time": [0] * 4, "run_time": [60] * 4, "requested_time": times, "nodes": nodes}
    requests = [f"nodes={count},time={seconds}" for count, seconds in asked]
    for policy in ("fcfs+conservative", "fcfs+conservative-replan"):
        found = advise(
            Workload(columns, machine_size=4), policy=policy, requests=requests, futures=1, calibration=0
        )
        assert found.requests.as_requested.tolist() == [*asked.values()]

    cores = [(2, 10), (3, 5), (2, 10), (2, 10), (3, 5), (2, 5), (1, 5), (2, 5), (1, 4)]
    hosts, cpus = zip(*cores, strict=True)
    columns = {
        "submit_time": [0] * 9,
        "run_time": [60] * 9,
        "requested_time": [120] * 8 + [60],
        "nodes": hosts,
    }
    log = Workload({**columns, "cpus": cpus}, resources=("cpus",))
    wanted = [
        ((1, 1), 480), ((5, 1), -1), ((4, 10), 600), ((1, 6), 480), ((2, 6), 480), ((2, 7), 480), ((3, 7), 600),
        ((4, 4), 540), ((1, 1), 480), ((1, 2), 480),
    ]  # fmt: skip
    requests = [f"nodes={count},cpus={cpus},time=400" for (count, cpus), _ in wanted]
    found = advise(log, None, "fcfs", Machines.of(4, cpus=10), requests=requests, futures=1, calibration=0)
    assert found.requests.as_requested.tolist() == [start for _, start in wanted]


def test_past_jobs_arrive_again_later() -> None:
    columns = {
        "id": [7, 8],
        "submit_time": [0, 5],
        "run_time": [60, 70],
        "nodes": [1, 2],
        "begin_time": [40, -1],
    }
    log = Workload({**columns, "preceding": [-1, 7]}, machine_size=4)
    again = _again(log, np.array([1]), np.array([0, 1]), np.array([100, 105]), np.array([30]), np.array([10]))
    assert again.submit_time.tolist() == [5, 100, 105]
    assert again.run_time.tolist() == [20, 60, 30]  # job 8 has not ended: what is drawn for it
    assert again.id.tolist() == [8, 9, 10]
    assert again.column("begin_time").tolist() == [-1, 140, -1]
    assert again.column("preceding").tolist() == [7, -1, -1]


def test_the_jobs_ahead_are_those_that_start_before_as_requested(log: Workload) -> None:
    table = advise(log, int(log.submit_time[400]), futures=2, calibration=0).table
    counted = [int((table.as_requested < each).sum()) for each in table.as_requested]
    assert table.ahead.tolist() == counted
    assert counted[-1] > 0


def test_jobs_that_never_start_come_last_and_are_ahead_of_none() -> None:
    jobs = Workload({"id": [7, 8, 9], "submit_time": [0, 0, 0], "run_time": [5, 5, 5], "nodes": [1, 1, 1]})
    as_requested = np.array([-1, 40, 30])
    windows = Windows(*np.full((3, 3), 50.0))
    table = _table(jobs, np.arange(3), as_requested, windows, as_requested)
    assert table.job_id.tolist() == ["9", "8", "7"]
    assert table.ahead.tolist() == [0, 1, 2]


# --- windows -------------------------------------------------------------------------------------------


def test_windows_are_stretched_to_hold_the_past() -> None:
    windows = Windows(np.array([1000.0]), np.array([2000.0]), np.array([3000.0]))
    # Nine starts of ten would lie within 2 distances (and their slack) above, none below.
    above = np.concatenate([np.full(9 * FEWEST, 2.0), np.full(FEWEST - 1, 9.0)])
    low, middle, high = stretched(windows, np.full(len(above), -0.5), above, at=500)
    assert (low[0], middle[0], high[0]) == (2000, 2000, 2000 + 2 * (1000 + 600))
    assert stretched(windows, np.full(len(above), 3.0), above, at=500).low[0] == 500  # nothing starts before
    at_once = Windows(*np.full((3, 1), 500.0))
    assert stretched(at_once, np.full(len(above), 3.0), above, at=500).high[0] == 500
    few = np.ones(FEWEST - 1)
    assert stretched(windows, few, few, at=500) is windows


@pytest.mark.parametrize("futures", [20, 200])
def test_windows_of_few_futures_hold_as_much_as_those_of_many(futures: int) -> None:
    drawn = np.random.default_rng(0).random((futures + 1, 20_000))
    low, _, high = windows_of(drawn[1:])  # type: ignore[arg-type]
    assert ((low <= drawn[0]) & (drawn[0] <= high)).mean() == pytest.approx(0.8, abs=0.01)


def test_scores_are_distances_from_the_middle() -> None:
    windows = Windows(np.array([400.0]), np.array([1000.0]), np.array([3400.0]))
    below, above = scores(windows, np.array([4000]))
    assert (below[0], above[0]) == (-3000 / 1200, 1.0)


def test_four_starts_of_five_are_in_their_windows(log: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to the digit: at some times of one log."""
    monkeypatch.setattr("hpcsimkit.experiments.questions.advise.DRAWS", 8)
    case = Case.of(log, "fcfs+easy")
    tables = [
        advise(case, int(at), futures=16, calibration=8).table
        for at in np.linspace(8 * DAY, 13 * DAY, 6)
        if len(Futures(case, case.run()).moment(int(at)).waiting)
    ]
    inside = np.concatenate([table.start_time.between(table.low, table.high) for table in tables])
    wide = np.concatenate([(table.high - table.low) for table in tables])
    assert len(inside) > 50
    assert 0.6 < inside.mean() < 0.97
    assert (wide > 0).any()


def test_equal_seeds_give_equal_windows_on_any_engine(log: Workload) -> None:
    from hpcsimkit.engine.engines import engine_of

    given = {"at": int(log.submit_time[400]), "futures": 25, "calibration": 3}
    first = advise(log, **given)  # type: ignore[arg-type]
    other = advise(log, **given, engine=engine_of(2))  # type: ignore[arg-type]
    assert first.table.equals(other.table)
    assert not first.table.equals(advise(log, **given, seed=1).table)  # type: ignore[arg-type]


def test_windows_are_made_of_what_was_known(log: Workload) -> None:
    """Another end of the jobs that run and wait, and no job later: the same windows."""
    at = int(log.submit_time[900])
    case = Case.of(log, "fcfs+easy")
    active = case.run().end_time > at
    early = Workload(
        {**log.columns, "run_time": np.where(active, 3 * log.run_time, log.run_time)},
        machine_size=log.machine_size,
    ).select(log.submit_time <= at)
    first, second = (advise(each, at, futures=5, calibration=6) for each in (case.jobs, early))
    assert first.known == second.known > 0
    columns = ["job_id", "as_requested", "low", "middle", "high"]
    assert first.table[columns].equals(second.table[columns])


def test_earlier_times_are_those_whose_starts_are_known(log: Workload) -> None:
    at = int(log.submit_time[900])
    question = AdviceQuestion(case=Case.of(log, "fcfs+easy"), at=at, calibration=8)
    futures = Futures(question.case, question.case.run())
    moments = question.earlier(futures)
    assert len(moments) == 8
    assert all(moment.at <= at for moment in moments)
    assert all(
        0 < futures.next_start(moment).min() <= futures.next_start(moment).max() <= at for moment in moments
    )


# --- as users ask --------------------------------------------------------------------------------------


def test_the_command_writes_windows(
    tmp_path: Path, log: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    from hpcsimkit.workloads.readers.swf import write_swf

    file, out = tmp_path / "log.swf", tmp_path / "out"
    write_swf(log, file)
    at = str(int(log.submit_time[400]))
    words = ["advise", str(file), "--at", at, "--futures", "5", "--calibration", "2", "--out", str(out)]
    app([*words, "--what-if", "nodes=4,time=2:00:00"], standalone_mode=False)
    said = capsys.readouterr().out
    assert f"second {int(at):,}: " in said
    assert "windows of 5 futures, " in said
    assert "what the log knows: mean error" in said
    assert sorted(each.name for each in out.iterdir() if not each.name.startswith(".")) == [
        *(
            "advice.html",
            "advice.json",
            "advice.png",
            "advice.run.json",
            "requests.csv",
            "windows.csv",
            "windows.json",
        ),
    ]
    plain = json.loads((out / "windows.json").read_text())
    assert plain["at"] == int(at)
    assert plain["requests"][0]["request"] == "nodes=4,time=2:00:00"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at": -5}, "advise: at: a time among the submissions"),
        ({"at": "2024-01-01T00:00:00"}, "has no dates"),
        ({"futures": 0}, "futures needs a number of at least 1, found 0"),
        ({"calibration": -1}, "calibration needs a number of at least 0, found -1"),
        ({"requests": ["nodes=4"]}, "'nodes=4': a requested time is needed"),
        ({"requests": ["four"]}, "a request such as nodes=4,time=2:00:00 is needed, found 'four'"),
        ({"requests": ["nodes=0,time=60"]}, "a number of nodes is needed, found '0'"),
        ({"requests": ["time=soon"]}, "a duration needs seconds"),
        ({"requests": ["time=60,partition=gpu"]}, "no job has 'partition'"),
        ({"requests": ["time=60,time=70"]}, "a request such as"),
        ({"at": 0}, "advise: no job waits at 0 s"),
    ],
)
def test_wrong_questions_get_a_line(given: dict[str, object], said: str) -> None:
    log = Workload({"submit_time": [0, 50], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=4)
    with pytest.raises(UsageError, match=said):
        advise(log, **given)  # type: ignore[arg-type]


def test_options_that_no_future_has_are_refused_by_name() -> None:
    from hpcsimkit.cluster.outages import Failures
    from hpcsimkit.kernel.begun import BeginAt
    from hpcsimkit.kernel.event_order import DirlabOrder

    log = Workload({"submit_time": [0, 50], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=4)
    for name, key, value in (
        ("outages", "failures", Failures(mtbf=9, repair=9)),
        ("begin_at", "begin_at", BeginAt(50)),
    ):
        with pytest.raises(UsageError, match=f"advise: {key} is not supported"):
            AdviceQuestion(case=Case.of(log, "fcfs", **{name: value}))
    with pytest.raises(UsageError, match="the semantics 'dirlab' are not supported"):
        AdviceQuestion(case=Case.of(log, "fcfs", event_order=DirlabOrder()))
