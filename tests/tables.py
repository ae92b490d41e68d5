"""Tables of the documentation that take minutes: ``python -m tests.tables NAME`` simulates one and prints it.

Without a name, the names are listed. Logs are read from the folder named by ``HPCSIMKIT_SHARED``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit import Machines, Simulation, make
from hpcsimkit.cluster.files import write_machines
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.evaluation.evaluation import AGENT
from hpcsimkit.experiments.questions.advise import advise
from hpcsimkit.experiments.questions.evaluate import Evaluated, evaluate
from hpcsimkit.experiments.source import Source
from hpcsimkit.experiments.tables import Table
from hpcsimkit.experiments.training.data import RANDOM
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.experiments.training.training_run import TrainingRun
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results.metrics import measure
from hpcsimkit.workloads import read_log, read_philly

__all__ = ["TABLES", "TRACES", "simulated"]

TRACES = Path(os.environ.get("HPCSIMKIT_SHARED", Path(__file__).parents[2] / "shared")) / "traces"
LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz",
    "Sandia-Ross": "Sandia-Ross-2001-1.1-cln.swf.gz",
    "Theta-2022": "ALCF-Theta-2022.swf.gz",
    "Theta-2023": "ALCF-Theta-2023.swf.gz",
}
METRICS = ("mean_bounded_slowdown", "mean_wait_time", "max_wait_time")

HEADROOM = (
    *("fcfs+easy", "sjf+easy", "saf+easy", "f1+easy", "xfactor+easy", "fcfs+easy++"),
    *("oracle-sjf+easy", "oracle-saf+easy"),
)
AGEING = (
    *("fcfs+easy", "xfactor+easy"),
    "bounded(mean=1,requested=0)+easy-weighted(mean=1)+history",
    "aged(mean=1)+easy-weighted(mean=1)+history",
)
PASTS = {"KTH-SP2": 18042, "SDSC-SP2": 41702, "CTC-SP2": 51318, "LANL-CM5": 87321}
"""Numbers of jobs in the first two thirds of logs."""

GUARDS = (
    "bounded(mean=1,requested=0)+easy+history",
    "guarded(bounded(mean=1,requested=0),fallback=xfactor)+easy+history",
    "xfactor+easy+history",
    "guarded(laf,fallback=xfactor)+easy+history",
    "laf+easy+history",
)

WAITING = ("fcfs", "fcfs+easy", "fcfs+fitting", "oracle-sjf+fitting")
PREEMPTIVE = ("las", "gittins", "oracle-srtf", "oracle-srtf-area")
COSTS = (0, 600)
"""Times that each restart costs [s]."""


def of_preemption() -> Table:
    """Schedulers of GPU jobs that let running jobs finish, and such that stop them, by the cost of a restart."""
    log = read_philly(TRACES / "philly-muri-trace1.csv")
    cluster, rows = Machines.of(16, gpus=8), []
    for policy in (*WAITING, *PREEMPTIVE):
        for cost in COSTS if policy in PREEMPTIVE else (0,):
            result = Simulation(log, make(policy), cluster, restart=Restart(cost=cost)).run()
            stops = 0 if result.attempts is None else len(result.attempts) / len(log) - 1
            response = result.response_time / 3600
            cells = [f"{response.mean():.0f}", f"{np.median(response):.1f}", f"{response.max() / 24:.0f}"]
            rows.append([f"`{policy}`", f"{cost / 60:.0f}", *cells, f"{stops:.1f}"])
    units = ["mean response time [h]", "median [h]", "longest [d]", "stops per job"]
    return Table(["policy", "cost of a restart [min]", *units], rows)


ELSEWHERE = {"LANL-CM5": None, "Sandia-Ross": None, "Theta-2022": 4360, "Theta-2023": 4360}
"""Further logs for advice, with the nodes of those whose header does not state them."""

INSTANTS = 20
"""Number of times of each log at which advice is asked."""


def of_advice(
    logs: Mapping[str, int | None], *, begin: float = 2 / 3, end: float = 1.0, least: int = 5
) -> Table:
    """Errors of start times and shares of starts in their windows, at busy times of a part of each log."""
    rows = []
    for log, nodes in logs.items():
        case = Case.of(str(TRACES / LOGS[log]), "fcfs+easy", nodes)
        submit, result = case.jobs.submit_time, case.run()
        first, span = int(submit.min()), int(np.ptp(submit))
        drawn = np.random.default_rng(0).integers(first + int(begin * span), first + int(end * span), 5000)
        busy = [at for at in drawn if np.sum((submit <= at) & (result.start_time > at)) >= least][:INSTANTS]
        tables = [advise(case, int(at), futures=100).table for at in busy]
        error, requested, inside, width = (
            np.concatenate([column(table) for table in tables]) for column in ADVICE
        )
        ratio = f"{error.mean() / requested.mean():.2f}"
        hours = [f"{each.mean() / 3600:.2f}" for each in (requested, error, width)]
        shares = [inside.mean(), np.mean([ADVICE[2](table).mean() for table in tables])]
        rows.append([log, str(len(error)), *hours, ratio, *(f"{100 * share:.0f}" for share in shares)])
    errors = ["as requested, error [h]", "middle, error [h]", "window [h]", "ratio of errors"]
    return Table(["log", "waiting jobs", *errors, "starts in windows [%]", "mean over times [%]"], rows)


ADVICE: Sequence[Callable[[Any], Any]] = (
    lambda table: (table.middle - table.start_time).abs(),
    lambda table: (table.as_requested - table.start_time).abs(),
    lambda table: table.start_time.between(table.low, table.high),
    lambda table: table.high - table.low,
)
"""Errors of the middles and of the starts as requested, whether starts are in their windows, and the windows."""


@dataclass(frozen=True)
class Seat:
    """A seat, the log of its agents, and their baselines: the heuristic behind the seat first."""

    stage: str
    log: str
    policies: Sequence[str]
    jobs: tuple[int, int]
    """First job and number of jobs of the trainings; those after them are for the test."""
    cluster: Machines | None = None
    mask: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 200_000
    """Decisions of each training."""

    def trained(self, seed: int, place: Path) -> Path:
        """Return the folder of a training, which goes on or is complete."""
        first, count = self.jobs
        machines = place / "machines.csv"
        if self.cluster is not None:
            machines.parent.mkdir(parents=True, exist_ok=True)
            write_machines(self.cluster, machines)
        training = Training(
            log=str(TRACES / self.log),
            machines=None if self.cluster is None else str(machines),
            skip=first,
            jobs=count,
            stage=self.stage,
            policy=self.policies[0],
            mask=dict(self.mask),
            reward={"name": "Improvement", "baseline": self.policies[0]},
            episodes={"jobs": 256, "warmup": 64},
            trainer={"algorithm": "ppo", "total_timesteps": self.steps},
            validation={"windows": 16},
            seed=seed,
        )
        folder = place / f"{self.stage}-{seed}"
        run = TrainingRun(training, training.workloads(), folder)
        if not run.finished:
            run.run(resume=True)
        return folder

    def judged(self, folder: Path) -> Evaluated:
        """Return the agent of a training beside the baselines on windows of later jobs."""
        log = read_log(TRACES / self.log)
        log = log.first(len(log), sum(self.jobs))
        how: dict[str, Any] = {
            "sequences": 50,
            "jobs": 320,
            "warmup": 64,
            "metrics": ["mean_bounded_slowdown"],
        }
        return evaluate(folder / "best.hpcsim", log, self.policies, self.cluster, **how)


SEATS = (
    Seat("gate", LOGS["KTH-SP2"], ["fcfs+easy"], (0, 22_780)),
    Seat(
        "preemptor",
        LOGS["SDSC-SP2"],
        ["fcfs+easy+preempt(by=queue)", "fcfs+easy"],
        (0, 43_235),
        mask={"decline": True},
    ),
    Seat(
        "placement",
        "openb_pod_list_default.csv.gz",
        ["fcfs+best-fit+easy", "fcfs+first-fit+easy", "fcfs+worst-fit+easy"],
        (1000, 5000),
        Machines.of(2, cpu_milli=96_000, gpu_milli=8000, memory="384 GiB"),
    ),
)
"""The last month of openb fills two of its machines in bursts."""


TESTERS = (
    Seat(
        "tester",
        LOGS["SDSC-SP2"],
        ["unicef+easy+tests(seconds=300)", "unicef+easy"],
        (0, 43_235),
        steps=50_000,
    ),
)
"""Agents that decide about tests, beside tests of all jobs and of none."""


def of_seats(seats: Sequence[Seat] = SEATS, place: Path = Path("results/seats")) -> Table:
    """Agents at some seats, three seeds each, on windows of jobs that no training has seen."""
    return Table.of([_row_of(seat, place) for seat in seats])


def _row_of(seat: Seat, place: Path) -> dict[str, str]:
    folders = [seat.trained(seed, place) for seed in range(3)]
    verdicts = [seat.judged(folder).verdicts[0] for folder in folders]
    means = {name: f"{mean.mean:.4g}" for name, mean in verdicts[0].means.items()}
    behind, *others = seat.policies
    learned = [
        json.loads((folder / "provenance.json").read_text())["learned"]["is_learned"] for folder in folders
    ]
    return {
        "seat": f"`{seat.stage}`",
        "log": seat.log.partition(".")[0],
        "agents": ", ".join(f"{each.means[AGENT].mean:.4g}" for each in verdicts),
        "heuristic behind the seat": f"`{behind}` {means[behind]}",
        "p": ", ".join(f"{each.comparisons[behind].t_test_holm:.2g}" for each in verdicts),
        "random agent": means[RANDOM],
        "other heuristics": ", ".join(f"`{each}` {means[each]}" for each in others) or "-",
        "learned": f"{sum(learned)} of {len(learned)}",
    }


def simulated(log: str, policy: str, jobs: int | None = None) -> list[float]:
    """Return slowdown, mean wait [s] and longest wait [s] of a policy on a log, or on its first jobs."""
    workload = Source.of_flags({"log": str(TRACES / LOGS[log]), "jobs": jobs}).workload()
    return [*measure(Simulation(workload, make(policy)).run(), names=METRICS).values()]


def of_guards(log: str) -> Table:
    """Orders with and without a guard on one log."""
    rows = []
    for policy in GUARDS:
        slowdown, wait, longest = simulated(log, policy)
        rows.append([f"`{policy}`", f"{slowdown:.4g}", _grouped(wait), _grouped(longest)])
    return Table([log, "mean bounded slowdown", "mean wait [s]", "longest wait [s]"], rows)


def _grouped(seconds: float) -> str:
    return f"{seconds:,.0f}".replace(",", " ")


def of_logs(policies: Sequence[str], logs: Mapping[str, int | None]) -> Table:
    """Slowdown, mean wait [h] and longest wait [d] of policies on several logs."""
    rows = []
    for policy in policies:
        found = [simulated(log, policy, jobs) for log, jobs in logs.items()]
        cells = [f"{slow:.1f}, {wait / 3600:.2f}, {longest / 86_400:.1f}" for slow, wait, longest in found]
        rows.append([f"`{policy}`", *cells])
    return Table(["policy", *logs], rows)


def of_dras_times() -> Table:
    """Processor times of DRAS's networks on machines of three sizes."""
    from tests.agents.dras_times import rows

    return Table(["machine", "learner", "weights", "a decision [ms]", "an update [ms]"], list(rows()))


def of_generic_models() -> Table:
    """RLScheduler's models of other logs beside a DRAS-PG of the log's own past."""
    from tests.agents.generic_models import HEADINGS, rows

    return Table(list(HEADINGS), list(rows()))


def of_queue_depths() -> Table:
    """Masked PPO as published at several queue depths."""
    from tests.agents.queue_depths import HEADINGS, rows

    return Table(list(HEADINGS), list(rows()))


def of_kavg() -> Table:
    """Mean NTAT in each fifth of short trainings of CuSH, by the number of workers and K."""
    from tests.agents.kavg import PARTS, rows

    fifths = [f"{place + 1}. fifth" for place in range(PARTS)]
    return Table(["workers", "K", *fifths], list(rows()))


def of_long_cush(system: str) -> Table:
    """Mean NTAT of CuSH in a training of 5 000 epochs, and after it."""
    from tests.agents.cush_long import HEADINGS, rows

    return Table(list(HEADINGS), rows(system))


def of_optima(names: Sequence[str]) -> Table:
    """Share of the way from chance to a known optimum that trainings at their shipped settings come."""
    from tests.agents.known_optimum import PRESETS, way

    found = {name: (f"`{name}`", _grouped(PRESETS[name].decisions)) for name in names}
    rows = [[*cells, *_ways(name, partial(way, PRESETS[name]))] for name, cells in found.items()]
    return Table(["algorithm", "decisions", "seed 0", "seed 1", "seed 2"], rows)


def of_optima_of_seats(which: str) -> Table:
    """Share of the way that trainings at other seats than that of the order come."""
    from tests.agents import known_optima_of_seats

    trainings: Mapping[str, Callable[..., float]] = getattr(known_optima_of_seats, which)
    rows = [[f"`{name}`", *_ways(name, way)] for name, way in trainings.items()]
    return Table(["agent", "seed 0", "seed 1", "seed 2"], rows)


def _ways(name: str, way: Callable[[int], float]) -> list[str]:
    """Return the shares of the way with each of three seeds; show them and the processor time at once."""
    found = []
    for seed in range(3):
        began = time.process_time()
        found.append(f"{way(seed):.0%}".replace("%", " %"))
        print(name, seed, found[-1], f"{time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    return found


OF_DRAS = ("dras-dql", "dras-pg", "dras-a2c", "dras-ppo")
OF_THE_KIT = ("ppo", "a2c", "pg", "dql", "cem", "maskable-ppo", "sb3-ppo")
"""Names of the trainings at the seat of the order, whose optima are known."""

TABLES: Mapping[str, Callable[[], Table]] = {
    "headroom": partial(of_logs, HEADROOM, dict.fromkeys(list(LOGS)[:4])),
    "ageing": partial(of_logs, AGEING, PASTS),
    "preemption": of_preemption,
    "advice": partial(of_advice, dict.fromkeys(list(LOGS)[:4])),
    "advice-elsewhere": partial(of_advice, ELSEWHERE),
    "seats": of_seats,
    "tester": partial(of_seats, TESTERS),
    "optima": partial(of_optima, OF_THE_KIT),
    "optima-of-dras": partial(of_optima, OF_DRAS),
    "optima-of-seats": partial(of_optima_of_seats, "SEAT_PRESETS"),
    "dras-times": of_dras_times,
    "generic-models": of_generic_models,
    "queue-depths": of_queue_depths,
    "cush-kavg": of_kavg,
    **{f"cush-long-{system}": partial(of_long_cush, system) for system in ("sierra", "summit")},
    **{f"guards-{log}": partial(of_guards, log) for log in ("KTH-SP2", "SDSC-SP2")},
}
"""Functions that simulate the tables, by name."""

FURTHER: Mapping[str, Callable[[], Table]] = {
    "optima-of-masked-ppo": partial(of_optima_of_seats, "AS_PUBLISHED"),
}
"""Tables of which no page has all, or none."""


if __name__ == "__main__":
    if not TRACES.is_dir():
        sys.exit(f"no logs in {TRACES}: set HPCSIMKIT_SHARED")
    tables = {**TABLES, **FURTHER}
    for each in sys.argv[1:]:
        print(tables[each]())
    if not sys.argv[1:]:
        print("\n".join(tables))
