"""Every example of the documentation is executed, and what it is said to print is what it prints.

The blocks of a page run one after the other, in a folder of their own:

* a block of Python is executed, in one namespace a page; with ``>>>`` in it, as a doctest;
* a block of text right after it is what it prints, where ``...`` stands for anything;
* a block with a caption, or whose first line is a comment with a file name, is that file, and not executed;
* in a console block, lines after ``$`` are commands, and the lines below what they print; nothing below:
  whatever they print. The command line runs in this process, which saves the start of an interpreter and of
  PyTorch for each; a slow test runs those of the README as a user types them;
* in a block after the comment ``% numbers vary``, numbers may be others: what was learned depends on the processor.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas
import pytest

from hpcsimkit.run import main
from tests import little_slurm

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + [
    page for page in sorted(DOCS.rglob("*.md")) if not {"_build", "_generated"} & set(page.parts)
]
FENCE = re.compile(r"^( *```+)(\{code-block\} ?)?(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r"\A(?::caption:|#) (\S+\.\w+)\n\n?")
COMMANDS = ("python -m hpcsimkit.run", "ls", "head", "cat", "cd", "mkdir")
NOT_OURS = (
    "pip ",
    "git ",
    "source ",
    "python3 -m venv",
    "python -m pytest",
    "python -m sphinx",
    ".ci/run",
    "ruff ",
)
CHECKER = doctest.OutputChecker()
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
VARYING = "% numbers vary"
NUMBER = re.compile(r"[-+*]?(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]\d+)?")


class Block(NamedTuple):
    """A fenced block: its language, the file it is (or ""), its text, where it starts and what is before it."""

    language: str
    file: str
    text: str
    where: str
    follows_directly: bool
    varies: bool


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    end = 0
    for match in FENCE.finditer(text):
        body = textwrap.dedent(match[4])
        caption = CAPTION.match(body)
        if caption:
            body = body[caption.end() :]
        where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        between = text[end : match.start()].strip()
        varies = between.endswith(VARYING)
        follows = not between.removesuffix(VARYING).strip()
        yield Block(match[3], caption[1] if caption else "", body, where, follows, varies)
        end = match.end()


def check(want: str, got: str, where: str, *, varies: bool) -> None:
    if varies:
        want, got = NUMBER.sub("0", want), NUMBER.sub("0", got)
    assert CHECKER.check_output(want, got, LENIENT), f"{where} shows\n{want}\nbut what is printed is\n{got}"


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """Execute a block; returns what it printed."""
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, namespace, block.where, block.where, 0)
        report = io.StringIO()
        outcome = doctest.DocTestRunner(optionflags=LENIENT).run(test, out=report.write, clear_globs=False)
        assert not outcome.failed, report.getvalue()
        namespace.update(test.globs)
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, block.where, "exec"), namespace)
    return printed.getvalue()


def run_console(block: Block, folder: Path, *, as_typed: bool) -> None:
    """Run the commands of a block and compare what they print."""
    run = run_in_shell if as_typed else run_command
    session = re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)
    assert not session[0].strip(), f"{block.where}: a console block begins with `$ ` and a command"
    for part in session[1:]:
        command, _, want = part.partition("\n")
        if command.startswith(NOT_OURS):
            continue
        assert command.startswith(COMMANDS), f"{block.where}: the tests do not know how to run {command!r}"
        code, out, err = run(command, folder)
        may_fail = want.startswith("hpcsimkit: ")
        assert code == (2 if may_fail else 0), f"{block.where}: {command}\n{out}\n{err}"
        got = out + (err if may_fail else "")
        if want.strip():
            check(want, got, block.where, varies=block.varies)


def run_command(command: str, folder: Path) -> tuple[int, str, str]:
    words = shlex.split(command)
    if words[:3] != ["python", "-m", "hpcsimkit.run"]:
        return run_in_shell(command, folder)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as leaving,
    ):
        main(words[3:])
    assert isinstance(leaving.value.code, int)
    return leaving.value.code, out.getvalue(), err.getvalue()


def run_in_shell(command: str, folder: Path) -> tuple[int, str, str]:
    command = re.sub(r"^python ", f'"{sys.executable}" ', command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, capture_output=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, and are forgotten afterwards: another page may have its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, value in {"COLUMNS": "120", "NO_COLOR": "1", "MPLBACKEND": "Agg"}.items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


TRAINING = (
    "a_learner_of_your_own",
    "an_inspector",
    "learned_backfilling",
    "learned_from_your_log",
    "masked_ppo",
    "own_observation_and_reward",
    "train_a_scheduler",
    "train_dras",
)
"""Tutorials that train for long: their examples are slow tests."""

SLOW = {
    "docs/agents/dras.md",
    "docs/guides/from_a_laptop_to_a_cluster.md",
    "docs/tutorials/placement_matters.md",
    *(f"docs/tutorials/{name}.md" for name in TRAINING),
}
"""These, and further pages that train, or start clusters: what they show has quick tests elsewhere."""

AFTERNOON = DOCS / "guides" / "your_cluster_in_an_afternoon.md"
"""Guide with a month of 20 000 jobs: a slow test, and a quick one with fewer jobs."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[pytest.mark.slow] * (page == AFTERNOON or page.relative_to(ROOT).as_posix() in SLOW),
        )
        for page in PAGES
    ],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_examples(page: Path, empty_folder: Path, blank_pictures: None) -> None:
    check_examples(page, empty_folder, as_typed=False)


def test_the_afternoon_with_fewer_jobs(
    empty_folder: Path, blank_pictures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the guide runs; what they print on the whole month is compared by the slow test."""
    monkeypatch.setattr(little_slurm, "write", partial(little_slurm.write, days=15, jobs=500))
    monkeypatch.setattr(sys.modules[__name__], "check", lambda *_, **__: None)
    check_examples(AFTERNOON, empty_folder, as_typed=False)
    compared = pandas.read_csv(empty_folder / "compared" / "metrics.csv")
    assert compared["policy"].tolist() == ["recorded", "fcfs+easy", "slurm+easy"]
    partitions = {queue.name for queue in little_slurm.QUEUES}
    for folder, name in (("validated", "validation.csv"), ("more", "what-if.csv")):
        table = pandas.read_csv(empty_folder / folder / name).set_index(["by", "group"])
        assert set(table.loc["partition"].index) == partitions
    differences = table.loc["partition"].difference
    assert (differences.drop("gpu") == 0).all()


FEWER = {
    "--jobs 4000": "--jobs 1300",
    "[1600, 2000]": "[600, 900]",
    "total_timesteps = 16384": "total_timesteps = 1024",
    "steps = 16_384": "steps = 1024",
    "--skip 2000": "--skip 900",
    "--sequences 15": "--sequences 3",
    "sequences = 12": "sequences = 3",
}
"""Numbers of the tutorial on a learner, replaced by smaller ones."""


def test_a_learner_with_fewer_jobs(
    empty_folder: Path, blank_pictures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the tutorial runs; what they print is compared by the slow test."""
    page, known = DOCS / "tutorials" / "a_learner_of_your_own.md", blocks

    def small(page: Path) -> Iterator[Block]:
        for block in known(page):
            text = block.text
            for old, new in FEWER.items():
                text = text.replace(old, new)
            yield block._replace(text=text)

    written = page.read_text(encoding="utf-8")
    assert [old for old in FEWER if old not in written] == []
    monkeypatch.setattr(sys.modules[__name__], "blocks", small)
    monkeypatch.setattr(sys.modules[__name__], "check", lambda *_, **__: None)
    check_examples(page, empty_folder, as_typed=False)
    evaluated = pandas.read_csv(empty_folder / "judged" / "evaluation.csv")
    assert set(evaluated.policy) == {"agent", "random agent", "fcfs+easy", "sjf+easy", "f1+easy"}
    report = (empty_folder / "table" / "report.md").read_text()
    for row in ("f1+easy", "random agent", "agent 0", "agent 1"):
        assert f"\n| {row} | " in report
    assert "--allow-code parts.py" in report


@pytest.mark.slow
def test_the_readme_as_typed(empty_folder: Path) -> None:
    check_examples(ROOT / "README.md", empty_folder, as_typed=True)


def check_examples(page: Path, empty_folder: Path, *, as_typed: bool) -> None:
    """Run a page's examples and compare what they print."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    printed = None
    for block in blocks(page):
        if block.file:
            (empty_folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (empty_folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = run_python(block, namespace)
            continue
        elif block.language == "console":
            run_console(block, empty_folder, as_typed=as_typed)
        elif block.language == "text" and block.follows_directly and printed is not None:
            check(block.text, printed, block.where, varies=block.varies)
        printed = None


def test_numbers_vary_and_nothing_else_does() -> None:
    shown = "agent  4 456  3 598 to 5 315  -925.7 (-17.2 %)  *8.0e-05"
    check(shown, "agent  10 456  998.2 to 5.3  12 (+0.1 %)  0.2", "a page:1", varies=True)
    for printed in ("agent  4 456", shown.replace("to", "or"), shown.replace("-17.2", "nan")):
        with pytest.raises(AssertionError, match="a page:1 shows"):
            check(shown, printed, "a page:1", varies=True)
    with pytest.raises(AssertionError, match="a page:1 shows"):
        check(shown, shown.replace("4 456", "4 457"), "a page:1", varies=False)


def test_every_page_is_reached_from_the_index() -> None:
    listed = set()
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            names = [line for line in tree.splitlines() if line.strip() and not line.startswith(":")]
            listed |= {os.path.normpath(page.parent / f"{name}.md") for name in names}
    pages = {os.path.normpath(page) for page in PAGES if page.is_relative_to(DOCS)}
    assert pages - listed == {os.path.normpath(DOCS / "index.md")}


def test_contributing_names_paths_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:agents|docs|hpcsimkit|policies|tests|workloads)/[\w/.*]+)`", text))
    assert len(names) > 10
    assert [name for name in sorted(names) if not list(ROOT.glob(name))] == []


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that writes the generated pages."""
    monkeypatch.syspath_prepend(DOCS)
    yield importlib.import_module("generate")
    for name in [name for name in sys.modules if name == "generate" or name.partition(".")[0] == "pages"]:
        del sys.modules[name]


def test_generated_reference_names_everything(generate: ModuleType) -> None:
    from hpcsimkit.experiments.parts.catalogue import entries
    from hpcsimkit.results.metrics import METRICS

    metrics, policies, commands = (
        getattr(generate, f"{name}_page")() for name in ("metrics", "policies", "cli")
    )
    own = [name for name in METRICS if ":" not in name]  # without those that other tests have added
    assert [name for name in own if f"| `{name}` |" not in metrics] == []
    assert [entry.name for entry in entries() if f"| `{entry.name}` |" not in policies] == []
    assert ":class:" not in policies
    for text in ("JSSPP 1995", "{class}`~hpcsimkit.kernel.reservation.EASY`", "| `easy-k` | `count` | `2` |"):
        assert text in policies
    for command in ("compare", "describe", "generate", "parts", "plot"):
        assert f"## `{command}`" in commands


def test_generated_keys_of_training_files(generate: ModuleType) -> None:
    from hpcsimkit.agents.training.catalogue import TRAINERS
    from hpcsimkit.experiments.training.training import Training

    page = generate.training_page()
    tables = {*Training.inner, "encoder", "mask", "reward", "trainer", "problem", "seats"}
    for key in set(Training.model_fields) - tables:
        assert page.count(f"\n| `{key}` | ") >= 1, key
    for name in (*tables, *TRAINERS):
        assert f"`[{name}]`" in page or f"| `{name}` | " in page, name
    assert "| `clip_range` | `0.2` | number >= 0.0 | Clipping range epsilon" in page
    assert "| `train_share` |  | number > 0, <= 1 | Share of each log's jobs" in page
    assert '| `kind` | `"dense"` | `"dense"`, `"slots"` |' in page
    assert not [line for line in page.splitlines() if re.match(r"\| `.*\|  \|$", line)], (
        "a key without a word"
    )


def test_all_modules_are_in_the_reference(generate: ModuleType, tmp_path: Path) -> None:
    generate.write_all(tmp_path)
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (tmp_path / "api").glob("*.rst")}
    for package, module in (
        ("hpcsimkit.kernel", "simulation"),
        ("hpcsimkit.policies", "orders"),
        ("hpcsimkit.workloads.readers", "swf"),
        ("hpcsimkit.agents.dras", "settings"),
    ):
        assert f".. automodule:: {package}.{module}\n" in pages[package]


def test_the_public_api_has_everything_that_the_package_exports(generate: ModuleType) -> None:
    import hpcsimkit
    from hpcsimkit import plots, rl, stats

    page = generate.public_page()
    missing = [name for name in hpcsimkit.__all__ if f".{name}` | `hpcsimkit` |" not in page]
    assert missing == ["METRICS", "__version__", "plots", "rl", "stats"]
    others = [name for module in (plots, rl, stats) for name in module.__all__]
    missing = [name for name in others if f".{name}` | `hpcsimkit" not in page]
    assert missing == ["Observation", "Valid", "METRICS"], "types and a table"
    assert 150 <= page.count("| {") <= 240
    assert not re.search(r"\|  \|$", page, re.MULTILINE), "a name without a description"


PLACES = re.compile(r"\{(?:class|func|meth|attr|exc|data|mod)\}`~?(?:[^`<]*<)?([\w.]+)>?`")
"""The object to which a role leads."""


def test_guides_and_tutorials_lead_to_public_names(generate: ModuleType) -> None:
    """Their readers never land in the internals."""
    from pages.public_api import public_names

    known = {each.place for each in public_names()}

    def is_public(place: str) -> bool:
        module, _, name = place.rpartition(".")
        if module in known:  # a method
            return True
        found = getattr(importlib.import_module(module), name)
        return f"{found.__module__}.{found.__name__}" in known

    pages = [DOCS / "index.md", DOCS / "faq.md", *DOCS.glob("guides/*.md"), *DOCS.glob("tutorials/*.md")]
    found = [(page.name, place) for page in pages for place in PLACES.findall(page.read_text("utf-8"))]
    assert len(found) > 100
    assert [each for each in found if not is_public(each[1])] == []


def test_each_public_name_has_a_page(generate: ModuleType) -> None:
    """With its import, its description, where it is defined and, but for one, an example."""
    pages = generate.name_pages()
    assert len(pages) > 200, "no two names are equal"
    for name, text in pages.items():
        assert re.search(r"^   from hpcsimkit\S* import \w+$", text, re.MULTILINE), name
        assert re.search(r"^\.\. auto(class|function|exception):: hpcsimkit\.", text, re.MULTILINE), name
        assert re.search(r"\w+\.py(``)?, line \d+", text), name
    from pages.public_api import example_of, has_example, public_names

    without = [
        each.name for each in public_names() if not has_example(each.thing) and not example_of(each.name)
    ]
    assert without == ["ProblemRun"], "a run of a training with workers"
