# %% [markdown]
# # Compare methods
#
# `compare` fits several methods on a graph and recommends one. With labels it recommends the method with the
# highest mean test accuracy over several splits. Without labels it recommends LinearJEPA and reports how well
# held-out links are predicted. The last part tests whether a difference is more than chance.

# %% Without labels: held-out links
import nodejepa
from nodejepa import load_dataset

digits = load_dataset("digits")
found = nodejepa.compare(digits.graph, methods=("raw", "sgc"), seed=0)
for row in found.rows:
    links = "-" if row.links_auc is None else f"{row.links_auc:.2f}"  # edges-only has seen all links
    print(f"  {row.method:<12} links {links}")
print("recommended:", found.recommendation.method, "-", found.recommendation.words[0])

# %% With labels: the highest mean test accuracy. No method is trained on the labels
found = nodejepa.compare(digits.graph, digits.labels, methods=("raw", "sgc", "linear-jepa"))
for row in found.rows:
    print(f"  {row.method:<12} {sum(row.accuracy) / len(row.accuracy):.1f} % test accuracy")
print("recommended:", found.recommendation.method, "-", found.recommendation.words[0])
print("its embeddings:", found.embeddings.shape)

# %% [markdown]
# ## Is a difference more than chance?
#
# All methods get the same splits. The paired t-tests are corrected for the number of comparisons.

# %% Seed s is the seed of split s and of training
import numpy as np
from scipy.stats import ttest_rel

from nodejepa.evaluation.scoring import score_method

SEEDS = range(42, 47)
METHODS = ("linear-jepa", "raw", "sgc", "random-gcn")

scores = {method: score_method(digits, method, SEEDS).result for method in METHODS}

# %% The fair probe chooses scaling and C on validation labels, and reads the test labels once
print("test accuracy with 20 labels per class, mean ± standard deviation over splits")
for method, result in scores.items():
    print(f"  {method:<11} {result.test_accuracy_mean:5.1f} ± {result.test_accuracy_std:.1f}")

# %% linear-jepa against every baseline: paired t-test, Holm's correction, 95 % interval of the difference
by_seed = {method: [score.test_accuracy for score in result.scores] for method, result in scores.items()}
baselines = [method for method in METHODS if method != "linear-jepa"]
tests = [ttest_rel(by_seed["linear-jepa"], by_seed[baseline]) for baseline in baselines]
order = np.argsort([test.pvalue for test in tests])  # Holm: the smallest p times their number
steps = [(len(tests) - step) * tests[place].pvalue for step, place in enumerate(order)]
corrected = np.empty(len(tests))
corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
for baseline, test, p in zip(baselines, tests, corrected, strict=True):
    low, high = test.confidence_interval(0.95)
    words = "no difference shown" if p >= 0.05 else "better" if low > 0 else "worse"
    print(f"linear-jepa - {baseline:<10} [{low:+.1f}, {high:+.1f}] points, Holm p = {p:.3f}: {words}")

# %% [markdown]
# This is one small graph. A study (`nodejepa study --help`) runs many methods, graphs and seeds.
