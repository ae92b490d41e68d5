"""Processor times of DRAS's networks on random observations of a full window (section 6.7 of the paper)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hpcsimkit.agents.dras.settings import LEARNERS, WINDOW, dras_environment, hidden_of
from hpcsimkit.agents.dras.trainer import DrasTrainer, Steps
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.jobs.workload import Workload

MACHINES = {
    "a tenth of Theta": (436, hidden_of(436)),
    "Theta": (4360, hidden_of(4360)),
    "Cori": (12_076, (10_000, 4000)),
}
"""Number of nodes, and sizes of the two wide layers: those of the paper's table 3 for Theta and Cori."""


STEPS = 10
"""Decisions since the last update: one for each of ten scheduling instances."""


def processor_times(algorithm: str, nodes: int, hidden: tuple[int, int], repeats: int) -> dict[str, float]:
    """Return the number of ``weights``, and medians of the times of a ``decision`` and an ``update`` [s].

    An update learns from `STEPS` decisions; it is measured `repeats` times, and ten times as many decisions.
    """
    nobody = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=nodes)
    kind = trainer_named(algorithm)
    settings: Any = replace(settings_of(kind)(), hidden=hidden)
    trainer = kind(dras_environment(InTurn([nobody]), nodes, 86_400), settings)
    assert isinstance(trainer, DrasTrainer)
    trainer.begin()
    rng = np.random.default_rng(0)
    seen = rng.random((STEPS + 1, trainer.env.encoder.shape[0], 2), dtype=np.float32)
    steps = _steps(seen, rng)
    update = _median(lambda: trainer.learn(steps), repeats)
    network, actions = trainer.network(), np.arange(WINDOW)
    decision = _median(lambda: network.scores_of(seen[0], actions), 10 * repeats)
    weights = sum(values.size for values in network.tensors.values())
    return {"weights": weights, "decision": decision, "update": update}


def rows(repeats: int = 5) -> Iterator[list[str]]:
    """Yield a row for each machine and learner."""
    for machine, (nodes, hidden) in MACHINES.items():
        for learner in LEARNERS:
            found = processor_times(learner, nodes, hidden, repeats)
            weights = f"{found['weights']:,.0f}".replace(",", " ")
            cells = (f"{1000 * found[each]:.2f}" for each in ("decision", "update"))
            yield [machine, learner.upper(), weights, *cells]


def _steps(seen: Any, rng: np.random.Generator) -> Steps:
    observations = torch.from_numpy(seen)
    valid = torch.ones((len(observations), WINDOW), dtype=torch.bool)
    actions = torch.from_numpy(rng.integers(WINDOW, size=STEPS))
    rewards = torch.from_numpy(rng.random(STEPS, dtype=np.float32))
    return Steps(observations[:-1], valid[:-1], actions, rewards, observations[1:], valid[1:])


def _median(work: Callable[[], object], repeats: int) -> float:
    """Return the median processor time of a function [s], after a first call."""
    work()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))
