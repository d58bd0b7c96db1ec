"""What differs: tests of both JEPA variants, average ranks, gains, variants, the literature."""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from nodejepa.report.sections import MISSING, Column, ReportTable, Row, TableCell, summarise
from studies.render.frame import (
    Values,
    datasets_of,
    means_on_shared_seeds,
    methods_of,
    on_paper_splits,
    summaries,
    unfinished_notes,
    values_by,
)
from studies.render.paper import (
    JEPA,
    SELF_SUPERVISED,
    UNTRAINED,
    PrintedTest,
    dataset_name,
    method_name,
    paper_accuracy,
    paper_average_rank,
    paper_source,
    paper_tests,
)
from studies.render.statistics import (
    Comparison,
    Contrast,
    average_ranks,
    compare,
    contrasts,
    holm,
    outcome,
    rank_methods,
)
from studies.render.tables.shared import Note, best_of, interval_cell, p_cell, tested_cells

_APPNP = "walk"  # takes LinearJEPA's propagation, and leaves out what it learned
_PLAIN = str.maketrans(" ", "-", "()")  # of a method's name, for that of a file
_LENIENT = tuple(baseline for baseline in UNTRAINED if baseline != _APPNP)
_APPNP_NOTE = (
    "Without APPNP features: the mean against the best of the other untrained baselines. APPNP features take "
    "LinearJEPA's own propagation, without what it learned: they are the strictest baseline."
)
_CHECKED = ("photo", "computers")  # against the literature


def significance_table(frame: pd.DataFrame, variant: str) -> ReportTable:
    """Difference, its confidence interval and p, raw and corrected, beside the paper's."""
    tests = paper_tests(variant) if on_paper_splits(frame) else ()
    printed = {(row.dataset, row.baseline): row for row in tests}
    like = {(c.dataset, c.opponent): c for c in contrasts(frame, variant, "test_accuracy_paper_probe")}
    groups = [
        tuple(_row(c, like[dataset, c.opponent], printed.get((dataset, c.opponent))) for c in group)
        for dataset, group in groupby(contrasts(frame, variant), key=lambda contrast: contrast.dataset)
    ]
    name = method_name(variant)
    return ReportTable(
        f"significance-{variant}",
        f"{name} against every other method (accuracy points, fair probe)",
        (
            *map(Column.name, ("Dataset", "Against")),
            Column("Difference"),
            Column("95 % interval", ("low", "high")),
            *map(Column, ("p", "Holm p")),
            Column.name("Test"),
            *map(Column, ("Seeds", "Paper probe: difference", "Paper probe: p")),
            *map(Column, ("Paper: difference", "Paper: p")),
        ),
        tuple(groups),
        (
            f"Difference: {name} minus the other. Paired t-test where the seeds are the same, else Welch's. "
            "Holm's correction over all tests of this table. Bold: p < 0.05.",
            "Paper: its p is not corrected for the number of tests. Beside it ours under its probe, not "
            "corrected either; all other columns are under the fair probe.",
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
            Note.UNTRAINED,
        ),
    )


def wins_table(frame: pd.DataFrame) -> ReportTable:
    """Wins, ties and losses over graphs, with and without correction, beside the paper's."""
    groups = []
    for variant in (name for name in JEPA if name in methods_of(frame, baselines=False)):
        found = contrasts(frame, variant)
        like = contrasts(frame, variant, "test_accuracy_paper_probe")
        printed = paper_tests(variant) if on_paper_splits(frame) else ()
        opponents = [name for name in methods_of(frame) if name != variant]
        rows = [_wins_row(variant, method_name(name), found, like, printed, [name]) for name in opponents]
        trained = [name for name in opponents if name not in UNTRAINED]
        rows.append(_wins_row(variant, "all methods", found, like, printed, trained))
        untrained = [name for name in opponents if name in UNTRAINED]
        rows.append(_wins_row(variant, "all untrained baselines", found, like, printed, untrained))
        groups.append(tuple(rows))
    return ReportTable(
        "wins",
        "Wins / ties / losses over graphs at p < 0.05",
        (
            Column.name("Method"),
            Column.name("Against"),
            *(
                Column(title, ("wins", "ties", "losses"))
                for title in (
                    "Fair probe, Holm-corrected",
                    "Fair probe, uncorrected",
                    "Paper probe, uncorrected",
                    "Paper, uncorrected",
                )
            ),
        ),
        tuple(groups),
        (
            "Number of graphs with a win / a tie / a loss at p < 0.05. A tie: no difference shown, which "
            "with few seeds is not the same as none.",
            "The paper counts without correction: the last two columns are like with like.",
            "Graphs without a test (fewer than two seeds) do not count; the paper has five graphs.",
            "Corrected over all tests of one method, untrained baselines included; the significance tables "
            "give them one by one with their seeds.",
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
        ),
    )


def _row(contrast: Contrast, like: Contrast, printed: PrintedTest | None) -> Row:
    found = contrast.found
    names = (TableCell.name(dataset_name(contrast.dataset)), TableCell.name(method_name(contrast.opponent)))
    theirs = (
        *tested_cells(like.found, None)[:2],
        TableCell.number(None if printed is None else printed.difference, signed=True),
        _printed_p(None if printed is None else printed.p),
    )
    if found is None:
        empty = TableCell.number(None)
        return (*names, empty, TableCell(MISSING, ("", "")), empty, empty, empty, empty, *theirs)
    seeds = str(found.n[0]) if found.test == "paired" else f"{found.n[0]}, {found.n[1]}"
    return (
        *names,
        TableCell.number(found.difference, signed=True),
        interval_cell(found.low, found.high),
        p_cell(found.p),
        p_cell(contrast.holm_p),
        TableCell.name(found.test if found.p is not None else MISSING),
        TableCell.name(seeds),
        *theirs,
    )


def _printed_p(p: float | None) -> TableCell:
    """With the digits that the paper gives."""
    cell = p_cell(p)
    return cell if p is None else replace(cell, text=f"{p:.{3 if p >= 0.001 else 4}f}")


def _wins_row(
    variant: str,
    label: str,
    found: Sequence[Contrast],
    like: Sequence[Contrast],
    printed: Sequence[PrintedTest],
    opponents: Sequence[str],
) -> Row:
    ours, as_paper = ([c for c in side if c.opponent in opponents] for side in (found, like))
    theirs = [outcome(row.difference, row.p) for row in printed if row.baseline in opponents]
    return (
        TableCell.name(method_name(variant)),
        TableCell.name(label),
        _count([contrast.outcome() for contrast in ours]),
        _count([contrast.outcome(corrected=False) for contrast in ours]),
        _count([contrast.outcome(corrected=False) for contrast in as_paper]),
        _count(theirs),
    )


def _count(outcomes: Sequence[str | None]) -> TableCell:
    if not any(outcomes):
        return TableCell(MISSING, ("", "", ""))
    counts = tuple(str(outcomes.count(kind)) for kind in ("win", "tie", "loss"))
    return TableCell(" / ".join(counts), counts)


def paper_ranks(datasets: Sequence[str], methods: Collection[str] = SELF_SUPERVISED) -> dict[str, float]:
    """Average ranks of ``methods`` in the paper's Table 1 over the graphs given."""
    tables = []
    for dataset in datasets:
        printed = {name: paper_accuracy(name, dataset) for name in methods}
        means = {name: score.mean for name, score in printed.items() if score is not None}
        if len(means) == len(methods):
            tables.append(means)
    return average_ranks(tables)


def ranks_table(frame: pd.DataFrame) -> ReportTable:
    """Rank among self-supervised methods; a second column lets the untrained baselines take part."""
    ours = rank_methods(frame)
    ours_paper_probe = rank_methods(frame, field="test_accuracy_paper_probe")
    baselines = [method for method in methods_of(frame) if method in UNTRAINED]
    with_baselines = rank_methods(frame, (*SELF_SUPERVISED, *baselines))
    printed = paper_ranks(ours.datasets, ours.average) if on_paper_splits(frame) else {}
    rows: list[Row] = []
    for method in methods_of(frame):
        if method not in (*SELF_SUPERVISED, *baselines):
            continue
        ranking = with_baselines if method in baselines else ours
        seeds = [*ranking.seeds.values()] if method in ranking.average else []
        rows.append(
            (
                TableCell.name(method_name(method)),
                TableCell.number(paper_average_rank(method), decimals=1),
                TableCell.number(printed.get(method)),
                *(_rank(found.average, method) for found in (ours, ours_paper_probe, with_baselines)),
                TableCell.name(_span(seeds)),
            )
        )
    split = next((i for i, row in enumerate(rows) if row[0].text == method_name(baselines[0])), len(rows))
    where = ", ".join(dataset_name(d) for d in ours.datasets) or "no graph yet"
    return ReportTable(
        "ranks",
        "Average rank among self-supervised methods (1 is best)",
        (
            Column.name("Method"),
            *map(Column, ("Paper", "Paper, ranked as ours", "Ours, fair probe", "Ours, paper probe")),
            *map(Column, ("Ours, with untrained baselines", "Seeds per graph")),
        ),
        (tuple(rows[:split]), tuple(rows[split:])),
        (
            f"Ours: {len(ours.average)} methods ranked by their means over the seeds that all of them "
            f"have, on the graphs where there are such seeds ({where}). Ties share their places.",
            f"Paper: {paper_source('main')}, six methods on five graphs; ranked as ours: its accuracies of "
            "the methods and graphs that ours ranks.",
            "Ours, with untrained baselines: fair probe, these are ranked with the methods.",
            Note.FAIR_PROBE,
        ),
    )


def _rank(average: dict[str, float], method: str) -> TableCell:
    rank = average.get(method)
    return TableCell.number(rank, bold=rank is not None and rank == min(average.values()))


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True)
class Gain:
    """Of one method over the best untrained baseline of one graph on one split."""

    split: str
    dataset: str
    baseline: str
    theirs: pd.Series
    ours: pd.Series
    found: Comparison
    balanced: float | None


def best_validated_baseline(
    validation: Values, dataset: str, baselines: Sequence[str] = UNTRAINED
) -> str | None:
    """The one with the highest mean validation accuracy over the seeds that all of them have."""
    means = means_on_shared_seeds(
        {
            baseline: validation[baseline, dataset]
            for baseline in baselines
            if (baseline, dataset) in validation
        }
    )
    return max(means, key=means.__getitem__, default=None)


def gains(frame: pd.DataFrame, method: str, baselines: Sequence[str] = UNTRAINED) -> list[Gain]:
    """For every split and graph on which the method and some untrained baseline were measured."""
    made = []
    for split, part in frame.groupby("split"):
        test, validation, balanced = (
            values_by(part, field) for field in ("test_accuracy", "val_accuracy", "balanced_accuracy")
        )
        for dataset in datasets_of(part):
            baseline = best_validated_baseline(validation, dataset, baselines)
            if baseline is None or (method, dataset) not in test:
                continue
            ours, theirs = test[method, dataset], test[baseline, dataset]
            found = compare(ours, theirs)
            even = compare(balanced.get((method, dataset)), balanced.get((baseline, dataset)))
            if found is not None:
                difference = None if even is None else even.difference
                made.append(Gain(str(split), dataset, baseline, theirs, ours, found, difference))
    return made


def gains_table(frame: pd.DataFrame, method: str) -> ReportTable:
    """One row a graph, a group a split; the last row of a group is the mean over its graphs."""
    found, lenient = gains(frame, method), gains(frame, method, _LENIENT)
    corrected = dict(zip(map(id, found), holm([gain.found.p for gain in found]), strict=True))
    groups = []
    for split in dict.fromkeys(gain.split for gain in found):
        here = [gain for gain in found if gain.split == split]
        rows = [*(_gain_row(gain, corrected[id(gain)]) for gain in here), _mean_row(split, here)]
        others = [gain for gain in lenient if gain.split == split]
        if others and any(gain.baseline == _APPNP for gain in here):
            rows.append(_mean_row(split, others, ", without APPNP features"))
        groups.append(tuple(rows))
    with_appnp = any(gain.baseline == _APPNP for gain in found)
    name = method_name(method)
    return ReportTable(
        f"gains-{method.translate(_PLAIN)}",
        f"{name} against the best untrained baseline of each graph (accuracy points, fair probe)",
        (
            *map(Column.name, ("Split", "Dataset", "Best baseline")),
            *map(Column.score, ("Its accuracy", name)),
            Column("Gain"),
            Column("95 % interval", ("low", "high")),
            *map(Column, ("p", "Holm p", "Gain in balanced accuracy")),
        ),
        tuple(groups),
        (
            "Best baseline: the untrained baseline with the highest mean validation accuracy over the seeds. "
            "Another one may score higher on the test.",
            *(_APPNP_NOTE,) * with_appnp,
            "Splits: training and validation labels per class, or shares of the nodes. Paired t-test where "
            "the seeds are the same, else Welch's; Holm's correction over all rows. Bold: p < 0.05.",
            Note.SEEDS,
            Note.FAIR_PROBE,
            *unfinished_notes(frame),
        ),
    )


def _gain_row(gain: Gain, holm_p: float | None) -> Row:
    return (
        *map(TableCell.name, (gain.split, dataset_name(gain.dataset), method_name(gain.baseline))),
        *(TableCell.score(summarise(side.tolist())) for side in (gain.theirs, gain.ours)),
        TableCell.number(gain.found.difference, signed=True),
        interval_cell(gain.found.low, gain.found.high),
        p_cell(gain.found.p),
        p_cell(holm_p),
        TableCell.number(gain.balanced, signed=True),
    )


def _mean_row(split: str, here: Sequence[Gain], which: str = "") -> Row:
    empty, nothing = TableCell.number(None), TableCell(MISSING, ("", "", ""))
    balanced = [gain.balanced for gain in here if gain.balanced is not None]
    return (
        *map(TableCell.name, (split, f"mean of {len(here)}{which}", MISSING)),
        nothing,
        nothing,
        TableCell.number(fmean(gain.found.difference for gain in here), signed=True),
        TableCell(MISSING, ("", "")),
        empty,
        empty,
        TableCell.number(fmean(balanced) if len(balanced) == len(here) else None, signed=True),
    )


def variants_table(frame: pd.DataFrame) -> ReportTable:
    """A group a split, a row a variant, a column a graph."""
    varied = frame[frame.variant.notna()]
    values = values_by(varied, "test_accuracy", ("split", "variant", "dataset"))
    datasets, variants = datasets_of(varied), sorted(set(varied.variant))
    first = variants[0]
    groups = [
        tuple(_variant_row(values, split, variant, first, datasets) for variant in variants)
        for split in sorted(set(varied.split), reverse=True)
    ]
    return ReportTable(
        "variants",
        "Variants: test accuracy (%) under the fair probe",
        (
            *map(Column.name, ("Split", "Variant")),
            *(Column.score(dataset_name(name)) for name in datasets),
            *map(Column, (f"Mean against {first}", "p")),
        ),
        tuple(groups),
        (
            f"Mean against {first}: of the differences on every graph, each over the seeds that both have; "
            "p of a paired t-test over the graphs, not corrected.",
            Note.SEEDS,
            f"Bold: best of the graph on that split; {Note.MOST_SEEDS}",
            Note.FAIR_PROBE,
            *unfinished_notes(frame),
        ),
    )


def _variant_row(values: Values, split: str, variant: str, first: str, datasets: Sequence[str]) -> Row:
    scores = summaries(values)
    cells, mine, theirs = [], {}, {}
    for dataset in datasets:
        best = best_of(score for (s, _, d), score in scores.items() if (s, d) == (split, dataset))
        cells.append(TableCell.score(scores.get((split, variant, dataset)), best=best))
        pair = {name: values.get((split, name, dataset)) for name in (variant, first)}
        if means := means_on_shared_seeds(pair):
            mine[dataset], theirs[dataset] = means[variant], means[first]
    sides = (pd.Series(side, dtype=float) for side in (mine, theirs))
    found = None if variant == first else compare(*sides)
    return (
        TableCell.name(split),
        TableCell.name(variant),
        *cells,
        *tested_cells(found, None)[:2],
    )


@cache
def literature() -> list[dict[str, Any]]:
    """What ``literature.toml`` says of each method."""
    text = Path(__file__).parents[1].joinpath("literature.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["published"]


def official_table(frame: pd.DataFrame) -> ReportTable:
    """Ours, published, their difference, whether that is near enough, and the best baseline of the split."""
    baselines = values_by(
        frame[frame.method.isin(UNTRAINED)], "test_accuracy", ("method", "dataset", "split")
    )
    official = frame[frame.preset.eq("official")]
    groups = []
    for source in literature():
        rows: list[Row] = []
        method, split = source["method"], source["split"]
        values = values_by(official, source["field"], ("method", "dataset", "split"))
        for dataset in _CHECKED:
            (published, tolerance), mine = source[dataset], values.get((method, dataset, split))
            ours = None if mine is None else summarise(mine.tolist())
            difference = None if ours is None else ours.mean - published
            near = "-" if difference is None else "yes" if round(difference + tolerance, 6) >= 0 else "no"
            shared = [
                means_on_shared_seeds({"ours": mine, "baseline": baseline})
                for (_, *place), baseline in baselines.items()
                if place == [dataset, split]
            ]
            best = max((means["baseline"] for means in shared if means), default=None)
            rows.append(
                (
                    *map(TableCell.name, (method_name(method), dataset_name(dataset), split)),
                    TableCell.score(ours),
                    TableCell.number(published, decimals=1),
                    TableCell.number(difference, signed=True),
                    TableCell.name(f"{near} ({tolerance:g})"),
                    TableCell.number(best),
                )
            )
        groups.append(tuple(rows))
    trained = official[official.config.map(lambda config: bool((config or {}).get("training")))]
    epochs = {
        f"{method_name(row.method)}: {row.config['training']['epochs']:,} epochs at most"
        for row in trained.itertuples()
    }
    sources = {f"{method_name(row['method'])}: {row['source']}" for row in literature()}
    return ReportTable(
        "official",
        "Authors' settings against the literature: test accuracy (%)",
        (
            *map(Column.name, ("Method", "Dataset", "Split")),
            Column.score("Ours"),
            *map(Column, ("Published", "Difference")),
            Column.name("Near enough (points)"),
            Column("Best untrained baseline"),
        ),
        tuple(groups),
        (
            f"Published figures: {'; '.join(sorted(sources))}.",
            f"Ours: {'; '.join(sorted(epochs))}.",
            f"The supervised GCN is judged by its own classifier, the others by the probe. {Note.FAIR_PROBE}",
            "Best untrained baseline: on the split and the seeds of our row; dash: not measured on them.",
            Note.SEEDS,
            *unfinished_notes(frame),
        ),
    )
