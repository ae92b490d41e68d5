"""The synthetic centre of the guide: what its scheduler keeps to, and what the kit makes of its output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

from hpcsimkit import Machines
from hpcsimkit.run import main
from tests.little_slurm import DAY, QUEUES, LittleSlurm, Work, drawn_jobs, nodes, sacct, scontrol

NODES = """\
[[machines]]
count = 64
name = "cpu"
cpus = 32
memory = "128 GiB"

[[machines]]
count = 6
name = "fat"
cpus = 64
memory = "1024 GiB"

[[machines]]
count = 10
name = "gpu"
cpus = 32
gpus = 4
memory = "256 GiB"

[[machines]]
count = 2
name = "test"
cpus = 32
memory = "128 GiB"
"""


@pytest.fixture(scope="module")
def centre() -> LittleSlurm:
    """A day of many jobs."""
    centre = LittleSlurm(drawn_jobs(1, 900, seed=1))
    centre.run()
    return centre


def test_jobs_respect_limits(centre: LittleSlurm) -> None:
    ended = [job for job in centre.jobs if job.start >= 0]
    assert len(ended) > 800
    assert {job.queue.name for job in ended} == {queue.name for queue in QUEUES}
    assert any(job.start > job.submit for job in ended)
    for job in ended:
        assert job.submit <= job.start
        assert job.end - job.start == min(job.run, job.limit) <= job.queue.max_time
        assert len(set(job.where)) == job.nodes
        assert set(job.where) <= set(centre.places[job.queue].tolist())
        assert not job.queue.accounts or job.account in job.queue.accounts


def test_nodes_are_never_overcommitted(centre: LittleSlurm) -> None:
    moves = [(job.start, 1, job) for job in centre.jobs if job.start >= 0]
    moves += [(job.end, -1, job) for _, _, job in moves]
    used = np.zeros_like(centre.capacity)
    for _, sign, job in sorted(moves, key=lambda move: move[:2]):  # ends before starts
        used[job.where] += sign * np.array(job.request)
        assert (used >= 0).all()
        assert (used <= centre.capacity).all()
    assert not used.any()


def test_a_blocked_partition_closes_its_nodes() -> None:
    """Jobs of ``long``, a lower tier on some nodes of ``cpu``, wait longer than if they were not closed to them."""

    def mean_wait(*, closes_nodes: bool) -> float:
        centre = LittleSlurm(drawn_jobs(1, 900, seed=1), closes_nodes=closes_nodes)
        centre.run()
        return float(
            np.mean(
                [job.start - job.submit for job in centre.jobs if job.start >= 0 and job.queue.name == "long"]
            )
        )

    assert mean_wait(closes_nodes=True) > 2 * mean_wait(closes_nodes=False)


def test_a_seed_gives_one_month() -> None:
    def printed(seed: int) -> str:
        centre = LittleSlurm(drawn_jobs(1, 100, seed))
        centre.run()
        return sacct(centre.jobs)

    assert printed(3) == printed(3) != printed(4)


def test_the_kit_reads_it(
    centre: LittleSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank_pictures: None
) -> None:
    """A job for each line, and partitions with their limits; without waits the kit agrees."""
    monkeypatch.chdir(tmp_path)
    apart = drawn_jobs(1, 40, seed=2)
    for number, job in enumerate(apart):  # one after the other
        job.submit += 8 * DAY * number
    alone = LittleSlurm(apart)
    alone.run()
    assert waits(apart) == [0] * 40
    for jobs, name in ((apart, "apart"), (centre.jobs, "day")):
        (tmp_path / "march.sacct").write_text(sacct(jobs))
        (tmp_path / "partitions.txt").write_text(scontrol())
        (tmp_path / "nodes.toml").write_text(NODES)
        words = [
            "validate",
            "march.sacct",
            "--machines",
            "nodes.toml",
            "--partitions",
            "partitions.txt",
            "--out",
        ]
        with pytest.raises(SystemExit) as left:
            main([*words, name])
        assert left.value.code == 0
    table = pandas.read_csv("apart/validation.csv").set_index(["by", "group"])
    assert table.loc[("all", "all jobs"), ["jobs", "recorded", "simulated"]].tolist() == [40, 0, 0]
    table = pandas.read_csv("day/validation.csv").set_index(["by", "group"])
    assert set(table.loc["partition"].index) == {queue.name for queue in QUEUES}
    assert table.loc[("all", "all jobs"), "jobs"] == sum(job.start >= 0 for job in centre.jobs)


def test_backfill_of_every_job_shortens_waits(centre: LittleSlurm) -> None:
    """A day of many jobs has more waiting jobs in a partition than backfill tests."""
    every = LittleSlurm(drawn_jobs(1, 900, seed=1), every_job=True)
    every.run()
    assert np.mean(waits(every.jobs)) < np.mean(waits(centre.jobs))


def test_the_nodes_that_it_prints(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(nodes())
    (tmp_path / "nodes.toml").write_text(NODES)
    printed, table = Machines.read(tmp_path / "nodes.txt"), Machines.read(tmp_path / "nodes.toml")
    assert (printed.names, printed.features) == (table.names, table.features)
    assert all(np.array_equal(printed.amount(name), table.amount(name)) for name in table.resources)
    assert np.array_equal(printed.amount("gpus:a100"), printed.amount("gpus")), "the only model"


def waits(jobs: list[Work]) -> list[int]:
    return [job.start - job.submit for job in jobs if job.start >= 0]
