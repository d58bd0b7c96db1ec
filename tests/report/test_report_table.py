"""Cells of tables, and tables as Markdown and LaTeX."""

from __future__ import annotations

import pytest
from studies.render.latex import escape_latex, to_latex
from studies.render.tables.shared import p_cell

from nodejepa.report.table import Column, ReportTable, Summary, TableCell, to_markdown


def test_latex_and_markdown_escape_what_records_say():
    row = (
        TableCell.name("a_b & <c>|*"),
        TableCell.score(Summary(80.0, None, 1), best=Summary(80.0, None, 1)),
    )
    note = r"C:\tmp $HOME #1 ~^ [x](y)"
    table = ReportTable("t", "T", (Column.name("50%_{x}"), Column.score("s")), ((row,),), (note,))
    assert r"a\_b \& \textless{}c\textgreater{}|*" in to_latex(table)
    assert r"50\%\_\{x\}" in to_latex(table)
    assert r"C:\textbackslash{}tmp \$HOME \#1 \textasciitilde{}\textasciicircum{}" in to_latex(table)
    assert r"| a\_b & \<c\>\|\* | **80.00 (1)** |" in to_markdown(table)
    assert r"\[x\](y)" in to_markdown(table)
    assert escape_latex("[2pt] a\nb") == "{[}2pt{]} a b"  # a bracket would be an argument of the line break


def test_numbers_in_cells():
    assert TableCell.number(-0.004, signed=True).text == "-0.00"
    assert TableCell.number(1234.5, decimals=1).text == "1,234.5"
    assert TableCell.number(None).text == "-"
    assert p_cell(0.00001).text == "< 0.0001"
    assert p_cell(0.04999).bold
    assert not p_cell(0.05).bold
    assert TableCell.score(Summary(80.0, None, 1)).values == ("80", "", "1")
    minus = ReportTable(
        "t",
        "T",
        (Column.name("a"), Column.name("b")),
        (((TableCell.number(-1.5), TableCell.name("3-5")),),),
        (),
    )
    assert "$-$1.50 & 3-5" in to_latex(minus)


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="does not fit"):
        ReportTable("t", "T", (Column.name("a"),), (((TableCell.name("x"), TableCell.name("y")),),), ())
