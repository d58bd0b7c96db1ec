"""Compiled code is kept where that can be done; nothing fails, and one warning is given, where it cannot."""

import warnings

import pytest
from numba.core import caching

from nodejepa.compiled import compiled


def add(a, b):
    return a + b


def test_without_any_folder_to_keep_it_the_code_still_runs(monkeypatch):
    """A read-only installation and no home: numba finds no place, already when a module is imported."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.warns(UserWarning, match="cannot be kept .*NUMBA_CACHE_DIR"):
        kept = compiled()(add)
    assert kept(2, 3) == 5


def test_it_is_kept_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(tmp_path))
    assert compiled()(add)(2, 3) == 5
    again = compiled()(add)
    assert again(4, 5) == 9
    assert sum(again.stats.cache_hits.values()) == 1


def test_the_warning_is_given_once(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            compiled()(add)
    assert len(said) == 1
