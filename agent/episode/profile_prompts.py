"""Renders a policy's prompt by its profile."""

from __future__ import annotations

from collections.abc import Sequence

from agent.episode.prompts import PolicyView, render_policy_prompt
from agent.episode.short_prompts import is_short_prompt, render_short_prompt
from agent.profiles.profile import Profile, profiles
from envs.core.action_languages import Language
from envs.core.action_languages.form_language import ELEMENT_LINE
from envs.core.actions import Action
from envs.core.control_labels import control_label
from envs.core.observation import Observation
from models.base import Message


def render_prompt(profile: Profile, view: PolicyView) -> tuple[Message, ...]:
    """Renders *view*; equal views give equal messages."""
    return render_short_prompt(profile, view) if profile.is_short else render_policy_prompt(profile.style, view)


def names_control(profile: Profile, language: Language, max_actions: int) -> bool:
    """Whether an answer names its control on a line before the action."""
    return profile.element_line and max_actions == 1 and language.names_controls


def answer_text(language: Language, action: Action, observation: Observation, *, named: bool) -> str:
    """The answer whose only action is *action* on *observation*. *named*: with the line that names its control."""
    ref = getattr(action, "ref", None)
    element = observation.element(ref) if named and isinstance(ref, int) else None
    line = "" if element is None else f"{ELEMENT_LINE}{control_label(element)}\n"
    return line + language.show(action)


def profile_of_messages(messages: Sequence[tuple[str, str]]) -> str:
    """The profile of a recorded prompt of (role, text) *messages* for a checkpoint that is trained on it; empty if its
    style says enough. Of several profiles of short prompts it is the first: a prompt does not hold its name."""
    if not is_short_prompt(messages):
        return ""
    return next(name for name, profile in profiles().items() if profile.is_short)
