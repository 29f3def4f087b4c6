"""Typed records and files that every package speaks: tasks, actions, observations, traces, settings, errors."""
