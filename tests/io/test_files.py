"""Whole files: atomic writing, reading within limits, and what is refused."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import StorageError, WorkloadError
from hpcsimkit.io.budget import restored_limits
from hpcsimkit.io.files import make_folder, read_bytes, read_start, unlinked, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails before the file is renamed leaves the old content, and no temporary file."""
    file = tmp_path / "results.csv"
    write_bytes(file, b"old")

    def fails(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", fails)
        with pytest.raises(StorageError, match=r"results.csv: cannot be written: No space left on device$"):
            write_bytes(file, b"new")
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["results.csv"]
    write_bytes(file, b"new")
    assert file.read_bytes() == b"new"


def test_compressed_files_of_equal_content_are_equal(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_bytes(tmp_path / name, b"1 2 3\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    renamed = (tmp_path / "a.gz").rename(tmp_path / "a.swf")
    assert read_bytes(renamed, Format.SWF) == b"1 2 3\n"  # by content, not by name
    assert read_start(renamed, 3) == b"1 2"


def test_links_are_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "mine.txt", tmp_path / "link.txt"
    target.write_bytes(b"mine")
    link.symlink_to(target)
    with pytest.raises(StorageError, match=r"link.txt: cannot be written: it is a symbolic link"):
        write_bytes(link, b"other")
    assert target.read_bytes() == b"mine"
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="symbolic link"):
        make_folder(folder)
    assert unlinked(folder / "new.txt") == tmp_path.resolve() / "new.txt"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (gzip.compress(bytes(range(256)))[:100], "is cut short"),
        (b"\x1f\x8b not gzip at all", "is damaged"),
        (gzip.compress(b"0" * 2000), "bytes"),
    ],
    ids=["cut short", "damaged", "too large"],
)
def test_what_is_not_read(
    tmp_path: Path, content: bytes, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCSIMKIT_LIMITS", "bytes=1000 B")
    file = tmp_path / "log.swf"
    file.write_bytes(content)
    with pytest.raises(WorkloadError) as caught:
        read_bytes(file, Format.SWF)
    assert str(caught.value).startswith(f"{file}: ") and problem in str(caught.value)


def test_pipes_and_folders_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), (tmp_path, "a directory")):
        with pytest.raises(WorkloadError, match=f"a file is needed, found {kind}$"):
            read_bytes(path, Format.SWF)
    with pytest.raises(WorkloadError, match=r"no such file$"):
        read_bytes(tmp_path / "none", Format.SWF)


def test_limits_are_restored() -> None:
    before = os.environ.get("HPCSIMKIT_LIMITS")
    with restored_limits():
        os.environ["HPCSIMKIT_LIMITS"] = "bytes=1 B"
    assert os.environ.get("HPCSIMKIT_LIMITS") == before


def test_arrays_of_objects_are_refused() -> None:
    file = io.BytesIO()
    np.savez(file, objects=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="objects"):
        arrays_in(file.getvalue(), "x.npz")
