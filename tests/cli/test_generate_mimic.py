"""`generate mimic`: a log in, a log like it out."""

from __future__ import annotations

import numpy as np
import pytest

from hpcsimkit.workloads import Mimic, read_log, read_swf


@pytest.fixture
def built_in(cli) -> str:
    cli("generate", "lublin", "--nodes", 64, "--jobs", 400, "--seed", 2, "-o", "x.swf", "-q")
    return "x.swf"


def test_jobs_like_those_of_a_log(cli, built_in, tmp_path) -> None:
    outcome = cli(
        "generate", "mimic", built_in, "--jobs", 1000, "--seed", 3, "-o", "y.swf.gz", "--picture", "y.svg"
    )
    assert (outcome.code, outcome.err) == (0, "")
    first, second, *rest = outcome.out.splitlines()
    assert first.startswith("x: 400 jobs in ") and " on 64 nodes, offered load 0." in first
    assert second.startswith("x-mimic: 1 000 jobs in ")
    assert rest == ["written: y.swf.gz", "picture: y.svg"]
    made = read_swf(tmp_path / "y.swf.gz")
    assert made.hash == Mimic(read_swf(built_in)).generate(1000, np.random.default_rng(3)).hash
    assert made.provenance[-2].startswith("mimic of x: 1000 jobs from hour ")
    assert "<svg" in (tmp_path / "y.svg").read_text()


def test_the_original_log_is_kept(cli, built_in, tmp_path) -> None:
    before = (tmp_path / built_in).read_bytes()
    line = cli("generate", "mimic", built_in, "-o", tmp_path / built_in).line()
    assert line == f"{tmp_path / built_in}: it is the original log; another --out keeps it"
    assert (tmp_path / built_in).read_bytes() == before
    assert cli("generate", "mimic", built_in, "--jobs", 1, "-o", "y.swf").out.splitlines()[1] == (
        "x-mimic: 1 job in 0 s on 64 nodes"
    )


def test_equal_seeds_equal_files(cli, built_in, tmp_path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert cli("generate", "mimic", built_in, "--seed", seed, "-o", f"{name}.swf", "-q") == (0, "", "")
    a, b, c = ((tmp_path / f"{name}.swf").read_bytes() for name in "abc")
    assert a == b != c
    assert len(read_swf(tmp_path / "a.swf")) == 400


def test_days_and_a_smaller_machine(cli, built_in, tmp_path) -> None:
    log = read_swf(built_in)
    inside = log.submit_time < log.submit_time.min() + 43_200
    cli("generate", "mimic", built_in, "--days", 0.5, "--divide", 10, "-o", "y.swf")
    made = read_swf(tmp_path / "y.swf")
    assert (len(made), made.machine_size) == (np.count_nonzero(inside), 7)
    assert set(made.run_time.tolist()) <= set(log.run_time[inside].tolist())
    assert set(made.nodes.tolist()) <= set((-(-log.nodes[inside] // 10)).tolist())


def test_what_a_log_lacks_is_said(cli, log) -> None:
    log.write_text(log.read_text().replace("; MaxProcs: 8\n", "") + "oops\n")
    first, second, *_ = cli("generate", "mimic", log, "-o", "y.swf").out.splitlines()
    assert first == "tiny: 5 jobs in 12 s, 1 skipped"
    assert second.startswith("tiny-mimic: 5 jobs in ") and "nodes" not in second


def test_job_table(cli, tmp_path) -> None:
    (tmp_path / "day.csv").write_text("ReqCPUs,ReqGPUs,ActualDuration,Submit\n4,1,60,0\n8,0,60,5\n")
    assert cli("generate", "mimic", "day.csv", "--jobs", 50, "-o", "y.csv.gz").code == 0
    made = read_log(tmp_path / "y.csv.gz")
    assert len(made) == 50 and made.resources[:2] == ("cpus", "gpus")
    found = set(zip(made.column("cpus").tolist(), made.column("gpus").tolist(), strict=True))
    assert found == {(4, 1), (8, 0)}
    assert "no field for cpus, gpus" in cli("generate", "mimic", "day.csv", "-o", "y.swf").line()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--jobs", 0], "--jobs must be greater than or equal to 1, found 0"),
        (["--seed", -1], "--seed must be greater than or equal to 0, found -1"),
        (["--days", 0], "--days must be greater than 0, found 0.0"),
        (["--divide", 0], "--divide must be greater than or equal to 1, found 0"),
        (["--days", 0.00001], "tiny: submissions at different times are needed to tell how often jobs come, found 1 job"),
        (["--picture", "y.gif"], "y.gif: a picture needs the ending .png, .svg or .pdf"),
        (["-o", "no/y.swf"], "no/y.swf: cannot be written: No such file or directory"),
    ],
)  # fmt: skip
def test_one_line_and_nothing_left(cli, log, tmp_path, flags, message) -> None:
    output = [] if "-o" in flags else ["-o", "y.swf"]
    assert message in cli("generate", "mimic", log, *output, *flags).line()
    assert [path.name for path in tmp_path.iterdir()] == [log.name]


def test_a_log_is_needed(cli) -> None:
    assert "Missing argument 'LOG'" in cli("generate", "mimic", "-o", "y.swf").line()
    assert cli("generate", "mimic", "no.swf", "-o", "y.swf").line() == "no.swf: no such file"
