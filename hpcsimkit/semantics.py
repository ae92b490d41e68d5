"""Under which rules a run goes: the textbook's, or those of simulators that published results come from."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy.events import Event

from hpcsimkit.clock import BEFORE_ENDS, Instant
from hpcsimkit.cluster import Allocation
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.policy import Policy
from hpcsimkit.simulation import Simulation
from hpcsimkit.system import Running
from hpcsimkit.workload import Workload

__all__ = ["SEMANTICS", "DirlabSimulation"]


class DirlabSimulation(Simulation):
    """A run by the rules of the simulators behind RLScheduler, SchedInspector and RLBackfilling.

    The clock hands over one event at a time, with a pass after each. Of an instant's events the submissions
    come first, in the order of the log; nobody is submitted before the one above him. Then come the ends, in
    the order of the starts, but sorted by expected end (stably) whenever a reservation is made.

    A wake-up, such as that of a held job, comes only if nothing else happens until then. With nothing ahead
    at all it comes at once: the clock stands still.

    What those simulators do besides is up to the policy: see :mod:`hpcsimkit.policies.dirlab`.

    Parameters
    ----------
    following : int, optional
        Submission of the job that follows the simulated ones in their log [s]. Where these have all been
        submitted, those simulators still look at it: it keeps wake-ups from coming.
    **options
        As of :class:`~hpcsimkit.simulation.Simulation`; there are no dependencies, locality models or
        periods.

    Raises
    ------
    UsageError
        An option is given that these rules do not know.

    Examples
    --------
    Both jobs arrive at 5 s; the first starts before the second is seen:

    >>> from hpcsimkit.registry import make
    >>> w = Workload({"submit_time": [5, 5], "run_time": [100, 10], "nodes": [1, 1]}, machine_size=1)
    >>> Simulation(w, make("sjf")).run().start_time.tolist()
    [15, 5]
    >>> DirlabSimulation(w, make("sjf")).run().start_time.tolist()
    [5, 105]
    """

    semantics = "dirlab"

    def __init__(self, *arguments: Any, following: int | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.following = following
        for name in ("dependencies", "period", "service_time"):
            if getattr(self, name):
                raise UsageError(f"the rules 'dirlab' know no {name}, found {getattr(self, name)!r}")

    def another(self, policy: Policy) -> DirlabSimulation:
        """Return a run of another policy, all else being equal; nobody observes it."""
        simulation = super().another(policy)
        assert isinstance(simulation, DirlabSimulation)
        simulation.following = self.following
        return simulation

    def _seat(self, workload: Workload) -> None:
        super()._seat(workload)
        self.system.running = self._running = RunningList()
        self.system.stands_still = True

    def _step(self) -> None:
        """Process events, with a pass after each, until a seat is asked."""
        while self._decision is None:
            self._environment.step()
            if self._pass_wanted:
                self._run_pass()

    def _arrivals(self) -> Generator[Event, None, None]:
        """Submit the jobs in the order of the log, each by an event of its own."""
        clock = self._environment
        for job in self.system.jobs:
            self._next_submission = job.submit_time
            yield Instant(clock, BEFORE_ENDS, max(job.submit_time - clock.now, 0), [self._arrive], job)

    def _on_start(self, job: Job, allocation: Allocation) -> None:
        self._running.expect(job, self.system.now + job.run_time)
        super()._on_start(job, allocation)

    def _on_end(self, event: Event) -> None:
        event._value = self._running.next_to_end(self._environment.now)
        super()._on_end(event)

    def _on_wake(self, at: int) -> None:
        system = self.system
        if not system.anything_ahead:
            super()._on_wake(system.now)
            return
        submission = self._next_submission if system.arrivals_left else self.following
        events = [time for time in (submission, self._running.next_end) if time is not None]
        if at < min(events, default=at + 1):
            super()._on_wake(at)


class RunningList(Running):
    """Running jobs, and in which order those leave that end at the same instant."""

    def __init__(self) -> None:
        super().__init__()
        self._ending: dict[int, list[Job]] = {}
        self._shared: set[int] = set()

    @property
    def next_end(self) -> int | None:
        """When the next of them ends [s], if any runs."""
        return min(self._ending, default=None)

    def expect(self, job: Job, end: int) -> None:
        """Take note of when a job that starts will end [s]."""
        together = self._ending.setdefault(end, [])
        together.append(job)
        if len(together) > 1:
            self._shared.add(end)

    def next_to_end(self, now: int) -> Job:
        """Return which of the jobs that end now is first, and forget it."""
        together = self._ending[now]
        job = together.pop(0)
        if not together:
            del self._ending[now]
            self._shared.discard(now)
        return job

    def by_expected_end(self) -> list[tuple[int, int, Allocation]]:
        """Return all by expected end, which sorts those that end at the same instant."""
        for end in self._shared:
            self._ending[end].sort(key=self.expected_end)
        return self.entries


SEMANTICS: dict[str, type[Simulation]] = {"textbook": Simulation, "dirlab": DirlabSimulation}
"""Kinds of runs by the name of their rules."""
