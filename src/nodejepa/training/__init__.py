"""The one training loop, its checkpoints and its randomness."""
