"""Builds the grounder of a run, with the question and the coordinates that its model was trained on."""

from __future__ import annotations

from dataclasses import replace

from agent.config import RunConfig
from agent.episode.grounder import ModelGrounder
from agent.profiles.profile import Profile
from envs.core.errors import BadInput
from models.base import ChatModel
from models.specs import checkpoint_folders
from models.thinking import budget_in_tokens
from models.vision.checkpoints import vision_profile
from models.vision.grounding import GroundingPrompt, declared_form


def check_grounder(config: RunConfig, profile: Profile, *, toolset: bool = False) -> None:
    """Raises BadInput where a grounder is set for a policy that does not describe controls in words: one with compact
    or short prompts, which name controls by number, or one with its vendor's *toolset*."""
    if config.grounder is None:
        return
    if toolset:
        raise BadInput(f"--grounder: the policy {config.policy} acts with its vendor's tools: leave the grounder out")
    if profile.style == "compact" or profile.is_short:
        raise BadInput(
            f"--grounder: the policy {config.policy} has {'short' if profile.is_short else 'compact'} prompts, which "
            f"name controls by number; use a policy with full prompts{' or --profile large' * profile.is_short}"
        )


def make_grounder(config: RunConfig, spec: str, model: ChatModel) -> ModelGrounder:
    """The grounder with *model*, which *spec* names. Raises BadInput if it is known to read text only,
    :class:`models.base.ModelUnavailable` for an unknown profile."""
    thinking = config.grounder_thinking
    return ModelGrounder(
        model,
        grounding_form(config, spec),
        deadline_s=config.deadline_s_of("grounder"),
        seed=config.seed,
        thinking=None if thinking is None else budget_in_tokens(thinking),
    )


def grounding_form(config: RunConfig, spec: str) -> GroundingPrompt:
    """The question for the model *spec*, in the coordinates of its profile, and in the form that its checkpoint
    declares (`mira train grpo` does); else without a thought. Raises as :func:`make_grounder`."""
    form = form_of_model(spec, config.grounder_profile)
    if form is None:
        raise BadInput(f"--grounder: {spec} reads text only; name a vision-language model")
    return form


def form_of_model(spec: str, declared: str = "auto") -> GroundingPrompt | None:
    """The question for the model *spec*, in the coordinates of its profile or of the *declared* one, and in the form
    that its checkpoint declares; None if it is known to read text only. Raises :class:`models.base.ModelUnavailable`
    for an unknown profile."""
    profile = vision_profile(spec, declared)
    declared_prompt = declared_form(*checkpoint_folders(spec))
    return None if profile is None else replace(declared_prompt or GroundingPrompt(), profile=profile)
