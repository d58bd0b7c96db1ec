"""Settings: frozen dataclasses beside the classes they configure, changed by dotted names, never guessed.

``override(config, {"masking.hops": 2})`` returns a changed copy. A name may be shortened to its last part
where only one setting is called so (``epochs`` for ``training.epochs``). Unknown names are refused, with the
nearest known one suggested; text is parsed by the type of the field, so ``2e-4`` is a number.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from nodejepa.errors import ConfigError, did_you_mean

C = TypeVar("C")

DEFAULT_METHOD = "linear-jepa"  # wherever none is named
# what scikit-learn, PyTorch and other libraries call what has another name here
_ELSEWHERE = {
    "random_state": "seed",
    "overrides": "settings",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
    "max_iter": "epochs",
    "learning_rate": "lr",
    "features": "columns",
    "label": "labels",
    "units": "micro_batches",  # names until version 0.2
    "turned": "rotated",
}
_WIDTHS = ("dim", "embedding_dim", "n_components", "out_dim", "output_dim", "dimensions")
_WIDTH_SETTINGS = ("dim", "encoder.out_dim", "encoder.hidden", "hidden")
_MOST = 1000


def flatten(config: Any) -> dict[str, Any]:
    """All settings by dotted name, in order of declaration."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            flat |= {f"{field.name}.{name}": leaf for name, leaf in flatten(value).items()}
        else:
            flat[field.name] = value
    return flat


def to_dict(config: Any) -> dict[str, Any]:
    """Nested plain data, ready for JSON."""
    nested: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return nested


def from_dict(kind: type[C], values: Mapping[str, Any]) -> C:
    """The config written by :func:`to_dict`; missing settings take defaults, unknown ones are refused."""
    return override(kind(), dotted(values))


def override(config: C, changes: Mapping[str, Any]) -> C:
    """A copy of ``config`` with the named settings changed; its checks see all changes at once."""
    if not isinstance(changes, Mapping) or not all(isinstance(name, str) for name in changes):
        raise ConfigError(f"settings are {changes!r}", fix='Give names and values: settings={"dim": 64}.')
    known = list(flatten(config))
    changed: C = _replace(config, {_resolve(known, name): value for name, value in changes.items()})
    return changed


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """``["masking.hops=2"]`` as ``{"masking.hops": "2"}``."""
    pairs = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{text!r} is not of the form name=value", fix="For example masking.hops=2.")
        pairs[name.strip()] = value.strip()
    return pairs


def dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested plain data by dotted name; the inverse of what :func:`to_dict` does to :func:`flatten`."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def _resolve(known: list[str], name: str) -> str:
    if name in known:
        return name
    short = [full for full in known if full.rsplit(".", 1)[-1] == name]
    if len(short) == 1:
        return short[0]
    if short:
        raise ConfigError(f"setting {name!r} could be {' or '.join(short)}", fix="Give the full name.")
    if name in _WIDTHS:
        width = next((setting for setting in _WIDTH_SETTINGS if setting in known), None)
        if width is not None:
            return width
    leaves = [full.rsplit(".", 1)[-1] for full in known]
    hint = right_name(name, [*known, "seed"]) or did_you_mean(name, [*known, *leaves], 0.5)
    raise ConfigError(f"setting {name!r} is unknown", fix=f"{hint}Known settings: {', '.join(known)}.")


def right_name(name: str, known: Iterable[str]) -> str:
    """``"It is called seed here. "`` for what other libraries call otherwise, if that is known; else nothing.

    >>> right_name("random_state", ["seed", "device"])
    'It is called seed here. '
    """
    leaves = [full.rsplit(".", 1)[-1] for full in known]
    ours = _ELSEWHERE.get(name.rsplit(".", 1)[-1])
    return f"It is called {ours} here. " if ours in leaves else ""


def refuse_unknown(given: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Refuse arguments that ``what`` does not have, with the name or the place they have here."""
    names = [name for name in known if name != "self"]
    for name, value in given.items():
        hint = right_name(name, names) or did_you_mean(name, names)
        if not hint and "settings" in names:
            hint = f'Settings of the method go into settings={{"{name}": {value!r}}}. '
        raise ConfigError(
            f"{what} has no argument {name!r}", where=what, fix=f"{hint}There are: {', '.join(names)}."
        )


def _replace(config: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        name, old = prefix + field.name, getattr(config, field.name)
        if name in changes:
            changed[field.name] = changes[name]
        elif dataclasses.is_dataclass(old) and any(key.startswith(name + ".") for key in changes):
            changed[field.name] = _replace(old, changes, name + ".")
    return dataclasses.replace(config, **changed)


def parse_seeds(text: str) -> list[int]:
    """The seeds a text names, in its order.

    >>> parse_seeds("42-44,7")
    [42, 43, 44, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10})\s*)?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < first + _MOST - len(seeds):
            _refuse(text, f"{part.strip()!r} is no seed and no range of at most {_MOST} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        _refuse(text, "a seed is named twice")
    return seeds


def _refuse(text: str, why: str) -> NoReturn:
    raise ConfigError(why, where=f"seeds {text}", fix='Write "42-46", "1,2,5" or a mixture of both.')
