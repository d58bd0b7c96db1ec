"""What is hidden from the context encoder, and augmented views: functions of a graph and a generator."""

from nodejepa.masking.augment import drop_edges, drop_feature_columns, shuffle_rows
from nodejepa.masking.curriculum import Curriculum
from nodejepa.masking.khop import khop_mask
from nodejepa.masking.patches import Patches, patch_descriptors
from nodejepa.masking.pool import BallPool

__all__ = [
    "BallPool",
    "Curriculum",
    "Patches",
    "drop_edges",
    "drop_feature_columns",
    "khop_mask",
    "patch_descriptors",
    "shuffle_rows",
]
