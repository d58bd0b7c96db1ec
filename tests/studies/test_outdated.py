"""Figures that were measured with settings their preset does not have say so."""

from studies.render.selection import outdated_notes

from nodejepa.config import to_dict
from nodejepa.methods import make_method


def record(dataset="photo", variant=None, preset="paper", **settings):
    config = to_dict(make_method("nodejepa", preset="paper", dataset=dataset, settings=settings).config)
    return {
        "status": "done",
        "method": "nodejepa",
        "preset": preset,
        "variant": variant,
        "dataset": dataset,
        "config": config,
    }


def test_what_the_preset_has_needs_no_word():
    assert outdated_notes([record(), record("cs")]) == []


def test_a_setting_that_all_records_of_a_graph_have_and_the_preset_has_not_is_named():
    old = {"loss.sigreg_times_n": True}
    found = outdated_notes([record("cs", **old), record(**old), record("physics"), record("physics", **old)])
    assert found == [
        "NodeJEPA on Photo, CS: measured with loss.sigreg_times_n = True; preset paper has False."
    ]


def test_what_one_variant_of_an_ablation_changes_is_its_own():
    old = {"loss.sigreg_times_n": True}
    found = outdated_notes([record(variant="A", **old), record(variant="D", **old, **{"loss.variance": 0.0})])
    assert len(found) == 1
    assert "loss.sigreg_times_n" in found[0]


def test_unknown_methods_and_presets_are_passed_over():
    assert outdated_notes([record() | {"method": "mine"}, record(preset="gone"), {"status": "failed"}]) == []
