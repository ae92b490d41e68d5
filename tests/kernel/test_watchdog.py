"""A pass that does not come back is told once, and goes on; the thread that watches ends with the run."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel import watchdog
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.guard import Guard
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.watchdog import LOOKS, PATIENCE, Watchdog, patience
from tests.kernel.helpers import workload

ROWS = [(5, 10, 10, 3), (7, 10, 10, 3), (8, 2, 2, 1)]


class Told:
    """Collects lines; the hanging part continues as soon as there is one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.came = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.came.set()

    def __deepcopy__(self, memory: Any) -> Told:
        return self


class Hangs(Policy):
    """Comes back from job 2 only when it has been told."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def schedule(self, system: Any) -> None:
        for job in system.queue:
            if job.id == 2:
                while not self.told.came.is_set():
                    pass
            if system.fits(job):
                system.start(job)


class KeyHangs(Order):
    def __init__(self, told: Told) -> None:
        self.told = told

    def key(self, job: Any) -> int:
        return int(job.id == 2 and not self.told.came.wait(60))


class StartHangs(Observer):
    def __init__(self, told: Told) -> None:
        self.told = told

    def on_start(self, job: Any, allocation: Any, system: Any) -> None:
        assert job.id != 2 or self.told.came.wait(60)


@pytest.mark.parametrize(
    ("part", "where"),
    [
        (Hangs, r"at t=7 s, in Hangs for job 2"),
        (KeyHangs, r"at t=7 s, in KeyHangs for job 2"),
        (StartHangs, r"at t=15 s, in StartHangs for job 2"),
    ],
)
def test_it_says_who_when_and_where_and_the_run_goes_on(part: type[Any], where: str) -> None:
    told = Told()
    observers = [part(told)] if part is StartHangs else []
    policy = Hangs(told) if part is Hangs else Pipeline(KeyHangs(told) if part is KeyHangs else None)
    before = threading.active_count()
    with Watchdog(seconds=0.2, tell=told):
        result = Simulation(workload(ROWS, 4), policy, observers=observers, name="mine").run()
    assert result.start_time.tolist()[:2] == [5, 15]
    assert threading.active_count() == before
    (line,) = told.lines
    assert line.startswith(f"mine {where}: one pass has taken 0.2 s and goes on (")
    assert line.endswith("; Ctrl-C ends it")
    assert f"{__file__}:" in line


def test_jobs_that_wait_are_told() -> None:
    told = Told()
    with Watchdog(seconds=0.2, tell=told):
        Simulation(workload(ROWS, 4), Hangs(told)).run()
    assert "; jobs waiting: 1, the first of them job 2;" in told.lines[0]


def test_a_run_that_gets_on_is_left_alone() -> None:
    """Each pass takes a fifth of the patience, all together three times as long as it is."""

    class Slow(Policy):
        def schedule(self, system: Any) -> None:
            threading.Event().wait(0.1)
            system.wake(system.now + 1)
            if system.passes > 15:
                system.start(system.queue.first())

    told = Told()
    with Watchdog(seconds=0.5, tell=told):
        Simulation(workload([(0, 5, 5, 1)], 1), Slow()).run()
    assert told.lines == []


def test_a_pass_is_reported_once_after_as_many_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks at one pass and eleven at another: it is reported once it has not moved for eight intervals."""
    seen = iter([1, 1, *[2] * 11])
    told: list[int] = []

    class Looks:
        """Waits no time, until all looks are over."""

        number = 0

        def wait(self, seconds: float) -> bool:
            self.number += 1
            return self.number > 13

    looks: Any = Looks()
    dog: Any = Watchdog(tell=lambda line: told.append(looks.number))
    dog._patience, dog._watched, dog._over = 8, 0, looks
    dog._line = str
    known = SimpleNamespace(now=lambda thread: SimpleNamespace(guard="guard", pass_number=next(seen)))
    monkeypatch.setattr(watchdog, "Progress", known)
    dog._watch()
    assert told == [2 + 1 + LOOKS]


def test_nothing_is_told_between_runs() -> None:
    told = Told()
    with Watchdog(seconds=0.05, tell=told):
        threading.Event().wait(0.3)
    assert told.lines == []


def test_what_happens_while_a_run_waits_for_an_answer_is_no_pass() -> None:
    """Neither updates of a learner count, nor its encoders and rewards, which are called under the guard."""
    told = Told()
    simulation = Simulation(workload(ROWS, 4), Pipeline(External()))
    with Watchdog(seconds=0.05, tell=told):
        while (decision := simulation.next_decision()) is not None:
            threading.Event().wait(0.15)
            with simulation.guard:
                threading.Event().wait(0.15)
            simulation.answer(decision.default)
    assert told.lines == []


def test_runs_of_other_threads_are_not_watched() -> None:
    """Another thread is within a pass, and this one began its own after it, while a learner updates."""
    told, entered, updated = Told(), threading.Event(), threading.Event()

    class Waits(Policy):
        def schedule(self, system: Any) -> None:
            entered.set()
            assert updated.wait(60)
            system.start(system.queue.first())

    class Begins(Policy):
        """Its pass begins before that of the other thread, and pauses after it."""

        def schedule(self, system: Any) -> Any:
            other.start()
            assert entered.wait(60)
            yield Decision("order", system, None, lambda: [system.queue.first()], lambda: None)
            system.start(system.queue.first())

        def __deepcopy__(self, memory: Any) -> Begins:
            return self

    jobs = workload([(0, 5, 5, 1)], 1)
    other = threading.Thread(target=lambda: Simulation(jobs, Waits()).run())
    simulation = Simulation(jobs, Begins())
    with Watchdog(seconds=0.05, tell=told):
        simulation.next_decision()
        threading.Event().wait(0.3)
    updated.set()
    other.join()
    assert told.lines == []
    assert simulation.proceed(0) is None and not Guard.active[threading.get_ident()]


def test_a_run_before_the_first_event_of_another_is_watched_by_itself() -> None:
    """Such as that of the baseline with which a reward compares an episode."""

    class Baseline(Observer):
        def on_begin(self, system: Any) -> None:
            system.another(Slow()).run()

    class Slow(Policy):
        def schedule(self, system: Any) -> None:
            threading.Event().wait(0.1)
            system.wake(system.now + 1)
            if system.passes > 15:
                system.start(system.queue.first())

    told = Told()
    with Watchdog(seconds=0.5, tell=told):
        Simulation(workload([(0, 5, 5, 1)], 1), Pipeline(), observers=[Baseline()]).run()
    assert told.lines == []


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", ""])
def test_patience_is_a_number_of_seconds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATIENCE, text)
    with pytest.raises(
        UsageError, match="HPCSIMKIT_PATIENCE needs a number of seconds greater than 0, found"
    ):
        patience()


def test_patience_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PATIENCE, raising=False)
    assert patience() == 60
    monkeypatch.setenv(PATIENCE, "5")
    assert patience() == 5
