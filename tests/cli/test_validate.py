"""`validate` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pandas

from tests.cli.conftest import CLI
from tests.cli.test_partitions import DAY, TWO

WAITS = """\
; MaxProcs: 8
1   0   0  50 4 -1 -1 4  60 -1 1 1 -1 -1 -1 -1 -1 -1
2   5  45 100 8 -1 -1 8  90 -1 1 2 -1 -1 -1 -1 -1 -1
3  12 150  20 1 -1 -1 1  60 -1 1 1 -1 -1 -1 -1 -1 -1
4  15 835  20 7 -1 -1 7  60 -1 1 1 -1 -1 -1 -1 -1 -1
"""


def test_numbers_and_files(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "waits.swf").write_text(WAITS)
    outcome = cli("validate", "waits.swf", "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "75.0 % of 4 jobs within 10 min" in outcome.out
    assert "agreement of fcfs+easy with the record: poor (starts fair, waits poor, use fair; " in outcome.out
    marks = pandas.read_csv(tmp_path / "out" / "agreement.csv")
    assert marks["part"].tolist() == ["starts", "waits", "waits", "use"]
    assert marks["value"][0] == 0.75 and (marks["good"][0], marks["fair"][0]) == (0.9, 0.7)
    rows = [line.split()[-4:-1] for line in outcome.out.splitlines() if line.startswith(("starts ", "use "))]
    assert [row[1:] for row in rows] == [["0.9", "0.7"], ["0.05", "0.15"]], "the thresholds are printed"
    table = pandas.read_csv(tmp_path / "out" / "validation.csv")
    assert table["by"].tolist() == ["all", "size", "size", "size"]
    assert table["recorded"][0] == (0 + 45 + 150 + 835) / 4
    assert (tmp_path / "out" / "validation.png").stat().st_size > 0
    causes = pandas.read_csv(tmp_path / "out" / "causes.csv")
    waits = causes.groupby(["by", "group"])[["recorded", "simulated"]].sum()
    assert waits.loc[("all", "all jobs"), "recorded"] == table["recorded"][0]
    assert waits.loc[("all", "all jobs"), "simulated"] == table["simulated"][0]
    (line,) = (line for line in outcome.out.splitlines() if line.startswith("resources "))
    assert line.split()[1:6] == ["its", "request", "is", "not", "free"]


def test_the_recorded_policy_agrees(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "waits.swf").write_text(WAITS)
    outcome = cli("validate", "waits.swf", "-p", "recorded", "--out", "out")
    assert "start times: 0 s off in the median, 0 s at 90 %; 100.0 % of 4 jobs" in outcome.out
    assert "agreement of recorded with the record: good (starts good, waits good, use good; " in outcome.out


def test_the_tolerance_is_the_interval_of_the_scheduler(cli: CLI, tmp_path: Path) -> None:
    """The option, else the scheduling period, else 60 s; an other one makes other results."""
    (tmp_path / "waits.swf").write_text(WAITS)
    for number, (flags, tolerance) in enumerate(
        [([], 60), (["--period", "30"], 30), (["--period", "30", "--tolerance", "7.5"], 7.5)]
    ):
        outcome = cli("validate", "waits.swf", *flags, "--out", f"out{number}")
        assert f"waits up to {tolerance:g} s apart are equal)" in outcome.out
    assert cli("validate", "waits.swf", "--tolerance", "-1").code == 2
    line = cli("validate", "waits.swf", "--tolerance", "1", "--out", "out0").line()
    assert "out0: other results" in line or "tolerance" in line


def test_by_partition(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY.replace(" -1 10 ", " 5 10 "))
    (tmp_path / "two.toml").write_text(TWO)
    outcome = cli("validate", "day.swf", "--partitions", "two.toml", "-p", "fcfs", "--out", "out")
    assert outcome.code == 0, outcome.err
    table = pandas.read_csv(tmp_path / "out" / "validation.csv")
    waits = table[table["by"] == "partition"].set_index("group")["simulated"]
    assert waits.to_dict() == {"1": 0, "2": 4.5}


def test_a_log_without_recorded_waits_is_one_line(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY)
    assert cli("validate", "day.swf").line() == "day: recorded waits are needed, found none"
    assert not (tmp_path / "results").exists()


def test_by_hour_of_submission(cli: CLI, tmp_path: Path) -> None:
    """Second 0 of the log is 13:30 on a day in winter in Stockholm; the table on the screen has no hours."""
    header = "; UnixStartTime: 1704112200\n; TimeZoneString: Europe/Stockholm\n"
    (tmp_path / "waits.swf").write_text(header + WAITS.replace("4  15 835", "4 1815 0"))
    outcome = cli("validate", "waits.swf", "-p", "recorded", "--out", "out")
    assert "hour" not in outcome.out
    table = pandas.read_csv(tmp_path / "out" / "validation.csv")
    hours = table[table["by"] == "hour"].set_index("group")
    assert hours["jobs"].to_dict() == {"13:00": 3, "14:00": 1}
    assert hours["recorded"].to_dict() == {"13:00": 65, "14:00": 0}
