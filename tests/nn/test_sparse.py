"""Sparse products and blocks equal their dense twins, forward and backward."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.nn.sparse import SparseOperator, csr_product, restrict


def random_matrix(rows, columns, seed, symmetric=False):
    matrix = sp.random_array((rows, columns), density=0.2, rng=np.random.default_rng(seed), dtype=np.float32)
    return sp.csr_array(matrix + matrix.T) if symmetric else sp.csr_array(matrix)


@pytest.mark.parametrize("symmetric", [False, True])
def test_product_and_gradient_equal_the_dense_ones(symmetric):
    matrix = random_matrix(12, 12 if symmetric else 7, 0, symmetric)
    x = torch.randn(matrix.shape[1], 5, requires_grad=True)
    out = SparseOperator(matrix, symmetric=symmetric)(x)
    weights = torch.randn_like(out)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    dense = torch.from_numpy(matrix.toarray())
    torch.testing.assert_close(out, dense @ x)
    torch.testing.assert_close(gradient, dense.T @ weights)


@pytest.mark.parametrize("symmetric", [False, True])
def test_blocks_equal_dense_indexing(symmetric):
    matrix = random_matrix(15, 15, 1, symmetric)
    operator = SparseOperator(matrix, symmetric=symmetric)
    rng = np.random.default_rng(2)
    some, others = rng.random(15) < 0.5, rng.random(15) < 0.4
    dense = matrix.toarray()
    for rows, columns in ((some, others), (some, some), (some, None), (None, others), (None, None)):
        block = restrict(operator, rows, columns)
        wanted = dense[slice(None) if rows is None else rows][:, slice(None) if columns is None else columns]
        np.testing.assert_array_equal(block.matrix.toarray(), wanted)
        np.testing.assert_array_equal(block.transposed_matrix.toarray(), wanted.T)


def test_an_empty_block_gives_zeros():
    operator = SparseOperator(random_matrix(6, 6, 3, symmetric=True), symmetric=True)
    nothing = np.zeros(6, dtype=bool)
    assert restrict(operator, ~nothing, nothing)(torch.zeros(0, 4)).equal(torch.zeros(6, 4))
    assert restrict(operator, nothing, ~nothing)(torch.randn(6, 4)).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 256])
def test_threads_change_no_bit_of_a_product(dtype, width, monkeypatch):
    monkeypatch.setattr("nodejepa.nn.sparse._WORK_OF_A_THREAD", 100)
    matrix = random_matrix(40, 70, 4)
    matrix.data[matrix.indptr[7] : matrix.indptr[9]] = 0
    matrix.eliminate_zeros()  # rows without an entry
    operator = SparseOperator(matrix.astype(np.float64 if dtype == torch.float64 else np.float32))
    x = torch.randn(70, width, dtype=dtype)
    products = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        products.append(csr_product(operator.tensor, x))
    torch.testing.assert_close(products[0], torch.from_numpy(operator.matrix.toarray()) @ x)
    assert all(product.equal(products[0]) for product in products)


def test_a_product_takes_any_layout_and_a_matrix_without_entries():
    matrix = random_matrix(9, 6, 5)
    x = torch.randn(4, 6).T
    torch.testing.assert_close(
        csr_product(SparseOperator(matrix).tensor, x), torch.from_numpy(matrix.toarray()) @ x
    )
    empty = SparseOperator(sp.csr_array((3, 6), dtype=np.float32)).tensor
    assert csr_product(empty, x).equal(torch.zeros(3, 4))
