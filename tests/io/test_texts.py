"""Texts: amounts with units, records, and what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.documents import csv_text, json_record, json_value, toml_values, write_record
from hpcsimkit.io.formats import Format
from hpcsimkit.io.printable import message_text, printable, warn
from hpcsimkit.io.units import MEMORY_UNITS, memory_bytes, memory_text


@given(st.integers(0, 10**6), st.sampled_from(sorted(MEMORY_UNITS)))
def test_memory_in_each_unit(number: int, unit: str) -> None:
    assert memory_bytes(f"{number} {unit}") == memory_bytes(f"{number}{unit.lower()}")
    assert memory_bytes(f"{number} {unit}") == number * MEMORY_UNITS[unit]


@given(st.integers(0, 999_999), st.sampled_from(["B", "kB", "MB", "GB", "TB", "PB"]))
def test_memory_is_read_as_it_is_written(number: int, unit: str) -> None:
    amount = number * MEMORY_UNITS[unit]
    assert memory_bytes(memory_text(amount)) == amount  # six digits


@pytest.mark.parametrize("text", ["", "GB", "5 XB", "1.5 B", "-1 GB", "1e3 GB"])
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(UsageError, match="memory needs"):
        memory_bytes(text)


def test_cells_with_commas_quotes_and_lines() -> None:
    rows = [['x "y", z', 1], ["two\nlines", None]]
    assert csv_text(["a", "b"], rows) == 'a,b\n"x ""y"", z",1\n"two\nlines",\n'


def test_damaged_records_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "provenance.json"
    for text in ("{", "[1]", '{"seed": ' + "9" * 2000 + "}", "[" * 100 + "]" * 100):
        file.write_text(text)
        assert json_record(file, Format.TASK) == {}
    write_record(file, {"seed": 3})
    assert json_record(file, Format.TASK) == {"seed": 3}


def test_depth_and_digits_are_limited() -> None:
    with pytest.raises(WorkloadError, match=r"^e.json: .*nested"):
        json_value("[" * 60 + "]" * 60, "e.json")
    with pytest.raises(WorkloadError, match=r"^e.toml: .*digits"):
        toml_values("jobs = 0x" + "f" * 2000, "e.toml")


@given(st.text())
def test_what_is_printed_is_printable(text: str) -> None:
    assert printable(text).replace("\n", "").isprintable()
    line = message_text(text)
    assert "\n" not in line and line.isprintable()


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn("two\nlines\x07 " + "x" * 5000)
    assert capsys.readouterr().err.startswith("hpcsimkit: two lines\\x07 xxx")
