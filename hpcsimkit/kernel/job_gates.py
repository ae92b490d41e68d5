"""Gates that follow columns of the log: begin times, holds, limits of arrays, and licences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from hpcsimkit.errors import UsageError, WorkloadError, nearest
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import where
from hpcsimkit.kernel.gate import Gate, Held
from hpcsimkit.kernel.system import System

__all__ = ["ArrayLimits", "BeginTimes", "Holds", "Licenses", "licenses_in"]


class BeginTimes(Gate):
    """Jobs that may not start before a time, in the column ``begin_time``, as for Slurm's ``--begin``.

    Examples
    --------
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 5], "nodes": [1, 1], "begin_time": [4, -1]},
    ...              machine_size=1)
    >>> Simulation(w, make("fcfs"), gates=(BeginTimes(),)).run().start_time.tolist()
    [6, 1]
    """

    columns = ("begin_time",)
    reads_queue = False
    reason = "BeginTime"

    def reset(self, workload: Workload) -> None:
        """Read the times."""
        self._times = workload.column(self.columns[0]).tolist()

    def holds(self, job: Job, system: System) -> Held | None:
        """Hold a job until its time."""
        at = self._times[job.index]
        return Held(self.reason, until=at) if at > system.now else None


class Holds(BeginTimes):
    """Jobs that are held until they are released at a time, in the column ``hold_until``.

    Examples
    --------
    >>> Holds().holds.__doc__
    'Hold a job until its time.'
    """

    columns = ("hold_until",)
    reason = "JobHeldUser"


class ArrayLimits(Gate):
    """Job arrays of which only so many jobs run at once: ``array_job`` and ``array_limit``, Slurm's ``%N``.

    The jobs of an array take turns in the order in which they are due, as in Slurm: only as many of the first
    ones may start as the limit leaves beside those that run.

    Examples
    --------
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [9, 5, 5], "nodes": [1, 1, 1],
    ...               "array_job": [7, 7, 7], "array_limit": [2, 2, 2]}, machine_size=3)
    >>> Simulation(w, make("fcfs"), gates=(ArrayLimits(),)).run().start_time.tolist()
    [0, 0, 5]
    """

    columns = ("array_limit",)
    reads_queue = False

    def reset(self, workload: Workload) -> None:
        """Read the arrays and their limits.

        Raises
        ------
        WorkloadError
            A job with a limit is in no array, a limit is 0, or an array has several.
        """
        arrays, limits = workload.column("array_job"), workload.column("array_limit")
        self._turns: dict[int, _Turns] = {}
        for row in (limits >= 0).nonzero()[0].tolist():
            array, limit = int(arrays[row]), int(limits[row])
            if array < 0 or not limit or self._turns.setdefault(array, _Turns(limit)).limit != limit:
                raise WorkloadError(
                    f"{where(workload, row)}: an array limit needs an array_job and one limit of at least 1 "
                    f"for all of its jobs, found array {array}, limit {limit}"
                )
        self._limited = (limits >= 0).tolist()
        self._turns_of = [self._turns.get(array) for array in arrays.tolist()]

    def holds(self, job: Job, system: System) -> Held | None:
        """Hold a job until its turn comes."""
        turns = self._turns_of[job.index]
        if turns is None or not self._limited[job.index]:
            return None
        turns.due.setdefault(job.index, job)
        return None if job.index in turns.first() else Held("JobArrayTaskLimit")

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs of the array whose turn it no longer is: a job without a limit has started."""
        return self._changed(job, running=1)

    def after_stop(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs of the array whose turn it is now."""
        return self._changed(job, running=-1)

    after_end = after_stop

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs of the array whose turn it is now."""
        return self._changed(job, running=0)

    def _changed(self, job: Job, running: int) -> list[Job]:
        """Let a job leave those that are due; return the jobs of its array whose answer is another one."""
        turns = self._turns_of[job.index]
        if turns is None:
            return []
        before = turns.first()
        turns.due.pop(job.index, None)
        turns.running += running
        after = turns.first()
        return [each for row, each in (before | after).items() if (row in before) != (row in after)]


class _Turns:
    """The jobs of one array that run, and those that are due, in their order."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.running = 0
        self.due: dict[int, Job] = {}

    def first(self) -> dict[int, Job]:
        """Return the jobs that may start, by row."""
        return dict(islice(self.due.items(), max(self.limit - self.running, 0)))


class Licenses(Gate):
    """Licences of the whole cluster, for which jobs ask in the column ``licenses``: Slurm's ``--licenses``.

    A job takes its licences when it starts, and returns them when it ends or is stopped.

    Parameters
    ----------
    pools : mapping of str to int
        Number of licences by name, >= 0.

    Examples
    --------
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [1, 1, 1],
    ...               "licenses": [0, 1, -1]}, labels={"licenses": ("matlab:2", "matlab")}, machine_size=3)
    >>> Simulation(w, make("fcfs"), gates=(Licenses({"matlab": 2}),)).run().start_time.tolist()
    [0, 9, 2]
    """

    columns = ("licenses",)
    reads_queue = False

    def __init__(self, pools: Mapping[str, int]) -> None:
        self.pools = pools

    def check(self) -> None:
        """Raise a UsageError if a name is empty, or a number is no whole number of at least 0."""
        pools: object = self.pools
        if not isinstance(pools, Mapping):
            raise UsageError(f"licenses needs numbers by name, such as {{'matlab': 10}}, found {pools!r}")
        for name, number in pools.items():
            whole = isinstance(number, int) and not isinstance(number, bool)
            if not (isinstance(name, str) and name and whole and number >= 0):
                raise UsageError(
                    f"licenses needs names and whole numbers of at least 0, found {name!r}: {number!r}"
                )

    def reset(self, workload: Workload) -> None:
        """Read the licences that each job asks for."""
        self.check()
        self._free = dict(self.pools)
        kinds: dict[tuple[tuple[str, int], ...], _Kind] = {}
        self._kind_of: dict[int, _Kind] = {}
        for row, asked in self.asked(workload).items():
            self._kind_of[row] = kinds.setdefault(tuple(sorted(asked.items())), _Kind(asked))
        self._kinds = list(kinds.values())

    def asked(self, workload: Workload) -> dict[int, dict[str, int]]:
        """Return the licences of the jobs that ask for some, by row.

        Raises
        ------
        WorkloadError
            A job asks for a licence that the cluster does not have, or for more than it has.
        """
        column, labels = workload.column("licenses"), workload.labels.get("licenses", ())
        asked: dict[int, dict[str, int]] = {}
        read: dict[int, dict[str, int]] = {}
        for row in (column >= 0).nonzero()[0].tolist():
            number = int(column[row])
            if number not in read:
                text = labels[number] if number < len(labels) else str(number)
                read[number] = self._read(text, where(workload, row))
            asked[row] = read[number]
        return asked

    def _read(self, text: str, who: str) -> dict[str, int]:
        try:
            asked = licenses_in(text)
        except UsageError as error:
            raise WorkloadError(f"{who}: {error}") from None
        for name, number in asked.items():
            if name not in self.pools:
                raise WorkloadError(f"{who} asks for the unknown licence {name!r}{nearest(name, self.pools)}")
            if number > self.pools[name]:
                raise WorkloadError(
                    f"{who} asks for {number} of the licence {name!r}; the cluster has {self.pools[name]}"
                )
        return asked

    def holds(self, job: Job, system: System) -> Held | None:
        """Hold a job while fewer licences are free than it asks for."""
        kind = self._kind_of.get(job.index)
        if kind is None:
            return None
        kind.due[job.index] = job
        return None if kind.suffices else Held("Licenses")

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        """Take the licences of a job; return the jobs for which the others no longer suffice."""
        kind = self._kind_of.get(job.index)
        if kind is None:
            return ()
        kind.due.pop(job.index, None)
        return self._changed(kind, -1)

    def after_stop(self, job: Job, system: System) -> Iterable[Job]:
        """Return the licences of a job, and the jobs for which they suffice now."""
        kind = self._kind_of.get(job.index)
        return () if kind is None else self._changed(kind, 1)

    after_end = after_stop

    def holds_each(self, jobs: Sequence[Job], system: System) -> list[Held | None]:
        """Hold the jobs that ask for more licences than are free."""
        kinds = [self._kind_of.get(job.index) for job in jobs]
        for job, kind in zip(jobs, kinds, strict=True):
            if kind is not None:
                kind.due[job.index] = job
        held = Held("Licenses")
        return [None if kind is None or kind.suffices else held for kind in kinds]

    def _changed(self, taken: _Kind, sign: int) -> list[Job]:
        """Return or take licences; return the due jobs for which the free ones suffice now, or no longer."""
        for name, number in taken.asked.items():
            self._free[name] += sign * number
        jobs: list[Job] = []
        for kind in self._kinds:
            suffices = all(number <= self._free[name] for name, number in kind.asked.items())
            if suffices != kind.suffices:
                kind.suffices = suffices
                jobs += kind.due.values()
        return jobs


class _Kind:
    """The licences that some jobs ask for, whether as many are free, and those of the jobs that are due."""

    def __init__(self, asked: dict[str, int]) -> None:
        self.asked = asked
        self.suffices = True
        self.due: dict[int, Job] = {}  # and some that were rejected, which nobody asks about


def licenses_in(text: str) -> dict[str, int]:
    """Return the numbers of licences by name in a text, as Slurm writes it.

    Raises
    ------
    UsageError
        The text cannot be read, or a number is below 1.

    Examples
    --------
    >>> licenses_in("matlab:2,ansys")
    {'matlab': 2, 'ansys': 1}
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        name, colon, number = part.strip().partition(":")
        plain = is_whole_number(number, 9)
        if not name or (colon and not (plain and int(number))):
            raise UsageError(f"licences need NAME:NUMBER, such as matlab:2, found {part!r}")
        if name in found:
            raise UsageError(f"the licence {name!r} is named twice, found {text!r}")
        found[name] = int(number) if colon else 1
    return found
