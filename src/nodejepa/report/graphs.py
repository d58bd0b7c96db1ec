"""Which named graph was a run trained on? Found by its hash, so that nobody has to say it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE


def find_dataset(
    graph: Mapping[str, Any] | None, name: str | None = None, data_root: Path | None = None
) -> Dataset | None:
    """The dataset called ``name``; else the one at hand whose graph is described by ``graph``; else None.

    Args:
        graph: counts and hash, as in a run's config.json.
        name: a name of the catalogue; then nothing is searched.
        data_root: folder of the data files. Nothing is downloaded for a search.
    """
    if name is not None:
        return load_dataset(name, data_root)
    if not graph:
        return None
    counts = tuple(graph.get(what) for what in ("nodes", "edges", "features"))
    for entry in CATALOGUE.values():
        if (entry.nodes, entry.edges, entry.features) == counts and entry.is_present(data_root):
            dataset = load_dataset(entry.name, data_root)
            if dataset.graph.content_hash == graph.get("hash"):
                return dataset
    return None
