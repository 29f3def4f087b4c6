"""Turns traces into training rows: the prompt and completion of each step, with the outcome of the episode."""
