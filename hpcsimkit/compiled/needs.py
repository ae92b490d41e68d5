"""Levels of machines and what jobs need of them, see :class:`~hpcsimkit.cluster.request.Need`."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.state import Integers

EMPTY, NOW, LATER, INSIDE, GIVEN = cast(tuple[int, ...], tuple(map(np.int64, range(5))))
"""Numbers of the levels.

These are empty machines; what is free now; what is free at the shadow time, before the blocked job starts;
what a candidate of backfilling may use; and the allocation that is being made, otherwise 0. They have the
type of a variable: for Python's integers, numba would compile each function anew with each of them.
"""

PLUS, MINUS = cast(tuple[int, ...], tuple(map(np.int64, (1, -1))))
"""Signs of changes of levels, with the type of a variable."""

NODES, SPREAD, EXCLUSIVE, BY_TOTALS, MASK, AMOUNTS = range(6)
"""Columns of :attr:`Levels.needs`; the amounts of all resources are the last ones."""


class Levels(NamedTuple):
    """Levels of the machines, and the needs of jobs by number.

    Attributes
    ----------
    levels : array of int64, shape (5, machines, resources)
        Amounts of each resource on each machine, at the numbers named above.
    needs : array of int64, shape (needs, 5 + resources)
        Number of different machines; whether the request is pooled, whether its machines are not shared, and
        whether a pooled request may use any machines; row of `masks`; amounts, per node or in total.
    masks : array of uint8, shape (masks, machines)
        Whether a constraint allows each machine.
    supply : array of int64, shape (resources,)
        Space for sums over machines.
    """

    levels: Integers
    needs: Integers
    masks: NDArray[np.uint8]
    supply: Integers


@machine_code
def usable(levels: Levels, number: int, level: int, machine: int) -> bool:
    """Return whether a machine has enough for one node, or any of a pooled request.

    Mirrors ``Need.usable``.
    """
    there, need = levels.levels, levels.needs
    resources = there.shape[2]
    if need[number, EXCLUSIVE]:
        for resource in range(resources):
            if there[level, machine, resource] != there[EMPTY, machine, resource]:
                return False
    if need[number, SPREAD]:
        any_of_it = False
        for resource in range(resources):
            any_of_it |= need[number, AMOUNTS + resource] > 0 and there[level, machine, resource] > 0
        return any_of_it and bool(levels.masks[need[number, MASK], machine])
    for resource in range(resources):
        if there[level, machine, resource] < need[number, AMOUNTS + resource]:
            return False
    return bool(levels.masks[need[number, MASK], machine])


@pasted
def amount_taken(levels: Levels, number: int, machine: int, resource: int) -> int:
    """Return how much of a resource a node of a job takes on a machine."""
    if levels.needs[number, EXCLUSIVE]:
        return levels.levels[EMPTY, machine, resource]
    return levels.needs[number, AMOUNTS + resource]


@machine_code
def tally(levels: Levels, number: int, level: int, machine: int, sign: int) -> None:
    """Add what a machine contributes to a request to the supply, or subtract it.

    The supply is the number of usable machines, first, or what they have of each resource if it is pooled.
    """
    if usable(levels, number, level, machine):
        if not levels.needs[number, SPREAD]:
            levels.supply[0] += sign
            return
        for resource in range(levels.levels.shape[2]):
            levels.supply[resource] += sign * levels.levels[level, machine, resource]


@pasted
def enough(levels: Levels, number: int) -> bool:
    """Return whether the supply suffices; mirrors ``Need.enough`` and ``Need.within``."""
    supply, need = levels.supply, levels.needs
    if not need[number, SPREAD]:
        return bool(supply[0] >= need[number, NODES])
    for resource in range(levels.levels.shape[2]):
        if supply[resource] < need[number, AMOUNTS + resource]:
            return False
    return True


@separate
def fits(levels: Levels, number: int, level: int) -> bool:
    """Return whether a level suffices; mirrors ``Need.fits``.

    If it does not, the supply is that of all machines afterwards.
    """
    for resource in range(len(levels.supply)):
        levels.supply[resource] = 0
    for machine in range(levels.levels.shape[1]):
        tally(levels, number, level, machine, PLUS)
        if enough(levels, number):
            return True
    return False
