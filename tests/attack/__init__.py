"""Attacks on the promises, outside the tests: ``python -m tests.attack``."""
