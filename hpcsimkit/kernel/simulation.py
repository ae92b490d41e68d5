"""Simulation of a policy on a workload and a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from simpy.core import EmptySchedule

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.clock import Clock, gc_frozen
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.event_order import TextbookOrder
from hpcsimkit.kernel.guard import Guard, guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.partitioned import run_of
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.run import EventOrder
from hpcsimkit.kernel.service_time import Penalty, ServiceTime, as_service_time
from hpcsimkit.kernel.simulators import Pausing, pausing, taking
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.verification import verify
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = ["Simulation"]


class Simulation:
    """Simulate a policy on a workload and a cluster.

    Parameters
    ----------
    workload : Workload
        The jobs, each of which must fit the cluster (see :meth:`Workload.fitting`).
    policy : Policy
        The scheduler; the run uses its own copy.
    cluster : Cluster or int, optional
        The cluster, or a number of nodes; by default the workload's ``machine_size``. With
        :class:`~hpcsimkit.cluster.partitions.Partitions`, each partition has its own copy of the policy.
    seed : int
        The random seed of the run, >= 0. Default: 0.
    walltime : {"run", "kill"}
        The wall-time limit: jobs run for their full run time, or are killed at their requested time. Default:
        ``"run"``.
    dependencies : bool
        Whether a job is submitted only after its preceding job has ended, see
        :mod:`~hpcsimkit.kernel.dependencies`. Default: False.
    service_time : ServiceTime or callable, optional
        The locality model: run time of a job as a function of its allocation; by default the run time of the
        log.
    period : int, optional
        Scheduling interval [s]: passes happen only at multiples of it; by default at every instant with an
        event.
    event_order : EventOrder, optional
        The order of events within an instant; by default that of the textbook, see
        :mod:`~hpcsimkit.kernel.event_order`.
    begun : Begun, optional
        The time at which the run begins, and the jobs that are running by then; by default it begins with the
        first submission and an empty cluster.
    observers : sequence of Observer
        The observers with callbacks for the events of the run.
    name : str, optional
        The name of the policy in the result; by default its representation.
    simulator : {"auto", "simpy", "compiled"}
        The program that :meth:`run` uses. Schedules do not depend on it: ``"compiled"`` is machine code for
        plain pipelines (extra ``[fast]``); ``"auto"`` takes it where it can, once the runs of this process
        have enough jobs. Default: ``"auto"``.

    Raises
    ------
    UsageError
        A parameter is invalid.
    ScheduleError
        A job does not fit the empty cluster.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
    >>> Simulation(w, Pipeline()).run().start_time.tolist()
    [0, 10, 20]
    """

    def __init__(  # noqa: PLR0913 - stored keywords
        self,
        workload: Workload,
        policy: Policy,
        cluster: AnyCluster | int | None = None,
        *,
        seed: int = 0,
        walltime: Literal["run", "kill"] = "run",
        dependencies: bool = False,
        period: int | None = None,
        service_time: ServiceTime | Penalty | None = None,
        event_order: EventOrder | None = None,
        begun: Begun | None = None,
        observers: Sequence[Observer] = (),
        name: str | None = None,
        simulator: Literal["auto", "simpy", "compiled"] = "auto",
    ) -> None:
        self.workload = workload
        self.policy = policy
        self.seed = seed
        self.walltime = walltime
        self.dependencies = dependencies
        self.period = period
        self.event_order = TextbookOrder() if event_order is None else event_order
        self.begun = begun
        self.observers = tuple(observers)
        self.simulator = simulator
        self.choices: list[tuple[str, int]] = []
        with guarded(name if name is not None else type(policy).__name__):
            self.service_time = as_service_time(service_time)
            self.name = name if name is not None else repr(policy)
            self._check()
        self.cluster = as_cluster(cluster, workload)
        if isinstance(self.cluster, Partitions) and self.event_order.name != TextbookOrder.name:
            raise UsageError(
                f"the rules {self.event_order.name!r} know no partitions, found {self.cluster!r}"
            )
        if begun is not None and isinstance(self.cluster, Partitions) and not self.cluster.is_whole:
            raise UsageError(f"a begun run knows no partitions, found {self.cluster!r}")
        first = int(workload.submit_time.min()) if len(workload) else 0
        clock = Clock(first if begun is None else begun.at)
        self.guard = Guard(self.name, clock)
        self._run: Pausing | None = None  # begins with the first decision
        self._at_seats: tuple[str, Sequence[Any]] = ("simpy", ())
        self._over = False
        self._seconds = 0.0
        self._result: Result | None = None  # of another simulator
        self._finished: Result | None = None  # of a run that may pause

    @property
    def system(self) -> System:
        """The state of the run.

        Raises
        ------
        UsageError
            The run has not begun yet.
        """
        if self._result is not None and self._run is None:
            self._advance()  # other simulators keep no state
        return self._run.system if self._run is not None else self._begun().system

    @property
    def program(self) -> str:
        """The simulator of a run that has begun and may have open seats: ``"simpy"`` or ``"compiled"``.

        Raises
        ------
        UsageError
            The run has not begun yet.
        """
        return self._begun().simulator

    # --- driving -------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run to the end and return the result.

        A pipeline with open seats cannot be run this way; use :meth:`next_decision` and :meth:`answer`.

        Raises
        ------
        UsageError
            A seat is open.
        StalledError
            Jobs are waiting that can never start.
        ImpossibleScheduleError
            The schedule breaks a rule.
        """
        if self._result is None and self._run is None and (simulator := taking(self)) is not None:
            result = simulator.run(self)
            with self.guard:
                verify(self, result)
            self._result = result
        if self._result is not None:
            return self._result
        with gc_frozen():
            decision = self.next_decision()
        if decision is not None:
            raise UsageError(
                f"the {decision.stage} seat is open: drive the simulation with next_decision() and answer()"
            )
        return self.result()

    def pause_with(self, simulator: Literal["auto", "simpy", "compiled"], readers: Sequence[Any]) -> None:
        """Choose the program that runs up to the decisions of open seats; by default the kernel.

        Decisions do not depend on it. The compiled simulator shows only a part of the state, which is enough
        for observers and readers that declare so by ``reads_compiled``.

        Parameters
        ----------
        simulator : {"auto", "simpy", "compiled"}
            The program; ``"auto"`` takes the compiled one where it can and where it is worth its loading.
        readers : sequence of Encoder, Mask or Reward
            The objects, besides observers, that read the state at decisions.

        Raises
        ------
        UsageError
            There is no such program.
        """
        _check_simulator(simulator)
        self._at_seats = simulator, readers

    def next_decision(self) -> Decision | None:
        """Advance the simulation to the next decision of an open seat; return None at the end of the run."""
        self.guard.check()
        run = self._run
        if run is not None and run.decision is not None:
            return run.decision
        if not self._over:
            began = time.perf_counter()
            self._advance()
            self._seconds += time.perf_counter() - began
        return self._begun().decision

    def _advance(self, decision: Decision | None = None, choice: Any = None) -> None:
        """Answer a decision, if given, and process events until another is pending or no event is left."""
        try:
            with self.guard:
                if self._run is None:
                    self._run = pausing(self, *self._at_seats) or run_of(self)
                self.guard.advances = True
                if decision is not None:
                    self._run.resume(decision, choice)
                self._run.advance()
        except EmptySchedule:
            with self.guard:
                self._finish()
            self._over = True
        finally:
            self.guard.advances = False

    def answer(self, choice: Any) -> None:
        """Answer the pending decision with one of its options; raise a UsageError if that is impossible."""
        self.answer_position(self._at_hand().position(choice))

    def answer_position(self, position: int) -> None:
        """Answer the pending decision with the option at a position, counted from 0, or raise UsageError."""
        decision, choice = self._chosen(position)
        began = time.perf_counter()
        with self.guard:
            self.guard.advances = True
            self._begun().resume(decision, choice)
        self.guard.advances = False
        self._seconds += time.perf_counter() - began

    def proceed(self, position: int) -> Decision | None:
        """Answer the pending decision by position, and advance to the next; return None at the end."""
        decision, choice = self._chosen(position)
        began = time.perf_counter()
        self._advance(decision, choice)
        self._seconds += time.perf_counter() - began
        return self._begun().decision

    def _chosen(self, position: int) -> tuple[Decision, Any]:
        """Record the position of the answer to the pending decision; return the decision and the option."""
        decision = self._at_hand()
        options = decision.options
        if not 0 <= position < len(options):
            raise UsageError(f"{decision!r} has no option of position {position}")
        self.choices.append((decision.stage, int(position)))
        return decision, options[position]

    def _at_hand(self) -> Decision:
        if self._run is not None and (decision := self._run.decision) is not None:
            return decision
        raise UsageError("no decision is at hand: call next_decision() first")

    def _begun(self) -> Pausing:
        if self._run is not None:
            return self._run
        raise UsageError("the run has not begun yet: call run() or next_decision() first")

    def result(self) -> Result:
        """Return the result of a finished run.

        Raises
        ------
        UsageError
            The run is not over yet.
        ImpossibleScheduleError
            The schedule breaks a rule.
        """
        self.guard.check()
        if self._finished is None:
            raise UsageError("the run is not over yet")
        return replace(self._finished, seconds=self._seconds)

    def _finish(self) -> None:
        """End a run in which no event is left, and keep its result if the schedule is possible."""
        run = self._begun()
        run.finish()
        result = self._made(run.system)
        verify(self, result, run.rejected_jobs, None if self.service_time is None else run.served)
        self._finished = result

    def _made(self, system: System) -> Result:
        """Return the result of a run in which no event is left."""
        return Result(
            workload=system.workload,
            policy=self.name,
            size=self.cluster.size,
            submit_time=system.column("submit_time"),
            start_time=np.array(system.starts, dtype=np.int64),
            end_time=np.array(system.finishes, dtype=np.int64),
            mode=np.frombuffer(bytes(system.modes), dtype=np.uint8),
            killed=self._killed(),
            seed=self.seed,
            options=self.options,
            choices=tuple(self.choices),
            passes=system.passes,
            placements=Placements.of(system.cluster, system.allocations, system.events),
            started_in=self._started_in(system),
            simulator=self._begun().simulator,
        )

    def _started_in(self, system: System) -> NDArray[np.str_] | None:
        """Return the partition in which each job started, or None without partitions."""
        if not isinstance(self.cluster, Partitions):
            return None
        if self.cluster.is_whole:  # without a look at each job
            return np.where(np.array(system.starts) >= 0, self.cluster.names[0], "")
        partition = system.started_in
        return np.array([partition.get(row, "") for row in range(len(self.workload))], dtype=np.str_)

    @property
    def options(self) -> dict[str, Any]:
        """The options that determine the schedule besides workload, cluster, policy and seed."""
        options: dict[str, Any] = {
            "walltime": self.walltime,
            "dependencies": self.dependencies,
            "period": self.period,
        }
        if self.event_order.name != TextbookOrder.name:
            options["semantics"] = self.event_order.name
        if self.service_time is not None:
            options["service_time"] = repr(self.service_time)
        if self.begun is not None:
            options["begun"] = {"at": self.begun.at, "running": len(self.begun.started)}
        return options

    def _killed(self) -> NDArray[np.bool_]:
        """Return which jobs were killed at their requested time before they were complete."""
        if self.service_time is None:
            return self.workload.column("run_time") > self.system.workload.column("run_time")
        killed = np.zeros(len(self.workload), dtype=np.bool_)
        killed[self._begun().cut_short] = True
        return killed

    def another(self, policy: Policy) -> Simulation:
        """Return a run of another policy with otherwise equal parameters and without observers."""
        same = (
            "seed",
            "walltime",
            "dependencies",
            "period",
            "service_time",
            "event_order",
            "begun",
            "simulator",
        )
        return type(self)(self.workload, policy, self.cluster, **{name: getattr(self, name) for name in same})

    def _check(self) -> None:
        whole = (int, np.integer)
        _check_simulator(self.simulator)
        for name, needed, given in (
            ("workload", "a Workload", isinstance(self.workload, Workload)),
            ("policy", "a Policy", isinstance(self.policy, Policy)),
            ("walltime", "'run' or 'kill'", self.walltime in ("run", "kill")),
            (
                "period",
                "a whole number of seconds from 1 to 10^11",
                self.period is None or (isinstance(self.period, whole) and 1 <= self.period <= TIME_LIMIT),
            ),
            ("seed", "a whole number, at least 0", isinstance(self.seed, whole) and self.seed >= 0),
            ("event_order", "an EventOrder", isinstance(self.event_order, EventOrder)),
            ("observers", "Observers", all(isinstance(observer, Observer) for observer in self.observers)),
        ):
            if not given:
                raise UsageError(f"{name} needs {needed}, found {getattr(self, name)!r}")
        for name in self.event_order.unsupported:
            if getattr(self, name):
                raise UsageError(
                    f"the rules {self.event_order.name!r} know no {name}, found {getattr(self, name)!r}"
                )
        if self.begun is not None:
            for name in ("dependencies", "service_time"):
                if getattr(self, name):
                    raise UsageError(f"a begun run knows no {name}, found {getattr(self, name)!r}")
            kill = self.walltime == "kill"
            self.begun.check(self.workload.killed_at_limit if kill else self.workload)
        self.policy.check()
        self.policy.check_workload(self.workload)


def _check_simulator(simulator: object) -> None:
    if simulator not in ("auto", "simpy", "compiled"):
        raise UsageError(f"simulator needs 'auto', 'simpy' or 'compiled', found {simulator!r}")
