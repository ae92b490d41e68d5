"""Exceptions of hpcsimkit: each has a one-line message with subject, location, requirement and finding."""

from __future__ import annotations

__all__ = ["HpcsimkitError", "PolicyError", "ScheduleError", "StalledError", "UsageError", "WorkloadError"]


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


class ScheduleError(HpcsimkitError):
    """A policy violated a rule of the system: it started a job twice, too early, or without capacity."""


class StalledError(ScheduleError):
    """Jobs are waiting, no job runs, no event is pending, and the policy has started none of the jobs."""


class PolicyError(HpcsimkitError):
    """A policy raised an exception of its own during a pass."""
