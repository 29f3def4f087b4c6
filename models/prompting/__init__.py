"""Builds the text of prompts: fences for untrusted text, invisible characters, chat templates as tokens."""
