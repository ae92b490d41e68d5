"""Schedulers that consist of one seat, and of the order in which jobs are offered to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpcsimkit.decision import External
from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.policies.two_level import STAGE, TwoLevel
from hpcsimkit.policy import Order, Policy

__all__ = ["ONE_SEAT"]

ONE_SEAT: Mapping[str, Callable[[External, int, Order], Policy]] = {"dispatch": Dispatch, STAGE: TwoLevel}
"""What makes each, of the seat, of how many jobs are offered at most, and of the order; by its stage."""
