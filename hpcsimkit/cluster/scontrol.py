"""Reader of what Slurm prints with ``scontrol show partition`` and ``scontrol show node``.

The text, in several lines or with ``--oneliner``, consists of blocks of ``key=value``, each of which begins
with ``PartitionName`` or ``NodeName``. See https://slurm.schedmd.com/scontrol.html.

Of partitions, ``Nodes`` (without machines: ``TotalNodes``), ``MaxTime, DefaultTime, MaxNodes, MaxCPUsPerNode,
MaxMemPerNode, PriorityTier, Default, State, AllowAccounts, DenyAccounts, AllowQos, DenyQos`` are read, and of
``TRESBillingWeights`` the weights of CPUs, memory and GPUs. All other keys are ignored, among them
``AllowGroups``: Unix groups are not in the accounting. Partitions with the state ``DOWN`` or ``INACTIVE``
are left out, since no job starts in them. ``MaxCPUsPerNode``, which in Slurm limits all jobs of the partition
on a node together, limits each job here. Limits of a partition's ``QoS`` are not in this output: add a line
``GrpTRES=cpu=100,gres/gpu=8``, as ``sacctmgr show qos format=GrpTRES`` prints it, to the partition, whose
``in_use`` it is.

Of nodes, ``CPUEfctv`` (else ``CPUTot``), ``RealMemory`` without ``MemSpecLimit``, the GPUs in ``Gres``, and
``AvailableFeatures`` are read. Nodes in all states are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError

__all__ = ["NODE", "Node", "expanded", "is_scontrol", "nodes_of_scontrol", "tables_of_scontrol"]

FIRST, NODE = "PartitionName", "NodeName"
"""First keys of the blocks of partitions and of nodes."""

MIB = 1024**2
"""Unit of memory in the output of ``scontrol`` [bytes]."""

STATES = {"UP": True, "DRAIN": True, "DOWN": False, "INACTIVE": False}
"""States of a partition, and whether jobs start in it; ``DRAIN`` only refuses new jobs."""

UNLIMITED = {"UNLIMITED", "INFINITE", "NONE", "(NULL)", "N/A", ""}

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
GPUS = re.compile(r"(?:^|,)gpu:(?:[^:,(]+:)?(\d+)")
MOST_NAMES = 1_000_000


class Node(NamedTuple):
    """A node: its name, CPUs, GPUs, memory [bytes] and features."""

    name: str
    cpus: int
    gpus: int
    memory: int
    features: list[str]


def is_scontrol(text: str, first: str = FIRST) -> bool:
    """Return whether a text begins like the output of ``scontrol`` with a first key."""
    return text.lstrip().startswith(f"{first}=")


def tables_of_scontrol(
    text: str, path: str | os.PathLike[str], *, machines: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the partitions as tables of a file of partitions, and where each begins, for messages.

    Parameters
    ----------
    text : str
        Output of ``scontrol show partition``.
    path : path
        Path of the file, for messages.
    machines : bool
        Whether partitions consist of machines (``Nodes``) or of counted nodes (``TotalNodes``).

    Raises
    ------
    UsageError
        A value is invalid; the message names the line.

    Examples
    --------
    >>> text = "PartitionName=gpu Default=YES MaxTime=2-00:00:00 Nodes=gpu[01-02] PriorityTier=3 State=UP"
    >>> tables_of_scontrol(text, "partitions.txt", machines=True)[0]
    [{'name': 'gpu', 'machines': ['gpu01', 'gpu02'], 'max_time': 172800, 'priority': 3, 'default': True}]
    """
    tables, places = [], []
    for place, values in _blocks(text, path):
        try:
            state = values.get("State", "UP").upper()
            if state not in STATES:
                raise UsageError(f"State needs one of {', '.join(STATES)}, found {state!r}")
            table = _table(values, machines=machines)
        except UsageError as error:
            raise UsageError(f"{place}partition {values[FIRST]!r}: {error}") from None
        if STATES[state]:
            tables.append(table)
            places.append(place)
    if not tables:
        raise UsageError(f"{path}: a partition in the state UP is needed, found none")
    return tables, places


def nodes_of_scontrol(text: str, path: str | os.PathLike[str]) -> list[Node]:
    """Return the nodes in the output of ``scontrol show node``.

    Parameters
    ----------
    text : str
        Output of ``scontrol show node``.
    path : path
        Path of the file, for messages.

    Raises
    ------
    UsageError
        A value is invalid or missing, or a node occurs twice; the message names the line.

    Examples
    --------
    >>> text = "NodeName=gpu1 CPUTot=32 AvailableFeatures=ib,a100 Gres=gpu:a100:4(S:0-1) RealMemory=2"
    >>> nodes_of_scontrol(text, "nodes.txt")
    [Node(name='gpu1', cpus=32, gpus=4, memory=2097152, features=['ib', 'a100'])]
    """
    places: dict[str, str] = {}
    nodes = []
    for place, values in _blocks(text, path, NODE):
        try:
            node = _node(values)
            if node.name in places:
                raise UsageError(f"it is listed already in {places[node.name].removesuffix(': ')}")
        except UsageError as error:
            raise UsageError(f"{place}node {values[NODE]!r}: {error}") from None
        places[node.name] = place
        nodes.append(node)
    return nodes


def _node(values: dict[str, str]) -> Node:
    key = "CPUEfctv" if "CPUEfctv" in values else "CPUTot"
    cpus, memory = _whole(key, values.get(key, "")), _whole("RealMemory", values.get("RealMemory", ""))
    if cpus is None or memory is None:
        raise UsageError("CPUTot and RealMemory are needed, found no number")
    reserved = _whole("MemSpecLimit", values.get("MemSpecLimit", "")) or 0
    features = _listed(values.get("AvailableFeatures", "")) or []
    gpus = sum(map(int, GPUS.findall(values.get("Gres", ""))))
    return Node(values[NODE], cpus, gpus, max(memory - reserved, 0) * MIB, features)


def _blocks(
    text: str, path: str | os.PathLike[str], first: str = FIRST
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the values of each partition or node."""
    place, values = "", dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not PAIR.search(line):
            raise UsageError(f"{path}:{number}: values such as MaxTime=UNLIMITED are needed, found {line!r}")
        for key, value in PAIR.findall(line):
            if key == first:
                if values:
                    yield place, values
                place, values = f"{path}:{number}: ", {}
            values[key] = value
    if values:
        yield place, values


def _table(values: dict[str, str], *, machines: bool) -> dict[str, Any]:
    nodes = values.get("Nodes", "")
    table: dict[str, Any] = {"name": values[FIRST]}
    if machines:
        table["machines"] = [] if nodes.upper() in UNLIMITED else expanded(nodes)
    else:
        table["nodes"] = _whole("TotalNodes", values.get("TotalNodes", "")) or 0
    table |= {
        "max_time": _seconds("MaxTime", values.get("MaxTime", "")),
        "default_time": _seconds("DefaultTime", values.get("DefaultTime", "")),
        "max_nodes": _whole("MaxNodes", values.get("MaxNodes", "")),
        "max_per_node": _per_node(values) or None,
        "in_use": _in_use(values) or None,
        "billing": _billing(values) or None,
        "priority": _whole("PriorityTier", values.get("PriorityTier", "")),
        "default": values.get("Default", "NO").upper() == "YES" or None,
        **{key: _listed(values.get(name, "")) for key, name in LISTS.items()},
    }
    return {key: value for key, value in table.items() if value is not None}


def _per_node(values: dict[str, str]) -> dict[str, int]:
    """Return the largest amounts of a job on one node; memory is in MiB."""
    most = (
        ("cpus", "MaxCPUsPerNode", 1),
        ("memory", "MaxMemPerNode", MIB),
    )
    found = {resource: (_whole(key, values.get(key, "")), unit) for resource, key, unit in most}
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
    units = {"node": "nodes", "cpu": "cpus", "gres/gpu": "gpus", "mem": "memory"}
    found = _tres("GrpTRES", values)
    if unknown := [name for name in found if name not in units]:
        raise UsageError(f"GrpTRES needs limits of {', '.join(units)}, found {unknown[0]!r}")
    return {
        units[name]: round(number * (MEMORY_UNITS[unit] if name == "mem" else 1))
        for name, (number, unit) in found.items()
    }


def _billing(values: dict[str, str]) -> dict[str, float]:
    """Return the weights of CPUs, GPUs and memory [1/GiB] in the billing of a job.

    Without a unit, the weight of memory is per MiB.
    """
    found = _tres("TRESBillingWeights", values)
    typed = {weight for name, (weight, _) in found.items() if name.startswith("gres/gpu:")}
    if len(typed) > 1 or (typed and "gres/gpu" in found):
        raise UsageError(
            f"TRESBillingWeights needs one weight of all GPUs, found {values['TRESBillingWeights']!r}"
        )
    weights = {name: found[key][0] for key, name in (("cpu", "cpus"), ("gres/gpu", "gpus")) if key in found}
    if typed:
        weights["gpus"] = typed.pop()
    if "mem" in found:
        weight, unit = found["mem"]
        weights["memory"] = weight * MEMORY_UNITS["g"] / MEMORY_UNITS[unit]
    return weights


def _listed(text: str) -> list[str] | None:
    """Return the names in a list; None for all or for no list."""
    return None if text.upper() in {"ALL", *UNLIMITED} else text.split(",")


def _whole(key: str, text: str) -> int | None:
    """Return a whole number; None if it is unlimited."""
    if text.upper() in UNLIMITED:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise UsageError(f"{key} needs a whole number or UNLIMITED, found {text!r}")
    return int(text)


def _seconds(key: str, text: str) -> int | None:
    """Return a time such as ``2-00:00:00``, ``12:00:00``, ``30:00`` or ``30`` (minutes) in seconds."""
    if text.upper() in UNLIMITED:
        return None
    found = TIME.fullmatch(text)
    if found is None or not text.isascii() or len(text) > 20:
        raise UsageError(f"{key} needs a time such as 2-00:00:00 or UNLIMITED, found {text!r}")
    days, first, second, third = (None if part is None else int(part) for part in found.groups())
    if days is not None:
        return ((days * 24 + (first or 0)) * 60 + (second or 0)) * 60 + (third or 0)
    if third is not None:
        return ((first or 0) * 60 + (second or 0)) * 60 + third
    return (first or 0) * 60 + (second or 0)


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
    if not (first and last and digits.isdigit() and digits.isascii() and len(digits) < 20):
        raise _no_list(nodes)
    if not 0 <= int(last) - int(first) < MOST_NAMES:
        raise _no_list(nodes)
    return [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]


def _no_list(nodes: str) -> UsageError:
    shown = nodes if len(nodes) <= 60 else f"{nodes[:60]}..."
    return UsageError(f"Nodes needs a list such as gpu[01-04],login, found {shown!r}")
