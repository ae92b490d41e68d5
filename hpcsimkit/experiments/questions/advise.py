"""When will the waiting jobs start? Windows of their start times, from simulated futures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.advice.arrivals import DAY
from hpcsimkit.experiments.advice.futures import Futures, Moment, with_request
from hpcsimkit.experiments.advice.live import Live, live_case, recorded_result
from hpcsimkit.experiments.advice.request import request_columns
from hpcsimkit.experiments.advice.windows import Windows, scores, stretched, windows_of
from hpcsimkit.experiments.comparison.case import Asked, Case
from hpcsimkit.experiments.comparison.policy_run import RESULT
from hpcsimkit.experiments.console import grouped, plain_table
from hpcsimkit.experiments.questions.question import Answer, CaseRun, OfCases, ask, read_seen, write_seen
from hpcsimkit.experiments.source import sha256_of
from hpcsimkit.io.files import write_bytes
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import second_of, time_on_clock
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reports.figures import format_duration
from hpcsimkit.results.result import Result
from hpcsimkit.results.wait_causes import cause_of
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Advice", "AdviceQuestion", "advise"]

Integers = NDArray[np.int64]

UNSUPPORTED = {"begun": "begun", "begin_at": "begin_at", "outages": "failures", "service_time": "locality"}
"""Options with which no future is simulated, with their keys in settings."""

RUN = "run"
PART = 20
"""Number of futures, and of earlier times, in a task."""

DRAWS = 20
"""Number of futures of each earlier time."""

RECENT = 0.3
"""Share of the time up to the one in question from which earlier times are taken, if there are enough."""

ABOUT = ("user", "group", "partition", "queue", "qos")
"""Columns of the log that the table of windows repeats."""

MOVED_BY: Mapping[str, str] = {
    "resources": "a shorter time limit, fewer nodes or less of them, or another partition",
    "priority": "a shorter time limit or fewer nodes, with which backfill finds a place; another partition",
    "limits": "ends of running jobs under the same limit; another account or QOS",
    "array limit": "ends of tasks of its array; a higher limit (scontrol update ArrayTaskThrottle)",
    "dependencies": "ends of the jobs on which it depends",
    "begin time or hold": "its begin time",
    "licences": "ends of jobs that use the licence",
    "nodes down": "nodes that come back; a shorter limit that ends before a reservation",
}
"""What could make a job start earlier, by the cause for which it waits."""

PAGE = "advice.html"
"""Name of the page."""

HEADINGS = ("requested", "early (10 %)", "middle", "late (90 %)", "as requested")
READING = (
    "Times from now on, before which a job starts with a probability of 10, 50 and 90 %; and the start if "
    "all jobs ran as long as requested and no job came."
)

NEVER = -1
"""Start time of a request for which the cluster is too small."""

TOP = 30
"""Maximum number of jobs in the text."""


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Answer):
    """Windows of the start times of the jobs that wait at a time.

    Parameters
    ----------
    at : int
        The time [s of the log's clock].
    table, requests : pandas.DataFrame
        Windows of the waiting jobs, and of requests.
    running, futures, known : int
        Numbers of running jobs, of futures, and of known starts by which the windows were calibrated.
    heading : str
        Title of the picture.
    clock : str
        Date of the time; empty if the log has none.
    stuck : mapping of str to str
        Reasons of the jobs that wait and do not start by themselves, or not within a week, by job. Default:
        none.
    """

    stem = "advice"
    names = ("windows", "requests")
    measured = (
        *("waiting_jobs", "mean_absolute_error", "mean_absolute_error_as_requested"),
        *("share_in_window", "mean_window"),
    )

    at: int
    table: pandas.DataFrame
    requests: pandas.DataFrame
    running: int
    futures: int
    known: int
    heading: str = ""
    clock: str = ""
    stuck: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Windows of the waiting jobs (``windows``) and of requests (``requests``).

        Columns of times [s of the log's clock]: ``as_requested``, the start if all jobs run as long as
        requested and no job comes; ``low``, ``middle`` and ``high``, before which the job starts with the
        probabilities 0.1, 0.5 and 0.9; ``start_time``, the start in the run of the whole log. ``ahead``
        is the number of waiting jobs with an earlier start as requested. Times of a request for which the
        cluster is too small are -1, and so are unknown starts. Jobs of a live queue have the ``reason`` that
        Slurm states, and ``moved_by``, what could make them start earlier. With Slurm's configuration, other
        jobs and requests have the ``reason`` for which they wait by its rules, ``None`` if they start now.
        """
        return {"windows": self.table, "requests": self.requests}

    @property
    def measures(self) -> Mapping[str, float]:
        """Number of waiting jobs, mean errors [s], share of the starts in their windows, mean window [s].

        Errors are those of the middle and of the start as requested, for jobs whose start is known.
        """
        table = self.table[self.table["start_time"] >= 0]
        start, inside = table["start_time"], table["start_time"].between(table["low"], table["high"])
        values = (
            *(len(self.table), (table["middle"] - start).abs().mean()),
            *((table["as_requested"] - start).abs().mean(), inside.mean()),
            (self.table["high"] - self.table["low"]).mean(),
        )
        return dict(zip(self.measured, map(float, values), strict=True))

    def figure(self) -> Figure:
        """Return a figure of the windows."""
        from hpcsimkit.reports.answers import draw_windows

        return draw_windows(self.table, self.requests, self.at, self.heading)

    def save(self, folder: Path) -> None:
        """Write the tables, as CSV and JSON, the page, and the picture.

        Raises
        ------
        StorageError
            A file cannot be written.
        """
        from hpcsimkit.reports.figures import png_of, png_uri

        self.save_tables(folder)
        image = png_of(self.figure())  # for both: to draw it again takes half a second
        write_bytes(folder / f"{self.stem}.png", image)
        plain = {name: json.loads(table.to_json(orient="records")) for name, table in self.tables.items()}
        text = json.dumps({"at": self.at, **plain}, indent=2)
        write_bytes(folder / "windows.json", f"{text}\n".encode())
        write_bytes(folder / PAGE, self._page(png_uri(image)).encode())

    @classmethod
    def files(cls) -> list[str]:
        """Return the names of the files, the one to look at last."""
        *tables, picture = super().files()
        return [*tables, "windows.json", picture, PAGE]

    def page(self) -> str:
        """Return a page of HTML with the windows of all jobs, which needs no other file."""
        from hpcsimkit.reports.figures import image_uri

        return self._page(image_uri(self.figure()))

    def _page(self, picture: str) -> str:
        from hpcsimkit.reports.page import rendered_page

        titles = {"job": "Waiting jobs", "request": "Hypothetical requests"}
        tables = [
            {"title": titles[name], "reading": READING, "headings": headings, "rows": rows}
            for name, headings, rows in self._shown(len(self.table))
        ]
        moves: dict[str, str] = {}
        if "reason" in self.table:
            pairs = zip(self.table["reason"].tolist(), self.table["moved_by"].tolist(), strict=True)
            moves = {reason: text for reason, text in pairs if text}
        return rendered_page(
            "advice.html.jinja",
            title=f"Starts of waiting jobs, {self.clock or self._when}",
            heading=f"{self.heading}, at {self._when}",
            tiles=[
                (grouped(self.running), "jobs that run"),
                (grouped(len(self.table) + len(self.stuck)), "jobs that wait"),
                (grouped(self.futures), "futures"),
            ],
            tables=tables,
            moves=moves,
            stuck=self.stuck,
            picture=picture,
            note=self._made_of,
        )

    @property
    def _when(self) -> str:
        return f"{self.clock}, second {self.at:,}" if self.clock else f"second {self.at:,}"

    @property
    def _made_of(self) -> str:
        calibrated = f"calibrated by {grouped(self.known)} starts before" if self.known else "not calibrated"
        return f"windows of {grouped(self.futures)} futures, {calibrated}"

    def _shown(self, most: int) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Yield what the rows of a table are, its headings, and its rows: windows as times from now on."""
        for title, table in (("job", self.table.head(most)), ("request", self.requests)):
            if len(table):
                about = [name for name in table.columns if name in (*ABOUT, "nodes", "reason")]
                if {"queue", "partition"} <= {*about} and table["queue"].equals(table["partition"]):
                    about.remove("queue")
                headings = [title, *about, *HEADINGS]
                yield title, headings, [self._cells(row, about) for row in table.to_dict("records")]

    def lines(self) -> Iterator[str]:
        """Yield the windows as times from now on, those of the first jobs in the queue."""
        waiting = grouped(len(self.table))
        yield f"at {self._when}: jobs that run: {grouped(self.running)}, that wait: {waiting}"
        for _, headings, rows in self._shown(TOP):
            yield plain_table(headings, rows)
        if not len(self.table):
            yield "no job waits"
        if self.stuck:
            named = ", ".join(f"{job} ({reason})" for job, reason in self.stuck.items())
            yield f"jobs that do not start by themselves, or not within a week: {named}"
        if len(self.table) > TOP:
            yield f"{grouped(len(self.table) - TOP)} further jobs in windows.csv"
        yield self._made_of
        measures = self.measures
        if measures["mean_absolute_error"] == measures["mean_absolute_error"]:
            yield (
                f"what the log knows: mean error {format_duration(measures['mean_absolute_error'])} "
                f"(as requested {format_duration(measures['mean_absolute_error_as_requested'])}), "
                f"{measures['share_in_window']:.0%} of the starts in their windows"
            )

    def _cells(self, row: Mapping[Any, Any], about: Sequence[str]) -> list[str]:
        times = (row[name] for name in ("low", "middle", "high", "as_requested"))
        texts = ("never" if time == NEVER else format_duration(time - self.at) for time in times)
        values = [str(row[name]) for name in (next(iter(row)), *about)]
        return [*values, format_duration(row["requested_time"]), *texts]


@dataclass(frozen=True, kw_only=True)
class AdviceQuestion(OfCases):
    """When will the jobs that wait at a time start?

    Parameters
    ----------
    case : Case
        The case.
    at : int or str, optional
        The time [s of the log's clock], or a date of a log that has dates; by default the last submission.
    futures : int
        Number of futures, >= 1.
    calibration : int
        Number of earlier times at which the windows are calibrated; 0 for none.
    requests : sequence of str
        Hypothetical requests; see
        :func:`~hpcsimkit.experiments.advice.request.request_columns`.
    recorded : bool
        Whether jobs have started until then as the log records, and not as in a simulation.
    queue : str
        Path of the live queue, whose jobs are among those of the case; empty for none.
    live : Live, optional
        The jobs of the case by what the queue says of them.
    """

    answers = Advice
    has_trace = False

    at: int | str | None = None
    futures: int = 200
    calibration: int = 40
    requests: Sequence[str] = ()
    recorded: bool = False
    queue: str = ""
    live: Live | None = None

    @classmethod
    def of_queue(
        cls, case: Case, queue: str, at: int | str | None = None, **parameters: Any
    ) -> AdviceQuestion:
        """Return the question about the jobs that wait in a live queue; the case has those that have ended.

        Raises
        ------
        UsageError
            A parameter is invalid, or the clocks of the log and of the queue differ.
        WorkloadError
            The queue cannot be read.
        """
        second = None if at is None else time_on_clock(at, case.jobs, "advise: at")
        whole, live = live_case(case, queue, second)
        return cls(case=whole, at=live.at, recorded=True, queue=queue, live=live, **parameters)

    def __post_init__(self) -> None:
        if self.futures < 1:
            raise UsageError(f"futures needs a number of at least 1, found {self.futures}")
        if self.calibration < 0:
            raise UsageError(f"calibration needs a number of at least 0, found {self.calibration}")
        for name, key in UNSUPPORTED.items():
            if getattr(self.case.setup, name) is not None:
                raise UsageError(f"advise: {key} is not supported")
        if not self.case.setup.restart.plain:
            raise UsageError("advise: restart is not supported")
        if not self.case.setup.event_order.knows("begun"):
            name = self.case.setup.event_order.name
            raise UsageError(f"advise: the semantics {name!r} are not supported")
        self.second  # noqa: B018 - an invalid time is an error here
        for text in self.requests:
            columns = request_columns(text, self.case.jobs, self.second)
            cluster = self.case.cluster
            if isinstance(cluster, Partitions) and not _names_a_partition(columns, cluster):
                example = f"{cluster.column}={cluster.names[0]}"
                raise UsageError(
                    f"{text!r}: a partition is needed, as none is the default: {', '.join(cluster.names)}; "
                    f"add {example}"
                )

    @cached_property
    def second(self) -> int:
        """The time [s]."""
        at = int(self.case.jobs.submit_time.max(initial=0)) if self.at is None else self.at
        return second_of(at, self.case.jobs, "advise: at") if self.live is None else self.live.at

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        queue = {"queue": f"{Path(self.queue).name} ({sha256_of(self.queue)[:8]})"} if self.queue else {}
        return {
            "at": self.at,
            "futures": self.futures,
            "calibration": self.calibration,
            "requests": list(self.requests),
            "recorded": self.recorded,
            **queue,
        }

    def look(self, case: Case, folder: Path) -> None:
        """Simulate the log, or take its schedule, and write the result."""
        if self.recorded:
            ended = np.ones(len(case.jobs), dtype=bool) if self.live is None else self.live.ended
            recorded_result(case.jobs, ended, case.cluster, case.name).save(folder / RESULT)
        else:
            case.run().save(folder / RESULT)

    @property
    def tasks(self) -> Sequence[Task]:
        """The run of the log, and the futures of parts of the earlier times and of the time itself."""
        parts = [FuturesRun(self, "waiting", first) for first in range(0, self.futures, PART)]
        for number in self._possible:
            parts += [FuturesRun(self, f"request{number}", first) for first in range(0, self.futures, PART)]
        parts += [FuturesRun(self, "past", first) for first in range(0, self.calibration, PART)]
        return [*super().tasks, *parts]

    @cached_property
    def _possible(self) -> list[int]:
        """Numbers of the requests for which the cluster is large enough."""
        columns = [request_columns(text, self.case.jobs, self.second) for text in self.requests]
        misfits = [self.case.cluster.misfits(with_request(self.case.jobs, each))[-1] for each in columns]
        return [number for number, misfit in enumerate(misfits) if not misfit]

    def result(self, tasks: Path) -> Result:
        """Return the run of the log from the folder of the tasks."""
        return Result.load(tasks / RUN / RESULT)

    def futures_of(self, what: str, tasks: Path) -> Futures:
        """Return the futures of the waiting jobs, or of them and a request, from the folder of the tasks.

        Tasks that follow each other in one process have them in common.
        """
        number = what.removeprefix("request")
        asked = self.requests[int(number)] if is_whole_number(number) else ""
        if (tasks, asked) not in self._last:
            result = self.result(tasks)
            request = request_columns(asked, result.workload, self.second) if asked else None
            self._last.clear()
            self._last[tasks, asked] = self._futures(result, request)
        return self._last[tasks, asked]

    def _futures(self, result: Result, request: Mapping[str, int] | None = None) -> Futures:
        live_at = None if self.live is None else self.live.at
        return Futures(self.case, result, request, recorded=self.recorded, live_at=live_at)

    @cached_property
    def _last(self) -> dict[tuple[Path, str], Futures]:
        """The futures that this process has asked for last."""
        return {}

    def earlier(self, futures: Futures) -> list[Moment]:
        """Return earlier times at which jobs waited whose starts are all known at the time in question.

        A log of less than a day has none: of its times, those with the short waits would be chosen.
        """
        result, at = futures.result, self.second
        rng = np.random.default_rng([self.case.setup.seed, 0])
        first = int(result.submit_time.min())
        if at - first < DAY:
            return []
        found: list[Moment] = []
        for share in (RECENT, 1.0):
            for each in rng.integers(at - int(share * (at - first)), at + 1, 50 * self.calibration).tolist():
                if len(found) == self.calibration:
                    break
                moment = futures.moment(each)
                starts = futures.next_start(moment)
                if len(starts) and starts.min() >= 0 and starts.max() <= at:
                    found.append(moment)
        return sorted(found, key=lambda moment: moment.at)

    def answer(self, store: Store) -> Advice:
        """Return the windows."""
        result, tasks = Result.load(store.folder(self.tasks[0]) / RESULT), self.tasks[1:]
        seen = [(task.what, read_seen(store.folder(task))) for task in tasks if isinstance(task, FuturesRun)]
        past = [arrays for what, arrays in seen if what == "past"]
        below, above = (np.concatenate([np.zeros(0), *(each[name] for each in past)]) for name in SCORES)

        futures = self._futures(result)
        moment = futures.moment(self.second)
        eligible = np.maximum(result.submit_time[moment.waiting], self.second)

        def windows(what: str) -> tuple[Integers, Windows]:
            parts = [arrays for name, arrays in seen if name == what]
            starts = np.concatenate([arrays["starts"] for arrays in parts])
            earliest = eligible if what == "waiting" else self.second
            return parts[0]["as_requested"], stretched(windows_of(starts), below, above, earliest)

        def reasons(what: str) -> list[str]:
            """Return the reasons of Slurm's rules; of a run without them, they are empty."""
            return next(list[str](arrays["reasons"].tolist()) for name, arrays in seen if name == what)

        names = [result.workload.label("id", int(each)) for each in result.workload.id[moment.waiting]]
        told = dict(zip(names, reasons("waiting"), strict=True)) if self.live is None else self.live.reasons
        table = _table(result.workload, moment.waiting, *windows("waiting"), futures.next_start(moment))
        return Advice(
            self.second,
            _with_reasons(table, told) if self.live is not None or any(told.values()) else table,
            self._of_requests(
                {number: windows(f"request{number}") for number in self._possible},
                {number: reasons(f"request{number}")[-1] for number in self._possible},
            ),
            running=len(moment.running),
            futures=self.futures,
            known=len(below),
            heading=f"{self.case.name} on {self.case.jobs.name}",
            stuck={} if self.live is None else self.live.stuck,
            clock="" if (calendar := calendar_of(result.workload)) is None else calendar.text(self.second),
        )

    def _of_requests(
        self, found: Mapping[int, tuple[Integers, Windows]], reasons: Mapping[int, str]
    ) -> pandas.DataFrame:
        """Return the windows of the requests; -1 for those that can never start."""
        import pandas

        rows = []
        for number, text in enumerate(self.requests):
            columns = request_columns(text, self.case.jobs, self.second)
            times = [NEVER] * 4
            if number in found:
                as_requested, windows = found[number]
                times = [round(float(each[-1])) for each in (as_requested, *windows)]
            rows.append([text, columns["nodes"], columns["requested_time"], *times])
        names = ["request", "nodes", "requested_time", "as_requested", "low", "middle", "high"]
        table = pandas.DataFrame(rows, columns=names)
        if not any(reasons.values()):
            return table
        return table.assign(reason=[reasons.get(number, "") for number in range(len(table))])


SCORES = ("below", "above")


class FuturesRun(CaseRun):
    """Futures of the waiting jobs, of them and a request, or of earlier times."""

    kind = "futures"
    requires = (RUN,)
    prepares_others = True  # see AdviceQuestion.futures_of

    def __init__(self, question: AdviceQuestion, what: str, first: int) -> None:
        super().__init__(question, f"{what}-{first}", question.case)
        self.advice, self.what, self.first = question, what, first
        total = question.calibration if what == "past" else question.futures
        self.count = min(PART, total - first)

    @property
    def size(self) -> int:
        """Number of futures."""
        return self.count * (DRAWS if self.what == "past" else 1)

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate the futures, and write their start times, or scores, to the folder."""
        question = self.advice
        futures = question.futures_of(self.what, folder.parent)
        if self.what == "past":
            below, above = self._scores(futures, tell)
            write_seen(folder, below=below, above=above)
            return {}
        moment = futures.moment(question.second)
        if not len(moment.waiting) and not question.requests:
            raise UsageError(f"advise: no job waits at {question.second:,} s")
        rng = np.random.default_rng([self.case.setup.seed, 1, self.first])
        starts = []
        for done, start in enumerate(futures.draw(moment, self.count, rng)):
            starts.append(start)
            tell(done + 1)
        # A live queue states those of the waiting jobs.
        asked = not self.first and (question.live is None or self.what != "waiting")
        reasons = np.array(futures.reasons(moment) if asked else [], dtype=np.str_)
        write_seen(
            folder, starts=np.array(starts), as_requested=futures.as_requested(moment), reasons=reasons
        )
        return {}

    def _scores(self, futures: Futures, tell: Tell) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the scores of known starts at some earlier times."""
        found: list[tuple[Any, Any]] = []
        moments = self.advice.earlier(futures)[self.first : self.first + self.count]
        for number, moment in enumerate(moments):
            rng = np.random.default_rng([self.case.setup.seed, 2, self.first + number])
            windows = windows_of(np.array([*futures.draw(moment, DRAWS, rng)]))
            found.append(scores(windows, futures.next_start(moment)))
            tell((number + 1) * DRAWS)
        below, above = (np.concatenate([np.zeros(0), *(pair[side] for pair in found)]) for side in (0, 1))
        return below, above


def _names_a_partition(columns: Mapping[str, int], cluster: Partitions) -> bool:
    """Return whether a request names its partition, or one is the default."""
    return cluster.column in columns or any(part.default for part in cluster.parts)


def _table(
    workload: Workload, waiting: Integers, as_requested: Integers, windows: Windows, start_time: Integers
) -> pandas.DataFrame:
    """Return the windows of the waiting jobs, in the order of their starts as requested."""
    import pandas

    columns: dict[str, Any] = {"job_id": [workload.label("id", int(each)) for each in workload.id[waiting]]}
    for name in ABOUT:
        if name in workload.columns:
            numbers = workload.column(name)[waiting].tolist()
            columns[name] = [workload.label(name, number) if number >= 0 else "" for number in numbers]
    columns |= {name: workload.column(name)[waiting] for name in ("nodes", *workload.resources)}
    columns |= {name: workload.column(name)[waiting] for name in ("submit_time", "requested_time")}
    # Jobs that never start, as limits hold them, come last.
    in_turn = np.where(as_requested >= 0, as_requested, np.iinfo(np.int64).max)
    columns["ahead"] = np.searchsorted(np.sort(in_turn), in_turn)
    columns["as_requested"] = as_requested
    columns |= {name: np.rint(each).astype(np.int64) for name, each in windows._asdict().items()}
    columns["start_time"] = start_time
    return pandas.DataFrame(columns).iloc[np.argsort(in_turn, kind="stable")].reset_index(drop=True)


def _with_reasons(table: pandas.DataFrame, reasons: Mapping[str, str]) -> pandas.DataFrame:
    """Return a table of windows with the reason of each job, and what could make it start earlier."""
    told = [reasons.get(job, "") for job in table["job_id"].tolist()]
    moved = [MOVED_BY.get(cause_of(reason), "") for reason in told]
    return table.assign(reason=told, moved_by=moved)


def advise(  # noqa: PLR0913 - all but the first three are keywords
    workload: Asked | Case,
    at: int | str | None = None,
    policy: str | Policy = "fcfs+easy",
    cluster: AnyCluster | int | None = None,
    *,
    futures: int = 200,
    calibration: int = 40,
    requests: Sequence[str] = (),
    recorded: bool = False,
    queue: str = "",
    engine: Engine | None = None,
    **options: Any,
) -> Advice:
    """Say when the jobs that wait at a time will start.

    The state at that time is that of a simulation of the log. From it, futures are simulated, in which
    running and waiting jobs take as long as past jobs of their users, and arrivals are those of past weeks
    (days or hours, in a short log); only what was known at that time is used. The windows hold a start with a
    probability of 80 %: they are stretched so that windows of earlier times would have held that share.

    Parameters
    ----------
    workload, policy, cluster, **options
        As in :meth:`~hpcsimkit.experiments.comparison.case.Case.of`, or a case.
    at : int or str, optional
        The time [s of the log's clock], or a date of a log that has dates, such as ``"2024-03-01T12:00:00"``.
        By default it is the last submission.
    futures : int
        Number of futures, >= 1. Default: 200.
    calibration : int
        Number of earlier times at which the windows are calibrated; 0 for none. Default: 40.
    requests : sequence of str
        Hypothetical requests, such as ``"nodes=4,time=2:00:00"``. Default: none.
    recorded : bool
        Whether jobs have started until then as the log records, and not as in a simulation. Default: False.
    queue : str
        Path of the live queue of Slurm, at whose time the jobs wait: see
        :func:`~hpcsimkit.workloads.readers.slurm_queue.read_queue`. The log has the jobs that have ended.
        Default: none.
    engine : Engine, optional
        Engine that executes the simulations; by default this process.

    Raises
    ------
    UsageError
        A name, an option or a request is invalid, or no job waits at that time.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> columns = {"submit_time": [0, 5, 9], "run_time": [60] * 3, "requested_time": [90] * 3}
    >>> found = advise(Workload({**columns, "nodes": [1] * 3}, machine_size=1), at=9, futures=5)
    >>> found.table[["job_id", "as_requested", "start_time"]].values.tolist()
    [['2', 90, 60], ['3', 180, 120]]
    """
    case = Case.of(workload, policy, cluster, **options)
    about: dict[str, Any] = {"futures": futures, "calibration": calibration, "requests": requests}
    question = (
        AdviceQuestion.of_queue(case, queue, at, **about)
        if queue
        else AdviceQuestion(case=case, at=at, recorded=recorded, **about)
    )
    found: Advice = ask(question, engine)
    return found
