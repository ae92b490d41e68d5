"""Targets of a reproduction and whether they were met, as a table and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from hpcsimkit.experiments.console import plain_table
from hpcsimkit.experiments.tables import Table


class Target(NamedTuple):
    """Target of a reproduction: a published value or statement.

    Parameters
    ----------
    what : str
        Description of the target, with its unit.
    paper : float or None
        Published value, if any.
    ours : float
        Reproduced value.
    spread : float or None
        Standard deviation of the reproduced value over seeds, if there are several.
    met : bool or None
        Whether the target was met; None if the value is for comparison only.
    """

    what: str
    paper: float | None
    ours: float
    spread: float | None
    met: bool | None


class Conclusion(NamedTuple):
    """Results of a reproduction.

    Parameters
    ----------
    targets : sequence of Target
        Targets of the reproduction.
    text : str
        Report in Markdown. (The run of the reproduction appends targets and provenance.)
    """

    targets: Sequence[Target]
    text: str


def same_digits(ours: float, published: float) -> bool:
    """Return whether a number equals a published one with two decimals, either rounded or truncated.

    >>> same_digits(333.196, 333.19), same_digits(192.893, 192.89), same_digits(50.9018, 50.9)
    (True, True, True)
    >>> same_digits(192.90, 192.89)
    False
    """
    hundredths = round(100 * published)
    return not math.isnan(ours) and hundredths in (round(100 * ours), math.floor(100 * ours))


def targets_rows(targets: Sequence[Target]) -> Table:
    """Return the targets as a table.

    >>> targets_rows([Target("mean wait [min]", 456.79, 501.23, 4.0, False)]).rows
    [['mean wait [min]', '456.8', '501.2', '4', 'no']]
    """
    words = {True: "yes", False: "no", None: "-"}
    rows = [
        [target.what, *map(_number, (target.paper, target.ours, target.spread)), words[target.met]]
        for target in targets
    ]
    return Table(["target", "paper", "ours", "spread", "met"], rows)


def targets_table(targets: Sequence[Target]) -> str:
    """Return the targets as a plain-text table."""
    return plain_table(*targets_rows(targets))


def targets_json(targets: Sequence[Target]) -> bytes:
    """Return the targets as a JSON list; non-finite numbers become null.

    >>> json.loads(targets_json([Target("p", None, float("nan"), 0.5, True)]))
    [{'what': 'p', 'paper': None, 'ours': None, 'spread': 0.5, 'met': True}]
    """
    rows = [
        {name: None if _is_none(value) else value for name, value in target._asdict().items()}
        for target in targets
    ]
    return (json.dumps(rows, indent=2, ensure_ascii=False) + "\n").encode()


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _number(value: float | None) -> str:
    from hpcsimkit.reports.figures import format_number

    return format_number(value)
