"""Provenance of results: versions, machine, command and time."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from hpcsimkit._version import __version__
from hpcsimkit.io.files import write_bytes

__all__ = ["Provenance", "write_json"]


class Provenance:
    """Provenance of a run, from its start.

    Parameters
    ----------
    command : sequence of str
        Command line.
    packages : sequence of str
        Names of the packages with recorded versions; absent ones are left out.

    Examples
    --------
    >>> record = Provenance(["compare", "a.swf"], ["numpy"]).record(seed=3)
    >>> record["command"], sorted(record["packages"]), record["seed"]
    ('compare a.swf', ['numpy'], 3)
    """

    def __init__(self, command: Sequence[str] = (), packages: Sequence[str] = ()) -> None:
        self.command = tuple(command)
        self.packages = tuple(packages)
        self.started = datetime.now(UTC)

    def record(self, **facts: Any) -> dict[str, Any]:
        """Return the provenance at the end of a run, with further facts."""
        versions = {name: _version(name) for name in self.packages}
        return {
            "version": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "packages": {name: version for name, version in versions.items() if version},
            "command": shlex.join(self.command),
            "started": self.started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
        }


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value, indented."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the model name of the processor, if available."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
