"""One writer a format. Floats are written with the fewest digits that read back to the same float32."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from nodejepa.files import atomic_path, write_text
from nodejepa.io.export_ids import ExportIds
from nodejepa.progress import progress_bar

Matrix: TypeAlias = npt.NDArray[np.float32]

_VALUES_AT_ONCE = 2**20


def write_projector(folder: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """The configuration comes last: without it TensorBoard shows nothing rather than half."""
    tensors, metadata, config = (
        folder / name for name in ("tensors.tsv", "metadata.tsv", "projector_config.pbtxt")
    )
    schema = pa.schema([(f"z{j}", pa.float32()) for j in range(z.shape[1])])
    _write_separated(tensors, schema, [], z, header=False, delimiter="\t")
    write_text(metadata, "".join(f"{line}\n" for line in ids.metadata()))
    write_text(
        config,
        "embeddings {\n"
        '  tensor_name: "nodejepa"\n'
        f"  tensor_shape: {z.shape[0]}\n"
        f"  tensor_shape: {z.shape[1]}\n"
        '  tensor_path: "tensors.tsv"\n'
        '  metadata_path: "metadata.tsv"\n'
        "}\n",
    )
    return [tensors, metadata, config]


def write_vectors(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """A list of fixed size a node: what vector stores take for a vector without being told."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])
    table = pa.table({"id": ids.column, "vector": vectors, **ids.more})
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True, use_dictionary=False)
    return [path]


def write_jsonl(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """An object a line."""
    beside = {name: column.to_pylist() for name, column in ids.more.items()}
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for start, block in _blocks(z):
            # Arrow's text of a finite float32 is a JSON number, and faster than Python's
            texts = pa.array(block.ravel()).cast(pa.string()).to_pylist()
            # "1" would be read as a whole number, and "-0" would lose its sign
            numbers = [text if "." in text or "e" in text else f"{text}.0" for text in texts]
            width = block.shape[1]
            for row in range(len(block)):
                name = json.dumps(ids.values[start + row])
                vector = ", ".join(numbers[row * width : (row + 1) * width])
                more = "".join(
                    f", {json.dumps(key)}: {json.dumps(v[start + row])}" for key, v in beside.items()
                )
                file.write(f'{{"id": {name}, "vector": [{vector}]{more}}}\n')
    return [path]


def write_csv(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """A header, then a line a node; text is quoted."""
    first = {"id": ids.column, **ids.more}
    named = [(name, column.type) for name, column in first.items()]
    schema = pa.schema([*named, *((f"z{j}", pa.float32()) for j in range(z.shape[1]))])
    _write_separated(path, schema, list(first.values()), z, header=True, delimiter=",")
    return [path]


def write_fvecs(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """Little-endian: an int32 with the dimension before each row of float32."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for _, block in _blocks(z):
            record = np.empty((len(block), block.shape[1] + 1), dtype="<f4")
            record[:, 1:] = block
            record.view("<i4")[:, 0] = block.shape[1]
            file.write(record.tobytes())
    return [path, _write_id_lines(path, ids)]


def write_npy(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """The array as it is."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, z, allow_pickle=False)
    return [path, _write_id_lines(path, ids)]


def _write_id_lines(path: Path, ids: ExportIds) -> Path:
    """``z.fvecs`` has its ids in ``z.fvecs.ids.jsonl``, a JSON value a line: any text fits."""
    beside = path.with_name(f"{path.name}.ids.jsonl")
    write_text(beside, "".join(f"{json.dumps(value)}\n" for value in ids.values))
    return beside


def _write_separated(
    path: Path, schema: pa.Schema, first: list[pa.Array], z: Matrix, *, header: bool, delimiter: str
) -> None:
    options = pyarrow.csv.WriteOptions(include_header=header, delimiter=delimiter)
    with (
        atomic_path(path) as temporary,
        pyarrow.csv.CSVWriter(temporary, schema, write_options=options) as file,
    ):
        for start, block in _blocks(z):
            columns = [column.slice(start, len(block)) for column in first]
            columns += [pa.array(column) for column in np.asfortranarray(block).T]
            file.write_table(pa.table(columns, schema=schema))


def _blocks(z: Matrix) -> Iterator[tuple[int, Matrix]]:
    """A few rows at a time with the number of the first, under a progress bar."""
    step = max(1, _VALUES_AT_ONCE // z.shape[1])
    with progress_bar("Writing", total=len(z)) as advance:
        for start in range(0, len(z), step):
            block = z[start : start + step]
            yield start, block
            advance(len(block))
