"""The shape of the code: imports point one way, the kernel stays light, files stay small."""

from __future__ import annotations

import ast
import graphlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("policies", "agents", "workloads")
ROOMS = ("pictures", "campaigns", "reproductions", "commands")

# From the bottom to the top: a module imports only what stands in a row above its own in this text. A package
# (policies, workloads) stands where its name does; how its modules import each other is up to it.
LAYERS = """
    errors job clock
    files units columns allocation
    need
    need_table
    workload
    workloads
    jobqueue
    cluster
    machine_room
    machines
    machine_files
    policy
    service_time
    locality
    system
    decision reservation dependencies guard
    pipeline
    policies
    timeline node_numbers placements
    observers
    result
    simulation
    semantics
    scenario
    learning
    resource_metrics
    result_file metrics recording checks
    rendering
    episode
    episode_batch
    environment turns
    vector_environment gymnasium_vector
    agents
    breakdown registry
    pictures
    campaigns
    reproductions
    commands
    run
"""
RANK = {name: rank for rank, row in enumerate(LAYERS.split("\n")) for name in row.split()}
KERNEL = set(RANK) - {name for name in RANK if RANK[name] > RANK["simulation"]} - set(PACKAGES)

# Conveniences: a method that hands itself to a function higher up, imported when it is called.
LATE = {("result", "result_file"), ("machines", "machine_files")}

# Libraries that take long to load are loaded by the function that needs them. Who has them at the top must
# itself be loaded late, or be the command line with its one library.
HEAVY = {
    "pandas", "pyarrow", "matplotlib", "scipy", "pydantic", "rich", "typer", "jinja2", "joblib",
    "torch", "gymnasium", "stable_baselines3", "sb3_contrib", "safetensors", "tensorboard",
}  # fmt: skip
HEAVY_AT_THE_TOP = {"campaigns.experiment": {"pydantic"}, "campaigns.checked_table": {"pydantic"},
                    "campaigns.training": {"pydantic"}, "campaigns.training_tables": {"pydantic"}, "campaigns.evaluation": {"pydantic"}, "campaigns.mimics": {"pydantic"}, "run": {"typer"},
                    **{f"commands.{name}": {"typer"} for name in ("flags", "comparing", "explaining", "learning", "reproducing", "training_cush", "workloads")},
                    "environment": {"gymnasium"},
                    "vector_environment": {"stable_baselines3"},
                    "gymnasium_vector": {"gymnasium"},
                    **{f"agents.{name}": {"torch"} for name in ("torch_networks", "trainer", "network_trainer", "on_policy", "ppo", "spinning_up", "together", "cross_entropy", "a2c", "dql", "global_chance", "dras.torch_network", "dras.trainer", "dras.policy_gradient", "dras.actor_critic", "dras.ppo", "dras.q_learning", "cush.columns", "cush.torch_network", "cush.workers", "cush.selectors", "cush.training", "cush.trainer", "cush.taught")},
                    "agents.sb3": {"torch", "stable_baselines3"},
                    }  # fmt: skip


class Import(NamedTuple):
    """One import: by which module, of what, where, and whether it happens when the module is loaded."""

    importer: str
    imported: str
    where: str
    late: bool


def product_modules() -> dict[str, Path]:
    """Modules by their names below ``hpcsimkit``: ``simulation``, ``policies.orders``, ``policies`` ..."""
    found = {path.stem: path for path in (ROOT / "hpcsimkit").glob("*.py") if path.stem != "__init__"}
    for package in (*PACKAGES, *(f"hpcsimkit/{room}" for room in ROOMS)):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to((ROOT / package).parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = product_modules()


def imports(name: str) -> Iterator[Import]:
    """Everything a module imports, except for the sake of types only."""
    path = MODULES[name]

    def visit(node: ast.AST, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            where = f"{path.relative_to(ROOT)}:{getattr(child, 'lineno', 0)}"
            if isinstance(child, ast.Import):
                yield from (Import(name, alias.name, where, late) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{where}: write the whole name of what is imported"
                yield from (
                    Import(name, f"{child.module}.{alias.name}", where, late) for alias in child.names
                )
            else:
                yield from visit(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    return visit(ast.parse(path.read_text()), late=False)


def own_module(imported: str) -> str | None:
    """The module of the kit that an imported name belongs to; None for other libraries (and the version)."""
    if not imported.startswith("hpcsimkit.") or imported == "hpcsimkit.__version__":
        return None
    parts = imported.split(".")[1:]
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    found = next((name for name in names if name in MODULES), None)
    assert found, f"import {imported} from the module that defines it"
    return found


def layer(module: str) -> str:
    return module.split(".")[0]


def test_every_module_has_its_layer() -> None:
    missing = sorted({layer(module) for module in MODULES} - set(RANK))
    assert not missing, f"say in LAYERS where these stand: {missing}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    for found in imports(module):
        target = own_module(found.imported)
        if target is None or layer(target) == layer(module) or (found.late and (module, target) in LATE):
            continue
        assert RANK[layer(target)] < RANK[layer(module)], f"{found.where}: {module} must not import {target}"


def test_kernel_knows_no_policies_agents_or_workloads() -> None:
    for module in KERNEL:
        for found in imports(module):
            target = own_module(found.imported)
            assert found.late or target is None or layer(target) not in PACKAGES, found


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {module: {own_module(f.imported) for f in imports(module)} - {None, module} for module in MODULES}
    for upper, lower in LATE:
        graph[upper].discard(lower)
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_slow_libraries_load_when_used(module: str) -> None:
    allowed = HEAVY_AT_THE_TOP.get(module, set())
    at_the_top = {found.imported.split(".")[0] for found in imports(module) if not found.late}
    assert at_the_top & HEAVY <= allowed


def test_kernel_stands_on_simpy_and_numpy_only() -> None:
    libraries = {
        found.imported.split(".")[0] for module in KERNEL for found in imports(module) if not found.late
    }
    assert libraries - set(sys.stdlib_module_names) == {"hpcsimkit", "numpy", "simpy"}


@pytest.mark.parametrize("module", ["hpcsimkit.simulation", "hpcsimkit.registry", "hpcsimkit.run"])
def test_nothing_slow_is_loaded_with(module: str) -> None:
    """What an import statement cannot show: somebody else's package may load a slow one."""
    code = f"import {module}, sys; print(*sorted({HEAVY - {'typer'}!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_files_stay_small(module: str) -> None:
    lines = len(MODULES[module].read_text().splitlines())
    assert lines <= 400, f"{MODULES[module].relative_to(ROOT)} has {lines} lines: would two files be clearer?"
