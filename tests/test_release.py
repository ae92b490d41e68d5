"""The files of a release agree with each other: versions, facts of the owner, requirements, workflows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit import __version__

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / ".release"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES_IN_CONDA = {"matplotlib": "matplotlib-base"}


def fill_in(*flags: str, folder: Path = ROOT) -> tuple[int, str]:
    command = [sys.executable, folder / ".release" / "fill_in.py", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that are filled in."""
    shutil.copytree(RELEASE, tmp_path / ".release")
    (tmp_path / "hpcsimkit").mkdir()
    (tmp_path / "docs" / "notebooks").mkdir(parents=True)
    for name in (
        "pyproject.toml",
        "CITATION.cff",
        "CHANGELOG.md",
        "hpcsimkit/_version.py",
        "docs/notebooks/index.md",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, tmp_path / "docs" / "notebooks")
    return tmp_path


def test_the_files_are_filled_in() -> None:
    assert fill_in("--check") == (0, "")


def test_an_owner_fills_in_one_file(copy: Path) -> None:
    facts = copy / ".release" / "project.toml"
    code, message = fill_in("--release", folder=copy)
    assert (code, "OWNER is a placeholder" in message) == (1, True)
    text = facts.read_text().replace("OWNER", "someone")
    facts.write_text(
        text.replace('name = "the hpcsimkit authors"', 'given-names = "Ada"\nfamily-names = "Byron"')
    )
    code, message = fill_in("--check", folder=copy)
    assert code == 1
    assert "pyproject.toml, CITATION.cff, .release/conda/recipe.yaml, docs/notebooks/index.md" in message
    assert fill_in(folder=copy) == (0, "")
    assert fill_in("--release", folder=copy) == (0, "")
    project = tomllib.loads((copy / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Issues"] == "https://github.com/someone/hpcsimkit/issues"
    assert project["authors"][0]["name"] == "Ada Byron"
    cited = yaml.safe_load((copy / "CITATION.cff").read_text())
    assert cited["authors"] == [{"given-names": "Ada", "family-names": "Byron"}]
    assert "github.com/someone/hpcsimkit" in (copy / "docs/notebooks/index.md").read_text().replace(
        "/gh/", "/github.com/"
    )


def test_versions_agree() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    assert (
        yaml.safe_load((RELEASE / "conda" / "recipe.yaml").read_text())["context"]["version"] == __version__
    )
    headings = re.findall(r"^## \[(.*?)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [(version, date) for version, date in headings if version != "Unreleased"]
    assert versions[0][0] == __version__, "the changelog has a section for this version"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", versions[0][1])


def test_the_conda_recipe_has_the_requirements_of_the_package() -> None:
    recipe = yaml.safe_load((RELEASE / "conda" / "recipe.yaml").read_text())
    needed = {f"python {PROJECT['requires-python']}"}
    for each in PROJECT["dependencies"]:
        name, limit = re.fullmatch(r"([\w-]+)(.*)", each).groups()
        needed.add(f"{NAMES_IN_CONDA.get(name, name)} {limit}")
    assert set(recipe["requirements"]["run"]) == needed


def test_workflows_cover_versions_and_systems() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]
    versions = set(jobs["everything"]["strategy"]["matrix"]["python"])
    included = jobs["tests"]["strategy"]["matrix"]["include"]
    versions |= {each["python"] for each in included}
    classified = {
        each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)
    }
    assert versions == classified == {"3.11", "3.12", "3.13", "3.14"}
    assert {each["system"].partition("-")[0] for each in included} == {"ubuntu", "macos", "windows"}
    assert {"run": ".ci/run"} in jobs["everything"]["steps"]


@pytest.mark.parametrize("name", ["checks", "release"])
def test_workflows_run_files_that_exist(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    named = {word for line in lines for word in re.findall(r"(?<!\S)\.(?:release|ci)/\w+(?:\.py)?", line)}
    assert named
    assert [word for word in sorted(named) if not (ROOT / word).exists()] == []
    assert os.access(RELEASE / "try_out", os.X_OK)


def test_the_hosted_documentation_and_images_name_extras_that_exist() -> None:
    extras = set(PROJECT["optional-dependencies"])
    (method,) = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())["python"]["install"]
    assert set(method["extra_requirements"]) <= extras
    for path in (RELEASE / "Dockerfile", ROOT / ".binder" / "requirements.txt"):
        (named,) = re.findall(r"(?<![\w/])\.\[([\w,]+)\]", path.read_text())
        assert set(named.split(",")) <= extras


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_what_is_uploaded_runs_in_an_empty_folder(kind: str, tmp_path: Path) -> None:
    """Needs a package index, for the libraries of a fresh environment."""
    subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", tmp_path, ROOT], check=True
    )
    (file,) = tmp_path.iterdir()
    environment = {**os.environ, "PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([RELEASE / "try_out", file], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{file.name}: usable\n")
