"""Objects of a few plain values as text, such as ``"mtbf=86400, repair=3600"``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from hpcsimkit.cluster.failure_files import read_failures
from hpcsimkit.cluster.outages import Failures, OutageSource
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.begun import BeginAt
from hpcsimkit.kernel.gate import Gate
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, licenses_in
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.workloads.readers.cells import date

__all__ = [
    "READ_FROM_TEXT",
    "begin_at_of",
    "failure_log_of",
    "failures_of",
    "gates_of",
    "is_failure_log",
    "restart_of",
]

GATES: dict[str, type[Gate]] = {
    "dependency": AfterJobs,
    "begin_time": BeginTimes,
    "hold_until": Holds,
    "array_limit": ArrayLimits,
}
"""Gates by the column of the log that they read."""

Made = TypeVar("Made")


def failures_of(text: str) -> OutageSource:
    """Return the random failures that a text describes, or the failure log that it names.

    The name of a file may be followed by a comma and the name of a cluster in it. Random failures have ``=``.

    Raises
    ------
    UsageError
        The text cannot be read, or a value is invalid.
    WorkloadError
        The file cannot be read.

    Examples
    --------
    >>> failures_of("mtbf=864000, repair=3600, law=weibull, shape=0.7")
    Failures(mtbf=864000, repair=3600, law='weibull', shape=0.7, repair_law='exponential', repair_shape=1.0, \
rack=1)
    """
    if is_failure_log(text):
        path, cluster = failure_log_of(text)
        return read_failures(path, cluster=cluster or None)
    failures = _made(Failures, text)
    failures.check()
    return failures


def is_failure_log(text: str) -> bool:
    """Return whether a text names a failure log instead of describing random failures.

    >>> is_failure_log("failures.csv, 20"), is_failure_log("mtbf=864000, repair=3600")
    (True, False)
    """
    return "=" not in text and bool(text.strip())


def failure_log_of(text: str) -> tuple[str, str]:
    """Return the path of the failure log that a text names, and the name of the cluster in it, if any.

    >>> failure_log_of("failures.csv, 20")
    ('failures.csv', '20')
    """
    path, _, cluster = (word.strip() for word in text.partition(","))
    return path, cluster


def restart_of(text: str) -> Restart:
    """Return the rules of stopped jobs that a text describes.

    Raises
    ------
    UsageError
        The text cannot be read, or a value is invalid.

    Examples
    --------
    >>> restart_of("checkpoint=3600, checkpoint_cost=60").checkpoint
    3600
    """
    restart = _made(Restart, text)
    restart.check()
    return restart


def gates_of(text: str) -> tuple[Gate, ...]:
    """Return the gates that a text names.

    Raises
    ------
    UsageError
        There is no such gate.

    Examples
    --------
    >>> gates_of("dependency, array_limit, missing=ignore")
    (AfterJobs(missing='ignore'), ArrayLimits())
    >>> len(gates_of("log"))
    4
    """
    names = [part.strip() for part in text.split(",")]
    ignore = "missing=ignore" in names
    names = [name for name in names if name != "missing=ignore"]
    for name in names:
        if name not in GATES and name != "log":
            raise UsageError(f"the columns {', '.join(GATES)} or log are needed, found {name!r}")
    chosen = GATES if "log" in names else {name: GATES[name] for name in names}
    return tuple(AfterJobs("ignore") if ignore and kind is AfterJobs else kind() for kind in chosen.values())


def begin_at_of(text: str, policy_named: Callable[[str], Policy]) -> BeginAt:
    """Return the time at which a policy takes over, and the policy before it, that a text gives.

    Raises
    ------
    UsageError
        The text cannot be read, or a name is unknown.

    Examples
    --------
    >>> from hpcsimkit.experiments.parts.registry import make
    >>> begin_at_of("86400", make), begin_at_of("2024-03-01, fcfs", make).at
    (BeginAt(at=86400, policy=None), '2024-03-01')
    """
    time, comma, name = (word.strip() for word in text.partition(","))
    if comma and not name:
        raise UsageError(f"the name of a policy is needed after the comma, found {text!r}")
    at: int | str = time
    if is_whole_number(time.removeprefix("-")):
        at = int(time)
    else:
        date(time)
    return BeginAt(at, policy_named(name) if name else None)


def _made(kind: type[Made], text: str) -> Made:
    """Return a dataclass whose values a text gives by name."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            raise UsageError(f"name=value is needed, such as {next(iter(known))}=60, found {part!r}")
        if name not in known:
            raise UsageError(f"unknown value {name!r}{nearest(name, known)}")
        if name in values:
            raise UsageError(f"{name} is given twice")
        values[name] = _plain(value)
    missing = [name for name, each in known.items() if each.default is MISSING and name not in values]
    if missing:
        raise UsageError(f"{' and '.join(missing)} must be given, such as {missing[0]}=3600")
    return kind(**values)


def _plain(text: str) -> int | float | str:
    """Return a number, or the text itself."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


READ_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "outages": failures_of,
    "restart": restart_of,
    "gates": gates_of,
    "licenses": licenses_in,
}
"""Functions that read an option of a run from its text, by the name of the option."""
