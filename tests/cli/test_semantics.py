"""`compare --semantics dirlab`: the published simulators' rules on the command line and in experiments."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

# One node. Both jobs arrive at 5: one event at a time, the first starts before the second is seen.
LOG = "; MaxProcs: 1\n1 5 -1 100 1 -1 -1 1 100" + " -1" * 9 + "\n2 5 -1 10 1 -1 -1 1 10" + " -1" * 9 + "\n"


def starts(folder: Path) -> list[int]:
    with (folder / "jobs" / "sjf.csv").open(newline="") as file:
        return [int(row["start_time"]) for row in csv.DictReader(file)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "two.swf"
    path.write_text(LOG)
    return path


def test_compare_by_either_rules(cli, log, tmp_path) -> None:
    for semantics, expected in (("textbook", [15, 5]), ("dirlab", [5, 105])):
        chosen = cli(
            "compare", log, "-p", "sjf", "--semantics", semantics, "--no-report", "-q", "-o", semantics
        )
        assert (chosen.code, chosen.err) == (0, "")
        assert starts(tmp_path / semantics) == expected
    again = cli("compare", "dirlab/experiment.toml", "-q", "-o", "again")
    assert (again.code, again.err) == (0, "")
    assert starts(tmp_path / "again") == [5, 105]


def test_whole_published_schedulers_have_names(cli, log) -> None:
    policies = (
        "-p",
        "published-wfp3+commit+published-easy",
        "-p",
        "published-unicef+published-easy(relax=0.5)",
    )
    outcome = cli("compare", log, *policies, "--semantics", "dirlab", "--no-report")
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--semantics", "published"], "--semantics must be 'textbook' or 'dirlab', found 'published'"),
        (["--semantics", "dirlab", "--period", 60], "'period' is not known to the rules 'dirlab'"),
        (["--semantics", "dirlab", "--dependencies"], "'dependencies' is not known to the rules 'dirlab'"),
    ],
)
def test_what_the_rules_do_not_know(arguments, message, cli, log) -> None:
    assert message in cli("compare", log, "-p", "sjf", *arguments).line()
