"""Where an agent differs from a heuristic, by hand: classes of jobs, and features of its choices."""

from __future__ import annotations

from typing import Any

import pytest

from hpcsimkit.experiments.evaluation.where import CLASSES, by_choice, by_class

SMALL, LARGE = [0, "1 node"], [1, "2+ nodes"]


def outcome(agent: list[list[Any]], other: list[list[Any]]) -> dict[str, Any]:
    """A sequence with classes of size; each has its jobs, and the sums of wait [s] and bounded slowdown."""
    everything = [[0, "all", 1, 0.0, 0.0]]
    return {
        "classes": {
            name: {by: rows if by == "size" else everything for by in CLASSES}
            for name, rows in (("agent", agent), ("sjf", other))
        }
    }


def test_classes_by_hand() -> None:
    """Of -30 s a job in the first sequence and -10 s in the second, small jobs have -35 and -10."""
    outcomes = [
        outcome(
            [[*SMALL, 3, 60.0, 6.0], [*LARGE, 1, 40.0, 2.0]],
            [[*SMALL, 3, 200.0, 9.0], [*LARGE, 1, 20.0, 1.0]],
        ),
        outcome([[*SMALL, 2, 20.0, 4.0]], [[*SMALL, 2, 40.0, 4.0]]),
    ]
    small, large = by_class(outcomes, "agent", "sjf", "mean_wait_time")
    assert (small.by, small.label, small.jobs, large.label, large.jobs) == (
        "size",
        "1 node",
        5,
        "2+ nodes",
        1,
    )
    assert (small.own, small.other) == pytest.approx(((20 + 10) / 2, (200 / 3 + 20) / 2))
    assert small.difference.mean == pytest.approx(((20 - 200 / 3) + (10 - 20)) / 2)
    assert large.difference.mean == pytest.approx(20)  # the second sequence has no such job
    gaps = (-140 / 4 - 20 / 2) / 2, 20 / 4 / 2
    assert (small.share, large.share) == pytest.approx((gaps[0] / sum(gaps), gaps[1] / sum(gaps)))
    assert small.share + large.share == pytest.approx(1)
    assert large.relative == pytest.approx(1)


def test_a_single_class_is_left_out() -> None:
    only = [[*SMALL, 3, 60.0, 6.0]]
    assert by_class([outcome(only, only)], "agent", "sjf", "mean_wait_time") == []


def test_features_of_choices_by_hand() -> None:
    """Sequences in which the agent chose as the heuristic does are left out."""
    same = {"choices": {"own": [], "others": [], "differing": 0}}
    features = [{"choices": {"own": [own], "others": [3.0], "differing": 2}} for own in (5.0, 9.0)]
    (found,) = by_choice([*features, same])
    assert (found.by, found.jobs, found.own, found.other) == ("choice", 4, 7.0, 3.0)
    assert found.difference.mean == 4
    assert by_choice([same]) == []
