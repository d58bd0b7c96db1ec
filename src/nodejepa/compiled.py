"""Functions compiled by numba and kept on disk; where that is impossible, every process compiles them."""

import warnings
from collections.abc import Callable
from typing import Any

import numba


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
