"""The cache of compiled functions, in place of numba's own."""

from __future__ import annotations

import hashlib
import pickle
import platform
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from hpcsimkit.compiled.cache_folder import PrivateFiles


class Kept(_Cache):
    """The compiled forms of a function, in a folder on disk.

    They are loaded without all that numba needs to compile others. Numba's own cache imports that first,
    which takes as long as everything else at the first call; and it ends with an error at a damaged file.

    Parameters
    ----------
    function : callable
        The function.
    folder : PrivateFiles
        The folder, which belongs to this version of the function and of all that it calls.
    compiler : str
        Name of the compiler.
    compiling : callable
        Callback, called before the function is compiled because the folder does not have it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        folder: PrivateFiles,
        compiler: str,
        compiling: Callable[[], None],
    ) -> None:
        self.function = function
        self.folder = folder
        self.compiler = compiler
        self.compiling = compiling

    @property
    def cache_path(self) -> str:
        """Path of the folder."""
        return str(self.folder.path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function for a combination of types; None if it is not there."""
        key = self._key(sig, target_context.codegen())
        content = self.folder.read(self._name(key))
        kept_key, parts = (None, ()) if content is None else pickle.loads(content)
        if kept_key != key:
            self.compiling()
            return None
        rebuild: Any = CompileResult._rebuild
        return rebuild(target_context, *parts)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the function for a combination of types, if its folder can be written."""
        key = self._key(sig, data.codegen)
        pickled: Any = dumps
        self.folder.write(self._name(key), pickled((key, data._reduce())))

    def enable(self) -> None:
        """Do nothing: it is always in use."""

    def disable(self) -> None:
        """Do nothing: it is always in use."""

    def flush(self) -> None:
        """Do nothing: another version of the function has another folder."""

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return everything on which the machine code depends."""
        return (sig, codegen.magic_tuple(), platform.python_version(), numba.__version__, self.compiler)

    def _name(self, key: tuple[Any, ...]) -> str:
        return f"{self.function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"
