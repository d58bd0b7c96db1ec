"""Settings: frozen dataclasses beside the classes they configure, changed by dotted names, never guessed.

``override(config, {"masking.hops": 2})`` returns a changed copy. A name may be shortened to its last part
where only one setting is called so (``epochs`` for ``training.epochs``). Unknown names are refused, with the
nearest known one suggested; text is parsed by the type of the field, so ``2e-4`` is a number.

A rule is part of a type, as in ``hidden: PositiveInt`` or ``power: Annotated[float, Ge(0), Le(4)]``, of
settings as of what is read from JSON. pydantic checks it, and is loaded when there is something to check; its
refusals are translated into the package's errors here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from nodejepa.errors import ConfigError, NodeJEPAError, did_you_mean
from nodejepa.files import json_digest, parse_json, write_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

C = TypeVar("C")
T = TypeVar("T")

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


# ---------------------------------------------------------------- rules of types


PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
Width = Annotated[int, Ge(1), Le(1 << 16)]  # columns
Depth = Annotated[int, Ge(1), Le(1000)]  # layers, heads, coordinates
Hops = Annotated[int, Ge(0), Le(1000)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
ShareBelowOne = Annotated[float, Ge(0), Lt(1)]
OpenShare = Annotated[float, Gt(0), Lt(1)]

_BOUNDS = {  # by pydantic's names
    "ge": "at least {}",
    "gt": "above {}",
    "le": "at most {}",
    "lt": "below {}",
    "multiple_of": "a multiple of {}",
    "min_length": "a list of {} or more",
    "max_length": "a list of at most {}",
}
_KINDS = {  # by the beginnings of pydantic's names of errors
    "bool": "true or false",
    "int": "a whole number",
    "float": "a finite number",
    "finite": "a finite number",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a table of names and values",
    "dataclass": "a table of names and values",
    "literal": "{expected}",
    "is": "of type {class}",
}


class Settings:
    """Base of a config class, a frozen dataclass: its fields keep the rules of their types.

    Text, as it comes from a command line, is parsed by the type of the field.
    """

    section: ClassVar[str] = ""  # of all settings of a method, with its dot: messages name it

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, hint in _field_types(kind).items():
            value = setting_of_type(hint, getattr(self, name), self.section + name)
            object.__setattr__(self, name, value)


class Exact:
    """Base of a dataclass that is read from JSON: names that it does not have are refused."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


def require(condition: bool, name: str, value: Any, rule: str) -> None:
    """Refuse ``value`` unless ``condition`` holds: for rules over several settings, in ``__post_init__``."""
    if not condition:
        raise ConfigError(f"{name} is {value!r}", fix=f"It must be {rule}.")


def setting_of_type(hint: Any, value: Any, name: str) -> Any:
    """``value``, parsed if it is text, as the type of the setting ``name`` wants it."""
    from pydantic import ValidationError

    given = value
    if isinstance(value, str) and value == "none" and types.NoneType in get_args(hint):
        value = None
    elif isinstance(value, str) and get_origin(hint) is tuple:
        value = [part.strip() for part in value.split(",") if part.strip() not in ("", "none")]
    try:
        # strict: true and false are no numbers
        return _adapter(hint).validate_python(value, strict=isinstance(value, bool))
    except ValidationError as error:
        rule = _rule(error)
        whole = bounds(hint) if rule in bounds(hint) else rule  # also the bounds that were kept
        raise ConfigError(f"{name} is {given!r}", fix=f"It must be {whole}.") from None


def of_type(kind: type[T], content: Any, *where: str) -> T:
    """Plain values, as JSON has them, as a value of ``kind``; a :class:`ValueError` names what is wrong.

    ``where`` is the name of the value, where it is a part of a file.
    """
    from pydantic import ValidationError
    from pydantic_core import to_json

    adapter: TypeAdapter[T] = _adapter(kind, given_whole=False)  # type: ignore[arg-type]
    try:
        return adapter.validate_json(to_json(content, inf_nan_mode="null"), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, (*where, *first["loc"]))) or "it"
        if first["type"] == "missing":
            raise ValueError(f"{name} is missing") from None
        if first["type"] == "unexpected_keyword_argument":
            known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
            hint = right_name(name, known) or did_you_mean(name, known)
            raise ValueError(f"{name!r} is unknown. {hint}Known are {', '.join(known)}") from None
        raise ValueError(f"{name} is {first['input']!r:.80}, and must be {_rule(error)}") from None


def read_json(path: Path, kind: type[T], damaged: Callable[[Path, str], NodeJEPAError]) -> T:
    """What a JSON file says, of type ``kind``; anything else ends in the error ``damaged(path, reason)``."""
    try:
        return of_type(kind, parse_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from None


def read_document(
    path: Path,
    kind: type[T],
    name: str,
    versions: Collection[int],
    damaged: Callable[[Path, str], NodeJEPAError],
) -> T:
    """What :func:`write_document` wrote: it must say so itself, and have its digest."""
    content = read_json(path, dict[str, Any], damaged)
    if content.pop("format", None) != name:
        raise damaged(path, f"it is no {name}")
    if content.pop("version", None) not in versions:
        raise damaged(path, "it is of another version")
    if content.pop("sha256", None) != json_digest(content):
        raise damaged(path, "its digest does not match")
    try:
        return of_type(kind, content)
    except ValueError as error:
        raise damaged(path, str(error)) from None


def write_document(path: Path, name: str, version: int, content: Mapping[str, Any]) -> None:
    """Write JSON that says what it is, and has a digest of itself."""
    write_json(path, {"format": name, "version": version, "sha256": json_digest(content), **content})


def bounds(hint: Any) -> str:
    """The rule of a type in plain words; nothing if it has none.

    >>> bounds(ShareBelowOne | None)
    'at least 0 and below 1 or none'
    """
    optional = get_origin(hint) in (typing.Union, types.UnionType)  # only "X | None" is used
    kind = next(k for k in get_args(hint) if k is not types.NoneType) if optional else hint
    rules = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    words = " and ".join(_words(dataclasses.asdict(rule)) for rule in rules)
    return f"{words} or none" if words and optional else words


def _rule(error: ValidationError) -> str:
    first = error.errors()[0]
    context = first.get("ctx", {})
    kind = _KINDS.get(first["type"].partition("_")[0])
    return _words(context) or (kind.format(**context) if kind else first["msg"])


def _words(limits: dict[str, Any]) -> str:
    known = {name: f"{limit:,}".removesuffix(".0") for name, limit in limits.items() if name in _BOUNDS}
    return " and ".join(_BOUNDS[name].format(limit) for name, limit in known.items())


@functools.cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _adapter(hint: Any, *, given_whole: bool = True) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, InstanceOf, TypeAdapter

    if dataclasses.is_dataclass(hint):  # a config in another one is given whole, and has checked itself
        return TypeAdapter(InstanceOf[hint] if given_whole else hint)
    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
