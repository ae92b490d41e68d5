"""Event-ordering rules of a run: those of the textbook, or those of simulators behind published results."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy.events import Event

from hpcsimkit.cluster.base import Allocation
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.clock import BEFORE_ENDS, Instant
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import Running

__all__ = ["SEMANTICS", "DirlabSimulation"]


class DirlabSimulation(Simulation):
    """Simulation with the rules of the simulators behind RLScheduler, SchedInspector and RLBackfilling.

    Events are processed one at a time, with a pass after each. At each instant, submissions are processed
    first, in the order of the log; no job is submitted before its predecessor in the log. Job ends follow in
    the order of the job starts, but are sorted (stably) by expected end whenever a reservation is made.

    A wake-up, such as that of a held job, occurs only if no other event happens earlier. Without pending
    events, it occurs at once and the clock does not advance.

    Other properties of those simulators are up to the policy: see :mod:`hpcsimkit.policies.dirlab`.

    Parameters
    ----------
    following : int, optional
        Submission time [s] of the job that follows the simulated ones in their log. After the last
        submission, those simulators still consider it: it prevents later wake-ups. By default none.
    **options
        Options of :class:`~hpcsimkit.kernel.simulation.Simulation`, except dependencies, locality models and
        periods.

    Raises
    ------
    UsageError
        An option is not supported by these rules.

    Examples
    --------
    Both jobs arrive at 5 s; the first starts before the second is submitted:

    >>> from hpcsimkit.experiments.registry import make
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
        """Return a run of another policy with otherwise equal parameters and without observers."""
        simulation = super().another(policy)
        assert isinstance(simulation, DirlabSimulation)
        simulation.following = self.following
        return simulation

    def _seat(self, workload: Workload) -> None:
        super()._seat(workload)
        self.system.running = self._running = RunningList()
        self.system.stands_still = True

    def _step(self) -> None:
        """Process events, with a pass after each, until a decision is pending."""
        while self._decision is None:
            self._environment.step()
            if self._pass_wanted:
                self._run_pass()

    def _arrivals(self) -> Generator[Event, None, None]:
        """Submit the jobs in the order of the log, each by a separate event."""
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
    """Running jobs, including the order of simultaneous job ends."""

    def __init__(self) -> None:
        super().__init__()
        self._ending: dict[int, list[Job]] = {}
        self._shared: set[int] = set()

    @property
    def next_end(self) -> int | None:
        """Time of the next job end [s], or None."""
        return min(self._ending, default=None)

    def expect(self, job: Job, end: int) -> None:
        """Record the time at which a started job will end [s]."""
        together = self._ending.setdefault(end, [])
        together.append(job)
        if len(together) > 1:
            self._shared.add(end)

    def next_to_end(self, now: int) -> Job:
        """Remove and return the first of the jobs that end now."""
        together = self._ending[now]
        job = together.pop(0)
        if not together:
            del self._ending[now]
            self._shared.discard(now)
        return job

    def by_expected_end(self) -> list[tuple[int, int, Allocation]]:
        """Return all jobs by expected end; this also sorts simultaneous job ends."""
        for end in self._shared:
            self._ending[end].sort(key=self.expected_end)
        return self.entries


SEMANTICS: dict[str, type[Simulation]] = {"textbook": Simulation, "dirlab": DirlabSimulation}
"""Simulation classes by the name of their rules."""
