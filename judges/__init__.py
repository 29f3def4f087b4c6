"""Judges: the AutoRater that verifies milestones, the outcome judge, and the failure analyzer.

Public here: the protocols. :mod:`judges.registry` makes judges, :mod:`judges.analysis` explains why an episode failed.
An answer that cannot be parsed raises an error; it never becomes a score.
"""

from judges.base import AutoRater, Ending, OutcomeJudge, Progress, Rated, Verdict

__all__ = ["AutoRater", "Ending", "OutcomeJudge", "Progress", "Rated", "Verdict"]
