"""The trust boundary: which code may be imported by name.

A name ``module:Name`` or ``file.py:Name`` runs the code of the module. On the command line and in a program,
the user has written the name. In a file (an experiment, a training, a model), it may come from another
person: such a name is rejected unless the user consents to the code by name, with ``--allow-code`` or with a
flag that names the same module. :mod:`hpcsimkit.engine.user_code` loads it.
"""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from hpcsimkit.engine.code_version import hash_of_code
from hpcsimkit.engine.user_code import FILE_ENDING, covers, file_of, imported_module, places_of
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.kernel.guard import Place, message_of

__all__ = ["CALLER", "FILE_ENDING", "Trust", "code_in", "importing", "version_of"]

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Trust:
    """Permission to import the code to which names refer.

    Parameters
    ----------
    allowed : tuple of str or None
        Modules, files and folders from which code may be imported; a package includes its modules, a folder
        all files in it. None allows all code, because the names are those of the caller.

    Examples
    --------
    >>> CALLER.imported("json:JSONDecoder")
    <class 'json.decoder.JSONDecoder'>
    >>> Trust(("mine",)).imported("json:JSONDecoder")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: 'json:JSONDecoder' is code that is not the kit's own, and a file may not \
name it without consent: --allow-code json
    """

    allowed: tuple[str, ...] | None

    @property
    def of_files(self) -> Trust:
        """Trust in names in a file that is referenced by trusted names, such as a model."""
        return Trust(self.allowed or ())

    def allows(self, code: str, folder: str | None) -> bool:
        """Return whether a module or file may be imported."""
        places = places_of(folder)
        return self.allowed is None or any(covers(entry, code, places) for entry in self.allowed)

    def check(self, code: str, folder: str | None = None, part: str = "") -> None:
        """Raise an error if a module or file may not be imported, without importing it.

        `part` is its full name for messages, by default the code itself.
        """
        part = part or code
        if not (code.endswith(FILE_ENDING) or MODULE.fullmatch(code)):
            raise UsageError(f"{part!r} needs the form module:Name or file.py:Name, found {code!r}")
        if self.allows(code, folder):
            return
        where = f" (looked for in {folder} too)" if folder is not None else ""
        raise UsageError(
            f"{part!r} is code that is not the kit's own, and a file may not name it without consent: "
            f"--allow-code {shlex.quote(code)}{where}"
        )

    def module(self, code: str, folder: str | None = None, part: str = "") -> ModuleType:
        """Import ``module`` or ``path/file.py``, if allowed."""
        self.check(code, folder, part)
        return importing(lambda: self._module(code, folder), part or code)

    def _module(self, code: str, folder: str | None) -> ModuleType:
        try:
            found = imported_module(code, folder, self.allowed)
        except ModuleNotFoundError as error:
            raise self._without_consent(error, code, folder) or error from None
        if found is None:
            raise UsageError(f"no such file: {code}")
        return found

    def _without_consent(
        self, error: ModuleNotFoundError, code: str, folder: str | None
    ) -> UsageError | None:
        """Return the error of a module that imports one beside it, to which there is no consent."""
        name, file = (error.name or "").partition(".")[0], file_of(code, places_of(folder))
        beside = None if file is None else file_of(name, [str(file.parent)])
        if beside is None or self.allows(name, folder):
            return None
        return UsageError(
            f"{code!r} imports {name!r} from {beside}, to which there is no consent: "
            f"--allow-code {shlex.quote(name)}"
        )

    def imported(self, part: str, folder: str | None = None) -> Any:
        """Import ``module:Name`` or ``path/file.py:Name``, if allowed; return the attribute."""
        return self._found(part, folder)[1]

    def maker(self, part: str, kinds: tuple[type, ...], folder: str | None = None) -> Callable[..., Any]:
        """Import a class with one of some base classes, or a function annotated to return such an object.

        An object of another type is an error, and is not called.
        """
        module, found = self._found(part, folder)
        if _is_class_of(found, kinds):
            return found
        if inspect.isfunction(found) and found.__module__ == module.__name__:
            if _is_class_of(_returned(found), kinds):
                return found
            raise UsageError(
                f"{part!r} is a function without the annotation of a policy or stage that it returns: "
                f"def {found.__name__}(...) -> Policy"
            )
        is_class = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
        raise UsageError(
            f"{part!r} must be a subclass of {', '.join(kind.__name__ for kind in kinds)}, or a function of "
            f"{module.__name__.partition('@')[0]} that returns one; found {is_class}"
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


CALLER = Trust(None)
"""Trust in names written by the user: on the command line, or in a program that uses hpcsimkit."""


def code_in(part: str) -> str:
    """Return the module or file of a name; empty if the name is registered and refers to no code.

    >>> code_in("mine:Smallest"), code_in("path/mine.py:Smallest"), code_in("fcfs")
    ('mine', 'path/mine.py', '')
    """
    return part.rpartition(":")[0]


def version_of(code: str, folder: str | None = None) -> str:
    """Return the name of an imported module or file, with the hash of its source and of all it imports.

    >>> import hashlib
    >>> version_of("hashlib").startswith("hashlib ("), version_of("no_such_module")
    (True, 'no_such_module')
    """
    file = file_of(code, places_of(folder)) or getattr(sys.modules.get(code), "__file__", None)
    return code if file is None else f"{code} ({hash_of_code(Path(file), code.removesuffix('.py'))[:8]})"


def _is_class_of(found: object, kinds: Sequence[type]) -> bool:
    return isinstance(found, type) and issubclass(found, tuple(kinds))


def _returned(function: Callable[..., Any]) -> object:
    """Return the annotation of a function's return value; None if it is absent or cannot be resolved."""
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, SyntaxError, AttributeError):  # of types for type checkers only
        return None


# --- importing -------------------------------------------------------------------------------------------


def importing(load: Callable[[], Any], part: str, what: str = "imported") -> Any:
    """Import or create a user-defined object; an error becomes a one-line message.

    `part` is its name, and `what` the participle of the action. The message has the location in the user's
    code.
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
