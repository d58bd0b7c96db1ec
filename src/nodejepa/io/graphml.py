"""GraphML, read through NetworkX: the tables of edges and nodes that are in it.

XML can name other files and addresses, and a few bytes of it can stand for gigabytes: both need a document
type, which GraphML has no use for. A file with one is refused before NetworkX sees it.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from nodejepa.errors import DataError
from nodejepa.io.convert import optional_module
from nodejepa.io.files_in import byte_stream, reading
from nodejepa.io.tables import InputTable, frame_table
from nodejepa.progress import progress_bar


@dataclass(frozen=True)
class GraphFile:
    """A file that holds the whole graph: its edges, and its nodes with their attributes."""

    edges: InputTable
    nodes: InputTable
    directed: bool


def open_graphml(path: Path, compression: str | None, most: int | None) -> GraphFile:
    """The graph in a GraphML file."""
    networkx = optional_module("networkx", "networkx")
    with byte_stream(path, compression, most=most) as stream, reading(str(path)):
        content = stream.read()
    _refuse_document_types(content, str(path))
    with reading(str(path)), progress_bar("Reading GraphML"):
        graph = networkx.read_graphml(io.BytesIO(content))
    names, ends = list(graph.nodes), list(graph.edges(data=True))
    edges = {"source": [u for u, _, _ in ends], "target": [v for _, v, _ in ends]}
    return GraphFile(
        _table(edges, [attributes for _, _, attributes in ends], str(path)),
        _table({"id": names}, [attributes for _, attributes in graph.nodes(data=True)], str(path)),
        graph.is_directed(),
    )


def _table(known: dict[str, list[Any]], attributes: Sequence[dict[str, Any]], where: str) -> InputTable:
    found = dict.fromkeys(name for each in attributes for name in each)
    columns = {
        f"{name} (attribute)" if name in known else str(name): [each.get(name) for each in attributes]
        for name in found
    }
    table = frame_table(pa.table({**known, **columns}), "")
    return InputTable(where, table.names, True, table.source)


def _refuse_document_types(content: bytes, where: str) -> None:
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError(
            "the file declares a document type, which can stand for files, addresses or endless text",
            where=where,
            fix="Take the line <!DOCTYPE ...> out; GraphML needs none.",
        )

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    with reading(where, "The file is no well-formed XML."):
        parser.Parse(content, True)
