"""What a synthetic graph shall look like, checked, and written as text by users."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from nodejepa.errors import ConfigError, nearest

_WHERE = "synthetic graph"


@dataclass(frozen=True)
class SyntheticSpec:
    """What to generate; the same spec gives the same bits.

    Args:
        nodes: how many nodes, in random order (not sorted by class).
        edges: stored edges, exactly: twice the undirected ones, so an even number.
        features: columns of dense float32 features.
        classes: the r-th has a size in proportion to 1 / sqrt(r), none is empty.
        homophily: chance of an edge to stay within its class. Repeated edges are dropped, which costs small
            dense classes a little of it.
        degree_exponent: of the power law of degrees, above 2; smaller means heavier hubs.
        max_degree_share: the largest degree aimed at, as a share of all nodes; dropped repeats make it less.
        feature_noise: standard deviation of the noise; class centres have 1 in every column.
        seed: of everything random here.
    """

    nodes: int = 10_000
    edges: int = 100_000
    features: int = 64
    classes: int = 8
    homophily: float = 0.7
    degree_exponent: float = 2.4
    max_degree_share: float = 0.1
    feature_noise: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int if field.type == "int" else (int, float)) or isinstance(value, bool):
                raise ConfigError(f"{field.name} is {value!r}, no {field.type}", where=_WHERE)
        possible = self.nodes * (self.nodes - 1)
        checks = (
            (2 <= self.nodes <= 2**31 - 2, "nodes", "2 to 2,147,483,646"),
            (self.edges >= 0 and self.edges % 2 == 0, "edges", "even: both directions of an edge are stored"),
            (2 * self.edges <= possible, "edges", f"at most half of the {possible} possible ones"),
            (self.features >= 1, "features", "at least 1"),
            (1 <= self.classes <= self.nodes, "classes", "1 to the number of nodes"),
            (0 <= self.homophily <= 1, "homophily", "0 to 1"),
            (self.degree_exponent > 2, "degree_exponent", "above 2"),
            (0 < self.max_degree_share <= 1, "max_degree_share", "above 0, at most 1"),
            (0 <= self.feature_noise < 1e6, "feature_noise", "0 to 1e6"),
            (self.seed >= 0, "seed", "0 or more"),
        )
        for fine, key, allowed in checks:
            if not fine:
                raise ConfigError(
                    f"{key} is {getattr(self, key)}", where=_WHERE, fix=f"It must be {allowed}."
                )

    def override(self, text: str) -> SyntheticSpec:
        """This spec with changes written as ``"nodes=1000,edges=20000"``.

        >>> SyntheticSpec().override("nodes=500,edges=2000").nodes
        500
        """
        kinds = {field.name: field.type for field in dataclasses.fields(self)}
        changes: dict[str, int | float] = {}
        for item in text.split(","):
            key, _, value = (piece.strip() for piece in item.partition("="))
            if key not in kinds or key in changes:
                near = nearest(key, kinds)
                hint = f"Did you mean {near!r}? " if near and key not in kinds else ""
                raise ConfigError(
                    f"{key!r} is {'given twice' if key in changes else 'no setting'}",
                    where=_WHERE,
                    fix=f"{hint}Settings are {', '.join(kinds)}; write them as nodes=1000,edges=20000.",
                )
            try:
                changes[key] = int(value) if kinds[key] == "int" else float(value)
            except ValueError:
                raise ConfigError(f"{key}={value!r} is not of type {kinds[key]}", where=_WHERE) from None
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


# tuned to ogbn-arxiv: mean degree 13.7, median 6, largest 13,161, homophily 0.65
ARXIV_LIKE = SyntheticSpec(
    nodes=169_343,
    edges=2_315_598,
    features=128,
    classes=40,
    homophily=0.69,
    degree_exponent=2.25,
    max_degree_share=0.175,
    feature_noise=5.0,
)
