"""Handling of exceptions in user code: those of policies, stages, observers or encoders become one line.

The line names the component, the simulated time, the job in question, the exception and its location. All
exceptions are caught, including ``SystemExit``, except for Ctrl-C, to which the location is added. Exceptions
of hpcsimkit already have a one-line message.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from types import FrameType, TracebackType
from typing import ClassVar, NamedTuple

import simpy
from simpy.core import EmptySchedule

from hpcsimkit.errors import HpcsimkitError, PolicyError, ScheduleError
from hpcsimkit.io.printable import message_text
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.clock import Clock
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = ["Guard", "Place", "guarded", "line_of", "message_of"]

LIBRARIES = (
    str(Path(__file__).parents[1]),
    str(Path(simpy.__file__).parent),
    sysconfig.get_path("stdlib"),
    "<frozen ",
    "<string>",  # methods of named tuples
)
"""Path prefixes of files that are not user code."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of other libraries; the latter on Debian."""

Frames = Sequence[tuple[FrameType, int]]
"""A stack with line numbers, from the innermost frame outwards."""


# --- locations -----------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Location of a component in the code, now or at the time of an exception.

    Parameters
    ----------
    part : str
        Name of the component's class or function; empty if there is none.
    job : Job or None
        The job in question.
    line : str
        File and line, of the user's own code if possible.
    own : bool
        Whether the location is in the user's own code.
    """

    part: str
    job: Job | None
    line: str
    own: bool

    @classmethod
    def of(cls, frames: Frames) -> Place:
        """Return the location of the innermost component of a stack."""
        own = [(frame, line) for frame, line in frames if _is_own(frame)]
        frame, line = (own or frames)[0]
        return cls(*_holder(frames), f"{frame.f_code.co_filename}:{line}", bool(own))

    @classmethod
    def of_error(cls, error: BaseException) -> Place:
        """Return the location at which an exception was raised."""
        return cls.of(list(traceback.walk_tb(error.__traceback__))[::-1])

    def __str__(self) -> str:
        job = f" for job {self.job.id}" if self.job is not None else ""
        return f", in {self.part}{job}" if self.part else ""


def _is_own(frame: FrameType) -> bool:
    """Return whether code belongs neither to hpcsimkit nor to a library."""
    file = frame.f_code.co_filename
    return not file.startswith(LIBRARIES) and not any(folder in file for folder in INSTALLED)


def _holder(frames: Frames) -> tuple[str, Job | None]:
    """Return the name of the innermost component, or of a user function called by hpcsimkit, and its job."""
    name, job = "", None
    for frame, _ in frames:
        job = job or _job_in(frame)
        part = frame.f_locals.get("self")
        if isinstance(part, Parameters) or hasattr(type(part), "on_begin"):
            return type(part).__name__ if _is_own(frame) or not name else name, job
        if not name and _is_own(frame):
            name = frame.f_code.co_qualname.rpartition("<locals>.")[2]
    return name, job


def _job_in(frame: FrameType) -> Job | None:
    """Return the job of a function call, found by the usual names of local variables."""
    known = frame.f_locals
    found = (known.get("job"), known.get("head"), getattr(known.get("decision"), "job", None))
    return next((job for job in found if isinstance(job, Job)), None)


# --- messages ------------------------------------------------------------------------------------------


def message_of(error: BaseException) -> str:
    """Return class and message of an exception on one line, even if its ``__str__`` fails.

    >>> message_of(KeyError("no such\\nthing"))
    "KeyError: 'no such\\\\nthing'"
    >>> message_of(SystemExit())
    'SystemExit'
    """
    try:
        text = message_text(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        text = f"(its message cannot be shown: {type(another).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def line_of(error: BaseException, subject: str) -> str:
    """Return the one-line message of an exception: component, location, class and message."""
    if isinstance(error.__cause__, StopIteration):  # Python replaces StopIteration in generators
        error = error.__cause__
    place = Place.of_error(error)
    return f"{subject}{place}: {message_of(error)} ({place.line})"


def _has_its_line(error: BaseException) -> bool:
    """Return whether an exception belongs to hpcsimkit and thus has a one-line message."""
    return isinstance(error, HpcsimkitError) and type(error).__module__.partition(".")[0] == "hpcsimkit"


@contextmanager
def guarded(subject: str) -> Iterator[None]:
    """Convert exceptions of user code outside of a run into :class:`PolicyError`.

    Parameters
    ----------
    subject : str
        Beginning of the message: the user's name of the component.

    Examples
    --------
    >>> with guarded("mine"):  # doctest: +ELLIPSIS
    ...     raise SystemExit(3)
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.PolicyError: mine, in <module>: SystemExit: 3 (...:2)
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if _has_its_line(error):
            raise
        raise PolicyError(line_of(error, subject)) from error


class Guard:
    """Context manager around calls of policies, observers and agent components in a run.

    Their exceptions become a :class:`PolicyError` that names the policy, the time, the component and the line
    of user code. A failed run remains failed: :meth:`check` raises the same error again.

    Parameters
    ----------
    name : str
        Name of the policy in the run.
    clock : Clock
        Clock of the run.

    Attributes
    ----------
    active : dict of int to list of Guard
        The active guards of each thread, from the outermost to the innermost.
    entries : int
        Number of times that the context was entered.
    system : System or None
        System of the run, once it has begun.
    advances : bool
        Whether events and passes of the run are processed; not while it waits for an answer to a decision.

    Examples
    --------
    >>> with Guard("mine", Clock(7)):  # doctest: +ELLIPSIS
    ...     1 / 0
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.PolicyError: mine at t=7 s, in <module>: ZeroDivisionError: division by zero (...:2)
    """

    active: ClassVar[defaultdict[int, list[Guard]]] = defaultdict(list)

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.system: System | None = None
        self.entries = 0
        self.advances = False
        self.failure: HpcsimkitError | None = None

    @property
    def subject(self) -> str:
        """Name of the policy and simulated time."""
        return f"{self.name} at t={self.clock.now} s"

    def check(self) -> None:
        """Raise the stored error of a failed run."""
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.entries += 1
        self.active[get_ident()].append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.active[get_ident()].pop()
        if error is None:
            return
        told = self.told(error)
        if isinstance(told, HpcsimkitError):
            self.failure = told
        if told is not error:
            raise told from error

    def told(self, error: BaseException) -> BaseException:
        """Return the exception to raise instead; Ctrl-C and the end of all events are unchanged."""
        if isinstance(error, KeyboardInterrupt):
            error.args = error.args or (self._where_stopped(error),)
            return error
        if isinstance(error, EmptySchedule) and not Place.of_error(error).own:
            return error
        if not _has_its_line(error):
            return PolicyError(line_of(error, self.subject))
        if isinstance(error, ScheduleError) and " t=" not in str(error):
            return type(error)(f"at t={self.clock.now} s: {error}")
        return error

    def _where_stopped(self, error: KeyboardInterrupt) -> str:
        place = Place.of_error(error)
        return f"stopped in {self.subject}{place}" + (f" ({place.line})" if place.own else "")
