"""Start times of the small workloads beside this file, by simulators that share no code with the kit.

    python -m venv peers && peers/bin/pip install accasim==1.1.3 sortedcontainers==2.4.0 procset==1.0 pyzmq
    peers/bin/pip install --no-deps pybatsim==3.2.1
    peers/bin/python tests/references/schedules.py

writes each workload's table again, with a column of start times for each schedule. README.md says which simulator
answers for which column, and how it is driven. Not run by the tests: they read the tables.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import csv
import gzip
import heapq
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

collections.Mapping = collections.abc.Mapping  # AccaSim 1.1.3 looks for it where it was until Python 3.9

from accasim.base.additional_data import AdditionalData
from accasim.base.allocator_class import FirstFit
from accasim.base.event_class import AttributeType, JobFactory
from accasim.base.resource_manager_class import ResourceManager, Resources
from accasim.base.scheduler_class import FirstInFirstOut, LongestJobFirst, ShortestJobFirst
from accasim.base.simulator_class import Simulator
from accasim.utils.reader_class import Reader
from batsim.batsim import BatsimScheduler, Job
from procset import ProcSet
from schedulers.common_pyss_adaptator import CpuSnapshot
from schedulers.unMaintained.easyBackfillNotopo import EasyBackfillNotopo

FOLDER = Path(__file__).parent
Row = dict[str, int]
Starts = dict[int, int]


# --- AccaSim: any resources, no reservations ------------------------------------------------------------


class Table(Reader):
    """AccaSim's reader, of rows: one unit of a job is what it asks of one machine."""

    def __init__(self, factory: JobFactory, rows: list[Row], resources: tuple[str, ...]) -> None:
        super().__init__(factory)
        self.rows, self.resources = iter(rows), resources

    def _read(self, current_time: int) -> dict[str, object] | None:
        row = next(self.rows, None)
        if row is None:
            self.stop_submission()
            return None
        return {
            "job_id": row["job"], "queued_time": row["submit"], "duration": row["run"],
            "expected_duration": row["requested"], "requested_nodes": 1,
            "requested_resources": {name: row[name] for name in self.resources},
        }  # fmt: skip


class Kept(AdditionalData):
    """Keeps the start time of each job that has ended."""

    def __init__(self, event_manager: object = None) -> None:
        super().__init__(event_manager)
        self.starts: Starts = {}

    def ignore(self, *_: object) -> None: ...

    exec_before_submission = exec_after_submission = exec_before_completion = stop = ignore
    exec_before_dispatching = exec_after_dispatching = ignore

    def exec_after_completion(self, completed: list[object]) -> None:
        self.starts |= {int(job.id): job.start_time for job in completed}


def accasim(
    rows: list[Row], machines: dict[str, dict[str, int]], order: type, *, skip: bool = False
) -> Starts:
    """Simulate an order, strictly, or passing over those that do not fit (`skip`), first fit."""
    resources = tuple(next(iter(machines.values())))
    manager = ResourceManager(Resources(machines, dict.fromkeys(machines, 1)))
    factory = JobFactory(manager, job_attrs=[AttributeType("expected_duration", int)])
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(
            "none", "none", order(FirstFit(), skip_jobs_on_allocation=skip),
            resource_manager=manager, reader=Table(factory, rows, resources), job_factory=factory,
            additional_data=[Kept], scheduling_output=False, statistics_output=False, show_statistics=False,
            RESULTS_FOLDER_PATH=folder, LOG_LEVEL="ERROR",
        )  # fmt: skip
        simulator.start_simulation()
    return simulator.mapper.additional_data[0].starts


# --- pybatsim: homogeneous nodes, reservations --------------------------------------------------------------


class Batsim:
    """What stands for Batsim: the clock, completions and submissions, and one call after those of an instant."""

    def __init__(self, rows: list[Row], nodes: int, scheduler: BatsimScheduler) -> None:
        self.nb_resources, self.now = nodes, 0
        self.scheduler, self.run_times = scheduler, {row["job"]: row["run"] for row in rows}
        self.events = [
            (
                row["submit"],
                1,
                row["job"],
                Job(row["job"], row["submit"], row["requested"], row["nodes"], "", {}),
            )
            for row in rows
        ]
        self.starts: Starts = {}
        scheduler.bs = self
        scheduler.onAfterBatsimInit()

    def time(self) -> int:
        return self.now

    def execute_jobs(self, jobs: list[Job]) -> None:
        for job in jobs:
            self.starts[job.id] = self.now
            heapq.heappush(self.events, (self.now + self.run_times[job.id], 0, job.id, job))

    def wake_me_up_at(self, time: int) -> None:
        heapq.heappush(self.events, (time, 2, 0, None))

    def run(self) -> Starts:
        heapq.heapify(self.events)
        while self.events:
            self.now = self.events[0][0]
            while self.events and self.events[0][0] == self.now:
                _, what, _, job = heapq.heappop(self.events)
                if what == 0:
                    job.finish_time = self.now
                    self.scheduler.onJobCompletion(job)
                elif what == 1:
                    self.scheduler.onJobSubmission(job)
            self.scheduler.onNoMoreEvents()
        return self.starts


Key = Callable[[Job], float]


class Easy(EasyBackfillNotopo):
    """pybatsim's EASY, which schedules once an instant, in an order, with candidates in another."""

    def __init__(self, order: Key, candidates: Key) -> None:
        super().__init__({})
        self.order, self.candidates, self.due = order, candidates, False

    def _schedule_jobs(self, current_time: int) -> None:
        if self.due:
            super()._schedule_jobs(current_time)

    def _backfill_jobs(self, current_time: int) -> list[Job]:
        self.unscheduled_jobs[1:] = sorted(self.unscheduled_jobs[1:], key=self.candidates)
        return super()._backfill_jobs(current_time)

    def onNoMoreEvents(self) -> None:  # noqa: N802
        self.unscheduled_jobs.sort(key=lambda job: (self.order(job), job.submit_time, job.id))
        self.due = True
        self._schedule_jobs(self.bs.time())
        self.due = False


class Conservative(BatsimScheduler):
    """Conservative backfilling (Mu'alem and Feitelson 2001) on pybatsim's plan of the processors."""

    def onAfterBatsimInit(self) -> None:  # noqa: N802
        self.plan = CpuSnapshot(self.bs.nb_resources, False)
        self.waiting: list[Job] = []
        self.arrived: list[Job] = []
        self.ended = False

    def onJobSubmission(self, job: Job) -> None:  # noqa: N802
        self.arrived.append(job)

    def onJobCompletion(self, job: Job) -> None:  # noqa: N802
        self.plan.archive_old_slices(self.bs.time())
        self.plan.delTailofJobFromCpuSlices(job)
        self.ended = True

    def onNoMoreEvents(self) -> None:  # noqa: N802
        now = self.bs.time()
        self.plan.archive_old_slices(now)
        if self.ended:
            for job in self.waiting:
                self.plan.unAssignJob(job)
                job.start_time = self.plan.assignJobEarliest(job, now)
        for job in self.arrived:
            job.start_time = self.plan.assignJobEarliest(job, now)
            self.bs.wake_me_up_at(job.start_time)
        self.waiting += self.arrived
        self.arrived, self.ended = [], False
        started = [job for job in self.waiting if job.start_time == now]
        self.waiting = [job for job in self.waiting if job.start_time > now]
        for job in self.waiting:
            self.bs.wake_me_up_at(job.start_time)
        for job in started:
            job.allocation = ProcSet()
        self.bs.execute_jobs(started)


ORDERS: dict[str, Key] = {
    "fcfs": lambda job: job.submit_time,
    "sjf": lambda job: job.requested_time,
    "ljf": lambda job: -job.requested_time,
    "saf": lambda job: job.requested_time * job.requested_resources,
    "sqf": lambda job: job.requested_resources,
}


def pybatsim(rows: list[Row], nodes: int, scheduler: BatsimScheduler) -> Starts:
    """Simulate a scheduler; jobs end at their requested time (`kill`), since its plan knows of no others."""
    ended = [{**row, "run": min(row["run"], row["requested"])} for row in rows]
    with contextlib.redirect_stdout(io.StringIO()):  # the plan prints its slices
        return Batsim(ended, nodes, scheduler).run()


# --- the tables -----------------------------------------------------------------------------------------


def without_reservations(
    rows: list[Row], machines: dict[str, dict[str, int]]
) -> Iterator[tuple[str, Starts]]:
    yield "fcfs.run", accasim(rows, machines, FirstInFirstOut)
    yield "sjf.run", accasim(rows, machines, ShortestJobFirst)
    yield "ljf.run", accasim(rows, machines, LongestJobFirst)
    yield "fcfs+greedy.run", accasim(rows, machines, FirstInFirstOut, skip=True)
    yield "sjf+greedy.run", accasim(rows, machines, ShortestJobFirst, skip=True)


def with_reservations(rows: list[Row], nodes: int) -> Iterator[tuple[str, Starts]]:
    for name, order in ORDERS.items():
        yield f"{name}+easy.kill", pybatsim(rows, nodes, Easy(order, order))
    for candidates in ("sjf", "saf"):
        yield f"fcfs+easy-{candidates}.kill", pybatsim(rows, nodes, Easy(ORDERS["fcfs"], ORDERS[candidates]))
    yield "fcfs+conservative.kill", pybatsim(rows, nodes, Conservative())


def read(name: str) -> list[Row]:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", newline="") as file:
        return [
            {key: int(value) for key, value in row.items() if "." not in key} for row in csv.DictReader(file)
        ]


def write(name: str, rows: list[Row], schedules: dict[str, Starts]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0], *schedules], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row | {label: starts[row["job"]] for label, starts in schedules.items()})
    (FOLDER / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def machines_of_the_table() -> dict[str, dict[str, int]]:
    columns = {"TotalCPUs": "cpus", "TotalGPUs": "gpus", "TotalMemory": "memory"}
    with (FOLDER / "machines.csv").open(newline="") as file:
        return {
            row["MachineName"]: {name: int(row[column].split()[0]) for column, name in columns.items()}
            for row in csv.DictReader(file)
        }


def main() -> None:
    for name, nodes in (("lublin_256", 256), ("rounded_64", 64)):
        rows = read(name)
        counted = {"all": {"nodes": nodes}}
        write(name, rows, dict([*without_reservations(rows, counted), *with_reservations(rows, nodes)]))
    rows = read("gpu_cluster")
    write("gpu_cluster", rows, dict(without_reservations(rows, machines_of_the_table())))


if __name__ == "__main__":
    main()
