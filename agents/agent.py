"""Agents: pipeline stages made of an encoder, a mask and a network, for inference only."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.catalogue import ENCODERS, MASKS, NETWORKS
from hpcsimkit.agents.model_agent import MODULE, ModelAgent, ScoringAgent
from hpcsimkit.agents.networks.model_file import read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import Network, Tensors
from hpcsimkit.agents.networks.onnx_graphs import ONNX
from hpcsimkit.agents.stored_parts import described, known_class, restored, tell_needs
from hpcsimkit.envs.interfaces import Encoder, Mask, actions_of, shape_of
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.views import views
from hpcsimkit.kernel.system import System

__all__ = ["Agent"]

MOST_NUMBERS = 2**26
"""Maximum number of elements of an observation in a model file."""

MOST_ACTIONS = 2**20
"""Maximum number of actions in a model file."""


class Agent(ScoringAgent):
    """A stage that takes the decisions of a seat by the scores of a network.

    Parameters
    ----------
    encoder : Encoder
        Encoder of its observations.
    mask : Mask
        Mapping between actions and options.
    network : Network
        Network that scores the actions.
    stage : str
        Seat that it is made for.
    sample : bool
        Whether to sample actions from the softmax of the scores, instead of taking the best one.
    base : Stage, optional
        Heuristic behind the seat; see :class:`~hpcsimkit.kernel.decision.External`.
    about : mapping, optional
        Origin of the agent: training, data, measured results.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.networks.numpy_networks import SlotScores
    >>> shortest = SlotScores({"weight.0": np.array([[9, -1, 0, 0, 0]]), "bias.0": np.array([0])})
    >>> agent = Agent(QueueWindow(4), Slots(4), shortest, "order")
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> Simulation(w, Pipeline(order=agent, window=4)).run().start_time.tolist()
    [4, 0]
    """

    def __init__(
        self,
        encoder: Encoder,
        mask: Mask,
        network: Network,
        stage: str,
        *,
        sample: bool = False,
        base: Any = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(base, decline=bool(getattr(mask, "decline", False)))
        self.encoder = encoder
        self.mask = mask
        self.network = network
        self.stage = stage
        self.sample = sample
        self.about = about

    def __deepcopy__(self, memory: dict[int, Any]) -> Agent:
        """Return a copy that shares the network, which is immutable."""
        return Agent(
            self.encoder,
            self.mask,
            self.network,
            self.stage,
            sample=self.sample,
            base=self.base,
            about=self.about,
        )

    def _repr_html_(self) -> str:
        """Return what the agent sees and answers, and facts of its training, for notebooks."""
        return str(views().agent_html(self, repr(self.network)))

    def check(self) -> None:
        """Check that the network fits the observations of the encoder and the actions of the mask.

        Raises
        ------
        UsageError
            The network does not fit.
        """
        shape, actions, network = shape_of(self.encoder), actions_of(self.mask), self.network
        inputs = network.at_a_time(shape)
        if network.inputs != inputs:
            raise UsageError(f"{network!r} reads {network.inputs} numbers; {self.encoder!r} gives {inputs}")
        scored = network.scored(shape)
        if scored < actions:
            raise UsageError(f"{network!r} scores {scored} actions; {self.mask!r} has {actions}")

    def reset(self, system: System) -> None:
        """Prepare for a run, after a check of the sizes."""
        self.check()
        super().reset(system)

    def _scores(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.network.scores_of(self._observation, actions).astype(np.float64)

    # --- saving and loading --------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent into one file; see :mod:`~hpcsimkit.agents.networks.model_file`.

        A warning tells which classes of a notebook or a script the file will need to be loaded.
        """
        about = {
            "stage": self.stage,
            "sample": self.sample,
            "encoder": described(self.encoder, ENCODERS),
            "mask": described(self.mask, MASKS),
            "network": {"kind": self.network.kind, "activation": self.network.activation},
            "about": dict(self.about or {}),
        }
        write_model(path, self.network.tensors, about)
        tell_needs(path, self.encoder, self.mask)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        encoder: Encoder | None = None,
        mask: Mask | None = None,
        parts: Any = None,
        sample: bool | None = None,
    ) -> Agent:
        """Read an agent that :meth:`save` wrote.

        Parameters
        ----------
        path : path
            Model file.
        encoder, mask : Encoder, Mask, optional
            Custom encoder and mask, equal to those that the agent was saved with.
        parts : module, optional
            Module with custom encoder and mask classes under their names, to be created with the parameters
            in the file. Without it, a model file can only name classes of the kit, and those that installed
            distributions announce by entry points (:mod:`hpcsimkit.agents.catalogue`); it cannot have any
            other module imported.
        sample : bool, optional
            Whether to sample actions, instead of the setting in the file.

        Raises
        ------
        UsageError
            The file is not a model, is damaged, or was made for another encoder or mask.
        """
        from hpcsimkit.agents.networks.model_metadata import Metadata

        tensors, values = read_model(path)
        about = Metadata.checked(values, path)
        try:
            if about.network.kind in (MODULE, ONNX):
                given = {"encoder": encoder, "mask": mask, "parts": parts, "sample": sample}
                of_module: Any = ModelAgent.restored(tensors, values, about, given)
                return of_module
            agent = cls(
                restored(about.encoder, Encoder, encoder, ENCODERS, parts),
                restored(about.mask, Mask, mask, MASKS, parts),
                _network(tensors, about.network.kind, about.network.activation),
                about.stage,
                sample=about.sample if sample is None else sample,
                about=values["about"] or None,
            )
            agent._check_sizes()
            agent.check()
            return agent
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise UsageError(f"{path}: the model lacks or misuses {error}") from None

    def _check_sizes(self) -> None:
        """Check that the sizes in a file need no excessive amount of memory."""
        shape = [int(length) for length in self.encoder.shape]
        if min(shape, default=0) < 1 or math.prod(shape) > MOST_NUMBERS:
            raise UsageError(
                f"observations of 1 to {MOST_NUMBERS} numbers are needed, found the shape {tuple(shape)}"
            )
        if not 1 <= self.mask.actions <= MOST_ACTIONS:
            raise UsageError(f"1 to {MOST_ACTIONS} actions are needed, found {self.mask.actions}")


def _network(tensors: Tensors, kind: str, activation: str) -> Network:
    """Create a network of a registered kind."""
    if kind not in NETWORKS:
        raise UsageError(f"a network of a known kind is needed ({', '.join(NETWORKS)}), found {kind!r}")
    return known_class(kind, Network, NETWORKS)(tensors, activation)
