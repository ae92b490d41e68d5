"""The options of a run: one list, from which keyword arguments, settings files, flags and pages are made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from hpcsimkit.errors import UsageError

if TYPE_CHECKING:  # the command line reads this module before the libraries of a simulation are loaded
    from hpcsimkit.cluster.calendar import Calendar
    from hpcsimkit.cluster.opaque import AnyCluster
    from hpcsimkit.cluster.outages import OutageSource
    from hpcsimkit.kernel.begun import BeginAt, Begun
    from hpcsimkit.kernel.event_order import EventOrder
    from hpcsimkit.kernel.gate import Gate
    from hpcsimkit.kernel.restart import Restart
    from hpcsimkit.kernel.service_time import ServiceTime

__all__ = ["OPTIONS", "Option", "Setup"]

LONGEST = 10**11
"""Largest time [s], equal to :data:`hpcsimkit.jobs.columns.TIME_LIMIT`, which would load numpy."""


@dataclass(frozen=True)
class Option:
    """Description of an option of a run.

    Parameters
    ----------
    meaning : str
        Description, which begins with a noun.
    decides : {"schedule", "nothing"}
        Whether the schedule depends on it, or only the way in which it is computed.
    unset : str
        Description of the default.
    key : str, optional
        Name in settings files and, as a flag, on the command line; by default only Python has the option.
    kind : type, optional
        Type of a plain value: bool, int or str. By default the option is an object, with a name in files.
    choices : tuple of str
        All possible texts, if there are few.
    least, most : int, optional
        Smallest and largest number.
    metavar : str, optional
        Placeholder of the value in help texts; by default the choices.
    recorded : callable, optional
        Function that returns the plain values, by key, which identify an object in results.
    """

    meaning: str
    decides: Literal["schedule", "nothing"]
    unset: str
    key: str | None = None
    kind: type[Any] | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    metavar: str | None = None
    recorded: Callable[[Any], dict[str, Any]] | None = None

    @property
    def needs(self) -> str:
        """The valid plain values, for messages."""
        if self.choices:
            *others, last = map(repr, self.choices)
            return f"{', '.join(others)} or {last}"
        if self.kind is bool:
            return "True or False"
        if self.most == LONGEST:
            return f"a whole number of seconds from {self.least} to 10^11"
        return f"a whole number, at least {self.least}"

    def holds(self, value: Any) -> bool:
        """Return whether a plain value is valid."""
        if self.choices:
            return value in self.choices
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        if not hasattr(value, "__index__"):  # whole numbers of Python and of numpy
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def _about(**description: Any) -> dict[str, Option]:
    """Return the metadata of a field with its description."""
    return {"option": Option(**description)}


@cache
def _textbook() -> EventOrder:
    from hpcsimkit.kernel.event_order import TextbookOrder

    return TextbookOrder()


@cache
def _empty_calendar() -> Calendar:
    from hpcsimkit.cluster.calendar import Calendar

    return Calendar()


@cache
def _as_stopped() -> Restart:
    from hpcsimkit.kernel.restart import Restart

    return Restart()


@dataclass(frozen=True)
class Setup:
    """The options of a run besides its jobs, its policy and its observers.

    The fields are keyword arguments of :class:`~hpcsimkit.kernel.simulation.Simulation`. Those with a name in
    settings files are also keys of all tables and flags of all commands that simulate.

    Parameters
    ----------
    cluster : Cluster or int, optional
        The cluster, or a number of nodes; by default the workload's ``machine_size``. With
        :class:`~hpcsimkit.cluster.partitions.Partitions`, each partition has its own copy of the policy.
    seed : int
        The random seed of the run, >= 0. Default: 0.
    walltime : {"run", "kill"}
        The wall-time limit: jobs run for their full run time, or are killed at their requested time. Default:
        ``"run"``.
    dependencies : bool
        Whether a job is submitted only after its preceding job has ended, see
        :class:`~hpcsimkit.kernel.gate.Dependencies`, and may start only after the jobs in the column
        ``dependency``, see :class:`~hpcsimkit.kernel.after_jobs.AfterJobs`. Default: False.
    gates : tuple of Gate
        Rules that say whether a job may start, see :mod:`~hpcsimkit.kernel.gate` and
        :mod:`~hpcsimkit.kernel.job_gates`; by default none.
    licenses : mapping of str to int, optional
        Number of licences of the whole cluster by name, for jobs with the column ``licenses``, see
        :class:`~hpcsimkit.kernel.job_gates.Licenses`; by default this column is ignored.
    calendar : Calendar
        Capacity that is known ahead to be gone or reserved for some time, see
        :mod:`~hpcsimkit.cluster.calendar`. By default none is.
    outages : OutageSource, optional
        Nodes and machines that fail without notice: a list, or random failures, see
        :mod:`~hpcsimkit.cluster.outages`; by default none.
    restart : Restart
        Rules of jobs that are stopped, by a failure or by the policy: what they keep of their work, and when
        they may start again, see :mod:`~hpcsimkit.kernel.restart`.
    period : int, optional
        Scheduling interval [s]: passes happen only at multiples of it; by default at every instant with an
        event.
    event_order : EventOrder
        The order of events within an instant; by default that of the textbook, see
        :mod:`~hpcsimkit.kernel.event_order`.
    service_time : ServiceTime, optional
        The locality model: run time of a job as a function of its allocation; by default the run time of the
        log. A simulation takes a function, too.
    begun : Begun, optional
        The time at which the policy takes over, and the jobs that have started by then, see
        :mod:`~hpcsimkit.kernel.begun`; by default it begins with the first submission and an empty cluster.
    begin_at : BeginAt, optional
        The time at which the policy takes over, with the jobs that have started by then according to the log,
        or under another policy: a :class:`~hpcsimkit.kernel.begun.Begun` that is found at the start.
    simulator : {"auto", "simpy", "compiled"}
        The program that runs. Schedules do not depend on it: ``"compiled"`` is machine code for plain
        pipelines (extra ``[fast]``); ``"auto"`` takes it where it can, once the runs of this process have
        enough jobs. Default: ``"auto"``.

    Examples
    --------
    >>> Setup(walltime="kill", period=60).record
    {'walltime': 'kill', 'dependencies': False, 'period': 60}
    """

    cluster: AnyCluster | int | None = field(
        default=None,
        metadata=_about(meaning="Cluster of the run", decides="schedule", unset="auto"),
    )
    seed: int = field(
        default=0,
        metadata=_about(
            key="seed",
            kind=int,
            least=0,
            metavar="N",
            meaning="Random seed, 0 or more",
            decides="schedule",
            unset="0",
        ),
    )
    walltime: Literal["run", "kill"] = field(
        default="run",
        metadata=_about(
            key="walltime",
            kind=str,
            choices=("run", "kill"),
            meaning="Treatment of jobs that exceed their requested time: run to the end, or be killed",
            decides="schedule",
            unset="run",
        ),
    )
    dependencies: bool = field(
        default=False,
        metadata=_about(
            key="dependencies",
            kind=bool,
            meaning="Whether each job waits for its preceding job (SWF fields 17 and 18), and for the jobs "
            "in its column dependency",
            decides="schedule",
            unset="none",
        ),
    )
    gates: tuple[Gate, ...] = field(
        default=(),
        metadata=_about(
            key="gates",
            metavar="NAMES",
            meaning="Columns of the log that may hold jobs: dependency, begin_time, hold_until, array_limit, "
            "or log for all of them; missing=ignore for a part of a log",
            decides="schedule",
            unset="none",
            recorded=lambda gates: {"gates": [repr(gate) for gate in gates]},
        ),
    )
    licenses: Mapping[str, int] | None = field(
        default=None,
        metadata=_about(
            key="licenses",
            metavar="NAMES",
            meaning="Licences of the whole cluster, such as matlab:10,ansys:2; without it, requests of the "
            "log for licences are ignored",
            decides="schedule",
            unset="none",
            recorded=lambda licenses: {"licenses": dict(licenses)},
        ),
    )
    calendar: Calendar = field(
        default_factory=_empty_calendar,
        metadata=_about(
            key="calendar",
            metavar="FILE",
            meaning="File of maintenance and reservations: .toml, or the output of scontrol show reservation",
            decides="schedule",
            unset="none",
            recorded=lambda calendar: {"calendar": [window.record for window in calendar.windows]},
        ),
    )
    outages: OutageSource | None = field(
        default=None,
        metadata=_about(
            key="failures",
            metavar="TEXT",
            meaning="Failures of nodes: a failure log (.csv, sacctmgr show event, LANL), or at random: "
            "mtbf=S, repair=S, law, shape, repair_law, repair_shape, rack",
            decides="schedule",
            unset="none",
            recorded=lambda outages: {"outages": outages.record},
        ),
    )
    restart: Restart = field(
        default_factory=_as_stopped,
        metadata=_about(
            key="restart",
            metavar="TEXT",
            meaning="Rules of stopped jobs: preempted=continue or anew, delay, limit, checkpoint, "
            "checkpoint_cost, cost; by default preempted jobs continue and failed jobs begin anew, at once",
            decides="schedule",
            unset="unset",
            recorded=lambda restart: {"restart": dict(vars(restart))},
        ),
    )
    period: int | None = field(
        default=None,
        metadata=_about(
            key="period",
            kind=int,
            least=1,
            most=LONGEST,
            metavar="S",
            meaning="Scheduling interval [s], 1 or more: passes happen only at its multiples, instead of at "
            "every submission and end",
            decides="schedule",
            unset="unset",
        ),
    )
    event_order: EventOrder = field(
        default_factory=_textbook,
        metadata=_about(
            key="semantics",
            choices=("textbook", "dirlab"),
            meaning="Rules of the simulation clock; dirlab: those of published simulators",
            decides="schedule",
            unset="textbook",
            recorded=lambda order: {"semantics": order.name},
        ),
    )
    service_time: ServiceTime | None = field(
        default=None,
        metadata=_about(
            key="locality",
            metavar="NAME",
            meaning="Model by which placements change run times: sierra, summit, module:name; needs machines",
            decides="schedule",
            unset="none",
            recorded=lambda model: {"service_time": repr(model)},
        ),
    )
    begun: Begun | None = field(
        default=None,
        metadata=_about(
            meaning="Time at which the policy takes over, and the jobs that have started by then",
            decides="schedule",
            unset="none",
            recorded=lambda begun: {"begun": begun.record},
        ),
    )
    begin_at: BeginAt | None = field(
        default=None,
        metadata=_about(
            key="begin_at",
            metavar="TEXT",
            meaning="Time from which the policy schedules, in seconds or as a date; starts before it are "
            "those of the log or, with 'TIME, POLICY', of another policy",
            decides="schedule",
            unset="unset",
            recorded=lambda begin_at: {"begin_at": begin_at.record},
        ),
    )
    simulator: Literal["auto", "simpy", "compiled"] = field(
        default="auto",
        metadata=_about(
            key="simulator",
            kind=str,
            choices=("auto", "simpy", "compiled"),
            meaning="Program that simulates, with equal schedules; compiled: plain pipelines, with [fast]; "
            "auto: compiled where possible, once there are many jobs",
            decides="nothing",
            unset="auto",
        ),
    )

    def check(self) -> None:
        """Raise a UsageError if an option is invalid, alone or beside another."""
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            unset = value is None and _DEFAULTS[name] is None
            if option.kind is not None and not unset and not option.holds(value):
                raise UsageError(f"{name} needs {option.needs}, found {value!r}")
        self._check_objects()
        self.restart.check()
        for name in OPTIONS:
            if not self.event_order.knows(name):
                self._refuse(name, f"the rules {self.event_order.name!r} know no {name}")
        if self.begun is not None and self.begin_at is not None:
            raise UsageError("one of 'begun' and 'begin_at' is needed, both are given")
        if self.begun is not None or self.begin_at is not None:
            self._refuse("service_time", "a begun run knows no service_time")
        if self.service_time is not None:
            for name in ("outages", "restart"):
                self._refuse(name, f"a locality model knows no {name}")

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise a UsageError if the jobs have none of the columns that the gates read."""
        for name in ("gates", "licenses"):
            needed = ["licenses"] if name == "licenses" and self.licenses is not None else []
            if name == "gates":
                needed = [column for gate in self.gates for column in gate.columns]
            if needed and not any(column in columns for column in needed):
                raise UsageError(f"{name}: jobs with a column {' or '.join(needed)} are needed, found none")

    def _check_objects(self) -> None:
        """Raise a UsageError if an object is not of the class of its option."""
        from hpcsimkit.cluster.calendar import Calendar
        from hpcsimkit.cluster.outages import OutageSource
        from hpcsimkit.kernel.begun import BeginAt, Begun
        from hpcsimkit.kernel.event_order import EventOrder
        from hpcsimkit.kernel.gate import Gate
        from hpcsimkit.kernel.restart import Restart

        for name, kind in (
            ("event_order", EventOrder),
            ("calendar", Calendar),
            ("outages", OutageSource),
            ("restart", Restart),
        ):
            found = getattr(self, name)
            if not isinstance(found, kind) and (found is not None or name != "outages"):
                article = "an" if kind.__name__[0] in "EO" else "a"
                raise UsageError(f"{name} needs {article} {kind.__name__}, found {found!r}")
        if not isinstance(self.begun, Begun | None):
            raise UsageError(f"begun needs a Begun, found {self.begun!r}")
        if not isinstance(self.begin_at, BeginAt | None):
            raise UsageError(f"begin_at needs a BeginAt, found {self.begin_at!r}")
        for gate in self.gates:
            if not isinstance(gate, Gate):
                raise UsageError(f"gates needs objects of class Gate, found {gate!r}")
        if self.licenses is not None:
            from hpcsimkit.kernel.job_gates import Licenses

            Licenses(self.licenses).check()

    @property
    def all_gates(self) -> tuple[Gate, ...]:
        """The gates of the run, in the order in which a job passes them: those of the kit come first."""
        if not (self.dependencies or self.gates or self.licenses):
            return ()
        from hpcsimkit.kernel.after_jobs import AfterJobs
        from hpcsimkit.kernel.gate import Dependencies
        from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, Licenses

        order = (Dependencies, AfterJobs, BeginTimes, Holds, ArrayLimits, Licenses)
        own: list[Gate] = [] if self.licenses is None else [Licenses(self.licenses)]
        if self.dependencies:
            own += [kind() for kind in order[:2] if kind not in map(type, self.gates)]
        rank = {kind: place for place, kind in enumerate(order)}
        return tuple(sorted((*own, *self.gates), key=lambda gate: rank.get(type(gate), len(order))))

    def _refuse(self, name: str, reason: str) -> None:
        """Raise an error if an option is given."""
        if not _is_default(name, getattr(self, name)):
            raise UsageError(f"{reason}, found {getattr(self, name)!r}")

    @cached_property
    def given(self) -> dict[str, Any]:
        """The options that are not the default, by the name of the field."""
        values = {name: getattr(self, name) for name in OPTIONS}
        return {name: value for name, value in values.items() if not _is_default(name, value)}

    @property
    def record(self) -> dict[str, Any]:
        """Plain values, by key, of the options that decide the schedule besides cluster and seed.

        Options that are plain values are always in it, objects only if they are not the default.
        """
        found: dict[str, Any] = {}
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if option.recorded is not None and not _is_default(name, value):
                found |= option.recorded(value)
            elif option.kind is not None and option.decides == "schedule" and name != "seed":
                found[name] = value
        return found


OPTIONS: dict[str, Option] = {each.name: each.metadata["option"] for each in fields(Setup)}
"""Descriptions of all options by the name of the field."""

_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Setup)}


_MADE: dict[str, Callable[[], Any]] = {
    "event_order": _textbook,
    "calendar": _empty_calendar,
    "restart": _as_stopped,
}
"""Functions that return the defaults that are objects, by the name of the field."""


def _is_default(name: str, value: Any) -> bool:
    default = _MADE[name]() if name in _MADE else _DEFAULTS[name]
    return value is default or bool(value == default)
