"""Snapshots of runs: a run that was interrupted goes on with the same schedule.

A snapshot holds what the policy has done so far, pass by pass, and what its stages remember. A run that goes
on from it repeats these actions without asking the policy, with all events in between: observers, gates,
failures, estimators and fair shares see the same as before. That takes seconds for a million jobs; the time
that the policy has computed is not spent again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_bytes, sha256_of_content
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import DAMAGED, arrays_in, write_arrays
from hpcsimkit.io.own_code import hash_of_kit
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.repetition import Recorder, Repeated
from hpcsimkit.kernel.setup import Setup

__all__ = ["Keeping", "Snapshot", "identity_of_run"]

FORMAT = "hpcsimkit snapshot 1"

PARTS = {
    "version": "version of hpcsimkit",
    "code": "code",
    "workload": "workload",
    "policy": "policy",
    "cluster": "cluster",
    "seed": "seed",
    "options": "options",
}
"""Parts of the identity of a run, with their names in messages."""

MEMORY = "memory."


class IdentifiedRun(Protocol):
    """The parameters of a run that identify it."""

    workload: Workload
    policy: Policy
    cluster: AnyCluster
    setup: Setup
    observers: tuple[Observer, ...]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a run between two of its passes.

    Parameters
    ----------
    at : int
        Time of the run [s].
    run : mapping of str to str
        Identity of the run: version and code of hpcsimkit and of the policy, workload, policy, cluster, seed
        and options.
    choices : tuple of (str, int)
        Decisions at open seats so far.
    repeated : Repeated
        Actions of the policy so far, and its memory.
    """

    at: int
    run: Mapping[str, str]
    choices: tuple[tuple[str, int], ...]
    repeated: Repeated

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot to a file, atomically.

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        repeated = self.repeated
        given = repeated.allocations
        about = {
            "format": FORMAT,
            "at": self.at,
            "run": dict(self.run),
            "choices": self.choices,
            "state": repeated.state,
            "memory": repeated.memory,
            "styles": [allocation.style for allocation in given],
        }
        arrays = {f"{MEMORY}{place}": each for place, each in enumerate(repeated.arrays)}
        if given:
            arrays["machines"] = np.concatenate([np.array(each.machines, dtype=np.int64) for each in given])
            arrays["amounts"] = np.concatenate([each.amounts for each in given])
        arrays["counts"] = np.array([len(each.machines) for each in given], dtype=np.int64)
        text = np.array(json.dumps(about))
        write_arrays(path, about=text, actions=repeated.actions, passes=repeated.passes, **arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Read a snapshot.

        Raises
        ------
        WorkloadError
            The file cannot be read.
        UsageError
            It is no snapshot, or damaged.
        """
        content = read_bytes(path, Format.SNAPSHOT)
        try:
            arrays = arrays_in(content, path)
            about: Any = json_value(str(arrays["about"]), path)
            if about["format"] != FORMAT:
                raise UsageError(f"{path}: {FORMAT!r} is needed, found {about['format']!r}")
            repeated = Repeated(
                _integers(arrays["actions"], 4),
                _integers(arrays["passes"], 2),
                _allocations(arrays, about["styles"]),
                str(about["state"]),
                about["memory"],
                [
                    arrays[f"{MEMORY}{place}"]
                    for place in range(sum(name.startswith(MEMORY) for name in arrays))
                ],
            )
            bounds = [0, *repeated.passes[:, 1].tolist(), len(repeated.actions)]
            if bounds != sorted(bounds):
                raise ValueError("passes without actions")
            run = {name: str(about["run"][name]) for name in PARTS}
            choices = tuple((str(stage), int(position)) for stage, position in about["choices"])
            return cls(int(about["at"]), run, choices, repeated)
        except DAMAGED as error:
            raise UsageError(f"{path}: a snapshot is needed, found something else or damaged") from error

    def check(self, simulation: IdentifiedRun, path: object = "snapshot") -> None:
        """Raise a UsageError if the snapshot is not one of a run, or if the run cannot go on from it."""
        for name, own in identity_of_run(simulation).items():
            if self.run[name] != own:
                raise UsageError(
                    f"{path}: a snapshot of this run is needed, found one of another {PARTS[name]}"
                )
        for observer in simulation.observers if self.choices else ():
            if type(observer).on_decision is not Observer.on_decision:
                raise UsageError(f"{path}: {type(observer).__name__} needs decisions, which are not repeated")


def _numbered(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the arrays of the memory by their numbers."""
    count = sum(name.startswith(MEMORY) for name in arrays)
    return [arrays[f"{MEMORY}{place}"] for place in range(count)]


def _integers(array: NDArray[Any], columns: int) -> NDArray[np.int64]:
    if array.dtype != np.int64 or array.ndim != 2 or array.shape[1] != columns:
        raise ValueError("another shape")
    return array


def _allocations(arrays: Mapping[str, NDArray[Any]], styles: list[str]) -> list[Allocation]:
    counts = arrays["counts"].tolist()
    found, first = [], 0
    for count, style in zip(counts, styles, strict=True):
        machines, amounts = (
            arrays["machines"][first : first + count],
            arrays["amounts"][first : first + count],
        )
        if len(amounts) != count or len(machines) != count:
            raise ValueError("too few machines")
        found.append(Allocation(machines.tolist(), amounts, str(style)))
        first += count
    return found


def identity_of_run(simulation: IdentifiedRun) -> dict[str, str]:
    """Return texts that are equal only for runs with the same schedule."""
    setup = simulation.setup
    return {
        "version": __version__,
        "code": " ".join([hash_of_kit(), *_hashes_of_files(simulation.policy)]),
        "workload": simulation.workload.hash,
        "policy": repr(simulation.policy),
        "cluster": _identity_of_cluster(simulation.cluster),
        "seed": str(setup.seed),
        "options": json.dumps(setup.record, sort_keys=True, default=repr),
    }


def _hashes_of_files(policy: Policy) -> list[str]:
    """Return the hashes of the files of all modules of a policy that do not belong to this package."""
    files = {
        inspect.getsourcefile(type(part))
        for part in parts(policy)
        if not type(part).__module__.startswith("hpcsimkit.") and type(part).__module__ != "__main__"
    }
    return [sha256_of_content(file)[:16] for file in sorted(filter(None, files))]


def _identity_of_cluster(cluster: AnyCluster) -> str:
    whole = cluster.whole if isinstance(cluster, Partitions) else cluster
    amounts = np.asarray(whole.capacity, dtype=np.int64).tobytes().hex()
    words = [repr(cluster), amounts, repr(getattr(cluster, "definition", ""))]
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:32]


class Keeping:
    """Function that keeps a snapshot in a file, at intervals of computing time.

    Parameters
    ----------
    path : path
        Path of the file.
    every : float
        Interval [s of wall clock], >= 0.
    made : callable
        Function that returns the snapshot of a recorder.
    """

    EARLY = 1024
    """Number of passes up to which a memory that cannot be written is noticed after 1, 2, 4, ... passes."""

    def __init__(self, path: Path, every: float, made: Callable[[Recorder], Snapshot]) -> None:
        self.path, self.every, self._made = path, every, made
        self._due = time.monotonic() + every

    def __call__(self, recorder: Recorder) -> None:
        """Write a snapshot if it is due."""
        count = recorder.passes
        if count <= self.EARLY and count & (count - 1) == 0:
            recorder.memories.written()
        if time.monotonic() >= self._due:
            self._made(recorder).write(self.path)
            self._due = time.monotonic() + self.every
