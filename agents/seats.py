"""Who can take an open seat without having learned anything: the heuristic behind it, chance, a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hpcsimkit.decision import Answering, Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Mask
from hpcsimkit.result import Result
from hpcsimkit.simulation import Simulation
from hpcsimkit.system import System

__all__ = ["Answer", "RandomAgent", "RandomChoice", "Replay", "default_choice", "play"]

Answer = Callable[[Decision], Any]
"""Who sits on a seat: called with each decision, returns one of its options."""


def play(simulation: Simulation, answer: Answer) -> Result:
    """Drive a simulation with open seats to its end.

    Parameters
    ----------
    simulation : Simulation
        It may have begun already; closed seats answer for themselves.
    answer : callable
        ``answer(decision)`` returns one of ``decision.options``; it sees the decisions of all open seats,
        ``decision.stage`` tells them apart.

    Returns
    -------
    Result
        With the positions of all answers among their options in ``choices``.

    Examples
    --------
    >>> from hpcsimkit.decision import External
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> shortest = lambda decision: min(decision.options, key=lambda job: job.requested_time)
    >>> play(Simulation(w, Pipeline(order=External())), shortest).start_time.tolist()
    [4, 0]
    """
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(answer(decision))
    return simulation.result()


def default_choice(decision: Decision) -> Any:
    """Answer what the heuristic behind the seat would: the schedule is that of the closed pipeline."""
    return decision.default


class RandomChoice:
    """Answers any option, all equally likely.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the chance comes from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __call__(self, decision: Decision) -> Any:
        """Draw an option."""
        return decision.options[int(self.rng.integers(len(decision.options)))]


class RandomAgent(Answering):
    """Answers any action that is an option, all equally likely: what an agent that learned nothing does.

    Parameters
    ----------
    mask : Mask
        How actions and options belong together: that of the agent whose place it takes.
    base : Stage, optional
        The heuristic behind the seat.
    decline : bool
        Whether to start nothing more is an option.
    """

    def __init__(self, mask: Mask, base: Any = None, *, decline: bool = False) -> None:
        super().__init__(base, decline=decline)
        self.mask = mask

    def reset(self, system: System) -> None:
        """Take a stream of random numbers."""
        super().reset(system)
        self._random = system.random()
        self._valid = np.zeros(self.mask.actions, dtype=np.bool_)

    def answer(self, decision: Decision) -> int:
        """Draw an action."""
        self._valid[...] = False
        self.mask.write(decision, self._valid)
        actions = np.flatnonzero(self._valid)
        return self.mask.position(decision, int(actions[self._random.integers(len(actions))]))


class Replay:
    """Gives recorded answers again, so that the run comes out the same bit for bit.

    A run is its workload, cluster, policy, seed, options and choices; all must be those of the record.

    Parameters
    ----------
    choices : sequence of (str, int)
        Stage and position of each answer, as in ``Result.choices``.

    Raises
    ------
    UsageError
        When called: the decision is not the one recorded, or the record has come to its end.

    Examples
    --------
    >>> from hpcsimkit.decision import External
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> policy = Pipeline(order=External())
    >>> first = play(Simulation(w, policy), RandomChoice(np.random.default_rng(1)))
    >>> play(Simulation(w, policy), Replay(first.choices)).hash == first.hash
    True
    """

    def __init__(self, choices: Sequence[tuple[str, int]]) -> None:
        self.choices = choices
        self._given = 0

    def __call__(self, decision: Decision) -> Any:
        """Give the next answer of the record."""
        if self._given == len(self.choices):
            raise UsageError(f"the record ends after {self._given} choices, at {decision!r}")
        stage, position = self.choices[self._given]
        self._given += 1
        if stage != decision.stage or not 0 <= position < len(decision.options):
            raise UsageError(
                f"choice {self._given} of the record is option {position} of the {stage} seat; "
                f"it does not fit {decision!r}"
            )
        return decision.options[position]
