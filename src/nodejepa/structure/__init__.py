"""Graph -> descriptors of its nodes and a partition of them, computed once a graph and kept on disk."""

from nodejepa.structure.descriptors import (
    DESCRIPTORS,
    descriptors,
    local_clustering,
    node_adjacency,
    pagerank,
)
from nodejepa.structure.laplacian import adjacency_coordinates, spectral_coordinates
from nodejepa.structure.partition import partition, recommended_parts

__all__ = [
    "DESCRIPTORS",
    "adjacency_coordinates",
    "descriptors",
    "local_clustering",
    "node_adjacency",
    "pagerank",
    "partition",
    "recommended_parts",
    "spectral_coordinates",
]
