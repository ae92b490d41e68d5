"""Two tables of a training file: what episodes are about, and how agents are judged meanwhile."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import ConfigDict, Field, field_validator

from hpcsimkit.campaigns.checked_table import Problem, Table, nearest
from hpcsimkit.metrics import METRICS

__all__ = ["EpisodeTable", "ValidationTable"]

STANDARD_WINDOWS = 10


class EpisodeTable(Table):
    """What an episode is about: the table ``[episodes]``.

    Parameters
    ----------
    name : str, optional
        Episodes of your own, ``module:Name``; all keys that are not listed here are their parameters. Where
        they have a parameter ``episodes``, it gets the windows that would be drawn otherwise.
    jobs : int
        Jobs of an episode: a window, drawn anywhere in the jobs for training.
    warmup : int
        So many jobs before it fill the machine; the heuristic behind the seat schedules them.
    """

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    jobs: int = Field(default=256, ge=1)
    warmup: int = Field(default=0, ge=0)

    @property
    def parameters(self) -> dict[str, Any]:
        """What is given besides: parameters of the user's own episodes."""
        return dict(self.model_extra or {})

    def problem(self) -> Problem | None:
        """Return what is wrong with the keys, if anything: parameters need somebody whose they are."""
        if self.name is not None or not self.parameters:
            return None
        key = next(iter(self.parameters))
        return (key,), f": unknown key{nearest(key, list(type(self).model_fields))}"


class ValidationTable(Table):
    """How agents are judged while they learn: the table ``[validation]``.

    Parameters
    ----------
    metric : str
        A name of :data:`~hpcsimkit.metrics.METRICS` of which lower or higher is better.
    windows : int
        Windows, always the same.
    jobs, warmup : int, optional
        Of each, as in `EpisodeTable`; by default those of the episodes.
    seed : int
        Where the choice of windows comes from.
    every : int
        Rounds of training between validations.
    part : list of two int, optional
        Windows are taken from these jobs of the log, from one number to before another.
    log, sha256 : str, optional
        Windows are taken from another log, of a text that hashes to this.
    """

    metric: str = "mean_bounded_slowdown"
    windows: int = Field(default=STANDARD_WINDOWS, ge=1)
    jobs: int | None = Field(default=None, ge=1)
    warmup: int | None = Field(default=None, ge=0)
    seed: int = Field(default=0, ge=0)
    every: int = Field(default=10, ge=1)
    part: list[int] | None = Field(default=None, min_length=2, max_length=2)
    log: str | None = Field(default=None, min_length=1)
    sha256: str | None = None

    @field_validator("metric")
    @classmethod
    def _has_a_direction(cls, name: str) -> str:
        if name not in METRICS:
            near = difflib.get_close_matches(name, METRICS, n=3)
            raise ValueError(f"unknown metric {name!r}; nearest: {', '.join(near or METRICS)}")
        if METRICS[name].direction == "none":
            raise ValueError(f"of {name} neither lower nor higher values are better")
        return name

    @property
    def sign(self) -> int:
        """-1 where lower values of the metric are better, else 1: a score times it is the metric."""
        return -1 if METRICS[self.metric].direction == "lower" else 1
