"""Imitation of a heuristic by dataset aggregation (DAgger: Ross, Gordon and Bagnell, AISTATS 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import Count, Share
from hpcsimkit.agents.seats import Answer, default_choice
from hpcsimkit.agents.training.checkpoints import below
from hpcsimkit.agents.training.network_trainer import NetworkSettings, NetworkTrainer
from hpcsimkit.agents.training.rollout import Rollout
from hpcsimkit.agents.training.trainer import Round, State
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.stage import Stage
from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

__all__ = ["Imitation", "ImitationSettings", "expert_named"]


@dataclass(frozen=True)
class ImitationSettings(NetworkSettings):
    """Settings of imitation learning.

    Parameters
    ----------
    expert : str
        Name of the policy to imitate, such as ``"sjf+easy"``, at the order seat; by default, and at other
        seats, the heuristic behind the seat.
    n_steps : int
        Number of decisions of each episode between updates.
    updates : int
        Number of gradient steps in a round.
    batch_size : int
        Number of decisions in a gradient step (minibatch size).
    memory : int
        Maximum number of stored decisions; the oldest are replaced.
    guided : float
        Share of the training over which the share of decisions taken by the expert (beta) falls from 1 to 0.
    """

    learning_rate: float = 3e-3
    expert: str = ""
    n_steps: Count = 16
    updates: Count = 16
    batch_size: Count = 64
    memory: Count = 50_000
    guided: Share = 0.5


def expert_named(name: str, stage: str) -> Answer:
    """Return the expert for a seat: the heuristic behind it, or the order of a named policy.

    Raises
    ------
    UsageError
        The policy is unknown, its order keeps state of a run, or a name is given for another seat.

    Examples
    --------
    >>> expert_named("", "inspector").__name__
    'default_choice'
    """
    if not name:
        return default_choice
    known = {part: made for group in CATALOGUE.values() for part, made in group.items()}
    parts = [ALIASES.get(part, part) for part in name.split("+")]
    for part in parts:
        if part not in known:
            raise UsageError(f"imitation: unknown expert {part!r}{nearest(part, known)}")
    orders: list[Order] = [known[part]() for part in parts if part in CATALOGUE["order"]]
    is_free = len(orders) == 1 and type(orders[0]).reset is Stage.reset  # of state of a run
    if stage != "order" or not is_free:
        raise UsageError(
            f"imitation: expert {name!r} cannot answer at the {stage} seat: a named expert is for the order "
            "seat and needs one order, without state of its own; the heuristic behind a seat (expert = '') "
            "may be any"
        )

    def choice(decision: Decision) -> object:
        jobs = [option for option in decision.options if option is not None]
        return orders[0].sort(jobs, decision.system)[0]

    return choice


class Imitation(NetworkTrainer):
    """Trainer of a network that imitates an expert in the states that it visits itself.

    The expert's choice is recorded at each decision, and all recorded decisions are learned from, by the
    cross-entropy loss. The expert takes a share of the decisions (beta), which falls to 0; the network takes
    the others. (DAgger.) Choices that no action represents, such as jobs beyond the window, are not recorded.
    The rewards are reported, but not learned from. Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.
    """

    algorithm = "imitation"
    settings: ImitationSettings

    def build(self, seed: int) -> None:
        """Create the network, and an empty memory."""
        super().build(seed)
        settings, env = self.settings, self.env
        if settings.memory < settings.episodes:
            raise UsageError(
                f"imitation: a memory of at least {settings.episodes} decisions is needed, "
                f"found {settings.memory}"
            )
        self._expert = expert_named(settings.expert, env.stage)
        columns = [(env.encoder.shape, np.float32), ((env.mask.actions,), np.bool_), self.recorded]
        self.memory = Rollout(columns, capacity=settings.memory)

    @property
    def recorded(self) -> tuple[tuple[int, ...], type[np.generic]]:
        """Shape and type of what is recorded of the expert at a decision: its action."""
        return (), np.int64

    @property
    def beta(self) -> float:
        """Current share of the decisions that the expert takes."""
        guided = self.settings.guided * self.settings.total_timesteps
        return max(0.0, 1 - self.steps / guided) if guided else 0.0

    def round(self) -> Round:
        """Record the expert's choices, and update from all records."""
        sums, agreed, beta = list[float](), list[float](), self.beta
        for _ in range(self.settings.n_steps):
            self._move(beta, sums, agreed)
        losses = [self._learn() for _ in range(self.settings.updates)] if len(self.memory) else []
        means = [float(np.mean(each)) if each else float("nan") for each in (losses, agreed)]
        return Round(sums, {"loss": means[0], "agreement": means[1], "beta": beta})

    def _move(self, beta: float, sums: list[float], agreed: list[float]) -> None:
        """Take one decision in each episode; append returns of ended episodes, and the agreement."""
        seen, valid = self.observations, self.vector.action_masks()
        with torch.no_grad():
            scores = self.networks.scores(torch.from_numpy(seen).to(self.device)).cpu().numpy()
        actions = np.where(valid, scores, -np.inf).argmax(axis=1)
        wanted = self._wanted(valid)
        known = wanted >= 0
        self.memory.add(seen[known], valid[known], wanted[known])
        agreed.extend((actions == wanted)[known].tolist())
        guided = known & (self.rng.random(len(actions)) < beta)
        told, _, over, infos = self.vector.step(np.where(guided, wanted, actions))
        self.observations = np.asarray(told)
        self.steps += len(actions)
        sums.extend(infos[place]["episode"]["r"] for place in np.flatnonzero(over).tolist())

    def _wanted(self, valid: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the action of the expert's choice in each episode; -1 if no action represents it."""
        pending = zip(self.vector.decisions, valid, strict=True)
        return np.array([self._wanted_at(decision, row) for decision, row in pending], dtype=np.int64)

    def _wanted_at(self, decision: Decision, valid: NDArray[np.bool_]) -> int:
        """Return the action of the expert's choice at a decision; -1 if no valid action represents it."""
        action = self.env.mask.action(decision, self._expert(decision))
        return action if 0 <= action < len(valid) and valid[action] else -1

    def _learn(self) -> float:
        """Take one gradient step on records drawn from the memory; return the loss."""
        drawn = self.memory.sample(self.rng, self.settings.batch_size)
        seen, valid, recorded = (torch.from_numpy(column).to(self.device) for column in drawn)
        logarithms = masked_log_probabilities(self.networks.scores(seen, valid), valid)
        loss = self._loss(logarithms, recorded)
        self.descend(loss)
        return loss.item()

    def _loss(self, logarithms: torch.Tensor, recorded: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of the actions of the expert."""
        return -logarithms.gather(1, recorded[:, None]).mean()

    def state(self) -> State:
        """Return the memory."""
        arrays = {f"memory.{name}": values for name, values in self.memory.arrays().items()}
        return State(arrays, {"added": self.memory.added})

    def restore(self, state: State) -> None:
        """Restore the memory."""
        self.memory.restore(below("memory", state.tensors), state.about["added"])
