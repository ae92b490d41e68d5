"""Groups of the help texts: of options by name, and of commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hpcsimkit.kernel import setup

OPTIONS: Mapping[str, frozenset[str]] = {
    "Input": frozenset(
        {
            *("reader", "timezone", "features", "fields", "cluster_name", "from_date", "to_date", "jobs"),
            *("skip", "load_factor", "size", "strict", "queue", "history", "recorded", "parts"),
            *("allow_code", "remember_code", "limit"),
        }
    ),
    "Cluster": frozenset({"nodes", "machines", "partitions", "slurm", "partition_column", "placement"}),
    "Rules": frozenset(
        each.key for each in setup.OPTIONS.values() if each.key and each.decides == "schedule"
    ),
    "Output": frozenset(
        {
            *("out", "overwrite", "metrics", "warmup", "cooldown", "no_report", "no_picture", "overview"),
            *("picture", "trace", "quiet", "as_json"),
        }
    ),
    "Execution": frozenset(
        {
            *("simulator", "workers", "engine", "resume", "snapshots", "shard", "collect", "retry"),
            *("status", "yes"),
        }
    ),
}
"""Names of the parameters in each group; all others are a command's own options and come first."""

COMMANDS: Mapping[str, frozenset[str]] = {
    "Simulate": frozenset({"compare", "sweep"}),
    "Analyse": frozenset({"describe", "validate", "predict", "advise", "what-if", "explain"}),
    "Learn": frozenset({"train", "evaluate", "learn", "reproduce"}),
    "Tools": frozenset({"parts", "check", "plot", "generate"}),
}
"""Names of the commands in each group."""

Named = TypeVar("Named")


def grouped(
    items: Sequence[tuple[str, Named]], groups: Mapping[str, frozenset[str]], first: str
) -> Iterator[tuple[str, list[Named]]]:
    """Yield the groups with the items that they have, in order; items of no group come first.

    >>> list(grouped([("x", 1), ("nodes", 2)], {"Cluster": frozenset({"nodes"})}, "Options"))
    [('Options', [1]), ('Cluster', [2])]
    """
    known = frozenset().union(*groups.values())
    others = {name for name, _ in items} - known
    for title, names in {first: others, **groups}.items():
        found = [item for name, item in items if name in names]
        if found:
            yield title, found
