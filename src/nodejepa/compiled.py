"""Functions compiled by numba and kept on disk; where that is impossible, they are compiled anew."""

import contextlib
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core.caching import FunctionCache

_ANEW = "the fast parts are compiled anew in every process; NUMBA_CACHE_DIR names another folder"


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call; ``options`` are those of ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        try:
            # as cache=True does, with our own idea of what is worth stopping for
            dispatcher._cache = _OptionalCache(function)
        except (RuntimeError, OSError) as error:
            _warn(f"compiled code cannot be kept ({error}): {_ANEW}")
        return dispatcher

    return decorate


class _OptionalCache(FunctionCache):  # type: ignore[misc]
    """A cache that no run fails for: a full disk or a damaged file only costs the time to compile."""

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            _warn(f"compiled code cannot be kept in {self.cache_path} ({error}): {_ANEW}")


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=1)  # from here, so that Python shows the same words once
