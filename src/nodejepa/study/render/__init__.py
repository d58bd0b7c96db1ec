"""From records to what people read: the same bytes for the same records.

contents            which tables and figures a study has, and writing them; insert puts tables into pages
tables, figures     one a file; names and looks say what methods are called and how they are drawn
selection           records by method, graph, split and seed; contrasts and statistics compare them
paper               what the paper prints (paper.toml), beside ours
chapter             a study in words, pictures and tables, as a chapter of a report; standing: its words
page                the report on run folders and study folders
"""
