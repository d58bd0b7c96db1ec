"""What embeddings are best made of, on graphs as people have them and on the development graphs.

    python -m benchmarks.practice --practice FOLDER [--node2vec] [graph ...]
    python -m benchmarks.practice --render      # only the table

FOLDER has the practice graphs (imports_*, debian_*). ``--node2vec`` measures the row that ``nodejepa compare
--node2vec`` has (the extra ``node2vec``), too. The rule was chosen on splits of seeds 100 to 103, of imports
on its first four; these are others. A line per graph, and one for node2vec, in records.jsonl of
studies/practice; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from nodejepa import LinearJEPA, linear_probe, load_dataset, make_method, read_graph
from nodejepa.data.splits import Split, per_class_split
from nodejepa.files import versions, write_text
from nodejepa.graph import Graph
from nodejepa.machine import Room
from nodejepa.report.sections import Column, ReportTable, TableCell, to_markdown
from nodejepa.structure.laplacian import EXACT_UP_TO
from nodejepa.tables import FeatureSchema
from nodejepa.tables.options import structure_alone
from nodejepa.workflow import node2vec
from nodejepa.workflow.use import MADE_OF, Evidence, Material, best_of, validation_accuracy

RECORDS = Path(__file__).parents[1] / "studies" / "practice" / "records.jsonl"
PRACTICE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "imports": ("imports_edges.tsv.gz", "imports_nodes.csv", {"labels": "package"}),
    "debian": ("debian_edges.csv.gz", "debian_nodes.csv.gz", {"labels": "section", "text": "hash"}),
}
GRAPHS = (
    *("imports", "chameleon_filtered", "citeseer", "acm", "actor", "minesweeper", "tolokers", "blogcatalog"),
    *("dblp", "pubmed", "facebook_pagepage", "debian"),
)
BASELINES = ("raw", "sgc")
SEEDS = range(120, 123)
_TWO, _ONE = 2.0, 1.0  # the bar: points that auto may be behind the best row, and behind the edges alone


def load(name: str, practice: Path | None) -> tuple[Graph, Any]:
    """The graph with the columns of its nodes, and its labels."""
    if name not in PRACTICE:
        dataset = load_dataset(name)
        return dataset.graph, dataset.labels
    if practice is None:
        raise SystemExit(f"{name} is a practice graph: name their folder with --practice")
    edges, nodes, options = PRACTICE[name]
    loaded = read_graph(practice / edges, practice / nodes, structural=(), **options)
    assert loaded.labels is not None
    return loaded.graph, loaded.labels.astype(np.int64)


def measure(name: str, practice: Path | None) -> dict[str, Any]:
    """Test accuracy by row and validation accuracy by choice, a number a seed; what the rule looks at."""
    graph, labels = load(name, practice)
    splits = splits_of(labels)
    names = structure_alone(graph.num_nodes)
    material = Material(graph, FeatureSchema(matrix_width=graph.num_features), names, Room.of())
    found: dict[str, Any] = {"graph": name, "nodes": graph.num_nodes, "columns": graph.num_features}
    found |= {"versions": versions(), "seeds": list(SEEDS), "accuracy": {}, "validation": {}, "seconds": {}}
    for taken in MADE_OF:
        started = time.perf_counter()
        z = material.embedded(taken)
        found["seconds"][taken] = round(time.perf_counter() - started, 2)
        found["validation"][taken] = [validation_accuracy(z, labels, [split]) for split in splits]
        found["accuracy"][taken] = scores(z, labels, splits)
        if taken == "structure":
            spectrum = LinearJEPA().fit(graph).spectrum()
            found["evidence"] = asdict(Evidence.of(graph.features, spectrum, z))
    for method in BASELINES:
        z = make_method(method).fit(graph).transform(graph)
        found["accuracy"][method] = scores(z, labels, splits)
    return found


def measure_node2vec(name: str, practice: Path | None) -> dict[str, Any]:
    """Test accuracy of node2vec, a number a seed."""
    graph, labels = load(name, practice)
    started = time.process_time()
    z = node2vec.embed(graph)
    seconds = {"node2vec": round(time.process_time() - started, 2)}
    found = {"node2vec": scores(z, labels, splits_of(labels))}
    made = {"walks": "nodejepa.workflow.node2vec", "walks_versions": versions()}  # older lines: pecanpy
    return {"graph": name, "seeds": list(SEEDS), "accuracy": found, "seconds": seconds, **made}


def splits_of(labels: Any) -> list[Split]:
    """20 training and 30 validation labels per class."""
    return [per_class_split(labels, train=20, val=30, seed=seed) for seed in SEEDS]


def scores(z: Any, labels: Any, splits: list[Split]) -> list[float]:
    """Test accuracy under the fair probe, percent."""
    return [round(score.test_accuracy, 3) for score in linear_probe(z, labels, splits).scores]


def read() -> dict[str, dict[str, Any]]:
    """What is known of each graph, in the order of the alphabet: its lines put together."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    found: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, lines):
        known = found.setdefault(line["graph"], {"accuracy": {}, "seconds": {}})
        rows = {field: known[field] | line[field] for field in ("accuracy", "seconds")}
        known |= line | rows
    return dict(sorted(found.items()))


def append(record: dict[str, Any]) -> None:
    """One line more."""
    line = json.dumps(record, allow_nan=False) + "\n"
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(line)
    print(line, flush=True)


def render(records: Iterable[dict[str, Any]]) -> str:
    """The table as Markdown."""
    titles = ("columns", "edges only", "both", "auto, labels", "auto, rule", "X", "S^2 X", "node2vec")
    lines, missed, pecanpy = [], [], []
    for record in records:
        if "node2vec" in record["accuracy"] and "walks" not in record:
            pecanpy.append(record["graph"])
        rows, validation = record["accuracy"], record["validation"]
        picked = [best_of({k: v[i] for k, v in validation.items()}) for i in range(len(record["seeds"]))]
        rule = Evidence(**record["evidence"]).taken
        if record["nodes"] > EXACT_UP_TO:  # where auto does not look at the structure
            picked, rule = ["columns"] * len(picked), "columns"
        auto = [rows[taken][i] for i, taken in enumerate(picked)]
        shown = [rows["columns"], rows["structure"], rows["both"], auto, rows[rule]]
        shown += [rows["raw"], rows["sgc"], rows.get("node2vec")]
        means = [None if values is None else fmean(values) for values in shown]
        best = max(mean for mean in means if mean is not None)
        for title, place in (("labels", 3), ("the rule", 4)):
            mean, edges = means[place], means[1]
            if mean is not None and edges is not None and (mean < best - _TWO or mean < edges - _ONE):
                missed.append(f"{record['graph']} ({title}: {best - mean:.1f} behind the best row)")
        cells = (
            TableCell.name("-") if mean is None else TableCell.number(mean, decimals=1) for mean in means
        )
        size = TableCell.number(record["columns"], decimals=0)
        lines.append((TableCell.name(record["graph"]), size, *cells, TableCell.name(rule)))
    columns = (Column.name("Graph"), Column("Columns"), *map(Column, titles), Column.name("The rule takes"))
    notes = (
        f"Test accuracy, fair probe, 20 training labels per class, mean over splits of seeds {SEEDS[0]} to "
        f"{SEEDS[-1]}. The first five are LinearJEPA. With labels, auto takes what the validation labels of "
        "the split pick. Of graphs of more than 50,000 nodes auto takes the columns.",
        "node2vec is the row of compare" + (f", on {', '.join(pecanpy)} pecanpy." if pecanpy else "."),
        "Bar: auto within two points of the best row and no more than one behind edges only. Missed: "
        + ("; ".join(missed) or "nowhere")
        + ".",
    )
    title = f"What embeddings are made of: {len(lines)} graphs"
    return to_markdown(ReportTable("practice", title, columns, (tuple(lines),), notes))


def main() -> None:
    """Measure what is missing, write the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.practice", description=__doc__)
    parser.add_argument("graphs", nargs="*", help="all if none is named")
    parser.add_argument("--practice", type=Path, help="folder of the practice graphs")
    parser.add_argument("--node2vec", action="store_true", help="measure its row as well")
    parser.add_argument("--render", action="store_true", help="only write the table")
    asked = parser.parse_args()
    for name in () if asked.render else asked.graphs or GRAPHS:
        known = read().get(name, {})
        if "evidence" not in known:
            append(measure(name, asked.practice))
        if asked.node2vec and "walks" not in known:
            append(measure_node2vec(name, asked.practice))
    write_text(RECORDS.with_name("table.md"), render(each for each in read().values() if "evidence" in each))


if __name__ == "__main__":
    main()
