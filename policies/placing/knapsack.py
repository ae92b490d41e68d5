"""Exact solvers for the 0-1 knapsack of jobs, with one resource, several resources, or several machines.

A knapsack with one resource is solved by dynamic programming. Knapsacks with several resources, or with jobs
that each run on one machine, are integer programs for HiGHS (:func:`scipy.optimize.milp`). HiGHS computes in
floating point, so each solution is checked in integers; if it exceeds the capacity, it is excluded by a
constraint and the program is solved again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import HpcsimkitError, UsageError

__all__ = ["assign", "choose", "choose_many"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TIE = 1e-12
"""Tolerance for ties: sums of values that differ by less than this share of the largest value are equal."""


# --- one resource ----------------------------------------------------------------------------------------


def choose(values: ArrayLike, sizes: ArrayLike, capacity: int) -> list[int]:
    """Return the set of jobs with the largest total value that fits, by dynamic programming.

    With jobs sorted from oldest to youngest, ties between two sets go to the one without the youngest job
    that is in only one of them. Jobs with a value of zero or less are not selected.

    Parameters
    ----------
    values : array of float, shape (jobs,)
        Value of each job, in any unit.
    sizes : array of int, shape (jobs,)
        Resource demand of each job, >= 1.
    capacity : int
        Available amount of the resource, in the unit of the sizes.

    Returns
    -------
    list of int
        Positions of the selected jobs, ascending.

    Raises
    ------
    UsageError
        If shapes do not match, a value is not finite, or a size is less than 1.

    Notes
    -----
    Time and memory are proportional to the number of candidates times the capacity, both after reduction: of
    the jobs of one size, only as many as fit are candidates, and sizes and capacity are divided by the
    greatest common divisor of the sizes.

    Examples
    --------
    >>> choose([6, 10, 12], [1, 2, 3], capacity=5)
    [1, 2]
    >>> choose([1, 1, 1], [2, 2, 2], capacity=4)
    [0, 1]
    """
    worth, weights = _checked(values, sizes, ndim=1)
    capacity = max(int(capacity), 0)
    if (weights < 1).any():
        raise UsageError(f"a knapsack needs sizes of at least 1, found {weights.min()}")
    rows = _candidates(worth, weights, capacity)
    if weights[rows].sum() <= capacity:
        return rows.tolist()
    unit = int(np.gcd.reduce(weights[rows]))
    return rows[_fill(worth[rows], weights[rows] // unit, capacity // unit)].tolist()


def _candidates(values: Floats, sizes: Integers, capacity: int) -> NDArray[np.intp]:
    """Return the jobs that may be in the best set: for each size, the best jobs, as many as fit."""
    rows = np.flatnonzero((values > 0) & (sizes <= capacity))
    if sizes[rows].sum() <= capacity:
        return rows
    best_first = rows[np.lexsort((-values[rows], sizes[rows]))]  # stable: of equal jobs the oldest first
    ordered = sizes[best_first]
    rank = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return np.sort(best_first[(rank + 1) * ordered <= capacity])


def _fill(values: Floats, sizes: Integers, capacity: int) -> list[int]:
    """Fill the knapsack: ``best[c]`` is the largest total value of the jobs so far on c nodes."""
    tie = TIE * float(values.max())
    best = np.zeros(capacity + 1)
    taken = np.zeros((len(values), capacity + 1), dtype=bool)
    for row, (value, size) in enumerate(zip(values.tolist(), sizes.tolist(), strict=True)):
        with_it = best[:-size] + value
        np.greater(with_it, best[size:] + tie, out=taken[row, size:])
        np.copyto(best[size:], with_it, where=taken[row, size:])
    chosen = []
    for row in range(len(values) - 1, -1, -1):
        if taken[row, capacity]:
            chosen.append(row)
            capacity -= int(sizes[row])
    return chosen[::-1]


# --- several resources -----------------------------------------------------------------------------------


def choose_many(
    values: ArrayLike, requests: ArrayLike, free: ArrayLike, *, node_limit: int | None = None
) -> list[int]:
    """Return the set of jobs with the largest total value that fits, with several resources.

    The result is deterministic. The solver decides between equally good sets, but of identical jobs the
    oldest are selected. Jobs with a value of zero or less are not selected.

    Parameters
    ----------
    values : array of float, shape (jobs,)
        Value of each job, in any unit.
    requests : array of int, shape (jobs, resources)
        Demand of each job for each resource, >= 0, in any unit (memory in bytes).
    free : array of int, shape (resources,)
        Available amount of each resource, in the same units.
    node_limit : int, optional
        Maximum number of branch-and-bound nodes; the best set found within the limit is returned. By default
        there is no limit and the set is optimal, which may take very long.

    Returns
    -------
    list of int
        Positions of the selected jobs, ascending.

    Raises
    ------
    UsageError
        If shapes do not match, a value is not finite, or a request is negative.

    Examples
    --------
    >>> choose_many([3, 2, 2], [[4, 1], [2, 1], [2, 0]], free=[4, 4])
    [1, 2]
    """
    pairs = assign(values, requests, np.asarray(free)[None], node_limit=node_limit)
    return [job for job, _ in pairs]


def assign(
    values: ArrayLike,
    requests: ArrayLike,
    free_by_machine: ArrayLike,
    *,
    allowed: NDArray[np.bool_] | None = None,
    node_limit: int | None = None,
) -> list[tuple[int, int]]:
    """Return the set of jobs with the largest total value that fits, each on one machine, and the machines.

    Parameters not listed here are those of :func:`choose_many`.

    Parameters
    ----------
    free_by_machine : array of int, shape (machines, resources)
        Available amount of each resource on each machine.
    allowed : array of bool, shape (jobs, machines), optional
        Mask of the machines on which each job may run; by default all.

    Returns
    -------
    list of (int, int)
        Positions of the selected jobs, ascending, each with the position of its machine.

    Examples
    --------
    >>> assign([3, 2, 2], [[4, 1], [3, 0], [3, 0]], free_by_machine=[[4, 0], [4, 1]])
    [(0, 1), (1, 0)]
    """
    worth, wanted = _checked(values, requests, ndim=2)
    free = _whole(free_by_machine, "what is free")
    if free.ndim != 2 or free.shape[1] != wanted.shape[1]:
        raise UsageError(f"a knapsack's room has shape {free.shape}, its requests have {wanted.shape}")
    usable: Mask = np.all(wanted[:, None, :] <= free, axis=2)
    if allowed is not None:
        usable &= allowed
    rows = np.flatnonzero((worth > 0) & usable.any(axis=1))
    worth, wanted, usable = worth[rows], wanted[rows], usable[rows]
    pairs = _all(wanted, free, usable)
    if pairs is None:
        pairs = _Program(worth, wanted, free, usable).solve(node_limit)
    pairs = _oldest_of_alike(worth, wanted, usable, pairs)
    return [(int(rows[job]), machine) for job, machine in pairs]


def _all(requests: Integers, free: Integers, usable: Mask) -> list[tuple[int, int]] | None:
    """Place each job on the first machine on which it fits; return None if that fails for any job."""
    left = free.copy()
    pairs = []
    for job, request in enumerate(requests):
        fits = usable[job] & np.all(request <= left, axis=1)
        if not fits.any():
            return None
        machine = int(fits.argmax())
        left[machine] -= request
        pairs.append((job, machine))
    return pairs


def _oldest_of_alike(
    values: Floats, requests: Integers, usable: Mask, pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Replace the selected jobs by the oldest jobs identical to them."""
    kinds = list(zip(values.tolist(), map(bytes, requests), map(bytes, usable), strict=True))
    alike = defaultdict(list)
    for job, kind in enumerate(kinds):
        alike[kind].append(job)
    oldest = {kind: iter(jobs) for kind, jobs in alike.items()}
    return sorted((next(oldest[kinds[job]]), machine) for job, machine in sorted(pairs))


class _Program:
    """The integer program, with one 0-1 variable for each pair of a job and a machine on which it fits.

    Requests are scaled by the free capacity of the machine, since the solver's tolerances suit numbers around
    1; values are scaled up, since the solver stops within 1e-6 of the optimum.
    """

    def __init__(self, values: Floats, requests: Integers, free: Integers, usable: Mask) -> None:
        self.jobs, self.machines = np.nonzero(usable)
        self.requests = requests[self.jobs]
        self.free = free
        self.costs = -values[self.jobs] * (2.0**20 / values.max())

    def solve(self, node_limit: int | None) -> list[tuple[int, int]]:
        """Return the selected pairs of jobs and machines."""
        rows = [self._once(), self._room()]
        while True:
            chosen = self._ask(rows, node_limit)
            cover = self._overfull(chosen)
            if cover is None:
                return list(zip(self.jobs[chosen].tolist(), self.machines[chosen].tolist(), strict=True))
            rows.append(self._constraint(np.zeros(len(cover)), cover, np.ones(len(cover)), [len(cover) - 1]))

    def _constraint(self, rows: ArrayLike, variables: ArrayLike, factors: ArrayLike, most: ArrayLike) -> Any:
        """Return linear constraints: the sum over a row of factors times variables is at most `most`."""
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        most = np.asarray(most, dtype=np.float64)
        matrix = csr_array((factors, (rows, variables)), shape=(len(most), len(self.jobs)))
        return LinearConstraint(matrix, ub=most)

    def _once(self) -> Any:
        """Return the constraints that each job starts at most once."""
        ones = np.ones(len(self.jobs))
        return self._constraint(self.jobs, np.arange(len(self.jobs)), ones, np.ones(self.jobs[-1] + 1))

    def _room(self) -> Any:
        """Return the constraints that no resource of any machine exceeds its free capacity."""
        resources = self.free.shape[1]
        parts = self.requests / np.maximum(self.free[self.machines], 1)
        rows = self.machines[:, None] * resources + np.arange(resources)
        variables = np.repeat(np.arange(len(self.jobs)), resources)
        return self._constraint(rows.ravel(), variables, parts.ravel(), np.ones(self.free.size))

    def _ask(self, rows: list[Any], node_limit: int | None) -> NDArray[np.intp]:
        """Return the variables that are 1 in the solver's solution."""
        from scipy.optimize import Bounds, milp

        options: dict[str, Any] = {"mip_rel_gap": 0.0, "presolve": False}  # undoing presolve, HiGHS may print
        if node_limit is not None:
            options["node_limit"] = node_limit
        found = milp(
            self.costs,
            constraints=rows,
            bounds=Bounds(0, 1),
            integrality=np.ones(len(self.costs)),
            options=options,
        )
        if found.x is None and node_limit is None:
            raise HpcsimkitError(f"a knapsack of {len(self.costs)} jobs cannot be solved: {found.message}")
        return np.flatnonzero(found.x > 0.5) if found.x is not None else np.zeros(0, dtype=np.intp)

    def _overfull(self, chosen: NDArray[np.intp]) -> NDArray[np.intp] | None:
        """Return chosen variables that exceed the capacity of one machine together; None if all fit."""
        used = np.zeros_like(self.free)
        np.add.at(used, self.machines[chosen], self.requests[chosen])
        broken = np.argwhere(used > self.free)
        if not len(broken):
            return None
        machine, resource = broken[0]
        there = chosen[self.machines[chosen] == machine]
        largest_first = there[np.argsort(-self.requests[there, resource], kind="stable")]
        taken = np.cumsum(self.requests[largest_first, resource])
        return largest_first[: int(np.argmax(taken > self.free[machine, resource])) + 1]


# --- input -----------------------------------------------------------------------------------------------


def _checked(values: ArrayLike, requests: ArrayLike, ndim: int) -> tuple[Floats, Integers]:
    """Return values and requests as arrays of matching shapes."""
    worth = np.asarray(values, dtype=np.float64)
    wanted = _whole(requests, "requests")
    if worth.ndim != 1 or wanted.ndim != ndim or len(wanted) != len(worth):
        raise UsageError(f"a knapsack's values have shape {worth.shape}, its requests have {wanted.shape}")
    if not np.isfinite(worth).all():
        raise UsageError(f"a knapsack needs finite values, found {worth[~np.isfinite(worth)][0]}")
    return worth, wanted


def _whole(numbers: ArrayLike, name: str) -> Integers:
    """Return non-negative integers as an int64 array."""
    array = np.asarray(numbers)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"a knapsack needs whole numbers for {name}, found {array.dtype}")
    if array.size and array.min() < 0:
        raise UsageError(f"a knapsack needs {name} of at least 0, found {array.min()}")
    return array.astype(np.int64)
