"""Tables ``[episodes]`` and ``[validation]`` of a training file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator

from hpcsimkit.errors import nearest
from hpcsimkit.experiments.settings.checked_table import Problem, Table, limited
from hpcsimkit.results.metrics import METRICS

STANDARD_WINDOWS = 10


class EpisodeTable(Table):
    """Settings of the training episodes: the table ``[episodes]``.

    Parameters
    ----------
    name : str, optional
        Name ``module:Name`` of user-defined episodes; all keys not listed here are their parameters. If they
        have a parameter ``episodes``, it is set to the default windows.
    jobs : int
        Number of jobs of an episode, a window sampled from the training jobs; 1 or more. Default: 256.
    warmup : int
        Number of jobs before the window that fill the cluster, scheduled by the heuristic behind the seat; 0
        or more. Default: 0.
    """

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    jobs: int = Field(default=256, ge=1)
    warmup: int = Field(default=0, ge=0)

    @property
    def parameters(self) -> dict[str, Any]:
        """Further keys: parameters of user-defined episodes."""
        return dict(self.model_extra or {})

    def problem(self) -> Problem | None:
        """Return the first unknown key, if any: parameters need user-defined episodes."""
        if self.name is not None or not self.parameters:
            return None
        key = next(iter(self.parameters))
        return (key,), f": unknown key{nearest(key, list(type(self).model_fields))}"


class ValidationTable(Table):
    """Settings of the validation of agents during training: the table ``[validation]``.

    Parameters
    ----------
    metric : str
        Name in :data:`~hpcsimkit.results.metrics.METRICS`, ``module:Name`` or ``file.py:Name`` of a
        :class:`~hpcsimkit.results.metrics.Metric` with a better direction. Default:
        ``mean_bounded_slowdown``.
    windows : int
        Number of validation windows, fixed for the training; 1 or more. Default: 10.
    jobs : int, optional
        Number of jobs of a window, 1 or more; by default that of the episodes.
    warmup : int, optional
        Number of jobs before the window that fill the cluster, 0 or more; by default that of the episodes.
    seed : int
        Random seed of the windows, 0 or more. Default: 0.
    every : int
        Number of training rounds between validations, 1 or more. Default: 10.
    part : list of two int, optional
        Range of jobs of the log to sample windows from: the first index, and the index after the last.
    log : str, optional
        Path of another log to sample windows from.
    sha256 : str, optional
        Expected SHA-256 of that log.
    """

    metric: str = "mean_bounded_slowdown"
    windows: Annotated[int, limited("sequences")] = Field(default=STANDARD_WINDOWS, ge=1)
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
        if ":" in name:
            return name  # checked by the training, which may import it
        if name not in METRICS:
            raise ValueError(f"unknown metric {name!r}{nearest(name, METRICS)}")
        if METRICS[name].direction == "none":
            raise ValueError(f"metric {name!r} has no better direction; choose one with a direction")
        return name

    @property
    def sign(self) -> int:
        """Factor between score and metric: -1 if lower values of the metric are better, else 1."""
        return -1 if METRICS[self.metric].direction == "lower" else 1
