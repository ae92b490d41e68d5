"""Put names of dangerous things into every field of files, use the files, and report what an audit hook heard.

A script, run in a process of its own and in an empty folder, since hooks stay for ever. It prints a JSON object:
how many files were used, and what was heard that must not be: by the field and the text that stood there.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.model_file import read_model, write_model
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.comparison.experiment import Experiment, JobsOfExperiment
from hpcsimkit.experiments.consent import experiment_of
from hpcsimkit.experiments.evaluation.evaluation import Contest, Evaluation
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.experiments.settings.toml_lines import toml_text
from hpcsimkit.experiments.sweep.sweep import Sweep
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.run import main
from hpcsimkit.workloads import burst

HERE = Path.cwd()
CANARY = "canary_of_the_trust_test"
TRAP = (
    "from hpcsimkit.policies import SJF as Trap\nfrom hpcsimkit.agents.spaces.encoders import QueueWindow\n"
)
PAYLOADS = (
    f"os:system('echo {CANARY}')",
    f"builtins:eval('{CANARY}')",
    f"subprocess:Popen('{CANARY}')",
    "importlib:import_module('trap')",
    "trap:Trap",
    f"{HERE / 'trap.py'}:Trap",
    f"agent:{HERE / 'two_level.hpcsim'}(parts=trap)",
    f"os:popen('echo {CANARY}')",
    f"builtins:open('{CANARY}', 'w')",
    "this:s",
    str(HERE / "trap.py"),
    "__import__('trap')",
)
"""Texts for fields that hold text, with `--all`; without, each such field gets `SOME`, not all the same.

Other fields get the first `FEW`.
"""

SOME, FEW = 5, 2

NEVER = (
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile",
    "subprocess.Popen", "socket.connect", "ctypes.dlopen", "pickle.find_class", "pty.spawn",
)  # fmt: skip
ROOTS = tuple(
    {sys.prefix, sys.base_prefix, str(Path(sys.modules["hpcsimkit"].__file__ or "").resolve().parent.parent)}
)


class Ears:
    """Events that the audit hook records while it is switched on."""

    def __init__(self) -> None:
        self.listening = False
        self.heard: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.listening and (what := _forbidden(event, arguments)):
            self.heard.append(what)


def _forbidden(event: str, arguments: tuple[Any, ...]) -> str:
    """Return what must not happen, if an event is such; else nothing."""
    if event in NEVER:
        return f"{event} {arguments!r}"
    if event == "import" and arguments[0].partition(".")[0] in ("trap", "this", "antigravity"):
        return f"import {arguments[0]}"
    if event == "compile" and arguments[1] != "<unknown>":  # what ast.parse is given is read, not run
        return f"compile {arguments[1]}" if CANARY in str(arguments[0]) or _is_foreign(arguments[1]) else ""
    if event == "exec" and isinstance(arguments[0], CodeType):
        code = arguments[0]
        return (
            f"exec {code.co_filename}"
            if CANARY in repr(code.co_names) or _is_foreign(code.co_filename)
            else ""
        )
    if (
        event == "open"
        and _writes(*arguments)
        and not str(arguments[0]).startswith((str(HERE / "out"), "out"))
    ):
        return f"open for writing {arguments[0]!r}"
    return ""


def _is_foreign(file: object) -> bool:
    name = str(file)
    return not name.startswith(("<", *ROOTS))


def _writes(path: object, mode: object, flags: object) -> bool:
    if isinstance(path, int) or str(path).startswith("/dev/"):
        return False
    wanted = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND)
    return bool(wanted) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where values stand in nested tables and lists, the tables themselves included."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield from leaves(entry, (*path, key))


def texts(value: Any, path: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the texts that replace a value."""
    for key in path:
        value = value[key]
    if not isinstance(value, str):
        return PAYLOADS[:FEW]
    if "--all" in sys.argv:
        return PAYLOADS
    first = sum(map(ord, str(path))) % len(PAYLOADS)
    return (PAYLOADS + PAYLOADS)[first : first + SOME]


def changed(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """Return a copy with a text at a place."""
    copy = json.loads(json.dumps(value))
    table = copy
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = text
    return copy


def command(*arguments: object) -> int:
    """Run a command of the kit in this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            return leaving.code if isinstance(leaving.code, int) else 1
    return 0


# --- the files -------------------------------------------------------------------------------------------

ROW = {"weight.0": np.ones((1, 5), np.float32), "bias.0": np.zeros(1, np.float32)}
WORKLOAD = burst(9, np.random.default_rng(0), machine_size=8)
EXPERIMENT: dict[str, Any] = {
    "policies": ["fcfs", "sjf+easy"], "import_from": str(HERE), "placement": "first-fit", "locality": "sierra",
    "semantics": "textbook", "walltime": "run", "jobs": 5, "seed": 1,
    "machines": [{"name": "a", "count": 300, "cpus": 1}],
}  # fmt: skip
TRAINING: dict[str, Any] = {
    "policy": "fcfs+easy", "stage": "order", "slots": 4, "jobs": 90, "import_from": str(HERE),
    "encoder": {"name": "QueueWindow"}, "mask": {"name": "Slots"},
    "reward": {"name": "MinusMeanWait"}, "episodes": {"name": "trap:Trap", "jobs": 8},
    "trainer": {"algorithm": "pg", "total_timesteps": 8, "activation": "tanh", "device": "cpu"},
    "validation": {"metric": "mean_wait_time", "jobs": 8, "windows": 1},
}  # fmt: skip


def toml(values: dict[str, Any]) -> str:
    """Return a TOML text of values, tables last."""
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    plain = {name: value for name, value in values.items() if name not in tables}
    return toml_text({**plain, **tables})


def models() -> dict[str, Path]:
    """Write an agent for each kind of seat; return the files."""
    about = {"seed": 0, "training": {"policy": "fcfs", "slots": 4, "metric": "mean_wait_time"}}
    agents = {
        "order": Agent(QueueWindow(4), Slots(4), SlotScores(ROW), "order", about=about),
        "two-level": Agent(QueueWindow(4), Slots(4), SlotScores(ROW), "two-level", about=about),
    }
    for stage, agent in agents.items():
        agent.save(f"{stage.replace('-', '_')}.hpcsim")
    return {stage: HERE / f"{stage.replace('-', '_')}.hpcsim" for stage in agents}


def read_experiment(path: Path) -> None:
    """Read an experiment as `compare` and `describe` do."""
    for kind in (Experiment, JobsOfExperiment, Sweep):
        with contextlib.suppress(HpcsimkitError):
            experiment_of(kind, {"source": path})


def contest() -> None:
    """Seat the agent of a model file as `evaluate` does."""
    evaluation = Evaluation.of_flags({"model": "changed.hpcsim", "jobs": 5, "allow_code": []})
    with contextlib.suppress(HpcsimkitError):
        Contest(evaluation, WORKLOAD)


def made() -> None:
    """Make the policy of a model file as `compare` does."""
    for name in ("agent:changed.hpcsim", "agent:changed.hpcsim+easy"):
        with contextlib.suppress(HpcsimkitError):
            make(name)


def uses() -> Iterator[tuple[str, tuple[Any, ...], str, Callable[[], object]]]:
    """Yield a kind of file, the field, the text in it, and what uses the file."""
    for stage, path in models().items():
        tensors, about = read_model(path)
        said = {key: value for key, value in about.items() if key != "format"}
        for field in leaves(said):
            for text in texts(said, field):
                write_model("changed.hpcsim", tensors, changed(about, field, text))
                yield stage, field, text, made
                if field[0] in ("about", "stage"):
                    yield stage, field, text, contest
    command("compare", "-p", "sjf", "--jobs", 5, "--no-report", "-q", "--out", "results")
    saved = tomllib.loads(Path("results/experiment.toml").read_text())
    path = Path("changed.toml")
    for kind, values in (("experiment", EXPERIMENT), ("results", saved), ("training", TRAINING)):
        for field in leaves(values):
            for text in texts(values, field):
                path.write_text(toml(changed(values, field, text)))
                yield kind, field, text, partial(train_with if kind == "training" else read_experiment, path)


def train_with(path: Path) -> None:
    """Read a training as `train` does."""
    with contextlib.suppress(HpcsimkitError):
        Training.read(path).environment_parts  # noqa: B018 - made when asked for


def commands() -> Iterator[tuple[str, tuple[Any, ...], str, Callable[[], object]]]:
    """Yield whole commands on the files of three attacks that once ran code."""
    attack = PAYLOADS[0]
    tensors, about = read_model(models()["two-level"])
    write_model("stranger.hpcsim", tensors, changed(about, ("about", "training", "policy"), attack))
    Path("stranger.toml").write_text(toml({**EXPERIMENT, "policies": ["fcfs", attack]}))
    Path("training.toml").write_text(toml({**TRAINING, "episodes": {"jobs": 8}, "policy": attack}))
    few = ("--jobs", "5", "-q", "--out", "out")
    for arguments in (
        ("compare", "-p", "agent:stranger.hpcsim", *few),
        ("evaluate", "stranger.hpcsim", "--sequences", "1", *few),
        ("explain", "stranger.hpcsim", *few),
        ("compare", "stranger.toml", *few),
        ("describe", "stranger.toml", "--no-picture"),
        ("train", "training.toml", "-q", "--out", "out"),
    ):
        yield "command", arguments[:2], attack, partial(command, *arguments)


def probe() -> dict[str, Any]:
    """Use all the files; return how many uses there were, and what was heard."""
    Path("trap.py").write_text(TRAP)
    command("compare", "-p", "fcfs", "--jobs", 5, "--no-report", "--out", "out0")  # what loads late is loaded
    Path("changed.toml").write_text(toml({**TRAINING, "episodes": {"jobs": 8}}))
    train_with(Path("changed.toml"))
    ears = Ears()
    sys.addaudithook(ears)
    found: dict[str, list[str]] = {}
    count = 0
    for kind, field, text, use in chain(commands(), uses()):
        count += 1
        ears.heard.clear()
        ears.listening = True
        use()
        ears.listening = False
        if ears.heard:
            found.setdefault(f"{kind} {'.'.join(map(str, field))} = {text}", []).extend(ears.heard)
    ears.listening = True  # the hook hears what it should: the user's own name on the command line
    make("trap.py:Trap")
    ears.listening = False
    return {"uses": count, "heard": found, "control": list(ears.heard)}


if __name__ == "__main__":
    print(json.dumps(probe()))
