"""Effect of inaccurate estimates on EASY: figure 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.rlbackfilling.contest import PUBLISHED_EASY, TEXTBOOK_EASY, row
from hpcsimkit.reproductions.rlbackfilling.data import Trace
from hpcsimkit.reproductions.rlbackfilling.rivals import published_easy, textbook_easy
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet

__all__ = ["ACTUAL", "ORDERS", "REQUESTED", "Noise", "noisy"]

ORDERS = ("fcfs", "wfp3", "sjf", "f1")
REQUESTED, ACTUAL = "as requested", "actual"


def noisy(log: Workload, noise: float, seed: int) -> Workload:
    """Return a log with new requested times: run times plus a random share of them.

    Parameters
    ----------
    log : Workload
        Log with the run times.
    noise : float
        Maximum share added; the share of each job is uniform between 0 and this value.
    seed : int
        Random seed; with the same seed, errors grow in proportion to `noise`.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1], "run_time": [100, 0], "nodes": [1, 1]}, machine_size=1)
    >>> noisy(w, 0.2, seed=1).requested_time.tolist()  # the first draw is 0.51
    [110, 1]
    """
    shares = np.random.default_rng(seed).random(len(log))
    times: NDArray[np.int64] = np.rint(log.run_time * (1 + noise * shares)).astype(np.int64)
    return replace(log, columns={**log.columns, "requested_time": np.maximum(times, 1)})


@dataclass(frozen=True)
class Noise:
    """Runs of EASY on a whole log, with estimates from exact to inaccurate.

    Parameters
    ----------
    trace : Trace
        Log of the runs.
    """

    trace: Trace

    @property
    def log(self) -> Workload:
        """Whole log, or its first jobs."""
        jobs = self.trace.scale.noise_jobs
        return self.trace.log if jobs is None else self.trace.log.first(jobs)

    @property
    def levels(self) -> list[str]:
        """Sources of estimates, exact ones first; requested times only if the log has them."""
        noises = [f"+{100 * noise:g} %" for noise in self.trace.scale.noises]
        return [ACTUAL, *noises, *[REQUESTED] * (not self.trace.times_are_known)]

    @cached_property
    def meetings(self) -> Mapping[tuple[str, str], Meeting]:
        """Runs by level of noise and row."""
        return {(level, each.name): meeting for level in self.levels for each, meeting in self._runs(level)}

    def _runs(self, level: str) -> Iterator[tuple[Contestant, Meeting]]:
        name = "".join(each if each.isalnum() else "-" for each in level).strip("-")
        log = self._log(level)
        sequences = SequenceSet.of(f"{self.trace.name}-estimates-{name}", log, [0], len(log))
        for order in ORDERS:
            for each in (
                Contestant(row(order, PUBLISHED_EASY), published_easy(order)),
                Contestant(row(order, TEXTBOOK_EASY), textbook_easy(order), rules="textbook"),
            ):
                yield each, Meeting(each, sequences, self.trace.seed)

    def _log(self, level: str) -> Workload:
        if level == REQUESTED:
            return self.log
        noise = dict(zip(self.levels, (0.0, *self.trace.scale.noises), strict=False))[level]
        return noisy(self.log, noise, self.trace.seed)
