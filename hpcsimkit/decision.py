"""Decisions, and seats that are left open for somebody outside to take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.policy import Stage

if TYPE_CHECKING:
    from hpcsimkit.system import System

__all__ = ["Answering", "Decision", "External"]


class Decision:
    """A question that a pass asks of an open seat; the clock stands still until it is answered.

    Attributes
    ----------
    stage : str
        ``"order"``, ``"inspector"``, ``"placement"`` or ``"backfiller"``.
    options : sequence
        What may be answered, never empty, built when first read: jobs (order, backfiller; a last ``None``
        declines, where that is allowed), ``True`` and ``False`` (inspector), allocations (placement).
    system : System
        The state now.
    job : Job or None
        The job in question: inspected, to be placed, or blocked at the head; None for the order.
    """

    __slots__ = ("_build", "_default", "_options", "job", "stage", "system")

    def __init__(
        self, stage: str, system: System, job: Job | None,
        options: Callable[[], Sequence[Any]], default: Callable[[], Any],
    ) -> None:  # fmt: skip
        self.stage = stage
        self.system = system
        self.job = job
        self._build = options
        self._default = default
        self._options: Sequence[Any] | None = None

    @property
    def options(self) -> Sequence[Any]:
        """What may be answered."""
        if self._options is None:
            self._options = self._build()
        return self._options

    @property
    def default(self) -> Any:
        """What the heuristic behind the seat would answer."""
        return self._default()

    def position(self, choice: Any) -> int:
        """Return which of the options a choice is: the very object, or else an equal one.

        Raises
        ------
        UsageError
            It is none of them.
        """
        options = list(self.options)
        chosen = [place for place, option in enumerate(options) if option is choice] or [
            place for place, option in enumerate(options) if _equal(option, choice)
        ]
        if not chosen:
            raise UsageError(f"{self!r} has no option {choice!r}")
        return chosen[0]

    def __repr__(self) -> str:
        job = f", job {self.job.id}" if self.job is not None else ""
        return f"Decision({self.stage!r}, t={self.system.now} s{job}, {len(self.options)} options)"


def _equal(option: Any, choice: Any) -> bool:
    """Tell whether a choice is equal to an option: jobs by what they ask for, arrays by their content."""
    if isinstance(option, np.ndarray) or isinstance(choice, np.ndarray):
        return np.array_equal(option, choice)
    return bool(option == choice)


class External(Stage):
    """A seat left open: the pass stops there and yields a :class:`Decision`.

    Parameters
    ----------
    base : Stage, optional
        The heuristic behind the seat. On the order seat it keeps the queue (arrival order by default); on
        the backfiller seat it says what may start at all (by default what EASY admits); everywhere it is
        what ``decision.default`` answers.
    decline : bool
        Order and backfiller: also offer ``None``, to start nothing more now. Where nothing runs and
        nothing is to come, it is not offered.
    skip : bool
        Where there is one option only, it is taken without asking (and not recorded as a choice).

    Examples
    --------
    >>> External().open
    True
    """

    open = True

    def __init__(self, base: Any = None, *, decline: bool = False, skip: bool = False) -> None:
        self.base = base
        self.decline = decline
        self.skip = skip

    def reset(self, system: System) -> None:
        """Prepare the heuristic behind the seat."""
        if self.base is not None:
            self.base.reset(system)


class Answering(External):
    """A seat whose holder answers by himself, such as a learned agent: the pass need not stop.

    Examples
    --------
    >>> class Last(Answering):
    ...     def answer(self, decision):
    ...         return len(decision.options) - 1
    >>> Last().open
    False
    """

    open = False

    def answer(self, decision: Decision) -> int:
        """Return the position of the chosen option, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} needs a method answer(decision)")
