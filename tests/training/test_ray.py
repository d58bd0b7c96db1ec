"""Ray Train calls the worker of torchrun: the model of one process, also after one was killed."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from types import ModuleType

import psutil
import pytest
import torch
from typer.testing import CliRunner

from nodejepa.cli import app
from nodejepa.data import load_dataset
from nodejepa.errors import TrainingError
from nodejepa.methods import make_estimator
from nodejepa.training.checkpoint import load_tensors

SETTINGS = {
    "encoder.hidden": 16,
    "encoder.layers": 2,
    "training.epochs": 20,
    "parts": 16,
    "parts_per_step": 4,
    "micro_batches": 4,
}
COMMAND = [
    "pretrain",
    "digits",
    "--method=nodejepa",
    "--preset=paper",
    "--device=cpu",
    "--ray",
    "--workers=2",
]
COMMAND += [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]


def train_workers(driver):
    """The processes of Ray that train."""
    found = []
    for child in psutil.Process(driver.pid).children(recursive=True):
        try:
            if "RayTrainWorker" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue  # it has just ended
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)  # Ray alone starts half a dozen processes
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nodejepa[ray]'")
def test_two_workers_of_ray_train_the_model_of_one_process_also_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = make_estimator("nodejepa", preset="paper", settings=SETTINGS, device="cpu")
        alone.fit(load_dataset("digits").graph)
    finally:
        torch.set_num_threads(threads)
    out, log = tmp_path / "run", tmp_path / "log"
    command = [sys.executable, "-m", "nodejepa", *COMMAND, "--checkpoint-steps=1", "--out", str(out)]
    # Ray's workers are nice to all others (15) and must have started within a minute, which is short on a
    # busy machine
    patient = {"RAY_worker_niceness": "0", "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600"}
    killed = None
    with log.open("w") as said:
        driver = subprocess.Popen(command, env=os.environ | patient, stdout=said, stderr=said)
        try:
            while driver.poll() is None:
                if killed is None and (out / "checkpoint.safetensors").exists():
                    killed = train_workers(driver)[-1]
                    killed.kill()
                time.sleep(0.02)
        finally:
            for child in psutil.Process(driver.pid).children(recursive=True) if driver.poll() is None else []:
                child.kill()
            driver.kill()
            driver.wait()
    assert driver.returncode == 0, log.read_text()[-3000:]
    assert killed is not None
    found = load_tensors(out / "model.safetensors")[0]
    for name, tensor in alone.encoder_.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-4)  # rounding of 80 steps


@pytest.mark.slow
def test_ray_that_is_missing_or_gives_up_is_an_error_of_training(tmp_path, monkeypatch):
    """Stands in for Ray, whose restarts would take minutes."""
    train, torch_train = ModuleType("ray.train"), ModuleType("ray.train.torch")
    asked = {}

    class TrainingFailedError(Exception):
        pass

    class TorchTrainer:
        def __init__(self, _loop, **settings):
            asked.update(settings)

        def fit(self):
            raise TrainingFailedError

    for name in ("FailureConfig", "RunConfig", "ScalingConfig"):
        setattr(train, name, dict)
    train.TrainingFailedError = TrainingFailedError
    torch_train.TorchConfig, torch_train.TorchTrainer = dict, TorchTrainer
    for modules, message in (
        ({"ray": None, "ray.train": None}, "Ray Train is not installed"),
        (
            {"ray": ModuleType("ray"), "ray.train": train, "ray.train.torch": torch_train},
            "one of 2 workers failed",
        ),
    ):
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        done = CliRunner().invoke(app, [*COMMAND, "--out", str(tmp_path / "run")])
        assert isinstance(done.exception, TrainingError)
        assert message in str(done.exception)
    assert asked["scaling_config"]["num_workers"] == 2
    assert asked["run_config"]["storage_path"] == str(tmp_path / "run" / "ray")
