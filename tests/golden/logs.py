"""Random busy logs and clusters for golden cases: many equal times and sizes, so that ties are decided."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results.result import Result

GATES = (AfterJobs(), BeginTimes(), Holds(), ArrayLimits())
REASONS = ("Resources", "Priority", "AssocGrpCPULimit", "Dependency", "ReqNodeNotAvail", "BeginTime", "odd")
POOLS = {"a": 3, "b": 2}


def times(draw: Random, jobs: int, unit: int) -> dict[str, list[int]]:
    """Return submission, run and requested times as multiples of a unit [s], and owners."""
    submit, columns = 0, ("submit_time", "run_time", "requested_time", "user", "group", "queue", "qos")
    rows = []
    for _ in range(jobs):
        submit += draw.choice([0, 0, 0, 1, 3, 10, 25])
        run = draw.choice([0, 1, 5, 20, 20, 60, 61, 150])
        asked = max(1, int(run * draw.choice([0.5, 1, 1, 1.5, 3, 10])) + draw.choice([0, 0, 7]))
        rows.append((unit * submit, unit * run, unit * asked, *(draw.randrange(4) for _ in range(4))))
    made = {name: [row[k] for row in rows] for k, name in enumerate(columns)}
    made["preceding"] = [draw.choice([-1, -1, number]) if number else -1 for number in range(jobs)]
    made["think_time"] = [draw.choice([-1, 0, 30 * unit]) for _ in range(jobs)]
    made["recorded_wait_time"] = [unit * draw.choice([0, 0, 4, 30, 200]) for _ in range(jobs)]
    return made


def gated(draw: Random, found: Workload) -> Workload:
    """Return jobs with the columns that gates read."""
    kinds, ids = ["after", "afterany", "afterok", "afternotok"], found.columns["id"].tolist()

    def dependency(number: int) -> str:
        if draw.random() < 0.7 or not number:
            return draw.choice(["", "", "", "", "singleton"])
        joint, terms = draw.choice(",?"), range(draw.randint(1, 3))
        return joint.join(f"{draw.choice(kinds)}:{ids[draw.randrange(number)]}" for _ in terms)

    jobs = len(found)
    array = [draw.choice([-1, -1, 0, 1, 2]) for _ in range(jobs)]
    columns = {
        "dependency": [dependency(number) for number in range(jobs)],
        "begin_time": [draw.choice([-1] * 5 + [0, 40, 300]) for _ in range(jobs)],
        "hold_until": [draw.choice([-1] * 8 + [90, 500]) for _ in range(jobs)],
        "array_job": array,
        "array_limit": [-1 if number < 0 else number + 1 for number in array],
        "licenses": [draw.choice(["", "", "", "a:1", "a:2", "b:1", "a:1,b:2"]) for _ in range(jobs)],
        "executable": [draw.randrange(3) for _ in range(jobs)],
        "status": [draw.choice([1, 1, 1, 0, 5]) for _ in range(jobs)],
    }
    return Workload(
        {**found.columns, **columns},
        machine_size=found.machine_size,
        labels=found.labels,
        resources=found.resources,
    )


def on_nodes(seed: int, unit: int = 1, jobs: int = 90, size: int = 16) -> Workload:
    """Return jobs for homogeneous nodes, some of which need all."""
    draw = Random(seed)
    columns: dict[str, Any] = times(draw, jobs, unit)
    columns["nodes"] = [draw.choice([1, 1, 2, 3, size // 2, size - 1, size]) for _ in range(jobs)]
    return Workload(columns, machine_size=size)


def machines(draw: Random) -> Machines:
    """Return a few machines of several kinds, in two racks."""
    rows = [[draw.choice([4, 8, 8]), draw.choice([0, 2, 4]), draw.choice([8, 16])] for _ in range(6)]
    rows[0] = [8, 4, 16]
    features = [["ab"[number % 2]] + ["new"] * (number > 3) for number in range(6)]
    return Machines([f"m{number}" for number in range(6)], ("cpus", "gpus", "memory"), rows, features)


def amounts(draw: Random, jobs: int) -> dict[str, Any]:
    """Return what jobs ask of machines."""
    return {
        "nodes": [draw.choice([1, 1, 1, 2, 3]) for _ in range(jobs)],
        "cpus": [draw.choice([0, 1, 2, 3, 4]) for _ in range(jobs)],
        "gpus": [draw.choice([0, 0, 1, 2]) for _ in range(jobs)],
        "memory": [draw.choice([1, 1, 4, 7]) for _ in range(jobs)],
        "spread": [draw.choice([0, 0, 1]) for _ in range(jobs)],
        "exclusive": [draw.choice([0, 0, 0, 0, 1]) for _ in range(jobs)],
        "constraint": [draw.choice([-1, -1, -1, 0, 1, 2]) for _ in range(jobs)],
        "kind": [draw.choice([-1, 0, 1, 2]) for _ in range(jobs)],
    }


def on_machines(seed: int, unit: int = 1, jobs: int = 70) -> tuple[Machines, Workload]:
    """Return machines, and jobs of which each fits."""
    draw = Random(seed)
    cluster, columns = machines(draw), times(draw, jobs, unit)
    columns |= amounts(draw, jobs)
    labels = {"constraint": ("a", "new&b", "a|b")}
    found = Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)
    return cluster, found.without(cluster.misfits(found), "fits no machine")


def on_single_machines(seed: int, unit: int = 1, jobs: int = 100) -> tuple[Machines, Workload]:
    """Return machines, and jobs that share one machine each with others."""
    cluster, found = on_machines(seed, unit, jobs)
    one = [found.columns[name] == value for name, value in (("nodes", 1), ("spread", 0), ("exclusive", 0))]
    something = found.columns["cpus"] + found.columns["gpus"] + found.columns["memory"] > 0
    return cluster, found.select(np.flatnonzero(np.logical_and.reduce([*one, something])))


def on_partitions(seed: int, unit: int = 1, jobs: int = 70) -> tuple[Partitions, Workload]:
    """Return partitions that share machines, and jobs that name one or several of them."""
    draw = Random(seed)
    cluster, columns = machines(draw), times(draw, jobs, unit)
    columns |= amounts(draw, jobs)
    parts = Partitions(
        [
            Partition("a", machines=("m0", "m1", "m2"), priority=2, default=True),
            Partition("b", machines=("m1", "m2", "m3", "m4"), max_time=200 * unit),
            Partition("c", machines=tuple(f"m{number}" for number in range(6)), max_nodes=2),
        ],
        machines=cluster,
    )
    labels = {"constraint": ("a", "new&b", "a|b"), "partition": ("a", "b", "c", "a,b", "b,c", "c,a")}
    columns["partition"] = [draw.randrange(-1, 6) for _ in range(jobs)]
    found = Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)
    return parts, found.without(~parts.admitted(found).any(axis=0), "is admitted nowhere")


def on_models(seed: int, unit: int = 1, jobs: int = 60) -> tuple[Machines, Workload]:
    """Return machines with GPUs of two models, and jobs that ask for a model, for any, or for a feature."""
    draw = Random(seed)
    rows = [[draw.choice([4, 8]), draw.choice([0, 1, 2]), draw.choice([0, 2])] for _ in range(5)]
    features = [["c"] if number % 2 else [] for number in range(5)]
    known = ("cpus", "gpus:a", "gpus:b") if seed % 3 else ("cpus", "gpus", "memory")
    cluster = Machines([f"m{number}" for number in range(5)], known, rows, features)
    columns = times(draw, jobs, unit)
    columns |= {
        "nodes": [draw.choice([1, 1, 2]) for _ in range(jobs)],
        "cpus": [draw.choice([1, 2, 3]) for _ in range(jobs)],
        "gpus": [draw.choice([0, 0, 1, 2]) for _ in range(jobs)],
        "gpus:a": [draw.choice([0, 0, 0, 1]) for _ in range(jobs)],
        "gpus:c": [draw.choice([0, 0, 0, 0, 1]) for _ in range(jobs)],
    }
    asked = ("cpus", "gpus", "gpus:a", "gpus:c")[: 4 if seed % 3 == 0 else 3]
    found = Workload(
        {name: columns[name] for name in columns if not name.startswith("gpus") or name in asked},
        resources=asked,
    )
    return cluster, found.without(cluster.misfits(found), "fits no machine")


def on_limited_partitions(seed: int, unit: int = 1, jobs: int = 70) -> tuple[Partitions, Workload]:
    """Return partitions with all kinds of limits, and jobs of users and accounts."""
    draw = Random(seed)
    cluster, columns = machines(draw), times(draw, jobs, unit)
    columns |= amounts(draw, jobs)
    parts = Partitions(
        [
            Partition(
                "a",
                machines=("m0", "m1", "m2"),
                priority=2,
                default=True,
                in_use={"nodes": draw.choice([1, 2]), "cpus": draw.choice([5, 9])},
                accounts=("0", "1", "2"),
            ),
            Partition(
                "b",
                machines=("m1", "m2", "m3", "m4"),
                default_time=20 * unit,
                max_per_node={"cpus": draw.choice([2, 3])},
                in_use={"gpus": 2},
                denied_accounts=("3",),
            ),
            Partition("c", in_use={"memory": 12}, max_per_job={"cpus": 6}, users=("0", "2"), exclusive=True),
            Partition("d", shared="FORCE:2", denied_qos=("1",), qos=("0", "1", "2")),
        ],
        machines=cluster,
        closed={"old": "down"},
    )
    digits = ("0", "1", "2", "3")
    labels = {
        "constraint": ("a", "new&b", "a|b"),
        "partition": ("a", "b", "c", "a,b", "b,c", "c,d", "d", "old", "b,x"),
        **dict.fromkeys(("user", "group", "qos"), digits),
    }
    columns["partition"] = [draw.randrange(-1, 9) for _ in range(jobs)]
    found = Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)
    return parts, found


def on_counted_partitions(seed: int, unit: int = 1, jobs: int = 70) -> tuple[Partitions, Workload]:
    """Return partitions with nodes of their own, and jobs."""
    draw = Random(seed)
    columns: dict[str, Any] = times(draw, jobs, unit)
    columns["nodes"] = [draw.choice([1, 1, 2, 3, 4, 8]) for _ in range(jobs)]
    columns["partition"] = [draw.randrange(-1, 4) for _ in range(jobs)]
    parts = Partitions(
        [
            Partition("a", nodes=8, default=True),
            Partition("b", nodes=4, priority=3, max_time=100 * unit),
            Partition("c", nodes=6, max_nodes=3),
        ]
    )
    found = Workload(columns, labels={"partition": ("a", "b", "c", "b,a")})
    return parts, found.without(~parts.admitted(found).any(axis=0), "is admitted nowhere")


def events(draw: Random, last: int, nodes: int | None) -> dict[str, Any]:
    """Return the options of a run with outages, windows and rules of stopped jobs.

    Parameters
    ----------
    draw : Random
        Random numbers.
    last : int
        Last submission [s].
    nodes : int or None
        Number of nodes; None for six machines.
    """
    options: dict[str, Any] = {}
    down, windows = [], []
    for _ in range(draw.randint(0, 6)):
        start = draw.randrange(last + 100)
        end, drain = start + draw.choice([1, 20, 90]), draw.random() < 0.3
        where: dict[str, Any] = {"machines": (f"m{draw.randrange(6)}",)}
        if nodes is not None:
            where = {"nodes": draw.randint(1, nodes // 4), "position": draw.choice([0.0, 0.4, 1.0])}
        down.append(Outage(start, end, drain=drain, **where))
    for _ in range(draw.randint(0, 3)):
        start = draw.randrange(last + 100)
        named: dict[str, Any] = {
            "machines": (f"m{draw.randrange(6)}", "m5"),
            "users": draw.choice([(), (1, 2)]),
        }
        if nodes is not None:
            named = {"nodes": draw.randint(1, nodes // 4)}
        windows.append(Window(start, start + draw.choice([10, 60]), **named))
    if down:
        options["outages"] = Outages(down)
    if windows:
        options["calendar"] = Calendar(windows)
    every = draw.choice([None, None, 7, 30])
    options["restart"] = Restart(
        draw.choice(["continue", "anew"]),
        delay=draw.choice([0, 0, 9]),
        limit=draw.choice([None, None, 1]),
        checkpoint=every,
        checkpoint_cost=0 if every is None else draw.choice([0, 2]),
        cost=draw.choice([0, 3]),
    )
    if draw.random() < 0.4:
        options["walltime"] = "kill"
    return options


def with_record(found: Workload, recorded: Result, draw: Random) -> Workload:
    """Return jobs with the schedule of another run on record, some waits of which are longer or shorter."""
    waits = np.maximum(recorded.start_time - recorded.submit_time, 0).tolist()
    columns: dict[str, Any] = {
        "recorded_wait_time": [max(0, wait + draw.choice([0, 0, 0, 900, 4000, -900])) for wait in waits],
        "recorded_held_time": [draw.choice([-1, 0, wait // 3]) for wait in waits],
        "recorded_reason": [draw.randrange(-1, len(REASONS)) for _ in waits],
        "recorded_backfilled": [draw.randrange(-1, 2) for _ in waits],
        "recorded_priority": [draw.randrange(-1, 9) for _ in waits],
    }
    labels: dict[str, tuple[str, ...]] = {**found.labels, "recorded_reason": REASONS}
    if recorded.placements is not None:
        places = [words.replace(" ", ",") for words in recorded.placements.words()]
        known = [words and draw.random() < 0.9 for words in places]
        labels["node_list"] = tuple(dict.fromkeys(filter(None, places)))
        columns["node_list"] = [
            labels["node_list"].index(words) if is_known else -1
            for words, is_known in zip(places, known, strict=True)
        ]
    return Workload(
        {**found.columns, **columns},
        machine_size=found.machine_size,
        labels=labels,
        resources=found.resources,
    )
