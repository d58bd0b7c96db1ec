"""Study specifications: a TOML file that says which cells there are.

summary = "Table 1: linear probing of every method on every graph"
kind = "probe"                        # or finetune, efficiency
frozen = "0123abc"                    # optional: the commit that its records name as the end of all choosing

[[grid]]                              # all combinations of what is listed
methods = ["nodejepa", "patchjepa"]
preset = "paper"
datasets = ["photo", "computers"]
splits = ["20-30"]
seeds = "42-46"
settings = {"loss.variance" = 0.0}    # optional: changes against the preset
variant = "D: no VICReg"              # optional: what the tables call it
training_seed = 42                    # optional: seeds draw splits only, and one training serves all of them

[quick]                               # --quick: the same grids in a size for a first look
datasets = ["digits"]
seeds = "42-43"
settings = {"training.epochs" = 10}
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NoReturn, get_args

from nodejepa.config import parse_seeds, right_name
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.data.splits import parse_split_name
from nodejepa.errors import ConfigError, EvaluationError, did_you_mean
from nodejepa.methods import METHODS, find_method
from nodejepa.study.run.cell import Cell, Kind

_GRID = {"methods": list, "preset": str, "datasets": list, "splits": list, "seeds": str}
_OPTIONAL = {"settings": dict, "variant": str, "training_seed": int}
_QUICK = {"datasets": list, "seeds": str, "settings": dict, "splits": list}
_IN_WORDS: dict[type, str] = {str: "a text in quotes", list: "a list", dict: "a table", int: "a number"}


@dataclass(frozen=True)
class StudySpec:
    """A named set of cells, in the order in which they are measured."""

    name: str
    summary: str
    kind: Kind
    cells: tuple[Cell, ...]


def load_spec(path: str | Path, *, quick: bool = False) -> StudySpec:
    """Read and check a specification; the study is called like the file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"cannot read the study: {why}", where=str(path), fix="Name a .toml file, e.g. studies/main.toml."
        ) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _refuse(path, f"this is not TOML: {error}")
    _check_keys(path, values, {"summary": str, "kind": str, "grid": list}, {"quick": dict, "frozen": str})
    if values["kind"] not in get_args(Kind):
        _refuse(path, f"kind is {values['kind']!r}; it must be one of {', '.join(get_args(Kind))}")
    reduced = values.get("quick")
    if quick and reduced is None:
        _refuse(path, "there is no [quick] size")
    if reduced is not None:
        _check_keys(path, reduced, {}, _QUICK)
    cells: list[Cell] = []
    for grid in values["grid"]:
        if not isinstance(grid, dict):
            _refuse(path, "each [[grid]] must be a table")
        _check_keys(path, grid, _GRID, _OPTIONAL)
        _check_settings(path, grid)
        cells += _expand(path, values["kind"], _shrink(grid, reduced) if quick and reduced else grid)
    cells = [replace(cell, frozen=values.get("frozen")) for cell in cells]
    by_key = {cell.key: cell for cell in cells}  # quick sizes make grids overlap
    return StudySpec(path.stem, values["summary"], values["kind"], tuple(_interleave(by_key.values())))


def _expand(path: Path, kind: Kind, grid: Mapping[str, Any]) -> list[Cell]:
    for dataset in grid["datasets"]:
        if dataset not in CATALOGUE:
            _refuse(path, f"no graph is called {dataset!r}; known are {', '.join(CATALOGUE)}")
        if "official" in grid["splits"] and CATALOGUE[dataset].default_split != "official":
            _refuse(path, f'{dataset} has no official split; use "20-30" or "random-10-10-80"')
    try:
        for split in grid["splits"]:
            if split != "official":
                parse_split_name(split)
        cells = []
        for name, dataset, split, seed in product(
            grid["methods"], grid["datasets"], grid["splits"], parse_seeds(grid["seeds"])
        ):
            trained = find_method(name).trained
            if kind != "probe" and not trained:
                raise ConfigError(f"{name} needs no training; a study of {kind} has nothing to measure")
            preset = grid["preset"] if trained else "default"
            cell = Cell(path.stem, kind, name, preset, dataset, split, seed, grid.get("variant"))
            if trained:
                once = grid.get("training_seed")
                if once is not None and find_method(name).supervised:
                    raise ConfigError(f"{name} learns from the split: it has no training_seed of its own")
                cell = replace(cell, settings=_settings_of(name, grid), training_seed=once)
            cells.append(cell)
            cells[-1].config  # noqa: B018, wrong settings are found now, not after hours
    except (ConfigError, EvaluationError) as error:
        _refuse(path, str(error))
    return cells


def _settings_of(method: str, grid: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the grid; what is solved, not trained, has no use for the small size's epochs."""
    settings = dict(grid.get("settings", {}))
    solved = not find_method(method).by_gradient and len(grid["methods"]) > 1
    return {name: v for name, v in settings.items() if not (solved and name.startswith("training."))}


def _check_settings(path: Path, grid: Mapping[str, Any]) -> None:
    """In a mixed grid settings are for those that train; alone, a floor would hide every mistake in them."""
    if grid.get("settings") and all(
        name in METHODS and not METHODS[name].trained for name in grid["methods"]
    ):
        _refuse(path, f"methods without training take no settings: {', '.join(grid['methods'])}")


def _shrink(grid: Mapping[str, Any], quick: Mapping[str, Any]) -> dict[str, Any]:
    settings = {**grid.get("settings", {}), **quick.get("settings", {})}
    return {**grid, **{k: v for k, v in quick.items() if k != "settings"}, "settings": settings}


def _interleave(cells: Sequence[Cell] | Any) -> list[Cell]:
    """First seeds first, so that a study stopped half way has every row of its tables."""
    seen: dict[tuple[str, ...], int] = {}
    ranks = []
    for cell in cells:
        place = (*cell.coordinates[:-1],)
        seen[place] = seen.get(place, -1) + 1
        ranks.append((seen[place], cell))
    return [cell for _, cell in sorted(ranks, key=lambda pair: pair[0])]


def _check_keys(
    path: Path, table: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type]
) -> None:
    known = {**required, **optional}
    for name, value in table.items():
        if name not in known:
            hint = right_name(name, known) or did_you_mean(name, known)
            _refuse(path, f"{name!r} is unknown. {hint}Known are {', '.join(known)}")
        if not isinstance(value, known[name]):
            _refuse(path, f"{name} must be {_IN_WORDS[known[name]]}, not {value!r}")
        if isinstance(value, list) and not value:
            _refuse(path, f"{name} is empty")
        for item in value if isinstance(value, list) and name != "grid" else []:
            if not isinstance(item, str):
                _refuse(path, f"{name} must be a list of texts; {item!r} is none")
    for name in required:
        if name not in table:
            _refuse(path, f"{name} is missing")


def _refuse(path: Path, why: str) -> NoReturn:
    raise ConfigError(why, where=str(path), fix="See the specifications in studies/.")
