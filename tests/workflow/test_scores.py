"""Scores beside accuracy wherever a user's labels are scored, and a verdict in the colour of the worst."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from workflow_files import TINY

from nodejepa.cli.screen import in_options
from nodejepa.diagnostics import diagnose
from nodejepa.errors import GraphError
from nodejepa.evaluation import ProbeResult, SplitScore
from nodejepa.report.sections import verdict
from nodejepa.tables.cells import read_labels
from nodejepa.workflow.scores import Scores, score_table


def result(value, count=2):
    score = SplitScore("20-30", 1, "h", None, value, "l2", 1.0, True, value - 1, value - 2, value - 3)
    return ProbeResult("fair", (score,) * count)


def scores(ours, floor, common=50):
    rows = {"linear-jepa": result(ours), "raw": result(floor), "sgc": result(floor - 5)}
    sizes = {"rare": 100 - common, "common": common}
    nodes = np.arange(3)
    return Scores(rows, "a split", sizes, nodes, np.zeros(3, dtype=np.int64))


def test_the_colour_is_that_of_the_worst_thing_said():
    sound = diagnose(np.random.default_rng(0).normal(size=(100, 8)))
    assert sound.sound
    assert verdict(sound).tone == "good"
    assert verdict(sound, "Below the baselines.", doubtful=True).tone == "warning"
    assert verdict(diagnose(np.ones((9, 3)))).tone == "warning"
    shifted = diagnose(100 + np.random.default_rng(0).normal(size=(100, 8)))  # healthy, with advice
    assert not shifted.sound
    assert verdict(shifted).tone == "plain"
    assert verdict(diagnose(np.random.default_rng(0).normal(size=(5, 3000)))).tone == "plain"  # not judged


def test_words_and_means():
    good, bad, tie = scores(80.0, 70.0), scores(60.0, 70.0), scores(70.0, 70.0)
    assert [s.beats_baselines("linear-jepa") for s in (good, bad, tie)] == [True, False, False]
    said, advice = bad.findings("linear-jepa")
    assert "gains nothing" in said
    assert "--method raw" in in_options(advice), "the next step is one option away"
    assert len(good.findings("linear-jepa")) == 1
    assert "95.0 % of the labels are 'common'" in scores(80.0, 70.0, 95).findings("linear-jepa")[1]
    kept = good.to_dict()
    assert kept["means"]["linear-jepa"] == {
        "test_accuracy": 80.0,
        "balanced_accuracy": 79.0,
        "macro_f1": 78.0,
        "roc_auc": 77.0,
    }
    assert list(good.table()) == ["linear-jepa", "raw", "sgc"]


def imbalanced(**rows):
    """Accuracy and balanced accuracy of each row."""
    found = {
        name.replace("_", "-"): ProbeResult(
            "fair", (replace(result(one).scores[0], test_accuracy=one, balanced_accuracy=other),)
        )
        for name, (one, other) in rows.items()
    }
    nodes = np.arange(3)
    return Scores(found, "a split", {"rare": 40, "common": 60}, nodes, nodes, "both", "columns")


def test_guessing_the_large_classes_is_no_better():
    """Raw features with 60.3 % accuracy, 12.7 % balanced, were to be taken in place of 53.1 and 32.8 %."""
    kept = imbalanced(linear_jepa=(53.1, 32.8), raw=(60.3, 12.7), sgc=(50, 30))
    assert kept.beats_baselines("linear-jepa")
    said = " ".join(kept.findings("linear-jepa"))
    assert "gains nothing" not in said
    assert "Balanced accuracy, which counts every class alike, is 32.8 %, that of raw 12.7 %" in said
    lost = imbalanced(linear_jepa=(53.1, 32.8), raw=(60.3, 12.7), sgc=(54, 28))
    assert lost.best_baseline("linear-jepa") == "sgc", "4.8 points below is near"
    assert 'method="sgc", use="columns"' in lost.findings("linear-jepa")[1]
    flattered = imbalanced(linear_jepa=(60.3, 12.7), raw=(53.1, 32.8))
    assert "the lower one mostly guesses large classes" in flattered.findings("linear-jepa")[1]


def test_what_rows_are_made_of_is_said():
    rows = imbalanced(linear_jepa=(53, 32), raw=(50, 30))
    table = score_table(rows, "linear-jepa")
    assert [row[1].text.rpartition(", of ")[2] for row in table.rows] == [
        "columns and structure",
        "the columns",
    ]
    assert (
        "made of columns and structure, the baselines, which need no training, of the columns"
        in table.notes[1]
    )


def test_the_next_step_embeds_what_was_scored(run, files):
    """Without `--use columns` it embedded other features than those of the row."""
    out, _ = run.ok(*files.quick("--labels", "team", "--use", "both", "--seed", "3", "--dim", "2", *TINY))
    line = next(line for line in out.splitlines() if "nodejepa embed-graph" in line)
    command = shlex.split(line)[1:]
    assert command.count("--use") == 1
    assert command[command.index("--use") + 1] == "columns"
    best, other = command[command.index("--method") + 1], command[command.index("--out") + 1]
    run.ok(*command)
    wanted, again = (
        json.loads(Path(path).with_suffix(".json").read_text())["scores"]["means"][best]
        for path in (files.folder / "z.parquet", other)
    )
    assert again == pytest.approx(wanted)


MANY = ["a", "b", "a;b", "b;c"] * 20


@pytest.mark.parametrize(
    "values",
    [
        pa.array(MANY),
        pa.array([value.replace(";", "|") for value in MANY]),
        pa.array([value.replace(";", ", ") for value in MANY]),
        pa.array(["['a']", "['b']", "['a', 'b']", "['b']"] * 20),
        pa.array([value.split(";") for value in MANY]),
        pa.array([[1, 2], [1]] * 20),
        pa.array([{"a": 1}] * 20),
    ],
    ids=["semicolons", "bars", "commas", "lists as text", "lists", "lists of numbers", "records"],
)
def test_several_labels_a_node_are_refused_with_advice(values):
    with pytest.raises(GraphError, match="one class a node") as caught:
        read_labels([pa.chunked_array([values])], True, "nodes.csv, column 'topics'")
    assert "Keep the main label" in caught.value.fix


@pytest.mark.parametrize(
    "names",
    [
        ["Boston, MA", "Lowell, MA", "Albany, NY", "Utica, NY"],
        ["C/C++", "a b", "R&D; other", "x"],
        ["cs.AI", "cs.LG"],
    ],
)
def test_names_with_commas_are_one_label(names):
    codes, found = read_labels([pa.chunked_array([pa.array(names * 20)])], True, "here")
    assert len(found) == len(names)
    assert codes.max() == len(names) - 1
