"""Data of the zooming Gantt chart of a report: schedules as compressed columns for a script in the page."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.reports.gantt import OUTAGE, busy_window, rectangles
from hpcsimkit.reports.plots import Results
from hpcsimkit.workloads.readers.local_time import calendar_of

MOST_JOBS = 200_000
"""Maximum number of jobs in the chart, over all policies."""


def zoom_data(results: Results) -> str:
    """Return the JSON text of the schedules of the first policies, up to `MOST_JOBS` jobs; "" without any.

    Columns are arrays of float64, compressed with zlib and encoded in base64. The text is safe within an
    element of HTML.
    """
    first = next(iter(results.values()))
    shown = dict(list(results.items())[: MOST_JOBS // max(len(first), 1)])
    left_out = list(results)[len(shown) :]
    if not shown or not all(result.finished.any() for result in shown.values()):
        return ""
    workload, calendar = first.workload, calendar_of(first.workload)
    begin = int(first.submit_time[first.submit_time >= 0].min())
    end = max(int(result.end_time.max()) for result in shown.values()) + 1
    names = None if first.placements is None else list(first.placements.cluster.names)
    start, zone = (None, "") if calendar is None else (calendar.start, "")
    if calendar is not None and isinstance(calendar.zone, ZoneInfo):
        zone = calendar.name
    elif calendar is not None and (offset := calendar.zone.utcoffset(None)) is not None:
        start = calendar.start + int(offset.total_seconds())
    data: dict[str, Any] = {
        "start": start,
        "zone": zone,
        "begin": begin,
        "end": end,
        "window": busy_window(shown),
        "size": first.size if names is None else len(names),
        "unit": first.unit,
        "names": names,
        "users": list(workload.labels.get("user", ())) or None,
        "jobs": {
            "id": _packed(workload.id),
            "size": _packed(first.amount),
            "user": _packed(workload.user),
        },
        "policies": [],
        "note": "Left out for their number of jobs: " + ", ".join(left_out) + "." if left_out else "",
    }
    for name, result in shown.items():
        parts, each = rectangles(result, begin, end), result.by_attempt
        shown_parts = parts.job != OUTAGE
        row = np.arange(len(result)) if result.attempts is None else result.attempts.job
        columns: dict[str, ArrayLike] = {
            "row": row,
            "submit": each.submit_time,
            "begin": each.start_time,
            "end": each.end_time,
            "mode": each.mode,
        }
        drawn = {"job": parts.job, "low": parts.low.round(3), "high": parts.high.round(3)}
        columns |= {key: column[shown_parts] for key, column in drawn.items()}
        packed = {key: _packed(column) for key, column in columns.items()}
        data["policies"].append({"name": name, **packed})
    return json.dumps(data).replace("<", "\\u003c")


def _packed(column: ArrayLike) -> str:
    content = np.ascontiguousarray(column, dtype="<f8").tobytes()
    return base64.b64encode(zlib.compress(content, 9)).decode()
