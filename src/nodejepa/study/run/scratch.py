"""Networks trained from random weights: methods that share a network share its score."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from torch import nn

from nodejepa.data import Dataset, Split
from nodejepa.evaluation.finetune import FinetuneConfig, Tuned, fresh_encoder, train_from_scratch
from nodejepa.files import parse_json, write_json
from nodejepa.methods import Estimator
from nodejepa.study.run.encoder_store import alone


def scratch_score(method: Estimator, dataset: Dataset, split: Split, seed: int, runs: Path) -> Tuned:
    """The score of the method's network from random weights, read from ``runs`` if it was trained before."""
    config = FinetuneConfig()
    key = json.dumps(asdict(config), sort_keys=True) + split.hash + network_hash(fresh_encoder(method, seed))
    name = f"scratch-{hashlib.sha256(key.encode()).hexdigest()[:16]}-seed{seed}"
    path = runs / dataset.name / f"{name}.json"
    with alone(runs / dataset.name / name):
        if path.exists():
            return Tuned(**parse_json(path.read_bytes()))
        score = train_from_scratch(method, dataset.graph, dataset.labels, split, config=config, seed=seed)
        write_json(path, asdict(score))
    return score


def network_hash(network: nn.Module) -> str:
    """Of everything that training depends on: the modules, their settings and every weight."""
    digest = hashlib.sha256()
    for name, module in network.named_modules():
        plain = (str, int, float, list, tuple)
        settings = {k: v for k, v in sorted(vars(module).items()) if isinstance(v, plain)}
        digest.update(f"{name} {type(module).__name__} {settings}".encode())
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
