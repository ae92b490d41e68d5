"""Files from others run no code, claim no memory, mark up no page and lead no writing astray."""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.catalogue import ENCODERS, MASKS
from hpcsimkit.agents.networks.model_file import HEADER, read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.errors import HpcsimkitError, UsageError, WorkloadError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment, JobsOfExperiment
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import Study
from hpcsimkit.experiments.parts.trust import CALLER, Trust
from hpcsimkit.io.files import make_folder
from hpcsimkit.io.npz import arrays_in
from hpcsimkit.results.result import Result

ROW = {"weight.0": np.ones((1, 5), np.float32), "bias.0": np.zeros(1, np.float32)}
TRAP = "open('executed', 'w').close()\nfrom hpcsimkit.policies import SJF as Trap\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module in the current folder that leaves a file behind when it is imported; returns that file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "trap.py").write_text(TRAP)
    sys.modules.pop("trap", None)
    return tmp_path / "executed"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An agent for the order seat."""
    path = tmp_path / "agent.hpcsim"
    Agent(QueueWindow(4), Slots(4), SlotScores(ROW), "order").save(path)
    return path


def rewritten(path: Path, change: Any) -> None:
    """Change what a model file says, and hash it as if that were right."""
    tensors, about = read_model(path)
    change(about)
    write_model(path, tensors, {key: value for key, value in about.items() if key != "format"})


# --- no code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "uses"), [((), 300), pytest.param(("--all",), 600, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_no_field_of_a_file_runs_code(flags: tuple[str, ...], uses: int, tmp_path: Path, root: Path) -> None:
    """An audit hook hears nothing while names of dangerous things stand in every field of files."""
    # Python would write the bytecode of the kit that it lacks, which is nothing that the file did.
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    probe = [sys.executable, str(root / "tests" / "experiments" / "parts" / "trust_probe.py"), *flags]
    done = subprocess.run(probe, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["heard"] == {}
    assert any("exec" in what for what in found["control"]), "the hook has to record the control's exec"
    assert found["uses"] > uses


def test_only_the_boundary_imports_by_name(root: Path) -> None:
    """All other modules that do so import names of tables of their own."""
    tables = {"hpcsimkit/io/catalogue.py", "agents/training/sb3.py", "hpcsimkit/__init__.py",
              "hpcsimkit/io/lazy_names.py",
              "hpcsimkit/reproductions/plans/catalogue.py", "hpcsimkit/reproductions/plans/planned.py"}  # fmt: skip
    importing = {"import_module", "spec_from_file_location", "exec", "eval", "__import__"}
    found = set()
    for folder in ("hpcsimkit", "agents", "policies", "workloads"):
        for path in (root / folder).rglob("*.py"):
            if any(parent.is_symlink() for parent in path.parents):
                continue
            text = path.read_text()
            if not any(word in text for word in importing):  # parsing all takes seconds
                continue
            names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(ast.parse(text))}
            if names & importing:
                found.add(str(path.relative_to(root)))
    assert found == {*tables, "hpcsimkit/engine/user_code.py"}


@pytest.mark.parametrize("code", ["trap", "trap.py"])
def test_consent(trap: Path, tmp_path: Path, code: str) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f"jobs = 9\npolicies = ['fcfs', '{code}:Trap']\n")
    for allowed in ([], ["trap2"], ["tra"], [str(tmp_path / "elsewhere")], [""]):
        with pytest.raises(
            UsageError, match=rf"e.toml:2: policies\[1\]: '{code}:Trap' is .*--allow-code {code}$"
        ):
            Experiment.read(file, allowed)
    assert JobsOfExperiment.read(file).policies == ["fcfs", f"{code}:Trap"]
    assert not trap.exists()
    for allowed in ([code], [str(tmp_path)], [str(tmp_path / "trap.py")], ["."]):
        assert Experiment.read(file, allowed).code == [code]
    assert trap.exists()


def test_a_file_does_not_consent_to_itself(trap: Path, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text("policies = ['trap:Trap']\nallow_code = ['trap']\n")
    with pytest.raises(UsageError, match=r"e\.toml:2: allow_code: a file does not consent to code"):
        Experiment.read(tmp_path / "e.toml")
    assert not trap.exists()


def test_nothing_is_imported_for_a_name_that_is_wrong_elsewhere(trap: Path) -> None:
    for name in ("trap:Trap+esay", "trap:Trap+easy(", "trap:Trap+trap:", "trap:Trap(__import__('os'))"):
        with pytest.raises(UsageError):
            make(name)
    with pytest.raises(UsageError):
        Experiment.of_flags({"policies": ["trap:Trap", "esay"]})
    assert not trap.exists()


def test_no_folder_is_put_on_the_search_path(
    trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    before = list(sys.path)
    assert CALLER.imported("trap:Trap", str(tmp_path)).__name__ == "SJF"
    assert sys.path == before


def test_folders_of_strangers_run_and_write_nothing(tmp_path: Path, root: Path) -> None:
    """D1: an audit hook hears nothing while plans name what is no part, and templates call what they may not."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    probe = [sys.executable, str(root / "tests" / "experiments" / "parts" / "plan_probe.py")]
    done = subprocess.run(probe, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["first"] == ["0 ", [], []]
    for attack, (line, heard, files) in report["found"].items():
        assert (heard, files) == ([], []), attack
        assert line == "0 " if attack == "harmless" else line.startswith("2 hpcsimkit: "), (attack, line)
        assert line.count("\n") == (attack != "harmless") and "a defect" not in line, (attack, line)
    lines = {attack: line for attack, (line, *_) in report["found"].items()}
    assert "without consent: --allow-code stranger/evil.py" in lines["D1a"]
    assert "unknown part 'io.files:read_bytes'" in lines["D1b"]
    assert "stranger/report.md.jinja:1: SecurityError: access to attribute '__init__'" in lines["D1c"]


def test_code_beside_a_study_needs_consent(trap: Path, tmp_path: Path) -> None:
    """Names of policies in the file of a study are those of a file, too."""
    (tmp_path / "study.toml").write_text("beside = ['trap:Trap+easy']\njobs = 2000\n")
    settings = Learning.read(tmp_path / "study.toml")
    with pytest.raises(UsageError, match="--allow-code trap"):
        Study(settings, settings.workload(), tmp_path / "out")
    assert not trap.exists()
    settings = Learning.read(tmp_path / "study.toml", ["trap"])
    assert Study(settings, settings.workload(), tmp_path / "out").settings.beside
    assert trap.exists()


def test_what_a_package_and_a_folder_include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text("")
    (tmp_path / "link").symlink_to("deep")
    for allowed, code in (
        ("pkg", "pkg.mod"),
        ("deep", "deep/mine.py"),
        ("deep", "link/mine.py"),
        ("deep", "deep.mine"),
    ):
        Trust((allowed,)).check(code)
    for allowed, code in (
        ("pkg", "pkgs.mod"),
        ("pkg.mod", "pkg"),
        ("link/other", "deep/mine.py"),
        ("mine", "deep/mine.py"),
    ):
        with pytest.raises(UsageError, match="--allow-code"):
            Trust((allowed,)).check(code)


def test_a_results_folder_says_whose_code_it_names(trap: Path, tmp_path: Path) -> None:
    experiment = Experiment(jobs=9, policies=["fcfs", "trap.py:Trap"], report=False)
    Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    text = (tmp_path / "out" / "experiment.toml").read_text()
    assert "compare experiment.toml --out FOLDER --allow-code trap.py\n" in text
    assert "# It names code that is not the kit's own: trap.py." in text
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["code"] == ["trap.py"]
    with pytest.raises(UsageError, match=r"--allow-code trap\.py"):
        Experiment.read(tmp_path / "out" / "experiment.toml")


# --- models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about.update(surprise=1), "lacks or misuses 'surprise'"),
        (lambda about: about.update(sample="yes"), "lacks or misuses 'sample'"),
        (lambda about: about.update(stage=["order"]), "lacks or misuses 'stage'"),
        (lambda about: about["encoder"].update(name=5), "lacks or misuses 'encoder.name'"),
        (lambda about: about["encoder"]["parameters"].update(time_scale="a"), "time_scale does not take a"),
        (lambda about: about["encoder"]["parameters"].update(slots=10**17), "slots does not take 1000"),
        (lambda about: about["encoder"]["parameters"].update(slots=10**12), "numbers are needed, found the shape"),
        (lambda about: about["encoder"]["parameters"].update(slots=-1), "numbers are needed, found the shape"),
        (lambda about: about["mask"]["parameters"].update(slots=10**9), "actions are needed, found 1000000000"),
        (lambda about: about["about"].update(training={"policy": ["fcfs"]}), "'about.training.policy'"),
        (lambda about: about["about"].update(training={"slots": 2**40}), "'about.training.slots'"),
        (lambda about: about["about"].update(deep=json.loads("[" * 50 + "]" * 50)), "something else or damaged"),
        (lambda about: about["about"].update(long="x" * 2**21), "something else or damaged"),
    ],
)  # fmt: skip
def test_models_that_say_something_else(change: Any, message: str, model: Path) -> None:
    rewritten(model, change)
    with pytest.raises(UsageError, match=message) as caught:
        Agent.load(model)
    assert str(caught.value).startswith(f"{model}: ")


@pytest.mark.parametrize("stage", ["dispatch", "two-level"])
def test_a_model_names_no_code_and_not_itself_as_what_it_was_trained_behind(
    stage: str, model: Path, trap: Path
) -> None:
    for policy in ("trap:Trap", "os:system('true')", f"agent:{model}", "fcfs("):
        rewritten(
            model, lambda about, name=policy: about.update(stage=stage, about={"training": {"policy": name}})
        )
        with pytest.raises(UsageError, match=f"{model}: "):
            make(f"agent:{model}")
    assert not trap.exists()


def header_of(model: Path, change: Any) -> bytes:
    """Return the model with another header of safetensors."""
    content = model.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["weight.0"].update(shape=[10**9, 10**9]),
        lambda header: header["weight.0"].update(shape=[0, 2**62]),
        lambda header: header["weight.0"].update(dtype="U8"),
        lambda header: header["weight.0"].update(data_offsets=[0, 2**50]),
        lambda header: header.update({f"t{n}": header["bias.0"] for n in range(5000)}),
        lambda header: header["__metadata__"].update({HEADER: "0" * 64 + "[" * 100_000}),
    ],
)
def test_headers_that_claim_what_is_not_there(change: Any, model: Path) -> None:
    model.write_bytes(header_of(model, change))
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"something else or damaged|is damaged"):
            Agent.load(model)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_compressed_model_is_refused(model: Path) -> None:
    model.write_bytes(gzip.compress(b"\0" * 2**24))
    with pytest.raises(UsageError, match="a model is needed that is not compressed, found a gzip file"):
        read_model(model)


@pytest.mark.parametrize("table", ["encoder", "mask"])
def test_no_part_of_the_kit_takes_memory_by_a_parameter(table: str, model: Path) -> None:
    for kind in (ENCODERS if table == "encoder" else MASKS).values():
        hints = [name for name in kind.__init__.__annotations__ if name not in ("self", "return")]
        for value in (10**9, -1, 0):
            part = {"name": kind.__name__, "parameters": dict.fromkeys(hints, value)}
            rewritten(model, lambda about, part=part: about.update({table: part}))
            tracemalloc.start()
            try:
                with contextlib.suppress(UsageError):
                    Agent.load(model)
                assert tracemalloc.get_traced_memory()[1] < 2**24, (kind, value)
            finally:
                tracemalloc.stop()


# --- saved results ---------------------------------------------------------------------------------------


def npz(**entries: bytes) -> bytes:
    """Return a zip of entries as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_arrays_are_as_large_as_they_claim_and_no_pickles(tmp_path: Path) -> None:
    sound = npy(np.arange(100))
    assert arrays_in(npz(a=sound), "x")["a"].tolist() == list(range(100))
    claims = sound.replace(b"(100,), }" + b" " * 10, b"(10000000000,), }  ")
    assert claims != sound
    for content in (npz(a=claims), npz(a=npy(np.array([{}], dtype=object))), npz(a=b"no array")):
        with pytest.raises(ValueError, match=r".+"):
            arrays_in(content, "x")
        (tmp_path / "r.npz").write_bytes(content)
        with pytest.raises(WorkloadError, match="a saved result is needed"):
            Result.load(tmp_path / "r.npz")


# --- pages and paths -------------------------------------------------------------------------------------

EVIL = "<script>alert('x')</script>"


def test_names_with_markup_are_escaped_in_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the header of a log, its file name, the name of a policy and of a machine."""
    monkeypatch.chdir(tmp_path)
    evil = "x<script>alert`1`<"
    log = tmp_path / f"{evil}.swf"
    rows = [f"{n} {n} -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 9)]
    log.write_text(
        f"; Computer: {EVIL}\n; Note: {EVIL}\n; MaxProcs: 4\n; Queue: 1 {EVIL}\n" + "\n".join(rows) + "\n"
    )
    (tmp_path / f"{evil}.py").write_text("from hpcsimkit.policies import SJF as Mine\n")
    experiment = Experiment(log=log.name, policies=["fcfs", f"{evil}.py:Mine"])
    Campaign(experiment, experiment.workload(), tmp_path / "out", command=[EVIL]).run()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "x&lt;script&gt;alert`1`&lt;" in page
    assert "<script>alert" not in page


def test_links_at_output_paths_are_refused(tmp_path: Path, model: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "folder").symlink_to("target")
    (tmp_path / "link.hpcsim").symlink_to("kept")
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(WorkloadError, match="folder: cannot be written: it is a symbolic link"):
        make_folder(tmp_path / "folder")
    with pytest.raises(WorkloadError, match=r"link.hpcsim: cannot be written: it is a symbolic link"):
        Agent.load(model).save(tmp_path / "link.hpcsim")
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_planted_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / ".lock").symlink_to(tmp_path / "kept")
    experiment = Experiment(jobs=9, policies=["fcfs"], report=False)
    with pytest.raises(HpcsimkitError, match="symbolic link"):
        Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    assert (tmp_path / "kept").read_text() == "kept"


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no names of open files here")
def test_names_of_open_files_are_written_to(tmp_path: Path, root: Path) -> None:
    """/dev/stdout is a link, also to a file: it stays, and so does the link."""
    command = [
        sys.executable,
        "-m",
        "hpcsimkit.run",
        "generate",
        "lublin",
        "--jobs",
        "5",
        "-q",
        "-o",
        "/dev/stdout",
    ]
    with (tmp_path / "x.swf").open("wb") as file:
        subprocess.run(command, stdout=file, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert (tmp_path / "x.swf").read_text().startswith(";")
    assert Path("/dev/stdout").is_symlink()
