"""One episode: a run with open seats, and a player's view of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Mask, Observation, Reward, Valid
from hpcsimkit.policy import Policy
from hpcsimkit.result import Result
from hpcsimkit.scenario import Scenario
from hpcsimkit.simulation import Simulation

__all__ = ["Episode", "Player"]


@dataclass(frozen=True)
class Player:
    """Who sits on an open seat, as an episode sees him.

    Parameters
    ----------
    encoder : Encoder
        What he sees.
    mask : Mask
        What he may do.
    reward : Reward
        What he is paid.
    """

    encoder: Encoder
    mask: Mask
    reward: Reward


class Episode:
    """A run of a scenario, stopped at each decision that a player has to take.

    Parameters
    ----------
    scenario : Scenario
        What is simulated.
    policy : Policy
        With open seats.
    players : mapping of str to Player
        By stage. Other open seats are answered by the heuristic behind them.
    skip : bool
        Menus with one option are answered without asking.

    Attributes
    ----------
    simulation : Simulation
        The run.
    decision : Decision or None
        What is to be decided now; None when the run is over.
    decisions : int
        Decisions that players have taken so far.
    """

    def __init__(
        self, scenario: Scenario, policy: Policy, players: Mapping[str, Player], *, skip: bool = True
    ) -> None:
        self.scenario = scenario
        self.players = players
        self.skip = skip
        rewards = {id(player.reward): player.reward for player in players.values()}
        self.simulation: Simulation = scenario.simulation(policy, observers=list(rewards.values()))
        self.decisions = 0
        self.decision: Decision | None = self.simulation.next_decision()
        self._encode: dict[str, Encode] = {
            stage: player.encoder.bind(self.simulation.system) for stage, player in players.items()
        }
        self._let_run()

    @property
    def player(self) -> Player:
        """Whose turn it is."""
        assert self.decision is not None
        return self.players[self.decision.stage]

    def answer(self, action: int) -> None:
        """Take the decision at hand, and let the run go on to the next."""
        decision = self._at_hand()
        self.decisions += 1
        self.simulation.answer_position(self.player.mask.position(decision, action))
        self.decision = self.simulation.next_decision()
        self._let_run()

    def write(self, observation: Observation, valid: Valid) -> None:
        """Write what the player whose turn it is sees, and may do, into arrays.

        Raises
        ------
        UsageError
            Nothing may be done, or the observation is not finite.
        """
        decision = self._at_hand()
        observation[...] = 0.0
        valid[...] = False
        self._encode[decision.stage](decision, observation)
        self.player.mask.write(decision, valid)
        if not valid.any():
            raise UsageError(f"{self.player.mask!r} leaves no action for {decision!r}")
        if not np.isfinite(observation).all():
            raise UsageError(f"{self.player.encoder!r} sees what is no finite number at {decision!r}")

    def reward(self, stage: str) -> float:
        """Return what the player of a stage has earned since he was last paid.

        Raises
        ------
        UsageError
            It is no finite number.
        """
        reward = self.players[stage].reward
        earned = reward.take(self.simulation.system)
        if not math.isfinite(earned):
            raise UsageError(f"{reward!r} pays {earned} at t={self.simulation.system.now} s")
        return earned

    def result(self) -> Result:
        """Return the outcome when the run is over."""
        return self.simulation.result()

    def _at_hand(self) -> Decision:
        if self.decision is None:
            raise UsageError("the episode is over: reset the environment first")
        return self.decision

    def _let_run(self) -> None:
        """Let the run go on to the next decision that is a player's."""
        simulation = self.simulation
        while (decision := self.decision) is not None and not self._is_to_be_asked(decision):
            if decision.stage in self.players and len(decision.options) == 1:
                simulation.answer_position(0)
            else:
                simulation.answer(decision.default)
            self.decision = simulation.next_decision()

    def _is_to_be_asked(self, decision: Decision) -> bool:
        begin = self.scenario.learn_from
        return (
            decision.stage in self.players
            and (begin is None or decision.system.now >= begin)
            and not (self.skip and len(decision.options) == 1)
        )
