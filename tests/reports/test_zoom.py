"""The data of the zooming chart: columns of the schedules, safe within a page, limited in number."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray

from hpcsimkit import Simulation, Workload, make
from hpcsimkit.reports import zoom
from hpcsimkit.reports.zoom import zoom_data

TIMES = {"submit_time": [0, 1, 2, 3], "run_time": [10, 10, 5, 20], "requested_time": [10, 10, 5, 20]}
WORKLOAD = Workload({**TIMES, "nodes": [2, 4, 1, 2]}, machine_size=4)
EASY = Simulation(WORKLOAD, make("fcfs+easy")).run()


def unpacked(text: str) -> NDArray[np.float64]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f8")


def test_columns_are_those_of_the_schedule() -> None:
    data = json.loads(zoom_data({"easy": EASY}))
    assert (data["begin"], data["size"], data["unit"], data["names"]) == (0, 4, "nodes", None)
    assert unpacked(data["jobs"]["size"]).tolist() == [2, 4, 1, 2]
    policy = data["policies"][0]
    assert unpacked(policy["begin"]).tolist() == EASY.start_time.tolist()
    assert unpacked(policy["end"]).tolist() == EASY.end_time.tolist()
    job, low, high = (unpacked(policy[name]) for name in ("job", "low", "high"))
    heights = np.bincount(job.astype(int), weights=high - low)
    assert heights.tolist() == [2, 4, 1, 2], "each job is as high as its nodes"


def test_names_do_not_end_the_element() -> None:
    text = zoom_data({"</script><b>": EASY})
    assert "<" not in text and json.loads(text)["policies"][0]["name"] == "</script><b>"


def test_policies_beyond_the_limit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoom, "MOST_JOBS", 9)
    data = json.loads(zoom_data({"a": EASY, "b": EASY, "c": EASY}))
    assert [policy["name"] for policy in data["policies"]] == ["a", "b"]
    assert data["note"] == "Left out for their number of jobs: c."
    monkeypatch.setattr(zoom, "MOST_JOBS", 3)
    assert zoom_data({"a": EASY}) == ""
