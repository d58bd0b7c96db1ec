"""Values that keep the rules of their types.

A rule is part of a type, as in ``hidden: PositiveInt`` or ``power: Annotated[float, Ge(0), Le(4)]``. pydantic
checks it; its refusals are translated into the package's errors here and nowhere else.
"""

import dataclasses
import functools
import types
import typing
from typing import Annotated, Any, ClassVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MultipleOf
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

from nodejepa.errors import ConfigError

PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
ShareBelowOne = Annotated[float, Ge(0), Lt(1)]
OpenShare = Annotated[float, Gt(0), Lt(1)]

_BOUNDS = {
    Ge: "at least {ge:,}",
    Gt: "above {gt:,}",
    Le: "at most {le:,}",
    Lt: "below {lt:,}",
    MultipleOf: "a multiple of {multiple_of}",
}
_OUT_OF_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of")
_KINDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text"}


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
        raise ConfigError(f"{name} is {given!r}", fix=_advice(hint, error)) from None


def bounds(hint: Any) -> str:
    """The rule of a type in plain words; nothing if it has none.

    >>> bounds(ShareBelowOne | None)
    'at least 0 and below 1 or none'
    """
    rules = [_BOUNDS[type(rule)].format(**dataclasses.asdict(rule)) for rule in _metadata(hint)]
    none = " or none" if rules and types.NoneType in get_args(hint) else ""
    return " and ".join(rules) + none


def _advice(hint: Any, error: ValidationError) -> str:
    if error.errors()[0]["type"] in _OUT_OF_BOUNDS:
        return f"It must be {bounds(hint)}."
    kind = _without_none(hint)
    if get_origin(kind) is typing.Literal:
        return f"Use one of {', '.join(map(str, get_args(kind)))}."
    if get_origin(kind) is tuple:
        return "Give names, separated by commas."
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return f"It must be {_KINDS.get(kind) or f'of type {kind.__name__}'}."


def _metadata(hint: Any) -> tuple[Any, ...]:
    kind = _without_none(hint)
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    return next(kind for kind in get_args(hint) if kind is not types.NoneType)  # only "X | None" is used


@functools.cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    if dataclasses.is_dataclass(hint):  # it has checked itself
        return TypeAdapter(InstanceOf[hint])
    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
