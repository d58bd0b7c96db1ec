"""Fitting a method on a dataset, whether it is to see labels or not."""

from __future__ import annotations

from typing import Any

from nodejepa.data import Dataset, Split
from nodejepa.methods import Estimator, find_method
from nodejepa.store.dataset import StoredDataset


def fit_on(estimator: Estimator, dataset: Dataset | StoredDataset, split: Split, **how: Any) -> Estimator:
    """Fit on the dataset's graph; only a supervised method is shown labels, and the split says which.

    Args:
        estimator: of any method.
        dataset: graph and labels.
        split: whose training and validation labels a supervised method learns from.
        how: ``out``, ``resume`` and ``logging`` of ``fit``.
    """
    if find_method(estimator.name).supervised:
        how |= {"labels": dataset.labels, "split": split}
    return estimator.fit(dataset.graph, **how)
