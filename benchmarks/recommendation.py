"""Could scores without labels tell which embedding labels would choose? Ten graphs whose labels are known.

    python -m benchmarks.recommendation            # writes the table

``studies/compare/records.jsonl`` has a line a graph: what ``nodejepa.compare`` found of LinearJEPA and the
untrained baselines (seed 0; five draws of 20 labels a class, seeds 42-46). ``recommendation.md`` asks, for
every rule, how often it picks the method with the highest accuracy, or one within a point of it. Methods that
are trained by gradient descent are left out: they take longer than everything else here together.

No rule did as well as the default, so ``compare`` measures held-out links only since then. Hidden columns
were measured up to commit 6c8d39f, whose version of this file made the records.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodejepa.config import of_type
from nodejepa.files import write_text
from nodejepa.methods import UNTRAINED
from nodejepa.report.sections import Column, ReportTable, TableCell, mean_and_std, to_markdown
from nodejepa.workflow.recommend import DEFAULT, POINT, MethodRow, recommend

STUDY = Path(__file__).parents[1] / "studies" / "compare"
GRAPHS = (
    *("chameleon_filtered", "citeseer", "acm", "minesweeper", "actor", "tolokers", "dblp", "pubmed"),
    *("blogcatalog", "facebook_pagepage"),
)


@dataclass(frozen=True)
class Row(MethodRow):
    """A row as it was measured: also how well nearest neighbours predict hidden columns."""

    features: float | None = None


Rows = list[Row]
Rule = Callable[[Rows], str]


def read() -> dict[str, Rows]:
    """Rows by graph, in the order of the alphabet."""
    lines = (STUDY / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {
        record["graph"]: [of_type(Row, row) for row in record["methods"]]
        for record in sorted(records, key=lambda record: str(record["graph"]))
    }


def accuracy(row: Row) -> float:
    """Mean over the draws of labels."""
    return mean_and_std(row.accuracy).mean


def highest(*names: str) -> Rule:
    """The method with the best mean rank by some scores; ties go to the first of the table."""

    def rule(rows: Rows) -> str:
        ranks = dict.fromkeys((row.method for row in rows), 0)
        for name in names:
            order = sorted(rows, key=lambda row: -(getattr(row, name) or 0.0))
            for rank, row in enumerate(order):
                ranks[row.method] += rank
        return min(ranks, key=lambda method: ranks[method])

    return rule


def without_labels(rows: Rows) -> str:
    """What ``compare`` recommends to somebody who has no labels."""
    blind = [replace(row, accuracy=()) for row in rows]
    found = recommend(blind)
    assert found is not None
    return found.method


SCORES: dict[str, Rule] = {
    "highest links AUC": highest("links_auc"),
    "highest links MRR": highest("links_mrr"),
    "highest hidden features": highest("features"),
    "best mean rank: links AUC, hidden features": highest("links_auc", "features"),
    "best mean rank: links AUC, links MRR, hidden features": highest("links_auc", "links_mrr", "features"),
}
ALWAYS: dict[str, Rule] = {f"always {name}": lambda _, name=name: name for name in (DEFAULT, *UNTRAINED)}
RULES = {"what compare recommends without labels": without_labels, **SCORES, **ALWAYS}


def losses(rule: Rule, graphs: dict[str, Rows]) -> list[float]:
    """Points of accuracy that the pick is behind the best method, a graph each."""
    lost = []
    for rows in graphs.values():
        by_name = {row.method: accuracy(row) for row in rows}
        lost.append(max(by_name.values()) - by_name[rule(rows)])
    return lost


def rules_table(graphs: dict[str, Rows]) -> ReportTable:
    """How often each rule is right, and what it costs where it is not."""

    def line(name: str, rule: Rule) -> Any:
        lost = losses(rule, graphs)
        counts = (sum(loss <= POINT for loss in lost), sum(loss == 0 for loss in lost))
        cells = (TableCell.number(count, decimals=0) for count in counts)
        return (
            TableCell.name(name),
            *cells,
            TableCell.number(mean_and_std(lost).mean),
            TableCell.number(max(lost)),
        )

    columns = (
        Column.name("rule"),
        *map(Column, ("best or within a point", "best", "points lost on average", "at most")),
    )
    groups = [
        [line(name, rule) for name, rule in part.items()]
        for part in (dict([*RULES.items()][:1]), SCORES, ALWAYS)
    ]
    title = f"Which method would labels choose? {len(graphs)} graphs, {1 + len(UNTRAINED)} methods"
    notes = (
        "Accuracy of the fair linear probe, mean over five draws of 20 labels a class (seeds 42-46); scores "
        "without labels with seed 0. One draw of hidden links and columns: no spread is known.",
        "The rule of LinearJEPA was chosen with labels of these graphs (docs/recipe.md): its line is kinder "
        "than new graphs will be. To hide columns, not nodes, was chosen on them, too.",
        "Methods that are trained by gradient descent were not measured here. "
        "Records and table: python -m benchmarks.recommendation",
    )
    return ReportTable("rules", title, columns, tuple(map(tuple, groups)), notes)


def graphs_table(graphs: dict[str, Rows]) -> ReportTable:
    """What labels and scores prefer on each graph."""
    shown = ("highest links AUC", "highest hidden features", "best mean rank: links AUC, hidden features")
    columns = (
        Column.name("graph"),
        Column.name("labels prefer"),
        *map(Column, ("accuracy %", f"{DEFAULT} %")),
        *(Column.name(name) for name in shown),
    )
    lines = []
    for graph, rows in graphs.items():
        by_name = {row.method: accuracy(row) for row in rows}
        best = max(by_name, key=lambda name: by_name[name])
        picks = (TableCell.name(RULES[name](rows)) for name in shown)
        scores = (TableCell.number(by_name[name], decimals=1) for name in (best, DEFAULT))
        lines.append((TableCell.name(graph), TableCell.name(best), *scores, *picks))
    return ReportTable("graphs", "Graph by graph", columns, (tuple(lines),), ())


def render(graphs: dict[str, Rows]) -> str:
    """Both tables as Markdown."""
    return f"{to_markdown(rules_table(graphs))}\n{to_markdown(graphs_table(graphs)).rstrip()}\n"


if __name__ == "__main__":
    write_text(STUDY / "recommendation.md", render(read()))
