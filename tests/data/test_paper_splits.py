"""The paper's table of data sets: how many nodes train and validate. Its 439 on CS is 30 x 15 = 450 here."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodejepa.data import load_dataset


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "train", "val"),
    [("computers", 200, 300), ("photo", 160, 240), ("cs", 300, 450), ("physics", 100, 150)],
)
def test_sizes_of_the_papers_splits(data_root: Path, name: str, train: int, val: int) -> None:
    dataset = load_dataset(name, data_root)
    split = dataset.split("20-30", seed=42)
    assert (split.train.size, split.val.size) == (train, val)
    assert split.test.size == dataset.graph.num_nodes - train - val
