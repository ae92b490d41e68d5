"""What is installed: every file, importable and typed, from the root of the checkout and elsewhere."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("hpcsimkit", "policies", "agents", "workloads")
FIND_EVERYTHING = """
import importlib.util, sys
for name in sys.argv[1:]:
    print(importlib.util.find_spec(name).origin)
"""
IMPORT_EVERYTHING = """
import importlib, pkgutil, hpcsimkit
optional = {"torch", "gymnasium", "stable_baselines3", "sb3_contrib", "safetensors", "tensorboard"}
for module in pkgutil.walk_packages(hpcsimkit.__path__, "hpcsimkit."):
    if module.name.endswith(".__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name not in optional:
            raise
print(hpcsimkit.__file__)
"""


def run(*command: str | Path, cwd: Path, code: int = 0, **environment: str) -> str:
    """Run a command; returns what it printed, and fails with all of it if its exit code is another."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**clean, **environment}, capture_output=True, text=True
    )
    assert done.returncode == code, f"{command} in {cwd}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(source: Path) -> Path:
    """Build the wheel of a source tree, with the tools of this environment."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", cwd=source)
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


def product_files(root: Path) -> set[str]:
    """Every file that belongs into the wheel, under the name it is imported by."""
    found = set()
    for folder in FOLDERS:
        for base, folders, files in os.walk(root / folder):
            folders[:] = [f for f in folders if f != "__pycache__" and not Path(base, f).is_symlink()]
            names = {Path(base, file).relative_to(root) for file in files}
            names = {name for name in names if not Path(root, name).is_symlink()}
            found |= {name if folder == "hpcsimkit" else "hpcsimkit" / name for name in names}
    return {name.as_posix() for name in found if name.suffix != ".pyc"}


def content(wheel: Path) -> set[str]:
    """Names in a wheel, without its own description."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def source(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the package is built from, with the links between its folders."""
    copy = tmp_path_factory.mktemp("source")
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in FOLDERS:
        shutil.copytree(root / folder, copy / folder, symlinks=True, ignore=unwanted)
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(root / file, copy)
    return copy


@pytest.fixture(scope="module")
def source_without_links(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as git checks it out where it may not make links: each is a file that says where it leads."""
    copy = tmp_path_factory.mktemp("no_links") / "source"
    shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns("dist", "build", "*.egg-info"))
    for folder in FOLDERS[1:]:
        link = copy / "hpcsimkit" / folder
        link.unlink()
        link.write_text(f"../{folder}")
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    return build_wheel(source)


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a plain install puts into site-packages."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_links_lead_to_the_folders_of_the_top_level(root: Path) -> None:
    for folder in FOLDERS[1:]:
        link = root / "hpcsimkit" / folder
        assert link.samefile(root / folder)
        assert not link.is_symlink() or link.readlink() == Path("..", folder), "a clone needs a relative link"


def test_every_folder_with_modules_is_a_package(root: Path) -> None:
    for folder in FOLDERS:
        for module in (root / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module.parent} would be left out of the wheel"


def test_wheel_holds_every_file_and_nothing_else(root: Path, wheel: Path) -> None:
    assert content(wheel) == product_files(root)
    assert {"hpcsimkit/py.typed", "hpcsimkit/policies/__init__.py"} <= content(wheel)


def test_sdist_holds_the_product_and_no_tests(source: Path, root: Path, tmp_path: Path) -> None:
    """Some of the tests would be worse than none: they need data, configuration and each other."""
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns("dist", "build", "*.egg-info"))
    shutil.copytree(root / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("MANIFEST.in", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "constraints.txt"):
        shutil.copy(root / file, copy)
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", cwd=copy)
    (sdist,) = (copy / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert product_files(root) <= names
    assert {"constraints.txt", "CHANGELOG.md"} <= names
    assert not [name for name in names if name.startswith("tests")]


def test_wheel_declares_licence_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
        commands = archive.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert any(name.endswith("/LICENSE") for name in names)
    assert "License-Expression: BSD-3-Clause" in metadata
    assert "hpcsimkit = hpcsimkit.run:main" in commands


def test_wheel_is_the_same_without_links(source_without_links: Path, wheel: Path) -> None:
    assert content(build_wheel(source_without_links)) == content(wheel)


@pytest.mark.slow  # its content is that of the checkout, whose modules all tests import
def test_everything_in_the_wheel_imports(unpacked: Path, tmp_path: Path) -> None:
    printed = run(sys.executable, "-c", IMPORT_EVERYTHING, cwd=tmp_path, PYTHONPATH=str(unpacked))
    assert Path(printed.strip()).is_relative_to(unpacked)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A new virtual environment without hpcsimkit that sees the dependencies of this one."""
    dependencies = tmp_path / "dependencies"
    dependencies.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "hpcsimkit" not in package.name:
            (dependencies / package.name).symlink_to(package)
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=os.name != "nt")
    (site_packages(folder) / "dependencies.pth").write_text(str(dependencies))
    return folder


def site_packages(environment: Path) -> Path:
    scheme = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", scheme="venv", vars=scheme))


def install(environment: Path, *what: str | Path) -> None:
    """Install with the pip and the build tools of this environment, nothing downloaded."""
    pip = [sys.executable, "-m", "pip", "--python", environment, "install", "--quiet", "--ignore-installed"]
    run(*pip, "--no-deps", "--no-index", "--no-build-isolation", *what, cwd=environment)


def modules_of(root: Path) -> set[str]:
    """Every module of the product, by the name it is imported by."""
    files = {file.removesuffix(".py") for file in product_files(root) if file.endswith(".py")}
    return {file.removesuffix("/__init__").replace("/", ".") for file in files} - {"hpcsimkit"}


def check_commands(environment: Path, cwd: Path, expected_in: Path) -> None:
    """As a user types: the module, the console script, where all modules are; they import as those of the wheel."""
    commands = environment / ("Scripts" if os.name == "nt" else "bin")
    assert "compare" in run(commands / "python", "-m", "hpcsimkit.run", "--help", cwd=cwd)
    assert "compare" in run(commands / "hpcsimkit", "--help", cwd=cwd)
    found = run(commands / "python", "-c", FIND_EVERYTHING, *sorted(modules_of(ROOT)), cwd=cwd).splitlines()
    assert all(Path(place).is_relative_to(expected_in) for place in found)


def test_plain_install(environment: Path, source: Path, wheel: Path, tmp_path: Path) -> None:
    install(environment, wheel)
    check_commands(environment, cwd=tmp_path, expected_in=site_packages(environment))
    check_commands(environment, cwd=source, expected_in=source)
    check_own_policy(environment, tmp_path)


def check_own_policy(environment: Path, folder: Path) -> None:
    """The console script imports a policy from the working folder, and ends with 2 where there is none."""
    (folder / "mine.py").write_text(
        "from hpcsimkit.kernel.policy import Order\n\n"
        "class Smallest(Order):\n    def key(self, job):\n        return job.nodes\n"
    )
    script = environment / ("Scripts" if os.name == "nt" else "bin") / "hpcsimkit"
    compare = (script, "compare", "--jobs", "10", "--no-report", "--out", "out", "-p")
    assert "mine:Smallest" in run(*compare, "mine:Smallest", cwd=folder)
    run(*compare, "mine:Largest", cwd=folder, code=2)


@pytest.mark.parametrize("tree", ["source", pytest.param("source_without_links", marks=pytest.mark.slow)])
def test_editable_install(
    tree: str, environment: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source: Path = request.getfixturevalue(tree)
    install(environment, "--editable", source)
    check_commands(environment, cwd=tmp_path, expected_in=source)
    check_commands(environment, cwd=source, expected_in=source)


@pytest.mark.slow
def test_editable_install_from_the_folder_that_holds_a_clone(
    environment: Path, source: Path, tmp_path: Path
) -> None:
    """The clone has the name of the package; it must not be taken for a package without an ``__init__``."""
    clone = tmp_path / "hpcsimkit"
    shutil.copytree(
        source, clone, symlinks=True, ignore=shutil.ignore_patterns("dist", "build", "*.egg-info")
    )
    install(environment, "--editable", clone)
    check_commands(environment, cwd=tmp_path, expected_in=clone)


@pytest.mark.parametrize("door", ["", ".plots", ".rl", ".stats"])
def test_names_for_types_and_at_run_time_are_the_same(root: Path, door: str) -> None:
    """Each public name is imported for the sake of types, listed, and loaded on first use."""
    module = importlib.import_module(f"hpcsimkit{door}")
    tree = ast.parse(Path(str(module.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed | ({"__version__"} if not door else set()) == set(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module 'hpcsimkit{door}' has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018
