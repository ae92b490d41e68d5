"""Priority, fair share and usage as Slurm computes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import exp2, log

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions, View
from hpcsimkit.slurm.accounts import PARENT, Associations, Qos
from hpcsimkit.slurm.rules import Multifactor
from hpcsimkit.slurm.tres import MIB, NODES, Amounts

__all__ = ["Asked", "FairShare", "Usage", "billing_of", "normalised", "standing"]

Values = NDArray[np.float64]

Asked = Mapping[str, Values]
"""What each job asks for in all, by resource, with ``nodes``."""

GIB = 1024**3
LN2 = log(2)


# --- usage ---------------------------------------------------------------------------------------------


class Usage:
    """Usage of each association: billing x seconds of its jobs, which lose half in each half-life.

    Parameters
    ----------
    associations : Associations
        The tree; usage is that of each association with all below it.
    half_life : float
        Half-life [s]; 0 for none.
    now : int
        Time at which usage begins [s].

    Examples
    --------
    >>> usage = Usage(Associations(), half_life=0, now=0)
    >>> usage.begin(7, place=0, billing=4.0, now=0)
    >>> usage.end(7, now=5)
    >>> usage.at_time(20).tolist()
    [20.0]
    """

    def __init__(self, associations: Associations, half_life: float, now: int) -> None:
        self._paths = [list(associations.path(place)) for place in range(len(associations.each))]
        self._half_life, self._at = half_life, now
        self._raw: Values = np.zeros(len(self._paths))
        self._running: dict[int, tuple[int, float]] = {}
        self._rate: Values = np.zeros(len(self._paths))

    def begin(self, row: int, place: int, billing: float, now: int) -> None:
        """Enter that a job has started."""
        self.at_time(now)
        self._running[row] = place, billing
        self._rate[self._paths[place]] += billing

    def end(self, row: int, now: int) -> None:
        """Enter that a job runs no longer."""
        self.at_time(now)
        place, billing = self._running.pop(row)
        self._rate[self._paths[place]] -= billing
        if not self._running:
            self._rate[:] = 0.0

    def at_time(self, now: int) -> Values:
        """Return the usage of each association now [s]."""
        seconds: float = now - self._at
        if seconds > 0:
            if self._half_life:
                left = exp2(-seconds / self._half_life)
                self._raw = self._raw * left
                seconds = (1.0 - left) * self._half_life / LN2
            self._raw = self._raw + self._rate * seconds
            self._at = now
        return self._raw


def billing_of(amounts: Amounts, weights: Mapping[str, float], *, largest: bool = False) -> float:
    """Return the billing of a job in a partition: its weighted resources, or its CPUs without weights.

    Parameters
    ----------
    amounts : mapping of str to float
        Amounts that the job has.
    weights : mapping of str to float
        Weight of each resource, of memory per GiB.
    largest : bool
        Whether the largest counts in place of the sum (``MAX_TRES``). Default: False.

    Examples
    --------
    >>> billing_of({"cpus": 8.0, "memory": 16 * GIB}, {"cpus": 1.0, "memory": 0.25})
    12.0
    """
    found = 0.0
    for name, weight in (weights or {"cpus": 1.0}).items():
        each = weight * amounts.get(name, 0.0) / (GIB if name == "memory" else 1)
        found = max(found, each) if largest else found + each  # sum() rounds otherwise from Python 3.12 on
    return found


# --- fair share ----------------------------------------------------------------------------------------


def normalised(associations: Associations, raw: Values) -> tuple[Values, Values]:
    """Return the shares of each association among its siblings, and its part of their usage.

    A user without shares of its own has those of the account, and its part of the usage in it.

    Examples
    --------
    >>> from hpcsimkit.slurm.accounts import Association
    >>> tree = Associations((Association("root", parent=-1), Association("a"), Association("b", shares=3)))
    >>> shares, usage = normalised(tree, np.array([10.0, 4.0, 6.0]))
    >>> shares.tolist(), usage.tolist()
    ([1.0, 0.25, 0.75], [1.0, 0.4, 0.6])
    """
    shares, usage, each = np.ones(len(raw)), np.ones(len(raw)), associations.each
    children_of = _children(associations)
    for parent, children in children_of.items():
        all_shares = sum(max(each[place].shares, 0) for place in children)
        above = raw[parent]
        for place in children:
            shares[place] = each[place].shares / all_shares if all_shares else 0.0
            usage[place] = raw[place] / above if above > 0 else 0.0
    for parent, children in children_of.items():
        for place in children:
            if each[place].shares == PARENT:
                shares[place] = shares[parent]
    return shares, usage


def _children(associations: Associations) -> dict[int, list[int]]:
    """Return the places of those that share with each other, by the association above them.

    Accounts without shares of their own are none of them: those below take their place.
    """
    found: dict[int, list[int]] = {}
    for place, one in enumerate(associations.each):
        if one.parent >= 0 and (one.user or one.shares != PARENT):
            found.setdefault(associations.fair_parent(place), []).append(place)
    return found


class _Ranks:
    """Ranks from below; some that follow each other are equal."""

    def __init__(self, users: int) -> None:
        self._left, self._rank, self._shared = users, users, False

    def next(self) -> int:
        """Return the next rank."""
        if not self._shared:
            self._rank = self._left
        self._left -= 1
        self._shared = False
        return self._rank

    def share(self) -> None:
        """Let the next rank equal the last one."""
        self._shared = True

    def part(self) -> None:
        """Let the next rank be one of its own."""
        self._shared = False


class FairShare:
    """The fair-share factor of each association, in [0, 1]: fair tree, or the classic one.

    Parameters
    ----------
    associations : Associations
        The tree.
    rules : Multifactor
        The parameters.
    """

    def __init__(self, associations: Associations, rules: Multifactor) -> None:
        self._tree, self._rules = associations, rules
        self._of = _children(associations)
        self._users = sum(bool(one.user) for one in associations.each)

    def factors(self, raw: Values) -> Values:
        """Return the factor of each association for a usage of each."""
        shares, usage = normalised(self._tree, raw)
        if "NO_FAIR_TREE" in self._rules.flags:
            return self._classic(shares, usage)
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(usage > 0, shares / usage, np.where(shares > 0, np.inf, 0.0))
        return self._ranked(level)

    def _ranked(self, level: Values) -> Values:
        """Return the rank of each user from below, relative to their number, in the order of the tree.

        Users with equal values share a rank. The children of accounts with equal values are ranked as if they
        were those of one account; a user comes before such an account, and shares the rank of its first user.
        """
        factors = np.zeros(len(level))
        ranks = _Ranks(self._users)
        for place in self._in_order(self._of.get(0, ()), level, ranks):
            factors[place] = ranks.next() / self._users
        return factors

    def _in_order(self, places: Iterable[int], level: Values, ranks: _Ranks) -> Iterator[int]:
        """Yield the users below some siblings, depth first by falling values; say which share a rank."""
        each = self._tree.each
        for _, tied in groupby(
            sorted(places, key=lambda place: -level[place]), key=lambda place: level[place]
        ):
            siblings = list(tied)
            for place in siblings:
                if each[place].user:
                    yield place
                    ranks.share()
            below = [self._of.get(place, ()) for place in siblings if not each[place].user]
            yield from self._in_order(chain.from_iterable(below), level, ranks)
            ranks.part()

    def _classic(self, shares: Values, usage: Values) -> Values:
        """Return 2^(-usage / shares) of each, with the effective usage of Slurm's classic formula."""
        each = self._tree.each
        whole, used, effective = np.ones(len(each)), np.ones(len(each)), np.ones(len(each))
        for place in sorted(range(len(each)), key=lambda place: len(list(self._tree.path(place)))):
            above = self._tree.fair_parent(place)
            if above < 0:
                continue
            if each[place].shares == PARENT:
                whole[place], used[place], effective[place] = whole[above], used[above], effective[above]
                continue
            whole[place] = whole[above] * shares[place]
            used[place] = used[above] * usage[place]
            effective[place] = used[place] + (effective[above] - used[place]) * shares[place]
            if above == 0:
                effective[place] = used[place]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(whole > 0, effective / whole, np.inf) / self._rules.dampening
        return np.fromiter((exp2(-each) for each in ratio.tolist()), dtype=float, count=len(ratio))


# --- the parts of the priority that do not change ----------------------------------------------------------


def standing(
    rules: Multifactor,
    asked: Asked,
    qos: Sequence[Qos | None],
    limits: Values,
    partitions: Partitions,
    factors: Mapping[str, int],
    all_qos: Mapping[str, Qos],
) -> Values:
    """Return the part of each job's priority that depends on its size, resources, partition and QOS.

    Parameters
    ----------
    rules : Multifactor
        The parameters.
    asked : mapping of str to array
        Amounts that each job asks for.
    qos : sequence of Qos or None
        The QOS of each job, None without one.
    limits : array of float
        Time limit of each job [s].
    partitions : Partitions
        The partitions.
    factors : mapping of str to int
        Factors of the partitions.
    all_qos : mapping of str to Qos
        All QOS.

    Returns
    -------
    array of float, shape (partitions, jobs)
    """
    size = rules.size * _sizes(rules, asked, limits, partitions)
    largest = (
        1 if "NO_NORMAL_QOS" in rules.flags else max((each.priority for each in all_qos.values()), default=0)
    )
    of_qos = [0 if each is None else each.priority for each in qos]
    common = size + rules.qos * np.array(of_qos, dtype=float) / max(largest, 1)
    return np.array(
        [
            common + rules.partition * factor + _resources(rules, asked, _machines(view))
            for factor, view in zip(_factors(rules, partitions, factors), partitions.views, strict=True)
        ]
    )


def _machines(view: View) -> Machines:
    assert isinstance(view.cluster, Machines)
    return view.cluster


def _factors(rules: Multifactor, partitions: Partitions, factors: Mapping[str, int]) -> list[float]:
    given = [factors.get(name, 1) for name in partitions.names]
    largest = 1 if "NO_NORMAL_PART" in rules.flags else max(*given, 1)
    return [each / largest for each in given]


def _sizes(rules: Multifactor, asked: Asked, limits: Values, partitions: Partitions) -> Values:
    """Return the size factor: the mean of the shares of all nodes and of all CPUs."""
    machines = partitions.machines
    assert machines is not None
    cpus, nodes = machines.totals[machines.resources.index("cpus")], len(machines)
    of_nodes, of_cpus = asked[NODES], asked.get("cpus", np.zeros(len(limits)))
    if "SMALL_RELATIVE_TO_TIME" in rules.flags:
        sizes = of_cpus / np.maximum(limits / 60, 1) / cpus
        return 1 - sizes if rules.favor_small else sizes
    shares = [of_nodes / nodes, of_cpus / cpus]
    return np.array(sum(1 - each if rules.favor_small else each for each in shares)) / 2


def _resources(rules: Multifactor, asked: Asked, machines: Machines) -> Values | float:
    """Return the weighted resources, relative to those of a partition."""
    there = {NODES: len(machines), **dict(zip(machines.resources, machines.totals, strict=True))}
    found: Values | float = 0.0
    for name, weight in rules.tres.items():
        unit = MIB if name == "memory" else 1
        total = unit if "NO_NORMAL_TRES" in rules.flags else there.get(name, 0)
        if name in asked and total:
            found = found + weight * asked[name] / total
    return found
