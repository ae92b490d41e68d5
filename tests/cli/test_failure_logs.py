"""Failure logs as a user gives them: --failures FILE and the key in a file of settings."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from tests.cli.conftest import CLI

JOBS = "; MaxNodes: 2\n; MaxProcs: 2\n" + "".join(
    f"{job} {submit} 0 100 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    for job, submit in ((1, 0), (2, 0), (3, 300))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log.swf").write_text(JOBS)
    (tmp_path / "failures.csv").write_text(
        "node,start,end,state\nn1,50,60,DOWN\nn1,70,70,DOWN\nn1,1,2,POWERED_DOWN\n"
    )
    (tmp_path / "x.toml").write_text('log = "log.swf"\npolicies = ["fcfs"]\nfailures = "failures.csv"\n')
    return tmp_path


def ends(folder: Path) -> list[int]:
    return sorted(pandas.read_csv(folder / "out/jobs/fcfs.csv")["end_time"].tolist())


def test_a_failure_log_by_flag_and_by_key(cli: CLI, folder: Path) -> None:
    arguments = ("--no-report", "--overwrite", "-o", folder / "out")
    done = cli("compare", folder / "log.swf", "-p", "fcfs", "--failures", folder / "failures.csv", *arguments)
    assert done.code == 0, done.err
    assert ends(folder) == [100, 160, 400]
    assert "failures.csv: in the state 'POWERED_DOWN'" in done.out
    assert "failures.csv: without any time" in done.out
    assert cli("compare", folder / "x.toml", *arguments).code == 0
    assert ends(folder) == [100, 160, 400]
    assert (
        cli("compare", folder / "out/experiment.toml", "--no-report", "-q", "-o", folder / "again").code == 0
    )


def test_another_content_is_another_run(cli: CLI, folder: Path) -> None:
    arguments = ("compare", folder / "x.toml", "--no-report", "-q", "-o", folder / "out")
    assert cli(*arguments).code == 0
    (folder / "failures.csv").write_text("node,start,end\nn1,50,80\n")
    assert cli(*arguments, "--overwrite").code == 0
    assert ends(folder) == [100, 180, 400]


def test_a_saved_experiment_knows_the_content_of_its_failure_log(cli: CLI, folder: Path) -> None:
    arguments = ("--no-report", "-q", "-o")
    assert cli("compare", folder / "x.toml", *arguments, folder / "out").code == 0
    (folder / "failures.csv").write_text("node,start,end\nn1,50,80\n")
    line = cli("compare", folder / "out/experiment.toml", *arguments, folder / "again").line()
    assert "failures.csv: a text with SHA-256" in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nosuch.csv", "nosuch.csv"),
        ("failures.csv, tiny", "a cluster of any name needed, found 'tiny'"),
    ],
)
def test_wrong_failure_logs_are_one_line(
    cli: CLI, folder: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert message in cli("compare", "log.swf", "-p", "fcfs", "--failures", text, "-o", "out").line()
