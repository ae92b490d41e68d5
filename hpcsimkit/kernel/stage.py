"""The base class of all stages of a pipeline."""

from __future__ import annotations

from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = ["Stage"]


class Stage(Parameters):
    """A stage of a pipeline: it makes the decisions at one seat (decision point)."""

    open = False
    """Whether the decision is left to an agent (see :class:`~hpcsimkit.kernel.decision.External`)."""

    draws = False
    """Whether runs with other seeds may differ: the stage draws random numbers from ``system.random()``."""

    def reset(self, system: System) -> None:
        """Prepare the run's own copy before the first event; randomness comes from ``system.random()``."""
