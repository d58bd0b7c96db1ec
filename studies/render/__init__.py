"""The tables and figures of this repository's own studies, beside the paper's; no part of the wheel.

``python -m studies.render [STUDY ...]`` renders them and renews the pages that show them.
"""
