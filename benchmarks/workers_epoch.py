"""Row ``workers_epoch``: an epoch in parts by two processes of one thread against one such process.

Two workers need two idle cores. The processor seconds in the note hardly depend on what else the machine
does: they tell work that both of them do from time that they wait.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.timing import Row
from nodejepa.training.run import load_tensors

GRAPH = "synthetic-arxiv"
EPOCHS = 6
SETTINGS = {
    "epochs": EPOCHS,
    "parts": 16,
    "parts_per_step": 4,
    "predictor.descriptors": "degree",
    "masking.curriculum_epochs": "0",
}


def epoch_seconds(workers: int, out: Path) -> tuple[float, list[float]]:
    """Of an epoch: the shortest one's seconds, and each worker's mean processor seconds.

    The first epoch warms up, and after the last one the leader looks at the embeddings: neither counts.
    """
    settings = SETTINGS | {"micro_batches": workers}
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
    command = [sys.executable, *torchrun, "-m", "nodejepa.worker", GRAPH, "--out", str(out)]
    command += ["--method=nodejepa", "--preset=paper", *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process, history = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL), out / "history.jsonl"
    ended: list[
        dict[int, float]
    ] = []  # for every epoch that has ended: what its workers took since they began
    while process.poll() is None:
        if history.exists() and len(history.read_text().splitlines()) > len(ended):
            ended.append(_processor_seconds(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    first, last = ended[0], ended[EPOCHS - 2]
    processor = [(last[pid] - first[pid]) / (EPOCHS - 2) for pid in first]
    facts = load_tensors(out / "model.safetensors")[1]
    return min(record["seconds"] for record in facts["history"][1:-1]), processor


def _processor_seconds(torchrun: int) -> dict[int, float]:
    workers = [c for c in psutil.Process(torchrun).children() if "nodejepa.worker" in c.cmdline()]
    return {worker.pid: sum(worker.cpu_times()[:2]) for worker in workers}  # user and system


def run() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        one, alone = epoch_seconds(1, Path(folder) / "one")
        two, shared = epoch_seconds(2, Path(folder) / "two")
    note = (
        f"one epoch of NodeJEPA on {GRAPH} in 16 METIS parts, 4 a step: two processes, a micro-batch each, "
        "against one with all of the step, one thread each; processor seconds: "
        f"{alone[0]:.1f} by one, {' and '.join(f'{taken:.1f}' for taken in shared)} by two"
    )
    return Row("workers_epoch", two, one, note)
