"""Judges: the AutoRater that verifies milestones, the outcome judge, and the failure analyzer.

Promised from here: the protocols; :mod:`judges.registry` makes them, :mod:`judges.analysis` says why an episode
failed. A judge that cannot be parsed raises; it never turns into a score.
"""

from judges.base import AutoRater, Ending, OutcomeJudge, Progress, Rated, Verdict

__all__ = ["AutoRater", "Ending", "OutcomeJudge", "Progress", "Rated", "Verdict"]
