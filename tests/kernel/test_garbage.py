"""Garbage collection in runs and after them."""

from __future__ import annotations

import gc
import weakref

import pytest

from hpcsimkit.kernel import garbage
from hpcsimkit.kernel.garbage import gc_frozen


class Circle:
    """An object that only a garbage collection finds."""

    def __init__(self) -> None:
        self.itself = self


def dropped() -> weakref.ref[Circle]:
    return weakref.ref(Circle())


def test_a_run_within_a_run_leaves_the_objects_frozen() -> None:
    """And so does one within a caller who has frozen them."""
    assert gc.get_freeze_count() == 0
    with gc_frozen():
        with gc_frozen():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        with gc_frozen():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def collector_with(monkeypatch: pytest.MonkeyPatch, kept: float) -> garbage._Collector:
    """Replace the collector by one that has kept a share of the objects that there are."""
    found = garbage._Collector()
    found.kept = int(kept * len(gc.get_objects()))
    monkeypatch.setattr(garbage, "_collector", found)
    return found


@pytest.mark.parametrize(("kept", "is_found"), [(0.7, True), (0.9, False)])
def test_what_runs_leave_is_collected_when_there_are_a_quarter_more_objects(
    kept: float, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects that were frozen count for none of Python's own collections."""
    collector = collector_with(monkeypatch, kept)
    left = dropped()
    with gc_frozen():
        pass
    assert (left() is None) == is_found
    assert gc.get_freeze_count() == 0
    assert collector.kept == pytest.approx(len(gc.get_objects()) * (1 if is_found else kept), rel=0.05)


def test_objects_are_not_counted_after_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting takes a fiftieth of the time: a second run at once does not look."""
    collector_with(monkeypatch, 1.0)
    counts = []
    count = garbage._number_of_objects
    monkeypatch.setattr(garbage, "_number_of_objects", lambda: counts.append(count()) or counts[-1])
    for _ in range(3):
        with gc_frozen():
            pass
    assert len(counts) == 1


def test_nothing_is_collected_where_the_caller_has_disabled_it(monkeypatch: pytest.MonkeyPatch) -> None:
    collector_with(monkeypatch, 0.5)
    left = dropped()
    gc.disable()
    try:
        with gc_frozen():
            pass
        assert left() is not None
    finally:
        gc.enable()
