"""The specification of a study, a TOML file, and its cells.

A cell is a method on a graph, a split, a seed. Two results are the same result when they stand in one place
of the tables and one setting made them; the key of a cell says both. Settings are compared as today's config
class reads them (:mod:`nodejepa.methods.migrations`), never as they were written: records outlive the
settings that are added later.

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

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import MinLen

from nodejepa.config import Exact, of_type, parse_seeds, to_dict
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.data.splits import parse_split_name
from nodejepa.errors import ConfigError, EvaluationError
from nodejepa.methods import METHODS, find_method, make_method
from nodejepa.methods.migrations import config_of_today

# frozen embeddings, both probes and diagnostics; end to end, beside random weights; seconds and memory
Kind: TypeAlias = Literal["probe", "finetune", "efficiency"]

Names = Annotated[list[str], MinLen(1)]


@dataclass(frozen=True)
class Grid(Exact):
    """All combinations of what is listed, as the file says it."""

    methods: Names
    preset: str
    datasets: Names
    splits: Names
    seeds: str
    settings: dict[str, Any] = field(default_factory=dict)
    variant: str | None = None
    training_seed: int | None = None


@dataclass(frozen=True)
class Quick(Exact):
    """What the grids have instead in the size for a first look."""

    datasets: Names | None = None
    splits: Names | None = None
    seeds: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def of(self, grid: Grid) -> Grid:
        """The grid in this size."""
        others = {"datasets": self.datasets, "splits": self.splits, "seeds": self.seeds}
        changed: dict[str, Any] = {name: value for name, value in others.items() if value is not None}
        if any(find_method(name).trained for name in grid.methods):  # the others take no settings
            changed["settings"] = grid.settings | self.settings
        return replace(grid, **changed)


@dataclass(frozen=True)
class _Study(Exact):
    summary: str
    kind: Kind
    grid: Annotated[list[dict[str, Any]], MinLen(1)]
    quick: dict[str, Any] | None = None
    frozen: str | None = None


@dataclass(frozen=True)
class Cell:
    """What is to be measured; everything that can change the result is here."""

    study: str
    kind: Kind
    method: str
    preset: str
    dataset: str
    split: str  # "5-30" is a few-shot cell
    seed: int  # of the method and of the split
    variant: str | None = None  # what an ablation calls this setting
    settings: Mapping[str, Any] = field(default_factory=dict)  # changes against the preset, by dotted name
    frozen: str | None = None  # commit after which nothing about it was chosen; no part of the key
    training_seed: int | None = None  # where it is not that of the split: one training serves all splits

    @property
    def config(self) -> dict[str, Any]:
        """All settings of the method in this cell."""
        return _config(self.method, self.preset, self.dataset, json.dumps(dict(self.settings)))

    @cached_property
    def config_hash(self) -> str:
        """16 hexadecimal digits that change with any setting."""
        return config_hash(self.method, self.config)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The place of the cell in the tables: two records with the same one are the same cell."""
        return coordinates(self.describe())

    @cached_property
    def key(self) -> str:
        """As the coordinates, and every setting: another key is another measurement."""
        return cell_key(self.coordinates, self.config_hash)

    @property
    def trained_with(self) -> int:
        """The seed of the method."""
        return self.seed if self.training_seed is None else self.training_seed

    @property
    def epochs(self) -> int:
        """How long the method trains; 0 where nothing is trained."""
        training = self.config.get("training", {}) if find_method(self.method).trained else {}
        return int(training.get("epochs", 0))

    @property
    def label(self) -> str:
        """For people: what the progress bar shows."""
        name = f"{self.method} ({self.variant})" if self.variant else self.method
        return f"{name} on {self.dataset}, split {self.split}, seed {self.seed}"

    def describe(self) -> dict[str, Any]:
        """The first columns of the cell's record."""
        shots = re.fullmatch(r"(\d+)-\d+", self.split)
        optional = {"frozen": self.frozen, "training_seed": self.training_seed}
        return {
            "study": self.study,
            "kind": self.kind,
            "method": self.method,
            "preset": self.preset,
            "variant": self.variant,
            "dataset": self.dataset,
            "split": self.split,
            "shots": int(shots[1]) if shots else None,
            "seed": self.seed,
        } | {name: value for name, value in optional.items() if value is not None}


def coordinates(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a record stands in the tables."""
    names = ("kind", "method", "preset", "variant", "dataset", "split", "seed")
    place = [str(record.get(name)) for name in names]
    if record.get("training_seed") is not None:  # records are older than this
        place.insert(-1, f"trained with seed {record['training_seed']}")
    return tuple(place)


def config_hash(method: str, config: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that change with any setting of a method, and with nothing else."""
    kind: Any = METHODS[method].config_class if method in METHODS else None
    return _config_hash(method, kind, json.dumps(config, sort_keys=True))


def cell_key(place: tuple[str, ...], settings: str) -> str:
    """As the coordinates, and every setting (as a hash): another key is another measurement."""
    return _digest([*place, settings])


def identified(record: dict[str, Any]) -> dict[str, Any]:
    """A record under its identity of today; one whose settings no longer exist keeps that of its time."""
    if not isinstance(record.get("config"), dict) or "key" not in record:
        return record
    settings = config_hash(str(record.get("method")), record["config"])
    return record | {"config_hash": settings, "key": cell_key(coordinates(record), settings)}


@lru_cache(maxsize=4096)  # few settings, many cells
def _config(method: str, preset: str, dataset: str, settings: str) -> dict[str, Any]:
    made: Any = make_method(method, preset=preset, dataset=dataset, settings=json.loads(settings))
    return to_dict(made.config)


@lru_cache(maxsize=4096)  # few settings, many records
def _config_hash(method: str, kind: type[Any] | None, text: str) -> str:
    config = json.loads(text)
    if kind is not None:
        with suppress(ConfigError):  # of a version that nobody can translate: the same as nothing of today
            config = to_dict(config_of_today(method, kind, config))
    return _digest([method, config])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


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
        study = of_type(_Study, tomllib.loads(path.read_text(encoding="utf-8")))
        grids = [of_type(Grid, grid) for grid in study.grid]
        if quick:
            if study.quick is None:
                raise ValueError("there is no [quick] size")
            reduced = of_type(Quick, study.quick)
            grids = [reduced.of(grid) for grid in grids]
        cells = [
            replace(c, frozen=study.frozen) for grid in grids for c in _expand(path.stem, study.kind, grid)
        ]
    except OSError as error:
        raise ConfigError(
            f"cannot read the study: {error.strerror}",
            where=str(path),
            fix="Name a .toml file, e.g. studies/main.toml.",
        ) from None
    except (ValueError, ConfigError, EvaluationError) as error:  # not UTF-8, not TOML, no such name or value
        raise ConfigError(str(error), where=str(path), fix="See the specifications in studies/.") from None
    by_key = {cell.key: cell for cell in cells}  # quick sizes make grids overlap
    return StudySpec(path.stem, study.summary, study.kind, tuple(_interleave(by_key.values())))


def _expand(study: str, kind: Kind, grid: Grid) -> list[Cell]:
    for dataset in grid.datasets:
        if dataset not in CATALOGUE:
            raise ConfigError(f"no graph is called {dataset!r}; known are {', '.join(CATALOGUE)}")
        if "official" in grid.splits and CATALOGUE[dataset].default_split != "official":
            raise ConfigError(f'{dataset} has no official split; use "20-30" or "random-10-10-80"')
    for split in grid.splits:
        if split != "official":
            parse_split_name(split)
    if grid.settings and not any(find_method(name).trained for name in grid.methods):
        raise ConfigError(f"methods without training take no settings: {', '.join(grid.methods)}")
    cells = []
    for name, dataset, split, seed in product(
        grid.methods, grid.datasets, grid.splits, parse_seeds(grid.seeds)
    ):
        trained = find_method(name).trained
        if kind != "probe" and not trained:
            raise ConfigError(f"{name} needs no training; a study of {kind} has nothing to measure")
        preset = grid.preset if trained else "default"
        cell = Cell(study, kind, name, preset, dataset, split, seed, grid.variant)
        if trained:
            once = grid.training_seed
            if once is not None and find_method(name).supervised:
                raise ConfigError(f"{name} learns from the split: it has no training_seed of its own")
            cell = replace(cell, settings=_settings_of(name, grid), training_seed=once)
        cells.append(cell)
        cells[-1].config  # noqa: B018, wrong settings are found now, not after hours
    return cells


def _settings_of(method: str, grid: Grid) -> dict[str, Any]:
    """Those of the grid; what is solved, not trained, has no use for the small size's epochs."""
    settings = dict(grid.settings)
    solved = not find_method(method).by_gradient and len(grid.methods) > 1
    return {name: v for name, v in settings.items() if not (solved and name.startswith("training."))}


def _interleave(cells: Sequence[Cell] | Any) -> list[Cell]:
    """First seeds first, so that a study stopped half way has every row of its tables."""
    seen: dict[tuple[str, ...], int] = {}
    ranks = []
    for cell in cells:
        place = (*cell.coordinates[:-1],)
        seen[place] = seen.get(place, -1) + 1
        ranks.append((seen[place], cell))
    return [cell for _, cell in sorted(ranks, key=lambda pair: pair[0])]
