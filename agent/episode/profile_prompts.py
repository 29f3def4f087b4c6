"""Renders a policy's prompt by its profile."""

from __future__ import annotations

from agent.episode.prompts import PolicyView, render_policy_prompt
from agent.episode.short_prompts import render_short_prompt
from agent.profiles.profile import Profile
from models.base import Message


def render_prompt(profile: Profile, view: PolicyView) -> tuple[Message, ...]:
    """Renders *view*; equal views give equal messages."""
    return render_short_prompt(profile, view) if profile.is_short else render_policy_prompt(profile.style, view)
