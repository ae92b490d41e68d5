"""Slurm as configured: the configuration, the jobs and the state of a run as arrays.

A *ticket* is a job in one of its partitions. Tickets are numbered by job number and then by partition, so
that those of a job follow each other. A *class* is a set of tickets that the same limits hold.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.attempts import Attempts, RestartRules
from hpcsimkit.compiled.needs import Levels
from hpcsimkit.compiled.state import Integers, Numbers

UNSEEN, WAITING, RUNS, DONE, REJECTED = cast(tuple[int, ...], tuple(map(np.int64, range(5))))
"""States of jobs, as in :class:`~hpcsimkit.kernel.ledger.State`."""

STOPPED = cast(int, np.int64(5))
"""State of a job that was stopped, and waits again later."""

(
    JOBS_WAITING,
    RUNNING,
    STARTED,
    ARRIVED,
    JUDGED,
    PASSES,
    PARTS,
    EVENTS,
    LOGGED,
    LISTED,
    MAIN_AT,
    CALCULATED_AT,
    NEXT_PASS,
    CHANGED,
    UNPLANNED,
    UNSEEN_SOME,
    UNSORTED,
    ACTING,
    FAILED,
    GIVEN,
    GIVEN_LEFT,
    USED_AT,
    FIRST_RUNNING,
    LAST_RUNNING,
    NOW_AT,
    ASKED,
    FIRST_ASKED,
    LAST_ASKED,
    PAUSES,
    COUNTERS,
) = range(30)
"""Positions in :attr:`Run.counters`."""

OF_NODES, OF_BILLING, OF_NOTHING = -1, -2, -3
"""What a limited amount of a running job is, if it is no resource of machines: see :attr:`Limits.source`."""

JOBS, WALL, AMOUNT, AMOUNT_OF_JOB, PER_NODE, LEAST, MINUTES, MINUTES_OF_JOB = range(8)
"""Measures of limits."""

MEASURE, NAME, GROUP, REASON = range(4)
"""Columns of :attr:`Limits.checks`."""


class Clocks(NamedTuple):
    """The clocks; see :class:`~hpcsimkit.slurm.rules.Clocks`."""

    begin: int
    calc_period: int
    bf_interval: int
    bf_resolution: int
    bf_window: int
    bf_max_job_test: int
    bf_max_job_part: int
    bf_max_job_user: int
    bf_max_job_user_part: int
    bf_max_job_assoc: int
    bf_max_job_start: int
    default_queue_depth: int
    partition_job_depth: int
    sched_interval: int
    sched_min_interval: int
    defer: int
    end_groups: int


class Jobs(NamedTuple):
    """The jobs and their tickets.

    Attributes
    ----------
    submit_time, run_time, requested_time, arrival_order : array of int64, shape (jobs,)
        Columns of the workload, and rows in the order of submission.
    user, place : array of int64, shape (jobs,)
        Number of the user, and of the association.
    factor : array of float64, shape (jobs,)
        Factor of the usage.
    nodes : array of float64, shape (jobs,)
        Number of nodes that limits count.
    first_ticket, tickets : array of int64, shape (jobs,)
        First ticket of each job, and their number.
    row, part, need, class_ : array of int64, shape (tickets,)
        Job, partition, need and class of each ticket.
    standing, billing : array of float64, shape (tickets,)
        Constant part of the priority, and billing of what the job asks for.
    tier : array of int64, shape (partitions,)
        Rank of each partition by its tier, the highest tier first.
    """

    submit_time: Integers
    run_time: Integers
    requested_time: Integers
    arrival_order: Integers
    user: Integers
    place: Integers
    factor: Numbers
    nodes: Numbers
    first_ticket: Integers
    tickets: Integers
    row: Integers
    part: Integers
    need: Integers
    class_: Integers
    standing: Numbers
    billing: Numbers
    tier: Integers


class Factors(NamedTuple):
    """The parameters of the priority and the tree of associations.

    Attributes
    ----------
    basic, fair_tree, largest : int
        Whether all priorities are equal; whether fair share is that of the fair tree; whether the billing is
        the largest of the weighted resources, not their sum.
    age, fair_share, max_age, half_life, dampening : float
        Parameters, see :class:`~hpcsimkit.slurm.rules.Multifactor`.
    parent, is_user, by_depth : array of int64, shape (associations,)
        Place above each association, -1 for the root; whether it is a user; places from the root on.
    first_child : array of int64, shape (associations + 1,)
        Position of the first child of each association among all.
    children : array of int64
        Children of the associations, one after the other.
    shares : array of float64, shape (associations,)
        Shares among siblings, relative to their sum.
    first_weight : array of int64, shape (partitions + 1,)
        Position of the first weight of the billing of each partition.
    weight_of : array of int64
        Resource of each weight, or one of the codes above.
    weight, unit : array of float64
        Weights, and what their resources are divided by.
    """

    basic: int
    fair_tree: int
    largest: int
    age: float
    fair_share: float
    max_age: float
    half_life: float
    dampening: float
    parent: Integers
    is_user: Integers
    by_depth: Integers
    first_child: Integers
    children: Integers
    shares: Numbers
    first_weight: Integers
    weight_of: Integers
    weight: Numbers
    unit: Numbers


class Limits(NamedTuple):
    """The limits of QOS and associations, and what running jobs have.

    Attributes
    ----------
    first_check : array of int64, shape (classes + 1,)
        Position of the first check of each class among all.
    checks : array of int64, shape (checks, 4)
        Measure, limited amount, group of running jobs that count (-1: none) and reason of each check.
    limit : array of float64, shape (checks,)
        The limits.
    first_group : array of int64, shape (classes + 1,)
        Position of the first group of each class.
    groups : array of int64
        Groups to which a job of a class belongs while it runs.
    source : array of int64, shape (amounts,)
        Resource of each limited amount, or one of the codes above.
    asked : array of float64, shape (amounts, jobs)
        Amounts that jobs ask for; the billing depends on the partition.
    running, minutes : array of float64, shape (groups, amounts)
        Amounts of the running jobs of a group; the same times the minutes left.
    jobs, counted_at : array of int64, shape (groups,)
        Number of running jobs; time for which `minutes` hold.
    has : array of float64, shape (amounts, jobs)
        Amounts of each running job.
    first_watching : array of int64, shape (groups + 1,)
        Position of the first class that is checked against each group among all.
    watching : array of int64
        Classes that are checked against each group, one after the other.
    changed_at : array of int64, shape (classes,)
        Number of events at the last change of a group against which each class is checked; after all events
        if a check depends on the time.
    """

    first_check: Integers
    checks: Integers
    limit: Numbers
    first_group: Integers
    groups: Integers
    source: Integers
    asked: Numbers
    running: Numbers
    minutes: Numbers
    jobs: Integers
    counted_at: Integers
    has: Numbers
    first_watching: Integers
    watching: Integers
    changed_at: Integers


class Run(NamedTuple):
    """The state of a run.

    Attributes
    ----------
    start_time, part, class_ : array of int64, shape (jobs,)
        Start [s], partition and class of each job; -1 before.
    mode, state : array of uint8, shape (jobs,)
        Mode of each start, and state of each job.
    ends : array of int64, shape (3, jobs + 1)
        Running jobs by end, see :class:`~hpcsimkit.compiled.state.Run`.
    expected : array of int64, shape (2, jobs + 1)
        Expected end [s] and row of the running jobs, in this order.
    running : array of int64, shape (2, jobs)
        The running job that started after each one, and before it; -1 for none.
    first, part_count : array of int64, shape (jobs,)
        First part of the allocation of each job, and number of parts.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part.
    events : array of int64, shape (2 * jobs,)
        Starts (rows) and ends (complements of rows) in chronological order.
    key, listed, other : array of int64, shape (tickets,)
        Key of each ticket in the order, the smallest first; the waiting tickets in order; space to sort them.
    checked, held : array of int64, shape (tickets,)
        Number of events at which it was found whether limits hold each ticket, and the reason.
    since, reason : array of int64, shape (jobs,)
        Time since when a limit holds each job [s], and its reason; 0 for none.
    log : array of int64, shape (4, entries)
        Row, beginning, end and reason of each interval in which a limit held a job.
    rate, raw, billing : array of float64
        Rate and amount of the usage of each association; usage per second of each running job.
    level, used, whole, fair : array of float64, shape (associations,)
        Space to compute the fair share, and the fair share.
    stack : array of int64, shape (4, associations + 1)
        Space to visit the tree.
    closed : array of uint8, shape (machines,)
        Whether a main loop has closed each machine.
    blocked, seen, of_part : array of int64, shape (partitions,)
        Whether a main loop has closed each partition; number of jobs that a loop has looked at in each.
    of_user, of_place, of_user_part : array of int64
        Numbers of jobs that a backfill has tested, by user, by association, and by user and partition.
    counters : array of int64
        At the positions named above. ``ASKED`` of the jobs from the row ``FIRST_ASKED`` to that before
        ``LAST_ASKED`` still wait, and the run is over once none of them does; if it is negative, the run
        goes on to the end. ``PAUSES``: it pauses before the first pass of the policy after a past.
    """

    start_time: Integers
    part: Integers
    class_: Integers
    mode: NDArray[np.uint8]
    state: NDArray[np.uint8]
    ends: Integers
    expected: Integers
    running: Integers
    first: Integers
    part_count: Integers
    parts: Integers
    events: Integers
    key: Integers
    listed: Integers
    other: Integers
    checked: Integers
    held: Integers
    since: Integers
    reason: Integers
    log: Integers
    rate: Numbers
    raw: Numbers
    billing: Numbers
    level: Numbers
    used: Numbers
    whole: Numbers
    fair: Numbers
    stack: Integers
    closed: NDArray[np.uint8]
    blocked: Integers
    seen: Integers
    of_part: Integers
    of_user: Integers
    of_place: Integers
    of_user_part: Integers
    counters: Integers


class Nodes(NamedTuple):
    """The machines, and the plan of a backfill: their levels as running jobs end, and planned places.

    The levels are a list of steps for each machine, the first one of which has its number. With pooled
    requests, a second list of each has the level beside planned places.

    Attributes
    ----------
    levels : Levels
        Levels of the machines, and the needs of tickets.
    first_member : array of int64, shape (masks + 1,)
        Position of the first machine of each mask.
    members : array of int64
        Machines of the masks.
    steps : array of int64, shape (steps, 2 + resources)
        Beginning of each step [s], the next step of its machine, -1 for none, and the available amounts.
    tail, sought, smallest : array of int64, shape (machines,)
        Last step of each machine while the plan is made; last search in which the first time from which it
        has enough was found; space for the smallest of these times.
    slots : array of int64, shape (4, slots)
        Epoch, need and length of the last search for a need, in the slot of the need; and the need to which
        `enough` belongs.
    place, found : array of int64, shape (slots, machines)
        Part on each machine after which the next search goes on, -1 for the beginning, and a time before
        which it has not enough [s].
    known : array of int64, shape (4, 16 * masks)
        Places that were found for requests of each mask: number of the backfill, need, length and beginning
        [s].
    latest : array of int64, shape (masks,)
        Position after that of the last one.
    equal : array of int64, shape (4, needs)
        Number of the backfill, length and beginning [s] of the last planned place of each need, in the rows
        of `known`.
    chosen : array of int64, shape (machines, 1 + resources)
        Machine and amounts of each part of the allocation that was found.
    wanted, missing : array of int64, shape (resources,)
        Amounts that a request wants of each machine, and that a pooled one still lacks.
    least : array of int64, shape (machines, resources)
        Space for what is available throughout a time, or once some jobs have ended.
    planned : array of int64, shape (3, parts)
        Beginning and end [s] of the parts of planned places, each of which has its machine for itself, and
        the following part on the same machine, -1 for none.
    first_planned : array of int64, shape (machines,)
        First part on each machine, -1 for none.
    edges : array of int64, shape (2 * parts,)
        Beginnings and ends of planned parts, sorted [s].
    enough : array of int64, shape (slots, machines)
        Time from which each machine has enough for a node of a need, as running jobs end [s]; 0 if it has.
    enough_at : array of int64, shape (slots, machines)
        Number of changes of the free machines at which that was found.
    seen : array of int64, shape (6, machines)
        Number of each machine of a need, that time, the first end of a running job, and the next planned
        part, its beginning and its end [s].
    shut : array of uint8, shape (machines,)
        Whether a planned job may not use each machine for some time.
    fits : array of int64, shape (3, needs)
        Number of changes of the free machines at which it was found whether each need fits them, the answer,
        and the first machine that was chosen.
    late : array of int64, shape (2, needs)
        Number of the last backfill in which each need had no place now, and the shortest length of those.
    is_member : array of uint8, shape (masks, machines)
        Whether each machine belongs to each mask.
    changed_at : array of int64, shape (machines,)
        Number of changes of the free machines at the last one of each.
    lacking : array of int64, shape (machines,)
        Number of things that each machine had in the last plan and lacks now.
    fuller : array of uint8, shape (machines,)
        Whether each machine may have more than in the last plan.
    roomier, roomier_at : array of int64, shape (machines,)
        Numbers of the machines that lack anything, and their positions.
    planned_as : array of int64, shape (steps,)
        Place of each ticket in the last plan that has one.
    plans : array of int64, shape (2, 4, steps)
        The last plan and the one that is made: ticket, beginning [s], first machine and first planned part of
        each place.
    plan_parts : array of int64, shape (2, steps)
        Machines of these places.
    counters : array of int64, shape (27,)
        Numbers of steps, of the backfill, of machines that were chosen, of smallest times, of changes of the
        free machines, and of the search; the need of a lesser request with a late place; the number of
        planned parts; the epoch, which begins with a backfill or a start in one; the first step of the second
        lists; and whether there are any. Then which of the two plans is made; numbers of places of the last
        one and of the one that is made; whether all places so far are those of the last one, which then is
        the one that is made; the time before which its places begin [s]; number of places of the last one
        that have been looked at; number of machines that lack anything; number of changes of the free
        machines when it began; the times before which places of the backfill, and those of the last plan,
        begin [s]; and number of ends between them. Last, the position of the candidate that was checked last,
        the first beginning planned since then [s], the last machine of its place, and the time of the plan
        [s].
    """

    levels: Levels
    first_member: Integers
    members: Integers
    steps: Integers
    tail: Integers
    sought: Integers
    smallest: Integers
    slots: Integers
    place: NDArray[np.int64]
    found: NDArray[np.int64]
    known: Integers
    latest: Integers
    equal: Integers
    chosen: Integers
    wanted: Integers
    missing: Integers
    least: Integers
    planned: Integers
    first_planned: Integers
    edges: Integers
    enough: NDArray[np.int64]
    enough_at: NDArray[np.int64]
    seen: Integers
    shut: NDArray[np.uint8]
    fits: Integers
    late: Integers
    is_member: NDArray[np.uint8]
    changed_at: Integers
    lacking: Integers
    fuller: NDArray[np.uint8]
    roomier: Integers
    roomier_at: Integers
    planned_as: Integers
    plans: NDArray[np.int64]
    plan_parts: Integers
    counters: Integers


AT, NEXT, LEVEL = range(3)
"""Columns of :attr:`Nodes.steps`; the amounts are the last ones."""

BEGIN, END, FOLLOWING = range(3)
"""Rows of :attr:`Nodes.planned`."""

MACHINE, ENOUGH, ENDS, PART, FREE_UNTIL, TAKEN_UNTIL = range(6)
"""Rows of :attr:`Nodes.seen`."""

(
    STEPS,
    BACKFILL,
    CHOSEN,
    KEPT,
    CHANGES,
    SEARCH,
    LIKE,
    PLANNED,
    EPOCH,
    SECOND,
    POOLED,
    LAST_PLAN,
    LAST_PLANNED,
    NEW_PLANNED,
    ALIKE,
    PLAN_BEFORE,
    LOOKED_AT,
    ROOMIER,
    PLAN_CHANGES,
    BEFORE,
    LAST_BEFORE,
    LATE_ENDS,
    CHECKED,
    SOONEST,
    WITNESS,
    PLAN_AT,
    NODE_COUNTERS,
) = range(27)
"""Positions in :attr:`Nodes.counters`."""

TICKET, SINCE, FIRST_PART, FIRST_PLANNED = range(4)
"""Rows of each of :attr:`Nodes.plans`."""

PASS, REQUEST, LENGTH, BEGINNING = range(4)
"""Rows of :attr:`Nodes.known`, the first ones also of :attr:`Nodes.slots`."""

ENOUGH_FOR = 3
"""Row of :attr:`Nodes.slots` besides."""

KNOWN = 16
"""Number of places that a backfill remembers for each mask."""


class Past(NamedTuple):
    """The starts that are given before the policy takes over; see :class:`~hpcsimkit.kernel.begun.Begun`.

    Attributes
    ----------
    at : int
        Time at which the policy takes over [s]; before all events without a past.
    strict : int
        Whether a job that does not fit at its start is an error.
    rows, start, ticket : array of int64, shape (starts,)
        Jobs in the order of their starts, the starts [s] and the tickets.
    first, part_count : array of int64, shape (starts,)
        First part of each given allocation, and number of parts; 0 if none is given.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part.
    rejected : array of uint8, shape (jobs,)
        Jobs that neither start nor wait.
    due : array of uint8, shape (starts,)
        Whether each start is due, and has not taken place.
    """

    at: int
    strict: int
    rows: Integers
    start: Integers
    ticket: Integers
    first: Integers
    part_count: Integers
    parts: Integers
    rejected: NDArray[np.uint8]
    due: NDArray[np.uint8]


class Preemption(NamedTuple):
    """Which jobs may be stopped for others, in which order, and what becomes of them.

    Jobs have classes: the tiers of the partitions in which they are, or their QOS.

    Attributes
    ----------
    by_tier : int
        Whether the classes are tiers.
    accrues : int
        Whether the age of a job that was stopped goes on (``ACCRUE_ALWAYS``).
    completing : int
        Time from the end of a killed job until its machines take others [s]; 0 for none.
    sets : int
        Number of weights of machines.
    may : array of uint8, shape (classes, classes)
        Whether jobs of a class may stop those of another one.
    kind : array of int64, shape (jobs,)
        Number of the QOS of each job.
    rank : array of int64, shape (classes,)
        Rank of each class; jobs of the lowest one are stopped first.
    requeues : array of uint8, shape (QOS, partitions)
        Whether a job of each QOS waits again once it is stopped in each partition.
    protected : array of uint8, shape (partitions,)
        Partitions whose jobs are never stopped.
    set_of : array of int64, shape (machines,)
        Rank of the weight of each machine, the lowest one first.
    record : array of int64, shape (tickets,)
        Record of each ticket in Slurm's queue: those of an array in a partition have one.
    """

    by_tier: int
    accrues: int
    completing: int
    sets: int
    may: NDArray[np.uint8]
    kind: Integers
    rank: Integers
    requeues: NDArray[np.uint8]
    protected: NDArray[np.uint8]
    set_of: Integers
    record: Integers


class Stops(NamedTuple):
    """The state of what stops jobs, and of the jobs that were stopped.

    Attributes
    ----------
    rules : Preemption
        Rules by which jobs may be stopped.
    restart : RestartRules
        Rules of jobs that were stopped, which begin anew.
    attempts : Attempts
        The attempts of the jobs.
    places : array of int64, shape (3, stops)
        First part of the allocation of each attempt that was stopped, number of parts, and partition.
    first_start : array of int64, shape (jobs,)
        Start of the first attempt of each job [s]; -1 before.
    given_up : array of int64, shape (jobs,)
        End of the last attempt of each job that starts no more though it was stopped [s]; -1 for others.
    present : array of int64, shape (classes,)
        Number of running jobs of each class that may be stopped.
    until, waits : array of int64, shape (machines,) and (jobs,)
        Time until which each machine takes no job as others are being ended there, and until which each job
        waits for those that it has stopped [s].
    shut : array of uint8, shape (machines,)
        Machines that the job for which others may be stopped cannot use now.
    candidates, overlap : array of int64, shape (jobs,)
        The running jobs that may be stopped for a job, and how many of its machines each has.
    marked : array of uint8, shape (machines,)
        Space for marks of the machines that were found.
    chosen : array of int64, shape (machines, 1 + resources)
        Space for the allocation that was chosen before.
    rejoined : array of int64, shape (jobs,)
        Jobs that wait again since the last pass.
    rank, follows : array of int64, shape (tickets,)
        Position of each ticket in the order by keys, and the next ticket of its record, -1 for none.
    merged : array of int64, shape (tickets,)
        Space to sort tickets.
    last_of, listed_at : array of int64, shape (records,)
        Last ticket of each record in the queue, and number of the order for which it is known.
    wait : array of uint8, shape (classes,)
        Whether jobs of each class wait.
    counters : array of int64
        At the positions named below: number of jobs that wait again since the last pass; whether jobs have
        been stopped since the plan was made, which holds them still, and since it was looked at for
        candidates; number of changes of the free machines when it was made; number of orders; and the largest
        number of parts that all tickets have together.
    """

    rules: Preemption
    restart: RestartRules
    attempts: Attempts
    places: Integers
    first_start: Integers
    given_up: Integers
    present: Integers
    until: Integers
    waits: Integers
    shut: NDArray[np.uint8]
    candidates: Integers
    overlap: Integers
    marked: NDArray[np.uint8]
    chosen: Integers
    rejoined: Integers
    rank: Integers
    follows: Integers
    merged: Integers
    last_of: Integers
    listed_at: Integers
    wait: NDArray[np.uint8]
    counters: Integers


REJOINED, OUTDATED, NEWS, PLANNED_AT, ORDERS, MOST_PARTS, STOP_COUNTERS = range(7)
"""Positions in :attr:`Stops.counters`."""
