"""A result's identity is the setting that made it: settings that are added later orphan nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodejepa.config import dotted, flatten
from nodejepa.data.splits import Split
from nodejepa.errors import CheckpointError, ConfigError
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.migrations import MIGRATIONS, Migration, config_of_today
from nodejepa.methods.nodejepa import NodeJEPA, NodeJEPAConfig
from nodejepa.study.measure import encoder_folder, trained_encoder
from nodejepa.study.records import finished, read_records
from nodejepa.study.spec import Cell, load_spec

STUDIES = Path(__file__).parents[2] / "studies"
NAMES = sorted(
    path.stem for path in STUDIES.glob("*.toml") if (STUDIES / path.stem / "records.jsonl").exists()
)
TINY = {"training.epochs": 1, "encoder.hidden": 8, "encoder.layers": 1}


def extended(kind: type[Any]) -> type[Any]:
    """The config class of a version to come: one more setting, with a default."""
    return dataclasses.make_dataclass(
        kind.__name__, [("novelty", int, dataclasses.field(default=3))], bases=(kind,), frozen=True
    )


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch):
    """Call it to let every method have one setting more."""

    def arrive() -> None:
        methods = [*METHODS.values()]
        today = [
            (method, method.config_class, method.preset) for method in methods
        ]  # some inherit from others
        for method, config_class, preset in today:
            kind = extended(config_class)
            monkeypatch.setattr(method, "config_class", kind)

            def longer(
                name: str, dataset: str | None = None, *, preset: Any = preset, kind: Any = kind
            ) -> Any:
                return kind(**vars(preset(name, dataset)))

            monkeypatch.setattr(method, "preset", staticmethod(longer))

    return arrive


@pytest.mark.slow
@pytest.mark.parametrize("name", ["main", "ablation", "official", "readings"])  # every method, every kind
def test_a_new_setting_orphans_no_record_and_another_value_is_another_result(
    name: str, tomorrow: Any
) -> None:
    def read() -> tuple[dict[str, Cell], set[str]]:
        """Cells by their keys, and the keys that have a record."""
        cells = load_spec(STUDIES / f"{name}.toml").cells
        return {cell.key: cell for cell in cells}, finished(read_records(STUDIES / name))

    cells, done = read()
    before = {cell.coordinates for key, cell in cells.items() if key in done}
    assert before
    tomorrow()
    later, done = read()
    assert later.keys().isdisjoint(cells)  # it did arrive
    measured = [cell for key, cell in later.items() if key in done]
    assert {cell.coordinates for cell in measured} == before
    changed = [dataclasses.replace(cell, settings=dict(cell.settings) | {"novelty": 4}) for cell in measured]
    assert not [cell for cell in changed if cell.key in done]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["supervised-gcn", "patchjepa", "linear-jepa"])
def test_a_refused_resume_names_the_setting(
    method: str, tomorrow: Any, toy_graph: Any, tmp_path: Path
) -> None:
    given: dict[str, Any] = {}
    if METHODS[method].supervised:
        split = Split("mine", 0, *(np.arange(start, start + 6) for start in (0, 6, 12)))
        given = {"labels": np.arange(toy_graph.num_nodes) % 2, "split": split}
    settings: dict[str, Any] = TINY if METHODS[method].by_gradient else {}
    make_method(method, settings=settings).fit(toy_graph, out=tmp_path, **given)
    tomorrow()
    make_method(method, settings=settings).fit(toy_graph, out=tmp_path, resume=True, **given)
    with pytest.raises(CheckpointError, match="another config: novelty: 3 then, 4 now"):
        make_method(method, settings=settings | {"novelty": 4}).fit(
            toy_graph, out=tmp_path, resume=True, **given
        )


@pytest.mark.slow
def test_an_encoder_of_an_older_version_is_found_in_its_folder(
    tomorrow: Any, small_digits: Any, tmp_path: Path
) -> None:

    def cell(**more: Any) -> Cell:
        return Cell("mine", "probe", "dgi", "paper", "digits", "20-30", 1, settings=TINY | more)

    split = small_digits.split(seed=1)
    trained_encoder(cell(), small_digits, split, tmp_path)
    folder = encoder_folder(cell(), tmp_path)
    tomorrow()
    assert encoder_folder(cell(), tmp_path) == folder
    assert encoder_folder(cell(novelty=4), tmp_path) != folder
    written = (folder / "model.safetensors").stat().st_mtime_ns
    trained_encoder(cell(), small_digits, split, tmp_path)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_setting_that_records_lack_says_what_its_absence_means() -> None:
    """Else a later change of its default would silently change what old records were made with."""
    silent = set()
    for name in NAMES:
        for line in (STUDIES / name / "records.jsonl").read_text().splitlines():
            record = json.loads(line)
            known = set(flatten(make_method(record["method"], preset=record["preset"]).config))
            migration = MIGRATIONS.get(record["method"], Migration())
            there = {migration.renamed.get(key, key) for key in dotted(record["config"])}
            silent |= {(record["method"], key) for key in known - there - set(migration.absent)}
    assert not silent, "give them a value in MIGRATIONS[...].absent"


def test_settings_of_older_versions_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"masking": {"share": 0.25}, "legacy": True}
    with pytest.raises(ConfigError, match="unknown"):
        config_of_today("nodejepa", NodeJEPAConfig, old)
    migration = Migration(
        renamed={"masking.share": "masking.ratio"}, removed={"legacy": True}, absent={"masking.hops": 1}
    )
    monkeypatch.setitem(MIGRATIONS, "nodejepa", migration)
    config = config_of_today("nodejepa", NodeJEPAConfig, old)
    assert (config.masking.ratio, config.masking.hops) == (0.25, 1)
    assert config_of_today("nodejepa", NodeJEPAConfig, {"masking": {"hops": 2}}).masking.hops == 2
    with pytest.raises(ConfigError, match="legacy no longer exists"):
        config_of_today("nodejepa", NodeJEPAConfig, old | {"legacy": False})


def test_a_model_of_an_older_version_is_loaded(tomorrow: Any, toy_graph: Any, tmp_path: Path) -> None:
    NodeJEPA(preset="paper", **TINY).fit(toy_graph).save(tmp_path)
    tomorrow()
    assert NodeJEPA.load(tmp_path).config.novelty == 3
