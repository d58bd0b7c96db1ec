"""The demo's page: one HTML file that needs no network, everything from data escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from nodejepa.data import Dataset
from nodejepa.graph_checks import Features
from nodejepa.study.scatter import scatter_svg

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin: 0; font-size: 1.1rem; }
table { border-collapse: collapse; margin: 1rem 0 2rem; }
th, td { padding: .35rem 1rem .35rem 0; text-align: right; border-bottom: 1px solid #8886; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.5rem; }
section { border: 1px solid #8886; border-radius: .5rem; padding: 1rem; }
section p { margin: .3rem 0; } .quiet { opacity: .75; font-size: .9rem; }
svg { width: 100%; height: auto; }
svg text { font: bold 15px system-ui, sans-serif; fill: #000; stroke: #fff; stroke-width: 4px;
  paint-order: stroke; text-anchor: middle; dominant-baseline: central; }
"""


@dataclass(frozen=True, eq=False)
class Section:
    """What the page says about one method."""

    method: str
    summary: str
    scores: dict[str, str]  # column title -> text
    verdict: str
    file: str
    embeddings: Features


def demo_page(dataset: Dataset, sections: Sequence[Section], *, draws: int, comparison: str = "") -> str:
    """A self-contained page: the table of scores and what they mean, then a map and a verdict a method."""
    graph = dataset.graph
    columns = list(dict.fromkeys(title for section in sections for title in section.scores))
    rows = [[s.method, s.summary, *(s.scores.get(title, "") for title in columns)] for s in sections]
    maps = "\n".join(_map(dataset, section) for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>nodejepa: {escape(dataset.name)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(dataset.name)}</h1>
<p class="quiet">{graph.num_nodes:,} nodes, {graph.num_edges:,} edges (both directions),
{graph.num_features} features, {dataset.num_classes} classes</p>
<p>Each method saw the graph and never a label. A linear classifier then learned from a few labels per
class; the figures are its accuracy (percent, mean ± standard deviation over {draws} draws) on labels it had
not seen.</p>
{_table(["method", "what it is", *columns], rows)}
<p>{escape(comparison)}</p>
<div class="maps">
{maps}
</div>
</body>
</html>
"""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _map(dataset: Dataset, section: Section) -> str:
    picture = scatter_svg(section.embeddings, dataset.labels, dataset.class_names, dataset.graph.node_ids)
    return f"""<section>
<h2>{escape(section.method)}</h2>
{picture}
<p>{escape(section.verdict)}</p>
<p class="quiet">First two principal components. Data: embeddings/{escape(section.file)}</p>
</section>"""
