"""How much do very few labels per class buy?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from nodejepa.data.splits import per_class_split
from nodejepa.diagnostics import Embeddings
from nodejepa.errors import EvaluationError
from nodejepa.evaluation.probe import ProbeMode, linear_probe
from nodejepa.evaluation.probe_result import ProbeResult


def fewshot_probe(
    embeddings: Embeddings,
    labels: npt.ArrayLike,
    *,
    shots: Sequence[int] = (5, 10, 20),
    draws: int = 5,
    val: int = 30,
    seed: int = 42,
    mode: ProbeMode = "fair",
) -> dict[int, ProbeResult]:
    """The linear probe with k training labels per class, for every k in ``shots``.

    Each k is drawn ``draws`` times (seeds ``seed``, ``seed + 1``, ...), with ``val`` validation labels per
    class and all other nodes for testing. ``embeddings`` is one matrix ``[nodes, d]``; the encoder that made
    it must not have seen more labels than the probe.
    """
    if draws < 1 or not shots or len(set(shots)) < len(shots):
        raise EvaluationError(
            f"shots {tuple(shots)} with {draws} draws",
            where="few-shot probe",
            fix="Give different numbers of labels per class and at least one draw.",
        )
    return {
        k: linear_probe(
            embeddings,
            labels,
            [per_class_split(labels, train=k, val=val, seed=seed + draw) for draw in range(draws)],
            mode=mode,
        )
        for k in shots
    }
