"""Changes of a configuration of Slurm, in Slurm's own words."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.slurm.accounts import Associations, Values
from hpcsimkit.slurm.configuration import Configuration
from hpcsimkit.slurm.parameters import QOS, SCHEDULING, WHOLE, Meaning

__all__ = ["changed"]

OF_PARTITIONS = ("PriorityJobFactor", "QOS")
"""Values of partitions that belong to no partition of the cluster."""

OF_CLUSTER = {
    "MaxTime": "max_time",
    "DefaultTime": "default_time",
    "MaxNodes": "max_nodes",
    "Nodes": "machines",
    "PriorityTier": "priority",
}
"""Values of partitions of the cluster, which have other names there."""


def changed(
    conf: Configuration, changes: Mapping[str, str], new: Mapping[str, str] | None = None
) -> Configuration:
    """Return a configuration with other values.

    Parameters
    ----------
    conf : Configuration
        The configuration.
    changes : mapping of str to str
        New values by name: ``PriorityWeightAge``, ``bf_interval``, ``qos.high.MaxJobsPU``,
        ``account.chem.GrpTRES``, ``user.ada.MaxJobs``, ``partition.cpu.PriorityJobFactor``. A limit of -1 is
        none.
    new : mapping of str to str, optional
        Names of new partitions, each with that of the partition whose values it has. Default: none.

    Raises
    ------
    UsageError
        A name is unknown, or a value invalid.

    Examples
    --------
    >>> conf = changed(Configuration("conf"), {"bf_interval": "60", "PriorityWeightAge": "7"})
    >>> conf.values
    {'schedulerparameters': 'bf_interval=60', 'priorityweightage': '7'}
    """
    found = copy.copy(conf)
    found.values, found.qos = dict(conf.values), dict(conf.qos)
    found.partitions, found.notes = list(map(dict, conf.partitions)), Counter(conf.notes)
    for partition, like in (new or {}).items():
        _add_partition(found, partition, like)
    for name, value in changes.items():
        kind, _, rest = name.partition(".")
        if not rest:
            _change_value(found, name, value)
        elif kind == "qos":
            _change_qos(found, *_halves(name, rest), value)
        elif kind in ("account", "user"):
            _change_associations(found, kind, *_halves(name, rest), value)
        elif kind == "partition":
            _change_partition(found, *_halves(name, rest), value)
        else:
            raise UsageError(f"{name!r}: one of qos, account, user and partition is needed, found {kind!r}")
    return found


def _halves(name: str, rest: str) -> tuple[str, str]:
    """Return the name of a QOS, account, user or partition, and that of the value."""
    of, _, key = rest.rpartition(".")
    if not of:
        raise UsageError(f"{name!r}: a name and a value are needed, such as qos.high.MaxJobsPU")
    return of, key


def _known(key: str, names: Mapping[str, Meaning] | Collection[str]) -> str | None:
    """Return a name as Slurm spells it; None if it is not among some."""
    return next((name for name in names if name.lower() == key.lower()), None)


def _followed(meanings: Mapping[str, Meaning]) -> list[str]:
    return [name for name, meaning in meanings.items() if meaning.followed]


def _change_value(conf: Configuration, name: str, value: str) -> None:
    """Change a value of slurm.conf, or one of those in SchedulerParameters."""
    known = [*_followed(WHOLE), *_followed(SCHEDULING)]
    if _known(name, known) is None:
        raise UsageError(f"unknown parameter {name!r} of Slurm{nearest(name, known)}")
    if _known(name, SCHEDULING) is None:
        conf.values[name.lower()] = value
        return
    pairs = [part.strip() for part in conf.value("SchedulerParameters").split(",") if part.strip()]
    kept = [pair for pair in pairs if pair.partition("=")[0].lower() != name.lower()]
    conf.values["schedulerparameters"] = ",".join([*kept, f"{name.lower()}={value}"])


def _limits(key: str, value: str) -> Values:
    """Return a single value of a QOS or association."""
    known = _followed(QOS)
    if _known(key, known) is None:
        raise UsageError(f"unknown limit {key!r}{nearest(key, known)}")
    found = Values(Counter(), "")
    found.add(_known(key, known) or key, value)
    return found


def _change_qos(conf: Configuration, name: str, key: str, value: str) -> None:
    if name not in conf.qos:
        raise UsageError(f"unknown QOS {name!r}{nearest(name, conf.qos)}")
    found, present = _limits(key, value), conf.qos[name]
    kept = {limit: amount for limit, amount in present.limits.items() if limit.lower() != key.lower()}
    conf.qos[name] = replace(found.qos(name, present), limits=kept | found.limits)


def _change_associations(conf: Configuration, kind: str, name: str, key: str, value: str) -> None:
    """Change a limit or the shares of an account, or of a user in all accounts."""
    found, each = _limits(key, value), list(conf.associations.each)
    places = [
        place
        for place, one in enumerate(each)
        if (one.user == name if kind == "user" else one.account == name and not one.user)
    ]
    if not places:
        names = sorted({getattr(one, kind) for one in each} - {""})
        raise UsageError(f"unknown {kind} {name!r}{nearest(name, names)}")
    for place in places:
        one = each[place]
        kept = {limit: amount for limit, amount in one.limits.items() if limit.lower() != key.lower()}
        shares = found.shares() if key.lower() == "fairshare" else one.shares
        each[place] = replace(one, limits=kept | found.limits, shares=shares)
    conf.associations = Associations(tuple(each))


def _add_partition(conf: Configuration, name: str, like: str) -> None:
    """Add a partition with the values of another one, if there is none of its name."""
    parts = {part["partitionname"]: part for part in conf.partitions}
    if name not in parts:
        conf.partitions.append(parts[like] | {"partitionname": name, "default": "NO"})


def _change_partition(conf: Configuration, name: str, key: str, value: str) -> None:
    parts = {part["partitionname"]: part for part in conf.partitions}
    if name not in parts:
        raise UsageError(f"unknown partition {name!r}{nearest(name, parts)}")
    if (of_cluster := _known(key, OF_CLUSTER)) is not None:
        raise UsageError(f"{key} of partition {name!r} is set by {name}.{OF_CLUSTER[of_cluster]}")
    if _known(key, OF_PARTITIONS) is None:
        raise UsageError(f"unknown value {key!r} of a partition of Slurm{nearest(key, OF_PARTITIONS)}")
    parts[name][key.lower()] = value
