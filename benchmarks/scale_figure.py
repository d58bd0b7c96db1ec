"""The figure of :mod:`benchmarks.scale`: time and memory against size, and the line beyond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nodejepa.files import atomic_path
from nodejepa.study.render.figures.style import house_style, new_figure, pictures

_BILLION = 1e9
MACHINES = (1, 8, 64)


def line(records: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Intercept and slope of ``key`` by stored edges; residuals count relative to the value."""
    edges = np.array([record["stored_edges"] for record in records], dtype=float)
    values = np.array([record[key] for record in records], dtype=float)
    design = np.column_stack([np.ones_like(edges), edges]) / values[:, None]
    (base, slope), *_ = np.linalg.lstsq(design, np.ones_like(values), rcond=None)
    return float(base), float(slope)


def beyond(records: list[dict[str, Any]]) -> list[str]:
    """Hours and memory at a billion stored edges, by the measured line: on paper, without any network."""
    base, slope = line(records, "seconds")
    words = []
    for machines in MACHINES:
        hours = (base + slope * _BILLION / machines) / 3600
        words.append(f"{machines} machine{'s' if machines > 1 else ''}: {hours:.1f} h")
    return words


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Write the figure; with fewer than two records there is no line to draw."""
    if len(records) < 2:
        return
    with house_style():
        figure = new_figure(9, 3.8)
        left, right = figure.subplots(1, 2)
        _panel(left, records, "seconds", 1 / 60, "minutes")
        _panel(right, records, "peak_anonymous_gib", 1, "anonymous memory at the peak, GiB")
        base, slope = line(records, "seconds")
        for machines, marker in zip(MACHINES, "ovs", strict=True):
            minutes = (base + slope * _BILLION / machines) / 60
            left.plot(_BILLION, minutes, marker, color="#D55E00", fillstyle="none")
        left.set_title("on paper at 10^9 edges: " + ", ".join(beyond(records)), fontsize=8)
        with atomic_path(path) as temporary:
            temporary.write_bytes(pictures(figure, ["svg"])["svg"])


def _panel(axes: Axes, records: list[dict[str, Any]], key: str, unit: float, label: str) -> None:
    edges = [record["stored_edges"] for record in records]
    base, slope = line(records, key)
    reach = np.geomspace(min(edges), _BILLION, 50)
    axes.plot(reach, unit * (base + slope * reach), "--", color="#888888", label="straight line")
    axes.plot(edges, [unit * record[key] for record in records], "o-", color="#0072B2", label="measured")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("stored edges")
    axes.set_ylabel(label)
    axes.legend()
