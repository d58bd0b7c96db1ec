"""Losses, their equations in the docstrings."""
