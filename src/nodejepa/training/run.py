"""A run folder: configuration, history, checkpoint, final model; owned by one process at a time.

config.json              what was asked for: method, settings, seed, graph, versions
history.jsonl            one line per epoch, written as it ends
checkpoint.safetensors   the newest state training can go on from
model.safetensors        the finished model

Both safetensors files have their facts as JSON in the header, and a digest over all. Nothing in them is ever
executed. Files are written beside their final name and moved into place, so a kill leaves the old or the new
one, never half of one; the digest finds what a disk did to it later.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import safetensors.torch
import torch
from torch import Tensor

from nodejepa.config import dotted, of_type, read_json
from nodejepa.errors import CheckpointError, ConfigError, NodeJEPAError, TrainingError
from nodejepa.files import atomic_path, lock_file, parse_json, remove_leftovers, write_json, write_text

_FORMAT = "nodejepa-1"
_TEXTS = ("config.json", "history.jsonl")
_IDENTITY = ("method", "config", "seed", "graph", "max_columns")  # what makes two runs the same run

History = list[dict[str, Any]]
NUMBERS = {"loss", "lr", "seconds", "peak_memory_mb", "mean_std", "effective_rank", "gradient_norm"}


class Checkpoint(NamedTuple):
    """Where training goes on: weights and optimiser, epochs done."""

    tensors: dict[str, Tensor]
    history: History
    where: str


class Run:
    """Reads and writes the files of one run folder."""

    def __init__(self, folder: str | Path) -> None:
        # the empty path would mean the current folder
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise ConfigError(f"{folder!r} is no folder", fix='Give its path; "." is the current one.')
        self.folder = Path(folder)
        self.checkpoint = self.folder / "checkpoint.safetensors"
        self.model = self.folder / "model.safetensors"
        self._identity: dict[str, Any] = {}
        self._config_of_today: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict

    @contextmanager
    def owned(self, lock_name: str = ".lock") -> Iterator[Self]:
        """Hold the folder; a second process is refused. The kernel lets go of it when the owner dies.

        A caller that does more with a folder than train holds a lock of another name around it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = lock_file(self.folder / lock_name, wait=False)
        except (OSError, NodeJEPAError) as error:
            why = error.strerror if isinstance(error, OSError) else error.what
            raise TrainingError(
                f"cannot write to the run folder: {why}",
                where=str(self.folder),
                fix="Check the path, its permissions and the free space, or choose another folder.",
            ) from None
        if lock is None:
            raise TrainingError(
                "another process is using the run folder",
                where=str(self.folder),
                fix="Wait for it to end or choose another folder.",
            )
        with lock:
            yield self

    def start(
        self,
        facts: Mapping[str, Any],
        *,
        resume: bool,
        config_of_today: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """Write config.json, or check that a run begun before was the same.

        Settings that an older version wrote are compared as ``config_of_today`` reads them.
        """
        for path in (self.checkpoint, self.model, *(self.folder / name for name in _TEXTS)):
            remove_leftovers(path)
        self._identity = {key: facts.get(key) for key in _IDENTITY}
        self._config_of_today = config_of_today
        if self.refuse_begun(resume=resume):
            before = self.read_config()
            self._compare(before, self.folder)
            threads = before.get("threads")
            if threads != torch.get_num_threads():
                warnings.warn(
                    f"the run was begun with {threads} threads and goes on with {torch.get_num_threads()}: "
                    "sums are taken in another order, so its last bits differ from an uninterrupted run's",
                    stacklevel=2,
                )
        else:
            write_json(self.folder / "config.json", {**facts, "threads": torch.get_num_threads()})
            (self.folder / "history.jsonl").unlink(missing_ok=True)

    def refuse_begun(self, *, resume: bool) -> bool:
        """Whether there is a run already; unless it is to be resumed, that is an error."""
        begun = self.checkpoint.exists() or self.model.exists()
        if begun and not resume:
            raise TrainingError(
                "the folder already holds a run",
                where=str(self.folder),
                fix="Resume it (resume=True), delete the folder or choose another one.",
            )
        return begun

    def read_config(self) -> dict[str, Any]:
        """config.json of the run."""
        path = self.folder / "config.json"
        if not path.exists():
            raise CheckpointError(
                "config.json is missing", where=str(self.folder), fix="Train again in an empty folder."
            )
        return read_json(path, dict[str, Any], _damaged_config)

    def _compare(self, before: Mapping[str, Any], where: Path) -> None:
        for key, now in self._identity.items():
            then = before.get(key)
            if (
                key == "config"
                and isinstance(then, Mapping)
                and before.get("method") == self._identity["method"]
            ):
                try:
                    then = self._config_of_today(then)
                except ConfigError as error:
                    raise CheckpointError(
                        f"the run in the folder has settings of another version: {error.what}",
                        where=str(where),
                        fix="Go on with the version that began it, or choose another folder.",
                    ) from None
            if then != now:
                raise CheckpointError(
                    f"the run in the folder has another {key}: {_difference(then, now)}",
                    where=str(where),
                    fix="Resume with the same settings and graph, or choose another folder.",
                )

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one epoch to history.jsonl."""
        with (self.folder / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def save_checkpoint(self, tensors: Mapping[str, Tensor], history: History) -> None:
        """Everything needed to go on, in one atomic file."""
        self.require_there()
        save_tensors(self.checkpoint, tensors, {"kind": "checkpoint", **self._identity, "history": history})

    def require_there(self) -> None:
        """Refuse to go on in a folder that was deleted or emptied under the run."""
        if self._identity and not (self.folder / "config.json").exists():
            raise TrainingError(
                "the run folder was deleted or emptied during the run",
                where=str(self.folder),
                fix="Train again, and leave the folder alone.",
            )

    def load_checkpoint(self) -> Checkpoint:
        """What :meth:`save_checkpoint` wrote. history.jsonl is cut back to it: later epochs run again."""
        tensors, facts = load_tensors(self.checkpoint)
        if facts.get("kind") != "checkpoint":
            raise damaged("the file is no checkpoint", str(self.checkpoint))
        self._compare(facts, self.checkpoint)
        history = check_history(facts.get("history"), self.checkpoint, "loss")
        if facts.get("step"):
            raise damaged("an older version wrote the checkpoint within an epoch", str(self.checkpoint))
        write_text(self.folder / "history.jsonl", "".join(json.dumps(r) + "\n" for r in history))
        return Checkpoint(tensors, history, str(self.checkpoint))


def _damaged_config(path: Path, reason: str) -> CheckpointError:
    fix = "Train again in an empty folder."
    return CheckpointError(f"config.json is damaged: {reason}", where=str(path), fix=fix)


def check_history(history: Any, where: Path | str, *more: str) -> History:
    """The epochs of a run as a file tells them, with ``more`` numbers each; else an error names the file."""
    try:
        epochs = of_type(list[dict[str, int | float | str | None]], history, "history")
        for epoch in epochs:
            for name in ("epoch", "seconds", "peak_memory_mb", *more, *(NUMBERS & epoch.keys())):
                if not isinstance(epoch.get(name), int | float):
                    raise ValueError(f"{name} is {epoch.get(name)!r}, and must be a number")
    except ValueError as error:
        raise damaged(f"the history in the file is none of a run: {error}", str(where)) from None
    return epochs


def _difference(before: Any, now: Any) -> str:
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return f"{before!r} then, {now!r} now"
    then, settings = dotted(before), dotted(now)
    names = [name for name in then | settings if then.get(name, ...) != settings.get(name, ...)]
    told = ((name, then.get(name, "nothing"), settings.get(name, "nothing")) for name in names[:3])
    return "; ".join(f"{name}: {one!r} then, {other!r} now" for name, one, other in told)


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
        facts = of_type(dict[str, Any], parse_json(header["facts"]))
    except (KeyError, ValueError) as error:
        raise damaged(f"the facts in the file cannot be read: {error}", where) from None
    return tensors, facts


def damaged(what: str, where: str) -> CheckpointError:
    """An error of a file that nothing can be done with."""
    return CheckpointError(what, where=where, fix="Delete it and train again, or restore it from a copy.")


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module whose names and shapes must be the same."""
    refuse_others(module, tensors, where)
    module.load_state_dict(dict(tensors))


def refuse_others(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors whose names, shapes or types are not those of a module, also of one without memory."""
    wanted = {name: (tuple(t.shape), str(t.dtype)) for name, t in module.state_dict().items()}
    found = {name: (tuple(t.shape), str(t.dtype)) for name, t in tensors.items()}
    if wanted != found:
        differing = sorted((name, *kind) for name, kind in set(wanted.items()) ^ set(found.items()))[:3]
        raise CheckpointError(
            f"the network in the file is another one: {differing}",
            where=where,
            fix="Load it with the method and settings that saved it.",
        )


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    sha = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        sha.update(tensor.flatten().view(torch.uint8).numpy().data)
    return sha.hexdigest()
