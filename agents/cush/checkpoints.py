"""Checkpoints of a worker: the latest one and the one before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import Tensors
from hpcsimkit.agents.training.old_names import current_names
from hpcsimkit.errors import UsageError

__all__ = ["Checkpoints"]


class Checkpoints:
    """The last two checkpoints of a worker, so that it can go back if another worker died one behind.

    Parameters
    ----------
    folder : Path
        Folder of the checkpoints.
    rank : int
        Rank of the worker.
    identity : mapping
        Parameters of the training run, in JSON types; a checkpoint must match them to be resumed from.

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
        """File of the latest checkpoint."""
        return self.folder / f"worker-{self.rank}.safetensors"

    @property
    def before(self) -> Path:
        """File of the checkpoint before the latest."""
        return self.folder / f"worker-{self.rank}-before.safetensors"

    @property
    def exist(self) -> bool:
        """Whether there is a checkpoint."""
        return self.path.exists() or self.before.exists()

    def write(self, tensors: Tensors, about: Mapping[str, Any]) -> None:
        """Write a checkpoint; keep the previous one.

        Parameters
        ----------
        tensors : mapping of str to array
            Weights, and the state of the optimisers.
        about : mapping
            Further data, including ``epoch``.
        """
        if self.path.exists():
            self.path.replace(self.before)
        write_model(self.path, tensors, {"trainer": self.identity, **about})

    def forget_before(self) -> None:
        """Remove the checkpoint before the latest; no worker can need it any more."""
        self.before.unlink(missing_ok=True)

    def read(self) -> dict[int, tuple[Tensors, dict[str, Any]]]:
        """Return the tensors and the further data of the checkpoints, by epoch.

        Raises
        ------
        UsageError
            A checkpoint belongs to another training run.
        """
        found: dict[int, tuple[Tensors, dict[str, Any]]] = {}
        for path in (self.path, self.before):
            if path.exists():
                tensors, about = read_model(path, CHECKPOINT_TEXT)
                if current_names(about.get("trainer"), self.identity) != self.identity:
                    raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
                found[about["epoch"]] = tensors, about
        return found
