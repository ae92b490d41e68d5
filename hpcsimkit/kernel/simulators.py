"""Other programs that run simulations by the rules of the kernel.

The kernel simulates with SimPy. ``hpcsimkit`` registers the compiled simulator, a package above this one,
which is imported only when a simulation is run that it may take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hpcsimkit.results.result import Result

__all__ = ["LOADERS", "Simulator", "taking"]


class Simulator(Protocol):
    """A program that runs whole simulations; a module with these functions is one."""

    def takes(self, simulation: Any) -> bool:
        """Return whether it is to run a simulation; raise a UsageError if it must and cannot."""

    def run(self, simulation: Any) -> Result:
        """Return the result of a simulation that it takes, equal to that of the kernel."""


LOADERS: list[Callable[[], Simulator]] = []
"""Functions that import and return a simulator; the first one that takes a simulation runs it."""


def taking(simulation: Any) -> Simulator | None:
    """Return the simulator that is to run a simulation; None for the kernel.

    Raises
    ------
    UsageError
        The simulation asks for a simulator that cannot run it.
    """
    if simulation.simulator == "simpy":
        return None
    return next((simulator for loader in LOADERS if (simulator := loader()).takes(simulation)), None)
