"""Bad input: one clear line, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

MINE = """
import os, signal
from hpcsimkit.kernel.policy import Order, Policy

class Twice(Policy):
    def schedule(self, system):
        job = system.queue.first()
        if system.fits(job):
            system.start(job)
            system.start(job)

class TooLarge(Policy):
    def schedule(self, system):
        for job in list(system.queue):
            system.start(job)

class Raises(Policy):
    def schedule(self, system):
        raise ValueError("no idea")

class Never(Policy):
    def schedule(self, system):
        pass

class Leaves(Policy):
    def schedule(self, system):
        raise SystemExit("bye")

class Dies(Policy):
    def schedule(self, system):
        os.kill(os.getpid(), signal.SIGKILL)

def number():
    return 3
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def left_behind(folder: Path) -> list[str]:
    """What a run that failed has left, the input apart."""
    inputs = {"tiny.swf", "mine.py", "__pycache__", "e.toml"}
    return sorted(path.name for path in folder.iterdir() if path.name not in inputs)


# --- logs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare", "describe"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.swf", None, "missing.swf: no such file"),
        ("empty.swf", b"", "empty.swf: a log in the Standard Workload Format is needed, found an empty file"),
        ("binary.swf", bytes(range(256)), "found binary data"),
        ("text.swf", b"hello world\n", "text.swf:1: not the Standard Workload Format"),
        (
            "cut.swf.gz",
            gzip.compress(b"1 2 3\n" * 500, mtime=0)[:40],
            "cut.swf.gz: the gzip file is cut short",
        ),
        ("header.swf", b"; MaxProcs: 8\n", "header.swf: no job in it"),
    ],
)
def test_logs_that_cannot_be_used(cli, tmp_path, command, name, content, message) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert message in cli(command, name).line()
    assert left_behind(tmp_path) == ([name] if content is not None else [])


def test_folder_as_log(cli, tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    assert cli("compare", "folder").line() == "folder: a file is needed, found a directory"


def test_no_size_of_the_machine(cli, log) -> None:
    log.write_text(log.read_text().replace("; MaxProcs: 8\n", ""))
    assert (
        cli("compare", log).line() == f"{log}: the log names no machine size; say how many nodes: --nodes N"
    )
    assert cli("compare", log, "--nodes", 9, "-p", "fcfs", "--no-report", "-q").code == 0


def test_strict_refuses_what_is_otherwise_skipped(cli, log) -> None:
    assert cli("compare", log, "--strict").line() == f"{log}: job 5 needs 9 nodes; the machine has 8"
    log.write_text(log.read_text() + "1 2 three\n")
    assert cli("compare", log, "--strict").line().startswith(f"{log}:7: 18 numbers needed, found 'three'")


def test_no_job_fits(cli, log) -> None:
    assert "job 1 needs 4 nodes; the machine has 1 (no job fits)" in cli("compare", log, "--nodes", 1).line()


def test_no_job_is_left(cli, log) -> None:
    assert cli("compare", log, "--skip", 4).line() == "tiny: no job is left of 4 after skipping 4"


# --- flags -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--jobs", "-5"], "--jobs must be greater than or equal to 1, found -5"),
        (["--jobs", "many"], "'--jobs'"),
        (["--skip", "-1"], "--skip must be greater than or equal to 0, found -1"),
        (["--nodes", "0"], "--nodes must be greater than or equal to 1, found 0"),
        (["--workers", "0"], "--workers must be greater than or equal to 1, found 0"),
        (["--load-factor", "0"], "--load-factor must be greater than or equal to 0.000001, found 0.0"),
        (["--load-factor", "nan"], "--load-factor must be"),
        (["--walltime", "stop"], "--walltime must be 'run' or 'kill', found 'stop'"),
        (["--size", "all"], "--size must be 'requested' or 'allocated', found 'all'"),
        (["--period", "0"], "--period must be greater than or equal to 1, found 0"),
        (["--seed", "-1"], "--seed must be greater than or equal to 0, found -1"),
        (["--warmup", "-1"], "--warmup must be greater than or equal to 0, found -1.0"),
        (["-p", "esay"], "-p: unknown policy 'esay'; nearest: easy"),
        (["-p", "mine.py"], "-p: 'mine.py' is a file: which policy of it is meant? mine.py:Name"),
        (["-p", "fcfs easy"], "-p: unknown policy 'fcfs easy'; nearest: fcfs, easy"),
        (["-p", "fcfs+esay"], "-p: unknown policy 'esay' in 'fcfs+esay'; nearest: easy"),
        (["-p", "fcfs", "-p", "sjf", "-p", "fcfs"], "-p: 'fcfs' is named twice"),
        (["--nosuch"], "No such option: --nosuch"),
        (["another.swf"], "unexpected extra argument"),
    ],
)
def test_flags_that_are_not_understood(cli, log, tmp_path, flags, message) -> None:
    assert message in cli("compare", log, *flags).line()
    assert left_behind(tmp_path) == []


def test_trimming_that_leaves_nothing(cli, log, tmp_path) -> None:
    line = cli("compare", log, "--warmup", 10, "--cooldown", 5).line()
    assert (
        line
        == "--warmup 10 s and --cooldown 5 s leave nothing of the 11 s in which jobs of tiny are submitted"
    )
    assert left_behind(tmp_path) == []


def test_names_that_would_share_their_files(cli, log, mine) -> None:
    (mine.parent / "._mine.py").write_text(MINE)
    line = cli("compare", log, "-p", "./mine.py:Never", "-p", "._mine.py:Never").line()
    assert line == "-p './mine.py:Never' and '._mine.py:Never' would be written to the same files"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["generate"], "Missing command"),
        (["generate", "lublin"], "Missing option '--out'"),
        (
            ["generate", "lublin", "-o", "x.swf", "--nodes", "0"],
            "--nodes must be greater than or equal to 2, found 0",
        ),
        (["generate", "lublin", "-o", "x.swf", "--load", "0"], "--load must be greater than 0, found 0.0"),
        (["generate", "lublin", "-o", "no/x.swf"], "no/x.swf: cannot be written: No such file or directory"),
        (
            ["check", "fcfs", "--stage", "ordre"],
            "--stage: one of order, inspector, placement, backfiller, preemptor, gate, tester, dispatch",
        ),
        (["explain", "sjf+hold-unfit", "--within", "fcfs"], "--within needs a trained agent (.hpcsim)"),
        (
            ["validate", "--calibrate", "--jobs", "50"],
            "--calibrate needs at least 100 jobs with recorded waits",
        ),
        (["validate", "--out", ""], "--out must have at least 1 character"),
        (
            ["predict", "--predictor", "history", "--predictor", "history"],
            "predictor 'history' is named twice",
        ),
        (["compare", "--nodes", "1", "--jobs", "5"], "--nodes must be greater than or equal to 2, found 1"),
        (["plot"], "Missing argument 'RESULTS'"),
        (["plot", "nosuch"], "nosuch: a results folder is needed, found nothing there"),
        (["describe", "--out", "x.gif"], "x.gif: a picture needs the ending .png, .svg or .pdf"),
    ],
)
def test_other_commands(cli, tmp_path, arguments, message) -> None:
    assert message in cli(*arguments).line()
    assert left_behind(tmp_path) == []


# --- experiment files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('seed = 1\npolicies = [\n  "fcfs",\n  "esay",\n]\n', "e.toml:4: policies[1]: unknown policy 'esay'; nearest: easy"),
        ('policies = ["fcfs"]\npolices = ["sjf"]\n', "e.toml:2: polices: unknown key; nearest: policies"),
        ("[generate]\nnodes = 64\nseeds = 1\n", "e.toml:3: generate.seeds: unknown key; nearest: seed"),
        ("[generate]\nnodes = 1\n", "e.toml:2: generate.nodes must be greater than or equal to 2, found 1"),
        ('seed = "one"\n', "e.toml:1: seed must be a valid integer, found 'one'"),
        ("jobs = 5\nseed = \n", "e.toml:2: not TOML: invalid value"),
        ("jobs = 5\njobs = 6\n", "e.toml:2: not TOML: cannot overwrite a value"),
        ('log = "no.swf"\n', "no.swf: no such file"),
    ],
)  # fmt: skip
def test_experiment_files_name_the_line(cli, tmp_path, text, message) -> None:
    (tmp_path / "e.toml").write_text(text)
    assert message in cli("compare", "e.toml").line()
    assert left_behind(tmp_path) == []


# --- a user's own policies -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("Twice", ": job 1 at t=100 s cannot start: it must be waiting; it started at t=100 s"),
        ("TooLarge", ": job 2 at t=109 s needs 8 nodes; 4 are free"),
        ("Raises", " at t=100 s, in Raises: ValueError: no idea ({folder}/mine.py:19)"),
        ("Never", ": stalled at t=111 s: 4 jobs wait, nothing runs, nothing is to come"),
        ("Leaves", " at t=100 s, in Leaves: SystemExit: bye ({folder}/mine.py:27)"),
    ],
)
def test_policies_that_misbehave(cli, log, mine, tmp_path, policy, message, workers) -> None:
    names = f"mine.py:{policy}", f"./mine.py:{policy}"  # the same twice: with two workers either may be first
    outcome = cli("compare", log, "-p", names[0], "-p", names[1], "--workers", workers, "-q", "--out", "out")
    message = message.format(folder=tmp_path)
    assert outcome.line().startswith(tuple(f"{name}{message}" for name in names))
    assert left_behind(tmp_path) == []


def test_policy_whose_process_dies(apart, log, mine, tmp_path) -> None:
    outcome = apart(
        "compare", log, "-p", "fcfs", "-p", "mine:Dies", "--workers", 2, "--quiet", "--out", "out"
    )
    assert outcome.line().startswith("mine:Dies: its process ended by signal 9 (out of memory?), 2 times")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        (
            "broken",
            "import os\nimport nosuchmodule\n",
            "No module named 'nosuchmodule' ({folder}/broken.py:2)",
        ),
        ("syntax", "\nx = = 1\n", "SyntaxError: invalid syntax ({folder}/syntax.py:2)"),
        ("absent", None, "No module named 'absent'"),
    ],
)
def test_modules_that_cannot_be_imported(apart, log, tmp_path, module, text, message) -> None:
    if text is not None:
        (tmp_path / f"{module}.py").write_text(text)
    line = apart("compare", log, "-p", f"{module}:Mine").line()
    assert line.startswith(f"-p: '{module}:Mine' cannot be imported: ")
    assert message.format(folder=tmp_path) in line


def test_names_that_are_no_policies(apart, log, mine) -> None:
    assert "mine has no 'Nobody'" in apart("compare", log, "-p", "mine:Nobody").line()
    assert (
        "'mine:number' is a function without the annotation of a policy"
        in apart("compare", log, "-p", "mine:number").line()
    )


# --- the operating system --------------------------------------------------------------------------------


def test_folder_that_cannot_be_made(cli, log, tmp_path) -> None:
    line = cli("compare", log, "-p", "fcfs", "--out", log / "out", "-q").line()
    assert line == f"{log}/out.partial: cannot be written: Not a directory"


def test_folder_that_may_not_be_written(cli, log, tmp_path) -> None:
    sealed = tmp_path / "sealed"
    sealed.mkdir(mode=0o500)
    try:
        (sealed / "probe").mkdir()
    except PermissionError:
        line = cli("compare", log, "-p", "fcfs", "--out", sealed / "out", "-q").line()
        assert line == f"{sealed}/out.partial: cannot be written: Permission denied"
    else:
        pytest.skip("this user may write everywhere")


def test_folder_with_something_else_in_it(cli, log, tmp_path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    line = cli("compare", log, "-p", "fcfs", "--out", "thesis", "-q").line()
    assert line == f"{tmp_path}/thesis: a new, empty or results folder is needed; other files are in it"
    assert left_behind(tmp_path) == ["thesis"]
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    "arguments", [["predict"], ["explain", "sjf+hold-unfit"], ["what-if", "--set", "nodes+=1"]]
)
def test_file_in_place_of_the_folder_of_a_quick_command(cli, log, arguments) -> None:
    line = cli(*arguments, log, "--out", log).line()
    assert line == f"{log}: a folder for the results is needed, found a file"


def test_a_folder_that_may_not_be_written_is_told_before_the_simulation(cli, log, monkeypatch) -> None:
    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    outcome = cli("validate", log, "--out", "no/out")
    assert outcome.line() == "no/out: cannot be written: Permission denied"


def test_file_in_place_of_the_folder(cli, log) -> None:
    assert (
        cli("compare", log, "--out", log, "-q").line()
        == f"{log}: a folder for the results is needed, found a file"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
@pytest.mark.parametrize("workers", [1, 2])
def test_disk_full(shell, tmp_path, workers) -> None:
    def small_files() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    outcome = shell(
        "--jobs", 500, "-p", "fcfs", "-p", "sjf", "--workers", workers, "--out", "out", "-q", preexec_fn=small_files
    )  # fmt: skip
    assert "cannot be written: File too large" in outcome.line()
    assert left_behind(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [["parts", "policies"], ["compare", "tiny.swf", "-p", "fcfs", "--no-report"]]
)
def test_output_that_cannot_be_written(log, tmp_path, command, environment, arguments) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "hpcsimkit: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="closes streams")
@pytest.mark.parametrize(("log_name", "code"), [("tiny.swf", 0), ("none.swf", 2)])
def test_streams_that_are_closed(log, tmp_path, command, environment, log_name, code) -> None:
    """As by some services that start programs in the background."""
    words = [*command, "compare", log_name, "-p", "fcfs", "--no-report", "--out", "out"]
    shell = ["sh", "-c", '"$@" >&- 2>&-', "sh", *words]
    assert subprocess.run(shell, cwd=tmp_path, env=environment).returncode == code
    assert (tmp_path / "out" / "metrics.csv").is_file() == (code == 0)


def test_reader_that_has_gone(tmp_path, command, environment) -> None:
    with subprocess.Popen(
        [*command, "parts", "policies"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
