"""Remarks on the sample of a sweep, which limit its conclusions: they stand in all of its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hpcsimkit.reports.figures import format_count
from hpcsimkit.reports.sweep.table import POLICY, SweepTable
from hpcsimkit.reports.sweep.texts import joined

FEW = 10
"""Number of replicates below which bootstrap intervals are known to be too narrow."""

MOST_REASONS = 5
"""Maximum number of reasons shown."""

WINDOWS = "windows of a log (--axis 'period=4 weeks') are replicates"


def remarks_on(table: SweepTable) -> Iterator[str]:
    """Yield remarks on the cells: failures, waits that say nothing, seeds without effect, and copies."""
    cells = table.cells
    reasons = Counter(table.failed["reason"])
    for count, text in of_reasons(reasons):
        yield f"failed: {count} of {len(cells)} cells{text}"
    if "max_wait_time" in cells.columns:
        done = cells[cells["status"] == "done"] if "status" in cells.columns else cells
        idle = int((done["max_wait_time"] == 0).sum())
        if idle:
            of = f"{idle} of {len(done)} cells"
            yield f"load: no job waits in {of}; raise load_factor to separate policies"
    yield from _on_seeds(table)


def statistical_remarks(table: SweepTable) -> Iterator[str]:
    """Yield remarks on the number of replicates, for the report and its tables."""
    number = table.repetitions
    if number == 1:
        yield (
            "One replicate: no axis of this sweep repeats a simulation with other jobs, so that there are no "
            "intervals and no tests; a difference may be chance."
        )
    elif number < FEW:
        yield (
            f"With {number} replicates, bootstrap intervals are too narrow, and Wilcoxon's test cannot "
            f"give a p-value below {2 / 2**number:.2g}."
        )
    if table.settings and number > 1:
        yield (
            f"Statistics count replicates ({joined(table.replicates)}), not cells: cells of one replicate "
            f"that differ in {joined(table.settings)} share their jobs."
        )


def of_reasons(reasons: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of failed cells with the most frequent reasons, and that of all others."""
    shown = reasons.most_common(MOST_REASONS)
    for reason, count in shown:
        yield count, f": {reason}"
    others = len(reasons) - len(shown)
    if others:
        count = reasons.total() - sum(count for _, count in shown)
        yield count, f", for {others} other reason{'s' * (others > 1)}"


def _on_seeds(table: SweepTable) -> Iterator[str]:
    """Yield why policies ran once for all seeds, and how many cells are copies of others."""
    if table.without_seed:
        yield (
            f"seed: {joined(table.without_seed)} ran once: on a log, a seed changes only policies that draw "
            f"random numbers, and says nothing about other jobs; {WINDOWS}"
        )
    copies = table.copies
    if len(copies):
        policies = joined(list(dict.fromkeys(copies[POLICY].astype(str))))
        cells = f"{format_count(len(copies), 'cell')} of {len(table.cells)}"
        yield (f"copies: {cells} repeat the schedule of another one and do not count ({policies}); {WINDOWS}")
