"""The arrays of a run of Slurm as configured: its configuration, its jobs and its first state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.cluster.request import Need
from hpcsimkit.compiled import needs as columns
from hpcsimkit.compiled import slurm_state as state
from hpcsimkit.compiled.on_machines import most_parts, needs_of, table_of_needs
from hpcsimkit.compiled.slurm_places import NEVER
from hpcsimkit.compiled.state import Integers, Numbers, contiguous
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.slurm.accounts import Associations
from hpcsimkit.slurm.limits import OF_JOB, Ask, LimitBook, Rule, qos_in_order
from hpcsimkit.slurm.priority import GIB, FairShare, normalised
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Multifactor, Rules
from hpcsimkit.slurm.tres import NODES

BILLING = "billing"

ENTRIES = 4
"""Number of intervals in which limits hold a job for which space is set aside; more is added when needed."""

MOST_PLACES = 2**21
"""Maximum number of machines, each for a need, at which searches go on where they ended."""

MEASURES = {
    ("tres", False): state.AMOUNT,
    ("tres", True): state.AMOUNT_OF_JOB,
    ("minutes", False): state.MINUTES,
    ("minutes", True): state.MINUTES_OF_JOB,
}
SINGLE = {"jobs": state.JOBS, "wall": state.WALL}


class Tickets(NamedTuple):
    """The jobs in each of their partitions, by job number and partition; the first ones of each job."""

    row: Integers
    part: Integers
    first: Integers
    ticket_count: Integers


def tickets_of(requests: Requests) -> Tickets:
    """Return the tickets of the jobs."""
    by_number = np.argsort(requests.numbers)
    position, part = np.nonzero(requests.admitted.T[by_number])
    row = by_number[position].astype(np.int64)
    count = requests.admitted.sum(axis=0).astype(np.int64)
    first = np.empty(len(count), dtype=np.int64)
    first[by_number] = np.cumsum(count[by_number]) - count[by_number]
    return Tickets(row, part.astype(np.int64), first, count)


def clocks_of(profile: Rules, begin: int) -> state.Clocks:
    """Return the clocks of a run that begins at a time [s]."""
    known = {*state.Clocks._fields}
    values = {name: int(value) for name, value in vars(profile.clocks).items() if name in known}
    return state.Clocks(begin=begin, calc_period=profile.priority.calc_period, **values)


def jobs_of(
    requests: Requests, tickets: Tickets, workload: Workload, need: Integers, classes: Integers
) -> state.Jobs:
    """Return the jobs."""
    names = ("submit_time", "run_time", "requested_time")
    submit_time, run_time, requested_time = (contiguous(workload.column(name)) for name in names)
    factors = {id(qos): 1.0 if qos is None else qos.usage_factor for qos in requests.qos}
    nodes = requests.asked[NODES]
    tiers = np.unique(-requests.tiers)
    return state.Jobs(
        submit_time,
        run_time,
        requested_time,
        arrival_order=workload.arrival_order.astype(np.int64),
        user=_numbered(requests.users),
        place=requests.place.astype(np.int64),
        factor=np.array([factors[id(qos)] for qos in requests.qos], dtype=np.float64),
        nodes=np.where(nodes == 0, 1.0, nodes).astype(np.float64),
        first_ticket=tickets.first,
        tickets=tickets.ticket_count,
        row=tickets.row,
        part=tickets.part,
        need=need,
        class_=classes,
        standing=requests.standing[tickets.part, tickets.row].astype(np.float64),
        billing=_billing(requests, tickets),
        tier=np.searchsorted(tiers, -requests.tiers).astype(np.int64),
    )


def _numbered(values: Sequence[Hashable]) -> Integers:
    """Return the number of each value among the distinct ones."""
    numbers: dict[Hashable, int] = {}
    for value in values:
        if value not in numbers:
            numbers[value] = len(numbers)
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.int64, count=len(values))


def _billing(requests: Requests, tickets: Tickets) -> Numbers:
    """Return the billing of what each ticket asks for; mirrors ``priority.billing_of``."""
    asked = requests.counted
    each = []
    for part in range(len(requests.names)):
        found = np.zeros(len(requests.users))
        for name, weight in (requests.weights_of(part) or {"cpus": 1.0}).items():
            amount = weight * asked.get(name, np.zeros(1)) / (GIB if name == "memory" else 1)
            found = np.maximum(found, amount) if requests.largest else found + amount
        each.append(found)
    return np.array(each)[tickets.part, tickets.row]


# --- priority ----------------------------------------------------------------------------------------------


def factors_of(rules: Multifactor, requests: Requests) -> state.Factors:
    """Return the parameters of the priority, and the tree."""
    each = requests.associations.each
    parent = np.array([one.parent for one in each], dtype=np.int64)
    depth = [0] * len(each)
    for place, one in enumerate(each):
        depth[place] = sum(1 for _ in requests.associations.path(place)) if one.parent >= 0 else 1
    children = [np.flatnonzero(parent == place) for place in range(len(each))]
    weights = [requests.weights_of(part) or {"cpus": 1.0} for part in range(len(requests.names))]
    names = [name for of_part in weights for name in of_part]
    return state.Factors(
        basic=int(rules.basic),
        fair_tree=int("NO_FAIR_TREE" not in rules.flags),
        largest=int(requests.largest),
        age=float(rules.age),
        fair_share=float(rules.fair_share),
        max_age=float(rules.max_age),
        half_life=float(rules.half_life),
        dampening=float(rules.dampening),
        parent=parent,
        is_user=np.array([bool(one.user) for one in each], dtype=np.int64),
        by_depth=np.argsort(depth, kind="stable").astype(np.int64),
        first_child=_offsets(map(len, children)),
        children=np.concatenate(children).astype(np.int64),
        shares=normalised(requests.associations, np.zeros(len(each)))[0],
        first_weight=_offsets(map(len, weights)),
        weight_of=np.array([_source(name, requests) for name in names], dtype=np.int64),
        weight=np.array([weight for of_part in weights for weight in of_part.values()], dtype=np.float64),
        unit=np.array([GIB if name == "memory" else 1 for name in names], dtype=np.float64),
    )


def _offsets(counts: Iterable[int]) -> Integers:
    """Return the position of the first element of each list among those of all, and the number of all."""
    return np.cumsum([0, *counts]).astype(np.int64)


def _source(name: str, requests: Requests, *, limited: bool = False) -> int:
    """Return the resource of machines that an amount is, or one of the codes of other amounts."""
    if name == NODES:
        return state.OF_NODES
    if name == BILLING and limited:
        return state.OF_BILLING
    return requests.resources.index(name) if name in requests.resources else state.OF_NOTHING


# --- limits ------------------------------------------------------------------------------------------------


class _Checks:
    """The checks of all classes while they are collected."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.groups: dict[Hashable, int] = {}
        self.reasons: dict[str, int] = {"": 0}
        self.rows: list[tuple[int, int, int, int]] = []
        self.limits: list[float] = []

    def add(self, rule: Rule, limit: Any, key: Hashable) -> None:
        """Add the checks of a rule; mirrors ``limits._beyond``."""
        if limit is None:
            return
        of_job = rule.scope in OF_JOB
        if rule.measure in SINGLE:
            assert isinstance(rule.reason, str)
            self._add(SINGLE[rule.measure], -1, -1 if of_job else self._group(key), rule.reason, limit)
            return
        measure = MEASURES[rule.measure, of_job]
        measure = {"node": state.PER_NODE, "least": state.LEAST}.get(rule.scope, measure)
        for name, amount in limit.items():
            assert callable(rule.reason)
            number = self.names.setdefault(name, len(self.names))
            self._add(measure, number, -1 if of_job else self._group(key), rule.reason(name), amount)

    def _group(self, key: Hashable) -> int:
        return self.groups.setdefault(key, len(self.groups))

    def _add(self, measure: int, name: int, group: int, reason: str, limit: float) -> None:
        self.rows.append((measure, name, group, self.reasons.setdefault(reason, len(self.reasons))))
        self.limits.append(float(limit))


class _Known(NamedTuple):
    """The checks of some classes, and where those of each class begin."""

    profile: Rules
    associations: Associations
    asks: list[Ask]
    checks: _Checks
    first_check: Integers
    first_group: Integers
    groups: list[int]


LAST: list[_Known] = []
"""The last checks of this process: those of the futures of one moment are the same ones."""


def _known_checks(profile: Rules, associations: Associations, asks: list[Ask]) -> _Known:
    """Return the checks of classes, each of which is given by one of its tickets."""
    for last in LAST:
        same = last.profile is profile and last.associations == associations
        if same and last.asks == asks:
            return last
    found, counts, members = _Checks(), [], []
    book = LimitBook(associations)
    for ask in asks:
        before = len(found.rows)
        for rule, limits, key in book.rules(ask):
            found.add(rule, limits[rule.name], key)
        counts.append(len(found.rows) - before)
        members.append(book.groups_of(ask))
    known = [[found.groups[key] for key in keys if key in found.groups] for keys in members]
    groups = [group for each in known for group in each]
    LAST[:] = [
        _Known(profile, associations, asks, found, _offsets(counts), _offsets(map(len, known)), groups)
    ]
    return LAST[0]


def limits_of(
    profile: Rules, requests: Requests, tickets: Tickets, first: Integers
) -> tuple[state.Limits, list[str]]:
    """Return the limits, and the reasons by their numbers.

    Parameters
    ----------
    profile : Rules
        The configuration.
    requests : Requests
        The jobs.
    tickets : Tickets
        The tickets.
    first : array of int64, shape (classes,)
        The first ticket of each class.
    """
    asks = [_ask(requests, *each) for each in zip(tickets.row[first], tickets.part[first], strict=True)]
    if not profile.limits:
        asks = [ask._replace(place=0, qos=()) for ask in asks]
        known = _known_checks(profile, Associations(), asks)
    else:
        known = _known_checks(profile, requests.associations, asks)
    found = known.checks
    jobs, groups, names = len(requests.users), len(found.groups), list(found.names)
    asked = [requests.counted.get(name, np.zeros(jobs)) for name in names]
    made = state.Limits(
        first_check=known.first_check,
        checks=np.array(found.rows, dtype=np.int64).reshape(-1, 4),
        limit=np.array(found.limits, dtype=np.float64),
        first_group=known.first_group,
        groups=np.array(known.groups, dtype=np.int64),
        source=np.array([_source(name, requests, limited=True) for name in names], dtype=np.int64),
        asked=np.array(asked, dtype=np.float64).reshape(len(names), jobs),
        running=np.zeros((groups, len(names))),
        minutes=np.zeros((groups, len(names))),
        jobs=np.zeros(groups, dtype=np.int64),
        counted_at=np.full(groups, -NEVER, dtype=np.int64),
        has=np.zeros((len(names), jobs)),
        **_watching(known, groups),
    )
    return made, list(found.reasons)


def _watching(known: _Known, groups: int) -> dict[str, Integers]:
    """Return the classes that are checked against each group, and those for which time matters, too."""
    of_class = np.repeat(np.arange(len(known.asks)), np.diff(known.first_check))
    checks = np.array(known.checks.rows, dtype=np.int64).reshape(-1, 4)
    group = checks[:, state.GROUP]
    pairs = np.unique(np.stack([group, of_class], axis=1)[group >= 0], axis=0)
    changed_at = np.zeros(len(known.asks), dtype=np.int64)
    changed_at[of_class[checks[:, state.MEASURE] == state.MINUTES]] = NEVER
    return {
        "first_watching": _offsets(np.bincount(pairs[:, 0], minlength=groups).tolist()),
        "watching": pairs[:, 1].astype(np.int64),
        "changed_at": changed_at,
    }


def _ask(requests: Requests, row: int, part: int) -> Ask:
    """Return a job in a partition without its row and amounts: what all of a class have in common."""
    qos = qos_in_order(requests.qos[row], requests.qos_of_part[part])
    return Ask(0, requests.users[row], requests.accounts[row], int(requests.place[row]), qos, {}, 1.0, 1)


def classes_of(requests: Requests, tickets: Tickets) -> tuple[Integers, Integers]:
    """Return the class of each ticket, and the first ticket of each class.

    Tickets of a class have association, user, account, QOS and partition in common; a job has the association
    of the first partition that it names.
    """
    key = tickets.part
    for values in (
        _numbered(requests.users),
        _numbered(requests.accounts),
        requests.place.astype(np.int64),
        _numbered([None if qos is None else qos.name for qos in requests.qos]),
    ):
        key = key * (int(values.max(initial=0)) + 1) + values[tickets.row]
    _, first, classes = np.unique(key, return_index=True, return_inverse=True)
    return classes.astype(np.int64), first.astype(np.int64)


# --- machines ----------------------------------------------------------------------------------------------


class Places(NamedTuple):
    """The needs of tickets, and their parts.

    Attributes
    ----------
    need : array of int64, shape (tickets,)
        Number of the need of each ticket.
    needs : list of (Need, int)
        The distinct needs, each with a partition.
    most : array of int64, shape (tickets,)
        Maximum number of parts of an allocation.
    """

    need: Integers
    needs: list[tuple[Need, int]]
    most: Integers


def places_of(workload: Workload, partitions: Partitions, tickets: Tickets) -> Places:
    """Return the needs of the tickets."""
    assert partitions.machines is not None
    needs, numbers = needs_of(workload, partitions.machines)
    parts = len(partitions.parts)
    distinct, need = np.unique(numbers[tickets.row] * parts + tickets.part, return_inverse=True)
    each = [(needs[pair // parts], pair % parts) for pair in distinct.tolist()]
    return Places(need.astype(np.int64), each, most_parts(needs, numbers)[tickets.row])


def steps_of(places: Places, machines: int, tested: int) -> int:
    """Return the maximum number of steps of a plan; `tested` jobs have a place in it at most, 0 for all."""
    running, planned = int(places.most.sum()), np.sort(places.most)
    if tested:
        planned = planned[-tested:]
    return 2 * (machines + running) + 4 * int(planned.sum())


def nodes_of(places: Places, partitions: Partitions, steps: int) -> state.Nodes:
    """Return the empty machines; the first masks are those of the partitions."""
    machines = partitions.machines
    assert machines is not None
    (count, resources), masks, of_needs = machines.capacity.shape, _masks(partitions), []
    number_of = {mask.tobytes(): number for number, mask in reversed([*enumerate(masks)])}
    for need, part in places.needs:
        mask = masks[part] if need.allowed is None else masks[part] & need.allowed
        number = number_of.setdefault(mask.tobytes(), len(masks))
        if number == len(masks):
            masks.append(mask)
        of_needs.append(number)
    table = table_of_needs([need for need, _ in places.needs], len(machines.resources))
    table[:, columns.MASK] = of_needs
    levels = np.zeros((2, count, resources), dtype=np.int64)
    levels[columns.EMPTY] = levels[columns.NOW] = machines.capacity
    members = [np.flatnonzero(mask) for mask in masks]
    slots = max(min(len(places.needs), MOST_PLACES // max(count, 1)), 1)
    counters = np.zeros(state.NODE_COUNTERS, dtype=np.int64)
    counters[state.POOLED] = int(table[:, columns.SPREAD].any())
    return state.Nodes(
        columns.Levels(
            levels, table, np.zeros((0, count), dtype=np.uint8), np.zeros(resources, dtype=np.int64)
        ),
        first_member=_offsets(map(len, members)),
        members=np.concatenate(members).astype(np.int64),
        steps=np.empty((steps, state.LEVEL + resources), dtype=np.int64),
        tail=np.zeros(count, dtype=np.int64),
        sought=np.zeros(count, dtype=np.int64),
        smallest=np.zeros(count, dtype=np.int64),
        slots=np.array([[0]] * 3 + [[-1]]).repeat(slots, axis=1).astype(np.int64),
        place=np.empty((slots, count), dtype=np.int64),
        found=np.empty((slots, count), dtype=np.int64),
        known=np.zeros((4, state.KNOWN * len(masks)), dtype=np.int64),
        latest=np.zeros(len(masks), dtype=np.int64),
        equal=np.zeros((4, len(places.needs)), dtype=np.int64),
        chosen=np.zeros((count, 1 + resources), dtype=np.int64),
        wanted=np.zeros(resources, dtype=np.int64),
        missing=np.zeros(resources, dtype=np.int64),
        least=np.zeros((count, resources), dtype=np.int64),
        planned=np.empty((3, steps), dtype=np.int64),
        first_planned=np.full(count, -1, dtype=np.int64),
        edges=np.empty(2 * steps, dtype=np.int64),
        enough=np.zeros((slots, count), dtype=np.int64),
        enough_at=np.zeros((slots, count), dtype=np.int64),
        seen=np.zeros((6, count), dtype=np.int64),
        shut=np.zeros(count, dtype=np.uint8),
        fits=np.full((3, len(places.needs)), -1, dtype=np.int64),
        late=np.zeros((2, len(places.needs)), dtype=np.int64),
        is_member=np.array(masks, dtype=np.uint8),
        changed_at=np.zeros(count, dtype=np.int64),
        lacking=np.zeros(count, dtype=np.int64),
        fuller=np.zeros(count, dtype=np.uint8),
        roomier=np.zeros(count, dtype=np.int64),
        roomier_at=np.zeros(count, dtype=np.int64),
        planned_as=np.zeros(steps, dtype=np.int64),
        plans=np.zeros((2, 4, steps), dtype=np.int64),
        plan_parts=np.empty((2, steps), dtype=np.int64),
        counters=counters,
    )


def _masks(partitions: Partitions) -> list[NDArray[np.bool_]]:
    """Return the machines of each partition as masks."""
    assert isinstance(partitions.whole, Machines)
    masks = []
    for view in partitions.views:
        mask = np.zeros(len(partitions.whole), dtype=np.bool_)
        mask[view.numbers] = True
        masks.append(mask)
    return masks


# --- the run -----------------------------------------------------------------------------------------------


def new_run(
    clocks: state.Clocks,
    jobs: state.Jobs,
    associations: Associations,
    rules: Multifactor,
    most: Integers,
    nodes: state.Nodes,
) -> state.Run:
    """Return the state before the first event; each ticket has the given number of parts at most."""
    count, tickets, all_places = len(jobs.run_time), len(jobs.row), len(associations.each)
    parts, users = len(jobs.tier), int(jobs.user.max(initial=0)) + 1
    _, machines, resources = nodes.levels.levels.shape
    parts_of_jobs = np.zeros(count, dtype=np.int64)
    np.maximum.at(parts_of_jobs, jobs.row, most)
    counters = np.zeros(state.COUNTERS, dtype=np.int64)
    counters[state.MAIN_AT] = clocks.begin - clocks.sched_min_interval
    counters[state.CALCULATED_AT] = counters[state.USED_AT] = clocks.begin
    counters[[state.CHANGED, state.UNPLANNED, state.UNSEEN_SOME]] = 1
    counters[[state.FIRST_RUNNING, state.LAST_RUNNING]] = -1
    counters[state.ASKED] = -1
    fair = FairShare(associations, rules).factors(np.zeros(all_places))
    return state.Run(
        start_time=np.full(count, -1, dtype=np.int64),
        part=np.full(count, -1, dtype=np.int64),
        class_=np.full(count, -1, dtype=np.int64),
        mode=np.zeros(count, dtype=np.uint8),
        state=np.zeros(count, dtype=np.uint8),
        ends=np.empty((3, count + 1), dtype=np.int64),
        expected=np.empty((2, count + 1), dtype=np.int64),
        running=np.full((2, count), -1, dtype=np.int64),
        first=np.zeros(count, dtype=np.int64),
        part_count=np.zeros(count, dtype=np.int64),
        parts=np.empty((int(parts_of_jobs.sum()), 1 + resources), dtype=np.int64),
        events=np.empty(2 * count, dtype=np.int64),
        key=np.zeros(tickets, dtype=np.int64),
        listed=np.empty(tickets, dtype=np.int64),
        other=np.empty(tickets, dtype=np.int64),
        checked=np.full(tickets, -1, dtype=np.int64),
        held=np.zeros(tickets, dtype=np.int64),
        since=np.zeros(count, dtype=np.int64),
        reason=np.zeros(count, dtype=np.int64),
        log=np.empty((4, ENTRIES * count + 1), dtype=np.int64),
        rate=np.zeros(all_places),
        raw=np.zeros(all_places),
        billing=np.zeros(count),
        level=np.zeros(all_places),
        used=np.zeros(all_places),
        whole=np.zeros(all_places),
        fair=fair.astype(np.float64),
        stack=np.zeros((4, all_places + 1), dtype=np.int64),
        closed=np.zeros(machines, dtype=np.uint8),
        blocked=np.zeros(parts, dtype=np.int64),
        seen=np.zeros(parts, dtype=np.int64),
        of_part=np.zeros(parts, dtype=np.int64),
        of_user=np.zeros(users, dtype=np.int64),
        of_place=np.zeros(all_places, dtype=np.int64),
        of_user_part=np.zeros(users * parts, dtype=np.int64),
        counters=counters,
    )


def with_space(run: state.Run) -> state.Run:
    """Return the same state with a log that is twice as long."""
    return run._replace(log=np.concatenate([run.log, np.empty_like(run.log)], axis=1))
