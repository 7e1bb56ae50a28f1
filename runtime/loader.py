"""Object code -> functions that Python can call, through LLVM's LLJIT.

LLJIT (not MCJIT) because a missing symbol raises there; MCJIT ends the process with a segmentation fault.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from ctypes import CDLL, CFUNCTYPE, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from halfulp.compiler.codegen.elf import is_elf, undefined_symbols
from halfulp.compiler.codegen.llvm_lock import llvm_lock
from halfulp.compiler.codegen.thread_pool import PARALLEL_FOR
from halfulp.compiler.errors import HalfulpError, quoted_list

if TYPE_CHECKING:
    from llvmlite.binding.orcjit import LLJIT

ENTRY_PROTOTYPE = CFUNCTYPE(None, c_void_p, c_void_p)
"""``void name.call(void **buffers, int64_t *dims)``: how every entry function is called. The GIL is released."""


class LoadError(HalfulpError, RuntimeError):
    """Object code cannot be loaded: it is damaged, of another machine, or refers to a symbol that does not exist."""


_numbers = itertools.count()


@cache
def _jit() -> LLJIT:
    """The process's one LLJIT, never closed. A library that is dropped leaves some 8 KiB of its books behind."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler(suppress_errors=True)


def _load_error(object_code: bytes, imports: Mapping[str, int], complaint: str) -> LoadError:
    """LLVM says which symbols of the object it could not give; this adds which ones the object lacks itself."""
    if is_elf(object_code):
        process = CDLL(None)
        try:
            wanted = [name for name in undefined_symbols(object_code) if name not in imports]
        except ValueError as error:
            return LoadError(str(error))
        missing = [name for name in wanted if not hasattr(process, name)]
        if missing:
            return LoadError(
                f"object code calls {quoted_list(missing)}, which the process does not have;"
                " pass its address in imports"
            )
    return LoadError(f"object code of {len(object_code)} bytes cannot be loaded: {complaint}")


def _pool_symbols(object_code: bytes, symbols: Sequence[str]) -> dict[str, int]:
    """The pool's function for objects that call it; the pool's own object has it."""
    if PARALLEL_FOR.encode() not in object_code or PARALLEL_FOR in symbols:
        return {}
    from .threads import thread_pool

    return thread_pool().symbols


class NativeLibrary:
    """One object, loaded. Its functions are valid as long as it lives; a function from ``entry`` keeps it alive."""

    def __init__(self, object_code: bytes, symbols: Sequence[str], imports: Mapping[str, int] | None = None) -> None:
        """Loads the object and finds ``symbols`` in it.

        ``imports`` gives addresses of functions that it may call besides those of the C library and the thread
        pool. LoadError if the object or a symbol is not usable.
        """
        import llvmlite.binding as llvm

        imports = {**_pool_symbols(object_code, symbols), **(imports or {})}
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for name in symbols:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        try:
            with llvm_lock():
                self._tracker: Any = builder.link(_jit(), f"halfulp-{next(_numbers)}")
        except RuntimeError as error:
            raise _load_error(object_code, imports, str(error).strip()) from None
        self._addresses = {name: self._tracker[name] for name in symbols}

    def address(self, name: str) -> int:
        """The address of a symbol that was asked for when loading."""
        try:
            return int(self._addresses[name])
        except KeyError:
            raise LoadError(
                f"symbol {name!r} was not asked for when the object was loaded; pass it in symbols"
            ) from None

    def entry(self, name: str) -> Callable[[int, int], None]:
        """The entry function ``name`` as a callable on two addresses: of the buffer pointers and of the dims."""
        function: Any = ENTRY_PROTOTYPE(self.address(name))
        function.library = self
        return function  # type: ignore[no-any-return]


def load_entry(object_code: bytes, name: str, imports: Mapping[str, int] | None = None) -> Callable[[int, int], None]:
    """Loads an object and gives its entry function; the library lives as long as the function does."""
    return NativeLibrary(object_code, [name], imports).entry(name)
