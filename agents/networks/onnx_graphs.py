"""ONNX graphs as models: networks of any library as data, which no class and no PyTorch is needed to run.

A graph is a list of operators with their numbers. What could reach beyond it is refused before it runs:
tensors in other files, operators of other libraries, loops and branches, random numbers, and sizes that are
unknown or excessive.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.networks.scorer import Scorer
from hpcsimkit.errors import UsageError, require_packages

__all__ = ["ONNX", "OnnxGraph"]

Array = NDArray[Any]

ONNX = "onnx"
"""Kind of networks that are ONNX graphs, in model files, and the extra of their packages."""

STANDARD = ("", "ai.onnx")
"""Names of the standard set of operators."""

RANDOM = ("Random", "Bernoulli", "Multinomial")
"""Beginnings of the names of operators whose results vary."""

MOST_NUMBERS = 2**26
"""Maximum number of elements of a tensor for one observation."""


class OnnxGraph:
    """An ONNX graph that scores a batch of observations: a model for `ModelAgent`.

    Needs the extra ``[onnx]``. The graph has one input of float32, of shape (batch, ...) with any batch or
    1; its first output has a score for each action. It is checked before it runs: it may have no tensors in
    other files, no operators but the standard ones, no loops, branches or random numbers, and only tensors
    of known sizes up to 2**26 numbers for each observation.

    Parameters
    ----------
    content : bytes
        Content of an ``.onnx`` file.
    name : str
        Name in messages. Default: ``"ONNX graph"``.

    Raises
    ------
    UsageError
        It is no such graph, or a package of the extra is missing.

    Examples
    --------
    >>> from hpcsimkit.rl import ModelAgent, QueueWindow
    >>> from pathlib import Path
    >>> ModelAgent(OnnxGraph(Path("model.onnx").read_bytes()), QueueWindow(8))  # doctest: +SKIP
    ModelAgent(ONNX graph, QueueWindow(slots=8), Slots(slots=8))
    """

    def __init__(self, content: bytes, name: str = "ONNX graph") -> None:
        require_packages("an ONNX graph", ONNX, "onnx", "onnxruntime")
        self.content = bytes(content)
        self.name = name
        with _reading(name):
            _check(self.content, name)

    @classmethod
    def of(cls, module: Any, shape: tuple[int, ...]) -> OnnxGraph:
        """Return the graph of a PyTorch module.

        Parameters
        ----------
        module : torch.nn.Module
            Module that scores a batch of observations. It is left as it was.
        shape : tuple of int
            Shape of an observation, without the batch.
        """
        require_packages("the export to ONNX", ONNX, "torch", "onnx", "onnxscript")
        import torch

        name, training = type(module).__name__, module.training
        first = next(iter(module.parameters()), torch.zeros(0))
        example = torch.zeros((2, *shape), device=first.device)
        batch = ({0: torch.export.Dim("batch")},)
        module.train(mode=False)
        try:
            with _reading(name), _silence("torch.onnx"):
                made: Any = torch.onnx.export(
                    module, (example,), dynamo=True, dynamic_shapes=batch, verbose=False
                )
                content = _bare(made.model_proto).SerializeToString()
        finally:
            module.train(mode=training)
        return cls(content, name)

    def __repr__(self) -> str:
        return f"OnnxGraph({self.name!r}, {len(self.content)} bytes)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the content: a session cannot be sent to another process."""
        return OnnxGraph, (self.content, self.name)

    @cached_property
    def scorer(self) -> Scorer:
        """The scores of the graph."""
        session = self._session
        entry = session.get_inputs()[0]
        one = entry.shape[0] == 1

        def output(seen: Array) -> Array:
            with _reading(self.name):
                return np.asarray(session.run(None, {entry.name: seen})[0])

        def scores(observations: Array, valid: Array, state: Any) -> tuple[Array, Any]:
            seen = np.ascontiguousarray(observations, dtype=np.float32)
            values = np.concatenate([output(each[None]) for each in seen]) if one else output(seen)
            if values.size != valid.size:
                raise UsageError(
                    f"{self.name} gives {values.shape} for {seen.shape}; a score is needed for each of "
                    f"{valid.shape[1]} actions"
                )
            return values.reshape(valid.shape).astype(np.float64), state

        return Scorer(self.name, scores)

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # faster for networks of this size
        options.log_severity_level = 4  # errors are exceptions, too
        with _reading(self.name):
            return onnxruntime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn errors of the libraries, which have no common class, into one line."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{name} is no ONNX graph that can be run: {reason}") from None


@contextmanager
def _silence(logger: str) -> Iterator[None]:
    """Keep a library from logging what its exceptions say or nobody needs."""
    found = logging.getLogger(logger)
    level = found.level
    found.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        found.setLevel(level)


def _bare(model: Any) -> Any:
    """Return a graph without what the exporter notes in it: paths and lines of the user's files."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    graph.ClearField("value_info")
    return model


def _check(content: bytes, name: str) -> None:
    """Check that a graph computes from its input alone, in bounded space."""
    import onnx

    model = onnx.load_model_from_string(content)
    for problem in _problems(model):
        raise UsageError(f"{name}: {problem}")
    onnx.checker.check_model(model)
    entries = [each for each in model.graph.input if each.name not in _initial(model)]
    if len(entries) != 1 or not model.graph.output:
        raise UsageError(f"{name}: one input and an output are needed, found {len(entries)} inputs")
    form = entries[0].type.tensor_type
    if form.elem_type != onnx.TensorProto.FLOAT or not form.shape.dim:
        raise UsageError(f"{name}: an input of float32 with a batch is needed")
    form.shape.dim[0].dim_value = 1
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    sizes = {each.name: _size(each) for each in (*inferred.input, *inferred.value_info, *inferred.output)}
    for tensor in (entries[0].name, *(output for node in inferred.node for output in node.output if output)):
        size = sizes.get(tensor)
        if size is None or size > MOST_NUMBERS:
            found = "an unknown number" if size is None else f"{size}"
            raise UsageError(f"{name}: tensors of known sizes up to {MOST_NUMBERS} are needed, found {found}")


def _initial(model: Any) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


def _problems(model: Any) -> Iterator[str]:
    """Yield what reaches beyond the graph."""
    graph = model.graph
    if model.functions or any(each.domain not in STANDARD for each in (*model.opset_import, *graph.node)):
        yield "it needs operators of other libraries"
    tensors = [*graph.initializer]
    if graph.sparse_initializer or graph.quantization_annotation or model.training_info:
        yield "dense tensors and no training are needed"
    for node in graph.node:
        if node.op_type.startswith(RANDOM):
            yield f"{node.op_type} gives random numbers"
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                yield f"{node.op_type} is a loop or a branch"
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                yield f"{node.op_type} has a sparse tensor"
            tensors += [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
    if any(tensor.external_data or tensor.data_location for tensor in tensors):
        yield "its tensors are in other files"


def _size(value: Any) -> int | None:
    """Return the number of elements of a tensor; None if it is unknown."""
    form = value.type.tensor_type
    if not form.HasField("shape") or not all(each.HasField("dim_value") for each in form.shape.dim):
        return None
    return math.prod(each.dim_value for each in form.shape.dim)
