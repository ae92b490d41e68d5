"""Limits of QOS and associations, and the reasons that Slurm names for jobs that they hold.

The order of the rules is that in which Slurm looks: of several limits that apply, the first gives the reason.
A limit of the partition QOS takes the place of the same limit of the QOS of a job, unless that has the flag
``OverPartQOS``. Limits of associations hold up to the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hpcsimkit.slurm.accounts import Associations, Qos
from hpcsimkit.slurm.spent import Spent
from hpcsimkit.slurm.tres import Amounts, reason_word

__all__ = ["Ask", "LimitBook", "qos_in_order"]

MINUTE = 60

OF_JOB = ("job", "node", "least")
"""Scopes of limits that concern a job by itself: it can never start beyond them."""


class Ask(NamedTuple):
    """What limits need to know of a job in a partition.

    Attributes
    ----------
    row : int
        Row of the job.
    user, account : str
        Names.
    place : int
        Place of its association.
    qos : tuple of Qos
        QOS with valid limits, by precedence.
    amounts : mapping of str to float
        Amounts that it asks for, or has, in all.
    nodes : float
        Number of nodes.
    limit : int
        Time limit [s].
    factor : float
        Factor of its usage. Default: 1.
    """

    row: int
    user: str
    account: str
    place: int
    qos: tuple[Qos, ...]
    amounts: Amounts
    nodes: float
    limit: int
    factor: float = 1.0


class Rule(NamedTuple):
    """A kind of limit.

    Attributes
    ----------
    name : str
        Name of the limit.
    scope : str
        Jobs that count: those of the whole ``"group"``, of the ``"user"`` or ``"account"`` within it, or the
        ``"job"`` by itself, on each ``"node"``, or as the ``"least"`` amount.
    measure : str
        Measure: ``"jobs"``, ``"tres"``, ``"minutes"`` (of resources), ``"wall"``; or of what past and running
        jobs have spent: ``"spent"`` (minutes of resources), ``"time"`` (of jobs).
    reason : str or callable
        The reason, or a function that returns it for a resource.
    """

    name: str
    scope: str
    measure: str
    reason: str | Callable[[str], str]


def _per(before: str, limit: str, other: str, gres: str | None = None) -> Callable[[str], str]:
    """Return a function of the name of a reason: CPUs and nodes end otherwise than the rest."""

    def reason(resource: str) -> str:
        word = reason_word(resource)
        ends = {"Cpu": limit, "Node": limit, "GRES": other if gres is None else gres}
        return f"{before}{word}{ends.get(word, other)}"

    return reason


def _minutes(before: str, which: str = "") -> Callable[[str], str]:
    """Return a function of the name of a reason that counts minutes of a group of jobs."""

    def reason(resource: str) -> str:
        words = {"Cpu": "CPU", "Memory": "Memory" if before == "QOSGrp" else "Mem"}
        word = words.get(reason_word(resource), reason_word(resource))
        return f"{before}{word}{which}Minutes{'Limit' if word == 'CPU' else ''}"

    return reason


def _job_minutes(before: str) -> Callable[[str], str]:
    """Return a function of the name of a reason that counts minutes of a job."""

    def reason(resource: str) -> str:
        word = reason_word(resource)
        return f"{before}{word}MinutesPerJob{'Limit' if word == 'Cpu' else ''}"

    return reason


def _memory_is_mem(reason: Callable[[str], str]) -> Callable[[str], str]:
    return lambda resource: reason(resource).replace("Memory", "Mem")


QOS_RULES = (
    Rule("GrpJobs", "group", "jobs", "QOSGrpJobsLimit"),
    Rule("GrpWall", "group", "time", "QOSGrpWallLimit"),
    Rule("MaxJobsPA", "account", "jobs", "MaxJobsPerAccount"),
    Rule("MaxJobsPU", "user", "jobs", "QOSMaxJobsPerUserLimit"),
    Rule("MaxWall", "job", "wall", "QOSMaxWallDurationPerJobLimit"),
    Rule("GrpTRESMins", "group", "spent", _minutes("QOSGrp")),
    Rule("GrpTRES", "group", "tres", _memory_is_mem(_per("QOSGrp", "Limit", "Limit", ""))),
    Rule("GrpTRESRunMins", "group", "minutes", _minutes("QOSGrp", "Run")),
    Rule("MaxTRESMins", "job", "minutes", _job_minutes("QOSMax")),
    Rule("MaxTRES", "job", "tres", _per("QOSMax", "PerJobLimit", "PerJob")),
    Rule("MaxTRESPerNode", "node", "tres", _per("QOSMax", "PerNode", "PerNode")),
    Rule("MaxTRESPA", "account", "tres", _per("Max", "PerAccount", "PerAccount")),
    Rule("MaxTRESPU", "user", "tres", _per("QOSMax", "PerUserLimit", "PerUser")),
    Rule("MinTRES", "least", "tres", lambda resource: f"QOSMin{reason_word(resource)}NotSatisfied"),
)

OWN_RULES = (
    Rule("MaxJobs", "group", "jobs", "AssocMaxJobsLimit"),
    Rule("MaxWall", "job", "wall", "AssocMaxWallDurationPerJobLimit"),
    Rule("MaxTRESMins", "job", "minutes", _memory_is_mem(_job_minutes("AssocMax"))),
    Rule("MaxTRES", "job", "tres", _memory_is_mem(_per("AssocMax", "PerJobLimit", "PerJob"))),
    Rule("MaxTRESPerNode", "node", "tres", _memory_is_mem(_per("AssocMax", "PerNode", "PerNode"))),
)
"""Rules of the association of a job, which inherits the limits of those above it."""

UP_RULES = (
    Rule("GrpJobs", "group", "jobs", "AssocGrpJobsLimit"),
    Rule("GrpWall", "group", "time", "AssocGrpWallLimit"),
    Rule("GrpTRESMins", "group", "spent", _minutes("AssocGrp")),
    Rule("GrpTRES", "group", "tres", _memory_is_mem(_per("AssocGrp", "Limit", "Limit", ""))),
    Rule("GrpTRESRunMins", "group", "minutes", _minutes("AssocGrp", "Run")),
)
"""Rules of the association of a job and of all above it."""


FIRST = {"jobs", "wall", "time"}
"""Measures at which Slurm looks before it looks at resources."""

OF_PAST = ("GrpTRESMins", "GrpWall")
"""Limits of what past and running jobs have spent."""


@dataclass
class _Group:
    """The running jobs that count for some limits, and what they and past ones have spent, if that counts."""

    spent: Spent | None = None
    amounts: dict[str, float] = field(default_factory=dict)
    rows: dict[int, tuple[Amounts, int]] = field(default_factory=dict)
    """What each job has, and the end of its limit [s]."""
    known: dict[tuple[str, int], float] = field(default_factory=dict)
    """Minutes of resources at a time, until a job starts or ends."""

    def add(self, ask: Ask, now: int) -> None:
        """Add a job that has started."""
        end = now + ask.limit
        self.known.clear()
        if self.spent is not None:
            self.spent.begin(ask.row, ask.amounts, ask.factor, now)
        self.rows[ask.row] = ask.amounts, end
        for name, amount in ask.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0.0) + amount

    def remove(self, row: int, now: int) -> None:
        """Remove a job that runs no longer."""
        self.known.clear()
        if self.spent is not None:
            self.spent.end(row, now)
        amounts, _ = self.rows.pop(row)
        for name, amount in amounts.items():
            self.amounts[name] -= amount
        if not self.rows:  # what rounding leaves of a billing would hold a job for ever
            self.amounts.clear()

    def minutes(self, name: str, now: int) -> float:
        """Return an amount of all jobs, each times the minutes that are left of its limit."""
        if (name, now) not in self.known:
            seconds = 0.0
            for amounts, end in self.rows.values():
                seconds += amounts.get(name, 0.0) * max(end - now, 0)
            self.known[name, now] = seconds / MINUTE
        return self.known[name, now]


NOTHING = _Group()


class LimitBook:
    """What the running jobs of each QOS, user, account and association have, and which jobs a limit holds.

    Parameters
    ----------
    associations : Associations
        The tree of associations.
    half_life : float
        Half-life of what jobs have spent [s]; 0 for none. Default: 0.
    safe : bool
        Whether a job may start only if its limit ends before minutes of resources are spent. Default: False.

    Attributes
    ----------
    recovers : bool
        Whether a job was held by what has been spent, which time alone makes less.

    Examples
    --------
    >>> limited = Qos("limited", limits={"GrpJobs": 2, "MaxTRESPU": {"cpus": 8.0}})
    >>> book = LimitBook(Associations())
    >>> ask = lambda row, user, cpus: Ask(row, user, "", 0, (limited,), {"cpus": cpus}, 1, 600)
    >>> book.start(ask(0, "ada", 6.0), now=0)
    >>> book.reason(ask(1, "ada", 3.0), now=0), book.reason(ask(1, "ben", 3.0), now=0)
    ('QOSMaxCpuPerUserLimit', '')
    >>> book.start(ask(1, "ben", 3.0), now=0)
    >>> book.reason(ask(2, "ada", 3.0), now=0)
    'QOSGrpJobsLimit'
    """

    def __init__(self, associations: Associations, half_life: float = 0.0, *, safe: bool = False) -> None:
        self._tree, self._half_life, self._safe = associations, half_life, safe
        self.recovers = False
        self._paths = [tuple(associations.path(place)) for place in range(len(associations.each))]
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._groups_of: dict[int, list[tuple[Any, ...]]] = {}
        self._own = [self._inherited(place) for place in range(len(associations.each))]
        self._up = [
            tuple(up for up in path if any(rule.name in associations.each[up].limits for rule in UP_RULES))
            for path in self._paths
        ]

    def _inherited(self, place: int) -> Mapping[str, Any]:
        found = {rule.name: self._tree.limit(place, rule.name) for rule in OWN_RULES}
        return {name: limit for name, limit in found.items() if limit is not None}

    # --- running jobs ------------------------------------------------------------------------------------

    def start(self, ask: Ask, now: int) -> None:
        """Enter a job that has started."""
        self._groups_of[ask.row] = keys = self.groups_of(ask)
        for key in keys:
            if key not in self._groups:
                self._groups[key] = _Group(self._spent(ask, key, now))
            self._groups[key].add(ask, now)

    def _spent(self, ask: Ask, key: tuple[Any, ...], now: int) -> Spent | None:
        """Return the account of what the jobs of a group spend, if a limit counts it."""
        if key[0] == "assoc":
            limits, half_life = self._tree.each[key[1]].limits, self._half_life
        else:
            qos = next(each for each in ask.qos if each.name == key[0])
            limits, half_life = qos.limits, 0.0 if qos.keeps_usage else self._half_life
        return Spent(half_life, now) if any(name in limits for name in OF_PAST) else None

    def groups_of(self, ask: Ask) -> list[tuple[Any, ...]]:
        """Return the groups to which a job belongs while it runs."""
        keys: dict[tuple[Any, ...], None] = {("assoc", place): None for place in self._paths[ask.place]}
        for qos in ask.qos:  # the QOS of the job may be that of the partition
            keys[qos.name, "group"] = None
            keys[qos.name, "user", ask.user] = None
            keys[qos.name, "account", ask.account] = None
        return list(keys)

    def end(self, row: int, now: int) -> None:
        """Enter that a job runs no longer."""
        for key in self._groups_of.pop(row, ()):
            self._groups[key].remove(row, now)

    # --- waiting jobs ------------------------------------------------------------------------------------

    def reason(self, ask: Ask, now: int) -> str:
        """Return why a job may not start now; empty if it may."""
        return next(self._reasons(ask, now, never=False), "")

    def early_reason(self, ask: Ask, now: int) -> str:
        """Return the first reason why a job may not start at which Slurm looks before resources, if any."""
        rules = (each for each in self.rules(ask) if each[0].measure in FIRST)
        found = (
            _beyond(rule, limits[rule.name], ask, self._groups.get(key, NOTHING), now, safe=self._safe)
            for rule, limits, key in rules
        )
        return next(filter(None, found), "")

    def never(self, ask: Ask) -> str:
        """Return why a job can never start, even if no other runs; empty if it can."""
        return next(self._reasons(ask, 0, never=True), "")

    def _reasons(self, ask: Ask, now: int, *, never: bool) -> Iterator[str]:
        """Yield the reasons that hold a job, the first one first; with `never`, as if no job were running."""
        for rule, limits, key in self.rules(ask):
            group = NOTHING if never else self._groups.get(key, NOTHING)
            reason = _beyond(rule, limits[rule.name], ask, group, now, safe=self._safe)
            if reason:
                self.recovers |= group.spent is not None and rule.name in OF_PAST and group.spent.decays
                yield reason

    def rules(self, ask: Ask) -> Iterator[tuple[Rule, Mapping[str, Any], tuple[Any, ...]]]:
        """Yield the rules that hold for a job, with limits and the group that counts, in Slurm's order."""
        of_qos = [*_of_qos(ask)]
        own, each = self._own[ask.place], self._tree.each
        for early in (True, False):
            yield from (found for found in of_qos if (found[0].measure in FIRST) == early)
            for up in self._up[ask.place]:
                for rule in UP_RULES:
                    if rule.name in each[up].limits and (rule.measure in FIRST) == early:
                        yield rule, each[up].limits, ("assoc", up)
            for rule in OWN_RULES:
                if rule.name in own and (rule.measure in FIRST) == early:
                    yield rule, own, ("assoc", ask.place)


def _of_qos(ask: Ask) -> Iterator[tuple[Rule, Mapping[str, Any], tuple[Any, ...]]]:
    """Yield the rules of the QOS of a job; the first QOS that has a limit is the one that counts for it."""
    keys = {"user": ask.user, "account": ask.account}
    for rule in QOS_RULES:
        qos = next((each for each in ask.qos if rule.name in each.limits), None)
        if qos is not None:
            scope = (rule.scope, keys[rule.scope]) if rule.scope in keys else ("group",)
            yield rule, qos.limits, (qos.name, *scope)


def _beyond(rule: Rule, limit: Any, ask: Ask, group: _Group, now: int, *, safe: bool) -> str:
    """Return the reason of a rule if a job exceeds its limit together with a group; else an empty text."""
    if limit is None:
        return ""
    if rule.measure == "jobs":
        held = len(group.rows) + 1 > limit
    elif rule.measure == "wall":
        held = ask.limit > limit
    elif rule.measure == "time":
        spent = 0.0 if group.spent is None else group.spent.time(now)
        held = spent + ask.limit > limit if safe else spent >= limit
    elif rule.measure == "spent":
        return next(_minutes_beyond(rule, limit, ask, group, now, safe=safe), "")
    else:
        return next(_resources_beyond(rule, limit, ask, group, now), "")
    assert isinstance(rule.reason, str)
    return rule.reason if held else ""


def _minutes_beyond(
    rule: Rule, limits: Amounts, ask: Ask, group: _Group, now: int, *, safe: bool
) -> Iterator[str]:
    """Yield the reasons of the resources of which a group has spent its minutes.

    Running jobs may go on until their limits: to be safe, their minutes and those of the job count, too.
    """
    for name, limit in limits.items():
        own = ask.amounts.get(name, 0.0)
        spent = 0.0 if group.spent is None else group.spent.minutes(name, now)
        coming = own * ask.limit / MINUTE + group.minutes(name, now)
        if own > 0 and (spent + coming > limit if safe else spent >= limit):
            assert callable(rule.reason)
            yield rule.reason(name)


def _resources_beyond(rule: Rule, limits: Amounts, ask: Ask, group: _Group, now: int) -> Iterator[str]:
    """Yield the reasons of the resources of which a job exceeds the limit."""
    for name, limit in limits.items():
        own = ask.amounts.get(name, 0.0)
        if rule.scope == "node":
            own /= ask.nodes
        if rule.measure == "minutes":
            own *= ask.limit / MINUTE
            others = 0.0 if rule.scope in OF_JOB else group.minutes(name, now)
        else:
            others = 0.0 if rule.scope in OF_JOB else group.amounts.get(name, 0.0)
        held = own < limit if rule.scope == "least" else own > 0 and own + others > limit
        if held:
            assert callable(rule.reason)
            yield rule.reason(name)


def qos_in_order(of_job: Qos | None, of_partition: Qos | None) -> tuple[Qos, ...]:
    """Return the QOS whose limits hold for a job in a partition, the one that comes first in front."""
    found: Sequence[Qos | None] = (of_partition, of_job)
    if of_job is not None and of_job.over_partition:
        found = (of_job, of_partition)
    return tuple(each for each in found if each is not None)
