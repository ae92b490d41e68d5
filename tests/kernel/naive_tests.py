"""A naive simulator of test runs behind EASY: plain lists, everything recomputed at every instant.

Written from the section "Tests" of ``docs/reference/semantics.md``, without the kit's code.
A job is a tuple ``(submit, run, estimate, nodes)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

Row = tuple[int, int, int, int]


class Running(NamedTuple):
    """An attempt that runs: its start, when it leaves, when it is expected to, and whether it is a test."""

    start: int
    leaves: int
    expected: int
    test: bool


def attempts_with_tests(
    jobs: list[Row],
    size: int,
    levels: list[int],
    key: Callable[[Row, int], float] = lambda job, now: job[0],
    allowed: Collection[int] | None = None,
) -> list[list[tuple[int, int]]]:
    """Return start and end of each attempt of each job, in the order of `key` at each instant."""
    found: list[list[tuple[int, int]]] = [[] for _ in jobs]
    tested = [0] * len(jobs)
    unseen = sorted(range(len(jobs)), key=lambda j: jobs[j][0])
    waiting: list[int] = []
    running: dict[int, Running] = {}
    while unseen or waiting or running:
        now = min([jobs[j][0] for j in unseen] + [each.leaves for each in running.values()])
        over = [j for j in running if running[j].leaves == now]
        stopped = [j for j in over if running[j].test and jobs[j][1] > now - running[j].start]
        for j in over:
            found[j].append((running.pop(j).start, now))
        for j in stopped:
            tested[j] += 1
            waiting.append(j)
        waiting += [j for j in unseen if jobs[j][0] == now]
        unseen = [j for j in unseen if jobs[j][0] != now]
        queue = sorted(waiting, key=lambda j: key(jobs[j], now))  # stable: ties as they joined
        for j, test in _pass(queue, now, size, jobs, running, tested, levels, allowed):
            _, run, estimate, _ = jobs[j]
            length = levels[tested[j]] if test else estimate
            running[j] = Running(now, now + (min(run, length) if test else run), now + length, test)
            waiting.remove(j)
    return found


def _pass(queue, now, size, jobs, running, tested, levels, allowed):  # type: ignore[no-untyped-def]
    """Return the jobs that start, each with whether it is a test."""
    busy = [(max(each.expected, now + 1), jobs[j][3]) for j, each in running.items()]
    started = []

    def free() -> int:
        return size - sum(nodes for _, nodes in busy)

    def start(j: int, length: int, *, test: bool = False) -> None:
        busy.append((now + length, jobs[j][3]))
        started.append((j, test))

    queue = list(queue)
    while queue and jobs[queue[0]][3] <= free():
        j = queue.pop(0)
        start(j, max(jobs[j][2], 1))
    if not queue:
        return started
    head = jobs[queue.pop(0)][3]

    def late_for_head(j: int, length: int) -> bool:
        """Would the head start later if the job ran so long from now on?"""

        def first(some: list[tuple[int, int]]) -> int:
            return min(at for at, _ in some if size - sum(n for end, n in some if end > at) >= head)

        return first([*busy, (now + length, jobs[j][3])]) > shadow

    def first_start() -> int:
        return min(at for at, _ in busy if size - sum(n for end, n in busy if end > at) >= head)

    shadow = first_start()
    for j in list(queue):
        if jobs[j][3] <= free() and not late_for_head(j, jobs[j][2]):
            queue.remove(j)
            start(j, jobs[j][2])
    for j in queue:
        if allowed is not None and j not in allowed:
            continue
        if tested[j] == len(levels) or jobs[j][2] <= levels[tested[j]] or jobs[j][3] > free():
            continue
        if not late_for_head(j, levels[tested[j]]):
            start(j, levels[tested[j]], test=True)
    return started
