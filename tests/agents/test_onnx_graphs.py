"""ONNX graphs: agents as data alone, and graphs that reach beyond their input."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import errors, rl
from hpcsimkit.errors import UsageError
from hpcsimkit.run import main
from tests.agents.test_model_agent import SLOTS, Net, agent_of, run

onnx = pytest.importorskip("onnx", reason="needs the extra [onnx]")
pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")


def proto(
    *extra: Any, batch: Any = "batch", more: tuple[Any, ...] = (), domains: tuple[str, ...] = ("",)
) -> Any:
    """A graph that scores the rows of a queue by their requested times, and has some more nodes."""
    made = onnx.helper
    form = onnx.TensorProto.FLOAT
    constants = [
        made.make_tensor("first", onnx.TensorProto.INT64, [1], [0]),
        made.make_tensor("last", onnx.TensorProto.INT64, [1], [-1]),
        made.make_tensor("one", onnx.TensorProto.INT64, [1], [1]),
        made.make_tensor("column", onnx.TensorProto.INT64, [], [1]),
        *more,
    ]
    nodes = [
        made.make_node("Slice", ["seen", "first", "last", "one"], ["jobs"]),
        made.make_node("Gather", ["jobs", "column"], ["times"], axis=2),
        made.make_node("Neg", ["times"], ["scores"]),
        *extra,
    ]
    graph = made.make_graph(
        nodes,
        "shortest",
        [made.make_tensor_value_info("seen", form, [batch, SLOTS + 1, 5])],
        [made.make_tensor_value_info("scores", form, [batch, SLOTS])],
        constants,
    )
    return made.make_model(
        graph, opset_imports=[made.make_opsetid(each, 18) for each in domains], ir_version=10
    )


def shortest(seen: Any) -> Any:
    return -seen[:-1, 1]


@pytest.mark.parametrize("batch", ["batch", 1])
def test_a_graph_is_a_model(batch: Any) -> None:
    agent = agent_of(rl.OnnxGraph(proto(batch=batch).SerializeToString()))
    assert run(agent).hash == run(agent_of(shortest)).hash
    assert run(copy.deepcopy(agent)).hash == run(agent_of(pickle.loads(pickle.dumps(agent.model)))).hash
    several = np.random.default_rng(0).random((3, SLOTS + 1, 5)).astype(np.float32)
    valid = np.ones((3, SLOTS), np.bool_)
    assert agent.choose(several, valid)[0].tolist() == agent_of(shortest).choose(several, valid)[0].tolist()


def test_a_file_of_a_graph_needs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent_of(rl.OnnxGraph(proto().SerializeToString())).save("net.hpcsim")
    again: Any = rl.Agent.load("net.hpcsim")
    assert run(again).hash == run(agent_of(shortest)).hash
    Path("e.toml").write_text('jobs = 50\npolicies = ["agent:net.hpcsim+easy"]\nreport = false\n')
    with pytest.raises(SystemExit) as ended:
        main(["compare", "e.toml", "--quiet"])
    assert ended.value.code == 0, "no --allow-code is needed"
    with pytest.raises(UsageError, match=r"ONNX graph gives \(1, 8\) for \(1, 9, 5\); .* each of 4 actions"):
        run(rl.ModelAgent(again.model, rl.QueueWindow(SLOTS), rl.Slots(4)))


@pytest.mark.slow  # of the export
def test_a_module_becomes_a_graph(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs the extra [onnx]")
    agent = agent_of(Net())
    agent.save(tmp_path / "net.hpcsim", graph=True)
    again: Any = rl.Agent.load(tmp_path / "net.hpcsim")
    assert run(again).hash == run(agent).hash
    assert agent.model.training, "left as it was"
    content = (tmp_path / "net.hpcsim").read_bytes()
    assert b"test_model_agent" not in content, "neither a class nor a path of the user"
    assert len(content) < 4096


def outside() -> Any:
    model = proto()
    tensor = model.graph.initializer[3]
    tensor.ClearField("int64_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return model


def in_an_attribute() -> Any:
    value = outside().graph.initializer[3]
    return proto(onnx.helper.make_node("Constant", [], ["stolen"], value=value))


def branch() -> Any:
    inner = onnx.helper.make_graph([], "inner", [], [])
    return proto(onnx.helper.make_node("If", ["yes"], [], then_branch=inner, else_branch=inner))


def function() -> Any:
    model = proto()
    model.functions.add(name="Own", domain="own")
    return model


def filled(size: int) -> Any:
    shape = onnx.helper.make_tensor("size", onnx.TensorProto.INT64, [1], [size])
    return proto(onnx.helper.make_node("ConstantOfShape", ["size"], ["zeros"]), more=(shape,))


NODE = onnx.helper.make_node


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (outside, "its tensors are in other files"),
        (in_an_attribute, "its tensors are in other files"),
        (branch, "If is a loop or a branch"),
        (function, "it needs operators of other libraries"),
        (
            lambda: proto(NODE("Own", [], ["x"], domain="own"), domains=("", "own")),
            "operators of other libraries",
        ),
        (lambda: proto(NODE("RandomNormal", [], ["x"], shape=[3])), "RandomNormal gives random numbers"),
        (lambda: filled(2**40), f"known sizes up to {2**26} are needed, found {2**40}"),
        (
            lambda: proto(NODE("NonZero", ["seen"], ["places"])),
            f"up to {2**26} are needed, found an unknown number",
        ),
        (
            lambda: proto(NODE("Nothing", ["seen"], ["x"])),
            "is no ONNX graph that can be run: No Op registered",
        ),
    ],
)
def test_what_reaches_beyond_its_input_is_refused(model: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        rl.OnnxGraph(model().SerializeToString())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="ONNX graph is no ONNX graph that can be run: Error parsing"):
        rl.OnnxGraph(b"\x08junk")
    agent_of(rl.OnnxGraph(proto().SerializeToString())).save(tmp_path / "net.hpcsim")
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"packages onnx, onnxruntime: pip install 'hpcsimkit\[onnx\]'$"):
        rl.Agent.load(tmp_path / "net.hpcsim")
