"""`compare --partitions`: the file, the column that names them, and what a job may not ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from hpcsimkit.reports.report import write_report
from tests.cli.conftest import CLI
from tests.little_slurm import month, sacct, scontrol
from tests.test_little_slurm import NODES

DAY = """\
; MaxProcs: 6
1 0 -1 10 4 -1 -1 4 10 -1 1 1 -1 -1 1 2 -1 -1
2 1 -1 10 4 -1 -1 4 10 -1 1 1 -1 -1 1 2 -1 -1
3 2 -1 10 2 -1 -1 2 10 -1 1 1 -1 -1 2 1 -1 -1
4 3 -1 10 5 -1 -1 5 10 -1 1 1 -1 -1 1 2 -1 -1
"""

SACCT = """\
JobID|Partition|Submit|Elapsed|Timelimit|ReqTRES
1|cpu|2024-03-01T00:00:00|00:20:00|UNLIMITED|cpu=2,mem=1M
2|cpu|2024-03-01T00:00:00|00:05:00|00:10:00|cpu=2,mem=1M
"""

TWO = """\
[[partitions]]
name = "1"
nodes = 2

[[partitions]]
name = "2"
nodes = 4
"""


def starts_of(folder: Path) -> dict[int, int]:
    jobs = pandas.read_csv(folder / "jobs" / "fcfs.csv")
    return dict(zip(jobs["job_id"], jobs["start_time"], strict=True))


def test_each_partition_has_its_own_head(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY)
    (tmp_path / "two.toml").write_text(TWO)
    outcome = cli(
        "compare", "day.swf", "--partitions", "two.toml", "-p", "fcfs", "--out", "out", "--no-report"
    )
    assert outcome.code == 0, outcome.err
    assert "3 jobs kept" in outcome.out  # job 4 is larger than its partition, not than the machine
    lines = outcome.out.splitlines()
    heading = lines.index("mean wait [s] by the partition in which jobs started")
    assert [line.split() for line in lines[heading + 1 : heading + 3]] == [
        ["policy", "1", "2"],
        ["fcfs", "0", "4.5"],
    ]
    assert starts_of(tmp_path / "out") == {1: 0, 2: 10, 3: 2}
    page = write_report(tmp_path / "out").read_text()  # reads the partitions from the tables of jobs
    assert "By partition" in page
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())


def test_who_may_not_run_is_counted_and_an_order_has_its_name(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY)
    two = TWO.replace("nodes = 4", 'nodes = 4\norder = "sjf"').replace(
        "nodes = 2", 'nodes = 2\nusers = ["9"]'
    )
    (tmp_path / "two.toml").write_text(two)
    common = ("compare", "day.swf", "--partitions", "two.toml", "-p", "fcfs", "--no-report", "--out", "out")
    outcome = cli(*common)
    assert outcome.code == 0, outcome.err
    assert "1 exceeds nodes of partition '2'; 1 may not run in any of its partitions" in outcome.out
    assert starts_of(tmp_path / "out") == {1: 0, 2: 10}
    assert cli(*common, "--strict").line() == "day.swf:4: job 3 may not run in any of its partitions"
    (tmp_path / "two.toml").write_text(two.replace("sjf", "easy"))
    assert cli(*common).line() == "partition '2': order needs the name of an order, found 'easy'"


def test_the_column_is_chosen(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY)
    (tmp_path / "two.toml").write_text(TWO)
    outcome = cli(
        "compare", "day.swf", "--partitions", "two.toml", "--partition-column", "queue", "--out", "out",
        "-p", "fcfs", "--no-report",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert starts_of(tmp_path / "out") == {3: 2}  # the others are larger than partition 1


def test_jobs_without_a_limit_have_that_of_their_partition(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.sacct").write_text(SACCT)
    (tmp_path / "machines.csv").write_text("MachineName,TotalCPUs,TotalGPUs,TotalMemory\nm,4,0,1 GB\n")
    (tmp_path / "cpu.toml").write_text('[[partitions]]\nname = "cpu"\nmax_time = 7200\ndefault_time = 3600\n')
    common = ("compare", "day.sacct", "--machines", "machines.csv", "-p", "fcfs+easy", "--no-report")
    outcome = cli(*common, "--partitions", "cpu.toml", "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "notes: 1 no estimate: time limit of the partition taken" in outcome.out
    jobs = pandas.read_csv(tmp_path / "out" / "jobs" / "fcfs+easy.csv")
    assert jobs["requested_time"].tolist() == [3600, 600]
    outcome = cli(*common, "--out", "without")
    assert "notes: 1 no estimate: run time taken" in outcome.out


def test_an_unknown_partition_is_one_line(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "day.swf").write_text(DAY)
    (tmp_path / "one.toml").write_text(TWO.split("\n\n")[0])
    command = ("compare", "day.swf", "--partitions", "one.toml", "-p", "fcfs", "--no-report", "--out", "out")
    outcome = cli(*command, "--strict")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "hpcsimkit: day.swf:2: job 1 needs a partition: 1; found partition '2'"
    ]
    assert "1 job kept on 2 nodes, 3 skipped: 3 may not run: unknown partition '2'" in cli(*command).out


MISTAKES = [
    (
        "partitions.txt",
        "Nodes=test[1-2]",
        "Nodes=(null)",
        "partitions.txt:41: partition 'debug': at least one machine is needed, found none",
    ),
    (
        "partitions.txt",
        "PartitionName=debug",
        "PartitionName=cpu",
        "partitions.txt:41: partition 'cpu' is defined twice, first in partitions.txt:1",
    ),
    (
        "partitions.txt",
        "CPU=1.0",
        "CPU=1.0,GrpTRES=x",
        (
            "partitions.txt:1: partition 'cpu': TRESBillingWeights needs a list such as cpu=1.0,mem=0.25G,gres/gpu=2, "
            "found 'CPU=1.0,GrpTRES=x,GRES/gpu=8.0'"
        ),
    ),
    (
        "partitions.txt",
        "QoS=N/A",
        "QoS=some GrpTRES=cpu=few",
        (
            "partitions.txt:1: partition 'cpu': GrpTRES needs a list such as cpu=1.0,mem=0.25G,gres/gpu=2, "
            "found 'cpu=few'"
        ),
    ),
    (
        "jobs.sacct",
        "|cpu|",
        "|viz|",
        "jobs.sacct:2: job 1000 needs a partition: cpu, long, gpu, fat, debug; found partition 'viz'",
    ),
    (
        "jobs.sacct",
        "|debug|",
        "|debgu|",
        (
            "jobs.sacct:4: job 1002 needs a partition: cpu, long, gpu, fat, debug; "
            "found partition 'debgu'; nearest: debug, gpu"
        ),
    ),
]


@pytest.mark.parametrize("command", ["compare -p fcfs", "validate", "what-if --set gpu.priority=3"])
@pytest.mark.parametrize(
    ("file", "was", "now", "message"),
    MISTAKES,
    ids=["no nodes", "twice", "weights", "limits", "unknown", "misspelt"],
)
def test_each_mistake_of_a_centre_is_one_line(
    cli: CLI, tmp_path: Path, command: str, file: str, was: str, now: str, message: str
) -> None:
    (tmp_path / "nodes.toml").write_text(NODES)
    (tmp_path / "partitions.txt").write_text(scontrol())
    (tmp_path / "jobs.sacct").write_text(sacct(month(days=1, jobs=3)).replace("|ml|cpu|", "|ml|debug|"))
    text = (tmp_path / file).read_text()
    assert was in text
    (tmp_path / file).write_text(text.replace(was, now, 1))
    name, *flags = command.split()
    common = ("jobs.sacct", "--machines", "nodes.toml", "--partitions", "partitions.txt", "--out", "out")
    outcome = cli(name, *common, *flags, "--strict")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [f"hpcsimkit: {message}"]


def test_partitions_as_features_and_dates(cli: CLI, tmp_path: Path) -> None:
    """Without a file of partitions, `--features partition` confines jobs; dates are those of the log."""
    (tmp_path / "day.sacct").write_text(
        SACCT.replace("2|cpu|2024-03-01T00:00:00", "2|gpu|2024-03-02T00:00:00")
    )
    (tmp_path / "machines.csv").write_text("MachineName,TotalCPUs,TotalMemory,Features\nm,4,1 GB,cpu\n")
    common = ("compare", "day.sacct", "--machines", "machines.csv", "-p", "fcfs", "--no-report")
    assert "2 jobs kept" in cli(*common, "--out", "all").out
    assert "1 job kept" in cli(*common, "--features", "partition", "--out", "confined").out
    assert "1 job kept" in cli(*common, "--to", "2024-03-02", "--out", "first").out
    zone = ("--timezone", "Europe/Berlin")
    assert "2 jobs kept" in cli(*common, *zone, "--from", "2024-03-01", "--out", "zone").out
    shown = cli("describe", "day.sacct", "--no-picture", *zone).out
    assert "Fri 01 Mar 2024 00:00 CET" in shown
    assert "UTC" not in cli("describe", "day.sacct", "--no-picture").out
    assert cli(*common, "--from", "2024-03-03").line() == (
        "day: jobs between --from and --to are needed, found Fri 01 Mar 2024 00:00 to Sat 02 Mar 2024 00:00"
    )
    assert cli(*common, "--from", "March").line() == (
        "--from: a time such as 2024-01-31T23:59:59 needed, found 'March'"
    )
    assert cli("compare", "--timezone", "Europe/Berlin").line() == "'timezone' needs a log"


def test_rules_of_sharing_are_told_before_a_simulation(cli: CLI, tmp_path: Path) -> None:
    """`describe` and `compare` count the jobs of partitions whose rules are not simulated, and name what is near."""
    (tmp_path / "nodes.txt").write_text("NodeName=c1 CPUTot=8 RealMemory=16000\n")
    rules = {"a": "OverSubscribe=FORCE:4", "b": "ExclusiveUser=YES", "c": "OverSubscribe=FORCE:1 MaxTime=30"}
    (tmp_path / "p.txt").write_text(
        "".join(f"PartitionName={name} Nodes=c1 State=UP {rule}\n" for name, rule in rules.items())
    )
    header = "JobID|Submit|Start|End|ElapsedRaw|State|TimelimitRaw|ReqTRES|Partition\n"
    rows = [
        f"{n}|170927640{n}|170927640{n}|170927646{n}|60|COMPLETED|60|cpu=1,mem=1G,node=1|{part}\n"
        for n, part in enumerate("aabc")
    ]
    (tmp_path / "log.sacct").write_text(header + "".join(rows))
    common = ("log.sacct", "--machines", "nodes.txt", "--partitions", "p.txt")
    told = {
        "OverSubscribe=FORCE:4 of partition 'a' not simulated; nearest: as many times the CPUs in the file of machines": 2,
        "ExclusiveUser=YES of partition 'b' not simulated; nearest: whole machines (exclusive = true in a file of partitions)": 1,
    }
    described = " ".join(cli("describe", *common, "--no-picture").out.split())
    compared = cli("compare", *common, "-p", "fcfs", "--no-report").out
    for note, count in told.items():
        assert f"{note} {count}" in described
        assert f"{count} {note}" in compared
    assert "partitions a, b, c exceeds max_time of partition 'c' (jobs) 1" in described
