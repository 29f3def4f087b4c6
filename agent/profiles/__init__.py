"""Prompt profiles: what the prompts of a policy contain and which models get them, as data files.

Nothing is imported here, because a configuration needs only the names (:mod:`agent.profiles.names`).
"""
