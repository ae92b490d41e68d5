"""Changed conditions of a log's last part, under which a learned policy is simulated as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload

LOAD = 1.2
"""Factor of the offered load."""

OWNERS = ("user", "group", "executable")
"""Columns that say whose job it is and of which program."""

Condition = Callable[[Workload, NDArray[np.bool_]], Workload]


def higher_load(workload: Workload, test: NDArray[np.bool_]) -> Workload:
    """Return the whole log with shorter times between submissions.

    >>> w = Workload({"submit_time": [0, 120], "run_time": [9, 9], "nodes": [1, 1]})
    >>> higher_load(w, np.array([False, True])).submit_time.tolist()
    [0, 100]
    """
    return workload.scale_load(LOAD)


def other_users(workload: Workload, test: NDArray[np.bool_]) -> Workload:
    """Return the log with other users, groups and executables in the last part: nothing is known of them.

    They have the names of the former ones, which decide the partitions in which their jobs may run.

    >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [9] * 3, "nodes": [1] * 3, "user": [4, 4, -1]})
    >>> other_users(w, np.array([False, True, True])).user.tolist()
    [4, 9, -1]
    """
    columns, labels = dict(workload.columns), dict(workload.labels)
    for name in OWNERS:
        if name in columns:
            known = np.asarray(columns[name])
            others = int(known.max(initial=0)) + 1
            columns[name] = known + others * (test & (known >= 0))
            if name in labels:
                labels[name] = 2 * tuple(workload.label(name, number) for number in range(others))
    return Workload(
        columns,
        machine_size=workload.machine_size,
        name=workload.name,
        resources=workload.resources,
        labels=labels,
    )


CONDITIONS: Mapping[str, Condition] = {"higher-load": higher_load, "other-users": other_users}
"""Conditions by name."""

TITLES = {"higher-load": f"Offered load x {LOAD:g}", "other-users": "Users of whom nothing is known"}
"""Titles of the conditions in a report."""
