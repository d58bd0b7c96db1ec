"""One column of a node table -> columns of the feature matrix, in a way that can be repeated.

:class:`ColumnFit` looks at the cells, all at once or some rows after the other, and says how to encode them:
a :class:`FeatureColumn`, which :func:`encode_column` follows.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from nodejepa.config import NonNegativeInt
from nodejepa.errors import GraphError
from nodejepa.graph_checks import LARGEST_FEATURE, Features
from nodejepa.tables.cells import ColumnContent, Kind, Numbers, Strays
from nodejepa.tables.convert import optional_module
from nodejepa.tables.options import TEXT_MODEL, ReadingOptions, words_of

ColumnKind: TypeAlias = Literal["numeric", "binary", "boolean", "time", "vector", "category", "tags", "text"]
MAX_CATEGORIES = 100
_SAME = 1e-4  # of a standard deviation: means of the same values, summed in another order
_LARGEST = float(np.finfo(np.float32).max)
_CELLS = {"binary": "numeric", **dict.fromkeys(("category", "tags", "text"), "words")}
_STAND_INS = tuple(
    sign * (10.0**nines - 1) for nines in range(2, 7) for sign in (-1, 1)
)  # -99, 99, -999, ...
_NAMES = "label labels class classes target targets category categories topic outcome"
_WHOLE_NAMES = {"y", "groundtruth"}


@dataclass(frozen=True)
class FeatureColumn:
    """How one column is encoded. ``width`` columns of the feature matrix come from it.

    ==========  ==================================================================================
    kind        encoding
    ==========  ==================================================================================
    numeric     (x - mean) / scale; missing is ``fill``, else the mean
    time        as numeric, in seconds
    vector      as numeric, in every dimension
    binary      a number that was 0 or 1 everywhere, as it is; missing is 0
    boolean     0 or 1; missing is 0
    category    a column of 0 and 1 for each of ``categories``; one not among them is all zeros
    tags        the same for cells of several: ``a|b``, ``a;b``, ``['a', 'b']`` or a list of words
    text        words hashed into ``buckets`` columns, rows of length 1, or what a ``model`` makes of them
    ==========  ==================================================================================

    Numbers that stay as they are have mean 0, scale 1 and a ``fill``. With ``indicator`` a last column is 1
    where the value is missing.
    """

    name: str
    kind: ColumnKind
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    buckets: NonNegativeInt = 0
    indicator: bool = False
    fill: tuple[float, ...] = ()
    model: str = ""

    @property
    def treatment(self) -> str:
        """What was done with the values, in words that go for several columns."""
        if self.kind == "category" or self.kind == "tags":
            return f"a column of 0 and 1 for each {self.kind.removesuffix('s')}"
        if self.kind == "text":
            made = f"embedded by {self.model} in" if self.model else "words hashed into"
            return f"{made} {self.buckets} columns"
        kept = self.fill or self.kind == "boolean" or self.kind == "binary"
        return "as they are" if kept else "scaled to mean 0 and standard deviation 1"

    @property
    def missing_is(self) -> str:
        """What a missing value counts as."""
        if self.cell_kind == "words":
            return "all zeros"
        return {"boolean": "false", "binary": "0"}.get(self.kind, "the mean")

    @property
    def width(self) -> int:
        """How many columns of the feature matrix this is."""
        return len(self.mean) + len(self.categories) + self.buckets + int(self.indicator)

    @property
    def cell_kind(self) -> Kind:
        """What the cells must hold."""
        return _CELLS.get(self.kind) or self.kind  # type: ignore[return-value]

    def encodes_as(self, other: Self) -> bool:
        """Whether another column makes the same numbers of the same cells, but for rounding of the mean."""
        mine, theirs = (replace(one, mean=(), scale=(), fill=()) for one in (self, other))
        sizes = [(len(one.mean), bool(one.fill)) for one in (self, other)]
        if mine != theirs or sizes[0] != sizes[1]:
            return False
        scale = np.asarray(self.scale)
        centres = np.abs(np.subtract(self.mean, other.mean)) <= _SAME * scale
        return bool(centres.all() and np.allclose(scale, other.scale, rtol=_SAME, atol=0))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without what the kind has no use for."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items() if v}


class ColumnGroup(NamedTuple):
    """Columns of one kind that are treated alike; ``width`` columns of the feature matrix come from them."""

    kind: str
    treatment: str
    names: tuple[str, ...]
    width: int


def _refuse_beyond(limit: float, sizes: Numbers, numbers: Numbers, where: str, before: int) -> None:
    """Refuse numbers whose sizes are beyond a limit, by the first; NaN is missing and passes."""
    bad = np.abs(sizes) > limit
    if not bad.any():
        return
    row, dimension = np.argwhere(bad)[0]
    raise GraphError(
        f"row {before + row + 1} is {numbers[row, dimension]:g}, and no feature may be beyond "
        f"{LARGEST_FEATURE:.0e} in size ({np.count_nonzero(bad)} such): sums of products must fit into "
        "single precision",
        where=where,
        fix='Correct or empty it, scale the column (scale="standardise" when features are fitted), or leave '
        "it out with drop=COLUMN; rows are counted from 1.",
    )


def count_missing(content: ColumnContent, rows: int) -> int:
    """How many rows lack the value or a part of it."""
    if content.words is not None:
        return int(content.words.null_count)
    return rows if content.kind == "empty" else int(np.isnan(content.numbers).any(axis=1).sum())


def named_like_target(name: str) -> bool:
    """Whether a column is called as what people predict."""
    words = words_of(name)
    return bool(words & set(_NAMES.split())) or "".join(sorted(words)) in _WHOLE_NAMES


def _few_values(numbers: Numbers) -> bool:
    """Whether whole numbers have few values, much fewer than there are rows."""
    values = numbers[~np.isnan(numbers)]
    distinct = np.unique(values)
    few = distinct.size <= min(MAX_CATEGORIES, max(2, values.size // 2))
    return few and bool((distinct == np.floor(distinct)).all())


# ---------------------------------------------------------------- fit


_SPELLED = r"^[$€£¥]? ?[+-]?(0|[1-9]\d*)([.,]\d+)* ?[%°/a-zA-Z²³]{0,8}$"  # 12%, $5 or 12 km; 007 is a code
_BARE = r"[+-]?\d+([.,]\d+)*"
_FEWEST_SPELLED, _MOST_SPELLED = 3, 0.9  # different numbers, and their share of the different values
_MOST_WORDS = 1 << 20  # distinct ones that are counted; a column with more is free text whatever the number


class FreeText(NamedTuple):
    """A column of text that was not said what to do with."""

    distinct: int
    example: str


def refuse_text(columns: Mapping[str, FreeText], where: str) -> None:
    """Refuse columns of free text, all of them at once."""
    if columns:
        said = (
            f"{n!r} ({text.distinct} different values, such as {text.example!r})"
            for n, text in columns.items()
        )
        dropped = " ".join(f'drop="{name}"' for name in columns)
        raise GraphError(
            f"{len(columns)} column{'s are' if len(columns) > 1 else ' is'} text: {', '.join(said)}",
            where=where,
            fix=f'Leave out with {dropped}, hash words with text="hash", or embed them with a language '
            'model, text="sentence-transformers:MODEL".',
        )


class ColumnFit:
    """What was seen of a column so far; :meth:`fitted` says how to encode it."""

    def __init__(self, name: str, reading: ReadingOptions, where: str, *, in_parts: bool = False) -> None:
        self.name, self.reading, self.where = name, reading, where
        self.missing = 0  # rows without a value
        self.mixed = False  # rows look like one kind at first and like another below
        self._strays = Strays() if in_parts else None  # of text that nobody has seen all of
        self._kind: Kind = "empty"
        self._few = False  # different numbers in the first rows
        self._binary = True
        self._words: pa.Array | None = None
        self._present = 0  # of words
        self._counts: Any = None  # of numbers, a column each
        self._mean: Any = None
        self._squares: Any = None
        self._largest: Any = None
        self._stand_ins = np.zeros(len(_STAND_INS), dtype=np.int64)  # how often they are there
        self._range = (np.inf, -np.inf)  # of all other numbers

    def look(self, content: ColumnContent, rows: int, before: int = 0) -> None:
        """Take in ``rows`` more rows; ``before`` of them were seen before."""
        if self.mixed:
            return
        self.missing += count_missing(content, rows)
        if content.kind == "empty":
            return
        if self._kind not in ("empty", content.kind):
            self.mixed = True
            return
        if content.words is not None:
            self._look_at_words(content.words)
        else:
            _refuse_beyond(_LARGEST, content.numbers, content.numbers, self.where, before)
            if self._kind == "empty" and named_like_target(self.name):
                self._few = _few_values(content.numbers)
            self._look_at_numbers(content.numbers)
        self._kind = content.kind

    def _look_at_words(self, words: pa.ChunkedArray) -> None:
        if self._strays is not None:
            self._strays.look(words)
        self._present += len(words) - words.null_count
        if self._words is None:
            self._words = words.drop_null().unique()
        elif len(self._words) < _MOST_WORDS:
            self._words = pa.chunked_array([self._words, *words.drop_null().chunks]).unique()

    def _look_at_numbers(self, numbers: npt.NDArray[np.float64]) -> None:
        present = ~np.isnan(numbers)
        known = np.where(present, numbers, 0.0)
        counts = present.sum(axis=0)
        mean = known.sum(axis=0) / np.maximum(counts, 1)
        centred = np.where(present, numbers - mean, 0.0)
        squares = (centred**2).sum(axis=0)
        largest = np.abs(known).max(axis=0, initial=0.0)
        self._binary = self._binary and bool(np.isin(numbers[present], (0.0, 1.0)).all())
        odd = np.isin(numbers, _STAND_INS)
        self._stand_ins += [np.count_nonzero(numbers[odd] == value) for value in _STAND_INS]
        other = numbers[present & ~odd]
        low, high = self._range
        self._range = min(low, other.min(initial=np.inf)), max(high, other.max(initial=-np.inf))
        if self._counts is None:
            self._counts, self._mean, self._squares, self._largest = counts, mean, squares, largest
            return
        if len(counts) != len(self._counts):
            raise GraphError(
                f"lists have {len(counts)} numbers below and {len(self._counts)} before",
                where=self.where,
                fix="Give lists of one length.",
            )
        total = np.maximum(self._counts + counts, 1)
        between = mean - self._mean  # Chan et al. 1979
        self._squares = self._squares + squares + between**2 * (self._counts * counts / total)
        self._mean = self._mean + between * (counts / total)
        self._counts = self._counts + counts
        self._largest = np.maximum(self._largest, largest)

    def looks_like_target(self, column: FeatureColumn) -> bool:
        """Whether it is called like a target and has few values."""
        kinds = ("numeric", "binary", "boolean")
        return named_like_target(self.name) and (
            column.kind == "category" or (column.kind in kinds and self._few)
        )

    @property
    def stand_in(self) -> tuple[float, int] | None:
        """A number such as -999 far from all others, and how often: it may stand for a missing value."""
        low, high = self._range
        if self._kind == "numeric" and low < high:
            for value, count in zip(_STAND_INS, self._stand_ins.tolist(), strict=True):
                if count > 1 and max(low - value, value - high) > high - low:
                    return value, count
        return None

    @property
    def spelled_number(self) -> str | None:
        """A value such as 12%, where nearly all are numbers, all with one unit or none; else None."""
        if self._words is None or len(self._words) < _FEWEST_SPELLED:
            return None
        numbers = self._words.filter(pc.match_substring_regex(self._words, _SPELLED))
        units = pc.replace_substring_regex(numbers, _BARE, "").unique()
        mostly = len(units) == 1 and len(numbers) > _MOST_SPELLED * len(self._words)
        return str(numbers[0].as_py()) if mostly else None

    def fitted(self) -> FeatureColumn | FreeText | str:
        """How to encode the column, or the reason why it says nothing."""
        if self._kind == "empty":
            return "all values are missing"
        if self._words is not None:
            return self._fitted_words(self._words)
        kind: ColumnKind = self._kind  # type: ignore[assignment]
        counts, mean = self._counts, self._mean
        deviation = np.sqrt(self._squares / np.maximum(counts, 1))
        varies = deviation > 1e-9 * self._largest
        if not varies.any() and not (self.missing and counts.any()):
            return "the same value everywhere"
        if kind == "numeric" and self.reading.scale == "auto" and self._binary:
            kind = "binary"
        if kind == "boolean" or kind == "binary":
            return FeatureColumn(self.name, kind, (0.0,), (1.0,), indicator=self.missing > 0)
        mean = np.where(varies | (counts > 0), mean, 0.0)
        fill = tuple(mean.tolist())
        scale = self.reading.scale
        if scale == "none" or (scale == "auto" and kind == "vector"):
            ones = (1.0,) * len(mean)
            return FeatureColumn(self.name, kind, (0.0,) * len(mean), ones, (), 0, self.missing > 0, fill)
        spread = np.where(varies, deviation, 1.0)
        return FeatureColumn(self.name, kind, fill, tuple(spread.tolist()), indicator=self.missing > 0)

    def _fitted_words(self, distinct: pa.Array) -> FeatureColumn | FreeText | str:
        if self._strays is not None:
            self._strays.refuse(self.where)
        if len(distinct) <= 1 and not self.missing:
            return "the same value everywhere"
        tags = pc.list_flatten(split_tags(distinct)).unique()
        tags = tags.filter(pc.not_equal(tags, ""))
        if len(tags) < min(len(distinct), MAX_CATEGORIES + 1):  # several of them share a cell
            known = tuple(sorted(tags.to_pylist()))
            return FeatureColumn(self.name, "tags", categories=known, indicator=self.missing > 0)
        if len(distinct) <= min(MAX_CATEGORIES, max(10, self._present // 2)):
            known = tuple(sorted(distinct.to_pylist()))
            return FeatureColumn(self.name, "category", categories=known, indicator=self.missing > 0)
        if self.reading.text == "hash":
            width = self.reading.text_columns
            return FeatureColumn(self.name, "text", buckets=width, indicator=self.missing > 0)
        if self.reading.text.startswith(TEXT_MODEL):
            model = self.reading.text.removeprefix(TEXT_MODEL)
            width = _model_vectors(model, ["any text"]).shape[1]
            return FeatureColumn(self.name, "text", buckets=width, indicator=self.missing > 0, model=model)
        if self.reading.text == "ignore":
            return "free text"
        return FreeText(len(distinct), distinct[0].as_py()[:40])


# ---------------------------------------------------------------- encode


_SPARSE_BELOW = 0.2  # share of non-zeros from which on a dense matrix is the smaller one


def encode_column(
    column: FeatureColumn, content: ColumnContent, rows: int, where: str = "", before: int = 0
) -> tuple[Numbers | sp.sparray, int]:
    """The column's part of the feature matrix, ``[rows, width]``, and how many values it does not know.

    ``before`` rows of the table come before these.
    """
    unknown = 0
    block: Any
    missing: Any
    if column.cell_kind == "words":
        words = (
            pa.chunked_array([pa.nulls(rows, pa.large_string())])
            if content.kind == "empty"
            else content.words
        )
        missing = np.asarray(pc.is_null(words).to_numpy(), dtype=bool)
        if column.kind != "text":
            block, unknown = _indicators(column, words)
        else:
            block = _embedded(column, words, missing) if column.model else _hashed(column, words)
    else:
        numbers = np.full((rows, len(column.mean)), np.nan) if content.kind == "empty" else content.numbers
        if numbers.shape[1] != len(column.mean):
            raise GraphError(
                f"lists have {numbers.shape[1]} numbers where {len(column.mean)} are expected",
                where=where,
                fix="Store it as in the table the features were fitted on.",
            )
        _refuse_beyond(_LARGEST, numbers, numbers, where, before)
        gaps = np.isnan(numbers)
        missing = gaps.any(axis=1)
        block = (np.where(gaps, column.fill or column.mean, numbers) - column.mean) / np.array(column.scale)
        _refuse_beyond(LARGEST_FEATURE, block, numbers, where, before)
        # a wide table of 0 and 1 would not fit as numbers; a column of its own is smallest by columns
        if worth_sparse(int(np.count_nonzero(block)), block.size):
            block = sp.csc_array(block)
    if column.indicator:
        mark = missing.reshape(-1, 1).astype(np.float64)
        block = sp.hstack([block, mark], format="csr") if sp.issparse(block) else np.hstack([block, mark])
    return block, unknown


def _indicators(column: FeatureColumn, words: pa.ChunkedArray) -> tuple[sp.csr_array, int]:
    """A column of 0 and 1 for each category, and how many values are none of them."""
    rows, cells, absent = np.arange(len(words)), words, words.null_count
    if column.kind == "tags":
        lists = split_tags(pc.fill_null(words, ""))
        rows, cells = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists)
        absent = pc.sum(pc.equal(cells, "")).as_py() or 0
    known = pa.array(column.categories, type=pa.large_string())
    found = pc.index_in(cells, value_set=known, skip_nulls=True)
    codes = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    inside = codes >= 0
    unknown = int(len(codes) - inside.sum() - absent)
    shape = (len(words), len(column.categories))
    matrix = sp.csr_array((np.ones(inside.sum()), (rows[inside], codes[inside])), shape=shape)
    matrix.data[:] = 1.0  # a tag counts once
    return matrix, unknown


def split_tags(words: Any) -> pa.Array:
    """The tags in each cell: ``a|b``, ``a;b`` or ``['a', 'b']``."""
    words = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
    inner = pc.replace_substring_regex(words, r"""^\[\s*['"]?|['"]?\s*\]$""", "")
    inner = pc.replace_substring_regex(inner, r"""['"]?\s*,\s*['"]?""", "|")
    words = pc.if_else(pc.match_substring_regex(words, r"^\[.*\]$"), inner, words)
    return pc.split_pattern_regex(words, r"\s*[|;]\s*")


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
    shape = (len(words), column.buckets)
    counts = sp.csr_array((signs, (rows[spoken], buckets.astype(np.int64))), shape=shape)
    counts.sum_duplicates()
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1.0)) @ counts)


def _embedded(column: FeatureColumn, words: pa.ChunkedArray, missing: npt.NDArray[np.bool_]) -> Numbers:
    """What a language model makes of texts; zeros where there is none."""
    vectors = _model_vectors(column.model, pc.fill_null(words, "").to_pylist())
    if vectors.shape != (len(words), column.buckets):
        raise GraphError(
            f"the model {column.model!r} gives {vectors.shape[-1]} columns, not {column.buckets}",
            where=f"column {column.name!r}",
        )
    return np.where(missing[:, None], 0.0, vectors)


def _model_vectors(name: str, texts: list[str]) -> npt.NDArray[Any]:
    return np.asarray(_text_model(name).encode(texts, show_progress_bar=False))


@cache
def _text_model(name: str) -> Any:
    """A model of sentence-transformers that is on this machine: nothing is downloaded."""
    library = optional_module("sentence_transformers", "text")
    try:
        return library.SentenceTransformer(name, local_files_only=True)
    except Exception as error:  # of the library, of torch, of the file system
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise GraphError(
            f"the model {name!r} cannot be loaded: {reason}",
            where="text=...",
            fix="Name the folder of a model, or one that sentence-transformers has in its cache.",
        ) from None


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
    """The blocks side by side: sparse if most of it is zero, or as asked."""
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
