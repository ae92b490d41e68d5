"""Policies that draw random numbers: on a log, only their schedules differ between seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpcsimkit.engine.identity import identity_of, modules_of
from hpcsimkit.kernel.parameters import Parameters

KIT = "hpcsimkit."


def may_draw(part: Any) -> bool:
    """Return whether runs of a policy, or of another part of a run, may differ between seeds.

    Stages of the kit say so (``draws``); of code of others nothing is known, so that it may.

    >>> from hpcsimkit import make
    >>> may_draw(make("sjf+easy")), may_draw(make("random+easy")), may_draw(make("sjf+easy-noise"))
    (False, True, True)
    """
    if any(not module.startswith(KIT) for module in modules_of(identity_of(part))):
        return True
    return any(getattr(each, "draws", False) for each in _parts(part))


def _parts(value: Any) -> Iterator[Parameters]:
    """Yield a part and all parts in its attributes, also those in lists and tables."""
    values: Iterable[Any] = ()
    if isinstance(value, Parameters):
        yield value
        values = vars(value).values()
    elif isinstance(value, Mapping):
        values = value.values()
    elif isinstance(value, list | tuple):
        values = value
    for each in values:
        yield from _parts(each)
