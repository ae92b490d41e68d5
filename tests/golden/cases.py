"""Golden cases: whole schedules and answers of the kit on random busy logs, as text.

Whether a rule is right is for references, naive simulators and schedules by hand to tell. Golden cases tell that
nothing else has changed: they have all policies, all kinds of clusters and all options, and each value of a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pandas

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import begun_at, begun_in
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, FCFS, SAF, SJF, WFP3, Greedy, Pipeline
from hpcsimkit.policies.dirlab import FittingCandidates, PublishedEASY
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.policies.oracles import Actual
from hpcsimkit.policies.predicting.boosting import Boosting
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.mixture import Mixture
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.quality import Forecasts, quality_table
from hpcsimkit.policies.predicting.regression import Regression
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.results import statistics
from hpcsimkit.results.breakdown import By, breakdown
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.residue import Residue
from hpcsimkit.results.result import Result
from hpcsimkit.results.validation import Validation
from hpcsimkit.results.wait_causes import WaitCauses
from tests.compiled.test_slurm import Day, day_of
from tests.compiled.test_slurm_stops import stopping_day
from tests.golden import logs
from tests.golden.files import files
from tests.golden.seldom import made_seldom, told, wrong

Options = dict[str, Any]
Made = tuple[Any, Any, Options]
"""Jobs, policy or its name, and options of a run."""

ORDERS = [
    "fcfs",
    "lcfs",
    "sjf",
    "ljf",
    "saf",
    "laf",
    "sqf",
    "largest",
    "srf",
    "wfp3",
    "unicef",
    "f1",
    "f2",
    "f3",
    "f4",
    "xfactor",
    "slurm",
    "random",
    "oracle-sjf",
    "oracle-saf",
    "shortest-predicted",
    "weighted",
    "bounded",
    "aged",
    "aged(mean=1)",
    "fcfs-shortest",
    "looking-ahead",
    "guarded(sjf)",
    "guarded-wait(sjf)",
    "published-wfp3",
    "published-unicef",
]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-saf",
    "easy-bestfit",
    "easy-weighted",
    "easy-k(2)",
    "easy-k(3)",
    "easy-ar",
    "easy-noise",
    "easy++",
    "conservative",
    "conservative-replan",
    "greedy",
    "easy+tests(seconds=20)",
    "easy+preempt",
]
COMPILED_ON_MACHINES = [
    *BACKFILLING[1:13],
    "fitting",
    "greedy+window(3)",
    "easy-k(3)+window(5)",
    "easy-k(2)+last-two",
    "conservative+actual",
    "conservative+noisy",
    "conservative+last-two",
    "conservative+window(4)",
    "conservative",
    "conservative+last-two",
    "easy-k(1)",
]
ESTIMATES = ["actual", "noisy", "last-two", "history", "live-history", "regression", "boosting", "mixture"]
OTHERS = [
    "binpacking",
    "random-fit",
    "optimization",
    "predicted-aging",
    "predicted-aging+tests(seconds=20)",
    "bfbp",
    "recorded",
    "oracle-srtf",
    "oracle-srtf-area",
    "smallest-preemptive",
    "las",
    "las(thresholds=[20,100])",
    "gittins",
    "fcfs+fitting",
    "fcfs+commit",
    "sjf+easy+commit",
    "sjf+easy+window(3)",
    "wfp3+conservative+window(2)",
    "sjf+hold-unfit+max-interval(60)",
    "sjf+easy+hold-unfit+max-rejections(2)",
    "fcfs+easy+admit-fitting",
    "sjf+easy+random-admission",
    "sjf+conservative+tests(seconds=[5,40])",
    "saf+easy+preempt(first=least_lost)",
    "sjf+published-easy",
    "sjf+fitting+window(3)",
]
PLACEMENTS = [
    "first-fit",
    "best-fit",
    "worst-fit",
    "depth-first",
    "breadth-first",
    "round-robin",
    "random-place",
    "depth-or-breadth",
    "suits-kind",
    "learned-kinds",
]


def text_of(result: Result) -> str:
    """Return all that a run has decided."""
    return json.dumps({**_plain(result), "metrics": _metrics(result)}, indent=1, sort_keys=True)


def _plain(found: Any) -> Any:
    """Return plain values of arrays and records; of a cluster, no more than that there is one."""
    if isinstance(found, np.ndarray | np.generic):
        return found.tolist()
    if isinstance(found, Machines):
        return None
    if is_dataclass(found):
        kept = [each.name for each in fields(found) if each.init and each.name not in LEFT_OUT]
        return {name: _plain(getattr(found, name)) for name in kept}
    if isinstance(found, dict):
        return {str(key): _plain(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(each) for each in found]
    return (
        found
        if isinstance(found, int | str | None)
        else f"{found:.9g}"
        if isinstance(found, float)
        else str(found)
    )


LEFT_OUT = ("workload", "seconds", "simulator", "options", "cluster")
"""What the schedule does not depend on, or what it is given."""


def _metrics(result: Result) -> dict[str, str]:
    return {name: f"{value:.9g}" for name, value in result.metrics.items()}


def _cluster_and_jobs(kind: str, seed: int, unit: int = 1) -> tuple[Any, Workload]:
    if kind == "nodes":
        return 16, logs.on_nodes(seed, unit)
    on = {
        "machines": logs.on_machines,
        "single machines": logs.on_single_machines,
        "partitions": logs.on_partitions,
        "counted partitions": logs.on_counted_partitions,
    }
    return on[kind](seed, unit)


def _on(kind: str, policy: str, seed: int, **options: Any) -> Callable[[], Made]:
    def made() -> Made:
        cluster, jobs = _cluster_and_jobs(kind, seed)
        return jobs, policy, {"cluster": cluster, **options}

    return made


def _with_events(kind: str, policy: str, seed: int, what: str) -> Callable[[], Made]:
    def made() -> Made:
        draw = Random(f"events {seed}")
        cluster, jobs = _cluster_and_jobs(kind, seed)
        options: Options = {}
        if what != "gates":
            options = logs.events(draw, int(jobs.submit_time.max()), 16 if kind == "nodes" else None)
        if what in OPTIONS:
            options = {name: value for name, value in options.items() if name in OPTIONS[what]}
        if what in ("gates", "everything"):
            jobs = logs.gated(draw, jobs)
            options |= {"gates": logs.GATES, "licenses": logs.POOLS}
        return jobs, policy, {"cluster": cluster, **options}

    return made


def _begun(kind: str, policy: str, seed: int) -> Callable[[], Made]:
    def made() -> Made:
        cluster, jobs = _cluster_and_jobs(kind, seed)
        before = Simulation(jobs, make("saf+greedy"), cluster, simulator="simpy").run()
        at = int(np.median(before.submit_time)) + 7
        if seed % 2:
            return jobs, policy, {"cluster": cluster, "begun": begun_in(before, at)}
        jobs, begun = begun_at(before, at)
        return jobs, policy, {"cluster": cluster, "begun": begun}

    return made


def _slurm_begun(seed: int) -> Callable[[], Made]:
    def made() -> Made:
        jobs, policy, options = _slurm_day(seed)()
        whole = Simulation(jobs, policy, simulator="simpy", **options).run()
        at = int(np.median(jobs.submit_time)) + 3 if len(jobs) else 0
        begun = begun_in(whole, at)
        if seed % 8:
            begun = replace(begun, allocations={}, partitions={})
        return jobs, policy, {**options, "begun": begun}

    return made


OPTIONS = {"outages": ("outages", "restart"), "windows": ("calendar", "walltime")}
"""Options of the runs with some events only: the compiled simulator does not know all together."""


ANSWERS = (
    ("nodes", "sjf+easy", "fcfs+conservative"),
    ("nodes", "fcfs+easy+preempt", "fcfs"),
    ("machines", "fcfs+easy", "sjf+easy+best-fit"),
    ("machines", "unicef+greedy", "fcfs+conservative"),
    ("partitions", "fcfs+easy", "saf"),
    ("partitions", "sjf+conservative", "fcfs+easy"),
    ("counted partitions", "fcfs+easy", "sjf"),
)
"""Cluster, policy, and the policy of the schedule on record, of the runs about which questions are asked."""


def answers() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each comparison with a record, and what makes the text of its tables."""
    for number, (kind, policy, recorded) in enumerate(ANSWERS):
        for step in range(2):
            yield (
                f"answers on {kind} {policy} {step}",
                _answers(kind, policy, recorded, 400 + 2 * number + step),
            )
    for number, (kind, policy, recorded) in enumerate(ANSWERS[:5:2]):
        yield (
            f"answers about gates on {kind} {policy}",
            _answers(kind, policy, recorded, 420 + 2 * number, gated=True),
        )


def _answers(kind: str, policy: str, recorded: str, seed: int, *, gated: bool = False) -> Callable[[], str]:
    def made() -> str:
        draw, nodes = Random(f"answers {seed}"), 16 if kind == "nodes" else None
        cluster, jobs = _cluster_and_jobs(kind, seed, unit=60)
        options: Options = {}
        if gated:
            jobs, options = logs.gated(draw, jobs), {"gates": logs.GATES, "licenses": logs.POOLS}
        before = Simulation(jobs, make(recorded), cluster, simulator="simpy", **options).run()
        if kind != "counted partitions" and seed % 2:
            options = logs.events(draw, int(jobs.submit_time.max()), nodes)
        jobs = logs.with_record(jobs, before, draw)
        result = Simulation(jobs, make(policy), cluster, simulator="simpy", **options).run()
        return "\n".join(_told(result, None if nodes else cluster))

    return made


def _told(result: Result, cluster: Any) -> Iterator[str]:
    """Yield all tables and sentences about a result."""
    for tolerance, begin in ((60.0, None), (1.0, int(np.median(result.submit_time)))):
        found = Validation(result, tolerance, begin)
        yield _table(found.table)
        yield json.dumps([[mark.measure, f"{mark.value:.9g}", mark.grade] for mark in found.marks])
        yield f"{found.grade} {found.moved_use:.9g} {_plain(found.summary)}"
        for asked in (Residue(found, cluster), WaitCauses(found, cluster)):
            yield _table(asked.table)
            yield from asked.sentences()
    for by in get_args(By):
        yield _table(breakdown(result, by, top=2, warmup=900, cooldown=900))
    for trim in (0, 5000):
        measured = measure(result, warmup=trim, cooldown=trim / 2)
        yield json.dumps({name: f"{value:.9g}" for name, value in measured.items()})
    yield _table(result.summary())
    yield str(
        [list(map(str, ranges)) for ranges in result.by_attempt.node_numbers()] if cluster is None else ""
    )


def _table(found: pandas.DataFrame) -> str:
    return str(found.to_csv(float_format="%.9g"))


def runs() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield the name of each run, and what makes its jobs, policy and options."""
    for number, order in enumerate(ORDERS):
        for step in range(3):
            name = f"{order}+{BACKFILLING[(3 * number + step) % len(BACKFILLING)]}"
            yield f"nodes {name}", _on("nodes", name, number)
    for number, estimates in enumerate(ESTIMATES):
        for order, backfilling in (
            ("sjf", "easy"),
            ("fcfs", "conservative"),
            ("saf", "greedy"),
            ("f1", "easy-k(2)"),
        ):
            name = f"{order}+{backfilling}+{estimates}"
            yield f"nodes {name}", _on("nodes", name, 40 + number)
    for number, name in enumerate(OTHERS):
        yield f"nodes {name}", _on("nodes", name, 60 + number)
        yield f"nodes, killed, {name}", _on("nodes", name, 90 + number, walltime="kill", dependencies=True)
    for number, placement in enumerate(PLACEMENTS):
        for step in range(3):
            backfilling = BACKFILLING[(3 * number + step) % len(BACKFILLING)]
            name = f"{ORDERS[5 * number % len(ORDERS)]}+{backfilling}+{placement}"
            yield f"machines {name}", _on("machines", name, 120 + number)
    for number, backfilling in enumerate(COMPILED_ON_MACHINES):
        order, placement = ("fcfs", "sjf", "wfp3", "lcfs")[number % 4], PLACEMENTS[number % 3]
        options: Options = {"walltime": "kill"} if number % 5 == 0 else {}
        yield (
            f"busy machines {order}+{backfilling}+{placement}",
            _on("machines", f"{order}+{backfilling}+{placement}", 1700 + number, **options),
        )
    for number, name in enumerate(["fcfs", "sjf", "fcfs+published-easy", "sjf+published-easy"]):
        yield f"dirlab {name}", _on("nodes", name, 140 + number, event_order=DirlabOrder())
        yield f"dirlab 9 {name}", _on("nodes", name, 150 + number, event_order=DirlabOrder(9))
    for number, name in enumerate(["fcfs+easy", "sjf+conservative", "saf+easy+tests(seconds=20)"]):
        yield f"period {name}", _on("nodes", name, 160 + number, period=30)
        yield f"counted partitions {name}", _on("counted partitions", name, 165 + number)
    yield from _runs_with_events()
    yield from made_seldom()
    for number, name in enumerate(("fcfs", "sjf+easy", "fcfs+conservative", "wfp3+greedy", "saf+easy-k(2)")):
        for place, kind in enumerate(("nodes", "machines", "partitions", "counted partitions")):
            yield f"begun on {kind} {name}", _begun(kind, name, 700 + 10 * number + place)
    for seed in range(SLURM_DAYS):
        yield f"slurm day {seed}", _slurm_day(seed)
        if seed % 4 == 0:
            yield f"slurm day {seed}, begun", _slurm_begun(seed)
    for seed in range(STOPPING_DAYS):
        yield f"slurm day with stops {seed}", _slurm_day(seed, stopping_day)


SLURM_DAYS, STOPPING_DAYS = 80, 30


def _slurm_day(seed: int, day_of_seed: Callable[[int], Day] = day_of) -> Callable[[], Made]:
    def made() -> Made:
        day = day_of_seed(seed)
        options = {"cluster": day.profile.partitions, "walltime": day.walltime, **day.profile.options}
        return day.jobs, day.profile.policy, options

    return made


EVENTFUL = [
    "fcfs",
    "sjf+easy",
    "fcfs+conservative",
    "saf+easy-k(2)",
    "wfp3+easy",
    "fcfs+easy+preempt",
    "sjf+easy+preempt(mode=suspend)",
    "fcfs+easy+preempt(mode=cancel,grace_time=9)",
    "unicef+greedy",
    "sjf+easy+tests(seconds=20)",
    "saf+fitting+window(4)",
    "sjf+fitting",
]
ON_NODES = ["oracle-srtf", "las(thresholds=[20,100])", "gittins", "smallest-preemptive"]


def _runs_with_events() -> Iterator[tuple[str, Callable[[], Made]]]:
    for place, kind in enumerate(("nodes", "machines", "partitions")):
        for number, name in enumerate(EVENTFUL + (ON_NODES if kind == "nodes" else [])):
            for step, what in enumerate(("everything", "all but gates", *OPTIONS, "gates")):
                seed = 1000 + 100 * place + 5 * number + step
                yield f"{what} on {kind} {name}", _with_events(kind, name, seed, what)


OPEN: dict[str, Callable[[], Policy]] = {
    "order": lambda: Pipeline(External(SJF()), window=6, backfiller=EASY()),
    "order that declines": lambda: Pipeline(External(decline=True), max_interval=40),
    "order of fitting jobs": lambda: Pipeline(External(), fitting=True, max_interval=9),
    "order, committed": lambda: Pipeline(External(WFP3()), backfiller=PublishedEASY(), commit=True),
    "inspector": lambda: Pipeline(SJF(), inspector=External(), backfiller=EASY(), max_interval=30),
    "inspector, committed": lambda: Pipeline(inspector=External(), max_rejections=3, commit=True),
    "backfiller": lambda: Pipeline(SJF(), backfiller=External(EASY())),
    "backfiller that declines": lambda: Pipeline(
        backfiller=External(Greedy(), decline=True), max_candidates=3
    ),
    "backfiller of actual run times": lambda: Pipeline(backfiller=External(), estimates=Actual(), window=5),
    "placement": lambda: Pipeline(SJF(), placement=External(), backfiller=EASY()),
    "preemptor": lambda: Pipeline(backfiller=EASY(), preemptor=External(PreemptLowerTiers(), decline=True)),
    "gate": lambda: Pipeline(SJF(), gate=External(), backfiller=EASY()),
    "dispatch": lambda: Dispatch(External(), slots=5),
    "two levels": lambda: TwoLevel(External(), window=6, order=SAF()),
    "published order": lambda: Pipeline(External(), backfiller=PublishedEASY(), commit=True),
    "published inspector": lambda: Pipeline(
        SJF(), inspector=External(), backfiller=PublishedEASY(relax=0.5), commit=True, max_rejections=2
    ),
    "published backfiller": lambda: Pipeline(
        FCFS(), backfiller=External(FittingCandidates(relax=0.5, slots=6))
    ),
    "published backfiller, committed": lambda: Pipeline(
        SJF(), backfiller=External(FittingCandidates(guarded=True)), commit=True
    ),
}
"""Policies with open seats, by name; who sits there answers at random."""

ELSEWHERE = {
    "dispatch": ["single machines"],
    "placement": ["machines", "partitions"],
    "order": ["machines", "partitions"],
    "backfiller": ["machines"],
    "inspector": ["machines"],
    "two levels": ["machines"],
    "preemptor": ["machines"],
    "gate": ["machines"],
}


def plays(simulator: str = "simpy") -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each run with an open seat, and what makes the text of its decisions and its result."""
    for number, seat in enumerate(OPEN):
        for kind in ["nodes"] * (seat != "dispatch") + ELSEWHERE.get(seat, []):
            for step in range(3):
                seed = 500 + 3 * number + step
                yield f"open {seat} on {kind} {step}", partial(_played, kind, seat, seed, simulator)


def _played(kind: str, seat: str, seed: int, simulator: Any) -> str:
    cluster, jobs = _cluster_and_jobs(kind, seed)
    draw = Random(f"play {seed}")
    options: Options = {}
    if seed % 2:
        options = {"walltime": "kill"}
    if seat.startswith("published"):
        options["event_order"] = DirlabOrder(draw.choice([None, 0, 50]))
    try:
        return "\n".join(_decided(Simulation(jobs, OPEN[seat](), cluster, **options), draw, simulator))
    except HpcsimkitError as error:
        return f"{type(error).__name__}: {error}"


def _decided(simulation: Simulation, draw: Random, simulator: Any) -> Iterator[str]:
    """Play, and yield what each decision shows, then the result."""
    simulation.pause_with(simulator, [])
    while (decision := simulation.next_decision()) is not None:
        options = [_named(option) for option in decision.options]
        yield f"{decision!r} {options} {_named(decision.default)}"
        simulation.answer_position(draw.randrange(len(options)))
    yield text_of(simulation.result())


def _named(option: Any) -> str:
    """Return an option in words: jobs by their numbers."""
    if isinstance(option, Job):
        return str(option.id)
    if isinstance(option, tuple) and option and isinstance(option[0], Job):
        return f"{option[0].id} on {option[1]}"
    return str(option)


RESUMED = (
    "sjf+easy",
    "fcfs+conservative",
    "unicef+greedy+last-two",
    "random+easy-k(2)",
    "fcfs+easy+preempt(grace_time=9)",
)


def resumed() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each run that is resumed from a snapshot, and what makes its text and the snapshot's."""
    for number, policy in enumerate(RESUMED):
        for place, kind in enumerate(("nodes", "machines", "partitions")):
            yield f"resumed on {kind} {policy}", _resumed(kind, policy, 800 + 10 * number + place)


def _resumed(kind: str, policy: str, seed: int) -> Callable[[], str]:
    def made() -> str:
        jobs, _, options = _with_events(kind, policy, seed, "everything")()
        at = int(np.median(jobs.submit_time))
        with TemporaryDirectory() as folder:
            file = Path(folder, "snapshot")
            Simulation(jobs, make(policy), simulator="simpy", **options).snapshot(at).write(file)
            return text_of(Simulation(jobs, make(policy), simulator="simpy", **options).resume(file).run())

    return made


def forecast() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each log, and what makes the text of the predictions of all predictors for its jobs."""
    for seed in range(850, 854):
        yield f"forecasts {seed}", partial(_forecasts, seed)


def _forecasts(seed: int) -> str:
    jobs = logs.on_nodes(seed, unit=60, jobs=300)
    predictors: dict[str, Predictor] = {
        "history": History(),
        "forgetful": History(length=2, decay=0.5, shrinkage=1.0),
        "regression": Regression(),
        "quadratic": Regression(degree=2, rate=0.1),
        "mixture": Mixture(),
    }
    if seed % 2:
        predictors["boosting"] = Boosting(refit=100, window=150, iterations=5)
    forecasts = Forecasts(predictors)
    Simulation(jobs, make("fcfs+easy"), simulator="simpy", observers=[forecasts]).run()
    quality = quality_table(forecasts, jobs)
    lines = [
        f"{name} {row} {each.mean:.6g} {each.harmonic:.6g} {' '.join(f'{time:.6g}' for time in each.quantiles)}"
        for name, found in forecasts.predictions.items()
        for row, each in found.items()
    ]
    return "\n".join([*lines, quality.to_csv(float_format="%.6g")])


def measured() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each sample, and what makes the text of its statistics."""
    for seed in range(12):
        yield f"statistics {seed}", partial(_statistics, seed)


def _statistics(seed: int) -> str:
    draw = Random(f"statistics {seed}")
    count = draw.choice([1, 2, 3, 4, 6])
    samples = {
        name: np.array([draw.choice([0.0, 1.0, 1.5, 2.0, draw.random()]) for _ in range(count)])
        for name in ("a", "b", "c", "d")
    }
    first = samples["a"]
    found = [
        statistics.mean_of(first),
        statistics.means_of(list(samples.values())),
        statistics.ratio_of_means(first, samples["b"] + 1),
        compared := statistics.compared(first, {name: samples[name] for name in "bcd"}),
        [each.counts(better) for each in compared.values() for better in ("lower", "higher", "")],
        [each.is_significant for each in compared.values()],
        statistics.paired(
            [(first[: len(first) // 2 + 1], samples["c"][: len(first) // 2 + 1]), (first, samples["d"])]
        ),
        statistics.p_values(first - samples["b"]),
        statistics.holm([float(value) for value in first]),
        [statistics.p_value_text(float(value) / 1000) for value in first],
        [statistics.ranking_of(samples, descending=descending) for descending in (False, True)],
    ]
    return json.dumps(_plain(found), indent=1)


def cases() -> dict[str, Callable[[], str]]:
    """Return what makes the text of each golden case, by its name."""
    return {
        **{name: partial(run, made) for name, made in runs()},
        **dict(answers()),
        **dict(plays()),
        **dict(resumed()),
        **dict(measured()),
        **dict(forecast()),
        **dict(told(_with_events, text_of)),
        **dict(wrong()),
        **dict(files()),
    }


def runs_compiled() -> dict[str, Callable[[], str]]:
    """Return what makes the text of each run on the compiled simulator, by its name."""
    return {name: partial(run, made, "compiled") for name, made in runs()} | dict(plays("compiled"))


def is_refused(text: str) -> bool:
    """Return whether the compiled simulator has refused a run."""
    return text.startswith("UsageError: the compiled simulator cannot ")


def run(made: Callable[[], Made], simulator: str = "simpy") -> str:
    """Return the text of a run, or the message of the error that it ends with."""
    jobs, policy, options = made()
    policy = make(policy) if isinstance(policy, str) else policy
    try:
        return text_of(Simulation(jobs, policy, simulator=simulator, **options).run())
    except HpcsimkitError as error:
        return f"{type(error).__name__}: {error}"
