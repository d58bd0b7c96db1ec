import pytest

from nodejepa.errors import ConfigError
from nodejepa.masking.curriculum import Curriculum
from nodejepa.methods.nodejepa import MaskingConfig


def test_ratio_is_linear_and_then_stays() -> None:
    ratios = [Curriculum().at(epoch)[0] for epoch in range(60)]
    assert ratios[:51] == pytest.approx([0.2 + 0.3 * epoch / 50 for epoch in range(51)])
    assert set(ratios[50:]) == {0.5}


def test_hops_switch_half_way() -> None:
    hops = [Curriculum().at(epoch)[1] for epoch in range(60)]
    assert hops == [1] * 25 + [2] * 35


def test_disabled_means_end_values_from_the_start() -> None:
    assert Curriculum(enabled=False).at(0) == (0.5, 2)
    assert Curriculum(epochs=0).at(0) == (0.5, 2)


def test_more_hops_and_falling_ratios_work() -> None:
    steep = Curriculum(ratio_start=0.6, ratio_end=0.4, hops_start=1, hops_end=4, epochs=6)
    assert [steep.at(epoch)[1] for epoch in range(8)] == [1, 2, 2, 3, 3, 4, 4, 4]
    assert steep.at(3)[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        ("ratio_start", 0.0),
        ("ratio", 1.0),
        ("ratio", float("nan")),
        ("hops_start", -1),
        ("hops", 1.5),
        ("curriculum_epochs", -1),
        ("curriculum_epochs", True),
    ],
)
def test_bad_ranges_are_refused_by_the_name_of_the_setting(setting: str, bad: float) -> None:
    with pytest.raises(ConfigError, match=rf"^masking\.{setting} is {bad}"):
        MaskingConfig(**{setting: bad})


def test_epochs_are_counted_from_zero() -> None:
    with pytest.raises(ConfigError, match="epoch is -1"):
        Curriculum().at(-1)
