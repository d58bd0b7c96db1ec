"""How much of the encoder's gradient comes from prediction, by variant or by method."""

from collections.abc import Sequence

from nodejepa.report.table import Column, ReportTable
from studies.render.paper import in_method_order, method_name
from studies.render.selection import Record, summaries, values_by
from studies.render.tables.ablation import variant_label, variant_letter, variants_of
from studies.render.tables.shared import Note, by_graph, score_cell

_EPOCHS = ("1", "10", "100")  # the last of the run stands beside them


def prediction_share_table(records: Sequence[Record]) -> ReportTable | None:
    """Where records tell; none where none does."""
    told = [record for record in records if record.get("prediction_share")]
    if not told:
        return None
    variants = variants_of(records)
    methods = in_method_order({str(record["method"]) for record in told})
    found = {
        Column.score(f"Epoch {name}" if name != "last" else "Last epoch"): summaries(
            values_by([{**r, "share": _share(r, name)} for r in told], "share", _place)
        )
        for name in (*_EPOCHS, "last")
    }
    return by_graph(
        "prediction-share",
        "Prediction's share of the encoder's gradient (%), no probe",
        told,
        {column: score_cell(scores) for column, scores in found.items()},
        (
            "Length of the prediction term's gradient beside that of all regularisers together, both with "
            "their weights, with respect to the weights of the context encoder.",
            "Near 0 the term is inert: nothing that changes it alone can change the embeddings by much. A "
            "dash: the record is older than this figure.",
            Note.SEEDS,
        ),
        {v: variant_label(v) for v in variants} or {name: method_name(name) for name in methods},
        "Variant" if variants else "Method",
    )


def _place(record: Record) -> tuple[str, str]:
    varied = record.get("variant") is not None
    return variant_letter(record) if varied else str(record["method"]), str(record["dataset"])


def _share(record: Record, name: str) -> float | None:
    shares = record["prediction_share"]
    found = shares.get(max(shares, key=int) if name == "last" else name)
    return None if found is None else 100.0 * float(found)
