"""Deliberately naive simulators: plain lists, everything recomputed at every instant, straight from the rules.

Slow on purpose and free of the kit's code: what they agree on with the kit is not a shared mistake.
A job is a tuple ``(submit, run, estimate, nodes)``; all functions return the start times in the order given.
"""

from __future__ import annotations

Row = tuple[int, int, int, int]


def _clock(jobs, schedule, due=list, edges=()):
    """Visit each instant with an event: ends, submissions, one pass; again while zero-length jobs end there."""
    now = -1
    starts = [None] * len(jobs)
    ends = {}
    unseen = sorted(range(len(jobs)), key=lambda j: jobs[j][0])
    waiting = []
    while unseen or waiting or ends:
        instants = [*ends.values(), *(jobs[j][0] for j in unseen), *due()]
        instants += [at for at in edges if at > now]
        now = min(instants)
        ended = [j for j in ends if ends[j] == now]
        for j in ended:
            del ends[j]
        arrived = [j for j in unseen if jobs[j][0] == now]
        unseen = [j for j in unseen if jobs[j][0] != now]
        waiting += arrived
        for j in schedule(now, waiting, ended, arrived, starts, list(ends)):
            starts[j] = now
            ends[j] = now + jobs[j][1]
            waiting.remove(j)
    return starts


def easy(
    jobs: list[Row],
    size: int,
    key=lambda job: job[0],
    backfill: bool = True,
    *,
    score=None,
    window: int | None = None,
    correct=None,
) -> list[int]:
    """EASY, first fit in the order of `key`; without `backfill`, strictly in that order.

    The order may be given by ``score(job, now)`` instead. The head is the first of the `window` jobs that have
    waited longest. A job that reaches its estimate is given another by ``correct(job, elapsed)``; without it, the
    job is expected to end one second from now.
    """
    estimates = [job[2] for job in jobs]

    def schedule(now, waiting, ended, arrived, starts, running):
        for j in running:
            if correct is not None and starts[j] + estimates[j] <= now:
                estimates[j] = correct(jobs[j], now - starts[j])

        def ordered(some):  # ties: order of arrival
            return sorted(some, key=lambda j: key(jobs[j]) if score is None else score(jobs[j], now))

        def first():
            return ordered(queue[:window])[0]

        queue = list(waiting)
        free = size - sum(jobs[j][3] for j in running)
        expected = [(max(starts[j] + estimates[j], now + 1), jobs[j][3]) for j in running]
        started = []
        while queue and jobs[first()][3] <= free:
            j = first()
            queue.remove(j)
            free -= jobs[j][3]
            expected.append((now + jobs[j][2], jobs[j][3]))
            started.append(j)
        if not queue or not backfill:
            return started
        j = first()
        queue.remove(j)
        head = jobs[j][3]
        shadow = min(at for at, _ in expected if free + sum(n for e, n in expected if e <= at) >= head)
        extra = free + sum(n for e, n in expected if e <= shadow) - head
        for j in ordered(queue):
            _, _, estimate, nodes = jobs[j]
            if nodes <= free and (now + estimate <= shadow or nodes <= extra):
                extra -= nodes if now + estimate > shadow else 0
                free -= nodes
                started.append(j)
        return started

    return _clock(jobs, schedule)


def greedy(jobs: list[Row], size: int, key=lambda job: job[0], *, window: int | None = None) -> list[int]:
    """All that fit start in the order of `key`, one after the other; each of the `window` oldest that wait."""

    def schedule(now, waiting, ended, arrived, starts, running):
        queue, started = list(waiting), []
        free = size - sum(jobs[j][3] for j in running)
        while able := [j for j in queue[:window] if jobs[j][3] <= free]:
            j = min(able, key=lambda j: key(jobs[j]))
            queue.remove(j)
            free -= jobs[j][3]
            started.append(j)
        return started

    return _clock(jobs, schedule)


def conservative(jobs: list[Row], size: int) -> tuple[list[int], list[int]]:
    """Conservative with compression, FCFS, for run <= estimate; returns starts, and first promises."""
    plan: dict[int, int] = {}  # planned or actual start of every job that still counts
    promises = [None] * len(jobs)

    def fits(j, at):
        """Are the nodes free throughout [at, at + estimate), all other reservations kept?"""
        _, _, estimate, nodes = jobs[j]
        others = [(plan[i], plan[i] + jobs[i][2], jobs[i][3]) for i in plan if i != j]
        instants = [at, *(begin for begin, _, _ in others if at < begin < at + estimate)]
        return all(nodes + sum(n for b, e, n in others if b <= t < e) <= size for t in instants)

    def earliest(j, now):
        steps = sorted({now, *(plan[i] + jobs[i][2] for i in plan if i != j and plan[i] + jobs[i][2] > now)})
        return next(at for at in steps if fits(j, at))

    def schedule(now, waiting, ended, arrived, starts, running):
        for j in ended:
            del plan[j]
        for j in [j for j in waiting if j in plan] if ended else []:
            plan[j] = min(plan[j], earliest(j, now))
        for j in arrived:
            plan[j] = promises[j] = earliest(j, now)
        return [j for j in waiting if plan[j] <= now]

    def due():
        return [at for j, at in plan.items() if unstarted[j] is None]

    unstarted: list[int | None] = []

    def tracked(now, waiting, ended, arrived, starts, running):
        unstarted[:] = starts
        chosen = schedule(now, waiting, ended, arrived, starts, running)
        for j in chosen:
            unstarted[j] = now
        return chosen

    return _clock(jobs, tracked, due), promises
