"""Agents made of any model: a function, a PyTorch module, an ONNX graph, a model of Stable-Baselines3."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.catalogue import ENCODERS, MASKS
from hpcsimkit.agents.networks.model_file import GRAPH, write_model
from hpcsimkit.agents.networks.models import scorer_of
from hpcsimkit.agents.networks.onnx_graphs import ONNX, OnnxGraph
from hpcsimkit.agents.networks.scorer import Scorer
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.stored_parts import described, own_class, restored, tell_needs
from hpcsimkit.envs.interfaces import Encoder, Mask, actions_of, shape_of
from hpcsimkit.errors import UsageError
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.jobs.views import views
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.pipeline import SEATS
from hpcsimkit.kernel.system import System

__all__ = ["MODULE", "ModelAgent", "ScoringAgent"]

MODULE = "module"
"""Kind of networks that are PyTorch modules, in model files."""

NO_MODULES: Catalogue[type[Any]] = Catalogue("module", "hpcsimkit.modules", {})
"""Modules of the kit: there are none, all are of users."""

OF_TWO = ("inspector", "gate", "tester")
"""Seats whose options are yes and no."""


class ScoringAgent(Answering):
    """A stage that scores the actions of a mask on the observations of an encoder.

    Attributes
    ----------
    scores : array of float64, shape (valid actions,)
        Scores of the valid actions at the last decision with several options.
    """

    scores: NDArray[np.float64]
    encoder: Encoder
    mask: Mask
    sample: bool
    about: Mapping[str, Any] | None

    @property
    def draws(self) -> bool:  # type: ignore[override]
        """Whether runs with other seeds may differ: actions are sampled."""
        return bool(self.sample)

    @property
    def slots(self) -> int | None:
        """Number of options to choose among, by the mask or else by the training; None if neither has it."""
        return getattr(self.mask, "slots", self.trained.get("slots"))

    @property
    def trained(self) -> Mapping[str, Any]:
        """Facts of the training run: policy, slots, metric; empty if unknown."""
        return (self.about or {}).get("training", {})

    def reset(self, system: System) -> None:
        """Prepare for a run: bind the encoder, and get a random number generator if actions are sampled."""
        super().reset(system)
        self._encode = self.encoder.bind(system)
        self._observation = np.zeros(shape_of(self.encoder), dtype=np.float32)
        self._valid = np.zeros(actions_of(self.mask), dtype=np.bool_)
        self._random = system.random() if self.sample else None

    def answer(self, decision: Decision) -> int:
        """Return the position of the option with the best action, or with a sampled one."""
        if len(decision.options) == 1:
            return 0
        self._observation[...] = 0
        self._valid[...] = False
        self._encode(decision, self._observation)
        self.mask.write(decision, self._valid)
        if not self._valid.any():
            raise UsageError(f"{self.mask!r} leaves no action for {decision!r}")
        return self.mask.position(decision, self._choice())

    def _choice(self) -> int:
        """Return the best valid action for the current observation, or a sampled one."""
        actions = np.flatnonzero(self._valid)
        self.scores = wanted = self._scores(actions)
        if self._random is not None:  # argmax of scores with Gumbel noise samples from their softmax
            wanted = wanted + self._random.gumbel(size=len(wanted))
        return int(actions[np.argmax(wanted)])

    def _scores(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of some actions, in their order; the larger the better."""
        raise NotImplementedError


class ModelAgent(ScoringAgent):
    """A stage that takes the decisions of a seat by a model of any kind, which all runs share.

    Unlike an :class:`~hpcsimkit.agents.agent.Agent`, it has no layers of its own: it calls the model. It is
    used wherever a stage is: in pipelines, ``compare``, ``evaluate``, ``Simulation``.

    Parameters
    ----------
    model : callable, torch.nn.Module, OnnxGraph or BaseAlgorithm
        Function ``predict(observation)`` or ``predict(observation, mask)`` that returns an action, or a score
        for each action; PyTorch module or
        :class:`~hpcsimkit.agents.networks.onnx_graphs.OnnxGraph` that scores a batch of observations; or a
        model of Stable-Baselines3, also with custom features extractors, recurrent or quantile policies,
        ``VecNormalize`` and ``VecFrameStack``. It is called, never copied or changed.
    encoder : Encoder
        Encoder of its observations.
    mask : Mask, optional
        Mapping between actions and options; by default :class:`~hpcsimkit.agents.spaces.masks.Slots` with
        the slots of the encoder, or accept and reject at the seats of yes and no.
    stage : str
        Seat that it is made for. Default: ``"order"``.
    flat : bool
        Whether the model reads observations as rows of numbers. Default: False.
    sample : bool
        Whether actions are sampled from the softmax of the scores, instead of taking the best one. Default:
        False.
    base : Stage, optional
        Heuristic behind the seat; see :class:`~hpcsimkit.kernel.decision.External`.
    about : mapping, optional
        Origin of the agent: training, data, measured results.

    Raises
    ------
    UsageError
        The model is none of these, or parts of it cannot be repeated.

    Examples
    --------
    Rows of the observation are jobs, and its second column has their requested times:

    >>> from hpcsimkit import EASY, Pipeline, Simulation, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> shortest = ModelAgent(lambda seen: -seen[:-1, 1], QueueWindow(4))
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> Simulation(w, Pipeline(order=shortest, backfiller=EASY(), window=4)).run().start_time.tolist()
    [4, 0]
    """

    def __init__(
        self,
        model: Any,
        encoder: Encoder,
        mask: Mask | None = None,
        *,
        stage: str = "order",
        flat: bool = False,
        sample: bool = False,
        base: Any = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        found = mask if mask is not None else _usual_mask(encoder, stage)
        super().__init__(base, decline=bool(getattr(found, "decline", False)))
        self.model = model
        self.encoder = encoder
        self.mask = found
        self.stage = stage
        self.flat = flat
        self.sample = sample
        self.about = about
        self._scorer = scorer_of(model)

    def __deepcopy__(self, memory: dict[int, Any]) -> ModelAgent:
        """Return a copy for a run, which shares the model."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __repr__(self) -> str:
        flat = ", flat=True" if self.flat else ""
        return f"{type(self).__name__}({self._scorer.name}, {self.encoder!r}, {self.mask!r}{flat})"

    def __eq__(self, other: object) -> bool:
        """Return whether another agent asks the same model, by identity, in the same way."""
        return isinstance(other, ModelAgent) and self.model is other.model and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((id(self.model), repr(self)))

    def _repr_html_(self) -> str:
        """Return the model and what it sees and answers, for notebooks."""
        return str(views().agent_html(self, self._scorer.name))

    @property
    def scorer(self) -> Scorer:
        """The scores of the model."""
        return self._scorer

    def choose(
        self, observations: NDArray[Any], valid: NDArray[np.bool_], state: Any = None
    ) -> tuple[NDArray[np.int64], Any]:
        """Return the best valid action of each observation of a batch, as in a vector environment.

        Parameters
        ----------
        observations : array, shape (n, ...)
            Observations of the encoder.
        valid : array of bool, shape (n, actions)
            Valid actions, at least one for each.
        state : object, optional
            State returned by the call before, of models with memory. Default: that of a beginning.

        Returns
        -------
        tuple of (array of int64, shape (n,)), object
            Actions, and the next state.
        """
        seen = observations.reshape(len(observations), -1) if self.flat else observations
        scores, state = self._scorer.scores(seen, valid, state)
        return np.where(valid, scores, -np.inf).argmax(axis=1), state

    # --- saving and loading --------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, graph: bool = False) -> None:
        """Write a PyTorch module or an ONNX graph as an agent into one file, without pickle.

        :meth:`Agent.load <hpcsimkit.agents.agent.Agent.load>` reads it. Of a module, the file has the tensors
        and the name of the class, whose module or file is given there as ``parts``; a warning tells which
        classes of a notebook or a script it will need.

        Parameters
        ----------
        path : path
            Model file.
        graph : bool
            Whether a module is written as an ONNX graph: the file then needs neither its class nor PyTorch,
            but the extra ``[onnx]``. Default: False.

        Raises
        ------
        UsageError
            The model is none of both; it has tensors of other types, or parameters that are not its
            attributes; or it cannot be exported.
        """
        model = self.model
        module = hasattr(model, "state_dict") and not hasattr(model, "predict")
        if module and graph:
            model = OnnxGraph.of(model, self._seen_shape)
        if isinstance(model, OnnxGraph):
            needed: list[Any]
            tensors: Any = {GRAPH: np.frombuffer(model.content, dtype=np.uint8)}
            kind, facts, needed = ONNX, {"flat": self.flat}, [self.encoder, self.mask]
        elif module:
            from hpcsimkit.agents.networks.torch_models import tensors_of

            tensors = tensors_of(model)
            kind, facts = MODULE, {**described(model, NO_MODULES), "flat": self.flat}
            needed = [model, self.encoder, self.mask]
        else:
            raise UsageError(
                f"{self._scorer.name} is no PyTorch module: save the model in its own form, and write a "
                "function that loads it into a file, def agent() -> ModelAgent; its name is mine.py:agent"
            )
        about = {
            "stage": self.stage,
            "sample": self.sample,
            "encoder": described(self.encoder, ENCODERS),
            "mask": described(self.mask, MASKS),
            "network": {"kind": kind},
            "about": {**(self.about or {}), MODULE: facts},
        }
        write_model(path, tensors, about)
        tell_needs(path, *needed)

    @property
    def _seen_shape(self) -> tuple[int, ...]:
        """Shape of an observation as the model sees it."""
        shape = shape_of(self.encoder)
        return (math.prod(shape),) if self.flat else shape

    @classmethod
    def restored(
        cls, tensors: Any, values: Mapping[str, Any], about: Any, given: Mapping[str, Any]
    ) -> ModelAgent:
        """Return the agent of a model file whose network is a module or a graph; see :meth:`save`.

        `given` has the parameters of :meth:`Agent.load <hpcsimkit.agents.agent.Agent.load>`.
        """
        named, parts, sample = values["about"][MODULE], given["parts"], given["sample"]
        if about.network.kind == ONNX:
            model: Any = OnnxGraph(tensors[GRAPH].tobytes())
        else:
            model = _module(named, tensors, parts)
        origin = {key: value for key, value in values["about"].items() if key != MODULE}
        return cls(
            model,
            restored(about.encoder, Encoder, given["encoder"], ENCODERS, parts),
            restored(about.mask, Mask, given["mask"], MASKS, parts),
            stage=about.stage,
            flat=named["flat"] is True,
            sample=about.sample if sample is None else sample,
            about=origin or None,
        )

    # --- decisions -----------------------------------------------------------------------------------

    def reset(self, system: System) -> None:
        """Prepare for a run: bind the encoder, and forget what was seen in another one."""
        super().reset(system)
        self._state: Any = None

    def _scores(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        seen, valid = self._observation[None], self._valid[None]
        seen = seen.reshape(1, -1) if self.flat else seen
        with guarded(f"the model {self._scorer.name}"):
            scores, self._state = self._scorer.scores(seen, valid, self._state)
        wanted: NDArray[np.float64] = scores[0][actions].astype(np.float64)
        if not np.isfinite(wanted).any():
            raise UsageError(f"{self._scorer.name} scores no option with a finite number, found {scores[0]}")
        return np.where(np.isnan(wanted), -np.inf, wanted)


def _module(named: Mapping[str, Any], tensors: Any, parts: Any) -> Any:
    """Return a module with the tensors of a file, of the class that the reader gives."""
    import torch

    from hpcsimkit.agents.networks.torch_models import put_tensors

    module = own_class(str(named["name"]), torch.nn.Module, parts)(**named["parameters"])
    put_tensors(module, tensors)
    return module


def _usual_mask(encoder: Encoder, stage: str) -> Mask:
    """Return the mask of a seat, if the number of slots is that of the encoder."""
    if stage in OF_TWO:
        return AcceptReject()
    slots = getattr(encoder, "slots", None)
    if not isinstance(slots, int) or stage not in SEATS:
        raise UsageError(f"a mask is needed: {encoder!r} does not say how many options there are")
    return Slots(slots)
