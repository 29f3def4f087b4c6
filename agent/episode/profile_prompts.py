"""Renders a policy's prompt by its profile."""

from __future__ import annotations

from collections.abc import Sequence

from agent.episode.prompts import PolicyView, render_policy_prompt
from agent.episode.short_prompts import is_short_prompt, render_short_prompt
from agent.profiles.profile import Profile, profiles
from models.base import Message


def render_prompt(profile: Profile, view: PolicyView) -> tuple[Message, ...]:
    """Renders *view*; equal views give equal messages."""
    return render_short_prompt(profile, view) if profile.is_short else render_policy_prompt(profile.style, view)


def profile_of_messages(messages: Sequence[tuple[str, str]]) -> str:
    """The profile of a recorded prompt of (role, text) *messages* for a checkpoint that is trained on it; empty if its
    style says enough. Of several profiles of short prompts it is the first: a prompt does not hold its name."""
    if not is_short_prompt(messages):
        return ""
    return next(name for name, profile in profiles().items() if profile.is_short)
