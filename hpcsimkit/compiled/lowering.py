"""The compiler of numba with passes of our own, which halve the time of compiling.

From functions in the form of numba to LLVM, optimized once for all functions of a run. All this are private
interfaces of numba, so that :mod:`.compilation` goes on without this module where they have not been tested.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import types
from numba.core.analysis import dead_branch_prune
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import InlineInlinables, IRProcessing
from numba.np import arrayobj


class PruneKnown(FunctionPass):
    """Drop what would be executed only if an argument were None that is not.

    Numba itself drops the opposite only, so that the code for homogeneous nodes would be compiled for
    machines.
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


class PartLibrary(JITCodeLibrary):
    """The code of a function that is a part of others, for LLVM.

    Numba would optimize it and make machine code of it, together with the code of all functions that it
    calls, and so again and again with each caller's. Here this is left to the entry.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing: the entry function optimizes this code together with its own."""

    def _finalize_final_module(self) -> None:
        """Mark as finalized without generating machine code; only the caller's module is compiled."""
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class EntryLibrary(JITCodeLibrary):
    """The code of a function that Python calls, with that of all its parts."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Skip the passes of single functions; `_optimize_final_module` runs them once."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimize the whole; parts, which nobody else calls, get only the arguments that they use."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


@contextmanager
def _without_negative_indices() -> Iterator[None]:
    """Take all indices as they are: an index below 0 does not count from the end.

    To look whether each index is one takes up to an eighth of the time of a run. No code of ours has any:
    in tests, the same functions run as Python with arrays that refuse them.
    """
    before = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = _as_it_is
    try:
        yield
    finally:
        arrayobj.fix_integer_index = before


def _as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Return an index for LLVM; see the function of numba in whose place it stands."""
    return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)


class Lowering(NativeLowering):
    """Lower a function to LLVM, and make machine code of it unless it is a part of others.

    Functions without `forceinline` get the LLVM attribute `noinline`.
    """

    _name = "lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function."""
        is_part = state.flags.no_compile = state.flags.no_cpython_wrapper
        library: Any = PartLibrary if is_part else EntryLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        with _without_negative_indices():
            super().run_pass(state)  # type: ignore[no-untyped-call]
        if is_part:
            _insert(state)
        return True


def _insert(state: Any) -> None:
    """Let other functions call a part; numba knows it by a Python function, which nobody may call."""
    made, library = state.cr, state.library
    described = made.fndesc
    if not state.flags.forceinline:
        library.get_function(described.llvm_func_name).add_function_attribute("noinline")
    key = _dynfunc.make_function(described.lookup_module(), described.qualname, "", 0, made.env, (library,))
    state.targetctx.insert_user_function(key, described, [library])
    state.cr = made._replace(cfunc=key)


register: Any = register_pass
for each in (PruneKnown, Lowering):
    register(mutates_CFG=True, analysis_only=False)(each)


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
