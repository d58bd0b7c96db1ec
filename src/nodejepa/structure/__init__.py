"""Graph -> descriptors of its nodes and a partition of them, computed once a graph and kept on disk.

======================  ==============================================================
file                    what it computes
======================  ==============================================================
``pagerank``            PageRank by power iteration
``clustering``          local clustering coefficients
``laplacian``           spectral coordinates of the largest component; coordinates of the adjacency
``descriptors``         all of these as the columns of one network input
``partition``           METIS parts, none of them empty
``coarse``              the same for graphs that METIS has not the memory for
======================  ==============================================================
"""

from nodejepa.structure.clustering import local_clustering
from nodejepa.structure.descriptors import DESCRIPTORS, descriptors, node_adjacency
from nodejepa.structure.laplacian import adjacency_coordinates, spectral_coordinates
from nodejepa.structure.pagerank import pagerank
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
