"""Golden cases of parameters and options that are seldom used, and of what observers are told."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.begun import begun_in_log, remarks_on
from hpcsimkit.kernel.locality import LOCALITIES, KindLocality
from hpcsimkit.kernel.observers import Observer, Promises, Timeline
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.restart import Restart, daly, young
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, Pipeline
from hpcsimkit.policies.catalogue import CATALOGUE
from hpcsimkit.policies.dirlab import orders as published
from hpcsimkit.results.result import Result
from tests.golden import logs

Options = dict[str, Any]
Made = tuple[Any, Any, Options]

PARAMETERS = (
    "slurm(age=3,fair_share=500,half_life=40,max_age=60)+easy",
    "slurm(size=700,qos=0,attribute=0,shares=log,shares_by=group,half_life=90)",
    "slurm(partition=300,usage=cluster,half_life=70,max_age=90)+easy",
    "slurm(shares=log,shares_by=group,half_life=0,fair_share=90)+conservative",
    "weighted(mean=1,harmonic=0.5,requested=-0.2,size=2)+easy+history",
    "bounded(scale=20,bound=60,mean=1,requested=0)+easy+history",
    "bounded(scale=2,bound=9,harmonic=1,size=0.5)+greedy+live-history",
    "aged(mean=0.5,harmonic=1,requested=0.1,size=0.3)+easy+history",
    "looking-ahead(every=40,deepest=3,objective=wait)+easy",
    "looking-ahead(every=35,deepest=40)+easy",
    "guarded(sjf,fallback=saf,weeks=0.0002,every=60,margin=0)+easy",
    "guarded(saf,weeks=0.0001,every=30,margin=0.5,objective=wait)+easy",
    "guarded-wait(sjf,times=2)+easy",
    "guarded-wait(base=ljf,times=0.5)",
    "drf+easy",
    "drf",
    "fcfs+easy-weighted(mean=1,harmonic=-1,requested=0.3,size=2)+history",
    "sjf+easy-k(4)+window(6)",
    "fcfs+easy-noise(noise=2)",
    "fcfs+published-easy(relax=0.7)",
    "sjf+published-easy(candidates=saf,relax=0.2,skips_after_start=true)",
    "saf+easy+actual(reservations=false)",
    "fcfs+conservative+noisy(noise=1.5)",
    "sjf+easy+history(length=3,decay=0.4,shrinkage=0.5,reservations=true)",
    "fcfs+conservative+history(length=1,reservations=true)",
    "saf+easy+live-history(length=2,decay=0.9,shrinkage=0.1)",
    "fcfs+easy+regression(rate=3,degree=1,reservations=true)",
    "shortest-predicted+easy+mixture(decay=0.7,reservations=true)",
    "predicted-aging(times=2)",
    "sjf+easy+preempt(by=group,first=oldest,exempt_time=15)",
    "fcfs+easy+preempt(tiers=[2,0],first=smallest,mode=cancel)",
    "fcfs+easy+preempt(by=qos,first=oldest,mode=suspend,grace_time=4)",
    "sjf+easy+tests(seconds=[3,21],users=0.5)",
    "fcfs+easy+tests(seconds=9,largest=0.4)",
    "saf+easy+tests(seconds=[2,6,40],restartable=qos)",
    "fcfs+random-admission(share=0.9)+easy",
    "oracle-srtf(area=true)",
    "las(thresholds=[30,200],promote=1.5)",
    "las(thresholds=[9,40,150],by=time,promote=0.5)",
    "las(thresholds=[9,60],by=time,demotion=exact,promote=3)",
    "las(thresholds=[25],demotion=exact)",
    "gittins(quantum=30,by=time,least=4,interval=15)",
    "gittins(quantum=150,least=2,interval=40)",
    "sjf+hold-unfit+max-interval(7)+max-rejections(3)",
)
"""Policies with other parameters than the default."""

ON_MACHINES = (
    "sjf+easy+learned-kinds(application=user,confidence=0.6)",
    "sjf+easy+learned-kinds(application=group,known=queue)",
    "drf+easy+best-fit",
    "sjf+easy+preempt(by=group,first=placement)",
    "fcfs+easy+preempt(first=smallest,mode=suspend)+best-fit",
    "sjf+easy+tests(seconds=[3,21],users=0.5)+worst-fit",
    "fcfs+easy+tests(seconds=9,largest=0.4)",
    "las(thresholds=[60,400],promote=1.5)",
    "las(thresholds=[30,90],by=time,demotion=exact,promote=1)",
    "gittins(quantum=60,least=3,interval=30)",
)

ON_SINGLE_MACHINES = (
    "optimization(objective=capacity,window=3)",
    "optimization(objective=capacity,w1=0.7,w2=0.2,w3=0.1,window=9)",
    "optimization(w1=0.1,w2=0.8,w3=0.1,time=wait,node_limit=5)",
    "optimization(w1=0.1,w2=0.1,w3=0.8,window=12)",
    "optimization(w1=0,w2=1,w3=0,window=6)",
    "binpacking",
    "random-fit",
)

REPLANNED = (
    "oracle-srtf",
    "smallest-preemptive",
    "las(thresholds=[20,100],promote=2)",
    "gittins(quantum=30,least=3,interval=20)",
)
STOPPED = (
    Restart(delay=9),
    Restart("anew", delay=1, checkpoint=7, checkpoint_cost=2),
    Restart(cost=3, delay=4),
)
"""Policies that stop jobs again and again, and what these keep."""

LIMITED = (
    "fcfs",
    "fcfs+easy",
    "sjf+easy-k(2)",
    "saf+conservative",
    "wfp3+greedy+best-fit",
    "sjf+easy+preempt",
    "unicef+easy+worst-fit",
)
"""Policies on partitions with limits."""

GATED = (
    "sjf",
    "saf+easy",
    "wfp3+easy-sjf",
    "ljf+greedy",
    "sqf+conservative",
    "sjf+easy-k(2)",
    "unicef+fitting",
)
"""Policies that the compiled simulator knows with jobs that are submitted after others, and gates."""

LOCAL = ("fcfs+easy", "sjf+easy+depth-first", "fcfs+suits-kind", "saf+conservative+depth-or-breadth")


def made_seldom() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield the name of each run with seldom parameters, and what makes its jobs, policy and options."""
    for number, name in enumerate(PARAMETERS):
        yield f"seldom {name}", partial(_on_nodes, name, 1100 + number)
    for number, name in enumerate(ON_MACHINES):
        yield f"seldom on machines {name}", partial(_on_machines, name, 1200 + number)
    for number, name in enumerate(ON_SINGLE_MACHINES):
        yield f"seldom on single machines {name}", partial(_on_single_machines, name, 1250 + number)
    for number, name in enumerate(REPLANNED):
        for step, restart in enumerate(STOPPED):
            if name.startswith("gittins") and restart.preempted == "anew":
                continue  # it stops jobs again and again, for ever
            seed = 1600 + 3 * number + step
            yield f"seldom restarts {step} {name}", partial(_on_nodes, name, seed, restart=restart)
            yield (
                f"seldom restarts {step} on machines {name}",
                partial(_on_machines, name, seed, restart=restart),
            )
    for number, name in enumerate(GATED):
        for step in range(2):
            yield (
                f"seldom gates and dependencies {name} {step}",
                partial(_gated, name, 1540 + 2 * number + step),
            )
    for number, name in enumerate(LIMITED):
        yield f"seldom on limited partitions {name}", partial(_on_limited_partitions, name, 1500 + number)
        yield f"seldom on models {name}", partial(_on_models, name, 1520 + number)
    for number, name in enumerate(LOCAL):
        for step, local in enumerate((*LOCALITIES.values(), KindLocality(0.5, 3.0, nodes=4))):
            seed = 1300 + 3 * number + step
            yield f"seldom locality {step} {name}", partial(_on_machines, name, seed, service_time=local)
    for order in (published.CorrectedUNICEF, published.ShortestExpansion, published.LongestExpansion):
        for seed in (1350, 1351):
            policy = Pipeline(order(), backfiller=EASY())
            yield f"seldom {order.__name__} {seed}", partial(_on_nodes, policy, seed)


def _on_nodes(policy: Any, seed: int, **options: Any) -> Made:
    options["cluster"] = 16
    if seed % 3 == 0 and "restart" not in options:
        options |= {"walltime": "kill", "dependencies": True}
    return logs.on_nodes(seed), policy, options


def _on_machines(policy: Any, seed: int, **options: Any) -> Made:
    cluster, jobs = logs.on_machines(seed)
    return jobs, policy, {"cluster": cluster, **options}


def _on_single_machines(policy: str, seed: int) -> Made:
    cluster, jobs = logs.on_single_machines(seed)
    return jobs, policy, {"cluster": cluster}


def _on_limited_partitions(policy: str, seed: int) -> Made:
    parts, jobs = logs.on_limited_partitions(seed)
    jobs = jobs.without(parts.missing(jobs) != "", "of no partition")
    jobs = parts.with_rules(jobs)
    return jobs.without(~parts.admitted(jobs).any(axis=0), "is admitted nowhere"), policy, {"cluster": parts}


def _gated(policy: str, seed: int) -> Made:
    draw = Random(f"gated {seed}")
    jobs = logs.gated(draw, logs.on_nodes(seed))
    columns = {name: column for name, column in jobs.columns.items() if name != "dependency"}
    wanted = [draw.choice(["", "", "a:1", "b:2", "a:2,b:1"]) for _ in range(len(jobs))]
    labels = {name: each for name, each in jobs.labels.items() if name not in ("dependency", "licenses")}
    jobs = Workload({**columns, "licenses": wanted}, machine_size=jobs.machine_size, labels=labels)
    gates = tuple(gate for gate in logs.GATES if not isinstance(gate, AfterJobs))
    options: Options = {"dependencies": True, "gates": gates, "licenses": logs.POOLS}
    return jobs, policy, {"cluster": 16, "walltime": draw.choice(["run", "kill"]), **options}


def _on_models(policy: str, seed: int) -> Made:
    cluster, jobs = logs.on_models(seed)
    return jobs, policy, {"cluster": cluster}


class Told(Observer):
    """Lines of all events."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _note(self, event: str, system: Any, *about: Any) -> None:
        words = [str(each.id) if isinstance(each, Job) else str(each) for each in about]
        self.lines.append(f"{system.now} {event} {' '.join(words)}")

    def on_submit(self, job: Job, system: Any) -> None:
        self._note("submit", system, job)

    def on_block(self, job: Job, system: Any) -> None:
        self._note("block", system, job)

    def on_start(self, job: Job, allocation: Any, system: Any) -> None:
        self._note("start", system, job, allocation)

    def on_end(self, job: Job, system: Any) -> None:
        self._note("end", system, job)

    def on_stop(self, job: Job, why: Any, system: Any) -> None:
        self._note("stop", system, job, why.name)

    def on_take(self, capacity: Any, until: int, system: Any) -> None:
        self._note("take", system, capacity, until)

    def on_give(self, capacity: Any, system: Any) -> None:
        self._note("give", system, capacity)

    def on_reject(self, job: Job, system: Any) -> None:
        self._note("reject", system, job)

    def on_hold(self, job: Job, reason: str, system: Any) -> None:
        self._note("hold", system, job, reason)


OBSERVED = (
    ("nodes", "sjf+easy"),
    ("nodes", "fcfs+easy+preempt(mode=suspend)"),
    ("nodes", "fcfs+easy+preempt(mode=cancel)"),
    ("nodes", "sjf+easy+tests(seconds=20)"),
    ("machines", "fcfs+conservative"),
    ("machines", "sjf+easy+preempt"),
    ("partitions", "saf+easy-k(2)"),
    ("partitions", "unicef+greedy"),
    ("counted partitions", "sjf+greedy"),
)


def told(
    with_events: Callable[..., Callable[[], Made]], text_of: Callable[[Result], str]
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each observed run and log, and what makes the text of what is told about it."""
    for number, (kind, policy) in enumerate(OBSERVED):
        for step, what in enumerate(("everything", "gates")):
            if kind != "counted partitions" or what == "gates":
                made = with_events(kind, policy, 1400 + 2 * number + step, what)
                yield f"told of {what} on {kind} {policy}", partial(_observed, made, text_of)
    for seed in range(1450, 1456):
        yield f"told of a log {seed}", partial(_of_log, seed)
    for seed in range(1460, 1464):
        yield f"told of partitions {seed}", partial(_of_partitions, seed)
    yield "intervals of checkpoints", _intervals


WRONG = (-1, 0, 1, 1.5, 3, 101, True, None, "x", "", [], [3, 2], [2, 2, 7], float("nan"))
"""Values of parameters, most of which are wrong."""

FEW = Workload(
    {
        "submit_time": [0, 1, 2, 2],
        "run_time": [9, 5, 2, 3],
        "requested_time": [9, 6, 3, 3],
        "nodes": [3, 4, 1, 1],
        "user": [0, 1, 0, 1],
    },
    machine_size=4,
)


def wrong() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each part of policies with parameters, and what makes the text of what wrong ones do."""
    for kind, factories in CATALOGUE.items():
        for name, factory in factories.items():
            parameters = inspect.signature(factory).parameters
            if parameters and kind != "placement" and name != "boosting":  # which takes long
                yield f"wrong parameters of {name}", partial(_wrong, kind, name, list(parameters))


def _wrong(kind: str, name: str, parameters: list[str]) -> str:
    return "\n".join(
        f"{parameter} {value!r}: {_outcome(kind, name, parameter, value)}"
        for parameter in parameters
        for value in WRONG
    )


def _outcome(kind: str, name: str, parameter: str, value: Any) -> str:
    """Return the message of a run with a parameter; that of one that goes well is its schedule."""
    ways = {
        "backfilling": "fcfs",
        "estimates": "fcfs+easy",
        "preemptor": "fcfs+easy",
        "tester": "fcfs+easy",
        "option": "fcfs",
    }
    before = f"{ways[kind]}+" if kind in ways else ""
    text = json.dumps(value) if value == value else "nan"
    try:
        policy = make(f"{before}{name}({parameter}={text})")
        return str(Simulation(FEW, policy, simulator="simpy").run().start_time.tolist())
    except HpcsimkitError as error:
        message = str(error)
        assert ".py:" not in message, f"{name}({parameter}={text}) ends in an error of Python: {message}"
        return message


def _observed(made: Callable[[], Made], text_of: Callable[[Result], str]) -> str:
    """Return what observers are told, and the result as a table, as a log, and as read from its file."""
    jobs, policy, options = made()
    timeline, promises, seen = Timeline(), Promises(), Told()
    with TemporaryDirectory() as folder:
        trace, kept, log = (Path(folder, name) for name in ("trace.jsonl", "kept.npz", "log.swf"))
        observers = [Trace(trace), timeline, promises, seen]
        result = Simulation(jobs, make(policy), simulator="simpy", observers=observers, **options).run()
        _, *lines = trace.read_text(encoding="utf-8").splitlines()  # the first one has the version
        result.save(kept)
        result.to_swf(log)
        lines += [line for line in log.read_text(encoding="utf-8").splitlines() if not line.startswith(";")]
        lines += [text_of(Result.load(kept)), result.to_frame().to_csv()]
    steps = timeline.steps
    columns = [steps.time.tolist(), steps.waiting.tolist(), steps.busy.tolist()]
    return "\n".join(
        [*lines, *seen.lines, json.dumps(columns), f"{promises.made} {promises.broken} {promises.delay}"]
    )


def _of_log(seed: int) -> str:
    """Return what is told of a run that repeats a log, and of one that begins in it."""
    draw = Random(f"log {seed}")
    jobs = logs.on_nodes(seed)
    before = Simulation(jobs, make("sjf+easy"), 16, simulator="simpy").run()
    waits = [
        draw.choice([-1, 0, wait, wait, wait, max(wait - 30, 0)]) if seed % 3 else wait
        for wait in before.wait_time.tolist()
    ]
    jobs = Workload({**jobs.columns, "recorded_wait_time": waits}, machine_size=16)
    policy = make("recorded")
    repeated = Simulation(jobs, policy, 16, simulator="simpy").run()
    text = [json.dumps([repeated.start_time.tolist(), policy.remarks_on(repeated)])]
    for place in (0.0, 0.3, 0.6, 1.0):
        at = int(np.quantile(jobs.submit_time, place))
        try:
            begun = begun_in_log(jobs, at)
            found = Simulation(jobs, make("fcfs+easy"), 16, simulator="simpy", begun=begun).run()
            text.append(json.dumps([at, found.start_time.tolist(), remarks_on(found)]))
        except HpcsimkitError as error:
            text.append(f"{at} {error}")
    return "\n".join(text)


def _of_partitions(seed: int) -> str:
    """Return what partitions say about a log, and a run that repeats it, some jobs of which did not run."""
    draw = Random(f"partitions {seed}")
    parts, jobs = logs.on_limited_partitions(seed)
    asked = [parts.missing(jobs), parts.partly_unknown(jobs), parts.reasons(jobs)]
    text = [
        str(parts.unknown(jobs)),
        str(parts.default_times),
        *(json.dumps(each.tolist()) for each in asked),
    ]
    jobs = jobs.without(parts.missing(jobs) != "", "of no partition")
    ruled = parts.with_rules(jobs)
    text += [json.dumps(ruled.notes), json.dumps(ruled.column("exclusive").tolist())]
    waits = [draw.choice([-1, 0, 5, 40, 200]) for _ in range(len(jobs))]
    jobs = jobs.without(~parts.admitted(jobs).any(axis=0), "is admitted nowhere")
    jobs = replace(jobs, columns={**jobs.columns, "recorded_wait_time": np.array(waits[: len(jobs)])})
    seen = Told()
    found = Simulation(jobs, make("recorded"), parts, simulator="simpy", observers=[seen]).run()
    return "\n".join([*text, *seen.lines, json.dumps(found.start_time.tolist())])


def _intervals() -> str:
    costs, times = (0.1, 1, 7, 60, 3600), (0.5, 1, 3, 100, 4000, 10**6)
    return "\n".join(
        f"{cost} {mtbf} {young(cost, mtbf)} {daly(cost, mtbf)}" for cost in costs for mtbf in times
    )
