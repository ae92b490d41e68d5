"""Compilation of functions with numba, kept on disk for later processes."""

from __future__ import annotations

import gc
import hashlib
import pickle
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.analysis import dead_branch_prune
from numba.core.caching import _Cache
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import InlineInlinables, IRProcessing

from hpcsimkit.compiled.cache_folder import CacheFolder
from hpcsimkit.compiled.lowering import Lowering

__all__ = ["called", "direct", "entry", "machine_code", "pasted", "separate"]


class PruneKnown(FunctionPass):
    """Drop what would be executed only if an argument were None that is not.

    Numba itself drops the opposite only, so that the code for counted nodes would be compiled for machines.
    """

    _name = "prune_known"

    def __init__(self) -> None:
        FunctionPass.__init__(self)  # type: ignore[no-untyped-call]

    def run_pass(self, state: Any) -> bool:
        """Drop branches by the types of the arguments."""
        prune: Any = dead_branch_prune
        prune(state.func_ir, [_known(each) for each in state.args])
        return True


def _known(argument: Any) -> Any:
    """Return the type of an argument in the form in which numba takes those that are no variables."""
    absent = isinstance(argument, types.NoneType | types.Omitted | types.Literal)
    return argument if absent else SimpleNamespace(literal_type=argument)


register: Any = register_pass
register(mutates_CFG=True, analysis_only=False)(PruneKnown)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage: it takes a sixth of the time of compiling, and nearly all objects are in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Compiler(CompilerBase):
    """The compiler of numba, with :class:`PruneKnown` and :class:`Lowering`."""

    @_no_collection()
    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        return super().compile_extra(func)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        builder: Any = DefaultPassBuilder
        passes = builder.define_nopython_pipeline(self.state)
        passes.add_pass_after(PruneKnown, IRProcessing)
        passes.add_pass_after(PruneKnown, InlineInlinables)
        passes.add_pass_after(Lowering, NativeLowering)
        passes.passes = [each for each in passes.passes if each[0] is not NativeLowering]
        passes.finalize()
        return [passes]


OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "pipeline_class": Compiler,
}
"""Options of the compilation.

Compiled functions allocate no arrays, so numba counts no references to them (``_nrt``): with dozens of arrays
passed from function to function, counting takes four fifths of the time of a run.
"""


class Kept(_Cache):
    """The compiled forms of a function, in a folder on disk.

    They are loaded without all that numba needs to compile others. Numba's own cache imports that first,
    which takes as long as everything else at the first call; and it ends with an error at a damaged file.

    Parameters
    ----------
    function : callable
        The function.
    folder : CacheFolder
        The folder, which belongs to this version of the function and of all that it calls.
    """

    def __init__(self, function: Callable[..., Any], folder: CacheFolder) -> None:
        self.function = function
        self.folder = folder

    @property
    def cache_path(self) -> str:
        """Path of the folder."""
        return str(self.folder.path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function for a combination of types; None if it is not there."""
        key = self._key(sig, target_context.codegen())
        content = self.folder.read(self._name(key))
        if content is None:
            return None
        kept_key, parts = pickle.loads(content)
        rebuild: Any = CompileResult._rebuild
        return rebuild(target_context, *parts) if kept_key == key else None

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
        return (sig, codegen.magic_tuple(), platform.python_version(), numba.__version__)

    def _name(self, key: tuple[Any, ...]) -> str:
        return f"{self.function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"


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


def entry(function: FunctionT, folder: Path, *, nogil: bool = False) -> FunctionT:
    """Return a function that is compiled when it is first called, or read from a folder on disk.

    With `nogil`, other threads run at the same time.

    The folder should belong to this version of the function and of all that it calls. If it cannot be used,
    each process compiles anew.
    """
    njit: Any = numba.njit
    compiled = njit(nogil=nogil, **OPTIONS)(function)
    compiled._cache = Kept(function, CacheFolder(folder))
    return cast(FunctionT, compiled)


def direct(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a faster way to call a function that has been compiled for one combination of types.

    Numba finds the types of all arguments at each call, which takes longer than to go on to the next decision
    of an open seat. Arrays must have the shape and the numbers of those of the first call, without gaps.
    """
    (only,) = cast(Any, compiled).overloads.values()
    return cast("Callable[..., Any]", only.entry_point)
