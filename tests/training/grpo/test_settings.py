"""Recipes and their overrides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from training.grpo.rewards.registry import REWARDS
from training.grpo.settings import Recipe, load_settings, parse_settings


@pytest.mark.parametrize(
    ("recipe", "group", "kl", "by_reward", "scaled", "clip_high", "rows", "most"),
    [
        ("ssl", 8, 0.1, False, False, 0.2, 128, 1.2),  # Table 6, App. B.5
        ("guirlvg", 6, 1e-4, True, True, 0.2, 24, 2.0),  # §3.6 and §3.8: groups of 6, batches of 4
        ("adagui", 10, 0.04, False, True, 0.2, 80, 1.5),  # N of Eq. 2
        ("lpo", 16, 1e-4, False, True, 0.28, 128, 1.0),  # §5.1
    ],
)
def test_the_constants_of_the_papers(
    *,
    recipe: Recipe,
    group: int,
    kl: float,
    by_reward: bool,
    scaled: bool,
    clip_high: float,
    rows: int,
    most: float,
) -> None:
    config = parse_settings({"recipe": recipe}, "here")
    assert (config.group, config.kl, config.kl_by_reward, config.scale_advantages) == (group, kl, by_reward, scaled)
    assert (config.clip_low, config.clip_high, config.optimization.batch_rows) == (0.2, clip_high, rows)
    assert (config.reward.kind, config.reward.max_reward) == (recipe, most)


@pytest.mark.parametrize(
    ("recipe", "steps", "epochs", "rate", "schedule", "lora"),
    [
        ("ssl", None, 10, 1e-6, "constant", None),  # Table 6
        ("guirlvg", 1_300, 2, 1e-5, "linear", (64, 128)),  # §2.2: two epochs; the final version is of step 1,300
        ("adagui", None, 1, 1e-6, "constant", (8, 32)),  # §4.1, in GAPO
        ("lpo", None, 1, 1e-6, "constant", None),  # §5.1
    ],
)
def test_steps_epochs_and_adapters_are_the_papers(
    *, recipe: Recipe, steps: int | None, epochs: int, rate: float, schedule: str, lora: tuple[int, int] | None
) -> None:
    config = parse_settings({"recipe": recipe}, "here")
    how, adapters = config.optimization, config.compute.lora
    assert (config.steps, how.epochs, how.learning_rate, how.schedule) == (steps, epochs, rate, schedule)
    assert (adapters and (adapters.rank, adapters.alpha)) == lora
    if recipe == "ssl":
        assert (how.warmup, how.weight_decay, how.clip, config.compute.max_tokens) == (0.05, 0.01, 1.0, 2_048)


def test_what_a_recipe_sets_can_be_removed() -> None:
    config = load_settings(None, ["recipe=guirlvg", "compute.lora=none", "steps=none"])
    assert (config.compute.lora, config.steps) == (None, None)
    assert load_settings(None, ["recipe=guirlvg", "compute.lora.rank=4"]).compute.needed_lora.alpha == 128


def test_a_file_lies_over_its_recipe_and_changes_over_both(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('recipe = "lpo"\ngroup = 4\n[reward]\nwindows = false\n')
    config = load_settings(tmp_path / "c.toml", ["group=2", "reward.radius=50"])
    assert (config.group, config.clip_high) == (2, 0.28)
    assert config.reward.model_dump(include={"kind", "windows", "radius"}) == {
        "kind": "lpo",
        "windows": False,
        "radius": 50,
    }


def test_another_reward_in_a_recipe_takes_nothing_of_the_recipes() -> None:
    config = parse_settings({"recipe": "lpo", "reward": {"kind": "ssl", "zones": 8}}, "here")
    assert config.reward.model_dump(include={"kind", "zones", "alpha"}) == {"kind": "ssl", "zones": 8, "alpha": 0.2}
    assert config.clip_high == 0.28


@pytest.mark.parametrize("recipe", REWARDS.builtin)
def test_a_recipe_is_complete(recipe: Recipe) -> None:
    config = parse_settings({"recipe": recipe}, "here")
    assert parse_settings(config.model_dump(mode="json"), "here") == config


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["recipe=ppo"], "unknown recipe 'ppo'; there are ssl, guirlvg, adagui, lpo"),
        (["gruop=3"], "unknown key 'gruop'"),
        (["reward.zones=1"], "reward.*zones"),
        (["reward.window=3"], "unknown key 'reward.ssl.window'"),
        (["reward.kind=ppo"], "reward"),
        (["reward=3"], "--set: key 'reward'"),
        (["recipe=[1]"], r"--set: unknown recipe \[1\]"),
        (["group=7"], "batch_rows 128 is not a multiple of the group of 7; use a multiple of group"),
        (["answer_tokens=3000"], "leaves no room for a prompt"),
        (['steps="none"', "optimization.epochs=0"], "epochs must be at least 1: a fine-tuning of 0"),
        (["compute.shared_base=true"], "take compute.lora"),
        (["kl=0", "kl_by_reward=true"], "whose weight kl is 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_values_are_rejected(changes: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        load_settings(None, changes)
    assert "\n" not in str(caught.value)
    file = tmp_path / "good.toml"
    file.write_text("seed = 1\n")
    with pytest.raises(BadInput, match=rf"^({re.escape(str(file))} with )?--set: .*{says.removeprefix('--set: ')}"):
        load_settings(file, changes)


def test_the_address_of_a_vllm_server_belongs_to_its_mode() -> None:
    assert parse_settings({"vllm": {"memory": 0.5}}, "here").vllm is not None
    assert parse_settings({"vllm": "none"}, "here").vllm is None
    for wrong in ({"mode": "server"}, {"url": "http://127.0.0.1:8000"}):
        with pytest.raises(BadInput, match=r"vllm.url is the address of a server"):
            parse_settings({"vllm": wrong}, "here")
