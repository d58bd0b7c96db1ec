"""How far a reading of the paper is from the three numbers it prints of the embeddings."""

from studies.render.contents import tables_of
from studies.render.frame import frame_of

from nodejepa.report.sections import to_csv


def record(variant, dataset, seed, rank, std, ratio, method="nodejepa"):
    return {
        "study": "readings", "kind": "probe", "method": method, "preset": "paper", "variant": variant,
        "dataset": dataset, "split": "20-30", "seed": seed, "status": "done", "test_accuracy": 50.0 + seed,
        "effective_rank": 99.0, "effective_rank_uncentred": rank, "mean_std": std,
        "participation_ratio": 99.0, "participation_ratio_uncentred": ratio,
    }  # fmt: skip


RECORDS = [
    record("pairs", "cs", 1, 65.2, 0.893, 7.84),
    record("pairs", "cs", 2, 70.4, 0.903, 7.84),  # CS: 65.2 ± 2.6, 0.898 ± 0.005, 7.84 ± 0.33
    record("dims", "cs", 1, 65.2, 0.908, 7.18),
    record("dims", "photo", 1, None, 0.402, 1.87),  # Photo: 0.514 ± 0.112, 1.87 ± 0.46
    record("whole", "physics", 1, 14.5, 0.144, 1.05, "patchjepa"),  # Physics: 14.6 ± 0.1, 0.144, 1.04 ± 0.00
]


def test_distances_are_in_printed_spreads_and_the_reading_that_meets_most_is_bold():
    frame = frame_of(RECORDS)
    (table,) = tables_of("readings", frame, frame)
    rows = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows[:3]}
    titles = [column.title for column in table.columns]
    assert titles[2:5] == [
        "Photo: effective rank, uncentred",
        "Photo: mean std",
        "Photo: participation ratio, uncentred",
    ]
    assert rows["printed in the paper"][3:6] == ["65.2 ± 2.6", "0.898 ± 0.005", "7.84 ± 0.33"]
    assert rows["pairs"] == [
        *("-", "-", "-", "67.8 (+1.0)", "0.898 (+0.0)", "7.84 (+0.0)", "-", "-", "-", "3 of 3", "0.33")
    ]
    assert rows["dims"] == [
        *("-", "0.402 (-1.0)", "1.87 (+0.0)", "65.2 (+0.0)", "0.908 (+2.0)", "7.18 (-2.0)"),
        *("-", "-", "-", "5 of 5", "1.00"),
    ]
    bold = {row[1].text for row in table.rows if row[-2].bold}
    assert bold == {"dims", "whole"}  # pairs is nearer, but meets fewer numbers
    patch = table.groups[1][1]
    texts = [cell.text for cell in patch[-5:]]
    assert texts == ["14.5 (-1.0)", "0.144 (+0.0)", "1.05 (+2.0)", "3 of 3", "1.00"]
    far = frame_of([record("far", "cs", 1, 80.0, 0.898, 12.0)])  # 23 and 53 % above
    assert tables_of("readings", far, far)[0].rows[1][-2].text == "1 of 3"
    assert to_csv(tables_of("readings", frame_of(RECORDS[::-1]), frame)[0]) == to_csv(table)
