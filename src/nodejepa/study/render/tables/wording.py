"""Sentences that several tables share."""

from __future__ import annotations

FAIR_PROBE = (
    "Fair probe: logistic regression on frozen embeddings, row scaling and C chosen on validation labels; "
    "test labels are read once."
)
PAPER_PROBE = "Paper probe: logistic regression on the embeddings as they are, C = 1."
LIKE_WITH_LIKE = (
    "Differences to it are those under its probe, as far as it is known; the fair probe stands beside."
)
SEEDS = "Mean ± standard deviation (n - 1) over seeds, their number in brackets."
MOST_SEEDS = "a mean over fewer seeds than another's does not compete."
BOLD = f"Bold: best of the column, floors included; {MOST_SEEDS}"
DAGGER_NOTE = "† not above the best floor, which needs no training, on the seeds that both have."
FLOORS_NOTE = (
    "Floors, which need no training: raw features, propagated features (S X, S^2 X, S^3 X; X, S X and S^2 X "
    "equally loud; X after LinearJEPA's walk) and a randomly initialised GCN. LinearJEPA is learned, but not "
    "by gradient descent."
)
PAPER_STD = (
    "The paper's standard deviations fit its own t-tests only when divided by n; ours are divided by n - 1."
)
