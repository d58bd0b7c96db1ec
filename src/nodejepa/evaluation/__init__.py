"""Scores of embeddings: the only part of the package that sees labels."""

from nodejepa.evaluation.finetune import FinetuneConfig, FinetuneResult, finetune
from nodejepa.evaluation.links import (
    LinkScores,
    LinkSplit,
    likely_links,
    score_links,
    score_pairs,
    split_links,
)
from nodejepa.evaluation.probe import ProbeResult, SplitScore, linear_probe

__all__ = [
    "FinetuneConfig",
    "FinetuneResult",
    "LinkScores",
    "LinkSplit",
    "ProbeResult",
    "SplitScore",
    "finetune",
    "likely_links",
    "linear_probe",
    "score_links",
    "score_pairs",
    "split_links",
]
