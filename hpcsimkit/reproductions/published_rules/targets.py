"""Targets: every published number, to the digit, and every minimal case."""

from __future__ import annotations

from collections.abc import Iterator

from hpcsimkit.reproductions.published_rules.effects import Measured
from hpcsimkit.reproductions.published_rules.minimal_cases import CASES
from hpcsimkit.reproductions.published_rules.published_numbers import BASES, SOURCES, same_digits
from hpcsimkit.reproductions.published_rules.tables import recomputed
from hpcsimkit.reproductions.targets import Target

__all__ = ["case_targets", "digit_targets"]


def digit_targets(measured: Measured) -> Iterator[Target]:
    """Yield the number of published values reproduced to the digit, for each source and log."""
    logs = dict.fromkeys(cell.log for cell in measured.runs)
    for code, source in SOURCES.items():
        for log in logs:
            bases = [base for base in BASES if (base.code, base.log) == (code, log)]
            if not bases:
                continue
            equal = sum(same_digits(recomputed(base, measured), base.value) for base in bases)
            met = equal == len(bases) if measured.whole else None
            yield Target(
                f"{source}, {log}: numbers equal to the digit", float(len(bases)), float(equal), None, met
            )


def case_targets() -> Iterator[Target]:
    """Yield the number of expected schedules, of two, for each minimal case."""
    for case in CASES:
        what = f"{case.name}, {case.rule}: schedules equal, published and textbook"
        yield Target(what, 2.0, float(case.equal), None, case.equal == 2)
