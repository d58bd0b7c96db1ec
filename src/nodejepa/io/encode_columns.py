"""Columns as a fitted :class:`FeatureColumn` says -> their part of the feature matrix."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.graph_checks import LARGEST_FEATURE, Features
from nodejepa.io.column_content import ColumnContent, Numbers
from nodejepa.io.feature_columns import FeatureColumn

_SPARSE_BELOW = 0.2  # share of non-zeros from which on a dense matrix is the smaller one


def encode_column(
    column: FeatureColumn, content: ColumnContent, rows: int, before: int = 0
) -> tuple[Numbers | sp.sparray, int]:
    """The column's part of the feature matrix, ``[rows, width]``, and how many values it does not know.

    ``before`` rows of the table come before these.
    """
    if content.kind == "empty":
        block = np.zeros((rows, column.width))
        if column.indicator:
            block[:, -1] = 1
        return block, 0
    if column.kind == "category":
        return _one_hot(column, content.words)
    if column.kind == "text":
        return _hashed(column, content.words), 0
    numbers = content.numbers
    if numbers.shape[1] != len(column.mean):
        raise GraphError(
            f"lists have {numbers.shape[1]} numbers where {len(column.mean)} are expected",
            where=f"column {column.name!r}",
            fix="Store it as in the table the features were fitted on.",
        )
    missing = np.isnan(numbers)
    block = np.where(missing, column.fill or column.mean, numbers)
    block = (block - column.mean) / np.array(column.scale)
    _refuse_overflow(column, numbers, block, before)
    if column.indicator:
        block = np.column_stack([block, missing.any(axis=1)])
    # a wide table of 0 and 1 would not fit as numbers; a column of its own is smallest compressed by columns
    return sp.csc_array(block) if np.count_nonzero(block) < _SPARSE_BELOW * block.size else block, 0


def _refuse_overflow(column: FeatureColumn, numbers: Numbers, block: Numbers, before: int) -> None:
    """Refuse values whose products do not fit into single precision when they are summed over nodes."""
    bad = np.abs(block) > LARGEST_FEATURE
    if not bad.any():
        return
    row, dimension = np.argwhere(bad)[0]
    raise GraphError(
        f"row {before + row + 1} is {numbers[row, dimension]:g}, as a feature {block[row, dimension]:g}, "
        f"and no feature may be beyond {LARGEST_FEATURE:.0e} in size ({np.count_nonzero(bad)} such): sums of "
        "products must fit into single precision",
        where=f"column {column.name!r}",
        fix=Advice(
            "Correct it, scale the column (",
            Setting("scale", "standardise"),
            " when features are fitted), or leave it out with ",
            Setting("drop", column.name),
            "; rows are counted from 1.",
        ),
    )


def _one_hot(column: FeatureColumn, words: pa.ChunkedArray) -> tuple[sp.csr_array, int]:
    known = pa.array(column.categories, type=pa.large_string())
    codes = np.asarray(
        pc.fill_null(pc.index_in(words, value_set=known, skip_nulls=True), -1).to_numpy(), dtype=np.int64
    )
    missing = np.asarray(pc.is_null(words).to_numpy(), dtype=bool)
    unknown = int(((codes < 0) & ~missing).sum())
    if column.indicator:
        codes[missing] = len(column.categories)
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(rows.size)
    return sp.csr_array((ones, (rows, codes[rows])), shape=(len(words), column.width)), unknown


def _hashed(column: FeatureColumn, words: pa.ChunkedArray) -> sp.csr_array:
    """Counts of hashed words with a hashed sign, each row scaled to length 1.

    The hash is BLAKE2, not Python's own, which differs from process to process.
    """
    lists = pc.split_pattern_regex(pc.fill_null(pc.utf8_lower(words), ""), r"[^\pL\pN]+")
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    rows = pc.list_parent_indices(lists).to_numpy()
    tokens = pc.list_flatten(lists).dictionary_encode()
    digests = [_token_hash(token) for token in tokens.dictionary.to_pylist()]
    hashes: npt.NDArray[np.uint64] = np.array(digests, dtype=np.uint64)[tokens.indices.to_numpy()]
    spoken = hashes > 0
    buckets = (hashes[spoken] >> np.uint64(1)) % np.uint64(column.buckets)
    signs = np.where(hashes[spoken] & np.uint64(1), 1.0, -1.0)
    shape = (len(words), column.width)
    counts = sp.csr_array((signs, (rows[spoken], buckets.astype(np.int64))), shape=shape)
    counts.sum_duplicates()
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts = sp.diags_array(1 / np.where(length > 0, length, 1.0)) @ counts
    if column.indicator:
        missing = np.flatnonzero(np.asarray(pc.is_null(words).to_numpy(), dtype=bool))
        marks = (np.ones(missing.size), (missing, np.full(missing.size, column.width - 1)))
        counts = counts + sp.csr_array(marks, shape=shape)
    return sp.csr_array(counts)


def _token_hash(token: str) -> int:
    """63 stable bits and a sign; 0 for the empty token, which is no word."""
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little") if token else 0


def count_filled(blocks: list[Any]) -> int:
    """Cells of blocks that are not zero."""
    return sum(block.nnz if sp.issparse(block) else int(np.count_nonzero(block)) for block in blocks)


def worth_sparse(filled: int, cells: int) -> bool:
    """Whether so many cells of a table are better kept alone."""
    return filled < _SPARSE_BELOW * cells


def join_blocks(blocks: list[Any], rows: int, *, sparse: bool | None = None) -> Features:
    """The blocks side by side: sparse if most of it is zero, or as told."""
    if not blocks:
        return np.zeros((rows, 0), dtype=np.float32)
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused by the graph, by row and column
        size = rows * sum(block.shape[1] for block in blocks)
        if worth_sparse(count_filled(blocks), size) if sparse is None else sparse:
            return sp.csr_array(sp.hstack(blocks, format="csr"), dtype=np.float32)
        dense = np.empty((rows, size // rows if rows else 0), dtype=np.float32)
        start = 0
        for block in blocks:
            part = block.toarray() if sp.issparse(block) else block
            dense[:, start : start + part.shape[1]] = part
            start += part.shape[1]
        return dense
