"""A policy that takes over a running cluster, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from tests.cli.conftest import CLI

LOG = """; UnixStartTime: 1700000000
; TimeZoneString: Europe/Berlin
; MaxProcs: 4
1 0 0 100 4 -1 -1 4 100 -1 1 1 -1 -1 -1 -1 -1 -1
2 10 90 100 4 -1 -1 4 100 -1 1 1 -1 -1 -1 -1 -1 -1
3 20 180 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1
4 30 -1 10 4 -1 -1 4 10 -1 1 1 -1 -1 -1 -1 -1 -1
5 150 -1 10 4 -1 -1 4 10 -1 1 1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.swf"
    file.write_text(LOG)
    return file


def starts(cli: CLI, log: Path, policy: str, *flags: str) -> list[int]:
    out = log.parent / "out"
    done = cli("compare", log, "-p", policy, "--no-report", "-q", "--overwrite", "-o", out, *flags)
    assert done.code == 0, done.err
    (table,) = (out / "jobs").glob("*.csv")
    return pandas.read_csv(table)["start_time"].fillna(-1).astype(int).tolist()


def test_the_log_says_what_runs(cli: CLI, log: Path) -> None:
    """By 120 s the second runs until 200 s, the third waits, and the fourth is unknown."""
    assert starts(cli, log, "sjf", "--begin-at", "120") == [0, 100, 210, -1, 200]
    about = json.loads((log.parent / "out" / "provenance.json").read_text())
    assert about["policies"]["sjf"]["notes"] == [
        "1 jobs submitted by 120 s without a recorded wait: rejected"
    ]


def test_a_date_is_one_of_the_logs_clock(cli: CLI, log: Path) -> None:
    assert starts(cli, log, "sjf", "--begin-at", "2023-11-14T23:15:20") == [0, 100, 210, -1, 200]


def test_another_policy_may_come_before(cli: CLI, log: Path) -> None:
    """Under SJF the fourth starts first when the first ends; from 120 s on, it is FCFS."""
    assert starts(cli, log, "fcfs", "--begin-at", "120, sjf") == [0, 160, 110, 100, 260]


def test_metrics_begin_with_the_beginning(cli: CLI, log: Path) -> None:
    starts(cli, log, "sjf", "--begin-at", "120")
    table = pandas.read_csv(log.parent / "out" / "metrics.csv")
    assert table["mean_wait_time"].tolist() == [50]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-1", "begin_at: a time among the submissions, 0 to 150 s, found -1 s"),
        ("2030-01-01", "begin_at: a time among the submissions, 0 to 150 s, found"),
        ("soon", "--begin-at: a time such as 2024-01-31T23:59:59 needed, found 'soon'"),
        ("120,", "--begin-at: the name of a policy is needed after the comma, found '120,'"),
        ("120, nosuch", "--begin-at: unknown policy 'nosuch'"),
        ("120, os:path", "--begin-at: 'os:path' is code that is not the kit's own"),
    ],
)
def test_a_wrong_beginning_is_one_line(cli: CLI, log: Path, text: str, found: str) -> None:
    assert found in cli("compare", log, "-p", "fcfs", "--begin-at", text, "-o", log.parent / "out").line()


def test_a_log_without_waits_needs_a_policy(cli: CLI, log: Path) -> None:
    log.write_text(LOG.replace(" 0 100", " -1 100").replace(" 90 ", " -1 ").replace(" 180 ", " -1 "))
    line = cli("compare", log, "-p", "fcfs", "--begin-at", "120", "-o", log.parent / "out").line()
    assert "log has no recorded waits; name a policy, as in '9000, fcfs'" in line
