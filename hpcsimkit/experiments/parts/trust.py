"""The trust boundary: which code may be imported by name, and the only module that imports it.

A name ``module:Name`` or ``file.py:Name`` runs the code of the module. On the command line and in a program,
the user has written the name. In a file (an experiment, a training, a model), it may come from another
person: such a name is rejected unless the user consents to the code by name, with ``--allow-code`` or with a
flag that names the same module.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from hpcsimkit.engine.code_version import hash_of
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.kernel.guard import Place, message_of

__all__ = ["CALLER", "FILE_ENDING", "Trust", "code_in", "importing", "version_of"]

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
FILE_ENDING = ".py"


@dataclass(frozen=True)
class Trust:
    """Permission to import the code to which names refer.

    Parameters
    ----------
    allowed : tuple of str, optional
        Modules, files and folders from which code may be imported; a package includes its modules, a folder
        all files in it. By default all code is allowed, because the names are those of the caller.

    Examples
    --------
    >>> Trust().imported("json:JSONDecoder")
    <class 'json.decoder.JSONDecoder'>
    >>> Trust(("mine",)).imported("json:JSONDecoder")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: 'json:JSONDecoder' is code that is not the kit's own, and a file may not \
name it without consent: --allow-code json
    """

    allowed: tuple[str, ...] | None = None

    @property
    def of_files(self) -> Trust:
        """Trust in names in a file that is referenced by trusted names, such as a model."""
        return Trust(self.allowed or ())

    def check(self, code: str, folder: str | None = None, part: str = "") -> None:
        """Raise an error if a module or file may not be imported, without importing it.

        Parameters
        ----------
        code : str
            Module, ``package.module``, or path of a file that ends in ``.py``.
        folder : str, optional
            Additional search folder besides the current one.
        part : str
            Full name, for messages. Default: the code itself.

        Raises
        ------
        UsageError
            The name is not well-formed, or the code is not allowed.
        """
        part = part or code
        if not (code.endswith(FILE_ENDING) or MODULE.fullmatch(code)):
            raise UsageError(f"{part!r} needs the form module:Name or file.py:Name, found {code!r}")
        if self.allowed is None or any(_covers(entry, code, folder) for entry in self.allowed):
            return
        where = f" (looked for in {folder} too)" if folder is not None else ""
        raise UsageError(
            f"{part!r} is code that is not the kit's own, and a file may not name it without consent: "
            f"--allow-code {shlex.quote(code)}{where}"
        )

    def module(self, code: str, folder: str | None = None, part: str = "") -> ModuleType:
        """Import ``module`` or ``path/file.py``; parameters as for :meth:`check`.

        Raises
        ------
        UsageError
            The code is not allowed or does not exist, or the import fails.
        """
        self.check(code, folder, part)
        return importing(lambda: _module(code, folder), part or code)

    def imported(self, part: str, folder: str | None = None) -> Any:
        """Import ``module:Name`` or ``path/file.py:Name``; return the attribute.

        Parameters
        ----------
        part : str
            Name to import.
        folder : str, optional
            Additional search folder for modules and files besides the current one.

        Raises
        ------
        UsageError
            The code is not allowed or does not exist, or the import fails.
        """
        return self._found(part, folder)[1]

    def maker(self, part: str, kinds: tuple[type, ...], folder: str | None = None) -> Callable[..., Any]:
        """Import a class with one of some base classes, or a function annotated to return such an object.

        Parameters
        ----------
        part : str
            Name to import, ``module:Name`` or ``path/file.py:Name``.
        kinds : tuple of type
            Base classes, one of which is required.
        folder : str, optional
            Additional search folder for modules and files besides the current one.

        Raises
        ------
        UsageError
            The import fails as in :meth:`imported`, or the object has another type; it is not called then.
        """
        module, found = self._found(part, folder)
        if _is_class_of(found, kinds):
            return found
        if inspect.isfunction(found) and found.__module__ == module.__name__:
            if _is_class_of(_returned(found), kinds):
                return found
            raise UsageError(
                f"{part!r} is no policy and no stage of one, but a function that does not say that it makes "
                f"one: def {found.__name__}(...) -> Policy"
            )
        is_class = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
        raise UsageError(
            f"{part!r} is no policy and no stage of one: it is {is_class}; a class of that kind is needed, "
            f"or a function of {module.__name__.partition('@')[0]} that makes one"
        )

    def check_name(self, part: str, folder: str | None = None) -> None:
        """Raise an error if ``module:Name`` or ``file.py:Name`` may not be imported; see :meth:`check`."""
        code, _, attribute = part.rpartition(":")
        if not attribute.isidentifier():
            raise UsageError(f"{part!r} needs the form module:Name or file.py:Name, found {attribute!r}")
        self.check(code, folder, part)

    def _found(self, part: str, folder: str | None) -> tuple[ModuleType, Any]:
        self.check_name(part, folder)
        code, _, attribute = part.rpartition(":")
        module = self.module(code, folder, part)
        if not hasattr(module, attribute):
            raise UsageError(f"{part!r}: {code} has no {attribute!r}")
        return module, getattr(module, attribute)


CALLER = Trust()
"""Trust in names written by the user: on the command line, or in a program that uses hpcsimkit."""


def code_in(part: str) -> str:
    """Return the module or file of a name; empty if the name is registered and refers to no code.

    >>> code_in("mine:Smallest"), code_in("path/mine.py:Smallest"), code_in("fcfs")
    ('mine', 'path/mine.py', '')
    """
    return part.rpartition(":")[0]


def version_of(code: str, folder: str | None = None) -> str:
    """Return the name of a module or file that has been imported, with the hash of its source.

    Parameters
    ----------
    code : str
        Module, or path of a file that ends in ``.py``.
    folder : str, optional
        Additional search folder besides the current one.

    Examples
    --------
    >>> import hashlib
    >>> version_of("hashlib").startswith("hashlib ("), version_of("no_such_module")
    (True, 'no_such_module')
    """
    file = _file_of(code, folder) or getattr(sys.modules.get(code), "__file__", None)
    return code if file is None else f"{code} ({hash_of(Path(file))[:8]})"


def _covers(entry: str, code: str, folder: str | None) -> bool:
    """Return whether consent to a module, file or folder includes some code."""
    if not entry:
        return False
    if code == entry or (not code.endswith(FILE_ENDING) and code.startswith(f"{entry}.")):
        return True
    file = _file_of(code, folder)
    if file is None:
        return False
    place, real = Path(os.path.realpath(entry)), Path(os.path.realpath(file))
    return real == place or (place.is_dir() and real.is_relative_to(place))


def _file_of(code: str, folder: str | None) -> Path | None:
    """Return the file with the code of a name, if it is in the current folder or the additional one."""
    within = "" if code.endswith(FILE_ENDING) else code.replace(".", "/")
    names = [f"{within}.py", f"{within}/__init__.py"] if within else [code]
    places = [Path.cwd(), *([] if folder is None else [Path(folder)])]
    files = (place / name for place in places for name in names)
    return next((file for file in files if file.is_file()), None)


def _is_class_of(found: object, kinds: Sequence[type]) -> bool:
    return isinstance(found, type) and issubclass(found, tuple(kinds))


def _returned(function: Callable[..., Any]) -> object:
    """Return the annotation of a function's return value; None if it is absent or cannot be resolved."""
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, SyntaxError, AttributeError):  # of types for type checkers only
        return None


# --- importing -------------------------------------------------------------------------------------------


def _module(code: str, folder: str | None) -> ModuleType:
    if code.endswith(FILE_ENDING):
        return _module_of_file(code, folder)
    with _looked_for_in(str(Path.cwd()), folder):
        return importlib.import_module(code)


def _module_of_file(code: str, folder: str | None) -> ModuleType:
    path = _file_of(code, folder)
    if path is None:
        raise UsageError(f"no such file: {code}")
    name = f"{path.stem}@{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


@contextmanager
def _looked_for_in(*folders: str | None) -> Iterator[None]:
    """Put some folders first in the search path for modules during a block, and last afterwards.

    Delayed imports of the user's modules still find modules there, but no file there can replace a library
    that hpcsimkit itself imports later.
    """
    first = [folder for folder in folders if folder is not None]
    new = [folder for folder in dict.fromkeys(first) if folder not in sys.path]
    sys.path[:0] = first
    try:
        yield
    finally:
        for folder in first:
            with suppress(ValueError):
                sys.path.remove(folder)
        sys.path += new


def importing(load: Callable[[], Any], part: str, what: str = "imported") -> Any:
    """Import or create a user-defined object; an error becomes a one-line message.

    Parameters
    ----------
    load : callable
        Function that imports or creates the object.
    part, what : str
        Name of the object and participle of the action, for messages.

    Raises
    ------
    UsageError
        The call fails; the message contains the location in the user's code.
    """
    try:
        return load()
    except (HpcsimkitError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(f"{part!r} cannot be {what}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """Return the message of an exception with its location in the user's code."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    place = Place.of_error(error)
    return f"{message_of(error)} ({place.line})" if place.own else message_of(error)
