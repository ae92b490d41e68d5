"""Checks by name: policies and their stages, encoders, rewards and agents, each by the checks of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.catalogue import ENCODERS, REWARDS
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encoder, Reward
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.checks.learner_parts import check_agent, check_encoder, check_reward
from hpcsimkit.experiments.checks.policies import check_policy
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.spelling import parts_in
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.kernel.pipeline import SEATS
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT

MODEL = ".hpcsim"

KINDS = ("policy", "encoder", "reward", "agent")
"""Kinds of parts with checks."""

BASES: Mapping[str, type[Any]] = {"encoder": Encoder, "reward": Reward}
"""Base classes of the kinds that are no policies or agents."""


def part_named(
    name: str, trust: Trust, kind: str | None = None, parts: str | None = None
) -> Policy | Encoder | Reward | Agent:
    """Return the part of a name.

    It is the path of an agent (``.hpcsim``), the name of a policy in the form of
    :func:`~hpcsimkit.experiments.parts.registry.make`, ``module:Name`` or ``file.py:Name`` of an encoder or
    reward, or the name of one of the kit, with optional parameters in parentheses. The `kind` is found from
    its class by default; a name of the kit without a kind is that of a policy. `parts` is a module or file.py
    with user-defined classes of an agent's encoder and mask.

    >>> part_named("QueueWindow(slots=4)", Trust(()), "encoder"), part_named("sjf", Trust(()))
    (QueueWindow(slots=4), Pipeline(order=SJF()))
    """
    made: Any
    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind: one of {', '.join(KINDS)} is needed, found {kind!r}{nearest(kind, KINDS)}")
    if name.endswith(MODEL):
        made = Agent.load(name, parts=None if parts is None else trust.module(parts))
    else:
        made = _encoder_or_reward(name, kind, trust) or registry.policy_named(name, None, trust)
    found = "agent" if isinstance(made, Agent) else "policy"
    found = next((known for known, base in BASES.items() if isinstance(made, base)), found)
    if kind not in (None, found):
        raise UsageError(f"{name!r} is of the kind {found}, not {kind}")
    return made


def _encoder_or_reward(name: str, kind: str | None, trust: Trust) -> Any:
    """Return the encoder or reward of a name; None if it can only be that of a policy."""
    if kind == "policy" or (kind is None and ":" not in name) or len(parts := parts_in(name)) > 1:
        return None
    (part,) = parts
    if part.code:
        found = trust.imported(part.key)
    elif kind == "agent":
        raise UsageError(f"an agent's file (*{MODEL}) is needed, found {name!r}")
    else:
        found = (ENCODERS if kind == "encoder" else REWARDS).named(part.key)
    bases = tuple(BASES.values())
    if isinstance(found, bases):
        return found
    if isinstance(found, type) and issubclass(found, bases):
        return registry.called(found, part)
    if isinstance(found, type) and not issubclass(found, registry.KINDS):
        raise UsageError(
            f"{name!r}: a policy or a stage of one, an encoder, a reward or an agent's file can be checked, "
            f"found the class {found.__name__}"
        )
    return None


def checked(
    part: Policy | Encoder | Reward | Agent,
    *,
    stage: str | None = None,
    cluster: Machines | None = None,
    seed: int = 0,
    oracle: bool = False,
) -> str:
    """Check a part, an encoder or reward at the seat `stage`; return one line that says what was checked.

    The seat is that of the order by default. Policies and agents have their own.

    >>> print(checked(part_named("sjf+easy", Trust(()))))  # doctest: +ELLIPSIS
    Pipeline(...): passed on 8 workloads, 480 jobs: parameters; events; capacity, starts and ends; ...
    """
    where: dict[str, Any] = {"cluster": cluster, "seed": seed}
    stages = [*(seat for seat in SEATS if seat != "estimates"), *ONE_SEAT]
    if stage is not None and stage not in stages:
        raise UsageError(f"--stage: one of {', '.join(stages)} is needed, found {stage!r}")
    if stage is not None and not isinstance(part, tuple(BASES.values())):
        kind = "an agent" if isinstance(part, Agent) else "a policy"
        raise UsageError(f"--stage is the seat of an encoder or a reward, found {kind}")
    seat = "order" if stage is None else stage
    report: Any
    if isinstance(part, Agent):
        report = check_agent(part, **where)
    elif isinstance(part, Encoder):
        report = check_encoder(part, seat, oracle=oracle, **where)
    elif isinstance(part, Reward):
        report = check_reward(part, seat, **where)
    else:
        report = check_policy(part, oracle=oracle, **where)
    head, *lines = str(report).splitlines()
    return f"{head}: {'; '.join(line.strip() for line in lines)}"
