"""A table as LaTeX (booktabs); text from records is escaped."""

import re

from nodejepa.report.sections import ReportTable, TableCell

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


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> print(escape_latex("S^2 X & 50 %"))
    S\\textasciicircum{}2 X \\& 50 \\%
    """
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def _latex_cell(cell: TableCell) -> str:
    text = re.sub(r"(?<!\w)-(?=\d)", "$-$", escape_latex(cell.text))  # a minus, not a hyphen
    return (rf"\textbf{{{text}}}" if cell.bold else text) + escape_latex(cell.mark)
