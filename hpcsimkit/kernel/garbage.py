"""Garbage collection in runs, and after them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

_frozen_here: list[bool] = []  # not empty during a run: counting the frozen objects takes 10 ms and more


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Exclude existing objects from garbage collection during a run, since scanning a large log is slow.

    New objects are collected as usual. Objects frozen by the caller are left unchanged, as they are in runs
    within a run.
    """
    if _frozen_here or gc.get_freeze_count():
        yield
        return
    gc.freeze()
    _frozen_here.append(True)
    try:
        yield
    finally:
        _frozen_here.clear()
        gc.unfreeze()
        _collector.collect_when_due()


class _Collector:
    """Collects what runs have left, once there are a quarter more objects than after the last collection.

    Python does not: it does not count the objects that were frozen, so that with run after run the full
    collections, which alone find a run that has been dropped, never become due. Counting takes at most a
    fiftieth of the time.
    """

    GROWTH = 1.25
    PAUSE = 50

    def __init__(self) -> None:
        self.kept = 0  # number of objects after the last collection
        self.next_count = 0.0  # time of the next count [s]

    def collect_when_due(self) -> None:
        began = time.perf_counter()
        if not gc.isenabled() or began < self.next_count:
            return
        count = _number_of_objects()
        if not self.kept:
            self.kept = count
        elif count > self.kept * self.GROWTH:
            gc.collect()
            self.kept = _number_of_objects()
        self.next_count = began + self.PAUSE * (time.perf_counter() - began)


def _number_of_objects() -> int:
    gc.freeze()  # counting those of the generations would make lists of them
    count = gc.get_freeze_count()
    gc.unfreeze()
    return count


_collector = _Collector()
