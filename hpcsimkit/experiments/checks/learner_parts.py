"""Checks of user-defined encoders, rewards and agents for errors that spoil a training unnoticed."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.compiled import open_seats
from hpcsimkit.envs.interfaces import Encoder, Mask, Observation, Reward, actions_of, shape_of
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.policies import (
    CheckError,
    Failure,
    check_policy,
    machines_of_three_types,
    parameter_problem,
    problem_of,
    random_workloads,
    with_other_ends,
)
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.learner_parts import seated
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT
from hpcsimkit.results.result import Result

__all__ = ["PartReport", "check_agent", "check_encoder", "check_reward"]

Simulators = Literal["simpy", "compiled"]

SLOTS = 16
"""Number of options of a seat, unless the component has a number of its own."""

INSTANTS = 3
"""Number of instants of each workload after which the future is changed."""

ON_MACHINES = ("placement", "dispatch")
"""Seats whose options are machines."""


@dataclass(frozen=True)
class PartReport:
    """Report of a component that passed all checks.

    Attributes
    ----------
    part : str
        Representation of the component.
    checks : tuple of str
        Names of the checks.
    workloads : int
        Number of workloads.
    decisions : int
        Number of decisions.
    """

    part: str
    checks: tuple[str, ...]
    workloads: int
    decisions: int

    def __str__(self) -> str:
        head = f"{self.part}: passed on {self.workloads} workloads, {self.decisions} decisions"
        return "\n".join([head, *(f"  {check}" for check in self.checks)])


def check_encoder(
    encoder: Encoder,
    stage: str = "order",
    *,
    cluster: AnyCluster | int | None = None,
    seed: int = 0,
    oracle: bool = False,
) -> PartReport:
    """Check that an encoder can be learned from: shape, bounds, repeatability, no look into the future.

    Parameters
    ----------
    encoder : Encoder
        The encoder to check.
    stage : {"order", "inspector", "placement", "backfiller", "dispatch", "two-level"}
        Seat whose decisions it encodes.
    cluster : Cluster or int, optional
        Machines, or number of nodes; by default, machines of three types at the seats ``placement`` and
        ``dispatch``, elsewhere counted nodes of several numbers.
    seed : int
        Random seed of the workloads, 0 or more. Default: 0.
    oracle : bool
        Whether the encoder may read future run times and submissions, which is then not checked. Default:
        False.

    Returns
    -------
    PartReport
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
    runner = _Runner(stage, getattr(encoder, "slots", SLOTS), cluster, seed)
    observed = _Observed(encoder, runner)
    checks: dict[str, Failure] = {
        "shape, type and bounds": observed.writes_badly,
        "same decision, same observation": observed.is_not_repeatable,
        "no state kept between episodes": observed.remembers,
        "the run is left alone": observed.changes_the_run,
    }
    if not oracle:
        checks |= {
            "run times not known before the end": observed.is_clairvoyant,
            "later submissions not known": observed.knows_what_is_to_come,
        }
    if _declared(encoder):
        checks["the same in compiled runs"] = observed.differs_in_compiled_runs
    return _report(encoder, runner, checks)


def check_reward(
    reward: Reward, stage: str = "order", *, cluster: AnyCluster | int | None = None, seed: int = 0
) -> PartReport:
    """Check that a reward is a finite number, repeatable, and forgotten after an episode.

    A reward may read the future, run times for example, since agents do not observe it.

    Parameters
    ----------
    reward : Reward
        The reward to check; each run uses a copy, but for the check of what it keeps.
    stage : {"order", "inspector", "placement", "backfiller", "dispatch", "two-level"}
        Seat at whose decisions it is taken.
    cluster : Cluster or int, optional
        Machines, or number of nodes; see :func:`check_encoder`.
    seed : int
        Random seed of the workloads, 0 or more. Default: 0.

    Returns
    -------
    PartReport
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
    runner = _Runner(stage, SLOTS, cluster, seed)
    taken = _Taken(reward, runner)
    checks: dict[str, Failure] = {
        "finite numbers": taken.is_no_number,
        "same episode, same rewards": taken.is_not_repeatable,
        "no state kept between episodes": taken.remembers,
        "the run is left alone": taken.changes_the_run,
    }
    if _declared(reward):
        checks["the same in compiled runs"] = taken.differs_in_compiled_runs
    return _report(reward, runner, checks)


def check_agent(agent: Agent, *, cluster: AnyCluster | int | None = None, seed: int = 0) -> PartReport:
    """Check an agent: its encoder, its mask, its file, and the rules for policies.

    Parameters
    ----------
    agent : Agent
        The agent to check.
    cluster : Cluster or int, optional
        Machines, or number of nodes; see :func:`check_encoder`.
    seed : int
        Random seed of the workloads, 0 or more. Default: 0.

    Returns
    -------
    PartReport
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
    runner = _Runner(agent.stage, agent.slots or SLOTS, cluster, seed)
    masked = _Masked(agent, runner)
    checks: dict[str, Failure] = {
        "scores of the network": masked.has_no_scores,
        "actions are options": masked.has_wrong_actions,
        "the same after saving and loading": masked.changes_in_its_file,
    }
    report = _report(agent, runner, checks)
    policy = runner.policy(copy.deepcopy(agent))
    check_policy(policy, workloads=runner.workloads, cluster=runner.cluster, seed=seed)
    of_encoder = [f"encoder: {check}" for check in encoder.checks]
    return PartReport(
        report.part, (*of_encoder, *checks, "rules of policies"), report.workloads, report.decisions
    )


def _report(part: Any, runner: _Runner, checks: dict[str, Failure]) -> PartReport:
    """Apply the checks to all workloads."""
    names, text = list(checks), _text_of(part)
    if not isinstance(part, Agent):
        names.insert(0, "parameters")
        problem = parameter_problem(part)
        if problem is not None:
            raise CheckError(f"{part!r} fails 'parameters': {problem}")
    for workload in runner.workloads:
        for name, failure in checks.items():
            problem = problem_of(failure, workload)
            if problem is not None:
                raise CheckError(f"{text} fails {name!r}: {problem}; on {workload.name}")
    decisions = sum(1 for workload in runner.workloads for _ in runner.decisions(workload))
    if not decisions:
        raise UsageError(f"there is no decision for the {runner.stage} seat on {runner.cluster!r}")
    return PartReport(text, tuple(names), len(runner.workloads), decisions)


def _declared(part: Encoder | Reward) -> bool:
    """Return whether the class of a component declares that compiled runs show all that it reads."""
    return bool(vars(type(part)).get("reads_compiled"))


def _text_of(part: Any) -> str:
    """Return a part as text; an agent without the facts of its training."""
    if not isinstance(part, Agent):
        return repr(part)
    return repr(Agent(part.encoder, part.mask, part.network, part.stage, sample=part.sample, base=part.base))


# --- episodes ----------------------------------------------------------------------------------------------


class _Runner:
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
        policy = registry.make("fcfs" if self.stage in ONE_SEAT else "fcfs+easy")
        return seated(policy, holder, self.stage, self.slots)

    def simulation(self, workload: Workload, observers: Sequence[Observer] = ()) -> Simulation:
        """Return a run with an open seat."""
        policy = self.policy(External())
        return Simulation(workload, policy, self.cluster, seed=self.seed, observers=observers)

    def compiles(self, workload: Workload, part: Encoder | Reward) -> bool:
        """Return whether a run can pause at the seat in the compiled simulator."""
        observers = [part] if isinstance(part, Reward) else []
        return open_seats.obstacle(self.simulation(workload, observers), [part]) is None

    def decisions(self, workload: Workload) -> Iterator[Decision]:
        """Yield the decisions of a run."""
        return decisions_of(self.simulation(workload))

    def result(self, workload: Workload) -> Result:
        """Return the schedule of the heuristics."""
        simulation = self.simulation(workload)
        for _ in decisions_of(simulation):
            pass
        return simulation.result()

    def instants(self, result: Result) -> list[int]:
        """Return a few times of the schedule [s]."""
        times = np.unique(result.start_time[result.finished])
        return np.random.default_rng(self.seed).permutation(times)[:INSTANTS].tolist()


def decisions_of(simulation: Simulation) -> Iterator[Decision]:
    """Yield each decision of a run, which is then answered by the heuristic behind the seat."""
    while (decision := simulation.next_decision()) is not None:
        yield decision
        with simulation.guard:
            position = decision.position(decision.default)
        simulation.answer_position(position)


# --- encoders ----------------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """Observation of a decision, its time [s], and its number of options."""

    time: int
    options: int
    observation: Observation


class _Observed:
    """Episodes in which an encoder encodes all decisions."""

    def __init__(self, encoder: Encoder, runner: _Runner) -> None:
        self.encoder = encoder
        self.runner = runner
        self.shape = shape_of(encoder)

    def observations(
        self, workload: Workload, times: int = 1, simulator: Simulators = "simpy"
    ) -> Iterator[list[_Seen]]:
        """Yield the observations of each decision, encoded a number of times."""
        simulation, encode = self.runner.simulation(workload), None
        simulation.pause_with(simulator, [self.encoder])
        for decision in decisions_of(simulation):
            with simulation.guard:
                encode = encode or self.encoder.bind(decision.system)
                if not callable(encode):
                    raise UsageError(f"bind(system) needs to return a function, found {encode!r}")
                found = []
                for _ in range(times):
                    out = np.zeros(self.shape, dtype=np.float32)
                    encode(decision, out)
                    found.append(_Seen(decision.system.now, len(decision.options), out))
            yield found
        self.end = simulation.result()

    def all(self, workload: Workload, simulator: Simulators = "simpy") -> list[_Seen]:
        """Return the observations of an episode."""
        return [found[0] for found in self.observations(workload, simulator=simulator)]

    def writes_badly(self, workload: Workload) -> str | None:
        """Look for values that are not finite or out of bounds, and for an encoder that writes nothing."""
        seen, written = self.all(workload), False
        low, high = self.encoder.low, self.encoder.high
        for each in seen:
            values = each.observation
            written = written or bool(values.any())
            for problem, wrong in (
                ("not finite", ~np.isfinite(values)),
                (f"not in its bounds, {low} to {high}", (values < low) | (values > high)),
            ):
                if wrong.any():
                    place = tuple(np.argwhere(wrong)[0].tolist())
                    return f"the value {values[place]} at {list(place)} is {problem}, at t={each.time} s"
        return None if written or not seen else "all observations are zero: nothing is written into the array"

    def is_not_repeatable(self, workload: Workload) -> str | None:
        """Encode each decision twice."""
        for one, other in self.observations(workload, times=2):
            difference = _difference(one, other)
            if difference:
                return f"the same decision is encoded twice, and {difference}"
        return None

    def remembers(self, workload: Workload) -> str | None:
        """Compare two episodes with another one in between."""
        before, text = self.all(workload), repr(self.encoder)
        if len(workload) > 1:
            self.all(workload.select(slice(None, None, 2)))
        difference = _first_difference(before, self.all(workload))
        if difference:
            return f"after another episode, {difference}"
        return None if repr(self.encoder) == text else f"an episode changes it into {self.encoder!r}"

    def changes_the_run(self, workload: Workload) -> str | None:
        """Compare the schedules with and without the encoder."""
        self.all(workload)
        same = self.end.hash == self.runner.result(workload).hash
        return None if same else "the schedule differs from that without it"

    def is_clairvoyant(self, workload: Workload) -> str | None:
        """Change the run times of jobs that end after some instants; earlier observations must not change."""
        seen, rng = self.all(workload), np.random.default_rng(self.runner.seed)
        result = self.end
        for at in self.runner.instants(result):
            changed, _ = with_other_ends(workload, result, at, rng)
            difference = _first_difference(seen, self.all(changed), until=at)
            if difference:
                return f"with other run times of jobs that end after t={at} s, {difference}"
        return None

    def knows_what_is_to_come(self, workload: Workload) -> str | None:
        """Remove the jobs submitted after some instants; earlier observations must not change."""
        seen = self.all(workload)
        for at in self.runner.instants(self.end):
            known = workload.select(workload.submit_time <= at)
            difference = _first_difference(seen, self.all(known), until=at)
            if difference:
                return f"without the jobs submitted after t={at} s, {difference}"
        return None

    def differs_in_compiled_runs(self, workload: Workload) -> str | None:
        """Compare the observations with those of a run that pauses in the compiled simulator."""
        if not self.runner.compiles(workload, self.encoder):
            return None
        difference = _first_difference(self.all(workload), self.all(workload, "compiled"))
        return difference and f"in a compiled run, {difference}"


def _first_difference(ones: Sequence[_Seen], others: Sequence[_Seen], until: float = math.inf) -> str | None:
    """Describe the first difference between the observations of two episodes up to an instant."""
    for one, other in zip(ones, others, strict=False):
        if min(one.time, other.time) > until:
            return None
        difference = _difference(one, other)
        if difference:
            return difference
    return None


def _difference(one: _Seen, other: _Seen) -> str | None:
    """Describe the difference between two observations."""
    if np.array_equal(one.observation, other.observation):
        return None
    place = tuple(np.argwhere(one.observation != other.observation)[0].tolist())
    values = one.observation[place], other.observation[place]
    return f"the value at {list(place)} is {values[1]} instead of {values[0]} at t={one.time} s"


# --- rewards -----------------------------------------------------------------------------------------------


class _Taken:
    """Episodes in which a reward is taken at all decisions and at the end."""

    def __init__(self, reward: Reward, runner: _Runner) -> None:
        self.reward = reward
        self.runner = runner

    def rewards(
        self, workload: Workload, reward: Reward | None = None, simulator: Simulators = "simpy"
    ) -> list[tuple[int, Any]]:
        """Return the rewards of an episode with their times [s]; by default of a copy."""
        mine = copy.deepcopy(self.reward) if reward is None else reward
        simulation = self.runner.simulation(workload, [mine])
        simulation.pause_with(simulator, [])
        found: list[tuple[int, Any]] = []
        system = None
        for decision in decisions_of(simulation):
            system = decision.system
            with simulation.guard:
                found.append((system.now, mine.take(system)))
        self.end = simulation.result()
        if system is not None:
            with simulation.guard:
                found.append((system.now, mine.take(system)))
        return found

    def is_no_number(self, workload: Workload) -> str | None:
        """Look for a reward that is not a finite number."""
        for time, value in self.rewards(workload):
            finite = False
            with suppress(TypeError, ValueError):
                finite = not isinstance(value, str | bool) and math.isfinite(value)
            if not finite:
                return f"a finite number is needed at t={time} s, found {value!r}"
        return None

    def is_not_repeatable(self, workload: Workload) -> str | None:
        """Compare two episodes of two copies."""
        difference = _other_reward(self.rewards(workload), self.rewards(workload))
        return difference and f"in a second, equal episode, {difference}"

    def remembers(self, workload: Workload) -> str | None:
        """Compare two episodes of one object with another episode in between."""
        mine = copy.deepcopy(self.reward)
        before = self.rewards(workload, mine)
        if len(workload) > 1:
            self.rewards(workload.select(slice(None, None, 2)), mine)
        difference = _other_reward(before, self.rewards(workload, mine))
        return difference and f"after another episode, {difference}"

    def changes_the_run(self, workload: Workload) -> str | None:
        """Compare the schedules with and without the reward."""
        self.rewards(workload)
        same = self.end.hash == self.runner.result(workload).hash
        return None if same else "the schedule differs from that without it"

    def differs_in_compiled_runs(self, workload: Workload) -> str | None:
        """Compare the rewards with those of a run that pauses in the compiled simulator."""
        if not self.runner.compiles(workload, self.reward):
            return None
        difference = _other_reward(self.rewards(workload), self.rewards(workload, simulator="compiled"))
        return difference and f"in a compiled run, {difference}"


def _other_reward(ones: Sequence[tuple[int, Any]], others: Sequence[tuple[int, Any]]) -> str | None:
    """Describe the first difference between the rewards of two episodes."""
    for (time, one), (_, other) in zip(ones, others, strict=True):
        if one != other:
            return f"the reward at t={time} s is {other} instead of {one}"
    return None


# --- agents ------------------------------------------------------------------------------------------------


class _Masked:
    """Decisions that the mask of an agent maps to actions, and answers of the agent."""

    def __init__(self, agent: Agent, runner: _Runner) -> None:
        self.agent = agent
        self.runner = runner

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
        for decision in self.runner.decisions(workload):
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
        policy = self.runner.policy(copy.deepcopy(agent))
        return Simulation(workload, policy, self.runner.cluster, seed=self.runner.seed).run().hash
