"""What is known of the floors, as :data:`nodejepa.methods.METHODS` lists them."""

from nodejepa.methods.entry import Look, floor_entry
from nodejepa.methods.floors import RandomGCN, RawFeatures
from nodejepa.methods.hop_floors import SGC, SGC1, SGC3, EqualHops, Walk

FLOOR_ENTRIES = (
    floor_entry(
        "raw",
        "Raw features",
        "the node features themselves",
        "-",
        RawFeatures,
        Look("#C8C8C8", "x", "", ":"),
    ),
    floor_entry(
        "sgc",
        "Propagated (S^2 X)",
        "features propagated twice, S^2 X",
        "Wu et al. 2019",
        SGC,
        Look("#909090", "+", "||", ":"),
    ),
    floor_entry(
        "random-gcn",
        "Random GCN",
        "untrained 3 x 256 GCN encoder",
        "Kipf & Welling 2017",
        RandomGCN,
        Look("#606060", "1", "oo", ":"),
        seeded=True,
    ),
    floor_entry(
        "sgc-1",
        "Propagated (S X)",
        "features propagated once, S X",
        "Wu et al. 2019",
        SGC1,
        Look("#A8A8A8", "2", "|", ":"),
    ),
    floor_entry(
        "sgc-3",
        "Propagated (S^3 X)",
        "propagated three times, S^3 X",
        "Wu et al. 2019",
        SGC3,
        Look("#787878", "3", "|||", ":"),
    ),
    floor_entry(
        "equal-hops",
        "X with equal hops",
        "X, S X and S^2 X, equally loud",
        "-",
        EqualHops,
        Look("#B8B8B8", "4", "-", ":"),
    ),
    floor_entry(
        "walk",
        "X after the walk",
        "X walked over the graph with restart",
        "Gasteiger et al. 2019",
        Walk,
        Look("#989898", "d", "--", ":"),
    ),
)
