"""Configurations: the changes of arms, and one-line errors."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from training.loop.arms import ARMS, Arm
from training.loop.credit_checks import check_credit
from training.loop.settings import load_settings, override, parse_settings

CONFIGS = Path("training/configs")


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_every_arm_is_a_configuration_that_options_override(arm: str) -> None:
    settings = parse_settings({"arm": arm, "phases": 3}, "test")
    assert settings.phases == 3
    shaped = {"kl", "td_only", "no_filter", "digirl_shaped"}
    assert settings.needs_potential == (arm in shaped or arm.startswith("mira"))
    assert settings.needs_value == (arm not in {"filtered_bc", "mgrpo"})
    assert parse_settings({"arm": arm, "targets": {"alpha": 0.7}}, "test").targets.alpha == 0.7


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("arm", sorted(ARMS))
def test_no_shipped_configuration_overrides_an_arms_changes(path: Path, arm: Arm) -> None:
    """Otherwise two arms of one file would be equal, and their table wrong."""
    chosen, bare = load_settings(path, [f"arm={arm}"]).model_dump(), parse_settings({"arm": arm}, "").model_dump()
    for keys in leaves(ARMS[arm].changes):
        assert get(chosen, keys) == get(bare, keys), keys


def leaves(values: dict[str, Any]) -> list[tuple[str, ...]]:
    """The path of every value that is no table."""
    return [
        (key, *rest)
        for key, value in values.items()
        for rest in (leaves(value) if isinstance(value, dict) and value else [()])
    ]


def get(values: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return reduce(lambda result, key: result[key], keys, values)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_configuration_can_be_read(path: Path) -> None:
    assert load_settings(path).phases > 0


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_one_file_with_settings_of_shaping_serves_all_arms(arm: Arm) -> None:
    """An arm that switches shaping off itself is no mistake of the file; `targets.alpha=0` beside them is one."""
    shaping = ["targets.shape_failures=true", "targets.discounted_shaping=true", "potential.milestones=true"]
    check_credit(load_settings(None, [f"arm={arm}", "rollouts.attempts=2", *shaping]))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"arm": "best"}, "test: unknown arm 'best'; there are mira, mira_anchored, no_potential"),
        ({"phase": 2}, "test: unknown key 'phase'"),
        ({"targets": {"gamma": 2}}, "test: key 'targets.gamma': Input should be less than or equal to 1, got 2"),
        ({"actor": {"optimization": {"learning_rate": -1}}}, "test: key 'actor.optimization.learning_rate': "),
    ],
)
def test_a_mistake_is_named_in_one_line(values: dict[str, object], problem: str) -> None:
    with pytest.raises(BadInput, match=problem.replace("(", r"\(")) as error:
        parse_settings(values, "test")
    assert "\n" not in str(error.value)


OWN = """
arm = "awr"
[actor]
objective.beta = 0.2
[actor.optimization]
learning_rate = 5e-4
[arms.mira.actor.optimization]
learning_rate = 2e-4
"""


@pytest.mark.parametrize(
    ("changes", "rate"),
    [((), 5e-4), (("arm=mira",), 2e-4), (("arm=mira", "actor.optimization.learning_rate=1e-3"), 1e-3)],
)
def test_an_arm_can_have_its_own_settings(tmp_path: Path, changes: tuple[str, ...], rate: float) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    settings = load_settings(tmp_path / "own.toml", changes)
    assert settings.actor.optimization.learning_rate == rate
    assert settings.actor.objective.beta == (0.2 if changes else 0.5), "what makes an arm wins over the rest of a file"


def test_the_order_of_file_arm_its_table_and_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('arm = "no_potential"\n[targets]\nalpha = 0.4\n[arms.kl.actor.objective]\nbeta = 0.7\n')
    assert load_settings(path).targets.alpha == 0.0, "the arm's, else it would be MiRA"
    assert load_settings(path, ["arm=mira"]).targets.alpha == 0.4, "MiRA has whatever the file says"
    assert load_settings(path, ["arm=kl"]).actor.objective.beta == 0.7
    assert load_settings(path, ["arm=kl", "actor.objective.beta=0.9"]).actor.objective.beta == 0.9
    assert load_settings(path, ["targets.alpha=0.3"]).targets.alpha == 0.3


def test_values_of_a_file_that_the_arm_overrides_are_named(tmp_path: Path) -> None:
    """A file with 16 attempts of M-GRPO played 8, without a word."""
    path = tmp_path / "own.toml"
    path.write_text('arm = "mgrpo"\n[rollouts]\nattempts = 16\n[curriculum]\nexplore_share = 0.5\nrare_share = 0.0\n')
    lines: list[str] = []
    assert load_settings(path, ["curriculum.explore_share=0.7"], lines.append).curriculum.explore_share == 0.7
    (line,) = lines
    assert line.startswith("arm 'mgrpo' sets rollouts.attempts to 8, and 16 of ") and "[arms.mgrpo]" in line
    path.write_text(f"{path.read_text()}[arms.mgrpo.rollouts]\nattempts = 16\n")
    lines.clear()
    assert load_settings(path, ["curriculum.explore_share=0.7"], lines.append).rollouts.attempts == 16 and not lines


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[arms.best]\nphases = 1", "arms.best: unknown arm 'best'"),
        ("[arms.awr]\nphase = 1", "arms.awr: unknown key 'phase'"),
        ('[arms.awr]\narm = "mira"', "arms.awr.arm: unknown key"),
        ("arms = 3", "arms: a table of settings for each arm"),
        ("[arms]\nawr = 3", "arms: a table of settings for each arm"),
    ],
)
def test_a_mistake_in_an_unselected_arm_is_named_too(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(BadInput, match=re.escape(problem)):
        load_settings(tmp_path / "own.toml")


def test_an_arms_own_settings_come_from_a_file_only() -> None:
    with pytest.raises(BadInput, match="--set arms: unknown key"):
        load_settings(None, ["arms.mira.phases=1"])


def test_an_override_is_a_toml_value_or_a_string() -> None:
    assert override("targets.alpha=0.1") == {"targets": {"alpha": 0.1}}
    assert override("arm=awr") == {"arm": "awr"}
    assert override("evaluation.seeds=[1, 2]") == {"evaluation": {"seeds": [1, 2]}}
    with pytest.raises(BadInput, match="not KEY=VALUE"):
        override("alpha")


def test_a_missing_file_and_invalid_toml(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        load_settings(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("phases = = 2")
    with pytest.raises(BadInput, match="cannot be read"):
        load_settings(tmp_path / "bad.toml")


def test_files_of_earlier_versions_name_a_shared_base_lean(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text("compute.lean = true\n[arms.awr.compute]\nlean = false\n")
    assert load_settings(file).compute.shared_base
    assert not load_settings(file, ["arm=awr"]).compute.shared_base
    assert not load_settings(file, ["compute.shared_base=false"]).compute.shared_base, "an option overrides the file"
