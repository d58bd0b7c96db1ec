"""CSR times dense on the CPU, several rows of the dense matrix at a time.

The product is bound by reading rows of the dense matrix. Adding four of them to a row of the result in one
pass touches that row a quarter as often and lets four reads wait for memory together: faster than
``torch.sparse.mm(..., "sum")`` with the same bits (row ``csr_product`` of ``make bench``). Each row is
summed entry by entry in its own order, so that threads change no bit either.
"""

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodejepa.compiled import compiled

_WORK_OF_A_THREAD = 1_000_000  # multiplications; below that, starting a thread costs more than it saves


def csr_product(matrix: Tensor, x: Tensor) -> Tensor:
    """``matrix @ x`` for a CSR tensor and a dense ``x`` on the CPU, outside of autograd."""
    product = torch.empty((matrix.shape[0], x.shape[1]), dtype=x.dtype)
    pointers = matrix.crow_indices().numpy()
    parts = (
        pointers,
        matrix.col_indices().numpy(),
        matrix.values().detach().numpy(),
        x.detach().contiguous().numpy(),
        product.numpy(),
    )
    work = int(pointers[-1]) * x.shape[1]
    threads = max(1, min(torch.get_num_threads(), work // _WORK_OF_A_THREAD))
    # rows are shared out so that each thread has as many entries
    ends = np.searchsorted(pointers, np.linspace(0, pointers[-1], threads + 1)[1:-1])
    bounds = [0, *ends.tolist(), matrix.shape[0]]
    others = [
        threading.Thread(target=_multiply_rows, args=(*parts, first, last))
        for first, last in pairwise(bounds[1:])
    ]
    for thread in others:
        thread.start()
    _multiply_rows(*parts, bounds[0], bounds[1])
    for thread in others:
        thread.join()
    return product


@compiled(fastmath={"contract"})
def _multiply_rows(
    pointers: Any, columns: Any, values: Any, x: Any, product: Any, first: int, last: int
) -> None:
    width = x.shape[1]
    for row in range(first, last):
        out = product[row]
        out[:] = 0
        at, end = pointers[row], pointers[row + 1]
        while at + 4 <= end:
            a, b, c, d = values[at], values[at + 1], values[at + 2], values[at + 3]
            xa, xb, xc, xd = x[columns[at]], x[columns[at + 1]], x[columns[at + 2]], x[columns[at + 3]]
            for i in range(width):
                out[i] = (((out[i] + a * xa[i]) + b * xb[i]) + c * xc[i]) + d * xd[i]
            at += 4
        while at < end:
            a, xa = values[at], x[columns[at]]
            for i in range(width):
                out[i] += a * xa[i]
            at += 1
