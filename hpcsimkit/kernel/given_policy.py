"""Policies as a caller gives them: a policy, a stage, or a name."""

from __future__ import annotations

from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import SEATS, Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulators import MAKERS

__all__ = ["GivenPolicy", "name_of", "policy_of"]

GivenPolicy = Any
"""A policy, a stage of a pipeline whose other stages have their defaults, or the name of a policy."""


def policy_of(given: GivenPolicy) -> Policy:
    """Return the policy that a caller gives.

    Parameters
    ----------
    given : Policy, Stage or str
        The policy; a stage, for a pipeline with it and no other one; or a name as in
        :func:`~hpcsimkit.experiments.parts.registry.make`.

    Raises
    ------
    UsageError
        It is none of these, or the name is unknown.

    Examples
    --------
    >>> from hpcsimkit.policies import SJF
    >>> policy_of(SJF()) == policy_of("sjf")
    True
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str):
        return MAKERS[0](given)
    seat = getattr(given, "stage", "") if isinstance(given, External) else _seat_of(given)
    if seat in SEATS:
        limit = getattr(given, "slots", None)
        return Pipeline(**{seat: given}, window=limit if seat == "order" else None)
    raise UsageError(f"a policy, a stage of a pipeline or the name of a policy is needed, found {given!r}")


def _seat_of(given: object) -> str:
    return next((seat for seat, kind in SEATS.items() if isinstance(given, kind)), "")


def name_of(given: GivenPolicy) -> str:
    """Return the name of a given policy in tables: the name itself, or the representation.

    >>> name_of("sjf+easy")
    'sjf+easy'
    """
    return given if isinstance(given, str) else repr(given)
