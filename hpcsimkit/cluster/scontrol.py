"""Reader of what Slurm prints with ``scontrol show partition`` and ``scontrol show node``.

The text, in several lines or with ``--oneliner``, consists of blocks of ``key=value``, each of which begins
with ``PartitionName`` or ``NodeName``. See https://slurm.schedmd.com/scontrol.html.

Of partitions, ``Nodes`` (without machines: ``TotalNodes``), ``MaxTime, DefaultTime, MaxNodes, MaxCPUsPerNode,
MaxMemPerNode, PriorityTier, Default, State, AllowAccounts, DenyAccounts, AllowQos, DenyQos`` are read, of
``TRESBillingWeights`` the weights of CPUs, memory and GPUs, and ``OverSubscribe=EXCLUSIVE``. Other rules of
sharing nodes (``OverSubscribe=FORCE:4``, ``ExclusiveUser``) are noted, but not simulated. All other keys
are ignored, among them ``AllowGroups``: Unix groups are not in the accounting. A value that cannot be used is
left out and noted. Partitions with the state ``DOWN`` or ``INACTIVE``
are left out, since no job starts in them. ``MaxCPUsPerNode``, which in Slurm limits all jobs of the partition
on a node together, limits each job here. Limits of a partition's ``QoS`` are not in this output: add a line
``GrpTRES=cpu=100,gres/gpu=8``, as ``sacctmgr show qos format=GrpTRES`` prints it, to the partition, whose
``in_use`` it is.

Of nodes, ``CPUEfctv`` (else ``CPUTot``), ``RealMemory`` without ``MemSpecLimit``, the GPUs in ``Gres`` (else
in ``CfgTRES``), and ``AvailableFeatures`` are read. GPUs of a model are a resource such as ``gpus:a100``
beside ``gpus``; MIG slices, shards and shares (``mps``) are resources of their own. Nodes in all states are
kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.units import MIG, is_whole_number, resource_of, total_of

__all__ = [
    "FIRST",
    "NODE",
    "Found",
    "Node",
    "blocks_of",
    "expanded",
    "is_scontrol",
    "nodes_of_scontrol",
    "seconds_of",
    "tables_of_scontrol",
    "whole_of",
]

FIRST, NODE = "PartitionName", "NodeName"
"""First keys of the blocks of partitions and of nodes."""

MIB = 1024**2
"""Unit of memory in the output of ``scontrol`` [bytes]."""

STATES = {"UP": True, "DRAIN": True, "DOWN": False, "INACTIVE": False}
"""States of a partition, and whether jobs start in it; ``DRAIN`` only refuses new jobs."""

UNLIMITED = {"UNLIMITED", "INFINITE", "NONE", "(NULL)", "N/A", ""}

ORDER = ("max_time", "default_time", "max_nodes", "max_per_node", "in_use", "billing", "priority", "default")
"""Order of the keys of a table after those of its nodes."""

LISTS = {
    "accounts": "AllowAccounts",
    "denied_accounts": "DenyAccounts",
    "qos": "AllowQos",
    "denied_qos": "DenyQos",
}
"""Keys of the lists of names."""

TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
TRES = re.compile(r"([a-z]+(?:/[\w.:-]+)?)=(\d{1,12}(?:\.\d{1,12})?)([kmgtp]?)")
MEMORY_UNITS = {"k": 1024, "": MIB, "m": MIB, "g": 1024**3, "t": 1024**4, "p": 1024**5}
PAIR = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")
PART = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
IN_BRACKETS = re.compile(r"\([^()]*\)")
GRES = re.compile(r"(?:^|,)gres/(gpu|shard|mps):?([^=,]*)=(\d{1,9})")
DEVICES = ("gpu", "shard", "mps")
MOST_NAMES = 1_000_000


class Node(NamedTuple):
    """A node: its name, CPUs, memory [bytes], features, and devices by resource."""

    name: str
    cpus: int
    memory: int
    features: list[str]
    devices: dict[str, int]

    def amount(self, resource: str) -> int:
        """Return the amount of a resource."""
        return {"cpus": self.cpus, "memory": self.memory, **self.devices}.get(resource, 0)


def is_scontrol(text: str, first: str = FIRST) -> bool:
    """Return whether a text begins like the output of ``scontrol`` with a first key."""
    return text.lstrip().startswith(f"{first}=")


class Found(NamedTuple):
    """The partitions in the output of ``scontrol``.

    Parameters
    ----------
    tables : list of dict
        Partitions as tables of a file of partitions.
    places : list of str
        Places where they begin, for messages.
    closed : dict of str to str
        States of the partitions in which no job starts, which are left out.
    notes : dict of str to int
        Values that could not be used, with the line of each, and how often.
    """

    tables: list[dict[str, Any]]
    places: list[str]
    closed: dict[str, str]
    notes: dict[str, int]


def tables_of_scontrol(text: str, path: str | os.PathLike[str], *, machines: Collection[str] | None) -> Found:
    """Return the partitions as tables of a file of partitions.

    Values that cannot be used are left out and noted, and so are machines that do not exist.

    Parameters
    ----------
    text : str
        Output of ``scontrol show partition``.
    path : path
        Path of the file, for messages.
    machines : collection of str or None
        Names of the machines of partitions (``Nodes``); None for homogeneous nodes (``TotalNodes``).

    Raises
    ------
    UsageError
        There is no partition in which jobs start.

    Examples
    --------
    >>> text = "PartitionName=gpu Default=YES MaxTime=2-00:00:00 Nodes=gpu[01-02] PriorityTier=3 State=UP"
    >>> tables_of_scontrol(text, "partitions.txt", machines=["gpu01", "gpu02"]).tables
    [{'name': 'gpu', 'machines': ['gpu01', 'gpu02'], 'max_time': 172800, 'priority': 3, 'default': True}]
    """
    found = Found([], [], {}, {})
    for place, values in blocks_of(text, path):
        name, state = values[FIRST], values.get("State", "UP").upper()
        notes = _Notes(f"{place}partition {name!r}: ")
        if state not in STATES:
            notes.add(f"State needs one of {', '.join(STATES)}, found {state!r}")
        if not STATES.get(state, True):
            found.closed[name] = state
            continue
        table = _table(values, machines, notes)
        if not table.get("machines" if machines is not None else "nodes"):
            what = "at least one machine" if machines is not None else "a number of nodes"
            notes.add(f"{what} is needed, found none")
        else:
            found.tables.append(table)
            found.places.append(place)
        found.notes.update(notes.counts)
    if not found.tables:
        none = next(iter(found.notes), f"{path}: a partition in the state UP is needed, found none")
        raise UsageError(none)
    return found


class _Notes:
    """Notes on values that cannot be used, with where they are."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.counts: dict[str, int] = {}

    def add(self, text: str, count: int = 1) -> None:
        self.counts[f"{self.place}{text}"] = count

    def unless(self, read: Callable[[], Any]) -> Any:
        """Return what a function reads; None if it cannot be used, which is noted."""
        try:
            return read()
        except UsageError as error:
            self.add(str(error))
            return None


def nodes_of_scontrol(text: str, path: str | os.PathLike[str]) -> tuple[list[Node], dict[str, int]]:
    """Return the nodes in the output of ``scontrol show node``, and notes on those that cannot be used.

    Lists of nodes with the same amounts, as in slurm.conf, are read as well.

    Parameters
    ----------
    text : str
        Output of ``scontrol show node``.
    path : path
        Path of the file, for messages.

    Raises
    ------
    UsageError
        No node can be used; the message names the line of the first.

    Examples
    --------
    >>> text = "NodeName=gpu1 CPUTot=32 AvailableFeatures=ib,a100 Gres=gpu:a100:4(S:0-1) RealMemory=2"
    >>> nodes_of_scontrol(text, "nodes.txt")[0]
    [Node(name='gpu1', cpus=32, memory=2097152, features=['ib', 'a100'], devices={'gpus:a100': 4, 'gpus': 4})]
    """
    places: dict[str, str] = {}
    nodes: list[Node] = []
    notes: dict[str, int] = {}
    for place, values in blocks_of(text, path, NODE):
        try:
            node = _node(values)
            names = expanded(node.name)
            twice = next((name for name in names if name in places), None)
            if twice is not None:
                name, place_of_first = twice if len(names) > 1 else "it", places[twice].removesuffix(": ")
                raise UsageError(f"{name} is listed already in {place_of_first}")
        except UsageError as error:
            notes[f"{place}node {values[NODE]!r}: {error}"] = 1
            continue
        refuse_beyond("machines", len(nodes) + len(names), path)
        places |= dict.fromkeys(names, place)
        nodes += [node._replace(name=name) for name in names]
    if not nodes:
        raise UsageError(next(iter(notes), f"{path}: nodes are needed, found none"))
    return nodes, notes


def _node(values: dict[str, str]) -> Node:
    key = next((key for key in ("CPUEfctv", "CPUTot", "CPUs") if key in values), "CPUTot")
    cpus, memory = whole_of(key, values.get(key, "")), whole_of("RealMemory", values.get("RealMemory", ""))
    if cpus is None or memory is None:
        raise UsageError("CPUTot and RealMemory are needed, found no number")
    reserved = whole_of("MemSpecLimit", values.get("MemSpecLimit", "")) or 0
    features = _listed(values.get("AvailableFeatures", "")) or []
    return Node(values[NODE], cpus, max(memory - reserved, 0) * MIB, features, _devices(values))


def _devices(values: dict[str, str]) -> dict[str, int]:
    """Return the GPUs of a node, those of each model, its slices and shares.

    >>> _devices({"Gres": "gpu:a100:2(S:0),gpu:a100_1g.5gb:7(S:1),shard:a100:8(S:0-1)"})
    {'gpus:a100': 2, 'mig:a100_1g.5gb': 7, 'shards': 8, 'gpus': 2}
    >>> _devices({"Gres": "gpu:4", "CfgTRES": "cpu=8,gres/gpu=4,gres/gpu:h100=4"})
    {'gpus': 4, 'gpus:h100': 4}
    """
    found: dict[str, int] = {}
    listed = list(map(_device, IN_BRACKETS.sub("", values.get("Gres", "")).split(",")))
    for kind, model, count in listed:
        name = resource_of(kind, model if kind == "gpu" else "")
        if kind in DEVICES:
            found[name] = found.get(name, 0) + count
    configured = {
        resource_of(kind, model): int(count) for kind, model, count in GRES.findall(values.get("CfgTRES", ""))
    }
    if not any(total_of(name) or name.startswith(MIG) for name in found):
        found = configured | found | {name: count for name, count in configured.items() if total_of(name)}
    models = sum(count for name, count in found.items() if total_of(name) == "gpus")
    if models:
        found["gpus"] = max(
            models + (0 if "gpus" in configured else found.get("gpus", 0)), found.get("gpus", 0)
        )
    return found


def _device(text: str) -> tuple[str, str, int]:
    """Return kind, model and number of one element of a list ``Gres``."""
    kind, *rest = [part.strip() for part in text.split(":") if part != "no_consume"]
    count = rest.pop() if rest and is_whole_number(rest[-1], 9) else "1"
    return kind, rest[0] if rest else "", int(count)


def blocks_of(
    text: str, path: str | os.PathLike[str], first: str = FIRST
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the values of each partition or node."""
    place, values = "", dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        for key, value in PAIR.findall(line):
            if key == first and line.lstrip().startswith(f"{key}="):
                if values:
                    yield place, values
                place, values = f"{path}:{number}: ", {}
            values.setdefault(key, value)  # later ones are words of a comment
    if values:
        yield place, values


def _table(values: dict[str, str], machines: Collection[str] | None, notes: _Notes) -> dict[str, Any]:
    table: dict[str, Any] = {"name": values[FIRST]}
    if machines is not None:
        table["machines"] = _machines(values.get("Nodes", ""), machines, notes)
    else:
        table["nodes"] = notes.unless(lambda: whole_of("TotalNodes", values.get("TotalNodes", "")))
    whole = ("max_nodes", "MaxNodes"), ("priority", "PriorityTier")
    times = ("max_time", "MaxTime"), ("default_time", "DefaultTime")
    readers: dict[str, Callable[[], Any]] = {
        **{key: partial(seconds_of, name, values.get(name, "")) for key, name in times},
        **{key: partial(whole_of, name, values.get(name, "")) for key, name in whole},
        "max_per_node": lambda: _per_node(values) or None,
        "in_use": lambda: _in_use(values) or None,
        "billing": lambda: _billing(values) or None,
    }
    table |= {key: notes.unless(read) for key, read in readers.items()}
    table["default"] = values.get("Default", "NO").upper() == "YES" or None
    table["exclusive"] = _rule_of_sharing(values) == "EXCLUSIVE" or None
    table["shared"] = _sharing(values)
    table |= {key: _listed(values.get(name, "")) for key, name in LISTS.items()}
    if None not in (table["max_time"], table["default_time"]) and table["default_time"] > table["max_time"]:
        notes.add(
            f"default_time needs at most max_time, {table['max_time']} s, found {table['default_time']}"
        )
        table["default_time"] = None
    order = ("name", "machines", "nodes", *ORDER)
    ranked = sorted(table, key=lambda key: order.index(key) if key in order else len(order))
    return {key: table[key] for key in ranked if table[key] is not None}


def _rule_of_sharing(values: dict[str, str]) -> str:
    """Return the rule of sharing nodes; versions before 15.08 print it as ``Shared``."""
    return values.get("OverSubscribe", values.get("Shared", "NO")).upper()


def _sharing(values: dict[str, str]) -> str | None:
    """Return the rule of sharing nodes that cannot be simulated, as Slurm prints it; None for none."""
    rule = _rule_of_sharing(values)
    kind, _, number = rule.partition(":")
    if kind in ("FORCE", "YES") and number != "1":
        return f"OverSubscribe={rule}"
    return "ExclusiveUser=YES" if values.get("ExclusiveUser", "NO").upper() == "YES" else None


def _machines(text: str, there: Collection[str], notes: _Notes) -> list[str]:
    """Return the machines in a list of nodes that exist."""
    if text.upper() in UNLIMITED:
        return []
    names = notes.unless(lambda: expanded(text)) or []
    missing = [name for name in names if name not in there]
    if missing:
        close = f"; there are {_some(list(there))}" if len(missing) == len(names) else ""
        notes.add(f"unknown machine {missing[0]!r}{close}", len(missing))
    return [name for name in names if name in there]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])} ... {names[-1]}"


def _per_node(values: dict[str, str]) -> dict[str, int]:
    """Return the largest amounts of a job on one node; memory is in MiB."""
    most = (
        ("cpus", "MaxCPUsPerNode", 1),
        ("memory", "MaxMemPerNode", MIB),
    )
    found = {resource: (whole_of(key, values.get(key, "")), unit) for resource, key, unit in most}
    return {resource: amount * unit for resource, (amount, unit) in found.items() if amount is not None}


def _tres(key: str, values: dict[str, str]) -> dict[str, tuple[float, str]]:
    """Return the numbers and units of a list such as ``cpu=1.0,mem=0.25G``, by resource in lower case."""
    text = values.get(key, "")
    found: dict[str, tuple[float, str]] = {}
    for each in [] if text.upper() in UNLIMITED else text.lower().split(","):
        pair = TRES.fullmatch(each)
        if pair is None or pair[1] in found:
            raise UsageError(f"{key} needs a list such as cpu=1.0,mem=0.25G,gres/gpu=2, found {text!r}")
        found[pair[1]] = float(pair[2]), pair[3]
    return found


def _in_use(values: dict[str, str]) -> dict[str, int]:
    """Return the amounts that may be in use at once; memory is in MiB without a unit."""
    units = {"node": "nodes", "cpu": "cpus", "mem": "memory"}
    found = _tres("GrpTRES", values)
    if unknown := [name for name in found if name not in units and not name.startswith("gres/gpu")]:
        raise UsageError(f"GrpTRES needs limits of {', '.join(units)}, gres/gpu, found {unknown[0]!r}")
    return {
        units.get(name) or _resource(name): round(number * (MEMORY_UNITS[unit] if name == "mem" else 1))
        for name, (number, unit) in found.items()
    }


def _resource(name: str) -> str:
    """Return the resource of a name such as ``gres/gpu:a100``."""
    kind, _, model = name.removeprefix("gres/").partition(":")
    return resource_of(kind, model)


def _billing(values: dict[str, str]) -> dict[str, float]:
    """Return the weights of CPUs, GPUs and their models, and memory [1/GiB] in the billing of a job.

    Without a unit, the weight of memory is per MiB. Weights of all else, which jobs do not ask for here, are
    left out.
    """
    found = _tres("TRESBillingWeights", values)
    weights = {"cpus": found["cpu"][0]} if "cpu" in found else {}
    gpus = {_resource(name): weight for name, (weight, _) in found.items() if name.startswith("gres/gpu")}
    if len(set(gpus.values())) == 1 and "gpus" not in gpus:
        gpus = {"gpus": gpus.popitem()[1]}  # also for jobs that name no model
    weights |= gpus
    if "mem" in found:
        weight, unit = found["mem"]
        weights["memory"] = weight * MEMORY_UNITS["g"] / MEMORY_UNITS[unit]
    return weights


def _listed(text: str) -> list[str] | None:
    """Return the names in a list; None for all or for no list."""
    return None if text.upper() in {"ALL", *UNLIMITED} else text.split(",")


def whole_of(key: str, text: str) -> int | None:
    """Return a whole number; None if it is unlimited."""
    if text.upper() in UNLIMITED:
        return None
    if not is_whole_number(text, 11):
        raise UsageError(f"{key} needs a whole number or UNLIMITED, found {text!r}")
    return int(text)


def seconds_of(key: str, text: str) -> int | None:
    """Return a time such as ``2-00:00:00``, ``12:00:00``, ``30:00`` or ``30`` (minutes) in seconds."""
    if text.upper() in UNLIMITED:
        return None
    found = TIME.fullmatch(text)
    if found is None or not text.isascii() or len(text) > 20:
        raise UsageError(f"{key} needs a time such as 2-00:00:00 or UNLIMITED, found {text!r}")
    days, first, second, third = (int(part or 0) for part in found.groups())
    if found[1] is not None:
        return ((days * 24 + first) * 60 + second) * 60 + third
    if found[4] is not None:
        return (first * 60 + second) * 60 + third
    return first * 60 + second


def expanded(nodes: str) -> list[str]:
    """Return the names in a list of nodes.

    Raises
    ------
    UsageError
        The list is invalid.

    Examples
    --------
    >>> expanded("gpu[01-03,7],login,r[1-2]n[1-2]")
    ['gpu01', 'gpu02', 'gpu03', 'gpu7', 'login', 'r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    parts = [match[0] for match in PART.finditer(nodes) if match[0]]
    if ",".join(parts) != nodes:
        raise _no_list(nodes)
    return [name for part in parts for name in _names(part, nodes)]


def _names(part: str, nodes: str) -> list[str]:
    """Return the names that one element of a list stands for."""
    before, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, after = rest.partition("]")
    ends = _names(after, nodes) if after else [""]
    numbers = [number for each in inside.split(",") for number in _numbers(each, nodes)]
    if len(numbers) * len(ends) > MOST_NAMES:
        raise _no_list(nodes)
    return [f"{before}{number}{end}" for number in numbers for end in ends]


def _numbers(text: str, nodes: str) -> list[str]:
    """Return the numbers of a range such as ``01-12``, with its width."""
    first, dash, last = text.partition("-")
    last = last if dash else first
    digits = first + last
    if not (first and last and is_whole_number(digits, 19)):
        raise _no_list(nodes)
    if not 0 <= int(last) - int(first) < MOST_NAMES:
        raise _no_list(nodes)
    return [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]


def _no_list(nodes: str) -> UsageError:
    shown = nodes if len(nodes) <= 60 else f"{nodes[:60]}..."
    return UsageError(f"Nodes needs a list such as gpu[01-04],login, found {shown!r}")
