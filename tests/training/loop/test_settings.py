"""Configurations: arms change what they say, mistakes are one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envs.errors import BadInput
from training.loop.arms import ARMS
from training.loop.settings import load_settings, override, parse_settings

CONFIGS = Path("training/configs")


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_every_arm_is_a_configuration_and_the_file_wins_over_it(arm: str) -> None:
    settings = parse_settings({"arm": arm, "phases": 3}, "test")
    assert settings.phases == 3
    assert settings.needs_potential == (arm in {"mira", "mira_anchored", "kl", "td_only", "no_filter"})
    assert settings.needs_value == (arm != "filtered_bc")
    assert parse_settings({"arm": arm, "targets": {"alpha": 0.7}}, "test").targets.alpha == 0.7


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_configuration_can_be_read(path: Path) -> None:
    load_settings(path)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"arm": "best"}, "test: unknown arm 'best'; there are mira, mira_anchored, no_potential"),
        ({"phase": 2}, "test: phase: unknown key"),
        ({"targets": {"gamma": 2}}, "test: targets.gamma: Input should be less than or equal to 1"),
        ({"actor": {"optimization": {"learning_rate": -1}}}, "test: actor.optimization.learning_rate: "),
    ],
)
def test_a_mistake_is_named_in_one_line(values: dict[str, object], told: str) -> None:
    with pytest.raises(BadInput, match=told.replace("(", r"\(")) as error:
        parse_settings(values, "test")
    assert "\n" not in str(error.value)


OWN = """
arm = "awr"
[actor.optimization]
learning_rate = 5e-4
[arms.mira.actor.optimization]
learning_rate = 2e-4
"""


@pytest.mark.parametrize(
    ("changes", "rate"),
    [((), 5e-4), (("arm=mira",), 2e-4), (("arm=mira", "actor.optimization.learning_rate=1e-3"), 1e-3)],
)
def test_an_arm_may_have_settings_of_its_own(tmp_path: Path, changes: tuple[str, ...], rate: float) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    settings = load_settings(tmp_path / "own.toml", changes)
    assert settings.actor.optimization.learning_rate == rate
    assert settings.actor.objective.beta == (0.1 if changes else 0.5), "what the file does not say is the arm's"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[arms.best]\nphases = 1", "arms.best: unknown arm 'best'"),
        ("[arms.awr]\nphase = 1", "arms.awr: phase: unknown key"),
        ('[arms.awr]\narm = "mira"', "arms.awr.arm: unknown key"),
        ("arms = 3", "arms: a table of settings for each arm"),
        ("[arms]\nawr = 3", "arms: a table of settings for each arm"),
    ],
)
def test_a_mistake_in_an_arm_that_is_not_chosen_is_named_too(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(BadInput, match=re.escape(told)):
        load_settings(tmp_path / "own.toml")


def test_an_arms_own_settings_come_from_a_file_alone() -> None:
    with pytest.raises(BadInput, match="--set arms: unknown key"):
        load_settings(None, ["arms.mira.phases=1"])


def test_an_override_is_a_value_of_toml_or_a_word() -> None:
    assert override("targets.alpha=0.1") == {"targets": {"alpha": 0.1}}
    assert override("arm=awr") == {"arm": "awr"}
    assert override("evaluation.seeds=[1, 2]") == {"evaluation": {"seeds": [1, 2]}}
    with pytest.raises(BadInput, match="no key=value"):
        override("alpha")


def test_a_file_that_is_not_there_or_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        load_settings(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("phases = = 2")
    with pytest.raises(BadInput, match="cannot be read"):
        load_settings(tmp_path / "bad.toml")
