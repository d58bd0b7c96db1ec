"""Studies: methods scored on named graphs over many seeds, in two rooms.

run       specification -> cells -> records
render    records -> tables, figures and the chapter of a report
"""
