"""Reader of a folder with the configuration of Slurm: slurm.conf, gres.conf, and what commands print.

Files are recognised by their content, under any name: ``slurm.conf`` with the files that it includes (or
``scontrol show config``), ``gres.conf``, ``scontrol show node``, ``scontrol show partition``, ``sacctmgr
dump``, ``sacctmgr show assoc`` and ``sacctmgr show qos`` (``--parsable2``). All others are noted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpcsimkit.cluster.scontrol import FIRST, NODE, blocks_of, expanded, whole_of
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.files import is_folder, read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.slurm.accounts import Associations, Qos, associations_of, is_accounts, qos_of
from hpcsimkit.slurm.parameters import NODES, PARTITIONS, WHOLE, harmless

__all__ = ["Configuration", "read_configuration"]

SETTING = re.compile(r"\s*([A-Za-z]\w*)\s*=\s*(.*?)\s*$")
PAIR = re.compile(r"""([A-Za-z]\w*)\s*=\s*("[^"]*"|'[^']*'|\S*)""")
INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
LINES = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
"""Keys that begin a line of several."""

MOST_INCLUDED = 100
TOO_LARGE = 64 * 2**20
"""Size of a file that is no configuration [bytes]."""

Line = dict[str, str]
"""Values of a line, by their keys in lower case."""


@dataclass
class Configuration:
    """What the files of a folder say, as texts.

    Attributes
    ----------
    folder : str
        The folder.
    values : dict of str to str
        Parameters of slurm.conf by name in lower case.
    nodes, partitions : list of dict
        Nodes, each by itself, and partitions, with their values.
    qos : dict of str to Qos
        QOS by name.
    associations : Associations
        The tree of associations; with the root only if no file has them.
    notes : Counter of str
        Parameters that are not modelled, and how often each occurs.
    """

    folder: str
    values: dict[str, str] = field(default_factory=dict)
    nodes: list[Line] = field(default_factory=list)
    partitions: list[Line] = field(default_factory=list)
    qos: dict[str, Qos] = field(default_factory=dict)
    associations: Associations = field(default_factory=Associations)
    notes: Counter[str] = field(default_factory=Counter)

    def value(self, name: str, default: str = "") -> str:
        """Return a parameter."""
        return self.values.get(name.lower(), default)


def read_configuration(folder: str | os.PathLike[str]) -> Configuration:
    """Read the configuration in a folder.

    Raises
    ------
    UsageError
        It is no folder, has no nodes or no partitions, or a file in it is invalid.
    """
    if not is_folder(folder):
        raise UsageError(f"{folder}: a folder with slurm.conf is needed, found none")
    reader = _Reader(Path(folder))
    for file in sorted(Path(folder).iterdir()):
        if file.is_file():
            reader.read(file)
    return reader.finished()


def _kind(text: str) -> str:
    """Return which file a text is; empty for an unknown one."""
    if kind := is_accounts(text):
        return kind
    words = text.lstrip()
    if words.startswith("Configuration data as of"):
        return "config"
    if words.startswith(f"{NODE}=") and re.search(r"\bCPUTot=|\bCPUAlloc=", words):
        return "nodes"
    if words.startswith(f"{FIRST}=") and re.search(r"\bTotalNodes=|\bAllowGroups=", words[:5000]):
        return "partitions"
    if re.search(r"^\s*(ClusterName|SlurmctldHost|ControlMachine)\s*=", text, re.MULTILINE | re.IGNORECASE):
        return (
            "slurm.conf"
            if re.search(r"^\s*(NodeName|PartitionName|Include|Slurmctld\w+)\b", text, re.M | re.I)
            else ""
        )
    lines = list(_lines(text))
    gres = [line for line in lines if re.search(r"(^|\s)(Name|AutoDetect)\s*=", line, re.IGNORECASE)]
    return "gres.conf" if lines and len(gres) == len(lines) else ""


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a configuration without comments, those that are continued put together."""
    for line in text.replace("\\\n", " ").splitlines():
        kept = re.sub(r"(^|(?<!\\)\s)#.*", "", line).strip()
        if kept:
            yield kept


class _Reader:
    """The configuration while it is read."""

    def __init__(self, folder: Path) -> None:
        self.found = Configuration(str(folder))
        self.files: dict[str, Path] = {}
        self.defaults: dict[str, Line] = {NODE.lower(): {}, FIRST.lower(): {}}
        self.sets: dict[str, str] = {}
        self.gres: list[Line] = []
        self.shown: dict[str, list[Line]] = {"nodes": [], "partitions": []}
        self.included: list[Path] = []
        self.unread: dict[str, Path] = {}

    def read(self, file: Path) -> None:
        """Read a file, if it is known."""
        if file in self.included or file.stat().st_size > TOO_LARGE:
            return
        text = read_bytes(file, Format.SLURM).decode("utf-8-sig", "replace")
        kind = _kind(text)
        if not kind:
            self.unread[file.name] = file
            return
        if kind in self.files and kind not in ("assoc", "dump"):
            raise UsageError(f"{file}: it looks like a second {kind}, beside {self.files[kind].name}")
        self.files[kind] = file
        if kind in self.shown:
            self.shown[kind] = [
                {key.lower(): value for key, value in values.items()}
                for _, values in blocks_of(text, file, NODE if kind == "nodes" else FIRST)
            ]
        elif kind == "qos":
            self.found.qos = qos_of(text, file, self.found.notes)
        elif kind in ("assoc", "dump"):
            if kind == "dump" or "dump" not in self.files:
                self.found.associations = associations_of(
                    text, file, Counter() if kind == "assoc" else self.found.notes
                )
        elif kind == "gres.conf":
            self.gres += [_pairs(line) for line in _lines(text)]
        else:
            self._read_settings(text, file)

    def _read_settings(self, text: str, file: Path) -> None:
        for line in _lines(text):
            include = INCLUDE.fullmatch(line)
            if include is not None:
                self._include(include[1], file)
                continue
            setting = SETTING.fullmatch(line)
            if setting is None:
                continue
            key = setting[1].lower()
            if key in LINES:
                self._read_line(key, _pairs(line))
            else:
                self.found.values[key] = setting[2].strip("\"'")

    def _include(self, name: str, file: Path) -> None:
        path = Path(name) if Path(name).is_file() else file.parent / Path(name).name
        if path in self.included or len(self.included) >= MOST_INCLUDED:
            raise UsageError(f"{file}: it includes {name!r} again")
        self.included.append(path)
        try:
            text = read_bytes(path, Format.SLURM).decode("utf-8-sig", "replace")
        except WorkloadError:
            raise UsageError(
                f"{file}: the included file {name!r} is needed in the folder, found none"
            ) from None
        self.unread.pop(path.name, None)
        self._read_settings(text, path)

    def _read_line(self, key: str, values: Line) -> None:
        """Read a line of nodes, of a set of nodes or of a partition."""
        name = values[key]
        if key == "nodeset":
            self.sets[name] = values.get("nodes", "")
            if "feature" in values:
                self.found.notes["NodeSet is not modelled: Feature"] += 1
            return
        if key not in self.defaults:
            self.found.notes[f"slurm.conf is not modelled: {key}"] += 1
            return
        if name.upper() == "DEFAULT":
            self.defaults[key] |= {other: value for other, value in values.items() if other != key}
            return
        values = self.defaults[key] | values
        if key == FIRST.lower():
            self.found.partitions.append(values)
        else:
            self.found.nodes += [values | {key: each} for each in expanded(name)]

    def finished(self) -> Configuration:
        """Return the configuration."""
        found = self.found
        found.nodes = [each for each in found.nodes if each.get("state", "").upper() != "FUTURE"]
        found.nodes = [self._with_devices(_as_shown(each)) for each in found.nodes] or self.shown["nodes"]
        found.partitions = found.partitions or self.shown["partitions"]
        for what, lines in (("nodes", found.nodes), ("partitions", found.partitions)):
            if not lines:
                raise UsageError(
                    f"{found.folder}: {what} are needed, in slurm.conf or in the output of scontrol show "
                    f"{what[:-1]}, found none"
                )
        for part in found.partitions:
            part["nodes"] = self._nodes_of(part.get("nodes", ""))
        for name in self.unread:
            found.notes[f"file not read: {name}"] += 1
        self._note()
        return found

    def _nodes_of(self, text: str) -> str:
        """Return the nodes of a partition, with those of sets and of ``ALL``."""
        if text.upper() == "ALL":
            return ",".join(each["nodename"] for each in self.found.nodes)
        parts = re.findall(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*", text)
        return ",".join(self.sets.get(part, part) for part in filter(None, parts))

    def _with_devices(self, node: Line) -> Line:
        """Return a node with the models and numbers of its devices in gres.conf."""
        kinds = [part.split(":")[0] for part in node.get("gres", "").split(",") if part]
        listed = [line for line in self.gres if _is_of(line, node["nodename"])]
        added: list[str] = []
        for kind in kinds:
            typed = [line for line in listed if line.get("name") == kind and "type" in line]
            plain = [part for part in node["gres"].split(",") if part.split(":")[0] == kind]
            if typed and all(len(part.split(":")) < 3 for part in plain):
                plain = [f"{kind}:{line['type']}:{_number_of(line)}" for line in typed]
            added += [each for each in plain if each not in added]
        return node | ({"gres": ",".join(added)} if added else {})

    def _note(self) -> None:
        """Note all keys that are not modelled."""
        found = self.found
        for name in found.values:
            if not harmless(WHOLE, name):
                found.notes[f"slurm.conf is not modelled: {name}"] += 1
        for what, table, lines in (("node", NODES, found.nodes), ("partition", PARTITIONS, found.partitions)):
            if lines is self.shown[f"{what}s"]:
                continue
            for line in lines:
                for name in line:
                    if not harmless(table, name) and name not in ("cputot", "availablefeatures"):
                        found.notes[f"{what} is not modelled: {name}"] += 1


def _pairs(line: str) -> Line:
    return {key.lower(): value.strip("\"'") for key, value in PAIR.findall(line)}


def _is_of(line: Mapping[str, str], node: str) -> bool:
    """Return whether a line of gres.conf is one of a node."""
    return "nodename" not in line or node in expanded(line["nodename"])


def _number_of(line: Mapping[str, str]) -> int:
    """Return the number of devices in a line of gres.conf."""
    if "count" in line:
        return whole_of("Count", line["count"]) or 0
    return len(expanded(line["file"])) if "file" in line else 1


def _as_shown(node: Line) -> Line:
    """Return a node with the keys under which ``scontrol show node`` prints its CPUs and features."""
    given = node.get("cpus", node.get("procs"))
    if given is None:
        sockets: Sequence[str] = ("sockets",) if "sockets" in node else ("boards", "socketsperboard")
        count = 1
        for key in (*sockets, "corespersocket", "threadspercore"):
            count *= whole_of(key, node.get(key, "1")) or 1
        given = str(count)
    features = node.get("features", node.get("feature", "(null)"))
    return node | {"cputot": given, "availablefeatures": features, "realmemory": node.get("realmemory", "1")}
