"""Columns that look like what somebody wants to predict: as features they would give the answer away."""

from __future__ import annotations

import re

import numpy as np

from nodejepa.errors import Advice, Setting
from nodejepa.io.column_content import ColumnContent
from nodejepa.io.feature_columns import MAX_CATEGORIES, FeatureColumn
from nodejepa.io.read_report import ReadReport, first_names

_NAMES = {
    "label",
    "labels",
    "class",
    "classes",
    "target",
    "targets",
    "category",
    "categories",
    "topic",
    "outcome",
}
_WHOLE_NAMES = {"y", "groundtruth"}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def looks_like_target(column: FeatureColumn, content: ColumnContent) -> bool:
    """Whether a column is named like a target and has few values, much fewer than there are rows."""
    words = {word.lower() for word in _WORD.findall(column.name)}
    if not (words & _NAMES or "".join(sorted(words)) in _WHOLE_NAMES):
        return False
    if content.words is not None:
        return column.kind == "category"
    if column.kind == "vector" or column.kind == "time":
        return False
    values = content.numbers[~np.isnan(content.numbers)]
    distinct = np.unique(values)
    few = distinct.size <= min(MAX_CATEGORIES, max(2, values.size // 2))
    return few and bool((distinct == np.floor(distinct)).all())


def warn_of_targets(names: list[str], report: ReadReport) -> None:
    """Say which columns may give the answer away, and what to do about it."""
    if not names:
        return
    said = "column {} looks like a target" if len(names) == 1 else "columns {} look like targets"
    report.warnings.append(
        Advice(
            said.replace("{}", first_names(names)) + " (named so, few different values) and the features are "
            "made of it: scores on it would mean nothing. Say ",
            Setting("labels", names[0]),
            " to score by it, or ",
            Setting("drop", names[0]),
            " to leave it out.",
        )
    )
