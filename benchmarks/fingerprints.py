"""Digests of embeddings, to show that a change of structure changed no bit: run before and after, compare.

``python -m benchmarks.fingerprints [--data-root DIR]`` prints one line a method and preset: on digits,
and, shorter, on Photo and CS where their files are at hand. One thread, so that sums have one order.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from nodejepa import load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.methods import METHODS, make_method

_EPOCHS = {"digits": 12, "photo": 3, "cs": 2}


def digest(z: object) -> str:
    dense = z.toarray() if sp.issparse(z) else np.asarray(z)
    return hashlib.sha256(np.ascontiguousarray(dense).tobytes()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path)
    root = parser.parse_args().data_root
    torch.set_num_threads(1)
    for name, epochs in _EPOCHS.items():
        if not CATALOGUE[name].is_present(root):
            continue
        data = load_dataset(name, root)
        for entry in METHODS.values():
            for preset in entry.presets:
                changes = {"epochs": epochs} if entry.trained and entry.by_gradient else {}
                method = make_method(entry.name, preset=preset, dataset=name, seed=7, settings=changes)
                labels = {"labels": data.labels, "split": data.split(seed=42)} if entry.supervised else {}
                z = method.fit(data.graph, **labels).transform(data.graph)
                print(f"{name:8} {entry.name:16} {preset:9} {digest(z)}", flush=True)


if __name__ == "__main__":
    main()
