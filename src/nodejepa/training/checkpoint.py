"""Checkpoints and models on disk: one safetensors file, its facts as JSON in the header, a digest over all.

Nothing in such a file is ever executed. A file is written beside its final name and moved into place, so a
kill leaves the old or the new one, never half of one; the digest finds what a disk did to it later.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from nodejepa.errors import CheckpointError
from nodejepa.files import atomic_path, parse_json

_FORMAT = "nodejepa-1"
History = list[dict[str, Any]]


class Checkpoint(NamedTuple):
    """Where training goes on: weights and optimiser, epochs done, and what was done of the one after."""

    tensors: dict[str, Tensor]
    history: History
    step: int  # of the epoch that was interrupted
    sums: Mapping[str, float]  # of its losses so far
    where: str


def save_tensors(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write named tensors and JSON-able facts as one file, atomically."""
    cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(dict(facts), allow_nan=False)
    header = {"format": _FORMAT, "facts": text, "digest": _digest(cpu, text)}
    with atomic_path(path) as temporary:
        temporary.write_bytes(safetensors.torch.save(cpu, metadata=header))


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; anything else ends in a :class:`CheckpointError`."""
    where = str(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except FileNotFoundError:
        raise CheckpointError(
            "there is no such file", where=where, fix="Give the folder of a run that has ended."
        ) from None
    except (safetensors.SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise damaged(f"the file is damaged or not in safetensors format: {error}", where) from None
    if header.get("format") != _FORMAT:
        raise CheckpointError(
            "the file was not written by nodejepa", where=where, fix="Give a folder that nodejepa wrote."
        )
    if header.get("digest") != _digest(tensors, header.get("facts", "")):
        raise damaged("the file is damaged: its digest does not match", where)
    try:
        facts = parse_json(header["facts"])
        if not isinstance(facts, dict):
            raise ValueError("they are no object")
    except (KeyError, ValueError) as error:
        raise damaged(f"the facts in the file cannot be read: {error}", where) from None
    return tensors, facts


def damaged(what: str, where: str) -> CheckpointError:
    """An error of a file that nothing can be done with."""
    return CheckpointError(what, where=where, fix="Delete it and train again, or restore it from a copy.")


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module whose names and shapes must be the same."""
    wanted = {name: (tuple(t.shape), str(t.dtype)) for name, t in module.state_dict().items()}
    found = {name: (tuple(t.shape), str(t.dtype)) for name, t in tensors.items()}
    if wanted != found:
        differing = sorted((name, *kind) for name, kind in set(wanted.items()) ^ set(found.items()))[:3]
        raise CheckpointError(
            f"the network in the file is another one: {differing}",
            where=where,
            fix="Load it with the method and settings that saved it.",
        )
    module.load_state_dict(dict(tensors))


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    sha = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        sha.update(tensor.flatten().view(torch.uint8).numpy().data)
    return sha.hexdigest()
