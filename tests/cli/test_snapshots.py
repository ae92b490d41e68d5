"""A comparison that is killed within a run goes on there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.conftest import CLI
from tests.waiting import PATIENCE

ARGUMENTS = ("compare", "-p", "fcfs+conservative", "--jobs", "800", "--no-report", "-q")


def test_a_killed_comparison_goes_on_within_the_run(cli: CLI, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "hpcsimkit.run", *ARGUMENTS, "--snapshots", "0", "-o", str(out)]
    process = subprocess.Popen(command)
    until = time.monotonic() + PATIENCE
    while not (found := list(tmp_path.rglob("snapshot.npz"))) and time.monotonic() < until:
        assert process.poll() is None, "it ended before a snapshot was there"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert found
    done = cli(*ARGUMENTS, "--snapshots", "600", "-o", out, "--resume")
    assert done.code == 0, done.err
    assert not list(tmp_path.rglob("snapshot.npz"))
    assert cli(*ARGUMENTS, "-o", tmp_path / "plain").code == 0
    for name in ("metrics.csv", "jobs/fcfs+conservative.csv"):
        assert (out / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def test_a_damaged_snapshot_is_one_line(cli: CLI, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "hpcsimkit.run", *ARGUMENTS, "--snapshots", "0", "-o", str(out)]
    process = subprocess.Popen(command)
    until = time.monotonic() + PATIENCE
    while not (found := list(tmp_path.rglob("snapshot.npz"))) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    found[0].write_bytes(b"x")
    line = cli(*ARGUMENTS, "--snapshots", "600", "-o", out, "--resume").line()
    assert "snapshot.npz: a snapshot is needed, found something else or damaged" in line
