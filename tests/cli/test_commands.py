"""`describe`, `generate`, `parts`, `policies`, `plot`, `--help`, `--version`."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from itertools import islice

import numpy as np
import pytest
import typer

from hpcsimkit._version import __version__
from hpcsimkit.agents.catalogue import MASKS
from hpcsimkit.cli import groups
from hpcsimkit.cli.flags import OF_CLUSTERS, OF_JOBS, OF_RUNS
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.catalogue import entries
from hpcsimkit.io import catalogue
from hpcsimkit.run import app
from hpcsimkit.workloads import read_swf

COMMANDS = [
    "compare", "describe", "evaluate", "generate", "generate lublin", "generate mimic", "parts", "policies",
    "plot", "reproduce", "train",
]  # fmt: skip


# --- help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_everywhere(cli, name) -> None:
    outcome = cli(*name.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"Usage: python -m hpcsimkit.run {name}".rstrip())
    if name != "generate":
        assert f"Examples:\n    python -m hpcsimkit.run {name}".rstrip() in outcome.out


@pytest.mark.slow
def test_examples_are_command_lines(cli, shared, tmp_path) -> None:
    """The examples of the help texts, on the beginning of a real log of the name they use."""
    with gzip.open(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz", "rb") as log:
        (tmp_path / "KTH-SP2.swf.gz").write_bytes(gzip.compress(b"".join(islice(log, 2000))))
    (tmp_path / "mymodule.py").write_text("from hpcsimkit.policies import SJF as MyPolicy\n")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "mine.py").write_text("from hpcsimkit.policies import SJF as Mine\n")
    (tmp_path / "shared" / "experiment.toml").write_text("policies = ['shared/mine.py:Mine']\njobs = 200\n")
    (tmp_path / "machines.csv").write_text("MachineName,TotalCPUs,TotalGPUs\nnode1,8,2\n")
    (tmp_path / "day.csv").write_text("ReqCPUs,ReqGPUs,ActualDuration,Submit\n4,1,60,0\n8,0,60,5\n")
    day = shared / "slurm" / "day"
    files = {
        "nodes.txt": "snapshot/nodes.txt",
        "partitions.txt": "snapshot/partitions.txt",
        "march.sacct": "day.sacct",
    }
    for name, file in files.items():
        (tmp_path / name).write_bytes((day / file).read_bytes())
    examples = [
        line.strip().removeprefix("python -m hpcsimkit.run").split()
        for name in ("compare", "describe", "generate lublin", "generate mimic")
        for line in cli(*name.split(), "--help").out.split("Examples:")[1].splitlines()
        if line.strip()
    ]
    assert len(examples) >= 6
    fewer = {"10000": "300", "5000": "300", "60": "10"}  # jobs and days
    for words in examples:
        example = [fewer.get(word, word) for word in words]
        short = ["--jobs", "200"] if "--jobs" not in example and "toml" not in " ".join(example) else []
        quick = ["--no-report"] if example[0] == "compare" else []
        outcome = cli(*example, *short, *quick)
        assert (outcome.code, outcome.err) == (0, ""), example


def test_help_loads_nothing_heavy(command, environment, tmp_path) -> None:
    code = "import sys, hpcsimkit.run as r\ntry: r.main(['compare', '--help'])\nexcept SystemExit: print(*sys.modules)"
    loaded = subprocess.run(
        [command[0], "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    ).stdout.splitlines()[-1].split()  # fmt: skip
    assert {"typer", "hpcsimkit.run"} <= set(loaded)
    assert not {"numpy", "pandas", "pyarrow", "rich", "matplotlib", "torch", "simpy"} & set(loaded)


def test_version(cli) -> None:
    assert cli("--version") == (0, f"hpcsimkit {__version__}\n", "")


DEFAULT = re.compile(r"\[([^\[\]]*)\]$")
"""The default at the end of a description."""

CLAUSE = re.compile(r"\b(that|those|they|not|no|as|is|are)\b")
"""Words of a default that is described instead of given: [auto], [unset] or [none] with a sentence before."""


def each_option() -> Iterator[tuple[str, str, str]]:
    """Yield the command, the parameter and the description of every option that is shown."""
    program = typer.main.get_command(app)
    groups = [("", program), ("generate ", program.commands["generate"])]
    for prefix, group in groups:
        for name, command in group.commands.items():
            context = program.context_class(command, info_name=name)
            for each in command.get_params(context):
                record = each.get_help_record(context)
                if record is not None and each.param_type_name == "option":
                    yield f"{prefix}{name}", each.name, record[1]


def test_defaults_are_values() -> None:
    found = {(command, name): DEFAULT.search(text) for command, name, text in each_option()}
    defaults = {where: match[1] for where, match in found.items() if match}
    assert len(defaults) > 200
    assert {"auto", "unset", "none", "all", "0", "run"} <= set(defaults.values())
    assert {where: text for where, text in defaults.items() if CLAUSE.search(text)} == {}


def test_every_shared_option_has_a_group() -> None:
    """An option of several commands is looked for under its group, and no group names what is nowhere."""
    commands: dict[str, set[str]] = {}
    for command, name, _ in each_option():
        commands.setdefault(name, set()).add(command)
    known = set().union(*groups.OPTIONS.values())
    assert sum(map(len, groups.OPTIONS.values())) == len(known), "an option is in one group"
    assert known - set(commands) == set()
    apart = {name for name, of in commands.items() if len(of) > 2} - known
    assert apart == {"policy", "policies", "help"}


LEFT_OUT = {
    "train": {*OF_JOBS, *OF_CLUSTERS} - {"allow_code"},  # keys of its file
    "learn": {"load_factor"},  # a study changes the load itself
    "validate": {"load_factor"},  # a record has the load that it has
    "explain": {*OF_CLUSTERS} - {"allow_code"},  # decisions of one pipeline
}
"""Shared options that a command does not take."""


@pytest.mark.parametrize(
    "command",
    ["compare", "sweep", "validate", "predict", "advise", "what-if", "explain", "evaluate", "learn", "train"],
)
def test_commands_that_simulate_share_one_base_of_options(command: str) -> None:
    options = {name for of, name, _ in each_option() if of == command}
    base = {*OF_JOBS, *OF_CLUSTERS, *OF_RUNS}
    assert base - options == LEFT_OUT.get(command, set())


def test_help_is_in_groups(cli) -> None:
    headings = re.findall(r"^(\w+):$", cli("compare", "--help").out, re.MULTILINE)
    assert headings == ["Arguments", "Options", "Input", "Cluster", "Rules", "Output", "Execution"]
    headings = re.findall(r"^(\w+):$", cli("--help").out, re.MULTILINE)
    assert headings == ["Options", "Simulate", "Analyse", "Learn", "Tools"], "each command has a group"


def test_a_former_name_works_and_says_so(cli) -> None:
    former, now = cli("policies"), cli("parts", "policies")
    assert (former.code, former.out) == (0, now.out)
    assert former.err == (
        "hpcsimkit: `policies` has become `parts policies`; the former name works until version 1.1\n"
    )
    assert "\n  policies " not in cli("--help").out


# --- policies --------------------------------------------------------------------------------------------


def test_policies_are_all_listed_and_can_be_made(cli) -> None:
    lines = cli("parts", "policies").out.splitlines()
    for entry in entries():
        line = next(line for line in lines if line.split(",")[0].split()[0:1] == [entry.name])
        assert entry.kind in line
        if entry.kind in ("order", "pipeline"):
            registry.make(entry.name)
    assert not [line for line in lines if ":class:" in line]


# --- parts -----------------------------------------------------------------------------------------------


def test_parts_of_a_kind(cli) -> None:
    lines = cli("parts", "mask").out.splitlines()
    assert [line.split()[:3] for line in lines] == [["mask", name, "hpcsimkit"] for name in MASKS]
    assert lines[0].endswith("Action 0 accepts the job under inspection, action 1 rejects it.")


def test_all_parts_have_a_description(cli) -> None:
    parts = json.loads(cli("parts", "--json").out)
    assert {"order", "encoder", "mask", "reward", "network", "algorithm"} <= {part["kind"] for part in parts}
    assert not [part["name"] for part in parts if not part["summary"]]
    assert len(cli("parts").out.splitlines()) == len(parts)


def test_parts_of_another_distribution(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", "fractions:Fraction", "hpcsimkit.episodes")
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point] * (group == point.group))
    first, second, third = cli("parts", "episodes").out.split()[:3]
    assert (first, second, third) == ("episodes", "theirs", "fractions")


def test_parts_of_an_unknown_or_an_empty_kind(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        cli("parts", "encodr").line()
        == "unknown kind of parts 'encodr'; nearest: encoder, inspector, network"
    )
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [])
    assert cli("parts", "episodes") == (0, "", "")


# --- describe --------------------------------------------------------------------------------------------


@pytest.mark.pictures
def test_describe_by_hand(cli, log, tmp_path) -> None:
    out = cli("describe", log, "--out", "deep/tiny.svg").out
    shown = {tuple(line.rsplit(maxsplit=1)) for line in out.splitlines() if line.startswith("  ")}
    assert ("  jobs", "5") in shown
    assert ("  larger than the machine (jobs)", "1") in shown
    assert ("  machine [nodes]", "8") in shown
    used = 50 * 4 + 50 * 8 + 20 * 2 + 10 * 2 + 5 * 9
    assert ("  offered load", f"{used / (8 * 12):.4g}") in shown
    assert "picture: deep/tiny.svg" in out
    assert "<svg" in (tmp_path / "deep" / "tiny.svg").read_text()


def test_describe_draws_into_results(cli, log, tmp_path) -> None:
    assert cli("describe", log, "-q") == (0, "", "")
    assert (tmp_path / "results" / "tiny.png").read_bytes().startswith(b"\x89PNG")
    assert cli("describe", log, "--no-picture", "--jobs", 2).out.count("picture") == 0


def test_describe_needs_no_size_of_the_machine(cli, log) -> None:
    log.write_text(log.read_text().replace("; MaxProcs: 8\n", ""))
    assert "unknown" in cli("describe", log, "--no-picture").out


def test_describe_says_what_was_skipped(cli, log) -> None:
    log.write_text(log.read_text() + "oops\n")
    assert "malformed line (first: line 7: 'oops')" in cli("describe", log, "--no-picture").out


# --- generate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.swf", "x.swf.gz"])
def test_generate_lublin(cli, tmp_path, name) -> None:
    flags = ["--nodes", 64, "--jobs", 500, "--seed", 1, "--load", 0.7]
    assert cli("generate", "lublin", *flags, "-o", name).out.endswith(f"written: {name}\n")
    workload = read_swf(tmp_path / name)
    assert (len(workload), workload.machine_size) == (500, 64)
    assert workload.offered_load() == pytest.approx(0.7, rel=0.01)
    assert (workload.requested_time >= workload.run_time).all()
    cli("generate", "lublin", *flags, "-o", f"again-{name}", "-q")
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()
    cli("generate", "lublin", *flags[:-4], "--seed", 2, "-o", f"other-{name}")
    assert not np.array_equal(read_swf(tmp_path / f"other-{name}").run_time, workload.run_time)


def test_generate_without_estimates(cli, tmp_path) -> None:
    cli("generate", "lublin", "--jobs", 50, "--no-estimates", "-o", "x.swf", "-q")
    workload = read_swf(tmp_path / "x.swf")
    assert np.array_equal(workload.requested_time, np.maximum(workload.run_time, 1))


def test_built_in_workload_as_a_file_gives_the_same_schedule(cli, tmp_path) -> None:
    cli("generate", "lublin", "--jobs", 200, "--load", 0.9, "-o", "x.swf.gz", "-q")
    cli("compare", "x.swf.gz", "-p", "fcfs+easy", "--no-report", "--out", "file")
    cli("compare", "--jobs", 200, "-p", "fcfs+easy", "--no-report", "--out", "made")
    table = "jobs/fcfs+easy.csv"
    assert (tmp_path / "file" / table).read_bytes() == (tmp_path / "made" / table).read_bytes()


# --- plot ------------------------------------------------------------------------------------------------


@pytest.mark.pictures
def test_plot_draws_again(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs", "--no-report", "--out", "out")
    outcome = cli("plot", "out")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "out/report.html"
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
