"""Modules of the user outside the search path: loaded from their files, and found again in other processes.

No folder is put on ``sys.path``, so a file beside a module cannot replace or complete a library. Modules that
a user's module imports are found by a finder that knows the consented names only, and is asked last.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hpcsimkit.io.files import is_file, is_folder

FILE_ENDING = ".py"


class Consent(NamedTuple):
    """Consent to import code from a folder.

    `allowed` are modules, files and folders from which code may be imported; None for all code.
    """

    folder: str
    allowed: tuple[str, ...] | None

    def covers(self, code: str) -> bool:
        """Return whether a module, file or folder without ``__init__.py`` may be imported."""
        return self.allowed is None or any(covers(entry, code, [self.folder]) for entry in self.allowed)


def places_of(folder: str | None) -> list[str]:
    """Return the folders in which code is looked for: the current one, then an additional one, if any."""
    places = [Path.cwd(), *([] if folder is None else [Path(folder).absolute()])]
    return list(dict.fromkeys(map(str, places)))


def covers(entry: str, code: str, places: Sequence[str]) -> bool:
    """Return whether consent to a module, file or folder includes some code.

    A package includes its modules, a folder all files in it; `places` are the folders in which the code is
    looked for.
    """
    if not entry:
        return False
    if code == entry or (not code.endswith(FILE_ENDING) and code.startswith(f"{entry}.")):
        return True
    found = file_of(code, places) or _folder_of(code, places)
    if found is None:
        return False
    place, real = Path(os.path.realpath(entry)), Path(os.path.realpath(found))
    return real == place or (is_folder(place) and real.is_relative_to(place))


def file_of(code: str, places: Sequence[str]) -> Path | None:
    """Return the file with the code of a name, if it is in one of some folders."""
    within = "" if code.endswith(FILE_ENDING) else code.replace(".", "/")
    names = [f"{within}/__init__.py", f"{within}.py"] if within else [code]
    return next((file for place in places for name in names if is_file(file := Path(place, name))), None)


def _folder_of(code: str, places: Sequence[str]) -> Path | None:
    """Return the folder of a package without ``__init__.py``, if it is in one of some folders."""
    paths = (Path(place, code.replace(".", "/")) for place in places)
    return None if code.endswith(FILE_ENDING) else next(filter(is_folder, paths), None)


def imported_module(code: str, folder: str | None, allowed: tuple[str, ...] | None) -> ModuleType | None:
    """Import a module or file that the caller has checked; None for a file that does not exist.

    `allowed` is consented code, for the modules that the module itself imports; None for all code.
    """
    places, top = places_of(folder), code if code.endswith(FILE_ENDING) else code.partition(".")[0]
    file = file_of(top, places)
    _know(places, file, allowed)
    if not code.endswith(FILE_ENDING):
        if file is not None and top not in sys.modules:
            _loaded(_spec_of_file(top, file))
        return importlib.import_module(code)
    if file is None:
        return None
    name = f"{file.stem}@{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]}"
    _FILES[name] = str(file.resolve())
    return sys.modules[name] if name in sys.modules else _loaded(_spec_of_file(name, file))


# --- the finder ------------------------------------------------------------------------------------------

_CONSENTS: dict[Consent, None] = {}
"""Consents of this process, the first one first."""

_FILES: dict[str, str] = {}
"""Files by the name of their modules, for names that are not those of files."""

_LOADED: set[str] = set()
"""Names of the modules loaded here."""


class _Finder:
    """Finder of the modules that consented code itself imports; all other finders come before it."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if path is not None:  # a module of a package, which is found by the package
            return None
        if name in _FILES:
            return _spec_of_file(name, Path(_FILES[name]))
        for consent in _CONSENTS:
            if consent.covers(name) and (spec := _spec(name, [consent.folder])) is not None:
                _LOADED.add(name)
                return spec
        return None


def _know(places: Sequence[str], file: Path | None, allowed: tuple[str, ...] | None) -> None:
    """Let modules import consented ones from some folders; without limits, those beside the file."""
    beside = [] if file is None else [str(_folder_beside(file))]
    for place in beside if allowed is None else [*places, *beside]:
        _CONSENTS.setdefault(Consent(place, allowed))
    _ask_last()


def _folder_beside(file: Path) -> Path:
    """Return the folder of a module, or that of its package."""
    return file.absolute().parents[file.name == "__init__.py"]


def _ask_last() -> None:
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)


def _spec(name: str, places: Sequence[str]) -> ModuleSpec | None:
    """Return the specification of a module, or of a package without ``__init__.py``, in some folders."""
    if (file := file_of(name, places)) is not None:
        return _spec_of_file(name, file)
    if (folder := _folder_of(name, places)) is None:
        return None
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    return spec


def _spec_of_file(name: str, file: Path) -> ModuleSpec:
    within = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=within)
    assert spec is not None
    return spec


def _loaded(spec: ModuleSpec) -> ModuleType:
    """Return the module of a specification, after its execution."""
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    _LOADED.add(spec.name)
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return sys.modules[spec.name]


# --- other processes -------------------------------------------------------------------------------------


class Consents:
    """The consents of this process. Where it is unpickled, modules of objects after it are found, too."""

    def __reduce__(self) -> tuple[object, ...]:
        return _taken_over, (tuple(_CONSENTS), dict(_FILES))


def _taken_over(consents: Sequence[Consent], files: dict[str, str]) -> Consents:
    _CONSENTS.update(dict.fromkeys(consents))
    _ask_last()
    _FILES.update(files)
    return Consents()


def forget() -> None:
    """Forget all consents and the modules loaded with them."""
    for name in list(sys.modules):
        if name in _LOADED or name.partition(".")[0] in _LOADED:
            del sys.modules[name]
    for known in (_CONSENTS, _FILES, _LOADED):
        known.clear()
