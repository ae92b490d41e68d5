"""Parts of a user's own that go wrong: one line with part, time, job and place, never a traceback."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simpy.core import EmptySchedule

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError, PolicyError, ScheduleError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.guard import message_of
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Backfiller, Estimator, Inspector, Order, Placement, Policy
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY
from hpcsimkit.run import main
from tests.forking import Forked
from tests.kernel.helpers import workload

ROWS = [(5, 10, 10, 3), (7, 10, 10, 3), (8, 2, 2, 1)]
"""Four nodes: job 1 runs from 5, job 2 does not fit beside it, job 3 does."""


class Ours(BaseException):
    """Of a library that stops by an exception of its own."""


class TwoArguments(Exception):  # noqa: N818 - it is the user's
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


class OwnKind(HpcsimkitError):  # noqa: N818 - it is the user's
    """A subclass of the kit's errors that cannot be made of one line."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Unspeakable(Exception):  # noqa: N818 - it is the user's
    def __str__(self) -> str:
        raise ValueError("no words")


RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("no"),
    "SystemExit": lambda: SystemExit(0),
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "Ours": lambda: Ours("a b"),
    "TwoArguments": lambda: TwoArguments(1, 2),
    "OwnKind": lambda: OwnKind(1, 2),
    "Unspeakable": Unspeakable,
    "EmptySchedule": EmptySchedule,
    "OSError": lambda: OSError(2, "gone"),
}


class Raises:
    """Raises when it comes to job 2."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fail(self, job: Job | None) -> None:
        if job is None or job.id == 2:
            raise RAISED[self.kind]()


class KeyRaises(Raises, Order):
    def key(self, job: Job) -> int:
        self.fail(job)
        return 0


class ScoresRaise(Raises, Order):
    def scores(self, jobs: Any, now: int) -> Any:
        raise RAISED[self.kind]()


class AcceptRaises(Raises, Inspector):
    def accept(self, job: Job, system: Any) -> bool:
        self.fail(job)
        return True


class PlaceRaises(Raises, Placement):
    def place(self, job: Job, level: Any, system: Any) -> Any:
        self.fail(job)
        return super().place(job, level, system)


class FillRaises(Raises, Backfiller):
    def fill(self, head: Job, system: Any) -> Any:
        self.fail(head)
        yield from ()


class EstimateRaises(Raises, Estimator):
    def estimate(self, job: Job) -> int:
        self.fail(job)
        return job.requested_time


class ObserveRaises(Raises, Estimator):
    def observe(self, job: Job, system: Any) -> None:
        self.fail(job)


class ResetRaises(Raises, Order):
    def key(self, job: Job) -> int:
        return 0

    def reset(self, system: Any) -> None:
        self.fail(None)


class AnswerRaises(Raises, Answering):
    def __init__(self, kind: str) -> None:
        Answering.__init__(self)
        self.kind = kind

    def answer(self, decision: Decision) -> int:
        self.fail(decision.job)
        return 0


class ScheduleRaises(Raises, Policy):
    def schedule(self, system: Any) -> None:
        for job in system.queue:
            self.fail(job)
            system.start(job)


class PassRaises(Raises, Policy):
    def schedule(self, system: Any) -> Any:
        for job in system.queue:
            self.fail(job)
            system.start(job)
        yield from ()


class CheckRaises(Raises, Policy):
    def check(self) -> None:
        self.fail(None)


class ReprRaises(Raises, Policy):
    def __repr__(self) -> str:
        self.fail(None)
        return ""


class SubmitRaises(Raises, Observer):
    def on_submit(self, job: Job, system: Any) -> None:
        self.fail(job)


class StartRaises(Raises, Observer):
    def on_start(self, job: Job, allocation: Any, system: Any) -> None:
        self.fail(job)


class EndRaises(Raises, Observer):
    def on_end(self, job: Job, system: Any) -> None:
        self.fail(job)


class FinishRaises(Raises, Observer):
    def on_finish(self, system: Any) -> None:
        self.fail(None)


class PenaltyRaises(Raises, ServiceTime):
    def penalty(self, job: Job, seconds: int, allocation: Any, cluster: Any) -> float:
        self.fail(job)
        return 0.0


PARTS: dict[type[Any], tuple[Callable[[Any], dict[str, Any]], str]] = {
    KeyRaises: (lambda part: {"policy": Pipeline(part)}, "t=7 s, in KeyRaises for job 2"),
    ScoresRaise: (lambda part: {"policy": Pipeline(part)}, "t=8 s, in ScoresRaise"),
    AcceptRaises: (lambda part: {"policy": Pipeline(inspector=part)}, "t=7 s, in AcceptRaises for job 2"),
    PlaceRaises: (lambda part: {"policy": Pipeline(placement=part)}, "t=7 s, in PlaceRaises for job 2"),
    FillRaises: (lambda part: {"policy": Pipeline(backfiller=part)}, "t=7 s, in FillRaises for job 2"),
    EstimateRaises: (lambda part: {"policy": Pipeline(estimates=part)}, "t=7 s, in EstimateRaises for job 2"),
    ObserveRaises: (lambda part: {"policy": Pipeline(estimates=part)}, "t=25 s, in ObserveRaises for job 2"),
    ResetRaises: (lambda part: {"policy": Pipeline(part)}, "t=5 s, in ResetRaises"),
    AnswerRaises: (lambda part: {"policy": Pipeline(inspector=part)}, "t=7 s, in AnswerRaises for job 2"),
    ScheduleRaises: (lambda part: {"policy": part}, "t=7 s, in ScheduleRaises for job 2"),
    PassRaises: (lambda part: {"policy": part}, "t=7 s, in PassRaises for job 2"),
    CheckRaises: (lambda part: {"policy": part}, "in CheckRaises"),
    ReprRaises: (lambda part: {"policy": part}, "in ReprRaises"),
    SubmitRaises: (lambda part: {"observers": [part]}, "t=7 s, in SubmitRaises for job 2"),
    StartRaises: (lambda part: {"observers": [part]}, "t=15 s, in StartRaises for job 2"),
    EndRaises: (lambda part: {"observers": [part]}, "t=25 s, in EndRaises for job 2"),
    FinishRaises: (lambda part: {"observers": [part]}, "t=25 s, in FinishRaises"),
    PenaltyRaises: (lambda part: {"service_time": part}, "t=15 s, in PenaltyRaises for job 2"),
}
"""Each part, how it is used, and where it fails."""


def line_of_run(**options: Any) -> str:
    """Run, and return the one line that it ends with."""
    policy = options.pop("policy", None) or Pipeline(backfiller=EASY())
    with pytest.raises(HpcsimkitError) as caught:
        Simulation(workload(ROWS, 4), policy, **options).run()
    line = str(caught.value)
    assert "\n" not in line
    assert type(caught.value).__module__ == "hpcsimkit.errors"
    return line


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
@pytest.mark.parametrize("kind", RAISED)
def test_whatever_a_part_raises_is_one_line(part: type[Any], kind: str) -> None:
    use, where = PARTS[part]
    line = line_of_run(**use(part(kind)))
    told = {"OSError": "FileNotFoundError"}.get(kind, kind)
    assert f"{where}: {told}" in line
    assert f"({__file__}:" in line


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_ctrl_c_stays_ctrl_c_and_says_where_it_came(part: type[Any], monkeypatch: Any) -> None:
    monkeypatch.setitem(RAISED, "ctrl-c", KeyboardInterrupt)
    use, where = PARTS[part]
    options = use(part("ctrl-c"))
    policy = options.pop("policy", None) or Pipeline(backfiller=EASY())
    with pytest.raises(KeyboardInterrupt) as caught:
        Simulation(workload(ROWS, 4), policy, **options).run()
    assert where.startswith("in") or (where in str(caught.value) and __file__ in str(caught.value))


def test_a_long_message_is_cut() -> None:
    assert len(message_of(ValueError("x" * 10_000))) < 600


# --- wrong answers ---------------------------------------------------------------------------------------


class Key(Order):
    def __init__(self, values: Any) -> None:
        self.values = values

    def key(self, job: Job) -> Any:
        return self.values[job.index]


class Scores(Order):
    def __init__(self, found: Any) -> None:
        self.found = found

    def scores(self, jobs: Any, now: int) -> Any:
        return self.found


class Accepts(Inspector):
    def __init__(self, found: Any) -> None:
        self.found = found

    def accept(self, job: Job, system: Any) -> Any:
        return self.found


class Places(Placement):
    def __init__(self, found: Any) -> None:
        self.found = found

    def place(self, job: Job, level: Any, system: Any) -> Any:
        return self.found


class Fills(Backfiller):
    def __init__(self, found: Any) -> None:
        self.found = found

    def fill(self, head: Job, system: Any) -> Any:
        return self.found


class Estimates(Estimator):
    def __init__(self, found: Any) -> None:
        self.found = found

    def estimate(self, job: Job) -> Any:
        return self.found


class Corrects(Estimator):
    corrects = True

    def __init__(self, found: Any) -> None:
        self.found = found

    def estimate(self, job: Job) -> int:
        return 1

    def correct(self, job: Job, elapsed: int) -> Any:
        return self.found


class Answers(Answering):
    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def answer(self, decision: Decision) -> Any:
        return self.found


class Does(Policy):
    """Does something to the first job of a pass."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self.act = act

    def schedule(self, system: Any) -> Any:
        return self.act(system, system.queue.first())


class QueueOrder(Policy):
    def __init__(self, found: Any) -> None:
        self.found = found

    @property
    def queue_order(self) -> Any:
        return self.found


def yields(value: Any) -> Any:
    yield value


NO_SCORES = "t=8 s: needs one score for each of 2 jobs"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "key nan": ({"policy": Pipeline(Key([0, np.nan, 0]))}, "job 2 at t=7 s.*not a number"),
    "key text": (
        {"policy": Pipeline(Key([0, "x", 1]))},
        "job 3 at t=8 s: .*1 cannot be sorted",
    ),
    "key none": ({"policy": Pipeline(Key([None] * 3))}, "job 3 at t=8 s: .*None cannot be sorted"),
    "key array": ({"policy": Pipeline(Key([np.zeros(2)] * 3))}, "job 1 at t=5 s: .* cannot be sorted"),
    "scores none": ({"policy": Pipeline(Scores(None))}, NO_SCORES),
    "scores text": ({"policy": Pipeline(Scores("best"))}, NO_SCORES),
    "scores ragged": ({"policy": Pipeline(Scores([[1], [1, 2]]))}, NO_SCORES),
    "scores too few": ({"policy": Pipeline(Scores([1.0]))}, NO_SCORES),
    "scores nan": ({"policy": Pipeline(Scores([1.0, np.nan]))}, NO_SCORES),
    "accept nothing": (
        {"policy": Pipeline(inspector=Accepts(None))},
        r"Accepts\(found=None\) for job 1 at t=5 s: True or",
    ),
    "accept text": ({"policy": Pipeline(inspector=Accepts("no"))}, r"for job 1 at t=5 s: True or.*'no'"),
    "place nothing": (
        {"policy": Pipeline(placement=Places(None))},
        r"Places\(found=None\) for job 1 at t=5 s must find",
    ),
    "place text": ({"policy": Pipeline(placement=Places("here"))}, "job 1 at t=5 s: 'here' does not lie"),
    "place nan": ({"policy": Pipeline(placement=Places(np.nan))}, "job 1 at t=5 s: nan does not lie"),
    "place arrays": (
        {"policy": Pipeline(placement=Places(np.ones(3)))},
        "t=5 s.* in Pipeline for job 1: ValueError",
    ),
    "place no machine": (
        {"policy": Pipeline(placement=Places(Allocation([99], [[3]]))), "cluster": Machines.of(4, cpus=1)},
        "t=5 s",
    ),
    "fill nothing": (
        {"policy": Pipeline(backfiller=Fills(None))},
        r"Fills\(found=None\)\) at t=7 s.*NoneType",
    ),
    "fill text": (
        {"policy": Pipeline(backfiller=Fills(["x"]))},
        "a job of the workload is needed at t=7 s, found 'x'",
    ),
    "fill numbers": (
        {"policy": Pipeline(backfiller=Fills([3]))},
        "a job of the workload is needed at t=7 s, found 3",
    ),
    "estimate zero": (
        {"policy": Pipeline(estimates=Estimates(0))},
        r"Estimates\(found=0\) for job 1 at t=5 s",
    ),
    "estimate text": ({"policy": Pipeline(estimates=Estimates("1"))}, "for job 1 at t=5 s.*found '1'"),
    "estimate nan": ({"policy": Pipeline(estimates=Estimates(np.nan))}, "for job 1 at t=5 s.*found nan"),
    "estimate huge": ({"policy": Pipeline(estimates=Estimates(10**30))}, "for job 1 at t=5 s.*found 10{30}"),
    "correct nothing": ({"policy": Pipeline(estimates=Corrects(None))}, "for job 1 at t=7 s.*found None"),
    "answer text": ({"policy": Pipeline(Answers("first"))}, "t=5 s.*|Answers answers 'first'"),
    "answer nan": ({"policy": Pipeline(Answers(np.nan))}, "Answers answers nan"),
    "answer beyond": ({"policy": Pipeline(Answers(5))}, "Answers answers 5 to Decision.'order', t=5 s"),
    "mode 7": (
        {"policy": Does(lambda system, job: system.start(job, mode=7))},
        "job 1 at t=5 s: a Mode.*found 7",
    ),
    "mode 0": (
        {"policy": Does(lambda system, job: system.start(job, mode=0))},
        "job 1 at t=5 s: a Mode.*found 0",
    ),
    "mode text": (
        {"policy": Does(lambda system, job: system.start(job, mode="x"))},
        "t=5 s: a Mode.*found 'x'",
    ),
    "start nothing": (
        {"policy": Does(lambda system, job: system.start(None))},
        "needed at t=5 s, found None",
    ),
    "start text": ({"policy": Does(lambda system, job: system.start("job"))}, "needed at t=5 s, found 'job'"),
    "reject a number": ({"policy": Does(lambda system, job: system.reject(1))}, "needed at t=5 s, found 1"),
    "wake nan": (
        {"policy": Does(lambda system, job: system.wake(np.nan))},
        "wake-up at t=nan s asked for at t=5 s",
    ),
    "wake never": (
        {"policy": Does(lambda system, job: system.wake(10**30))},
        "wake-up at t=10+ s asked for at t=5",
    ),
    "wake text": (
        {"policy": Does(lambda system, job: system.wake("noon"))},
        "t=5 s, in Does for job 1: TypeError",
    ),
    "returns true": (
        {"policy": Does(lambda system, job: True)},
        "at t=5 s: schedule.. must return nothing.* True",
    ),
    "yields nothing": (
        {"policy": Does(lambda system, job: yields(None))},
        "t=5 s: .*decisions only, found None",
    ),
    "yields a number": (
        {"policy": Does(lambda system, job: yields(17))},
        "t=5 s: .*decisions only, found 17",
    ),
    "no queue order": ({"policy": QueueOrder(None)}, "must be an Order, found None"),
    "a class as order": ({"policy": QueueOrder(EASY)}, "must be an Order"),
    "penalty of all": (
        {"service_time": lambda job, seconds, *_: -seconds},
        "at t=5 s: .*job 1.*more than -10",
    ),
    "penalty nan": ({"service_time": lambda *_: np.nan}, "at t=5 s: .*job 1.*found nan"),
    "penalty text": ({"service_time": lambda *_: "long"}, "at t=5 s: .*job 1.*found 'long'"),
    "penalty nothing": ({"service_time": lambda *_: None}, "at t=5 s: .*job 1.*found None"),
    "penalty complex": ({"service_time": lambda *_: np.complex128(1)}, "at t=5 s: .*job 1"),
    "penalty beyond 64 bits": ({"service_time": lambda *_: 10**20}, "at t=5 s: .*job 1"),
    "period beyond 64 bits": ({"period": 10**20}, "period needs a whole number of seconds from 1 to 10"),
    "period true": ({"period": True}, "period needs a whole number of seconds from 1 to 10"),
    "dependencies 1": ({"dependencies": 1}, "dependencies needs True or False, found 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_answers_are_one_line(case: str) -> None:
    options, expected = WRONG[case]
    assert re.search(expected, line_of_run(**dict(options)))


def test_errors_are_of_their_kinds() -> None:
    jobs = workload(ROWS, 4)
    for policy, kind in ((KeyRaises("ValueError"), PolicyError), (Key([np.nan] * 3), ScheduleError)):
        with pytest.raises(kind):
            Simulation(jobs, Pipeline(policy)).run()
    with pytest.raises(UsageError):
        Simulation(jobs, QueueOrder(None)).run()


# --- as a user has them ----------------------------------------------------------------------------------

MINE = """
from hpcsimkit import Order, Policy

class Leaves(Order):
    def key(self, job):
        raise SystemExit(0)

class Made(Order):
    def __init__(self):
        raise GeneratorExit

class Shown(Policy):
    def __repr__(self):
        return 1 / 0

class Checked(Policy):
    def check(self):
        raise BaseException("never")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of a process need fork")
@pytest.mark.parametrize(
    ("name", "workers", "line"),
    [
        ("Leaves", 1, "mine.py:Leaves at t="),
        ("Leaves", 2, "mine.py:Leaves at t="),
        ("Made", 1, "'mine.py:Made' cannot be made: GeneratorExit"),
        ("Shown", 1, "mine.py:Shown, in Shown: ZeroDivisionError"),
        ("Checked", 2, "mine.py:Checked, in Checked: BaseException: never"),
    ],
)
def test_on_the_command_line(tmp_path: Any, name: str, workers: int, line: str) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    flags = ["-p", "fcfs", "-p", f"mine.py:{name}", "--workers", str(workers), "-o", "out"]
    done = Forked(lambda: main(["compare", "--jobs", "20", "--no-report", "-q", *flags]), tmp_path)
    _, err = done.communicate()
    assert (done.returncode, err.count("\n")) == (2, 1), err
    assert err.startswith("hpcsimkit: ")
    assert line in err
    assert "mine.py:" in err
