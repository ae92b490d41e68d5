"""The witness: its submissions are those of its seed and shape; a whole day on a real Slurm is slow."""

from __future__ import annotations

import gzip
import random
import re
import shutil
from pathlib import Path

import pytest

from tests.slurm_witness.__main__ import PROGRAMS, _planned, _starts, lines_of, play
from tests.slurm_witness.load import SHAPES, submission


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_seeds_submit_equal_days(shape: str) -> None:
    days = [_day(shape, seed) for seed in (1, 1, 2)]
    assert days[0] == days[1] != days[2]
    for command in days[0]:
        assert command[:2] == ["sbatch", "--parsable"] and command[-2] == "--wrap"
        assert 1 <= int(command[command.index("-t") + 1]) <= 8 * 500


def _day(shape: str, seed: int) -> list[list[str]]:
    rng, known = random.Random(seed), list[str]()
    commands = []
    for number in range(200):
        commands.append(submission(rng, SHAPES[shape], known))
        known.append(str(number + 1))
    return commands


def test_shapes_are_what_they_are_called() -> None:
    def share(shape: str, option: str) -> float:
        return sum(option in " ".join(command) for command in _day(shape, 3)) / 200

    assert share("arrays", "--array") > 2 * share("mixed", "--array")
    assert share("limits", "--qos=limited") > 2 * share("mixed", "--qos=limited")
    assert share("preemption", "--qos=low") > 1.5 * share("mixed", "--qos=low")


def test_starts_and_plans(tmp_path: Path) -> None:
    (tmp_path / "day.sacct").write_text(
        "JobID|State|Start\n7|PREEMPTED|50\n7|COMPLETED|90\n8|PENDING|Unknown\n"
    )
    assert _starts(tmp_path / "day.sacct", at=50) == {"7": 50}
    assert _starts(tmp_path / "day.sacct", at=51) == {"7": 90}
    lines = ["heading", *(f"{job}|cpu|u|a|q|{state}|1|1|1|0|{start}|r" for job, state, start in (
        ("8", "PENDING", "2026-11-28T05:00:00"), ("9", "PENDING", "N/A"), ("7", "RUNNING", "2026-11-28T04:00:00"),
    ))]  # fmt: skip
    (tmp_path / "squeue.txt").write_text("\n".join(lines))
    assert _planned(tmp_path / "squeue.txt") == {"8": 1_795_842_000}


DAYS = Path(__file__).parents[1] / "slurm_witness/days"


def _unpack(seed: str, folder: Path) -> Path:
    """Return a folder with a day that was played on a real Slurm, as the witness leaves it."""
    day = shutil.copytree(DAYS / seed / "conf", folder / seed)
    (day / "snapshots/1").mkdir(parents=True)
    for file in (DAYS / seed).rglob("*"):
        place = day / "snapshots/1" if file.parent.name == "snapshot" else day
        if file.suffix == ".gz":
            (place / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        elif file.name == "at":
            shutil.copyfile(file, place / file.name)
    return Path(shutil.move(day / "day.sacct", day / "fast_full.sacct")).parent


@pytest.mark.parametrize("seed", [each.name for each in sorted(DAYS.iterdir())])
def test_a_recorded_day(seed: str, tmp_path: Path) -> None:
    """Priorities and fair shares at a snapshot are those of the real Slurm; waits are within the bars."""
    text = "\n".join(lines_of(_unpack(seed, tmp_path), futures=0, replays=1))
    found = re.search(r"priorities .*: (\d+) of (\d+)\nfair shares .*: (\d+) of (\d+)\n", text)
    assert found is not None, text
    near, jobs, equal, users = map(int, found.groups())
    assert jobs > 10 and near >= jobs - 1 and equal == users > 5
    ratio = float(re.findall(r"ratio of mean waits: (\S+)", text)[0])
    assert re.search(r"ratio in 1 replays .* mean (0\.[89]|1\.[01])", text), text
    distance = float(re.findall(r"KS distance of waits: (\S+)", text)[0])
    assert 0.85 <= ratio <= 1.2 and distance <= 0.08, text
    same, of = map(int, re.findall(r"reasons equal to squeue %r: (\d+) of (\d+)", text)[0])
    assert of > 30 and same >= 0.97 * of, text


@pytest.mark.slow
@pytest.mark.skipif(
    any(shutil.which(name) is None for name in PROGRAMS), reason="needs Slurm, see tests.slurm_witness"
)
def test_a_day_on_a_real_slurm(shared: Path, tmp_path: Path) -> None:
    play(tmp_path / "day", seed=1, shape="mixed", jobs=60, hours=1)
    text = "\n".join(lines_of(tmp_path / "day", futures=5))
    assert "ratio of mean waits" in text
