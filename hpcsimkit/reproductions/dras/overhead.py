"""How long a decision and an update take (section 6.7): on the machine as simulated, and in full size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.agents.dras.settings import WINDOW, dras_environment, hidden_of
from hpcsimkit.agents.dras.trainer import DrasTrainer, Steps
from hpcsimkit.agents.episodes import InTurn
from hpcsimkit.agents.trainers_catalogue import settings_of, trainer_named
from hpcsimkit.reproductions.dras.data import DAY
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.workload import Workload

__all__ = ["Overhead"]

STEPS = 10
"""Decisions that an update learns from: one for each scheduling instance."""


@dataclass(frozen=True)
class Overhead(Task):
    """Decisions and updates of a learner with random weights, on what a full window looks like.

    Parameters
    ----------
    algorithm : str
        Which learner.
    nodes : int
        Of the machine: its network is in proportion.
    repeats : int
        Updates that are measured, and ten times as many decisions.
    """

    algorithm: str
    nodes: int
    repeats: int

    kind = "overhead"

    @property
    def name(self) -> str:
        """Of whom."""
        return f"overhead-{self.algorithm}-{self.nodes}"

    @property
    def size(self) -> int:
        """Decisions learned from."""
        return self.repeats * STEPS

    def inputs(self) -> Any:
        """Return of whom."""
        return {"algorithm": self.algorithm, "nodes": self.nodes, "repeats": self.repeats, "steps": STEPS}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Measure: seconds of a processor (medians), and how many weights there are."""
        trainer, rng = self._trainer(), np.random.default_rng(0)
        rows = trainer.env.encoder.shape[0]
        seen = rng.random((STEPS + 1, rows, 2), dtype=np.float32)
        steps = _steps(seen, rng)
        update = _median(lambda: trainer.learn(steps), self.repeats)
        network, actions = trainer.network(), np.arange(WINDOW)
        decision = _median(lambda: network.scores_of(seen[0], actions), 10 * self.repeats)
        tell(self.size)
        weights = sum(values.size for values in network.tensors.values())
        return {"weights": weights, "decision": decision, "update": update}

    def _trainer(self) -> DrasTrainer:
        """Return a learner as it is before it has learned anything."""
        nobody = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=self.nodes)
        env = dras_environment(InTurn([nobody]), self.nodes, DAY)
        kind = trainer_named(self.algorithm)
        settings: Any = replace(settings_of(kind)(), hidden=hidden_of(self.nodes))
        trainer = kind(env, settings)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin()
        return trainer


def _steps(seen: np.ndarray[Any, np.dtype[np.float32]], rng: np.random.Generator) -> Steps:
    """Return ten decisions among full windows."""
    import torch

    rows = torch.from_numpy(seen)
    valid = torch.ones((len(rows), WINDOW), dtype=torch.bool)
    actions = torch.from_numpy(rng.integers(WINDOW, size=STEPS))
    rewards = torch.from_numpy(rng.random(STEPS, dtype=np.float32))
    return Steps(rows[:-1], valid[:-1], actions, rewards, rows[1:], valid[1:])


def _median(work: Callable[[], object], repeats: int) -> float:
    """Return how long something takes, the first time left out [s of a processor]."""
    work()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))
