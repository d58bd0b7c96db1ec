"""Functions compiled by numba and kept on disk; where that is impossible, every process compiles them."""

import warnings
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call; ``options`` are those of ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError as error:  # no folder for it: a read-only installation and no home
            warnings.warn(
                f"compiled code cannot be kept ({error}): the fast parts are compiled anew in every process; "
                "NUMBA_CACHE_DIR names another folder",
                stacklevel=1,  # from here, so that Python shows the same words once
            )
            return numba.njit(nogil=True, **options)(function)

    return decorate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_: Any, array: Any, at: Any) -> Any:
    """Ask for the line of the processor's cache that holds ``array[at]``, one-dimensional, and go on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        letter, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(held.data, [arguments[1]]), letter)
        kind = ir.FunctionType(ir.VoidType(), [letter, whole, whole, whole])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [letter], kind)
        builder.call(ask, [place, whole(0), whole(3), whole(1)])  # to be read, soon, as data
        return context.get_dummy_value()

    return numba.types.void(array, at), generate
