"""Multi-agent environment of several seats with PettingZoo's AEC interface (the extra ``[learn]``)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pettingzoo import AECEnv

from hpcsimkit.envs.interfaces import actions_of, shape_of
from hpcsimkit.envs.turns import TurnTaking

__all__ = ["SeatsAECEnv"]

Floats = NDArray[np.float32]


class SeatsAECEnv(AECEnv):  # type: ignore[misc]
    """Agents on several seats of a pipeline; a PettingZoo ``AECEnv`` that passes its ``api_test``.

    Agents are named by their stages. The agent on turn has the mask of its valid actions in
    ``infos[agent]["action_mask"]``, of dtype int8 as the spaces require; the masks of the others are zeros.
    Invalid actions are replaced by the first valid one and reported as ``infos[agent]["invalid"]``. All
    agents receive rewards after every action.

    Parameters
    ----------
    turns : TurnTaking
        Episodes, policy and players.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> from hpcsimkit.envs.episode import Player
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [9, 9, 4], "nodes": [3, 4, 1]}, machine_size=4)
    >>> seats = Pipeline(order=External(), backfiller=External(decline=True))
    >>> players = {"order": Player(QueueWindow(3), Slots(3), MinusMeanWait()),
    ...            "backfiller": Player(QueueWindow(3), Slots(3, decline=True), MinusMeanWait())}
    >>> env = SeatsAECEnv(TurnTaking(Fixed(w), seats, players))
    >>> env.reset(seed=0)
    >>> for agent in env.agent_iter():
    ...     observation, reward, terminated, truncated, info = env.last()
    ...     print(agent, reward, terminated, info["action_mask"])
    ...     env.step(None if terminated else int(info["action_mask"].argmax()))
    order 0.0 False [1 1 1]
    order 0.0 False [1 1 0]
    backfiller 0.0 False [1 0 0 1]
    order -3.0 True [0 0 0]
    backfiller -3.0 True [0 0 0 0]
    """

    metadata = {"name": "hpcsimkit_seats", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, turns: TurnTaking) -> None:
        self.turns = turns
        self.possible_agents = turns.possible_agents
        self._observation_spaces = {
            agent: gymnasium.spaces.Box(
                player.encoder.low, player.encoder.high, shape=shape_of(player.encoder), dtype=np.float32
            )
            for agent, player in turns.players.items()
        }
        self._action_spaces = {
            agent: gymnasium.spaces.Discrete(actions_of(player.mask))
            for agent, player in turns.players.items()
        }

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the observation space of an agent."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Discrete:
        """Return the action space of an agent."""
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin the next episode; equal seeds give equal sequences of episodes, options have no effect."""
        self.turns.reset(seed)
        self._episode = self.turns.episode
        self._earlier = {self.turns.agent_selection: self.turns.last()[1]}
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._select()

    def step(self, action: Any) -> None:
        """Answer the decision of the selected agent; pass None in its last turn."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        valid = self.infos[agent]["action_mask"]
        invalid = action is None or not (0 <= action < len(valid) and valid[action])
        self._episode.answer(int(valid.argmax()) if invalid else int(action))
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {
            stage: self._episode.reward(stage) + self._earlier.pop(stage, 0.0) for stage in self.agents
        }
        self._accumulate_rewards()
        self._select()
        if invalid:
            self.infos[agent]["invalid"] = True

    def observe(self, agent: str) -> Floats:
        """Return the observation of an agent; zeros if it is not its turn."""
        return self._observations[agent].copy()

    def close(self) -> None:
        """Release nothing; the environment has no resources."""

    def _select(self) -> None:
        """Select the agent of the pending decision, or the first one for its last turn."""
        decision, players = self._episode.decision, self.turns.players
        valid = {agent: np.zeros(actions_of(player.mask), np.bool_) for agent, player in players.items()}
        self._observations = {
            agent: np.zeros(shape_of(player.encoder), np.float32) for agent, player in players.items()
        }
        self.agent_selection = self.agents[0]
        if decision is not None:
            self.agent_selection = decision.stage
            self._episode.write(self._observations[decision.stage], valid[decision.stage])
        self.terminations = dict.fromkeys(self.agents, decision is None)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {
            agent: {"action_mask": valid[agent].astype(np.int8)} for agent in self.agents
        }
