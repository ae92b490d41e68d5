"""Schedulers with a single seat, to which jobs are offered in a given order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.one_seat.two_level import STAGE, TwoLevel

__all__ = ["ONE_SEAT"]

ONE_SEAT: Mapping[str, Callable[[External, int, Order], Policy]] = {"dispatch": Dispatch, STAGE: TwoLevel}
"""Factories by stage name; each takes the seat, the maximum number of jobs offered and the order."""
