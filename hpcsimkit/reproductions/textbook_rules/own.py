"""Parts of textbook rules alone: pipelines with two seats, and agents in pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.spinning_up import SpinningUpSettings
from hpcsimkit.agents.training.together import Together
from hpcsimkit.agents.training.trainer import LAST
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.plans.catalogue import part

ORDERS: Mapping[str, type[Order]] = {"sjf": SJF, "f1": F1}
"""Orders of the queue of the baseline heuristics."""

JOBS, SLOTS = 256, 32
"""Number of jobs of a sequence, and maximum number of candidates in a backfiller's observation."""

ATTEMPTS = 1000
"""Maximum number of sequences drawn, one after the other, until one has a decision."""


# --- schedulers, the same with open seats, and training environments --------------------------------------


@part
def heuristic(order: str) -> Pipeline:
    """Return EASY with shortest-first candidates behind an order: the best heuristic of its class."""
    return Pipeline(ORDERS[order](), backfiller=EASY(SJF()))


@part
def inspector_seat(order: str) -> Pipeline:
    """Return the heuristic with an open seat for an inspector, which may hold the job about to start."""
    return _inspected(heuristic(order))


@part
def backfiller_seat(order: str) -> Pipeline:
    """Return the heuristic with an open seat for a backfiller, which picks an EASY candidate or none."""
    return backfilling_seat(ORDERS[order](), "guarded", semantics="textbook", decline=True, slots=SLOTS)


@part
def both_seats(order: str) -> Pipeline:
    """Return the heuristic with both seats open."""
    return _inspected(backfiller_seat(order))


def _inspected(pipeline: Pipeline) -> Pipeline:
    pipeline.inspector = External()
    pipeline.max_interval, pipeline.max_rejections = MAX_INTERVAL, MAX_REJECTIONS
    return pipeline


@part
def prompt(order: str) -> PromptImprovement:
    """Return the dense reward, by the heuristic of the same order."""
    return PromptImprovement(heuristic(order), kind="bounded")


@part
def inspecting(log: Workload, order: str, longest_time: int) -> SchedulingEnv:
    """Return the training environment of an inspector."""
    return SchedulingEnv(
        Windows(log, JOBS),
        inspector_seat(order),
        InspectorFeatures(longest_time=longest_time, backfilling="easy"),
        AcceptReject(),
        prompt(order),
        stage="inspector",
        attempts=ATTEMPTS,
    )


@part
def backfilling(log: Workload, order: str, longest_time: int) -> SchedulingEnv:
    """Return the training environment of a backfiller."""
    return SchedulingEnv(
        Windows(log, JOBS),
        backfiller_seat(order),
        Candidates(SLOTS, longest_time=longest_time, decline=True),
        Slots(SLOTS, decline=True),
        Improvement(heuristic(order), kind="bounded"),
        stage="backfiller",
        attempts=ATTEMPTS,
    )


# --- agents in pairs --------------------------------------------------------------------------------------


@part
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


@part
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
    def rounds(self) -> int:
        """Number of updates, each from `settings.episodes` sequences."""
        return math.ceil(self.settings.total_timesteps / (self.settings.episodes * JOBS))

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
            tell=lambda report: tell(min(report.steps * JOBS, self.settings.total_timesteps)),
        )
        agents[self.partner.stage].save(folder / self.PARTNER)
        agents[self.stage].save(folder / LAST)
        return agents[self.stage]

    def partner_agent(self, store: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks."""
        assert self.partner is not None
        file = store / self.name / self.PARTNER
        return Agent.load(file, encoder=self.partner.encoder, mask=self.partner.mask, sample=sample)
