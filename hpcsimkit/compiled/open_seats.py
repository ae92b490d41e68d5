"""Simulations with an open seat that the compiled simulator takes, up to each of their decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled import loading, on_machines, support
from hpcsimkit.compiled.known_parameters import unknown_parameters
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder, TextbookOrder
from hpcsimkit.kernel.pipeline import SEATS, Pipeline
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.slurm import SlurmMultifactor


def opened(simulation: Any, simulator: str, readers: Sequence[Any]) -> Any:
    """Return a compiled run that pauses at each decision, or None for the kernel.

    With ``"auto"`` it is taken once the jobs of such runs in this process are worth its loading.

    A compiled run that is demanded and impossible is an error that says why.
    """
    found = obstacle(simulation, readers)
    if found is not None:
        if simulator == "compiled":
            raise UsageError(f"the compiled simulator cannot pause here: {found}")
        return None
    kind = _kind(simulation)
    if simulator == "auto" and loading.counted(kind, len(simulation.workload)) < loading.least_jobs(kind):
        return None
    from hpcsimkit.compiled import paused_dispatch, paused_run

    if kind == loading.PAIRS_SEAT:
        return paused_dispatch.PausedDispatch(simulation)
    return paused_run.PausedPipeline(simulation, *_closed(simulation.policy))


def _kind(simulation: Any) -> str:
    """Return the kind of the compiled function for a policy with an open seat."""
    if isinstance(simulation.policy, Dispatch):
        return loading.PAIRS_SEAT
    return loading.PUBLISHED_SEAT if isinstance(simulation.setup.event_order, DirlabOrder) else loading.SEAT


def obstacle(simulation: Any, readers: Sequence[Any]) -> str | None:
    """Return the first reason why a compiled run cannot pause at a simulation's decisions, or None.

    `readers` are the objects that read its state: encoders, masks and rewards.
    """
    return next(_obstacles(simulation, readers), None)


def _obstacles(simulation: Any, readers: Sequence[Any]) -> Iterator[str]:
    policy, rules = simulation.policy, type(simulation.setup.event_order)
    if rules not in support.KNOWN:
        yield f"it knows no order of events {simulation.setup.event_order.name!r}"
        return
    if type(policy) not in (Pipeline, Dispatch):
        yield f"{type(policy).__name__} is neither a plain pipeline nor a dispatch"
        return
    for reader in (*simulation.observers, *readers):
        if "reads_compiled" not in vars(type(reader)) or not reader.reads_compiled:
            yield f"{type(reader).__name__} is not known to read only what a compiled run shows"
    if simulation.setup.begun is not None:
        yield "its seats know no begun runs"
    others = (getattr(policy, stage, None) for stage in ("preemptor", "tester"))
    yield from (f"its seats know no {stage!r}" for stage in others if stage is not None)
    yield from support.obstacles_of_options(simulation)
    yield from unknown_parameters(policy)
    if isinstance(policy, Dispatch):
        yield from _obstacles_of_dispatch(simulation)
        return
    if type(simulation.cluster) is not Nodes:
        yield f"the seats of a pipeline are compiled on homogeneous nodes only, found {simulation.cluster!r}"
    seats = [seat for seat in SEATS if isinstance(getattr(policy, seat), External)]
    if len(seats) != 1:
        yield f"one open seat is needed, found {len(seats)}"
    else:
        yield from _obstacles_at(seats[0], policy, issubclass(rules, DirlabOrder))
        yield from support.obstacles_of_policy(_closed(policy)[1], rules)


def _obstacles_of_dispatch(simulation: Any) -> Iterator[str]:
    """Yield the reasons why a compiled run cannot pause at the pairs of jobs and machines of a dispatch."""
    policy, cluster = simulation.policy, simulation.cluster
    if type(simulation.setup.event_order) is not TextbookOrder:
        yield f"a dispatch is not compiled by the rules {simulation.setup.event_order.name!r}"
    if type(policy.seat) is not External or policy.seat.base is not None:
        yield f"{policy.seat!r} at the seat of a dispatch is not compiled"
    if type(policy.queue_order) not in support.CONSTANT:
        yield f"the order {policy.queue_order!r} is not compiled with an open seat"
    if type(cluster) is not Machines:
        yield f"a dispatch is compiled on machines only, found {cluster!r}"
        return
    yield from on_machines.obstacles(simulation.workload, cluster, Pipeline(policy.queue_order))
    needs, _ = on_machines.needs_of(simulation.workload, cluster)
    if any(need.spread or need.exclusive or need.nodes > 1 for need in needs):
        yield "a dispatch needs jobs that share one machine each"


def _obstacles_at(stage: str, policy: Pipeline, published: bool) -> Iterator[str]:
    """Yield the reasons why a seat of a pipeline cannot be open in a compiled run."""
    seat = getattr(policy, stage)
    if type(seat) is not External:
        yield f"{type(seat).__name__} at the {stage} seat is not compiled"
    if type(seat.base) not in _bases(stage, published):
        yield f"{seat.base!r} at the open {stage} seat is not compiled"
    if policy.placement is not None or (stage != "inspector" and policy.inspector is not None):
        yield "an inspector or a placement besides the open seat is not compiled"
    if policy.fitting or (policy.window and stage == "inspector"):
        yield "'fitting', or a window before an inspector, is not compiled with an open seat"
    if type(policy.queue_order) not in support.CONSTANT:
        yield f"the order {policy.queue_order!r} is not compiled with an open seat"
    if isinstance(support.candidates_of(_closed(policy)[1]), SlurmMultifactor):
        yield "'slurm' as the order of candidates is not compiled with an open seat"
    if stage != "backfiller" and policy.backfiller is not None:
        yield from _obstacles_behind(policy, published)
    if type(policy.estimates) not in support.KNOWN[DirlabOrder]["estimates"]:
        yield f"the estimates {policy.estimates!r} are not compiled with an open seat"


def _obstacles_behind(policy: Pipeline, published: bool) -> Iterator[str]:
    """Yield the reasons why a backfiller cannot follow an open seat in a compiled run."""
    if published and not policy.commit:
        yield "an open seat before published backfilling needs the commitment to a job"
    if not published and type(policy.backfiller) is not EASY:
        yield f"the backfiller {policy.backfiller!r} is not compiled with an open seat"


def _bases(stage: str, published: bool) -> tuple[type, ...]:
    """Return the classes of the heuristics that are known behind an open seat."""
    if stage == "order":
        return support.CONSTANT
    if stage == "inspector":
        return (type(None), Inspector)
    return (FittingCandidates,) if published else (type(None), EASY, FittingCandidates)


def _closed(policy: Pipeline) -> tuple[str, Pipeline]:
    """Return the open seat of a pipeline, and the pipeline with the known part of the heuristic behind it."""
    stage = next(seat for seat in SEATS if isinstance(getattr(policy, seat), External))
    backfiller = policy.backfiller
    if isinstance(backfiller, External):
        backfiller = EASY() if backfiller.base is None else backfiller.base
        if isinstance(backfiller, FittingCandidates):
            backfiller = None
    closed = Pipeline(
        policy.queue_order, backfiller=backfiller, estimates=policy.estimates, commit=policy.commit
    )
    return stage, closed
