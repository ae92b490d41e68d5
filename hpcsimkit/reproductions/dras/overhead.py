"""Processor time of a decision and an update (section 6.7), for the simulated and the full size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.agents.dras.settings import WINDOW, dras_environment, hidden_of
from hpcsimkit.agents.dras.trainer import DrasTrainer, Steps
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.dras.data import DAY

__all__ = ["Overhead"]

STEPS = 10
"""Number of decisions in an update: one for each scheduling instance."""


@dataclass(frozen=True)
class Overhead(Task):
    """Decisions and updates of a learner with random weights, on observations of a full window.

    Parameters
    ----------
    algorithm : str
        Name of the learner.
    nodes : int
        Number of nodes of the machine; the size of the network is in proportion.
    repeats : int
        Number of updates measured; ten times as many decisions are measured.
    """

    algorithm: str
    nodes: int
    repeats: int

    kind = "overhead"

    @property
    def name(self) -> str:
        """Name of the task: learner and number of nodes."""
        return f"overhead-{self.algorithm}-{self.nodes}"

    @property
    def size(self) -> int:
        """Number of decisions in all updates."""
        return self.repeats * STEPS

    def inputs(self) -> Any:
        """Return the inputs of the task."""
        return {"algorithm": self.algorithm, "nodes": self.nodes, "repeats": self.repeats, "steps": STEPS}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Return processor times [s] (medians) and the number of weights."""
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
        """Return an untrained learner."""
        nobody = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=self.nodes)
        env = dras_environment(InTurn([nobody]), self.nodes, DAY)
        kind = trainer_named(self.algorithm)
        settings: Any = replace(settings_of(kind)(), hidden=hidden_of(self.nodes))
        trainer = kind(env, settings)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin()
        return trainer


def _steps(seen: np.ndarray[Any, np.dtype[np.float32]], rng: np.random.Generator) -> Steps:
    """Return ten decisions with full windows."""
    import torch

    rows = torch.from_numpy(seen)
    valid = torch.ones((len(rows), WINDOW), dtype=torch.bool)
    actions = torch.from_numpy(rng.integers(WINDOW, size=STEPS))
    rewards = torch.from_numpy(rng.random(STEPS, dtype=np.float32))
    return Steps(rows[:-1], valid[:-1], actions, rewards, rows[1:], valid[1:])


def _median(work: Callable[[], object], repeats: int) -> float:
    """Return the median processor time of a function [s], after one warm-up call."""
    work()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))
