"""Specifications, committed records and what is rendered from them; ``render`` is the renderer."""
