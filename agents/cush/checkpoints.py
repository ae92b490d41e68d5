"""Checkpoints of a worker: where its training stands, and where it stood the time before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcsimkit.agents.model_file import read_model, write_model
from hpcsimkit.agents.networks import Tensors
from hpcsimkit.errors import UsageError

__all__ = ["Checkpoints"]


class Checkpoints:
    """The last two of a worker: if others are a checkpoint behind when one dies, it can go back to theirs.

    Parameters
    ----------
    folder : Path
        Where they are.
    rank : int
        Of the worker.
    identity : mapping
        Of the training: what a checkpoint must have been made by to be gone on with, as JSON has it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> with TemporaryDirectory() as folder:
    ...     checkpoints = Checkpoints(Path(folder), 0, {"seed": 1})
    ...     for epoch in (5, 10, 15):
    ...         checkpoints.write({"weight": np.ones(2, np.float32)}, {"epoch": epoch})
    ...     sorted(checkpoints.read())
    [10, 15]
    """

    def __init__(self, folder: Path, rank: int, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.rank = rank
        self.identity = identity

    @property
    def path(self) -> Path:
        """The last one's file."""
        return self.folder / f"worker-{self.rank}.safetensors"

    @property
    def before(self) -> Path:
        """The file of the one before."""
        return self.folder / f"worker-{self.rank}-before.safetensors"

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return self.path.exists() or self.before.exists()

    def write(self, tensors: Tensors, about: Mapping[str, Any]) -> None:
        """Write one; the last one stays beside it.

        Parameters
        ----------
        tensors : mapping of str to array
            Weights, and what the optimisers know.
        about : mapping
            ``epoch``, and whatever else is to be known.
        """
        if self.path.exists():
            self.path.replace(self.before)
        write_model(self.path, tensors, {"trainer": self.identity, **about})

    def read(self) -> dict[int, tuple[Tensors, dict[str, Any]]]:
        """Return tensors and what is said about them, by epoch.

        Raises
        ------
        UsageError
            One is another training's.
        """
        found: dict[int, tuple[Tensors, dict[str, Any]]] = {}
        for path in (self.path, self.before):
            if path.exists():
                tensors, about = read_model(path)
                if about.get("trainer") != self.identity:
                    raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
                found[about["epoch"]] = tensors, about
        return found
