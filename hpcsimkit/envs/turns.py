"""Multi-agent environment: agents on several seats of one pipeline, which act in turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.interfaces import Episodes, Valid, actions_of, sampled, shape_of
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.policy import Policy

__all__ = ["TurnTaking"]


class TurnTaking:
    """Agents on several seats of a pipeline, which act in turns as the run requires decisions.

    The interface follows PettingZoo's AEC API: :attr:`agents`, :attr:`agent_selection`, :meth:`last`,
    :meth:`step`, :meth:`agent_iter`. The reward of an agent is the amount accumulated since its own last
    turn. At the end, each agent has a last turn with the remaining reward, in which it steps with None.

    Parameters
    ----------
    episodes : Episodes
        Distribution or sequence of scenarios.
    policy : Policy
        The policy, with open seats.
    players : mapping of str to Player
        Agent interfaces by stage (``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``), each with
        a separate reward object.
    skip : bool
        Whether decisions with a single option are answered automatically. Default: True.
    attempts : int
        Maximum number of episodes to try until one has a decision, >= 1. Default: 1.

    Raises
    ------
    UsageError
        Two agents share a reward object.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [9, 9, 4], "nodes": [3, 4, 1]}, machine_size=4)
    >>> table = TurnTaking(
    ...     Fixed(w), Pipeline(order=External(), backfiller=External(decline=True)),
    ...     {"order": Player(QueueWindow(3), Slots(3), MinusMeanWait()),
    ...      "backfiller": Player(QueueWindow(3), Slots(3, decline=True), MinusMeanWait())})
    >>> table.reset(seed=0)
    >>> turns = []
    >>> for stage in table.agent_iter():
    ...     observation, reward, terminated, _, info = table.last()
    ...     turns.append((stage, reward))
    ...     table.step(None if terminated else int(info["action_mask"].argmax()))
    >>> turns
    [('order', 0.0), ('order', 0.0), ('backfiller', 0.0), ('order', -3.0), ('backfiller', -3.0)]
    """

    def __init__(
        self,
        episodes: Episodes,
        policy: Policy,
        players: Mapping[str, Player],
        *,
        skip: bool = True,
        attempts: int = 1,
    ) -> None:
        if len({id(player.reward) for player in players.values()}) < len(players):
            raise UsageError("each player needs a reward of its own: what one takes is gone for the others")
        self.episodes = episodes
        self.policy = policy
        self.players = dict(players)
        self.skip = skip
        self.attempts = attempts
        self.rng = np.random.default_rng()
        self.simulators: Counter[str] = Counter()
        self.agents: list[str] = []
        self.agent_selection = ""

    @property
    def possible_agents(self) -> list[str]:
        """All stages with an agent."""
        return list(self.players)

    def reset(self, seed: int | None = None) -> None:
        """Begin the next episode; equal seeds give equal sequences of episodes."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        for _ in range(self.attempts):
            self.episode = Episode(
                sampled(self.episodes, self.rng), self.policy, self.players, skip=self.skip
            )
            self.simulators[self.episode.simulation.program] += 1
            if self.episode.decision is not None:
                break
        else:
            raise UsageError(f"{self.episode.simulation.workload.name}: an episode has no decision to take")
        if self.episode.scenario.learn_from is not None:
            for stage in self.players:
                self.episode.reward(stage)  # discard the reward of the warm-up
        self.agents = list(self.players)
        self._next()

    def agent_iter(self) -> Iterator[str]:
        """Yield the selected agent, until the episode is over for all agents."""
        while self.agents:
            yield self.agent_selection

    def last(self) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated and info of the selected agent.

        The info contains the mask of the valid actions as ``action_mask``.
        """
        observation, valid = self._arrays()
        over = self.episode.decision is None
        if not over:
            self.episode.write(observation, valid)
        return observation, self._earned, over, False, {"action_mask": valid}

    def step(self, action: int | None) -> None:
        """Answer the decision of the selected agent; pass None in its last turn."""
        if not self.agents:
            raise UsageError("the episode is over: reset first")
        if self.episode.decision is None:
            self.agents.remove(self.agent_selection)
        elif action is None:
            raise UsageError(f"the {self.agent_selection} seat needs an action, found None")
        else:
            self.episode.answer(int(action))
        self._next()

    def _next(self) -> None:
        """Select the next agent and collect its reward."""
        if not self.agents:
            return
        decision = self.episode.decision
        self.agent_selection = decision.stage if decision is not None else self.agents[0]
        self._earned = self.episode.reward(self.agent_selection)

    def _arrays(self) -> tuple[NDArray[np.float32], Valid]:
        player = self.players[self.agent_selection]
        return (
            np.zeros(shape_of(player.encoder), dtype=np.float32),
            np.zeros(actions_of(player.mask), dtype=np.bool_),
        )
