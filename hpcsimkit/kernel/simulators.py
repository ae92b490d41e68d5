"""Other programs that run simulations by the rules of the kernel, and the names of policies.

The kernel simulates with SimPy. ``hpcsimkit`` registers the compiled simulator and the names of policies,
packages above this one, which are imported only when a simulation needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hpcsimkit.kernel.begun import Begun
    from hpcsimkit.kernel.decision import Decision
    from hpcsimkit.kernel.policy import Policy
    from hpcsimkit.kernel.system import System
    from hpcsimkit.results.result import Result

__all__ = [
    "LOADERS",
    "LOADERS_OF_SEATS",
    "MAKERS",
    "Pausing",
    "PausingSimulator",
    "Simulator",
    "pausing",
    "taking",
]


class Simulator(Protocol):
    """A program that runs whole simulations; a module with these functions is one."""

    def takes(self, simulation: Any) -> bool:
        """Return whether it is to run a simulation; raise a UsageError if it must and cannot."""

    def run(self, simulation: Any) -> tuple[Result, NDArray[np.int32] | None]:
        """Return the result of a simulation that it takes, equal to that of the kernel.

        With it, the positions of the start and of the end of each job among all starts and ends, shape
        (2, jobs), or None. The verification of the schedule is faster with them, and does not rely on them.
        """


MAKERS: list[Callable[[str], Policy]] = []
"""Functions that return the policy of a name; the first one is used."""

LOADERS: list[Callable[[], Simulator]] = []
"""Functions that import and return a simulator; the first one that takes a simulation runs it."""


def taking(simulation: Any) -> Simulator | None:
    """Return the simulator that is to run a simulation; None for the kernel.

    Raises
    ------
    UsageError
        The simulation asks for a simulator that cannot run it.
    """
    if simulation.setup.simulator == "simpy":
        return None
    return next((simulator for loader in LOADERS if (simulator := loader()).takes(simulation)), None)


def refused_elsewhere(result: Result, begun: Begun | None) -> NDArray[np.bool_] | None:
    """Return which jobs another simulator has rejected, bool, shape (jobs,); None for none.

    They are those that limits hold for ever, unless they were stopped before, and those that a begun run
    rejects.
    """
    import numpy as np

    from hpcsimkit.results.attempts import Outcome

    rows = [] if result.held is None else result.held.job[result.held.start == result.held.end].tolist()
    if rows and result.attempts is not None:
        stopped = result.attempts.job[result.attempts.outcome == Outcome.PREEMPTED]
        rows = np.setdiff1d(rows, stopped).tolist()
    rows += [] if begun is None else [row for row in begun.rejected if result.start_time[row] < 0]
    if not rows:
        return None
    rejected = np.zeros(len(result), dtype=np.bool_)
    rejected[rows] = True
    return rejected


# --- runs that pause at open seats -------------------------------------------------------------------------


class Pausing(Protocol):
    """A run that pauses at decisions: that of the kernel, or one of another program.

    Attributes
    ----------
    simulator : str
        The program that runs: ``"simpy"`` or ``"compiled"``.
    system : System
        The state; another program shows only a part of it.
    decision : Decision or None
        The pending decision.
    cut_short : list of int
        Rows of the jobs that exceed their wall-time limit due to the locality model.
    served : dict of int to int
        Run time [s] of each started job by its row, under the locality model; empty without one.
    down : list of (int, int, Allocation)
        Beginning and end [s] of each outage, and its capacity.
    """

    simulator: str
    system: System
    decision: Decision | None
    cut_short: list[int]
    served: dict[int, int]
    down: list[tuple[int, int, Any]]

    def advance(self) -> None:
        """Run to the next decision; raise an EmptySchedule if there is none."""

    def resume(self, decision: Decision, choice: Any) -> None:
        """Answer the pending decision."""

    def finish(self) -> None:
        """End the run once no event is left."""


class PausingSimulator(Protocol):
    """A program for runs with open seats; a module with this function is one."""

    def opened(self, simulation: Any, simulator: str, readers: Sequence[Any]) -> Pausing | None:
        """Return the run of the other program, or None to use SimPy.

        With ``simulator="compiled"``, raise a UsageError instead of returning None.
        """


LOADERS_OF_SEATS: list[Callable[[], PausingSimulator]] = []
"""Functions that import and return a program; the first one that takes a simulation runs it."""


def pausing(simulation: Any, simulator: str, readers: Sequence[Any]) -> Pausing | None:
    """Return a run of another program that pauses at decisions; None for the kernel.

    Raises
    ------
    UsageError
        The program that is asked for cannot run it.
    """
    if simulator == "simpy":
        return None
    runs = (loader().opened(simulation, simulator, readers) for loader in LOADERS_OF_SEATS)
    return next((run for run in runs if run is not None), None)
