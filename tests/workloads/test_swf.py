"""Reading and writing the Standard Workload Format, on small logs checked by hand."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.columns import LOG_COLUMNS
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import SWF_FIELDS, read_swf, swf_text, write_swf
from hpcsimkit.workloads.readers import swf_lines as parser

Log = Callable[..., Path]


def row(number: object = 1, submit: object = 0, run: object = 10, **fields: object) -> str:
    """Return a job line; fields by their SWF name, 4 requested processors unless told."""
    values = {"id": number, "submit_time": submit, "run_time": run, "requested_processors": 4, **fields}
    return " ".join(str(values.get(name, -1)) for name in SWF_FIELDS)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Return a function that writes lines (or bytes) to a file and returns its path."""

    def write(*lines: str, content: bytes | None = None, name: str = "log.swf") -> Path:
        path = tmp_path / name
        path.write_bytes("\n".join(lines).encode() + b"\n" if content is None else content)
        return path

    return write


def message(call: Callable[[], object]) -> str:
    with pytest.raises(WorkloadError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


# --- which field becomes which column -----------------------------------------------------------------


def test_every_field_lands_in_its_column(log: Log) -> None:
    w = read_swf(log("101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118"))
    assert {name: w.column(name).tolist() for name in w.columns} == {
        "id": [101], "submit_time": [102], "run_time": [104], "requested_time": [109], "nodes": [108],
        "user": [112], "group": [113], "executable": [114], "queue": [115], "partition": [116],
        "preceding": [117], "think_time": [118], "status": [111], "recorded_wait_time": [103],
        "requested_memory": [110], "used_memory": [107],
    }  # fmt: skip


def test_columns_unknown_throughout_are_left_out(log: Log) -> None:
    w = read_swf(log(row(1), row(2, user=7)))
    assert [name for name in LOG_COLUMNS if name in w.columns] == ["user"]
    assert w.user.tolist() == [-1, 7]
    assert w.queue.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("requested", "allocated", "size", "nodes", "replaced"),
    [(8, 6, "requested", 8, 0), (8, 6, "allocated", 6, 0), (-1, 6, "requested", 6, 1),
     (0, 6, "requested", 6, 1), (8, -1, "allocated", 8, 1), (8, 0, "allocated", 8, 1)],
)  # fmt: skip
def test_size(log: Log, requested: int, allocated: int, size: str, nodes: int, replaced: int) -> None:
    path = log(row(requested_processors=requested, allocated_processors=allocated))
    w = read_swf(path, size=size)  # type: ignore[arg-type]
    assert w.nodes.tolist() == [nodes]
    assert w.notes.get(f"{size} processors unknown: the other field taken", 0) == replaced


def test_options_out_of_range_are_refused(log: Log) -> None:
    with pytest.raises(UsageError, match="'requested' or 'allocated', found 'used'"):
        read_swf(log(row()), size="used")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="machine_size must be 1 or more, found 0"):
        read_swf(log(row()), machine_size=0)


def test_requested_time_falls_back_on_run_time_and_is_at_least_one(log: Log) -> None:
    w = read_swf(
        log(
            row(1, run=50, requested_time=-1),
            row(2, run=0, requested_time=0),
            row(3, run=5, requested_time=0.2),
        )
    )
    assert w.requested_time.tolist() == [50, 1, 1]
    assert w.notes["no estimate: run time taken"] == 2
    assert w.notes["run time 0"] == 1


def test_notes_count_what_is_odd(log: Log) -> None:
    w = read_swf(
        log(
            row(1, 100, 61, requested_time=60),
            row(2, 90, 60, requested_time=60),
            row(2, 95, 5, requested_time=60, status=5),
            row(3, 94, 5, requested_time=60) + " 7 7",
        )
    )
    assert dict(w.notes) == {
        "run time longer than requested": 1,
        "out of order of submission": 2,
        "job number used before": 1,
        "more than 18 fields: the rest ignored": 1,
    }
    assert w.submit_time.tolist() == [100, 90, 95, 94], "rows keep the order of the log"
    assert w.status.tolist() == [-1, -1, 5, -1], "the status is kept and not judged"


def test_fractions_are_rounded_and_counted(log: Log) -> None:
    w = read_swf(
        log(
            row(1, "3.6", "10.4", requested_time="99.9"),
            row(2, 4, 5, used_memory="2.5e2", wait_time="1.25", requested_time="-1.5"),
            row(3),
        )
    )
    assert w.submit_time.tolist() == [4, 4, 0]
    assert w.run_time.tolist() == [10, 5, 10]
    assert w.requested_time.tolist() == [100, 5, 10]
    assert w.used_memory.tolist() == [-1, 250, -1]
    assert w.notes["times rounded to whole seconds"] == 1, "not the time that was not given"
    assert w.notes["other values rounded to whole numbers"] == 1


def test_a_job_larger_than_the_machine_is_kept_until_fitting(log: Log) -> None:
    w = read_swf(log("; MaxProcs: 8", row(1), row(2, requested_processors=9)))
    assert w.nodes.tolist() == [4, 9]
    fitting = w.fitting(8)
    assert fitting.id.tolist() == [1]
    assert dict(fitting.skipped) == {"larger than the machine of 8 nodes": 1}


# --- what is skipped ------------------------------------------------------------------------------------

SKIPPED = [
    (row(2, requested_processors=0), "no processors", "at least 1 processor"),
    (row(2, requested_processors=-4), "no processors", "found -4"),
    (row(2, requested_processors=2.5), "processors not a whole number up to 2^31", "found 2.5"),
    (row(2, requested_processors=10**10), "processors not a whole number up to 2^31", "found 10000000000"),
    (row(2, requested_processors=10**18), "number beyond 2^53", "found 1e+18"),
    (row(2, run=-1), "run time unknown", "a run time (field 4) of 0 s or more needed, found -1"),
    (row(2, run=-0.5), "run time unknown", "found -0.5"),
    (row(2, submit=-3), "submit time negative", "a submit time (field 2) of 0 s or more needed, found -3"),
    (row(2, submit=10**11 + 1), "time beyond 10^11 s", "found 100000000001"),
    (row(2, run=10**12), "time beyond 10^11 s", "found 1000000000000"),
    (row(2, requested_time=10**12), "time beyond 10^11 s", "up to 10^11 s needed"),
    (row(2, think_time=10**12), "time beyond 10^11 s", "up to 10^11 s needed"),
    (row(2, user=10**18), "number beyond 2^53", "found 1e+18"),
    (row(2, run="9" * 400), "number beyond 2^53", "found"),
    (row(2, run="1e400"), "number beyond 2^53", "found inf"),
    (row(2.5), "job number not whole", "found 2.5"),
]


@pytest.mark.parametrize(("line", "reason", "found"), SKIPPED)
def test_unusable_jobs_are_skipped_and_counted_or_refused(
    log: Log, line: str, reason: str, found: str
) -> None:
    path = log("; MaxProcs: 8", row(1), line, row(3))
    w = read_swf(path)
    assert w.id.tolist() == [1, 3]
    assert dict(w.skipped) == {f"{reason} (first: line 3)": 1}
    text = message(lambda: read_swf(path, strict=True))
    assert text.startswith(f"{path}:3: ")
    assert found in text


MALFORMED = [
    ("1 2 3", "3 fields"),
    (row(2).rsplit(" ", 1)[0], "17 fields"),
    (row(2).replace("10", "ten"), "'ten'"),
    (row(2, run="inf"), "'inf'"),
    (row(2, run="1-2"), "'1-2'"),
    (row(2, run="1.2.3"), "'1.2.3'"),
    (row(2, run="--1"), "'--1'"),
    (row(2, run="."), "'.'"),
    (row(2, run="1_000"), "'1_000'"),
    (row(2, run="0x10"), "'0x10'"),
    (row(2, run="1,5"), "'1,5'"),
    (row(2, run="12é"), "'12\\\\xc3\\\\xa9'"),
    ("x" * 50, f"'{'x' * 27}...'"),
]


@pytest.mark.parametrize(("line", "found"), MALFORMED)
def test_malformed_lines_are_skipped_and_counted_or_refused(log: Log, line: str, found: str) -> None:
    path = log(row(1), line, row(3))
    w = read_swf(path)
    assert w.id.tolist() == [1, 3]
    assert dict(w.skipped) == {f"malformed line (first: line 2: {found})": 1}
    assert message(lambda: read_swf(path, strict=True)) == f"{path}:2: 18 numbers needed, found {found}"


def test_text_beyond_the_last_field_is_not_read(log: Log) -> None:
    w = read_swf(
        log("; MaxProcs: 8", row(1) + " {12,13} q_1d 1:ppn=4", row(2) + " ; a remark", row(3) + ";x"),
        strict=True,
    )
    assert w.id.tolist() == [1, 2, 3]
    assert w.notes["more than 18 fields: the rest ignored"] == 1


def test_names_in_numbered_columns_are_labels(log: Log) -> None:
    rows = (
        row(1, user="ada", queue="long"),
        row(2, user="7", queue=3),
        row(3, user="ada"),
        row(4, user=-1, queue="Öl"),
    )
    w = read_swf(log(*rows), strict=True)
    assert (w.user.tolist(), w.labels["user"]) == ([0, 1, 0, -1], ("ada", "7"))
    assert (w.queue.tolist(), w.labels["queue"]) == ([0, 1, -1, 2], ("long", "3", "Öl"))


@pytest.mark.parametrize("separator", ["\t", ",", ";", "|", " , "])
def test_separators_of_fields(log: Log, separator: str) -> None:
    rows = row(1), row(2, user="ada"), row(3, run=1.5)
    expected = read_swf(log(*rows))
    header = separator.join(f"field{number}" for number in range(18))
    w = read_swf(log(header, *(line.replace(" ", separator) for line in rows)), strict=True)
    assert w.hash == expected.hash


def test_thousands_are_one_number(log: Log) -> None:
    assert read_swf(log(row(1, run="12,345,678"))).run_time.tolist() == [12_345_678]


def test_partial_executions_are_counted_once(log: Log) -> None:
    lines = row(1, run=50, status=1), row(1, run=20, status=2), row(1, run=30, status=3), row(2, status=0)
    w = read_swf(log(*lines), strict=True)
    assert (w.id.tolist(), w.run_time.tolist()[0]) == ([1, 2], 50)
    assert dict(w.skipped) == {"partial execution of a job with a line of its own": 2}
    alone = read_swf(log(*lines[1:]))
    assert alone.id.tolist() == [1, 1, 2]
    assert alone.notes["partial executions without a line of the whole job: read as jobs"] == 2


@pytest.mark.parametrize("number", ["+10", "10.", ".5e1", "1E1", "1e+1", "-0", "010"])
def test_unusual_but_decimal_numbers_are_read(log: Log, number: str) -> None:
    w = read_swf(log(row(1, run=20), row(2, run=number), row(3, run=30)))
    assert w.run_time.tolist() == [20, round(float(number)), 30], "in the order of the file"


@pytest.mark.parametrize("word", ["-", "NaN", "N/A", "null", "NONE"])
def test_words_for_an_unknown_value(log: Log, word: str) -> None:
    w = read_swf(log(row(1, user=word), row(2, run=word), row(3, user=7), row(4, user="ada")))
    assert (w.id.tolist(), w.labels["user"]) == ([1, 3, 4], ("7", "ada"))
    assert w.user.tolist() == [-1, 0, 1]
    assert dict(w.skipped) == {"run time unknown (first: line 2)": 1}


def test_a_short_and_a_long_line_do_not_cancel_out(log: Log) -> None:
    w = read_swf(log(row(1), row(2).rsplit(" ", 1)[0], row(3) + " 7", row(4)))
    assert w.id.tolist() == [1, 3, 4]
    assert w.nodes.tolist() == [4, 4, 4]


def test_long_lines_are_counted_however_they_are_read(log: Log) -> None:
    w = read_swf(log(row(1) + " 7", row(2, run="1e1") + " 7", row(3, run="1e1")))
    assert w.notes["more than 18 fields: the rest ignored"] == 2


def test_first_lines_of_a_reason_are_named(log: Log) -> None:
    w = read_swf(log(*(row(number, run=-1) for number in range(5)), row(9)))
    assert dict(w.skipped) == {"run time unknown (first: lines 1, 2, 3)": 5}


def test_strict_names_the_first_line_of_all_that_is_wrong(log: Log) -> None:
    path = log(row(1), row(1), row(3, run=-1), "junk")
    assert message(lambda: read_swf(path, strict=True)) == (
        f"{path}:2: a job number (field 1) of its own needed, found 1 again"
    )


def test_strict_takes_a_clean_log(log: Log) -> None:
    assert len(read_swf(log(row(2), row(1)), strict=True)) == 2


# --- forms of text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "; MaxProcs: 8\r\n{0}\r\n{1}\r\n",
        ";MaxProcs:8\n\n  {0}   \n\t{1}\t\n \n",
        "; MaxProcs:\t8\n{0}\n{1}",
        "\ufeff; MaxProcs: 8\n{0}\n; in between\n{1}",
        "; MaxProcs: 8\r{0}\r{1}\r",
    ],
)
@pytest.mark.parametrize("blank", [" ", "\t", "     "])
def test_line_ends_and_blanks(log: Log, text: str, blank: str) -> None:
    rows = [line.replace(" ", blank) for line in (row(1), row(2, 5))]
    w = read_swf(log(content=text.format(*rows).encode()))
    assert (w.machine_size, w.submit_time.tolist(), dict(w.skipped)) == (8, [0, 5], {})


def test_gzip_is_told_by_its_content(log: Log) -> None:
    plain = (row(1) + "\n").encode()
    zipped = log(content=gzip.compress(plain, mtime=0), name="looks-plain.swf")
    unzipped = log(content=plain, name="looks-zipped.swf.gz")
    assert read_swf(zipped).hash == read_swf(unzipped).hash


def test_concatenated_gzip(log: Log) -> None:
    w = read_swf(log(content=gzip.compress(f"{row(1)}\n".encode()) + gzip.compress(row(2).encode())))
    assert w.id.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "shown"), [("KTH.swf.gz", "KTH"), ("a.b.SWF", "a.b"), ("x.txt", "x.txt"), (".swf", ".swf")]
)
def test_name(log: Log, name: str, shown: str) -> None:
    assert read_swf(log(row(), name=name)).name == shown


@pytest.mark.parametrize("block_size", [1, 50, 200, 1 << 20])
def test_blocks_do_not_show(log: Log, monkeypatch: pytest.MonkeyPatch, block_size: int) -> None:
    lines = [
        "; MaxProcs: 8",
        row(1),
        "junk",
        row(2, run="1e1"),
        "",
        row(3, run=-1),
        row(4, "1.5"),
        "1 2",
        row(5),
    ]
    expected = read_swf(log(*lines))
    monkeypatch.setattr(parser, "BLOCK_SIZE", block_size)
    found = read_swf(log(*lines))
    assert (found.hash, found.skipped, found.notes) == (expected.hash, expected.skipped, expected.notes)
    assert found.id.tolist() == [1, 2, 4, 5]


@given(st.text(alphabet="0123456789-.+eE \r\n;x", max_size=400))
def test_bulk_parser_agrees_with_one_line_at_a_time(text: str) -> None:
    rows: list[tuple[int, list[float]]] = []
    malformed: list[tuple[int, list[float]]] = []
    for number, line in enumerate(text.encode().replace(b"\r", b" ").split(b"\n"), start=1):
        words = line.partition(b";")[0].split() if not line.lstrip().startswith(b";") else []
        words = words if len(words) >= 18 else line.split()
        if not words or words[0].startswith(b";"):
            continue
        values = [float(word) if decimal(word) else -1.0 for word in words[:18]]
        if any(not decimal(word) for place, word in enumerate(words[:18]) if place not in parser.NAMED):
            values = []
        (rows if len(values) >= 18 else malformed).append((number, values[:18]))
    lines = parser.parse_lines(text.replace("\r", " ").encode() + b"\n")
    assert lines.line.tolist() == [number for number, _ in rows]
    assert lines.fields.T.tolist() == [values for _, values in rows]
    assert [number for number, _ in lines.malformed] == [number for number, _ in malformed]


def decimal(word: bytes) -> bool:
    try:
        return float(word) == float(word)
    except ValueError:
        return False


words = st.one_of(
    st.integers(-5, 10**6).map(str),
    st.floats(-9, 1e6).map(str),
    st.decimals(-9, 10**6, places=2).map(str),
    st.sampled_from(["1.2.3", "4-5", "7.", ".5", "a"]),
)


@given(st.lists(st.lists(words, min_size=16, max_size=20), max_size=12))
def test_bulk_parser_agrees_on_nearly_right_lines(lines: list[list[str]]) -> None:
    def number(word: str) -> float | None:
        try:
            return float(word)
        except ValueError:
            return None

    values = [
        [
            -1.0 if place in parser.NAMED and number(word) is None else number(word)
            for place, word in enumerate(line)
        ]
        for line in lines
    ]
    right = [line[:18] for line in values if len(line) >= 18 and None not in line[:18]]
    parsed = parser.parse_lines("\n".join(map(" ".join, lines)).encode())
    assert parsed.fields.T.tolist() == right
    assert len(parsed.malformed) == len(lines) - len(right)
    assert parsed.longer == sum(len(line) > 18 and None not in line[:18] for line in values)


# --- header -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (["; MaxProcs: 128"], 128),
        ([";MaxNodes: 1524"], 1524),
        (["; MaxNodes: 338 (batch partition; 512 total)"], 338),
        (["; MaxNodes: 72", "; MaxProcs: 1664 (72, 1368, 224)"], 1664),
        (["; maxprocs: 5"], 5),
        (["; MaxProcs: -1", "; MaxNodes: 9"], 9),
        (["; MaxProcs: 0"], None),
        ([";MaxProcs:   1,024", ";MaxNodes: 64"], 1024),
        (["; MaxProcs: 12'345'678 in all"], 12_345_678),
        (["; MaxProcs: 1 024"], 1024),
        (["; MaxProcs: 128.0"], 128),
        (["; MaxProcs: 1.024", "; MaxNodes: 64"], None),
        (["; MaxProcs: 1k", "; MaxNodes: 64"], None),
        (["; MaxProcs: 0x400"], None),
        (["; MaxProcs: ~1024", "; MaxNodes: 64"], None),
        (["; MaxProcs: unknown", "; MaxNodes: 64"], 64),
        (["; MaxProcs: 1,0245"], None),
        (["; MaxProcs: 12-16"], None),
        (["; MaxProcs: unknown"], None),
        ([], None),
    ],
)
def test_machine_size(log: Log, header: list[str], size: int | None) -> None:
    path = log(*header, row())
    assert read_swf(path).machine_size == size
    assert read_swf(path, machine_size=77).machine_size == 77


@pytest.mark.parametrize("text", ["1k", "~1024", "about 1,024"])
def test_numbers_of_the_header_that_are_not_understood_are_noted(log: Log, text: str) -> None:
    assert read_swf(log(f"; MaxProcs: {text}", row())).notes[f"MaxProcs not understood ('{text}')"] == 1


def test_header_keeps_repeated_keys_and_continuations(log: Log) -> None:
    w = read_swf(
        log(
            "; free text", "; Queue:  1 DSI   ", ";Queue: 2 astro", ";", "; Information: http://a.b/",
            ";              http://c.d/", "; StartTime: Mon 14:00:31", "; Note:", row(), "; Note: late",
        )
    )  # fmt: skip
    assert dict(w.header) == {
        "Comment": "free text",
        "Queue": "1 DSI\n2 astro",
        "Information": "http://a.b/\nhttp://c.d/",
        "StartTime": "Mon 14:00:31",
        "Note": "\nlate",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_header_beyond_ascii(log: Log, encoding: str) -> None:
    w = read_swf(log(content=f"; Acknowledge: Åke Sandgren\n{row()}\n".encode(encoding)))
    assert w.header["Acknowledge"] == "Åke Sandgren"


# --- files that are no logs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "found an empty file"),
        (b" \n\n", "found an empty file"),
        (gzip.compress(b"", mtime=0), "found an empty file"),
        (b"; MaxProcs: 4\n; Note: x\n", "no job in it, only 2 header lines"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "found binary data"),
        (bytes(range(1, 256)), "18 numbers a line needed"),
        (
            b"<!DOCTYPE html>\n<html>\n",
            ":1: not the Standard Workload Format: 18 numbers a line needed, found '<!",
        ),
        (b"id,submit\n1,0\n", ":1: not the Standard Workload Format"),
        (b'{"jobs": []}', ":1: not the Standard Workload Format"),
        (b"1 2 3\n", "found 3 fields"),
        (gzip.compress(row().encode() * 50, mtime=0)[:-10], "the gzip file is cut short"),
        (gzip.compress(row().encode(), mtime=0)[:-3] + b"abc", "the gzip file is damaged"),
        (b"\x1f\x8bnot gzip at all", "the gzip file is damaged"),
        (f"{row(run=-1)}\n{row(2, submit=-1)}".encode(), "no usable job; skipped: 1 submit time negative"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(log: Log, content: bytes, found: str) -> None:
    path = log(content=content)
    text = message(lambda: read_swf(path))
    assert text.startswith(str(path))
    assert found in text


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert message(lambda: read_swf(tmp_path / "no.swf")) == f"{tmp_path}/no.swf: no such file"
    assert message(lambda: read_swf(tmp_path)) == f"{tmp_path}: a file is needed, found a directory"
    assert "cannot be read" in message(lambda: read_swf("a\0b"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(log: Log) -> None:
    path = log(row())
    path.chmod(0)
    assert message(lambda: read_swf(path)) == f"{path}: cannot be read: Permission denied"


def test_unreadable_file_whoever_runs_the_tests(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    path = log(row())
    monkeypatch.setattr(Path, "open", refuse)
    assert message(lambda: read_swf(path)) == f"{path}: cannot be read: Permission denied"


# --- writing ----------------------------------------------------------------------------------------------

times = st.integers(0, 10**11)
optional = st.sampled_from(LOG_COLUMNS)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 8))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    columns = {
        "id": column(st.integers(0, 10**9)),
        "submit_time": column(times),
        "run_time": column(times),
        "requested_time": column(st.integers(1, 10**11)),
        "nodes": column(st.integers(1, 2**31)),
    }
    for name in draw(st.sets(optional)):
        columns[name] = column(st.integers(-1, 10**11))
    size = draw(st.none() | st.integers(1, 10**6))
    text = st.text(alphabet="abcå:; ()1", max_size=12).map(str.strip)
    header = draw(st.dictionaries(st.sampled_from(["Note", "MaxProcs", "MaxNodes", "Computer"]), text))
    return Workload(columns, machine_size=size, header=header)


@pytest.mark.parametrize("name", ["x.swf", "x.swf.gz"])
@given(workload=workloads())
def test_what_is_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, name: str, workload: Workload
) -> None:
    path = tmp_path_factory.mktemp("round") / name
    write_swf(workload, path)
    for size in ("requested", "allocated"):
        again = read_swf(path, size=size, strict=len(set(workload.id.tolist())) == len(workload))
        for column in workload.columns:
            assert again.column(column).tolist() == workload.column(column).tolist()
        assert again.machine_size == workload.machine_size
        assert again.hash == workload.hash
        assert not again.skipped
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_header_and_history_survive(log: Log, tmp_path: Path) -> None:
    first = read_swf(log("; MaxProcs: 8 (of 9)", "; Queue: 1 a", "; Queue: 2 b", row(1), row(2)))
    write_swf(first.first(1), tmp_path / "b.swf")
    again = read_swf(tmp_path / "b.swf")
    assert again.header["MaxProcs"] == "8 (of 9)"
    assert again.header["Queue"] == "1 a\n2 b"
    assert again.header["MaxJobs"] == "1"
    assert again.provenance == (
        "read log.swf (size=requested): 2 jobs, 0 skipped",
        "jobs 0 to 1 by submission",
        "read b.swf (size=requested): 1 jobs, 0 skipped",
    )


def test_machine_size_is_brought_up_to_date(log: Log, tmp_path: Path) -> None:
    write_swf(read_swf(log("; MaxNodes: 64", row())).fitting(16), tmp_path / "b.swf")
    assert read_swf(tmp_path / "b.swf").machine_size == 16


def test_estimates_are_written_only_where_there_are_some(log: Log, tmp_path: Path) -> None:
    without, some = tmp_path / "without.swf", tmp_path / "some.swf"
    write_swf(read_swf(log(row(1, run=50), row(2, run=0))), without)
    write_swf(read_swf(log(row(1, run=50), row(2, run=5, requested_time=9))), some)
    assert read_swf(without).notes["no estimate: run time taken"] == 2
    assert "no estimate: run time taken" not in read_swf(some).notes


def test_written_gzip_is_reproducible(log: Log, tmp_path: Path) -> None:
    w = read_swf(log(row()))
    paths = [tmp_path / "a.swf.gz", tmp_path / "b.swf.gz"]
    for path in paths:
        write_swf(w, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_failed_write_leaves_the_old_file_and_nothing_else(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = read_swf(log(row()))
    target = tmp_path / "out" / "b.swf"
    target.parent.mkdir()
    target.write_text("old")

    def fill_the_disk(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fill_the_disk)
    assert message(lambda: write_swf(w, target)) == f"{target}: cannot be written: No space left on device"
    assert [path.name for path in target.parent.iterdir()] == ["b.swf"]
    assert target.read_text() == "old"


def test_write_where_it_cannot_be(log: Log, tmp_path: Path) -> None:
    w = read_swf(log(row()))
    missing = tmp_path / "no" / "b.swf"
    assert (
        message(lambda: write_swf(w, missing)) == f"{missing}: cannot be written: No such file or directory"
    )
    assert message(lambda: write_swf(w, tmp_path)) == f"{tmp_path}: cannot be written: Is a directory"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_ordinary_file_is_written_to_and_stays(log: Log) -> None:
    write_swf(read_swf(log(row())), os.devnull)
    assert Path(os.devnull).is_char_device()


def test_a_link_is_not_followed(log: Log, tmp_path: Path) -> None:
    target, link = tmp_path / "target.swf", tmp_path / "link.swf"
    link.symlink_to(target)
    for text in (None, "old"):  # nothing there, something there
        if text is not None:
            target.write_text(text)
        expected = f"{link}: cannot be written: it is a symbolic link, which is not followed"
        assert message(lambda: write_swf(read_swf(log(row())), link)) == expected
        assert link.is_symlink()
        assert (target.read_text() if target.exists() else None) == text


def test_a_link_in_place_of_the_temporary_file_is_not_followed(log: Log, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    (tmp_path / f".x.swf.{os.getpid()}.tmp").symlink_to(target)
    write_swf(read_swf(log(row())), tmp_path / "x.swf")
    assert target.read_text() == "old"
    assert len(read_swf(tmp_path / "x.swf")) == 1


def test_text_of_a_schedule() -> None:
    text = swf_text(
        {
            "id": [7, 9],
            "wait_time": np.array([0, 12]),
            "cpu_time": [1.5, 2.0],
            "allocated_processors": [4, 8],
        },
        {"Note": "a\nb", "Empty": ""},
    )
    assert text.splitlines() == [
        "; Note: a",
        "; Note: b",
        "; Empty:",
        "7 -1 0 -1 4 1.5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
        "9 -1 12 -1 8 2.0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
    ]
    assert swf_text({}) == ""


def test_text_that_is_kept_for_the_next_schedule() -> None:
    """Only of columns that are equal and cannot change."""

    def fixed(*values: float) -> np.ndarray:
        column = np.array(values)
        column.flags.writeable = False
        return column

    def lines(columns: dict[str, np.ndarray]) -> list[str]:
        rows = zip(*(columns.get(name, np.array([-1, -1])).tolist() for name in SWF_FIELDS), strict=True)
        return [" ".join(map(str, row)) for row in rows]

    columns = {"id": fixed(7, 9), "submit_time": fixed(1, 2), "wait_time": fixed(0, 3), "user": fixed(4, -1)}
    changes = [
        {}, {"wait_time": fixed(5, 6)}, {"user": fixed(4, 2)}, {"user": fixed(4.0, 2.0)}, {"queue": fixed(0.0, 1.0)},
        {"queue": fixed(-0.0, 1.0)}, {"queue": np.array([3, 3])}, {"submit_time": np.array([8, 9])}, {},
    ]  # fmt: skip
    for change in changes:
        assert swf_text(columns | change).splitlines() == lines(columns | change)
    changing = np.array([1, 2])
    assert swf_text(columns | {"user": changing}).splitlines() == lines(columns | {"user": changing})
    changing[0] = 3
    assert swf_text(columns | {"user": changing}).splitlines() == lines(columns | {"user": changing})


def test_text_of_integers_of_any_type() -> None:
    for kind in (np.int8, np.uint16, np.int64, np.uint64):
        largest = np.iinfo(kind).max
        text = swf_text({"user": np.array([3, largest], dtype=kind)})
        assert [line.split()[11] for line in text.splitlines()] == ["3", str(largest)]


@pytest.mark.parametrize(
    ("columns", "needed"),
    [
        ({"nodes": [1]}, "unknown SWF field 'nodes'; known are id, submit_time"),
        ({"id": [1, 2], "queue": [1]}, "SWF field 'queue' needs 2 values, found 1"),
        ({"id": ["a"]}, "SWF field 'id' needs a list of finite numbers"),
        ({"id": [float("nan")]}, "SWF field 'id' needs a list of finite numbers"),
        ({"id": 3}, "SWF field 'id' needs a list of finite numbers"),
    ],
)
def test_text_of_what_is_no_schedule(columns: dict[str, object], needed: str) -> None:
    assert needed in message(lambda: swf_text(columns))  # type: ignore[arg-type]
