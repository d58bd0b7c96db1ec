"""Rendering a folder: the same bytes for the same records; figures read well or are absent."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import matplotlib as mpl
import pytest
from made_up import made_up, record
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from studies.render.contents import figures_of, render_study
from studies.render.figures.differences import OUTCOMES
from studies.render.figures.style import house_style
from studies.render.figures.time import epoch_curve_figure
from studies.render.paper import FLOORS, SELF_SUPERVISED, look

from nodejepa.errors import DataError

pytestmark = pytest.mark.slow

KINDS = ("main", "fewshot", "ablation", "collapse", "efficiency", "finetune")
FIGURES = {
    "main": {
        "average-rank",
        "accuracy",
        "significant-wins",
        "difference-to-graphmae",
        "effective-rank",
        "mean-std",
    },
    "fewshot": {"fewshot"},
    "ablation": {"ablation"},
    "collapse": {"effective-rank", "mean-std"},
    "efficiency": {"total-time", "epoch-time", "epoch-curve", "accuracy-time"},
    "finetune": set(),
}


def write(folder: Path, records: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(one) + "\n" for one in records)
    (folder / "records.jsonl").write_text(text, encoding="utf-8")
    return folder


def digests(paths: list[Path]) -> dict[str, str]:
    return {f"{p.parent.name}/{p.name}": hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


@pytest.mark.parametrize("kind", KINDS)
def test_same_bytes_again_and_from_shuffled_records(tmp_path, kind):
    records, main = made_up(kind, ("photo",), 2), made_up("main", ("photo",), 2)
    write(tmp_path / "a" / "main", main)
    first = digests(render_study(write(tmp_path / "a" / kind, records)))
    for part in (records, main):
        random.Random(3).shuffle(part)
    write(tmp_path / "b" / "main", main)
    assert digests(render_study(write(tmp_path / "b" / kind, records))) == first
    drawn = {name.split("/")[1].split(".")[0] for name in first if name.startswith("figures/")}
    assert drawn == FIGURES[kind]
    assert {name.rsplit(".")[-1] for name in first} >= {"md", "tex", "csv"}


def test_files_say_nothing_of_when_and_where(tmp_path):
    written = render_study(write(tmp_path / "collapse", made_up("collapse", ("photo",), 1)))
    for path in written:
        content = path.read_bytes()
        assert b"dc:date" not in content
        assert b"tIME" not in content
        assert str(tmp_path).encode() not in content
        assert b"Matplotlib" not in content


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_with_one_cell_renders(tmp_path, kind):
    records = made_up(kind, ("photo",), 1)[:1]
    written = render_study(write(tmp_path / kind, records))
    assert {path.suffix for path in written} >= {".md", ".tex", ".csv"}
    assert all(path.stat().st_size for path in written)


@pytest.mark.parametrize("methods", [("raw",), ("raw", "sgc"), ("sgc", "nodejepa"), ("dgi",)])
@pytest.mark.parametrize("kind", ["main", "collapse"])
def test_a_study_stopped_after_its_first_methods_is_drawn(kind, methods):
    records = [one for one in made_up(kind, ("photo", "cs"), 2) if one["method"] in methods]
    with house_style():
        drawn = {name for name, make in figures_of(kind, records).items() if make() is not None}
    assert "mean-std" in drawn
    assert ("effective-rank" in drawn) == bool({"nodejepa", "dgi"} & set(methods))


@pytest.mark.parametrize("kind", KINDS)
def test_without_data_no_figure(kind):
    records = [{**r, "status": "not run"} for r in made_up(kind, ("photo", "arxiv"), 1)]
    with house_style():
        assert all(make() is None for make in figures_of(kind, records).values())


def test_an_old_figure_goes_with_its_records(tmp_path):
    folder = write(tmp_path / "collapse", made_up("collapse", ("photo",), 1))
    render_study(folder)
    assert (folder / "figures" / "mean-std.png").is_file()
    write(folder, [{**r, "mean_std": None} for r in made_up("collapse", ("photo",), 1)])
    render_study(folder)
    assert not (folder / "figures" / "mean-std.png").exists()
    assert (folder / "figures" / "effective-rank.png").is_file()


def test_accuracy_against_time_needs_the_main_study(tmp_path):
    folder = write(tmp_path / "efficiency", made_up("efficiency", ("photo",), 1))
    assert "accuracy-time.png" not in {path.name for path in render_study(folder)}
    write(tmp_path / "main", made_up("main", ("photo",), 1))
    assert "accuracy-time.png" in {path.name for path in render_study(folder)}


def test_no_records_is_said(tmp_path):
    with pytest.raises(DataError, match="no records"):
        render_study(tmp_path / "main")


def test_the_users_matplotlib_settings_come_back(tmp_path):
    with mpl.rc_context({"font.size": 31}):
        render_study(write(tmp_path / "collapse", made_up("collapse", ("photo",), 1)))
        assert mpl.rcParams["font.size"] == 31


def test_no_two_methods_look_alike():
    looks = [look(name) for name in (*SELF_SUPERVISED, *FLOORS, "supervised-gcn")]
    for part in ("colour", "marker"):
        assert len({getattr(one, part) for one in looks}) == len(looks)
    assert not {one.colour for one in looks} & {colour for _, colour, _ in OUTCOMES}


def test_the_curve_of_epochs_is_the_median_of_the_passes_with_their_range():
    curve = [1.0] * 24 + [5.0] * 35  # epochs 2 to 60; the 26th is the first with two hops
    passes = [
        record("nodejepa", "synthetic-arxiv", 42 + i, seconds_by_epoch=[(2 + i) * s for s in curve])
        | {"total_seconds": 1.0}
        for i in range(3)
    ]
    (panel,) = epoch_curve_figure(passes).axes
    drawn, jump = panel.lines
    assert list(drawn.get_xdata()) == [*range(2, 61)]
    assert list(drawn.get_ydata()) == [3 * s for s in curve]
    assert jump.get_xdata()[0] == 25.5
    ((area,),) = (shape.get_paths() for shape in panel.collections)
    assert {tuple(point) for point in area.vertices} >= {(2, 2), (2, 4), (60, 10), (60, 20)}


def test_bars_of_all_panels_of_a_logarithmic_axis_compare():
    with house_style():
        figure = figures_of("efficiency", made_up("efficiency", ("photo", "arxiv"), 2))["total-time"]()
    assert len({panel.get_xlim() for panel in figure.axes}) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if FIGURES[kind]])
@pytest.mark.parametrize("graphs", [("photo",), ("computers", "photo", "cs", "physics", "arxiv")])
def test_no_text_overlaps_or_is_cut(kind, graphs, monkeypatch):
    """Every text that is drawn stands inside its figure and apart from every other."""
    drawn: list[tuple[str, Bbox]] = []
    draw = Text.draw

    def recording(self, renderer, *args, **kwargs):
        if self.get_text().strip() and self.get_visible():
            drawn.append((self.get_text(), self.get_window_extent(renderer)))
        return draw(self, renderer, *args, **kwargs)

    monkeypatch.setattr(Text, "draw", recording)
    with house_style():
        for name, make in figures_of(kind, made_up(kind, graphs, 2), made_up("main", graphs, 2)).items():
            figure = make()
            drawn.clear()
            FigureCanvasAgg(figure).draw()
            assert len(drawn) > 5
            width, height = figure.bbox.width, figure.bbox.height
            for place, (text, box) in enumerate(drawn):
                assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -1, (name, text)
                for other, theirs in drawn[:place]:
                    assert not _overlap(box, theirs), (name, text, other)


def _overlap(a: Bbox, b: Bbox) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
