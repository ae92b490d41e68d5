"""One episode: a run with open seats, and an agent's interface to each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hpcsimkit.envs.interfaces import Encode, Encoder, Mask, Observation, Reward, Valid
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.result import Result

__all__ = ["Episode", "Player"]

WHOLE = (int, np.integer)
NUMBER = (float, *WHOLE, np.floating)
"""Valid types of a reward."""


@dataclass(frozen=True)
class Player:
    """The agent interface of an open seat.

    Parameters
    ----------
    encoder : Encoder
        Encoder of the observations.
    mask : Mask
        Mapping between actions and options.
    reward : Reward
        Reward of the agent.
    """

    encoder: Encoder
    mask: Mask
    reward: Reward


class Episode:
    """A run of a scenario, suspended at each decision of an agent.

    Parameters
    ----------
    scenario : Scenario
        The scenario to simulate.
    policy : Policy
        The policy, with open seats.
    players : mapping of str to Player
        Agent interfaces by stage. Other open seats are answered by the heuristic behind them.
    skip : bool
        Whether decisions with a single option are answered automatically. Default: True.
    simulator : {"auto", "simpy", "compiled"}
        The program that runs up to the decisions, which do not depend on it; see
        :meth:`Simulation.pause_with <hpcsimkit.kernel.simulation.Simulation.pause_with>`. Default:
        ``"auto"``.

    Attributes
    ----------
    simulation : Simulation
        The run.
    decision : Decision or None
        The pending decision; None when the run is over.
    decisions : int
        Number of decisions that agents have made so far.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.rl import MinusMeanWait, QueueWindow, Scenario, Slots
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [9, 4, 2], "nodes": [1, 1, 1]}, machine_size=1)
    >>> player = Player(QueueWindow(3), Slots(3), MinusMeanWait())
    >>> episode = Episode(Scenario(w), Pipeline(order=External(), window=3), {"order": player})
    >>> while episode.decision is not None:  # the last of the waiting jobs
    ...     episode.answer(len(episode.decision.options) - 1)
    >>> episode.result().start_time.tolist()
    [6, 2, 0]
    """

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy,
        players: Mapping[str, Player],
        *,
        skip: bool = True,
        simulator: Literal["auto", "simpy", "compiled"] = "auto",
    ) -> None:
        self.scenario = scenario
        self.players = players
        self.skip = skip
        rewards = {id(player.reward): player.reward for player in players.values()}
        self.simulation: Simulation = scenario.simulation(policy, observers=list(rewards.values()))
        readers = [part for player in players.values() for part in (player.encoder, player.mask)]
        self.simulation.pause_with(simulator, readers)
        self.decisions = 0
        self.decision: Decision | None = self.simulation.next_decision()
        self._encode: dict[tuple[str, str], Encode] = {}
        self._let_run()

    def _encode_of(self, decision: Decision) -> Encode:
        """Return the encoder of a stage, bound to the system of the decision on first use."""
        key = decision.stage, decision.system.partition
        encode = self._encode.get(key)
        if encode is None:
            encode = self._encode[key] = self._bound(self.players[decision.stage].encoder, decision)
        return encode

    def _bound(self, encoder: Encoder, decision: Decision) -> Encode:
        encode = encoder.bind(decision.system)
        if not callable(encode):
            raise UsageError(f"{encoder!r}: bind(system) needs to return a function, found {encode!r}")
        return encode

    @property
    def player(self) -> Player:
        """The agent interface of the pending decision."""
        assert self.decision is not None
        return self.players[self.decision.stage]

    def answer(self, action: int) -> None:
        """Answer the pending decision with an action, and advance the run to the next decision."""
        decision = self._at_hand()
        self.decisions += 1
        simulation, mask = self.simulation, self.players[decision.stage].mask
        with simulation.guard:
            position = mask.position(decision, action)
            if not isinstance(position, WHOLE) or not 0 <= position < len(decision.options):
                raise UsageError(f"{mask!r} takes action {action} for option {position!r} of {decision!r}")
        self.decision = simulation.proceed(int(position))
        self._let_run()

    def write(self, observation: Observation, valid: Valid) -> None:
        """Write the observation and the valid actions of the pending decision into arrays.

        Raises
        ------
        UsageError
            No action is valid, or the observation is not finite.
        """
        decision = self._at_hand()
        observation.fill(0.0)
        valid.fill(False)
        player = self.players[decision.stage]
        with self.simulation.guard:
            self._encode_of(decision)(decision, observation)
            player.mask.write(decision, valid)
            if not np.count_nonzero(valid):  # counting is faster than any() and all()
                raise UsageError(f"{player.mask!r} leaves no action for {decision!r}")
            if np.count_nonzero(np.isfinite(observation)) < observation.size:
                raise UsageError(f"{player.encoder!r} sees what is no finite number at {decision!r}")

    def reward(self, stage: str) -> float:
        """Return the reward of a stage's agent since the last call.

        Raises
        ------
        UsageError
            The reward is non-finite.
        """
        reward = self.players[stage].reward
        with self.simulation.guard:
            earned = reward.take(self.simulation.system)
            if not isinstance(earned, NUMBER) or not math.isfinite(earned):
                raise UsageError(f"{reward!r} pays {earned} at t={self.simulation.system.now} s")
        return float(earned)

    def result(self) -> Result:
        """Return the result when the run is over."""
        return self.simulation.result()

    def _at_hand(self) -> Decision:
        if self.decision is None:
            raise UsageError("the episode is over: reset the environment first")
        return self.decision

    def _let_run(self) -> None:
        """Advance the run to the next decision of an agent."""
        simulation = self.simulation
        begin = self.scenario.learn_from
        while (decision := self.decision) is not None:
            with simulation.guard:  # options and default are evaluated on first access
                played = decision.stage in self.players
                alone = played and len(decision.options) == 1
                early = begin is not None and decision.system.now < begin
                if played and not (early or (alone and self.skip)):
                    return
                position = 0 if alone else decision.position(decision.default)
            self.decision = simulation.proceed(position)
