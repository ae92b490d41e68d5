"""The errors of the kit: each carries one line that says who, where, what was needed and what was found."""

from __future__ import annotations

__all__ = ["HpcsimkitError", "PolicyError", "ScheduleError", "StalledError", "UsageError", "WorkloadError"]


class HpcsimkitError(Exception):
    """Base of all errors the kit raises on purpose; its single argument is the line shown to the user.

    SimPy rebuilds an exception that crosses a process as ``type(error)(*error.args)``, so there is
    exactly one argument.

    >>> str(WorkloadError("x.swf:3: 18 fields needed, 17 found"))
    'x.swf:3: 18 fields needed, 17 found'
    """


class UsageError(HpcsimkitError):
    """A name, option or combination of options that the kit does not understand."""


class WorkloadError(HpcsimkitError):
    """A log, a generator's parameters or a set of columns that cannot become a workload."""


class ScheduleError(HpcsimkitError):
    """A policy broke a rule of the system: started a job twice, too early, or where it does not fit."""


class StalledError(ScheduleError):
    """Jobs wait, nothing runs, nothing is to come, and the policy started none of them."""


class PolicyError(HpcsimkitError):
    """A policy raised an exception of its own in the middle of a pass."""
