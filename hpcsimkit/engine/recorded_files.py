"""Files of a quick command in a folder of the user, with a record of the settings that decide them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hpcsimkit.engine.lock import writing
from hpcsimkit.engine.provenance import Provenance, write_json
from hpcsimkit.engine.replacing import check_replacement, difference
from hpcsimkit.engine.results_folder import SETTINGS
from hpcsimkit.errors import StorageError, UsageError
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import make_folder
from hpcsimkit.io.formats import Format

__all__ = ["RecordedFiles"]

PACKAGES = ("simpy", "numpy", "pandas", "scipy", "matplotlib")
"""Packages with recorded versions."""


class RecordedFiles:
    """Files that a command writes into a folder, beside any others, and their record ``NAME.json``.

    Parameters
    ----------
    names : sequence of str
        Names of the files; the record is named after the first one.
    settings : mapping
        Settings that decide the contents.
    command : sequence of str
        Command line, for the record.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for seed in (0, 0, 1):
    ...         files = RecordedFiles(["waits.csv"], {"seed": seed})
    ...         place = files.checked(None, Path(folder, "out"))
    ...         files.begin()
    ...         files.record()
    ...         print(place.name)
    out
    out
    out-2
    """

    def __init__(
        self, names: Sequence[str], settings: Mapping[str, Any], command: Sequence[str] = ()
    ) -> None:
        self.names = names
        self.settings = settings
        self.place = Path()
        self._provenance = Provenance(command, PACKAGES)

    def checked(self, place: str | None, usual: Path, *, overwrite: bool = False) -> Path:
        """Return the folder to write to; the files in it, if any, may be replaced.

        Parameters
        ----------
        place : str, optional
            Path given by the user.
        usual : Path
            Path otherwise: this one, or the first numbered one without files of other settings.
        overwrite : bool
            Whether files of other settings are replaced; otherwise the user is asked, or they are an error.
            Default: False.

        Raises
        ------
        UsageError
            Files of other settings are there, and may not be replaced; or the path is no folder.
        StorageError
            The folder is not writable.
        """
        if place == "":
            raise UsageError("--out must have at least 1 character, found ''")
        self.place = self._free(usual) if place is None else Path(place)
        if self.place.exists() and not self.place.is_dir():
            raise UsageError(f"{self.place}: a folder for the results is needed, found a file")
        there = next(path for path in (self.place, *self.place.absolute().parents) if path.exists())
        if not os.access(there, os.W_OK):
            raise StorageError(f"{self.place}: cannot be written: {there} is not writable")
        held = self._held(self.place)
        if held is not None:
            check_replacement(self.place, held or None, self.settings, overwrite=overwrite)
        return self.place

    def _free(self, place: Path) -> Path:
        for number in count(1):
            candidate = place if number == 1 else place.with_name(f"{place.name}-{number}")
            held = self._held(candidate)
            if held is None or not difference(held, self.settings):
                return candidate
        raise AssertionError("there are infinitely many numbers")

    def begin(self) -> None:
        """Make the folder, and remove the record of former files, which are about to be replaced."""
        make_folder(self.place)
        with writing(self.place):
            (self.place / self._name).unlink(missing_ok=True)

    def record(self) -> None:
        """Write the record, once the files are written."""
        write_json(self.place / self._name, self._provenance.record(**{SETTINGS: self.settings}))

    @property
    def _name(self) -> str:
        return f"{Path(self.names[0]).stem}.json"

    def _held(self, place: Path) -> Mapping[str, Any] | None:
        """Return the settings of the files in a folder, empty if not recorded; None if there are none."""
        if not any((place / name).exists() for name in (*self.names, self._name)):
            return None
        return json_record(place / self._name, Format.PROVENANCE).get(SETTINGS, {})
