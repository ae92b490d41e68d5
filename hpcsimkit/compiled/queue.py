"""Waiting jobs, sorted by a constant rank, in blocks that know their smallest size and shortest estimates.

Most jobs of a long queue do not fit; a search skips whole blocks of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.shifting import close_gap, open_gap, place_of
from hpcsimkit.compiled.state import ZERO, Integers

BLOCK = 64
"""Maximum number of jobs of a block."""

TOGETHER = 16
"""Number of blocks that a search tests together, by vector instructions."""

BLOCKS, WAITING, UNUSED = 0, 1, 2
"""Positions in :attr:`Queue.counters`."""

NONE = 2**62
"""A size or an estimate that no job exceeds."""


class Queue(NamedTuple):
    """Sorted waiting jobs.

    Attributes
    ----------
    order : array of int64, shape (blocks,)
        Numbers of the blocks in use, in the order of their jobs.
    unused : array of int64, shape (blocks,)
        Numbers of the other blocks.
    rows : array of int64, shape (blocks, BLOCK)
        Jobs of each block, in order.
    filled : array of int64, shape (blocks,)
        Number of jobs of each block.
    counters : array of int64
        Number of blocks in use, of waiting jobs and of unused blocks, at the positions named above.
    """

    order: Integers
    unused: Integers
    rows: Integers
    filled: Integers
    counters: Integers


class Sizes(NamedTuple):
    """Sizes and estimates in the blocks of a queue, with which :func:`find` skips blocks.

    Attributes
    ----------
    nodes : array of int64, shape (places,)
        Smallest size of the jobs of the block at each place of the order.
    estimate : array of int64, shape (classes, places)
        Shortest estimate [s] of those of its jobs whose sizes are of a class or of a lower one, see
        :func:`_class_of`.
    stale : array of int64, shape (places,)
        Whether jobs have left a block since its sizes and estimates were found, which are then lower bounds.
    """

    nodes: Integers
    estimate: Integers
    stale: Integers


def _most_blocks(jobs: int) -> int:
    """Return the maximum number of blocks.

    A block is added only when another is full, which then keeps half of its jobs or, at the end, all.
    """
    return 2 * jobs // BLOCK + 2


def new_queue(jobs: int) -> Queue:
    """Return an empty queue for at most `jobs` jobs."""
    blocks = _most_blocks(jobs)
    return Queue(
        order=np.zeros(blocks, dtype=np.int64),
        unused=np.arange(blocks, dtype=np.int64)[::-1].copy(),
        rows=np.empty((blocks, BLOCK), dtype=np.int64),
        filled=np.zeros(blocks, dtype=np.int64),
        counters=np.array([0, 0, blocks], dtype=np.int64),
    )


def fill_empty(queue: Queue, rows: Integers) -> None:
    """Add jobs, listed by rank, to an empty queue."""
    half = BLOCK // 2
    blocks = -(-len(rows) // half)
    queue.order[:blocks] = np.arange(blocks)
    for block in range(blocks):
        some = rows[block * half : (block + 1) * half]
        queue.rows[block, : len(some)], queue.filled[block] = some, len(some)
    queue.counters[:] = blocks, len(rows), len(queue.order) - blocks


def new_sizes(jobs: int, nodes: int) -> Sizes:
    """Return the sizes of an empty queue for at most `jobs` jobs on a cluster of `nodes` nodes."""
    places = _most_blocks(jobs)
    return Sizes(
        nodes=np.zeros(places, dtype=np.int64),
        estimate=np.zeros((2 * int(nodes).bit_length() + 2, places), dtype=np.int64),
        stale=np.zeros(places, dtype=np.int64),
    )


@machine_code
def _class_of(nodes: int) -> int:
    """Return the class of a size: two classes for each number of binary digits, by the second digit."""
    digits = 0
    while nodes >> digits:
        digits += 1
    return 2 * digits + (((nodes << 2) >> digits) & 1)


@machine_code
def _block_of(queue: Queue, rank: Integers, wanted: int) -> int:
    """Return the place of the last block whose first rank is at most that of a job; 0 if there is none."""
    low, high = 0, queue.counters[BLOCKS]
    if high and rank[queue.rows[queue.order[high - 1], 0]] <= wanted:
        return high - 1
    while low < high:
        middle = (low + high) // 2
        if rank[queue.rows[queue.order[middle], 0]] <= wanted:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)


@machine_code
def _forget(sizes: Sizes, place: int) -> None:
    """Set the smallest size and the shortest estimates of a block to those of no jobs."""
    sizes.nodes[place], sizes.stale[place] = NONE, 0
    for kind in range(len(sizes.estimate)):
        sizes.estimate[kind, place] = NONE


@machine_code
def _count_in(sizes: Sizes, place: int, nodes: int, estimate: int) -> None:
    """Update the smallest size and the shortest estimates of a block by a job."""
    sizes.nodes[place] = min(sizes.nodes[place], nodes)
    for kind in range(_class_of(nodes), len(sizes.estimate)):
        if sizes.estimate[kind, place] <= estimate:
            break
        sizes.estimate[kind, place] = estimate


@machine_code
def _new_block(queue: Queue, sizes: Sizes | None, place: int) -> int:
    """Insert an empty block at a place, and return its number."""
    blocks, unused = queue.counters[BLOCKS], queue.counters[UNUSED] - 1
    block = queue.unused[unused]
    open_gap(queue.order, place, blocks)
    queue.order[place] = block
    queue.filled[block] = 0
    if sizes is not None:
        open_gap(sizes.nodes, place, blocks)
        open_gap(sizes.stale, place, blocks)
        for kind in range(len(sizes.estimate)):
            open_gap(sizes.estimate[kind], place, blocks)
        _forget(sizes, place)
    queue.counters[BLOCKS], queue.counters[UNUSED] = blocks + 1, unused
    return block


@machine_code
def _drop_block(queue: Queue, sizes: Sizes | None, place: int) -> None:
    """Remove the empty block at a place."""
    blocks = queue.counters[BLOCKS]
    queue.unused[queue.counters[UNUSED]] = queue.order[place]
    close_gap(queue.order, place, 1, blocks)
    if sizes is not None:
        close_gap(sizes.nodes, place, 1, blocks)
        close_gap(sizes.stale, place, 1, blocks)
        for kind in range(len(sizes.estimate)):
            close_gap(sizes.estimate[kind], place, 1, blocks)
    queue.counters[BLOCKS] = blocks - 1
    queue.counters[UNUSED] += 1


@machine_code
def _first_block(queue: Queue, sizes: Sizes | None) -> int:
    """Add the first block to an empty queue, and return its place."""
    _new_block(queue, sizes, ZERO)
    return 0


@machine_code
def _measure(queue: Queue, sizes: Sizes, place: int, nodes: Integers, estimate: Integers) -> None:
    """Find the smallest size and the shortest estimates of the block at a place."""
    block = queue.order[place]
    _forget(sizes, place)
    for position in range(queue.filled[block]):
        row = queue.rows[block, position]
        _count_in(sizes, place, nodes[row], estimate[row])


@machine_code
def add(
    queue: Queue, sizes: Sizes | None, row: int, rank: Integers, nodes: Integers, estimate: Integers
) -> None:
    """Add a job; mirrors ``JobQueue.add``."""
    queue.counters[WAITING] += 1
    place = _block_of(queue, rank, rank[row]) if queue.counters[BLOCKS] else _first_block(queue, sizes)
    block = queue.order[place]
    if queue.filled[block] == BLOCK:
        last = rank[queue.rows[block, BLOCK - 1]] < rank[row]
        if last and place == queue.counters[BLOCKS] - 1:
            _new_block(queue, sizes, place + 1)
            place += 1
        else:
            second = rank[row] > rank[queue.rows[block, BLOCK // 2]]
            _split(queue, sizes, place, nodes, estimate)
            place += second
        block = queue.order[place]
    position = queue.filled[block]
    while position > 0 and rank[queue.rows[block, position - 1]] > rank[row]:
        queue.rows[block, position] = queue.rows[block, position - 1]
        position -= 1
    queue.rows[block, position] = row
    queue.filled[block] += 1
    if sizes is not None:
        _count_in(sizes, place, nodes[row], estimate[row])


@machine_code
def _split(queue: Queue, sizes: Sizes | None, place: int, nodes: Integers, estimate: Integers) -> None:
    """Move the second half of a full block to a new one at the next place."""
    block = queue.order[place]
    other = _new_block(queue, sizes, place + 1)
    for position in range(BLOCK // 2):
        queue.rows[other, position] = queue.rows[block, BLOCK // 2 + position]
    queue.filled[block] = queue.filled[other] = BLOCK // 2
    if sizes is not None:
        _measure(queue, sizes, place, nodes, estimate)
        _measure(queue, sizes, place + 1, nodes, estimate)


@machine_code
def take(queue: Queue, sizes: Sizes | None, place: int, position: int) -> None:
    """Remove the job at a position of the block at a place; mirrors ``JobQueue.remove``."""
    block = queue.order[place]
    count = queue.filled[block] - 1
    queue.counters[WAITING] -= 1
    queue.filled[block] = count
    for other in range(position, count):
        queue.rows[block, other] = queue.rows[block, other + 1]
    if sizes is not None:
        sizes.stale[place] = 1
    if not count:
        _drop_block(queue, sizes, place)


@machine_code
def remove(queue: Queue, sizes: Sizes | None, row: int, rank: Integers) -> None:
    """Remove a waiting job; mirrors ``JobQueue.remove``."""
    place = _block_of(queue, rank, rank[row])
    block, position = queue.order[place], 0
    while queue.rows[block, position] != row:
        position += 1
    take(queue, sizes, place, position)


@machine_code
def find(
    queue: Queue,
    sizes: Sizes,
    place: int,
    position: int,
    room: tuple[int, int, int],
    nodes: Integers,
    estimate: Integers,
) -> tuple[int, int]:
    """Return the next job that may be backfilled, from a position on; mirrors ``Nodes.admissible``.

    `room` is free nodes, time until the shadow time [s], and extra nodes. Return the place of a block in the
    order, and the position of the job in it; (-1, 0) if there is none.
    """
    free, window, spare = room
    while True:
        other = _next_promising(queue, sizes, place, room)
        if other == queue.counters[BLOCKS]:
            return -1, 0
        if other > place:
            place, position = other, 0
        block = queue.order[place]
        for at in range(position, queue.filled[block]):
            row = queue.rows[block, at]
            if nodes[row] <= free and (estimate[row] <= window or nodes[row] <= spare):
                return place, at
        if sizes.stale[place]:
            _measure(queue, sizes, place, nodes, estimate)
        place += 1
        position = 0


@machine_code
def _next_promising(queue: Queue, sizes: Sizes, place: int, room: tuple[int, int, int]) -> int:
    """Return the first place from another on whose block may have a job for :func:`find`.

    Returns the number of blocks if there is none.
    """
    free, window, spare = room
    least, shortest = sizes.nodes, sizes.estimate[_class_of(free)]
    blocks = queue.counters[BLOCKS]
    while place + TOGETHER <= blocks:
        promising = False
        for at in range(place, place + TOGETHER):
            nodes, estimate = least[place_of(at)], shortest[place_of(at)]
            promising |= (nodes <= free) & ((nodes <= spare) | (estimate <= window))
        if promising:
            break
        place += TOGETHER
    while place < blocks:
        if least[place] <= free and (least[place] <= spare or shortest[place] <= window):
            return place
        place += 1
    return int(blocks)


@machine_code
def gather(queue: Queue, waiting: Integers) -> int:
    """Write the rows of all waiting jobs in order, and return their number."""
    count = 0
    for place in range(queue.counters[BLOCKS]):
        block = queue.order[place]
        for position in range(queue.filled[block]):
            waiting[count] = queue.rows[block, position]
            count += 1
    return count
