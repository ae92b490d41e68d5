"""An agent: a stage made of an encoder and a network. It acts; training lives beside it."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from hpcsimkit.agents.cush.encoder import ClusterImage, JobKind
from hpcsimkit.agents.cush.network import ImageScores
from hpcsimkit.agents.cush.rows import StartOrHold
from hpcsimkit.agents.dras.encoder import JobsAndNodes
from hpcsimkit.agents.dras.network import JobValues, RowFilter
from hpcsimkit.agents.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.machine_encoders import ExpectedFree, JobMachinePairs, MachineRows
from hpcsimkit.agents.masks import AcceptReject, JobMachine, QueueSlots, Slots
from hpcsimkit.agents.model_file import read_model, write_model
from hpcsimkit.agents.networks import NETWORKS as USUAL_NETWORKS
from hpcsimkit.agents.networks import Network, network_of
from hpcsimkit.agents.prospects import PairProspects
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.whole_state import WholeState
from hpcsimkit.decision import Answering, Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encoder, Mask
from hpcsimkit.policy import Parameters
from hpcsimkit.system import System

__all__ = ["ENCODERS", "MASKS", "Agent"]

ENCODERS: Mapping[str, type[Encoder]] = {
    cls.__name__: cls
    for cls in (
        Candidates, ClusterImage, ExpectedFree, InspectorFeatures, JobKind, JobMachinePairs, JobsAndNodes,
        MachineRows, PairProspects, QueueWindow, RequestsAndMachines, StartOrHold, WaitingJobs,
        WholeState,
    )
}  # fmt: skip
"""Encoders that model files may name."""

NETWORKS: Mapping[str, type[Network]] = {
    **USUAL_NETWORKS, **{network.kind: network for network in (ImageScores, JobValues, RowFilter)}
}  # fmt: skip
"""Networks that model files may name."""

MASKS: Mapping[str, type[Mask]] = {cls.__name__: cls for cls in (AcceptReject, JobMachine, QueueSlots, Slots)}
"""Masks that model files may name."""


class Agent(Answering):
    """Sits on a seat and answers by the scores of its network.

    Parameters
    ----------
    encoder : Encoder
        What it sees.
    mask : Mask
        How actions and options belong together.
    network : Network
        Scores the actions.
    stage : str
        The seat it was made for.
    sample : bool
        Draw actions with the probabilities that the scores stand for (softmax), instead of taking the best.
    base : Stage, optional
        The heuristic behind the seat; see :class:`~hpcsimkit.decision.External`.
    about : mapping, optional
        Where it comes from: training, data, measured results.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.agents.networks import SlotScores
    >>> shortest = SlotScores({"weight.0": np.array([[9, -1, 0, 0, 0]]), "bias.0": np.array([0])})
    >>> agent = Agent(QueueWindow(4), Slots(4), shortest, "order")
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> Simulation(w, Pipeline(order=agent, window=4)).run().start_time.tolist()
    [4, 0]
    """

    def __init__(
        self, encoder: Encoder, mask: Mask, network: Network, stage: str, *, sample: bool = False,
        base: Any = None, about: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(base, decline=bool(getattr(mask, "decline", False)))
        self.encoder = encoder
        self.mask = mask
        self.network = network
        self.stage = stage
        self.sample = sample
        self.about = about

    def __deepcopy__(self, memory: dict[int, Any]) -> Agent:
        """Return a copy that shares the weights, which never change."""
        return Agent(
            self.encoder, self.mask, self.network, self.stage, sample=self.sample, base=self.base,
            about=self.about,
        )  # fmt: skip

    @property
    def slots(self) -> int | None:
        """Options it can choose among, as its mask or else its training says; None if neither does."""
        trained = (self.about or {}).get("training", {}).get("slots")
        return getattr(self.mask, "slots", trained)

    def check(self) -> None:
        """See that the network reads what the encoder writes, and scores what the mask knows.

        Raises
        ------
        UsageError
            It does not.
        """
        shape, network = self.encoder.shape, self.network
        inputs = network.at_a_time(shape)
        if network.inputs != inputs:
            raise UsageError(f"{network!r} reads {network.inputs} numbers; {self.encoder!r} gives {inputs}")
        scored = network.scored(shape)
        if scored < self.mask.actions:
            raise UsageError(f"{network!r} scores {scored} actions; {self.mask!r} has {self.mask.actions}")

    def reset(self, system: System) -> None:
        """Prepare for a run: lay out what the encoder needs, take a stream of random numbers."""
        super().reset(system)
        self.check()
        self._encode = self.encoder.bind(system)
        self._observation = np.zeros(self.encoder.shape, dtype=np.float32)
        self._valid = np.zeros(self.mask.actions, dtype=np.bool_)
        self._random = system.random() if self.sample else None

    def answer(self, decision: Decision) -> int:
        """Return the position of the option whose action scores best, or is drawn."""
        if len(decision.options) == 1:
            return 0
        self._observation[...] = 0
        self._valid[...] = False
        self._encode(decision, self._observation)
        self.mask.write(decision, self._valid)
        return self.mask.position(decision, self._choose(decision))

    def _choose(self, decision: Decision) -> int:
        actions = np.flatnonzero(self._valid)
        if not len(actions):
            raise UsageError(f"{self.mask!r} leaves no action for {decision!r}")
        wanted = self.network.scores_of(self._observation, actions).astype(np.float64)
        if self._random is not None:  # the largest of scores with Gumbel noise is a draw from their softmax
            wanted = wanted + self._random.gumbel(size=len(wanted))
        return int(actions[np.argmax(wanted)])

    # --- out and in ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent into one file; see :mod:`~hpcsimkit.agents.model_file`."""
        about = {
            "stage": self.stage,
            "sample": self.sample,
            "encoder": _described(self.encoder, ENCODERS),
            "mask": _described(self.mask, MASKS),
            "network": {"kind": self.network.kind, "activation": self.network.activation},
            "about": dict(self.about or {}),
        }
        write_model(path, self.network.tensors, about)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: Encoder | None = None, mask: Mask | None = None,
        parts: Any = None, sample: bool | None = None,
    ) -> Agent:  # fmt: skip
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : path
            The file.
        encoder, mask : Encoder, Mask, optional
            If they are of your own: equal to those the agent was saved with.
        parts : module, optional
            Has the classes of your own encoder and mask under their names; they are made with the parameters
            in the file. A model file never imports anything: without it only the kit's own parts are made.
        sample : bool, optional
            Draw actions or take the best, whatever the file says.

        Raises
        ------
        UsageError
            It is no model, is damaged, or was made for another encoder or mask.
        """
        tensors, about = read_model(path)
        try:
            network = network_of(tensors=tensors, known=NETWORKS, **about["network"])
            agent = cls(
                _restored(about["encoder"], Encoder, encoder, ENCODERS, parts),
                _restored(about["mask"], Mask, mask, MASKS, parts),
                network,
                str(about["stage"]),
                sample=about["sample"] if sample is None else sample,
                about=about["about"] or None,
            )
            agent.check()
            return agent
        except (KeyError, TypeError) as error:
            raise UsageError(f"{path}: the model lacks or misuses {error}") from None
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None


def _described(part: Parameters, known: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Return the name and the parameters of an encoder or mask, as JSON gives them back."""
    kind = type(part)
    parameters = {key: getattr(part, key) for key in inspect.signature(kind).parameters}
    module = kind.__module__.partition("@")[0]  # of a file: its name alone, wherever it lies
    try:
        plain = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{part!r} cannot be written into a model file: {error}") from None
    name = kind.__name__ if known.get(kind.__name__) is kind else f"{module}:{kind.__name__}"
    return {"name": name, "parameters": plain}


def _restored(
    described: Mapping[str, Any], base: type[Any], given: Any, known: Mapping[str, type[Any]], parts: Any
) -> Any:
    """Make an encoder or mask as described; one that was given must be just that."""
    if given is not None:
        found = _described(given, known)
        if found != dict(described):
            raise UsageError(f"made for {described['name']}({described['parameters']}), given {given!r}")
        return given
    kind = known.get(described["name"]) or _own(str(described["name"]), base, parts)
    return kind(**described["parameters"])


def _own(name: str, base: type[Any], parts: Any) -> type[Any]:
    """Return a class of the user's own from where he says that it is, and from nowhere else."""
    module, _, attribute = name.rpartition(":")
    if parts is None:
        raise UsageError(
            f"made for {name}, which is not the kit's own: hand it to Agent.load, or say where it is: "
            f"parts={module}, for evaluate --parts {module}"
        )
    found = getattr(parts, attribute, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        where = getattr(parts, "__name__", repr(parts)).partition("@")[0]
        raise UsageError(f"made for {name}; {where} has no {base.__name__} {attribute!r}")
    return found
