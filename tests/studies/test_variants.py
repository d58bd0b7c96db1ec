"""Variants of one method side by side."""

from studies.render.tables.gains import variants_table


def record(variant, dataset, seed, score):
    return {
        "status": "done",
        "method": "linear-jepa",
        "variant": variant,
        "dataset": dataset,
        "split": "20-30",
        "seed": seed,
        "test_accuracy": score,
    }


RECORDS = [
    *(record("0: full", "photo", seed, 90.0 + seed) for seed in (1, 2, 3)),
    *(record("0: full", "cs", seed, 80.0 + seed) for seed in (1, 2)),
    *(record("1: less", "photo", seed, 88.0 + seed) for seed in (1, 2)),
    *(record("1: less", "cs", seed, 79.0 + seed) for seed in (1, 2)),
]


def test_the_mean_is_over_graphs_and_of_seeds_that_both_have():
    table = variants_table(RECORDS)
    full, less = table.groups[0]
    assert [cell.text for cell in full] == [
        "20-30",
        "0: full",
        "92.00 ± 1.00 (3)",
        "81.50 ± 0.71 (2)",
        "-",
        "-",
    ]
    assert [cell.text for cell in less[:5]] == [
        "20-30",
        "1: less",
        "89.50 ± 0.71 (2)",
        "80.50 ± 0.71 (2)",
        "-1.50",
    ]
    assert full[2].bold
    assert not less[2].bold


def test_a_variant_alone_on_a_graph_has_no_difference():
    table = variants_table([*RECORDS, record("2: other", "physics", 1, 50.0)])
    assert [row[-2].text for row in table.rows] == ["-", "-1.50", "-"]


def test_a_note_says_what_was_trained_once():
    once = [record | {"training_seed": 7} for record in RECORDS]
    said = [note for note in variants_table(once).notes if "trained once" in note]
    assert said == [
        "LinearJEPA (closed form): trained once on each graph, with seed 7: their spread is that of the "
        "splits alone."
    ]
    both = variants_table([*once, record("2: full, for each split", "cs", 1, 50.0)]).notes
    assert sum("with seed 7, where a variant does not say otherwise:" in note for note in both) == 1
