"""Trained agents: an inspector and a backfiller for each log and order, and pairs of both in one pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.settings import EVOLVED
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import PROMPT as INSPECTOR
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.spinning_up import SpinningUpSettings
from hpcsimkit.agents.training.together import Together
from hpcsimkit.agents.training.trainer import LAST
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.episode import Player
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import with_agent
from hpcsimkit.reproductions.textbook_rules.data import JOBS, Trace, Traces
from hpcsimkit.reproductions.textbook_rules.seats import SLOTS, backfilling, base, both_seats, inspecting

__all__ = ["TOGETHER", "Learners", "SeatLearner", "TogetherLearner"]

ATTEMPTS = 1000
"""Maximum number of sequences drawn, one after the other, until one has a decision."""

TOGETHER = SpinningUpSettings(
    episodes=50,
    learning_rate=1e-3,
    hidden=(32, 16, 8),
    activation="relu",
    value_gae_lambda=None,
)
"""PPO settings of two agents trained together: the same networks, 50 sequences per update, one batch."""


@dataclass(frozen=True)
class SeatLearner(Learner):
    """A learner of a seat without decisions in some sequences, optionally beside a trained partner.

    Parameters
    ----------
    attempts : int
        Maximum number of sequences drawn until one has a decision (default: 1 000).
    partner : Learner, optional
        Learner of the agent on the pipeline's other seat, which is kept fixed. Its training has to be
        finished before, in the same folder of tasks.
    """

    attempts: int = ATTEMPTS
    partner: Learner | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return () if self.partner is None else (self.partner.name,)

    def scheduler(self, store: Path) -> Policy:
        """Return the policy with the learned seat open and the partner, if any, on the other seat."""
        if self.partner is None:
            return self.policy
        return with_agent(self.policy, self.partner_agent(store, sample=True))

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks; CEM agents never sample."""
        partner = self.partner
        assert partner is not None
        sample = sample and partner.trainer != "cem"
        return trained_agent(partner, store / partner.name, sample=sample)


@dataclass(frozen=True)
class TogetherLearner(SeatLearner):
    """A learner and its partner, trained at the same time; the partner has no training of its own.

    Training steps are counted as one decision per job.
    """

    PARTNER = "partner.hpcsim"

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before: none."""
        return ()

    @property
    def rounds(self) -> int:
        """Number of updates, each from `settings.episodes` sequences."""
        return math.ceil(self.settings.total_timesteps / (self.settings.episodes * JOBS))

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train both agents, or resume; the folder keeps agents, learning curve and a checkpoint."""
        partner = self.partner
        assert partner is not None
        assert isinstance(self.settings, SpinningUpSettings)
        assert isinstance(partner.settings, SpinningUpSettings)

        players = {each.stage: Player(each.encoder, each.mask, each.reward) for each in (self, partner)}
        settings = {self.stage: self.settings, partner.stage: partner.settings}
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
            tell=lambda report: tell(min(report.steps * JOBS, self.settings.total_timesteps)),
        )
        agents[partner.stage].save(folder / self.PARTNER)
        agents[self.stage].save(folder / LAST)
        return agents[self.stage]

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks."""
        assert self.partner is not None
        file = store / self.name / self.PARTNER
        return Agent.load(file, encoder=self.partner.encoder, mask=self.partner.mask, sample=sample)


class Learners:
    """All agents to be trained; each is created once.

    Parameters
    ----------
    traces : Traces
        Logs.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self._made: dict[str, SeatLearner] = {}

    def inspector(self, trace: Trace, order: str) -> SeatLearner:
        """Return the inspector of the jobs that the heuristic is about to start."""
        return self._once(_inspector(trace, order))

    def backfiller(self, trace: Trace, order: str) -> SeatLearner:
        """Return the backfiller that chooses among the candidates admitted by EASY."""
        return self._once(_backfiller(trace, order))

    def in_turn(self, trace: Trace, order: str) -> SeatLearner:
        """Return an inspector trained beside the trained backfiller, which is kept fixed."""
        inspector = _inspector(trace, order)
        return self._once(
            replace(
                inspector,
                name=f"{trace.name}-{order}-in-turn",
                policy=both_seats(order),
                partner=self.backfiller(trace, order),
            )
        )

    def together(self, trace: Trace, order: str) -> TogetherLearner:
        """Return the learner of both agents, trained at the same time."""
        inspector, backfiller = _inspector(trace, order), _backfiller(trace, order)
        name, steps = f"{trace.name}-{order}-together", trace.scale.together_sequences * JOBS
        settings = replace(TOGETHER, total_timesteps=steps)
        partner = replace(
            backfiller,
            name=f"{name}-partner",
            reward=_reward(order),
            settings=replace(settings, kind="slots"),
        )
        learner = TogetherLearner(
            name,
            inspector.episodes,
            both_seats(order),
            inspector.encoder,
            inspector.mask,
            inspector.reward,
            "together",
            settings,
            seed=trace.seed,
            stage=inspector.stage,
            partner=partner,
        )
        found = self._once(learner)
        assert isinstance(found, TogetherLearner)
        return found

    def _once(self, learner: SeatLearner) -> SeatLearner:
        return self._made.setdefault(learner.name, learner)


def _inspector(trace: Trace, order: str) -> SeatLearner:
    sees = InspectorFeatures(longest_time=trace.longest_time, backfilling="easy")
    settings = replace(INSPECTOR, total_timesteps=trace.scale.inspector_steps)
    return SeatLearner(
        f"{trace.name}-{order}-inspector",
        Windows(trace.part, JOBS),
        inspecting(order),
        sees,
        AcceptReject(),
        _reward(order),
        "prompt-inspector",
        settings,
        seed=trace.seed,
        stage="inspector",
    )


def _backfiller(trace: Trace, order: str) -> SeatLearner:
    sees = Candidates(SLOTS, longest_time=trace.longest_time, decline=True)
    settings = replace(EVOLVED, total_timesteps=trace.scale.backfiller_steps[order])
    return SeatLearner(
        f"{trace.name}-{order}-backfiller",
        Windows(trace.part, JOBS),
        backfilling(order),
        sees,
        Slots(SLOTS, decline=True),
        Improvement(base(order), kind="bounded"),
        "cem",
        settings,
        seed=trace.seed,
        stage="backfiller",
    )


def _reward(order: str) -> PromptImprovement:
    return PromptImprovement(base(order), kind="bounded")
