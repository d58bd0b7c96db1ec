"""The interactive report: one HTML page that needs no network.

sections     what a page is made of, as plain data, and the page; its style and scripts are in assets/.
             Tables with means and spreads, also as Markdown and CSV
maps         a graph and its embeddings -> map (in the plane), confusion matrix, scores by class
runs         the page of `nodejepa report`: chapters about run folders and files of embeddings
"""

from nodejepa.report.sections import Chapter, Report, footer, render, write_report

__all__ = ["Chapter", "Report", "footer", "render", "write_report"]
