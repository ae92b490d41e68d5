"""Several open seats of one pipeline, learned at once: whoever is asked has the turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.episode import Episode, Player
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Episodes, Valid
from hpcsimkit.policy import Policy

__all__ = ["TurnTaking"]


class TurnTaking:
    """Players on several seats of a pipeline, asked one after the other as the run needs them.

    The words are PettingZoo's: :attr:`agents`, :attr:`agent_selection`, :meth:`last`, :meth:`step`,
    :meth:`agent_iter`. A player's reward is what has come in since his own last turn; at the end everybody
    has a last turn, with what came in since, in which he steps with None.

    Parameters
    ----------
    episodes : Episodes
        Which scenario each episode is about.
    policy : Policy
        With the seats left open.
    players : mapping of str to Player
        By stage (``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``), each with a reward of its
        own.
    skip : bool
        Menus with one option are answered without asking.
    attempts : int
        Episodes without any decision are passed over, until so many in a row had none.

    Raises
    ------
    UsageError
        Two players share a reward object, so that one would take what is the other's.

    Examples
    --------
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
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
        self, episodes: Episodes, policy: Policy, players: Mapping[str, Player], *, skip: bool = True,
        attempts: int = 1,
    ) -> None:  # fmt: skip
        if len({id(player.reward) for player in players.values()}) < len(players):
            raise UsageError("each player needs a reward of its own: what one takes is gone for the others")
        self.episodes = episodes
        self.policy = policy
        self.players = dict(players)
        self.skip = skip
        self.attempts = attempts
        self.rng = np.random.default_rng()
        self.agents: list[str] = []
        self.agent_selection = ""

    @property
    def possible_agents(self) -> list[str]:
        """All stages that players sit on."""
        return list(self.players)

    def reset(self, seed: int | None = None) -> None:
        """Begin the next episode; the same seed gives the same ones again."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        for _ in range(self.attempts):
            self.episode = Episode(
                self.episodes.sample(self.rng), self.policy, self.players, skip=self.skip
            )  # fmt: skip
            if self.episode.decision is not None:
                break
        else:
            raise UsageError(f"{self.episode.simulation.workload.name}: an episode has no decision to take")
        if self.episode.scenario.learn_from is not None:
            for stage in self.players:
                self.episode.reward(stage)  # what the warm-up cost is nobody's merit
        self.agents = list(self.players)
        self._next()

    def agent_iter(self) -> Iterator[str]:
        """Yield whose turn it is until the episode is over for everybody."""
        while self.agents:
            yield self.agent_selection

    def last(self) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Return what the player whose turn it is sees, has earned, and may do (``info["action_mask"]``)."""
        observation, valid = self._arrays()
        over = self.episode.decision is None
        if not over:
            self.episode.write(observation, valid)
        return observation, self._earned, over, False, {"action_mask": valid}

    def step(self, action: int | None) -> None:
        """Take the turn; None in the last one."""
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
        """See whose turn it is, and pay him."""
        if not self.agents:
            return
        decision = self.episode.decision
        self.agent_selection = decision.stage if decision is not None else self.agents[0]
        self._earned = self.episode.reward(self.agent_selection)

    def _arrays(self) -> tuple[NDArray[np.float32], Valid]:
        player = self.players[self.agent_selection]
        return (
            np.zeros(player.encoder.shape, dtype=np.float32),
            np.zeros(player.mask.actions, dtype=np.bool_),
        )
