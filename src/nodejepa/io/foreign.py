"""Files that are not read, by their first bytes or their endings, and what to do with them."""

from nodejepa.errors import DataError

_TABLES = "Give parquet, CSV or TSV in UTF-8 (also .gz, .bz2, .zst), npz, npy, MatrixMarket or GraphML."
_IN_PYTHON = "in Python read_graph takes the frame that pandas.{}(...) makes of it."
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (or a spreadsheet)",
    b"\xfd7zXZ": "an xz archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"ARROW1": "an Arrow IPC file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"\x80\x04": "a Python pickle",
}
_SPREADSHEETS = {".xlsx", ".xls", ".ods", ".xlsm"}
_JSON = {".json", ".jsonl", ".ndjson"}


def refuse_foreign(start: bytes, endings: list[str], where: str) -> None:
    """Refuse what is no table that we read; formats that people do have come with a way to go on."""
    begins = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    kind = next((name for magic, name in _FOREIGN.items() if start.startswith(magic)), None)
    fix = _TABLES
    if {".parquet", ".pq", ".npy", ".mtx"} & set(endings):
        kind = kind or f"no {endings[-1]} file inside"
    elif start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) and _SPREADSHEETS & set(endings):
        kind, fix = "a spreadsheet", f"Save each sheet as CSV; {_IN_PYTHON.format('read_excel')}"
    elif kind is None and (_JSON & set(endings) or begins.startswith((b'{"', b"[{", b"[["))):
        kind, fix = "JSON", f"Write it as CSV or parquet; {_IN_PYTHON.format('read_json')} Of node-link data "
        fix += "NetworkX makes a graph: from_networkx(networkx.node_link_graph(...))."
    elif kind is None and (begins.startswith((b"<?xml", b"<gexf")) or {".gexf", ".gml"} & set(endings)):
        kind = "XML or GML"
        fix = "In Python: from_networkx(networkx.read_gexf(path)), read_gml likewise; or write GraphML."
    if kind is not None:
        raise DataError(f"the file is {kind}", where=where, fix=fix)
