"""Values of tasks before they are opened: the value critic's output for a state with the goal and an empty page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent.config import RunConfig
from agent.episode.profile_prompts import names_control, render_prompt
from agent.episode.prompts import PolicyView
from agent.profiles.profile import named
from agent.run.prompt_profiles import with_profile
from envs.core.action_languages import LANGUAGES
from envs.core.observation import Observation
from models.base import Message
from models.prompting.prompt_tokens import PromptTokens
from models.prompting.thought_request import with_thought_request
from training.data.rows import Row
from training.engine.checkpoints import load_tokenizer
from training.engine.scoring import score
from training.loop.curriculum import Candidate
from training.loop.rollouts import rollout_config
from training.loop.settings import LoopSettings

UNKNOWN = 0.5
"""Value of every task before there is a critic, so that the default band keeps all tasks."""
_NO_PAGE: Final = Observation(
    url="", title="", text="", elements=(), tabs=(), digest="", viewport=(0, 0), scroll=(0, 0), controls_total=0
)


def start_values(
    critic: Path | None, policy: Path, settings: LoopSettings
) -> Callable[[Sequence[Candidate]], Sequence[float]]:
    """A function for V of tasks from their texts, in the prompts of the rollouts. Pages are unknown before a task runs,
    so the prompts show none."""

    def values(tasks: Sequence[Candidate]) -> Sequence[float]:
        if critic is None or not tasks:
            return [UNKNOWN] * len(tasks)
        config = with_profile(rollout_config(policy, settings.rollouts, settings.seed), settings.pool.suite)
        encoder = PromptTokens(load_tokenizer(policy))
        prompts = [start_prompt(task, config) for task in tasks]
        rows = [
            Row(encoder.encode(prompt, settings.compute.max_tokens), (), number, 0)
            for number, prompt in enumerate(dict.fromkeys(prompts))
        ]
        by_prompt = dict(zip(dict.fromkeys(prompts), score("states", critic, rows, settings.compute), strict=True))
        return [by_prompt[prompt] for prompt in prompts]

    return values


def start_prompt(task: Candidate, config: RunConfig) -> tuple[Message, ...]:
    """The first prompt of *task* in a run of *config*, without its page and its milestones."""
    profile, language = named(config.profile), LANGUAGES[config.language]
    most = config.max_actions_per_turn if profile.style == "full" else 1
    view = PolicyView(
        instruction=task.instruction or task.ref.name.replace("-", " "),
        observation=_NO_PAGE,
        language=language,
        max_notes=config.max_notes,
        max_actions=most,
        names_control=names_control(profile, language, most),
    )
    *before, last = render_prompt(profile, view)
    text = with_thought_request(last.text) if config.thoughts == "asked" else last.text
    return (*before, replace(last, text=text.rstrip()))
