"""Where tensors are."""

import torch

from nodejepa.errors import ConfigError


def pick_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is unknown", fix="Use auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device on this machine", fix="Use device cpu or auto.")
    return torch.device(name)
