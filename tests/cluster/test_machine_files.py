"""Machines from files: what is read, what is written, and what is wrong in which line."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from hpcsimkit.cluster.files import machines_text, write_machines
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError, UsageError

HEADER = "MachineName,TotalMemory,TotalCPUs,TotalGPUs\n"


def read(folder: Path, text: str, name: str = "m.csv") -> Machines:
    (folder / name).write_text(text)
    return Machines.read(folder / name)


# --- what is read ----------------------------------------------------------------------------------------


def test_memory_without_unit_is_in_thousands_of_bytes(tmp_path: Path) -> None:
    machines = read(tmp_path, HEADER + "big,1024000000,24,0\n\n gpu , 512000000 , 64 , 8 \n")
    assert machines.names == ("big", "gpu") and machines.resources == ("cpus", "gpus", "memory")
    assert machines.capacity.tolist() == [[24, 0, 1_024_000_000_000], [64, 8, 512_000_000_000]]


def test_memory_with_units_each_its_own(tmp_path: Path) -> None:
    machines = read(tmp_path, HEADER + "a,1.5 TB,1,0\nb,2GiB,1,0\nc,512 mb,1,0\n")
    assert machines.amount("memory").tolist() == [1_500_000_000_000, 2 * 2**30, 512_000_000]


def test_other_resources_features_and_strange_line_ends(tmp_path: Path) -> None:
    text = "\ufeffTotalNICs,MachineName,Features,TotalCPUs\r\n2,a,x; y,4\r\n0,b,,8\r\n,,,\r\n"
    machines = read(tmp_path, text)
    assert machines.resources == ("cpus", "nics") and machines.capacity.tolist() == [[4, 2], [8, 0]]
    assert machines.features == (frozenset({"x", "y"}), frozenset())


def test_tables_in_utf_16(tmp_path: Path) -> None:
    """Spreadsheets write them."""
    (tmp_path / "m.csv").write_bytes((HEADER + "a,1 GB,4,0\n").encode("utf-16"))
    assert Machines.read(tmp_path / "m.csv").amount("cpus").tolist() == [4]


def test_compressed_tables(tmp_path: Path) -> None:
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "a,1000,4,0\n").encode()))
    assert Machines.read(str(path)) == Machines(["a"], ["cpus", "gpus", "memory"], [[4, 0, 10**6]])


def test_the_cluster_of_the_beocat_logs(shared: Path) -> None:
    machines = Machines.read(shared / "traces/beocat-machines.csv")
    assert len(machines) == 359 and machines.totals[:2] == (10_324, 157)
    assert sum(machines.amount("gpus") > 0) == 46


def test_toml(tmp_path: Path) -> None:
    text = """
[[machines]]
count = 2
cpus = 32
memory = "128 GB"

[[machines]]
name = "gpu"
cpus = 64
gpus = 4
features = ["a100", "nvlink"]

[[machines]]
cpus = 1
"""
    expected = (
        Machines.of(2, cpus=32, memory="128 GB")
        + Machines.of(1, "gpu", cpus=64, gpus=4, features=["a100", "nvlink"])
        + Machines.of(1, cpus=1)
    )
    machines = read(tmp_path, text, "m.toml")
    assert machines == expected and machines.names == ("node1", "node2", "gpu1", "node3")


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    machines = (
        Machines.of(2, cpus=32, memory="1.5 TB", features=["b", "a"])
        + Machines.of(1, "g", cpus=4, gpus=2, memory="3 B", nics=2)
        + Machines.of(1, "none", cpus=0)
    )
    write_machines(machines, tmp_path / "m.csv")
    assert Machines.read(tmp_path / "m.csv") == machines
    assert machines_text(machines).splitlines()[1] == "node1,32,0,1500 GB,0,a;b"


# --- what is wrong ---------------------------------------------------------------------------------------

FORM = "a header of MachineName, TotalMemory, TotalCPUs, TotalGPUs (and Features), each once, is needed"
WRONG_TABLES = {
    "twice": (HEADER + "a,1,4,0\nb,1,4,0\na,1,4,0\n", ":4: machine 'a' needs a name of its own; it is listed already in line 2"),
    "nameless": (HEADER + ",1,4,0\n", ":2: machine '' needs a name of its own; none is given"),
    "unit unknown": (HEADER + "a,1 XB,4,0\n", ":2: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found unknown unit 'XB'"),
    "units mixed": (HEADER + "a,1000,4,0\n\nb,1 GB,4,0\n", ":4: mixed units: memory needs a unit in every line or in none; '1 GB' has one, line 2 none"),
    "units mixed again": (HEADER + "a,1 GB,4,0\nb,1000,4,0\n", ":3: mixed units: memory needs a unit in every line or in none; '1000' has none, line 2 one"),
    "exponent": (HEADER + "a,1e9,4,0\n", ":2: memory needs a number and a unit, such as '128 GB', found '1e9'"),
    "part of a byte": (HEADER + "a,1.5 B,4,0\n", ":2: memory needs a whole number of bytes, found '1.5 B'"),
    "cell missing": (HEADER + "a,1,4\n", ":2: 4 values are needed, found 3"),
    "cell too many": (HEADER + "a,1,4,0,0\n", ":2: 4 values are needed, found 5"),
    "negative": (HEADER + "a,1,4,0\nb,1,-4,0\n", ":3: cpus need a whole number of at least 0, found '-4'"),
    "negative memory": (HEADER + "a,-1,4,0\n", ":2: memory need a whole number of at least 0, found '-1'"),
    "no number": (HEADER + "a,1,4,two\n", ":2: gpus need a whole number of at least 0, found 'two'"),
    "fraction": (HEADER + "a,1,4.0,0\n", ":2: cpus need a whole number of at least 0, found '4.0'"),
    "empty cell": (HEADER + "a,1,,0\n", ":2: cpus need a whole number of at least 0, found ''"),
    "too much": (HEADER + "a,1," + "9" * 40 + ",0\n", ": machine 'a' needs whole amounts from 0 to 10000000000000000, found [" + "9" * 40),
    "no machine": (HEADER, ": at least one machine is needed, found none"),
    "empty": ("", f":1: {FORM}, found nothing"),
    "no header": ("a,1000,4,0\n", f":1: {FORM}, found a, 1000, 4, 0"),
    "no name": ("TotalCPUs\n4\n", f":1: {FORM}, found TotalCPUs"),
    "no resource": ("MachineName\na\n", f":1: {FORM}, found MachineName"),
    "semicolons": (HEADER.replace(",", ";") + "a;1;4;0\n", f":1: {FORM}, found MachineName;TotalMemory;TotalCPUs;TotalGPUs"),
    "unknown column": ("MachineName,TotalCPUs,CPUs\na,1,1\n", f":1: {FORM}, found MachineName, TotalCPUs, CPUs"),
    "column twice": ("MachineName,TotalCPUs,TotalCPUs\na,1,1\n", f":1: {FORM}, found MachineName, TotalCPUs, TotalCPUs"),
    "resource twice": ("MachineName,TotalCPUs,TotalCpus\na,1,2\n", f":1: {FORM}, found MachineName, TotalCPUs, TotalCpus"),
    "misspelt": ("MachineName,TotalCPU\na,1\n", ":1: unknown name 'cpu'; did you mean 'cpus'?"),
    "feature with &": ("MachineName,TotalCPUs,Features\na,3,x&y\n", ": features need to be a list of words without '&', '|', '*' and brackets, found ['x&y']"),
    "endless cell": (HEADER + "a," + "1" * 200_000 + ",4,0\n", ": a table of machines is needed, found no CSV: field larger than field limit (131072)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_wrong_tables_are_told_in_one_line(name: str, tmp_path: Path) -> None:
    text, problem = WRONG_TABLES[name]
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'm.csv'}{problem}") and "\n" not in str(error.value)


ONE = "# machines\n[[machines]]\n"
WRONG_TOML = {
    "no TOML": ("[[machines]\n", ": not TOML: Expected ']]' at the end of an array declaration (at line 1, column 11)"),
    "empty": ("", ": tables [[machines]] are needed, found nothing"),
    "no table": ("machines = []\n", ": tables [[machines]] are needed, found machines"),
    "one table": ("[machines]\ncpus = 4\n", ": tables [[machines]] are needed, found machines"),
    "other tables": (ONE + "cpus = 4\n[jobs]\n", ": tables [[machines]] are needed, found machines, jobs"),
    "memory without unit": (ONE + "memory = 128\n", ":2: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found '128'"),
    "count 0": (ONE + "count = 0\ncpus = 4\n", ":2: machines need a count of at least 1, found 0"),
    "count in words": (ONE + 'count = "2"\ncpus = 4\n', ":2: machines need a count of at least 1, found '2'"),
    "count true": (ONE + "count = true\ncpus = 4\n", ":2: machines need a count of at least 1, found True"),
    "second table": (ONE + "cpus = 4\n[[machines]]\ncpus = -4\n", ":4: cpus need a whole number of at least 0, found -4"),
    "with blanks": (ONE + "cpus = 4\n[[ machines ]]\ncpus = 1.5\n", ": cpus need a whole number of at least 0, found 1.5"),
    "nothing": (ONE + "count = 2\n", ":2: machines need at least one resource, such as cpus=32"),
    "name": (ONE + "name = 3\ncpus = 4\n", ":2: name needs text and features a list of text, found 3 and []"),
    "features": (ONE + 'features = "a100"\ncpus = 4\n', ":2: name needs text and features a list of text, found 'node' and 'a100'"),
    "too much": (ONE + "cpus = 99999999999999999\n", ":2: machine 'node1' needs whole amounts from 0 to 10000000000000000, found [99999999999999999]"),
    "cpu": (ONE + "cpu = 4\n", ":2: unknown name 'cpu'; did you mean 'cpus'?"),
    "feature": (ONE + 'cpus = 4\nfeature = ["x"]\n', ":2: unknown name 'feature'; did you mean 'features'?"),
    "Memory": (ONE + 'cpus = 4\nMemory = "1 GB"\n', ":2: unknown name 'Memory'; did you mean 'memory'?"),
    "cls": (ONE + "cpus = 4\ncls = 1\n", ":2: 'cls' cannot be the name of a resource"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TOML)
def test_wrong_toml_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    text, problem = WRONG_TOML[name]
    with pytest.raises(UsageError) as error:
        read(tmp_path, text, "m.toml")
    assert str(error.value) == f"{tmp_path / 'm.toml'}{problem}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HpcsimkitError, match=r"none\.csv: no such file"):
        Machines.read(tmp_path / "none.csv")
    with pytest.raises(HpcsimkitError, match="a file is needed, found a directory"):
        Machines.read(tmp_path)
    (tmp_path / "b.csv").write_bytes(b"\xc3\x28\x00\x01")
    with pytest.raises(UsageError, match=r"b\.csv: a table of machines is needed, found no UTF-8 text"):
        Machines.read(tmp_path / "b.csv")


# --- what Slurm prints -----------------------------------------------------------------------------------

SCONTROL = """\
NodeName=big Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=30 CPUTot=32 CPULoad=0.01
   AvailableFeatures=ib,rack1
   ActiveFeatures=ib,rack1
   Gres=(null)
   OS=Linux 5.14.0 #1 SMP
   RealMemory=2048 AllocMem=0 FreeMem=1000 MemSpecLimit=48 State=DOWN+DRAIN
   CfgTRES=cpu=32,mem=2G,billing=32

NodeName=gpu1 CPUTot=8 AvailableFeatures=(null) Gres=gpu:a100:4(S:0-1),gpu:v100:2,nvme:1 RealMemory=1
"""


@pytest.mark.parametrize("one_line", [True, False])
def test_nodes_of_scontrol(tmp_path: Path, one_line: bool) -> None:
    blocks = SCONTROL.split("\n\n")
    text = "\n".join(" ".join(block.split()) for block in blocks) if one_line else SCONTROL
    assert read(tmp_path, text, "nodes.txt") == Machines(
        ["big", "gpu1"],
        ["cpus", "gpus", "memory", "gpus:a100", "gpus:v100"],
        [[30, 0, 2000 * 2**20, 0, 0], [8, 6, 2**20, 4, 2]],
        [["ib", "rack1"], []],
    )


@pytest.mark.parametrize(("count", "found"), [("999999999", 999_999_999), ("1000000000", 1)])
def test_a_count_of_devices_has_nine_digits_at_most(count: str, found: int, tmp_path: Path) -> None:
    """More digits are the name of a model."""
    machines = read(tmp_path, f"NodeName=n1 CPUTot=8 RealMemory=1 Gres=gpu:{count}", "nodes.txt")
    assert machines.capacity[0, machines.resources.index("gpus")] == found


def test_devices_that_are_not_consumed_have_no_model_of_that_name(tmp_path: Path) -> None:
    machines = read(tmp_path, "NodeName=n1 CPUTot=8 RealMemory=1 Gres=gpu:no_consume:3", "nodes.txt")
    assert machines == Machines(["n1"], ["cpus", "gpus", "memory"], [[8, 3, 2**20]])


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("CPUTot=8 ", "", "nodes.txt:10: node 'gpu1': CPUTot and RealMemory are needed, found no number"),
        ("RealMemory=1\n", "RealMemory=1G\n", "nodes.txt:10: node 'gpu1': RealMemory needs a whole number"),
        ("gpu1", "big", "nodes.txt:10: node 'big': it is listed already in .*nodes.txt:1$"),
    ],
)
def test_nodes_of_scontrol_that_cannot_be_used_are_noted(
    tmp_path: Path, was: str, now: str, message: str
) -> None:
    assert was in SCONTROL
    machines = read(tmp_path, SCONTROL.replace(was, now, 1), "nodes.txt")
    assert machines.names == ("big",)
    (note,) = machines.notes
    assert re.search(message, note)


def test_lists_of_nodes_are_expanded(tmp_path: Path) -> None:
    """slurm.conf has several nodes in a line, with other names of the same keys."""
    text = "NodeName=n[08-10],login CPUs=8 RealMemory=1\nNodeName=n10 CPUTot=8 RealMemory=1\n"
    machines = read(tmp_path, text, "nodes.txt")
    assert machines.names == ("n08", "n09", "n10", "login")
    (note,) = machines.notes
    assert re.search("nodes.txt:2: node 'n10': it is listed already in .*nodes.txt:1$", note)
    twice = read(
        tmp_path, "NodeName=n1 CPUs=8 RealMemory=1\nNodeName=n[1-2] CPUs=8 RealMemory=1\n", "nodes.txt"
    )
    assert twice.names == ("n1",) and re.search(
        "n1 is listed already in .*nodes.txt:1$", next(iter(twice.notes))
    )
    with pytest.raises(UsageError, match="Nodes needs a list such as"):
        read(tmp_path, "NodeName=n[0-9999999] CPUs=8 RealMemory=1\n", "nodes.txt")


def test_texts_of_several_lines_in_nodes_of_scontrol(tmp_path: Path) -> None:
    text = SCONTROL.replace(
        "   CfgTRES", "   Reason=disk is full: CPUTot=1 is not meant\nsee NodeName=other\n   CfgTRES"
    )
    assert read(tmp_path, text, "nodes.txt") == read(tmp_path, SCONTROL, "nodes.txt")
    with pytest.raises(UsageError, match=r"nodes\.txt:1: node 'a': CPUTot needs a whole number"):
        read(tmp_path, "NodeName=a CPUTot=x\n", "nodes.txt")
