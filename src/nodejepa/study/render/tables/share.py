"""How much of the encoder's gradient comes from prediction: which rows of the ablation can mean anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodejepa.report.table import ReportTable, score_cell, score_column, text_cell, text_column
from nodejepa.study.render.names import dataset_name
from nodejepa.study.render.selection import Record, datasets_of, summaries, values_by
from nodejepa.study.render.tables.ablation import variant_label, variant_letter, variants_of
from nodejepa.study.render.tables.wording import SEEDS

_EPOCHS = ("1", "10", "100")  # the last of the run stands beside them


def prediction_share_table(records: Sequence[Record]) -> ReportTable | None:
    """How much of the encoder's gradient comes from prediction, where records tell; none where none does."""
    varied = [record for record in records if record.get("variant") is not None]
    found = {
        name: values_by(
            [{**r, "share": _share(r, name)} for r in varied],
            "share",
            lambda r: (variant_letter(r), str(r["dataset"])),
        )
        for name in (*_EPOCHS, "last")
    }
    if not any(found.values()):
        return None
    return ReportTable(
        "prediction-share",
        "Prediction's share of the encoder's gradient (%), no probe",
        (
            text_column("Dataset"),
            text_column("Variant"),
            *(score_column(f"Epoch {name}") for name in _EPOCHS),
            score_column("Last epoch"),
        ),
        tuple(
            tuple(
                (
                    text_cell(dataset_name(dataset)),
                    text_cell(variant_label(letter)),
                    *(score_cell(summaries(values).get((letter, dataset))) for values in found.values()),
                )
                for letter in variants_of(records)
            )
            for dataset in datasets_of(records)
        ),
        (
            "Length of the prediction term's gradient beside that of all regularisers together, both with "
            "their weights, with respect to the weights of the context encoder.",
            "Near 0 the term is inert: nothing that changes it alone can change the embeddings by much. A "
            "dash: the record is older than this figure.",
            SEEDS,
        ),
    )


def _share(record: Record, name: str) -> float | None:
    shares: object = record.get("prediction_share")
    if not isinstance(shares, Mapping) or not shares:
        return None
    found = shares.get(max(shares, key=int) if name == "last" else name)
    return None if found is None else 100.0 * float(found)
