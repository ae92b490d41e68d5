"""A workload in numbers, checked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import WorkloadError
from hpcsimkit.experiments.parts.on_machines import described
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import burst, describe, poisson, read_log, read_swf


@pytest.fixture
def workload() -> Workload:
    return Workload(
        {
            "submit_time": [0, 7200, 100, 90_000],
            "run_time": [0, 59, 3600, 86_400],
            "requested_time": [60, 60, 1800, 172_800],
            "nodes": [1, 3, 8, 16],
            "user": [1, 1, 2, -1],
            "preceding": [-1, 1, -1, -1],
        },
        machine_size=8,
        skipped={"run time unknown (first: line 3)": 2},
        notes={"run time 0": 1},
    )


def test_sections(workload: Workload) -> None:
    s = describe(workload).sections
    assert s["jobs"] == {"jobs": 4, "users": 2, "after a preceding job": 1}
    assert s["time"]["machine [nodes]"] == 8
    assert s["time"]["span [days]"] == 90_000 / 86_400
    area = 59 * 3 + 3600 * 8 + 86_400 * 16
    assert s["time"]["offered load"] == pytest.approx(area / (8 * 90_000))
    assert s["sizes [nodes]"]["median"] == 5.5
    assert s["sizes [nodes]"]["mean"] == 7
    assert s["sizes [nodes]"]["serial (share)"] == 0.25
    assert s["sizes [nodes]"]["power of two (share)"] == 0.75
    assert s["sizes [nodes]"]["larger than the machine (jobs)"] == 1
    assert s["jobs by size [nodes]"] == {"1": 1, "2": 0, "3-4": 1, "5-8": 1, "9-16": 1}
    assert s["node-hours by size [nodes]"] == {"1": 0, "2": 0, "3-4": 0, "5-8": 8, "9-16": 384}
    assert s["jobs by run time"] == {
        "under 1 min": 2, "1 to 10 min": 0, "10 min to 1 h": 0, "1 to 6 h": 1, "6 to 24 h": 0,
        "1 day and more": 1,
    }  # fmt: skip
    assert s["run times [s]"]["max"] == 86_400
    assert s["estimates"]["exact or not given (share)"] == 0
    assert s["estimates"]["run time above requested (share)"] == 0.25
    assert s["estimates"]["run time / requested, max"] == 2
    assert s["estimates"]["most requested, 1"] == "60 s by 50.0% of the jobs"
    # sorted submissions 0, 100, 7200, 90000
    assert s["times between arrivals [s]"]["median"] == 7100
    assert s["times between arrivals [s]"]["mean"] == 30_000
    assert s["skipped jobs"] == {"run time unknown (first: line 3)": 2}
    assert s["notes (jobs)"] == {"run time 0": 1}


def test_clock_of_the_log(workload: Workload) -> None:
    d = describe(workload)
    assert not d.calendar
    assert {hour: n for hour, n in enumerate(d.by_hour.tolist()) if n} == {0: 2, 1: 1, 2: 1}
    assert d.by_weekday.tolist() == [3, 1, 0, 0, 0, 0, 0]
    assert d.day_names[0] == "day 1"


@pytest.mark.parametrize(
    ("header", "hour", "weekday", "shown"),
    [
        # 843480031 is Monday 23 September 1996 12:00:31 UTC
        ({"UnixStartTime": "843480031"}, 12, 0, "Mon 23 Sep 1996 12:00"),
        ({"UnixStartTime": "843480031", "TimeZone": "3600"}, 13, 0, "Mon 23 Sep 1996 13:00 UTC+01:00"),
        ({"UnixStartTime": "843480031", "TimeZone": "-64800"}, 18, 6, "Sun 22 Sep 1996 18:00 UTC-18:00"),
        (
            {"UnixStartTime": "843480031", "TimeZoneString": "Nowhere/At all"},
            12,
            0,
            "Mon 23 Sep 1996 12:00",
        ),
        ({"UnixStartTime": "0"}, 0, 0, None),
        ({"UnixStartTime": "N/A"}, 0, 0, None),
        ({"UnixStartTime": "9" * 20}, 0, 0, None),
    ],
)
def test_calendar(header: dict[str, str], hour: int, weekday: int, shown: str | None) -> None:
    d = describe(Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, header=header))
    assert d.calendar == (shown is not None)
    assert (int(d.by_hour.argmax()), int(d.by_weekday.argmax())) == (hour, weekday)
    assert d.sections["time"].get("first submission") == shown


def test_standard_time_of_a_named_zone() -> None:
    zoneinfo = pytest.importorskip("zoneinfo")
    if "US/Mountain" not in zoneinfo.available_timezones():
        pytest.skip("no table of time zones on this machine")
    header = {"UnixStartTime": "843480031", "TimeZoneString": "US/Mountain"}
    d = describe(Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, header=header))
    assert d.by_hour.argmax() == 5  # 12:00 UTC less 7 h, although daylight saving time was in force


def test_absolute_submit_times_are_dates() -> None:
    header = {"UnixStartTime": "0"}
    d = describe(Workload({"submit_time": [1641021254], "run_time": [1], "nodes": [1]}, header=header))
    assert d.sections["time"]["first submission"] == "Sat 01 Jan 2022 07:14"
    assert d.sections["time"]["clock"] == "time zone not given"
    assert d.day_names[int(d.by_weekday.argmax())] == "Saturday"


def test_without_estimates(shared: Path) -> None:
    d = describe(read_swf(shared / "traces" / "lublin-1.swf"))
    assert d.sections["estimates"] == {
        "exact or not given (share)": 1.0,
        "not given (jobs of the log)": 10_000,
    }


def test_machine_of_ones_own(workload: Workload) -> None:
    assert (
        describe(workload, machine_size=16).sections["sizes [nodes]"]["larger than the machine (jobs)"] == 0
    )
    lonely = Workload({"submit_time": [5], "run_time": [1], "nodes": [1]})
    assert describe(lonely).sections["time"]["machine [nodes]"] == "unknown"
    assert "offered load" not in describe(lonely, machine_size=4).sections["time"]


@pytest.mark.parametrize("make", [burst, poisson])
def test_json_and_text(make: type, workload: Workload) -> None:
    for found in (describe(workload), describe(make(50, np.random.default_rng(1)))):
        data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert (
            sum(data["jobs by hour"].values())
            == data["jobs"]["jobs"]
            == sum(data["jobs by weekday"].values())
        )
        text = str(found)
        assert text.startswith(found.name)
        assert all(title in text for title in ("jobs by hour", "run times [s]", "estimates"))


def test_nothing_to_describe() -> None:
    with pytest.raises(WorkloadError, match="at least one job needed"):
        describe(Workload({"submit_time": [], "run_time": [], "nodes": []}))


def test_what_is_asked_for_of_each_resource() -> None:
    columns = {
        "submit_time": [0, 1, 2, 3], "run_time": [1, 1, 1, 1], "nodes": [1, 2, 1, 1],
        "cpus": [4, 8, 20, 1], "spread": [0, 0, 1, 0], "gpus": [0, 1, 0, 0],
        "memory": [10**9, 2 * 10**9, 0, 3 * 10**9], "tapes": [0, 0, 0, 0],
    }  # fmt: skip
    sections = describe(Workload(columns, resources=("cpus", "gpus", "memory", "tapes"))).sections
    assert [name for name in sections if "asked" in name] == [
        "cpus asked for", "gpus asked for", "memory asked for [GB]", "tapes asked for", "nodes asked for",
    ]  # fmt: skip
    assert sections["cpus asked for"]["max"] == 20
    assert sections["cpus asked for"]["mean"] == (4 + 16 + 20 + 1) / 4
    assert sections["gpus asked for"]["jobs that ask for it (share)"] == 0.25
    assert sections["gpus asked for"]["median"] == 2
    assert sections["memory asked for [GB]"]["mean"] == pytest.approx((1 + 4 + 3) / 3)
    assert sections["tapes asked for"] == {"jobs that ask for it (share)": 0}
    assert sections["nodes asked for"]["max"] == 2
    assert sections["jobs by size [cpus]"] == {"1": 1, "2": 0, "3-4": 1, "5-8": 0, "9-16": 1, "17-32": 1}
    assert list(sections["cpu-hours by size [cpus]"].values()) == [0] * 6  # jobs of a second
    assert "machine [nodes]" not in sections["time"]


def test_what_was_understood_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "x.sacct"
    rows = (f"{number}|{1709276400 + number}|{1709276400 + number}|60|2|{number}" for number in (1, 2))
    path.write_text("JobID|Submit|Start|ElapsedRaw|NCPUS|MaxRSS\n" + "\n".join([*rows, "x"]) + "\n")
    sections = describe(read_log(path)).sections
    assert sections["log"] == {
        "format": "sacct --parsable2", "columns read": "JobID, Submit, Start, ElapsedRaw, NCPUS", "columns not read": "MaxRSS",
        "resources": "cpus, gpus, memory", "jobs left out": 1,
    }  # fmt: skip
    assert list(sections["stands out"]) == ["all requested times are equal", "waits"]
    assert describe(poisson(5, np.random.default_rng(1))).sections["log"] == {}


def test_more_in_use_than_exists() -> None:
    columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [3, 4], "recorded_wait_time": [1, 0]}
    stands_out = describe(Workload(columns, machine_size=6)).sections["stands out"]
    assert stands_out == {
        "more in use on record than exists": "7 of 6 nodes",
        "all requested times are equal": "9 s",
    }
    on_machines = described(
        Workload(columns | {"cpus": [3, 4]}, resources=("cpus",)), Machines.of(20, cpus=1)
    )
    assert on_machines.sections["stands out"]["more in use on record than exists"] == "25 cpus of 20 cpus"
