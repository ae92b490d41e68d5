"""Dependencies in the manner of Slurm: a job may start after other jobs have started or ended."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.gate import Gate, Held, rows_by_number
from hpcsimkit.kernel.system import System

__all__ = ["AFTER_FAILED", "AfterJobs", "JobNumbers", "Term", "terms_of"]

KINDS = ("after", "afterany", "afterok", "afternotok", "singleton")
AFTER_FAILED = (0, 4, 5)
"""Status (SWF field 11) of jobs that did not end well."""

STATE = re.compile(r"\([a-z ]*\)")
"""State of a condition, as in the output of squeue: ``afterok:12(unfulfilled)``."""

JOB = re.compile(r"(?P<job>[^:+]+)(?:\+(?P<minutes>\d{1,9}))?")


class Term(NamedTuple):
    """One condition of a dependency.

    Attributes
    ----------
    kind : str
        ``"after"``, ``"afterany"``, ``"afterok"``, ``"afternotok"`` or ``"singleton"``.
    job : str
        Number or name of the other job, or number of an array; empty for a singleton.
    delay : int
        Time from the start of the other job [s], of ``"after"`` only.
    """

    kind: str
    job: str = ""
    delay: int = 0


def terms_of(text: str) -> tuple[list[Term], bool]:
    """Return the conditions of a dependency as Slurm writes it, and whether one of them is enough.

    Raises
    ------
    WorkloadError
        The text cannot be read.

    Examples
    --------
    >>> terms_of("afterok:12:13,singleton")
    ([Term(kind='afterok', job='12', delay=0), Term(kind='afterok', job='13', delay=0), Term(kind='singleton', job='', delay=0)], False)
    >>> terms_of("after:7+2?afterany:8(unfulfilled)")
    ([Term(kind='after', job='7', delay=120), Term(kind='afterany', job='8', delay=0)], True)
    """  # noqa: E501
    plain = STATE.sub("", text.strip())
    any_of = "?" in plain
    if any_of and "," in plain:
        raise WorkloadError(f"a dependency is joined either by ',' or by '?', found {text!r}")
    found: list[Term] = []
    for part in plain.split("?" if any_of else ","):
        kind, *jobs = part.strip().split(":")
        if kind not in KINDS or bool(jobs) == (kind == "singleton"):
            raise WorkloadError(
                f"a dependency needs {', '.join(f'{each}:JOB' for each in KINDS[:-1])} or singleton, "
                f"found {part!r}"
            )
        found += [_term(kind, job, part) for job in jobs] or [Term(kind)]
    return found, any_of


def _term(kind: str, text: str, part: str) -> Term:
    read = JOB.fullmatch(text)
    if read is None or (read["minutes"] and kind != "after"):
        raise WorkloadError(f"a dependency needs a job, with +MINUTES for after only, found {part!r}")
    return Term(kind, read["job"].removesuffix("_*"), 60 * int(read["minutes"] or 0))


class Condition:
    """The conditions of some jobs with the same dependency: all of them, or any of them."""

    def __init__(self, terms: int, *, any_of: bool) -> None:
        self.rows: list[int] = []
        self.any_of = any_of
        self.open = terms
        self.met: bool | None = None  # None: undecided
        self.not_before = 0

    def settle(self, *, met: bool, at: int) -> bool:
        """Enter that one of them is met from a time on, or never; return whether that changes anything."""
        before = self.met, self.not_before
        self.open -= 1
        if met and self.any_of and self.met:
            self.not_before = min(self.not_before, at)
        elif met:
            self.not_before = max(self.not_before, at)
        if self.met is None and (met == self.any_of or not self.open):
            self.met = met
        return self.met is not None and (self.met, self.not_before) != before


class AfterJobs(Gate):
    """Dependencies on other jobs, in the column ``dependency``, as for Slurm's ``--dependency``.

    The kinds are ``after`` (the other job has started), ``afterany`` (it has ended), ``afterok`` (it has
    ended well), ``afternotok`` (it has not), and ``singleton`` (all earlier jobs of the same user and name
    have ended); the rules are on the page of semantics. A job whose conditions can never be met is rejected.

    Parameters
    ----------
    missing : {"error", "ignore"}
        Treatment of conditions on jobs that are not in the workload: an error, or they count as met, as for a
        part of a log. Default: ``"error"``.

    Examples
    --------
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 5, 1], "nodes": [1, 1, 1],
    ...               "dependency": [-1, -1, 0]}, labels={"dependency": ("afterok:1:2",)}, machine_size=3)
    >>> Simulation(w, make("fcfs"), gates=(AfterJobs(),)).run().start_time.tolist()
    [0, 1, 9]
    """

    columns = ("dependency",)
    reads_queue = False

    def __init__(self, missing: str = "error") -> None:
        self.missing = missing

    def reset(self, workload: Workload) -> None:
        """Read the dependencies.

        Raises
        ------
        WorkloadError
            A dependency cannot be read, names a job that is not in the workload, or is part of a cycle; or
            job numbers are not unique.
        """
        if self.missing not in ("error", "ignore"):
            raise UsageError(f"missing needs 'error' or 'ignore', found {self.missing!r}")
        self.condition_of: dict[int, Condition] = {}
        self.asked_of: dict[int, list[tuple[Term, Condition]]] = defaultdict(list)
        self.names = Names(workload)
        texts: dict[tuple[int, int], Condition] = {}
        jobs_of = JobNumbers(workload)
        column = workload.column("dependency")
        for row in (column >= 0).nonzero()[0].tolist():
            number = int(column[row])
            text = workload.label("dependency", number)
            terms, any_of = _read(text, workload, row)
            single = any(term.kind == "singleton" for term in terms)
            condition = texts.get((number, row if single else -1))
            if condition is None:
                condition = self._condition(terms, row, jobs_of, any_of=any_of)
                texts[number, row if single else -1] = condition
            condition.rows.append(row)
            self.condition_of[row] = condition
        _refuse_cycles(workload, self.condition_of, self.asked_of)

    def _condition(self, terms: list[Term], row: int, jobs_of: JobNumbers, *, any_of: bool) -> Condition:
        """Return the condition of a job, which the other jobs then know of."""
        others: list[tuple[int, Term]] = []
        ignored = False
        for term in terms:
            found = [] if term.kind == "singleton" else jobs_of.named(term.job)
            others += [(other, term) for other in found]
            if term.kind != "singleton" and not found:
                ignored = True
                if self.missing == "error":
                    raise WorkloadError(
                        f"{where(jobs_of.workload, row)} depends on job {term.job}, "
                        "which is not in the workload"
                    )
        single = any(term.kind == "singleton" for term in terms)
        condition = Condition(len(others) + single, any_of=any_of)
        if not condition.open or (any_of and ignored):
            condition.met = True
        for other, term in others:
            self.asked_of[other].append((term, condition))
        if single and self.names.must_wait(row):
            self.names.waiting[row] = condition
        elif single:
            condition.settle(met=True, at=0)
        return condition

    def holds(self, job: Job, system: System) -> Held | None:
        """Hold a job until its conditions are met."""
        condition = self.condition_of.get(job.index)
        if condition is None:
            return None
        if condition.met is None:
            return Held("Dependency")
        if not condition.met:
            return Held("DependencyNeverSatisfied", never=True)
        return Held("Dependency", until=condition.not_before) if condition.not_before > system.now else None

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs whose conditions are decided by the start of a job."""
        asked = self.asked_of.get(job.index)
        if not asked:
            return ()
        begun = [each for each in asked if each[0].kind == "after"]
        if begun:
            self.asked_of[job.index] = [each for each in asked if each[0].kind != "after"]
        return list(self._settled(begun, system, well=True))

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs whose conditions are decided by the end of a job."""
        row = job.index
        status = system.workload.column("status")[row]
        well = row not in system.ledger.incomplete and status not in AFTER_FAILED
        return self._over(row, system, well=well)

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs whose conditions are decided by the rejection of a job."""
        return self._over(job.index, system, well=False)

    def _over(self, row: int, system: System, *, well: bool) -> list[Job]:
        changed = list(self._settled(self.asked_of.pop(row, ()), system, well=well))
        condition = self.names.over(row)
        if condition is not None and condition.settle(met=True, at=0):
            changed += [system.jobs[each] for each in condition.rows]
        return changed

    @staticmethod
    def _settled(asked: Iterable[tuple[Term, Condition]], system: System, *, well: bool) -> Iterator[Job]:
        """Yield the jobs whose conditions change with the end of a job, or with its start."""
        for term, condition in asked:
            met = {"afterok": well, "afternotok": not well}.get(term.kind, True)
            if condition.settle(met=met, at=system.now + term.delay if term.delay else 0):
                yield from (system.jobs[row] for row in condition.rows)


class Names:
    """The jobs of each user with the same name, in the order of submission."""

    def __init__(self, workload: Workload) -> None:
        self._users, self._programs = (workload.column(name).tolist() for name in ("user", "executable"))
        self.rows_of: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in workload.arrival_order.tolist():
            self.rows_of[self._key(row)].append(row)
        self._over: set[int] = set()
        self._next: dict[tuple[int, int], int] = defaultdict(int)
        self.waiting: dict[int, Condition] = {}

    def _key(self, row: int) -> tuple[int, int]:
        return self._users[row], self._programs[row]

    def must_wait(self, row: int) -> bool:
        """Return whether there are jobs before this one."""
        return self.rows_of[self._key(row)][0] != row

    def over(self, row: int) -> Condition | None:
        """Enter that a job is over; return the condition of the job that is first now, if it has one."""
        key = self._key(row)
        rows, place = self.rows_of[key], self._next[key]
        self._over.add(row)
        while place < len(rows) and rows[place] in self._over:
            place += 1
        self._next[key] = place
        return self.waiting.pop(rows[place], None) if place < len(rows) else None


class JobNumbers:
    """The jobs by their numbers, names and arrays."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._row_of = rows_by_number(workload)
        names = workload.labels.get("id", ())
        self._row_of_name = {
            names[number]: row for number, row in self._row_of.items() if 0 <= number < len(names)
        }
        self._arrays: dict[int, list[int]] = defaultdict(list)
        if "array_job" in workload.columns:
            for row, array in enumerate(workload.column("array_job").tolist()):
                self._arrays[array].append(row)

    def named(self, name: str) -> list[int]:
        """Return the rows of the job with a number or name, or of the jobs of an array."""
        row = self._row_of_name.get(name)
        if row is None and is_whole_number(name):
            number = int(name)
            row = None if self._row_of_name else self._row_of.get(number)
            if row is None and number >= 0:
                return self._arrays.get(number, [])
        return [] if row is None else [row]


def where(workload: Workload, row: int) -> str:
    """Return the name of a job for messages, with the line of the log if it is known."""
    line = "" if workload.lines is None else f":{workload.lines[row]}"
    job = workload.label("id", int(workload.column("id")[row]))
    return f"{workload.name}{line}: job {job}"


def _read(text: str, workload: Workload, row: int) -> tuple[list[Term], bool]:
    try:
        return terms_of(text)
    except WorkloadError as error:
        raise WorkloadError(f"{where(workload, row)}: {error}") from None


def _refuse_cycles(
    workload: Workload,
    condition_of: dict[int, Condition],
    asked_of: dict[int, list[tuple[Term, Condition]]],
) -> None:
    """Raise a WorkloadError if jobs depend on each other in a cycle."""
    left = {id(condition): condition.open for condition in condition_of.values()}
    parents: dict[int, list[int]] = defaultdict(list)
    for row, asked in asked_of.items():
        for _, condition in asked:
            parents[id(condition)].append(row)
    for condition in condition_of.values():
        left[id(condition)] = len(parents[id(condition)])
    free = [row for row in asked_of if row not in condition_of or not left[id(condition_of[row])]]
    for row in free:  # the list grows during iteration
        for _, condition in asked_of.get(row, ()):
            left[id(condition)] -= 1
            if not left[id(condition)]:
                free += condition.rows
    stuck = next((row for row, condition in condition_of.items() if left[id(condition)]), None)
    if stuck is None:
        return
    path: list[int] = []
    while stuck not in path:
        path.append(stuck)
        waits_for = parents[id(condition_of[stuck])]
        stuck = next(row for row in waits_for if row in condition_of and left[id(condition_of[row])])
    cycle = path[path.index(stuck) :]
    numbers = [workload.label("id", int(workload.column("id")[row])) for row in cycle]
    text = " on job ".join([*numbers[1:], numbers[0]])
    raise WorkloadError(f"{where(workload, cycle[0])} depends on job {text}: a cycle of dependencies")
