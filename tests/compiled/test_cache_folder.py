"""The folder of compiled functions: what is damaged, of others or cannot be written means to compile anew."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.compiled import cache_folder
from hpcsimkit.compiled.compilation import entry

PLANTED = "planted code ran"


class Planted:
    """An object whose pickle runs code."""

    def __reduce__(self) -> Any:
        return exec, (f"raise SystemExit({PLANTED!r})",)


def doubled(values: Any) -> None:
    for place in range(len(values)):
        values[place] *= 2


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "TOLD", [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "version" / "kind"


def loaded(folder: Path) -> bool:
    """Run the function as in a new process; returns whether it was loaded, else it was compiled."""
    compiled: Any = entry(doubled, folder)
    values = np.array([1.5, 4.0])
    compiled(values)
    assert values.tolist() == [3.0, 8.0]
    return bool(compiled.stats.cache_hits)


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_what_is_compiled_is_loaded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [loaded(folder), loaded(folder)] == [False, True]
    assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder, the_file(folder))] == [
        0o700, 0o700, 0o600,
    ]  # fmt: skip
    assert capsys.readouterr().err == ""


def flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "emptied": lambda content: b"",
    "a bit flipped": flipped,
    "planted": lambda content: pickle.dumps(Planted()),
    "planted below the checksum": lambda content: content[: cache_folder.CHECKSUM] + pickle.dumps(Planted()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced(folder: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(folder)
    file = the_file(folder)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    (folder / "simulate.py311.nbi").write_bytes(pickle.dumps(Planted()))  # where numba looks
    assert [loaded(folder), loaded(folder)] == [False, True]
    assert capsys.readouterr().err == ""


def test_a_file_of_another_version_is_not_taken(folder: Path) -> None:
    loaded(folder)
    other = folder.parent.with_name("other") / "kind"
    folder.parent.rename(other.parent)
    assert not loaded(other)


@pytest.mark.skipif(sys.platform == "win32", reason="another kind of permissions")
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [("mode", "can be written by others"), ("owner", "belongs to user"), ("link", "is not a folder")],
)
def test_a_folder_that_others_may_have_written(
    folder: Path, level: int, fault: str, reason: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """It is neither read nor written; one line says so."""
    loaded(folder)
    guarded = (folder.parent, folder)[level]
    content = the_file(folder).read_bytes()
    if fault == "mode":
        guarded.chmod(0o770)
    elif fault == "link":
        guarded.rename(folder.parent.parent / "elsewhere")
        guarded.symlink_to(folder.parent.parent / "elsewhere")
    else:
        real = Path.lstat
        monkeypatch.setattr(
            Path, "lstat", lambda path: _of_another(real(path)) if path == guarded else real(path)
        )
    assert [loaded(folder), loaded(folder)] == [False, False]
    assert the_file(folder).read_bytes() == content
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hpcsimkit: the compiled simulator is compiled anew: {guarded} {reason}")
    assert not cache_folder.PrivateFiles(folder).has_files()


def _of_another(about: os.stat_result) -> os.stat_result:
    """Make it the status of another user's file."""
    values = list(about)
    values[4] = os.geteuid() + 1
    return os.stat_result(values)


@pytest.mark.skipif(sys.platform == "win32", reason="another kind of permissions")
def test_a_file_of_another_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(folder)
    real = os.fstat
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda descriptor: _of_another(real(descriptor)))
        assert cache_folder.PrivateFiles(folder).read(the_file(folder).stem) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{the_file(folder)} belongs to user {os.geteuid() + 1}" in line
    assert loaded(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    loaded(folder)
    file = the_file(folder)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert [loaded(folder), loaded(folder)] == [False, True]
    assert not file.is_symlink()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cache_folder.os, "fdopen", full)
    assert [loaded(folder), loaded(folder)] == [False, False]
    assert list(folder.iterdir()) == [], "no temporary file is left"
    reason = f"{folder} cannot be written: {os.strerror(number)}"
    assert capsys.readouterr().err == f"hpcsimkit: the compiled simulator is compiled anew: {reason}\n"


def test_a_place_without_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "version").touch()
    assert not loaded(tmp_path / "version" / "kind")
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.slow
def test_a_command_goes_on(tmp_path: Path, root: Path) -> None:
    """With the simulator itself, in processes of their own: the same schedule, exit code 0, at most one line."""
    environment = {**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "hpcsimkit.run", "compare", "--jobs", "50", "-p", "fcfs+easy",
               "--simulator", "compiled", "--no-report", "-q", "--overwrite", "--out", "out"]  # fmt: skip

    def run() -> tuple[bytes, int]:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "out" / "jobs" / "fcfs+easy.csv").read_bytes(), len(done.stderr.splitlines())

    expected = run()
    assert expected[1] == 0
    (file,) = tmp_path.glob(f"cache/**/*{cache_folder.SUFFIX}")
    for damage in DAMAGES.values():
        file.write_bytes(damage(file.read_bytes()))
        assert run() == expected
    file.parent.chmod(0o777)
    assert run() == (expected[0], 1)
