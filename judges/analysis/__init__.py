"""Why an episode failed (MiRA paper, §4): outcome summary, category by prioritised rules, key decision step.

Works on traces alone, asks no model unless one is given, and never decides whether an episode failed: that is the
checker's word. :func:`explain` is the rules alone, on steps; :class:`Analyzer` takes traces and reference successes,
and :class:`Analysis` is what comes out.
"""

from judges.analysis.analyzer import Analyzer, Recorded
from judges.analysis.moves import Reference
from judges.analysis.pages import Pages
from judges.analysis.records import Analysis, Comparison, Divergence
from judges.analysis.rules import Case, FailureRules, explain

__all__ = [
    "Analysis",
    "Analyzer",
    "Case",
    "Comparison",
    "Divergence",
    "FailureRules",
    "Pages",
    "Recorded",
    "Reference",
    "explain",
]
