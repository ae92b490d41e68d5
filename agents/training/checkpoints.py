"""Checkpoints of a training run, one file per worker, and the state of torch's objects as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.agents.training.old_names import current_names
from hpcsimkit.errors import UsageError
from hpcsimkit.io.formats import Format

CHECKPOINT = "checkpoint.safetensors"
"""File of a single worker, and of the first of several."""

Tensors = Mapping[str, NDArray[np.float32]]


class Checkpoints:
    """Latest checkpoint of a worker; of several workers also the one before.

    A worker can thus go back if another one died before it had written its latest checkpoint.

    Parameters
    ----------
    folder : Path
        Folder of the checkpoints.
    identity : mapping
        Parameters of the training run, in JSON types; a checkpoint must match them to be resumed from.
    rank, count : int
        Rank of the worker, from 0, and number of workers.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     checkpoints = Checkpoints(Path(folder), {"seed": 1}, rank=1, count=2)
    ...     for number in (5, 10, 15):
    ...         checkpoints.write({"weight": np.ones(2, np.float32)}, {"rounds": number})
    ...     sorted(checkpoints.read()), checkpoints.path.name
    ([10, 15], 'checkpoint-1.safetensors')
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], *, rank: int = 0, count: int = 1) -> None:
        self.folder = folder
        self.identity = identity
        self.rank = rank
        self.count = count

    @property
    def path(self) -> Path:
        """File of the latest checkpoint."""
        return self.folder / (f"checkpoint-{self.rank}.safetensors" if self.rank else CHECKPOINT)

    @property
    def before(self) -> Path:
        """File of the checkpoint before the latest."""
        return self.folder / f"checkpoint-{self.rank}-before.safetensors"

    @property
    def exist(self) -> bool:
        """Whether there is a checkpoint."""
        return self.path.exists() or self.before.exists()

    def write(self, tensors: Tensors, about: Mapping[str, Any]) -> None:
        """Write a checkpoint; with several workers, keep the previous one.

        The tensors are weights and the state of the optimisers; the further data include the number of
        ``rounds``.
        """
        if self.count > 1 and self.path.exists():
            self.path.replace(self.before)
        write_model(self.path, tensors, {"trainer": self.identity, **about})

    def forget_before(self) -> None:
        """Remove the checkpoint before the latest; no worker can need it any more."""
        self.before.unlink(missing_ok=True)

    def read(self) -> dict[int, tuple[Tensors, dict[str, Any]]]:
        """Return the tensors and the further data of the checkpoints, by number of rounds.

        A checkpoint of another training run is an error.
        """
        found: dict[int, tuple[Tensors, dict[str, Any]]] = {}
        for path in (self.path, self.before):
            if path.exists():
                tensors, about = read_model(path, CHECKPOINT_TEXT, Format.CHECKPOINT)
                if current_names(about.get("trainer"), self.identity) != self.identity:
                    raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
                found[about["rounds"]] = tensors, about
        return found


def arrays_of(
    networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> dict[str, NDArray[np.float32]]:
    """Return the weights, and the optimiser's state of each of them, as arrays."""
    arrays = {f"networks.{name}": _array(values) for name, values in networks.state_dict().items()}
    states = {} if optimiser is None else optimiser.state_dict()["state"]
    for number, state in states.items():
        arrays |= {f"optimiser.{number}.{name}": _array(values) for name, values in state.items()}
    return arrays


def put_arrays(
    arrays: Tensors, networks: torch.nn.Module, optimiser: torch.optim.Optimizer | None = None
) -> None:
    """Restore the arrays of :func:`arrays_of`."""
    weights = {name: torch.from_numpy(values.copy()) for name, values in below("networks", arrays).items()}
    networks.load_state_dict(weights)
    if optimiser is None:
        return
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, values in below("optimiser", arrays).items():
        number, part = name.split(".")
        states.setdefault(int(number), {})[part] = torch.from_numpy(values.copy())
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})


def _array(values: torch.Tensor) -> NDArray[np.float32]:
    return values.detach().cpu().numpy()


def below(prefix: str, arrays: Tensors) -> dict[str, NDArray[np.float32]]:
    """Return the arrays with a prefix in their names, without it."""
    begin = f"{prefix}."
    return {name.removeprefix(begin): values for name, values in arrays.items() if name.startswith(begin)}
