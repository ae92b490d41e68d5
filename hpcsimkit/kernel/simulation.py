"""Simulation of a policy on a workload and a cluster."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from simpy.core import EmptySchedule

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.attempts import attempts_of, downtime_of
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.clock import Clock
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.event_order import TextbookOrder
from hpcsimkit.kernel.garbage import gc_frozen
from hpcsimkit.kernel.given_policy import GivenPolicy, name_of, policy_of
from hpcsimkit.kernel.guard import Guard, guarded
from hpcsimkit.kernel.numbered_nodes import with_numbers, without_numbers
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.partitioned import run_of
from hpcsimkit.kernel.past import has_past
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.repetition import Recorder, Repeated
from hpcsimkit.kernel.service_time import as_service_time
from hpcsimkit.kernel.setup import OPTIONS, Setup
from hpcsimkit.kernel.simulators import Pausing, pausing, refused_elsewhere, taking
from hpcsimkit.kernel.snapshot import Keeping, Snapshot, identity_of_run
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.verification import verify
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = ["Simulation"]


class _TakenError(HpcsimkitError):
    """End of a run of which only a snapshot was wanted."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__("snapshot: taken")
        self.snapshot = snapshot


class Simulation:
    """Simulate a policy on a workload and a cluster.

    Parameters
    ----------
    workload : Workload
        The jobs, each of which must fit the cluster (see :meth:`Workload.fitting`).
    policy : Policy, Stage or str
        The scheduler, of which the run uses its own copy; a stage, for a pipeline with no other one; or the
        name of a policy, such as ``"sjf+easy"``.
    cluster : Cluster or int, optional
        The cluster, or a number of nodes; by default the workload's ``machine_size``. With
        :class:`~hpcsimkit.cluster.partitions.Partitions`, each partition has its own copy of the policy.
    observers : sequence of Observer
        The observers with callbacks for the events of the run.
    name : str, optional
        The name of the policy in the result; by default its representation.
    setup : Setup, optional
        All options of the run at once, in place of `cluster` and `options`.
    **options
        The options of the run: fields of :class:`~hpcsimkit.kernel.setup.Setup`, such as ``seed``,
        ``walltime`` and ``restart``.

    Raises
    ------
    UsageError
        A parameter is invalid.
    ScheduleError
        A job does not fit the empty cluster.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
    >>> Simulation(w, "fcfs").run().start_time.tolist()
    [0, 10, 20]
    """

    def __init__(
        self,
        workload: Workload,
        policy: GivenPolicy,
        cluster: AnyCluster | int | None = None,
        *,
        observers: Sequence[Observer] = (),
        name: str | None = None,
        setup: Setup | None = None,
        **options: Any,
    ) -> None:
        if setup is not None and (options or cluster is not None):
            raise UsageError("one of 'setup' and single options is needed, both are given")
        self.workload = workload
        name = name_of(policy) if name is None and isinstance(policy, str) else name
        self.policy = policy = policy_of(policy)
        self.observers = tuple(observers)
        self.choices: list[tuple[str, int]] = []
        with guarded(name if name is not None else type(policy).__name__):
            given = Setup(cluster, **options) if setup is None else setup
            self.setup = replace(given, service_time=as_service_time(given.service_time))
            self.name = name if name is not None else repr(policy)
            self._check()
        self.cluster = as_cluster(self.setup.cluster, workload)
        with guarded(self.name):
            self._counted = self._number_nodes()
            begun = self._beginning()
        self.setup = replace(self.setup, begun=begun, begin_at=None)
        rules = self.setup.event_order.name
        if isinstance(self.cluster, Partitions) and rules != TextbookOrder.name:
            raise UsageError(f"the rules {rules!r} know no partitions, found {self.cluster!r}")
        if policy.schedules_partitions and not isinstance(self.cluster, Partitions):
            raise UsageError(f"{self.name} needs a cluster with partitions, found {self.cluster!r}")
        at = int(workload.submit_time.min()) if len(workload) else 0
        if begun is not None and not has_past(begun, self._limited, self.setup, self.cluster, policy):
            at = begun.at
        clock = Clock(at)
        self.guard = Guard(self.name, clock)
        self._run: Pausing | None = None  # begins with the first decision
        self._at_seats: tuple[str, Sequence[Any]] = ("simpy", ())
        self._before_pass: Callable[[Recorder], None] | None = None  # of runs that are recorded
        self._repeated: Repeated | None = None
        self._over = False
        self._seconds = 0.0
        self._result: Result | None = None  # of another simulator
        self._finished: Result | None = None  # of a run that may pause

    def __getstate__(self) -> dict[str, Any]:
        if self._run is not None and not self._over:
            raise UsageError(
                "a run cannot be copied or pickled between its decisions: repeat its choices in another "
                "Simulation, or keep a snapshot; a SchedulingEnv can be copied and pickled"
            )
        return self.__dict__

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
        if self._begins_elsewhere and (simulator := taking(self)) is not None:
            result, positions = simulator.run(self)
            rejected = refused_elsewhere(result, self.setup.begun)
            with self.guard:
                verify(self, result, rejected, positions=positions)
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
                    self._run = self._begin()
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

    @property
    def _begins_elsewhere(self) -> bool:
        """Whether another simulator may run this simulation."""
        return self._result is None and self._run is None and self._before_pass is None

    def _begin(self) -> Pausing:
        """Return the run, before its first event."""
        if self._before_pass is None:
            return pausing(self, *self._at_seats) or run_of(self)
        begun = self.setup.begun
        if self.setup.simulator == "compiled":
            raise UsageError("snapshot: the compiled simulator keeps none; simulator 'simpy' does")
        if begun is not None and has_past(begun, self._limited, self.setup, self.cluster, self.policy):
            raise UsageError("snapshot: a begun run with a past keeps none")
        run = run_of(self)
        Recorder(run, self._before_pass, self._repeated)
        return run

    # --- snapshots -----------------------------------------------------------------------------------

    def keep_snapshots(self, path: str | os.PathLike[str], every: float = 600.0) -> None:
        """Keep a snapshot of the run in a file, from which :meth:`resume` goes on.

        It is called before the run begins. The file is replaced at intervals of computing time, between two
        passes; if the process ends, at most this time is lost. SimPy runs the simulation.

        Parameters
        ----------
        path : str or path
            Path of the file.
        every : float
            Interval [s of wall clock], >= 0. Default: 600.

        Raises
        ------
        UsageError
            The run has begun, or the interval is negative.
        """
        if not every >= 0:
            raise UsageError(f"snapshot: an interval of 0 s or more is needed, found {every!r}")
        self._record(Keeping(Path(path), every, self._snapshot_of))

    def resume(self, snapshot: Snapshot | str | os.PathLike[str]) -> Simulation:
        """Let the run go on from a snapshot of the same run, and return this simulation.

        What the policy did until then is repeated without asking it, so that observers see the whole run.

        Parameters
        ----------
        snapshot : Snapshot or path
            The snapshot, or its file.

        Raises
        ------
        UsageError
            The run has begun, the snapshot is one of another version, code, workload, policy or of other
            options, or the file is damaged.

        Examples
        --------
        >>> from hpcsimkit.experiments.parts.registry import make
        >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9] * 3, "nodes": [2, 2, 1]}, machine_size=2)
        >>> snapshot = Simulation(w, make("fcfs+conservative")).snapshot(at=5)
        >>> Simulation(w, make("fcfs+conservative")).resume(snapshot).run().start_time.tolist()
        [0, 9, 18]
        """
        where: object = "snapshot"
        if not isinstance(snapshot, Snapshot):
            where, snapshot = snapshot, Snapshot.read(snapshot)
        snapshot.check(self, where)
        self._record(self._before_pass or (lambda recorder: None))
        self._repeated, self.choices = snapshot.repeated, list(snapshot.choices)
        return self

    def snapshot(self, at: int) -> Snapshot:
        """Return a snapshot of the run before its first pass from a time on; the run itself does not begin.

        Parameters
        ----------
        at : int
            Time [s].

        Raises
        ------
        UsageError
            The run ends before, or a stage keeps something that a snapshot cannot hold.
        """
        copied = type(self)(self.workload, self.policy, name=self.name, setup=self.setup)

        def stop(recorder: Recorder) -> None:
            if recorder.now >= at:
                raise _TakenError(copied._snapshot_of(recorder))

        copied._record(stop)
        try:
            decision = copied.next_decision()
        except _TakenError as taken:
            return taken.snapshot
        if decision is not None:
            raise UsageError(f"snapshot: the {decision.stage} seat is open before {at} s")
        raise UsageError(f"snapshot: a time before the last pass is needed, found {at} s")

    def _record(self, before_pass: Callable[[Recorder], None]) -> None:
        if self._run is not None or self._result is not None:
            raise UsageError("snapshot: the run has begun already")
        if self.policy.schedules_partitions:
            raise UsageError(
                f"snapshot: a policy that schedules all partitions keeps none, found {self.policy!r}"
            )
        self._before_pass = before_pass

    def _snapshot_of(self, recorder: Recorder) -> Snapshot:
        return Snapshot(recorder.now, identity_of_run(self), tuple(self.choices), recorder.so_far())

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
        raise UsageError("no pending decision: call next_decision() first")

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
        verify(
            self, result, run.system.ledger.rejected, None if self.setup.service_time is None else run.served
        )
        self._finished = without_numbers(result) if self._counted else result

    def _made(self, system: System) -> Result:
        """Return the result of a run in which no event is left."""
        ledger, start, killed = system.ledger, system.ledger.start_time, self._killed()
        attempts = attempts_of(system, self.setup.restart, killed, isinstance(self.cluster, Partitions))
        if attempts is not None:
            first = attempts.first
            start[attempts.job[first]] = attempts.start_time[first]
            killed[ledger.given_up] = True
        return Result(
            workload=system.workload,
            policy=self.name,
            size=self.cluster.size,
            submit_time=ledger.submit_time,
            start_time=start,
            end_time=ledger.end_time,
            mode=ledger.mode,
            killed=killed,
            seed=self.setup.seed,
            options=self.options,
            choices=tuple(self.choices),
            passes=system.passes,
            placements=Placements.of(system.cluster, system.allocations, system.events),
            started_in=self._started_in(system),
            simulator=self._begun().simulator,
            attempts=attempts,
            downtime=downtime_of(self._begun().down),
            held=HeldJobs.of(ledger.past_holds),
        )

    def _started_in(self, system: System) -> NDArray[np.str_] | None:
        """Return the partition in which each job started, or None without partitions."""
        if not isinstance(self.cluster, Partitions):
            return None
        if self.cluster.is_whole:  # without a look at each job
            return np.where(system.ledger.start_time >= 0, self.cluster.names[0], "")
        names = map(system.ledger.partition_of, range(len(self.workload)))
        return np.array(list(names), dtype=np.str_)

    @property
    def options(self) -> dict[str, Any]:
        """The options that determine the schedule besides workload, cluster, policy and seed."""
        return self.setup.record

    def _killed(self) -> NDArray[np.bool_]:
        """Return which jobs were killed at their requested time before they were complete."""
        if self.setup.service_time is None:
            return self.workload.column("run_time") > self.system.workload.column("run_time")
        killed = np.zeros(len(self.workload), dtype=np.bool_)
        killed[self._begun().cut_short] = True
        return killed

    def another(self, policy: Policy) -> Simulation:
        """Return a run of another policy with otherwise equal parameters and without observers."""
        return type(self)(self.workload, policy, setup=replace(self.setup, cluster=self.cluster))

    def _number_nodes(self) -> bool:
        """Give numbers to homogeneous nodes if the calendar reserves some; return whether it does."""
        cluster, calendar = with_numbers(self.cluster, self.setup.calendar, self.workload)
        if cluster is self.cluster:
            return False
        self.cluster = cluster
        self.setup = replace(self.setup, cluster=cluster, calendar=calendar)
        return True

    def _beginning(self) -> Begun | None:
        """Return the state in which the run begins, if it does not begin empty."""
        begun, begin_at = self.setup.begun, self.setup.begin_at
        if begin_at is not None:
            whole = replace(self.setup, begin_at=None, simulator="auto")
            begun = begin_at.begun(
                self.workload, lambda policy: type(self)(self.workload, policy, setup=whole).run()
            )
        if begun is not None:
            begun.check(self._limited)
        return begun

    @property
    def _limited(self) -> Workload:
        """The jobs with their run times under the wall-time limit."""
        return self.workload.killed_at_limit if self.setup.walltime == "kill" else self.workload

    def _check(self) -> None:
        for name, needed, given in (
            ("workload", "a Workload", isinstance(self.workload, Workload)),
            ("policy", "a Policy", isinstance(self.policy, Policy)),
            ("observers", "Observers", all(isinstance(observer, Observer) for observer in self.observers)),
        ):
            if not given:
                raise UsageError(f"{name} needs {needed}, found {getattr(self, name)!r}")
        self.setup.check()
        self.setup.check_columns(self.workload.columns)
        self.policy.check()
        self.policy.check_workload(self.workload)


def _check_simulator(simulator: object) -> None:
    option = OPTIONS["simulator"]
    if not option.holds(simulator):
        raise UsageError(f"simulator needs {option.needs}, found {simulator!r}")


def _signature() -> inspect.Signature:
    """Return the signature with the options by name, for help texts and editors."""
    own = inspect.signature(Simulation.__init__).parameters.values()
    known = {each.name for each in own}
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(each.name, keyword, default=getattr(Setup(), each.name), annotation=each.type)
        for each in fields(Setup)
        if each.name not in known
    ]
    kept = [each for each in own if each.name != "self" and each.kind is not inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature([*kept, *added])


Simulation.__signature__ = _signature()  # type: ignore[attr-defined]
