"""What the jobs of a run ask for in each partition, and the constant parts of their priorities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.slurm.limits import Ask, qos_in_order
from hpcsimkit.slurm.plan import Places, Ticket
from hpcsimkit.slurm.priority import billing_of, standing
from hpcsimkit.slurm.rules import Rules
from hpcsimkit.slurm.tres import NODES, amounts_of, requested

__all__ = ["Requests"]


class Requests:
    """The jobs of a run as Slurm sees them, in each partition that admits them.

    Parameters
    ----------
    profile : Rules
        The configuration.
    partitions : Partitions
        The partitions of the run.
    workload : Workload
        The jobs.

    Attributes
    ----------
    names : tuple of str
        Names of the partitions.
    resources : tuple of str
        Names of the resources of the machines.
    associations : Associations
        The tree, with the accounts and users of the jobs.
    users, accounts : list of str
        Names, by job.
    place : array of intp, shape (jobs,)
        Place of the association of each job.
    qos : list of Qos or None
        QOS of each job.
    qos_of_part : list of Qos or None
        QOS of each partition.
    asked : mapping of str to array
        Amounts that each job asks for in all.
    counted : mapping of str to array
        The same as limits count them, with all CPUs of whole nodes.
    admitted : array of bool, shape (partitions, jobs)
        Partitions of each job.
    standing : array of float64, shape (partitions, jobs)
        The part of the priority that is constant.
    tiers : array of int, shape (partitions,)
        Tier of each partition.
    numbers : array of int, shape (jobs,)
        Position of each job in the order of job numbers.
    """

    def __init__(self, profile: Rules, partitions: Partitions, workload: Workload) -> None:
        self._profile, self._partitions, self._workload = profile, partitions, workload
        self.names = partitions.names
        assert partitions.machines is not None
        self.resources: Sequence[str] = partitions.machines.resources
        self.users, self.accounts = _labels(workload, "user"), _labels(workload, "group")
        first = [name.partition(",")[0] for name in _labels(workload, partitions.column)]
        keys = list(zip(self.accounts, self.users, first, strict=True))
        self.associations = profile.associations.with_users(list(dict.fromkeys(keys)))
        places = {key: self.associations.of(*key) for key in dict.fromkeys(keys)}
        self.place = np.array([places[key] for key in keys], dtype=np.intp)
        self.qos = [profile.qos.get(name) for name in _labels(workload, "qos")]
        self.qos_of_part = [profile.qos.get(profile.partition_qos.get(name, "")) for name in self.names]
        self.asked = requested(workload, self.resources)
        self.admitted = partitions.admitted(workload)
        limits = workload.column("requested_time").astype(float)
        self.standing = standing(
            profile.priority, self.asked, self.qos, limits, partitions, profile.factors, profile.qos
        )
        self._add_whole_nodes()
        self.tiers = np.array([part.priority for part in partitions.parts])
        self.numbers = np.argsort(np.argsort(workload.column("id"), kind="stable"), kind="stable")

    def _add_whole_nodes(self) -> None:
        """Let size and limits of jobs with whole nodes count all CPUs of the first nodes that suffice."""
        workload, rules = self._workload, self._profile.priority
        self.counted = dict(self.asked)
        rows = np.flatnonzero(workload.column("exclusive") == 1).tolist()
        if not rows:
            return
        places, cpus = Places(self._partitions), list(self.resources).index("cpus")
        everywhere = np.ones(len(places.machines), dtype=np.bool_)
        sized = rules.size and "SMALL_RELATIVE_TO_TIME" not in rules.flags
        sign = 0 if not sized else -1 if rules.favor_small else 1
        weight = rules.size * sign / places.machines.totals[cpus] / 2
        counted = self.counted["cpus"] = self.asked["cpus"].copy()
        for row in rows:
            for part in reversed(self.parts_of(row)):  # of several partitions, limits count the first
                whole = places.first(Ticket(workload.jobs[row], part), places.capacity, everywhere)
                if whole is not None:
                    counted[row] = whole.totals[cpus]
                    self.standing[part, row] += weight * (whole.totals[cpus] - self.asked["cpus"][row])

    def parts_of(self, row: int) -> list[int]:
        """Return the numbers of the partitions of a job."""
        found: list[int] = np.flatnonzero(self.admitted[:, row]).tolist()
        return found

    def weights_of(self, part: int) -> Mapping[str, float]:
        """Return the weights of resources in the billing of a partition."""
        return self._partitions.parts[part].billing

    @property
    def largest(self) -> bool:
        """Whether the billing is the largest of the weighted resources."""
        return "MAX_TRES" in self._profile.priority.flags

    def usage_factor(self, row: int) -> float:
        """Return the factor of the usage of a job."""
        return 1.0 if (qos := self.qos[row]) is None else qos.usage_factor

    def ask(self, row: int, part: int, amounts: Mapping[str, float] | None = None) -> Ask:
        """Return what a job asks for in a partition or, with amounts, what it has there."""
        if amounts is None:
            amounts = amounts_of(self.counted, row)
        billed = {**amounts, "billing": billing_of(amounts, self.weights_of(part), largest=self.largest)}
        qos = qos_in_order(self.qos[row], self.qos_of_part[part])
        limit = self._workload.jobs[row].requested_time
        nodes = amounts.get(NODES, 1.0) or 1.0
        place = int(self.place[row])
        return Ask(
            row, self.users[row], self.accounts[row], place, qos, billed, nodes, limit, self.usage_factor(row)
        )


def _labels(workload: Workload, column: str) -> list[str]:
    """Return the name of each job's value of a column; empty for an unknown one."""
    values, value_of = np.unique(workload.column(column), return_inverse=True)
    names: list[Any] = ["" if value < 0 else workload.label(column, value) for value in values.tolist()]
    return [names[place] for place in value_of.tolist()]
