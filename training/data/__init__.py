"""Traces in, rows for training out: what a policy was shown and said at each step, and what came of the episode."""
