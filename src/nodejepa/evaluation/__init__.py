"""Scores of embeddings: the only part of the package that sees labels."""

from nodejepa.evaluation.finetune import FinetuneConfig, FinetuneResult, finetune
from nodejepa.evaluation.probe import ProbeResult, SplitScore, fewshot_probe, linear_probe

__all__ = [
    "FinetuneConfig",
    "FinetuneResult",
    "ProbeResult",
    "SplitScore",
    "fewshot_probe",
    "finetune",
    "linear_probe",
]
