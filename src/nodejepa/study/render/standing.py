"""A study in words: how far it is, and where each method stands beside the others."""

from collections import Counter
from collections.abc import Mapping, Sequence

from nodejepa.study.render.paper import FLOORS, method_name
from nodejepa.study.render.selection import Record, by_split, methods_of, unfinished_notes, values_by
from nodejepa.study.render.statistics import contrasts

DRAWN = {  # what to draw and to compare: the first field that the study has
    "finetune_test_accuracy": ("Accuracy after fine-tuning", "test accuracy after fine-tuning, %"),
    "test_accuracy": ("Accuracy", "test accuracy under the fair probe, %"),
    "epoch_seconds": ("Time", "seconds per epoch"),
}


def progress_words(records: Sequence[Record], planned: int | None = None) -> list[str]:
    """How much of the study there is, and why the rest is not."""
    if not records:
        return ["No cell has been measured yet."]
    states = Counter(str(record.get("status")) for record in records)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    cells = f"{len(records)} cells" if planned is None else f"{len(records)} of {planned} cells"
    return [f"{cells} on record: {counts}.", *unfinished_notes(records)]


def comparison_words(records: Sequence[Record]) -> list[str]:
    """For each trained method: where it stands beside the floors and the other methods, with tests."""
    field = drawn_field(records)
    if field is None or not field.endswith("accuracy"):
        return []
    sentences = []
    for where, part in comparable_parts(records).items():
        for method in methods_of(part, floors=False):
            if method in FLOORS:
                continue
            found = [c for c in contrasts(part, method, field) if c.outcome() is not None]
            groups = {
                "floors that need no training": [c.outcome() for c in found if c.opponent in FLOORS],
                "other methods": [c.outcome() for c in found if c.opponent not in FLOORS],
            }
            words = [_standing(whom, Counter(outcomes)) for whom, outcomes in groups.items() if outcomes]
            if words:
                sentences.append(f"{method_name(method)}{where}: {'; '.join(words)}.")
    if not sentences:
        trained = any(method not in FLOORS for method in methods_of(records, floors=False))
        return ["No difference can be tested yet: that takes two seeds of a method."] if trained else []
    measure = DRAWN[field][1].removesuffix(", %")
    rule = (
        f"Better and worse: the {measure} differs with p < 0.05 in a t-test over seeds, corrected (Holm) for "
        "all tests of the method."
    )
    return [*sentences, rule]


def comparable_parts(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Accuracies on different splits are different questions; the name is empty where there is one part."""
    parts = by_split(records)
    names = {key: ", ".join(sorted({str(r.get("split")) for r in part})) for key, part in parts.items()}
    return {f", split {names[key]}" if len(parts) > 1 else "": part for key, part in parts.items()}


def _standing(whom: str, counts: Mapping[str | None, int]) -> str:
    return (
        f"better in {counts['win']}, worse in {counts['loss']}, undecided in {counts['tie']} of "
        f"{sum(counts.values())} comparisons with {whom}"
    )


def drawn_field(records: Sequence[Record]) -> str | None:
    """The field of the records that is drawn and spoken of."""
    return next((field for field in DRAWN if values_by(records, field, id)), None)
