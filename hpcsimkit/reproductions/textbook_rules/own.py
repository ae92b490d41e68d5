"""Parts of textbook rules alone: pipelines with two seats, and their training environments."""

from __future__ import annotations

from collections.abc import Mapping

from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
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
