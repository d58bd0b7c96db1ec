"""Naive twins of what the package computes fast: dense matrices, loops and textbook formulas, written once.

They share no code with ``nodejepa``; of a model they read weights, norms and activations only.
"""
