"""Scores of embeddings: the only part of the package that sees labels."""

from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.evaluation.finetune import FinetuneConfig, FinetuneResult, finetune
from nodejepa.evaluation.probe import fewshot_probe, linear_probe
from nodejepa.evaluation.probe_result import ProbeResult, SplitScore

__all__ = [
    "Diagnostics",
    "FinetuneConfig",
    "FinetuneResult",
    "ProbeResult",
    "SplitScore",
    "diagnose",
    "fewshot_probe",
    "finetune",
    "linear_probe",
]
