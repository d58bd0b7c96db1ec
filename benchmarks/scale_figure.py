"""The figure of :mod:`benchmarks.scale`: time and memory against size, and the line beyond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from studies.render.figures.panels import house_style, new_figure, pictures

from nodejepa.files import atomic_path

_BILLION = 1e9
MACHINES = (1, 8, 64)


def line(records: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Intercept and slope of ``key`` by stored edges, through the two largest graphs."""
    below, top = sorted(records, key=lambda record: int(record["stored_edges"]))[-2:]
    slope = (top[key] - below[key]) / (top["stored_edges"] - below["stored_edges"])
    return float(top[key] - slope * top["stored_edges"]), float(slope)


def beyond(records: list[dict[str, Any]]) -> dict[int, float]:
    """Minutes at a billion stored edges by number of machines: on paper, work shared evenly, no network."""
    base, slope = line(records, "seconds")
    return {machines: (base + slope * _BILLION) / 60 / machines for machines in MACHINES}


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Write the figure; with fewer than two records there is no line to draw."""
    if len(records) < 2:
        return
    with house_style():
        figure = new_figure(9, 3.8)
        left, right = figure.subplots(1, 2)
        _panel(left, records, "seconds", 1 / 60, "minutes")
        _panel(right, records, "peak_anonymous_gib", 1, "anonymous memory at the peak, GiB")
        words = []
        for (machines, minutes), marker in zip(beyond(records).items(), "ovs", strict=True):
            left.plot(_BILLION, minutes, marker, color="#D55E00", fillstyle="none")
            words.append(f"{minutes:,.0f} min on {machines}")
        left.set_title("10^9 edges, on paper: " + ", ".join(words), fontsize=7)
        with atomic_path(path) as temporary:
            temporary.write_bytes(pictures(figure, ["svg"])["svg"])


def _panel(axes: Axes, records: list[dict[str, Any]], key: str, unit: float, label: str) -> None:
    edges = [record["stored_edges"] for record in records]
    base, slope = line(records, key)
    reach = np.geomspace(sorted(edges)[-2], _BILLION, 50)
    axes.plot(reach, unit * (base + slope * reach), "--", color="#888888", label="straight line, on paper")
    axes.plot(edges, [unit * record[key] for record in records], "o-", color="#0072B2", label="measured")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("stored edges")
    axes.set_ylabel(label)
    axes.legend()
