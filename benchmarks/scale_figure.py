"""The figure of :mod:`benchmarks.scale`: time and memory against size, and the line beyond."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from studies.render.figures.panels import house_style, new_figure, pictures

from nodejepa.files import atomic_path

_BILLION = 1e9


def line(records: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Intercept and slope of ``key`` by stored edges, through the two largest graphs."""
    below, top = sorted(records, key=lambda record: int(record["stored_edges"]))[-2:]
    slope = (top[key] - below[key]) / (top["stored_edges"] - below["stored_edges"])
    return float(top[key] - slope * top["stored_edges"]), float(slope)


def draw(records: list[dict[str, Any]], path: Path, together: Sequence[dict[str, Any]] = ()) -> None:
    """Write the figure: records of one process, and those of workers ``together``.

    With fewer than two records of one process there is no line to draw.
    """
    if len(records) < 2:
        return
    with house_style():
        figure = new_figure(9, 3.8)
        left, right = figure.subplots(1, 2)
        _panel(left, records, together, "seconds", 1 / 60, "minutes")
        _panel(right, records, together, "peak_anonymous_gib", 1, "anonymous memory at the peak, GiB")
        threads = " or ".join(str(n) for n in sorted({record["threads"] for record in records}))
        steps = ", ".join(records[-1]["phases"])
        left.set_title(f"{steps}: one process on one machine, {threads} threads", fontsize=7)
        with atomic_path(path) as temporary:
            temporary.write_bytes(pictures(figure, ["svg"])["svg"])


def _with_workers(record: dict[str, Any]) -> dict[str, float]:
    """Seconds and memory of the commands that several workers share, and of preparing."""
    phases = [record["phases"][name] for name in ("prepare", "shared")]
    return {
        "seconds": sum(phase["seconds"] for phase in phases),
        "peak_anonymous_gib": max(phase["peak_anonymous_gib"] for phase in phases),
    }


def _panel(
    axes: Axes,
    records: list[dict[str, Any]],
    together: Sequence[dict[str, Any]],
    key: str,
    unit: float,
    label: str,
) -> None:
    edges = [record["stored_edges"] for record in records]
    base, slope = line(records, key)
    reach = np.geomspace(sorted(edges)[-1], _BILLION, 50)
    axes.plot(
        reach, unit * (base + slope * reach), "--", color="#888888", label="extrapolated, the same process"
    )
    axes.plot(
        edges,
        [unit * record[key] for record in records],
        "o-",
        color="#0072B2",
        label="measured, one process",
    )
    if together:
        count = together[0]["workers"]
        places = [record["stored_edges"] for record in together]
        values = [unit * _with_workers(record)[key] for record in together]
        axes.plot(places, values, "s", color="#D55E00", label=f"measured, {count} workers of one thread")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("stored edges")
    axes.set_ylabel(label)
    axes.legend()
