"""Exports of one log in many forms: however they are written, they are the same jobs; kinds of faults, with small inputs."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcsimkit import Simulation, make
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partition_files import read_partitions
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.source import Source
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_log, read_sacct
from hpcsimkit.workloads.readers.records import MENDED
from hpcsimkit.workloads.readers.sacct_requests import MORE_ALLOCATED

GIB = 1024**3
FIELDS = (
    "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw",
    "ReqTRES", "AllocTRES", "ExitCode", "WorkDir", "Comment",
)  # fmt: skip
UNUSED = ("JobName", "ExitCode", "WorkDir", "Comment")
Row = dict[str, str]

UNUSABLE: tuple[Row, ...] = (
    {"JobID": "x7"}, {"JobID": "7.batch"}, {"Start": "Unknown"}, {"End": "Unknown"}, {"ReqTRES": "cpu", "AllocTRES": ""},
    {"Submit": "yesterday"}, {"ElapsedRaw": "long"}, {"State": "PENDING"}, {"TimelimitRaw": "1h"},
)  # fmt: skip
"""Changes of a job, each of which makes it unusable."""


@st.composite
def exports(draw: st.DrawFn) -> list[Row]:
    """Draw a few jobs as cells of sacct."""
    rows, submit = [], 1_709_276_400
    for number in range(draw(st.integers(1, 6))):
        submit += draw(st.integers(0, 5000))
        start = submit + draw(st.integers(0, 900))
        run, nodes = draw(st.integers(1, 9000)), draw(st.integers(1, 3))
        cpus, gpus = nodes * draw(st.integers(1, 8)), nodes * draw(st.integers(0, 2))
        listed = f"billing={cpus},cpu={cpus},mem={nodes * 4}G,node={nodes}"
        listed += f",gres/gpu={gpus},gres/gpu:a100={gpus}" if gpus else ""
        rows.append(
            {
                "JobID": str(100 + number),
                "JobName": draw(st.sampled_from(["a", "train it", "x-1"])),
                "User": draw(st.sampled_from(["ada", "ben"])),
                "Account": "phys",
                "Partition": draw(st.sampled_from(["cpu", "cpu,gpu"])),
                "QOS": "normal",
                "State": draw(st.sampled_from(["COMPLETED", "FAILED", "CANCELLED by 7"])),
                "Submit": str(submit),
                "Start": str(start),
                "End": str(start + run),
                "ElapsedRaw": str(run),
                "TimelimitRaw": draw(st.sampled_from(["60", "120", "UNLIMITED"])),
                "ReqTRES": listed,
                "AllocTRES": listed,
                "ExitCode": "0:0",
                "WorkDir": "/home/a",
                "Comment": "",
            }
        )
    return rows


def written(
    rows: Sequence[Row], fields: Sequence[str] = FIELDS, separator: str = "|", quoting: int | None = None
) -> str:
    text = io.StringIO()
    if quoting is None:
        text.write(
            "".join(
                separator.join(row) + "\n"
                for row in [list(fields), *([row[name] for name in fields] for row in rows)]
            )
        )
    else:
        out = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")  # type: ignore[arg-type]
        out.writerows([fields, *([row[name] for name in fields] for row in rows)])
    return text.getvalue()


def read(content: str | bytes, name: str = "log.sacct", **options: object) -> Workload:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_log(path, **options)  # type: ignore[arg-type]


def with_floats(rows: Sequence[Row]) -> list[Row]:
    """Return the rows as a spreadsheet or pandas writes them if a number is missing in each column."""
    times = ("Submit", "Start", "End", "ElapsedRaw")
    return [
        {
            **row,
            **{name: f"{row[name]}.0" for name in times},
            "JobID": f"{row['JobID']}.0",
            "TimelimitRaw": "NaN" if row["TimelimitRaw"] == "UNLIMITED" else f"{row['TimelimitRaw']}.0",
        }
        for row in rows
    ]


FORMS: dict[str, Callable[[list[Row]], str | bytes]] = {
    "without what is not read": lambda rows: written(rows, [name for name in FIELDS if name not in UNUSED]),
    "other order": lambda rows: written(rows, FIELDS[::-1]),
    "tabs": lambda rows: written(rows, separator="\t"),
    "two signs": lambda rows: written(rows, separator="^|^"),
    "semicolons": lambda rows: written(rows, separator=";"),
    "CSV": lambda rows: written(rows, separator=",", quoting=csv.QUOTE_MINIMAL),
    "CSV, all in quotes": lambda rows: written(rows, separator=",", quoting=csv.QUOTE_ALL),
    "CSV with a column of row numbers": lambda rows: "".join(
        f"{'' if place == 0 else place - 1},{line}\n"
        for place, line in enumerate(written(rows, separator=",", quoting=csv.QUOTE_MINIMAL).splitlines())
    ),
    "floats": lambda rows: written(with_floats(rows), separator=",", quoting=csv.QUOTE_MINIMAL),
    "line ends": lambda rows: written(rows).replace("\n", "\r\n"),
    "blank lines": lambda rows: written(rows).replace("\n", "\n\n"),
    "no end of the last line": lambda rows: written(rows).rstrip("\n"),
    "byte-order mark": lambda rows: "\ufeff" + written(rows),
    "UTF-16": lambda rows: written(rows, separator="\t").encode("utf-16"),
    "gzip": lambda rows: gzip.compress(written(rows).encode(), mtime=0),
    "xz": lambda rows: lzma.compress(written(rows).encode()),
    "bzip2": lambda rows: bz2.compress(written(rows).encode()),
    "zstd": lambda rows: pyarrow.Codec("zstd").compress(written(rows).encode(), asbytes=True),
    "free texts with separators": lambda rows: written(
        [{**row, "JobName": "a|b", "Comment": "c|d"} for row in rows]
    ),
    "free texts with line breaks": lambda rows: written([{**row, "Comment": "two\nlines"} for row in rows]),
    "line breaks in quotes": lambda rows: written(
        [{**row, "JobName": 'say "x",\nor not'} for row in rows], separator=",", quoting=csv.QUOTE_MINIMAL
    ),
}


@pytest.mark.parametrize("form", FORMS)
@given(rows=exports())
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_form_of_an_export_changes_no_job(form: str, rows: list[Row]) -> None:
    expected = read(written(rows))
    found = read(FORMS[form](rows))
    assert found.hash == expected.hash
    assert found.labels == expected.labels
    assert dict(found.skipped) == dict(expected.skipped)
    assert {note: count for note, count in found.notes.items() if note != MENDED} == dict(expected.notes)


@given(rows=exports())
@settings(max_examples=4, deadline=None)
def test_lists_with_commas_between_commas(rows: list[Row]) -> None:
    rows = [{**row, "Partition": "cpu"} for row in rows]
    assert read(written(rows, separator=",")).hash == read(written(rows)).hash


def test_constraints_and_command_lines_with_separators() -> None:
    row = job(
        1,
        "cpu=1,node=1",
        Constraints="ib|fat",
        NodeList="c2",
        Priority="1819",
        Reason="None",
        Flags="SchedMain",
        Reservation="",
    )
    row |= {"Reserved": "00:00:01", "SubmitLine": "sbatch -C ib|fat --wrap a|b"}
    w = read(log_of(row, {**row, "JobID": "2", "Constraints": ""}))
    assert (w.labels["constraint"], w.column("constraint").tolist()) == (("(ib|fat)",), [0, -1])
    assert w.notes[MENDED] == 2


def test_command_lines_are_told_from_other_texts() -> None:
    row = job(1, "cpu=1,node=1", Comment="", SubmitLine="sbatch --exclusive --wrap a|b\nc -p cpu,gpu")
    w = read(log_of(row, {**row, "JobID": "2", "Comment": "x|srun", "SubmitLine": "/usr/bin/srun a|b"}))
    assert (w.id.tolist(), w.column("exclusive").tolist(), w.notes[MENDED]) == ([1, 2], [1, -1], 2)


def test_texts_that_may_be_in_several_columns_are_not_guessed() -> None:
    row = job(1, "cpu=1,node=1", User="ada", Account="a", Partition="cpu,gpu", JobName="x")
    fields = [
        "JobID",
        "JobName",
        "User",
        "Account",
        "Partition",
        *(name for name in row if name not in ("JobID", "JobName", "User", "Account", "Partition")),
    ]
    with pytest.raises(WorkloadError, match="no usable job; skipped: 1 malformed line"):
        read(written([row], fields, separator=","))


@given(rows=exports(), change=st.sampled_from(UNUSABLE), place=st.integers(0, 6))
@settings(max_examples=25, deadline=None)
def test_a_line_that_cannot_be_used_changes_only_the_counts(rows: list[Row], change: Row, place: int) -> None:
    expected = read(written(rows))
    more = [*rows[:place], {**rows[0], "JobID": "99", **change}, *rows[place:]]
    found = read(written(more))
    assert found.hash == expected.hash and found.labels == expected.labels
    assert sum(found.skipped.values()) == 1
    assert dict(found.notes) == dict(expected.notes)


@given(rows=exports(), cut=st.integers(1, 60))
@settings(max_examples=15, deadline=None)
def test_an_export_that_was_cut_off_loses_its_last_line(rows: list[Row], cut: int) -> None:
    text = written([*rows, {**rows[0], "JobID": "99"}]).rstrip("\n")
    last = text.rfind("\n")
    short = text[: max(len(text) - cut, last + 3)]
    if short.count("|", last) < len(FIELDS) - 1:
        assert read(short).hash == read(written(rows)).hash


@given(
    amounts=st.lists(st.tuples(*(st.integers(0, 8) for _ in range(4))), min_size=1, max_size=5),
    words=st.lists(st.sampled_from(["a100", "ib", "rack-1"]), unique=True, max_size=2),
)
@settings(deadline=None)
def test_machines_with_models_are_read_back_equal(amounts: list[tuple[int, ...]], words: list[str]) -> None:
    table = [[cpus + 1, a100 + v100 + mig, a100, v100, mig] for cpus, a100, v100, mig in amounts]
    names = [f"n{number}" for number in range(len(table))]
    resources = ["cpus", "gpus", "gpus:a100", "gpus:v100", "mig:1g.5gb"]
    machines = Machines(names, resources, table, [words] * len(names))
    with TemporaryDirectory() as folder:
        from hpcsimkit.cluster.files import write_machines

        write_machines(machines, Path(folder) / "m.csv")
        assert Machines.read(Path(folder) / "m.csv") == machines


# --- kinds of faults --------------------------------------------------------------------------------------


def waits(text: str, machines: Machines, partitions: Partitions | None = None) -> list[int]:
    workload = read(text)
    return Simulation(workload, make("fcfs+easy"), partitions or machines).run().wait_time.tolist()


def job(number: int, tres: str, **cells: str) -> Row:
    times = {
        "Submit": str(1_709_276_400 + number),
        "Start": "1709290000",
        "End": "1709293600",
        "ElapsedRaw": "3600",
    }
    known = {
        "JobID": str(number),
        "State": "COMPLETED",
        "TimelimitRaw": "60",
        "ReqTRES": tres,
        "AllocTRES": tres,
        **times,
    }
    return known | cells


def log_of(*rows: Row) -> str:
    return written(rows, list(rows[0]))


def nodes(tmp_path: Path, *lines: str) -> Machines:
    path = tmp_path / "nodes.txt"
    path.write_text("".join(f"NodeName={line}\n" for line in lines))
    return Machines.read(path)


def test_models_in_one_node_and_a_total_that_any_of_them_fills(tmp_path: Path) -> None:
    machines = nodes(tmp_path, "n1 CPUTot=64 RealMemory=1000 Gres=gpu:a100:2(S:0),gpu:v100:2(S:1)")
    assert machines.resources == ("cpus", "gpus", "memory", "gpus:a100", "gpus:v100")
    any_two, a100, v100 = (
        "cpu=1,node=1,gres/gpu=2",
        "cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2",
        "cpu=1,node=1,gres/gpu:v100=2",
    )
    assert waits(log_of(job(1, any_two), job(2, a100), job(3, v100)), machines) == [0, 0, 3598]
    assert waits(log_of(job(1, a100), job(2, a100), job(3, v100)), machines) == [0, 3599, 0]


def test_slices_and_shares_are_no_gpus(tmp_path: Path) -> None:
    machines = nodes(tmp_path, "n1 CPUTot=64 RealMemory=1000 Gres=gpu:a100:1,gpu:a100_1g.5gb:2,shard:a100:4")
    assert dict(zip(machines.resources, machines.totals, strict=True)) == {
        "cpus": 64, "gpus": 1, "memory": 1000 * 1024**2, "mig:a100_1g.5gb": 2, "shards": 4, "gpus:a100": 1,
    }  # fmt: skip
    piece = "cpu=1,node=1,gres/gpu=1,gres/gpu:a100_1g.5gb=1"
    assert waits(log_of(*(job(number, piece) for number in (1, 2, 3))), machines) == [0, 0, 3598]
    whole = "cpu=1,node=1,gres/gpu=1"
    assert waits(log_of(job(1, piece), job(2, whole), job(3, whole)), machines) == [0, 0, 3599]
    shares = "cpu=1,node=1,gres/shard=3"
    assert waits(log_of(job(1, whole), job(2, shares), job(3, shares)), machines) == [0, 0, 3599]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Gres=gpu:a100:1", "Gres=gpu:v100:1"),
        (
            "Gres=gpu:1 CfgTRES=cpu=8,gres/gpu=1,gres/gpu:a100=1",
            "Gres=gpu:1 CfgTRES=cpu=8,gres/gpu=1,gres/gpu:v100=1",
        ),
        ("Gres=(null) CfgTRES=cpu=8,gres/gpu=1,gres/gpu:a100=1", "Gres=gpu:v100:1"),
        ("Gres=gpu:1 AvailableFeatures=ib,A100", "Gres=gpu:1 AvailableFeatures=ib,v100"),
    ],
)
def test_models_from_all_that_slurm_prints(tmp_path: Path, one: str, other: str) -> None:
    machines = nodes(tmp_path, f"b CPUTot=8 RealMemory=1000 {other}", f"a CPUTot=8 RealMemory=1000 {one}")
    a100 = "cpu=1,node=1,gres/gpu=1,gres/gpu:a100=1"
    assert waits(log_of(job(1, a100), job(2, a100), job(3, "cpu=1,node=1,gres/gpu=1")), machines) == [
        0,
        3599,
        0,
    ]


@pytest.mark.parametrize("field", ["ReqGRES", "AllocGRES"])
def test_models_from_fields_of_old_slurm(tmp_path: Path, field: str) -> None:
    """They have the GPUs on each node, and count only for jobs without GPUs in a list of resources."""
    lists = {"ReqTRES": "", "AllocTRES": "", "ReqCPUS": "4", "ReqNodes": "2"}
    rows = [
        job(1, "", **{**lists, field: "gpu:v100:2"}), job(2, "", **{**lists, field: "PER_NODE:gpu:1(S:0),mic:1"}),
        job(3, "", **{**lists, field: "craynetwork:1"}), job(4, "", **{**lists, "ReqTRES": "cpu=4,gres/gpu=2,node=2", field: "gpu:v100:7"}),
        job(5, "", **{**lists, field: "gpu:1g.5gb:3"}),
    ]  # fmt: skip
    w = read(log_of(*rows))
    assert w.nodes.tolist() == [2] * 5
    assert {name: w.column(name).tolist() for name in w.resources[1:] if name != "memory"} == {
        "gpus": [2, 1, 0, 1, 0], "gpus:v100": [2, 0, 0, 0, 0], "mig:1g.5gb": [0, 0, 0, 0, 3]
    }  # fmt: skip
    assert w.notes[f"GPUs in {field} only: taken on each node"] == 3


def test_models_on_machines_of_unknown_models() -> None:
    a100 = "cpu=1,node=1,gres/gpu:a100=1"
    assert waits(log_of(job(1, a100)), Machines.of(1, cpus=8, gpus=1)) == [0]
    models: dict[str, Any] = {"gpus:v100": 1}
    named = Machines.of(1, cpus=8, **models)
    assert named.totals == (8, 1, 1)
    assert named.misfits(read(log_of(job(1, a100)))).tolist() == [True]
    with pytest.raises(UsageError, match="machine 'n' needs 4 gpus for its models, found 2"):
        Machines(["n"], ["gpus", "gpus:a100"], [[2, 4]])


def test_whole_nodes_by_the_command_line() -> None:
    rows = (
        job(1, "cpu=1,node=1", SubmitLine="sbatch --exclusive x.sh"),
        job(2, "cpu=1,node=1", SubmitLine="sbatch x.sh"),
    )
    w = read(log_of(*rows))
    assert w.column("exclusive").tolist() == [1, -1]
    assert waits(log_of(*rows), Machines.of(1, cpus=8)) == [0, 3599]
    shared = read(log_of(job(1, "cpu=1,node=1", SubmitLine="srun --exclusive=user a")))
    assert list(shared.notes)[-1].startswith("asked for nodes of one user only")


def test_partitions_by_the_command_line() -> None:
    """All that are named, if the job ran in one of them; a command that is wrapped is not looked at."""
    lines = (
        "sbatch -p cpu,spot x.sh",
        "sbatch --partition=spot,cpu x",
        "sbatch -p a,b x",
        "sbatch --wrap mkdir -p cpu,b",
        "sbatch -pcpu,b",
    )
    rows = [job(n, "cpu=1,node=1", Partition="cpu", SubmitLine=line) for n, line in enumerate(lines, start=1)]
    w = read(log_of(*rows))
    assert [w.label("partition", value) for value in w.partition.tolist()] == [
        "cpu,spot",
        "spot,cpu",
        "cpu",
        "cpu",
        "cpu,b",
    ]
    assert {w.label("queue", value) for value in w.queue.tolist()} == {"cpu"}
    assert w.notes["several partitions asked for (SubmitLine): may start in any of them"] == 3


def test_licences_in_command_lines_and_in_their_own_field() -> None:
    lines = (
        "sbatch -L matlab:2 x.sh",
        "sbatch --licenses=ansys,matlab x",
        "sbatch --wrap 'f -L no'",
        "sbatch x",
    )
    rows = [job(n, "cpu=1,node=1", SubmitLine=line) for n, line in enumerate(lines, start=1)]
    w = read(log_of(*rows))
    assert w.labels["licenses"] == ("matlab:2", "ansys,matlab")
    assert w.column("licenses").tolist() == [0, 1, -1, -1]
    w = read(log_of(*(row | {"Licenses": "(null)" if n else "ansys:3"} for n, row in enumerate(rows))))
    assert w.labels["licenses"] == ("ansys:3",) and w.column("licenses").tolist() == [0, -1, -1, -1]
    assert "licenses" not in read(log_of(rows[3])).columns


def test_rules_of_sharing_that_are_not_simulated_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    lines = (
        "a Nodes=n1 OverSubscribe=FORCE:4 Default=YES",
        "b Nodes=n1 ExclusiveUser=YES",
        "c Nodes=n1 OverSubscribe=FORCE:1",
    )
    path.write_text("".join(f"PartitionName={line}\n" for line in lines))
    parts = read_partitions(path, Machines(["n1"], ["cpus"], [[8]]))
    rows = [job(number, "cpu=1,node=1", Partition=name) for number, name in enumerate("aabc", start=1)]
    notes = {
        note: count
        for note, count in parts.with_rules(read(log_of(*rows))).notes.items()
        if "simulated" in note
    }
    assert [(note.split(" not ")[0], count) for note, count in notes.items()] == [
        ("OverSubscribe=FORCE:4 of partition 'a'", 2), ("ExclusiveUser=YES of partition 'b'", 1)
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["OverSubscribe", "Shared"])
def test_whole_nodes_by_the_partition(tmp_path: Path, key: str) -> None:
    """Old versions of Slurm print the rule as ``Shared``."""
    path = tmp_path / "p.txt"
    path.write_text(f"PartitionName=a Nodes=n1 {key}=EXCLUSIVE\nPartitionName=b Nodes=n1 {key}=NO\n")
    parts = read_partitions(path, Machines(["n1"], ["cpus"], [[8]]))
    rows = [job(number, "cpu=1,node=1", Partition=name) for number, name in enumerate("ab", start=1)]
    assert parts.with_rules(read(log_of(*rows))).column("exclusive").tolist() == [1, -1]


def test_jobs_of_partitions_that_share_and_do_not(tmp_path: Path) -> None:
    machines = Machines(["n1", "n2"], ["cpus"], [[8], [8]])
    parts = Partitions([Partition("a"), Partition("b", exclusive=True)], machines)
    rows = [
        job(number, "cpu=1,node=1", Partition=name) for number, name in enumerate(("a", "b", "a,b"), start=1)
    ]
    w = parts.with_rules(read(log_of(*rows)))
    assert w.column("exclusive").tolist() == [-1, 1, -1]
    assert w.notes["whole machines in some of their partitions only: shared in all"] == 1


def test_partitions_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(
        "PartitionName=cpu Nodes=n[1-2] MaxTime=oops State=UP\nPartitionName=old Nodes=n1 State=INACTIVE\n"
    )
    (tmp_path / "m.txt").write_text(
        "NodeName=n1 CPUTot=8 RealMemory=1000\nNodeName=n9 CPUTot=? RealMemory=1\n"
    )
    rows = [
        job(n, "cpu=1,node=1", Partition=name)
        for n, name in enumerate(("cpu", "gone,cpu", "gone", "old"), start=1)
    ]
    (tmp_path / "log.sacct").write_text(log_of(*rows))
    files = {"log": "log.sacct", "machines": "m.txt", "partitions": "p.txt"}
    given: dict[str, Any] = {key: str(tmp_path / name) for key, name in files.items()}
    w = Source(**given).workload()
    assert w.id.tolist() == [1, 2]
    assert dict(w.skipped) == {
        "may not run: unknown partition 'gone'": 1, "may not run: partition 'old' is INACTIVE": 1
    }  # fmt: skip
    assert w.notes["unknown partition in a list: the others taken"] == 1
    noted = [note.removeprefix(f"{tmp_path}/") for note in w.notes if str(tmp_path) in note]
    assert noted == [
        "m.txt:2: node 'n9': CPUTot needs a whole number or UNLIMITED, found '?'",
        "p.txt:1: partition 'cpu': unknown machine 'n2'",
        "p.txt:1: partition 'cpu': MaxTime needs a time such as 2-00:00:00 or UNLIMITED, found 'oops'",
    ]
    with pytest.raises(WorkloadError, match="node 'n9'"):
        Source(**given, strict=True).workload()


def test_jobs_more_is_allocated_to_are_counted() -> None:
    rows = job(1, "cpu=1,node=1", AllocTRES="cpu=64,node=1"), job(2, "cpu=8,node=1")
    assert read(log_of(*rows)).notes[MORE_ALLOCATED] == 1
    assert MORE_ALLOCATED not in read(log_of(*rows), size="allocated").notes


def test_clusters_are_apart() -> None:
    rows = (
        job(1, "cpu=1,node=1", Cluster="a"),
        job(2, "cpu=1,node=1", Cluster="b"),
        job(1, "cpu=2,node=1", Cluster="b"),
    )
    w = read(log_of(*rows))
    assert w.notes["jobs of 2 clusters: a 1, b 2: choose one with --cluster"] == 3
    assert read(log_of(*rows), cluster="b", strict=True).id.tolist() == [2, 1]
    for options, found in (
        ({"cluster": "c"}, "a cluster of a, b needed, found 'c'"),
        ({"strict": True}, "jobs of one cluster"),
    ):
        with pytest.raises(WorkloadError, match=found):
            read(log_of(*rows), **options)
    with pytest.raises(WorkloadError, match="the field Cluster needed"):
        read(log_of(job(1, "cpu=1,node=1")), cluster="a")


def test_suspended_time() -> None:
    rows = job(1, "cpu=1,node=1", Suspended="01:00:00"), job(2, "cpu=1,node=1", Suspended="00:00:00")
    assert read(log_of(*rows)).notes["suspended: run time without 3600 s"] == 1
    gap = job(1, "cpu=1,node=1", ElapsedRaw="3000")
    assert read(log_of(gap)).notes["suspended: run time without 600 s"] == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-03-01T07:00:00.4", 1_709_276_400), ("2024-03-01 07:00:00.500000", 1_709_276_401), ("1709276400.0", 1_709_276_400),
        ("2024-03-01 07:00:00+00:00", 1_709_276_400), ("2024-03-01 08:00:00 +0100", 1_709_276_400), ("1709276400.7", 1_709_276_401),
        ("1.7092764e+09", 1_709_276_400),
    ],
)  # fmt: skip
def test_fractions_of_seconds(text: str, seconds: int) -> None:
    w = read(log_of(job(1, "cpu=1,node=1", Submit=text)))
    assert w.submit_time.tolist() == [seconds]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])
def test_times_are_read_in_bulk_as_one_by_one(zone: str) -> None:
    from hpcsimkit.workloads.readers.cells import clock_of, moment

    rng = np.random.default_rng(1)
    days = rng.integers(0, 20_000, 400).astype("datetime64[D]")
    texts = [
        f"{day}T{hour:02d}:{minute:02d}:59"
        for day, hour, minute in zip(days, rng.integers(0, 24, 400), rng.integers(0, 60, 400), strict=True)
    ]
    parser = moment(clock_of(zone))
    values, left = parser.bulk(texts)
    assert not len(left)
    assert values.tolist() == [parser(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    ["2024-03-01T24:30:00", "2024-03-01T23:60:00", "2024-03-01T23:59:60", "2024-02-30T00:00:00", "2024-13-01T00:00:00",
     "2024-00-01T00:00:00", "2024-01-00T00:00:00", "0000-01-01T00:00:00", "12345678", "2024-03-01T00:00:0x"],
)  # fmt: skip
def test_times_that_do_not_exist_are_not_understood(text: str) -> None:
    rows = job(1, "cpu=1,node=1"), job(2, "cpu=1,node=1", Submit=text)
    w = read(log_of(*rows))
    assert w.id.tolist() == [1]
    assert dict(w.skipped) == {f"Submit not understood (first: line 3: {text!r})": 1}


def test_lines_that_were_cut_off_are_not_put_together() -> None:
    fields = "JobID|JobName|Submit|Start|End|ElapsedRaw|NCPUS\n"
    cut = "7|a|1709276400|1709276400\n8|b|1709276400|x\n"
    whole = "9|c|1709276400|1709276400|1709276460|60|4\n"
    w = read(fields + cut + whole)
    assert (w.id.tolist(), dict(w.skipped)) == ([9], {"malformed line (first: line 2: 4 cells)": 2})


def test_an_hour_that_occurs_twice_follows_the_order_of_events() -> None:
    """On 27 October 2024, clocks went back from 3:00 to 2:00 in Berlin."""
    cells = {"Submit": "2024-10-27T02:50:00", "Start": "2024-10-27T02:10:00", "End": "2024-10-27T02:40:00"}
    w = read(log_of(job(1, "cpu=1,node=1", ElapsedRaw="1800", **cells)), timezone="Europe/Berlin")
    assert w.recorded_wait_time.tolist() == [20 * 60]
    assert not any("suspended" in note or "before it was submitted" in note for note in w.notes)


def test_what_of_a_table_is_not_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.sacct"
    path.write_text(log_of(job(1, "cpu=1,node=1", ConsumedEnergy="5")))
    assert "ConsumedEnergy" in read_sacct(path).header["Columns not read"]
