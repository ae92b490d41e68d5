"""Every reader: lines that cannot be used change only the counts, and the form of a file changes no job."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_log
from hpcsimkit.workloads.readers.logs import READERS
from hpcsimkit.workloads.readers.records import MENDED

Row = dict[str, Any]
"""What is known of a job, whatever the format."""

FEW = settings(max_examples=3, deadline=None)
EPOCH = 1_709_276_400


@st.composite
def jobs(draw: st.DrawFn) -> list[Row]:
    """Draw a few jobs, in the order of submission."""
    found, submit = [], EPOCH
    for number in range(draw(st.integers(1, 5))):
        submit += draw(st.integers(0, 5000))
        found.append(
            {
                "id": 100 + number,
                "submit": submit,
                "wait": draw(st.integers(0, 900)),
                "run": draw(st.integers(1, 9000)),
                "limit": 60 * draw(st.integers(1, 600)),
                "nodes": (nodes := draw(st.integers(1, 3))),
                "cpus": nodes * draw(st.integers(1, 8)),
                "gpus": nodes * draw(st.integers(0, 2)),
                "gib": nodes * draw(st.integers(1, 4)),
                "user": draw(st.sampled_from(["ada", "ben", "cleo"])),
            }
        )
    return found


def start(job: Row) -> int:
    return int(job["submit"] + job["wait"])


def end(job: Row) -> int:
    return start(job) + int(job["run"])


@dataclass(frozen=True)
class Kind:
    """A format: the cells of a job, its text, and how cells are spoilt."""

    name: str
    cells: Callable[[Row], Row]
    write: Callable[[list[Row]], str | bytes]
    wrong: tuple[Row, ...]
    numbers: tuple[str, ...] = ()
    unused: Mapping[str, Any] | None = None

    def written(self, rows: list[Row]) -> str | bytes:
        return self.write([self.cells(row) for row in rows])


def table(rows: list[Row], separator: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> str:
    text = io.StringIO()
    out = csv.DictWriter(
        text,
        list(rows[0]),
        delimiter=separator,
        quoting=quoting,
        lineterminator="\n",  # type: ignore[arg-type]
    )
    out.writeheader()
    out.writerows(rows)
    return text.getvalue()


def lines(text: Callable[[Row], str]) -> Callable[[list[Row]], str]:
    return lambda rows: "".join(f"{text(row)}\n" for row in rows)


def pbs(cells: Row) -> str:
    given = " ".join(f"{name}={value}" for name, value in cells.items() if name not in ("record", "id"))
    return f"03/01/2024 09:00:10;{cells['record']};{cells['id']}.head;{given}"


def sge_cells(job: Row) -> Row:
    names = [
        "queue",
        "host",
        "group",
        "owner",
        "name",
        "id",
        "account",
        "priority",
        "submit",
        "start",
        "end",
        "failed",
        "exit",
    ]
    cells = dict.fromkeys(names, "0") | {
        "queue": "all.q",
        "host": "n1",
        "group": "g",
        "owner": job["user"],
        "name": "x",
    }
    cells |= {
        "id": job["id"],
        "submit": job["submit"],
        "start": start(job),
        "end": end(job),
        "account": "sge",
    }
    usage = {f"ru{number}": "0" for number in range(18)}
    asked = f"-l h_rt={job['limit']},h_vmem={job['gib']}G -pe mpi {job['cpus']}"
    rest = {
        "project": "none",
        "department": "d",
        "pe": "mpi",
        "slots": job["cpus"],
        "task": "0",
        "cpu": "1.5",
        "mem": "0.1",
        "io": "0",
    }
    return cells | usage | rest | {"category": asked, "iow": "0.0", "pe_task": "NONE", "maxvmem": "1.2G"}


def slurm_json(rows: list[Row]) -> str:
    return json.dumps({"jobs": rows, "meta": {"plugin": {"data_parser": "v0.0.41"}}, "errors": []})


def batsim_json(rows: list[Row]) -> str:
    profiles = {f"d{row['run']}": {"type": "delay", "delay": row["run"]} for row in rows}
    return json.dumps(
        {"nb_res": 64, "jobs": rows, "profiles": {**profiles, "p": {"type": "parallel", "cpu": [1]}}}
    )


def parquet_bytes(rows: list[Row]) -> bytes:
    content = io.BytesIO()
    parquet.write_table(pyarrow.table({name: [row[name] for row in rows] for name in rows[0]}), content)
    return content.getvalue()


def swf_cells(job: Row) -> Row:
    asked = {
        "requested": job["cpus"],
        "limit": job["limit"],
        "memory": -1,
        "status": 1,
        "user": job["user"],
        "group": 1,
    }
    known = {
        "id": job["id"],
        "submit": job["submit"],
        "wait": job["wait"],
        "run": job["run"],
        "cpus": job["cpus"],
        "time": -1,
        "used": -1,
    }
    return known | asked | dict.fromkeys(("executable", "queue", "partition", "preceding", "think"), -1)


def gwf_cells(job: Row) -> Row:
    cells = {name: value for name, value in swf_cells(job).items() if name not in ("preceding", "think")}
    return cells | {"site": "S1", "last": "S1"} | {f"further{number}": -1 for number in range(11)}


KINDS = {
    "job-table": Kind(
        "x.csv",
        lambda job: {
            "JobName": f"job{job['id']}", "Submit": job["submit"], "ActualDuration": job["run"], "ReqDuration": job["limit"],
            "ReqCPUs": job["cpus"], "ReqGPUs": job["gpus"], "ReqMem": f"{job['gib']} GiB", "User": job["user"],
            "Note": "a", "Colour": "red",
        },
        table,
        ({"ActualDuration": "x"}, {"ReqCPUs": "4 or 5"}, {"Submit": "-7"}, {"ReqMem": "1 GiBB"}, {"ReqGPUs": "1.5"}),
        ("Submit", "ReqCPUs", "ReqGPUs", "ActualDuration", "ReqDuration"),
        {"Note": "b", "Colour": "x,y"},
    ),
    "openb": Kind(
        "x.csv",
        lambda job: {
            "name": f"pod-{job['id']:04d}", "cpu_milli": 500 * job["cpus"], "memory_mib": 1024 * job["gib"], "num_gpu": job["gpus"],
            "gpu_milli": 1000, "creation_time": job["submit"], "scheduled_time": start(job), "deletion_time": end(job),
            "qos": "LS", "gpu_spec": "", "colour": "",
        },
        table,
        ({"cpu_milli": "x"}, {"scheduled_time": ""}, {"deletion_time": ""}, {"num_gpu": "-1"}),
        ("cpu_milli", "memory_mib", "num_gpu", "creation_time", "scheduled_time", "deletion_time"),
        {"colour": "x"},
    ),
    "philly": Kind(
        "x.csv",
        lambda job: {
            "job_id": f"app_{job['id']}", "num_gpu": job["gpus"] + 1, "submit_time": 1000 * job["submit"], "duration": 1000 * job["run"],
            "model_name": "vgg", "colour": "",
        },
        table,
        ({"num_gpu": "x"}, {"duration": ""}, {"submit_time": "?"}, {"num_gpu": "0"}),
        ("num_gpu", "submit_time", "duration"),
        {"colour": "x"},
    ),
    "eagle": Kind(
        "x.csv",
        lambda job: {
            "job_id": job["id"], "user": job["user"], "wallclock_req": job["limit"], "nodes_req": job["nodes"],
            "processors_req": job["cpus"], "gpus_req": job["gpus"], "mem_req": 1024 * job["gib"], "submit_time": job["submit"],
            "start_time": start(job), "run_time": job["run"], "state": "COMPLETED", "colour": "",
        },
        table,
        ({"nodes_req": "0"}, {"run_time": "x"}, {"submit_time": "?"}, {"processors_req": "0"}, {"mem_req": "1G"}),
        ("job_id", "wallclock_req", "nodes_req", "processors_req", "gpus_req", "mem_req", "submit_time", "start_time", "run_time"),
        {"colour": "x"},
    ),
    "swf": Kind(
        "x.swf", swf_cells, lines(lambda cells: " ".join(map(str, cells.values()))),
        ({"run": -1}, {"submit": -5}, {"cpus": 0, "requested": 0}, {"limit": "1h"}, {"think": "x"}),
        ("submit", "wait", "run", "limit"),
    ),
    "gwf": Kind(
        "x.gwf", gwf_cells, lines(lambda cells: "\t".join(map(str, cells.values()))),
        ({"run": -1}, {"submit": -5}, {"cpus": 0, "requested": 0}, {"limit": "1h"}),
        ("submit", "wait", "run", "limit"),
    ),
    "pbs": Kind(
        "20240301",
        lambda job: {
            "record": "E", "id": job["id"], "user": job["user"], "queue": "batch", "ctime": job["submit"], "qtime": job["submit"],
            "etime": job["submit"], "start": start(job), "end": end(job), "Exit_status": 0,
            "Resource_List.nodes": f"{job['nodes']}:ppn={job['cpus'] // job['nodes']}",
            "Resource_List.walltime": f"{job['limit'] // 3600:02d}:{job['limit'] // 60 % 60:02d}:00",
            "Resource_List.mem": f"{job['gib']}gb", "colour": "red",
        },
        lines(pbs),
        ({"record": "D"}, {"start": "x"}, {"end": ""}, {"Resource_List.walltime": "1h"}),
        ("ctime", "start", "end"),
        {"colour": '"light blue"'},
    ),
    "sge": Kind(
        "accounting", sge_cells, lines(lambda cells: ":".join(map(str, cells.values()))),
        ({"start": 0}, {"slots": 0}, {"submit": "x"}, {"end": "x"}, {"pe_task": "1.n2"}),
    ),
    "slurm-json": Kind(
        "x.json",
        lambda job: {
            "job_id": job["id"], "user": job["user"], "state": {"current": ["COMPLETED"]}, "partition": "cpu", "colour": "red",
            "time": {"submission": job["submit"], "start": start(job), "end": end(job), "elapsed": job["run"],
                     "limit": {"set": True, "infinite": False, "number": job["limit"] // 60}},
            "tres": {"requested": [{"type": "cpu", "count": job["cpus"]}, {"type": "node", "count": job["nodes"]},
                                   {"type": "mem", "count": 1024 * job["gib"]}], "allocated": []},
            "allocation_nodes": job["nodes"],
        },
        slurm_json,
        ({"time": {"submission": EPOCH}}, {"tres": {}}, {"state": {"current": ["PENDING"]}}, {"job_id": "x"}, {"time": None}),
        unused={"colour": {"name": ["blue"]}},
    ),
    "batsim": Kind(
        "x.json",
        lambda job: {
            "id": job["id"], "subtime": job["submit"], "walltime": job["limit"], "res": job["nodes"], "profile": f"d{job['run']}",
            "run": job["run"], "colour": "red",
        },
        batsim_json,
        ({"profile": "p"}, {"profile": "nowhere"}, {"res": 0}, {"subtime": "x"}, {"res": None}),
        ("subtime", "walltime"),
        {"colour": [1]},
    ),
    "pm100": Kind(
        "x.parquet",
        lambda job: {
            "job_id": job["id"], "submit_time": job["submit"], "start_time": start(job), "end_time": end(job), "time_limit": job["limit"] // 60,
            "num_cores_req": job["cpus"], "num_nodes_req": job["nodes"], "num_gpus_req": job["gpus"], "mem_req": job["gib"],
            "job_state": "COMPLETED", "user_id": 7, "power_consumption": 5,
        },
        parquet_bytes,
        ({"start_time": None}, {"num_nodes_req": 0}, {"num_cores_req": 0}, {"end_time": None}),
        ("num_cores_req", "num_nodes_req", "num_gpus_req", "mem_req", "time_limit"),
        {"power_consumption": 6},
    ),
    "f-data": Kind(
        "x.parquet",
        lambda job: {
            "jid": f"j{job['id']}", "usr": job["user"], "adt": job["submit"], "sdt": start(job), "edt": end(job), "nnumr": job["nodes"],
            "elpl": job["limit"], "exit state": "completed", "avgpcon": 5,
        },
        parquet_bytes,
        ({"sdt": None}, {"nnumr": 0}, {"edt": None}),
        ("nnumr", "elpl"),
        {"avgpcon": 6},
    ),
}  # fmt: skip
"""Formats beside those of ``sacct``, of which ``test_exports.py`` has the same properties and more."""

TABLES = ("job-table", "openb", "philly", "eagle")
TEXTS = tuple(name for name, kind in KINDS.items() if not kind.name.endswith("parquet"))


def read(content: str | bytes, name: str) -> Workload:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_log(path)


def the_same(found: Workload, expected: Workload) -> None:
    assert found.hash == expected.hash
    assert found.labels == expected.labels
    assert found.resources == expected.resources
    assert {note: count for note, count in found.notes.items() if note != MENDED} == dict(expected.notes)


def test_every_reader_is_tried() -> None:
    assert {*KINDS, "sacct"} == READERS.places.keys()


@pytest.mark.parametrize("name", KINDS)
@given(rows=jobs(), place=st.integers(0, 5), data=st.data())
@settings(max_examples=6, deadline=None)
def test_a_line_that_cannot_be_used_changes_only_the_counts(
    name: str, rows: list[Row], place: int, data: st.DataObject
) -> None:
    kind = KINDS[name]
    change = data.draw(st.sampled_from(kind.wrong))
    cells = [kind.cells(row) for row in rows]
    expected = read(kind.write(cells), kind.name)
    spoilt = {**kind.cells({**rows[0], "id": 999}), **change}
    found = read(kind.write([*cells[:place], spoilt, *cells[place:]]), kind.name)
    the_same(found, expected)
    assert sum(found.skipped.values()) == sum(expected.skipped.values()) + 1


@pytest.mark.parametrize("name", KINDS)
@given(rows=jobs())
@FEW
def test_values_are_those_of_the_jobs(name: str, rows: list[Row]) -> None:
    w = read(KINDS[name].written(rows), KINDS[name].name)
    assert len(w) == len(rows)
    assert w.submit_time.tolist() == [row["submit"] for row in rows]
    assert w.run_time.tolist() == [row["run"] for row in rows]
    if name not in ("openb", "philly"):
        assert w.requested_time.tolist() == [row["limit"] for row in rows]
    if name not in ("job-table", "philly", "batsim"):
        assert w.recorded_wait_time.tolist() == [row["wait"] for row in rows]
    if name in ("eagle", "pbs", "slurm-json", "pm100"):
        assert w.nodes.tolist() == [row["nodes"] for row in rows]
        assert (w.column("cpus") * w.nodes).tolist() == [row["cpus"] for row in rows]


@pytest.mark.parametrize("name", KINDS)
@given(rows=jobs(), order=st.randoms(use_true_random=False))
@FEW
def test_columns_that_are_not_used_and_their_order(name: str, rows: list[Row], order: Any) -> None:
    kind = KINDS[name]
    if kind.unused is None:
        pytest.skip("the columns of the format have places, no names")
    cells = [kind.cells(row) for row in rows]
    expected = read(kind.write(cells), kind.name)
    the_same(read(kind.write([{**row, **kind.unused} for row in cells]), kind.name), expected)
    fewer = [{column: row[column] for column in row if column not in kind.unused} for row in cells]
    the_same(read(kind.write(fewer), kind.name), expected)
    columns = list(cells[0])
    order.shuffle(columns)
    the_same(
        read(kind.write([{column: row[column] for column in columns} for row in cells]), kind.name), expected
    )


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.numbers])
@given(rows=jobs())
@FEW
def test_whole_numbers_as_floats(name: str, rows: list[Row]) -> None:
    kind = KINDS[name]
    cells = [kind.cells(row) for row in rows]
    floats = [{**row, **{column: float(row[column]) for column in kind.numbers}} for row in cells]
    the_same(read(kind.write(floats), kind.name), read(kind.write(cells), kind.name))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("separator", ["\t", ";", "|", ","])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@given(rows=jobs())
@settings(max_examples=2, deadline=None)
def test_separators_and_quotes(name: str, separator: str, quoting: int, rows: list[Row]) -> None:
    kind = KINDS[name]
    cells = [kind.cells(row) for row in rows]
    the_same(read(table(cells, separator, quoting), kind.name), read(kind.write(cells), kind.name))


@pytest.mark.parametrize("name", TEXTS)
@given(rows=jobs())
@FEW
def test_forms_of_text(name: str, rows: list[Row]) -> None:
    kind = KINDS[name]
    text = str(kind.written(rows))
    expected = read(text, kind.name)
    for content in (
        "\ufeff" + text, text.replace("\n", "\r\n"), text.replace("\n", "\n\n"), text.rstrip("\n"), gzip.compress(text.encode(), mtime=0),
    ):  # fmt: skip
        the_same(read(content, kind.name), expected)
