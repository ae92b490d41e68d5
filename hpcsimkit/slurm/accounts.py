"""QOS and the tree of associations, from what ``sacctmgr`` prints."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hpcsimkit.cluster.scontrol import seconds_of, whole_of
from hpcsimkit.errors import UsageError
from hpcsimkit.slurm.parameters import QOS as MEANINGS
from hpcsimkit.slurm.tres import tres_of

__all__ = [
    "PARENT",
    "ROOT",
    "Association",
    "Associations",
    "Limits",
    "Qos",
    "Values",
    "associations_of",
    "is_accounts",
    "loop_of",
    "qos_of",
]

Limits = Mapping[str, Any]
"""Limits by Slurm's names: numbers of jobs, times [s], or amounts by resource."""

ROOT = "root"

PARENT = -1
"""Shares of an association that has none of its own, but the fair share of the one above."""

SHARES_OF_PARENT = ("parent", "2147483647")
"""Texts of these shares: that of ``sacctmgr show``, and that of ``sacctmgr dump``."""

AMOUNTS = (
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxTRESPU",
    "MaxTRESPA",
    "MinTRES",
)
TIMES = ("MaxWall", "GrpWall")
COUNTS = ("GrpJobs", "MaxJobs", "MaxJobsPU", "MaxJobsPA")

OTHER_NAMES = {
    "maxtresperjob": "MaxTRES",
    "maxtresminsperjob": "MaxTRESMins",
    "maxwalldurationperjob": "MaxWall",
    "maxtresperuser": "MaxTRESPU",
    "maxtresperaccount": "MaxTRESPA",
    "maxjobsperuser": "MaxJobsPU",
    "maxjobsperaccount": "MaxJobsPA",
    "maxtrespernode": "MaxTRESPerNode",
    "mintresperjob": "MinTRES",
    "grpsubmitjobs": "GrpSubmit",
    "maxsubmitjobs": "MaxSubmit",
    "maxsubmitjobsperuser": "MaxSubmitPU",
    "maxsubmitjobsperaccount": "MaxSubmitPA",
    "share": "Fairshare",
    "def qos": "DefaultQOS",
}
"""Names of values in other commands and versions."""

NAMES = {name.lower(): name for name in MEANINGS} | OTHER_NAMES

IN_HEADINGS = {
    "cluster",
    "account",
    "user",
    "partition",
    "name",
    "parentname",
    "par name",
    "lft",
    "rgt",
    "id",
}
"""Headings that are no values."""

OF_DUMP = re.compile(r"^(Cluster|Parent|Account|User) - '?([^':]*)'?(.*)$")
VALUE = re.compile(r":([^:=]+)=('[^']*'|[^:]*)")
MODEL = re.compile(r"(gres/\w+):(?=[\w.-]+=)")
UNSET = ("", "-1", "NONE", "cluster", "00:00:00", "0.000000")


@dataclass(frozen=True)
class Qos:
    """A quality of service.

    Parameters
    ----------
    name : str
        Name.
    priority : int
        Priority. Default: 0.
    limits : mapping of str to object
        Limits. Default: none.
    preempts : tuple of str
        QOS whose jobs may be stopped for jobs of this one. Default: none.
    mode : str
        Fate of its jobs that are stopped: ``"requeue"``, ``"cancel"`` or ``"cluster"``, which is
        that of the cluster. Default: ``"cluster"``.
    over_partition : bool
        Whether its limits come before those of the partition QOS. Default: False.
    usage_factor : float
        Factor of the usage of its jobs. Default: 1.
    keeps_usage : bool
        Whether what its jobs have spent never decays. Default: False.
    grace_time : int
        Time for which its jobs that are stopped for those of other QOS run on first [s]. Default: 0.
    """

    name: str
    priority: int = 0
    limits: Limits = field(default_factory=dict)
    preempts: tuple[str, ...] = ()
    mode: str = "cluster"
    over_partition: bool = False
    usage_factor: float = 1.0
    keeps_usage: bool = False
    grace_time: int = 0


@dataclass(frozen=True)
class Association:
    """An account, or a user in an account.

    Parameters
    ----------
    account : str
        Name of the account.
    user : str
        Name of the user; empty for the account itself. Default: none.
    parent : int
        Position of the association above; -1 for the root. Default: 0, the root.
    shares : int
        Shares among its siblings, or `PARENT`. Default: 1.
    limits : mapping of str to object
        Limits. Default: none.
    partition : str
        The partition for which it is; empty for those in which the user has no other one. Default: none.
    """

    account: str
    user: str = ""
    parent: int = 0
    shares: int = 1
    limits: Limits = field(default_factory=dict)
    partition: str = ""


@dataclass(frozen=True)
class Associations:
    """The tree of associations; the first one is the root.

    Examples
    --------
    >>> root, account = Association("root", parent=-1), Association("chem")
    >>> tree = Associations((root, account, Association("chem", "ada", 1)))
    >>> tree.of("chem", "ada"), [tree.each[place].account for place in tree.path(2)]
    (2, ['chem', 'chem', 'root'])
    """

    each: Sequence[Association] = (Association(ROOT, parent=-1),)

    @cached_property
    def _places(self) -> dict[tuple[str, str, str], int]:
        return {(one.account, one.user, one.partition): place for place, one in enumerate(self.each)}

    def of(self, account: str, user: str, partition: str = "") -> int:
        """Return the place of a user in an account, for a partition if there is a place for it.

        For an unknown user, it is the place of the account, or the root.
        """
        keys = (account, user, partition), (account, user, ""), (account, "", "")
        return next((self._places[key] for key in keys if key in self._places), 0)

    def path(self, place: int) -> Iterator[int]:
        """Yield the places from an association up to the root."""
        while place >= 0:
            yield place
            place = self.each[place].parent

    def fair_parent(self, place: int) -> int:
        """Return the association with whose children one shares: the first one above with shares of its own.

        -1 for the root.
        """
        above = self.each[place].parent
        while above >= 0 and self.each[above].shares == PARENT:
            above = self.each[above].parent
        return above

    def with_users(self, keys: Sequence[tuple[str, str, str]]) -> Associations:
        """Return the tree with the accounts and users of a log that it lacks, each with one share.

        A job of an unknown user belongs to its account, and to the root if that is unknown, too. The keys are
        account, user and partition.
        """
        each, places = list(self.each), dict(self._places)
        for account, user, partition in keys:
            if account and (account, "", "") not in places:
                places[account, "", ""] = len(each)
                each.append(Association(account))
            if user and not {(account, user, ""), (account, user, partition)} & {*places}:
                places[account, user, ""] = len(each)
                each.append(Association(account, user, places.get((account, "", ""), 0)))
        return Associations(tuple(each))

    def limit(self, place: int, name: str) -> Any:
        """Return a limit of an association, or else the nearest one above it; None for none."""
        return next(
            (self.each[up].limits[name] for up in self.path(place) if name in self.each[up].limits), None
        )


class Values:
    """Values of a QOS or association, by Slurm's names, and notes on those that are not modelled."""

    def __init__(self, notes: Counter[str], what: str) -> None:
        self.notes, self.what = notes, what
        self.limits: dict[str, Any] = {}
        self.plain: dict[str, str] = {}

    def add(self, heading: str, text: str) -> None:
        """Add a value under its heading."""
        name, text = NAMES.get(heading.lower(), heading), text.strip().strip("'")
        if text in UNSET or heading.lower() in IN_HEADINGS:
            return
        if name not in MEANINGS:
            self.notes[f"{self.what} is not modelled: {name}"] += 1
        elif name in AMOUNTS:
            self.limits[name] = tres_of(name, text)
        elif name in COUNTS:
            self.limits[name] = whole_of(name, text)
        elif name in TIMES:
            self.limits[name] = seconds_of(name, text)
        else:
            self.plain[name] = text

    def shares(self) -> int:
        """Return the shares of an association."""
        text = self.plain.get("Fairshare", "1").lower()
        return PARENT if text in SHARES_OF_PARENT else whole_of("Fairshare", text) or 0

    def qos(self, name: str, present: Qos) -> Qos:
        """Return a QOS with these values, and otherwise those of a present one."""
        plain = self.plain
        flags = plain["Flags"].split(",") if "Flags" in plain else []
        for flag in flags:
            if flag.lower() not in ("overpartqos", "denyonlimit", "nodecay"):
                self.notes[f"QOS is not modelled: Flags={flag}"] += 1
        grace = seconds_of("GraceTime", plain["GraceTime"]) if "GraceTime" in plain else present.grace_time
        return Qos(
            name,
            whole_of("Priority", plain["Priority"]) or 0 if "Priority" in plain else present.priority,
            self.limits,
            tuple(filter(None, plain["Preempt"].split(","))) if "Preempt" in plain else present.preempts,
            plain.get("PreemptMode", present.mode).lower(),
            "overpartqos" in map(str.lower, flags) if flags else present.over_partition,
            _factor(plain["UsageFactor"]) if "UsageFactor" in plain else present.usage_factor,
            "nodecay" in map(str.lower, flags) if flags else present.keeps_usage,
            grace or 0,
        )


def is_accounts(text: str) -> str:
    """Return which output of ``sacctmgr`` a text is: ``"qos"``, ``"assoc"``, ``"dump"``, or none, ``""``."""
    first = text.lstrip().partition("\n")[0].lower()
    if re.search(r"^Cluster - ", text, re.MULTILINE):
        return "dump"
    cells = [cell.strip() for cell in first.split("|")]
    if cells[0] == "name" and "priority" in cells:
        return "qos"
    others = {"rawshares", "jobid"}  # of sshare, and of jobs
    return "assoc" if {"account", "user"} <= {*cells} and not others & {*cells} else ""


def _rows(text: str, path: object) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with ``|`` between its cells, by heading."""
    heading, *lines = text.strip().splitlines()
    names = heading.split("|")
    for number, line in enumerate(lines, 2):
        cells = line.split("|")
        if len(cells) != len(names):
            raise UsageError(f"{path}:{number}: {len(names)} cells are needed, found {len(cells)}")
        yield dict(zip(names, cells, strict=True))


def qos_of(text: str, path: str | os.PathLike[str], notes: Counter[str]) -> dict[str, Qos]:
    """Return the QOS in the output of ``sacctmgr show qos --parsable2``, by name.

    Raises
    ------
    UsageError
        The text is invalid.
    """
    found = {}
    for row in _rows(text, path):
        values = Values(notes, "QOS")
        for heading, cell in row.items():
            values.add(heading, cell)
        name = row.get("Name", "").strip()
        found[name] = values.qos(name, Qos(name))
    return found


def loop_of(qos: Mapping[str, Qos]) -> list[str]:
    """Return QOS of which each may stop jobs of the next one, the last one being the first; empty if none do.

    >>> names = {"high": ("low", "gone"), "low": ("least",), "least": ("high",), "normal": ("high",)}
    >>> loop_of({name: Qos(name, preempts=preempts) for name, preempts in names.items()})
    ['high', 'low', 'least', 'high']
    >>> loop_of({"high": Qos("high", preempts=("low",)), "low": Qos("low")})
    []
    """
    over: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for name in qos[path[-1]].preempts:
            if name in path:
                return [*path[path.index(name) :], name]
            if name in qos and name not in over and (found := search([*path, name])):
                return found
        over.add(path[-1])
        return []

    loops = (search([name]) for name in qos)
    return next(filter(None, loops), [])


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"UsageFactor needs a number, found {text!r}") from None


def associations_of(text: str, path: str | os.PathLike[str], notes: Counter[str]) -> Associations:
    """Return the associations in the output of ``sacctmgr show assoc --parsable2`` or ``sacctmgr dump``.

    Raises
    ------
    UsageError
        The text is invalid.
    """
    tree = _Tree(notes)
    if is_accounts(text) == "dump":
        tree.read_dump(text)
    else:
        for row in _rows(text, path):
            by_name = {name.lower(): cell.strip() for name, cell in row.items()}
            parent = by_name.get("parentname") or by_name.get("par name") or ROOT
            tree.add(by_name["account"], by_name["user"], parent, row.items(), by_name.get("partition", ""))
    return Associations(tuple(tree.each))


class _Tree:
    """The tree of associations while it is read."""

    def __init__(self, notes: Counter[str]) -> None:
        self.notes = notes
        self.each = [Association(ROOT, parent=-1)]
        self.places = {(ROOT, "", ""): 0}

    def read_dump(self, text: str) -> None:
        """Read the output of ``sacctmgr dump``."""
        parent = ROOT
        for line in text.splitlines():
            found = OF_DUMP.match(line)
            if found is None:
                continue
            kind, name, rest = found.groups()
            colons = VALUE.findall(MODEL.sub("\\1\0", rest))  # those of models separate no values
            values = [(key, value.replace("\0", ":")) for key, value in colons]
            if kind == "Parent":
                parent = name
            elif kind == "Cluster":
                self._root(values)
            else:
                account, user = (name, "") if kind == "Account" else (parent, name)
                partition = dict(values).get("Partition", "")
                self.add(
                    account, user, parent, [pair for pair in values if pair[0] != "Partition"], partition
                )

    def _root(self, values: Sequence[tuple[str, str]]) -> None:
        kept = Values(self.notes, "association")
        for key, value in values:
            kept.add(key, value)
        self.each[0] = Association(ROOT, parent=-1, limits=kept.limits)

    def add(self, account: str, user: str, parent: str, values: Any, partition: str = "") -> None:
        """Add an account, or a user in an account, perhaps for a partition."""
        partition = partition.strip("'")
        kept = Values(self.notes, "association")
        for key, value in values:
            kept.add(key, value)
        if account == ROOT and not user:
            self.each[0] = Association(ROOT, parent=-1, limits=kept.limits)
            return
        if (account, "", "") not in self.places and user:
            self.add(account, "", parent if parent != account else ROOT, [])
        above = (account, "", "") if user else (parent, "", "")
        if above not in self.places:
            self.add(above[0], "", ROOT, [])
        key = account, user, partition
        if key in self.places:
            return
        self.places[key] = len(self.each)
        above_it = self.places[above]
        self.each.append(Association(account, user, above_it, kept.shares(), kept.limits, partition))
