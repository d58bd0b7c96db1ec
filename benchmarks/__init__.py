"""Speed as ratios: ours against the naive implementation of the same thing, measured in one run."""
