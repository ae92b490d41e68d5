"""Exceptions of hpcsimkit: each has a one-line message with subject, location, requirement and finding."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec

__all__ = [
    "HpcsimkitError",
    "ImpossibleScheduleError",
    "PartlyFailedError",
    "PolicyError",
    "ScheduleError",
    "StalledError",
    "StorageError",
    "UsageError",
    "WorkloadError",
    "close_words",
    "lacking",
    "nearest",
    "require_packages",
]


class HpcsimkitError(Exception):
    """Base class of all exceptions of hpcsimkit; the single argument is the message for the user.

    There is exactly one argument because SimPy recreates exceptions that cross a process as
    ``type(error)(*error.args)``.

    >>> str(WorkloadError("x.swf:3: 18 fields needed, 17 found"))
    'x.swf:3: 18 fields needed, 17 found'
    """


class UsageError(HpcsimkitError):
    """A name, option or combination of options is invalid."""


class WorkloadError(HpcsimkitError):
    """A log, the parameters of a generator or a set of columns is not a valid workload."""


class StorageError(WorkloadError):
    """A file or folder cannot be written, for example because the disk is full."""


class PartlyFailedError(HpcsimkitError):
    """Some tasks of a run failed, or all; the run itself is complete, and its records name them."""


class ScheduleError(HpcsimkitError):
    """A policy violated a rule of the system: it started a job twice, too early, or without capacity."""


class StalledError(ScheduleError):
    """Jobs are waiting, no job runs, no event is pending, and the policy has started none of the jobs."""


class ImpossibleScheduleError(ScheduleError):
    """A finished schedule breaks a rule: a job was lost, started too early, ran too long, or found no room.

    Its message begins with the name of the policy. The system refuses invalid actions at once, so the policy
    has changed the state of the run by itself, or a simulator has a defect.
    """


class PolicyError(HpcsimkitError):
    """A policy raised an exception of its own during a pass."""


def lacking(part: object, needed: str) -> UsageError:
    """Return the error of a component whose class does not override what it must.

    Parameters
    ----------
    part : object
        The component.
    needed : str
        Description of what its class needs, such as ``"a method take(system)"``.

    Returns
    -------
    UsageError
        The error to raise, with the file and line of the class, if there is a file.

    Examples
    --------
    >>> lacking(object(), "a method take(system)")
    UsageError('object needs a method take(system)')
    """
    kind, place = type(part), ""
    with suppress(OSError, TypeError):  # neither a built-in class nor one typed into a prompt has a file
        place = f" ({inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]})"
    return UsageError(f"{kind.__name__} needs {needed}{place}")


def close_words(word: str, words: Iterable[str], cutoff: float = 0.45) -> list[str]:
    """Return up to three known words that are similar to an unknown one, the nearest first.

    Parameters
    ----------
    word : str
        Unknown word.
    words : iterable of str
        Known words.
    cutoff : float
        Minimum similarity, in (0, 1]. Default: 0.45.
    """
    return get_close_matches(word, list(words), n=3, cutoff=cutoff)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the known words nearest to an unknown one, or all of them, as the end of a message.

    >>> nearest("fcsf", ["fcfs", "wfp3"]), nearest("zzz", ["fcfs", "wfp3"])
    ('; nearest: fcfs', '; known: fcfs, wfp3')
    """
    known = list(words)
    close = close_words(word, known)
    return f"; nearest: {', '.join(close)}" if close else f"; known: {', '.join(known)}"


def require_packages(who: str, extra: str, *packages: str) -> None:
    """Check that packages of an extra are installed.

    Parameters
    ----------
    who : str
        Name of the part that needs them, for the message.
    extra : str
        Name of the extra of hpcsimkit with these packages.
    *packages : str
        Names under which they are imported.

    Raises
    ------
    UsageError
        A package is missing; the message contains the command to install it.

    Examples
    --------
    >>> require_packages("learn", "learn", "json", "no_such_package")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: learn needs the package no_such_package: pip install 'hpcsimkit[learn]'
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        named = f"package{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise UsageError(f"{who} needs the {named}: pip install 'hpcsimkit[{extra}]'")
