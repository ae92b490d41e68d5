"""The shape of the code: few files at each root, imports that point one way, a light kernel.

Which package may import which is a contract in pyproject.toml, which import-linter checks; ruff limits the
complexity of functions (10) and the number of their parameters (8; a constructor may store more as keywords).
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import grimp
import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("policies", "agents", "workloads")
KERNEL = ("errors", "io", "jobs", "cluster", "results", "kernel")
"""Everything that a simulation needs, beside the readers of workloads."""

PUBLIC_METHODS = 20

HEAVY = {
    "pandas",
    "pyarrow",
    "matplotlib",
    "scipy",
    "pydantic",
    "rich",
    "typer",
    "jinja2",
    "joblib",
    "sklearn",
    "torch",
    "gymnasium",
    "stable_baselines3",
    "sb3_contrib",
    "safetensors",
    "tensorboard",
    "dask",
    "dask_jobqueue",
    "distributed",
    "pettingzoo",
    "tqdm",
}
"""Libraries that take long to load: the function that needs one imports it."""

PYDANTIC = (
    "comparison.experiment",
    "evaluation.evaluation",
    "generate",
    "learn.settings",
    "mimics",
    "settings.checked_table",
    "settings.engine_table",
    "settings.run_table",
    "source",
    "sweep.question_cell",
    "sweep.sweep",
    "sweep.trainings",
    "training.tables",
    "training.training",
)
TYPER = ("command", "declaring", "flags")
TORCH = (
    *(f"cush.{name}" for name in ("columns", "selectors", "taught", "torch_network", "training")),
    *(f"dras.{name}" for name in ("actor_critic", "policy_gradient", "ppo", "q_learning", "torch_network", "trainer")),
    "networks.torch_networks",
    *(
        f"training.{name}"
        for name in (
            "a2c", "aggrevate", "checkpoints", "dql", "global_random_state", "imitation", "network_trainer", "on_policy", "population",
            "ppo", "seat_trainer", "taught_ppo", "together", "trainer", "workers",
        )
    ),
)  # fmt: skip
HEAVY_AT_THE_TOP = {
    "run": {"typer"},
    "envs.environment": {"gymnasium"},
    "envs.gymnasium_vector": {"gymnasium"},
    "envs.pettingzoo_aec": {"gymnasium", "pettingzoo"},
    "envs.vector_environment": {"stable_baselines3"},
    "agents.networks.model_metadata": {"pydantic"},
    "agents.networks.torch_models": {"torch", "gymnasium"},
    "agents.training.maskable_policy": {"torch", "sb3_contrib"},
    "agents.training.sb3": {"torch", "stable_baselines3"},
    "agents.training.sb3_models": {"torch", "stable_baselines3", "gymnasium"},
    "reproductions.plans.plan": {"pydantic"},
    **{f"experiments.{name}": {"pydantic"} for name in PYDANTIC},
    **{f"cli.{name}": {"typer"} for name in TYPER},
    **{f"agents.{name}": {"torch"} for name in TORCH},
}
"""Modules that have one at the top: each must itself be loaded late, or be the command line."""


OPENING = {
    "open", "read_text", "read_bytes", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "read_csv", "read_parquet", "read_table",
    "read_metadata", "read_json", "read_pickle", "read_hdf", "read_excel", "read_feather", "ParquetFile", "ZipFile", "TarFile",
    "GzipFile", "LZMAFile", "BZ2File", "CompressedInputStream", "safe_open", "load_file", "input", "FileInput", "connect", "fdopen",
}  # fmt: skip
"""Names of functions of Python and of libraries that read a file."""

PICKLING = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}

LOADING = {"json", "joblib", "marshal", "np", "numpy", "pickle", "safetensors", "tomllib", "torch", "yaml"}
"""Libraries with a function ``load`` that reads a file."""

OPENED_ELSEWHERE = {
    "io.files": {"open", "GzipFile", "LZMAFile", "BZ2File", "CompressedInputStream"},
    "io.npz": {"ZipFile", "open", "load"},  # these, down to the empty line, are given bytes that were read
    "agents.networks.model_file": {"load"},
    "experiments.sweep.results": {"read_parquet"},
    "workloads.readers.parquet_logs": {"read_metadata", "read_table"},
    "reports.saved_results": {"read_metadata", "read_table", "read_csv"},
    "reports.sweep.table": {"read_parquet", "read_csv"},

    "compiled.cache_folder": {"open", "read_bytes"},  # its files and folders are those of the user alone
    "compiled.toolchain": {"open"},  # of the processor
    "io.own_code": {"read_bytes"},  # these read files of the kit itself and of installed packages
    "engine.code_version": {"read_bytes"},
    "experiments.parts.catalogue": {"read_text"},
    "reproductions.published_rules.own": {"read_text"},

    "engine.provenance": {"read_text"},  # these ask the system: /proc
    "kernel.recording": {"open"},
}  # fmt: skip
"""Where a file is read, or bytes are, without `hpcsimkit.io.files.read_bytes`, which asks for its format."""


class Import(NamedTuple):
    """One import: by which module, of what, where, and whether it happens when the module is loaded."""

    importer: str
    imported: str
    where: str
    late: bool


def product_modules() -> dict[str, Path]:
    """Modules by their names below ``hpcsimkit``: ``kernel.simulation``, ``policies.orders``, ``policies`` ..."""
    found = {}
    for path in sorted((ROOT / "hpcsimkit").rglob("*.py")):
        if not any(parent.is_symlink() for parent in path.parents):
            found[name_of(path, ROOT / "hpcsimkit")] = path
    for folder in FOLDERS:
        found |= {name_of(path, ROOT): path for path in sorted((ROOT / folder).rglob("*.py"))}
    found.pop("")
    return found


def name_of(path: Path, root: Path) -> str:
    """The name of a module below a root."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = product_modules()


@cache
def syntax_tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@cache
def imports(name: str) -> tuple[Import, ...]:
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
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from visit(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    return tuple(visit(syntax_tree(name), late=False))


def libraries_at_the_top(modules: list[str]) -> set[str]:
    """Names of the libraries that are loaded with some modules."""
    return {found.imported.split(".")[0] for name in modules for found in imports(name) if not found.late}


@pytest.mark.parametrize(
    ("folder", "most"), [("hpcsimkit", 7), ("agents", 8), ("policies", 8), ("workloads", 8)]
)
def test_few_files_at_a_root(folder: str, most: int) -> None:
    files = sorted(path.name for path in (ROOT / folder).glob("*.py"))
    assert len(files) <= most, f"{files}: which folder is their chapter?"


def test_the_dependency_rule(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    code = lint_imports(no_cache=True)
    assert code == 0, capsys.readouterr().out


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Not even for the sake of types: a reader would have to hold all of them together."""
    graph = grimp.build_graph("hpcsimkit", exclude_type_checking_imports=False, cache_dir=None)
    circles = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            if graph.chain_exists(importer=other, imported=module):
                circles.add((module, other))
    assert not circles


def test_names_are_imported_from_the_module_that_defines_them() -> None:
    for module in MODULES:
        for found in imports(module):
            if found.imported.startswith("hpcsimkit."):
                parts = found.imported.split(".")[1:]
                owners = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
                assert any(owner in MODULES for owner in owners), f"{found.where}: {found.imported}"


def test_the_formatter_decides() -> None:
    places = [name for name, path in MODULES.items() if "# fmt: " in path.read_text(encoding="utf-8")]
    assert not places, "lay these out as the formatter does"


def test_classes_have_at_most_20_public_methods() -> None:
    """Beside those of their base classes; properties are not counted."""
    for module in MODULES:
        for name, kind in vars(import_module(f"hpcsimkit.{module}")).items():
            if isinstance(kind, type) and kind.__module__ == f"hpcsimkit.{module}":
                methods = public_methods(kind)
                assert len(methods) <= PUBLIC_METHODS, f"{module}.{name}: {', '.join(methods)}"


def public_methods(kind: type) -> list[str]:
    """The public methods that a class adds to those of its base classes."""
    return [
        name
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and isinstance(member, FunctionType | classmethod | staticmethod)
        and not any(hasattr(base, name) for base in kind.__bases__)
    ]


def test_every_file_is_read_as_a_format() -> None:
    """No file is read past `read_bytes`, which needs a `Format`: the test of names of code in files knows all."""
    found = {name: openings for name in MODULES if (openings := set(opened_in(name)))}
    assert found == OPENED_ELSEWHERE


def test_only_engines_use_pickle() -> None:
    """Between processes of one user, and for the cache of compiled functions; no other file is unpickled.

    The cache is a folder that only the user can write: tests/compiled/test_cache_folder.py.
    """
    found = {name for name in MODULES for each in imports(name) if each.imported.split(".")[0] in PICKLING}
    assert found == {"engine.dask", "engine.dask_worker", "compiled.kept"}


def opened_in(module: str) -> Iterator[str]:
    """The functions that read files, as a module calls or imports them; those of the kit have names of their own."""
    for node in ast.walk(syntax_tree(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            kits = (
                (name == "load" and of.split(".")[0] not in LOADING)
                or of == "self"
                or (not of and name != "open")
            )
            if name in OPENING and not kits and not opened_to_write(node):
                yield name
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("hpcsimkit."):
            yield from (alias.name for alias in node.names if alias.name in OPENING)


def opened_to_write(call: ast.Call) -> bool:
    """Whether a call has the mode or the flag of a file that is written."""
    words = {word.strip("'") for each in call.args for word in ast.unparse(each).split(".")}
    return bool(words & {"w", "wb", "x", "xb", "a", "ab", "O_WRONLY"})


def test_digits_are_those_that_int_reads() -> None:
    """Of thousands of digits, and of superscripts, `int` raises an error: `is_whole_number` tells before."""
    asked = {"isdigit", "isdecimal", "isnumeric"}
    found = {
        name
        for name in MODULES
        for node in ast.walk(syntax_tree(name))
        if isinstance(node, ast.Attribute) and node.attr in asked
    }
    assert found == {"io.units"}


def test_slow_libraries_load_when_used() -> None:
    found = {name: libraries_at_the_top([name]) & HEAVY for name in MODULES}
    assert {name: libraries for name, libraries in found.items() if libraries} == HEAVY_AT_THE_TOP


def test_whose_text_it_is_has_no_default() -> None:
    """A parameter or field for trust is always given: its default would be that of a stranger's text, too."""
    trusting, named = set(), list[ast.expr | None]()
    for module in MODULES:
        for node in ast.walk(syntax_tree(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                plain = [*node.args.posonlyargs, *node.args.args]
                defaults = [*[None] * (len(plain) - len(node.args.defaults)), *node.args.defaults]
                pairs = [
                    *zip(plain, defaults, strict=True),
                    *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
                ]
                found = [(given.arg, given.annotation, default) for given, default in pairs]
            elif isinstance(node, ast.AnnAssign):
                found = [(ast.unparse(node.target), node.annotation, node.value)]
            else:
                continue
            of_trust = [each for each in found if is_of_trust(each[0], each[1])]
            named += [annotation for _, annotation, _ in of_trust]
            trusting |= {
                f"{module}:{node.lineno} {name}" for name, _, default in of_trust if default is not None
            }
    assert len(named) > 20, "the parameters are found"
    assert trusting == set()


def is_of_trust(name: str, annotation: ast.expr | None) -> bool:
    words = "" if annotation is None else ast.unparse(annotation)
    return name == "trust" or re.search(r"\bTrust\b", words) is not None


def test_the_text_of_the_caller_is_that_of_python_programs() -> None:
    """Modules that trust all code, or call `make`, for which all names are those of the caller."""
    allowed = {
        "experiments.parts.trust",  # defines it
        "experiments.parts.registry",  # make, for programs
        "experiments.questions.compare",  # compare, for programs
        "experiments.sweep.object_sweep",  # Sweep.of, for programs
    }
    literal = {"experiments.checks.learner_parts", "experiments.console"}
    found = set()
    for module in MODULES:
        for node in ast.walk(syntax_tree(module)):
            is_make = isinstance(node, ast.Attribute) and ast.unparse(node) == "registry.make"
            imported = isinstance(node, ast.ImportFrom) and {"CALLER", "make"} & {
                each.name for each in node.names
            }
            everything = isinstance(node, ast.Call) and ast.unparse(node) == "Trust(None)"
            if is_make or imported or everything:
                found.add(module)
    assert found == allowed | literal


def test_kernel_stands_on_simpy_and_numpy_only() -> None:
    modules = [name for name in MODULES if name.split(".")[0] in KERNEL]
    libraries = libraries_at_the_top(modules) - set(sys.stdlib_module_names)
    assert libraries == {"hpcsimkit", "numpy", "simpy"}


@pytest.mark.parametrize(
    "module", ["hpcsimkit.kernel.simulation", "hpcsimkit.experiments.parts.registry", "hpcsimkit.run"]
)
def test_nothing_slow_is_loaded_with(module: str) -> None:
    """What an import statement cannot show: somebody else's package may load a slow one."""
    code = f"import {module}, sys; print(*sorted({HEAVY - {'typer'}!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
