"""Files of windows: TOML tables, and what Slurm prints of its reservations."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit import Workload
from hpcsimkit.cluster.calendar import Window
from hpcsimkit.cluster.calendar_files import calendar_of_tables, read_calendar
from hpcsimkit.errors import UsageError, WorkloadError
from tests.fuzz.seeds import CALENDAR, RESERVATIONS

STOCKHOLM = {"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"}


def log(header: dict[str, str]) -> Workload:
    return Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=4, header=header)


def written(folder: Path, text: str) -> Path:
    path = folder / "calendar.toml"
    path.write_text(text)
    return path


def test_tables_of_windows(tmp_path: Path) -> None:
    calendar = read_calendar(written(tmp_path, CALENDAR))
    first, *others = calendar.windows
    assert first == Window(
        "2024-02-01T08:00:00", "2024-02-01T18:00:00", machines=("node*",), name="maintenance"
    )
    assert [(each.start, each.end) for each in others] == [(3600, 10800), (90000, 97200), (176400, 183600)]
    assert {(each.machines, each.users, each.accounts) for each in others} == {
        (("gpu1",), ("alice",), ("physics",))
    }


def test_reservations_of_slurm(tmp_path: Path) -> None:
    """Maintenance is for nobody; accounts that are excluded, and repetitions, are noted."""
    calendar = read_calendar(written(tmp_path, RESERVATIONS))
    assert calendar.windows == (
        Window("2024-02-01T08:00:00", "2024-02-01T18:00:00", 2, ("node1", "node2"), name="maint"),
        Window("2024-02-02T10:00:00", "2024-02-02T12:00:00", 1, ("gpu1",), ("alice",), name="course"),
    )
    assert calendar.notes == {
        "repeated reservation: only the next occurrence taken": 1,
        "accounts excluded from a reservation: not known to the simulation": 1,
    }
    one_line = (
        "ReservationName=x StartTime=2024-02-01T08:00:00 EndTime=2024-02-01T18:00:00 Nodes=(null) Users=bob\n"
    )
    found = read_calendar(written(tmp_path, one_line))
    assert not found and found.notes == {"reservation without nodes: left out": 1}


def test_dates_are_those_of_the_log(tmp_path: Path) -> None:
    """Second 0 is 14:00:31 in Stockholm; the clocks go back between the two windows, which keep their hour."""
    calendar = calendar_of_tables(
        [{"start": "1996-10-24 08:00", "duration": 3600, "every": 604800, "times": 2, "nodes": 2}]
    )
    windows = calendar.on(log(STOCKHOLM)).windows
    first = 30 * 86400 + 18 * 3600 - 31  # from 23 September, 14:00:31
    assert [(each.start, each.end) for each in windows] == [
        (first, first + 3600),
        (first + 604800 + 3600, first + 604800 + 7200),
    ]
    with pytest.raises(
        WorkloadError, match="workload: a log with dates is needed for the calendar, found none"
    ):
        calendar.on(log({}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[[calendar]]\nstart = 5\n",
            "calendar.toml:1: a window needs a start, and either an end or a duration",
        ),
        (
            "[[calendar]]\nstart = 5\nend = 9\nnode = 3\n",
            "calendar.toml:1: unknown key 'node' of a window; known",
        ),
        (
            "[[calendar]]\nstart = 5\nend = 5\n",
            "calendar.toml:1: a calendar needs windows that end after they",
        ),
        (
            "[[calendar]]\nstart = 5\nduration = 1\nevery = 9\n",
            "a window is repeated with 'every' and 'times'",
        ),
        (
            "[[calendar]]\nstart = 'noon'\nend = 5\n",
            "a window needs seconds or dates such as '2024-01-31 08:00'",
        ),
        ("[[calendar]]\nstart = '2024-01-31'\nend = 5\n", "a window needs seconds or dates for both ends"),
        (
            "[[calendar]]\nstart = 1\nend = 5\nusers = 'ann'\n",
            "a window: users needs a list of names, found 'ann'",
        ),
        ("[[calendar]]\nstart = 1\nend = 5\nnodes = 0\n", "with 1 node or more, found Window"),
        ("[[windows]]\nstart = 1\n", "calendar.toml: tables [[calendar]] are needed, found windows"),
        ("start =", "calendar.toml: not TOML"),
        ("ReservationName=a Nodes=n1 StartTime=x\n", "calendar.toml:1: reservation 'a': EndTime is needed"),
    ],
)
def test_invalid_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_calendar(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_reservation_for_all_but_some_accounts_is_left_out(tmp_path: Path) -> None:
    text = "ReservationName=x StartTime=2024-02-01T08:00:00 EndTime=2024-02-01T18:00:00 Nodes=n1 Accounts=-music\n"
    found = read_calendar(written(tmp_path, text))
    assert not found and found.notes["reservation for all but some: left out"] == 1
