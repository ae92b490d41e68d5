"""The pipeline: order, inspect, place and start; behind the first job that does not fit, backfill."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import Any

from hpcsimkit.cluster import Allocation
from hpcsimkit.decision import Decision, External
from hpcsimkit.errors import StalledError, UsageError
from hpcsimkit.job import Job
from hpcsimkit.policy import FCFS, Backfiller, Estimator, Inspector, Order, Placement, Policy, Requested
from hpcsimkit.reservation import EASY
from hpcsimkit.system import Mode, System

__all__ = ["SEATS", "Pipeline"]

SEATS = {"order": Order, "inspector": Inspector, "placement": Placement, "backfiller": Backfiller,
         "estimates": Estimator}  # fmt: skip
"""The seats of a pipeline, and what may sit on each."""

_READY, _RESERVED, _BACKFILLED = map(int, (Mode.READY, Mode.RESERVED, Mode.BACKFILLED))

Asking = Generator[Decision, Any, Any]


class Pipeline(Policy):
    """A scheduler composed of stages, any of which may be an open seat (:class:`External`).

    A pass takes the first job of the order, lets the inspector hold it, places and starts it, and so on
    until a job does not fit; that one is the head, and the backfiller may start others behind it.

    Parameters
    ----------
    order : Order or External
        Which job is first.
    inspector : Inspector or External, optional
        May it go on? A held job ends the pass.
    placement : Placement or External, optional
        Where does it run? By default where the cluster places it.
    backfiller : Backfiller or External, optional
        What may start behind the head? By default nothing.
    estimates : Estimator, optional
        How long jobs are believed to take; by default what was requested.
    commit : bool
        Keep to the selected job until it starts (as some published simulators do), instead of asking the
        order again at every pass.
    window : int, optional
        Select among the jobs that have waited longest only, so many of them; likewise, offer so many
        candidates at most to an open backfiller seat. By default all.
    max_interval : int, optional
        Ask again about a held job after so many seconds at the latest; by default when something happens.
    max_rejections : int, optional
        Hold a job so often at most; by default without limit.

    Examples
    --------
    >>> Pipeline(order=FCFS(), backfiller=EASY())
    Pipeline(order=FCFS(), backfiller=EASY())
    """

    def __init__(
        self,
        order: Order | External | None = None,
        inspector: Inspector | External | None = None,
        placement: Placement | External | None = None,
        backfiller: Backfiller | External | None = None,
        *,
        estimates: Estimator | None = None,
        commit: bool = False,
        window: int | None = None,
        max_interval: int | None = None,
        max_rejections: int | None = None,
    ) -> None:
        self.order = order
        self.inspector = inspector
        self.placement = placement
        self.backfiller = backfiller
        self.estimates = estimates
        self.commit = commit
        self.window = window
        self.max_interval = max_interval
        self.max_rejections = max_rejections

    @property
    def queue_order(self) -> Order:
        """The order stage, or the heuristic behind its open seat."""
        order = self.order.base if isinstance(self.order, External) else self.order
        return order if order is not None else FCFS()

    @property
    def estimator(self) -> Estimator:
        """How long jobs are believed to take."""
        return self.estimates if self.estimates is not None else Requested()

    def check(self) -> None:
        """See that every stage sits on its own seat, and that numbers are in their ranges."""
        for seat, kind in SEATS.items():
            stage = getattr(self, seat)
            seated = stage.base if isinstance(stage, External) and seat != "estimates" else stage
            if seated is not None and not isinstance(seated, kind):
                raise UsageError(f"the {seat} of a pipeline needs a {kind.__name__}, found {seated!r}")
        order = self.queue_order
        if type(order).key is Order.key and not order.dynamic:
            raise UsageError(f"{type(order).__name__} needs a method key(job) or scores(jobs, now)")
        for name, least in (("window", 1), ("max_interval", 1), ("max_rejections", 0)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= least):
                raise UsageError(f"{name} needs a whole number of at least {least}, found {value!r}")

    def reset(self, system: System) -> None:
        """Prepare the stages, in the order in which they act."""
        self._committed: Job | None = None
        self._head: Job | None = None
        self._reserved: set[int] = set()
        self._rejections: dict[int, int] = {}
        if isinstance(self.backfiller, External) and self.backfiller.base is None:
            self.backfiller.base = EASY()
        for stage in (self.order, self.inspector, self.placement, self.backfiller, self.estimates):
            if stage is not None:
                stage.reset(system)
        self._filler: Backfiller | None = (
            self.backfiller.base if isinstance(self.backfiller, External) else self.backfiller
        )
        self._planned = self._filler if self._filler is not None and self._filler.plans else None
        self._plain = not (
            any(isinstance(stage, External) for stage in (self.order, self.backfiller))
            or self.inspector or self.placement or self.commit or self.window or self._planned
        )  # fmt: skip

    # --- a pass --------------------------------------------------------------------------------------

    def schedule(self, system: System) -> Asking | None:
        """Run one pass; see the class.

        Where there is nothing to ask, a plain loop does the same as the one with questions, faster.
        """
        if not self._plain:
            return self._run(system)
        queue, filler = system.queue, self._filler
        if (
            filler is not None
            and system.version == filler.settled
            and queue.first() is self._head
            and not self._something_new_fits(system, filler)
        ):
            return None
        place, reserved = system.cluster.place, self._reserved
        while queue.jobs:
            job = queue.first()
            allocation = place(job, system.free)
            if allocation is None:
                break
            system.start(job, allocation, _RESERVED if job.index in reserved else _READY)
        else:
            return None
        if filler is not None:
            self._block(job, filler)
            for other in filler.fill(job, system):
                system.start(other, None, _BACKFILLED)
            if filler.settles:
                filler.settled = system.version
        return None

    def _run(self, system: System) -> Asking:
        """Run a pass that asks its questions of whoever sits on the stages."""
        planned = self._planned
        if planned is not None:
            planned.plan(system)
        while system.queue.jobs:
            selected: Job | None = yield from self._select(system)
            if selected is None:  # an open order seat declined
                return
            job = selected
            if self.inspector is not None and not (yield from self._accept(job, system)):
                return
            if job not in system.queue:  # the inspector rejected it for good
                continue
            if planned is not None and not planned.due(job, system):
                break
            allocation = yield from self._place(job, system)
            if allocation is None:
                break
            self._committed = None
            system.start(job, allocation, _RESERVED if job.index in self._reserved else _READY)
        else:
            return
        if self.commit:
            self._committed = job
        if self._filler is not None:
            self._block(job, self._filler)
            yield from self._backfill(job, system, self._filler)

    def _something_new_fits(self, system: System, filler: Backfiller) -> bool:
        """Tell whether a pass like the last one, whose head is still blocked, could start anything now.

        Nothing has started or ended since. So it could not, unless a job fits that has just arrived, or one
        outlives its estimate: its expected end moves with the clock.
        """
        place, free = system.cluster.place, system.free
        for job in system.newcomers:
            if place(job, free) is not None:
                return True
        if system.running.overrun(system.now):
            return True
        filler.seen_pass = system.passes
        return False

    def _block(self, job: Job, filler: Backfiller) -> None:
        """Note which job is blocked, and that it holds a reservation if the backfiller makes one."""
        if job is not self._head:
            self._head = job
            if filler.reserves:
                self._reserved.add(job.index)

    # --- the questions -------------------------------------------------------------------------------

    def _select(self, system: System) -> Asking:
        """Ask the order; returns a job, or None to start nothing more now."""
        if self._committed is not None and self._committed in system.queue:
            return self._committed
        queue = system.queue
        if not isinstance(self.order, External):
            return queue.oldest(self.window)[0] if self.window else queue.first()
        limit = self.window or len(queue)
        declined = [None] if self.order.decline and system.anything_ahead else []
        return (
            yield Decision(
                "order", system, None,
                options=lambda: [*queue.oldest(limit), *declined],
                default=lambda: queue.oldest(limit)[0],
            )
        )  # fmt: skip

    def _accept(self, job: Job, system: System) -> Asking:
        """Ask the inspector; a held job is asked about again, `max_interval` later at the latest."""
        held = self._rejections.get(job.index, 0)
        if job is self._committed or (self.max_rejections is not None and held >= self.max_rejections):
            return True
        inspector = self.inspector
        if isinstance(inspector, External):
            base: Inspector = inspector.base or Inspector()
            accepted = yield Decision(
                "inspector", system, job,
                options=lambda: (True, False) if system.anything_ahead else (True,),
                default=lambda: base.accept(job, system),
            )  # fmt: skip
        else:
            assert inspector is not None
            accepted = inspector.accept(job, system)
        if accepted or job not in system.queue:
            return True
        if not system.anything_ahead:
            raise StalledError(
                f"job {job.id} at t={system.now} s is held although nothing runs and nothing is to come"
            )
        self._rejections[job.index] = held + 1
        if self.max_interval is not None:
            system.wake(system.now + self.max_interval)
        return False

    def _place(self, job: Job, system: System) -> Asking:
        """Ask the placement; returns an allocation, or None if the job does not fit."""
        placement = self.placement
        if placement is None:
            return system.cluster.place(job, system.free)
        if not isinstance(placement, External):
            return placement.place(job, system)
        base: Placement = placement.base or Placement()
        allocation = base.place(job, system)
        if allocation is None:
            return None
        return (yield _among((allocation,), "placement", system, job))

    def _backfill(self, head: Job, system: System, filler: Backfiller) -> Asking:
        """Start jobs behind the head, one after the other."""
        if isinstance(self.backfiller, External):
            yield from self._ask_to_backfill(head, system, filler, decline=self.backfiller.decline)
            return
        for job in filler.fill(head, system):
            allocation: Allocation = yield from self._place(job, system)
            system.start(job, allocation, _BACKFILLED)

    def _ask_to_backfill(self, head: Job, system: System, filler: Backfiller, decline: bool) -> Asking:
        """Offer what may start, until nothing may or the seat declines."""
        while candidates := list(islice(filler.fill(head, system), self.window)):
            options: list[Job | None] = [*candidates, None] if decline else [*candidates]
            job = yield _among(options, "backfiller", system, head)
            if job is None:
                return
            allocation = yield from self._place(job, system)
            system.start(job, allocation, _BACKFILLED)


def _among(options: Sequence[Any], stage: str, system: System, job: Job) -> Decision:
    """Return a decision among options that are known already; the first is what a heuristic takes."""
    return Decision(stage, system, job, options=lambda: options, default=lambda: options[0])
