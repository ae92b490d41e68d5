"""The queue of the compiled simulator: its blocks, and the sizes of the jobs in them."""

from __future__ import annotations

import pytest

from hpcsimkit.compiled import queue as compiled_queue
from tests.interpreted import interpret


def test_the_sizes_of_later_blocks_follow_when_a_block_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    interpret(monkeypatch)
    queue = compiled_queue.new_queue(2000)
    sizes = compiled_queue.new_sizes(2000, 16)
    queue.counters[:] = 3, 100, len(queue.order) - 3
    queue.order[:3] = 4, 5, 6
    sizes.nodes[:3], sizes.stale[:3], sizes.estimate[:, :3] = (7, 8, 9), (0, 1, 0), (10, 20, 30)
    compiled_queue._drop_block(queue, sizes, 0)
    assert queue.counters.tolist() == [2, 100, len(queue.order) - 2]
    assert queue.order[:2].tolist() == [5, 6]
    assert queue.unused[queue.counters[2] - 1] == 4
    assert (sizes.nodes[:2].tolist(), sizes.stale[:2].tolist()) == ([8, 9], [1, 0])
    assert sizes.estimate[:, :2].tolist() == [[20, 30]] * len(sizes.estimate)
