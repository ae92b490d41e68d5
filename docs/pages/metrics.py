"""The table of metrics."""

from __future__ import annotations

from pages.markdown import code, table


def metrics_page() -> str:
    """Return the table of metrics."""
    from hpcsimkit.results.metrics import METRICS

    better = {"lower": "lower", "higher": "higher", "none": "neither"}
    return table(
        ("Name", "Unit", "Description", "Formula", "Better"),
        [
            (code(m.name), m.unit, m.summary, code(m.formula), better[m.direction])
            for m in METRICS.values()
        ],
    )  # fmt: skip
