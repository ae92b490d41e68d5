"""Mutated inputs of every kind, and text that no terminal or reader may trip over; `tests.fuzz` tries more."""

from __future__ import annotations

import gzip
from pathlib import Path
from tomllib import TOMLDecodeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.documents import toml_values
from hpcsimkit.io.printable import MESSAGE_SHOWN, message_text, printable
from tests.fuzz.cases import GOOD, NAMES, Case, Outcome, outcome_of
from tests.fuzz.seeds import KINDS


def failures(seeds: range, kind: str | None = None) -> list[tuple[str, int, Outcome]]:
    cases = (Case.of(seed, kind) for seed in seeds)
    outcomes = ((case.kind, case.seed, outcome_of(case, seconds=120)) for case in cases)
    return [found for found in outcomes if found[2].word not in GOOD]


@pytest.mark.parametrize("kind", NAMES)
def test_every_kind_of_input_is_answered(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert failures(range(6), kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_begin_with_sound_files(kind: str) -> None:
    outcome = outcome_of(Case(kind, 0, KINDS[kind].files()), seconds=120)
    assert outcome.word == "accepted", outcome.text


@pytest.mark.slow
def test_a_hundred_thousand_inputs_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert failures(range(1_000_000, 1_100_000)) == []


def test_equal_seeds_make_equal_cases_and_cases_are_read_back(tmp_path: Path) -> None:
    cases = [Case.of(seed) for seed in range(20)]
    assert cases == [Case.of(seed) for seed in range(20)]
    assert len({case.kind for case in cases}) > 5
    assert [Case.load(case.save(tmp_path)) for case in cases] == cases


def test_what_is_wrong_with_an_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite would see a defect, a traceback, a hang, control characters and a second line."""
    case = Case("swf", 0, {"x.swf": b""}, ("describe", "x.swf"))
    assert outcome_of(case).word == "refused"
    for answer, word in {
        "raise ValueError('x')": "traceback",
        "raise SystemExit(0)": "traceback",
        "[None for _ in iter(int, 1)]": "hang",
        "print('\\x1b')": "control characters",
        "print('a\\nb', file=__import__('sys').stderr); return 2": "multi-line",
        "print('hpcsimkit: a defect of hpcsimkit: x', file=__import__('sys').stderr); return 2": "defect",
        "return 0": "accepted",
    }.items():
        space: dict[str, object] = {}
        exec(f"def answer(arguments): {answer}\n", space)
        monkeypatch.setattr("tests.fuzz.cases._run", space["answer"])
        assert outcome_of(case, seconds=0.2).word == word, answer


@given(st.text(st.characters(codec=None), max_size=60).map(lambda text: text * 40))
def test_messages_are_one_printable_line(text: str) -> None:
    shown = message_text(text)
    assert shown.isprintable() and len(shown) <= MESSAGE_SHOWN
    assert printable(text).replace("\n", "").isprintable()


@given(st.text(st.sampled_from("[]{}=.,\"'#abc01 \n_x-")))
def test_any_toml_text_is_read_or_refused(text: str) -> None:
    try:
        values = toml_values(text, "x.toml")
    except (TOMLDecodeError, WorkloadError):
        return
    assert isinstance(values, dict)


@given(st.binary(max_size=200))
def test_any_bytes_after_a_gzip_header_are_read_or_refused(content: bytes) -> None:
    packed = gzip.compress(b"1 2 3\n" * 9, mtime=0)
    case = Case("swf", 0, {"x.swf.gz": packed[: len(content) % len(packed) + 2] + content})
    assert outcome_of(case).word in GOOD
