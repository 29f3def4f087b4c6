"""Policies that answer with tool calls of a vendor's client-side tool set, which become actions.

The vendors' tool calls have one table each (:mod:`agent.episode.toolsets.anthropic`,
:mod:`agent.episode.toolsets.openai`). The session executes the same typed actions as for any other policy, so boundary,
approval, secrets, notes, traces and limits are the same.
"""
