"""The table of graphs without features is that of the committed records."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_rebuilt_byte_for_byte() -> None:
    spec = importlib.util.spec_from_file_location("measured", ROOT / "benchmarks" / "without_features.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    committed = module.RECORDS.with_name("gains.md").read_text(encoding="utf-8")
    assert module.render(module.read()) == committed
