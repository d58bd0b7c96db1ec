"""Row ``workers_epoch``: an epoch in parts by two processes of one thread against one such process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Row
from nodejepa.training.checkpoint import load_tensors

GRAPH = "synthetic-arxiv"
EPOCHS = 3
SETTINGS = {
    "epochs": EPOCHS,
    "parts": 16,
    "parts_per_step": 4,
    "units": 2,
    "predictor.descriptors": "degree",
    "masking.curriculum": "false",
}


def epoch_seconds(workers: int, out: Path) -> tuple[float, bytes]:
    """The shortest epoch behind the first, which also warms up, and the bytes of the weights."""
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
    command = [sys.executable, *torchrun, "-m", "nodejepa.worker", GRAPH, "--out", str(out)]
    command += ["--method=nodejepa", "--preset=paper", *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    tensors, facts = load_tensors(out / "model.safetensors")
    weights = b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))
    return min(record["seconds"] for record in facts["history"][1:]), weights


def run() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        one, weights = epoch_seconds(1, Path(folder) / "one")
        two, same = epoch_seconds(2, Path(folder) / "two")
    assert weights == same
    note = (
        f"one epoch of NodeJEPA on {GRAPH} in 16 METIS parts, 4 a step, 2 units: two processes against one, "
        "one thread each, ordered sums; the weights are the same to the bit"
    )
    return Row("workers_epoch", two, one, note)
