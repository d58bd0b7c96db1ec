"""Losses: one a file, its equation in the docstring."""
