"""Compilation of functions with numba, kept on disk for later processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from hpcsimkit.compiled.cache_folder import PrivateFiles
from hpcsimkit.compiled.toolchain import is_tested


def _compiler() -> dict[str, Any]:
    """Return the option for our compiler; none for that of numba, which takes twice as long."""
    with suppress(ImportError):  # a private interface that is gone
        if is_tested():
            from hpcsimkit.compiled.lowering import Compiler

            return {"pipeline_class": Compiler}
    return {}


OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True, **_compiler()}
"""Options of the compilation.

Compiled functions allocate no arrays, so numba counts no references to them (``_nrt``): with dozens of arrays
passed from function to function, counting takes four fifths of the time of a run.
"""


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def machine_code(function: FunctionT) -> FunctionT:
    """Return a function that is compiled as a part of those that call it; Python cannot call it."""
    return _part(function, forceinline=True)


def pasted(function: FunctionT) -> FunctionT:
    """Return a function whose code is inserted in those that call it before any of it is compiled.

    For those called once, or that do little: with the many arrays of a run, each function takes up to half a
    second to compile, whatever it does.
    """
    return _part(function, inline="always")


def called(function: FunctionT) -> FunctionT:
    """Return a function that is compiled once and called, for a long one besides which a call takes no time.

    Compiling takes longer the more code one function has after its parts are inserted. Numba inserts it all
    the same in a caller that is itself inserted: see :func:`separate`.
    """
    return _part(function)


def separate(function: FunctionT) -> FunctionT:
    """Return a function that is compiled once and called, also by functions that are parts of others.

    Numba inserts what these call into them, unless told otherwise. With the many arrays that machines need,
    compiling would take minutes.
    """
    return _part(function, forceinline=False)


def _part(function: FunctionT, **options: Any) -> FunctionT:
    """Return a function that only compiled functions call."""
    njit: Any = numba.njit
    return cast(FunctionT, njit(no_cpython_wrapper=True, **options, **OPTIONS)(function))


def entry(
    function: FunctionT,
    folder: Path,
    *,
    nogil: bool = False,
    compiling: Callable[[], None] = lambda: None,
) -> FunctionT:
    """Return a function that is compiled when it is first called, or read from a folder on disk.

    With `nogil`, other threads run at the same time. `compiling` is called before it is compiled.

    The folder should belong to this version of the function and of all that it calls. If it cannot be used,
    each process compiles anew.
    """
    njit: Any = numba.njit
    compiled = njit(nogil=nogil, **OPTIONS)(function)
    try:
        from hpcsimkit.compiled.kept import Kept
    except ImportError:  # with a numba that has another interface to its cache
        compiling()
    else:
        compiler = "ours" if "pipeline_class" in OPTIONS else "stock"
        compiled._cache = Kept(function, PrivateFiles(folder), compiler, compiling)
    return cast(FunctionT, compiled)


def direct(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a faster way to call a function that has been compiled for one combination of types.

    Numba finds the types of all arguments at each call, which takes longer than to go on to the next decision
    of an open seat. Arrays must have the shape and the numbers of those of the first call, without gaps.
    """
    (only,) = cast(Any, compiled).overloads.values()
    return cast("Callable[..., Any]", only.entry_point)
