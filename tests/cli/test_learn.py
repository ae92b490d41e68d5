"""`learn` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit.workloads import write_job_table
from tests.cli.conftest import CLI
from tests.experiments.learn.test_learn import SMALL
from tests.experiments.learn.test_learn_on_machines import JOBS


def test_learn_and_use(cli: CLI, tmp_path: Path) -> None:
    lines = [
        f"{job.id} {job.submit_time} -1 {job.run_time} {job.nodes} -1 -1 {job.nodes} {job.requested_time} "
        f"-1 1 {job.user}{' -1' * 6}\n"
        for job in SMALL.jobs
    ]
    (tmp_path / "small.swf").write_text("; MaxProcs: 8\n" + "".join(lines))
    few = ("--times", "10", "--seconds", "300")
    learned = cli(
        *("learn", "small.swf", *few, "--workers", "2", "--fairness", "0.9x", "--beside", "f3+easy-saf"),
        *("--out", "studies/one"),
    )
    assert learned.code == 0, learned.err
    past, _, later = learned.out.partition("last part, not used for the choice:")
    assert "front of the past:" in past and "chosen, without tests" in later
    assert "\nf3+easy-saf " in later and "\nf3+easy-saf " not in past
    assert learned.out.endswith("results: studies/one/report.md\n")
    used = cli(
        "compare", "small.swf", "-p", "learned:studies/one/policy.json", "--no-report", "--out", "used"
    )
    assert used.code == 0, used.err
    again = ["learn", "small.swf", *few, "--out", "studies/one"]
    assert "fairness was 0.9, is not set; beside was f3+easy-saf, is none; --overwrite" in cli(*again).line()


def test_learn_on_machines_and_in_partitions(cli: CLI, tmp_path: Path) -> None:
    """The option that the error of a log with requests names is one of this command."""
    write_job_table(JOBS, tmp_path / "small.csv")
    (tmp_path / "machines.toml").write_text(
        '[[machines]]\nname = "thin"\ncount = 3\ncpus = 8\nmemory = "16 GiB"\n'
        '[[machines]]\nname = "gpu"\ncount = 2\ncpus = 8\ngpus = 2\nmemory = "32 GiB"\n'
    )
    (tmp_path / "partitions.toml").write_text(
        '[[partitions]]\nname = "cpu"\nmachines = ["thin1", "thin2", "thin3"]\n'
        '[[partitions]]\nname = "gpu"\nmachines = ["gpu1", "gpu2"]\n'
    )
    assert "say of which machines: --machines FILE" in cli("learn", "small.csv").line()
    flags = ["--machines", "machines.toml", "--partitions", "partitions.toml"]
    short = cli("learn", "small.csv", *flags, "--jobs", "9")
    assert "at least 3 weeks are needed to learn" in short.only_line()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--longest-wait", "twice"], "--longest-wait: a factor such as 1.5x is needed, found 'twice'"),
        (["--longest-wait", "0.5x"], "--longest-wait must be greater than or equal to 1, found 0.5"),
        (["--fairness", "equal"], "--fairness: a factor such as 1.5x is needed, found 'equal'"),
        (["--fairness", "1.2x"], "--fairness must be less than or equal to 1, found 1.2"),
        (["--objective", "mean weight"], "unknown metric 'mean_weight'"),
        (["--times", "0"], "--times must be greater than 0, found 0"),
        (["--seconds", "0"], "--seconds must be greater than or equal to 1, found 0"),
        (["--beside", "f3+esy"], "unknown policy"),
        (["--machines", "nowhere.toml"], "nowhere.toml"),
        (["--partitions", "nowhere.toml"], "nowhere.toml"),
        (["--placement", "best-fit"], "'placement' needs 'machines'"),
        (["--jobs", "9"], "at least 3 weeks are needed to learn, found 0"),
        (["--collect", "studies"], "--collect is gone: reproduce winning LOGS measures policies over logs"),
    ],
)
def test_bad_input(cli: CLI, arguments: list[str], line: str) -> None:
    outcome = cli("learn", *arguments)
    assert outcome.code == 2
    assert line in outcome.line()


def test_options_of_the_former_search_say_that_they_are_gone(cli: CLI) -> None:
    outcome = cli("learn", "--evaluations", "20", "--guard", "--jobs", "9")
    assert outcome.code == 2
    assert "--evaluations, --guard: without effect; learn searches no parameters any more" in outcome.err
