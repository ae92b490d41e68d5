"""Picture of the reasons for which gates held jobs: their shares of the wait under every policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.reports import plots
from hpcsimkit.reports.figures import POLICY_COLOURS, new_figure, policy_rows, style
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.results.breakdown import GROUPS, classes_of
from hpcsimkit.results.held_shares import held_shares
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas

QUEUE = "in the queue"
MOST = 8
"""Maximum number of groups in a table: those with the most node-seconds."""


@style()
def draw_held(results: plots.Results) -> Picture | None:
    """Return the shares of the wait by reason; None if no job was held."""
    shares = {name: held_shares(result) for name, result in results.items()}
    reasons = sorted({reason for each in shares.values() for reason in each})
    if not reasons:
        return None
    figure = new_figure(WIDTH, 0.9 + 0.3 * len(results))
    ax, left = figure.axes[0], np.zeros(len(results))
    for place, reason in enumerate(reasons):
        share = np.array([100 * each.get(reason, 0.0) for each in shares.values()])
        colour = POLICY_COLOURS[place % len(POLICY_COLOURS)]
        ax.barh(range(len(results)), share, left=left, height=0.7, color=colour, label=reason)
        left += share
    policy_rows(ax, results)
    ax.set(xlabel="wait [%]", xlim=(0, 100), ylim=(len(results) - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=4)
    policy, first = next((name, result) for name, result in results.items() if shares[name])
    tables = [("Shares of the wait", _table(shares, reasons, "policy"))]
    tables += [
        (f"Shares of the wait by {by}, under {policy}", _table(_by_group(first, by), reasons, by))
        for by in GROUPS
        if by in first.workload.columns
    ]
    return Picture(
        "held",
        "What jobs waited for",
        "Shares of the wait in which a gate held the job: for other jobs, for a time, for its turn in an "
        "array, for a licence. The rest was spent in the queue.",
        "Sums over all jobs that ran; a reason is that of the first gate that holds a job.",
        figure,
        tuple(tables),
    )


def _by_group(result: Result, by: str) -> dict[str, dict[str, float]]:
    """Return the shares of the wait by reason of the groups of a column."""
    number, label = classes_of(result, by, MOST)  # type: ignore[arg-type]
    return {label(int(each)): held_shares(result, number == each) for each in np.unique(number)}


def _table(shares: dict[str, dict[str, float]], reasons: list[str], name: str) -> pandas.DataFrame:
    """Return shares by reason as texts, a row for each policy or group."""
    import pandas

    rows = {
        title: [*(f"{each.get(reason, 0.0):.1%}" for reason in reasons), f"{1 - sum(each.values()):.1%}"]
        for title, each in shares.items()
    }
    frame = pandas.DataFrame.from_dict(rows, orient="index", columns=[*reasons, QUEUE])
    frame.index.name = name
    return frame
