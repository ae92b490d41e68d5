"""Agents of reproductions with a partner on another seat, trained before them or at the same time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.training.spinning_up import SpinningUpSettings
from hpcsimkit.agents.training.together import Together
from hpcsimkit.agents.training.trainer import LAST
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.episode import Player
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent


@dataclass(frozen=True)
class SeatLearner(Learner):
    """A learner, optionally beside a trained partner.

    The partner, an agent on the other seat, is kept fixed; its training is complete before.
    """

    partner: Learner | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        return () if self.partner is None else (self.partner.name,)

    def with_others(self, policy: Policy, store: Path, *, sample: bool) -> Policy:
        return (
            policy if self.partner is None else with_agent(policy, self.partner_agent(store, sample=sample))
        )

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks; CEM agents never sample."""
        partner = self.partner
        assert partner is not None
        return trained_agent(partner, store / partner.name, sample=sample and partner.trainer != "cem")


@dataclass(frozen=True)
class TogetherLearner(SeatLearner):
    """A learner and its partner, trained at the same time; the partner has no training of its own.

    Training steps are counted as one decision per job.
    """

    PARTNER = "partner.hpcsim"

    @property
    def requires(self) -> tuple[str, ...]:
        return ()

    @property
    def _jobs(self) -> int:
        """Number of jobs of an episode."""
        assert isinstance(self.episodes, Windows)
        return self.episodes.jobs

    @property
    def rounds(self) -> int:
        """Number of updates, each from `settings.episodes` sequences."""
        return math.ceil(self.settings.total_timesteps / (self.settings.episodes * self._jobs))

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train both agents, or resume; the folder keeps agents, learning curve and a checkpoint."""
        assert self.partner is not None
        players: dict[str, Player] = {}
        settings: dict[str, SpinningUpSettings] = {}
        for each in (self, self.partner):
            assert isinstance(each.settings, SpinningUpSettings)
            players[each.stage] = Player(each.encoder, each.mask, each.reward)
            settings[each.stage] = each.settings
        both = Together(
            self.episodes,
            self.policy,
            players,
            settings,
            rounds=self.rounds,
            seed=self.seed,
            attempts=self.attempts,
        )
        agents = both.train(
            folder,
            resume=True,
            tell=lambda report: tell(min(report.steps * self._jobs, self.settings.total_timesteps)),
        )
        agents[self.partner.stage].save(folder / self.PARTNER)
        agents[self.stage].save(folder / LAST)
        return agents[self.stage]

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks."""
        assert self.partner is not None
        file = store / self.name / self.PARTNER
        return Agent.load(file, encoder=self.partner.encoder, mask=self.partner.mask, sample=sample)
