"""Threads where they pay: independent problems side by side, each with products of one thread.

Two threads inside many small products wait for each other more than they compute, on a busy machine many
times more. The same problems side by side wait for nothing, and their bits do not depend on the number of
threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch's products and decompositions in the calling thread only."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(jobs: Iterable[Callable[[], Result]]) -> Iterator[Result]:
    """Results of some jobs in their order, as many at a time as PyTorch has threads.

    Jobs are taken when there is room for them, so a generator keeps only those at work in memory.
    """
    workers = torch.get_num_threads()
    with one_thread(), threadpool_limits(1, user_api="blas"):
        if workers == 1:
            for job in jobs:
                yield job()
            return
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            begun: deque[Future[Result]] = deque()
            try:
                for job in jobs:
                    begun.append(pool.submit(job))
                    if len(begun) == workers:
                        yield begun.popleft().result()
                while begun:
                    yield begun.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)
