"""Tables as Markdown, LaTeX (booktabs) and CSV. Text from records is escaped for each."""

import csv
import io
import re

from nodejepa.report.table import ReportTable, TableCell

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "[": "{[}",  # at the start of a row it would be an argument of the line break before it
    "]": "{]}",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "†": r"$^{\dagger}$",
    "…": r"\ldots{}",
}


def to_markdown(table: ReportTable) -> str:
    """A heading, the table and its notes."""
    header = [_markdown(column.title) for column in table.columns]
    rule = ["---" if column.left else "---:" for column in table.columns]
    rows = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]
    notes = "\n".join(f"- {_markdown(note)}" for note in table.notes)
    return f"# {_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n\n{notes}\n"


def to_latex(table: ReportTable) -> str:
    """A floating table; the document needs ``\\usepackage{booktabs}``."""
    layout = "".join("l" if column.left else "r" for column in table.columns)
    header = " & ".join(escape_latex(column.title) for column in table.columns)
    body = "\n\\midrule\n".join(
        "\n".join(" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in group)
        for group in table.groups
        if group
    )
    caption = escape_latex(" ".join((f"{table.title}.", *table.notes)))
    return (
        "\\begin{table*}[t]\n\\centering\n\\small\n"
        f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{header} \\\\\n\\midrule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n\\caption{{{caption}}}\n\\label{{tab:{table.name}}}\n\\end{{table*}}\n"
    )


def to_csv(table: ReportTable) -> str:
    """Bare numbers, one column each; no notes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([title for column in table.columns for title in column.csv_titles])
    writer.writerows([value for cell in row for value in cell.values] for row in table.rows)
    return text.getvalue()


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> print(escape_latex("S^2 X & 50 %"))
    S\\textasciicircum{}2 X \\& 50 \\%
    """
    return "".join(_LATEX.get(letter, letter) for letter in _one_line(text))


def _latex_cell(cell: TableCell) -> str:
    text = re.sub(r"(?<!\w)-(?=\d)", "$-$", escape_latex(cell.text))  # a minus, not a hyphen
    return (rf"\textbf{{{text}}}" if cell.bold else text) + escape_latex(cell.mark)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", _one_line(text))


def _markdown_cell(cell: TableCell) -> str:
    text = _markdown(cell.text)
    return (f"**{text}**" if cell.bold else text) + _markdown(cell.mark)


def _one_line(text: str) -> str:
    return " ".join(text.split())
