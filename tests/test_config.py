"""Settings by name: parsed by type, refused when unknown, checked together."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_type_hints

import numpy as np
import pytest

from nodejepa.config import Settings, bounds, flatten, from_dict, override, parse_assignments, to_dict
from nodejepa.errors import ConfigError
from nodejepa.methods import METHODS
from nodejepa.methods.blocks import EncoderConfig
from nodejepa.methods.nodejepa import NodeJEPAConfig
from nodejepa.methods.patchjepa import PatchJEPAConfig
from nodejepa.training.logger import Logging


def test_text_is_parsed_by_the_type_of_the_setting():
    changed = override(
        NodeJEPAConfig(),
        {
            "training.lr": "2e-4",
            "masking.hops": "1",
            "masking.isolation": "false",
            "loss.sigreg_nodes": "none",
        },
    )
    assert (changed.training.lr, changed.masking.hops, changed.masking.isolation) == (2e-4, 1, False)
    assert changed.loss.sigreg_nodes is None
    assert override(changed, {"predictor.descriptors": "degree, spectral"}).predictor.descriptors == (
        "degree",
        "spectral",
    )


def test_a_short_name_works_where_it_is_the_only_one():
    assert override(NodeJEPAConfig(), {"epochs": 7}).training.epochs == 7
    with pytest.raises(ConfigError, match=r"'hidden' could be encoder.hidden or predictor.hidden"):
        override(NodeJEPAConfig(), {"hidden": 7})


def test_changes_that_only_fit_together_are_checked_together():
    changes = {"predictor.heads": 3, "predictor.hidden": 6, "predictor.kind": "attention"}
    for order in (list(changes), list(changes)[::-1]):
        config = override(NodeJEPAConfig(), {name: changes[name] for name in order})
        assert from_dict(NodeJEPAConfig, to_dict(config)) == config
    assert override(NodeJEPAConfig(), {"predictor.hidden": 30}).predictor.hidden == 30  # heads are not in use


@pytest.mark.parametrize("kind", [NodeJEPAConfig, PatchJEPAConfig])
def test_json_round_trip(kind):
    assert from_dict(kind, json.loads(json.dumps(to_dict(kind())))) == kind()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("masking.hopps", "2", "Did you mean masking.hops"),
        ("maskng.hops", "2", "Did you mean masking.hops"),
        ("zzz", "2", "Known settings"),
        ("masking.hops", "2.5", "a whole number"),
        ("masking.hops", True, "a whole number"),
        ("masking.hops", None, "a whole number"),
        ("masking.isolation", "maybe", "true or false"),
        ("training.lr", "inf", "a finite number"),
        ("training.lr", "nan", "a finite number"),
        ("training.lr", "1e39", "at most 100"),
        ("training.clip", float("inf"), "a finite number"),
        ("loss.variance", "-1", "at least 0"),
        ("loss.prediction", "l1", "It must be 'cosine' or 'l2'"),
        ("encoder.kind", "transformer", "It must be 'gcn'"),
        ("encoder.hidden", "0", "at least 1"),
        ("loss.sigreg_nodes", "0", "at least 1 or none"),
        ("predictor.descriptors", 5, "It must be a list"),
        ("predictor.descriptors", "age", "some of"),
        ("training.epochs", "-1", "at least 0"),
    ],
)
def test_nonsense_is_refused_with_advice(name, value, says):
    with pytest.raises(ConfigError) as refused:
        override(NodeJEPAConfig(), {name: value})
    assert says in str(refused.value)


def test_assignments():
    assert parse_assignments(["a.b = 1", "c=x=y"]) == {"a.b": "1", "c": "x=y"}
    for text in ("a.b", "=1", ""):
        with pytest.raises(ConfigError, match="name=value"):
            parse_assignments([text])


def test_every_setting_has_one_dotted_name():
    names = list(flatten(PatchJEPAConfig()))
    assert len(names) == len(set(names))
    assert {"patches.count", "patches.hops", "loss.hyperbola", "training.lr", "keep"} <= set(names)


KEPT_AND_BROKEN = {  # every rule that a setting has: values at its edges
    "at least 1": (int, [1, 7], [0, -1]),
    "at least 2": (int, [2], [1]),
    "at least 0": (float, [0, 0.5], [-1e-9]),
    "above 0": (float, [1e-9], [0]),
    "above 0 and below 1": (float, [0.5], [0, 1]),
    "above 0 and at most 1": (float, [1], [0, 1.1]),
    "above 0 and at most 100": (float, [100], [0, 100.1]),
    "at least 0 and below 1": (float, [0, 0.9], [-0.1, 1]),
    "at least 0 and at most 1": (float, [0, 1], [-0.1, 1.1]),
    "at least 0 and at most 4": (float, [0, 4], [-0.1, 4.1]),
    "at least 1 and at most 64": (int, [1, 64], [0, 65]),
    "at least 1 and at most 8,192": (int, [1, 8192], [0, 8193]),
    "at least 1 and at most 1,000": (int, [1, 1000], [0, 1001]),
    "at least 0 and at most 1,000": (int, [0, 1000], [-1, 1001]),
    "at least 1 and at most 65,536": (int, [1, 65536], [0, 65537]),
    "above 0 and at most 65,536 and a multiple of 4": (int, [4, 64], [0, 6, -4, 65540]),
}


def rules(kind: type[Any]) -> dict[str, Any]:
    """Types of the settings by their rules; nested configs check themselves."""
    assert issubclass(kind, Settings), "nobody would check it"
    types = dict(get_type_hints(kind, include_extras=True))
    found = {}
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(types[field.name]):
            found |= rules(types[field.name])
        else:
            found[bounds(types[field.name]).removesuffix(" or none")] = types[field.name]
    return found


CONFIGS = [Logging, *(entry.config_class for entry in METHODS.values())]
RULES = {rule: kind for config in CONFIGS for rule, kind in rules(config).items() if rule}


def test_every_rule_of_a_setting_is_one_of_these():
    assert RULES.keys() == KEPT_AND_BROKEN.keys()


@pytest.mark.parametrize("rule", KEPT_AND_BROKEN)
def test_a_rule_says_what_it_does(rule):
    kind, kept, broken = KEPT_AND_BROKEN[rule]
    one = dataclasses.make_dataclass("One", [("value", RULES[rule])], bases=(Settings,), frozen=True)
    for value in kept:
        assert one(value).value == one(str(value)).value == kind(value)
    for value in broken:
        with pytest.raises(ConfigError, match=f"^value is {value}. It must be {rule}( or none)?.$"):
            one(value)


def test_a_setting_is_checked_where_it_is_made():
    with pytest.raises(ConfigError, match=r"^encoder.hidden is 0. It must be at least 1 and at most 65,536"):
        EncoderConfig(hidden=0)
    with pytest.raises(ConfigError, match=r"^encoder is 3. It must be of type EncoderConfig.$"):
        NodeJEPAConfig(encoder=3)
    assert EncoderConfig(hidden=np.int64(8)) == EncoderConfig(hidden=8.0) == EncoderConfig(hidden=8)
    assert hash(EncoderConfig(hidden=8)) == hash(EncoderConfig(hidden="8"))
