"""Scores of embeddings: the only part of the package that sees labels."""

from nodejepa.evaluation.finetune import FinetuneConfig, FinetuneResult, finetune
from nodejepa.evaluation.probe import fewshot_probe, linear_probe
from nodejepa.evaluation.probe_result import ProbeResult, SplitScore

__all__ = [
    "FinetuneConfig",
    "FinetuneResult",
    "ProbeResult",
    "SplitScore",
    "fewshot_probe",
    "finetune",
    "linear_probe",
]
