"""Who is trained: an inspector and a backfiller for each log and order; and pairs of both in one pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.episodes import Windows
from hpcsimkit.agents.learning_curve import Report, curve_table
from hpcsimkit.agents.masks import AcceptReject, Slots
from hpcsimkit.agents.prompt_improvement import PromptImprovement
from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.settings import EVOLVED
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import PROMPT as INSPECTOR
from hpcsimkit.agents.spinning_up import SpinningUpSettings
from hpcsimkit.agents.together import Together
from hpcsimkit.agents.trainer import CURVE, LAST
from hpcsimkit.episode import Player
from hpcsimkit.files import write_bytes
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import with_agent
from hpcsimkit.reproductions.tasks import Tell
from hpcsimkit.reproductions.textbook_rules.data import JOBS, Trace, Traces
from hpcsimkit.reproductions.textbook_rules.seats import SLOTS, backfilling, base, both_seats, inspecting

__all__ = ["TOGETHER", "Learners", "SeatLearner", "TogetherLearner"]

ATTEMPTS = 1000
"""Sequences that are drawn, one after the other, until one has a decision."""

TOGETHER = SpinningUpSettings(
    episodes=50, learning_rate=1e-3, hidden=(32, 16, 8), activation="relu", value_trace=None,
)  # fmt: skip
"""How two learn who learn together: the same networks, 50 sequences a round, all steps at once."""


@dataclass(frozen=True)
class SeatLearner(Learner):
    """A learner of a seat that is not asked in each sequence, perhaps beside one who has learned already.

    Parameters
    ----------
    attempts : int
        Sequences that are drawn at most until there is something to decide in one: here many by default.
    partner : Learner, optional
        Whose agent sits on the seat of its own meanwhile, as it was trained: its training has to be done
        before, on the same shelf.
    """

    attempts: int = ATTEMPTS
    partner: Learner | None = None

    def scheduler(self, shelf: Path) -> Policy:
        """Return the policy whose open seat is learned, the partner on the other one."""
        if self.partner is None:
            return self.policy
        return with_agent(self.policy, self.partner_agent(shelf, sample=True))

    def partner_agent(self, shelf: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks; one that evolved never draws."""
        partner = self.partner
        assert partner is not None
        sample = sample and partner.trainer != "cem"
        return trained_agent(partner, shelf / partner.name, sample=sample)


@dataclass(frozen=True)
class TogetherLearner(SeatLearner):
    """A learner and its partner, who learn at the same time; the partner is trained nowhere else.

    There is no checkpoint: what is interrupted is begun anew. Steps are stated by a decision a job.
    """

    PARTNER = "partner.hpcsim"

    @property
    def rounds(self) -> int:
        """Of `settings.episodes` sequences each."""
        return math.ceil(self.settings.steps / (self.settings.episodes * JOBS))

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train both from the beginning; agents and learning curve stay in the folder."""
        partner, curve, total = self.partner, [], self.rounds * self.settings.episodes
        assert partner is not None
        assert isinstance(self.settings, SpinningUpSettings)
        assert isinstance(partner.settings, SpinningUpSettings)

        def told(number: int, sums: Any) -> None:
            played = number * self.settings.episodes
            others = {partner.stage: sums[partner.stage]}
            nothing = float("nan")
            curve.append(Report(played, total, played, sums[self.stage], nothing, nothing, others))
            tell(min(played * JOBS, self.settings.steps))

        players = {each.stage: Player(each.encoder, each.mask, each.reward) for each in (self, partner)}
        settings = {self.stage: self.settings, partner.stage: partner.settings}
        both = Together(self.episodes, self.policy, players, settings, seed=self.seed, attempts=self.attempts)
        agents = both.train(self.rounds, told)
        agents[partner.stage].save(folder / self.PARTNER)
        agents[self.stage].save(folder / LAST)
        write_bytes(folder / CURVE, curve_table(curve))
        return agents[self.stage]

    def partner_agent(self, shelf: Path, *, sample: bool) -> Agent:
        """Return the agent on the other seat, from the folder of all tasks."""
        assert self.partner is not None
        file = shelf / self.name / self.PARTNER
        return Agent.load(file, encoder=self.partner.encoder, mask=self.partner.mask, sample=sample)


class Learners:
    """All agents to be trained; each is made once.

    Parameters
    ----------
    traces : Traces
        The logs.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self._made: dict[str, SeatLearner] = {}

    def inspector(self, trace: Trace, order: str) -> SeatLearner:
        """Return who inspects what the heuristic is about to start."""
        return self._once(_inspector(trace, order))

    def backfiller(self, trace: Trace, order: str) -> SeatLearner:
        """Return who chooses among what EASY admits."""
        return self._once(_backfiller(trace, order))

    def in_turn(self, trace: Trace, order: str) -> SeatLearner:
        """Return an inspector who learns while the trained backfiller sits on its seat."""
        inspector = _inspector(trace, order)
        return self._once(
            replace(
                inspector, name=f"{trace.name}-{order}-in-turn", policy=both_seats(order),
                partner=self.backfiller(trace, order),
            )
        )  # fmt: skip

    def together(self, trace: Trace, order: str) -> TogetherLearner:
        """Return both, who learn at the same time."""
        inspector, backfiller = _inspector(trace, order), _backfiller(trace, order)
        name, steps = f"{trace.name}-{order}-together", trace.scale.together_sequences * JOBS
        settings = replace(TOGETHER, steps=steps)
        partner = replace(
            backfiller,
            name=f"{name}-partner",
            reward=_reward(order),
            settings=replace(settings, kind="slots"),
        )
        learner = TogetherLearner(
            name, inspector.episodes, both_seats(order), inspector.encoder, inspector.mask, inspector.reward,
            "together", settings, seed=trace.seed, stage=inspector.stage, partner=partner,
        )  # fmt: skip
        found = self._once(learner)
        assert isinstance(found, TogetherLearner)
        return found

    def _once(self, learner: SeatLearner) -> SeatLearner:
        return self._made.setdefault(learner.name, learner)


def _inspector(trace: Trace, order: str) -> SeatLearner:
    sees = InspectorFeatures(longest_time=trace.longest_time, backfilling="easy")
    settings = replace(INSPECTOR, steps=trace.scale.inspector_steps)
    return SeatLearner(
        f"{trace.name}-{order}-inspector", Windows(trace.part, JOBS), inspecting(order), sees, AcceptReject(),
        _reward(order), "prompt-inspector", settings, seed=trace.seed, stage="inspector",
    )  # fmt: skip


def _backfiller(trace: Trace, order: str) -> SeatLearner:
    sees = Candidates(SLOTS, longest_time=trace.longest_time, decline=True)
    settings = replace(EVOLVED, steps=trace.scale.backfiller_steps[order])
    return SeatLearner(
        f"{trace.name}-{order}-backfiller", Windows(trace.part, JOBS), backfilling(order), sees,
        Slots(SLOTS, decline=True), Improvement(base(order), kind="bounded"), "cem", settings,
        seed=trace.seed, stage="backfiller",
    )  # fmt: skip


def _reward(order: str) -> PromptImprovement:
    return PromptImprovement(base(order), kind="bounded")
