"""How a training went, and what came of it, as sections."""

from __future__ import annotations

from nodejepa.diagnostics import Diagnostics
from nodejepa.methods.estimator import Estimator
from nodejepa.report.charts import Curves, Series
from nodejepa.report.sections import Section, Text, Tone
from nodejepa.training.journal import NOT_A_LOSS
from nodejepa.training.run import History
from nodejepa.training.share import SHARE

_MAX_EPOCHS_DRAWN = 1000
_PANELS = {
    "effective rank": "effective_rank",
    "mean standard deviation": "mean_std",
    "gradient norm": "gradient_norm",
    "prediction's share of the encoder's gradient": SHARE,
    "learning rate": "lr",
}


def verdict(found: Diagnostics, *words: str, doubtful: bool = False) -> Text:
    """The diagnosis and what else is said of the embeddings, in the colour of the worst of it.

    Args:
        found: collapse is a warning; what was not judged, or comes with advice, is not called good.
        words: more sentences.
        doubtful: whether they say that the embeddings are worth little.
    """
    tone: Tone = "good" if found.sound else "plain"
    return Text(
        (f"Embeddings: {found.verdict}", *words), tone="warning" if found.collapsed or doubtful else tone
    )


def training_curves(history: History) -> tuple[Section, ...]:
    """Loss, its terms and what was watched beside them, over epochs; nothing where nothing was trained."""
    if not any("loss" in record for record in history):
        return ()
    terms = dict.fromkeys(name for record in history for name in record if name not in NOT_A_LOSS)
    panels = {"loss and its terms": [_series(history, name) for name in sorted(terms, key="loss".__ne__)]}
    for title, name in _PANELS.items():
        if any(name in record for record in history):
            panels[title] = [_series(history, name)]
    many = len(history) > _MAX_EPOCHS_DRAWN
    caption = f"Of {len(history):,} epochs about {_MAX_EPOCHS_DRAWN:,} are drawn." if many else ""
    return (Curves("Training", "epoch", panels, caption),)


def what_was_found(estimator: Estimator) -> tuple[Section, ...]:
    """What a method says of the graph, with the spectrum of what is predictable; most say nothing."""
    words, rho = estimator.describe(), estimator.spectrum()
    if not words:
        return ()
    line = Series("rho", list(range(1, len(rho) + 1)), list(rho))
    caption = (
        "1: neighbours tell all of it; 0: nothing; below 0: neighbours differ. Latents are as loud as the "
        "root of |rho|."
    )
    panels = {"how well the neighbours foretell each latent": [line]}
    return (Text((words,)), Curves("What is predictable", "latent", panels, caption))


def _series(history: History, name: str) -> Series:
    """The epochs that have this value; of very many, every n-th and the last."""
    known = [record for record in history if isinstance(record.get(name), int | float)]
    step = -(-len(known) // _MAX_EPOCHS_DRAWN)
    shown = known if step <= 1 else [*known[:-1:step], known[-1]]
    return Series(name, [record["epoch"] for record in shown], [record[name] for record in shown])
