"""Untrained baselines, LinearJEPA and what is trained once for all splits of a study, many cells a process.

``python -m tools.many_cells studies/NAME.toml [graph ...] [--method NAME]``. ``nodejepa study run`` starts a
process for each cell, which costs more than a baseline. This calls the worker's own function cell by cell,
in one process for each graph and method, and computes what no seed changes (the graph, embeddings and their
geometry) once. Records differ in ``peak_memory_mb`` alone: that of the shared process. An earlier form
of it made those of baselines in recipe, development and, of 10 labels, fewshot.
"""

from __future__ import annotations

import argparse
import functools
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from nodejepa.data.catalogue import CATALOGUE
from nodejepa.methods import METHODS, find_method
from nodejepa.study import measure
from nodejepa.study.records import finished, read_records
from nodejepa.study.runner import Folders, work
from nodejepa.study.spec import Cell, load_spec


def measure_all(cells: list[Cell], folders: Folders) -> int:
    """Cells of one graph and one method, one after another."""
    embed, diagnose, once = measure._embed, measure.diagnose, {}
    measure.load_dataset = functools.lru_cache(measure.load_dataset)

    def embed_once(cell, *rest):
        entry = find_method(cell.method)
        if cell.training_seed is None and (entry.trained or entry.seeded):
            return embed(cell, *rest)
        if "embedded" not in once:
            once["embedded"] = embed(cell, *rest)
        return once["embedded"]

    def diagnose_once(z):
        if "embedded" not in once or z is not once["embedded"][1]:
            return diagnose(z)
        if "geometry" not in once:
            once["geometry"] = diagnose(z)
        return once["geometry"]

    measure._embed, measure.diagnose = embed_once, diagnose_once
    for cell in cells:
        work(cell, folders)
    return len(cells)


def main() -> None:
    """What the study lacks, group by group."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("spec", type=Path)
    arguments.add_argument("graphs", nargs="*")
    arguments.add_argument("--method", action="append", help="only this one; repeatable")
    asked = arguments.parse_args()
    spec, graphs, methods = asked.spec, asked.graphs, asked.method or METHODS
    folders = Folders(spec.with_suffix(""), spec.parent / "runs")
    done, groups = finished(read_records(folders.out), retry_failed=False), {}
    for cell in load_spec(spec).cells:
        entry = METHODS[cell.method]
        many = cell.training_seed is not None or not (entry.trained and entry.by_gradient)
        wanted = cell.method in methods and (not graphs or cell.dataset in graphs)
        here = CATALOGUE[cell.dataset].is_present(folders.data_root)  # `study run` says what is not
        if cell.key not in done and many and wanted and here:
            place = (cell.dataset, cell.method, cell.preset, cell.variant, cell.training_seed)
            groups.setdefault(place, []).append(cell)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as fresh:
        begun = {fresh.submit(measure_all, cells, folders): place for place, cells in groups.items()}
        for ended in as_completed(begun):
            print(*begun[ended], ended.result(), flush=True)


if __name__ == "__main__":
    main()
