"""From functions in the form of numba to LLVM, optimized once for all functions of a run."""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

__all__ = ["Lowering"]


class PartLibrary(JITCodeLibrary):
    """The code of a function that is a part of others, for LLVM.

    Numba would optimize it and make machine code of it, together with the code of all functions that it
    calls, and so again and again with each caller's. Here this is left to the entry.
    """

    def _optimize_final_module(self) -> None:
        """Leave it to the entry."""

    def _finalize_final_module(self) -> None:
        """Be ready for callers."""
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class EntryLibrary(JITCodeLibrary):
    """The code of a function that Python calls, with that of all its parts."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the optimization of the whole, which follows."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimize the whole; parts, which nobody else calls, get only the arguments that they use."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


class Lowering(NativeLowering):
    """Lower a function to LLVM, and make machine code of it unless it is a part of others.

    Those that need not be inserted in their callers are not.
    """

    _name = "lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function."""
        is_part = state.flags.no_compile = state.flags.no_cpython_wrapper
        library: Any = PartLibrary if is_part else EntryLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
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
register(mutates_CFG=True, analysis_only=False)(Lowering)
