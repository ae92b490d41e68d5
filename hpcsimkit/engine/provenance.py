"""Provenance of results: versions, machine, command and time."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from hpcsimkit._version import __version__
from hpcsimkit.io.documents import write_record
from hpcsimkit.io.files import write_bytes


def times_of(record: Path) -> Path:
    """Return the path of the file with the time, the machine and the command of a record.

    They stand apart, so that the other files of two runs with equal settings are equal.

    >>> times_of(Path("out/provenance.json")).as_posix()
    'out/provenance.run.json'
    """
    return record.with_suffix(".run.json")


class Provenance:
    """Provenance of a run, from its start.

    Examples
    --------
    >>> record = Provenance(["compare", "a.swf"], ["numpy"]).record(seed=3)
    >>> sorted(record), record["seed"]
    (['packages', 'python', 'seed', 'version'], 3)
    """

    def __init__(self, command: Sequence[str] = (), packages: Sequence[str] = ()) -> None:
        self.command = tuple(command)
        self.packages = tuple(packages)
        self.started = datetime.now(UTC)

    def record(self, **facts: Any) -> dict[str, Any]:
        """Return the versions on which the results depend, with further facts."""
        versions = {name: _version(name) for name in self.packages}
        return {
            "version": __version__,
            "python": platform.python_version(),
            "packages": {name: version for name, version in versions.items() if version},
            **facts,
        }

    def times(self, **facts: Any) -> dict[str, Any]:
        """Return the time, the machine and the command of the run until now, with further facts."""
        return {
            "command": shlex.join(self.command),
            "started": self.started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            **facts,
        }

    def write(self, file: Path, facts: Mapping[str, Any], times: Mapping[str, Any] | None = None) -> None:
        """Write the record at the end of a run, after the file of its times.

        `facts` are further facts of the results, and `times` of the run that made them.
        """
        write_record(times_of(file), self.times(**(times or {})))
        write_record(file, self.record(**facts))


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
