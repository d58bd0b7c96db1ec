"""The interactive report: one HTML page that needs no network. Whoever has something to show composes it.

sections     what a page is made of, as plain data; charts: the sections that are drawn
table        a table as data, and its cells; table_formats writes it as Markdown, LaTeX and CSV
summary      mean and standard deviation, as tables and pictures show them
maps         a graph and its embeddings -> map, confusion matrix, scores by class
projection   embeddings in the plane
training     how a training went, and what came of it
runs         the chapter about a run folder, with the graph it was trained on; own_runs: about own graphs
html         the page; its style and scripts are in assets/
"""

from __future__ import annotations

from nodejepa.report.html import footer, render, write_report
from nodejepa.report.sections import Chapter, Report

__all__ = ["Chapter", "Report", "footer", "render", "write_report"]
