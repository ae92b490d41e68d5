"""Job tables: every column, every kind of bad input, and back again."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Pipeline, Simulation
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_job_table, write_job_table
from hpcsimkit.workloads.readers.cells import duration
from tests.drawn import examples

HEADER = "JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit"
FEATURES = "features joined by & or |, or by & with counts of at most all nodes,"
Write = Callable[..., Path]


@pytest.fixture
def table(tmp_path: Path) -> Write:
    """Return a function that writes lines to a file and returns its path."""

    def write(*lines: str, name: str = "day.csv", content: bytes | None = None) -> Path:
        path = tmp_path / name
        path.write_bytes("\n".join(lines).encode() + b"\n" if content is None else content)
        return path

    return write


def message(call: Callable[[], object]) -> str:
    with pytest.raises((WorkloadError, UsageError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


# --- reading -------------------------------------------------------------------------------------------


def test_every_column_lands_where_it_belongs(table: Write) -> None:
    w = read_job_table(
        table(HEADER, "job7,6000000,2,1,86400,16015,1614844251", "job9,450000000,18,0,345600,1,1614837941")
    )
    assert {name: w.column(name).tolist() for name in w.columns} == {
        "id": [7, 9], "submit_time": [1614844251, 1614837941], "run_time": [16015, 1],
        "requested_time": [86400, 345600], "nodes": [1, 1], "cpus": [2, 18], "gpus": [1, 0],
        "memory": [6_000_000_000, 450_000_000_000],
    }  # fmt: skip
    assert w.resources == ("cpus", "gpus", "memory")
    assert w.name == "day"
    assert w.labels == {}
    assert dict(w.notes) == {"out of order of submission": 1}
    assert w.provenance == ("read day.csv: 2 jobs, 0 skipped",)
    assert w.jobs[1].request == Request(("cpus", "gpus", "memory"), (18, 0, 450_000_000_000))


def test_columns_in_any_order_and_further_ones(table: Write) -> None:
    w = read_job_table(
        table(
            "Submit, ReqCPUs ,Nodes,Exclusive,Spread,Constraint,Kind,User,Partition,Status,ActualDuration",
            "0,4,2,1,0,a100 & nvlink,0=dgemm,ada,gpu,1,10",
            "5,8,1,0,1,,1=daxpy,,gpu,,20",
            "6,8,1,,,ib,,bob,cpu,5,30",
        )
    )
    assert w.id.tolist() == [1, 2, 3]
    assert w.nodes.tolist() == [2, 1, 1]
    assert w.column("exclusive").tolist() == [1, 0, 0]
    assert w.column("spread").tolist() == [0, 1, 0]
    assert w.column("constraint").tolist() == [0, -1, 1]
    assert w.column("kind").tolist() == [0, 1, -1]
    assert w.user.tolist() == [0, -1, 1]
    assert w.partition.tolist() == [0, 0, 1]
    assert w.status.tolist() == [1, -1, 5], "numbers stay numbers"
    assert w.labels == {
        "constraint": ("a100&nvlink", "ib"), "kind": ("dgemm", "daxpy"), "user": ("ada", "bob"),
        "partition": ("gpu", "cpu"),
    }  # fmt: skip
    names = ("cpus", "gpus", "memory")
    assert [job.request for job in w.jobs] == [
        Request(names, (4, 0, 0), exclusive=True, constraint="a100&nvlink"),
        Request(names, (8, 0, 0), spread=True),
        Request(names, (8, 0, 0), constraint="ib"),
    ]
    assert dict(w.notes) == {"no estimate: run time taken": 3}
    assert w.requested_time.tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("cells", "unit", "expected"),
    [
        (["128 GB", "1.5GiB"], "kB", [128_000_000_000, 1_610_612_736]),
        (["128", "0"], "kB", [128_000, 0]),
        (["128", "0"], "MiB", [134_217_728, 0]),
        (["1.5", "2.0"], "MB", [1_500_000, 2_000_000]),
        (["64 b", "1 TiB"], "kB", [64, 1_099_511_627_776]),
    ],
)
def test_memory(table: Write, cells: list[str], unit: str, expected: list[int]) -> None:
    rows = (f"{cell},1,5,0" for cell in cells)
    w = read_job_table(table("ReqMem,ReqCPUs,ActualDuration,Submit", *rows), memory_unit=unit)
    assert w.column("memory").tolist() == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("86400", 86_400), ("86400.0", 86_400), ("12.4", 12), ("03:04", 184), ("3:04", 184),
        ("90:00", 5400), ("02:03:04", 7384), ("100:00:00", 360_000), ("1-02:03:04", 93_784),
        ("1-2:03:04", 93_784), ("0-00:00:00", 0), ("400-23:59:59.4", 34_646_399), ("00:00:59.6", 60),
        ("1e+05", 100_000), ("8.64E4", 86_400), ("1.25e1", 12),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "1-02:03:04x", "1-2:99:00", "1-24:00:00", "02:60:00", "02:03:60", "2:3:", ":30", "1-02", "1-02:03",
        "1-:02:03", "--1", "1:2:3:4", "1d", "1h", "", "nan", "inf", "1e-3", "1_0", "١٢", "-1:00", "1,5",
    ],
)  # fmt: skip
def test_malformed_durations_are_refused_with_their_line(table: Write, text: str) -> None:
    path = table("ReqCPUs,ActualDuration,Submit", "1,60,0", f'1,"{text}",0')
    assert len(read_job_table(path)) == 1
    assert message(lambda: read_job_table(path, strict=True)) == (
        f"{path}:3: ActualDuration: a duration needs seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, found {text!r}"
    )


@given(st.integers(0, 10**9))
def test_durations_as_slurm_writes_them(seconds: int) -> None:
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86_400
    text = f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}"
    assert duration(f"{days}-{text}") == seconds
    assert duration(str(seconds)) == seconds
    if not days:
        assert duration(text) == seconds
        if not hours:
            assert duration(text[3:]) == seconds


def test_estimates(table: Write) -> None:
    w = read_job_table(
        table(HEADER, "a,0,1,0,,7,0", "b,0,1,0,0,0,1", "c,0,1,0,9,10,2", "d,0,1,0,9.6,8.4,3", "e,0,1,0,9,9,4")
    )
    assert w.requested_time.tolist() == [7, 1, 9, 10, 9]
    assert w.run_time.tolist() == [7, 0, 10, 8, 9]
    assert dict(w.notes) == {
        "no estimate: run time taken": 2,
        "run time 0": 1,
        "run time longer than requested": 1,
        "times rounded to whole seconds": 1,
    }


@pytest.mark.parametrize(
    ("names", "ids", "word", "labels"),
    [
        (["job261221", "job261222"], [261221, 261222], "job", ()),
        (["12", "7"], [12, 7], "", ()),
        (["a-1", "a-10"], [1, 10], "a-", ()),
        (["ada1", "bob2"], [0, 1], "", ("ada1", "bob2")),
        (["run", "job2"], [0, 1], "", ("run", "job2")),
        (["job01", "job10"], [0, 1], "", ("job01", "job10")),
        (["x1", "x1"], [0, 1], "", ("x1", "x1")),
        (["", "x"], [0, 1], "", ("", "x")),
    ],
)
def test_job_numbers(
    table: Write, names: list[str], ids: list[int], word: str, labels: tuple[str, ...]
) -> None:
    path = table(HEADER, *(f"{name},0,1,0,9,9,0" for name in names))
    w = read_job_table(path)
    assert w.id.tolist() == ids
    assert w.labels.get("id", ()) == labels
    write_job_table(w, path)
    assert [line.split(",")[0] for line in path.read_text().splitlines()[1:]] == names


def test_names_used_twice_are_noted_or_refused(table: Write) -> None:
    path = table(HEADER, "job1,0,1,0,9,9,0", "job2,0,1,0,9,9,0", "job1,0,1,0,9,9,0")
    assert dict(read_job_table(path).notes) == {"job name used before": 1}
    needed = f"{path}:4: a job name of its own needed, found 'job1' again"
    assert message(lambda: read_job_table(path, strict=True)) == needed


@pytest.mark.parametrize(
    "content",
    [
        HEADER + "\r\njob1,1,1,0,9,9,0\r\n",
        "\ufeff" + HEADER + "\njob1,1,1,0,9,9,0",
        "\n\n" + HEADER + "\n\njob1,1,1,0,9,9,0\n   \n",
        '"' + HEADER.replace(",", '","') + '"\n"job1","1","1","0","9","9","0"\n',
        HEADER.replace(",", " , ") + "\n job1 , 1 , 1 , 0 , 9 , 9 , 0 \n",
        HEADER + "\njob1,1.0,1.0,0.,9.0,9.00,0.0\n",
    ],
)
def test_forms_of_text(table: Write, content: str) -> None:
    for data in (content.encode(), gzip.compress(content.encode())):
        w = read_job_table(table(content=data, name="w.csv"), strict=True)
        assert w.jobs[0].request.amounts == (1, 0, 1000)  # type: ignore[union-attr]
        assert (w.id.tolist(), w.run_time.tolist(), w.submit_time.tolist()) == ([1], [9], [0])


def test_text_that_is_not_utf_8(table: Write) -> None:
    rows = f"{HEADER},User\n1,1,1,0,9,9,0,J\xfcrgen\n"
    assert read_job_table(table(content=rows.encode("latin-1"))).labels["user"] == ("Jürgen",)


# --- bad input -------------------------------------------------------------------------------------------

MALFORMED = [
    (
        "a,128 GB,1,0,9,9,0",
        "ReqMem: mixed units: a unit in every cell or in none needed, found '128 GB' after '1'",
    ),
    ("a,,1,0,9,9,0", "ReqMem: memory needs a number and a unit, such as '128 GB', found ''"),
    ("a,-1,1,0,9,9,0", "ReqMem: memory needs a number and a unit, such as '128 GB', found '-1 kB'"),
    ("a,1.0001,1,0,9,9,0", "ReqMem: memory needs a whole number of bytes, found '1.0001 kB'"),
    ("a,1,x,0,9,9,0", "ReqCPUs: a whole number needed, found 'x'"),
    ("a,1,1.5,0,9,9,0", "ReqCPUs: a whole number needed, found '1.5'"),
    ("a,1,,0,9,9,0", "ReqCPUs: a whole number needed, found ''"),
    ("a,1,1,2x1,9,9,0", "ReqGPUs: a whole number needed, found '2x1'"),
    ("a,1,1,0,9,9,2024-01-01", "Submit: a whole number needed, found '2024-01-01'"),
    ("a,1,1,0,9,9," + "9" * 30, f"Submit: a whole number needed, found '{'9' * 30}'"),
    ("a,1,1,0,9,9", "7 cells needed, found 6 cells"),
    ("a", "7 cells needed, found 1 cell"),
    ("a,1,1,0,9,9,0,0", "7 cells needed, found 8 cells"),
    ('a,1,1,0,9,9,"0', "Submit: a whole number needed, found '\"0'"),
]


@pytest.mark.parametrize(("line", "found"), MALFORMED)
def test_malformed_rows_are_counted_or_refused(table: Write, line: str, found: str) -> None:
    path = table(HEADER, "a,1,1,0,9,9,0", line)
    w = read_job_table(path)
    assert (len(w), sum(w.skipped.values())) == (1, 1)
    assert message(lambda: read_job_table(path, strict=True)) == f"{path}:3: {found}"


def test_unknown_units_are_refused(table: Write) -> None:
    path = table(HEADER, "a,1 GB,1,0,9,9,0", "b,1 parsec,1,0,9,9,0")
    assert message(lambda: read_job_table(path, strict=True)) == (
        f"{path}:3: ReqMem: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found unknown unit 'parsec'"
    )
    found = message(lambda: read_job_table(path, memory_unit="KB"))
    assert found.startswith("memory_unit must be one of B, kB, MB") and found.endswith("found 'KB'")


@pytest.mark.parametrize(
    ("title", "cell", "found"),
    [
        ("Nodes", "two", "Nodes: a whole number needed, found 'two'"),
        ("Spread", "yes", "Spread: 0 or 1 needed, found 'yes'"),
        ("Exclusive", "2", "Exclusive: 0 or 1 needed, found '2'"),
        ("Constraint", "a*2", f"Constraint: {FEATURES} needed, found 'a*2'"),
        ("Constraint", "a*0", f"Constraint: {FEATURES} needed, found 'a*0'"),
        ("Constraint", "a&", f"Constraint: {FEATURES} needed, found 'a&'"),
        (
            "Kind",
            "dgemm",
            "Kind: a whole number below 10000, with or without a name (0=dgemm) needed, found 'dgemm'",
        ),
        ("Kind", "7=x", "Kind: one name for kind 7 needed, found 'x' after 'dgemm'"),
    ],
)
def test_malformed_further_columns_are_refused(table: Write, title: str, cell: str, found: str) -> None:
    good = {"Constraint": "", "Kind": "7=dgemm"}.get(title, "1")
    path = table(f"ReqCPUs,ActualDuration,Submit,{title}", f"1,9,0,{good}", f"1,9,0,{cell}")
    w = read_job_table(path)
    assert (len(w), list(w.skipped.values())) == (1, [1])
    assert message(lambda: read_job_table(path, strict=True)) == f"{path}:3: {found}"


def test_columns_of_other_programs_are_not_read(table: Write) -> None:
    w = read_job_table(table("ReqCPUs,ActualDuration,Submit,EnergyUsed", "1,2,3,x"), strict=True)
    assert w.run_time.tolist() == [2]


def test_models_of_gpus(table: Write, tmp_path: Path) -> None:
    rows = "ReqCPUs,ActualDuration,Submit,ReqGPUs,ReqGPUs:a100,ReqMIG:1g.5gb", "1,2,3,4,2,0", "1,2,3,0,2,7"
    w = read_job_table(table(*rows))
    assert w.resources == ("cpus", "gpus", "memory", "gpus:a100", "mig:1g.5gb")
    assert w.column("gpus").tolist() == [4, 2], "at least as many as of all models"
    write_job_table(w, tmp_path / "again.csv")
    assert read_job_table(tmp_path / "again.csv").hash == w.hash


def test_headers_that_are_none(table: Write) -> None:
    def found(*lines: str) -> str:
        path = table(*lines)
        return message(lambda: read_job_table(path)).removeprefix(str(path))

    assert found("ReqCPU,ActualDuration,Submit", "1,2,3").startswith(
        ":1: unknown column 'ReqCPU' in a job table; did you mean ReqCPUs?"
    )
    assert found("ReqCPUs,ActualDuration", "1,2") == (
        ":1: a job table needs the column Submit, found 'ReqCPUs', 'ActualDuration'"
    )
    assert found("Submit,ReqCPUs,Submit", "1,2,3") == (
        ":1: each column needs a name of its own, found 'Submit' twice"
    )
    assert found(HEADER) == ": no job in it, only a header line"
    assert found("", " ") == ": a table with a header line is needed, found an empty file"


def test_files_that_are_none(table: Write, tmp_path: Path) -> None:
    binary = table(content=b"\x00\x01" * 9)
    assert message(lambda: read_job_table(binary)).endswith("header line is needed, found binary data")
    assert message(lambda: read_job_table(tmp_path / "no.csv")) == f"{tmp_path / 'no.csv'}: no such file"
    assert message(lambda: read_job_table(tmp_path)).endswith("a file is needed, found a directory")


UNUSABLE = [
    ("b,1,1,0,9,-1,0", "run time unknown", "a run time of 0 s or more needed, found -1"),
    ("b,1,1,0,9,9,-7", "submit time unknown or negative", "a submit time of 0 s or more needed, found -7"),
    ("b,1,1,0,9,9,100000000001", "time beyond 10^11 s", "times up to 10^11 s needed, found 100000000001"),
    ("b,1,1,0,100000000001,9,0", "time beyond 10^11 s", "times up to 10^11 s needed, found 100000000001"),
    ("b,0,0,0,9,9,0", "asks for nothing", "an amount above 0 of cpus or gpus or memory needed, found 0"),
    ("b,1,-2,0,9,9,0", "negative amount", "amounts of 0 or more needed, found -2"),
    ("b,1,10000000000000001,0,9,9,0", "amount beyond 10^16", "amounts up to 10^16 needed"),
    ("b,99999999999999999999999,1,0,9,9,0", "amount beyond 10^16", "amounts up to 10^16 needed"),
]


@pytest.mark.parametrize(("line", "reason", "found"), UNUSABLE)
def test_unusable_jobs_are_counted_or_refused(table: Write, line: str, reason: str, found: str) -> None:
    path = table(HEADER, "a,1,1,0,9,9,0", line, "c,1,1,0,9,9,0")
    w = read_job_table(path)
    assert dict(w.skipped) == {f"{reason} (first: line 3)": 1}
    assert [w.label("id", number) for number in w.id.tolist()] == ["a", "c"]
    text = message(lambda: read_job_table(path, strict=True))
    assert text.startswith(f"{path}:3: ")
    assert found in text


def test_jobs_without_nodes(table: Write) -> None:
    path = table("ReqCPUs,ActualDuration,Submit,Nodes", "1,9,0,0", "1,9,0,1")
    assert dict(read_job_table(path).skipped) == {"no nodes (first: line 2)": 1}
    assert message(lambda: read_job_table(path, strict=True)) == f"{path}:2: 1 to 2^31 nodes needed, found 0"


def test_no_usable_job(table: Write) -> None:
    path = table(HEADER, "a,1,1,0,9,-1,0", "b,1,1,0,9,-1,0")
    assert message(lambda: read_job_table(path)) == (
        f"{path}: no usable job; skipped: 2 run time unknown (first: lines 2, 3)"
    )


# --- writing -------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)
COUNTS = st.integers(0, 10**12)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 8))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    names = draw(
        st.lists(
            NAMES.filter(lambda name: not name.lstrip("-").isdigit()), min_size=1, max_size=4, unique=True
        )
    )
    features = draw(
        st.lists(st.from_regex("[a-z]{1,3}(&[a-z0-9]{1,3})?", fullmatch=True), min_size=1, unique=True)
    )
    columns = {
        "submit_time": column(COUNTS.filter(lambda n: n <= 10**11)),
        "run_time": column(st.integers(0, 10**6)),
        "requested_time": column(st.integers(1, 10**6)),
        "cpus": column(st.integers(1, 512)), "gpus": column(st.integers(0, 8)), "memory": column(COUNTS),
        "nodes": column(st.integers(1, 9)),
    }  # fmt: skip
    if draw(st.booleans()):
        columns["user"] = column(st.integers(-1, len(names) - 1))
        columns["constraint"] = column(st.integers(-1, len(features) - 1))
    if draw(st.booleans()):
        columns["kind"] = column(st.integers(-1, 1))
        columns["spread"] = column(st.integers(0, 1))
    labels = {"user": tuple(names), "constraint": tuple(features), "kind": ("dgemm", "daxpy")}
    return Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)


def words(workload: Workload, column: str) -> list[str]:
    """What the numbers of a column mean; their order is not kept."""
    numbers = workload.column(column).tolist()
    return ["" if number == -1 else workload.label(column, number) for number in numbers]


@examples(0.5)
@given(workloads())
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, w: Workload) -> None:
    path = tmp_path_factory.mktemp("round") / "w.csv.gz"
    write_job_table(w, path)
    again = read_job_table(path, strict=True)
    for name in ("id", "submit_time", "run_time", "requested_time", "nodes", *w.resources, "kind"):
        assert again.column(name).tolist() == w.column(name).tolist(), name
    for name in ("user", "constraint", "kind"):
        assert words(again, name) == words(w, name)
    assert [job.request for job in again.jobs] == [job.request for job in w.jobs]


@st.composite
def workloads_with_all_columns(draw: st.DrawFn) -> Workload:
    """Draw a workload with any of the columns and resources that a job table may have."""
    jobs = draw(st.integers(1, 6))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    words = st.lists(
        st.from_regex("[a-z][a-z0-9-]{0,4}", fullmatch=True), min_size=1, max_size=3, unique=True
    )
    columns: dict[str, Any] = {
        "submit_time": column(st.integers(0, 10**10)), "run_time": column(st.integers(0, 10**6)), "cpus": column(st.integers(1, 64)),
        "nodes": column(st.integers(1, 9)),
    }  # fmt: skip
    labels: dict[str, tuple[str, ...]] = {}
    if draw(st.booleans()):
        labels["id"] = tuple(f"{number}_{draw(st.integers(0, 9))}x" for number in range(jobs))
        columns["id"] = list(range(jobs))
    else:
        columns["id"] = draw(st.lists(st.integers(1, 10**9), min_size=jobs, max_size=jobs, unique=True))
    models = [
        name for name in ("gpus:a100", "gpus:v100", "mig:1g.5gb", "shards", "mps") if draw(st.booleans())
    ]
    columns |= {name: column(st.integers(0, 4)) for name in models}
    of_models = [columns[name] for name in models if name.startswith("gpus:")]
    more = column(st.integers(0, 2))
    columns["gpus"] = [sum(each) for each in zip(more, *of_models, strict=True)]
    columns["memory"] = column(st.integers(0, 10**12))
    for name in (
        "exclusive",
        "begin_time",
        "hold_until",
        "array_job",
        "array_limit",
        "status",
        "recorded_wait_time",
    ):
        if draw(st.booleans()):
            columns[name] = column(
                st.integers(0, 1) if name in ("exclusive", "status") else st.integers(-1, 10**9)
            )
    for name in (
        "user",
        "group",
        "queue",
        "partition",
        "qos",
        "executable",
        "node_list",
        "licenses",
        "dependency",
    ):
        if draw(st.booleans()):
            texts = draw(words) if name not in ("licenses", "dependency") else ["matlab:2,ansys", "after:7"]
            if name == "node_list":
                texts = draw(st.sampled_from([texts, ["101", "102"]]))
            if name == "dependency":
                texts = [f"afterok:{columns['id'][0]}", f"after:{columns['id'][-1]}"]
            labels[name] = tuple(dict.fromkeys(texts))
            columns[name] = column(st.integers(-1, len(labels[name]) - 1))
    resources = ("cpus", "gpus", "memory", *models)
    return Workload(columns, resources=resources, labels=labels)


@examples(0.5)
@given(workloads_with_all_columns(), st.sampled_from(["w.csv", "w.csv.gz"]))
def test_every_column_that_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, w: Workload, name: str
) -> None:
    path = tmp_path_factory.mktemp("round") / name
    write_job_table(w, path)
    again = read_job_table(path, strict=True)
    assert again.resources == w.resources
    assert ("node_list" in again.labels) == (w.column("node_list") >= 0).any()
    assert [again.label("id", number) for number in again.id.tolist()] == words(w, "id")
    for column in w.columns:
        if column in w.labels and column != "id":
            assert words(again, column) == words(w, column), column
        elif column != "id":
            there = column in again.columns or (np.array(w.columns[column]) == -1).all()
            assert there and again.column(column).tolist() == w.column(column).tolist(), column
    write_job_table(again, path.with_name("again.csv"))
    write_job_table(w, path.with_name("first.csv"))
    assert path.with_name("again.csv").read_bytes() == path.with_name("first.csv").read_bytes()


def test_memory_is_written_with_one_unit(tmp_path: Path) -> None:
    columns = {"submit_time": [0, 0], "run_time": [1, 1], "nodes": [1, 1], "memory": [2000, 1536]}
    w = Workload(columns, resources=("memory",))
    write_job_table(w, tmp_path / "w.csv")
    assert (tmp_path / "w.csv").read_text() == (f"{HEADER}\njob1,2000 B,0,0,1,1,0\njob2,1536 B,0,0,1,1,0\n")
    write_job_table(w.select([0]), tmp_path / "w.csv")
    assert (tmp_path / "w.csv").read_text() == f"{HEADER}\njob1,2,0,0,1,1,0\n"


def test_logs_without_resources_ask_for_cpus_anywhere(tmp_path: Path) -> None:
    w = Workload({"submit_time": [0], "run_time": [5], "nodes": [16], "user": [3]})
    write_job_table(w, tmp_path / "w.csv")
    assert (tmp_path / "w.csv").read_text() == f"{HEADER},Spread,User\njob1,0,16,0,5,5,0,1,3\n"
    job = read_job_table(tmp_path / "w.csv").jobs[0]
    assert (job.nodes, job.user) == (1, 3)
    assert job.request == Request(("cpus", "gpus", "memory"), (16, 0, 0), spread=True)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    columns = {"submit_time": [0], "run_time": [1], "nodes": [1]}
    path = tmp_path / "w.csv"
    shares = Workload({**columns, "gpu_milli": [500]}, resources=("gpu_milli",))
    assert (
        message(lambda: write_job_table(shares, path)) == f"{path}: a job table has no column for gpu_milli"
    )
    after = Workload({**columns, "preceding": [1]})
    assert message(lambda: write_job_table(after, path)) == f"{path}: a job table has no column for preceding"
    odd = Workload({**columns, "user": [0]}, labels={"user": ("a\rb",)})
    assert (
        message(lambda: write_job_table(odd, path)) == f"{path}: User: a printable name needed, found 'a\\rb'"
    )
    assert not path.exists()


# --- real logs -------------------------------------------------------------------------------------------

MONTHS = {"03": (68_552, 283, 2), "04": (88_971, 353, 4), "05": (92_417, 201, 8)}
"""Jobs, of which so many ended at once, and the most GPUs asked for."""


@pytest.mark.parametrize(
    "month", ["03", *(pytest.param(month, marks=pytest.mark.slow) for month in ("04", "05"))]
)
def test_beocat_months(shared: Path, tmp_path: Path, month: str) -> None:
    path = shared / "traces" / f"beocat-2021-{month}.csv.gz"
    jobs, ended_at_once, gpus = MONTHS[month]
    w = read_job_table(path, strict=True)
    assert len(w) == jobs
    assert dict(w.skipped) == {}
    assert dict(w.notes) == {"run time 0": ended_at_once, "out of order of submission": 1}
    assert np.ptp(w.id) == jobs - 1, "the names are contiguous"
    assert (int(w.column("cpus").max()), int(w.column("gpus").max())) == (64, gpus)
    write_job_table(w, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == gzip.decompress(path.read_bytes())


def test_jobs_longer_than_requested(shared: Path) -> None:
    w = read_job_table(shared / "refs" / "beocat" / "jobscsv_jobs.csv.gz")
    assert (len(w), dict(w.notes)) == (933, {"run time longer than requested": 94})


def test_alternative_features_are_read_written_and_placed(table: Write, tmp_path: Path) -> None:
    """Jobs run at once where the machines have what they need; the last waits for the one with both."""
    path = table(
        f"{HEADER},Constraint",
        "j1,1 GB,1,0,9,9,0,a|b",
        "j2,1 GB,1,0,9,9,0,a&b",
        "j3,1 GB,1,0,9,9,0,(b|c)&a",
        "j4,1 GB,1,0,9,9,0,c|d",
    )
    jobs = read_job_table(path)
    write_job_table(jobs, tmp_path / "again.csv")
    assert read_job_table(tmp_path / "again.csv").labels["constraint"] == jobs.labels["constraint"]
    machines = Machines(["m1", "m2"], ["cpus", "memory"], [[1, 10**9]] * 2, [["a"], ["a", "b"]])
    assert machines.misfits(jobs).tolist() == [False, False, False, True]
    result = Simulation(jobs.select([0, 1, 2]), Pipeline(), machines).run()
    assert result.start_time.tolist() == [0, 0, 9]
