"""Trainings of CuSH with several workers, whose weights are averaged every few epochs (KAVG, section 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.training.workers import Workers

PARTS = 5
"""Number of parts of a training, of each of which the mean is shown."""


class Meeting:
    """What the workers of one process share: what each brings, and a barrier."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.brought: list[Any] = [None] * count
        self.barrier = Barrier(count)

    def all_of(self, rank: int, value: Any, combine: Callable[[list[Any]], Any]) -> Any:
        """Bring a value, and return what all values together make."""
        self.brought[rank] = value
        self.barrier.wait()
        found = combine(self.brought)
        self.barrier.wait()  # before anybody brings the next value
        return found


class InThreads(Workers):
    """One of several workers in threads of one process, which take turns: the order of sums is that of ranks."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self.meeting, self.rank, self.count = meeting, rank, meeting.count

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.meeting.all_of(self.rank, values, lambda each: np.sum(each, axis=0)))

    def least(self, number: int) -> int:
        return int(self.meeting.all_of(self.rank, number, min))

    def average(self, module: torch.nn.Module) -> None:
        for values in module.state_dict().values():
            mean = self.meeting.all_of(self.rank, values, lambda each: torch.stack(each).mean(dim=0))
            values.copy_(mean)


def trained(problem: CushProblem, settings: CushSettings, workers: int, seed: int = 0) -> list[CushTrainer]:
    """Return the trainers of all workers after a training."""
    meeting = Meeting(workers)
    trainers = [
        CushTrainer(problem, settings, seed=seed, workers=InThreads(meeting, rank)) for rank in range(workers)
    ]

    def train(trainer: CushTrainer) -> None:
        try:
            trainer.train()
        except BaseException:
            meeting.barrier.abort()  # or the others would wait for it for ever
            raise

    with ThreadPoolExecutor(workers) as pool:
        runs = [pool.submit(train, trainer) for trainer in trainers]
    failures = [error for run in runs if (error := run.exception()) is not None]
    for error in sorted(failures, key=lambda each: isinstance(each, BrokenBarrierError)):
        raise error  # the first of a worker that did not merely wait for others
    return trainers


def rows(epochs: int = 60) -> Iterator[list[str]]:
    """Yield workers, K, and the mean NTAT of each part of the epochs on Sierra, with the published rates."""
    for workers, average_every in ((1, 1), (12, 1), (12, 5)):
        settings = CushSettings(epochs=epochs, average_every=average_every)
        curve = trained(CushProblem(), settings, workers)[0].curve
        found = [each.measures["normalised_turnaround"] for each in curve]
        means = (f"{np.mean(part):.2f}" for part in np.array_split(found, PARTS))
        yield [str(workers), "-" if workers == 1 else str(average_every), *means]
