"""Values of tasks before they are opened, for the value band of WebRL's curriculum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from agent.run.prompt_profiles import with_profile
from envs.core.tasks import TaskRef
from models.base import Message
from models.embedded import embedded_dir
from models.prompting.prompt_tokens import PromptTokens
from tests.training.engine.critics import save_critic
from tests.training.serving.stand_in import StandIn
from training.data.rows import Row
from training.engine.checkpoints import load_tokenizer
from training.engine.scoring import score
from training.loop.curriculum import Candidate, ValueBand
from training.loop.curriculum.task_list import Counts
from training.loop.rollouts import play_run, rollout_config
from training.loop.settings import LoopSettings, load_settings
from training.loop.task_values import UNKNOWN, start_prompt, start_values
from training.serving.settings import ServerSettings

torch.set_num_threads(1)
PROFILES = ("compact", "large", "small")
TASK = TaskRef(suite="miniwob", name="click-test", seed=1_000_000)
OPENED = Candidate(ref=TASK, instruction="Click the button.", category="click")
UNOPENED = Candidate(ref=TASK, instruction="", category="click")


def settings_with(profile: str) -> LoopSettings:
    words = [f"rollouts.profile={profile}", "rollouts.limits.max_steps=1", "rollouts.workers=1"]
    return load_settings(None, ["arm=webrl_paper", "compute.cpu=true", "compute.threads=1", *words])


class Recorder(StandIn):
    """Keeps the prompts that it is asked."""

    def __init__(self, base: Path) -> None:
        self.prompts: list[list[dict[str, str]]] = []
        super().__init__(base)

    def answer(self, path: str, body: dict[str, Any], takes_adapters: bool) -> tuple[int, Any]:
        if "messages" in body:
            self.prompts.append(body["messages"])
        return super().answer(path, body, takes_adapters)


@pytest.mark.browser
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_critic_is_asked_about_the_prompts_that_the_policy_plays_with(tmp_path: Path, profile: str) -> None:
    """It was asked about compact prompts, whatever the profile: with another one it had never seen such a prompt."""
    settings, policy, running = settings_with(profile), embedded_dir(), Recorder(embedded_dir())
    config = rollout_config(policy, settings.rollouts, 0)
    server = ServerSettings(url=running.url)
    await play_run(tmp_path / "run.json", config, policy, [TASK], shared=None, listeners=(), log=print, server=server)
    running.close()
    played = running.prompts[0]
    asked = start_prompt(OPENED, with_profile(config, "miniwob"))
    assert [message.role for message in asked] == [message["role"] for message in played]
    assert asked[0].text == played[0]["content"] or len(asked) == 1
    before_page, _, _ = asked[-1].text.partition("⟦⟦DATA page")
    assert "Goal: Click the button.\n" in before_page and played[-1]["content"].startswith(before_page)


@pytest.mark.parametrize("profile", PROFILES)
def test_values_are_those_of_the_critic_at_the_start_of_a_task(tmp_path: Path, profile: str) -> None:
    settings, policy = settings_with(profile), embedded_dir()
    critic = save_critic(tmp_path / "critic", std=0.05)
    values = start_values(critic, policy, settings)([OPENED, UNOPENED, OPENED])
    config = with_profile(rollout_config(policy, settings.rollouts, 0), "miniwob")
    tokens = PromptTokens(load_tokenizer(policy))

    def alone(prompt: tuple[Message, ...]) -> float:
        row = Row(tokens.encode(prompt, settings.compute.max_tokens), (), 0, 0)
        return score("states", critic, [row], settings.compute)[0]

    expected = [alone(start_prompt(task, config)) for task in (OPENED, UNOPENED)]
    assert abs(expected[0] - expected[1]) > 1e-4, "the critic tells the two apart"
    assert values == pytest.approx([*expected, expected[0]], abs=1e-5)


def test_without_a_critic_every_task_is_within_the_default_band() -> None:
    assert start_values(None, embedded_dir(), settings_with("compact"))([OPENED]) == [UNKNOWN]
    assert ValueBand().low < UNKNOWN < ValueBand().high


def test_the_band_is_named_where_it_leaves_no_tasks() -> None:
    counts = Counts(similar=0, rare=0, explore=0, retry=0, missing=8, too_hard=5, too_easy=2)
    why = counts.why_missing(7, ValueBand())
    assert "value_band from 0.05 to 0.75 leaves out 5 tasks as too hard and 2 as too easy" in why
    used_up = counts.model_copy(update={"too_hard": 0, "too_easy": 0}).why_missing(7, ValueBand())
    assert "the pool of 7 is used up" in used_up and "value_band" not in used_up
