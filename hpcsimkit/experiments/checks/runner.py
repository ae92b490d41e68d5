"""One runner for all checks: a part is a function from a workload to a trace, and traces are compared."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.checks.workloads import with_other_ends
from hpcsimkit.jobs.columns import REQUIRED_COLUMNS
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import message_of
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.stage import Hearing
from hpcsimkit.results.result import Result

INSTANTS = 4
"""Maximum number of instants of each workload after which the future is changed."""

SHRINKING_RUNS = 200
"""Maximum number of runs in the search for a smaller example."""

EVENT = "on_"
"""Beginning of the names of methods that are called at an event."""

LONGEST_CODE = 20
"""Maximum number of jobs of an example that is written as code."""

Failure = Callable[[Workload], str | None]
"""Function that returns a problem of the part on a workload, or None."""


class CheckError(HpcsimkitError):
    """A part failed a check; the message names the check and a workload."""


@dataclass(frozen=True)
class CheckReport:
    """Report of a part that passed all checks.

    Attributes
    ----------
    part : str
        Representation of the part.
    checks : tuple of str
        Names of the checks.
    workloads, jobs : int
        Number of workloads, and of all jobs in them.
    decisions : int, optional
        Number of decisions of the seat of an encoder, reward or agent; None for policies.
    rejected : int
        Number of jobs that a policy rejected.
    notes : tuple of str
        Notes on aspects that were not checked.
    """

    part: str
    checks: tuple[str, ...]
    workloads: int
    jobs: int
    decisions: int | None = None
    rejected: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        amount = f"{self.jobs} jobs" if self.decisions is None else f"{self.decisions} decisions"
        head = f"{self.part}: passed on {self.workloads} workloads, {amount}"
        if self.rejected:
            head += f", {self.rejected} of them rejected"
        return "\n".join([head, *(f"  {check}" for check in self.checks), *self.notes])


class Trace(Protocol):
    """Events of a run that depend on the part, in the order of their times, with the schedule."""

    @property
    def result(self) -> Result: ...

    def difference(self, other: Self, until: int | None = None) -> str | None:
        """Describe the first difference of another trace, up to an instant [s]; None if there is none.

        A trace of fewer jobs is compared with the beginning of this one.
        """
        ...


P = TypeVar("P")
T = TypeVar("T", bound=Trace)


class Checks(Generic[P, T]):
    """Comparisons of the traces of a part: `traced` returns its trace for a workload.

    Each trace is that of a copy of the part, except where the part might keep a state.
    """

    def __init__(self, part: P, traced: Callable[..., T], seed: int) -> None:
        self.part = part
        self.traced = traced
        self.seed = seed

    def trace(self, workload: Workload) -> T:
        return self.traced(copy.deepcopy(self.part), workload)

    def is_not_repeatable(self, workload: Workload) -> str | None:
        """Compare two runs."""
        difference = self.trace(workload).difference(self.trace(workload))
        return difference and f"two runs with seed {self.seed} differ: {difference}"

    def remembers(self, workload: Workload) -> str | None:
        """Compare two runs with a run of half of the jobs in between."""
        part = copy.deepcopy(self.part)
        before, text = self.traced(part, workload), repr(part)
        if len(workload) > 1:
            self.traced(part, workload.select(slice(None, None, 2)))
        difference = before.difference(self.traced(part, workload))
        if difference:
            return f"after a run of another workload, {difference}"
        return None if repr(part) == text else f"a run changes it into {part!r}"

    def is_clairvoyant(self, workload: Workload) -> str | None:
        """Change the run times of jobs that end after some instants; earlier events must not change."""
        trace, rng = self.trace(workload), np.random.default_rng(self.seed)
        result = trace.result
        for at in self._some(result.start_time[result.finished], rng):
            changed, rows = with_other_ends(workload, result, at, rng)
            difference = trace.difference(self.trace(changed), until=at)
            if difference:
                jobs = ", ".join(str(workload.jobs[row].id) for row in rows[:5]) + ", ..." * (len(rows) > 5)
                return f"with other run times of jobs that end after t={at} s ({jobs}), {difference}"
        return None

    def knows_what_is_to_come(self, workload: Workload) -> str | None:
        """Remove the jobs submitted after some instants; earlier events must not change."""
        trace, rng = self.trace(workload), np.random.default_rng(self.seed)
        last = workload.submit_time.max()
        for at in self._some(workload.submit_time[workload.submit_time < last], rng):
            known = self.trace(workload.select(workload.submit_time <= at))
            difference = trace.difference(known, until=at)
            if difference:
                return f"without the jobs submitted after t={at} s, {difference}"
        return None

    def _some(self, times: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
        """Return a few of some instants [s]."""
        return rng.permutation(np.unique(times))[:INSTANTS].tolist()


def event_problem(part: Parameters) -> str | None:
    """Describe a method that is named like an event of :class:`Hearing`, and is none, if there is one.

    >>> class Counter(Hearing):
    ...     def on_finish(self, job, system): ...
    >>> event_problem(Counter())
    'Counter.on_finish is never called; known: on_submit, on_start, on_end, on_stop'
    """
    events = [name for name in vars(Hearing) if name.startswith(EVENT)]
    for cls in type(part).__mro__ if isinstance(part, Hearing) else ():
        for name in vars(cls):
            if name.startswith(EVENT) and callable(vars(cls)[name]) and name not in events:
                return f"{cls.__name__}.{name} is never called; known: {', '.join(events)}"
    return None


def parameter_problem(part: Parameters) -> str | None:
    """Describe a parameter that the constructor does not store under its name, if there is one."""
    cls = type(part)
    without_name = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(cls).parameters.values()
    for parameter in parameters:
        if parameter.kind in without_name:
            stars = without_name[parameter.kind]
            return f"{cls.__name__} takes {stars}{parameter.name}: each parameter needs a name of its own"
        if not hasattr(part, parameter.name):
            return f"{cls.__name__} does not store its parameter {parameter.name!r} under this name"
    values = {parameter.name: getattr(part, parameter.name) for parameter in parameters}
    anew: dict[str, Callable[[], object]] = {
        f"{cls.__name__} made of its own parameters": lambda: cls(**values),
        f"a copy of {cls.__name__}": lambda: copy.deepcopy(part),  # each run has one
    }
    for which, make in anew.items():
        try:
            found = repr(make())
        except Exception as error:  # of the user's code, or of what it contains, such as a lock
            return f"{which} cannot be made: {message_of(error)}"
        if found != repr(part):
            return f"{which} is {found}"
    return None


def pass_all(
    part: str, checks: Mapping[str, Failure], workloads: Sequence[Workload], *, smallest: bool = False
) -> None:
    """Raise an error if a part fails a check, with the `smallest` failing workload found if asked for."""
    for workload in workloads:
        for name, failure in checks.items():
            problem, on = _problem_of(failure, workload), workload.name
            if problem is not None and smallest:
                search = _Shrinking(workload, problem, failure)
                search.drop_jobs()
                search.simplify()
                problem, on = search.problem, f"{_as_code(search.workload)} (smallest example found)"
            if problem is not None:
                raise CheckError(f"{part} fails {name!r}: {problem}; on {on}")


def _problem_of(failure: Failure, workload: Workload) -> str | None:
    """Return the problem found by a check, or the message of an error in the run."""
    try:
        return failure(workload)
    except HpcsimkitError as error:
        return str(error)


class _Shrinking:
    """Search for a smaller workload on which a check still fails."""

    def __init__(self, workload: Workload, problem: str, failure: Failure) -> None:
        self.workload = workload
        self.problem = problem
        self._failure = failure
        self._runs = 0

    def _try(self, candidate: Workload) -> bool:
        """Adopt the candidate if the check fails on it, too."""
        self._runs += 1
        problem = _problem_of(self._failure, candidate) if len(candidate) else None
        if problem is not None:
            self.workload, self.problem = candidate, problem
        return problem is not None

    def drop_jobs(self) -> None:
        """Remove blocks of jobs of decreasing size, then single jobs until none can be removed."""
        size, dropped = len(self.workload), True
        while (size > 1 or dropped) and self._runs < SHRINKING_RUNS:
            size = max(1, size // 2)
            first, dropped = 0, False
            while first < len(self.workload) and self._runs < SHRINKING_RUNS:
                rows = np.arange(len(self.workload))
                if self._try(self.workload.select((rows < first) | (rows >= first + size))):
                    dropped = True
                else:
                    first += size

    def _what_matters(self, columns: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
        """Return the columns of times, sizes and resource requests."""
        names = (*REQUIRED_COLUMNS, "spread", "exclusive", "constraint", *self.workload.resources)
        return {name: columns[name] for name in names if name in columns}

    def simplify(self) -> None:
        """Keep relevant columns only, renumber the jobs, shift times to 0, submit all jobs at 0."""
        for change in (
            self._what_matters,
            lambda columns: {**columns, "id": np.arange(1, len(columns["id"]) + 1)},
            lambda columns: {**columns, "submit_time": columns["submit_time"] - columns["submit_time"].min()},
            lambda columns: {**columns, "submit_time": np.zeros(len(columns["id"]))},
        ):
            workload = self.workload
            self._try(replace(workload, columns=change(workload.columns)))


def _as_code(workload: Workload) -> str:
    """Return a workload as a Python expression, or its name if it is large."""
    if len(workload) > LONGEST_CODE:
        return f"{len(workload)} jobs of {workload.name!r}"
    columns = {name: workload.column(name).tolist() for name in workload.columns}
    resources = f", resources={workload.resources}" if workload.resources else ""
    return f"Workload({columns}, machine_size={workload.machine_size}{resources})"
