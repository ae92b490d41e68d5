"""Schedules and answers are those on record, on both simulators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.cases import cases, is_refused, runs_compiled
from tests.golden.record import digest, read
from tests.golden.spaces import spaces
from tests.interpreted import interpret
from tests.kernel.helpers import needs_numba

RECORD, CASES = read(), cases()
SPACES = spaces(RECORD.compiled)


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name: str) -> None:
    assert digest(CASES[name]()) == RECORD.digests[name], (
        f"not as on record: `python -m tests.golden show {name!r}` prints the results, see tests/golden/__main__.py"
    )


@pytest.fixture(scope="module")
def interpreted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        interpret(patch, checked=True)
        yield


@needs_numba
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", RECORD.compiled)
def test_the_compiled_simulator_equals_the_record(name: str) -> None:
    text = runs_compiled()[name]()
    assert not is_refused(text), text
    assert digest(text) == RECORD.digests[name]


@needs_numba
@pytest.mark.parametrize("name", SPACES)
def test_the_compiled_simulator_takes_the_space_on_record(name: str) -> None:
    """More of it changes no schedule, but what the largest run is."""
    assert digest(SPACES[name]()) == RECORD.spaces[name], (
        f"not as on record: `python -m tests.golden show-space {name!r}` prints the shapes of its arrays"
    )
