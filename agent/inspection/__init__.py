"""Inspects finished runs: listing, reports, replay, failure analysis, comparison, subgoal quality."""
