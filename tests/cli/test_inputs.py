"""Inputs that are too large, no files, or meant to harm: one clear line, exit code 2, in little memory."""

from __future__ import annotations

import gzip
import json
import logging
import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tomllib import TOMLDecodeError

import numpy as np
import pytest

from hpcsimkit import Machines, Simulation, make, workloads
from hpcsimkit.agents.networks.model_file import write_model
from hpcsimkit.cli.command import Command
from hpcsimkit.errors import ScheduleError, UsageError, WorkloadError
from hpcsimkit.io.budget import LIMITS, VARIABLE, limit_of, raise_limits, restored_limits
from hpcsimkit.io.documents import toml_values
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import memory_bytes
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab.orders import RecordedMultifactor
from hpcsimkit.results.result import Result
from hpcsimkit.run import _parser
from hpcsimkit.workloads import burst, read_log, read_swf
from hpcsimkit.workloads.readers.sacct_cells import gpu_type
from tests.fuzz.cases import _alarm

ROW = b"1 0 -1 5 1" + b" -1" * 13 + b"\n"
BOM = b"\xef\xbb\xbf"

# --- empty files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", BOM, BOM + b"\n", BOM + b" \r\n", b"\n\n", b"   "])
@pytest.mark.parametrize("form", ["openb", "philly", "eagle", "sacct", "job_table", "job_sets"])
def test_empty_tables(tmp_path, form, content) -> None:
    path = tmp_path / "empty.csv"
    path.write_bytes(content)
    with pytest.raises(WorkloadError) as error:
        getattr(workloads, f"read_{form}")(path)
    assert str(error.value) == f"{path}: a table with a header line is needed, found an empty file"


@pytest.mark.parametrize("name", ["log.swf", "table.csv", "machines.toml", "machines.csv"])
def test_a_byte_order_mark_alone_as_a_user_types_it(cli, tmp_path, name) -> None:
    (tmp_path / name).write_bytes(BOM)
    if name.startswith("machines"):
        line = cli("compare", "--machines", name).line()
    else:
        line = cli("describe", name).line()
    assert line.startswith(f"{name}:") and "found" in line


# --- numbers and nesting ---------------------------------------------------------------------------------


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.toml", f"seed = {DIGITS}\n", "at most 1000 digits in a whole number are accepted, found 5000"),
        ("e.toml", f"seed = 0x{'f' * 5000}\n", "at most 1000 digits in a whole number are accepted, found more"),
        ("e.toml", "seed = " + "[" * 50_000 + "]" * 50_000, "at most 50 levels of nested values are accepted, found more"),
        ("e.toml", "seed = " + "[" * 60 + "]" * 60, "at most 50 levels of nested values are accepted, found 51"),
        ("e.toml", "a." * 50_000 + "a = 1\n", "at most 50 levels of nested values are accepted, found 50000"),
        ("e.toml", "x = {" + "a." * 50_000 + "a = 1}\n", "at most 50 levels of nested values are accepted, found 50000"),
        ("e.toml", "#" * 2_000_000, "1048576 bytes in a line are accepted, found more"),
        ("e.toml", "# x\n" * 300_000, "at most 1048576 bytes in a TOML file are accepted, found 1200000"),
        ("e.toml", "[generate]\njobs = 1000000000000\n", "generate.jobs: at most 10000000 jobs or lines are accepted, found 1000000000000"),
        ("e.toml", "[[machines]]\ncount = 1000000000\ncpus = 4\n", "machines: at most 1000000 machines are accepted, found 1000000000"),
        ("m.toml", "[[machines]]\ncount = 1000000000\ncpus = 4\n", "m.toml: at most 1000000 machines are accepted, found 1000000000"),
        ("m.toml", "[[machines]]\ncount = 600000\ncpus = 4\n" * 2, "m.toml: at most 1000000 machines are accepted, found 1200000"),
        ("m.csv", f"MachineName,TotalCPUs\nnode1,{DIGITS}\n", "m.csv:2: at most 1000 digits in a whole number are accepted, found 5000"),
        ("m.toml", "[[machines]]\ncpus = " + DIGITS, "m.toml: at most 1000 digits in a whole number are accepted, found 5000"),
    ],
)  # fmt: skip
def test_more_than_any_file_needs(cli, tmp_path, name, text, message) -> None:
    (tmp_path / name).write_text(text)
    line = cli("compare", *(["--machines"] if name.startswith("m") else []), name).line()
    assert message in line and "--limit " in line
    assert len(line) < 250


def test_a_number_of_many_digits_in_a_header_is_no_machine_size(cli, tmp_path) -> None:
    (tmp_path / "x.swf").write_bytes(f"; MaxProcs: {DIGITS}\n; MaxNodes: 0007 nodes\n".encode() + ROW)
    assert read_swf(tmp_path / "x.swf").machine_size is None, "nodes are no processors"
    (tmp_path / "x.swf").write_bytes(f"; MaxProcs: {DIGITS}\n".encode() + ROW)
    assert (
        cli("compare", "x.swf").line()
        == "x.swf: the log names no machine size; say how many nodes: --nodes N"
    )


@pytest.mark.parametrize("arguments", [["generate", "lublin", "-o", "x.swf"], ["compare"], ["describe"]])
def test_more_jobs_than_memory_holds(cli, arguments) -> None:
    assert (
        "at most 10000000 jobs or lines are accepted, found 1000000000000"
        in cli(*arguments, "--jobs", 10**12).line()
    )


def test_more_mimicked_jobs_than_memory_holds(cli, log) -> None:
    line = cli("generate", "mimic", log, "-o", "x.swf", "--jobs", 10**12).line()
    assert line.startswith("--jobs: at most 10000000 jobs")


def test_a_machine_file_of_many_kinds_is_read_in_one_go(tmp_path) -> None:
    path = tmp_path / "m.toml"
    path.write_text("[[machines]]\ncpus = 1\n" * 2000)
    machines = Machines.read(path)
    assert (machines.names[0], machines.names[-1], len(machines)) == ("node1", "node2000", 2000)


def test_machines_are_numbered_on_as_if_added_one_by_one() -> None:
    parts = [
        Machines(names, ["cpus"], [[1]] * len(names))
        for names in (["a3", "a1"], ["a1", "b"], ["a2", "b", "a1"])
    ]
    one_by_one = parts[0] + parts[1] + parts[2]
    assert Machines.joined(parts) == one_by_one
    assert one_by_one.names == ("a3", "a1", "a2", "b", "a4", "b1", "a5")


# --- periods and penalties -------------------------------------------------------------------------------


def test_whole_numbers_that_no_float_holds_are_one_line(cli, tmp_path) -> None:
    (tmp_path / "x.toml").write_text(f'jobs = 5\nload_factor = {10**400}\npolicies = ["fcfs"]\n')
    assert cli("compare", "x.toml").line() == "x.toml:2: load_factor must be a number of at most 300 digits"
    (tmp_path / "t.toml").write_text(f'policy = "fcfs+easy"\n[trainer]\nlearning_rate = {10**400}\n')
    assert (
        cli("train", "t.toml").line()
        == "t.toml:3: trainer.learning_rate must be a number of at most 300 digits"
    )


ENDLESS = "9" * 5000
"""A number of more digits than `int` reads."""


@pytest.mark.parametrize("digits", [ENDLESS, "\u00b2", "--5"])
def test_digits_that_are_no_number_are_one_line(cli, tmp_path, digits) -> None:
    """In cells and values that begin like a number."""
    jobs = f"JobName,Submit,ActualDuration,ReqCPUs,Dependency\na,0,5,1,\nb,1,5,1,afterok:{digits}\n"
    files = {
        "jobs.csv": jobs,
        "m.csv": "MachineName,TotalCPUs\nn1,8\n",
        "counts.csv": f"start,end,nodes\n1,5,{digits}\n",
        "names.csv": f"start,end,machine\n1,5,{digits}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for command, flags, message in (
        ("compare", ("--gates", "log"), "fcfs: jobs:3: job b depends on job "),
        ("compare", ("--failures", "counts.csv"), "counts.csv: outages are needed, found none: 1 nodes not under"),
        ("compare", ("--failures", "names.csv"), "fcfs: names.csv: machines of Machines(1: 8 cpus) are needed, "),
        ("compare", ("--begin-at", digits), "--begin-at: a time such as 2024-01-31T23:59:59 needed, found "),
        ("sweep", ("--axis", f"seed=0:{digits}"), "--axis: seed must be a valid integer, found '0:"),
        ("sweep", ("--axis", f"period={digits} weeks"), "--axis: a duration such as '4 weeks' or 3600 [s] is"),
    ):  # fmt: skip
        outcome = cli(
            command, "jobs.csv", "--machines", "m.csv", "-p", "fcfs", *flags, "--no-report", "--out", "x"
        )
        assert outcome.code == 2
        assert outcome.err.removeprefix("hpcsimkit: ").startswith(message), outcome.err
        assert outcome.err.count("\n") == 1


def test_the_longest_window(cli, log) -> None:
    """A number of weeks has digits enough for a time that is beyond all others."""
    line = cli("sweep", log.name, "-p", "fcfs", "--axis", f"period={'9' * 18} weeks").line()
    assert line.startswith("--axis: a duration of at most 100000000000 s is needed, found '99")


def test_sizes_of_a_header_that_are_none_are_not_read(tmp_path) -> None:
    for size in ("1" + ",000" * 1500, "1.5k"):
        jobs = "1 0 7 5 1 -1 -1 1 5 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
        (tmp_path / "x.swf").write_text(f";MaxProcs: {size}\n{jobs}")
        workload = read_swf(tmp_path / "x.swf")
        assert workload.machine_size is None
        assert Simulation(workload, Pipeline(RecordedMultifactor()), 4).run().start_time.tolist() == [0]


def test_a_period_beyond_64_bits(cli, log) -> None:
    line = cli("compare", log, "--period", 10**20).line()
    assert line == f"--period must be less than or equal to 100000000000, found {10**20}"
    with pytest.raises(UsageError, match=r"^period needs a whole number of seconds from 1 to 10\^11, found"):
        Simulation(burst(3, np.random.default_rng(1), machine_size=4), make("fcfs"), period=10**20)


def test_the_longest_period_and_the_longest_run_still_make_a_result() -> None:
    workload = burst(3, np.random.default_rng(1), machine_size=4)
    result = Simulation(workload, make("fcfs"), period=10**11).run()
    assert result.finished.all()


@pytest.mark.parametrize("penalty", [1e30, 10**30, 2.0**63, float("nan")])
def test_a_penalty_beyond_64_bits(penalty) -> None:
    workload = burst(3, np.random.default_rng(1), machine_size=4)
    simulation = Simulation(
        workload, make("fcfs"), service_time=lambda job, seconds, allocation, cluster: penalty
    )
    with pytest.raises(ScheduleError, match="a penalty needs to be a number of seconds"):
        simulation.run()


# --- sizes of files --------------------------------------------------------------------------------------


def bomb(path: Path, part: bytes, times: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(times):
            file.write(part)


@pytest.mark.parametrize(
    ("part", "times", "message"),
    [
        (b"1" * 2**20, 64, "bomb.swf.gz:1: at most 1048576 bytes in a line are accepted, found more"),
        (b"1\n" * 2**20, 12, "bomb.swf.gz: at most 10000000 jobs or lines are accepted, found more"),
        (b"\0" * 2**20, 64, "bomb.swf.gz:1: at most 1048576 bytes in a line are accepted, found more"),
    ],
)
def test_bombs_are_refused_in_little_memory(tmp_path, part, times, message) -> None:
    bomb(tmp_path / "bomb.swf.gz", part, times)
    tracemalloc.start()
    try:
        with pytest.raises(WorkloadError) as error:
            read_swf(tmp_path / "bomb.swf.gz")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message in str(error.value)
    assert most < 64 * 2**20


def test_a_bomb_as_a_user_types_it_and_how_it_is_allowed(cli, tmp_path) -> None:
    bomb(tmp_path / "x.swf.gz", ROW * 100, 100)
    line = cli("describe", "x.swf.gz", "--no-picture", "--limit", "bytes=100kB").line()
    assert line == (
        "x.swf.gz: at most 100000 uncompressed bytes in a file are accepted, found more; "
        "if they are meant: --limit bytes=400000"
    )
    line = cli("describe", "x.swf.gz", "--no-picture", "--limit", "jobs=9_999").line()
    assert line.startswith("x.swf.gz: at most 9999 jobs or lines are accepted, found more")
    assert (
        cli("describe", "x.swf.gz", "--no-picture", "--limit", "jobs=10000", "--limit", "bytes=1MiB").code
        == 0
    )
    assert VARIABLE not in os.environ


def test_wide_tables(tmp_path, monkeypatch) -> None:
    (tmp_path / "wide.csv").write_text("Submit,ActualDuration,ReqCPUs\n" + "0,60,4\n" * 100)
    (tmp_path / "wide.sacct").write_text(
        "JobID|Submit|Elapsed|NCPUS\n" + "1|2024-01-01T00:00:00|60|4\n" * 100
    )
    monkeypatch.setenv(VARIABLE, "cells=150")
    for name in ("wide.csv", "wide.sacct"):
        with pytest.raises(WorkloadError, match="at most 150 cells in a table are accepted"):
            read_log(tmp_path / name)


def test_old_line_ends_are_lines(tmp_path) -> None:
    (tmp_path / "mac.swf").write_bytes(b"\r".join([ROW.strip()] * 40_000))
    assert len(read_swf(tmp_path / "mac.swf")) == 40_000


def test_a_saved_result_that_claims_to_be_huge(tmp_path, monkeypatch) -> None:
    path = tmp_path / "r.npz"
    Simulation(burst(3, np.random.default_rng(1), machine_size=4), make("fcfs")).run().save(path)
    assert len(Result.load(path)) == 3
    monkeypatch.setenv(VARIABLE, "bytes=3000")
    with pytest.raises(WorkloadError, match="at most 3000 uncompressed bytes in a file are accepted"):
        Result.load(path)


def test_a_results_folder_with_a_table_of_too_many_rows(cli, log, tmp_path, monkeypatch) -> None:
    assert cli("compare", log, "-p", "fcfs", "--no-report", "-q", "--out", "out").code == 0
    for limit in ("jobs=3", "bytes=2000"):
        assert f"--limit {limit.split('=')[0]}=" in cli("plot", "out", "--limit", limit).line()


# --- time: what a careless pattern would take the square of its length for -------------------------------


def within(seconds: float, action: Callable[[], object]) -> None:
    """Do something that takes a small part of a second, or hours."""
    with _alarm(seconds):
        action()


def test_long_words_take_no_longer_than_their_length(tmp_path) -> None:
    path = tmp_path / "x.swf"
    path.write_bytes(
        b"; MaxProcs: 4\n"
        + ROW
        + b"1" * 300_000
        + b"x\n"
        + b";" * 300_000
        + b"\n; "
        + b"a " * 400_000
        + b"\n"
    )
    within(60, lambda: read_swf(path))
    assert len(read_swf(path)) == 1
    with pytest.raises(UsageError, match="memory needs a number and a unit"):
        within(60, lambda: memory_bytes("1" + " " * 300_000 + "!"))
    within(60, lambda: gpu_type("gres/gpu:" * 30_000))
    for text in (
        "x" * 300_000,
        "a." * 150_000,
        '"' * 10**6,
        "[" * 10**6,
        "." * 10**6,
        " " * 10**6 + ".",
        "a=" * 150_000,
    ):
        with pytest.raises((TOMLDecodeError, WorkloadError)):
            within(60, lambda text=text: toml_values(text, "x.toml"))


def test_the_line_of_a_mistake_is_not_looked_for_for_hours(cli, tmp_path) -> None:
    (tmp_path / "e.toml").write_text("# a comment\n" * 20_000 + "seeed = 1\n")
    assert cli("describe", "e.toml").line().startswith("e.toml: seeed: unknown key")


def test_many_policies_are_compared_by_name_in_one_go(cli, tmp_path) -> None:
    names = ", ".join(f'"x{number}"' for number in range(60_000))
    (tmp_path / "e.toml").write_text(f"policies = [{names}]\n")
    assert "unknown policy 'x0'" in cli("compare", "e.toml").line()


def test_time_zones_beyond_any_clock(cli, tmp_path) -> None:
    for zone in ("9" * 30, "9" * 12, "-" + "9" * 5000, "1e9"):
        (tmp_path / "x.swf").write_bytes(f"; UnixStartTime: 843480031\n; TimeZone: {zone}\n".encode() + ROW)
        assert cli("describe", "x.swf", "--no-picture").code == 0


def test_names_of_time_zones_without_end(cli, tmp_path) -> None:
    for zone in ("a." * 5000, "a/" * 5000 + "b", "../../etc/passwd", "Europe." * 400):
        (tmp_path / "x.swf").write_bytes(
            f"; UnixStartTime: 843480031\n; TimeZoneString: {zone}\n".encode() + ROW
        )
        assert cli("describe", "x.swf", "--no-picture").code == 0


# --- no files --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_refused_at_once(cli, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name, found in {
            "pipe": "a pipe",
            "folder": "a directory",
            "socket": "a socket",
            "/dev/zero": "a device",
        }.items():
            for command in (["describe"], ["compare", "--machines"], ["generate", "mimic", "-o", "x.swf"]):
                assert cli(*command, name).line() == f"{name}: a file is needed, found {found}"


def test_a_results_folder_of_pipes(cli, log, tmp_path) -> None:
    assert cli("compare", log, "-p", "fcfs", "--no-report", "-q", "--out", "out").code == 0
    (tmp_path / "out" / "metrics.json").unlink()
    os.mkfifo(tmp_path / "out" / "metrics.json")
    assert cli("plot", "out").line() == "out/metrics.json: a file is needed, found a pipe"


def test_results_folders_name_only_files_of_their_own(cli, log, tmp_path) -> None:
    assert cli("compare", log, "-p", "fcfs", "--no-report", "-q", "--out", "out").code == 0
    file = tmp_path / "out" / "provenance.json"
    for name in ("../../secret", "/etc/passwd", None, 7, ["x"], ""):
        provenance = json.loads(file.read_text())
        provenance["policies"]["fcfs"]["file"] = name
        file.write_text(json.dumps(provenance))
        assert "names of files are needed" in cli("plot", "out").line()


def test_the_root_of_all_folders_is_no_results_folder(cli, log) -> None:
    line = cli("compare", log, "-p", "fcfs", "-q", "--out", "/").line()
    assert line == "/: a folder for the results is needed, found the root of all folders"


# --- what reaches the terminal ---------------------------------------------------------------------------

EVIL = "\x1b[31m\x1b]0;pwned\x07\u202e"


def test_control_characters_of_a_file_name_are_shown(cli, tmp_path) -> None:
    (tmp_path / f"{EVIL}.swf").write_bytes(b"; MaxProcs: 4\n" + ROW)
    for outcome in (
        cli("describe", f"{EVIL}.swf", "--no-picture"),
        cli("compare", f"{EVIL}.swf", "-p", "fcfs", "--no-report", "--out", EVIL),
    ):
        assert outcome.code == 0
        assert "\\x1b[31m\\x1b]0;pwned\\x07\\u202e" in outcome.out
        assert not any(letter in outcome.out for letter in "\x1b\x07\u202e")
    assert cli("describe", f"no{EVIL}.swf").line() == r"no\x1b[31m\x1b]0;pwned\x07\u202e.swf: no such file"


def test_a_line_end_in_a_file_name_makes_no_second_line(cli, tmp_path) -> None:
    (tmp_path / "a\nresults: b.swf").write_bytes(b"; MaxProcs: 4\n" + ROW)
    out = cli("generate", "mimic", "a\nresults: b.swf", "-o", "x.swf")
    assert len(out.err.splitlines()) == 1
    out = cli("compare", "a\nresults: b.swf", "-p", "fcfs", "--no-report", "--out", "o").out
    assert out.splitlines()[0].startswith("a\\nresults: b: 1 job kept")


def test_control_characters_of_a_header_and_of_cells_are_shown(cli, tmp_path) -> None:
    (tmp_path / "x.swf").write_bytes(
        f"; MaxProcs: 4\n; Note: {EVIL}\n; TimeZoneString: {EVIL}\n{EVIL}\n".encode() + ROW
    )
    outcome = cli("describe", "x.swf", "--no-picture")
    assert (outcome.code, "\x1b" in outcome.out + outcome.err) == (0, False)
    (tmp_path / "t.csv").write_text(f"Submit,ActualDuration,ReqCPUs,{EVIL}\n0,1,1,1\n")
    outcome = cli("describe", "t.csv", "--no-picture")
    assert (outcome.code, "\x1b" in outcome.out + outcome.err) == (0, False)


def test_control_characters_of_a_model_are_shown(cli, tmp_path) -> None:
    write_model(
        tmp_path / "m.hpcsim", {"x": np.zeros(1)}, {"encoder": EVIL, "mask": [EVIL], "network": {EVIL: EVIL}}
    )
    line = cli("compare", "-p", "agent:m.hpcsim").line()
    assert "\x1b" not in line and "\x07" not in line


LOUD = f'''
import logging
import warnings

from hpcsimkit import Order


class Loud(Order):
    """Warns, as a library might, of a name."""

    def key(self, job):
        warnings.warn({EVIL!r})
        logging.getLogger("library").warning({EVIL!r})
        return 0
'''


def test_warnings_of_libraries_are_escaped(cli, tmp_path, monkeypatch) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest
    code, _, err = cli("compare", "-p", "loud.py:Loud", "--jobs", 5, "--no-report", "-q", "--out", "out")
    assert code == 0 and err.replace("\n", "").isprintable()
    assert "hpcsimkit: UserWarning: \\x1b[31m\\x1b]0;pwned\\x07\\u202e (loud.py:" in err
    assert "hpcsimkit: library: \\x1b[31m\\x1b]0;pwned\\x07\\u202e\n" in err


@pytest.mark.pictures
def test_characters_without_a_glyph_are_escaped(cli, tmp_path) -> None:
    """matplotlib names those of the title of a picture."""
    (tmp_path / f"no{EVIL}.swf").write_text("1 0 1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    code, _, err = cli("describe", f"no{EVIL}.swf", "--nodes", 4, "-q", "-o", "out.png")
    assert code == 0 and "Glyph 7 (\\x07) missing" in err
    assert err.replace("\n", "").isprintable()


def test_long_names_are_cut(cli) -> None:
    line = cli("describe", "x" * 10_000 + ".swf").line()
    assert (
        len(line) < 300 and line.startswith("xxx") and " ... " in line and line.endswith("File name too long")
    )
    line = cli("compare", "-p", "y " * 10_000).line()
    assert len(line) < 1300


def test_output_in_ascii_escapes_what_it_cannot_say(shell, tmp_path, environment) -> None:
    (tmp_path / "é.swf").write_bytes(b"; MaxProcs: 4\n" + ROW)
    environment["PYTHONIOENCODING"] = "ascii"
    outcome = shell("describe", "é.swf", "--no-picture")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("\\xe9\n")


def test_a_name_that_is_no_unicode(cli) -> None:
    assert "\\udc80.swf" in cli("describe", "\udc80.swf").line()


# --- the command line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--seed", 1, "--seed", 2], "--seed"),
        (["compare", "--jobs", 5, "--jobs=5"], "--jobs"),
        (["compare", "-o", "a", "--out", "b"], "--out"),
        (["describe", "--nodes", 5, "--skip", 1, "--nodes", 6], "--nodes"),
        (["generate", "lublin", "-o", "a.swf", "-o", "b.swf"], "--out"),
        (["generate", "mimic", "x.swf", "-o", "a.swf", "--days", 1, "--days", 2], "--days"),
        (["train", "--algorithm", "ppo", "--algorithm", "a2c"], "--algorithm"),
        (["evaluate", "a", "b", "--sequences", 1, "--sequences", 2], "--sequences"),
        (["explain", "a", "--within", "b", "--within", "c"], "--within"),
        (["plot", "x", "--overview", "a.png", "--overview", "b.png"], "--overview"),
        (["reproduce", "dras", "--seed", 1, "--seed", 1], "--seed"),
    ],
)
def test_an_option_with_one_value_is_given_once(cli, tmp_path, arguments, option) -> None:
    assert cli(*arguments).line() == f"{option} is given 2 times; it takes one value"
    assert list(tmp_path.iterdir()) == []


def test_options_of_several_values_and_flags_may_be_repeated(cli, log) -> None:
    outcome = cli(
        "compare",
        log,
        "-p",
        "fcfs",
        "-p",
        "sjf",
        "--strict",
        "-q",
        "-q",
        "--nodes",
        9,
        "--no-report",
        "--no-report",
    )
    assert outcome.code == 0


def test_every_option_of_every_command_is_covered() -> None:
    """A command that is added without the class would silently take the last of two values."""
    group = _parser()
    commands = [command for name, command in group.commands.items() if name != "generate"]
    commands += group.commands["generate"].commands.values()
    assert len(commands) >= 11
    assert all(isinstance(command, Command) for command in commands)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("nosuch=5", "--limit needs NAME=NUMBER with a name of bytes, line, jobs,"),
        ("jobs", "--limit jobs needs a whole number of at least 1, found ''"),
        ("jobs=many", "--limit jobs needs a whole number of at least 1, found 'many'"),
        ("jobs=-1", "--limit jobs needs a whole number of at least 1, found '-1'"),
        ("jobs=0", "--limit jobs needs a whole number of at least 1, found '0'"),
        ("bytes=8XB", "unknown unit 'XB'"),
    ],
)
def test_limits_that_are_not_understood(cli, limit, message) -> None:
    assert message in cli("describe", "x.swf", "--limit", limit).line()


BILLION = 10**9


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("evaluate", "agent.hpcsim", "--sequences", BILLION), "--sequences: at most 10000 sampled sequences"),
        (("train", "t.toml"), "t.toml:2: validation.windows: at most 10000 sampled sequences"),
        (("generate", "lublin", "--jobs", BILLION, "-o", "x.swf"), "generate.jobs: at most 10000000 jobs"),
        (("generate", "mimic", "tiny.swf", "--jobs", BILLION, "-o", "x.swf"), "--jobs: at most 10000000 jobs"),
        (("compare", "--jobs", BILLION), "generate.jobs: at most 10000000 jobs"),
        (("sweep", "-p", "fcfs", "--axis", f"seed=0:{BILLION}"), "--axis: seed: count must be from 1 to 100000"),
    ],
)  # fmt: skip
def test_huge_numbers_are_refused_before_memory_is_taken(cli, log, arguments, line) -> None:
    Path("t.toml").write_text(f"[validation]\nwindows = {BILLION}\n")
    Path("tiny.swf").write_bytes(log.read_bytes())
    tracemalloc.start()
    try:
        found = cli(*arguments).line()
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
    assert found.startswith(line)
    assert f"found {BILLION}" in found


def test_a_limit_of_sequences_can_be_raised(cli) -> None:
    """The number is accepted then, and the next thing is looked at."""
    arguments = ("evaluate", "agent.hpcsim", "--sequences", 10_001)
    assert "found 10001; if they are meant: --limit sequences=10001" in cli(*arguments).line()
    assert "agent.hpcsim" in cli(*arguments, "--limit", "sequences=10001").line()


def test_limits_of_the_environment(cli, log, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, "jobs=3, machines=7")
    assert (limit_of("jobs"), limit_of("machines"), limit_of("digits")) == (3, 7, LIMITS["digits"].default)
    assert "at most 3 jobs or lines" in cli("describe", log).line()
    assert cli("describe", log, "--no-picture", "--limit", "jobs=6").code == 0
    assert os.environ[VARIABLE] == "jobs=3, machines=7"
    monkeypatch.setenv(VARIABLE, "jobs=three")
    assert "--limit jobs needs a whole number of at least 1, found 'three'" in cli("describe", log).line()


def test_limits_are_taken_back() -> None:
    with restored_limits():
        raise_limits(["jobs=1", "jobs=2"])
        assert limit_of("jobs") == 2
    assert limit_of("jobs") == LIMITS["jobs"].default


# --- what must stay possible -----------------------------------------------------------------------------


def test_no_real_log_comes_near_the_limits(shared: Path) -> None:
    """The largest log at hand, as its text is read: less than a tenth of each limit."""
    largest = max((shared / "traces").rglob("*.swf.gz"), key=lambda path: path.stat().st_size)
    content = read_bytes(largest, Format.SWF, lines=True)
    assert len(content) < LIMITS["bytes"].default / 10
    assert content.count(b"\n") < LIMITS["jobs"].default / 10
    assert max(map(len, content.split(b"\n"))) < LIMITS["line"].default / 10


def test_the_limits_leave_room_for_a_log_of_a_million_jobs() -> None:
    million = 10**6
    assert million * 300 < LIMITS["bytes"].default  # bytes in a line of sacct
    assert million * 16 < LIMITS["cells"].default
    assert million < LIMITS["jobs"].default
