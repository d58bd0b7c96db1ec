"""Values that keep the rules of their types: settings, and what is read from JSON.

A rule is part of a type, as in ``hidden: PositiveInt`` or ``power: Annotated[float, Ge(0), Le(4)]``. pydantic
checks it; its refusals are translated into the package's errors here and nowhere else.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError
from pydantic_core import to_json

from nodejepa.config import right_name
from nodejepa.errors import ConfigError, NodeJEPAError, did_you_mean
from nodejepa.files import json_digest, parse_json, write_json

T = TypeVar("T")

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

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def require(condition: bool, name: str, value: Any, rule: str) -> None:
    """Refuse ``value`` unless ``condition`` holds: for rules over several settings, in ``__post_init__``."""
    if not condition:
        raise ConfigError(f"{name} is {value!r}", fix=f"It must be {rule}.")


def setting_of_type(hint: Any, value: Any, name: str) -> Any:
    """``value``, parsed if it is text, as the type of the setting ``name`` wants it."""
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
    if dataclasses.is_dataclass(hint):  # a config in another one is given whole, and has checked itself
        return TypeAdapter(InstanceOf[hint] if given_whole else hint)
    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
