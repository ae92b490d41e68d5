"""`train` for the seat that chooses a job and its machine: a real log, machines of a file, all that learns it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.experiments.training.training import Training
from tests.cli.test_train import without_rates

BEOCAT = """
log = "{log}"
machines = "{machines}"
stage = "dispatch"
slots = 4
jobs = {jobs}
{more}

[encoder]
name = "{encoder}"

[reward]
name = "MinusMeanWait"
scale = 3600.0

[trainer]
algorithm = "{algorithm}"
total_timesteps = 384
episodes = 4
hidden = [8]
{settings}

[episodes]
jobs = 60

[validation]
metric = "mean_wait_time"
windows = 2
every = 2
"""
MONTH, DAY = "traces/beocat-2021-03.csv.gz", "refs/beocat/20210603_jobs.csv.gz"
OURS = "n_steps = 32\nn_epochs = 2\nbatch_size = 64\nclip_range_vf = 1.0\nnormalise = 'batch'\n"
THEIRS = "[trainer.options]\nn_steps = 32\nbatch_size = 64\nn_epochs = 2\n"


def training(
    folder: Path, shared: Path, algorithm: str, encoder: str, settings: str, more: str = "", log: str = DAY
) -> Path:
    (folder / "t.toml").write_text(
        BEOCAT.format(
            log=shared / log, machines=shared / "refs/beocat/nine_machines.csv.gz",
            algorithm=algorithm, encoder=encoder, settings=settings, more=more, jobs=900 if log == DAY else 1500,
        )
    )  # fmt: skip
    return folder / "t.toml"


@pytest.mark.parametrize(
    "encoder", ["RequestsAndMachines", pytest.param("JobMachinePairs", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        pytest.param("ppo", OURS, marks=pytest.mark.slow),
        ("ppo", OURS + "kind = 'slots'\n"),
        pytest.param("maskable-ppo", THEIRS, marks=pytest.mark.slow),
    ],
)
def test_pairs_on_a_real_log(cli, tmp_path, shared, encoder, algorithm, settings) -> None:
    if "slots" in settings and encoder == "RequestsAndMachines":
        line = cli("train", training(tmp_path, shared, algorithm, encoder, settings), "-q").line()
        assert line == "a network of slots needs rows for 36 actions, found shape (43,)"
        return
    file = training(tmp_path, shared, algorithm, encoder, settings, log=MONTH)
    outcome = cli("train", file, "--out", "agent")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0].startswith("beocat-2021-03: ")
    assert "9 machines (496 cpus, 16 gpus, 4.352 TB memory)" in outcome.out
    assert "\nfcfs+fitting " in outcome.out
    rows = without_rates(tmp_path / "agent")
    assert [int(row["steps"]) for row in rows] == [128, 256, 384]
    agent = Agent.load(tmp_path / "agent" / "best.hpcsim")
    assert type(agent.encoder).__name__ == encoder
    assert agent.mask.actions == 36
    saved = tomllib.loads((tmp_path / "agent" / "training.toml").read_text())
    assert saved["machines"] == str(shared / "refs/beocat/nine_machines.csv.gz")
    if encoder == "JobMachinePairs":
        assert agent.encoder.resources == 3  # type: ignore[attr-defined]

    where = ["--machines", shared / "refs/beocat/nine_machines.csv.gz", "--skip", 2000, saved["log"]]
    flags = ["--sequences", 3, "--jobs", 60, "-p", "bfbp", "-p", "sjf+fitting", "--out", "e"]
    outcome = cli("evaluate", "agent/best.hpcsim", *where, *flags)
    assert (outcome.code, outcome.err) == (0, "")
    assert "agent/best.hpcsim: on the dispatch seat of fcfs, takes the best action" in outcome.out


def test_the_saved_file_trains_the_same_again(cli, tmp_path, shared) -> None:
    file = training(tmp_path, shared, "ppo", "JobMachinePairs", OURS)
    assert cli("train", file, "--out", "one", "-q") == (0, "", "")
    assert cli("train", "one/training.toml", "--out", "two", "-q") == (0, "", "")
    for name in ("best.hpcsim", "last.hpcsim", "training.toml"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_an_agent_keeps_the_order_it_was_trained_behind(cli, tmp_path, shared) -> None:
    """Wherever its name is said, jobs are offered in that order."""
    file = training(tmp_path, shared, "ppo", "RequestsAndMachines", OURS, more='policy = "sjf"')
    outcome = cli("train", file, "--out", "agent", "--steps", 128)
    assert "\nsjf+fitting " in outcome.out
    seated = make(f"agent:{tmp_path}/agent/best.hpcsim")
    assert seated.queue_order == make("sjf").queue_order
    assert seated == Training.read(tmp_path / "agent" / "training.toml").with_seats(
        {"dispatch": Agent.load(tmp_path / "agent" / "best.hpcsim")}
    )
    outcome = cli(
        "evaluate", "agent/best.hpcsim", "--machines", shared / "refs/beocat/nine_machines.csv.gz",
        "--sequences", 2, "--jobs", 40, "-p", "bfbp", "--out", "e", shared / "refs/beocat/20210603_jobs.csv.gz",
    )  # fmt: skip
    assert "on the dispatch seat of sjf, takes the best action" in outcome.out


def test_other_machines_than_those_of_the_training(cli, tmp_path, shared) -> None:
    file = training(tmp_path, shared, "ppo", "JobMachinePairs", OURS)
    assert cli("train", file, "--out", "agent", "--steps", 128, "-q") == (0, "", "")
    line = cli(
        "evaluate", "agent/best.hpcsim", "--machines", shared / "traces/beocat-machines.csv",
        shared / "refs/beocat/20210603_jobs.csv.gz", "-p", "bfbp", "--sequences", 2, "--jobs", 40, "--out", "e",
    ).line()  # fmt: skip
    assert line.startswith(
        "agent/best.hpcsim: JobMachinePairs(slots=4, machines=9, resources=3) needs 9 machines with 3 resources, "
        "found Machines(359: "
    )


def test_machines_that_are_counted_only(cli, tmp_path) -> None:
    (tmp_path / "t.toml").write_text('stage = "dispatch"\n[encoder]\nname = "JobMachinePairs"\n')
    line = cli("train", "t.toml").line()
    assert line == "t.toml:3: encoder.name: JobMachinePairs needs machines, and none are given"
