"""Checks of user-defined encoders, rewards and agents for errors that spoil a training unnoticed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.compiled import open_seats
from hpcsimkit.envs.interfaces import Encoder, Mask, Reward, actions_of, shape_of
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.policies import check_policy
from hpcsimkit.experiments.checks.runner import (
    CheckError,
    CheckReport,
    Checks,
    Failure,
    parameter_problem,
    pass_all,
)
from hpcsimkit.experiments.checks.workloads import machines_of_three_types, random_workloads
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.learner_parts import seated
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT
from hpcsimkit.results.result import Result

__all__ = ["check_agent", "check_encoder", "check_reward"]

Simulators = Literal["simpy", "compiled"]

SLOTS = 16
"""Number of options of a seat, unless the component has a number of its own."""

BEHIND = {"preemptor": "fcfs+easy+preempt(by=user)", "tester": "fcfs+easy+tests(seconds=5)"}
"""Policies of seats that need a heuristic of the log: the workloads have users, and no other tiers."""

ON_MACHINES = ("placement", "dispatch")
"""Seats whose options are machines."""


def check_encoder(
    encoder: Encoder,
    stage: str = "order",
    *,
    cluster: AnyCluster | int | None = None,
    seed: int = 0,
    oracle: bool = False,
) -> CheckReport:
    """Check that an encoder can be learned from: shape, bounds, repeatability, no look into the future.

    Parameters
    ----------
    encoder : Encoder
        The encoder to check.
    stage : str
        Seat whose decisions it encodes: ``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``,
        ``"preemptor"``, ``"gate"``, ``"tester"``, ``"dispatch"`` or ``"two-level"``.
    cluster : Cluster or int, optional
        Machines, or number of nodes; by default, machines of three types at the seats ``placement`` and
        ``dispatch``, elsewhere homogeneous nodes of several numbers.
    seed : int
        Random seed of the workloads, 0 or more. Default: 0.
    oracle : bool
        Whether the encoder may read future run times and submissions, which is then not checked. Default:
        False.

    Returns
    -------
    CheckReport
        Summary of the checks.

    Raises
    ------
    CheckError
        A check failed.
    UsageError
        The object is not an encoder, or there is no such seat.

    Examples
    --------
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> check_encoder(QueueWindow(8)).workloads
    8
    >>> class RunTimes(Encoder):
    ...     shape = (1,)
    ...     def bind(self, system):
    ...         def encode(decision, out):
    ...             out[0] = decision.options[0].run_time
    ...         return encode
    >>> try:
    ...     check_encoder(RunTimes())
    ... except CheckError as error:
    ...     print(str(error).split(":")[0])
    RunTimes() fails 'run times not known before the end'
    """
    if not isinstance(encoder, Encoder):
        raise UsageError(f"check_encoder needs an Encoder, found {encoder!r}")
    seat = _Seat(stage, getattr(encoder, "slots", SLOTS), cluster, seed)
    shape_of(encoder)
    common = _SeatChecks(encoder, seat, seat.observed)
    checks: dict[str, Failure] = {
        "shape, type and bounds": lambda workload: _written_badly(encoder, common.trace(workload)),
        "same decision, same observation": lambda workload: _encoded_otherwise(
            seat.observed(copy.deepcopy(encoder), workload, times=2)
        ),
        "no state kept between episodes": common.remembers,
        "the run is left alone": common.changes_the_run,
    }
    if not oracle:
        checks |= {
            "run times not known before the end": common.is_clairvoyant,
            "later submissions not known": common.knows_what_is_to_come,
        }
    return _report(encoder, seat, checks | common.of_compiled_runs())


def check_reward(
    reward: Reward, stage: str = "order", *, cluster: AnyCluster | int | None = None, seed: int = 0
) -> CheckReport:
    """Check that a reward is a finite number, repeatable, and forgotten after an episode.

    A reward may read the future, run times for example, since agents do not observe it.

    Parameters
    ----------
    reward : Reward
        The reward to check; each run uses a copy, but for the check of what it keeps.
    stage : str
        Seat at whose decisions it is taken: ``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``,
        ``"preemptor"``, ``"gate"``, ``"tester"``, ``"dispatch"`` or ``"two-level"``.
    cluster, seed
        As for :func:`check_encoder`.

    Returns
    -------
    CheckReport
        Summary of the checks.

    Raises
    ------
    CheckError
        A check failed.
    UsageError
        The object is not a reward, or there is no such seat.

    Examples
    --------
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> print(check_reward(MinusMeanWait()))  # doctest: +ELLIPSIS
    MinusMeanWait(): passed on 8 workloads, ... decisions
      parameters
      finite numbers
      same episode, same rewards
      no state kept between episodes
      the run is left alone
      the same in compiled runs
    """
    if not isinstance(reward, Reward):
        raise UsageError(f"check_reward needs a Reward, found {reward!r}")
    seat = _Seat(stage, SLOTS, cluster, seed)
    common = _SeatChecks(reward, seat, seat.rewarded)
    checks: dict[str, Failure] = {
        "finite numbers": lambda workload: _no_number(common.trace(workload)),
        "same episode, same rewards": common.is_not_repeatable,
        "no state kept between episodes": common.remembers,
        "the run is left alone": common.changes_the_run,
    }
    return _report(reward, seat, checks | common.of_compiled_runs())


def check_agent(agent: Agent, *, cluster: AnyCluster | int | None = None, seed: int = 0) -> CheckReport:
    """Check an agent: its encoder, its mask, its file, and the rules for policies.

    Parameters
    ----------
    agent : Agent
        The agent to check.
    cluster, seed
        As for :func:`check_encoder`.

    Returns
    -------
    CheckReport
        Summary of the checks.

    Raises
    ------
    CheckError
        A check failed.
    UsageError
        The object is not an agent.

    Examples
    --------
    >>> from hpcsimkit.agents.networks.numpy_networks import SlotScores
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> first = SlotScores({"weight.0": np.array([[1, 0, 0, 0, 0]]), "bias.0": np.array([0])})
    >>> check_agent(Agent(QueueWindow(4), Slots(4), first, "order")).checks[-2:]
    ('the same after saving and loading', 'rules of policies')
    """
    if not isinstance(agent, Agent):
        raise UsageError(f"check_agent needs an Agent, found {agent!r}")
    for name, part, base in (("mask", agent.mask, Mask), ("network", agent.network, Network)):
        if not isinstance(part, base):
            raise UsageError(f"check_agent needs a {base.__name__} as {name}, found {part!r}")
    encoder = check_encoder(agent.encoder, agent.stage, cluster=cluster, seed=seed)
    seat = _Seat(agent.stage, agent.slots or SLOTS, cluster, seed)
    masked = _Masked(agent, seat)
    checks: dict[str, Failure] = {
        "scores of the network": masked.has_no_scores,
        "actions are options": masked.has_wrong_actions,
        "the same after saving and loading": masked.changes_in_its_file,
    }
    report = _report(agent, seat, checks)
    policy = seat.policy(copy.deepcopy(agent))
    check_policy(policy, workloads=seat.workloads, cluster=seat.cluster, seed=seed)
    of_encoder = [f"encoder: {check}" for check in encoder.checks]
    return replace(report, checks=(*of_encoder, *checks, "rules of policies"))


def _report(part: Any, seat: _Seat, checks: Mapping[str, Failure]) -> CheckReport:
    """Apply the checks to all workloads."""
    names, text = list(checks), _text_of(part)
    if not isinstance(part, Agent):
        names.insert(0, "parameters")
        problem = parameter_problem(part)
        if problem is not None:
            raise CheckError(f"{part!r} fails 'parameters': {problem}")
    pass_all(text, checks, seat.workloads)
    decisions = sum(1 for workload in seat.workloads for _ in decisions_of(seat.simulation(workload)))
    if not decisions:
        raise UsageError(f"there is no decision for the {seat.stage} seat on {seat.cluster!r}")
    jobs = sum(map(len, seat.workloads))
    return CheckReport(text, tuple(names), len(seat.workloads), jobs, decisions)


def _text_of(part: Any) -> str:
    """Return a part as text; an agent without the facts of its training."""
    if not isinstance(part, Agent):
        return repr(part)
    return repr(Agent(part.encoder, part.mask, part.network, part.stage, sample=part.sample, base=part.base))


# --- traces ------------------------------------------------------------------------------------------------


class Noted(NamedTuple):
    """An observation or a reward, with its time [s]."""

    time: int
    value: Any


@dataclass(frozen=True)
class Values:
    """Trace of an encoder or a reward: the values at all decisions."""

    noun: str
    values: list[Noted]
    result: Result

    def difference(self, other: Values, until: int | None = None) -> str | None:
        """Describe the first difference of another trace, up to an instant [s]."""
        for one, found in zip(self.values, other.values, strict=False):
            if until is not None and min(one.time, found.time) > until:
                return None
            if not np.array_equal(one.value, found.value):
                return self.told(one, found)
        return None

    def told(self, one: Noted, other: Noted) -> str:
        """Describe the difference between two values."""
        ones, others = np.asarray(one.value), np.asarray(other.value)
        place = tuple(np.argwhere(ones != others)[0].tolist())
        where = f" at {list(place)}" if place else ""
        return f"the {self.noun}{where} is {others[place]} instead of {ones[place]} at t={one.time} s"


class _Seat:
    """Episodes of a seat, in which the heuristic behind it answers all decisions."""

    def __init__(self, stage: str, slots: int, cluster: AnyCluster | int | None, seed: int) -> None:
        self.stage = stage
        self.slots = slots
        self.cluster = machines_of_three_types() if cluster is None and stage in ON_MACHINES else cluster
        self.seed = seed
        self.policy(External())
        shared = stage == "dispatch" and isinstance(self.cluster, Machines)
        self.workloads = random_workloads(np.random.default_rng(seed), cluster=self.cluster, shared=shared)

    def policy(self, holder: External) -> Policy:
        """Return a policy with an agent or an open seat."""
        name = "fcfs" if self.stage in ONE_SEAT else BEHIND.get(self.stage, "fcfs+easy")
        return seated(registry.make(name), holder, self.stage, self.slots)

    def simulation(self, workload: Workload, observers: Sequence[Observer] = ()) -> Simulation:
        """Return a run with an open seat."""
        return self.scenario(workload).simulation(self.policy(External()), observers)

    def scenario(self, workload: Workload) -> Scenario:
        """Return a workload with the options of all runs."""
        return Scenario(workload, Setup(self.cluster, seed=self.seed))

    def observed(
        self, encoder: Encoder, workload: Workload, simulator: Simulators = "simpy", times: int = 1
    ) -> Values:
        """Return the observations of an episode, in which each decision is encoded a number of times."""
        simulation, encode, seen = self.simulation(workload), None, []
        simulation.pause_with(simulator, [encoder])
        for decision in decisions_of(simulation):
            with simulation.guard:
                encode = encode or encoder.bind(decision.system)
                if not callable(encode):
                    raise UsageError(f"bind(system) needs to return a function, found {encode!r}")
                for _ in range(times):
                    out = np.zeros(shape_of(encoder), dtype=np.float32)
                    encode(decision, out)
                    seen.append(Noted(decision.system.now, out))
        return Values("value", seen, simulation.result())

    def rewarded(self, reward: Reward, workload: Workload, simulator: Simulators = "simpy") -> Values:
        """Return the rewards of an episode, at all decisions and at the end."""
        simulation, system, taken = self.simulation(workload, [reward]), None, []
        simulation.pause_with(simulator, [])
        for decision in decisions_of(simulation):
            system = decision.system
            with simulation.guard:
                taken.append(Noted(system.now, reward.take(system)))
        result = simulation.result()
        if system is not None:
            with simulation.guard:
                taken.append(Noted(system.now, reward.take(system)))
        return Values("reward", taken, result)


def decisions_of(simulation: Simulation) -> Iterator[Decision]:
    """Yield each decision of a run, which is then answered by the heuristic behind the seat."""
    while (decision := simulation.next_decision()) is not None:
        yield decision
        with simulation.guard:
            position = decision.position(decision.default)
        simulation.answer_position(position)


# --- checks ------------------------------------------------------------------------------------------------


class _SeatChecks(Checks[Any, Values]):
    """Checks of an encoder or a reward."""

    def __init__(self, part: Encoder | Reward, seat: _Seat, traced: Callable[..., Values]) -> None:
        super().__init__(part, traced, seat.seed)
        self.seat = seat

    def changes_the_run(self, workload: Workload) -> str | None:
        """Compare the schedules with and without the part."""
        simulation = self.seat.simulation(workload)
        for _ in decisions_of(simulation):
            pass
        same = self.trace(workload).result.hash == simulation.result().hash
        return None if same else "the schedule differs from that without it"

    def of_compiled_runs(self) -> dict[str, Failure]:
        """Return the check of a part whose class declares that compiled runs show all that it reads."""
        declares = vars(type(self.part)).get("reads_compiled")
        return {"the same in compiled runs": self.differs_in_compiled_runs} if declares else {}

    def differs_in_compiled_runs(self, workload: Workload) -> str | None:
        """Compare the values with those of a run that pauses in the compiled simulator, where it can."""
        part = copy.deepcopy(self.part)
        observers = [part] if isinstance(part, Reward) else []
        if open_seats.obstacle(self.seat.simulation(workload, observers), [part]) is not None:
            return None
        difference = self.trace(workload).difference(self.traced(part, workload, "compiled"))
        return difference and f"in a compiled run, {difference}"


def _written_badly(encoder: Encoder, trace: Values) -> str | None:
    """Look for values that are not finite or out of bounds, and for an encoder that writes nothing."""
    low, high = encoder.low, encoder.high
    for time, values in trace.values:
        for problem, wrong in (
            ("not finite", ~np.isfinite(values)),
            (f"not in its bounds, {low} to {high}", (values < low) | (values > high)),
        ):
            if wrong.any():
                place = tuple(np.argwhere(wrong)[0].tolist())
                return f"the value {values[place]} at {list(place)} is {problem}, at t={time} s"
    written = not trace.values or any(values.any() for _, values in trace.values)
    return None if written else "all observations are zero: nothing is written into the array"


def _encoded_otherwise(trace: Values) -> str | None:
    """Compare the two observations of each decision."""
    for one, other in zip(trace.values[::2], trace.values[1::2], strict=True):
        if not np.array_equal(one.value, other.value):
            return f"the same decision is encoded twice, and {trace.told(one, other)}"
    return None


def _no_number(trace: Values) -> str | None:
    """Look for a reward that is not a finite number."""
    for time, value in trace.values:
        finite = False
        with suppress(TypeError, ValueError):
            finite = not isinstance(value, str | bool) and math.isfinite(value)
        if not finite:
            return f"a finite number is needed at t={time} s, found {value!r}"
    return None


class _Masked:
    """Decisions that the mask of an agent maps to actions, and answers of the agent."""

    def __init__(self, agent: Agent, seat: _Seat) -> None:
        self.agent = agent
        self.seat = seat

    def has_no_scores(self, workload: Workload) -> str | None:
        """Look for a network that does not fit, or raises an exception for an observation of zeros."""
        self.agent.check()
        network = self.agent.network
        with guarded(f"the network {type(network).__name__}"):
            network.scores(np.zeros(shape_of(self.agent.encoder), dtype=np.float32))
        return None

    def has_wrong_actions(self, workload: Workload) -> str | None:
        """Look for decisions without valid actions, and for valid actions that are no options."""
        mask = self.agent.mask
        for decision in decisions_of(self.seat.simulation(workload)):
            valid = np.zeros(actions_of(mask), dtype=np.bool_)
            with guarded(f"the mask {type(mask).__name__}"):
                mask.write(decision, valid)
                positions = {
                    action: mask.position(decision, action) for action in np.flatnonzero(valid).tolist()
                }
            if not positions:
                return f"no action is valid for {decision!r}"
            for action, position in positions.items():
                if not 0 <= position < len(decision.options):
                    return f"action {action} stands for option {position} of {decision!r}"
        return None

    def changes_in_its_file(self, workload: Workload) -> str | None:
        """Compare the schedule of the agent with that of its copy from a file."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "agent.hpcsim"
            self.agent.save(file)
            again = Agent.load(file, encoder=self.agent.encoder, mask=self.agent.mask)
        hashes = {self._schedule(workload, each) for each in (self.agent, again)}
        return None if len(hashes) == 1 else "its copy from a file makes another schedule"

    def _schedule(self, workload: Workload, agent: Agent) -> str:
        policy = self.seat.policy(copy.deepcopy(agent))
        return self.seat.scenario(workload).simulation(policy).run().hash
