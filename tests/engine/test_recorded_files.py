"""Files with a record of the settings that decide them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit.engine.recorded_files import RecordedFiles
from hpcsimkit.errors import UsageError


def write(place: Path, seed: int, *, overwrite: bool = False, killed: bool = False) -> None:
    files = RecordedFiles(["waits.csv"], {"seed": seed})
    files.checked(str(place), place, overwrite=overwrite)
    files.begin()
    (place / "waits.csv").write_text(str(seed))
    if not killed:
        files.record()


def test_a_record_never_tells_of_other_files(tmp_path: Path) -> None:
    """A process that was killed while it replaced files leaves them without a record, not with a former one."""
    place = tmp_path / "out"
    write(place, 0)
    write(place, 0)
    with pytest.raises(UsageError, match="seed was 0, is 1"):
        write(place, 1)
    write(place, 1, overwrite=True, killed=True)
    with pytest.raises(UsageError, match="--overwrite replaces them"):
        write(place, 0)
    write(place, 0, overwrite=True)
    assert (place / "waits.csv").read_text() == "0"
