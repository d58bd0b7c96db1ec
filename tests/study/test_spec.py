"""Specifications: what they expand to, and what is wrong with a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodejepa.errors import ConfigError
from nodejepa.methods import UNTRAINED
from nodejepa.study.spec import load_spec

STUDIES = Path(__file__).parents[2] / "studies"
GRID = """
summary = "two floors"
kind = "probe"
[[grid]]
methods = ["raw", "nodejepa"]
preset = "paper"
datasets = ["digits", "photo"]
splits = ["5-30", "20-30"]
seeds = "1-3"
settings = {"training.epochs" = 7}
variant = "mine"
[quick]
datasets = ["digits"]
seeds = "1"
settings = {"training.epochs" = 2}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_grid_is_all_combinations(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path, GRID))
    assert spec.name == "mine"
    assert len(spec.cells) == len({cell.key for cell in spec.cells}) == 2 * 2 * 2 * 3
    trained = [cell for cell in spec.cells if cell.method == "nodejepa"]
    assert {cell.epochs for cell in trained} == {7}
    assert {cell.describe()["shots"] for cell in trained} == {5, 20}


def test_floors_take_neither_preset_nor_settings(tmp_path: Path) -> None:
    floors = [cell for cell in load_spec(write(tmp_path, GRID)).cells if cell.method == "raw"]
    assert {(cell.preset, cell.epochs, len(cell.settings)) for cell in floors} == {("default", 0, 0)}


def test_first_seeds_come_first(tmp_path: Path) -> None:
    seeds = [cell.seed for cell in load_spec(write(tmp_path, GRID)).cells]
    assert seeds == sorted(seeds)


def test_quick_replaces_and_drops_doubles(tmp_path: Path) -> None:
    text = GRID.replace("[quick]", '[quick]\nsplits = ["20-30"]')
    cells = load_spec(write(tmp_path, text), quick=True).cells
    assert [(c.method, c.dataset, c.split, c.seed, c.epochs) for c in cells] == [
        ("raw", "digits", "20-30", 1, 0),
        ("nodejepa", "digits", "20-30", 1, 2),
    ]


def test_another_setting_is_another_key(tmp_path: Path) -> None:
    before = load_spec(write(tmp_path, GRID)).cells
    after = load_spec(write(tmp_path, GRID.replace("= 7", "= 8"))).cells
    same = {cell.key for cell in before} & {cell.key for cell in after}
    assert same == {cell.key for cell in before if cell.method == "raw"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "probe"', 'kind = "guess"', "kind is 'guess'"),
        ('kind = "probe"', "", "kind is missing"),
        ('["raw", "nodejepa"]', '["rwa"]', "Did you mean raw"),
        ('["raw", "nodejepa"]', "[]", r"methods is \[\], and must be a list of 1 or more"),
        ('["raw", "nodejepa"]', '"raw"', "methods is 'raw', and must be a list"),
        ('"photo"', '"foto"', "no graph is called 'foto'"),
        ('"1-3"', '"3-1"', "no range"),
        ('"paper"', '"papre"', "has no preset"),
        ('"training.epochs" = 7', '"training.epoch" = 7', "Did you mean training.epochs"),
        ('"training.epochs" = 7', '"training.epochs" = -7', "training.epochs is -7"),
        ('variant = "mine"', 'varaint = "mine"', "'varaint' is unknown. Did you mean variant"),
        ('variant = "mine"', 'training_seed = "7"', "training_seed is '7', and must be a whole number"),
        ('["raw", "nodejepa"]', '["supervised-gcn"]\ntraining_seed = 7', "learns from the split"),
        ("[quick]", "[quick", "Expected ']'"),
        ('"5-30"', "5", "splits.0 is 5, and must be text"),
        ('["digits", "photo"]', '[["digits"]]', "datasets.0 is .*, and must be text"),
        ('["raw", "nodejepa"]', '["raw"]', "methods without training take no settings: raw"),
        ('"5-30"', '"official"', "digits has no official split"),
        ('"1-3"', "1", "seeds is 1, and must be text"),
        ('"5-30"', '"5-3O"', "split '5-3O' is unknown"),
        ('"5-30"', '"random-10-10-90"', "does not add up"),
        ('kind = "probe"', 'kind = "efficiency"', "raw needs no training"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GRID
    with pytest.raises(ConfigError, match=message):
        load_spec(write(tmp_path, GRID.replace(old, new)))


def test_a_missing_file_and_a_missing_quick_size(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the study"):
        load_spec(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"no \[quick\] size"):
        load_spec(write(tmp_path, GRID.split("[quick]")[0]), quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_committed_specifications_are_valid_in_both_sizes(path: Path) -> None:
    whole, quick = load_spec(path), load_spec(path, quick=True)
    assert 0 < len(quick.cells) <= len(whole.cells)
    assert {cell.dataset for cell in quick.cells} == {"digits"}


@pytest.mark.slow
def test_the_main_study_is_the_papers_table_and_the_floors() -> None:
    cells = load_spec(STUDIES / "main.toml").cells
    counts = {
        dataset: len({(cell.method, cell.seed) for cell in cells if cell.dataset == dataset})
        for dataset in ("photo", "computers", "cs", "physics", "arxiv")
    }
    assert counts == {"photo": 75, "computers": 75, "cs": 75, "physics": 65, "arxiv": 75}
    assert {cell.seed for cell in cells} == {42, 43, 44, 45, 46}
    fewer = {cell.method for cell in cells} - {
        c.method for c in cells if (c.dataset, c.seed) == ("physics", 46)
    }
    assert fewer == {"supervised-gcn", "graphmae", "cca-ssg", "dgi", "bgrl"}


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_study_that_measures_baselines_with_few_labels_measures_all(path: Path) -> None:
    cells = [cell for cell in load_spec(path).cells if not cell.split.startswith("random")]
    places = {(cell.dataset, cell.split, cell.seed) for cell in cells if cell.method in UNTRAINED}
    measured = {(cell.method, cell.dataset, cell.split, cell.seed) for cell in cells}
    assert measured >= {(floor, *place) for floor in UNTRAINED for place in places}


@pytest.mark.slow
def test_few_labels_are_5_10_and_20_a_class() -> None:
    cells = load_spec(STUDIES / "fewshot.toml").cells
    assert {cell.split for cell in cells} == {"5-30", "10-30", "20-30"}
    asked = {(cell.method, cell.dataset, cell.seed) for cell in cells}
    assert len(cells) == 3 * len(asked)  # every encoder with all three


@pytest.mark.slow
def test_ablation_a_is_the_main_study_and_every_other_variant_is_not() -> None:
    main = {c.config_hash for c in load_spec(STUDIES / "main.toml").cells if c.method == "nodejepa"}
    ablation = [c for c in load_spec(STUDIES / "ablation.toml").cells if c.variant]
    hashes = {c.variant: c.config_hash for c in ablation}
    assert len(hashes) == len(set(hashes.values())) == 9
    assert hashes["A: full"] in main
    assert len(main & set(hashes.values())) == 1
