"""From records to what people read: the same bytes for the same records.

contents            which tables and figures a study has, and writing them
tables, figures     of records
selection           records by method, graph, split and seed; statistics compares them
paper               what the paper prints (paper.toml), beside ours; what methods are called
chapter             a study in words, pictures and tables, as a chapter of a report; standing: its words
page                the report on run folders and study folders; tables inside of hand-written pages
"""
