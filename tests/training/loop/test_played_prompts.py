"""A model is played with the prompts that it was trained on: by `mira run` and by the rollouts of the training loop."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from agent.config import Limits, RunConfig
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_suite
from envs.core.action_languages.form_language import ELEMENT_LINE
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from models.embedded import embedded_dir
from training.engine.checkpoints import load_policy, save_policy
from training.loop.data import read_runs
from training.loop.loop import Loop
from training.loop.rollouts import rollout_config
from training.loop.settings import LoopSettings, RolloutSettings, load_settings
from training.loop.sft import SupervisedSettings, fine_tune

TASKS = TaskSelection("miniwob", ("enter-text",), (1_000_000,))
"""A seed for training."""
ONE_STEP = Limits(max_steps=1)


async def first_prompt(config: RunConfig, folder: Path) -> list[tuple[str, str]]:
    """The (role, text) messages of the policy's first call, also if its answer was no action, without the port of the
    local server."""
    run = await run_suite(config, TASKS, folder)
    (file,) = discover_traces([run.folder])
    trace = file.read()
    calls = [call for step in trace.steps for call in step.intent.calls]
    calls += [call for event in trace.events for call in event.calls]
    first = next(call for call in calls if call.role == "policy")
    assert first.prompt_blob is not None
    rows = json.loads(re.sub(r"127\.0\.0\.1:\d+", "HOST", file.blobs.text(first.prompt_blob)))
    return [(row["role"], row["text"]) for row in rows]


def save_start(folder: Path) -> Path:
    """The embedded model with a context for longer prompts, without its declaration."""
    model, tokenizer = load_policy(embedded_dir())
    model.config.max_position_embeddings = tokenizer.model_max_length = 4_096
    save_policy(model, tokenizer, folder)
    return folder


@pytest.mark.browser
@pytest.mark.parametrize("profile", ["small", "large", pytest.param("compact", marks=pytest.mark.heavy)])
async def test_demonstrations_fine_tuning_and_play_have_one_prompt(tmp_path: Path, profile: str) -> None:
    recorded = RunConfig(policy="oracle", planner="none", profile=profile, fsync=False)
    shown = await first_prompt(recorded, tmp_path / "demonstrations")
    (episode,) = read_runs([tmp_path / "demonstrations"], texts=True).kept
    assert episode.decisions[0].completion.startswith(f'{ELEMENT_LINE}textbox "') == (profile == "small")
    settings = SupervisedSettings.load(None, ["compute.cpu=true", "optimization.epochs=1", "compute.max_tokens=4096"])
    start = str(save_start(tmp_path / "start"))
    tuned = await asyncio.to_thread(
        fine_tune, [tmp_path / "demonstrations"], start, tmp_path / "sft", settings, lambda _: None
    )
    played = RunConfig(policy=f"local:{tuned.model}", planner="none", limits=ONE_STEP, fsync=False)
    if profile == "large":  # the oracle acts once a turn
        played = played.model_copy(update={"max_actions_per_turn": 1})
    assert await first_prompt(played, tmp_path / "played") == shown
    rollouts = RolloutSettings(profile=profile, workers=1, limits=ONE_STEP)
    assert await first_prompt(rollout_config(tuned.model, rollouts, 0), tmp_path / "loop") == shown
    other = "compact" if profile != "compact" else "small"
    with pytest.raises(BadInput, match=f"was trained on {profile} prompts: set rollouts.profile to '{profile}'"):
        Loop.open(tmp_path / "run", LoopSettings(start=str(tuned.model), rollouts=RolloutSettings(profile=other)))


def test_files_of_earlier_versions_name_a_style(tmp_path: Path) -> None:
    assert RolloutSettings.model_validate({"prompt_style": "full"}).profile == "large"
    assert RolloutSettings.model_validate({"prompt_style": "compact"}).profile == "compact"
    assert load_settings(None, ["rollouts.prompt_style=full"]).rollouts.profile == "large"
    file = tmp_path / "old.toml"
    file.write_text('rollouts.prompt_style = "full"\n[arms.awr.rollouts]\nprompt_style = "compact"\n')
    assert load_settings(file).rollouts.profile == "large"
    assert load_settings(file, ["arm=awr"]).rollouts.profile == "compact"
    assert load_settings(file, ["rollouts.profile=small"]).rollouts.profile == "small", "an option overrides the file"
    with pytest.raises(BadInput, match=r"rollouts\.profile"):
        load_settings(None, ["rollouts.prompt_style=[1]"])
    with pytest.raises(ValueError, match="unknown prompt profile: use one of compact, large, small"):
        RolloutSettings.model_validate({"profile": "huge"})
