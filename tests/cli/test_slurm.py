"""`--slurm FOLDER` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.slurm.scheduler import SlurmScheduler
from tests.cli.conftest import CLI
from tests.slurm.small import CONF, write
from tests.slurm.snapshots import configuration

LOG = """\
JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES|NodeList|SubmitLine
1|ada|red|work|normal|COMPLETED|1700001000|1700001000|1700001000|1700001200|200|5|cpu=40,mem=1G,node=5|cpu=40,mem=1G,node=5|n[1-4],big|sbatch a
2|ada|red|long|normal|COMPLETED|1700001010|1700001010|1700001200|1700001260|60|2|cpu=8,mem=1G,node=1|cpu=8,mem=1G,node=1|n3|sbatch a
3|cleo|blue|gpu|normal|COMPLETED|1700001020|1700001020|1700001020|1700001080|60|2|cpu=1,gres/gpu=4,mem=1G,node=1|cpu=8,gres/gpu=4,mem=1G,node=1|gpu1|sbatch a
4|cleo|blue|gpu|high|COMPLETED|1700001030|1700001030|1700001080|1700001140|60||cpu=1,gres/gpu=1,mem=1G,node=1|cpu=1,gres/gpu=1,mem=1G,node=1|gpu2|sbatch -p gpu,any a
5|ben|red|nowhere|normal|COMPLETED|1700001030|1700001030|1700001080|1700001140|60|2|cpu=1,mem=1G,node=1|cpu=1,mem=1G,node=1|n1|sbatch a
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf")
    (tmp_path / "day.sacct").write_text(LOG)
    return tmp_path


def test_compare(cli: CLI, here: Path) -> None:
    """The profile comes first; others schedule the partitions of the folder with reservations of their own."""
    outcome = cli("compare", "day.sacct", "--slurm", "conf", "--out", "out", "--no-report")
    assert outcome.code == 0, outcome.err
    rows = [
        line.split()[0] for line in outcome.out.splitlines() if line.startswith(("as-configured", "fcfs"))
    ]
    assert rows[:3] == ["as-configured", "fcfs", "fcfs+easy"]
    assert "1 skipped: 1 may not run: unknown partition 'nowhere'" in outcome.out
    assert "1 all CPUs of their nodes allocated, fewer requested (--exclusive): whole nodes" in outcome.out
    assert "1 several partitions asked for (SubmitLine): may start in any of them" in outcome.out
    assert "1 no estimate: time limit of the partition taken" in outcome.out
    started = pandas.read_parquet(here / "out" / "jobs" / "as-configured.parquet")
    assert started["wait_time"].tolist() == [0, 190, 0, 0]
    again = cli("compare", "out/experiment.toml", "--out", "again", "--no-report")
    assert again.code == 0, again.err
    metrics = [pandas.read_csv(here / name / "metrics.csv") for name in ("out", "again")]
    assert metrics[0]["mean_wait_time"].tolist() == metrics[1]["mean_wait_time"].tolist()


def test_results_belong_to_the_files(cli: CLI, here: Path) -> None:
    """Another file makes other settings, and a saved experiment refuses it."""
    assert cli("compare", "day.sacct", "--slurm", "conf", "--out", "out", "--no-report").code == 0
    write(here / "conf", conf=CONF.replace("bf_interval=15", "bf_interval=20"))
    line = cli("compare", "day.sacct", "--slurm", "conf", "--out", "out", "--no-report").line()
    assert "out: other results" in line or "slurm" in line
    line = cli("compare", "out/experiment.toml", "--out", "again", "--no-report").line()
    assert "conf: a text with SHA-256" in line


def test_the_rules_of_the_folder_are_defaults(cli: CLI, here: Path) -> None:
    """Jobs end at their limits, unless --walltime says otherwise."""
    (here / "day.sacct").write_text(LOG.replace("|60|2|cpu=8", "|600|2|cpu=8"))
    for flags, end in (((), 120), (("--walltime", "run"), 600)):
        assert (
            cli(
                "compare",
                "day.sacct",
                "--slurm",
                "conf",
                "-p",
                "as-configured",
                *flags,
                "--no-report",
                "--out",
                "o",
                "--overwrite",
            ).code
            == 0
        )
        jobs = pandas.read_parquet(here / "o" / "jobs" / "as-configured.parquet")
        assert (jobs["end_time"] - jobs["start_time"]).tolist()[1] == end
        options = json.loads((here / "o" / "provenance.json").read_text())
        assert "restart" in str(options)


def test_validate_takes_the_policy_of_the_folder(cli: CLI, here: Path) -> None:
    outcome = cli("validate", "day.sacct", "--slurm", "conf", "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "agreement of as-configured with the record" in outcome.out
    other = cli("validate", "day.sacct", "--slurm", "conf", "-p", "fcfs", "--out", "other")
    assert "agreement of fcfs with the record" in other.out


def test_what_if_and_predict(cli: CLI, here: Path) -> None:
    """With a fifth node in ``long``, its job starts at once."""
    outcome = cli("what-if", "day.sacct", "--slurm", "conf", "--set", "long.nodes+=1", "--out", "out")
    assert outcome.code == 0, outcome.err
    table = pandas.read_csv(here / "out" / "what-if.csv").set_index(["by", "group"])
    assert table.loc[("partition", "long"), ["before", "after"]].tolist() == [190, 0]
    line = cli("what-if", "day.sacct", "--slurm", "conf", "--set", "long.order=sjf", "--out", "two").line()
    assert "partition 'long': Slurm as configured has no order" in line
    assert (
        cli("predict", "day.sacct", "--slurm", "conf", "--predictor", "requested", "--out", "three").code == 0
    )


def test_partitions_are_an_axis(cli: CLI, here: Path) -> None:
    """One of four jobs waits 190 s; with the GPU node of ``short`` not at all, but a GPU job after it 40 s.

    Another file in the folder makes other cells.
    """
    words = ("sweep", "day.sacct", "--slurm", "conf", "-p", "as-configured", "--question", "what-if")
    axis = "question.set=short.merged=long,short.removed=long"
    outcome = cli(*words, "--axis", axis, "--no-report", "--out", "out")
    assert outcome.code == 0, outcome.err
    cells = pandas.read_csv(here / "out" / "cells.csv").set_index("question.set")
    assert cells["mean_wait_before"].tolist() == [47.5, 47.5]
    assert cells["mean_wait_after"].to_dict() == {"short.merged=long": 10, "short.removed=long": 47.5}
    write(here / "conf", conf=CONF.replace("bf_interval=15", "bf_interval=20"))
    assert cli(*words, "--axis", axis, "--no-report", "--out", "other").code == 0
    others = pandas.read_csv(here / "other" / "cells.csv")
    assert not {*others["cell"]} & {*cells["cell"]}


def test_in_an_experiment(cli: CLI, here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "e.toml").write_text(
        'log = "../day.sacct"\nslurm = "../conf"\npolicies = ["as-configured"]\n'
    )
    outcome = cli("compare", "sub/e.toml", "--out", "out", "--no-report")
    assert outcome.code == 0, outcome.err
    assert "as-configured" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--machines", "m.csv"), "one of 'slurm' and 'machines' is needed, both are given"),
        (("--partitions", "p.toml"), "one of 'slurm' and 'partitions' is needed, both are given"),
        (("--nodes", "4"), "one of 'slurm' and 'nodes' is needed, both are given"),
        (("--semantics", "dirlab"), "'slurm' is not known to the rules 'dirlab'"),
        (("--simulator", "compiled"), "the compiled simulator cannot run this"),
    ],
)
def test_what_cannot_be_combined(cli: CLI, here: Path, words: tuple[str, ...], message: str) -> None:
    assert (
        message in cli("compare", "day.sacct", "--slurm", "conf", "--no-report", *words, "--out", "o").line()
    )


def test_a_folder_and_the_name_belong_together(cli: CLI, here: Path) -> None:
    assert (
        "a folder with slurm.conf is needed"
        in cli("compare", "day.sacct", "--slurm", "no", "--out", "o").line()
    )
    assert (
        "unknown policy 'as-configured'"
        in cli("compare", "day.sacct", "-p", "as-configured", "--out", "o").line()
    )


def test_learn_takes_the_cluster(cli: CLI, here: Path) -> None:
    """Rules run on its machines and in its partitions; what is configured can be tested beside them."""
    outcome = cli("learn", "day.sacct", "--slurm", "conf", "--beside", "as-configured")
    assert "at least 3 weeks are needed to learn" in outcome.line()
    assert "7 machines" in outcome.out and "for --beside as-configured only" in outcome.out
    settings = Learning(log="day.sacct", slurm="conf", beside=["as-configured"])
    assert isinstance(settings.policy_named("as-configured"), SlurmScheduler)
    assert settings.setup.cluster == settings.profile.partitions and settings.setup.walltime == "kill"


def test_a_real_day(cli: CLI, tmp_path: Path, shared: Path) -> None:
    """The day of a real Slurm, with the command lines of its 342 jobs: mean wait and distribution as recorded.

    Without these, the partitions of jobs that named several are unknown; the ratio of the mean waits is then 1.27.
    """
    (tmp_path / "conf").mkdir()
    configuration(shared, tmp_path / "conf")
    outcome = cli(
        "validate",
        str(shared / "slurm/day/day_full.sacct.gz"),
        "--slurm",
        "conf",
        "--tolerance",
        "0",
        "--out",
        "out",
    )
    assert outcome.code == 0, outcome.err
    rows = pandas.read_csv(tmp_path / "out" / "validation.csv").set_index(["by", "group"])
    whole = rows.loc[("all", "all jobs")]
    assert whole["jobs"] == 342 and 0.85 < whole["ratio"] < 1.2 and whole["ks"] < 0.09
